//! Leader election by a Lease: of several operators, one writes.
//!
//! The protocol is client-go's: whoever sees that the Lease has no holder, or that its holder has not renewed it for its
//! duration, writes itself into it; the API server's check of `resourceVersion` decides between two who try at once. Times
//! written by others are never compared with our clock: a holder counts as dead when *we* have not seen the Lease change for
//! its duration, by the monotonic clock.
//!
//! Leader election does not fence by itself, so [`Leadership`] does: it says «may write» only until the renew deadline after
//! the last renewal that was *sent*. A call to the API server that begins then is bounded by the call deadline, and
//! renew deadline + call deadline < lease duration, so that the last write of one leader ends before the next can begin. A
//! process that was paused and wakes up finds that its time has passed. What slips through even so (a request already on its
//! way) is harmless by the preconditions that every write carries.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::api_error::{ApiError, Problem};
use crate::cluster::Cluster;

/// How leaders are elected. The defaults are the field's: 15 s, 10 s, 2 s.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are; must differ between any two processes.
    pub identity: String,
    /// A holder that has not renewed for this long may be replaced.
    pub duration: Duration,
    /// A leader that has not managed to renew for this long stops writing.
    pub renew_deadline: Duration,
    /// Time between two tries.
    pub retry: Duration,
}

impl Settings {
    /// Refuses timings with which two leaders could write at once.
    pub fn check(&self, call_deadline: Duration) -> Result<(), String> {
        if self.renew_deadline + call_deadline >= self.duration {
            return Err(format!(
                "the lease duration ({:?}) must be longer than renew deadline and call timeout together ({:?} + {call_deadline:?}), else two leaders could write at once",
                self.duration, self.renew_deadline
            ));
        }
        if self.retry * 2 > self.renew_deadline {
            return Err(format!(
                "the renew deadline ({:?}) must leave time for two tries ({:?} each)",
                self.renew_deadline, self.retry
            ));
        }
        Ok(())
    }
}

/// Whether this process may write now.
#[derive(Debug)]
pub struct Leadership {
    /// Writes may begin until then; `None`: no limit (election is off) or not leading.
    until: Mutex<Term>,
    since: Mutex<Option<Instant>>,
    leading: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy)]
enum Term {
    Unlimited,
    None,
    Until(Instant),
}

impl Leadership {
    /// Without election: always leading.
    pub fn unlimited() -> Self {
        Self {
            until: Mutex::new(Term::Unlimited),
            since: Mutex::new(Some(Instant::now())),
            leading: watch::channel(true).0,
        }
    }

    /// With election: not leading yet.
    pub fn awaited() -> Self {
        Self { until: Mutex::new(Term::None), since: Mutex::default(), leading: watch::channel(false).0 }
    }

    /// Whether a write may begin at this moment.
    pub fn may_write(&self) -> bool {
        match *self.until.lock().unwrap_or_else(PoisonError::into_inner) {
            Term::Unlimited => true,
            Term::None => false,
            Term::Until(end) => Instant::now() < end,
        }
    }

    /// For how long this process has been leading; zero for a follower.
    pub fn leading_for(&self) -> Duration {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Follows the changes.
    pub fn subscribe(&self) -> watch::Receiver<bool> {
        self.leading.subscribe()
    }

    fn extend(&self, end: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Term::Until(end);
        self.since.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        self.leading.send_if_modified(|leading| !std::mem::replace(leading, true));
    }

    fn end(&self) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Term::None;
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.leading.send_if_modified(|leading| std::mem::replace(leading, false));
    }
}

