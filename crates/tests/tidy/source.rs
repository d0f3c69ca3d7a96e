//! Which module of the crate names which: every path in the code, resolved.
//!
//! A path may begin with `crate`, `super`, `self`, a submodule, or a name that a `use` of the file binds; a
//! re-export counts as the module that declares the name. Paths in comments, strings and test modules do not
//! count, nor does a `pub use` that its own file does not name again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A file of the crate.
#[derive(Default)]
struct Module {
    /// What `use` binds: the name and the path it stands for.
    bound: BTreeMap<String, Vec<String>>,
    /// Paths whose public names a `use ...::*` binds.
    globs: Vec<Vec<String>>,
    /// Names that the file declares.
    declared: BTreeSet<String>,
    /// Paths in the code, absolute where they begin with a keyword, and their lines.
    paths: Vec<(Vec<String>, usize)>,
}

/// One module names another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) line: usize,
    pub(crate) path: String,
}

/// All imports between the files of a source folder; modules are named like `simulate::fluid`.
pub(crate) fn imports(source: &Path) -> BTreeSet<Import> {
    let mut modules = BTreeMap::new();
    for file in rust_files(source) {
        let mut name: Vec<String> = file
            .strip_prefix(source)
            .unwrap()
            .with_extension("")
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        if name == ["lib"] {
            name.clear();
        }
        let tokens = tokens(&fs::read_to_string(&file).unwrap());
        let module = Reader {
            tokens: &tokens,
            at: 0,
            scope: name.clone(),
        }
        .module();
        modules.insert(name, module);
    }
    let tests: Vec<Vec<String>> = modules
        .keys()
        .filter(|name| name.last().is_some_and(|last| last == "tests"))
        .cloned()
        .collect();
    for test in tests {
        modules.remove(&test);
    }
    let mut all = BTreeSet::new();
    for (name, module) in &modules {
        for (path, line) in &module.paths {
            let Some(to) = resolve(&modules, name, path, 0) else {
                continue;
            };
            if to != *name {
                all.insert(Import {
                    from: name.join("::"),
                    to: to.join("::"),
                    line: *line,
                    path: path.join("::"),
                });
            }
        }
    }
    all
}

/// The module that declares what a path names; `None` where the path is no path of the crate, or names a
/// module and nothing in it.
fn resolve(
    modules: &BTreeMap<Vec<String>, Module>,
    here: &[String],
    path: &[String],
    depth: usize,
) -> Option<Vec<String>> {
    assert!(depth < 50, "{path:?} in {here:?} is bound in a circle");
    let first = path.first()?;
    let (mut at, rest) = if first == "crate" {
        (Vec::new(), &path[1..])
    } else {
        let module = &modules[here];
        let child: Vec<String> = here.iter().chain([first]).cloned().collect();
        if let Some(target) = module.bound.get(first) {
            let longer: Vec<String> = target.iter().chain(&path[1..]).cloned().collect();
            return match longer[0] == *first {
                // The name of another crate.
                true => None,
                false => resolve(modules, here, &longer, depth + 1),
            };
        } else if modules.contains_key(&child) {
            (child, &path[1..])
        } else if module.declared.contains(first) {
            return Some(here.to_vec());
        } else {
            let mut globs = module.globs.iter();
            return globs.find_map(|glob| {
                let longer: Vec<String> = glob.iter().chain(path).cloned().collect();
                resolve(modules, here, &longer, depth + 1)
            });
        }
    };
    let mut rest = rest;
    while let Some(next) = rest.first() {
        let child: Vec<String> = at.iter().chain([next]).cloned().collect();
        if !modules.contains_key(&child) {
            break;
        }
        (at, rest) = (child, &rest[1..]);
    }
    let module = modules.get(&at)?;
    let name = rest.first()?;
    if module.declared.contains(name) {
        return Some(at);
    }
    resolve(modules, &at, rest, depth + 1)
}

/// A word or a sign of the code, with its line.
type Token = (String, usize);

