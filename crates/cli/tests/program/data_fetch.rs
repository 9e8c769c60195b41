//! `minvel data fetch` over a server that plays the hosts: it redirects, breaks off, lies, dawdles, and has a certificate of a test
//! authority. The sets are made up; their list is given by `MINVEL_CATALOGUE`.

use crate::support::server::{Reply, Server};
use crate::support::{Folder, Numbers, error};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

const FIRST: &str = "https://first.example/a/points.csv";
const SECOND: &str = "http://second.example/points.csv";
const PLACE: &str = "cache/minvel/data/points";

/// A made-up file of 20 000 bytes.
fn points() -> Vec<u8> {
    let mut numbers = Numbers::new(3);
    (0..20_000).map(|_| (256.0 * numbers.uniform()) as u8).collect()
}

/// Length and checksum of bytes, as the list has them.
fn known(folder: &Folder, name: &str, bytes: &[u8]) -> String {
    let path = folder.file("bytes", bytes);
    let sum = minvel_lab::catalogue::sha256(Path::new(&path)).unwrap();
    format!("name = '{name}'\nbytes = {}\nsha256 = '{sum}'\n", bytes.len())
}

/// A list of one set with one file at two addresses.
fn list(folder: &Folder) {
    let file = known(folder, "points.csv", &points());
    let set = "[[set]]\nname = 'points'\nwhat = ''\nlicence = ''\nsource = ''\nfolder = 'data/points'\n";
    folder.file("list.toml", format!("{set}[[set.files]]\n{file}addresses = ['{FIRST}', '{SECOND}']\n"));
}

/// Runs the program with the server in place of the hosts.
fn run(folder: &Folder, server: &Server, arguments: &[&str]) -> Output {
    let mut command = folder.command(arguments);
    server.plays_hosts_of(&mut command);
    command.env("MINVEL_CATALOGUE", folder.path("list.toml")).output().unwrap()
}

fn fetch(folder: &Folder, server: &Server) -> Output {
    run(folder, server, &["data", "fetch", "points", "--json", "--timeout", "20"])
}

/// A fetch that succeeds; how many bytes it received.
fn received(folder: &Folder, server: &Server) -> u64 {
    let output = fetch(folder, server);
    assert!(output.status.success(), "{}", error(&output));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["path"], folder.text(&format!("{PLACE}/points.csv")));
    assert!(std::fs::read(folder.path(PLACE).join("points.csv")).unwrap() == points());
    assert_eq!(folder.list(PLACE), ["points.csv"]);
    said["received"].as_u64().unwrap()
}

#[test]
fn a_set_is_downloaded_over_tls_checked_and_found() {
    let folder = Folder::new("fetch");
    list(&folder);
    let server = Server::new(|_| Reply::Honest(points()));
    assert_eq!(received(&folder, &server), 20_000);
    assert_eq!(server.seen(), [FIRST]);
    // there already: nobody is asked again
    assert_eq!(received(&folder, &server), 0);
    assert!(server.seen().is_empty());
    let found = run(&folder, &server, &["data", "path", "points"]);
    let path = folder.text(&format!("{PLACE}/points.csv"));
    assert_eq!(String::from_utf8(found.stdout).unwrap().trim(), path);
    // a file that someone changed is replaced
    std::fs::write(&path, "other").unwrap();
    assert_eq!(received(&folder, &server), 20_000);
}

#[test]
fn the_next_address_serves_where_the_first_does_not_have_it_or_lies() {
    for status in [404, 403, 500, 0] {
        let folder = Folder::new(&format!("fetch-next-{status}"));
        list(&folder);
        let server = Server::new(move |request| match (request.address.as_str(), status) {
            (FIRST, 0) => Reply::Honest(vec![b'x'; 20_000]),
            (FIRST, status) => Reply::Status(status),
            _ => Reply::Honest(points()),
        });
        assert_eq!(received(&folder, &server), 20_000, "{status}");
        assert_eq!(server.seen(), [FIRST, SECOND]);
    }
}

