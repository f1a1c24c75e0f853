//! The fields of a rule file, once: reading, «did you mean», the JSON Schema and the reference all come from this table.

/// A mapping with fixed keys.
#[derive(Debug)]
pub struct Object {
    /// What it is called in messages: `a resource`.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Its keys, in the order in which one writes them.
    pub fields: &'static [Field],
}

/// One key of an [`Object`].
#[derive(Debug)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// What stands under it.
    pub shape: Shape,
    /// Whether it must be there.
    pub required: bool,
    /// What it is for, in a sentence or two.
    pub doc: &'static str,
}

/// What stands under a key.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// This text and no other.
    Constant(&'static str),
    /// Text.
    Text,
    /// One of these words; the first is the default.
    Word(&'static [&'static str]),
    /// CEL.
    Expression,
    /// CEL, or a list of it.
    Expressions,
    /// Name → CEL, in order.
    NamedExpressions,
    /// A JSON Pointer (RFC 6901).
    Pointer,
    /// An object as one would write it for `kubectl`, with `${CEL}` anywhere in its text.
    Manifest,
    /// Any YAML, with `${CEL}` anywhere in its text.
    Tree,
    /// `NAME: CEL`, or the long form.
    ForEach(&'static Object),
    /// A mapping.
    Object(&'static Object),
    /// A list of mappings.
    List(&'static Object),
}

const fn field(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, shape, required: false, doc }
}

const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, shape, required: true, doc }
}

/// `apiVersion` of a rule file.
pub const API_VERSION: &str = "rules.samplecrd.k8s.io/v1alpha1";
/// `kind` of a rule file.
pub const KIND: &str = "RuleSet";

/// A whole document.
pub static RULE_SET: Object = Object {
    name: "a rule set",
    doc: "What the objects that belong to one kind of parent should be.",
    fields: &[
        required("apiVersion", Shape::Constant(API_VERSION), "The version of the rule language."),
        required("kind", Shape::Constant(KIND), "Always `RuleSet`."),
        required("metadata", Shape::Object(&METADATA), "The rule set's name."),
        required("spec", Shape::Object(&SPEC), "The rules."),
    ],
};

static METADATA: Object = Object {
    name: "metadata",
    doc: "The rule set's name.",
    fields: &[required(
        "name",
        Shape::Text,
        "Name of the rule set, a DNS label, unique among all rule sets that are loaded. A rule set under another name is another rule set: the children change hands.",
    )],
};

static SPEC: Object = Object {
    name: "spec",
    doc: "The rules.",
    fields: &[
        required("for", Shape::Object(&FOR), "The kind of the parent."),
        field(
            "validations",
            Shape::List(&VALIDATION),
            "What must be true of the parent. Where one is not, the parent is reported as invalid and its children stay as they are.",
        ),
        field(
            "variables",
            Shape::NamedExpressions,
            "Values used as `variables.NAME`, each evaluated at most once per parent, when it is first needed. They may use each other.",
        ),
        field("resources", Shape::List(&RESOURCE), "The children, one entry for each, or for each list of them."),
        field(
            "status",
            Shape::Manifest,
            "Fields of the parent's status. One whose value is an optional without a value is left out.",
        ),
    ],
};

static FOR: Object = Object {
    name: "for",
    doc: "The kind of the parent.",
    fields: &[
        required("apiVersion", Shape::Text, "API group and version of the parent: `group/version`."),
        required("kind", Shape::Text, "Kind of the parent."),
    ],
};

static VALIDATION: Object = Object {
    name: "a validation",
    doc: "One condition on the parent, in the shape of `x-kubernetes-validations`.",
    fields: &[
        required("rule", Shape::Expression, "CEL that must be true. `self` is the parent."),
        field("message", Shape::Text, "Said where it is not true. Plain text."),
        field(
            "messageExpression",
            Shape::Expression,
            "CEL that gives the message; goes before `message`, which is said where this fails.",
        ),
    ],
};

static RESOURCE: Object = Object {
    name: "a resource",
    doc: "One child of the parent, or one for each item of a list.",
    fields: &[
        required(
            "id",
            Shape::Text,
            "Name of this entry within the rule set: letters and digits, first a small letter. Others read the child as `resources.ID`.",
        ),
        field(
            "when",
            Shape::Expression,
            "CEL; where it is false there is no child. With `forEach` it is asked of each item.",
        ),
        field(
            "forEach",
            Shape::ForEach(&FOR_EACH),
            "One child for each item: `NAME: CEL`, where NAME is each element of a list, or each key of a map.",
        ),
        field(
            "itemKey",
            Shape::Expression,
            "CEL that gives each item's identity, so that children keep it when the order changes. Without it: the item itself if it is text or an integer, the map's key, the item's `name`, else its index.",
        ),
        required(
            "manifest",
            Shape::Manifest,
            "The object, as one would write it for `kubectl`. `${CEL}` in a text is replaced; a text that is exactly one `${CEL}` keeps the expression's type.",
        ),
        field("patches", Shape::List(&PATCH), "RFC 6902 operations on the manifest, applied in order, all or none."),
        field(
            "readyWhen",
            Shape::Expressions,
            "CEL that is true once the child is ready; `resource` is the child as the cluster has it. Without it, a child that is there is ready.",
        ),
        field(
            "onExists",
            Shape::Word(&["refuse", "adopt"]),
            "An object of this name is there and is not ours: leave it alone and say so, or take it over.",
        ),
        field(
            "onDrift",
            Shape::Word(&["correct", "report"]),
            "Someone changed a field that the rule gives: write it back, or say so.",
        ),
        field(
            "onRemove",
            Shape::Word(&["prune", "keep"]),
            "The rules no longer give the child: delete it, or let it stay.",
        ),
        field(
            "onDelete",
            Shape::Word(&["delete", "keep"]),
            "The parent is deleted: the child goes with it, or stays (it then has no owner reference).",
        ),
        field(
            "onImmutable",
            Shape::Word(&["report", "recreate"]),
            "The change touches a field that cannot be changed: say so, or delete the child and make it anew.",
        ),
        field(
            "onConflict",
            Shape::Word(&["force", "yield"]),
            "Another field manager owns a field that the rule gives: take it, or leave it to the other and say so.",
        ),
    ],
};

/// The long form of `forEach`.
pub static FOR_EACH: Object = Object {
    name: "forEach",
    doc: "The long form, which names the key too.",
    fields: &[
        required("in", Shape::Expression, "CEL that gives a list or a map."),
        field("key", Shape::Text, "Name for the key: of a map its key, of a list the index."),
        required("value", Shape::Text, "Name for the item: of a map its value, of a list the element."),
    ],
};

static PATCH: Object = Object {
    name: "a patch",
    doc: "One operation of RFC 6902 (JSON Patch).",
    fields: &[
        required("op", Shape::Word(&["add", "remove", "replace", "move", "copy", "test"]), "The operation."),
        required(
            "path",
            Shape::Pointer,
            "Where: a JSON Pointer into the manifest, `~1` for `/` and `~0` for `~` in a key.",
        ),
        field("from", Shape::Pointer, "Where from, for `move` and `copy`."),
        field("value", Shape::Tree, "The value, for `add`, `replace` and `test`; `${CEL}` as in a manifest."),
        field("when", Shape::Expression, "CEL; where it is false the operation is left out."),
    ],
};
