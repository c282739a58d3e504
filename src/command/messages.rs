//! The command's own messages on standard error.

use crate::terminal::{Style, has_colours, painted, wrapped};
use gputrail_record::printable_lines;
use std::io::{self, IsTerminal as _, Write};

/// Prints a message of one line to standard error, after `gputrail: `.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::messages::say_lines(&::gputrail_record::printable(&format!($($text)*)))
    };
}
pub(crate) use say;

/// Before each line.
const NAME: &str = "gputrail: ";

/// Prints a message of several lines to standard error, each after `gputrail: `. Its parts that come from outside are
/// [`printable`](gputrail_record::printable) texts: ends of lines in them would begin lines that look like ours.
pub fn say_lines(text: &str) {
    say_styled(text, |_| Style::Plain);
}

/// [`say_lines`], with styles for a terminal. There, long lines are wrapped, too.
pub fn say_styled(text: &str, style: impl Fn(&str) -> Style) {
    let stderr = io::stderr();
    let (colours, is_terminal) = (has_colours(&stderr), stderr.is_terminal());
    let text = printable_lines(text);
    let mut lines = String::new();
    for line in text.lines() {
        let parts = if is_terminal {
            wrapped(line, NAME.len())
        } else {
            vec![line]
        };
        let style = style(line);
        for (place, part) in parts.into_iter().enumerate() {
            let indentation = if place > 0 { "  " } else { "" };
            let part = painted(part, colours, |_| style);
            lines += &format!("{NAME}{indentation}{part}\n");
        }
    }
    // If standard error is closed, there is no place for the message.
    let _ = (&stderr).write_all(lines.as_bytes());
}
