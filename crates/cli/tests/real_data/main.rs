//! The whole way with real bytes: a server plays the hosts of the built-in list, `data fetch` gets the sets, and commands run from the
//! cache folder alone. Needs `MINVEL_DATA` for what the server sends. And a GPU that fails, which is the emulated card.

#[path = "../support/mod.rs"]
mod support;

mod device;

use minvel_lab::catalogue::{self, locate};
use minvel_testing::{Need, data_set, state_dict, test};
use std::path::Path;
use std::process::ExitCode;
use support::server::{Reply, Server};
use support::{Folder, error};

fn main() -> ExitCode {
    let sets = ["volcano", "flood", "fire", "rna", "mammals", "wine", "parkinsons", "mnist"].map(set);
    let all = test!(every_set_at_hand_is_fetched_from_its_hosts_and_used_from_the_cache_alone);
    let all = sets.into_iter().fold(all, |test, need| test.needs(need));
    let weights = test!(published_weights_are_fetched_and_give_the_same_distance).needs(set("inception"));
    minvel_testing::run([all, weights].into_iter().chain(device::tests()))
}

/// A set of the catalogue.
fn set(name: &str) -> Need {
    let known = catalogue::find(name).expect("tests name sets of the catalogue");
    data_set(name, known.path().is_some() || locate(name).is_ok())
}

fn every_set_at_hand_is_fetched_from_its_hosts_and_used_from_the_cache_alone() {
    let roots = catalogue::roots();
    // the first address of each file has nothing, so that the second is tried where there is one
    let server = Server::new(move |request| {
        let name = request.address.rsplit('/').next().unwrap();
        let folders = ["earth", "mnist", "rna", "uci", "wordnet"];
        let paths = roots.iter().flat_map(|root| folders.map(|folder| root.join("data").join(folder).join(name)));
        let bytes = paths.into_iter().find_map(|path| std::fs::read(path).ok());
        match (bytes, request.address.contains("/5b48a7f7e1") || request.address.contains("ossci")) {
            (Some(bytes), false) => Reply::Honest(bytes),
            _ => Reply::Status(404),
        }
    });
    let folder = Folder::new("data-real");
    let names = ["volcano", "flood", "fire", "rna", "mammals", "wine", "parkinsons", "mnist"];
    let mut command = folder.command(&[&["data", "fetch"], &names[..]].concat());
    server.plays_hosts_of(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", error(&output));
    let seen = server.seen();
    for host in ["https://raw.githubusercontent.com/", "https://archive.ics.uci.edu/", "http://yann.lecun.com/"] {
        assert!(seen.iter().any(|address| address.starts_with(host)), "{host} in {seen:?}");
    }
    let list = folder.json(&["data", "list"]);
    for set in list["sets"].as_array().unwrap() {
        let fetched = names.contains(&set["name"].as_str().unwrap());
        assert_eq!(set["path"].is_string(), fetched, "{set}");
    }
    let coarse = ["--objective", "none", "--set", "kernels.centres=100", "--set", "kernels.widths=2", "--quick"];
    let summary = folder.json(&[&["fit", "volcano", "--out", "volcano"], &coarse[..]].concat());
    assert_eq!((&summary["rows"], &summary["data"]["file"]), (&827.into(), &"volerup.csv".into()));
    let train = ["train", "vae", "--quick", "--device", "cpu", "--out", "vae"];
    let short = ["model.iterations=2", "model.hidden=[8]", "evaluation.images=3", "evaluation.temperatures=20"];
    let short: Vec<&str> = short.iter().flat_map(|setting| ["--set", setting]).collect();
    folder.good(&[&train[..], &short].concat());
    let settings = [
        "--set",
        "seeds=1",
        "--set",
        "sets=['volcano']",
        "--set",
        "fit.set=['objective=\"none\"','kernels.centres=100']",
    ];
    folder.good(&[&["reproduce", "earth", "--quick", "--device", "cpu", "--out", "earth"], &settings[..]].concat());
}

fn published_weights_are_fetched_and_give_the_same_distance() {
    let original = catalogue::find("inception").unwrap().path().unwrap();
    let folder = Folder::new("data-weights");
    let items = state_dict::published(&original, 1.0);
    let published = state_dict::stream(&items, state_dict::pickle(&items));
    let path = folder.file("pt_inception-2015-12-05-6726825d.pth", &published);
    let sum = catalogue::sha256(Path::new(&path)).unwrap();
    // the built-in list with the checksum of these bytes, which are rounded to f16
    let list = catalogue::BUILT_IN;
    let list = list.replace("6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2", &sum);
    folder.file("list.toml", list.replace("bytes = 95628359", &format!("bytes = {}", published.len())));
    let server = Server::new(move |request| match request.address.contains("objects") {
        false => Reply::Redirect("https://raw.githubusercontent.com/objects".into()),
        true => Reply::Honest(published.clone()),
    });
    let mut command = folder.command(&["data", "fetch", "inception"]);
    server.plays_hosts_of(&mut command);
    let output = command.env("MINVEL_CATALOGUE", folder.path("list.toml")).output().unwrap();
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(folder.list("cache/minvel/weights"), ["inception_fid_2015-12-05.f32.safetensors"]);
    for set in ["one", "two"] {
        std::fs::create_dir(folder.path(set)).unwrap();
        for i in 0..2 {
            let shade = |y: usize, x: usize| (y * (i + 3) + x * set.len() * (i + 1)) as u8;
            folder.file(&format!("{set}/{i}.png"), support::picture(shade));
        }
    }
    let fid = |more: &[&str]| folder.json(&[&["fid", "one", "two", "--device", "cpu"], more].concat());
    let weights = original.to_str().unwrap();
    let (fetched, here) = (fid(&[]), fid(&["--weights", weights]));
    assert_eq!(fetched["fid"]["value"], here["fid"]["value"]);
    assert_ne!(fetched["fid"]["sha256"], here["fid"]["sha256"], "they are different files");
}
