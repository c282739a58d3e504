//! CSV as rocprofv3 and nvprof write it.
//!
//! Texts stand in quotes, and neither quotes nor line ends inside them are escaped: a quote ends a text only where a comma or
//! the end of the line follows. Files that other programs have written again, with quotes doubled or left out, are read as
//! well. A record takes at most [`MAX_RECORD`] bytes, so that a quote that is never closed costs some lines and not the file.

use std::io::{self, BufRead};

use crate::import::row::{Damage, Row, RowField};
use gputrail_record::count;

/// Bytes of the longest record.
const MAX_RECORD: usize = 1 << 20;

/// A CSV file.
pub(in crate::import) struct Csv<R> {
    source: R,
    columns: Vec<String>,
    /// Bytes that have been read; those from `begin` on have not been given out.
    buffer: Vec<u8>,
    begin: usize,
    /// Number of the line at `begin`, and its offset.
    line: u64,
    offset: u64,
    /// So many bytes from `begin` on hold no quote that ends a text: their lines are records by themselves.
    unclosed: usize,
    /// The fields of the latest record, one after the other, and where each ends.
    text: String,
    ends: Vec<usize>,
    /// Fields of the latest record that are no UTF-8.
    invalid: bool,
    /// The begin of lines that stand between the records and are none; empty for no such lines.
    message: &'static [u8],
}

/// A record.
#[derive(Copy, Clone, Debug)]
pub(in crate::import) struct CsvRecord<'c> {
    /// Its first line, from 1.
    pub line: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    columns: &'c [String],
    text: &'c str,
    ends: &'c [usize],
}

impl<'c> CsvRecord<'c> {
    /// The field at a place.
    fn field(&self, place: usize) -> &'c str {
        let start = match place {
            0 => 0,
            place => self.ends[place - 1],
        };
        &self.text[start..self.ends[place]]
    }

    /// All fields with their columns.
    pub fn fields(&self) -> impl Iterator<Item = (&'c str, &'c str)> + use<'c> {
        let record = *self;
        let fields = (0..self.ends.len()).map(move |place| record.field(place));
        self.columns.iter().map(|name| &name[..]).zip(fields)
    }
}

/// The places in a file of the columns of a type of row, for those that the file has.
#[derive(Debug)]
pub(in crate::import) struct ColumnPlaces {
    columns: &'static [&'static str],
    places: Vec<Option<usize>>,
}

/// A record as a row of a type.
pub(super) struct CsvRow<'c> {
    pub record: CsvRecord<'c>,
    pub places: &'c ColumnPlaces,
}

impl Row for CsvRow<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        match self.places.places[place] {
            Some(place) => RowField::Text(self.record.field(place)),
            None => RowField::Null,
        }
    }

    fn column(&self, place: usize) -> &str {
        match self.places.places[place] {
            Some(place) => &self.record.columns[place],
            None => self.places.columns[place],
        }
    }

    fn position(&self) -> (Option<u64>, String) {
        let CsvRecord { offset, line, .. } = self.record;
        (Some(offset), format!("line {line}"))
    }

    fn rest(&self) -> Vec<(&str, &str)> {
        let is_taken = |place: &usize| self.places.places.contains(&Some(*place));
        let fields = (0..).zip(self.record.fields());
        let rest = fields.filter(|(place, _)| !is_taken(place));
        rest.map(|(_, field)| field).collect()
    }
}

/// How a record of the buffer ends.
enum RecordEnd {
    /// After so many bytes.
    At(usize),
    /// Not in the buffer.
    Open,
}

impl<R: BufRead> Csv<R> {
    /// Opens a file and reads the names of its columns.
    pub fn open(source: R) -> io::Result<Csv<R>> {
        Csv::open_at(source, 1, 0, b"")
    }

    /// Opens a file whose header is next in `source`, in this line and at this offset. Lines that begin with `message` are no
    /// records.
    pub fn open_at(
        source: R,
        line: u64,
        offset: u64,
        message: &'static [u8],
    ) -> io::Result<Csv<R>> {
        let mut csv = Csv {
            source,
            columns: Vec::new(),
            buffer: Vec::new(),
            begin: 0,
            line,
            offset,
            message,
            unclosed: 0,
            text: String::new(),
            ends: Vec::new(),
            invalid: false,
        };
        csv.read_line()?;
        if csv.buffer.starts_with(b"\xef\xbb\xbf") {
            (csv.begin, csv.offset) = (3, offset + 3);
        }
        if let Some(Ok(())) = csv.advance()? {
            let header = csv.record();
            let names = (0..header.ends.len()).map(|place| header.field(place));
            csv.columns = names.map(|name| name.trim().to_owned()).collect();
        }
        Ok(csv)
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The places of `columns`, each with the names that it may have.
    pub fn places(&self, columns: &'static [&'static str]) -> ColumnPlaces {
        let place = |name: &str| {
            let mut own = self.columns.iter();
            own.position(|column| column.eq_ignore_ascii_case(name))
        };
        let places = columns.iter().map(|names| names.split('|').find_map(place));
        ColumnPlaces {
            columns,
            places: places.collect(),
        }
    }

