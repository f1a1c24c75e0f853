//! Fingerprints: what is remembered of a child instead of the child. Pure.
//!
//! A child's *projection* is a 128-bit hash of the values of exactly those fields that our own entry in
//! `metadata.managedFields` owns. If anyone changes or takes one of these fields, the API server moves it out of our
//! entry and the projection changes; what others add to the object does not touch it. A desired child is hashed the
//! same way, so that in the normal case — the server stores what was sent — the two are equal by themselves, and a
//! restarted operator need not write to find that out.
//!
//! Lists are the subtle part. In `managedFields` an *associative* list shows as `k:{…}` or `v:…` members and has no order;
//! an *atomic* one shows as a single leaf and is compared whole, in order. A manifest alone does not say which lists are
//! which, so the paths of associative lists are learned from `managedFields` ([`ListKinds`]) and used when a desired
//! child is hashed.
//!
//! Format of `managedFields`: <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>.

use std::collections::HashSet;
use std::hash::Hasher;
use std::sync::RwLock;

use serde_json::{Map, Value};
use siphasher::sip128::{Hasher128, SipHasher13};

/// A 128-bit hash of a tree of values. Collisions among the objects of one cluster are not a practical concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fingerprint(u128);

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The paths of the associative lists of one kind, as learned from the objects seen so far.
#[derive(Debug, Default)]
pub struct ListKinds(RwLock<HashSet<u64>>);

impl ListKinds {
    fn contains(&self, path: Path) -> bool {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).contains(&path.0)
    }

    fn learn(&self, path: Path) {
        if !self.contains(path) {
            self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner).insert(path.0);
        }
    }
}

/// A field path, folded into a number: only equality matters.
#[derive(Clone, Copy)]
struct Path(u64);

impl Path {
    const ROOT: Self = Self(0xcbf2_9ce4_8422_2325);
    const ITEM: &'static str = "[]";

    fn child(self, segment: &str) -> Self {
        // FNV-1a: short keys, no adversary (a clash costs one superfluous apply).
        let mut hash = self.0;
        for byte in segment.bytes().chain([b'/']) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(hash)
    }
}

/// Fingerprint of an object that is to be applied. `apiVersion`, `kind` and the object's identity in `metadata` are left
/// out, as the API server leaves them out of `managedFields`.
pub fn of_desired(body: &Value, lists: &ListKinds) -> Fingerprint {
    let Some(body) = body.as_object() else { return Fingerprint::default() };
    let hashes =
        body.iter().filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind")).filter_map(|(key, value)| {
            let path = Path::ROOT.child(key);
            let hash =
                if key == "metadata" { hash_metadata(value, path, lists) } else { hash_value(value, path, lists) };
            hash.map(|hash| hash_entry(key, hash))
        });
    Fingerprint(combine(tag::MAP, hashes).unwrap_or_default())
}

