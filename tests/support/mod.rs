//! What every end-to-end test stands on: a real control plane, a namespace of its own on it, and the operator as a process.
//!
//! ```no_run
//! let space = Space::new();                       // a namespace, on the control plane that all tests share
//! let operator = space.operator().start();        // the real binary, with the shipped rules, in that namespace only
//! space.create(network("example-network", json!({"cidr": "192.168.0.0/16"})));
//! space.until_ready("example-network");
//! ```
//!
//! * [`control_plane`] starts etcd, kube-apiserver and kube-controller-manager, and talks to them.
//! * [`resource`] knows where the kinds of objects are that tests look at.
//! * [`space`] is a namespace with the operator's account in it, bound to the rights that are shipped.
//! * [`operator`] is the operator's process, its rules and its log.
//! * [`audit`] says what the operator asked of the API server.
//!
//! Nothing outlives the test process, whatever happens to it. Its children hold the other end of a pipe from it, and end when
//! that closes; the kernel closes it after a panic, Ctrl-C and `kill -9` alike.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

pub mod audit;
pub mod control_plane;
pub mod operator;
pub mod resource;
pub mod space;

use std::fmt::Display;
use std::time::{Duration, Instant};

pub use control_plane::{ControlPlane, Refused};
pub use operator::Operator;
pub use resource::{CONFIG_MAPS, ENDPOINT_SLICES, NETWORKS, Resource, SERVICES};
pub use space::{Space, condition, network};

/// How long something may take that normally takes a second at most. Generous: the machine may be compiling meanwhile.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Asks again and again until the answer is there; panics with the last refusal when that takes too long.
pub fn eventually<T, E: Display>(what: &str, ask: impl FnMut() -> Result<T, E>) -> T {
    within(PATIENCE, what, ask)
}

/// [`eventually`] with a limit of its own.
pub fn within<T, E: Display>(limit: Duration, what: &str, mut ask: impl FnMut() -> Result<T, E>) -> T {
    let began = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(refusal) if began.elapsed() > limit => panic!("{what}: not after {limit:?}: {refusal}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// `Ok` when `condition` holds, else `Err` with the text.
pub fn ensure(condition: bool, otherwise: impl Into<String>) -> Result<(), String> {
    if condition { Ok(()) } else { Err(otherwise.into()) }
}
