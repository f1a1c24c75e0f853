//! A short, bounded fuzz run over everything that reads what people write: rule files, templates, CEL, parents.
//!
//! Texts from this repository (and a few that are known to be nasty) are mutated at random and pushed through reading, compiling,
//! checking and rendering. Whatever the bytes: no panic, no hang, bounded memory. The seed is printed and replays with
//! `FUZZ_SEED`; `FUZZ_SECONDS` sets the length (default 10).

#![expect(clippy::unwrap_used, reason = "a fuzz run that cannot be set up has failed")]
#![expect(clippy::print_stdout, reason = "a seed that nobody sees cannot be replayed")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use network_operator::diagnostic::SourceFile;
use network_operator::rules::expr::{Expr, Scope};
use network_operator::rules::schema::builtin::builtin;
use network_operator::rules::schema::crd::CrdSchema;
use network_operator::rules::{ChildState, Observed, Program, check};
use serde_json::{Value, json};

/// Longest time for one input. A release build needs milliseconds for any of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Small, fast and good enough to choose mutations (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Pieces that break parsers.
const PIECES: &[&str] = &[
    "${",
    "}",
    "$${",
    "${self.spec.cidr}",
    "'",
    "\"",
    "\\",
    "\t",
    "\r\n",
    "\u{feff}",
    "\0",
    " #",
    ": ",
    "- ",
    "? ",
    "&a ",
    "*a",
    "<<: *a",
    "!!binary ",
    "|\n",
    ">-\n  ",
    "{",
    "[",
    "]",
    ",",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "0340914",
    "1e999",
    "-9223372036854775808",
    ".5",
    "~",
    "null",
    "on",
    "self",
    "variables.",
    "resources.config",
    "resources.?x",
    ".orValue(",
    ".map(x, ",
    "has(",
    "?:",
    "&&",
    "[0]",
    "é",
    "😀",
    "\u{202e}",
    "op: test",
    "path: /data/~2",
    "forEach: {x: self.spec.subnets}",
    "metadata: {name: \"${''}\"}",
];

fn corpus() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("rules"), root.join("crds"), root.join("tests/check")];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                texts.push(std::fs::read(&path).unwrap());
            }
        }
    }
    assert!(texts.len() > 20, "the corpus is not where it was");
    texts
}

/// Inputs that hurt other programs.
fn nasty() -> Vec<Vec<u8>> {
    let bomb = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, level| {
        let before = level - 1;
        format!("{text}a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 9].join(","))
    });
    let head = "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {name: n}\nspec:\n  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}\n";
    let nested_loops = "[1,2,3,4,5,6,7,8,9,10].map(a, ".repeat(12) + "1" + &")".repeat(12);
    let doubling: Vec<_> = (1..60).map(|n| format!("    v{n}: variables.v{0} + variables.v{0}\n", n - 1)).collect();
    let doubling = doubling.concat();
    vec![
        bomb.into_bytes(),
        "[".repeat(200_000).into_bytes(),
        "- ".repeat(100_000).into_bytes(),
        "{a: ".repeat(50_000).into_bytes(),
        format!("{head}  variables:\n    v0: \"'aaaaaaaaaaaaaaaa'\"\n{doubling}  resources: [{{id: c, manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}, data: {{x: \"${{variables.v59}}\"}}}}}}]\n").into_bytes(),
        format!("{head}  variables:\n    v: {nested_loops}\n  resources: [{{id: c, manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}, data: {{x: \"${{string(size(variables.v))}}\"}}}}}}]\n").into_bytes(),
        format!("{head}  resources: [{{id: c, manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: \"${{{}}}\"}}}}}}]\n", "(".repeat(20_000)).into_bytes(),
        format!("{head}  resources: []\n{}", "# padding\n".repeat(1_000_000)).into_bytes(),
        vec![0xff; 1_000],
        vec![0; 10_000],
        "a: 1\r\nb:\t2\r\n\u{feff}c: 3".as_bytes().to_vec(),
    ]
}

fn mutate(random: &mut Random, texts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.pick(texts).clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(24)).min(bytes.len());
        match random.below(7) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..end, random.pick(PIECES).bytes())),
            2 => drop(bytes.splice(at..at, random.pick(PIECES).bytes())),
            3 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                drop(bytes.splice(to..to, copy));
            }
            4 => {
                let other = random.pick(texts);
                let from = random.below(other.len() + 1);
                let until = (from + random.below(200)).min(other.len());
                drop(bytes.splice(at..end, other[from..until].iter().copied()));
            }
            5 if at < bytes.len() => bytes[at] = u8::try_from(random.below(256)).unwrap(),
            _ => bytes.truncate(at.max(40)),
        }
    }
    bytes
}

