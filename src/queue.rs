//! The work queue: which parents are to be reconciled next.
//!
//! The informers put keys in, the workers take them out. A key that is waiting is not added twice; a key that is being
//! worked on is set aside and comes back when the work is done, so that no parent is ever reconciled by two workers at once.
//! What a person did goes before what a timer or a rule edit asks for, but one in `FAIRNESS` takes is from the slow lane, so
//! that it never starves. A failed key comes back after a delay of its own that doubles up to a bound and is spread by jitter.
//!
//! `Controller` of kube-runtime has a scheduler as well; it gives neither a backoff for each object nor lanes, and its
//! concurrency is unbounded by default, which is why this one exists.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Of this many keys taken while both lanes have some, one is from the slow lane.
const FAIRNESS: u32 = 8;

/// Which lane a key goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Something happened: an edit, a deletion, drift.
    Fast,
    /// Nothing happened: start-up, a rule edit, a timer.
    Slow,
}

/// How long failed keys wait.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// Delay after the first failure.
    pub first: Duration,
    /// Longest delay.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(200), most: Duration::from_mins(1) }
    }
}

/// A key handed to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken<K> {
    /// The key.
    pub key: K,
    /// How long it has waited since it was due.
    pub waited: Duration,
    /// How often it has failed in a row.
    pub failures: u32,
}

struct State<K> {
    fast: VecDeque<K>,
    slow: VecDeque<K>,
    /// Keys in a lane, with the time since when; a key that moved to the fast lane leaves a husk in the slow one.
    waiting: HashMap<K, (Lane, Instant)>,
    /// Keys that are being worked on, since when.
    working: HashMap<K, Instant>,
    /// Keys that were added while being worked on.
    again: HashMap<K, Lane>,
    later: BinaryHeap<Reverse<(Instant, u64, K)>>,
    failures: HashMap<K, u32>,
    sequence: u64,
    /// When a key was last handed out or came back.
    moved: Instant,
    taken: u32,
    closed: bool,
}

/// See the module.
pub struct WorkQueue<K> {
    state: Mutex<State<K>>,
    wake: Notify,
    closed: watch::Sender<bool>,
    backoff: Backoff,
    jitter: RandomState,
}

