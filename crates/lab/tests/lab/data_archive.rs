//! Tar archives: that only the expected files come out, into the folder and nowhere else.

use minvel_lab::catalogue::archive::unpack;
use minvel_lab::catalogue::{KnownFile, sha256};
use minvel_testing::Scratch;
use std::io::Write;
use std::path::PathBuf;

fn member(name: &str, kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    header[156] = kind;
    header[257..262].copy_from_slice(b"ustar");
    header.extend(bytes);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

fn archive(scratch: &Scratch, members: &[Vec<u8>]) -> PathBuf {
    let mut packer = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    packer.write_all(&members.concat()).unwrap();
    packer.write_all(&[0; 1024]).unwrap();
    scratch.file("a.tar.gz", packer.finish().unwrap())
}

fn known(scratch: &Scratch, name: &str, bytes: &[u8]) -> KnownFile {
    let sha256 = sha256(&scratch.file("bytes", bytes)).unwrap();
    KnownFile { name: name.into(), bytes: bytes.len() as u64, sha256, addresses: vec![] }
}

#[test]
fn expected_members_are_written_and_all_others_are_not() {
    let scratch = Scratch::new("archive");
    let files = [known(&scratch, "one", &[1; 700]), known(&scratch, "two", b"")];
    std::fs::create_dir(scratch.path("out")).unwrap();
    let path = archive(
        &scratch,
        &[
            member("inside/", b'5', &[]),
            member("../outside", b'0', b"escaped"),
            member("/tmp/minvel-escaped", b'0', b"escaped"),
            member("elsewhere/one", b'0', &[9; 700]),
            member("inside/one", b'2', &[]),
            member("inside/two", b'0', b""),
            member("./inside/one", b'0', &[1; 700]),
        ],
    );
    unpack(&path, "inside", &files, &scratch.path("out")).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(scratch.path("out"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(std::fs::read(scratch.path("out/one")).unwrap(), [1; 700]);
    assert_eq!(scratch.list(), ["a.tar.gz", "bytes", "out"], "nothing beside the folder");
}

#[test]
fn archives_that_are_not_what_they_should_be_are_refused() {
    let scratch = Scratch::new("archive-bad");
    let files = [known(&scratch, "one", &[1; 700])];
    let refused = |members: &[Vec<u8>], expected: &str| {
        let said = unpack(&archive(&scratch, members), "inside", &files, scratch.folder()).unwrap_err().to_string();
        assert!(said.contains("a.tar.gz") && said.contains(expected), "{said}");
        assert!(!scratch.path("one").exists());
    };
    refused(&[], "has no one");
    refused(&[member("inside/other", b'0', b"")], "has no one");
    refused(&[member("inside/one", b'0', &[2; 700])], "unexpected contents");
    refused(&[member("inside/one", b'0', &[1; 701])], "701 bytes, not 700");
    let mut huge = member("inside/other", b'0', b"");
    huge[124..135].copy_from_slice(b"77777777777");
    refused(&[huge], "besides the expected files");
    let mut wrong = member("inside/other", b'0', b"");
    wrong[124..127].copy_from_slice(b"abc");
    refused(&[wrong], "a header has no length");
    // cut off
    let whole = std::fs::read(archive(&scratch, &[member("inside/one", b'0', &[1; 700])])).unwrap();
    let path = scratch.file("a.tar.gz", &whole[..whole.len() / 2]);
    let said = unpack(&path, "inside", &files, scratch.folder()).unwrap_err().to_string();
    assert!(said.contains("damaged"), "{said}");
}
