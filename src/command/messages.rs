//! The command's own messages on standard error.

use gputrail_record::printable_lines;
use std::io::{self, Write};

/// Prints a message of one line to standard error, after `gputrail: `.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::messages::say_lines(&::gputrail_record::printable(&format!($($text)*)))
    };
}
pub(crate) use say;

/// Prints a message of several lines to standard error, each after `gputrail: `. Its parts that come from outside are
/// [`printable`](gputrail_record::printable) texts: ends of lines in them would begin lines that look like ours.
pub fn say_lines(text: &str) {
    let lines: String = printable_lines(text)
        .lines()
        .map(|line| format!("gputrail: {line}\n"))
        .collect();
    // If standard error is closed, there is no place for the message.
    let _ = io::stderr().write_all(lines.as_bytes());
}