impl<K: Hash + Eq + Ord + Clone> WorkQueue<K> {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            state: Mutex::new(State {
                fast: VecDeque::new(),
                slow: VecDeque::new(),
                waiting: HashMap::new(),
                working: HashMap::new(),
                moved: Instant::now(),
                again: HashMap::new(),
                later: BinaryHeap::new(),
                failures: HashMap::new(),
                sequence: 0,
                taken: 0,
                closed: false,
            }),
            wake: Notify::new(),
            closed: watch::channel(false).0,
            backoff,
            jitter: RandomState::new(),
        }
    }

    /// Adds a key now.
    pub fn add(&self, key: K, lane: Lane) {
        let mut state = self.lock();
        state.add(key, lane, Instant::now());
        drop(state);
        self.wake.notify_one();
    }

    /// Adds a key after a delay, in the slow lane. Keys added meanwhile are not held back by it.
    pub fn add_after(&self, key: K, delay: Duration) {
        let mut state = self.lock();
        state.sequence += 1;
        let sequence = state.sequence;
        state.later.push(Reverse((Instant::now() + delay, sequence, key)));
        drop(state);
        self.wake.notify_one();
    }

    /// The next key, once there is one; `None` when the queue is closed.
    pub async fn next(&self) -> Option<Taken<K>> {
        loop {
            let notified = self.wake.notified();
            let due = {
                let mut state = self.lock();
                if state.closed {
                    drop(state);
                    self.wake.notify_one();
                    return None;
                }
                let now = Instant::now();
                let due = state.promote(now);
                if let Some(taken) = state.take(now) {
                    let more = !state.waiting.is_empty();
                    drop(state);
                    if more {
                        self.wake.notify_one();
                    }
                    return Some(taken);
                }
                due
            };
            match due {
                Some(due) => {
                    tokio::select! {
                        () = notified => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => notified.await,
            }
        }
    }

    /// The work on a key is done and it needs nothing more for now.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        state.failures.remove(key);
        state.finish(key);
        drop(state);
        self.wake.notify_one();
    }

    /// The work on a key failed: it comes back after its backoff, or after `at_least` if that is longer (a server's
    /// `Retry-After`). Returns the delay.
    pub fn retry(&self, key: &K, at_least: Option<Duration>) -> Duration {
        let mut state = self.lock();
        let failures = state.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        let delay = self.delay(key, *failures).max(at_least.unwrap_or_default());
        state.finish(key);
        state.sequence += 1;
        let sequence = state.sequence;
        state.later.push(Reverse((Instant::now() + delay, sequence, key.clone())));
        drop(state);
        self.wake.notify_one();
        delay
    }

    /// No key is handed out any more; waiting workers get `None`.
    pub fn close(&self) {
        self.lock().closed = true;
        self.closed.send_replace(true);
        self.wake.notify_one();
    }

    /// Returns once the queue is closed.
    pub async fn closed(&self) {
        let mut closed = self.closed.subscribe();
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// How many keys wait in the lanes.
    pub fn depth(&self) -> usize {
        self.lock().waiting.len()
    }

    /// How many keys are being worked on.
    pub fn working(&self) -> usize {
        self.lock().working.len()
    }

    /// For how long work has not moved although it should have: the age of the oldest key that is being worked on, or of the
    /// oldest one that waits while nothing is handed out. `able`: how long there have been workers to take one.
    pub fn stuck(&self, able: Duration) -> Duration {
        self.stuck_at(Instant::now(), able)
    }

    fn stuck_at(&self, now: Instant, able: Duration) -> Duration {
        let state = self.lock();
        let working = state.working.values().min().map(|since| now.saturating_duration_since(*since));
        let waiting = state.waiting.values().map(|(_, since)| *since).min();
        let waiting = waiting.map(|since| now.saturating_duration_since(since.max(state.moved)).min(able));
        working.max(waiting).unwrap_or_default()
    }

    fn delay(&self, key: &K, failures: u32) -> Duration {
        let doubled = self.backoff.first.saturating_mul(1u32 << failures.saturating_sub(1).min(20));
        let full = doubled.min(self.backoff.most);
        // Between three quarters and all of it, by a hash that differs from process to process.
        let spread = self.jitter.hash_one((key, failures)) % 256;
        full.saturating_sub(full / 4 * u32::try_from(spread).unwrap_or_default() / 256)
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq + Ord + Clone> State<K> {
    fn add(&mut self, key: K, lane: Lane, now: Instant) {
        if self.working.contains_key(&key) {
            let again = self.again.entry(key).or_insert(lane);
            if lane == Lane::Fast {
                *again = Lane::Fast;
            }
            return;
        }
        match self.waiting.get_mut(&key) {
            Some((current, _)) if *current == Lane::Slow && lane == Lane::Fast => *current = Lane::Fast,
            Some(_) => return,
            None => {
                self.waiting.insert(key.clone(), (lane, now));
            }
        }
        match lane {
            Lane::Fast => self.fast.push_back(key),
            Lane::Slow => self.slow.push_back(key),
        }
    }

    /// Moves what is due from the timers to the slow lane; returns when the next one is due.
    fn promote(&mut self, now: Instant) -> Option<Instant> {
        while let Some(Reverse((due, _, _))) = self.later.peek() {
            if *due > now {
                return Some(*due);
            }
            let Some(Reverse((due, _, key))) = self.later.pop() else { break };
            self.add(key, Lane::Slow, due);
        }
        None
    }

    fn take(&mut self, now: Instant) -> Option<Taken<K>> {
        loop {
            let slow_first = self.taken.is_multiple_of(FAIRNESS);
            let lane =
                if (slow_first && !self.slow.is_empty()) || self.fast.is_empty() { Lane::Slow } else { Lane::Fast };
            let key = match lane {
                Lane::Fast => self.fast.pop_front(),
                Lane::Slow => self.slow.pop_front(),
            }?;
            let Some(&(current, since)) = self.waiting.get(&key) else { continue };
            if current != lane {
                continue;
            }
            self.waiting.remove(&key);
            self.taken = self.taken.wrapping_add(1);
            self.working.insert(key.clone(), now);
            self.moved = now;
            let failures = self.failures.get(&key).copied().unwrap_or_default();
            return Some(Taken { key, waited: now.saturating_duration_since(since), failures });
        }
    }

    fn finish(&mut self, key: &K) {
        self.working.remove(key);
        self.moved = Instant::now();
        if let Some(lane) = self.again.remove(key) {
            self.add(key.clone(), lane, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> WorkQueue<u32> {
        WorkQueue::new(Backoff::default())
    }

    #[tokio::test]
    async fn a_key_is_never_with_two_workers_and_comes_back_if_it_was_added_meanwhile() {
        let queue = queue();
        queue.add(1, Lane::Fast);
        queue.add(1, Lane::Fast);
        assert_eq!(queue.next().await.unwrap().key, 1);
        queue.add(1, Lane::Slow);
        assert_eq!(queue.depth(), 0);
        queue.done(&1);
        assert_eq!(queue.next().await.unwrap().key, 1);
        queue.done(&1);
        assert_eq!((queue.depth(), queue.working()), (0, 0));
    }

    #[tokio::test]
    async fn edits_go_before_resyncs_and_resyncs_do_not_starve() {
        let queue = queue();
        for key in 0..100 {
            queue.add(key, Lane::Slow);
        }
        for key in 100..200 {
            queue.add(key, Lane::Fast);
        }
        queue.add(50, Lane::Fast);
        let mut order = Vec::new();
        while queue.depth() > 0 {
            let taken = queue.next().await.unwrap();
            queue.done(&taken.key);
            order.push(taken.key);
        }
        assert_eq!(order.len(), 200, "every key once");
        let slow_among_first = order[..64].iter().filter(|key| **key < 100).count();
        assert_eq!(slow_among_first, 8);
        assert!(order.iter().position(|key| *key == 50) < Some(130), "a slow key that is edited overtakes");
    }

    #[tokio::test]
    async fn failures_back_off_per_key_up_to_a_bound_and_success_resets() {
        let (first, most) = (Duration::from_millis(2), Duration::from_millis(16));
        let queue = WorkQueue::new(Backoff { first, most });
        queue.add(1, Lane::Fast);
        for failure in 1..=6 {
            let taken = queue.next().await.unwrap();
            assert_eq!((taken.key, taken.failures), (1, failure - 1));
            let full = (first * 2u32.pow(failure - 1)).min(most);
            let delay = queue.retry(&1, None);
            assert!(delay <= full && delay >= full * 3 / 4, "{delay:?} after failure {failure}");
            assert_eq!(queue.depth(), 0, "not before its time");
        }
        queue.next().await.unwrap();
        queue.done(&1);
        queue.add(1, Lane::Fast);
        assert_eq!(queue.next().await.unwrap().failures, 0);
        assert_eq!(
            queue.retry(&1, Some(Duration::from_mins(5))),
            Duration::from_mins(5),
            "a server's Retry-After counts"
        );
    }

    #[tokio::test]
    async fn closing_wakes_every_worker() {
        let queue = std::sync::Arc::new(queue());
        let workers: Vec<_> = (0..4)
            .map(|_| {
                tokio::spawn({
                    let queue = queue.clone();
                    async move { queue.next().await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        for worker in workers {
            assert_eq!(worker.await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn two_workers_share_what_is_added_at_once() {
        let queue = std::sync::Arc::new(queue());
        let workers: Vec<_> = (0..2)
            .map(|_| {
                tokio::spawn({
                    let queue = queue.clone();
                    async move { queue.next().await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.add(1, Lane::Fast);
        queue.add(2, Lane::Fast);
        let mut keys = Vec::new();
        for worker in workers {
            keys.push(worker.await.unwrap().unwrap().key);
        }
        keys.sort_unstable();
        assert_eq!(keys, [1, 2]);
    }

    #[tokio::test]
    async fn work_that_does_not_move_shows_and_a_follower_is_not_to_blame() {
        let queue = WorkQueue::new(Backoff::default());
        let after = |seconds, able| queue.stuck_at(Instant::now() + Duration::from_secs(seconds), able).as_secs();
        let able = Duration::from_hours(1);
        assert_eq!(after(10, able), 0, "nothing to do");
        queue.add(1, Lane::Fast);
        // Some time has passed between the key and the look.
        assert!((10..12).contains(&after(10, able)), "nobody takes it");
        assert_eq!(after(10, Duration::ZERO), 0, "a follower waits");
        assert_eq!(after(10, Duration::from_secs(3)), 3, "it leads for three seconds only");
        queue.next().await;
        queue.add(2, Lane::Fast);
        assert!((20..22).contains(&after(20, able)), "taken, and not done");
        queue.next().await;
        queue.done(&1);
        queue.done(&2);
        assert_eq!(after(20, able), 0, "all done");
    }
}
