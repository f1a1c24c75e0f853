//! `network-operator explain`: which rule line and which Network field gave a child's field its value.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::live::{self, Connection, Live};
use super::output::{self, Format, Outcome, Stream, Style, paint};
use super::{field, input, offline};
use crate::identity::{self, Parent};
use crate::rules::provenance::Trace;
use crate::rules::template::Expression;
use crate::rules::{Child, ChildState, Observed, Program, Rendered};

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 explained; 1 there is no such child or field; 2 error.

Examples:
  network-operator explain configmap/example-network-network data.cidr -n default
  network-operator explain configmap/example-network-network --network example/")]
pub struct Args {
    /// The child: `KIND/NAME`.
    #[arg(value_name = "KIND/NAME")]
    child: String,
    /// One of its fields, such as `data.cidr` or `spec.ports[0].name`; without it, all of them.
    #[arg(value_name = "FIELD")]
    field: Option<String>,
    /// A rule file, or a folder with rule files; may be given several times.
    #[arg(long, value_name = "PATH", env = "NETWORK_OPERATOR_RULES", value_delimiter = ',', default_value = "rules")]
    rules: Vec<PathBuf>,
    /// Explain without a cluster, for the Networks in this file or folder; may be given several times.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    network: Vec<PathBuf>,
    /// Namespace of the child; without it the kubeconfig's, or `default`.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    connection: Connection,
    /// Print the explanation for machines.
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    output: Option<Format>,
}

