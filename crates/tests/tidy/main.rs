//! The architecture's import order: a module may use only those that stand above it.

mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::{Import, circles, imports, rust_files};

/// Each module of the crate `opticoll-core` with the modules it may import; what is not listed may not be used. Cargo.toml
/// says which crates it may use.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("drawing", &[]),
    ("network", &["drawing"]),
    ("fabric", &["drawing", "network"]),
    ("machine", &["drawing", "network", "fabric"]),
    ("collective", &[]),
    ("schedule", &["collective"]),
    ("algorithm", &["fabric", "collective", "schedule"]),
    ("plan", &["network", "fabric", "collective", "schedule"]),
    ("place", &[]),
    ("chakra", &[]),
    ("program", &["chakra", "collective", "schedule"]),
    ("bound", &["network", "fabric", "collective"]),
    (
        "family",
        &[
            "drawing",
            "network",
            "fabric",
            "machine",
            "collective",
            "schedule",
            "plan",
            "place",
            "bound",
        ],
    ),
    (
        "families",
        &[
            "fabric",
            "machine",
            "collective",
            "schedule",
            "plan",
            "place",
            "bound",
            "family",
        ],
    ),
    (
        "verify",
        &[
            "network",
            "fabric",
            "machine",
            "collective",
            "schedule",
            "plan",
            "program",
        ],
    ),
    ("table", &[]),
    ("outcome", &["table"]),
    (
        "simulate",
        &[
            "network",
            "fabric",
            "machine",
            "collective",
            "schedule",
            "algorithm",
            "plan",
            "family",
            "families",
            "table",
            "outcome",
        ],
    ),
];

/// Engines inside `simulate` do not import each other.
const ENGINES: &[&str] = &[
    "bulk_synchronous",
    "burst",
    "circuit",
    "closed_form",
    "control",
    "on_demand",
    "fluid",
    "packet",
];

