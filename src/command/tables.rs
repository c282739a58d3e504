//! Tables on standard output, as aligned text, JSON, CSV and Markdown. No crate writes the same table in all four.

use crate::figures::{bytes, grouped, shortened_apart, time};
use clap::ValueEnum;
use gputrail_record::{Nanos, printable, spreadsheet_text};
use serde::{Serialize, Serializer};
use std::fmt::Write;

/// Maximum width of a text in an aligned table.
const WIDEST: usize = 60;

/// The format of tables.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For reading, with units
    Table,
    /// One object; times in nanoseconds
    Json,
    /// Comma-separated values; times in nanoseconds
    Csv,
    /// For documents, with units
    Markdown,
}

/// The value of one cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text, which is shortened where it is too wide for an aligned table.
    Text(String),
    /// A text that is of use as a whole only, such as a name that people give to other commands: never shortened.
    Name(String),
    /// A number of things.
    Count(u64),
    /// A time.
    Time(Nanos),
    /// A number of bytes.
    Bytes(u64),
    /// A share, 0 to 1.
    Share(f64),
    /// A change, as a share: -0.05 is 5 % less.
    Change(f64),
    /// A change of a time, ns.
    TimeChange(i64),
    /// A point in time of a trace, as viewers take it: nanoseconds.
    Instant(Nanos),
    /// A number without a unit.
    Number(f64),
    /// The value is unknown.
    Nothing,
}

impl Cell {
    pub fn for_people(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Name(text) => text.clone(),
            Cell::Count(count) => grouped(*count),
            Cell::Time(nanos) => time(*nanos),
            Cell::Bytes(count) => bytes(*count),
            Cell::Share(share) => format!("{:.1} %", 100.0 * share),
            Cell::Change(change) => format!("{:+.1} %", 100.0 * change),
            Cell::TimeChange(nanos) => {
                let sign = if *nanos < 0 { '-' } else { '+' };
                format!("{sign}{}", time(Nanos(nanos.unsigned_abs())))
            }
            Cell::Instant(nanos) => nanos.0.to_string(),
            Cell::Number(number) if number.fract() == 0.0 && *number >= 0.0 => {
                grouped(*number as u64)
            }
            Cell::Number(number) => format!("{number:.3}"),
            Cell::Nothing => "-".into(),
        }
    }

    fn for_csv(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Name(text) => {
                let text = spreadsheet_text(text);
                if text.contains([',', '"', '\n', '\r']) {
                    format!("\"{}\"", text.replace('"', "\"\""))
                } else {
                    text.into_owned()
                }
            }
            other => other.exact(),
        }
    }

    /// The value for programs: numbers in the unit of the column's key, texts as they are.
    pub fn exact(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Name(text) => text.clone(),
            Cell::Count(number)
            | Cell::Bytes(number)
            | Cell::Time(Nanos(number))
            | Cell::Instant(Nanos(number)) => number.to_string(),
            Cell::TimeChange(nanos) => nanos.to_string(),
            Cell::Share(share) | Cell::Change(share) => format!("{:.6}", rounded(*share)),
            Cell::Number(number) => number.to_string(),
            Cell::Nothing => String::new(),
        }
    }
}

/// A share with the digits that all formats for programs have.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Text(text) | Cell::Name(text) => serializer.serialize_str(text),
            Cell::Count(number)
            | Cell::Bytes(number)
            | Cell::Time(Nanos(number))
            | Cell::Instant(Nanos(number)) => serializer.serialize_u64(*number),
            Cell::TimeChange(nanos) => serializer.serialize_i64(*nanos),
            Cell::Number(number) => serializer.serialize_f64(*number),
            Cell::Share(share) | Cell::Change(share) => serializer.serialize_f64(rounded(*share)),
            Cell::Nothing => serializer.serialize_unit(),
        }
    }
}

