//! The controller: wires informers, queue, workers and rules together and runs the control loop until told to stop.

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tracing::{debug, error, info, warn};

use crate::cluster::Cluster;
use crate::diagnostic::SourceFile;
use crate::health::{self, Obstacles, Report};
use crate::informer::{self, Fare, Role, Shared};
use crate::kinds::{Kind, Kinds};
use crate::lease::Leadership;
use crate::observe::Interest;
use crate::queue::{Backoff, Lane, WorkQueue};
use crate::reconcile::{ActiveRules, Outcome, Reconciler, describe};
use crate::reload::{self, Loaded, RuleFiles};
use crate::rules::schema::Schema;
use crate::rules::schema::crd::CrdSchema;
use crate::rules::source::{self, ReadError};
use crate::rules::{Gvk, Program};
use crate::status;
use crate::store::Store;

/// How the controller runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Namespaces to work in; empty for all.
    pub namespaces: Vec<String>,
    /// How many reconciles run at once.
    pub concurrency: usize,
    /// An edit of the rules that would delete more than this many percent of all children, and more than ten, is held.
    pub max_prune: u8,
    /// How long work in progress may take to finish after the stop signal.
    pub grace: Duration,
}

/// See the module.
pub struct Controller {
    options: Options,
    reconciler: Arc<Reconciler>,
    informers: Mutex<HashMap<(Gvk, Role), Vec<Informer>>>,
    tasks: Mutex<JoinSet<()>>,
    /// The CRDs of the parents, as far as they could be read.
    crds: Mutex<Vec<CrdSchema>>,
    /// What stands in the way of being ready, apart from watches. `caches` is set until the first rules are in force.
    obstacles: Mutex<Obstacles>,
}

struct Informer {
    /// The plural of its kind, and the namespace if it is only one.
    what: String,
    fare: Arc<Fare>,
    task: AbortHandle,
}

impl Controller {
    /// A controller that does nothing yet.
    pub fn new(cluster: Cluster, options: Options) -> Self {
        let shared = Arc::new(Shared {
            cluster,
            store: Arc::new(Store::default()),
            queue: Arc::new(WorkQueue::new(Backoff::default())),
            interest: RwLock::default(),
            names: crate::store::Interner::default(),
        });
        let reconciler = Arc::new(Reconciler { shared, kinds: Arc::new(Kinds::default()), rules: RwLock::default() });
        let starting = Obstacles { caches: Some("the rules are being loaded".to_owned()), ..Obstacles::default() };
        Self {
            options,
            reconciler,
            informers: Mutex::default(),
            tasks: Mutex::default(),
            crds: Mutex::default(),
            obstacles: Mutex::new(starting),
        }
    }

