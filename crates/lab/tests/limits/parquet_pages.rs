//! Parquet files by hand, whose pages announce what they do not hold; and the hook of panics, which is not the reader's.
#![cfg(feature = "parquet")]

use crate::memory;

use minvel::Limits;
use minvel_lab::table::{Table, TableOptions};
use minvel_testing::Scratch;
use std::io::Write;

/// A value of Thrift's compact protocol.
enum Thrift {
    Int(i64),
    Long(i64),
    Text(&'static str),
    List(Vec<Thrift>),
    Struct(Vec<(u8, Thrift)>),
    /// A list of truths that is said to be so long, and holds none.
    Endless(u64),
}

use Thrift::{Endless, Int, List, Long, Struct, Text};

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

impl Thrift {
    fn kind(&self) -> u8 {
        match self {
            Int(_) => 5,
            Long(_) => 6,
            Text(_) => 8,
            List(_) | Endless(_) => 9,
            Struct(_) => 12,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Int(n) | Long(n) => varint(out, ((n << 1) ^ (n >> 63)) as u64),
            Text(text) => {
                varint(out, text.len() as u64);
                out.extend(text.bytes());
            }
            Endless(count) => {
                out.push(0xf1);
                varint(out, *count);
            }
            List(all) => {
                out.push((all.len() as u8) << 4 | all.first().map_or(5, Thrift::kind));
                all.iter().for_each(|one| one.put(out));
            }
            Struct(fields) => {
                let mut last = 0;
                for (field, value) in fields {
                    out.push((field - last) << 4 | value.kind());
                    value.put(out);
                    last = *field;
                }
                out.push(0);
            }
        }
    }
}

const PLAIN: i64 = 0;
const DELTA_LENGTH: i64 = 6;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const UNCOMPRESSED: i64 = 0;
const SNAPPY: i64 = 1;
const GZIP: i64 = 2;

/// A file of one column and two rows.
struct Hand {
    kind: i64,
    codec: i64,
    /// The header of its only page, and its body.
    page: (Thrift, Vec<u8>),
}

/// A page of data that announces so many bytes.
fn data(uncompressed: i64, encoding: i64, body: Vec<u8>) -> (Thrift, Vec<u8>) {
    let about = Struct(vec![(1, Int(2)), (2, Int(encoding)), (3, Int(3)), (4, Int(3))]);
    (Struct(vec![(1, Int(0)), (2, Int(uncompressed)), (3, Int(body.len() as i64)), (5, about)]), body)
}

fn two_doubles() -> Vec<u8> {
    [1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect()
}

impl Hand {
    fn bytes(&self) -> Vec<u8> {
        let mut out = b"PAR1".to_vec();
        self.page.0.put(&mut out);
        out.extend(&self.page.1);
        let length = out.len() as i64 - 4;
        let about = Struct(vec![
            (1, Int(self.kind)),
            (2, List(vec![Int(PLAIN)])),
            (3, List(vec![Text("x")])),
            (4, Int(self.codec)),
            (5, Long(2)),
            (6, Long(length)),
            (7, Long(length)),
            (9, Long(4)),
        ]);
        let group =
            Struct(vec![(1, List(vec![Struct(vec![(2, Long(4)), (3, about)])])), (2, Long(length)), (3, Long(2))]);
        let schema = List(vec![
            Struct(vec![(4, Text("table")), (5, Int(1))]),
            Struct(vec![(1, Int(self.kind)), (3, Int(0)), (4, Text("x"))]),
        ]);
        let footer = Struct(vec![(1, Int(1)), (2, schema), (3, Long(2)), (4, List(vec![group]))]);
        let start = out.len();
        footer.put(&mut out);
        let length = (out.len() - start) as u32;
        out.extend(length.to_le_bytes());
        out.extend(b"PAR1");
        out
    }

    /// What is said about it, after it took little memory.
    fn refusal(&self, scratch: &Scratch) -> String {
        let path = scratch.file("hand.parquet", self.bytes());
        Limits { bytes: 8 << 20 }.set();
        let (outcome, peak) = memory::peak(|| Table::read(&path, &TableOptions::default()));
        assert!(peak < 32 << 20, "it took {} MB", peak >> 20);
        outcome.expect_err("it is damaged").to_string()
    }
}

/// Without it, the tests below could fail for another reason.
#[test]
fn a_sound_file_by_hand_is_read() {
    let _alone = memory::alone();
    let scratch = Scratch::new("hand-sound");
    let plain = Hand { kind: DOUBLE, codec: UNCOMPRESSED, page: data(16, PLAIN, two_doubles()) };
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(&two_doubles()).unwrap();
    let packed = Hand { kind: DOUBLE, codec: GZIP, page: data(16, PLAIN, encoder.finish().unwrap()) };
    // lengths 1 and 2 as blocks of 128 in 4 parts: two numbers, the first 1, then 1 more, none of which takes a bit
    let texts = Hand {
        kind: BYTE_ARRAY,
        codec: UNCOMPRESSED,
        page: data(14, DELTA_LENGTH, [&[0x80, 1, 4, 2, 2, 2, 0, 0, 0, 0][..], b"abb"].concat()),
    };
    for (hand, cells) in [(plain, ["1.5", "-2"]), (packed, ["1.5", "-2"]), (texts, ["a", "bb"])] {
        let table = Table::read(&scratch.file("hand.parquet", hand.bytes()), &TableOptions::default()).unwrap();
        assert_eq!([table.columns[0].text(0), table.columns[0].text(1)], cells);
    }
}

/// The decoder made room for as many entries, of 32 bytes each.
#[test]
fn a_dictionary_has_no_more_entries_than_bytes() {
    let _alone = memory::alone();
    let about = Struct(vec![(1, Int(i32::MAX as i64)), (2, Int(PLAIN))]);
    let header = Struct(vec![(1, Int(2)), (2, Int(16)), (3, Int(16)), (7, about)]);
    let hand = Hand { kind: DOUBLE, codec: UNCOMPRESSED, page: (header, two_doubles()) };
    let message = hand.refusal(&Scratch::new("hand-dictionary"));
    assert!(message.contains("a dictionary of 16 bytes declares 2147483647 entries"), "{message}");
}

/// The decoder unpacked all that gzip held and looked at the length afterwards.
#[test]
fn a_page_in_gzip_unpacks_to_what_it_announces() {
    let _alone = memory::alone();
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(&vec![0; 100 << 20]).unwrap();
    let hand = Hand { kind: DOUBLE, codec: GZIP, page: data(16, PLAIN, encoder.finish().unwrap()) };
    let message = hand.refusal(&Scratch::new("hand-gzip"));
    assert!(message.contains("a page decompresses to more than its 16 bytes"), "{message}");
}

#[test]
fn a_page_announces_no_more_than_the_limit() {
    let _alone = memory::alone();
    let hand = Hand { kind: DOUBLE, codec: SNAPPY, page: data(i32::MAX as i64, PLAIN, two_doubles()) };
    let message = hand.refusal(&Scratch::new("hand-page"));
    assert!(message.contains("a page would take 1.9 GiB of memory, and the limit is 8 MiB"), "{message}");
}

/// The decoder made room for as many lengths as stood in the page.
#[test]
fn texts_have_no_more_lengths_than_the_column_has_rows() {
    let _alone = memory::alone();
    let mut body = vec![0x80, 1, 4];
    varint(&mut body, 1 << 40);
    body.extend([2, 2, 0, 0, 0, 0]);
    let page = data(body.len() as i64, DELTA_LENGTH, body);
    let message = Hand { kind: BYTE_ARRAY, codec: UNCOMPRESSED, page }.refusal(&Scratch::new("hand-delta"));
    assert!(message.contains("a page declares 1099511627776 texts, but the column has 2 rows"), "{message}");
}

/// Found while looking into a slow input of the fuzzer: behind the end of the file elements were skipped without end.
#[test]
fn lists_in_the_header_of_a_page_end_with_the_file() {
    let _alone = memory::alone();
    let header = Struct(vec![(1, Int(0)), (2, Int(16)), (3, Int(16)), (6, Endless(1 << 60))]);
    let message = Hand { kind: DOUBLE, codec: UNCOMPRESSED, page: (header, two_doubles()) };
    let message = message.refusal(&Scratch::new("hand-endless"));
    assert!(message.contains("the header of a page is truncated"), "{message}");
}

/// The reader once put its own hook in place of the program's, to be silent about panics of the decoder.
#[test]
fn reading_leaves_the_hook_of_panics_alone() {
    let _alone = memory::alone();
    let scratch = Scratch::new("hand-hook");
    let here = [7u8; 16];
    let hook = Box::new(move |_: &std::panic::PanicHookInfo| {
        std::hint::black_box(here);
    });
    let address = &raw const *hook as usize;
    let before = std::panic::take_hook();
    std::panic::set_hook(hook);
    let damaged = std::fs::read("tests/data_fixtures/damaged_list.parquet").unwrap();
    drop(Table::read(&scratch.file("damaged.parquet", damaged), &TableOptions::default()));
    let after = std::panic::take_hook();
    std::panic::set_hook(before);
    assert_eq!((&raw const *after).cast::<u8>() as usize, address);
}