fn hash_metadata(metadata: &Value, path: Path, lists: &ListKinds) -> Option<u128> {
    let entries = metadata.as_object()?.iter();
    let entries = entries.filter(|(key, _)| !matches!(key.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
    combine(
        tag::MAP,
        entries.filter_map(|(key, value)| hash_value(value, path.child(key), lists).map(|hash| hash_entry(key, hash))),
    )
}

/// The projection of an observed object on the fields that `owned` (the `fieldsV1` of our entry in its `managedFields`)
/// names. Learns which lists are associative on the way.
pub fn of_observed(owned: &Value, object: &Value, lists: &ListKinds) -> Fingerprint {
    Fingerprint(owned.as_object().and_then(|fields| project(fields, object, Path::ROOT, lists)).unwrap_or_default())
}

/// Hash of the parts of `value` that `fields` (a node of a `fieldsV1` tree) names.
fn project(fields: &Map<String, Value>, value: &Value, path: Path, lists: &ListKinds) -> Option<u128> {
    let mut members = fields.iter().filter(|(key, _)| key.as_str() != ".").peekable();
    let Some((first, _)) = members.peek() else {
        // A leaf: a scalar, or a map or list that is replaced as a whole.
        return hash_value(value, path, lists);
    };
    if first.starts_with("f:") {
        return combine(
            tag::MAP,
            members.filter_map(|(member, inner)| {
                let key = member.strip_prefix("f:")?;
                let found = value.get(key)?;
                let hash = project(inner.as_object()?, found, path.child(key), lists)?;
                Some(hash_entry(key, hash))
            }),
        );
    }
    if first.starts_with("i:") {
        return hash_value(value, path, lists);
    }
    lists.learn(path);
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let path = path.child(Path::ITEM);
    combine(
        tag::SET,
        members.filter_map(|(member, inner)| {
            if let Some(keys) = member.strip_prefix("k:") {
                let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
                let item = items.iter().find(|item| keys.iter().all(|(key, wanted)| item.get(key) == Some(wanted)))?;
                project(inner.as_object()?, item, path, lists)
            } else {
                let wanted: Value = serde_json::from_str(member.strip_prefix("v:")?).ok()?;
                hash_value(items.iter().find(|item| **item == wanted)?, path, lists)
            }
        }),
    )
}

/// `None` for what an API server may drop without a trace: null, empty maps, empty lists.
fn hash_value(value: &Value, path: Path, lists: &ListKinds) -> Option<u128> {
    match value {
        Value::Null => None,
        Value::Bool(flag) => Some(hash_scalar(tag::BOOL, &[u8::from(*flag)])),
        Value::Number(number) => Some(hash_number(number)),
        Value::String(text) => Some(hash_scalar(tag::STRING, text.as_bytes())),
        Value::Array(items) => {
            let item_path = path.child(Path::ITEM);
            let hashes = items.iter().map(|item| hash_value(item, item_path, lists).unwrap_or_default());
            if lists.contains(path) { combine(tag::SET, hashes) } else { combine_ordered(hashes) }
        }
        Value::Object(map) => combine(
            tag::MAP,
            map.iter()
                .filter_map(|(key, value)| hash_value(value, path.child(key), lists).map(|hash| hash_entry(key, hash))),
        ),
    }
}

/// 1 and 1.0 are the same number in JSON; a server that knows the schema may answer with either.
fn hash_number(number: &serde_json::Number) -> u128 {
    #[expect(clippy::cast_possible_truncation, reason = "only taken where the conversion is exact")]
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)).or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i128)
    });
    match whole {
        Some(whole) => hash_scalar(tag::INTEGER, &whole.to_le_bytes()),
        None => hash_scalar(tag::FLOAT, &number.as_f64().unwrap_or(f64::NAN).to_bits().to_le_bytes()),
    }
}

mod tag {
    pub const BOOL: u8 = 1;
    pub const INTEGER: u8 = 2;
    pub const FLOAT: u8 = 3;
    pub const STRING: u8 = 4;
    pub const LIST: u8 = 5;
    pub const SET: u8 = 6;
    pub const MAP: u8 = 7;
    pub const ENTRY: u8 = 8;
}

fn hash_scalar(tag: u8, bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write_u8(tag);
    hasher.write(bytes);
    hasher.finish128().as_u128()
}

fn hash_entry(key: &str, value: u128) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write_u8(tag::ENTRY);
    hasher.write_u128(value);
    hasher.write(key.as_bytes());
    hasher.finish128().as_u128()
}

/// Order does not matter: a sum. Nothing at all is `None`.
fn combine(tag: u8, hashes: impl Iterator<Item = u128>) -> Option<u128> {
    let (sum, count) = hashes.fold((0u128, 0u64), |(sum, count), hash| (sum.wrapping_add(hash), count + 1));
    (count > 0).then(|| {
        let mut sip = SipHasher13::new();
        sip.write_u8(tag);
        sip.write_u64(count);
        sip.write_u128(sum);
        sip.finish128().as_u128()
    })
}

