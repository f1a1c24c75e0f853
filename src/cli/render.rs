//! `network-operator render`: Networks in, children out, without a cluster.
//!
//! As a Unix filter it reads objects from files, folders and stdin, and prints the children as the operator would apply
//! them, ready for `kubectl apply -f -`. Where stdin is a KRM `ResourceList`, it is a KRM function ([`super::krm`]).
//!
//! Owner references need the UID that only the API server gives a Network. They are therefore left out unless asked for:
//! in another cluster, or after the Network was made anew, the garbage collector would delete what refers to the old UID.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::input::{self, Object};
use super::output::{self, Format, Outcome, Stream, Style, paint};
use super::{krm, offline};
use crate::identity;
use crate::rules::{ChildState, Program};
use crate::yaml_text;

/// Arguments of `render`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 all children were rendered; 1 some could not be (stderr says which and why; the others are printed); 2 usage, unreadable input or unusable rules.

Examples:
  network-operator render example/ | kubectl apply -f -
  kubectl get networks -o yaml | network-operator render --rules new-rules/ -"
)]
pub struct Args {
    /// Files or folders with Networks (other objects in them are passed over); `-` is stdin, which is also the default.
    #[arg(value_name = "FILE|DIR|-", default_value = "-")]
    networks: Vec<PathBuf>,
    /// A rule file, or a folder with rule files; may be given several times.
    #[arg(long, value_name = "PATH", env = "NETWORK_OPERATOR_RULES", value_delimiter = ',', default_value = "rules")]
    rules: Vec<PathBuf>,
    /// Namespace of Networks that do not say one.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// Objects that count as being in the cluster, for rules that read `resources.ID`; may be given several times.
    #[arg(long, value_name = "FILE")]
    observed: Vec<PathBuf>,
    /// Write the owner references too; every Network must then carry the `metadata.uid` of its cluster.
    #[arg(long)]
    owner_references: bool,
    /// Print YAML documents, or one List as JSON.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

/// Prints the children.
pub fn main(args: &Args) -> Outcome {
    let options = Options {
        namespace: &args.namespace,
        observed: input::objects(&args.observed)?,
        owner_references: args.owner_references,
    };
    if args.networks == [Path::new("-")] {
        let file = input::stdin()?;
        if let Some(list) = krm::ResourceList::read(&file)? {
            return krm::run(list, &args.rules, &options);
        }
        return print(&input::parse(&file)?, args, &options);
    }
    print(&input::objects(&args.networks)?, args, &options)
}

fn print(objects: &[Object], args: &Args, options: &Options<'_>) -> Outcome {
    let programs = input::programs(&args.rules)?;
    let made = children(&programs, objects, options)?;
    if made.parents == 0 {
        let kinds: std::collections::BTreeSet<_> =
            programs.iter().map(|program| program.parent().kind.as_str()).collect();
        output::note(&format!("there is no {} in the input", kinds.into_iter().collect::<Vec<_>>().join(" and no ")));
    }
    for problem in &made.problems {
        output::note(&problem.line());
    }
    let values = made.children.iter();
    match args.output {
        Format::Yaml => output::data(&yaml_text::documents(values))?,
        Format::Json => output::value(
            &json!({"apiVersion": "v1", "kind": "List", "items": values.collect::<Vec<_>>()}),
            Format::Json,
        )?,
    }
    Ok(if made.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// How children are rendered.
pub struct Options<'a> {
    /// Namespace of parents that do not say one.
    pub namespace: &'a str,
    /// Objects that count as being in the cluster.
    pub observed: Vec<Object>,
    /// Whether owner references are written.
    pub owner_references: bool,
}

/// What rendering came to.
#[derive(Debug, Default)]
pub struct Made {
    /// How many parents were found.
    pub parents: usize,
    /// Their children, in the order of the parents and then of the rules.
    pub children: Vec<Value>,
    /// What could not be rendered.
    pub problems: Vec<Problem>,
}

/// A parent's trouble.
#[derive(Debug)]
pub struct Problem {
    /// The parent object's index in the input.
    pub parent: usize,
    /// `Network default/example-network`
    pub title: String,
    /// What it is.
    pub trouble: offline::Trouble,
}

impl Problem {
    /// For people.
    pub fn line(&self) -> String {
        let offline::Trouble { at, resource, message } = &self.trouble;
        let error = paint(Stream::Stderr, Style::Error, "error");
        match resource.as_str() {
            "" => format!("{error}: {} {message}\n  at {at}", self.title),
            resource => format!("{error}: {}: `{resource}`: {message}\n  at {at}", self.title),
        }
    }
}

/// Renders every parent among `objects`.
pub fn children(programs: &[Program], objects: &[Object], options: &Options<'_>) -> Result<Made, String> {
    let mut made = Made::default();
    for (index, object) in objects.iter().enumerate() {
        let sets = offline::for_kind(programs, &object.gvk());
        if sets.is_empty() {
            continue;
        }
        made.parents += 1;
        let parent = in_namespace(object, options.namespace)?;
        if options.owner_references && input::metadata(&parent, "uid").is_empty() {
            return Err(format!(
                "{}: the {} `{}` has no `metadata.uid`, which `--owner-references` needs; take it from the cluster with `kubectl get -o yaml`",
                object.at,
                object.gvk().kind,
                input::metadata(&parent, "name")
            ));
        }
        let outcome = offline::render(&sets, &parent, &options.observed);
        let title = outcome.title();
        let problem = |trouble| Problem { parent: index, title: title.clone(), trouble };
        made.problems.extend(outcome.troubles().into_iter().map(problem));
        for (program, rendered) in &outcome.sets {
            for child in &rendered.children {
                if let ChildState::Desired(manifest) = &child.state {
                    let mut value = identity::mark(manifest, &outcome.parent, program.name(), child);
                    if !options.owner_references {
                        forget_owner(&mut value);
                    }
                    made.children.push(value);
                }
            }
        }
    }
    Ok(made)
}

/// The parent, in a namespace; what the API server would refuse outright is refused here.
fn in_namespace(object: &Object, namespace: &str) -> Result<Value, String> {
    let mut value = object.value.clone();
    if input::metadata(&value, "name").is_empty() {
        return Err(format!("{}: the {} has no `metadata.name`", object.at, object.gvk().kind));
    }
    if input::metadata(&value, "namespace").is_empty() {
        value["metadata"]["namespace"] = json!(namespace);
    }
    Ok(value)
}

/// The intent is a hash that covers the owner reference; without the one, the other would be wrong.
fn forget_owner(value: &mut Value) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("ownerReferences");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.shift_remove(identity::INTENT);
        }
    }
}
