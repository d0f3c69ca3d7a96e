//! The architecture's import order: a module may use only those that stand above it.

mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::{Import, circles, imports, rust_files};

/// Each module of the crate with the modules it may import; what is not listed may not be used.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("spelling", &[]),
    ("spec", &["spelling"]),
    ("units", &["spelling"]),
    ("hash", &[]),
    ("event", &[]),
    ("graph", &[]),
    ("interrupt", &[]),
    ("memory", &[]),
    ("drawing", &[]),
    ("network", &["units", "drawing"]),
    (
        "fabric",
        &["graph", "spelling", "spec", "units", "drawing", "network"],
    ),
    (
        "machine",
        &[
            "graph", "spelling", "spec", "units", "drawing", "network", "fabric",
        ],
    ),
    ("collective", &["spelling", "units"]),
    ("schedule", &["collective"]),
    (
        "algorithm",
        &[
            "spelling",
            "spec",
            "units",
            "hash",
            "fabric",
            "collective",
            "schedule",
        ],
    ),
    (
        "plan",
        &["spelling", "units", "fabric", "collective", "schedule"],
    ),
    ("place", &[]),
    ("bound", &["units", "network", "fabric", "collective"]),
    (
        "family",
        &[
            "graph",
            "spelling",
            "spec",
            "units",
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
            "spelling",
            "spec",
            "units",
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
        &["fabric", "machine", "collective", "schedule", "plan"],
    ),
    ("table", &["units"]),
    ("outcome", &["units", "table"]),
    (
        "simulate",
        &[
            "event",
            "graph",
            "spelling",
            "spec",
            "units",
            "hash",
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
    (
        "planner",
        &[
            "spelling",
            "spec",
            "units",
            "fabric",
            "collective",
            "schedule",
            "algorithm",
            "plan",
            "place",
            "bound",
            "machine",
            "family",
            "families",
            "verify",
            "table",
            "outcome",
            "simulate",
        ],
    ),
    (
        "workload",
        &[
            "spelling",
            "spec",
            "units",
            "fabric",
            "collective",
            "schedule",
            "algorithm",
            "plan",
            "machine",
            "family",
            "families",
            "verify",
            "table",
            "outcome",
            "simulate",
            "planner",
        ],
    ),
];

/// What every module may use, and what uses nothing.
const EVERYWHERE: &[&str] = &["interrupt", "memory"];

/// Engines inside `simulate` do not import each other.
const ENGINES: &[&str] = &[
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
        if used != module && !EVERYWHERE.contains(&used) && !allowed.contains(&used) {
            wrong.push(sentence(import));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_imports_go_in_a_circle() {
    let imports = imports(&source());
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

#[test]
fn the_verifier_shares_no_code_with_what_it_checks() {
    // Beyond imports: of the fabric it reads fields, and does its own arithmetic on the ring.
    for file in rust_files(&source())
        .iter()
        .filter(|file| file.to_str().unwrap().contains("verify"))
    {
        let text = fs::read_to_string(file).unwrap();
        for call in [".hops(", ".channels(", "shorter_way", "uniform_chunk"] {
            assert!(!text.contains(call), "{} calls {call}", file.display());
        }
    }
}

/// The folder of the crate's source.
fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
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
