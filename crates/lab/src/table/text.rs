//! Tables as text: CSV, TSV and their relatives.
//!
//! **Conventions.** Lines that begin with `#`, `%` or `//` are comments; blank lines are skipped; fields may be quoted
//! (`"a, ""b"""`, also over several lines). The delimiter is the one of tab, `;`, `,`, `|`, white space that cuts the first
//! lines into equally many fields. The first line holds names if it holds no number and a later one does; without such a
//! line, a last comment of as many single words does. Decimals have a point; where fields are not separated by commas and no
//! number has a point, they have a comma.
//!
//! **Checked by** tests/lab/data_text.rs, and by the fuzzer in `fuzz/`.

mod records;

use super::blocks::Want;
use super::columns::{MOST_COLUMNS, Table, TableOptions};
use minvel::Error;
use minvel::limits::{Meter, TooLarge};
pub(super) use records::Place;
use records::{Record, Records};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::Path;

/// Delimiters in the order they are believed in: a decimal comma is likelier than a semicolon inside a field.
const DELIMITERS: [char; 5] = ['\t', ';', ',', '|', ' '];

/// Records looked at to find the delimiter.
const SAMPLE: usize = 64;

/// Bytes after which no further record is looked at: each field of a sample is a text of its own.
const LONG_SAMPLE: usize = 1 << 18;

/// The fields of a record; those after the first `MOST_COLUMNS` are one, since no table has so many.
pub(super) fn fields(text: &str, delimiter: char) -> Vec<Cow<'_, str>> {
    let blank = delimiter == ' ';
    let ends = |c: char| if blank { c.is_whitespace() } else { c == delimiter };
    let mut rest = if blank { text.trim() } else { text };
    let mut out = vec![];
    loop {
        let (field, after) = match rest.trim_start_matches(' ').strip_prefix('"') {
            Some(quoted) => {
                let (field, after) = unquote(quoted, ends);
                (Cow::Owned(field), after)
            }
            None => {
                let end = rest.find(ends).unwrap_or(rest.len());
                (Cow::Borrowed(rest[..end].trim()), &rest[end..])
            }
        };
        out.push(field);
        if out.len() > MOST_COLUMNS {
            return out;
        }
        let mut after = after.chars();
        match after.next() {
            Some(_) => rest = if blank { after.as_str().trim_start() } else { after.as_str() },
            None => return out,
        }
    }
}

/// A quoted field without its marks, and what follows it from the delimiter on.
fn unquote(quoted: &str, ends: impl Fn(char) -> bool) -> (String, &str) {
    let mut field = String::new();
    let mut marks = quoted.char_indices().peekable();
    while let Some((i, c)) = marks.next() {
        match (c, marks.peek()) {
            ('"', Some((_, '"'))) => {
                field.push('"');
                marks.next();
            }
            ('"', _) => {
                let rest = &quoted[i + 1..];
                let end = rest.find(ends).unwrap_or(rest.len());
                field.push_str(rest[..end].trim());
                return (field, &rest[end..]);
            }
            _ => field.push(c),
        }
    }
    (field, "")
}

/// The delimiter that cuts most records into the same number of fields, at least two; white space if none does.
fn sniff(records: &[Record]) -> char {
    let agreement = |delimiter: char| {
        let mut counts: Vec<usize> = records.iter().map(|r| fields(&r.text, delimiter).len()).collect();
        counts.sort_unstable();
        let runs = counts.chunk_by(|a, b| a == b).filter(|run| run[0] > 1);
        runs.map(<[usize]>::len).max().unwrap_or(0)
    };
    let scores = DELIMITERS.map(agreement);
    let best = scores.into_iter().max().unwrap_or(0);
    // the first of the best: the order of the list decides between equals
    scores.iter().position(|s| *s == best && best > 0).map_or(' ', |k| DELIMITERS[k])
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok_and(f64::is_finite)
}

