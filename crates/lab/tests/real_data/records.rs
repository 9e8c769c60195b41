//! Recorded results name the build that made them: a commit without changes, which a reader finds in the history.

use minvel_testing::{Need, Test, test};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is wrong with the build that a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flaw {
    /// No commit is named.
    Unnamed,
    /// Files had changed since the commit.
    Unclean,
    /// The commit is not in the history.
    Unknown,
}

pub fn tests() -> Vec<Test> {
    vec![
        test!(recorded_results_name_a_clean_commit),
        test!(commits_of_recorded_results_are_in_the_history).needs(history()),
        test!(flaws_are_told_apart),
    ]
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(docs()).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// All commits up to this one. A shallow clone does not have them, an export without .git has none.
fn history() -> Need {
    let whole = git(&["rev-parse", "--is-shallow-repository"]).as_deref() == Some("false");
    // an export may lie inside another repository
    let ours = git(&["ls-files", "--error-unmatch", "results/README.md"]).is_some();
    let remedy = "clone the repository with git; git fetch --unshallow completes a shallow clone";
    Need { what: "the history of the repository".into(), here: whole && ours, remedy: remedy.into(), required: None }
}

/// The revisions that a record names: of the run, of its report and of its units.
struct Record {
    name: String,
    revisions: BTreeSet<String>,
}

impl Record {
    fn flaws(&self, is_known: impl Fn(&str) -> bool) -> BTreeSet<Flaw> {
        if self.revisions.is_empty() {
            return BTreeSet::from([Flaw::Unnamed]);
        }
        let flaw = |revision: &String| {
            let commit = revision.trim_end_matches('+');
            let clean = commit == revision && commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit());
            [(!clean).then_some(Flaw::Unclean), (!is_known(commit)).then_some(Flaw::Unknown)]
        };
        self.revisions.iter().flat_map(flaw).flatten().collect()
    }
}

fn json(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

fn revision(value: &Value) -> Option<String> {
    let named = ["revision", "commit"].iter().find_map(|key| value[key].as_str());
    named.filter(|name| !name.is_empty()).map(str::to_string)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    paths
}

/// Folders below that hold a run or a report.
fn collect(folder: &Path, found: &mut Vec<Record>) {
    let own: Vec<Value> = ["run.json", "report.json"].iter().filter_map(|name| json(&folder.join(name))).collect();
    if !own.is_empty() {
        let units = entries(&folder.join("units")).into_iter().filter_map(|path| json(&path));
        let revisions = own.into_iter().chain(units).filter_map(|value| revision(&value)).collect();
        found.push(Record { name: name_of(folder), revisions });
    }
    entries(folder).iter().filter(|path| path.is_dir()).for_each(|path| collect(path, found));
}

fn name_of(path: &Path) -> String {
    let inside = path.strip_prefix(docs()).expect("it is below docs");
    inside.to_string_lossy().replace('\\', "/")
}

/// Results, and benchmarks that name a commit.
fn records() -> Vec<Record> {
    let mut found = vec![];
    collect(&docs().join("results"), &mut found);
    assert!(found.len() >= 10, "the search finds {} results only", found.len());
    for path in entries(&docs().join("benchmarks")).iter().filter(|path| path.extension().is_some_and(|e| e == "json"))
    {
        if let Some(revision) = json(path).as_ref().and_then(revision) {
            found.push(Record { name: name_of(path), revisions: BTreeSet::from([revision]) });
        }
    }
    found
}

/// No record has one of these flaws.
fn check(of: &[Flaw], is_known: impl Fn(&str) -> bool) {
    for record in records() {
        let flaws: Vec<Flaw> = record.flaws(&is_known).into_iter().filter(|flaw| of.contains(flaw)).collect();
        let Record { name, revisions } = record;
        assert!(
            flaws.is_empty(),
            "docs/{name} is {flaws:?} (revisions {revisions:?}): make it with a build of a clean commit of the main branch"
        );
    }
}

fn recorded_results_name_a_clean_commit() {
    check(&[Flaw::Unnamed, Flaw::Unclean], |_| true);
}

fn commits_of_recorded_results_are_in_the_history() {
    check(&[Flaw::Unknown], |commit| git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_some());
}

/// The twin: each flaw is seen where it is, and a good record has none.
fn flaws_are_told_apart() {
    let flaws = |revisions: &[&str]| {
        let revisions = revisions.iter().map(|r| r.to_string()).collect();
        let record = Record { name: "made up".into(), revisions };
        record.flaws(|commit| commit.starts_with("89e9d25")).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(flaws(&["89e9d25e2101"]), []);
    assert_eq!(flaws(&[]), [Flaw::Unnamed]);
    assert_eq!(flaws(&["89e9d25e2101+"]), [Flaw::Unclean]);
    assert_eq!(flaws(&["unknown"]), [Flaw::Unclean, Flaw::Unknown]);
    assert_eq!(flaws(&["89e9d25e2101", "0123456789ab"]), [Flaw::Unknown]);
}
