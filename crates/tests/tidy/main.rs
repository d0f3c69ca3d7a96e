//! Rules of the crates beyond Cargo.toml: circles of imports, engines, calls of the verifier.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the product, without its facade and the binding.
const CRATES: &str =
    "base fabric plan algorithms program verify bounds placement simulate planner workload";

/// A module, its crate first, such as `["simulate", "fluid", "engine"]`.
type Module = Vec<String>;

/// Returns the modules of a crate and their code: no comments, no test modules.
fn modules(of_crate: &str, folder: &Path) -> Vec<(Module, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let root = crates.join(of_crate).join("src");
    let mut modules = Vec::new();
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            modules.extend(self::modules(of_crate, &path));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            let inside = path.strip_prefix(&root).unwrap().with_extension("");
            let inside = inside.to_str().unwrap().split('/');
            let name = [of_crate]
                .into_iter()
                .chain(inside.filter(|part| *part != "lib"));
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = code.lines();
            let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
            let code = lines.collect::<Vec<_>>().join("\n");
            modules.push((name.map(str::to_owned).collect(), code));
        }
    }
    modules
}

/// Returns the module paths in a tree such as `a::{b::C, d}`: `a::b` and `a::d`.
fn paths(tree: &str) -> Vec<Vec<String>> {
    if let Some(inside) = tree.strip_prefix('{') {
        let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
        for (at, letter) in inside.char_indices() {
            if depth == 0 && (letter == ',' || letter == '}') {
                found.extend(paths(inside[begin..at].trim_start()));
                begin = at + 1;
            }
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            if depth < 0 {
                break;
            }
        }
        return found;
    }
    let end = tree.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let (word, rest) = tree.split_at(end.unwrap_or(tree.len()));
    if !word.starts_with(char::is_lowercase) {
        return vec![Vec::new()];
    }
    let after = rest.strip_prefix("::").map_or(vec![Vec::new()], paths);
    let with_word = |path: Vec<String>| [vec![word.to_owned()], path].concat();
    after.into_iter().map(with_word).collect()
}

/// Returns the imports by `crate` or `super`: the importing module and the path that it names.
fn imports(of_crate: &str) -> Vec<(Module, Module)> {
    let mut imports = Vec::new();
    for (from, code) in modules(of_crate, Path::new("")) {
        let begins = code.match_indices("crate::");
        for (at, _) in begins.chain(code.match_indices("super::")) {
            let (mut target, mut tree) = match code[at..].strip_prefix("crate::") {
                Some(tree) => (vec![of_crate.to_owned()], tree),
                // A chain of `super` counts once, from its beginning.
                None if code[..at].ends_with("super::") => continue,
                None => (from.clone(), &code[at..]),
            };
            while let Some(rest) = tree.strip_prefix("super::") {
                target.pop();
                tree = rest;
            }
            for path in paths(tree) {
                imports.push((from.clone(), [target.clone(), path].concat()));
            }
        }
    }
    imports
}

#[test]
fn no_imports_between_siblings_go_in_a_circle() {
    for of_crate in CRATES.split(' ') {
        // The two modules of one folder in which an import begins and ends.
        let mut edges = BTreeSet::new();
        for (from, to) in imports(of_crate) {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if from.len() > shared && to.len() > shared {
                edges.insert((from[..=shared].to_vec(), to[..=shared].to_vec()));
            }
        }
        assert!(of_crate != "simulate" || edges.len() > 30, "{edges:?}");
        // Modules that import nothing that is left are taken away; what stays imports itself.
        let mut before = 0;
        while before != edges.len() {
            before = edges.len();
            let importing: BTreeSet<_> = edges.iter().map(|(from, _)| from.clone()).collect();
            edges.retain(|(_, to)| importing.contains(to));
        }
        assert!(edges.is_empty(), "circles: {edges:?}");
    }
}

#[test]
fn engines_do_not_import_each_other() {
    let engines = "bulk_synchronous burst circuit control on_demand fluid packet";
    let engines: BTreeSet<_> = engines.split(' ').map(str::to_owned).collect();
    let engine = |module: &Module| module.get(1).and_then(|name| engines.get(name)).cloned();
    for (from, to) in imports("simulate") {
        let pair = engine(&from).zip(engine(&to));
        assert!(pair.is_none_or(|(a, b)| a == b), "{from:?} imports {to:?}");
    }
}

/// Methods of machines that return written fields, capabilities, the routes that are part of the
/// machine, or names of links and vertices, or that have the name of a method of plans.
const WRITTEN_DOWN: &str = "ranks family name light has_light downcast value millionths \
                            is_same_machine \
                            leads_both_ways network links length ends columns count \
                            circuits fibre_links link_name vertex_name route switch_work \
                            outside packet";

#[test]
fn the_verifier_calls_no_method_of_a_machine_that_computes() {
    let mut methods = BTreeSet::from(["uniform_chunk_bytes".to_owned()]);
    for (module, code) in modules("fabric", Path::new("")) {
        let name = module[1..].join("::");
        let capabilities = "network fabric::circuits fabric::groups fabric::light fabric::planes";
        if name.starts_with("family::") || capabilities.split(' ').any(|one| one == name) {
            let functions = code.split("fn ").skip(1);
            let functions = functions.filter_map(|rest| rest.split_once('('));
            let of_values = functions.filter(|(_, rest)| rest.trim_start().starts_with("&self"));
            methods.extend(of_values.map(|(name, _)| name.to_owned()));
        }
    }
    assert!(methods.contains("hops"), "{methods:?}");
    methods.retain(|name| WRITTEN_DOWN.split(' ').all(|one| one != name));
    for (module, code) in modules("verify", Path::new("")) {
        let mut methods = methods.iter();
        let called = methods.find(|name| code.contains(&format!(".{name}(")));
        assert!(called.is_none(), "{module:?} calls {called:?}");
    }
}
