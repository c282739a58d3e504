//! ROCProfiler v1's definitions: `metrics.xml` and the `gfx_metrics.xml` that it includes.
//!
//! The files look like XML and are none: values stand without quotes (`expr=avr(X,16)`), `#` begins a comment outside of
//! quotes, and `#include "file"` is replaced by that file. Each section below the top is an architecture (`<gfx9 base="...">`),
//! which has the definitions of its base, or `<global>`, whose definitions all architectures have.

use super::catalogue::{Defined, DefinedFrom, DefinitionPlace, Dialect, Refused, Sources, Usage};
use super::expression::Expression;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The suffix of sections that only serve as a base of others.
const BASE_SUFFIX: &str = "_expr";
/// Maximum number of included files.
const MAX_INCLUDES: usize = 16;

/// Adds the architectures of a file. `include` returns the text of a file that it includes.
pub fn read(
    file: &str,
    text: &str,
    include: &mut dyn FnMut(&str) -> Result<String, String>,
    sources: &mut Sources,
) {
    let mut reader = XmlReader {
        sections: BTreeMap::new(),
        includes: 0,
        refused: Vec::new(),
    };
    reader.file(file, text, include);
    let XmlReader {
        sections,
        mut refused,
        ..
    } = reader;
    let global = sections
        .get("global")
        .map_or(&[][..], |section| &section.definitions);
    for (name, section) in &sections {
        if name == "global" || name.ends_with(BASE_SUFFIX) {
            continue;
        }
        // A base stands before what is based on it; the definitions of a section may stand in several places.
        let mut parts = vec![section];
        let mut next = 0;
        while let Some(section) = parts.get(next) {
            for (base, at) in &section.bases {
                match sections.get(base) {
                    Some(base) if parts.iter().any(|known| std::ptr::eq(*known, base)) => {}
                    Some(base) => parts.push(base),
                    None => refused.push(Refused {
                        at: at.clone(),
                        problem: format!("there is no section {base:?}"),
                    }),
                }
            }
            next += 1;
        }
        let bases = parts.iter().rev().flat_map(|section| &section.definitions);
        let architecture = sources.architecture(name);
        architecture.dialect = Dialect::Sum;
        architecture
            .counters
            .extend(global.iter().chain(bases).cloned());
    }
    sources.global.extend_from_slice(global);
    sources.refused.append(&mut refused);
}

#[derive(Default)]
struct DefinitionSection {
    bases: Vec<(String, DefinitionPlace)>,
    definitions: Vec<Defined>,
}

struct XmlReader {
    sections: BTreeMap<String, DefinitionSection>,
    includes: usize,
    refused: Vec<Refused>,
}

/// A tag: its name and its attributes.
struct Tag<'a> {
    name: &'a str,
    attributes: Vec<Attribute<'a>>,
    at: DefinitionPlace,
}

struct Attribute<'a> {
    name: &'a str,
    value: &'a str,
    at: DefinitionPlace,
}

impl<'a> Tag<'a> {
    fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }
}

impl XmlReader {
    fn refuse(&mut self, at: DefinitionPlace, problem: impl Into<String>) {
        self.refused.push(Refused {
            at,
            problem: problem.into(),
        });
    }

    fn file(
        &mut self,
        file: &str,
        text: &str,
        include: &mut dyn FnMut(&str) -> Result<String, String>,
    ) {
        let mut scanner = XmlScanner::new(file, text);
        let mut section: Option<String> = None;
        loop {
            scanner.skip_space();
            let at = scanner.at();
            let Some(first) = scanner.rest().chars().next() else {
                break;
            };
            if first == '#' {
                let line = scanner.take_line();
                if let Some(name) = line.strip_prefix("#include") {
                    let name = name.trim().trim_matches('"');
                    self.include(at, name, include);
                }
                continue;
            }
            if first != '<' {
                let found: String = scanner.rest().chars().take(20).collect();
                scanner.skip_to('<');
                self.refuse(at, format!("expected a tag, found {found:?}"));
                continue;
            }
            if let Some(name) = scanner.closing_tag() {
                if section.as_deref() == Some(name) {
                    section = None;
                }
                continue;
            }
            match scanner.tag() {
                Ok(tag) if tag.name == "metric" => match &section {
                    Some(section) => {
                        let section = section.clone();
                        self.metric(&section, &tag);
                    }
                    None => self.refuse(tag.at, "this metric stands in no section"),
                },
                Ok(tag) => {
                    let known = self.sections.entry(tag.name.to_owned()).or_default();
                    if let Some(base) = tag.attribute("base") {
                        known.bases.push((base.value.to_owned(), base.at.clone()));
                    }
                    section = Some(tag.name.to_owned());
                }
                Err((at, problem)) => {
                    scanner.skip_to('\n');
                    self.refuse(at, problem);
                }
            }
        }
    }

