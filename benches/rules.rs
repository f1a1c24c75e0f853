//! How fast rules are: compiling the shipped rules, rendering a Network to three children, and the same expressions one by
//! one through the `cel` crate alone. `cargo bench --bench rules`; the figures in README.md come from it.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use network_operator::diagnostic::SourceFile;
use network_operator::rules::{Observed, Program, compile, file};
use serde_json::{Value, json};

fn shipped() -> Arc<SourceFile> {
    SourceFile::new("rules/network.yaml", include_str!("../rules/network.yaml"))
}

fn network() -> Value {
    json!({
        "apiVersion": "samplecrd.k8s.io/v1", "kind": "Network",
        "metadata": {"name": "example-network", "namespace": "default", "uid": "u", "generation": 1},
        "spec": {"cidr": "192.168.0.0/16", "gateway": "192.168.0.1"},
    })
}

fn rules(criterion: &mut Criterion) {
    let source = shipped();
    criterion.bench_function("compile the shipped rules", |bencher| {
        bencher.iter(|| Program::load(black_box(std::slice::from_ref(&source))));
    });

    let (programs, faults) = Program::load(std::slice::from_ref(&source));
    assert!(faults.is_empty(), "{faults:?}");
    let program = &programs[0];
    let (network, observed) = (network(), Observed::default());
    assert_eq!(program.render(&network, &observed).children.len(), 3);
    let mut group = criterion.benchmark_group("per Network");
    group.throughput(Throughput::Elements(1));
    group.bench_function("render to three children", |bencher| {
        bencher.iter(|| program.render(black_box(&network), &observed));
    });

    // The yardstick: what the `cel` crate needs for those of our expressions that it can run by itself (standard functions
    // only), compiled beforehand, each in a context that has `self`. It evaluates fewer expressions than a render does.
    let (sets, _) = compile::read(&[source]);
    let mut plain = Vec::new();
    file::each_expression(&sets[0], &mut |expression| {
        let Ok(compiled) = cel::Program::compile(expression.source()) else { return };
        let mut context = cel::Context::default();
        if context.add_variable("self", network.clone()).is_ok() && compiled.execute(&context).is_ok() {
            plain.push(compiled);
        }
    });
    group.bench_function(format!("{} of the expressions through cel alone", plain.len()), |bencher| {
        bencher.iter(|| {
            let mut context = cel::Context::default();
            let added = context.add_variable("self", black_box(network.clone()));
            assert!(added.is_ok());
            plain.iter().filter(|program| program.execute(&context).is_ok()).count()
        });
    });
    group.finish();
}

criterion_group!(benches, rules);
criterion_main!(benches);