    /// Runs until `stop` turns true, then finishes what is in flight.
    pub async fn run(&self, mut files: RuleFiles, leadership: &Leadership, mut stop: watch::Receiver<bool>) {
        let mut workers = JoinSet::new();
        let follow = async {
            let read = files.read();
            let mut loaded = self.load(&[], read, files.confirmations()).await;
            self.install(&loaded).await;
            let (parents, children) = self.reconciler.shared.store.len();
            info!("caches are in sync: {parents} parents, {children} children");
            self.obstacle(|obstacles| obstacles.caches = None);
            for _ in 0..self.options.concurrency {
                workers.spawn(work(self.reconciler.clone(), leadership.subscribe()));
            }
            loop {
                let read = files.changed().await;
                loaded = self.load(&loaded.programs, read, files.confirmations()).await;
                self.install(&loaded).await;
            }
        };
        tokio::select! {
            () = follow => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        info!("stopping; {} reconciles in flight", self.reconciler.shared.queue.working());
        self.reconciler.shared.queue.close();
        let finished = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.grace, finished).await.is_err() {
            warn!("gave up on {} reconciles that did not end within {:?}", workers.len(), self.options.grace);
        }
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Loads the rules, checked against the parents' CRDs as the cluster has them, and says what it found.
    async fn load(
        &self,
        before: &[Arc<Program>],
        files: Result<Vec<Arc<SourceFile>>, ReadError>,
        confirmed: BTreeSet<String>,
    ) -> Loaded {
        if let Ok(files) = &files {
            let (sets, _) = crate::rules::compile::read(files);
            for set in &sets {
                self.schema(&set.parent).await;
            }
        }
        let crds = self.crds.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let loaded = Loaded { confirmed, ..reload::merge(before, files, &crds) };
        reload::announce(&loaded);
        self.obstacle(|obstacles| obstacles.rules = loaded.fault());
        loaded
    }

    /// The schema of a parent kind from its CRD, if the cluster has it and lets us read it.
    async fn schema(&self, gvk: &Gvk) -> Option<Arc<Schema>> {
        let known = |crds: &[CrdSchema]| crds.iter().find(|crd| crd.gvk == *gvk).map(|crd| crd.schema.clone());
        if let Some(schema) = known(&self.crds.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Some(schema);
        }
        let cluster = &self.reconciler.shared.cluster;
        let served = cluster.discover(gvk).await.ok()??;
        let versions = match cluster.crd(gvk, &served.resource).await {
            Ok(crd) => CrdSchema::read(&crd?).ok()?,
            Err(error) => {
                warn!("rules for {} are not checked against its schema: {error}", gvk.kind);
                return None;
            }
        };
        let mut crds = self.crds.lock().unwrap_or_else(PoisonError::into_inner);
        crds.extend(versions);
        known(&crds)
    }

    /// Puts rules in force: watches what they need, waits until those caches are complete, swaps, and has every parent
    /// reconciled.
    async fn install(&self, loaded: &Loaded) {
        let mut rules = ActiveRules { frozen: loaded.frozen, ..ActiveRules::default() };
        let mut interest = Interest::default();
        let mut parents = Vec::new();
        let mut children = Vec::new();
        for program in &loaded.programs {
            let parent = self.discover(program.parent(), true).await;
            if let Some(schema) = self.schema(&parent.gvk).await {
                parent.learn_status(&schema, &status::FIELDS);
            }
            interest.add(program, parent.id);
            rules.by_parent.entry(parent.id).or_default().push(program.clone());
            parents.push(parent);
            for gvk in program.child_kinds() {
                children.push(self.discover(&gvk, false).await);
            }
        }
        // The rules in force go on until the swap, and after it if the new ones are held.
        let current = self.reconciler.rules.read().unwrap_or_else(PoisonError::into_inner).clone();
        for (parent, programs) in &current.by_parent {
            for program in programs {
                interest.add(program, *parent);
            }
        }
        if self.reconciler.shared.take_interest(interest) {
            // What was kept of the children so far is not what is wanted now: list them again.
            self.forget(Role::Child);
        }
        let mut syncing = Vec::new();
        for kind in &children {
            syncing.extend(self.watch(kind, Role::Child));
        }
        for kind in &parents {
            syncing.extend(self.watch(kind, Role::Parent));
        }
        for fare in syncing {
            fare.synced().await;
        }
        if !self.may_prune(&mut rules, loaded).await {
            return;
        }
        *self.reconciler.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
        info!("rules in force: {}", loaded.revision());
        for key in self.reconciler.shared.store.all_parents() {
            self.reconciler.shared.queue.add(key, Lane::Slow);
        }
    }

    /// Whether these rules may come into force, given what they would delete. Where there are no rules yet (a restart), they do,
    /// and only the deletions wait.
    async fn may_prune(&self, rules: &mut ActiveRules, loaded: &Loaded) -> bool {
        let doomed = self.reconciler.doomed(rules).await;
        let (_, children) = self.reconciler.shared.store.len();
        let limit = (children * usize::from(self.options.max_prune) / 100).max(10);
        let revision = loaded.revision();
        if doomed.len() <= limit || loaded.confirmed.contains(&revision) {
            self.obstacle(|obstacles| obstacles.rules = loaded.fault());
            return true;
        }
        let first: Vec<_> = doomed.iter().take(20).map(String::as_str).collect();
        self.obstacle(|obstacles| {
            let held = format!("rules {revision} are held: they would delete {} of {children} children", doomed.len());
            obstacles.rules = Some(held);
        });
        let more = if doomed.len() > first.len() {
            format!(" and {} more", doomed.len() - first.len())
        } else {
            String::new()
        };
        error!(
            "rules {revision} are held: they would delete {} of {children} children ({}{more}); if that is meant, write the line `{revision}` into a file `{}` beside the rules",
            doomed.len(),
            first.join(", "),
            source::ALLOW_PRUNE
        );
        let running = !self.reconciler.rules.read().unwrap_or_else(PoisonError::into_inner).by_parent.is_empty();
        rules.prunes_held = true;
        !running
    }

    fn obstacle(&self, change: impl FnOnce(&mut Obstacles)) {
        change(&mut self.obstacles.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether it can work at all; see [`health`].
    pub fn live(&self, leadership: &Leadership) -> Report {
        let informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = informers.values().flatten().filter(|informer| informer.task.is_finished());
        let dead: Vec<_> = ended.map(|informer| informer.what.clone()).collect();
        health::live(self.reconciler.shared.queue.stuck(leadership.leading_for()), &dead)
    }

    /// Whether its caches are complete, its watches run, and the rules of the files are in force; see [`health`].
    pub fn ready(&self) -> Report {
        let mut obstacles = self.obstacles.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing: Vec<_> = informers.values().flatten().filter(|informer| !informer.fare.is_synced()).collect();
        missing.sort_by(|one, other| one.what.cmp(&other.what));
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|informer| informer.what.as_str()).collect();
            obstacles.caches = Some(format!("not listed yet: {}", names.join(", ")));
        }
        obstacles.watches = informers.values().flatten().filter_map(|informer| informer.fare.trouble()).collect();
        obstacles.watches.sort();
        obstacles.watches.dedup();
        health::ready(obstacles)
    }

    /// Stops the informers of a role; the store keeps what they saw.
    fn forget(&self, role: Role) {
        let mut informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, running) in informers.extract_if(|(_, running_role), _| *running_role == role) {
            for informer in running {
                informer.task.abort();
            }
        }
    }

