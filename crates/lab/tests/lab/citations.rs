//! Every section, fact and erratum that is cited is in docs/math, every fact has a test, and nothing outside the repository is
//! cited.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A file of the repository that is text: where it is, relative to the root, and what it says.
struct File {
    path: PathBuf,
    text: String,
}

impl File {
    fn has(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|e| e == extension)
    }

    fn is_prose(&self) -> bool {
        ["md", "toml", "json", "bib"].iter().any(|e| self.has(e))
    }

    /// What people read of a line: all of it, or the comment of a line of Rust.
    fn words<'a>(&self, line: &'a str) -> &'a str {
        if self.has("rs") { line.find("//").map_or("", |at| &line[at..]) } else { line }
    }

    fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path.display(), line + 1)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files of text in the folders that git has, and beside them.
fn files() -> Vec<File> {
    let mut found = vec![];
    for folder in ["crates", "docs", "bench", "fuzz", "python"] {
        collect(&root().join(folder), &mut found);
    }
    let beside =
        fs::read_dir(root()).expect("the repository can be read").map(|e| e.expect("an entry can be read").path());
    beside.filter(|p| p.extension().is_some_and(|e| e == "md")).for_each(|p| read(&p, &mut found));
    assert!(found.len() > 300, "the search finds {} files only", found.len());
    found
}

fn collect(folder: &Path, found: &mut Vec<File>) {
    let left_out = ["target", "__pycache__", "runs"];
    let environment = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".venv"));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            if !environment(&path) && !left_out.iter().any(|name| path.ends_with(name)) {
                collect(&path, found);
            }
        } else {
            read(&path, found);
        }
    }
}

fn read(path: &Path, found: &mut Vec<File>) {
    if let Ok(text) = String::from_utf8(fs::read(path).expect("a file can be read")) {
        let path = path.strip_prefix(root()).expect("it is below the root").to_path_buf();
        found.push(File { path, text });
    }
}

/// The number of a section at the start of a text: `2`, `2.13` or `6.F`.
fn section(text: &str) -> Option<&str> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let chapter = digits(text);
    let rest = text[chapter..].strip_prefix('.').unwrap_or("");
    let letter = usize::from(rest.starts_with(|c: char| c.is_ascii_uppercase()));
    let part = digits(rest).max(letter);
    (chapter > 0).then(|| &text[..if part > 0 { chapter + 1 + part } else { chapter }])
}

/// `F12` or `P5` as a whole word, not in quotes or a path of code.
fn marks(text: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c: char| !word(c)).filter(move |mark| {
        let number = mark.strip_prefix(['F', 'P']).unwrap_or("");
        let before = text[..mark.as_ptr() as usize - text.as_ptr() as usize].chars().next_back();
        let plain = !matches!(before, Some('"' | '`' | ':' | '\\'));
        plain && (1..=2).contains(&number.len()) && number.bytes().all(|c| c.is_ascii_digit())
    })
}

/// The sections of docs/math by number, with the file of each; and its facts and errata.
fn chapters(files: &[File]) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let (mut sections, mut rows) = (BTreeMap::new(), BTreeSet::new());
    for file in files.iter().filter(|f| f.path.starts_with("docs/math")) {
        let name = file.path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        for line in file.text.lines() {
            if let Some(number) = line.strip_prefix('#').and_then(|l| section(l.trim_start_matches(['#', ' ']))) {
                let double = sections.insert(number.to_string(), name.clone());
                assert!(double.is_none(), "docs/math has two sections {number}");
            }
            let first = line.strip_prefix("| ").and_then(|l| l.split(' ').next()).unwrap_or("");
            if marks(first).next() == Some(first) {
                assert!(rows.insert(first.to_string()), "docs/math has two rows {first}");
            }
        }
    }
    assert!(sections.contains_key("2.13") && rows.contains("F56") && rows.contains("P5"), "the search finds rows");
    (sections, rows)
}

fn assert_none(wrong: Vec<String>, advice: &str) {
    assert!(wrong.is_empty(), "{advice}:\n{}", wrong.join("\n"));
}

#[test]
fn every_cited_section_fact_and_erratum_exists() {
    let files = files();
    let (sections, rows) = chapters(&files);
    let (mut wrong, mut cited) = (vec![], 0);
    for file in &files {
        for (k, line) in file.text.lines().enumerate() {
            for number in line.split('§').skip(1).filter_map(section) {
                cited += 1;
                if !sections.contains_key(number) {
                    wrong.push(file.at(k, &format!("§{number}")));
                }
            }
            if line.split("docs/math ").skip(1).any(|rest| section(rest).is_some()) {
                wrong.push(file.at(k, "a section of docs/math without its sign §"));
            }
            if file.has("rs") || file.has("md") || file.has("toml") {
                let missing = marks(file.words(line)).filter(|mark| !rows.contains(*mark));
                wrong.extend(missing.map(|mark| file.at(k, mark)));
            }
        }
    }
    assert!(cited > 150, "the search finds {cited} citations only");
    assert_none(wrong, "docs/math does not contain");
}