#[test]
fn redirects_are_followed_also_when_resumed() {
    let folder = Folder::new("fetch-redirected");
    list(&folder);
    let target = "https://second.example/elsewhere";
    let server = Server::new(move |request| match (request.address.as_str(), request.before) {
        (FIRST, _) => Reply::Redirect(target.into()),
        (_, 0) => Reply::Breaks(points(), 7000),
        _ => Reply::Honest(points()),
    });
    assert_eq!(received(&folder, &server), 20_000);
    let resumed = |address: &str| format!("{address} 7000");
    assert_eq!(server.seen(), [FIRST.to_string(), target.into(), resumed(FIRST), resumed(target)]);
}

#[test]
fn a_redirect_that_never_ends_is_given_up() {
    let folder = Folder::new("fetch-loop");
    list(&folder);
    let server = Server::new(|request| match request.address.as_str() {
        FIRST => Reply::Redirect(FIRST.into()),
        _ => Reply::Honest(points()),
    });
    assert_eq!(received(&folder, &server), 20_000);
    assert_eq!(server.seen().last().unwrap(), SECOND);
}

#[test]
fn a_download_that_breaks_off_is_resumed_at_once_and_by_a_later_command() {
    let folder = Folder::new("fetch-broken");
    list(&folder);
    let server = Server::new(|request| match request.address.as_str() {
        FIRST => Reply::Breaks(points(), 1000),
        _ => Reply::Status(404),
    });
    let output = fetch(&folder, &server);
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("5000 of 20000 bytes"), "{}", error(&output));
    assert!(error(&output).contains("run the command again to resume"), "{}", error(&output));
    let left = folder.list(PLACE);
    assert!(left.len() == 1 && left[0].starts_with(".points.csv.") && left[0].ends_with(".partial"), "{left:?}");
    let seen = server.seen();
    assert_eq!((seen.len(), seen[4].as_str()), (6, format!("{FIRST} 4000").as_str()), "{seen:?}");
    let honest = Server::new(|_| Reply::Honest(points()));
    assert_eq!(received(&folder, &honest), 15_000);
    assert_eq!(honest.seen(), [format!("{FIRST} 5000")]);
}

#[test]
fn a_server_that_ignores_ranges_or_a_part_of_something_else_costs_only_time() {
    let folder = Folder::new("fetch-whole");
    list(&folder);
    let part = |bytes: &[u8]| {
        std::fs::create_dir_all(folder.path(PLACE)).unwrap();
        std::fs::write(folder.path(PLACE).join(".points.csv.0123456789abcdef.partial"), bytes).unwrap();
        let _ = std::fs::remove_file(folder.path(PLACE).join("points.csv"));
    };
    part(&points()[..3000]);
    let whole = Server::new(|_| Reply::Whole(points()));
    assert_eq!(received(&folder, &whole), 20_000);
    // longer than the file: dropped; of other bytes: seen at the end, and the next address begins anew
    let honest = Server::new(|_| Reply::Honest(points()));
    part(&[7; 30_000]);
    assert_eq!(received(&folder, &honest), 20_000);
    honest.seen();
    part(&[7; 3000]);
    assert_eq!(received(&folder, &honest), 20_000);
    assert_eq!(honest.seen(), [format!("{FIRST} 3000"), SECOND.to_string()]);
    // a whole part needs only a look at its bytes
    part(&points());
    assert_eq!(received(&folder, &honest), 0);
    assert!(honest.seen().is_empty());
}

#[test]
fn a_slow_server_is_waited_for_and_a_silent_one_is_not() {
    let folder = Folder::new("fetch-slow");
    list(&folder);
    let slow = Server::new(|_| Reply::Slow(points(), 2000, Duration::from_millis(400)));
    let output = run(&folder, &slow, &["data", "fetch", "points", "--timeout", "3"]);
    assert!(output.status.success(), "4 s in all, but never silent for three: {}", error(&output));
    assert_eq!(slow.seen(), [FIRST]);
    std::fs::remove_file(folder.path(PLACE).join("points.csv")).unwrap();
    let silent = Server::new(|request| match request.address.as_str() {
        FIRST => Reply::Stalls(points(), 500, Duration::from_secs(60)),
        _ => Reply::Honest(points()),
    });
    let begun = Instant::now();
    let output = run(&folder, &silent, &["data", "fetch", "points", "--timeout", "3"]);
    assert!(output.status.success(), "{}", error(&output));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let resumed = format!("{SECOND} 500");
    assert_eq!(silent.seen(), [FIRST, &resumed], "a silent server is asked once, and what it sent is kept");
}