/// A column: its title for people, and its key for programs.
#[derive(Copy, Clone, Debug)]
pub struct Column {
    pub title: &'static str,
    pub key: &'static str,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its title for people, and its key for programs.
    pub name: Column,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// Writes tables. In formats for people, tables without rows are left out, and of others there are at most `most` rows.
pub fn write(tables: &[Table], format: Format, most: usize) -> String {
    let filled = tables.iter().filter(|table| !table.rows.is_empty());
    let join = |write: fn(&Table, usize) -> String| {
        let texts: Vec<_> = filled.map(|table| write(table, most)).collect();
        texts.join("\n")
    };
    match format {
        Format::Table => join(plain),
        Format::Markdown => join(markdown),
        Format::Csv => tables.iter().map(csv).collect::<Vec<_>>().join("\n"),
        Format::Json => {
            let text = serde_json::to_string_pretty(&JsonTables(tables));
            text.expect("texts and numbers are JSON") + "\n"
        }
    }
}

/// Writes one table as a file of its own: CSV without the name of the table in each line.
pub fn write_one(table: &Table, format: Format) -> String {
    match format {
        Format::Table => plain(table, usize::MAX),
        Format::Markdown => markdown(table, usize::MAX),
        Format::Csv => csv_lines(table, None),
        Format::Json => write(std::slice::from_ref(table), format, usize::MAX),
    }
}

fn plain(table: &Table, most: usize) -> String {
    let (rows, more) = cut(table, most);
    let titles = table.columns.iter().map(|column| column.title.to_owned());
    let mut lines: Vec<Vec<String>> = vec![titles.collect()];
    lines.resize(rows.len() + 1, Vec::new());
    for column in 0..table.columns.len() {
        let cells: Vec<String> = rows.iter().map(|row| row[column].for_people()).collect();
        let is_name = |row: &Vec<Cell>| matches!(row[column], Cell::Name(_));
        let widest = if rows.iter().any(is_name) {
            usize::MAX
        } else {
            WIDEST
        };
        let cells = shortened_apart(cells.iter().map(String::as_str), widest);
        for (line, cell) in lines[1..].iter_mut().zip(cells) {
            line.push(cell);
        }
    }
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut text = format!("{}\n", table.name.title);
    for line in &lines {
        let mut row = String::new();
        for (place, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = if table.is_text(place) {
                write!(row, "  {cell:<width$}")
            } else {
                write!(row, "  {cell:>width$}")
            };
        }
        text += row.trim_end();
        text.push('\n');
    }
    if let Some(more) = more {
        text += &format!("  {more}\n");
    }
    text
}

/// The rows that are shown, and a text about the others.
fn cut(table: &Table, most: usize) -> (&[Vec<Cell>], Option<String>) {
    let shown = &table.rows[..table.rows.len().min(most)];
    let more = (table.rows.len() - shown.len()) as u64;
    let key = table.name.key;
    let text = || format!("and {} more (--top N, --table {key})", grouped(more));
    (shown, (more > 0).then(text))
}

fn markdown(table: &Table, most: usize) -> String {
    let (rows, more) = cut(table, most);
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles = table.columns.iter().map(|column| column.title.to_owned());
    let rules = (0..table.columns.len()).map(|place| {
        if table.is_text(place) {
            "---".to_owned()
        } else {
            "---:".to_owned()
        }
    });
    let mut text = format!("## {}\n\n", table.name.title);
    text += &line(titles.collect());
    text += &line(rules.collect());
    for row in rows {
        let cell = |cell: &Cell| {
            let text = cell.for_people().replace(['\n', '\r'], " ");
            let text = printable(&text);
            text.replace('\\', "\\\\")
                .replace('|', "\\|")
                .replace('<', "&lt;")
        };
        text += &line(row.iter().map(cell).collect());
    }
    if let Some(more) = more {
        text += &format!("\n{more}\n");
    }
    text
}

/// Each line begins with the name of its table, by which rows can be selected.
fn csv(table: &Table) -> String {
    csv_lines(table, Some(("table", table.name.key)))
}

/// Lines of CSV; `first` is the title of a column ahead of all others, and its value in each row.
fn csv_lines(table: &Table, first: Option<(&str, &str)>) -> String {
    let mut text = String::new();
    let mut line = |first: Option<&str>, cells: Vec<String>| {
        let first = first.map(str::to_owned);
        let all: Vec<String> = first.into_iter().chain(cells).collect();
        text += &all.join(",");
        text.push('\n');
    };
    let keys = table.columns.iter().map(|column| column.key.to_owned());
    line(first.map(|(title, _)| title), keys.collect());
    for row in &table.rows {
        let cells = row.iter().map(Cell::for_csv).collect();
        line(first.map(|(_, value)| value), cells);
    }
    text
}

/// Tables as one JSON object: the rows of each under its key.
struct JsonTables<'a>(&'a [Table]);