#[test]
fn a_section_is_in_the_file_of_its_chapter() {
    let (sections, _) = chapters(&files());
    for (number, file) in sections {
        let chapter = number.split('.').next().expect("a number has a first part");
        let own = if chapter == "0" { file == "README.md" } else { file.starts_with(&format!("{chapter}-")) };
        assert!(own, "§{number} is in {file}");
    }
}

#[test]
fn every_fact_has_a_test_and_every_test_of_a_fact_or_erratum_has_its_row() {
    let files = files();
    let (_, rows) = chapters(&files);
    let mut tested = BTreeSet::new();
    for file in files.iter().filter(|f| f.has("rs")) {
        for name in file.text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")) {
            if let Some(numbers) = name.strip_prefix("fact_") {
                let numbers = numbers.split('_').map_while(|n| n.parse::<u32>().ok());
                tested.extend(numbers.map(|n| format!("F{n}")));
            }
            if let Some((_, rest)) = name.split_once("erratum_p") {
                tested.extend(rest.split('_').next().map(|n| format!("P{n}")));
            }
        }
    }
    assert_none(tested.difference(&rows).cloned().collect(), "docs/math has no row for these tests");
    let untested = rows.iter().filter(|row| row.starts_with('F') && !tested.contains(*row));
    assert_none(untested.cloned().collect(), "no test is named after these facts (fact_12_…)");
}

/// Paths `tests/….rs` in a line, with the crate that some name.
fn tests_named(line: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    line.split(move |c: char| !part(c)).map(|path| path.trim_end_matches('.')).filter(|path| {
        let whole = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map_or(*path, |(_, rest)| rest);
        whole.starts_with("tests/") && path.ends_with(".rs") && !path.contains('*')
    })
}

#[test]
fn every_test_that_a_source_names_exists() {
    let (mut wrong, mut named) = (vec![], 0);
    for file in files().iter().filter(|f| f.has("rs")) {
        let own = file.path.ancestors().find(|folder| root().join(folder).join("Cargo.toml").is_file());
        for (k, line) in file.text.lines().enumerate() {
            for path in tests_named(file.words(line)) {
                named += 1;
                let folders = [own.unwrap_or(Path::new("")), Path::new("")];
                if !folders.iter().any(|folder| root().join(folder).join(path).is_file()) {
                    wrong.push(file.at(k, path));
                }
            }
        }
    }
    assert!(named > 150, "the search finds {named} tests only");
    assert_none(wrong, "these tests do not exist (tests/… of the crate, or crates/NAME/tests/…)");
}

#[test]
fn nothing_outside_the_repository_is_cited() {
    // Notes of the authors that readers do not have, in capitals, and the folders where they are.
    let notes = ["methods", "design", "benchmarks"].map(str::to_uppercase);
    let folders = [["shared", "spec"].join("/"), ["", "work", ""].join("/")];
    let mut wrong = vec![];
    for file in files() {
        for (k, line) in file.text.lines().enumerate() {
            for note in &notes {
                for (at, _) in line.match_indices(note.as_str()) {
                    let (before, after) = (&line[..at], &line[at + note.len()..]);
                    let word = |c: char| c.is_alphanumeric() || c == '_';
                    let part = before.ends_with(word) || after.starts_with(word) || before.ends_with("::");
                    let numbered = after.strip_prefix(' ').is_some_and(|a| a.starts_with(|c: char| c.is_ascii_digit()));
                    let quoted = before.matches('"').count() % 2 == 1;
                    let commented = file.has("rs") && (before.contains("//") || quoted);
                    if !part && (file.is_prose() || numbered || commented) {
                        wrong.push(file.at(k, note));
                    }
                }
            }
            // A path of a machine begins a word; `killed/work/` does not.
            let outside = folders.iter().filter(|f| {
                line.match_indices(f.as_str())
                    .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '}'))
            });
            wrong.extend(outside.map(|folder| file.at(k, folder)));
        }
    }
    assert_none(wrong, "readers of the repository cannot open this; cite docs/math or the bibliography");
}

#[test]
fn links_between_pages_lead_to_files_of_the_repository() {
    let mut wrong = vec![];
    for file in files().iter().filter(|f| f.has("md")) {
        let folder = file.path.parent().expect("a file is in a folder");
        for (k, line) in file.text.lines().enumerate() {
            for target in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
                let elsewhere = target.contains("://") || target.starts_with("mailto:");
                let inside = relative(&folder.join(target)).is_some_and(|path| root().join(path).exists());
                if !target.is_empty() && !elsewhere && !inside {
                    wrong.push(file.at(k, target));
                }
            }
        }
    }
    assert_none(wrong, "these links lead nowhere");
}

/// The path without `..`, unless it leaves the repository.
fn relative(path: &Path) -> Option<PathBuf> {
    path.components().try_fold(PathBuf::new(), |mut clean, part| match part {
        Component::ParentDir => clean.pop().then_some(clean),
        Component::Normal(name) => {
            clean.push(name);
            Some(clean)
        }
        Component::CurDir => Some(clean),
        _ => None,
    })
}