    /// Asks the API server for a kind until it knows it.
    async fn discover(&self, gvk: &Gvk, parent: bool) -> Arc<Kind> {
        if let Some(kind) = self.reconciler.kinds.find(gvk) {
            return kind;
        }
        let mut delay = Duration::from_millis(500);
        let mut said = String::new();
        loop {
            let trouble = match self.reconciler.shared.cluster.discover(gvk).await {
                Ok(Some(served)) if !served.namespaced => {
                    format!("{} is cluster-scoped; only namespaced kinds can be used", gvk.kind)
                }
                Ok(Some(served)) if parent && !served.has_status => format!(
                    "the CRD of {} has no status subresource; add `subresources: {{status: {{}}}}` to its version {}, else every status write would look like a change of the spec",
                    gvk.kind, gvk.version
                ),
                Ok(Some(served)) => return self.reconciler.kinds.add(gvk.clone(), served.resource),
                Ok(None) => format!(
                    "the API server does not know {} ({}/{}); is its CRD installed?",
                    gvk.kind, gvk.group, gvk.version
                ),
                Err(error) => error.to_string(),
            };
            if trouble != said {
                warn!("not ready: {trouble}");
                self.obstacle(|obstacles| obstacles.rules = Some(trouble.clone()));
                said = trouble;
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(Duration::from_secs(15));
        }
    }

    /// Starts the informers of a kind, unless they run already.
    fn watch(&self, kind: &Arc<Kind>, role: Role) -> Vec<Arc<Fare>> {
        let mut informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let running = informers.entry((kind.gvk.clone(), role)).or_default();
        if running.is_empty() {
            let everywhere = self.options.namespaces.is_empty().then_some(None).into_iter();
            let named = self.options.namespaces.iter().cloned().map(Some);
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            for namespace in everywhere.chain(named) {
                let fare = Arc::new(Fare::default());
                let what = match &namespace {
                    Some(namespace) => format!("{} in {namespace}", kind.resource.plural),
                    None => kind.resource.plural.clone(),
                };
                debug!("watching {} in {}", kind.resource.plural, namespace.as_deref().unwrap_or("all namespaces"));
                let run = informer::run(self.reconciler.shared.clone(), kind.clone(), namespace, role, fare.clone());
                running.push(Informer { what, fare, task: tasks.spawn(run) });
            }
        }
        running.iter().map(|informer| informer.fare.clone()).collect()
    }
}

/// A worker: takes keys from the queue until it is closed. A follower's workers wait; its caches are kept warm, and the queue
/// holds every key that it would have to look at.
async fn work(reconciler: Arc<Reconciler>, mut leading: watch::Receiver<bool>) {
    let queue = reconciler.shared.queue.clone();
    loop {
        tokio::select! {
            _ = leading.wait_for(|leading| *leading) => {}
            () = queue.closed() => return,
        }
        let Some(taken) = queue.next().await else { return };
        // A panic is a bug of ours; it must not take the other parents down with it.
        let outcome = AssertUnwindSafe(reconciler.reconcile(&taken.key)).catch_unwind().await;
        match outcome {
            Ok(Outcome::Settled) => queue.done(&taken.key),
            Ok(Outcome::Retry(at_least)) => {
                let delay = queue.retry(&taken.key, at_least);
                debug!(failures = taken.failures + 1, "{}/{} again in {delay:?}", taken.key.namespace, taken.key.name);
            }
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .copied()
                    .map(str::to_owned)
                    .or_else(|| panic.downcast_ref::<String>().cloned());
                let who =
                    reconciler.kinds.get(taken.key.kind).map(|kind| describe(&kind, &taken.key)).unwrap_or_default();
                error!("{who}: the reconcile panicked, please report this: {}", text.unwrap_or_default());
                queue.retry(&taken.key, None);
            }
        }
    }
}