fn combine_ordered(hashes: impl Iterator<Item = u128>) -> Option<u128> {
    let mut sip = SipHasher13::new();
    sip.write_u8(tag::LIST);
    let mut any = false;
    for hash in hashes {
        any = true;
        sip.write_u128(hash);
    }
    any.then(|| sip.finish128().as_u128())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(ports: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "labels": {"l": "1"}},
               "spec": {"clusterIP": "None", "ports": ports}})
    }

    fn service_fields() -> Value {
        json!({"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {"f:clusterIP": {}, "f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}},
            "k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}}}})
    }

    #[test]
    fn what_the_server_stored_as_sent_needs_no_write_after_a_restart() {
        let lists = ListKinds::default();
        let desired = service(&json!([{"name": "web", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]));
        let stored = json!({"metadata": {"name": "a", "uid": "u", "labels": {"l": "1", "x": "theirs"}, "annotations": {"k": "v"}},
                   "spec": {"clusterIP": "None", "type": "ClusterIP", "ports": [
                       {"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80},
                       {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53}]}});
        let projection = of_observed(&service_fields(), &stored, &lists);
        assert_eq!(of_desired(&desired, &lists), projection);
    }

    #[test]
    fn order_is_ignored_in_associative_lists_and_kept_in_atomic_ones() {
        let lists = ListKinds::default();
        let web = json!({"name": "web", "port": 80});
        let dns = json!({"name": "dns", "port": 53, "protocol": "UDP"});
        let one = service(&json!([web, dns]));
        let other = service(&json!([dns, web]));
        assert_ne!(of_desired(&one, &lists), of_desired(&other, &lists), "nothing learned yet: order counts");
        of_observed(&service_fields(), &one, &lists);
        assert_eq!(of_desired(&one, &lists), of_desired(&other, &lists));

        let slice = |a: &str, b: &str| json!({"addresses": [a, b]});
        assert_ne!(of_desired(&slice("a", "b"), &lists), of_desired(&slice("b", "a"), &lists));
        let fields = json!({"f:addresses": {}});
        assert_ne!(of_observed(&fields, &slice("a", "b"), &lists), of_observed(&fields, &slice("b", "a"), &lists));
    }

    #[test]
    fn fields_of_others_do_not_matter_and_a_lost_field_does() {
        let lists = ListKinds::default();
        let fields = json!({"f:data": {"f:cidr": {}, "f:gateway": {}}});
        let base = json!({"data": {"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"}});
        let with_theirs = json!({"data": {"cidr": "10.0.0.0/8", "gateway": "10.0.0.1", "extra": "x"}});
        let project = |body: &Value, fields: &Value| of_observed(fields, body, &lists);
        assert_eq!(project(&base, &fields), project(&with_theirs, &fields));
        assert_ne!(
            project(&base, &fields),
            project(&base, &json!({"f:data": {"f:cidr": {}}})),
            "field taken by another"
        );
        let edited = json!({"data": {"cidr": "0.0.0.0/0", "gateway": "10.0.0.1"}});
        assert_ne!(project(&base, &fields), project(&edited, &fields));
    }

    #[test]
    fn set_members_have_no_order_and_empty_values_leave_no_trace() {
        let lists = ListKinds::default();
        let fields = json!({"f:metadata": {"f:finalizers": {"v:\"a\"": {}, "v:\"b\"": {}}}});
        let projection = of_observed(&fields, &json!({"metadata": {"finalizers": ["b", "theirs", "a"]}}), &lists);
        for order in [["a", "b"], ["b", "a"]] {
            assert_eq!(of_desired(&json!({"metadata": {"finalizers": order}}), &lists), projection);
        }
        let plain = json!({"data": {"a": "1"}});
        let padded = json!({"data": {"a": "1", "n": null, "m": {}}, "spec": {}, "list": []});
        assert_eq!(of_desired(&plain, &lists), of_desired(&padded, &lists));
        assert_ne!(
            of_desired(&plain, &lists),
            of_desired(&json!({"data": {"a": "1", "e": ""}}), &lists),
            "an empty string is a value"
        );
    }

    #[test]
    fn numbers_compare_by_value_and_never_with_strings() {
        let lists = ListKinds::default();
        let hash = |value: Value| of_desired(&json!({"v": value}), &lists);
        assert_eq!(hash(json!(1)), hash(json!(1.0)));
        assert_ne!(hash(json!(1)), hash(json!("1")));
        assert_ne!(hash(json!(9_007_199_254_740_993_i64)), hash(json!(9_007_199_254_740_992_i64)));
        assert_ne!(hash(json!(true)), hash(json!(1)));
    }
}
