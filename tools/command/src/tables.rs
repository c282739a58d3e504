//! Tables on standard output: for eyes, for JSON, for CSV and for Markdown.

use crate::figures::{bytes, grouped, shortened, time};
use clap::ValueEnum;
use gputrail::record::Nanos;
use std::fmt::Write;

/// Widest text in a table for eyes.
const WIDEST: usize = 60;

/// How tables are written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For eyes, with units
    Table,
    /// One object; times in nanoseconds
    Json,
    /// Comma-separated values; times in nanoseconds
    Csv,
    /// For documents, with units
    Markdown,
}

/// What stands in a place of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A time.
    Time(Nanos),
    /// A number of bytes.
    Bytes(u64),
    /// A share, 0 to 1.
    Share(f64),
    /// Nothing is known.
    Nothing,
}

impl Cell {
    fn for_people(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => grouped(*count),
            Cell::Time(nanos) => time(*nanos),
            Cell::Bytes(count) => bytes(*count),
            Cell::Share(share) => format!("{:.1} %", 100.0 * share),
            Cell::Nothing => "-".into(),
        }
    }

    /// As JSON; CSV has the same but for texts and nothing.
    fn for_programs(&self) -> String {
        match self {
            Cell::Text(text) => serde_json::Value::from(&text[..]).to_string(),
            Cell::Count(number) | Cell::Bytes(number) | Cell::Time(Nanos(number)) => {
                number.to_string()
            }
            Cell::Share(share) => format!("{share:.6}"),
            Cell::Nothing => "null".into(),
        }
    }
}

/// A column: what it is called, for people and for programs.
#[derive(Copy, Clone, Debug)]
pub struct Column {
    pub title: &'static str,
    pub key: &'static str,
}

/// A table. Its first column is a text.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it is called, for people and for programs.
    pub name: Column,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// Writes tables. Those without rows are left out where people read.
pub fn write(tables: &[Table], format: Format) -> String {
    let filled = tables.iter().filter(|table| !table.rows.is_empty());
    match format {
        Format::Table => filled.map(plain).collect::<Vec<_>>().join("\n"),
        Format::Markdown => filled.map(markdown).collect::<Vec<_>>().join("\n"),
        Format::Csv => tables.iter().map(csv).collect::<Vec<_>>().join("\n"),
        Format::Json => {
            let tables: Vec<String> = tables.iter().map(json).collect();
            format!("{{\n{}\n}}\n", tables.join(",\n"))
        }
    }
}

fn plain(table: &Table) -> String {
    let titles = table.columns.iter().map(|column| column.title.to_owned());
    let mut lines: Vec<Vec<String>> = vec![titles.collect()];
    for row in &table.rows {
        let cells = row.iter().map(|cell| shortened(&cell.for_people(), WIDEST));
        lines.push(cells.collect());
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
            let _ = match table.is_text(place) {
                true => write!(row, "  {cell:<width$}"),
                false => write!(row, "  {cell:>width$}"),
            };
        }
        text += row.trim_end();
        text.push('\n');
    }
    text
}

fn markdown(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles = table.columns.iter().map(|column| column.title.to_owned());
    let rules = (0..table.columns.len()).map(|place| match table.is_text(place) {
        true => "---".to_owned(),
        false => "---:".to_owned(),
    });
    let mut text = format!("## {}\n\n", table.name.title);
    text += &line(titles.collect());
    text += &line(rules.collect());
    for row in &table.rows {
        let cell = |cell: &Cell| {
            let text = cell.for_people().replace(['\n', '\r'], " ");
            text.replace('\\', "\\\\")
                .replace('|', "\\|")
                .replace('<', "&lt;")
        };
        text += &line(row.iter().map(cell).collect());
    }
    text
}

/// Each line begins with the name of its table, so that one can be taken out by it.
fn csv(table: &Table) -> String {
    let keys = table.columns.iter().map(|column| column.key.to_owned());
    let mut text = format!("table,{}\n", keys.collect::<Vec<_>>().join(","));
    for row in &table.rows {
        text += table.name.key;
        for cell in row {
            text.push(',');
            match cell {
                Cell::Text(cell) if cell.contains([',', '"', '\n', '\r']) => {
                    let _ = write!(text, "\"{}\"", cell.replace('"', "\"\""));
                }
                Cell::Text(cell) => text += cell,
                Cell::Nothing => {}
                cell => text += &cell.for_programs(),
            }
        }
        text.push('\n');
    }
    text
}

fn json(table: &Table) -> String {
    let row = |row: &Vec<Cell>| {
        let cells = table.columns.iter().zip(row);
        let cells =
            cells.map(|(column, cell)| format!("\"{}\": {}", column.key, cell.for_programs()));
        format!("    {{{}}}", cells.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = table.rows.iter().map(row).collect();
    match rows.is_empty() {
        true => format!("  \"{}\": []", table.name.key),
        false => format!("  \"{}\": [\n{}\n  ]", table.name.key, rows.join(",\n")),
    }
}

impl Table {
    /// Whether a column holds texts.
    fn is_text(&self, place: usize) -> bool {
        let texts = |row: &Vec<Cell>| matches!(row[place], Cell::Text(_));
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
        let text = write(&[table()], Format::Table);
        assert_eq!(
            text,
            "Things\n  Name         Time    Share\n  a|b, \"c\"  1.50 us   25.0 %\n  d               -  100.0 %\n"
        );
        let text = write(&[table()], Format::Markdown);
        assert!(
            text.contains("| a\\|b, \"c\" | 1.50 us | 25.0 % |"),
            "{text}"
        );
        assert!(text.contains("| --- | ---: | ---: |"), "{text}");
    }

    #[test]
    fn programs_read_nanoseconds() {
        let text = write(&[table()], Format::Csv);
        assert_eq!(
            text,
            "table,name,time_ns,share\nthings,\"a|b, \"\"c\"\"\",1500,0.250000\nthings,d,,1.000000\n"
        );
        let text = write(&[table()], Format::Json);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["things"][0]["name"], "a|b, \"c\"");
        assert_eq!(value["things"][0]["time_ns"], 1500);
        assert!(value["things"][1]["time_ns"].is_null());
    }

    #[test]
    fn tables_without_rows_are_there_for_programs_only() {
        let empty = Table {
            rows: Vec::new(),
            ..table()
        };
        let write = |format| write(std::slice::from_ref(&empty), format);
        assert_eq!(
            (write(Format::Table), write(Format::Markdown)),
            (String::new(), String::new())
        );
        assert_eq!(write(Format::Csv), "table,name,time_ns,share\n");
        assert_eq!(write(Format::Json), "{\n  \"things\": []\n}\n");
    }
}
