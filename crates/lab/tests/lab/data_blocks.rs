//! Tables by blocks are the tables: read in parts, from any place on, and written in parts.

use minvel_lab::table::{
    Blocks, CellKind, Column, Dataset, Extent, Input, Output, ROWS, Request, Table, TableOptions, appended_names,
    write_table,
};
use minvel_testing::Scratch;
use std::path::{Path, PathBuf};

/// Blocks of so many rows.
fn blocks(path: &Path, rows: usize) -> Blocks {
    Blocks::open(path, &TableOptions::default()).unwrap().of_rows(rows)
}

/// All rows of some blocks, as text, with their places.
fn cells(mut blocks: Blocks) -> Vec<(String, Vec<String>)> {
    let mut all = vec![];
    while let Some(block) = blocks.next_block().unwrap() {
        all.extend(rows_of(&block));
    }
    all
}

fn rows_of(table: &Table) -> Vec<(String, Vec<String>)> {
    let row = |row: usize| (table.place(row), table.columns.iter().map(|c| c.text(row)).collect());
    (0..table.rows()).map(row).collect()
}

/// A file again, with further columns, in blocks of three rows.
pub fn append_columns(source: &Path, out: &Path, more: &[Column]) {
    let mut blocks = blocks(source, 3);
    blocks.keep_records();
    let names: Vec<&str> = more.iter().map(|c| c.name.as_str()).collect();
    let kinds = blocks.kinds().unwrap_or(vec![CellKind::Text; blocks.head().columns.len()]);
    let columns = appended_names(blocks.head(), &names).into_iter();
    let columns = columns.zip(kinds.into_iter().chain(vec![CellKind::Number; more.len()])).collect();
    let mut output = Output::create(out, columns, None).unwrap();
    let mut first = 0;
    while let Some(block) = blocks.next_block().unwrap() {
        let part = |c: &Column| Column::numbers(c.name.clone(), c.values[first..first + block.rows()].to_vec());
        output.write(&block, &more.iter().map(part).collect::<Vec<_>>(), &()).unwrap();
        first += block.rows();
    }
    output.finish().unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Files that are hard to cut: quotes over several lines, blank lines, comments, ends of lines of all kinds, no names,
/// missing values, decimal commas, text; and arrays and row groups of all kinds.
fn awkward(scratch: &Scratch) -> Vec<PathBuf> {
    let long: String = (0..200).map(|i| format!("{},{}\n", i % 61, f64::from(i) / 7.0)).collect();
    let texts = [
        ("quotes.csv", "id,x\n\"a\nb, \"\"c\"\"\",1\n\n# no row\n  \n\"d\ne\",2\nf,3\n\"g\",4\n"),
        ("crlf.csv", "x,y\r\n1,2\r\n\r\n3,4\r\n5,6"),
        ("bare.tsv", "1\t2\n3\t4\n5\tNA\n7\t\n"),
        ("comma.csv", "\u{feff}a;b\n0,5;x, y\n1,5;\n2,5;z\n3,5;w\n"),
        ("spaces.txt", "% a b\n 1   2\n3 4\n\n5 6 \n7 nan\n"),
        ("long.csv", long.as_str()),
        ("names.csv", "a,b\n"),
    ];
    let mut all: Vec<PathBuf> = texts.iter().map(|(name, text)| scratch.file(name, text)).collect();
    all.push(scratch.file("long.csv.gz", gzip(long.as_bytes())));
    all.push(scratch.file("latin.csv", b"L\xe4nge;b\n1,5;2\n2,5;\xfc\n3,5;4\n"));
    let mut mixed = Column::named("mixed");
    (0..50).for_each(|i| mixed.push_text(["1.5", "", "north", "-inf", "12345678901234567890"][i % 5]));
    let mut gaps = Column::named("gaps");
    (0..50).for_each(|i| {
        if i % 3 == 0 { gaps.push_odd(String::new()) } else { gaps.push_number(f64::from(i as u32), String::new) }
    });
    let numbers = Column::numbers("x", (0..50).map(|i| f64::from(i).sin()).collect());
    write_table(&scratch.path("t.parquet"), &[numbers.clone(), mixed, gaps]).unwrap();
    write_table(&scratch.path("t.npy"), &[numbers.clone(), numbers.clone()]).unwrap();
    all.extend([scratch.path("t.parquet"), scratch.path("t.npy")]);
    all.push(scratch.file("t.npy.gz", gzip(&std::fs::read(scratch.path("t.npy")).unwrap())));
    append_columns(&scratch.path("t.parquet"), &scratch.path("groups.parquet"), &[numbers]);
    all.push(scratch.path("groups.parquet"));
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data_fixtures");
    let fixtures = std::fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: &PathBuf| Table::read(path, &TableOptions::default()).is_ok();
    all.extend(fixtures.filter(|path| path.is_file()).filter(read));
    all
}

#[test]
fn blocks_of_any_size_are_the_whole_table() {
    let scratch = Scratch::new("blocks");
    for path in awkward(&scratch) {
        let whole = Table::read(&path, &TableOptions::default()).unwrap();
        for rows in [1, 2, 7, ROWS] {
            assert_eq!(cells(blocks(&path, rows)), rows_of(&whole), "{} by {rows}", path.display());
        }
        assert_eq!(
            blocks(&path, 1).head().columns.iter().map(|c| &c.name).collect::<Vec<_>>(),
            whole.columns.iter().map(|c| &c.name).collect::<Vec<_>>()
        );
        if let Extent::Rows(rows) = blocks(&path, 1).extent() {
            assert_eq!(rows as usize, whole.rows(), "{}", path.display());
        }
    }
}

#[test]
fn reading_goes_on_after_any_block() {
    let scratch = Scratch::new("blocks-resume");
    for path in awkward(&scratch) {
        let all = cells(blocks(&path, 2));
        let mut first = blocks(&path, 2);
        let mut seen = 0;
        while let Some(block) = first.next_block().unwrap() {
            seen += block.rows();
            let mut rest = blocks(&path, 2);
            rest.resume(first.position()).unwrap();
            assert_eq!(cells(rest), all[seen..], "{} after {seen} rows", path.display());
        }
    }
}

#[test]
fn columns_that_are_not_asked_for_stay_empty() {
    let scratch = Scratch::new("blocks-keep");
    for path in awkward(&scratch).into_iter().filter(|path| blocks(path, 1).head().columns.len() > 1) {
        let whole = Table::read(&path, &TableOptions::default()).unwrap();
        let mut some = blocks(&path, 3);
        some.keep(&[1]);
        let mut values = Column::named(whole.columns[1].name.clone());
        while let Some(block) = some.next_block().unwrap() {
            assert!(block.columns[0].values.is_empty(), "{}", path.display());
            (0..block.rows()).for_each(|row| values.push_text(&block.columns[1].text(row)));
        }
        let texts = |c: &Column| (0..c.values.len()).map(|row| c.text(row)).collect::<Vec<_>>();
        assert_eq!(texts(&values), texts(&whole.columns[1]), "{}", path.display());
    }
}

/// Every format, from every format: what is written in blocks reads as what was read.
#[test]
fn a_table_written_by_blocks_is_the_table() {
    let scratch = Scratch::new("blocks-write");
    for path in awkward(&scratch) {
        let whole = Table::read(&path, &TableOptions::default()).unwrap();
        let more = [Column::numbers("s", (0..whole.rows()).map(|i| i as f64 / 3.0).collect())];
        let numbers = whole.columns.iter().all(|c| c.kind() == CellKind::Number);
        for name in ["out.csv", "out.tsv.gz", "out.parquet", "out.npy"] {
            let text = whole.delimiter.is_some();
            if whole.rows() == 0 || (name == "out.npy" && !numbers) || (name == "out.npy" && text) {
                continue;
            }
            append_columns(&path, &scratch.path(name), &more);
            let again = Table::read(&scratch.path(name), &TableOptions::default()).unwrap();
            assert_eq!(again.rows(), whole.rows(), "{} as {name}", path.display());
            let last = again.columns.last().unwrap();
            assert_eq!(last.values, more[0].values, "{} as {name}", path.display());
            for (one, other) in whole.columns.iter().zip(&again.columns) {
                let texts = |c: &Column| (0..c.values.len()).map(|row| c.text(row)).collect::<Vec<_>>();
                let same = |(a, b): (&String, &String)| {
                    // numbers may be written otherwise, and NPY has no empty cells
                    let value = |t: &str| t.parse::<f64>().ok().filter(|v| !v.is_nan());
                    a == b
                        || value(a).is_some_and(|v| value(b) == Some(v))
                        || (value(a).is_none() && value(b).is_none() && name == "out.npy")
                        || a.eq_ignore_ascii_case(b)
                };
                assert!(
                    texts(one).iter().zip(&texts(other)).all(same),
                    "{} as {name}: {one:?} {other:?}",
                    path.display()
                );
            }
        }
    }
}

/// A column of integers was written as f64 before, or as text from 2⁵³ on.
#[test]
fn whole_numbers_of_64_bits_stay_what_they_are() {
    let scratch = Scratch::new("blocks-integers");
    let mut ids = Column::named("id");
    ["1", "", "9007199254740993", "-9223372036854775808"].iter().for_each(|id| match id.parse::<i64>() {
        Ok(id) if id.unsigned_abs() <= 1 << 53 => ids.push_number(id as f64, String::new),
        _ => ids.push_odd(id.to_string()),
    });
    let table = Table { columns: vec![ids], ..Table::default() };
    for kind in [CellKind::Integer, CellKind::Text] {
        let path = scratch.path("ids.parquet");
        let mut output = Output::create(&path, vec![("id".into(), kind)], None).unwrap();
        output.write(&table, &[], &()).unwrap();
        output.finish().unwrap();
        assert_eq!(blocks(&path, 2).kinds(), Some(vec![kind]));
        append_columns(&path, &scratch.path("again.parquet"), &[]);
        let again = blocks(&scratch.path("again.parquet"), 9);
        assert_eq!(again.kinds(), Some(vec![kind]));
        assert_eq!(
            cells(again).into_iter().map(|(_, row)| row[0].clone()).collect::<Vec<_>>(),
            ["1", "", "9007199254740993", "-9223372036854775808"]
        );
    }
}

/// Guesses need all rows: here units are known only from the last one, and a column of words becomes one of numbers.
#[test]
fn data_of_many_blocks_are_the_data() {
    let scratch = Scratch::new("blocks-fit");
    let rows = 2 * ROWS + 17;
    let line = |i: usize| {
        let (lat, lon) = ((i % 97) as f64 / 97.0, (i % 89) as f64 / 89.0);
        let late = if i < ROWS + 1 { "word".to_string() } else { format!("{}", i % 13) };
        format!("{i},{},{},{late},text {i}\n", lat, if i + 1 == rows { 200.0 } else { lon })
    };
    let text: String = std::iter::once("id,lat,lon,late,words\n".to_string()).chain((0..rows).map(line)).collect();
    let path = scratch.file("many.csv", &text);
    let request = Request::default();
    let by_passes = Dataset::read(&path, &request).unwrap();
    let at_once = Dataset::of(Table::read(&path, &request.options).unwrap(), &request).unwrap();
    assert_eq!(by_passes.points, at_once.points);
    assert_eq!((by_passes.coordinates, by_passes.sha256), (at_once.coordinates, at_once.sha256));
    assert_eq!((by_passes.guesses, by_passes.unused), (at_once.guesses, at_once.unused));
    let chosen = Request {
        manifold: Some("euclidean:2".into()),
        columns: Some(vec!["a".into(), "lon".into()]),
        names: vec![("a".into(), "2".into())],
        ..Request::default()
    };
    let by_passes = Dataset::read(&path, &chosen).unwrap();
    let at_once = Dataset::of(Table::read(&path, &chosen.options).unwrap(), &chosen).unwrap();
    assert_eq!((by_passes.points, by_passes.coordinates), (at_once.points, at_once.coordinates));
    // a bad cell far down is named by its line
    let broken = text.replace(&format!("{},", ROWS + 3), &format!("{},x", ROWS + 3));
    let message = Dataset::read(&scratch.file("broken.csv", broken), &request).unwrap_err().to_string();
    assert!(message.contains(&format!("line {}", ROWS + 5)), "{message}");
    // of all numeric columns, more than one reading is possible
    let open = Request { columns: None, manifold: None, ..Request::default() };
    let unnamed: String = (0..rows).map(|i| format!("{},{}\n", i % 97, i % 89)).collect();
    let message = Dataset::read(&scratch.file("unnamed.csv", unnamed), &open).unwrap_err().to_string();
    assert!(message.contains("does not determine the manifold"), "{message}");
    assert_eq!(Input::from(path.as_path()).fingerprint().unwrap().unwrap().bytes, text.len() as u64);
}
