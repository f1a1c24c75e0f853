//! network-operator: Kubernetes objects for your own custom resource, by editing YAML rules.
//!
//! You write, in YAML, which objects a `Network` should have; the operator makes the cluster look like that and keeps it so.
//! Nothing in this crate knows what a `Network` is: the parent's kind is read from the rule file (`for:`), its schema from the
//! CRD, and every object is a tree of JSON values.
//!
//! # The journey of one Network
//!
//! ```text
//!  rules/*.yaml ──load──▶ RuleSet ──compile + check──▶ Program ─┐              rules/: pure, no cluster
//!                                                               │
//!  API server ──watch──▶ Informer ──▶ Store ──▶ WorkQueue ──▶ Reconciler       the control loop
//!                                                               ├─ render   Program + Network → desired children
//!                                                               ├─ plan     desired vs. observed → one step a child
//!                                                               ├─ execute  server-side apply, delete
//!                                                               └─ report   log line, status
//! ```
//!
//! Operators are usually explained with the parts of client-go. Here is where each of them lives, in the order in which a
//! change of a Network meets them:
//!
//! 1. **Informer** ([`informer`]). One for each kind, parents and children alike. It lists the objects once and then watches.
//! 2. **Reflector and Delta FIFO**. The part of an informer that turns «list, then watch, and list again when the server has
//!    forgotten where we were» into one orderly stream of changes is `kube::runtime::watcher`; its `Init…InitDone` events are a
//!    list, `Apply` and `Delete` are the deltas. [`observe`] trims each object on arrival.
//! 3. **Local Store** ([`store`]). What is known of the cluster: Networks as compact JSON text, children as *fingerprints*
//!    ([`fingerprint`]), a few hundred bytes each whatever their size. The store also decides whether a change matters; if it
//!    does, the Network concerned (for a child: the one its label names) goes into the queue.
//! 4. **Work Queue** ([`queue`]). Holds keys, not changes: ten edits of one Network are one piece of work. It never gives
//!    the same key to two workers, lets what people do overtake what timers ask for, and makes failed keys wait longer
//!    each time.
//! 5. **Control Loop** ([`controller`], [`reconcile`]). Workers take keys and call `reconcile`, which does not care what
//!    changed: it *renders* what the rules want ([`rules`]), *plans* by comparing with the store ([`plan`]), *executes* the
//!    plan ([`execute`], through [`cluster`], the one module that writes) and *reports* ([`status`]). If it is called when there
//!    is nothing to do, it does nothing; so it may be called at any time, and a crash at any point is mended by the next call.
//!
//! So when somebody creates `example-network`: the watch delivers it, the store has never seen it and queues its key, a worker
//! takes the key, the rules render a `ConfigMap`, a `Service` and an `EndpointSlice`, the plan says *create* three times, three
//! applies go out side by side, their answers become fingerprints, and one apply of the status says `Ready=True`. The watch then
//! echoes all four writes; the store knows them already and nothing is queued. When somebody edits the `ConfigMap`, its
//! fingerprint changes, its Network is queued, and the plan says *repair*. When the Network is deleted there is nothing to do:
//! the owner references let the garbage collector take the children.
//!
//! # Layers
//!
//! | layer | modules | may use |
//! |---|---|---|
//! | texts and places | [`diagnostic`], [`yaml_text`] | – |
//! | rules (pure, no cluster, no async) | [`rules`] | texts |
//! | pure engine | [`fingerprint`], [`identity`], [`plan`], [`observe`], [`kinds`], [`store`], [`api_error`], [`field_path`] | rules |
//! | control loop | [`queue`], [`informer`], [`cluster`], [`execute`], [`reconcile`], [`status`], [`reload`], [`lease`], [`health`], [`controller`] | all above |
//! | commands | [`cli`], [`serve`], [`telemetry`] | all above |
//!
//! # Where this departs from the first design, and why
//!
//! * **Refusing what is not ours costs nothing.** The design weighed a metadata GET before each first apply against a POST. A
//!   create is instead an apply that carries a `resourceVersion` no object can have: the server creates the object or answers
//!   409, atomically, and leaves an Apply entry in `managedFields`. See [`cluster`].
//! * **Updates are aimed at a UID.** The apply body carries `metadata.uid`, so that an object which was deleted and made again
//!   by someone else between our look and our write is not overwritten.
//! * **CEL is `cel` 0.15, not `kube-cel`.** kube-cel 0.8 is bound to cel 0.13, whose parser drops source positions (no caret
//!   under a mistake) and which answers a sixth of the comparison table differently from Kubernetes. The Kubernetes libraries
//!   are overloads of ours in `rules::functions`, held against a real API server by a test.
//! * **A work queue of our own.** kube-runtime's `Controller` has neither a backoff for each object nor lanes nor bounded
//!   concurrency by default. Its watcher is used as it is.

pub mod api_error;
pub mod cli;
pub mod cluster;
pub mod controller;
pub mod diagnostic;
pub mod execute;
pub mod field_path;
pub mod fingerprint;
pub mod health;
pub mod identity;
pub mod informer;
pub mod kinds;
pub mod lease;
pub mod observe;
pub mod plan;
pub mod queue;
pub mod reconcile;
pub mod reload;
pub mod rules;
pub mod serve;
pub mod status;
pub mod store;
pub mod telemetry;
pub mod yaml_text;
