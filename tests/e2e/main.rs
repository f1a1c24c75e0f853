//! End-to-end tests: the real operator against a real API server.
//!
//! Each test has a namespace of its own, and they run in parallel on one control plane; those that count everything that the
//! server is asked start one for themselves. `tests/support` is the ground they stand on.
//!
//! Only what nothing less can show is tested here: what the server accepts, what it stores, who may do what, and what happens
//! when processes die.

#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;

#[cfg(test)]
mod bed;
#[cfg(test)]
mod crd;
#[cfg(test)]
mod health;
#[cfg(test)]
mod leader;
#[cfg(test)]
mod life;
#[cfg(test)]
mod names;
#[cfg(test)]
mod ownership;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod rule_edits;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod trouble;
#[cfg(test)]
mod validation;
#[cfg(test)]
mod values;