/// A field with a decimal point, if a comma stands for it.
pub(super) fn pointed(field: Cow<'_, str>, decimal: char) -> Cow<'_, str> {
    match decimal == ',' && !field.contains('.') {
        true => Some(field.replacen(',', ".", 1)).filter(|f| is_number(f)).map_or(field, Cow::Owned),
        false => field,
    }
}

/// What stands before decimals.
fn decimal_mark(records: &[Vec<Cow<str>>], delimiter: char) -> char {
    let fields = || records.iter().flatten();
    let pointed_numbers = || fields().any(|f| f.contains('.') && is_number(f));
    let comma_numbers = || fields().any(|f| !is_number(f) && is_number(&f.replacen(',', ".", 1)));
    if delimiter != ',' && comma_numbers() && !pointed_numbers() { ',' } else { '.' }
}

/// Whether the first record holds names: words, above numbers.
fn is_header(records: &[Vec<Cow<str>>]) -> bool {
    let Some((first, rest)) = records.split_first() else { return false };
    let is_data = |f: &Cow<str>| f.parse::<f64>().is_ok() || is_missing(f);
    let words = !first.iter().any(|f| f.parse::<f64>().is_ok()) && !first.iter().all(is_data);
    words && (rest.is_empty() || rest.iter().flatten().any(|f| is_number(f)))
}

/// What stands in a cell whose number is not known.
pub(super) fn is_missing(field: &str) -> bool {
    ["", "-", "?", "na", "n/a", "nan", "none", "null", "."].contains(&field.trim().to_lowercase().as_str())
}

/// The names in a comment, if it holds one word for each column, none of them a number.
fn names_in_comment(comment: Option<&str>, delimiter: char, count: usize) -> Option<Vec<String>> {
    let names: Vec<String> = fields(comment?, delimiter).into_iter().map(Cow::into_owned).collect();
    let word = |name: &String| !name.is_empty() && name.len() <= 32 && !name.contains(char::is_whitespace);
    (names.len() == count && names.iter().all(|n| word(n) && !is_number(n))).then_some(names)
}

/// How a text file is laid out: found from its beginning.
pub(super) struct Form {
    pub delimiter: char,
    /// What stands before decimals: a point or a comma.
    pub decimal: char,
    /// The records read to find out, without the names.
    start: VecDeque<Record>,
    /// The line of the first record.
    first: usize,
    pub names: Vec<String>,
}

/// Reads the beginning of a file and finds its form; `None` if there is no record.
fn form(records: &mut Records, options: &TableOptions) -> Result<Option<Form>, Error> {
    let (mut start, mut bytes) = (vec![], 0);
    while start.len() < SAMPLE && bytes <= LONG_SAMPLE {
        let Some(record) = records.next()? else { break };
        bytes += record.text.len();
        start.push(record);
    }
    if start.is_empty() {
        return Ok(None);
    }
    let delimiter = options.delimiter.unwrap_or_else(|| sniff(&start));
    let mut sample: Vec<Vec<Cow<str>>> = start.iter().map(|record| fields(&record.text, delimiter)).collect();
    let decimal = decimal_mark(&sample, delimiter);
    sample.iter_mut().flatten().for_each(|field| *field = pointed(std::mem::take(field), decimal));
    let header = options.header.unwrap_or_else(|| is_header(&sample));
    let names: Vec<String> = sample.swap_remove(0).into_iter().map(Cow::into_owned).collect();
    let names = match header {
        true => names,
        false => names_in_comment(records.comment.as_deref(), delimiter, names.len())
            .unwrap_or_else(|| vec![String::new(); names.len()]),
    };
    let (first, start) = (start[0].line, start.split_off(usize::from(header)).into());
    Ok(Some(Form { delimiter, decimal, start, first, names }))
}

/// A text file, a block after another.
pub(super) struct TextBlocks {
    records: Records,
    pub form: Form,
    /// Where the next block begins.
    at: Place,
}

impl TextBlocks {
    pub fn new(path: &Path, bytes: Box<dyn BufRead + Send>, options: &TableOptions) -> Result<Self, Error> {
        let mut records = Records::new(path, bytes);
        let Some(form) = form(&mut records, options)? else {
            return Err(Error::content(path, "is empty: it has no rows"));
        };
        if form.names.len() > MOST_COLUMNS {
            let what = format!("line {} has more than {MOST_COLUMNS} fields, the maximum", form.first);
            return Err(Error::content(path, what));
        }
        Ok(TextBlocks { records, form, at: Place::default() })
    }

    /// Lines and bytes before the next block.
    pub fn place(&self) -> Place {
        self.at
    }

    /// Goes on at a place between two blocks, from which on these bytes are.
    pub fn resume(&mut self, place: Place, bytes: Box<dyn BufRead + Send>) {
        (self.records.bytes, self.records.at, self.at) = (bytes, place, place);
        self.form.start.clear();
    }

    /// Adds rows to a table until it has as many, or takes as much memory, as one may.
    pub fn fill(&mut self, table: &mut Table, want: &Want, meter: &mut Meter) -> Result<(), Error> {
        while table.lines.len() < want.rows && meter.used() < want.bytes {
            let record = match self.form.start.pop_front() {
                Some(record) => record,
                None => match self.records.next()? {
                    Some(record) => record,
                    None => return Ok(()),
                },
            };
            self.add(table, &record, want, meter)?;
            self.at = record.end;
            table.lines.push(record.line);
            if want.records {
                meter.take(48 + record.text.len() as u64).map_err(|why| too_large(&table.path, record.line, why))?;
                table.records.push(record.text);
            }
        }
        Ok(())
    }

    fn add(&self, table: &mut Table, record: &Record, want: &Want, meter: &mut Meter) -> Result<(), Error> {
        let (count, first) = (self.form.names.len(), self.form.first);
        let cells = fields(&record.text, self.form.delimiter);
        if cells.len() != count {
            let (line, has) = (record.line, cells.len());
            let delimiter = describe(self.form.delimiter);
            let what = format!(
                "line {line} has {has} field{}, but line {first} has {count} (separated by {delimiter}): \
                 complete or remove the line, or give the delimiter if it is another: `{}`",
                if has == 1 { "" } else { "s" },
                shorten(&record.text)
            );
            return Err(Error::content(&table.path, what));
        }
        let wanted = table.columns.iter_mut().zip(cells).enumerate().filter(|(k, _)| want.keeps(*k));
        for (_, (column, cell)) in wanted {
            column.push_text(&pointed(cell, self.form.decimal));
            meter.take(column.last_cell()).map_err(|why| too_large(&table.path, record.line, why))?;
        }
        Ok(())
    }
}

fn too_large(path: &Path, line: usize, why: TooLarge) -> Error {
    Error::content(path, format!("up to line {line} it {why}"))
}

/// A delimiter in words.
fn describe(delimiter: char) -> String {
    match delimiter {
        '\t' => "tabs".into(),
        ' ' => "white space".into(),
        other => format!("`{other}`"),
    }
}

/// The beginning of a text, for messages.
pub(super) fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_string(),
    }
}