    /// The next record, or a line that is none; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Result<CsvRecord<'_>, Damage>>> {
        loop {
            if self.unread().is_empty() {
                self.read_line()?;
            }
            if !self.message.is_empty() && self.unread().starts_with(self.message) {
                self.consume(self.line_end());
                continue;
            }
            let (line, offset) = (self.line, self.offset);
            let damage = |found: String, expected: String| Damage {
                offset: Some(offset),
                found,
                expected: expected.into(),
            };
            match self.advance()? {
                None => return Ok(None),
                Some(Err(())) => {
                    let found = format!("a text in line {line} that has no end");
                    return Ok(Some(Err(damage(found, "a closing quote".to_owned()))));
                }
                // Empty lines are none.
                Some(Ok(())) if self.ends.len() == 1 && self.text.trim().is_empty() => continue,
                Some(Ok(())) if self.invalid => {
                    let found = format!("bytes in line {line} that are no UTF-8");
                    return Ok(Some(Err(damage(found, "text".to_owned()))));
                }
                Some(Ok(())) if self.ends.len() != self.columns.len() => {
                    let found = count(self.ends.len() as u64, "field");
                    let found = format!("{found} in line {line}");
                    let expected = count(self.columns.len() as u64, "field");
                    let expected = expected + ", as in the header";
                    return Ok(Some(Err(damage(found, expected))));
                }
                Some(Ok(())) => {
                    let record = CsvRecord {
                        line,
                        offset,
                        ..self.record()
                    };
                    return Ok(Some(Ok(record)));
                }
            }
        }
    }

    fn record(&self) -> CsvRecord<'_> {
        CsvRecord {
            line: self.line,
            offset: self.offset,
            columns: &self.columns,
            text: &self.text,
            ends: &self.ends,
        }
    }

    /// Takes the next record out of the buffer into `text` and `ends`; an error is a line that is none.
    fn advance(&mut self) -> io::Result<Option<Result<(), ()>>> {
        if self.unread().is_empty() && !self.read_line()? {
            return Ok(None);
        }
        if self.unclosed > 0 {
            if !self.unread().contains(&b'\n') {
                self.read_line()?;
            }
            let (end, result) = match self.split(false) {
                RecordEnd::At(end) => (end, Ok(())),
                RecordEnd::Open => (self.line_end(), Err(())),
            };
            self.unclosed = self.unclosed.saturating_sub(end);
            self.consume(end);
            return Ok(Some(result));
        }
        loop {
            if let RecordEnd::At(end) = self.split(true) {
                self.consume(end);
                return Ok(Some(Ok(())));
            }
            // Twice as much each time, so that a long record is not gone through for each of its lines.
            let wanted = 2 * self.unread().len();
            while self.unread().len() < wanted.min(MAX_RECORD) && self.read_line()? {}
            if self.unread().len() < wanted {
                if let RecordEnd::At(end) = self.split(true) {
                    self.consume(end);
                    return Ok(Some(Ok(())));
                }
                let end = self.line_end();
                self.unclosed = self.unread().len() - end;
                self.consume(end);
                return Ok(Some(Err(())));
            }
        }
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.begin..]
    }

    /// Reads a line, or as much of one as a record may have. Returns `false` at the end.
    fn read_line(&mut self) -> io::Result<bool> {
        if self.begin > 0 && self.begin >= self.buffer.len() / 2 {
            self.buffer.drain(..self.begin);
            self.begin = 0;
        }
        let before = self.buffer.len();
        while self.buffer.len() - before < MAX_RECORD {
            let available = self.source.fill_buf()?;
            if available.is_empty() {
                break;
            }
            let room = MAX_RECORD - (self.buffer.len() - before);
            let available = &available[..available.len().min(room)];
            let end = available.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(available.len(), |end| end + 1);
            self.buffer.extend_from_slice(&available[..count]);
            self.source.consume(count);
            if end.is_some() {
                break;
            }
        }
        Ok(self.buffer.len() > before)
    }

    /// Bytes of the first line that has not been given out.
    fn line_end(&self) -> usize {
        let unread = self.unread();
        let end = unread.iter().position(|byte| *byte == b'\n');
        end.map_or(unread.len(), |end| end + 1)
    }

    fn consume(&mut self, count: usize) {
        let lines = self.unread()[..count].iter().filter(|byte| **byte == b'\n');
        self.line += lines.count() as u64;
        self.offset += count as u64;
        self.begin += count;
    }

    /// Splits the record at `begin` into its fields; its texts may go over several lines.
    fn split(&mut self, lines: bool) -> RecordEnd {
        self.text.clear();
        self.ends.clear();
        self.invalid = false;
        let end = if lines {
            self.buffer.len()
        } else {
            self.begin + self.line_end()
        };
        let bytes = &self.buffer[self.begin..end];
        let mut at = 0;
        loop {
            if bytes.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    let Some(length) = bytes[at..].iter().position(|byte| *byte == b'"') else {
                        return RecordEnd::Open;
                    };
                    self.invalid |= push(&mut self.text, &bytes[at..at + length]);
                    at += length;
                    let quotes = bytes[at..].iter().take_while(|byte| **byte == b'"').count();
                    at += quotes;
                    let closes = is_field_end(&bytes[at..]);
                    // Doubled quotes are one; a single one is a quote that was not escaped.
                    let inside = (quotes - usize::from(closes)).div_ceil(2);
                    self.text.extend(std::iter::repeat_n('"', inside));
                    if closes {
                        break;
                    }
                }
            } else {
                let rest = &bytes[at..];
                let end = rest.iter().position(|byte| matches!(byte, b',' | b'\n'));
                let field = &rest[..end.unwrap_or(rest.len())];
                at += field.len();
                let field = field.strip_suffix(b"\r").unwrap_or(field);
                self.invalid |= push(&mut self.text, field);
            }
            self.ends.push(self.text.len());
            match bytes.get(at) {
                Some(b',') => at += 1,
                Some(b'\r') => return RecordEnd::At((at + 2).min(bytes.len())),
                Some(_) => return RecordEnd::At(at + 1),
                None => return RecordEnd::At(at),
            }
        }
    }
}

