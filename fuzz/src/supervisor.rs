//! The process that starts workers, sees how they end, and writes the table.

use crate::targets::Target;
use crate::worker::{HUNG, MOST_MEMORY};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// After so many ends of its worker a target is given up.
const MOST_ENDS: usize = 20;

/// Where findings are kept.
const FINDINGS: &str = "target/fuzz/findings";

/// What every target is run with.
pub struct Run {
    pub seconds: f64,
    pub seed: u64,
}

/// Where workers write their inputs: in memory, where there is such a place.
fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// What came of a target.
#[derive(Default)]
pub struct Row {
    name: &'static str,
    seconds: f64,
    executions: u64,
    /// Inputs of which something came out.
    accepted: u64,
    /// Panics and aborts at different places.
    crashes: usize,
    hangs: usize,
    /// Inputs that took more memory than they may.
    excesses: usize,
    peak: usize,
    slowest: u64,
    corpus: usize,
    edges: usize,
}

impl Row {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.crashes + self.hangs + self.excesses == 0 && self.executions > 0
    }
}

impl Run {
    /// Runs a target until its time is over.
    pub fn target(&self, target: &'static Target) -> Row {
        let mut row = Row { name: target.name, ..Row::default() };
        let begun = Instant::now();
        let mut ends = 0;
        while begun.elapsed().as_secs_f64() + 0.5 < self.seconds && ends < MOST_ENDS {
            let left = self.seconds - begun.elapsed().as_secs_f64();
            let folder = scratch().join(format!("minvel-fuzz-{}-{}-{ends}", target.name, std::process::id()));
            if let Err(e) = fs::create_dir_all(&folder) {
                eprintln!("error: cannot create {}: {e}", folder.display());
                return row;
            }
            row.worker(target, &folder, left, self.seed + ends as u64);
            let _ = fs::remove_dir_all(&folder);
            ends += 1;
        }
        row.seconds = begun.elapsed().as_secs_f64();
        println!("{}", row.line());
        row
    }
}

impl Row {
    /// Runs a worker to its end and adds what it found.
    fn worker(&mut self, target: &'static Target, folder: &Path, seconds: f64, seed: u64) {
        let program = std::env::current_exe().expect("this program is a file");
        let mut command = Command::new(program);
        command.arg("--worker").arg(folder).arg("--seconds").arg(seconds.to_string());
        command.arg("--seed").arg(seed.to_string()).arg(target.name).env("RUST_BACKTRACE", "0");
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
        let output = output.expect("a program that runs can be started");
        self.count(folder);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => {}
            Some(HUNG) => {
                self.hangs += 1;
                self.keep(&folder.join("current"), "hang", "an input took too long");
            }
            _ => {
                self.crashes += 1;
                let why: Vec<&str> = errors.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).collect();
                let what = format!("the process ended ({}): {}", output.status, why.join("; "));
                self.keep(&folder.join("current"), "abort", &what);
            }
        }
        for number in 1.. {
            let Ok(what) = fs::read_to_string(folder.join(format!("finding-{number}.txt"))) else { break };
            let kind = if what.starts_with("memory") { "memory" } else { "panic" };
            match kind {
                "memory" => self.excesses += 1,
                _ => self.crashes += 1,
            }
            self.keep(&folder.join(format!("finding-{number}.bin")), kind, &what);
        }
    }

    /// Adds what the worker told last.
    fn count(&mut self, folder: &Path) {
        let text = fs::read_to_string(folder.join("tally")).unwrap_or_default();
        let numbers: Vec<u64> = text.split(' ').filter_map(|n| n.parse().ok()).collect();
        if let [executions, accepted, peak, slowest, corpus, edges] = numbers[..] {
            self.executions += executions;
            self.accepted += accepted;
            self.peak = self.peak.max(peak as usize);
            self.slowest = self.slowest.max(slowest);
            self.corpus = self.corpus.max(corpus as usize);
            self.edges = self.edges.max(edges as usize);
        }
    }

    /// Keeps an input for somebody to look at.
    fn keep(&self, input: &Path, kind: &str, what: &str) {
        let number = self.crashes + self.hangs + self.excesses;
        let path = PathBuf::from(FINDINGS).join(format!("{}-{kind}-{number}.bin", self.name));
        let kept = fs::create_dir_all(FINDINGS).and_then(|()| fs::copy(input, &path));
        println!("{}: {kind}: {what}", self.name);
        match kept {
            Ok(_) => println!("  replay with: fuzz/run --replay {} {}", path.display(), self.name),
            Err(e) => println!("  the input could not be kept: {e}"),
        }
    }

    fn line(&self) -> String {
        let Row { name, seconds, executions, crashes, hangs, excesses, .. } = self;
        format!(
            "{name}: {executions} executions in {seconds:.0} s ({} accepted), {crashes} crashes, {hangs} hangs, {excesses} with too much memory, \
             {} MB at most, {} ms at most, corpus of {}",
            self.accepted,
            self.peak >> 20,
            self.slowest,
            self.corpus
        )
    }
}

/// The results in Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| target | seconds | executions | accepted | crashes | hangs | over the memory bound | peak memory | slowest input | inputs kept |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let peak = row.peak as f64 / (1 << 20) as f64;
        out += &format!(
            "| {} | {:.0} | {} | {} | {} | {} | {} | {peak:.1} MiB | {} ms | {} |\n",
            row.name,
            row.seconds,
            row.executions,
            row.accepted,
            row.crashes,
            row.hangs,
            row.excesses,
            row.slowest,
            row.corpus
        );
    }
    out
}

const BEGIN: &str = "<!-- fuzz: begin -->";
const END: &str = "<!-- fuzz: end -->";

/// Puts the table between the marks of a file.
pub fn write_table(path: &Path, rows: &[Row]) -> Result<(), String> {
    let failed = |e| format!("{}: {e}", path.display());
    let text = fs::read_to_string(path).map_err(failed)?;
    let missing = || format!("{} has no marks {BEGIN} and {END}", path.display());
    let (before, rest) = text.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let git = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=10"]).output();
    let commit = git.map_or(String::new(), |out| String::from_utf8_lossy(&out.stdout).trim().to_string());
    let guided = match rows.iter().any(|row| row.edges > 0) {
        true => "with coverage guidance",
        false => "without coverage guidance",
    };
    let bound = MOST_MEMORY >> 20;
    let made = format!(
        "Commit `{commit}`, {guided}, limit {} MiB, memory bound {bound} MiB.\n\n{}",
        crate::worker::LIMIT >> 20,
        table(rows)
    );
    fs::write(path, format!("{before}{BEGIN}\n{made}{END}{after}")).map_err(failed)
}
