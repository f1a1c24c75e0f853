//! What the operator says of itself. For now: the log.

pub mod log;
