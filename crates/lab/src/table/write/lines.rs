//! Lines of text files.

use crate::table::columns::{Column, Table};
use crate::table::text::{fields, pointed};
use std::borrow::Cow;
use std::fmt::Write;

/// Adds the rows of a text file with further fields.
pub fn extended(out: &mut String, table: &Table, delimiter: char, more: &[Column]) {
    let old = table.delimiter.unwrap_or(',');
    for (row, record) in table.records.iter().enumerate() {
        if old == delimiter && table.decimal == '.' && is_plain(record, delimiter) {
            out.push_str(record);
        } else {
            let kept = fields(record, old).into_iter().map(|field| pointed(field, table.decimal));
            line(out, delimiter, kept);
            out.pop();
        }
        for column in more {
            out.push(delimiter);
            cell(out, delimiter, column, row);
        }
        out.push('\n');
    }
}

/// Whether the fields of a record would be written just as they stand there: no marks, no spaces, nothing to quote.
fn is_plain(record: &str, delimiter: char) -> bool {
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'#' | b'%' | b'/') || char::from(b) == delimiter;
    delimiter != ' ' && record.bytes().all(plain) && !record.starts_with(delimiter)
}

/// Adds a line of cells.
pub fn cells(out: &mut String, delimiter: char, columns: &[&Column], row: usize) {
    for (k, column) in columns.iter().enumerate() {
        if k > 0 {
            out.push(delimiter);
        }
        if k == 0 && !column.values[row].is_finite() {
            field(out, delimiter, &column.text(row), true);
        } else {
            cell(out, delimiter, column, row);
        }
    }
    out.push('\n');
}

/// Adds a cell.
fn cell(out: &mut String, delimiter: char, column: &Column, row: usize) {
    match column.values[row] {
        value if value.is_finite() => drop(write!(out, "{value}")),
        _ => field(out, delimiter, &column.text(row), false),
    }
}

/// Adds a line of fields.
pub fn line<'a>(out: &mut String, delimiter: char, fields: impl Iterator<Item = Cow<'a, str>>) {
    for (k, text) in fields.enumerate() {
        if k > 0 {
            out.push(delimiter);
        }
        field(out, delimiter, &text, k == 0);
    }
    out.push('\n');
}

/// Adds a field, in quotation marks if it needs them.
fn field(out: &mut String, delimiter: char, text: &str, first: bool) {
    let special = |c: char| c == delimiter || matches!(c, '"' | '\n' | '\r');
    // marks of comments, outer spaces and an empty first field are quoted too, or they would not be read back
    let misread = ["#", "%", "//"].iter().any(|mark| text.starts_with(mark)) || text.trim() != text;
    match text.contains(special) || misread || (first && text.is_empty()) {
        true => {
            out.push('"');
            out.push_str(&text.replace('"', "\"\""));
            out.push('"');
        }
        false => out.push_str(text),
    }
}
