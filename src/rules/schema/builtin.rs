//! The schemas of the common Kubernetes kinds, made from a real API server by `tests/builtin-schemas` and carried in the
//! program, so that rules can be checked without a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::{KindSchema, KindSchemas, Library, Scope, Text};
use crate::rules::Gvk;

/// One definition a line; see `tests/builtin-schemas/main.go` for the form.
const DEFINITIONS: &str = include_str!("../schemas/kubernetes.txt");

static BUILTIN: LazyLock<Builtin> = LazyLock::new(Builtin::load);

/// The kinds that the program knows by itself.
#[derive(Debug)]
pub struct Builtin {
    kinds: BTreeMap<Gvk, (&'static str, Scope)>,
    library: Arc<Library>,
}

/// The built-in kinds; read when first asked for, each schema when it is first used.
pub fn builtin() -> &'static Builtin {
    &BUILTIN
}

impl Builtin {
    fn load() -> Self {
        let mut kinds = BTreeMap::new();
        let mut texts = Vec::new();
        for line in DEFINITIONS.lines() {
            if let Some(kind) = line.strip_prefix("kind ") {
                kinds.extend(read_kind(kind));
            } else if let Some((name, text)) = line.split_once(' ') {
                texts.push((Arc::from(name), Text::Static(text)));
            }
        }
        Self { kinds, library: Library::new(texts) }
    }

    /// The type of every object's `metadata`.
    pub fn object_meta(&self) -> Arc<super::Schema> {
        self.library.get("meta.v1.ObjectMeta").unwrap_or_default()
    }
}

/// `NAME GROUP/VERSION/KIND SCOPE`
fn read_kind(line: &'static str) -> Option<(Gvk, (&'static str, Scope))> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let mut gvk = words.next()?.splitn(3, '/');
    let scope = if words.next()? == "cluster" { Scope::Cluster } else { Scope::Namespaced };
    let gvk = Gvk { group: gvk.next()?.to_owned(), version: gvk.next()?.to_owned(), kind: gvk.next()?.to_owned() };
    Some((gvk, (name, scope)))
}

impl KindSchemas for Builtin {
    fn kind(&self, gvk: &Gvk) -> Option<KindSchema> {
        let (name, scope) = self.kinds.get(gvk)?;
        Some(KindSchema { scope: *scope, schema: self.library.get(name) })
    }

    fn known(&self) -> Vec<Gvk> {
        self.kinds.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::schema::ListKind;

    fn gvk(group: &str, version: &str, kind: &str) -> Gvk {
        Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    #[test]
    fn every_definition_can_be_read_and_every_name_in_it_is_there() {
        for line in DEFINITIONS.lines().filter(|line| !line.starts_with("kind ")) {
            let (name, text) = line.split_once(' ').unwrap();
            let value: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(value.is_object(), "{name}");
            for reference in text.split("\"$ref\":\"").skip(1) {
                let target = reference.split('"').next().unwrap();
                assert!(builtin().library.get(target).is_some(), "{name} refers to {target}");
            }
        }
    }

    #[test]
    fn kinds_know_their_scope_and_fields() {
        let service = builtin().kind(&gvk("", "v1", "Service")).unwrap();
        assert_eq!(service.scope, Scope::Namespaced);
        let ports = service.schema.unwrap().at(&["spec", "ports"]).unwrap();
        assert_eq!(ports.list, ListKind::Map(vec!["port".to_owned(), "protocol".to_owned()]));
        assert_eq!(builtin().kind(&gvk("", "v1", "Namespace")).unwrap().scope, Scope::Cluster);
        assert!(builtin().kind(&gvk("", "v1", "Servic")).is_none());
        for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
            assert!(builtin().kind(&gvk("apps", "v1", kind)).unwrap().schema.is_some(), "{kind}");
        }
    }

    #[test]
    fn a_quantity_takes_a_number_or_a_text() {
        let quota = builtin().kind(&gvk("", "v1", "ResourceQuota")).unwrap().schema.unwrap();
        assert_eq!(quota.at(&["spec", "hard", "cpu"]).unwrap().describe(), "quantity");
    }
}
