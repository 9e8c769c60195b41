//! Tables of bytes: NPY, NPZ and Parquet, also as other programs write them.

use crate::data_blocks::append_columns;
use minvel_lab::table::{Column, Dataset, Request, Table, TableOptions, write_table};
use minvel_testing::Scratch;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// A small file written by NumPy 2.4 or Arrow 26: 40 rows, lat = 2i − 39.5, lon = 9i − 179.25.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data_fixtures").join(name)
}

fn read(name: &str) -> Table {
    Table::read(&fixture(name), &TableOptions::default()).unwrap()
}

fn refusal(path: &Path) -> String {
    let error = Table::read(path, &TableOptions::default()).unwrap_err();
    assert!(error.is_input(), "{error}");
    error.to_string()
}

fn are_places(lat: &Column, lon: &Column) {
    assert!((0..40).all(|i| lat.values[i] == 2.0 * i as f64 - 39.5), "{lat:?}");
    assert!((0..40).all(|i| lon.values[i] == 9.0 * i as f64 - 179.25), "{lon:?}");
    assert_eq!((lat.values.len(), lon.values.len()), (40, 40));
}

#[test]
fn arrays_of_numpy_are_read_whatever_their_type_and_order() {
    let table = read("fortran.npy");
    are_places(&table.columns[0], &table.columns[1]);
    let table = read("big_i4.npy");
    assert_eq!(table.columns.iter().map(|c| c.values[1]).collect::<Vec<_>>(), [3.0, 4.0, 5.0]);
    let table = read("half.npy");
    assert_eq!(table.columns[1].values, [-2.0, 65504.0]);
    assert!((table.columns[0].values[1] - 1e-7).abs() < 2f64.powi(-24), "subnormal of two bytes");
    let table = read("cube_f.npy");
    assert_eq!(table.columns.len(), 12, "further axes are columns");
    assert_eq!(
        table.columns.iter().map(|c| c.values[1]).collect::<Vec<_>>(),
        (12..24).map(f64::from).collect::<Vec<_>>()
    );
    assert!(refusal(&fixture("named.npy")).contains("named fields"));
}

#[test]
fn archives_of_numpy_give_one_array_or_columns() {
    let table = read("two.npz");
    assert_eq!((table.columns[0].name.as_str(), table.columns[1].name.as_str()), ("lat", "lon"));
    are_places(&table.columns[0], &table.columns[1]);
    assert!(refusal(&fixture("several.npz")).contains("choose one by name: a, b"));
    let chosen = |name: &str| {
        Table::read(&fixture("several.npz"), &TableOptions { array: Some(name.into()), ..TableOptions::default() })
    };
    let table = chosen("a").unwrap();
    are_places(&table.columns[0], &table.columns[1]);
    assert_eq!(table.columns[1].name, "a[1]");
    assert!(chosen("c").unwrap_err().to_string().contains("no array `c`: it holds a, b"));
}

#[test]
fn damaged_arrays_are_refused() {
    let scratch = Scratch::new("damaged");
    let whole = std::fs::read(fixture("fortran.npy")).unwrap();
    let cut = scratch.file("cut.npy", &whole[..whole.len() - 1]);
    assert!(refusal(&cut).contains("truncated"), "{}", refusal(&cut));
    let header = |text: &str| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        scratch.file("header.npy", bytes)
    };
    for (text, expected) in [
        ("{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", "`<c16`"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "`|O`"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", "single number"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0), }", "numbers per row are supported"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 1000000), }", "numbers per row are supported"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 60000), }", "15.9 EiB of memory"),
        ("{'descr': '<f8', 'fortran_order': True, 'shape': (1000000000000, 2), }", "14.5 TiB of memory"),
        ("{'descr': '<f8', 'fortran_order': True, 'shape': (10000000, 2), }", "truncated"),
        ("{'descr': '<f8', 'shape': (3,), }", "fortran_order"),
        ("{}", "descr"),
    ] {
        let message = refusal(&header(text));
        assert!(message.contains(expected) && message.contains("header.npy"), "{text}: {message}");
    }
}

