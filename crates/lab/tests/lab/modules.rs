//! Dependencies point down: no crate has a cycle between its top-level modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which modules of a crate each of them uses, with a place where it does.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// The modules that `lib.rs` declares.
fn declared(lib: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let rest = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
        Some(rest.strip_prefix("mod ")?.strip_suffix(';')?.to_string())
    };
    lib.lines().filter_map(name).collect()
}

/// Where `lib.rs` has the items that it re-exports: `crate::Error` is a use of the module `error`.
fn exported(lib: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut homes = BTreeMap::new();
    for statement in statements(lib).filter_map(|s| s.strip_prefix("pub use ").map(str::to_string)) {
        for path in paths(&statement) {
            let (module, item) = (path.first().cloned(), path.last().cloned());
            if let (Some(module), Some(item)) = (module.filter(|m| modules.contains(m)), item) {
                homes.insert(item, module);
            }
        }
    }
    homes
}

/// Code without comments and text, each statement of `use` in one line.
fn statements(text: &str) -> impl Iterator<Item = String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("").trim()).collect();
    let (mut all, mut open): (Vec<String>, Option<String>) = (vec![], None);
    for line in code {
        let begins =
            ["use ", "pub use ", "pub(crate) use ", "pub(super) use "].iter().any(|word| line.starts_with(word));
        let whole = open.take().map_or(line.to_string(), |before| before + line);
        let unfinished = (begins || whole.starts_with("use ") || whole.starts_with("pub")) && !whole.ends_with(';');
        if unfinished && whole.contains("use ") { open = Some(whole) } else { all.push(whole) }
    }
    all.into_iter()
}

/// The paths of a tree as `a::{b, c::d}`, each as a list of names.
fn paths(tree: &str) -> Vec<Vec<String>> {
    fn below(tree: &str, prefix: &[String], all: &mut Vec<Vec<String>>) {
        let (mut depth, mut start) = (0, 0);
        for (at, c) in tree.char_indices().chain([(tree.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    branch(tree[start..at].trim(), prefix, all);
                    start = (at + 1).min(tree.len());
                }
                _ => {}
            }
        }
    }
    fn branch(part: &str, prefix: &[String], all: &mut Vec<Vec<String>>) {
        let (path, inner) = match part.split_once('{') {
            Some((path, rest)) => (path, rest.strip_suffix('}')),
            None => (part, None),
        };
        let names = path.split("::").map(|name| name.split(" as ").next().unwrap_or("").trim());
        let mut whole = prefix.to_vec();
        whole.extend(names.filter(|name| !name.is_empty()).map(str::to_string));
        match inner {
            Some(inner) => below(inner, &whole, all),
            None if whole.is_empty() => {}
            None => all.push(whole),
        }
    }
    let mut all = vec![];
    below(tree.trim_end_matches(';'), &[], &mut all);
    all
}

/// The first names of paths from the root of the crate in a line of code: `crate::a::b` and `use crate::{a, b::c}`.
fn used(statement: &str) -> Vec<String> {
    let mut names = vec![];
    for (at, found) in statement.match_indices("crate::") {
        let before = statement[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &statement[at + found.len()..];
        if rest.starts_with('{') {
            names.extend(paths(rest).into_iter().filter_map(|path| path.into_iter().next()));
        } else {
            names.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn uses_of(name: &str) -> Uses {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).expect("a crate has a lib.rs");
    let modules = declared(&lib);
    let homes = exported(&lib, &modules);
    let (mut files, mut uses) = (vec![], Uses::new());
    sources(&src, &mut files);
    files.sort();
    for file in files {
        let path = file.strip_prefix(&src).expect("it is below the folder");
        let own = path.iter().next().expect("a path has a part").to_string_lossy().trim_end_matches(".rs").to_string();
        let text = fs::read_to_string(&file).expect("a source can be read");
        // tests inside a source may use anything
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or("").to_string();
        for name in statements(&text).flat_map(|statement| used(&statement)) {
            let module = if modules.contains(&name) { Some(&name) } else { homes.get(&name) };
            if let Some(module) = module.filter(|module| **module != own) {
                let place = format!("{} uses `crate::{name}`", path.display());
                uses.entry(own.clone()).or_default().entry(module.clone()).or_insert(place);
            }
        }
    }
    uses.remove("lib");
    uses
}

/// A cycle, as the uses that close it.
fn cycle(uses: &Uses) -> Option<Vec<String>> {
    fn visit<'a>(at: &'a str, uses: &'a Uses, path: &mut Vec<&'a str>, done: &mut BTreeSet<&'a str>) -> bool {
        if path.contains(&at) {
            path.push(at);
            return true;
        }
        if done.contains(at) {
            return false;
        }
        path.push(at);
        let next = uses.get(at).into_iter().flat_map(|of| of.keys());
        for next in next {
            if visit(next, uses, path, done) {
                return true;
            }
        }
        path.pop();
        done.insert(at);
        false
    }
    let mut done = BTreeSet::new();
    for start in uses.keys() {
        let mut path = vec![];
        if visit(start, uses, &mut path, &mut done) {
            let last = path[path.len() - 1];
            let from = path.iter().position(|name| *name == last).expect("the last closes the cycle");
            let step = |pair: &[&str]| format!("{} → {}: {}", pair[0], pair[1], uses[pair[0]][pair[1]]);
            return Some(path[from..].windows(2).map(step).collect());
        }
    }
    None
}

#[test]
fn modules_of_a_crate_use_each_other_in_one_direction_only() {
    for name in ["engine", "minvel", "lab"] {
        let uses = uses_of(name);
        let count: usize = uses.values().map(BTreeMap::len).sum();
        println!("{name}: {} modules use others, {count} uses", uses.len());
        assert!(count > 5, "the search finds {count} uses in crates/{name} only");
        let found = cycle(&uses);
        assert!(found.is_none(), "crates/{name} has a cycle of modules:\n{}", found.unwrap_or_default().join("\n"));
    }
}

/// The twin: cycles are found, however they are written.
#[test]
fn a_cycle_of_modules_is_found() {
    let modules = |pairs: &[(&str, &str)]| -> Uses {
        let mut uses = Uses::new();
        for (own, text) in pairs {
            for name in statements(text).flat_map(|statement| used(&statement)) {
                uses.entry(own.to_string()).or_default().insert(name, String::new());
            }
        }
        uses
    };
    let straight = [("a", "use crate::{\n    b::X,\n    c,\n};"), ("b", "fn f(x: crate::c::Y) {} // crate::a")];
    assert!(cycle(&modules(&straight)).is_none());
    let back = [straight[0], straight[1], ("c", "let x = crate::a::new();")];
    assert_eq!(cycle(&modules(&back)).map(|c| c.len()), Some(3));
    assert_eq!(exported("mod a;\npub use a::{B, c::D as E};", &declared("mod a;")).len(), 2);
}