    fn include(
        &mut self,
        at: DefinitionPlace,
        name: &str,
        include: &mut dyn FnMut(&str) -> Result<String, String>,
    ) {
        self.includes += 1;
        if self.includes > MAX_INCLUDES {
            return self.refuse(at, format!("more than {MAX_INCLUDES} files are included"));
        }
        match include(name) {
            Ok(text) => self.file(name, &text, include),
            Err(problem) => self.refuse(at, format!("{name}: {problem}")),
        }
    }

    fn metric(&mut self, section: &str, tag: &Tag<'_>) {
        let Some(name) = tag.attribute("name") else {
            return self.refuse(tag.at.clone(), "a metric without a name");
        };
        let from = match (
            tag.attribute("expr"),
            tag.attribute("block"),
            tag.attribute("event"),
        ) {
            (Some(expression), None, None) => match Expression::parse(expression.value) {
                Ok(parsed) => DefinedFrom::Expression(parsed, expression.at.clone()),
                Err(error) => {
                    let column = expression.at.column + error.at as u32;
                    let at = DefinitionPlace {
                        column,
                        ..expression.at.clone()
                    };
                    return self.refuse(at, format!("{}: {}", name.value, error.problem));
                }
            },
            (None, Some(block), Some(event)) => match event.value.parse() {
                Ok(event) => DefinedFrom::Event {
                    block: block.value.to_owned(),
                    event,
                    instance: None,
                },
                Err(_) => {
                    return self.refuse(
                        event.at.clone(),
                        format!(
                            "{}: expected the number of an event, found {:?}",
                            name.value, event.value
                        ),
                    );
                }
            },
            _ => {
                return self.refuse(
                    tag.at.clone(),
                    format!("{}: expected either expr or block and event", name.value),
                );
            }
        };
        let defined = Defined {
            name: name.value.to_owned(),
            description: tag
                .attribute("descr")
                .map_or(String::new(), |text| text.value.to_owned()),
            usage: Usage::Items,
            from,
            at: tag.at.clone(),
        };
        let section = self.sections.entry(section.to_owned()).or_default();
        section.definitions.push(defined);
    }
}

/// A position in a text.
struct XmlScanner<'a> {
    file: Arc<str>,
    text: &'a str,
    offset: usize,
    line: u32,
    line_start: usize,
}

impl<'a> XmlScanner<'a> {
    fn new(file: &str, text: &'a str) -> XmlScanner<'a> {
        XmlScanner {
            file: file.into(),
            text,
            offset: 0,
            line: 1,
            line_start: 0,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn at(&self) -> DefinitionPlace {
        DefinitionPlace {
            file: self.file.clone(),
            line: self.line,
            column: (self.offset - self.line_start) as u32 + 1,
        }
    }

    /// Goes on by `bytes`.
    fn advance(&mut self, bytes: usize) -> &'a str {
        let taken = &self.rest()[..bytes];
        for (place, _) in taken.match_indices('\n') {
            self.line += 1;
            self.line_start = self.offset + place + 1;
        }
        self.offset += bytes;
        taken
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.advance(rest.len() - rest.trim_start().len());
    }

    fn skip_to(&mut self, to: char) {
        let rest = self.rest();
        // At least one character, so that a damaged text ends.
        let from = rest.chars().next().map_or(0, char::len_utf8);
        let length = rest[from..]
            .find(to)
            .map_or(rest.len(), |place| from + place);
        self.advance(length);
    }

    fn take_line(&mut self) -> &'a str {
        let rest = self.rest();
        self.advance(rest.find('\n').unwrap_or(rest.len()))
    }

    /// The name of a closing tag, if one is next.
    fn closing_tag(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let inside = rest.strip_prefix("</")?;
        let length = inside.find('>').unwrap_or(inside.len());
        let end = (length + 3).min(rest.len());
        self.advance(end);
        Some(inside[..length].trim())
    }

    fn tag(&mut self) -> Result<Tag<'a>, (DefinitionPlace, String)> {
        let at = self.at();
        self.advance(1);
        let name = self.word();
        if name.is_empty() {
            return Err((self.at(), "expected the name of a tag".to_owned()));
        }
        let mut attributes = Vec::new();
        loop {
            self.skip_space();
            if self.rest().starts_with('>') {
                self.advance(1);
                return Ok(Tag {
                    name,
                    attributes,
                    at,
                });
            }
            attributes.push(self.attribute()?);
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let is_part = |next: char| next.is_ascii_alphanumeric() || next == '_';
        self.advance(rest.find(|next| !is_part(next)).unwrap_or(rest.len()))
    }

    fn attribute(&mut self) -> Result<Attribute<'a>, (DefinitionPlace, String)> {
        let start = self.at();
        let name = self.word();
        if name.is_empty() {
            return Err((start, "expected an attribute or '>'".to_owned()));
        }
        self.skip_space();
        if !self.rest().starts_with('=') {
            return Err((self.at(), format!("expected '=' behind {name}")));
        }
        self.advance(1);
        self.skip_space();
        let mut at = self.at();
        let rest = self.rest();
        if let Some(quoted) = rest.strip_prefix('"') {
            self.advance(1);
            at = self.at();
            let length = quoted.find(['"', '\n']);
            let Some(length) = length.filter(|length| quoted[*length..].starts_with('"')) else {
                return Err((at, format!("the value of {name} does not end on its line")));
            };
            let value = self.advance(length);
            self.advance(1);
            return Ok(Attribute { name, value, at });
        }
        // Up to the next attribute or the end of the tag; expressions may have spaces in them.
        let line = &rest[..rest.find(['>', '\n']).unwrap_or(rest.len())];
        let length = next_attribute(line).unwrap_or(line.len());
        let value = self.advance(length).trim_end();
        if value.is_empty() {
            Err((at, format!("{name} has no value")))
        } else {
            Ok(Attribute { name, value, at })
        }
    }
}

