//! `minvel data`: lists, finds, and fetches over a server on this machine that breaks off, lies and refuses.

#[path = "../../minvel/tests/support/needs.rs"]
mod needs;

use minvel_testing::test;
use needs::set;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::mpsc::{Receiver, channel};

fn main() -> ExitCode {
    minvel_testing::run([
        test!(a_set_is_downloaded_checked_and_found).needs(set("volcano")),
        test!(a_download_that_broke_off_goes_on_where_it_ended).needs(set("volcano")),
        test!(a_wrong_file_is_removed_and_named),
        test!(what_a_mirror_does_not_have_is_said),
        test!(folders_are_mirrors_too).needs(set("volcano")),
        test!(bad_requests_are_refused_with_status_2),
        test!(the_list_says_source_licence_and_place),
    ])
}

/// A folder of a test's own, gone when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("minvel-cli-data-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// All files below it.
    fn files(&self) -> Vec<String> {
        fn below(folder: &Path, out: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.path().is_dir() {
                    true => below(&entry.path(), out),
                    false => out.push(entry.file_name().into_string().unwrap()),
                }
            }
        }
        let mut out = vec![];
        below(&self.0, &mut out);
        out.sort();
        out
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program with an empty cache.
fn minvel(cache: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minvel"));
    for name in ["MINVEL_DATA", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY"] {
        command.env_remove(name);
    }
    command.env("XDG_CACHE_HOME", &cache.0).args(arguments).output().unwrap()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What the server does with a request.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Sends what is asked for.
    Honest,
    /// Breaks off after so many bytes.
    Breaks(usize),
    /// Sends the whole file, whatever range is asked for.
    Whole,
    /// Has nothing.
    Empty,
}

/// A small known file of 11295 bytes. Checksums can only be met by the real bytes.
fn known_file() -> Vec<u8> {
    std::fs::read(minvel::data::locate("volcano").unwrap()).unwrap()
}

/// Serves bytes, each request in the next manner; tells the request lines and ranges it saw.
fn serve(bytes: Vec<u8>, manners: Vec<Manner>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mirror/", listener.local_addr().unwrap());
    let (tell, seen) = channel();
    std::thread::spawn(move || {
        for manner in manners {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let range = head.iter().find_map(|l| l.to_lowercase().strip_prefix("range: bytes=").map(str::to_string));
            tell.send(format!("{} {}", head[0], range.clone().unwrap_or_default()).trim().to_string()).unwrap();
            let start: usize = range.and_then(|r| r.trim_end_matches('-').parse().ok()).unwrap_or(0);
            let all = bytes.len();
            let close = "Connection: close\r\n\r\n";
            let answer = match (manner, start) {
                (Manner::Empty, _) => format!("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n{close}"),
                (Manner::Whole, _) | (_, 0) => format!("HTTP/1.1 200 OK\r\nContent-Length: {all}\r\n{close}"),
                _ => format!(
                    "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {start}-{}/{all}\r\nContent-Length: {}\r\n{close}",
                    all - 1,
                    all - start
                ),
            };
            stream.write_all(answer.as_bytes()).unwrap();
            let body = match manner {
                Manner::Empty => &[],
                Manner::Breaks(count) => &bytes[start..start + count],
                Manner::Whole => &bytes[..],
                Manner::Honest => &bytes[start..],
            };
            let _ = stream.write_all(body);
        }
    });
    (address, seen)
}

fn a_set_is_downloaded_checked_and_found() {
    let bytes = known_file();
    let cache = Folder::new("whole");
    let (address, seen) = serve(bytes.clone(), vec![Manner::Honest]);
    let output = minvel(&cache, &["data", "fetch", "volcano", "--from", &address, "--json"]);
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(seen.recv().unwrap(), "GET /mirror/data/earth/volerup.csv HTTP/1.1");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = said["path"].as_str().unwrap();
    assert_eq!((std::fs::read(path).unwrap(), said["received"].as_u64()), (bytes, Some(11295)));
    assert_eq!(cache.files(), ["volerup.csv"]);
    // there already: the server is not asked again
    let again = minvel(&cache, &["data", "fetch", "volcano", "--from", &address]);
    assert!(again.status.success(), "{}", error(&again));
    let found = minvel(&cache, &["data", "path", "volcano"]);
    assert_eq!(String::from_utf8(found.stdout).unwrap().trim(), path);
}

