//! rocprofiler-sdk's definitions: `counter_defs.yaml`, and files of our own, which describe blocks, too.
//!
//! ```yaml
//! rocprofiler-sdk:
//!   counters-schema-version: 1
//!   counters:
//!   - name: SQ_WAVES
//!     description: Number of waves
//!     definitions:
//!     - architectures: [gfx90a, gfx942]
//!       block: SQ
//!       event: 4
//!     - architectures: [gfx10]
//!       expression: reduce(SQ_WAVES_32,sum)
//! ```
//!
//! Files of our own have the key `gputrail` at the top. Their counters may have a `usage`, and they may describe blocks:
//!
//! ```yaml
//! gputrail:
//!   blocks:
//!   - name: SQ
//!     architectures: [gfx90a, gfx942]
//!     capacity: 8
//!     instances: 32
//! ```

use gputrail_counters::{
    Defined, DefinedFrom, DefinitionPlace, Expression, HardwareBlock, Refused, Sources, Usage,
};
use saphyr_parser::{Event, Parser, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum depth of the lists and mappings of a file.
const MAX_DEPTH: usize = 16;

/// Adds the architectures of a file.
pub fn read(file: &str, text: &str, sources: &mut Sources) {
    let mut reader = YamlReader {
        file: file.into(),
        path: Vec::new(),
        counter: CounterFields::default(),
        definition: DefinitionFields::default(),
        block: BlockFields::default(),
        architectures: BTreeMap::new(),
        blocks: Vec::new(),
        refused: Vec::new(),
    };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                if let Err((at, problem)) = reader.event(event, span) {
                    reader.refused.push(Refused { at, problem });
                    break;
                }
            }
            Err(error) => {
                let at = reader.at(error.marker());
                let problem = format!("no YAML: {}", error.info());
                reader.refused.push(Refused { at, problem });
                break;
            }
        }
    }
    if reader.architectures.is_empty() && reader.blocks.is_empty() && reader.refused.is_empty() {
        let at = DefinitionPlace {
            file: reader.file.clone(),
            line: 1,
            column: 1,
        };
        let problem = "expected counters or blocks below rocprofiler-sdk or gputrail".to_owned();
        reader.refused.push(Refused { at, problem });
    }
    sources.refused.append(&mut reader.refused);
    for (name, definitions) in reader.architectures {
        let architecture = sources.architecture(&name);
        architecture.counters.extend(definitions);
    }
    for (name, block) in reader.blocks {
        sources.architecture(&name).blocks.push(block);
    }
}

/// A list or mapping that is open.
struct PathLevel {
    /// The key of the value that comes next in a mapping; `None` in a list.
    key: Option<String>,
    is_mapping: bool,
}

#[derive(Default)]
struct CounterFields {
    name: String,
    description: String,
    usage: Usage,
    at: Option<DefinitionPlace>,
    definitions: Vec<(Vec<String>, DefinedFrom)>,
}

#[derive(Default)]
struct DefinitionFields {
    architectures: Vec<String>,
    block: Option<String>,
    event: Option<(String, DefinitionPlace)>,
    expression: Option<(String, DefinitionPlace)>,
    at: Option<DefinitionPlace>,
}

#[derive(Default)]
struct BlockFields {
    name: String,
    architectures: Vec<String>,
    instances: Option<(String, DefinitionPlace)>,
    capacity: Option<(String, DefinitionPlace)>,
    at: Option<DefinitionPlace>,
}

struct YamlReader {
    file: Arc<str>,
    path: Vec<PathLevel>,
    counter: CounterFields,
    definition: DefinitionFields,
    block: BlockFields,
    blocks: Vec<(String, HardwareBlock)>,
    architectures: BTreeMap<String, Vec<Defined>>,
    refused: Vec<Refused>,
}

/// The keys at the top: AMD's file, or one of ours.
const ROOTS: [&str; 2] = ["rocprofiler-sdk", "gputrail"];

/// The paths below the top to counters, definitions and blocks, and to what is in them; lists are `-`.
const COUNTER: [&str; 2] = ["counters", "-"];
const DEFINITION: [&str; 4] = ["counters", "-", "definitions", "-"];
const ARCHITECTURE: [&str; 6] = ["counters", "-", "definitions", "-", "architectures", "-"];
const BLOCK: [&str; 2] = ["blocks", "-"];
const ARCHITECTURE_OF_BLOCK: [&str; 4] = ["blocks", "-", "architectures", "-"];

impl YamlReader {
    fn at(&self, marker: &saphyr_parser::Marker) -> DefinitionPlace {
        DefinitionPlace {
            file: self.file.clone(),
            line: marker.line() as u32,
            column: marker.col() as u32 + 1,
        }
    }

    /// Whether `levels` are a path below the top.
    fn is_path(levels: &[PathLevel], path: &[&str]) -> bool {
        let mut here = levels.iter().map(|level| {
            if level.is_mapping {
                level.key.as_deref().unwrap_or_default()
            } else {
                "-"
            }
        });
        here.next().is_some_and(|root| ROOTS.contains(&root)) && here.eq(path.iter().copied())
    }