impl Serialize for JsonTables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .iter()
                .map(|table| (table.name.key, KeyedRows(table))),
        )
    }
}

struct KeyedRows<'a>(&'a Table);

impl Serialize for KeyedRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.rows.iter().map(|row| KeyedRow(&self.0.columns, row)))
    }
}

struct KeyedRow<'a>(&'a [Column], &'a [Cell]);

impl Serialize for KeyedRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = self.0.iter().map(|column| column.key);
        serializer.collect_map(keys.zip(self.1))
    }
}

impl Table {
    /// Whether a column contains texts.
    pub fn is_text(&self, place: usize) -> bool {
        let texts = |row: &Vec<Cell>| matches!(row[place], Cell::Text(_) | Cell::Name(_));
        self.rows.iter().any(texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let column = |title, key| Column { title, key };
        Table {
            name: column("Things", "things"),
            columns: vec![
                column("Name", "name"),
                column("Time", "time_ns"),
                column("Share", "share"),
            ],
            rows: vec![
                vec![
                    Cell::Text("a|b, \"c\"".into()),
                    Cell::Time(Nanos(1500)),
                    Cell::Share(0.25),
                ],
                vec![Cell::Text("d".into()), Cell::Nothing, Cell::Share(1.0)],
            ],
        }
    }

    #[test]
    fn people_read_units() {
        let text = write(&[table()], Format::Table, usize::MAX);
        assert_eq!(
            text,
            "Things\n  Name         Time    Share\n  a|b, \"c\"  1.50 us   25.0 %\n  d               -  100.0 %\n"
        );
        let text = write(&[table()], Format::Markdown, usize::MAX);
        assert!(
            text.contains("| a\\|b, \"c\" | 1.50 us | 25.0 % |"),
            "{text}"
        );
        assert!(text.contains("| --- | ---: | ---: |"), "{text}");
    }

    #[test]
    fn rows_that_are_left_out_are_counted_for_people_and_kept_for_programs() {
        let write = |format| write(&[table()], format, 1);
        let more = "and 1 more (--top N, --table things)\n";
        assert!(write(Format::Table).ends_with(&format!("25.0 %\n  {more}")));
        assert!(write(Format::Markdown).ends_with(&format!("25.0 % |\n\n{more}")));
        assert_eq!(write(Format::Csv).lines().count(), 3);
        assert!(write(Format::Json).contains("\"d\""));
    }

    #[test]
    fn programs_read_nanoseconds() {
        let text = write(&[table()], Format::Csv, usize::MAX);
        assert_eq!(
            text,
            "table,name,time_ns,share\nthings,\"a|b, \"\"c\"\"\",1500,0.250000\nthings,d,,1.000000\n"
        );
        let text = write(&[table()], Format::Json, usize::MAX);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["things"][0]["name"], "a|b, \"c\"");
        assert_eq!(value["things"][0]["time_ns"], 1500);
        assert!(value["things"][1]["time_ns"].is_null());
    }

    #[test]
    fn changes_have_a_sign_and_points_in_time_none_of_a_unit() {
        let cells = [
            Cell::Change(0.1),
            Cell::Change(-0.05),
            Cell::TimeChange(-1500),
            Cell::TimeChange(2),
            Cell::Instant(Nanos(1_234_567)),
        ];
        let texts = cells.each_ref().map(Cell::for_people);
        assert_eq!(texts, ["+10.0 %", "-5.0 %", "-1.50 us", "+2 ns", "1234567"]);
        let texts = cells.each_ref().map(Cell::for_csv);
        assert_eq!(texts, ["0.100000", "-0.050000", "-1500", "2", "1234567"]);
    }

    #[test]
    fn a_file_of_one_table_does_not_repeat_its_name() {
        let text = write_one(&table(), Format::Csv);
        assert!(text.starts_with("name,time_ns,share\n\"a|b"), "{text}");
    }

    #[test]
    fn tables_without_rows_are_there_for_programs_only() {
        let empty = Table {
            rows: Vec::new(),
            ..table()
        };
        let write = |format| write(std::slice::from_ref(&empty), format, usize::MAX);
        assert_eq!(
            (write(Format::Table), write(Format::Markdown)),
            (String::new(), String::new())
        );
        assert_eq!(write(Format::Csv), "table,name,time_ns,share\n");
        assert_eq!(write(Format::Json), "{\n  \"things\": []\n}\n");
    }
}