#[test]
fn where_all_addresses_fail_one_message_says_what_to_put_where_by_hand() {
    let folder = Folder::new("fetch-failed");
    list(&folder);
    let server = Server::new(|request| match request.address.as_str() {
        FIRST => Reply::Status(404),
        _ => Reply::Honest(vec![b'x'; 30_000]),
    });
    let output = fetch(&folder, &server);
    assert_eq!(output.status.code(), Some(1));
    let (said, sum) = (error(&output), known(&folder, "", &points()));
    let sum = sum.split('\'').nth(3).unwrap();
    for part in [FIRST, "404", SECOND, "wrong content", "20000 bytes", sum, &folder.text(PLACE)] {
        assert!(said.contains(part), "`{part}` in {said}");
    }
    assert!(said.contains("run `minvel data fetch points` again"), "{said}");
    assert!(folder.files("cache").is_empty(), "{:?}", folder.files("cache"));
    // by hand, then
    std::fs::create_dir_all(folder.path(PLACE)).unwrap();
    std::fs::write(folder.path(PLACE).join("points.csv"), points()).unwrap();
    assert_eq!(received(&folder, &server), 0);
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused_and_one_of_ssl_cert_file_trusted() {
    let folder = Folder::new("fetch-tls");
    list(&folder);
    let server = Server::new(|request| match request.address.as_str() {
        FIRST => Reply::Honest(points()),
        _ => Reply::Status(404),
    });
    let run = |file: Option<&str>| {
        let mut command = folder.command(&["data", "fetch", "points"]);
        server.plays_hosts_of(&mut command);
        match file {
            Some(file) => command.env("SSL_CERT_FILE", file),
            None => command.env_remove("SSL_CERT_FILE"),
        };
        command.env("MINVEL_CATALOGUE", folder.path("list.toml")).output().unwrap()
    };
    let output = run(None);
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("UnknownIssuer"), "{}", error(&output));
    assert_eq!(server.seen(), [SECOND], "nothing was asked before the certificate was checked");
    folder.file("words.pem", "words");
    for (file, expected) in [("no.pem", "no.pem"), ("words.pem", "no PEM certificates")] {
        let output = run(Some(file));
        assert_eq!(output.status.code(), Some(2), "{}", error(&output));
        assert!(error(&output).contains(expected) && error(&output).contains("SSL_CERT_FILE"), "{}", error(&output));
    }
    assert_eq!(received(&folder, &server), 20_000);
}

#[test]
fn a_mirror_may_be_a_server_or_a_folder() {
    let folder = Folder::new("fetch-mirror");
    list(&folder);
    let server = Server::new(|_| Reply::Honest(points()));
    let mirror = server.mirror();
    let fetch = |from: &str| {
        let arguments = ["data", "fetch", "points", "--from", from, "--to", "to"];
        let mut command = folder.command(&arguments);
        command.env("MINVEL_CATALOGUE", folder.path("list.toml")).output().unwrap()
    };
    std::fs::create_dir_all(folder.path("stick/data/points")).unwrap();
    folder.file("stick/data/points/points.csv", points());
    for from in [mirror.clone(), "stick".into(), format!("file://{}", folder.text("stick"))] {
        let output = fetch(&from);
        assert!(output.status.success(), "{}", error(&output));
        assert!(std::fs::read(folder.path("to/data/points/points.csv")).unwrap() == points());
        std::fs::remove_file(folder.path("to/data/points/points.csv")).unwrap();
    }
    assert_eq!(server.seen(), [format!("{mirror}data/points/points.csv")]);
    std::fs::remove_file(folder.path("stick/data/points/points.csv")).unwrap();
    let output = fetch("stick");
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("stick/data/points/points.csv"), "{}", error(&output));
    let output = fetch("http://127.0.0.1:1");
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("http://127.0.0.1:1/data/points/points.csv"), "{}", error(&output));
}

