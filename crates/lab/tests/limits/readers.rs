//! Files that announce or unpack to more than memory holds: an error that says the size, the limit and the flag, before the
//! memory is taken.

use crate::memory;

use minvel::train::Checkpoint;
use minvel::{Error, Limits, file};
use minvel_lab::image::folder::{Folder, Framing, Pictures};
use minvel_lab::image::{Picture, cifar, folder, idx};
use minvel_lab::table::npz::Npz;
use minvel_lab::table::{Column, Table, TableOptions, write_table};
use minvel_testing::Scratch;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The limit of these tests.
const LIMIT: usize = 8 << 20;

/// A list that grows is there twice for a moment, and decoders have some memory of their own.
const MOST: usize = 4 * LIMIT;

/// What a reader says about a file that is too large, after it took no more memory than it may.
fn refusal<T>(read: impl FnOnce() -> Result<T, Error>) -> String {
    Limits { bytes: LIMIT as u64 }.set();
    let (outcome, peak) = memory::peak(|| read().map(drop));
    assert!(peak < MOST, "it took {} MB", peak >> 20);
    let error = outcome.expect_err("it is too large");
    assert!(error.is_input(), "{error}");
    error.to_string()
}

/// As [`refusal`], of a table.
fn table(path: &Path) -> String {
    refusal(|| Table::read(path, &TableOptions::default()))
}

fn tells_limit_and_flag(message: &str, limit: &str) {
    for part in [limit, "--max-size", "of memory"] {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn sizes_are_read_as_people_write_them() {
    let _alone = memory::alone();
    for (text, bytes) in [("1", 1), ("500M", 500 << 20), ("16G", 16 << 30), ("16 GiB", 16 << 30), ("2tb", 2 << 40)] {
        assert_eq!(text.parse(), Ok(Limits { bytes }), "{text}");
    }
    for wrong in ["", "G", "0", "-1", "1.5G", "16X", "99999999999T"] {
        assert!(wrong.parse::<Limits>().unwrap_err().contains("invalid size"), "{wrong}");
    }
    assert_eq!(Limits::DEFAULT.bytes, "4G".parse::<Limits>().unwrap().bytes);
}

#[test]
fn gzip_of_a_long_table_stops_at_the_limit() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-gzip");
    let rows = scratch.file("rows.csv.gz", gzip("1,2\n".repeat(4 << 20).as_bytes()));
    let message = table(&rows);
    tells_limit_and_flag(&message, "the limit is 8 MiB");
    assert!(message.contains("up to line 52"), "16 bytes a row: {message}");
    // nothing of these is kept, and still they end
    let comments = scratch.file("comments.csv.gz", gzip("# no\n".repeat(4 << 20).as_bytes()));
    tells_limit_and_flag(&table(&comments), "the limit is 8 MiB");
    let empty_cells = scratch.file("cells.csv.gz", gzip(",,,,,,,\n".repeat(1 << 20).as_bytes()));
    tells_limit_and_flag(&table(&empty_cells), "the limit is 8 MiB");
}

/// The first 64 records were cut into fields whatever their length: each of these took 24 bytes a comma.
#[test]
fn long_records_after_a_short_one_are_not_all_a_sample() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-sample");
    let text = format!("1,2\n{}", format!("{}\n", ",".repeat(60_000)).repeat(100));
    let message = table(&scratch.file("wide.csv", text));
    assert!(message.contains("line 2 has"), "{message}");
    let endless = table(&scratch.file("endless.csv", ",".repeat(6 << 20)));
    assert!(endless.contains("more than 65536 fields"), "{endless}");
}

/// An idx file of such axes.
fn idx_of(axes: &[u32], entries: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, axes.len() as u8];
    bytes.extend(axes.iter().flat_map(|n| n.to_be_bytes()));
    bytes.resize(bytes.len() + entries, 0);
    bytes
}

#[test]
fn idx_headers_are_believed_no_further_than_the_limit() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-idx");
    let huge = scratch.file("huge-idx3-ubyte", idx_of(&[1 << 31, 1 << 31, 1 << 31], 10));
    let message = refusal(|| idx::images(&huge));
    tells_limit_and_flag(&message, "would take 15.9 EiB of memory");
    assert!(message.contains("2147483648 × 2147483648 × 2147483648 bytes"), "{message}");
    let labels = scratch.file("labels-idx1-ubyte.gz", gzip(&idx_of(&[16 << 20], 16 << 20)));
    tells_limit_and_flag(&refusal(|| idx::labels(&labels)), "would take 16 MiB of memory, and the limit is 8 MiB");
    // what follows the entries is not unpacked
    let longer = scratch.file("longer-idx1-ubyte.gz", gzip(&idx_of(&[10], 64 << 20)));
    assert!(refusal(|| idx::labels(&longer)).contains("is too long: its header declares 10 bytes"));
}

