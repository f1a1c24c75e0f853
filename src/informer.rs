//! Informers: list and watch one kind, keep the store up to date, and put the parents concerned into the work queue.
//!
//! The listing and watching itself (paging, bookmarks, resuming after an expired resourceVersion) is kube-runtime's
//! `watcher`, the counterpart of client-go's Reflector and Delta FIFO. What it yields is trimmed on arrival to what the
//! store keeps. Events are never filtered by a predicate: a deletion that nobody sees is a child that never comes back.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::cluster::Cluster;
use crate::identity::{MANAGED_BY, MANAGER};
use crate::kinds::Kind;
use crate::observe::{self, Interest};
use crate::queue::{Lane, WorkQueue};
use crate::store::{Interner, Key, Store, Sweep};

/// A watch is renewed after this many seconds; a half-open connection is noticed five seconds later at the latest.
const WATCH_SECONDS: u32 = 200;
/// The same complaint is not repeated within this time.
const QUIET: Duration = Duration::from_secs(30);

/// What all informers share.
pub struct Shared {
    /// The connection.
    pub cluster: Cluster,
    /// Where objects go.
    pub store: Arc<Store>,
    /// Where parents go.
    pub queue: Arc<WorkQueue<Key>>,
    /// What is kept of children.
    pub interest: RwLock<Arc<Interest>>,
    /// Shares namespace names.
    pub names: Interner,
}

impl Shared {
    /// Sets what is kept of children. True if that is not what was kept before.
    pub fn take_interest(&self, interest: Interest) -> bool {
        let mut current = self.interest.write().unwrap_or_else(PoisonError::into_inner);
        let changed = **current != interest;
        *current = Arc::new(interest);
        changed
    }

    /// What is kept of children now.
    pub fn interest(&self) -> Arc<Interest> {
        self.interest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Parents or children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Every object of the kind is reconciled.
    Parent,
    /// Only objects with our managed-by label matter, and they point to their parent.
    Child,
}

/// How one informer fares, for those who ask.
#[derive(Debug, Default)]
pub struct Fare {
    synced: watch::Sender<bool>,
    /// What the API server said last, and when, if it was an error.
    complaint: Mutex<Option<(String, Instant)>>,
}

/// kube-runtime waits up to 30 s between two tries. What was said longer ago than that, with some time for the try itself, is over:
/// a watch that is taken up again tells nothing until something happens.
const RETRY: Duration = Duration::from_secs(45);

impl Fare {
    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Returns once the first list is complete.
    pub async fn synced(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// What stands in the way of watching now, with what to do about it.
    pub fn trouble(&self) -> Option<String> {
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        complaint.as_ref().filter(|(_, at)| at.elapsed() < RETRY).map(|(text, _)| text.clone())
    }
}

/// One informer: follows `kind` in `namespace` (all, if `None`) until the task is dropped, and keeps
/// `fare` up to date.
pub async fn run(shared: Arc<Shared>, kind: Arc<Kind>, namespace: Option<String>, role: Role, fare: Arc<Fare>) {
    let client = shared.cluster.client();
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind.resource),
        None => Api::all_with(client, &kind.resource),
    };
    let mut config = watcher::Config::default().timeout(WATCH_SECONDS);
    if role == Role::Child {
        config = config.labels(&format!("{MANAGED_BY}={MANAGER}"));
    }
    let mut events = watcher::watcher(api, config).default_backoff().into_stream().boxed();
    let mut informer = Informer { shared, kind, namespace, role, sweep: None, fare, said: None };
    loop {
        match events.try_next().await {
            Ok(Some(event)) => {
                // `Init` only says that a list is about to be asked for.
                if !matches!(event, Event::Init) {
                    informer.recovered();
                }
                let complete = matches!(event, Event::InitDone);
                informer.handle(event);
                if complete {
                    informer.fare.synced.send_replace(true);
                }
            }
            Ok(None) => return,
            Err(error) => informer.complain(&error),
        }
    }
}

