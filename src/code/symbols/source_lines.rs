//! The lines of a source text by the file names and line numbers that compilers give them.

use std::collections::HashMap;
use std::ops::Range;

/// The lines of a source text. `#line` directives rename the lines after them.
#[derive(Clone, Debug, Default)]
pub struct SourceLines {
    /// The file names in the directives.
    files: Vec<String>,
    /// The line by the index of its file in `files` (none before the first directive with a name) and by number; `None`
    /// if different lines have the same name and number.
    lines: HashMap<(Option<usize>, u32), Option<Range<usize>>>,
}

impl SourceLines {
    /// The lines of `source`.
    pub fn new(source: &str) -> SourceLines {
        let mut all = SourceLines::default();
        let (mut file, mut number, mut start) = (None, 1_u32, 0);
        for line in source.split_inclusive('\n') {
            let range = start..start + line.trim_end_matches(['\n', '\r']).len();
            start += line.len();
            if let Some((next, name)) = directive(line) {
                number = next;
                if let Some(name) = name {
                    file = Some(all.file(name));
                }
                continue;
            }
            let text = &source[range.clone()];
            all.lines
                .entry((file, number))
                .and_modify(|known| {
                    let same = known.clone().is_some_and(|known| source[known] == *text);
                    if !same {
                        *known = None;
                    }
                })
                .or_insert(Some(range));
            number = number.saturating_add(1);
        }
        all
    }

    fn file(&mut self, name: &str) -> usize {
        let known = self.files.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        })
    }

    /// Line `line` of `file` in `source`, the text of these lines. `is_main` says whether the lines before the first
    /// named directive belong to `file`. `None` if no line, or more than one, has that name and number.
    pub fn get<'s>(
        &self,
        source: &'s str,
        file: &str,
        is_main: bool,
        line: u32,
    ) -> Option<&'s str> {
        let names = |name: &String| {
            let directory = file.strip_suffix(&name[..]);
            directory.is_some_and(|directory| directory.is_empty() || directory.ends_with('/'))
        };
        let file = self.files.iter().position(names);
        if file.is_none() && !is_main {
            return None;
        }
        let range = self.lines.get(&(file, line))?.clone()?;
        source.get(range)
    }
}

/// The number and the file name in `#line NUMBER "NAME"` or `# NUMBER "NAME"`.
fn directive(line: &str) -> Option<(u32, Option<&str>)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = rest.split_at(digits);
    let name = rest.trim_start().strip_prefix('"');
    let name = name
        .and_then(|rest| rest.split_once('"'))
        .map(|(name, _)| name);
    Some((number.parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(source: &str, file: &str, line: u32) -> Option<String> {
        let found = SourceLines::new(source).get(source, file, file == "/tmp/main.cl", line);
        found.map(str::to_owned)
    }

    #[test]
    fn without_directives_lines_count_from_one() {
        let source = "a\r\nb\nc";
        let of_main = [0, 1, 2, 3, 4].map(|number| line(source, "/tmp/main.cl", number));
        let expected = [None, Some("a"), Some("b"), Some("c"), None];
        assert_eq!(of_main, expected.map(|text| text.map(str::to_owned)));
        assert_eq!(line(source, "/usr/include/x.h", 1), None);
    }

    #[test]
    fn a_directive_renames_and_renumbers_the_lines_behind_it() {
        let source = "top\n#line 1000 \"foo.cl\"\nfirst\nsecond\n# 7 \"/a/bar.cl\"\nthird\n";
        assert_eq!(line(source, "/tmp/main.cl", 1).as_deref(), Some("top"));
        assert_eq!(line(source, "/tmp/main.cl", 2), None);
        assert_eq!(line(source, "foo.cl", 1001).as_deref(), Some("second"));
        assert_eq!(
            line(source, "/build/foo.cl", 1000).as_deref(),
            Some("first")
        );
        assert_eq!(line(source, "/build/xfoo.cl", 1000), None);
        assert_eq!(line(source, "/a/bar.cl", 7).as_deref(), Some("third"));
    }

    #[test]
    fn a_directive_without_a_name_renumbers_the_lines_of_the_same_file() {
        let source = "// comment\n#line 50\nbody\n";
        assert_eq!(line(source, "/tmp/main.cl", 50).as_deref(), Some("body"));
        assert_eq!(line(source, "/tmp/main.cl", 3), None);
    }

    #[test]
    fn two_lines_of_one_name_and_number_have_no_text() {
        let source = "one\nsame\n#line 1\nother\nsame\n#pragma once\n";
        assert_eq!(line(source, "/tmp/main.cl", 1), None);
        assert_eq!(line(source, "/tmp/main.cl", 2).as_deref(), Some("same"));
    }
}