/// An NPY file of such a type and shape.
fn npy_of(kind: &str, shape: &str, body: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), body].concat()
}

/// A zip with a member for each array.
fn npz_of(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, bytes) in members {
        archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn arrays_of_numpy_are_believed_no_further_than_the_limit() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-npy");
    let huge = table(&scratch.file("huge.npy", npy_of("<f8", "1000000000000, 1000", &[])));
    tells_limit_and_flag(&huge, "would take 7.1 PiB of memory");
    // not a number costs its text as well: of two bytes become seventy
    let odd = table(&scratch.file("odd.npy", npy_of("<f2", "500000,", &[0xff; 1_000_000])));
    tells_limit_and_flag(&odd, "the limit is 8 MiB");
    let axes = table(&scratch.file("axes.npy", npy_of("<f8", &"1,".repeat(20_000), &[0; 8])));
    assert!(axes.contains("the array has 20000 axes: at most 64 are supported"), "{axes}");
}

#[test]
fn members_of_an_npz_file_count_together() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-npz");
    let zeros = npz_of(&[("a", npy_of("|u1", "16777216,", &vec![0; 16 << 20]))]);
    assert!(zeros.len() < 100_000, "a bomb is small");
    let zeros = scratch.file("zeros.npz", zeros);
    tells_limit_and_flag(&table(&zeros), "would take 128 MiB of memory");
    let statistic = refusal(|| Npz::open(&zeros)?.array("a"));
    tells_limit_and_flag(&statistic, "`a` of shape [16777216] would take 128 MiB of memory");
    // each of these is small, and fits
    let column = npy_of("|u1", "300000,", &vec![0; 300_000]);
    let names: Vec<String> = (0..12).map(|k| format!("c{k}")).collect();
    let many: Vec<(&str, Vec<u8>)> = names.iter().map(|name| (name.as_str(), column.clone())).collect();
    tells_limit_and_flag(&table(&scratch.file("many.npz", npz_of(&many))), "the limit is 8 MiB");
    // arrays of no rows have columns all the same
    let names: Vec<String> = (0..200).map(|k| format!("e{k}")).collect();
    let empty: Vec<(&str, Vec<u8>)> =
        names.iter().map(|name| (name.as_str(), npy_of("<f8", "0, 65536", &[]))).collect();
    let message = table(&scratch.file("empty.npz", npz_of(&empty)));
    assert!(message.contains("holds several arrays") || message.contains("--max-size"), "{message}");
}

/// A PNG file that announces a size and holds next to nothing.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    // the data are cut off, which the encoder says when it is dropped
    drop(encoder.write_header().unwrap());
    bytes
}

#[test]
fn pictures_are_refused_by_the_size_they_announce() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-pictures");
    let png = scratch.file("huge.png", png_of(100_000, 100_000));
    let message = refusal(|| Picture::read(&png));
    tells_limit_and_flag(&message, "100000 × 100000 pixels and would take 111.7 GiB of memory, and the limit is 4 MiB");
    let mut jpeg = std::fs::read("tests/data_fixtures/gradient.jpg").unwrap();
    let frame = jpeg.windows(4).position(|w| w == [0xff, 0xc0, 0, 17]).expect("a baseline frame");
    jpeg[frame + 5..frame + 9].fill(0xff);
    if cfg!(feature = "jpeg") {
        let jpeg = scratch.file("huge.jpg", jpeg);
        tells_limit_and_flag(&refusal(|| Picture::read(&jpeg)), "65535 × 65535 pixels and would take 47.9 GiB");
    }
    // the same for the strips of CIFAR-10, and for a batch that is long
    scratch.file("test_batch.png", png_of(1024, 1 << 20));
    tells_limit_and_flag(&refusal(|| cifar::test(Some(&scratch.path("")))), "1024 × 1048576 pixels");
    scratch.file("test_batch.bin", vec![0; 3073 * 4000]);
    tells_limit_and_flag(&refusal(|| cifar::test(Some(&scratch.path("")))), "would take 11.7 MiB of memory");
}

