//! Text from outside, made fit for a terminal.
//!
//! Names in files, of programs and of files, and answers of other processes may hold anything: sequences that steer the
//! terminal, ends of lines that forge a message, marks that reorder what is read. Whatever shows such a text to people
//! passes it through [`printable`].

use std::borrow::Cow;
use std::fmt::Write;

/// `text` on one line, with an escape such as `\u{1b}` or `\n` for each character that is no part of a readable text: control
/// characters, ends of lines, and marks of the direction of writing.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_unprintable)
}

/// [`printable`] for a text of several lines, whose ends of lines stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter != '\n' && is_unprintable(letter))
}

/// JSON with an escape of JSON's in place of each unprintable character of its strings; the value stays the same.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    // Characters below 0x20 are white space between values: in strings they are escaped already.
    let is_wrong = |letter: char| letter >= ' ' && is_unprintable(letter);
    if !json.contains(is_wrong) {
        return json.into();
    }
    let mut text = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        if is_wrong(letter) {
            // None of them is beyond the first 65 536.
            let _ = write!(text, "\\u{:04x}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text.into()
}

/// A text for a cell of CSV. What begins like a formula gets an apostrophe before it: programs for spreadsheets would execute
/// it.
pub fn spreadsheet_text(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}").into()
    } else {
        text.into()
    }
}

fn escaped(text: &str, is_wrong: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_wrong) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_wrong(letter) {
            // A tab and an end of a line have a short escape, the others their numbers.
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown.into()
}

fn is_unprintable(letter: char) -> bool {
    let is_mark = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    );
    is_mark || letter.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_as_an_escape() {
        assert_eq!(
            printable("gemm<float, 2> · äöü 核"),
            "gemm<float, 2> · äöü 核"
        );
        assert_eq!(
            printable("\x1b]0;x\x07\u{9b}31m\r\n\u{202e}\t\x7f"),
            "\\u{1b}]0;x\\u{7}\\u{9b}31m\\r\\n\\u{202e}\\t\\u{7f}"
        );
        assert_eq!(printable_lines("a\nb\x1b\n"), "a\nb\\u{1b}\n");
    }

    #[test]
    fn a_cell_that_begins_like_a_formula_has_an_apostrophe() {
        assert_eq!(
            spreadsheet_text("=cmd|' /C calc'!A1"),
            "'=cmd|' /C calc'!A1"
        );
        assert_eq!(spreadsheet_text("@SUM(A1)"), "'@SUM(A1)");
        assert_eq!(spreadsheet_text("a=b"), "a=b");
        assert_eq!(spreadsheet_text(""), "");
    }

    #[test]
    fn json_keeps_its_value() {
        let text = "a\u{9b}b\x1b\u{2028}\u{202e}\u{7f}\nc";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let shown = printable_json(&json);
        assert!(!shown.contains(|letter| letter != '\n' && is_unprintable(letter)));
        let read: Vec<String> = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, [text]);
    }
}