/// Takes part in the election until `stop` turns true, then gives the Lease back once `idle` says that nothing is being
/// written any more.
pub async fn elect(
    cluster: Cluster,
    settings: Settings,
    leadership: &Leadership,
    mut stop: watch::Receiver<bool>,
    idle: impl Future<Output = ()>,
) {
    let mut candidate = Candidate { cluster, settings, seen: None, renewed: None, said: String::new() };
    loop {
        candidate.round(leadership).await;
        tokio::select! {
            () = tokio::time::sleep(candidate.settings.retry) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    idle.await;
    if candidate.renewed.is_some() {
        leadership.end();
        candidate.release().await;
    }
}

struct Candidate {
    cluster: Cluster,
    settings: Settings,
    /// The Lease as last seen changed, and when that was.
    seen: Option<(Lease, Instant)>,
    /// When our last successful renewal was sent; `None`: we do not hold the Lease.
    renewed: Option<Instant>,
    said: String,
}

impl Candidate {
    /// One try: take, renew, or wait.
    async fn round(&mut self, leadership: &Leadership) {
        let sent = Instant::now();
        match self.acquire_or_renew().await {
            Ok(true) => {
                if self.renewed.is_none() {
                    info!(
                        "leading: {} holds lease {}/{}",
                        self.settings.identity, self.settings.namespace, self.settings.name
                    );
                }
                self.renewed = Some(sent);
                leadership.extend(sent + self.settings.renew_deadline);
                self.said.clear();
            }
            Ok(false) => {
                if self.renewed.take().is_some() {
                    leadership.end();
                    warn!("not leading any more: another holds the lease");
                }
            }
            Err(error) => {
                let text = error.to_string();
                if text != self.said {
                    warn!("leader election: {text}");
                    self.said = text;
                }
            }
        }
        if self.renewed.is_some() && !leadership.may_write() {
            self.renewed = None;
            leadership.end();
            warn!("not leading any more: could not renew the lease within {:?}", self.settings.renew_deadline);
        }
    }

    /// True if we hold the Lease now.
    async fn acquire_or_renew(&mut self) -> Result<bool, ApiError> {
        let Settings { namespace, name, .. } = &self.settings;
        let Some(found) = self.cluster.lease(namespace, name).await? else {
            return match self.cluster.create_lease(&self.lease(None)).await {
                Ok(created) => Ok(self.saw(created)),
                Err(error) if error.problem == Problem::Exists => Ok(false),
                Err(error) => Err(error),
            };
        };
        let changed = self.seen.as_ref().is_none_or(|(seen, _)| seen.spec != found.spec);
        if changed {
            self.seen = Some((found.clone(), Instant::now()));
        }
        let spec = found.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let ours = holder == self.settings.identity;
        if !ours && !holder.is_empty() && !self.expired() {
            debug!("following: {holder} holds the lease");
            return Ok(false);
        }
        match self.cluster.replace_lease(&self.lease(Some(&found))).await {
            Ok(replaced) => Ok(self.saw(replaced)),
            Err(error) if error.problem == Problem::Changed => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn saw(&mut self, lease: Lease) -> bool {
        self.seen = Some((lease, Instant::now()));
        true
    }

    fn expired(&self) -> bool {
        self.seen.as_ref().is_some_and(|(lease, since)| {
            let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
            since.elapsed() > Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
        })
    }

    /// The Lease as we want it, replacing `found`.
    fn lease(&self, found: Option<&Lease>) -> Lease {
        let before = found.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let now = MicroTime(Timestamp::now());
        let ours = before.holder_identity.as_deref() == Some(&self.settings.identity);
        let transitions = before.lease_transitions.unwrap_or_default();
        Lease {
            metadata: ObjectMeta {
                name: Some(self.settings.name.clone()),
                namespace: Some(self.settings.namespace.clone()),
                resource_version: found.and_then(|lease| lease.metadata.resource_version.clone()),
                ..found.map(|lease| lease.metadata.clone()).unwrap_or_default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.settings.identity.clone()),
                lease_duration_seconds: Some(i32::try_from(self.settings.duration.as_secs()).unwrap_or(i32::MAX)),
                acquire_time: if ours { before.acquire_time } else { Some(now.clone()) },
                renew_time: Some(now),
                lease_transitions: Some(if ours || found.is_none() { transitions } else { transitions + 1 }),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Gives the Lease back, so that another need not wait for it to run out.
    async fn release(&mut self) {
        let Some((last, _)) = self.seen.take() else { return };
        let mut lease = self.lease(Some(&last));
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
        }
        match self.cluster.replace_lease(&lease).await {
            Ok(_) => info!("gave the lease back"),
            Err(error) => warn!("could not give the lease back: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_with_which_two_could_write_at_once_are_refused() {
        let seconds = Duration::from_secs;
        let settings = Settings {
            namespace: "n".to_owned(),
            name: "l".to_owned(),
            identity: "i".to_owned(),
            duration: seconds(15),
            renew_deadline: seconds(10),
            retry: seconds(2),
        };
        assert_eq!(settings.check(seconds(4)), Ok(()));
        assert!(settings.check(seconds(5)).is_err_and(|text| text.contains("two leaders")));
        assert!(Settings { retry: seconds(6), ..settings }.check(seconds(4)).is_err());
    }

    #[test]
    fn leadership_ends_by_itself_when_it_is_not_extended() {
        let leadership = Leadership::awaited();
        assert!(!leadership.may_write());
        leadership.extend(Instant::now() + Duration::from_mins(1));
        assert!(leadership.may_write());
        leadership.extend(Instant::now());
        assert!(!leadership.may_write());
        assert!(Leadership::unlimited().may_write());
    }
}