/// As many pictures were decoded concurrently as there are threads, whatever their size.
#[test]
fn pictures_in_flight_are_bounded_together() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-flight");
    let mut bytes = vec![];
    let encoder = png::Encoder::new(&mut bytes, 500, 500);
    encoder.write_header().unwrap().write_image_data(&[7; 250_000]).unwrap();
    (0..12).for_each(|k| drop(scratch.file(&format!("{k:02}.png"), &bytes)));
    let paths = folder::list(&scratch.path("")).unwrap();
    Limits { bytes: LIMIT as u64 }.set();
    let flying = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let watched = flying.clone();
    let ((), peak) = memory::peak(|| {
        let pictures = Pictures::new(paths, 8, move |picture| {
            let now = watched[0].fetch_add(1, Ordering::SeqCst) + 1;
            watched[1].fetch_max(now, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(20));
            watched[0].fetch_sub(1, Ordering::SeqCst);
            Ok(picture)
        });
        assert_eq!(pictures.filter(|picture| picture.as_ref().is_ok_and(|p| p.pixels[0] == 7)).count(), 12);
    });
    // each takes 3 MB of the 8: two fit, and the one that is needed next never waits
    let most = flying[1].load(Ordering::SeqCst);
    assert!((2..=3).contains(&most), "{most} at once");
    assert!(peak < 2 * LIMIT, "they took {} MB", peak >> 20);
}

#[test]
fn a_folder_at_a_large_size_is_refused_before_it_is_read() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-folder");
    (0..40).for_each(|k| drop(scratch.file(&format!("{k:02}.png"), png_of(8, 8))));
    let framing = Framing { crop: None, side: 512 };
    let message = refusal(|| Folder::read(&scratch.path(""), framing, 1, None, |_, _| ()));
    tells_limit_and_flag(&message, "has 40 pictures, which at 512 × 512 pixels would take 30 MiB of memory");
}

#[test]
fn headers_of_safetensors_are_bounded_before_they_are_parsed() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-safetensors");
    let read = |path: &Path| refusal(|| Checkpoint::<f64>::read(path));
    let length = read(&scratch.file("length.safetensors", [&(1u64 << 63).to_le_bytes()[..], b"{}"].concat()));
    assert!(length.contains("its header has 9223372036854775808 bytes, but the file has 10"), "{length}");
    let tree = format!("[{}1]", "1,".repeat(200_000));
    let tree = [&(tree.len() as u64).to_le_bytes()[..], tree.as_bytes()].concat();
    tells_limit_and_flag(&read(&scratch.file("tree.safetensors", tree)), "and the limit is 128 KiB");
    tells_limit_and_flag(&read(&scratch.file("long.safetensors", vec![0; LIMIT + 1])), "would take 8 MiB");
}

/// Variables may be named again and again: each time the tensor was copied.
#[test]
fn a_variable_that_is_named_twice_is_refused() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-twice");
    let path = scratch.path("a.safetensors");
    let mut state = minvel_engine::State::<f64>::new(1);
    state.set("w", &[1.0, 2.0], 2);
    Checkpoint::new(state, 1, "a test", &()).write(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&bytes[8..]).replace(r#"[\"w\"]"#, r#"[\"w\",\"w\"]"#);
    let end = text.rfind('}').unwrap() + 1;
    let header = &text.as_bytes()[..end];
    let data = &bytes[bytes.len() - 16..];
    let path = scratch.file("b.safetensors", [&(end as u64).to_le_bytes()[..], header, data].concat());
    let message = refusal(|| Checkpoint::<f64>::read(&path));
    assert!(message.contains("variable `w` occurs twice"), "{message}");
}

#[test]
fn texts_that_become_trees_have_a_limit_of_their_own() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-text");
    let path = scratch.file("summary.json", "[1,1,1]".repeat(100_000));
    tells_limit_and_flag(&refusal(|| file::read_text(&path)), "the limit is 128 KiB");
    assert!(refusal(|| file::read_text(&scratch.file("latin.toml", b"a = '\xe9'"))).contains("is not text in UTF-8"));
    assert!(file::read_text_if_there(&scratch.path("nothing.json")).unwrap().is_none());
}

#[cfg(feature = "parquet")]
#[test]
fn rows_that_parquet_declares_are_counted_before_they_are_read() {
    let _alone = memory::alone();
    let scratch = Scratch::new("limits-parquet");
    let path = scratch.path("same.parquet");
    let values = vec![1.0; 4_000_000];
    Limits::DEFAULT.set();
    write_table(&path, &[Column::numbers("x", values)]).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 50_000, "a bomb is small");
    let message = table(&path);
    tells_limit_and_flag(&message, "declares 4000000 rows of 1 columns and would take 30.5 MiB of memory");
}
