//! `minvel train` on digits that are none: files, words and exit codes, and what is left of it when it is killed.

use crate::support::{Folder, Numbers, digits, error, picture};
use std::process::Stdio;
use std::time::Instant;

#[test]
fn lenet_is_trained_where_fid_looks_for_it_and_the_same_each_time() {
    let folder = Folder::new("lenet");
    digits(&folder, 5000 + 3 * 64);
    let train = |more: &[&str]| {
        let all = [&["train", "lenet", "--data", ".", "--epochs", "1", "--json"], more].concat();
        serde_json::from_str::<serde_json::Value>(&folder.good(&all)).unwrap()
    };
    let first = train(&[]);
    assert_eq!(first["origin"]["steps"], 3);
    assert_eq!(folder.list("cache/minvel/weights"), ["lenet.safetensors"], "and no folder of checkpoints");
    let again = train(&["--out", "again.safetensors", "--threads", "1"]);
    assert_eq!(first["sha256"], again["sha256"]);
    let other = train(&["--out", "other.safetensors", "--seed", "2"]);
    assert_ne!(first["sha256"], other["sha256"]);
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(bytes("cache/minvel/weights/lenet.safetensors"), bytes("again.safetensors"));
}

#[test]
fn lenet_without_digits_says_where_it_looked() {
    let folder = Folder::new("lenet-missing");
    let output = folder.minvel(&["train", "lenet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("`mnist` is not on this machine"), "{}", error(&output));
    let output = folder.minvel(&["train", "lenet", "--data", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("no file train-images-idx3-ubyte.gz"), "{}", error(&output));
    assert!(folder.list(".").is_empty(), "nothing was written");
}

/// Settings that make a training a matter of a second.
const TINY: [&str; 16] = [
    "--set",
    "data=.",
    "--set",
    "model.hidden=[8]",
    "--set",
    "model.batch=8",
    "--set",
    "evaluation.images=3",
    "--set",
    "evaluation.temperatures=20",
    "--set",
    "evaluation.chains=2",
    "--threads",
    "1",
    "--device",
    "cpu",
];

fn train<'a>(what: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["train", what][..], &TINY, more].concat()
}

#[test]
fn an_auto_encoder_is_trained_and_reported() {
    let folder = Folder::new("train-vae");
    digits(&folder, 60);
    for (what, more) in [
        ("vae", &["--set", "model.latent=sphere:2"][..]),
        ("vae", &["--set", "model.posterior=explicit", "--set", "model.matching.kind=divergence"]),
        ("wae", &["--set", "model.latent=product(torus:1,hyperbolic:2)", "--set", "evaluation.images=0"]),
        ("wae", &["--set", "model.matching.kind=discrepancy", "--seeds", "2"]),
    ] {
        let steps = ["--set", "model.iterations=4", "--out", "run"];
        let printed = folder.good(&train(what, &[more, &steps].concat()));
        assert!(printed.contains("report.html") && !printed.contains("claims"), "{printed}");
        assert!(printed.contains("reconstruction error per pixel (RMSE) of 250 test images"), "{printed}");
        assert!(!printed.contains("loss"), "no number without a meaning: {printed}");
        let files = folder.list("run");
        for name in
            ["report.json", "report.md", "report.html", "run.json", "models", "model-samples.png", "model-paths.svg"]
        {
            assert!(files.iter().any(|f| f == name), "{what} {more:?}: no {name} in {files:?}");
        }
        assert_eq!(files.iter().any(|f| f == "model-sphere.png"), more.contains(&"model.latent=sphere:2"));
        assert_eq!(folder.list("run/models"), ["model.safetensors"]);
        std::fs::remove_dir_all(folder.path("run")).unwrap();
    }
}

#[test]
fn settings_that_do_not_go_together_exit_with_2_and_write_nothing() {
    let folder = Folder::new("train-wrong");
    digits(&folder, 60);
    let before = folder.list(".");
    for (what, settings, word) in [
        ("vae", &["model.latent=ball:3"][..], "`model.latent`"),
        ("vae", &["model.posterior=explicit"], "`matching.kind`"),
        ("vae", &["model.posterior=explicit", "model.latent=torus:2"], "torus:2"),
        ("vae", &["model.posterior=point"], "`matching.kind`"),
        ("vae", &["model.matching.flow=spos"], "`matching.flow`"),
        ("wae", &["model.matching.kind=divergence"], "`matching.kind`"),
        ("wae", &["model.mathcing.kind=velocity"], "model.matching"),
        ("wae", &["seeds=0"], "`seeds`"),
    ] {
        let set: Vec<&str> = settings.iter().flat_map(|s| ["--set", s]).collect();
        let output = folder.minvel(&train(what, &set));
        assert_eq!(output.status.code(), Some(2), "{settings:?}: {}", error(&output));
        assert!(error(&output).contains(word), "{settings:?}: {}", error(&output));
        assert_eq!(folder.list("."), before, "{settings:?} wrote something");
    }
    let output = folder.minvel(&["train", "vae", "--set", "data=nowhere"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(error(&output).contains("nowhere: is not a folder"), "{}", error(&output));
    let output = folder.minvel(&["reproduce", "wae", "--set", "data=.", "--set", "lenet=none.safetensors"]);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(error(&output).contains("none.safetensors"), "{}", error(&output));
    assert_eq!(folder.list("."), before, "nothing was written");
}

#[test]
fn settings_of_the_help_are_a_file_of_settings() {
    let folder = Folder::new("train-help");
    for what in ["vae", "wae"] {
        let help = folder.good(&["train", what, "--help"]);
        let settings = help.split_once("for a --config file:\n\n").unwrap().1;
        folder.file("own.toml", settings);
        let output = folder.minvel(&["train", what, "--config", "own.toml", "--set", "data=nowhere"]);
        assert!(error(&output).contains("nowhere: is not a folder"), "{}", error(&output));
    }
}

/// With a single test picture there are no paths between two: the figure of them once ended the program after all the work.
#[test]
fn a_dozen_pictures_is_enough_and_five_are_refused() {
    let folder = Folder::new("train-pictures");
    std::fs::create_dir(folder.path("own")).unwrap();
    let add = |range: std::ops::Range<usize>| {
        range.for_each(|i| drop(folder.file(&format!("own/{i}.png"), picture(|y, x| (16 * i + y + x) as u8))));
    };
    add(0..5);
    let own = ["train", "wae", "own", "--set", "model.iterations=2", "--device", "cpu", "--out", "run"];
    let output = folder.minvel(&own);
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
    assert!(error(&output).contains("own: has 5 pictures: too few"), "{}", error(&output));
    assert_eq!(folder.list("."), ["own"], "nothing was written");
    add(5..12);
    folder.good(&own);
    let files = folder.list("run");
    assert!(files.contains(&"model-samples.png".into()) && !files.contains(&"model-paths.png".into()), "{files:?}");
}

/// Everything a reader sees but the times, and the parameters.
fn outcome(folder: &Folder, out: &str) -> (String, Vec<u8>) {
    let read = |name: &str| std::fs::read(folder.path(&format!("{out}/{name}"))).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&read("report.json")).unwrap();
    let seen = serde_json::to_string(&(&report["rows"], &report["figures"], &report["config"])).unwrap();
    (seen, read("models/model.safetensors"))
}

#[test]
fn ten_kills_at_random_moments_change_no_bit_of_an_auto_encoder() {
    let folder = Folder::new("train-killed");
    digits(&folder, 60);
    let more = ["--set", "model.latent=sphere:2", "--set", "model.iterations=1500", "--save-every", "0"];
    let begin = |out: &str| {
        let mut command = folder.command(&train("vae", &[&more[..], &["--out", out]].concat()));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let begun = Instant::now();
    assert!(begin("whole").status().unwrap().success());
    let (duration, expected) = (begun.elapsed(), outcome(&folder, "whole"));
    let (mut moments, mut kills, mut inside) = (Numbers::new(1), 0, 0);
    while kills < 10 {
        let mut child = begin("killed").spawn().unwrap();
        loop {
            std::thread::sleep(duration.mul_f64(0.6 * moments.uniform()));
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success());
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            inside += usize::from(folder.path("killed/units/model.train.work/model.safetensors").exists());
            child = if folder.path("killed/run.json").exists() {
                let resume =
                    ["train", "vae", "--resume", "killed", "--save-every", "0", "--threads", "1", "--device", "cpu"];
                folder.command(&resume).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
            } else {
                let _ = std::fs::remove_dir_all(folder.path("killed"));
                begin("killed").spawn().unwrap()
            };
        }
        assert!(outcome(&folder, "killed") == expected, "the bits differ");
        std::fs::remove_dir_all(folder.path("killed")).unwrap();
    }
    println!("{kills} kills, {inside} of them inside the training, which takes {duration:?}");
    assert!(inside > 0, "no kill hit the training: make it longer");
    // The twin: another seed gives other bits.
    assert!(begin("other").args(["--set", "seed=2"]).status().unwrap().success());
    assert!(outcome(&folder, "other").1 != expected.1);
}
