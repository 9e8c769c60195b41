//! In a binary with `harness = false` the compiler drops functions that are marked `#[test]`, without a word: their tests would
//! never run. Such binaries list their tests instead.

use std::path::{Path, PathBuf};

/// Names of the test binaries of a manifest that have no built-in harness.
fn own_harness<'a>(manifest: &'a str) -> Vec<&'a str> {
    let sections = manifest.split("\n[").filter_map(|section| section.strip_prefix("[test]]"));
    let own = sections.filter(|section| section.lines().any(|line| line.starts_with("harness = false")));
    let name = |line: &'a str| line.strip_prefix("name = \"")?.strip_suffix('"');
    own.filter_map(|section| section.lines().find_map(name)).collect()
}

/// The sources of a binary: a file, or those in the folder of its name.
fn sources(file: PathBuf) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(file.with_extension("")).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = inside.chain([file]).filter(|path| path.is_file()).collect();
    assert!(!files.is_empty(), "a binary has sources");
    files
}

#[test]
fn binaries_that_list_their_tests_mark_none() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut seen = 0;
    for folder in std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        for name in own_harness(&manifest) {
            for source in sources(folder.join("tests").join(name).with_extension("rs")) {
                let text = std::fs::read_to_string(&source).unwrap();
                let marked = text.lines().position(|line| line.trim() == "#[test]").map(|line| line + 1);
                assert_eq!(marked, None, "{}: the test marked in this line would never run", source.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "no such binary was found, so nothing was checked");
}
