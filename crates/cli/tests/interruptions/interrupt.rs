//! Ctrl-C and a polite kill end every command within a second, whatever it does and whoever listens.
#![cfg(unix)]

use crate::support::{Folder, Numbers, TINY, error, quakes};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Angles about three places of T⁴: kernels of many neighbours, which take the program a while.
fn angles(rows: usize) -> String {
    let mut numbers = Numbers::new(3);
    let mut text = String::from("a,b,c,d\n");
    for _ in 0..rows {
        let place =
            [[1.0, 2.0, -1.0, 0.0], [0.0, -2.0, 1.0, 2.0], [-2.0, 1.0, 0.0, -1.0]][(3.0 * numbers.uniform()) as usize];
        let cells: Vec<String> = place.iter().map(|x| format!("{:.5}", x + 0.3 * numbers.normal())).collect();
        text += &format!("{}\n", cells.join(","));
    }
    text
}

const MANIFOLD: [&str; 4] = ["--manifold", "torus:4", "--units", "radians"];

fn begin<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fit = ["fit", "angles.csv", "--out", out, "--threads", "1", "--save-every", "0", "--set", "few.rows=0"];
    [&fit, &MANIFOLD[..], &TINY[..], more].concat()
}

fn resume(out: &str) -> [&str; 7] {
    ["fit", "--resume", out, "--threads", "1", "--save-every", "0"]
}

/// A second, and what a machine with other work adds: a program that does nothing takes a few milliseconds on an idle one.
fn limit(folder: &Folder) -> Duration {
    let times: Vec<Duration> = (0..5)
        .map(|_| {
            let begun = Instant::now();
            folder.good(&["--version"]);
            begun.elapsed()
        })
        .collect();
    Duration::from_secs(1) + 10 * times.into_iter().max().unwrap()
}

fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Sends a signal and waits; how it ended, and after how long.
fn end(signal: &str, mut child: Child) -> (ExitStatus, Duration) {
    let begun = Instant::now();
    send(signal, &child);
    (child.wait().unwrap(), begun.elapsed())
}

/// Waits for something of a running child.
fn wait_until(child: &mut Child, what: &str, there: impl Fn() -> bool) {
    let latest = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < latest && child.try_wait().unwrap().is_none(), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The kernels of 24 000 rows on T⁴ once took the first Ctrl-C 77 s to be heard.
#[test]
fn signals_at_random_moments_end_a_fit_within_a_second_and_change_no_bit() {
    let folder = Folder::new("signals");
    folder.file("angles.csv", angles(1500));
    let begun = Instant::now();
    folder.good(&begin("whole", &[]));
    let duration = begun.elapsed().as_secs_f64();
    let model = |out: &str| std::fs::read(folder.path(out).join("model.safetensors")).unwrap();

    let mut numbers = Numbers::new(1);
    let (mut longest, mut sent, mut arguments) = (Duration::ZERO, 0, begin("parts", &[]));
    loop {
        let mut child = folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // early at first, since the whole fit may have been slowed down by its neighbours; later and later, so that it ends
        let wait = duration * numbers.uniform() * (0.1 + 0.05 * sent as f64);
        std::thread::sleep(Duration::from_secs_f64(wait));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break;
        }
        let allowed = limit(&folder);
        let (status, taken) = end(["-INT", "-TERM"][sent % 2], child);
        if status.success() {
            break; // it was at its end
        }
        let claimed = folder.path("parts/run.json").exists();
        // before it listens, the signal itself ends it
        assert!(status.code() == Some(130) || !claimed, "{status}");
        assert!(taken < allowed, "{taken:?} after signal {sent}; {allowed:?} are allowed");
        (longest, sent) = (longest.max(taken), sent + 1);
        arguments = if claimed { resume("parts").to_vec() } else { begin("parts", &[]) };
        assert!(sent < 60, "it never ends");
    }
    println!("{sent} signals in a fit of {duration:.1} s; the longest took {longest:?}");
    assert!(sent >= 4, "few moments were tried");
    assert!(model("parts") == model("whole"), "after {sent} signals the model differs");
    assert!(!folder.path("parts/work").exists(), "checkpoints are left over");
}

/// A way to start the program.
type Start<'a> = &'a dyn Fn(&[&str]) -> Child;

/// Once `eprintln!` panicked: in the thread that listens to signals, which were then ignored for ever, and before a fit that
/// guesses, which ended with status 101.
#[test]
fn a_standard_error_that_nobody_reads_changes_nothing() {
    let folder = Folder::new("deaf");
    folder.file("quakes.csv", quakes(60, 1));
    folder.file("angles.csv", angles(1500));
    let program = env!("CARGO_BIN_EXE_minvel");
    // a pipe whose reader is gone, and no standard error at all
    let piped = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        folder.command(arguments).stdout(Stdio::null()).stderr(writer).spawn().unwrap()
    };
    let closed = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 2>&-", program]).args(arguments).current_dir(folder.path("."));
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let ways: [(&str, Start); 2] = [("piped", &piped), ("closed", &closed)];
    for (name, start) in ways {
        let guessing = [&["fit", "quakes.csv", "--out", name, "--threads", "1"], &TINY[..]].concat();
        let status = start(&guessing).wait().unwrap();
        assert_eq!(status.code(), Some(0), "{name}: a fit that guesses");
        for signal in ["-INT", "-TERM"] {
            let out = format!("{name}{signal}");
            let mut child = start(&begin(&out, &[]));
            wait_until(&mut child, "the fit never began", || folder.path(&out).join("work").exists());
            let allowed = limit(&folder);
            let (status, taken) = end(signal, child);
            assert_eq!(status.code(), Some(130), "{name} {signal}");
            assert!(taken < allowed, "{name} {signal}: {taken:?}");
        }
    }
}