fn parents() -> Vec<Value> {
    let network = |name: &str, spec: Value| {
        json!({"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network",
               "metadata": {"name": name, "namespace": "default", "uid": "u"}, "spec": spec})
    };
    vec![
        network(
            "n",
            json!({"cidr": "10.0.0.0/8", "gateway": "10.0.0.1", "subnets": [{"name": "a", "cidr": "10.1.0.0/16"}]}),
        ),
        network(&"n".repeat(253), json!({"cidr": "::/0"})),
        network("", json!({"cidr": 7, "gateway": null, "ports": "x"})),
        json!([]),
    ]
}

/// Everything that can be done with some bytes without a cluster.
fn run(bytes: &[u8], parents: &[Value], crds: &[CrdSchema]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let file = SourceFile::new("fuzz.yaml", text.clone());
    let (programs, faults) = check::files(&[Arc::clone(&file)], crds, builtin());
    for fault in &faults {
        let (start, end) = (fault.at.span.start, fault.at.span.end);
        assert!(start <= end && end <= fault.at.file.text.len(), "{} is outside the file", fault.message);
        let _ = fault.to_string();
    }
    let (unchecked, _) = Program::load(&[file]);
    for program in programs.iter().chain(&unchecked) {
        for parent in parents {
            let once = program.render(parent, &Observed::default());
            let again = program.render(parent, &Observed::default());
            assert_eq!(format!("{once:?}"), format!("{again:?}"), "rendering is deterministic");
        }
    }
    if text.len() < 4_000 {
        let _ = Expr::parse(&text);
    }
}

/// Runs `step` on one input after another until the time is up; says how to replay it, and watches time and memory.
fn campaign(mut step: impl FnMut(&mut Random)) {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos()) | 1
    });
    println!("FUZZ_SEED={seed} FUZZ_SECONDS={seconds}");
    let mut random = Random(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut count = 0;
    while Instant::now() < end {
        let (state, start) = (random.0, Instant::now());
        step(&mut random);
        assert!(start.elapsed() < PATIENCE, "the input of state {state} took {:?}", start.elapsed());
        count += 1;
    }
    println!("{count} inputs");
    assert!(count > 0);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB");
    let peak: u64 = peak.trim().parse().unwrap();
    assert!(peak < 1_500_000, "used {peak} KiB at its peak");
}

fn crds() -> Vec<CrdSchema> {
    let crd: Value = serde_saphyr::from_str(include_str!("../crds/networks.yaml")).unwrap();
    CrdSchema::read(&crd).unwrap()
}

#[test]
fn inputs_that_hurt_other_programs_are_refused_or_bounded() {
    let (parents, crds) = (parents(), crds());
    for (index, bytes) in nasty().iter().enumerate() {
        let start = Instant::now();
        run(bytes, &parents, &crds);
        assert!(start.elapsed() < PATIENCE, "input {index} took {:?}", start.elapsed());
    }
}

#[test]
fn no_rule_file_makes_reading_checking_or_rendering_panic_hang_or_eat_the_memory() {
    let (parents, crds, texts) = (parents(), crds(), corpus());
    campaign(|random| run(&mutate(random, &texts), &parents, &crds));
}

#[test]
fn no_text_makes_the_template_and_expression_parsers_panic_or_hang() {
    let seeds: Vec<Vec<u8>> = corpus()
        .iter()
        .flat_map(|text| {
            String::from_utf8_lossy(text).lines().map(|line| line.trim().as_bytes().to_vec()).collect::<Vec<_>>()
        })
        .filter(|line| !line.is_empty())
        .collect();
    let scope = Scope::new();
    campaign(|random| {
        let text = String::from_utf8_lossy(&mutate(random, &seeds)).into_owned();
        let quoted = serde_json::to_string(&text).unwrap();
        let head = "apiVersion: rules.samplecrd.k8s.io/v1alpha1\nkind: RuleSet\nmetadata: {name: n}\nspec:\n  for: {apiVersion: samplecrd.k8s.io/v1, kind: Network}\n";
        let file = format!(
            "{head}  resources: [{{id: c, manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}, data: {{x: {quoted}}}}}}}]\n"
        );
        let _ = Program::load(&[SourceFile::new("fuzz.yaml", file)]);
        if let Ok(expression) = Expr::parse(&text) {
            let _ = expression.eval(&scope);
        }
    });
}

#[test]
fn no_parent_makes_the_shipped_rules_panic_hang_or_send_null() {
    let shipped = SourceFile::new("rules/network.yaml", include_str!("../rules/network.yaml"));
    let (programs, _) = Program::load(&[shipped]);
    let seeds: Vec<Vec<u8>> = parents().iter().map(|parent| parent.to_string().into_bytes()).collect();
    campaign(|random| {
        let Ok(parent) = serde_json::from_slice::<Value>(&mutate(random, &seeds)) else { return };
        for child in programs[0].render(&parent, &Observed::default()).children {
            if let ChildState::Desired(manifest) = &child.state {
                assert!(!has_null(manifest), "{manifest}");
            }
        }
    });
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}