    /// Whether the value that begins or ends now stands at `path`.
    fn is_at(&self, path: &[&str]) -> bool {
        Self::is_path(&self.path, path)
    }

    /// The key of the scalar that stands in a mapping at `path`.
    fn key_at(&self, path: &[&str]) -> Option<&str> {
        let (last, before) = self.path.split_last()?;
        let key = last.key.as_deref()?;
        (last.is_mapping && Self::is_path(before, path)).then_some(key)
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), (DefinitionPlace, String)> {
        let at = self.at(&span.start);
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let is_mapping = matches!(event, Event::MappingStart(..));
                if self.path.len() >= MAX_DEPTH {
                    return Err((at, format!("expected at most {MAX_DEPTH} levels")));
                }
                if self.is_at(&COUNTER) {
                    self.counter = CounterFields {
                        at: Some(at),
                        ..CounterFields::default()
                    };
                } else if self.is_at(&DEFINITION) {
                    self.definition = DefinitionFields {
                        at: Some(at),
                        ..DefinitionFields::default()
                    };
                } else if self.is_at(&BLOCK) {
                    self.block = BlockFields {
                        at: Some(at),
                        ..BlockFields::default()
                    };
                }
                self.path.push(PathLevel {
                    key: None,
                    is_mapping,
                });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                self.path.pop();
                if self.is_at(&DEFINITION) {
                    self.end_definition();
                } else if self.is_at(&COUNTER) {
                    self.end_counter();
                } else if self.is_at(&BLOCK) {
                    self.end_block();
                }
                self.end_value();
            }
            Event::Scalar(text, ..) => {
                if let Some(PathLevel {
                    key: key @ None,
                    is_mapping: true,
                }) = self.path.last_mut()
                {
                    *key = Some(text.into_owned());
                    return Ok(());
                }
                self.scalar(&text, at);
                self.end_value();
            }
            Event::Alias(_) => return Err((at, "expected a value, found an alias".to_owned())),
            _ => {}
        }
        Ok(())
    }

    /// The value of a key has ended.
    fn end_value(&mut self) {
        if let Some(level) = self.path.last_mut() {
            level.key = None;
        }
    }

    fn scalar(&mut self, text: &str, at: DefinitionPlace) {
        if self.is_at(&ARCHITECTURE) {
            self.definition.architectures.push(text.to_owned());
            return;
        }
        if self.is_at(&ARCHITECTURE_OF_BLOCK) {
            self.block.architectures.push(text.to_owned());
            return;
        }
        match self.key_at(&BLOCK) {
            Some("name") => self.block.name = text.to_owned(),
            Some("instances") => self.block.instances = Some((text.to_owned(), at.clone())),
            Some("capacity") => self.block.capacity = Some((text.to_owned(), at.clone())),
            _ => {}
        }
        match self.key_at(&COUNTER) {
            Some("usage") => match Usage::named(text) {
                Some(usage) => self.counter.usage = usage,
                None => return self.refuse(at, format!("unknown usage {text:?}")),
            },
            Some("name") => self.counter.name = text.to_owned(),
            Some("description") => self.counter.description = text.to_owned(),
            _ => {}
        }
        match self.key_at(&DEFINITION) {
            Some("block") => self.definition.block = Some(text.to_owned()),
            Some("event") => self.definition.event = Some((text.to_owned(), at)),
            Some("expression") => self.definition.expression = Some((text.to_owned(), at)),
            _ => {}
        }
    }

    fn refuse(&mut self, at: DefinitionPlace, problem: String) {
        let problem = format!("{}: {problem}", self.counter.name);
        self.refused.push(Refused { at, problem });
    }

    fn end_definition(&mut self) {
        let DefinitionFields {
            architectures,
            block,
            event,
            expression,
            at,
        } = std::mem::take(&mut self.definition);
        let Some(at) = at else {
            return;
        };
        let from = match (block, event, expression) {
            (Some(block), Some((event, at)), None) => match event.parse() {
                Ok(event) => DefinedFrom::Event {
                    block,
                    event,
                    instance: None,
                },
                Err(_) => {
                    return self.refuse(
                        at,
                        format!("expected the number of an event, found {event:?}"),
                    );
                }
            },
            (None, None, Some((text, at))) => match Expression::parse(&text) {
                Ok(expression) => DefinedFrom::Expression(expression, at),
                Err(error) => {
                    let column = at.column + error.at as u32;
                    return self.refuse(DefinitionPlace { column, ..at }, error.problem);
                }
            },
            _ => {
                return self.refuse(
                    at,
                    "expected either expression or block and event".to_owned(),
                );
            }
        };
        self.counter.definitions.push((architectures, from));
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        let mut number = |field: Option<(String, DefinitionPlace)>| {
            let (text, at) = field?;
            let number = text.parse::<u32>().ok().filter(|number| *number > 0);
            if number.is_none() {
                let problem = format!(
                    "block {}: expected a number above 0, found {text:?}",
                    block.name
                );
                self.refused.push(Refused { at, problem });
            }
            number
        };
        let (instances, capacity) = (number(block.instances), number(block.capacity));
        match block.at {
            Some(at) if block.name.is_empty() || block.architectures.is_empty() => {
                let problem = "expected a block with a name and architectures".to_owned();
                self.refused.push(Refused { at, problem });
            }
            _ => {}
        }
        let described = HardwareBlock {
            name: block.name,
            instances,
            capacity,
        };
        let of_each = |architecture| (architecture, described.clone());
        self.blocks
            .extend(block.architectures.into_iter().map(of_each));
    }

    fn end_counter(&mut self) {
        let counter = std::mem::take(&mut self.counter);
        let Some(at) = counter.at else {
            return;
        };
        if counter.name.is_empty() {
            self.refuse(at, "expected a counter with a name".to_owned());
            return;
        }
        for (architectures, from) in counter.definitions {
            for architecture in architectures {
                let defined = Defined {
                    name: counter.name.clone(),
                    description: counter.description.clone(),
                    usage: counter.usage,
                    from: from.clone(),
                    at: at.clone(),
                };
                self.architectures
                    .entry(architecture)
                    .or_default()
                    .push(defined);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_counters::{Catalogue, Definition};

    fn read_text(text: &str) -> (Catalogue, Vec<String>) {
        let mut sources = Sources::default();
        read("defs.yaml", text, &mut sources);
        let catalogue = Catalogue::from(sources);
        let refused = catalogue.refused.iter().map(Refused::to_string).collect();
        (catalogue, refused)
    }

    #[test]
    fn a_counter_has_a_definition_for_each_architecture() {
        let text = "\
rocprofiler-sdk:
  counters-schema-version: 1
  counters:
  - name: WAVES
    description: 'Waves: all
      of them'
    properties: []
    definitions:
    - architectures:
      - gfx9
      - gfx90a
      block: SQ
      event: 4
    - architectures: [gfx10]
      expression: reduce(W32,sum)
  - name: W32
    definitions:
    - architectures: [gfx10]
      block: SQ
      event: 5
";
        let (catalogue, refused) = read_text(text);
        assert_eq!(refused, [""; 0]);
        let of = |name: &str| {
            let architecture = &catalogue.architectures[name];
            architecture
                .counter(architecture.find("WAVES").unwrap())
                .clone()
        };
        assert_eq!(of("gfx9").description, "Waves: all of them");
        assert!(matches!(
            of("gfx90a").definition,
            Definition::Basic { event: 4, .. }
        ));
        assert!(matches!(of("gfx10").definition, Definition::Derived(..)));
        assert_eq!(of("gfx10").at.line, 4);
    }

    #[test]
    fn files_of_our_own_describe_blocks() {
        let text = "\
gputrail:
  blocks:
  - name: SQ
    architectures: [gfx9, gfx10]
    capacity: 8
    instances: 32
  - name: TA
    architectures: [gfx9]
    capacity: many
  - architectures: [gfx9]
  counters:
  - name: BYTES
    usage: bytes
    definitions:
    - architectures: [gfx9]
      block: SQ
      event: 4
  - name: ODD
    usage: furlongs
";
        let (catalogue, refused) = read_text(text);
        let expected = [
            "defs.yaml:9:15: block TA: expected a number above 0, found \"many\"",
            "defs.yaml:10:5: expected a block with a name and architectures",
            "defs.yaml:19:12: ODD: unknown usage \"furlongs\"",
        ];
        assert_eq!(refused, expected);
        let gfx9 = &catalogue.architectures["gfx9"];
        let sq = HardwareBlock {
            name: "SQ".to_owned(),
            instances: Some(32),
            capacity: Some(8),
        };
        assert_eq!(gfx9.blocks()[0], sq);
        assert_eq!(catalogue.architectures["gfx10"].blocks(), [sq]);
        assert_eq!(gfx9.counters()[0].usage, Usage::Bytes);
    }

    #[test]
    fn damage_is_named_with_its_place_and_the_rest_is_read() {
        let text = "\
rocprofiler-sdk:
  counters:
  - name: A
    definitions:
    - architectures: [gfx9]
      block: SQ
      event: four
  - name: B
    definitions:
    - architectures: [gfx9]
      expression: reduce(C,mean)
  - name: C
    definitions:
    - architectures: [gfx9]
      block: SQ
      event: 4
    - architectures: [gfx9]
      block: SQ
  - definitions: []
";
        let (catalogue, refused) = read_text(text);
        let expected = [
            "defs.yaml:7:14: A: expected the number of an event, found \"four\"",
            "defs.yaml:11:28: B: expected sum, avr, min or max, found \"mean\"",
            "defs.yaml:17:7: C: expected either expression or block and event",
            "defs.yaml:19:5: : expected a counter with a name",
        ];
        assert_eq!(refused, expected);
        assert!(catalogue.architectures["gfx9"].find("C").is_some());
        assert!(read_text("- a\n").1[0].contains("expected counters or blocks below"));
        assert!(read_text("a: [b\n").1[0].contains("no YAML"));
        assert_eq!(read_text(&"[".repeat(100_000)).1.len(), 1);
    }
}
