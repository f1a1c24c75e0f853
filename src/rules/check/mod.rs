//! The checker: is a rule set right, before anything runs and without a cluster?
//!
//! In the order of the flow:
//!
//! | module | what happens there |
//! |---|---|
//! | `extent` | nodes of an expression's syntax tree → their characters |
//! | `scope`, `facts` | what can be named; which optional fields are known to be there |
//! | `library` | functions and their signatures |
//! | `expression`, `select`, `call`, `operators`, `macros` | the type of an expression |
//! | `place` | whether a value may stand where it is put |

pub mod call;
pub mod expression;
pub mod extent;
pub mod facts;
pub mod library;
pub mod macros;
pub mod operators;
pub mod place;
pub mod scope;
pub mod select;

#[cfg(test)]
mod expression_tests;
