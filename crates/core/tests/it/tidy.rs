//! The architecture's import order: a module may use only those that stand above it.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module of the crate with the modules it may import; what is not listed may not be used.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("spelling", &[]),
    ("spec", &["spelling"]),
    ("units", &["spelling"]),
    ("hash", &[]),
    ("interrupt", &[]),
    ("memory", &[]),
    ("network", &["units"]),
    ("fabric", &["spelling", "spec", "units", "network"]),
    ("collective", &["spelling", "units"]),
    ("schedule", &["collective"]),
    (
        "algorithm",
        &[
            "spelling",
            "spec",
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
    ("route", &["fabric", "schedule"]),
    (
        "wavelength",
        &["spelling", "spec", "fabric", "schedule", "plan", "route"],
    ),
    ("bound", &["units", "network", "fabric", "collective"]),
    ("verify", &["fabric", "collective", "schedule", "plan"]),
    ("outcome", &["units"]),
    (
        "simulate",
        &[
            "spelling",
            "spec",
            "units",
            "hash",
            "network",
            "fabric",
            "collective",
            "schedule",
            "plan",
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
            "route",
            "wavelength",
            "bound",
            "verify",
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
            "verify",
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
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in rust_files(&source) {
        let relative = file.strip_prefix(&source).unwrap();
        let module = relative
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!(
                "{}: module `{module}` has no line in MAY_IMPORT",
                file.display()
            ));
            continue;
        };
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            // Examples in docs are a user's code and may use everything.
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in modules_used(line) {
                seen += 1;
                if used != module
                    && !EVERYWHERE.contains(&used.as_str())
                    && !allowed.contains(&used.as_str())
                {
                    let place = format!("{}:{}", relative.display(), number + 1);
                    wrong.push(format!("{place}: `{module}` may not import `{used}`"));
                }
            }
        }
    }
    assert!(seen > 50, "the test sees imports: {seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn engines_do_not_import_each_other() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/simulate");
    for file in rust_files(&source) {
        let name = file.strip_prefix(&source).unwrap().iter().next().unwrap();
        let engine = name.to_str().unwrap().trim_end_matches(".rs").to_owned();
        if !ENGINES.contains(&engine.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for other in ENGINES.iter().filter(|other| **other != engine) {
            let uses = |line: &&str| line.contains("use ") && line.contains(&format!("{other}::"));
            assert_eq!(text.lines().find(uses), None, "{}", file.display());
        }
    }
}

#[test]
fn the_verifier_shares_no_code_with_what_it_checks() {
    // Beyond imports: of the fabric it reads fields, and does its own arithmetic on the ring.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in rust_files(&source)
        .iter()
        .filter(|file| file.to_str().unwrap().contains("verify"))
    {
        let text = fs::read_to_string(file).unwrap();
        for call in [".hops(", ".channels(", "shorter_way", "uniform_chunk"] {
            assert!(!text.contains(call), "{} calls {call}", file.display());
        }
    }
}

/// The modules named after `crate::` on a line, also in `crate::{a, b}`.
fn modules_used(line: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        let list = rest.strip_prefix('{').unwrap_or(rest);
        let names = if rest.starts_with('{') {
            list.split('}').next().unwrap_or("")
        } else {
            list
        };
        let parts: Vec<&str> = if rest.starts_with('{') {
            names.split(',').collect()
        } else {
            vec![names]
        };
        for part in parts {
            let name: String = part
                .trim()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            if !name.is_empty() {
                used.push(name);
            }
        }
    }
    used
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
