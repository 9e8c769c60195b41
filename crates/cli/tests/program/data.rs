//! `minvel data`: what it lists and finds, the data set that is built in, and what it refuses.

use crate::support::{Folder, error};
use serde_json::Value;
use std::process::{Command, Output};

const EARTHQUAKES: &str = "3e5e1a10fb2faf1899106264289334037d039f00f5265d13dad388a93d8ff2f7";

/// Settings that make a fit of 6120 rows a matter of a second: few kernels and no correction.
const COARSE: [&str; 12] = [
    "--objective",
    "none",
    "--set",
    "kernels.centres=200",
    "--set",
    "kernels.factors=[1.0]",
    "--set",
    "kernels.widths=2",
    "--set",
    "kernels.folds=2",
    "--threads",
    "1",
];

/// Runs the program on a bare machine: no data, no home, no network.
fn bare(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minvel"));
    command.env_clear().env("https_proxy", "http://127.0.0.1:1").current_dir(folder.path("")).args(arguments);
    command.output().unwrap()
}

/// The same, which must succeed; what it prints.
fn good(folder: &Folder, arguments: &[&str]) -> String {
    let output = bare(folder, arguments);
    assert!(output.status.success(), "{arguments:?} failed:\n{}", error(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_bare_machine_fits_scores_and_evaluates_the_built_in_earthquakes() {
    let folder = Folder::new("built-in");
    // a folder of the same name does not hide the data set
    let fit = [&["fit", "earthquake", "--out", "earthquake", "--json"], &COARSE[..]].concat();
    let summary: Value = serde_json::from_str(&good(&folder, &fit)).unwrap();
    assert_eq!((&summary["rows"], &summary["data"]["file"]), (&6120.into(), &"quakes_all.csv".into()));
    assert_eq!(summary["data"]["sha256"], EARTHQUAKES);
    good(&folder, &["score", "earthquake", "earthquake", "--out", "scored.csv"]);
    let scored = std::fs::read_to_string(folder.path("scored.csv")).unwrap();
    assert!(scored.starts_with("LATITUDE,LONGITUDE,log_density,energy\n31.100,35.500,"), "{}", &scored[..80]);
    assert_eq!(scored.lines().count(), 6121);
    let evaluated: Value =
        serde_json::from_str(&good(&folder, &["evaluate", "earthquake", "earthquake", "--json"])).unwrap();
    assert_eq!(evaluated["rows"], 6120);
}

#[test]
fn a_fit_of_the_built_in_earthquakes_is_resumed_to_the_same_bits() {
    let folder = Folder::new("built-in-resumed");
    let fit = |out| [&["fit", "earthquake", "--out", out], &COARSE[..]].concat();
    good(&folder, &fit("whole"));
    good(&folder, &fit("again"));
    // as after a power cut before anything was written but what was asked for
    for name in folder.list("again").iter().filter(|name| name.as_str() != "run.json") {
        std::fs::remove_file(folder.path("again").join(name)).unwrap();
    }
    good(&folder, &["fit", "--resume", "again", "--threads", "1"]);
    let model = |out: &str| std::fs::read(folder.path(out).join("model.safetensors")).unwrap();
    assert!(model("whole") == model("again"));
}

#[test]
fn the_path_of_a_built_in_set_is_a_file_that_anyone_can_read() {
    let folder = Folder::new("built-in-path");
    let path = folder.good(&["data", "path", "earthquake"]);
    assert_eq!(minvel_lab::catalogue::sha256(path.trim().as_ref()).unwrap(), EARTHQUAKES);
    assert_eq!(folder.good(&["data", "path", "earthquake/quakes_all.csv"]), path);
    let output = bare(&folder, &["data", "path", "earthquake"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("built into the program"), "{}", error(&output));
    // fetching it needs no network
    let mut command = folder.command(&["data", "fetch", "earthquake", "--to", "elsewhere"]);
    let output = command.env("https_proxy", "http://127.0.0.1:1").output().unwrap();
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(folder.files("elsewhere"), ["quakes_all.csv"]);
}

#[test]
fn commands_that_lack_data_say_the_line_that_gets_it() {
    let folder = Folder::new("lacking");
    std::fs::create_dir(folder.path("one")).unwrap();
    folder.file("one/a.png", crate::support::picture(|y, _| y as u8));
    for (arguments, line) in [
        (vec!["fit", "volcano"], "minvel data fetch volcano"),
        (vec!["fit", "wine"], "minvel data fetch wine"),
        (vec!["fit", "wine/winequality-red.csv"], "minvel data fetch wine"),
        (vec!["data", "path", "mnist"], "minvel data fetch mnist"),
        (vec!["train", "vae"], "minvel data fetch mnist"),
        (vec!["train", "wae"], "minvel data fetch mnist"),
        (vec!["train", "lenet"], "minvel data fetch mnist"),
        (vec!["train", "lenet", "--data", "one"], "minvel data fetch mnist"),
        (vec!["fid", "cifar10:train", "cifar10:test"], "minvel data fetch cifar10"),
        (vec!["fid", "one", "one"], "minvel data fetch inception"),
        (vec!["reproduce", "vae"], "minvel data fetch mnist"),
        (vec!["reproduce", "wae"], "minvel data fetch mnist"),
        (vec!["reproduce", "cifar"], "minvel data fetch cifar10 inception"),
        (vec!["reproduce", "earth"], "minvel data fetch volcano flood fire rna"),
    ] {
        let output = folder.minvel(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        let said = error(&output);
        assert!(said.contains(&format!("`{line}`")), "{arguments:?} should say `{line}`: {said}");
        assert_eq!(folder.files("runs"), [""; 0], "{arguments:?} left something behind");
    }
}

#[test]
fn bad_requests_are_refused_with_status_2() {
    let folder = Folder::new("data-refused");
    for (arguments, expected) in [
        (vec!["data", "path", "volcanoes"], "unknown data set `volcanoes`"),
        (vec!["data", "path", "wine/white.csv"], "wine"),
        (vec!["data", "fetch", "volcanoes"], "unknown data set `volcanoes`; expected "),
        (vec!["data", "fetch", "volcano", "moon"], "unknown data set `moon`; expected "),
        (vec!["data", "fetch"], "NAME"),
        (vec!["data", "fetch", "volcano", "--from", "ftp://host"], "ftp"),
        (vec!["data", "fetch", "volcano", "--from", "no/such/folder"], "no/such/folder"),
        (vec!["data", "fetch", "volcano", "--timeout", "0"], "--timeout"),
        (vec!["data"], "list"),
    ] {
        let output = folder.minvel(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(expected), "{arguments:?}: {}", error(&output));
        assert!(folder.files("cache").is_empty(), "{arguments:?} left something behind");
    }
}

#[test]
fn a_list_of_ones_own_is_checked() {
    let folder = Folder::new("data-list");
    let set = |name: &str, below: &str| {
        format!(
            "[[set]]\nname='points'\nwhat=''\nlicence=''\nsource=''\nfolder='{below}'\n[[set.files]]\nname='{name}'\nbytes=1\nsha256='00'\n"
        )
    };
    for (text, expected) in [
        ("words".to_string(), "is not a list of data sets"),
        (set("../points.csv", "data"), "not a valid file name"),
        (set("points.csv", "data/../.."), "not inside the data folder"),
        (set("points.csv", "/etc"), "not inside the data folder"),
    ] {
        let path = folder.file("list.toml", text);
        let output = folder.command(&["data", "list"]).env("MINVEL_CATALOGUE", &path).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(error(&output).contains("list.toml") && error(&output).contains(expected), "{}", error(&output));
    }
}

#[test]
fn the_list_says_source_licence_and_place() {
    let folder = Folder::new("list");
    let text = folder.good(&["data", "list"]);
    for part in [
        "earthquake: ",
        "built into the program",
        "licence: MIT",
        "vislearn/FFF",
        "not on this machine: run `minvel data fetch rna`",
        "170.1 MB",
        "95.6 MB",
    ] {
        assert!(text.contains(part), "`{part}` in {text}");
    }
    let list = folder.json(&["data", "list"]);
    let sets = list["sets"].as_array().unwrap();
    assert!(sets.iter().any(|s| s["name"] == "rna" && s["files"][0]["bytes"] == 781482 && s["path"].is_null()));
    let address =
        |s: &Value| s["archive"]["addresses"][0].as_str().or(s["files"][0]["addresses"][0].as_str()).is_some();
    assert!(sets.iter().all(address), "every set has a public address");
}