#[test]
fn rows_without_lines_are_named_by_their_number() {
    let scratch = Scratch::new("rows");
    let mut values: Vec<f64> = (0..40).map(|i| 9.0 * i as f64).collect();
    values[7] = f64::NAN;
    let path = scratch.path("angles.npy");
    write_table(&path, &[Column::numbers("", values)]).unwrap();
    let request = Request { manifold: Some("torus:1".into()), ..Request::default() };
    let message = Dataset::read(&path, &request).unwrap_err().to_string();
    assert!(message.contains("angles.npy: row 8, column 1: `NaN` is not a finite number"), "{message}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_of_arrow_are_read() {
    for name in ["pyarrow_zstd.parquet", "pyarrow_snappy_v2.parquet", "pyarrow_gzip.parquet"] {
        let table = read(name);
        are_places(&table.columns[table.find("lat").unwrap()], &table.columns[table.find("lon").unwrap()]);
    }
    let table = read("pyarrow_zstd.parquet");
    let column = |name: &str| &table.columns[table.find(name).unwrap()];
    assert_eq!(column("station").text(39), "s39");
    assert_eq!((column("depth").text(3), column("depth").values[4]), (String::new(), 4.0));
    assert_eq!(column("id").text(1), "1152921504606846977", "beyond 2^53 a number would lose digits");
    assert_eq!(column("ok").values[..3], [1.0, 0.0, 1.0]);
    let lists: Vec<&Column> = table.columns.iter().filter(|c| c.name.starts_with("tags")).collect();
    assert!(lists.iter().all(|c| !c.is_numeric()) && lists.len() == 1);
    let data = Dataset::read(&fixture("pyarrow_zstd.parquet"), &Request::default()).unwrap();
    assert_eq!(data.coordinates.to_string(), "sphere:2 from lat, lon as latlon in degrees");
    let depth =
        Request { manifold: Some("euclidean:1".into()), columns: Some(vec!["depth".into()]), ..Request::default() };
    let message = Dataset::read(&fixture("pyarrow_zstd.parquet"), &depth).unwrap_err().to_string();
    assert!(message.contains("row 4, column 4 (`depth`): the cell is empty"), "{message}");
}

/// Found by fuzzing: a list whose page promises more values than there are bytes kept the reader busy for 38 s.
#[cfg(feature = "parquet")]
#[test]
fn a_damaged_page_is_not_decoded_for_ever() {
    let begun = std::time::Instant::now();
    let message = refusal(&fixture("damaged_list.parquet"));
    assert!(message.contains("damaged"), "{message}");
    assert!(begun.elapsed().as_secs() < 10, "it took {:?}", begun.elapsed());
}

#[cfg(feature = "parquet")]
#[test]
fn columns_are_appended_to_parquet() {
    let scratch = Scratch::new("append-parquet");
    let out = scratch.path("scored.parquet");
    let scores = Column::numbers("log_density", (0..40).map(f64::from).collect());
    append_columns(&fixture("pyarrow_zstd.parquet"), &out, &[scores]);
    let table = Table::read(&out, &TableOptions::default()).unwrap();
    let column = |name: &str| &table.columns[table.find(name).unwrap()];
    assert_eq!((column("log_density").values[39], column("station").text(39)), (39.0, "s39".into()));
    assert_eq!((column("depth").text(3), column("id").text(1)), (String::new(), "1152921504606846977".into()));
    let message = write_table(&scratch.path("t.npy"), &table.columns).unwrap_err().to_string();
    assert!(message.contains("column `station` holds text"), "{message}");
    assert!(!scratch.path("t.npy").exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_come_back_bit_for_bit(
        rows in prop::collection::vec(prop::array::uniform3(prop::num::f64::NORMAL | prop::num::f64::ZERO), 1..40),
        extension in prop::sample::select(vec!["npy", if cfg!(feature = "parquet") { "parquet" } else { "npy" }]),
    ) {
        let scratch = Scratch::new("bits");
        let column = |k: usize| Column::numbers(format!("c{k}"), rows.iter().map(|r| r[k]).collect());
        let path = scratch.path(&format!("t.{extension}"));
        write_table(&path, &[column(0), column(1), column(2)]).unwrap();
        let read = Table::read(&path, &TableOptions::default()).unwrap();
        for k in 0..3 {
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&read.columns[k].values), bits(&column(k).values));
        }
    }
}
