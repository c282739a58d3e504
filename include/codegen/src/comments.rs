//! Converts comments of Rust for C programmers: names as in C, no Markdown, no sections on safety.

use super::sources::{Sources, snake};
use std::collections::HashMap;

/// The C name of a number type of the library.
pub fn number(rust: &str) -> String {
    match rust {
        // A plain context is a tool's context.
        "ContextId" => "gputrail_runtime_context_id".into(),
        _ => format!("gputrail_{}", snake(rust)),
    }
}

/// The C name of a handle.
pub fn handle(rust: &str) -> String {
    format!("gputrail_{}", snake(rust.trim_end_matches("Handle")))
}

/// Rust names, and their C names.
pub struct Names {
    types: HashMap<String, String>,
    numbers: Vec<String>,
    constants: HashMap<String, String>,
}

impl Names {
    pub fn new(sources: &Sources) -> Names {
        let numbers = sources
            .numbers
            .iter()
            .map(|of| (of.name.clone(), number(&of.name)));
        let handles = sources
            .handles
            .iter()
            .map(|(rust, _)| (rust.clone(), handle(rust)));
        let mut types: HashMap<String, String> = numbers.chain(handles).collect();
        types.extend(sources.types.iter().cloned());
        types.insert("Status".into(), "gputrail_status".into());
        let constants = sources.limits.iter().map(|(name, ..)| {
            let c = name.strip_prefix("GPUTRAIL_").unwrap_or(name);
            (name.clone(), format!("GPUTRAIL_{c}"))
        });
        let bits = sources.constants.iter().filter_map(|of| {
            let (first, ..) = of.values.first()?;
            let first = format!("GPUTRAIL_{}_{first} and so on", of.prefix);
            Some((of.name.clone(), first))
        });
        Names {
            types,
            numbers: sources.numbers.iter().map(|of| of.name.clone()).collect(),
            constants: constants.chain(bits).collect(),
        }
    }

    /// Types and constants in declarations, and their C names.
    pub fn in_declarations(&self) -> HashMap<String, String> {
        let names = self.types.iter().chain(&self.constants);
        names.map(|(rust, c)| (rust.clone(), c.clone())).collect()
    }

    fn c(&self, name: &str) -> String {
        let known = self.types.get(name).or(self.constants.get(name));
        known.cloned().unwrap_or_else(|| name.to_owned())
    }

    /// The name of a structure in C.
    pub fn structure(&self, rust: &str) -> String {
        self.c(rust)
    }

    /// A comment of Rust with C names and without Markdown.
    pub fn plain(&self, comment: &str) -> String {
        plain(comment, self)
    }

    /// The C name for a Rust path: a type, a constant of a number, or a field of a structure.
    fn path(&self, path: &str) -> String {
        match path.rsplit_once("::") {
            Some(("Status", constant)) => format!("GPUTRAIL_{constant}"),
            Some((of, constant)) if self.numbers.iter().any(|number| number == of) => {
                format!("GPUTRAIL_{}_{constant}", snake(of).to_uppercase())
            }
            Some((of, field)) if self.types.contains_key(of) => format!("{}.{field}", self.c(of)),
            Some((_, name)) => self.c(name),
            None => self.c(path),
        }
    }
}

/// `header` with its comments converted for C. A comment that fits into one line gets one line.
pub fn readable(header: &str, names: &Names) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut comment: Option<(usize, Vec<String>)> = None;
    for line in header.lines() {
        match (&mut comment, line.trim()) {
            (None, "/*") => comment = Some((line.len() - 2, Vec::new())),
            (Some((indent, text)), "*/") => {
                lines.extend(comment_of(text, &" ".repeat(*indent)));
                comment = None;
            }
            (Some((indent, text)), _) => {
                let text_from = (*indent + 1).min(line.len() - line.trim_start().len());
                text.push(plain(&line[text_from..], names));
            }
            (None, _) => lines.push(plain(line, names)),
        }
    }
    lines.join("\n") + "\n"
}

/// `text` as a comment, without its section on safety and without code fences.
fn comment_of(text: &[String], indent: &str) -> Vec<String> {
    let text: Vec<&str> = text
        .iter()
        .map(|line| line.trim_end())
        .take_while(|line| line.trim() != "# Safety")
        // A fence of a text is its language, without the marks of Markdown.
        .filter(|line| !line.trim().starts_with("```") && line.trim() != "text")
        .collect();
    let end = text
        .iter()
        .rposition(|line| !line.trim().is_empty())
        .map_or(0, |last| last + 1);
    // The first lines of the header have their stars already.
    let starred = |line: &&str| match line.strip_prefix(' ').unwrap_or(line) {
        "" => format!("{indent} *"),
        text if text.starts_with('*') => format!("{indent} {text}"),
        text => format!("{indent} * {text}"),
    };
    match &text[..end] {
        [] => Vec::new(),
        [line] => vec![format!("{indent}/* {} */", line.trim())],
        lines => {
            let first = std::iter::once(format!("{indent}/*"));
            first
                .chain(lines.iter().map(starred))
                .chain([format!("{indent} */")])
                .collect()
        }
    }
}

/// A line without backquotes, with C names for the links to Rust names.
fn plain(line: &str, names: &Names) -> String {
    let mut text = line.to_owned();
    while let Some(start) = text.find("[`") {
        let Some(end) = text[start..].find("`]").map(|length| start + length) else {
            break;
        };
        let link = text[start + 2..end].to_owned();
        let after = if text[end + 2..].starts_with('(') {
            text[end..]
                .find(')')
                .map_or(end + 2, |length| end + length + 1)
        } else {
            end + 2
        };
        text.replace_range(start..after, &names.path(&link));
    }
    text.replace('`', "")
}