#[test]
fn several_sets_are_fetched_as_far_as_they_can_be_had() {
    let folder = Folder::new("fetch-several");
    list(&folder);
    let one = std::fs::read_to_string(folder.path("list.toml")).unwrap();
    let other = one.replace("points'", "lines'").replace("points.csv", "lines.csv");
    folder.file("list.toml", other + &one);
    let server = Server::new(|request| match request.address.as_str() {
        FIRST => Reply::Honest(points()),
        _ => Reply::Status(404),
    });
    let output = run(&folder, &server, &["data", "fetch", "all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("`lines`") && !error(&output).contains("`points`"), "{}", error(&output));
    assert_eq!(folder.files("cache"), ["points.csv"]);
}

/// A member of a tar file.
fn member(name: &str, kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    header[156] = kind;
    header.extend(bytes);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

const BATCHES: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];

/// CIFAR-10 with two images a batch, in the layout of the published archive, and its list.
fn cifar(folder: &Folder) -> Vec<u8> {
    use std::io::Write;
    let batch = |i: usize| (0..2 * 3073).map(move |k| if k % 3073 == 0 { i as u8 } else { (k * (i + 3) % 251) as u8 });
    let batches: Vec<Vec<u8>> = (0..6).map(|i| batch(i).collect()).collect();
    let mut tar = member("cifar-10-batches-bin/", b'5', &[]);
    tar.extend(member("cifar-10-batches-bin/readme.html", b'0', b"<p>words</p>"));
    for (name, bytes) in BATCHES.iter().zip(&batches) {
        tar.extend(member(&format!("cifar-10-batches-bin/{name}"), b'0', bytes));
    }
    tar.extend([0; 1024]);
    let mut packer = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    packer.write_all(&tar).unwrap();
    let archive = packer.finish().unwrap();
    let mut text =
        "[[set]]\nname = 'cifar10'\nwhat = ''\nlicence = ''\nsource = ''\nfolder = 'data/cifar10'\n".to_string();
    text += "[set.archive]\nform = 'tar.gz'\ninside = 'cifar-10-batches-bin'\n[set.archive.file]\n";
    text += &known(folder, "cifar-10-binary.tar.gz", &archive);
    text += "addresses = ['https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz']\n";
    for (name, bytes) in BATCHES.iter().zip(&batches) {
        text += &format!("[[set.files]]\n{}", known(folder, name, bytes));
    }
    folder.file("list.toml", text);
    archive
}

#[test]
fn an_archive_is_fetched_and_unpacked_also_where_it_was_put_by_hand() {
    let folder = Folder::new("fetch-cifar");
    let archive = cifar(&folder);
    let served = archive.clone();
    let server = Server::new(move |_| Reply::Honest(served.clone()));
    let fetch = || {
        let output = run(&folder, &server, &["data", "fetch", "cifar10"]);
        assert!(output.status.success(), "{}", error(&output));
    };
    fetch();
    let place = "cache/minvel/data/cifar10";
    assert_eq!(folder.list(place), BATCHES, "the archive is not kept");
    assert_eq!(server.seen().len(), 1);
    let test = minvel_lab::image::cifar::test(Some(&folder.path(place))).unwrap();
    assert_eq!((test.images.count, &test.labels[..]), (2, &[5, 5][..]));
    fetch();
    assert!(server.seen().is_empty(), "there already");
    // by hand
    BATCHES.iter().for_each(|name| std::fs::remove_file(folder.path(place).join(name)).unwrap());
    folder.file(&format!("{place}/cifar-10-binary.tar.gz"), &archive);
    fetch();
    assert!(server.seen().is_empty(), "what lies there is used");
    assert!(folder.list(place).len() == 7, "and stays: {:?}", folder.list(place));
}

#[test]
fn weights_that_are_no_state_dict_are_refused_by_name() {
    let folder = Folder::new("fetch-weights");
    // a pickle that would call os.system
    let pickle = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.".to_vec();
    let mut text =
        "[[set]]\nname = 'inception'\nwhat = ''\nlicence = ''\nsource = ''\nfolder = 'weights'\n".to_string();
    text += "[set.archive]\nform = 'inception'\nmakes = 'made.safetensors'\n[set.archive.file]\n";
    text += &known(&folder, "weights.pth", &pickle);
    text += "addresses = ['https://github.com/weights.pth']\n[[set.files]]\nname = 'other'\nbytes = 1\nsha256 = '00'\n";
    folder.file("list.toml", text);
    let server = Server::new(move |_| Reply::Honest(pickle.clone()));
    let output = run(&folder, &server, &["data", "fetch", "inception"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("weights.pth") && error(&output).contains("os.system"), "{}", error(&output));
    assert!(!folder.files("cache").contains(&"made.safetensors".into()));
}