fn a_download_that_broke_off_goes_on_where_it_ended() {
    let bytes = known_file();
    for (second, received) in [(Manner::Honest, 8295), (Manner::Whole, 11295)] {
        let cache = Folder::new("resumed");
        let (address, seen) = serve(bytes.clone(), vec![Manner::Breaks(3000), second]);
        let fetch = ["data", "fetch", "volcano", "--from", &address, "--json"];
        let output = minvel(&cache, &fetch);
        assert_eq!(output.status.code(), Some(1), "{}", error(&output));
        assert!(error(&output).contains("3000 of 11295 bytes; the same command goes on"), "{}", error(&output));
        assert_eq!(cache.files(), ["volerup.csv.part"]);
        let output = minvel(&cache, &fetch);
        assert!(output.status.success(), "{}", error(&output));
        seen.recv().unwrap();
        assert_eq!(seen.recv().unwrap(), "GET /mirror/data/earth/volerup.csv HTTP/1.1 3000-");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["received"].as_u64(), Some(received));
        assert_eq!(std::fs::read(said["path"].as_str().unwrap()).unwrap(), bytes);
        assert_eq!(cache.files(), ["volerup.csv"]);
    }
}

fn a_wrong_file_is_removed_and_named() {
    let mut longer = vec![b'x'; 20_000];
    for bytes in [vec![b'x'; 11295], std::mem::take(&mut longer)] {
        let cache = Folder::new("wrong");
        let (address, _seen) = serve(bytes, vec![Manner::Honest]);
        let output = minvel(&cache, &["data", "fetch", "volcano", "--from", &address]);
        assert_eq!(output.status.code(), Some(1), "{}", error(&output));
        assert!(error(&output).contains("volerup.csv") && error(&output).contains("SHA-256"), "{}", error(&output));
        assert!(cache.files().is_empty(), "{:?}", cache.files());
    }
}

fn what_a_mirror_does_not_have_is_said() {
    let cache = Folder::new("missing");
    let (address, _seen) = serve(vec![], vec![Manner::Empty]);
    let output = minvel(&cache, &["data", "fetch", "volcano", "--from", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("404") && error(&output).contains("data/earth/volerup.csv"), "{}", error(&output));
    assert!(std::fs::read_dir(&cache.0).unwrap().next().is_none(), "not even a folder is made");
    let nobody = minvel(&cache, &["data", "fetch", "volcano", "--from", "http://127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(error(&nobody).contains("cannot download"), "{}", error(&nobody));
}

fn folders_are_mirrors_too() {
    let bytes = known_file();
    let (cache, mirror, to) = (Folder::new("cache"), Folder::new("mirror"), Folder::new("to"));
    std::fs::create_dir_all(mirror.0.join("data/earth")).unwrap();
    std::fs::write(mirror.0.join("data/earth/volerup.csv"), &bytes).unwrap();
    for from in [mirror.text().to_string(), format!("file://{}", mirror.text())] {
        let output = minvel(&cache, &["data", "fetch", "volcano", "--from", &from, "--to", to.text()]);
        assert!(output.status.success(), "{}", error(&output));
        assert_eq!(std::fs::read(to.0.join("data/earth/volerup.csv")).unwrap(), bytes);
        std::fs::remove_file(to.0.join("data/earth/volerup.csv")).unwrap();
    }
    let output = minvel(&cache, &["data", "fetch", "flood", "--from", mirror.text()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("flood.csv"), "{}", error(&output));
}

fn bad_requests_are_refused_with_status_2() {
    let cache = Folder::new("refused");
    for (arguments, expected) in [
        (vec!["data", "path", "volcanoes"], "there is no data set `volcanoes`"),
        (vec!["data", "path", "volcano"], "minvel data fetch volcano"),
        (vec!["data", "path", "wine/white.csv"], "wine"),
        (vec!["data", "fetch", "volcanoes", "--from", "."], "known are"),
        (vec!["data", "fetch", "volcano"], "--from"),
        (vec!["data", "fetch", "volcano", "--from", "ftp://host"], "ftp"),
        (vec!["data", "fetch", "volcano", "--from", "no/such/folder"], "no/such/folder"),
        (vec!["data", "fetch", "cifar10", "--from", "."], "checksums of `cifar10` are not known"),
        (vec!["data"], "list"),
    ] {
        let output = minvel(&cache, &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(expected), "{arguments:?}: {}", error(&output));
        assert!(cache.files().is_empty(), "{arguments:?} left something behind");
    }
}

fn the_list_says_source_licence_and_place() {
    let cache = Folder::new("list");
    let text = String::from_utf8(minvel(&cache, &["data", "list"]).stdout).unwrap();
    for part in ["earthquake: ", "licence: MIT", "vislearn/FFF", "not on this machine", "43.7 MB", "size unknown"] {
        assert!(text.contains(part), "`{part}` in {text}");
    }
    let list: Value = serde_json::from_slice(&minvel(&cache, &["data", "list", "--json"]).stdout).unwrap();
    let sets = list["sets"].as_array().unwrap();
    assert!(sets.iter().any(|s| s["name"] == "rna" && s["files"][0]["bytes"] == 781482 && s["path"].is_null()));
}