#[test]
fn an_interrupted_score_or_sample_leaves_nothing_half_written() {
    let folder = Folder::new("half");
    folder.file("angles.csv", angles(1000));
    folder.good(&begin("fit", &[]));
    // enough for seconds of work on a fast machine
    folder.file("many.csv", angles(1_000_000));
    let commands = [
        &["score", "fit", "many.csv", "--out", "scored.csv"][..],
        &["evaluate", "fit", "many.csv"],
        &["sample", "fit", "-n", "30000000", "--out", "drawn.csv"],
    ];
    for command in commands {
        let child = folder.command(command).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let begun = Instant::now();
        send("-INT", &child);
        let output = child.wait_with_output().unwrap();
        let (taken, allowed) = (begun.elapsed(), limit(&folder));
        assert_eq!(output.status.code(), Some(130), "{command:?}: {}", error(&output));
        let advice = if command[0] == "evaluate" { "nothing was written" } else { "the same command and --resume" };
        assert!(error(&output).contains("interrupted; ") && error(&output).contains(advice), "{}", error(&output));
        assert!(taken < allowed, "{command:?}: {taken:?}");
    }
    // what can be resumed is hidden, and named so that nobody takes it for a table
    let (hidden, shown): (Vec<String>, Vec<String>) = folder.list(".").into_iter().partition(|n| n.starts_with('.'));
    assert_eq!(shown, ["angles.csv", "fit", "many.csv"]);
    assert!(hidden.iter().all(|name| name.ends_with(".partial")), "{hidden:?}");
}

/// The first signal leaves work 0.7 s to stop at a safe place, which a read from standard input never reaches; the second ends
/// the program at once.
#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_ends_the_program_at_once() {
    const GRACE: Duration = Duration::from_millis(700);
    let folder = Folder::new("twice");
    let waiting = || {
        let fit = ["fit", "-", "--out", "fit", "--manifold", "euclidean:2"];
        let mut child = folder.command(&fit).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let id = child.id();
        // SIGINT is the second bit of the signals that are caught
        let listens = || {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
            u64::from_str_radix(caught, 16).unwrap_or(0) & 2 != 0
        };
        wait_until(&mut child, "it never listens", listens);
        // Kept open: waiting for a child would close it.
        let input = child.stdin.take();
        (child, input)
    };
    let (child, _input) = waiting();
    let (status, once) = end("-INT", child);
    assert!(status.code() == Some(130) && once >= GRACE, "{status} after {once:?}");
    // A busy machine may be slow to send the second; nothing but the second ends it before the grace is over.
    let twice = || {
        let ((child, _input), begun) = (waiting(), Instant::now());
        send("-INT", &child);
        std::thread::sleep(Duration::from_millis(50));
        let (status, _) = end("-INT", child);
        (status, begun.elapsed())
    };
    let fast = (0..5).map(|_| twice()).find(|(status, taken)| status.code() == Some(130) && *taken < GRACE);
    println!("one signal: {once:?}, two: {:?}", fast.map(|(_, taken)| taken));
    assert!(fast.is_some(), "the second signal is not heard before {GRACE:?}");
    assert!(!folder.path("fit").exists());
}

#[test]
fn a_log_has_a_line_for_each_stage_with_its_rows() {
    let folder = Folder::new("log");
    folder.file("angles.csv", angles(300));
    let output = folder.minvel(&begin("fit", &["--seed", "2"]));
    let log = error(&output);
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("fit: ")).collect();
    let stages = [
        ("reading", ""),
        ("neighbours", "240 rows in "),
        ("kernels", "240 rows in "),
        ("folds", "240 rows in "),
        ("validation rows", "30 rows in "),
        ("learning energies", "20 steps in "),
        ("test rows", "30 rows in "),
        ("baselines: uniform", ""),
        ("baselines: kernel density", " rows in "),
        ("baselines: mixture", ""),
        ("scores", "30 rows in "),
        ("testing", "16 scales in "),
        ("samples", ""),
    ];
    let told = |(name, what): (&str, &str)| {
        let line = lines.iter().find(|line| line.starts_with(&format!("fit: {name}: ")));
        line.is_some_and(|line| line.contains(what))
    };
    for stage in stages {
        assert!(told(stage), "{stage:?} is not told:\n{log}");
    }
    assert!(!log.contains('\u{1b}') && !log.contains('\r'), "a log has no bars");
}