/// The words and signs of a file without comments, strings and characters; `::` is one sign.
fn tokens(text: &str) -> Vec<Token> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens: Vec<Token> = Vec::new();
    let (mut at, mut line) = (0, 1);
    let next = |at: usize, ahead: usize| letters.get(at + ahead).copied().unwrap_or('\0');
    while at < letters.len() {
        let begin = at;
        let letter = letters[at];
        let raw = |at: usize| {
            let hashes = letters[at..]
                .iter()
                .take_while(|letter| **letter == '#')
                .count();
            (next(at, hashes) == '"').then_some(hashes)
        };
        if letter == '/' && next(at, 1) == '/' {
            while at < letters.len() && letters[at] != '\n' {
                at += 1;
            }
        } else if letter == '/' && next(at, 1) == '*' {
            at += 2;
            while at < letters.len() && !(letters[at] == '*' && next(at, 1) == '/') {
                at += 1;
            }
            at += 2;
        } else if letter == '"' {
            at += 1;
            while letters[at] != '"' {
                at += if letters[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if letter == 'r' && raw(at + 1).is_some() {
            let hashes = raw(at + 1).unwrap();
            at += hashes + 2;
            while !(letters[at] == '"' && (1..=hashes).all(|ahead| next(at, ahead) == '#')) {
                at += 1;
            }
            at += hashes + 1;
        } else if letter == '\'' {
            if next(at, 1) == '\\' {
                at += 3;
                while letters[at] != '\'' {
                    at += 1;
                }
                at += 1;
            } else if next(at, 2) == '\'' {
                at += 3;
            } else {
                // A lifetime.
                at += 1;
                while next(at, 0).is_alphanumeric() || next(at, 0) == '_' {
                    at += 1;
                }
            }
        } else if letter.is_alphabetic() || letter == '_' {
            while next(at, 0).is_alphanumeric() || next(at, 0) == '_' {
                at += 1;
            }
            // The strings of bytes are read with their quotes.
            tokens.push((letters[begin..at].iter().collect(), line));
        } else if letter == ':' && next(at, 1) == ':' {
            at += 2;
            tokens.push(("::".into(), line));
        } else {
            at += 1;
            if !letter.is_whitespace() {
                tokens.push((letter.to_string(), line));
            }
        }
        line += letters[begin..at.min(letters.len())]
            .iter()
            .filter(|letter| **letter == '\n')
            .count();
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    scope: Vec<String>,
}

impl Reader<'_> {
    fn token(&self, ahead: usize) -> &str {
        self.tokens
            .get(self.at + ahead)
            .map_or("", |token| &token.0)
    }

    fn module(mut self) -> Module {
        let mut module = Module::default();
        let mut exported = BTreeSet::new();
        let mut named = BTreeMap::new();
        while self.at < self.tokens.len() {
            let line = self.tokens[self.at].1;
            let word = self.token(0).to_owned();
            let after_sign =
                self.at > 0 && [".", "::"].contains(&self.tokens[self.at - 1].0.as_str());
            let of_tests = ["#", "[", "cfg", "(", "test", ")", "]"];
            if (0..7).all(|ahead| self.token(ahead) == of_tests[ahead]) {
                self.at += 7;
                self.skip_item();
            } else if word == "use" && self.token(1) != "<" {
                let public =
                    self.at > 0 && ["pub", ")"].contains(&self.tokens[self.at - 1].0.as_str());
                self.at += 1;
                let mut leaves = Vec::new();
                self.tree(&[], &mut leaves);
                for (path, name) in leaves {
                    if name == "*" {
                        module.globs.push(path);
                        continue;
                    }
                    match public {
                        true => _ = exported.insert(name.clone()),
                        false => module.paths.push((path.clone(), line)),
                    }
                    module.bound.insert(name, path);
                }
            } else if [
                "fn", "struct", "enum", "trait", "type", "const", "static", "union",
            ]
            .contains(&word.as_str())
                && is_name(self.token(1))
                && !after_sign
            {
                module.declared.insert(self.token(1).to_owned());
                self.at += 1;
            } else if word == "macro_rules" {
                module.declared.insert(self.token(2).to_owned());
                self.at += 3;
            } else if is_name(&word) && !after_sign {
                let mut path = vec![word];
                self.at += 1;
                while self.token(0) == "::" && is_name(self.token(1)) {
                    path.push(self.token(1).to_owned());
                    self.at += 2;
                }
                if path.len() == 1 {
                    named.entry(path.pop().unwrap()).or_insert(line);
                } else {
                    module.paths.push((self.absolute(path), line));
                }
            } else {
                self.at += 1;
            }
        }
        // A name that is exported and used in the file itself is imported, too.
        for name in exported {
            if let Some(line) = named.get(&name) {
                module.paths.push((module.bound[&name].clone(), *line));
            }
        }
        // So are names that a glob binds.
        if !module.globs.is_empty() {
            module
                .paths
                .extend(named.into_iter().map(|(name, line)| (vec![name], line)));
        }
        module
    }

    /// Skips attributes and an item up to its semicolon or closing brace.
    fn skip_item(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.token(0) {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            let end = depth == 0 && [";", "}"].contains(&self.token(0));
            self.at += 1;
            if end {
                return;
            }
        }
    }

    /// Reads one tree of a `use` and adds what it binds.
    fn tree(&mut self, before: &[String], leaves: &mut Vec<(Vec<String>, String)>) {
        let mut path = before.to_vec();
        loop {
            match self.token(0) {
                "{" => {
                    self.at += 1;
                    while self.token(0) != "}" {
                        self.tree(&path, leaves);
                        if self.token(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    leaves.push((self.absolute(path), "*".into()));
                    return;
                }
                "::" => self.at += 1,
                "as" => {
                    let name = self.token(1).to_owned();
                    self.at += 2;
                    leaves.push((self.absolute(path), name));
                    return;
                }
                word if is_name(word) => {
                    // `self` in braces is the path before them.
                    if word != "self" || before.is_empty() {
                        path.push(word.to_owned());
                    }
                    self.at += 1;
                }
                _ => {
                    let name = path.last().unwrap().clone();
                    leaves.push((self.absolute(path), name));
                    return;
                }
            }
        }
    }

    /// The path with `super` and `self` replaced by where they lead.
    fn absolute(&self, path: Vec<String>) -> Vec<String> {
        let mut scope = self.scope.clone();
        let mut rest = path.as_slice();
        if !["super", "self"].contains(&path[0].as_str()) {
            return path;
        }
        while let Some(word) = rest.first() {
            match word.as_str() {
                "super" => _ = scope.pop(),
                "self" => {}
                _ => break,
            }
            rest = &rest[1..];
        }
        ["crate".to_owned()]
            .into_iter()
            .chain(scope)
            .chain(rest.iter().cloned())
            .collect()
    }
}

/// All Rust files of a folder and its folders, in order.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
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

/// The circles: sets of modules each of which leads to every other by imports, in order. A file may use what
/// the root file of a folder around it declares for all of the folder.
pub(crate) fn circles(imports: &BTreeSet<Import>) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let of_the_folder = |import: &&Import| {
        !import.from.starts_with(&format!("{}::", import.to)) && !import.to.is_empty()
    };
    for import in imports.iter().filter(of_the_folder) {
        next.entry(&import.from).or_default().insert(&import.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|&from| {
            let mut reached = BTreeSet::new();
            let mut open: Vec<&str> = vec![from];
            while let Some(at) = open.pop() {
                for &to in next.get(at).into_iter().flatten() {
                    if reached.insert(to) {
                        open.push(to);
                    }
                }
            }
            (from, reached)
        })
        .collect();
    let leads = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
    for &module in next.keys().filter(|module| leads(module, module)) {
        let members = next
            .keys()
            .filter(|other| leads(module, other) && leads(other, module));
        circles.insert(members.map(|&member| member.to_owned()).collect());
    }
    circles.into_iter().collect()
}
