//! The parent's schema, from its `CustomResourceDefinition`.

use std::sync::Arc;

use serde_json::Value;

use super::builtin::builtin;
use super::{Fields, KindSchema, KindSchemas, Node, Schema, Scope, Shape, openapi};
use crate::rules::Gvk;

/// One version of a CRD.
#[derive(Debug, Clone)]
pub struct CrdSchema {
    /// What it defines.
    pub gvk: Gvk,
    /// The resource's name in URLs.
    pub plural: String,
    /// Where its objects live.
    pub scope: Scope,
    /// All fields, `apiVersion`, `kind` and `metadata` included.
    pub schema: Arc<Schema>,
    /// Whether status is written apart, without touching `metadata.generation`.
    pub status_subresource: bool,
}

impl CrdSchema {
    /// Every version that a CRD serves. The error says what the document lacks.
    pub fn read(crd: &Value) -> Result<Vec<Self>, String> {
        if crd["kind"] != "CustomResourceDefinition" {
            return Err("not a `CustomResourceDefinition`".to_owned());
        }
        if crd["apiVersion"] != "apiextensions.k8s.io/v1" {
            return Err(format!("`apiVersion` is {}, `apiextensions.k8s.io/v1` is understood", crd["apiVersion"]));
        }
        let spec = &crd["spec"];
        let text = |value: &Value, path: &str| {
            value.as_str().map(str::to_owned).ok_or_else(|| format!("`{path}` is missing or not text"))
        };
        let group = text(&spec["group"], "spec.group")?;
        let kind = text(&spec["names"]["kind"], "spec.names.kind")?;
        let plural = text(&spec["names"]["plural"], "spec.names.plural")?;
        let scope = if spec["scope"] == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
        let versions = spec["versions"].as_array().ok_or("`spec.versions` is missing or not a list")?;
        let served = versions.iter().filter(|version| version["served"] != false);
        served
            .map(|version| {
                Ok(Self {
                    gvk: Gvk {
                        group: group.clone(),
                        version: text(&version["name"], "spec.versions[].name")?,
                        kind: kind.clone(),
                    },
                    plural: plural.clone(),
                    scope,
                    schema: Arc::new(with_metadata(openapi::schema(&version["schema"]["openAPIV3Schema"], None))),
                    status_subresource: version["subresources"]["status"].is_object(),
                })
            })
            .collect()
    }
}

/// The fields that every object has and that a CRD's schema need not say.
fn with_metadata(schema: Schema) -> Schema {
    let mut fields = match schema.shape {
        Shape::Object(fields) => fields,
        _ => Fields { open: true, ..Fields::default() },
    };
    let text = || Node::Here(Arc::new(Schema::of(Shape::String)));
    fields.known.insert("apiVersion".to_owned(), text());
    fields.known.insert("kind".to_owned(), text());
    fields.known.insert("metadata".to_owned(), Node::Here(builtin().object_meta()));
    Schema { shape: Shape::Object(fields), ..schema }
}

/// The schema of an object as the cluster gives it: what the API server always sets is there.
pub fn as_stored(schema: &Arc<Schema>) -> Arc<Schema> {
    const ALWAYS: [&str; 3] = ["apiVersion", "kind", "metadata"];
    const ALWAYS_IN_METADATA: [&str; 6] =
        ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"];
    let Some(fields) = schema.fields() else {
        return Arc::clone(schema);
    };
    let mut fields = fields.clone();
    fields.required.extend(ALWAYS.map(str::to_owned));
    let mut metadata = (*builtin().object_meta()).clone();
    if let Shape::Object(inner) = &mut metadata.shape {
        inner.required.extend(ALWAYS_IN_METADATA.map(str::to_owned));
    }
    fields.known.insert("metadata".to_owned(), Node::Here(Arc::new(metadata)));
    Arc::new(Schema { shape: Shape::Object(fields), ..(**schema).clone() })
}

/// CRDs as a source of child kinds.
impl KindSchemas for Vec<CrdSchema> {
    fn kind(&self, gvk: &Gvk) -> Option<KindSchema> {
        let crd = self.iter().find(|crd| crd.gvk == *gvk)?;
        Some(KindSchema { scope: crd.scope, schema: Some(Arc::clone(&crd.schema)) })
    }

    fn known(&self) -> Vec<Gvk> {
        self.iter().map(|crd| crd.gvk.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_crd_gives_a_schema_for_each_served_version() {
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {
            "group": "samplecrd.k8s.io", "scope": "Namespaced", "names": {"kind": "Network", "plural": "networks"},
            "versions": [
                {"name": "v1", "served": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"], "properties": {
                        "spec": {"type": "object", "properties": {"cidr": {"type": "string"}}}}}}},
                {"name": "v0", "served": false}]}});
        let versions = CrdSchema::read(&crd).unwrap();
        assert_eq!(versions.len(), 1);
        assert!(versions[0].status_subresource);
        let stored = as_stored(&versions[0].schema);
        assert_eq!(stored.at(&["spec", "cidr"]).unwrap().describe(), "string");
        assert!(stored.at(&["metadata"]).unwrap().fields().unwrap().required.contains("uid"));
    }

    #[test]
    fn a_document_that_is_no_crd_says_what_it_lacks() {
        let read = |value: Value| CrdSchema::read(&value).unwrap_err();
        assert!(read(json!(null)).contains("CustomResourceDefinition"));
        let head = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
        assert!(read(head).contains("spec.group"));
    }
}