/// Whether a field ends before `rest`.
fn is_field_end(rest: &[u8]) -> bool {
    matches!(rest, [] | [b',' | b'\n', ..] | [b'\r'] | [b'\r', b'\n', ..])
}

/// Appends bytes to a text. Returns whether they are no UTF-8.
fn push(text: &mut String, bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(part) => {
            text.push_str(part);
            false
        }
        Err(_) => {
            text.push_str(&String::from_utf8_lossy(bytes));
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of a file, each as its fields joined by `|`, or what was found instead.
    fn records(file: &str) -> Vec<String> {
        let mut csv = Csv::open(file.as_bytes()).unwrap();
        let mut all = Vec::new();
        while let Some(record) = csv.next().unwrap() {
            all.push(match record {
                Ok(record) => {
                    let fields: Vec<_> = record.fields().map(|(_, field)| field).collect();
                    format!("{}: {}", record.line, fields.join("|"))
                }
                Err(damage) => format!("found {}", damage.found),
            });
        }
        all
    }

    #[test]
    fn fields_may_stand_in_quotes_and_lines_may_end_in_two_ways() {
        assert_eq!(
            records("\"A\",\"B\"\r\n\"x, y\",2\r\n\n,\"\"\n\"last\",3"),
            ["2: x, y|2", "4: |", "5: last|3"]
        );
        assert_eq!(records("\u{feff}A,B\n1,2\n"), ["2: 1|2"]);
        assert_eq!(records(""), [""; 0]);
        assert_eq!(records("A,B\n"), [""; 0]);
    }

    #[test]
    fn quotes_and_lines_inside_a_text_need_not_be_escaped() {
        assert_eq!(
            records(
                "A,B\n\"say \"hi\" twice\",1\n\"ends in \"x\"\",2\n\"two\nlines\",3\n\"a \"\"b\"\"\",4\n"
            ),
            [
                "2: say \"hi\" twice|1",
                "3: ends in \"x\"|2",
                "4: two\nlines|3",
                "6: a \"b\"|4",
            ]
        );
    }

    #[test]
    fn a_record_of_another_length_is_damaged_and_those_around_it_are_read() {
        assert_eq!(
            records("A,B\n1,2\n1\n1,2,3\n3,4\n"),
            [
                "2: 1|2",
                "found 1 field in line 3",
                "found 3 fields in line 4",
                "5: 3|4",
            ]
        );
    }

    #[test]
    fn a_quote_that_is_not_closed_costs_the_lines_without_a_closing_one() {
        assert_eq!(
            records("A,B\n1,2\n\"x,2\n3,4\n5,\"y\n"),
            [
                "2: 1|2",
                "found a text in line 3 that has no end",
                "4: 3|4",
                "found a text in line 5 that has no end",
            ]
        );
    }

    #[test]
    fn a_file_of_unclosed_quotes_is_read_once() {
        // Every line opens a text: each record would take all that follows.
        let file = format!("A,B\n{}", "\"x,1\n".repeat(1 << 20));
        let damaged = records(&file);
        assert_eq!(damaged.len(), 1 << 20);
        assert!(damaged.iter().all(|line| line.ends_with("has no end")));
    }

    #[test]
    fn bytes_that_are_no_text_are_damage() {
        let mut csv = Csv::open(&b"A,B\n\xff,1\n2,3\n"[..]).unwrap();
        assert!(csv.next().unwrap().unwrap().is_err());
        assert_eq!(csv.next().unwrap().unwrap().unwrap().field(1), "3");
        assert!(csv.next().unwrap().is_none());
    }
}
