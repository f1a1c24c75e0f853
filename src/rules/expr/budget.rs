//! What keeps an expression from hanging or from eating the memory: every evaluation has one budget of steps and one of
//! bytes, and whatever loops or grows a value pays into them first.

use std::cell::Cell;

/// The longest source of one expression, in bytes.
pub const MAX_SOURCE: usize = 64 * 1024;
/// The deepest that an expression may nest: brackets, operators in a row, and selections in a row all count.
pub const MAX_DEPTH: usize = 160;
/// The most tokens of one expression.
pub const MAX_TOKENS: usize = 8 * 1024;
/// The most steps of one evaluation. A step is one node of the expression, one turn of a loop, or one element visited by a
/// comparison or a function: on the order of 50 ns.
pub const MAX_STEPS: u64 = 1_000_000;
/// The most bytes of new values that one evaluation may make, garbage included.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// How deep lists and maps may nest in an expression's value. Variables can build on one another; nothing that walks a value
/// runs out of stack.
pub const MAX_NESTING: usize = 100;

/// Why a function did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It exists, but not for arguments of these types.
    NoOverload,
    /// It refused; one line, no full stop.
    Message(String),
    /// The evaluation's budget is used up. Nothing absorbs this one: `false && huge` is still bounded.
    Limit(String),
}

impl Failure {
    /// A refusal with that message.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

/// What one evaluation may still spend.
#[derive(Debug)]
pub struct Budget {
    steps: Cell<u64>,
    bytes: Cell<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(MAX_STEPS, MAX_BYTES)
    }
}

impl Budget {
    /// A budget of that many steps and bytes.
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self { steps: Cell::new(steps), bytes: Cell::new(bytes) }
    }

    /// Pays for one step.
    pub fn step(&self) -> Result<(), Failure> {
        self.steps(1)
    }

    /// Pays for that many steps.
    pub fn steps(&self, count: usize) -> Result<(), Failure> {
        match self.steps.get().checked_sub(count as u64) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(Failure::Limit(format!("the expression needs more than {MAX_STEPS} evaluation steps"))),
        }
    }

    /// Pays for new text or data of that many bytes, before it is made.
    pub fn bytes(&self, count: usize) -> Result<(), Failure> {
        match self.bytes.get().checked_sub(count as u64) {
            Some(left) => {
                self.bytes.set(left);
                Ok(())
            }
            None => Err(Failure::Limit(format!(
                "the expression makes more than {} MiB of values",
                MAX_BYTES / (1024 * 1024)
            ))),
        }
    }

    /// Pays for a new list or map of that many elements.
    pub fn elements(&self, count: usize) -> Result<(), Failure> {
        self.steps(count)?;
        self.bytes(count.saturating_mul(size_of::<cel::Value>()))
    }
}