/// Prints the explanation.
pub fn main(args: &Args) -> Outcome {
    let wanted =
        args.child.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty()).ok_or_else(|| {
            format!("`{}` is not a child; write `KIND/NAME`, such as `configmap/example-network-network`", args.child)
        })?;
    let path = args.field.as_deref().map(field::parse).transpose()?;
    let programs = input::programs(&args.rules)?;
    let found = if args.network.is_empty() {
        live::block_on(in_cluster(args, &programs, wanted))?
    } else {
        in_files(args, &programs, wanted)?
    };
    let Some(found) = found else {
        output::note(&format!("no rule gives a child `{}` now", args.child));
        return Ok(ExitCode::from(1));
    };
    let fields = found.fields(path.as_deref());
    if fields.is_empty() {
        let asked = path.as_deref().map(field::show).unwrap_or_default();
        output::note(&format!("{} has no field `{asked}`", found.title()));
        return Ok(ExitCode::from(1));
    }
    match args.output {
        Some(format) => output::value(&found.json(&fields), format)?,
        None => output::data(&found.text(&fields, path.is_some()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A child, where it comes from, and what it is.
struct Found {
    parent: Parent,
    network: Value,
    rule_set: String,
    child: Child,
    trace: Trace,
    /// The object as it is, or as it would be applied.
    object: Value,
    in_cluster: bool,
    variables: Vec<(String, Expression)>,
}

fn in_files(args: &Args, programs: &[Program], wanted: (&str, &str)) -> Result<Option<Found>, String> {
    let default = args.namespace.as_deref().unwrap_or("default");
    for mut network in input::objects(&args.network)? {
        if input::metadata(&network.value, "namespace").is_empty() {
            network.value["metadata"]["namespace"] = json!(default);
        }
        let sets = offline::for_kind(programs, &network.gvk());
        let outcome = offline::render(&sets, &network.value, &[]);
        if args.namespace.as_ref().is_some_and(|namespace| *namespace != outcome.parent.namespace) {
            continue;
        }
        for (program, rendered) in &outcome.sets {
            if let Some((child, manifest)) = find(rendered, wanted) {
                let object = identity::mark(manifest, &outcome.parent, program.name(), child);
                let parent = (&outcome.parent, &network.value);
                return Found::new(parent, program, child, &Observed::default(), object, false).map(Some);
            }
        }
    }
    Ok(None)
}

async fn in_cluster(args: &Args, programs: &[Program], wanted: (&str, &str)) -> Result<Option<Found>, String> {
    let (cluster, default) = args.connection.open().await?;
    let namespace = args.namespace.clone().unwrap_or(default);
    let live = Live::read(cluster, programs, &[namespace]).await?;
    for parent in live.parents() {
        let sets = offline::for_kind(programs, &parent.parent.gvk);
        for (program, rendered) in live.render(&parent, &sets) {
            let Some((child, manifest)) = find(&rendered, wanted) else { continue };
            let there = live.child(&child.gvk, &parent.parent.namespace, input::metadata(manifest, "name")).cloned();
            let in_cluster = there.is_some();
            let object = there.unwrap_or_else(|| identity::mark(manifest, &parent.parent, program.name(), child));
            let observed = live.observed(&parent, program);
            return Found::new((&parent.parent, parent.object), program, child, &observed, object, in_cluster)
                .map(Some);
        }
    }
    Ok(None)
}

/// The child of a kind (as people write it: `configmap`, `configmaps`) and name.
fn find<'r>(rendered: &'r Rendered, (kind, name): (&str, &str)) -> Option<(&'r Child, &'r Value)> {
    let kind = kind.to_ascii_lowercase();
    rendered.children.iter().find_map(|child| {
        let ChildState::Desired(manifest) = &child.state else { return None };
        let singular = child.gvk.kind.to_ascii_lowercase();
        let is_kind = [singular.clone(), format!("{singular}s"), format!("{singular}es")].contains(&kind);
        (is_kind && input::metadata(manifest, "name") == name).then_some((child, manifest))
    })
}

/// What is said of one field.
struct Explained {
    path: Vec<String>,
    value: Option<Value>,
    /// The place and what stands there; `None` for what no rule gives.
    rule: Option<(String, String)>,
    reads: Vec<(String, String)>,
    patches: Vec<String>,
    owners: Vec<String>,
    note: Option<&'static str>,
}

impl Found {
    fn new(
        (parent, network): (&Parent, &Value),
        program: &Program,
        child: &Child,
        observed: &Observed,
        object: Value,
        in_cluster: bool,
    ) -> Result<Self, String> {
        let trace = program
            .trace(network, observed, &child.id, &child.item)
            .ok_or("the rules changed while they were read")?
            .map_err(|fault| format!("{} ({})", fault.message, fault.at))?;
        let variables = &program.rule_set().variables;
        Ok(Self {
            parent: parent.clone(),
            network: network.clone(),
            rule_set: program.name().to_owned(),
            child: child.clone(),
            trace,
            object,
            in_cluster,
            variables: variables
                .iter()
                .map(|variable| (variable.name.text.clone(), variable.expression.clone()))
                .collect(),
        })
    }

    fn title(&self) -> String {
        format!("{} {}/{}", self.child.gvk.kind, self.parent.namespace, input::metadata(&self.object, "name"))
    }

    fn fields(&self, path: Option<&[String]>) -> Vec<Explained> {
        let Some(path) = path else {
            return self.trace.fields.iter().map(|field| self.explain(&field.path)).collect();
        };
        let found = self.trace.of(path);
        match found.as_slice() {
            [] if field::get(&self.object, path).is_none() => Vec::new(),
            [] => vec![self.explain(path)],
            [one] if path.starts_with(&one.path) => vec![self.explain(path)],
            many => many.iter().map(|field| self.explain(&field.path)).collect(),
        }
    }

    fn explain(&self, path: &[String]) -> Explained {
        let origin = self.trace.fields.iter().find(|field| path.starts_with(&field.path)).map(|field| &field.origin);
        let mut reads = Vec::new();
        for expression in origin.iter().flat_map(|origin| &origin.expressions) {
            self.reads(expression, &mut reads);
        }
        let touches =
            self.trace.patches.iter().filter(|touch| path.starts_with(&touch.path) || touch.path.starts_with(path));
        Explained {
            path: path.to_owned(),
            value: field::get(&self.object, path).cloned(),
            rule: origin.map(|origin| (origin.at.to_string(), origin.source.clone())),
            reads,
            patches: touches.map(|touch| format!("{} {} ({})", touch.op, field::show(&touch.path), touch.at)).collect(),
            owners: field::owners(&self.object, path),
            note: origin.is_none().then(|| {
                if is_own(path, &self.parent) { "the operator adds it to every child" } else { "no rule gives it" }
            }),
        }
    }

    /// What an expression reads, and what its variables read in turn.
    fn reads(&self, expression: &Expression, reads: &mut Vec<(String, String)>) {
        let Some(expr) = &expression.expr else { return };
        for chain in expr.reads() {
            let name = field::show(&chain);
            if reads.iter().any(|(known, _)| *known == name) {
                continue;
            }
            match chain.split_first().map(|(first, rest)| (first.as_str(), rest)) {
                Some(("self", rest)) => {
                    let value = field::get(&self.network, rest).map_or("(absent)".to_owned(), Value::to_string);
                    reads.push((name, value));
                }
                Some(("variables", [variable, ..])) => {
                    let Some((_, inner)) = self.variables.iter().find(|(known, _)| known == variable) else { continue };
                    reads
                        .push((format!("variables.{variable}"), format!("{} ({})", inner.source().trim(), inner.at())));
                    self.reads(inner, reads);
                }
                Some(("resources", _)) => reads.push((name, "another child, as the cluster has it".to_owned())),
                Some((first, rest)) => {
                    let item = self.trace.items.iter().find(|(known, _)| known == first);
                    if let Some(value) = item.and_then(|(_, item)| field::get(item, rest)) {
                        reads.push((name, format!("{value} (of the item `{}`)", self.child.item)));
                    }
                }
                None => {}
            }
        }
    }

    fn text(&self, fields: &[Explained], long: bool) -> String {
        let strong = |text: &str| paint(Stream::Stdout, Style::Strong, text);
        let mut text = format!(
            "{}{}\n  made by {} with the resource `{}` of rule set `{}`, {}\n\n",
            strong(&self.title()),
            if self.in_cluster { "" } else { ", not in the cluster" },
            offline::title(&self.parent),
            offline::resource_name(&self.child),
            self.rule_set,
            self.child.at,
        );
        if !long && fields.len() > 1 {
            let rows: Vec<Vec<String>> = fields.iter().map(Explained::row).collect();
            return text + &output::table(&rows);
        }
        let shown: Vec<String> = fields.iter().map(|field| field.text(self.in_cluster)).collect();
        text.push_str(&shown.join("\n"));
        text
    }

    fn json(&self, fields: &[Explained]) -> Value {
        let fields: Vec<Value> = fields.iter().map(Explained::json).collect();
        json!({
            "kind": self.child.gvk.kind, "namespace": self.parent.namespace, "name": input::metadata(&self.object, "name"),
            "inCluster": self.in_cluster, "parent": offline::title(&self.parent), "ruleSet": self.rule_set,
            "resource": offline::resource_name(&self.child), "at": self.child.at.to_string(), "fields": fields,
        })
    }
}

/// Whether the operator itself adds a field ([`identity::mark`]).
fn is_own(path: &[String], parent: &Parent) -> bool {
    let label = identity::parent_label_key(&parent.gvk);
    let keys = [identity::MANAGED_BY, identity::SOURCE, identity::ON_REMOVE, identity::INTENT, label.as_str()];
    match path {
        [first, second, rest @ ..] if first == "metadata" => match second.as_str() {
            "namespace" | "ownerReferences" => true,
            "labels" | "annotations" => rest.first().is_some_and(|key| keys.contains(&key.as_str())),
            _ => false,
        },
        _ => false,
    }
}

impl Explained {
    fn value(&self) -> String {
        self.value.as_ref().map_or("(absent)".to_owned(), Value::to_string)
    }

    fn row(&self) -> Vec<String> {
        let (at, source) = self.rule.clone().unwrap_or_default();
        let source = source.lines().next().unwrap_or_default().to_owned();
        vec![field::show(&self.path), self.value(), at, source]
    }

    fn text(&self, in_cluster: bool) -> String {
        let mut text =
            format!("{} = {}\n", paint(Stream::Stdout, Style::Strong, &field::show(&self.path)), self.value());
        let mut line = |name: &str, value: &str| text.extend(["  ", &format!("{name:8}"), " ", value, "\n"]);
        match &self.rule {
            Some((at, source)) => line("rule", &format!("{}  ({at})", source.replace('\n', "\n           "))),
            None => line("rule", self.note.unwrap_or_default()),
        }
        for (name, value) in &self.reads {
            line("reads", &format!("{name} = {value}"));
        }
        for patch in &self.patches {
            line("patch", patch);
        }
        if in_cluster {
            let owners = if self.owners.is_empty() { "nobody".to_owned() } else { self.owners.join(", ") };
            line("owner", &owners);
        }
        text
    }

    fn json(&self) -> Value {
        let reads: Vec<Value> = self.reads.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let (at, source) = self.rule.clone().unzip();
        json!({
            "field": field::show(&self.path), "value": self.value, "at": at, "source": source, "reads": reads,
            "patches": self.patches, "owners": self.owners, "note": self.note,
        })
    }
}
