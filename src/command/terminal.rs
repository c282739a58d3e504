//! Text on a terminal: colours and width.

use std::io::IsTerminal;

/// Maximum width of messages, in columns.
const WIDTH: usize = 100;

/// How a line stands out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// As all others.
    Plain,
    /// The heading of what follows.
    Heading,
    /// Something failed, or is missing.
    Loss,
}

impl Style {
    /// A line with the style.
    fn painted(self, line: &str) -> String {
        match self {
            Style::Plain => line.to_owned(),
            Style::Heading => format!("\x1b[1m{line}\x1b[0m"),
            Style::Loss => format!("\x1b[1;31m{line}\x1b[0m"),
        }
    }
}

/// Whether what is written to `stream` has colours: it is a terminal, and `NO_COLOR` is not set (<https://no-color.org>).
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

/// Lines in their styles. Lines stay as they are where there are no colours.
pub fn painted(text: &str, colours: bool, style: impl Fn(&str) -> Style) -> String {
    let paint = |line: &str| match line.strip_suffix('\n') {
        Some(line) => style(line).painted(line) + "\n",
        None => style(line).painted(line),
    };
    if colours {
        text.split_inclusive('\n').map(paint).collect()
    } else {
        text.to_owned()
    }
}

/// `line` in parts that fit beside `taken` columns, each as long as its words allow.
pub fn wrapped(line: &str, taken: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    loop {
        let indentation = if parts.is_empty() { 0 } else { 2 };
        let width = WIDTH.saturating_sub(taken + indentation);
        let Some((end, _)) = rest.char_indices().nth(width) else {
            parts.push(rest);
            return parts;
        };
        // Tables are indented: their spaces do not separate words.
        let first_word = rest.len() - rest.trim_start().len();
        let within = &rest[..end + usize::from(rest[end..].starts_with(' '))];
        let after = rest[end..].find(' ').map(|at| end + at);
        let space = within.rfind(' ').filter(|at| *at > first_word).or(after);
        let Some(space) = space else {
            parts.push(rest);
            return parts;
        };
        parts.push(rest[..space].trim_end());
        rest = rest[space..].trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words_and_words_stay_whole() {
        let word = "x".repeat(120);
        assert_eq!(wrapped("short line", 10), ["short line"]);
        assert_eq!(wrapped(&word, 10), [&word]);
        let line = "abcd ".repeat(30);
        let parts = wrapped(line.trim_end(), 10);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].len(), 89);
        assert_eq!(parts.join(" "), line.trim_end());
        let long = format!("see {word} there");
        assert_eq!(wrapped(&long, 10), ["see", &word, "there"]);
        assert_eq!(wrapped("", 10), [""]);
        let letters = "ü".repeat(95);
        assert_eq!(wrapped(&letters, 10), [&letters]);
    }

    #[test]
    fn colours_change_nothing_else() {
        let style = |line: &str| match line.starts_with(' ') {
            true => Style::Plain,
            false => Style::Heading,
        };
        assert_eq!(painted("a\n b\n", true, style), "\x1b[1ma\x1b[0m\n b\n");
        assert_eq!(painted("a\n b", false, style), "a\n b");
    }
}
