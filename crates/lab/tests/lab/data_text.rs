//! Tables of text: every form people write them in, and what is said about those that cannot be read.

use crate::data_blocks::append_columns;
use minvel_lab::table::{Column, Dataset, Request, Table, TableOptions, write_table};
use minvel_testing::Scratch;
use proptest::prelude::*;
use std::io::Write;

fn names(table: &Table) -> Vec<&str> {
    table.columns.iter().map(|c| c.name.as_str()).collect()
}

fn rows(table: &Table) -> Vec<Vec<String>> {
    (0..table.rows()).map(|row| table.columns.iter().map(|c| c.text(row)).collect()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_same_table_is_read_from_every_form_of_it() {
    let scratch = Scratch::new("forms");
    let forms: &[(&str, &str)] = &[
        ("comma", "a,b\n1,2.5\n-3,4e1\n"),
        ("semicolon", "a;b\n1;2.5\n-3;4e1\n"),
        ("tab", "a\tb\n1\t2.5\n-3\t4e1\n"),
        ("pipe", "a|b\n1|2.5\n-3|4e1\n"),
        ("spaces", "  a   b\n  1   2.5\n -3  4e1  \n"),
        ("comma and space", "a, b\n1, 2.5\n-3, 4e1\n"),
        ("tabs and spaces", "a \t b\n1 \t 2.5\n-3 \t 40\n"),
        ("lines of Windows", "a,b\r\n1,2.5\r\n-3,4e1\r\n"),
        ("byte order mark", "\u{feff}a,b\n1,2.5\n-3,4e1\n"),
        ("no end of line", "a,b\n1,2.5\n-3,4e1"),
        ("blank lines", "\n\na,b\n\n1,2.5\n-3,4e1\n\n\n  \n"),
        ("comments", "# of x\n% and y\n// and z, w\na,b\n# half\n1,2.5\n-3,4e1\n"),
        ("quotes", "\"a\",\"b\"\n\"1\",2.5\n-3,\"4e1\"\n"),
        ("quotes and spaces", "\"a\" \"b\"\n\"1\" 2.5\n-3 \"4e1\"\n"),
        ("decimal commas", "a;b\n1;2,5\n-3;40,0\n"),
        ("decimal commas and tabs", "a\tb\n1\t2,5\n-3\t4e1\n"),
        ("names in a comment", "# made by a program\n# a b\n1 2.5\n-3 4e1\n"),
    ];
    for (what, text) in forms {
        for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
            let table = Table::read(&scratch.file("table", &bytes), &TableOptions::default()).expect(what);
            assert_eq!(names(&table), ["a", "b"], "{what}");
            assert_eq!(table.columns[0].values, [1.0, -3.0], "{what}");
            assert_eq!(table.columns[1].values, [2.5, 40.0], "{what}");
            assert_eq!(table.sha256.len(), 64);
        }
    }
}

#[test]
fn the_hash_is_that_of_the_file() {
    let scratch = Scratch::new("hash");
    let path = scratch.file("abc.csv", "a,b\n1,2\n");
    let read = Table::read(&path, &TableOptions::default()).unwrap().sha256;
    assert_eq!(read, "492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470", "as sha256sum says");
    // longer than the buffers on the way, so that reads of several kinds meet
    let long = scratch.file("long.csv", "123456,7\n".repeat(50_000));
    let zipped = scratch.file("long.csv.gz", gzip("123456,7\n".repeat(50_000).as_bytes()));
    for path in [long, zipped] {
        let read = Table::read(&path, &TableOptions::default()).unwrap();
        assert_eq!((read.rows(), read.sha256), (50_000, minvel_lab::catalogue::sha256(&path).unwrap()));
    }
}

#[test]
fn a_first_line_of_numbers_is_data_and_of_words_is_not() {
    let scratch = Scratch::new("header");
    let read = |text: &str| Table::read(&scratch.file("t.csv", text), &TableOptions::default()).unwrap();
    assert_eq!(read("1,2\n3,4\n").rows(), 2);
    assert_eq!(read("x,1\n3,4\n").rows(), 2);
    assert_eq!(read("402d\tG\t-69.1\n397d\tC\t3.5\n").rows(), 2);
    assert_eq!(names(&read("id1,id2,weight\na,b,1\n")), ["id1", "id2", "weight"]);
    assert_eq!(read("a,b\nc,d\n").rows(), 2, "a file of words only has no names");
    assert_eq!(names(&read("lat,lon\nNA,NA\n1,2\n")), ["lat", "lon"], "the first row may lack its numbers");
    assert_eq!(names(&read("lat,lon\ndeg,deg\n1,2\n")), ["lat", "lon"]);
    for missing in ["nan,nan", "NA,NA", ",-"] {
        assert_eq!(read(&format!("{missing}\n1,2\n")).rows(), 2, "`{missing}` is a row without numbers, and no name");
    }
    let forced = TableOptions { header: Some(true), ..TableOptions::default() };
    let path = scratch.file("y.csv", "2020,2021\n1,2\n");
    assert_eq!(names(&Table::read(&path, &forced).unwrap()), ["2020", "2021"]);
}

#[test]
fn a_comma_before_decimals_is_believed_only_where_no_number_has_a_point() {
    let scratch = Scratch::new("decimals");
    let read = |text: &str| Table::read(&scratch.file("t.csv", text), &TableOptions::default()).unwrap();
    assert_eq!(read("a;b\n0,5;1,25e1\n-,5;x, y\n").columns[0].values, [0.5, -0.5]);
    let mixed = read("a;b\n0,5;1.5\n2,5;2.5\n");
    assert_eq!(
        (mixed.decimal, rows(&mixed)),
        ('.', vec![vec!["0,5".into(), "1.5".to_string()], vec!["2,5".into(), "2.5".into()]])
    );
    assert_eq!(read("a;b\n1,234,567;8\n0,5;9\n").columns[0].text(0), "1,234,567", "groups of thousands are no numbers");
    let source = scratch.file("in.csv", "a;word\n0,5;x, y\n-1,5;z\n");
    append_columns(&source, &scratch.path("out.csv"), &[Column::numbers("s", vec![1.5, 2.0])]);
    let text = std::fs::read_to_string(scratch.path("out.csv")).unwrap();
    assert_eq!(text, "a,word,s\n0.5,\"x, y\",1.5\n-1.5,z,2\n", "one file has one form of decimals");
}

#[test]
fn text_that_is_not_utf_8_is_latin_1() {
    let scratch = Scratch::new("latin");
    let path = scratch.file("t.csv", b"Breitengrad;L\xe4ngengrad\n1,5;2,5\n");
    assert_eq!(names(&Table::read(&path, &TableOptions::default()).unwrap()), ["Breitengrad", "Längengrad"]);
}

#[test]
fn quoted_fields_keep_delimiters_marks_and_ends_of_lines() {
    let scratch = Scratch::new("quotes");
    let path = scratch.file("q.csv", "name,x\n\"a, \"\"b\"\"\nc\",1\n\"\",2\nplain \"word\",3\n");
    let table = Table::read(&path, &TableOptions::default()).unwrap();
    assert_eq!(table.columns[0].text(0), "a, \"b\"\nc");
    assert_eq!(table.columns[0].text(2), "plain \"word\"");
    assert_eq!(table.lines, [2, 4, 5], "rows begin on these lines");
}

#[test]
fn the_delimiter_can_be_given() {
    let scratch = Scratch::new("delimiter");
    let path = scratch.file("t.txt", "a:b\n1:2\n3:4\n");
    let table = Table::read(&path, &TableOptions { delimiter: Some(':'), ..TableOptions::default() }).unwrap();
    assert_eq!(rows(&table), [["1", "2"], ["3", "4"]]);
}

fn refusal(text: impl AsRef<[u8]>, request: &Request) -> String {
    let scratch = Scratch::new(&format!("refusal-{:?}", std::thread::current().id()).replace(['(', ')'], "-"));
    let error = Dataset::read(&scratch.file("bad.csv", text), request).unwrap_err();
    assert!(error.is_input(), "{error}");
    let message = error.to_string();
    assert!(message.contains("bad.csv"), "the file is named: {message}");
    message
}

/// A table of 40 good rows with one row changed.
fn spoilt(row: usize, text: &str) -> String {
    let mut lines: Vec<String> = (0..40).map(|i| format!("{}.5,{}", 2 * i - 40, 9 * i - 180)).collect();
    lines[row] = text.to_string();
    format!("# places\nlat,lon\n{}\n", lines.join("\n"))
}

#[test]
fn bad_cells_are_refused_with_line_column_and_advice() {
    let request = Request { manifold: Some("sphere:2".into()), ..Request::default() };
    let cases: &[(&str, &[&str])] = &[
        ("12,east", &["line 9, column 2 (`lon`)", "`east` is not a number", "correct or remove"]),
        (",12", &["line 9, column 1 (`lat`)", "empty"]),
        ("12,NaN", &["line 9, column 2 (`lon`)", "`NaN` is not a finite number"]),
        ("-inf,12", &["line 9, column 1 (`lat`)", "`-inf` is not a finite number"]),
        ("\"12,5\",7", &["line 9, column 1 (`lat`)", "decimals with a point"]),
        ("12", &["line 9 has 1 field", "line 2 has 2", "`,`"]),
        ("1,2,3", &["line 9 has 3 fields", "`1,2,3`"]),
        ("\"12,7", &["line 9 opens a quotation mark"]),
        ("95,7", &["line 9, column 1 (`lat`)", "95", "beyond ±90 degrees", "lonlat"]),
    ];
    for (row, expected) in cases {
        let message = refusal(spoilt(6, row), &request);
        expected.iter().for_each(|part| assert!(message.contains(part), "`{row}`: {message}"));
    }
}

#[test]
fn files_that_are_no_tables_are_refused() {
    let any = Request::default();
    for (bytes, expected) in [
        (b"".to_vec(), "empty"),
        (b"# only\n# comments\n".to_vec(), "empty"),
        (b"a,b\n".to_vec(), "0 rows: at least 3"),
        (b"a,b\n1,2\n".to_vec(), "1 row: at least 3"),
        (b"ab\0cd\n".to_vec(), "neither text"),
        (b"\xff\xfea\0,\0".to_vec(), "UTF-16"),
        (b"PK\x03\x04 not a zip".to_vec(), "NPZ"),
        (gzip(b"a,b\n1,2\n")[..20].to_vec(), "damaged or truncated"),
        (vec![b'x'; (1 << 24) + 2], "longer than"),
    ] {
        let message = refusal(&bytes, &any);
        assert!(message.contains(expected), "{message}");
    }
    let message = Dataset::read(&std::env::temp_dir(), &any).unwrap_err().to_string();
    assert!(message.contains("folder"), "{message}");
    let message = Dataset::read(std::path::Path::new("no-such-file.csv"), &any).unwrap_err().to_string();
    assert!(message.contains("no-such-file.csv"), "{message}");
}

#[test]
fn columns_are_appended_without_touching_the_others() {
    let scratch = Scratch::new("append");
    let source = scratch.file("in.csv", "# note\nid;name;x\n007;\"a;b\";31.100\n12345678901234567890;\"c\";-0\n");
    let scores =
        [Column::numbers("log_density", vec![-1.5, 1e-300]), Column::numbers("energy", vec![2.0, f64::INFINITY])];
    let out = scratch.path("out.csv");
    append_columns(&source, &out, &scores);
    let text = std::fs::read_to_string(&out).unwrap();
    let tiny = 1e-300f64.to_string();
    let expected =
        format!("id,name,x,log_density,energy\n007,a;b,31.100,-1.5,2\n12345678901234567890,c,-0,{tiny},inf\n");
    assert_eq!(text, expected);
    let without_names = scratch.file("bare.tsv", "1\t2\n3\t4\n");
    let zipped = scratch.path("out.tsv.gz");
    append_columns(&without_names, &zipped, &scores[..1]);
    let table = Table::read(&zipped, &TableOptions::default()).unwrap();
    assert_eq!(names(&table), ["column1", "column2", "log_density"]);
    append_columns(&zipped, &zipped, &[Column::numbers("more", vec![5.0, 6.0])]);
    assert_eq!(Table::read(&zipped, &TableOptions::default()).unwrap().columns[3].values, [5.0, 6.0]);
    append_columns(&out, &scratch.path("twice.csv"), &scores);
    let twice = Table::read(&scratch.path("twice.csv"), &TableOptions::default()).unwrap();
    assert_eq!(
        names(&twice)[3..],
        ["log_density", "energy", "log_density_2", "energy_2"],
        "no two columns of one name"
    );
    assert!(!scratch.list().iter().any(|name| name.ends_with(".partial")));
}

#[test]
fn names_of_files_that_cannot_be_written_are_refused() {
    let message = write_table("out.xlsx".as_ref(), &[Column::numbers("a", vec![1.0])]).unwrap_err().to_string();
    assert!(message.contains("out.xlsx") && message.contains(".parquet"), "{message}");
    let message = minvel_lab::table::check_name("no-such-folder/a.csv".as_ref()).unwrap_err().to_string();
    assert!(message.contains("there is no folder no-such-folder"), "{message}");
    assert!(
        minvel_lab::table::check_name("a.csv.gz".as_ref()).is_ok()
            && minvel_lab::table::check_name("a".as_ref()).is_err()
    );
}

#[test]
fn a_file_that_cannot_take_its_name_leaves_nothing_behind() {
    let scratch = Scratch::new("half");
    let taken = scratch.path("taken.csv");
    std::fs::create_dir(&taken).unwrap();
    let message = minvel::file::write(&taken, b"1,2").unwrap_err().to_string();
    assert!(message.contains("taken.csv:"), "the file is named, not its neighbour: {message}");
    assert_eq!(scratch.list(), ["taken.csv"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(
        numbers in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL, 2..20),
        words in prop::collection::vec("[a-z ,;\"\t#%/\n|]{0,12}", 20),
        extension in prop::sample::select(vec!["csv", "tsv", "csv.gz", "tsv.gz"]),
    ) {
        let scratch = Scratch::new("written");
        let mut text = Column::named("a word");
        words[..numbers.len()].iter().for_each(|word| text.push_text(word));
        let columns = [Column::numbers("x", numbers.clone()), text, Column::numbers("y,\"z\"", numbers)];
        let path = scratch.path(&format!("t.{extension}"));
        write_table(&path, &columns).unwrap();
        let delimiter = if extension.starts_with("csv") { ',' } else { '\t' };
        let read = Table::read(&path, &TableOptions { delimiter: Some(delimiter), ..TableOptions::default() }).unwrap();
        prop_assert_eq!(&read.columns[0], &columns[0]);
        prop_assert_eq!(&read.columns[2], &columns[2]);
        for row in 0..read.rows() {
            prop_assert_eq!(read.columns[1].text(row), columns[1].text(row));
        }
    }
}