struct Informer {
    shared: Arc<Shared>,
    kind: Arc<Kind>,
    namespace: Option<String>,
    role: Role,
    sweep: Option<Sweep>,
    fare: Arc<Fare>,
    /// The last complaint in the log.
    said: Option<(String, Instant)>,
}

impl Informer {
    fn handle(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Init => self.sweep = Some(self.shared.store.sweep(self.kind.id, self.namespace.as_deref())),
            Event::InitApply(object) => self.seen(object, true),
            Event::Apply(object) => self.seen(object, false),
            Event::Delete(object) => {
                if let Some(key) = self.key(&object) {
                    self.gone(&key, object.metadata.uid.as_deref());
                }
            }
            Event::InitDone => {
                let sweep = self.sweep.take().unwrap_or_default();
                for (key, uid) in sweep.gone() {
                    self.gone(&key, Some(&uid));
                }
            }
        }
    }

    fn seen(&mut self, object: DynamicObject, listed: bool) {
        let Some(key) = self.key(&object) else { return };
        if let Some(sweep) = &mut self.sweep {
            sweep.keep(&key);
        }
        let lane = if listed { Lane::Slow } else { Lane::Fast };
        match self.role {
            Role::Parent => match observe::parent(object, &self.kind, None) {
                Ok(record) => {
                    if self.shared.store.parent_seen(&key, record, listed) {
                        self.shared.queue.add(key, lane);
                    }
                }
                Err(error) => {
                    warn!("cannot keep {} {}/{}: {error}", self.kind.gvk.kind, key.namespace, key.name);
                }
            },
            Role::Child => {
                let parent = match observe::child(object, &self.kind, &self.shared.interest(), None) {
                    Some(record) => self.shared.store.child_seen(&key, record, listed),
                    None => self.shared.store.child_gone(&key, None),
                };
                if let Some(parent) = parent {
                    self.shared.queue.add(parent, lane);
                }
            }
        }
    }

    fn gone(&self, key: &Key, uid: Option<&str>) {
        match self.role {
            Role::Parent => {
                let known = self.shared.store.parent(key);
                if known.is_some_and(|known| uid.is_none_or(|uid| *known.uid == *uid)) {
                    self.shared.store.parent_gone(key);
                    self.shared.queue.add(key.clone(), Lane::Fast);
                }
            }
            Role::Child => {
                if let Some(parent) = self.shared.store.child_gone(key, uid) {
                    self.shared.queue.add(parent, Lane::Fast);
                }
            }
        }
    }

    fn key(&self, object: &DynamicObject) -> Option<Key> {
        let namespace = object.metadata.namespace.as_deref()?;
        let name = object.metadata.name.as_deref()?;
        Some(Key { kind: self.kind.id, namespace: self.shared.names.get(namespace), name: name.into() })
    }

    fn complain(&mut self, error: &watcher::Error) {
        let text = explain(error, &self.kind, self.namespace.as_deref());
        *self.fare.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some((text.clone(), Instant::now()));
        if self.said.as_ref().is_some_and(|(last, at)| *last == text && at.elapsed() < QUIET) {
            return;
        }
        warn!("{text}");
        self.said = Some((text, Instant::now()));
    }

    fn recovered(&mut self) {
        *self.fare.complaint.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if self.said.take().is_some() {
            info!("watching {} again", self.kind.resource.plural);
        }
    }
}

/// A watch error, with what to do about it.
fn explain(error: &watcher::Error, kind: &Kind, namespace: Option<&str>) -> String {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    };
    let what = &kind.resource.plural;
    let place = namespace.map_or_else(|| "all namespaces".to_owned(), |namespace| format!("namespace {namespace}"));
    match status {
        Some(status) if status.code == 403 => format!(
            "not allowed to list and watch {what} in {place}: {}; grant `list` and `watch` (`network-operator rbac` prints the rights that the rules need)",
            status.message
        ),
        Some(status) if status.code == 404 => {
            format!("the API server no longer serves {what} (was its CRD deleted?); children stay as they are")
        }
        _ => format!("watching {what} in {place} is interrupted, trying again: {error}"),
    }
}
