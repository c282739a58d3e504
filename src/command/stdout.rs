//! Output of commands on standard output.

use crate::failure::Failure;
use crate::tables::{self, Table};
use crate::terminal::{Style, has_colours, painted};
use gputrail_record::{printable_json, printable_lines};
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Prints `text`, lines for people. Its parts that come from outside are [`printable`](gputrail_record::printable) texts. If
/// the reader has closed the pipe, the rest is dropped silently.
pub fn print(text: &str) -> Result<(), Failure> {
    print_painted(&printable_lines(text))
}

/// [`print`], with styles for a terminal.
pub fn print_styled(text: &str, style: impl Fn(&str) -> Style) -> Result<(), Failure> {
    let colours = has_colours(&io::stdout());
    print_painted(&painted(&printable_lines(text), colours, style))
}

/// Lines below a heading are indented.
pub fn heading(line: &str) -> Style {
    if line.is_empty() || line.starts_with(' ') {
        Style::Plain
    } else {
        Style::Heading
    }
}

/// Prints lines that have sequences of our own for a terminal.
pub fn print_painted(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("standard output").into())
        }
        _ => Ok(()),
    }
}

/// Prints JSON.
pub fn print_json(text: &str) -> Result<(), Failure> {
    print_painted(&printable_json(text))
}

/// Prints CSV: exactly, except on a terminal.
pub fn print_csv(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        print(text)
    } else {
        print_painted(text)
    }
}

/// Prints tables; of each, at most `most` rows in formats for people.
pub fn print_tables(tables: &[Table], format: tables::Format, most: usize) -> Result<(), Failure> {
    let text = tables::write(tables, format, most);
    match format {
        tables::Format::Json => print_json(&text),
        tables::Format::Csv => print_csv(&text),
        tables::Format::Table => print_styled(&text, heading),
        tables::Format::Markdown => print(&text),
    }
}
