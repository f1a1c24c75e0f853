//! Every recipe loads, passes the checker without a word, and gives exactly the children that stand beside it.

use network_operator::diagnostic::{SourceFile, human};
use network_operator::rules::check;
use network_operator::rules::schema::Layered;
use network_operator::rules::schema::builtin::builtin;
use network_operator::rules::schema::crd::CrdSchema;
use network_operator::rules::schema::instance;

use super::recipe::{self, Recipe};
use super::{keep, repository};

/// The Network CRD.
fn parents() -> Vec<CrdSchema> {
    let crds = recipe::documents(&repository().join("crds/networks.yaml"));
    crds.iter().flat_map(|crd| CrdSchema::read(crd).unwrap()).collect()
}

/// Panics with what the checker says about a rule file, if it says anything.
pub fn free_of_faults(name: &str, text: &str) {
    let (_, found) = check::files(&[SourceFile::new(name, text)], &parents(), builtin());
    assert!(found.is_empty(), "{}", human::render(&found, human::Style::default()));
}

fn run(recipe: &Recipe) {
    let brought = recipe.crds();
    let kinds = Layered(vec![builtin(), &brought]);
    let (programs, found) = check::files(&[recipe.rules()], &parents(), &kinds);
    let said = human::render(&found, human::Style::default());
    assert!(found.is_empty(), "the checker speaks about {}:\n{said}", recipe.name());
    let [program] = programs.as_slice() else { panic!("{} is one rule set", recipe.name()) };
    for (network, expected) in recipe.cases() {
        let outcome = recipe.outcome(program, &network);
        // How YAML is printed is not what a recipe is about.
        if std::env::var_os("UPDATE").is_some() || recipe::said(&expected) != recipe::meant(&outcome) {
            keep(&expected, &outcome);
        }
    }
}

#[test]
fn every_recipe_is_free_of_faults_and_gives_the_children_that_stand_beside_it() {
    let recipes = recipe::all();
    assert!(recipes.len() >= 12);
    recipes.iter().for_each(run);
}

#[test]
fn every_network_of_a_recipe_is_one_that_the_api_server_takes() {
    let parents = parents();
    let schema = &parents[0].schema;
    for recipe in recipe::all() {
        for (network, _) in recipe.cases() {
            let violations = instance::violations(&network, schema);
            assert!(violations.is_empty(), "{}: {violations:#?}", recipe.name());
        }
    }
}