#[test]
fn imports_point_upwards_only() {
    let imports = imports(&source());
    assert!(
        imports.len() > 1000,
        "the test sees imports: {}",
        imports.len()
    );
    let mut wrong = Vec::new();
    for import in &imports {
        let (module, used) = (floor(&import.from), floor(&import.to));
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("module `{module}` has no line in MAY_IMPORT"));
            continue;
        };
        if used != module && !allowed.contains(&used) {
            wrong.push(sentence(import));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_imports_go_in_a_circle() {
    for crate_name in CRATES {
        no_circles_in(crate_name);
    }
}

fn no_circles_in(crate_name: &str) {
    let imports = imports(&source_of(crate_name));
    let circles = circles(&imports);
    let sentences: Vec<String> = circles
        .iter()
        .map(|circle| {
            let inside = |module: &String| circle.contains(module);
            let own = imports
                .iter()
                .filter(|import| inside(&import.from) && inside(&import.to));
            let own: Vec<String> = own.map(sentence).collect();
            format!("a circle of {} files:\n{}", circle.len(), own.join("\n"))
        })
        .collect();
    assert!(circles.is_empty(), "{}", sentences.join("\n\n"));
}

#[test]
fn engines_do_not_import_each_other() {
    let engine = |module: &str| {
        let name = module.strip_prefix("simulate::")?.split("::").next()?;
        ENGINES.iter().find(|engine| **engine == name)
    };
    let wrong: Vec<String> = imports(&source())
        .iter()
        .filter(|import| match (engine(&import.from), engine(&import.to)) {
            (Some(from), Some(to)) => from != to,
            _ => false,
        })
        .map(sentence)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the verifier may ask of a fabric and of the types that plans are made of: names and numbers that
/// somebody wrote down. Methods of other types may bear these names, too.
const WRITTEN_DOWN: &[&str] = &[
    "ranks",
    "family",
    "name",
    "light",
    "has_light",
    "downcast",
    "value",
    "millionths",
    "is_same_machine",
    "leads_both_ways",
    "links",
    // Of schedules and collectives.
    "ends",
    "after",
    "columns",
    "count",
];

#[test]
fn the_verifier_shares_no_code_with_what_it_checks() {
    // Beyond imports: it reads the fields of a machine, and calls nothing that computes with them.
    let machines = rust_files(&source()).into_iter().filter(|file| {
        let file = file.to_str().unwrap();
        let capability = ["circuits", "groups", "light", "planes"];
        capability
            .iter()
            .any(|name| file.ends_with(&format!("fabric/{name}.rs")))
            || file.ends_with("src/network.rs")
            || file.contains("/family/") && file.contains("/machine")
    });
    let mut functions = BTreeSet::new();
    for file in machines {
        let text = fs::read_to_string(&file).unwrap();
        let methods = text
            .split("fn ")
            .skip(1)
            .filter_map(|rest| rest.split_once('('));
        let methods = methods.filter(|(_, arguments)| arguments.trim_start().starts_with("&self"));
        functions.extend(methods.map(|(name, _)| name.to_owned()));
    }
    assert!(
        functions.contains("hops") && functions.contains("longest"),
        "{functions:?}"
    );
    functions.retain(|name| !WRITTEN_DOWN.contains(&name.as_str()));
    functions.insert("uniform_chunk_bytes".into());
    for file in rust_files(&source())
        .iter()
        .filter(|file| in_folder(file, "verify"))
    {
        let text = fs::read_to_string(file).unwrap();
        for function in &functions {
            let call = format!(".{function}(");
            assert!(!text.contains(&call), "{} calls {call}", file.display());
        }
    }
}

/// Who may ask for the type of a machine: the planners of rings and of circuit switches, and what exists for one family only.
const OF_ONE_FAMILY: &[(&str, &[&str])] = &[
    ("planner", &["WdmRing", "WssGrid"]),
    ("planner/selection/least.rs", &["CircuitSwitch"]),
    ("planner/grid", &["LightPathGrid"]),
    ("planner/selection/least/grids.rs", &["LightPathGrid"]),
    ("planner/switch", &["CircuitSwitch"]),
    ("simulate/closed_form.rs", &["WdmRing", "LightPathGrid"]),
    ("simulate/simulators/circuit.rs", &["WdmRing"]),
    ("simulate/control", &["WssGrid"]),
    ("simulate/simulators/control.rs", &["WssGrid"]),
    ("simulate/tasks.rs", &["WssGrid"]),
    (
        "workload/network.rs",
        &["WdmRing", "WssGrid", "LightPathGrid"],
    ),
];

#[test]
fn code_outside_a_family_asks_for_capabilities() {
    let mut machines = BTreeSet::new();
    for file in rust_files(&source()) {
        let text = fs::read_to_string(&file).unwrap();
        let implemented = text.split("Machine for ").skip(1);
        let named = implemented.filter_map(|rest| rest.split_whitespace().next());
        machines.extend(named.map(str::to_owned));
    }
    assert!(
        machines.contains("WdmRing") && machines.len() > 8,
        "{machines:?}"
    );
    let mut wrong = Vec::new();
    let all = CRATES.map(source_of).map(|folder| rust_files(&folder));
    for file in all.iter().flatten() {
        // Such as simulate/fluid.rs and planner/ring/tree.rs.
        let name = file.to_str().unwrap().rsplit_once("crates/").unwrap().1;
        let name = name.replacen("core/src/", "", 1).replacen("/src/", "/", 1);
        if ["family/", "verify/"]
            .iter()
            .any(|folder| name.starts_with(folder))
            || name.contains("tests")
        {
            continue;
        }
        let may = |machine: &str| {
            let mut places = OF_ONE_FAMILY
                .iter()
                .filter(|(place, _)| name.starts_with(place));
            places.any(|(_, types)| types.contains(&machine))
        };
        let text = fs::read_to_string(file).unwrap();
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let asked = machines
                .iter()
                .find(|one| line.contains(&format!("::<{one}>")));
            if asked.is_some_and(|machine| !may(machine)) {
                wrong.push(format!("{name}: {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a file is a module of the crate or in its folder.
fn in_folder(file: &Path, module: &str) -> bool {
    let inside = file.strip_prefix(source()).unwrap().with_extension("");
    inside.iter().next().is_some_and(|first| first == module)
}

/// The crates whose modules are many.
const CRATES: [&str; 3] = ["core", "planner", "workload"];

/// The folder of the core's source.
fn source() -> PathBuf {
    source_of("core")
}

fn source_of(crate_name: &str) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.join(crate_name).join("src")
}

/// The first part of a module's name; of the folder of a family, what its machine is stands apart.
fn floor(module: &str) -> &str {
    let mut parts = module.split("::");
    match (parts.next().unwrap(), parts.nth(1)) {
        ("family", Some("machine")) => "machine",
        (first, _) => first,
    }
}

fn sentence(import: &Import) -> String {
    let Import {
        from,
        to,
        line,
        path,
    } = import;
    format!("{from}:{line} imports {to} as `{path}`")
}

#[test]
fn the_test_sees_every_form_of_path() {
    let folder = std::env::temp_dir().join(format!("opticoll-tidy-{}", std::process::id()));
    fs::create_dir_all(folder.join("a")).unwrap();
    let files = [
        ("a.rs", "mod b; mod c; pub use b::B; pub struct A;"),
        (
            "a/b.rs",
            "use super::{A, c::{self, C as D}}; pub struct B; fn f() { c::g(); }",
        ),
        ("a/c.rs", "pub struct C; pub fn g() -> crate::d::D {}"),
        (
            "d.rs",
            "pub struct D; fn f(b: crate::a::B) { /* e::E */ \"e::E\"; 'e'; }
             #[cfg(test)] mod tests { use crate::e::E; }",
        ),
        ("e.rs", "pub struct E;"),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let imports = imports(&folder);
    fs::remove_dir_all(&folder).unwrap();
    let seen: BTreeSet<String> = imports
        .iter()
        .map(|import| format!("{} {}", import.from, import.to))
        .collect();
    let expected = ["a::b a", "a::b a::c", "a::c d", "d a::b"];
    assert_eq!(seen, expected.map(String::from).into());
    let circle = ["a::b", "a::c", "d"].map(String::from).to_vec();
    assert_eq!(circles(&imports), [circle]);
}