/// The offset of the first ` name=` in `line`.
fn next_attribute(line: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(place) = line[from..].find('=') {
        let before = &line[..from + place];
        let name = before.trim_end();
        let word = name.trim_end_matches(|next: char| next.is_ascii_alphanumeric() || next == '_');
        if word.len() < name.len() && word.ends_with(char::is_whitespace) {
            return Some(word.trim_end().len());
        }
        from += place + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::Catalogue;
    use super::*;

    fn read_text(text: &str) -> (Catalogue, Vec<String>) {
        let mut sources = Sources::default();
        let mut include = |name: &str| match name {
            "other.xml" => Ok(
                "<gfx9>\n  <metric name=\"A\" block=SQ event=4 ></metric>\n</gfx9>\n".to_owned(),
            ),
            _ => Err("no such file".to_owned()),
        };
        read("metrics.xml", text, &mut include, &mut sources);
        let catalogue = Catalogue::from(sources);
        let refused = catalogue.refused.iter().map(Refused::to_string).collect();
        (catalogue, refused)
    }

    #[test]
    fn a_section_has_its_base_and_the_global_definitions() {
        let text = r##"#include "other.xml"
<gfx9_expr>
  # half of "A"
  <metric name="Half" expr=A / 2 descr="The half of A. Not > 1."></metric>
</gfx9_expr>
<gfx9 base="gfx9_expr"></gfx9>
<global>
  <metric
    name="Double"
    descr="Twice."
    expr=2*A
  ></metric>
</global>
"##;
        let (catalogue, refused) = read_text(text);
        assert_eq!(refused, [""; 0]);
        let names: Vec<&String> = catalogue.architectures.keys().collect();
        assert_eq!(names, ["gfx9"]);
        let gfx9 = &catalogue.architectures["gfx9"];
        let described: Vec<(&str, &str, u32)> = gfx9
            .counters()
            .iter()
            .map(|counter| {
                (
                    counter.name.as_str(),
                    counter.description.as_str(),
                    counter.at.line,
                )
            })
            .collect();
        let expected = [
            ("Double", "Twice.", 8),
            ("Half", "The half of A. Not > 1.", 4),
            ("A", "", 2),
        ];
        assert_eq!(described, expected);
    }

    #[test]
    fn damage_is_named_with_its_place_and_the_rest_is_read() {
        let text = r##"#include "nowhere.xml"
<gfx9>
  <metric name="A" block=SQ event=four></metric>
  <metric name="B" expr=A+></metric>
  <metric name="C" block=SQ event=4 descr="no end></metric>
  <metric block=SQ event=5></metric>
  words
  <metric name="D" expr=E></metric>
  <metric name="E" block=SQ event=7></metric>
</gfx9>
<gfx10 base="gone"></gfx10>
<metric name="F" block=SQ event=7></metric>"##;
        let (catalogue, refused) = read_text(text);
        let expected = [
            "metrics.xml:1:1: nowhere.xml: no such file",
            "metrics.xml:3:35: A: expected the number of an event, found \"four\"",
            "metrics.xml:4:27: B: expected a number, a name or a parenthesis, found the end",
        ];
        assert_eq!(refused[..3], expected);
        assert!(
            refused
                .iter()
                .any(|text| text.contains("there is no section \"gone\"")),
            "{refused:?}"
        );
        assert!(
            refused
                .iter()
                .any(|text| text.contains("stands in no section")),
            "{refused:?}"
        );
        assert!(
            catalogue.architectures["gfx9"].find("D").is_some(),
            "{refused:?}"
        );
    }
}
