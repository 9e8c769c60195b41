//! Every source that the code and docs/math cite is in the bibliography.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Words that look like a key: letters, a year, perhaps letters.
fn keys(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit());
    let is_key = |word: &&str| {
        let author = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let (year, rest) = author.split_at(author.len().min(4));
        let century = year.starts_with("19") || year.starts_with("20");
        author.len() < word.len() && year.len() == 4 && century && rest.chars().all(|c| c.is_ascii_lowercase())
    };
    words.filter(is_key).map(str::to_string).collect()
}

fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of sources can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "md") {
            text.push_str(&fs::read_to_string(&path).expect("a source can be read"));
        }
    }
}

#[test]
fn every_cited_key_is_in_the_bibliography() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let known = keys(&fs::read_to_string(root.join("docs/bibliography.bib")).expect("there is a bibliography"));
    let mut text = String::new();
    sources(&root.join("docs/math"), &mut text);
    for entry in fs::read_dir(root.join("crates")).expect("the folder of crates can be read") {
        sources(&entry.expect("an entry can be read").path().join("src"), &mut text);
    }
    let cited = keys(&text);
    assert!(cited.contains("wang2020mvl"), "the search finds keys");
    let missing: Vec<&String> = cited.difference(&known).collect();
    assert!(missing.is_empty(), "add to docs/bibliography.bib: {missing:?}");
}
