//! GPUPerfAPI's definitions of public counters, and its lists of hardware counters.
//!
//! A definition file has blocks of lines; `;` begins a comment:
//!
//! ```text
//! name=VALUInsts
//! desc=#General#The average number of vector ALU instructions executed per work-item.
//! type=gpa_float64
//! usage=items
//! [CLGfx8]
//! SQ_SQ_PERF_SEL_INSTS_VALU
//! SQ_SQ_PERF_SEL_WAVES
//! comp=0,1,/
//! ```
//!
//! A hardware counter's name begins with its block and the number of the instance (`TA3_TA_PERF_SEL_BUSY`); `TA*_X[0..15]`
//! stands for 16 of them. The list of hardware counters has lines `number , name , type`.

use super::catalogue::{Defined, DefinedFrom, DefinitionPlace, Dialect, Refused, Sources, Usage};
use super::expression::Expression;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Maximum number of counters that one definition lists.
const MAX_LISTED: usize = 4096;

/// Adds the architectures of a definition file, with the hardware counters of a list of names, if it is given: without it the
/// counters are those that the definitions name, numbered as they come.
pub fn read((file, text): (&str, &str), hardware: Option<(&str, &str)>, into: &mut Sources) {
    let mut refused = Vec::new();
    let listed = hardware.map(|(file, text)| hardware_counters(file, text, &mut refused));
    let mut reader = DefinitionReader {
        file: file.into(),
        public: Public::default(),
        sections: BTreeMap::new(),
        refused,
    };
    for (number, line) in text.lines().enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        reader.line(number as u32 + 1, indent as u32 + 1, trimmed.trim_end());
    }
    let DefinitionReader {
        sections,
        mut refused,
        ..
    } = reader;
    for (name, section) in sections {
        let mut definitions = match &listed {
            Some(listed) => listed.clone(),
            None => section.named(),
        };
        if listed.is_some() {
            let known: BTreeSet<&str> = definitions
                .iter()
                .map(|counter| counter.name.as_str())
                .collect();
            let unknown = |(name, _): &(&String, &DefinitionPlace)| !known.contains(name.as_str());
            for (name, at) in section.hardware.iter().filter(unknown) {
                refused.push(Refused {
                    at: at.clone(),
                    problem: format!("the list of hardware counters has no {name}"),
                });
            }
        }
        definitions.extend(section.public);
        let architecture = into.architecture(&name);
        architecture.dialect = Dialect::Sum;
        architecture.counters.append(&mut definitions);
    }
    into.refused.append(&mut refused);
}

/// The public counters of one architecture, and the hardware counters that they name.
#[derive(Default)]
struct PublicCounters {
    public: Vec<Defined>,
    hardware: BTreeMap<String, DefinitionPlace>,
}

impl PublicCounters {
    /// Definitions of the hardware counters that are named.
    fn named(&self) -> Vec<Defined> {
        let mut events: HashMap<String, u32> = HashMap::new();
        let define = |(name, at): (&String, &DefinitionPlace)| {
            let (block, instance) = block_of(name);
            let event = events.entry(block.to_owned()).or_default();
            *event += 1;
            hardware_counter(name, block, instance, *event - 1, at.clone())
        };
        self.hardware.iter().map(define).collect()
    }
}

fn hardware_counter(
    name: &str,
    block: &str,
    instance: Option<u32>,
    event: u32,
    at: DefinitionPlace,
) -> Defined {
    Defined {
        name: name.to_owned(),
        description: String::new(),
        usage: Usage::Items,
        from: DefinedFrom::Event {
            block: block.to_owned(),
            event,
            instance,
        },
        at,
    }
}

/// The block of a hardware counter and the number of its instance: `TA` and 3 of `TA3_TA_PERF_SEL_BUSY`.
fn block_of(name: &str) -> (&str, Option<u32>) {
    let first = name.split('_').next().unwrap_or(name);
    let block = first.trim_end_matches(|last: char| last.is_ascii_digit());
    match first[block.len()..].parse() {
        Ok(instance) if !block.is_empty() => (block, Some(instance)),
        _ => (first, None),
    }
}

/// Reads a list of hardware counters. The number of an event is the place of the counter in its block's instance.
fn hardware_counters(file: &str, text: &str, refused: &mut Vec<Refused>) -> Vec<Defined> {
    let file: Arc<str> = file.into();
    let mut events: HashMap<&str, u32> = HashMap::new();
    let mut counters = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = DefinitionPlace {
            file: file.clone(),
            line: number as u32 + 1,
            column: 1,
        };
        if line.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        match fields[..] {
            [place, name, _] if place.parse::<u32>().is_ok() && !name.is_empty() => {
                let (block, instance) = block_of(name);
                let group = name.split('_').next().unwrap_or(name);
                let event = events.entry(group).or_default();
                counters.push(hardware_counter(name, block, instance, *event, at));
                *event += 1;
            }
            _ => refused.push(Refused {
                at,
                problem: format!(
                    "expected number, name and type of a hardware counter, found {:?}",
                    shortened(line)
                ),
            }),
        }
    }
    counters
}

fn shortened(line: &str) -> String {
    line.chars().take(40).collect()
}

/// The public counter that is being read.
#[derive(Default)]
struct Public {
    name: String,
    description: String,
    usage: Usage,
    at: Option<DefinitionPlace>,
    section: Option<String>,
    counters: Vec<(String, DefinitionPlace)>,
}

struct DefinitionReader {
    file: Arc<str>,
    public: Public,
    sections: BTreeMap<String, PublicCounters>,
    refused: Vec<Refused>,
}

impl DefinitionReader {
    fn line(&mut self, line: u32, column: u32, text: &str) {
        let at = DefinitionPlace {
            file: self.file.clone(),
            line,
            column,
        };
        if text.is_empty() || text.starts_with(';') {
            return;
        }
        if let Some(section) = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            self.public.section = Some(section.to_owned());
            self.public.counters.clear();
            return;
        }
        match text.split_once('=') {
            Some(("name", name)) => {
                self.public = Public {
                    name: name.to_owned(),
                    at: Some(at),
                    ..Public::default()
                };
            }
            Some(("desc", text)) => self.public.description = text.to_owned(),
            // The only type of the definitions, and that of all values here.
            Some(("type", "gpa_float64")) => {}
            Some(("type", other)) => self.refuse(
                at,
                format!("expected the type gpa_float64, found {other:?}"),
            ),
            Some(("usage", name)) => match Usage::named(name) {
                Some(usage) => self.public.usage = usage,
                None => self.refuse(at, format!("unknown usage {name:?}")),
            },
            Some(("comp", text)) => self.computed(at, text),
            Some((key, _)) => self.refuse(
                at,
                format!("expected name, desc, type, usage or comp, found {key:?}"),
            ),
            None => self.listed(at, text),
        }
    }

    fn refuse(&mut self, at: DefinitionPlace, problem: String) {
        let problem = match self.public.name.as_str() {
            "" => problem,
            name => format!("{name}: {problem}"),
        };
        self.refused.push(Refused { at, problem });
    }

    /// A hardware counter, or a range of them: `TA*_X[0..15]`.
    fn listed(&mut self, at: DefinitionPlace, text: &str) {
        let bad = |what: &str| {
            format!("expected a hardware counter such as TA0_X or TA*_X[0..15]: {what} in {text:?}")
        };
        if self.public.section.is_none() {
            return self.refuse(at, format!("{text:?} stands in no section"));
        }
        let mut names = Vec::new();
        match text.split_once('[') {
            None if text.contains('*') => return self.refuse(at, bad("no range")),
            None => names.push(text.to_owned()),
            Some((pattern, range)) => {
                let bounds = range
                    .strip_suffix(']')
                    .and_then(|range| range.split_once(".."));
                let bounds = bounds.and_then(|(from, to)| {
                    Some((from.parse::<u32>().ok()?, to.parse::<u32>().ok()?))
                });
                match bounds {
                    Some((from, to))
                        if from <= to && to - from < MAX_LISTED as u32 && pattern.contains('*') =>
                    {
                        names.extend(
                            (from..=to)
                                .map(|instance| pattern.replacen('*', &instance.to_string(), 1)),
                        );
                    }
                    _ => return self.refuse(at, bad("no range")),
                }
            }
        }
        if self.public.counters.len() + names.len() > MAX_LISTED {
            return self.refuse(at, format!("more than {MAX_LISTED} counters are listed"));
        }
        let listed = names.into_iter().map(|name| (name, at.clone()));
        self.public.counters.extend(listed);
    }

    /// The formula, with which the definition ends.
    fn computed(&mut self, at: DefinitionPlace, text: &str) {
        const KEY: u32 = "comp=".len() as u32;
        let (Some(section), Some(begin)) = (self.public.section.take(), self.public.at.clone())
        else {
            return self.refuse(at, "comp= without a name or a section before it".to_owned());
        };
        let counters = std::mem::take(&mut self.public.counters);
        let names: Vec<String> = counters.iter().map(|(name, _)| name.clone()).collect();
        let column = at.column + KEY;
        match Expression::parse_postfix(text, &names) {
            Ok(expression) => {
                let from = DefinedFrom::Expression(expression, DefinitionPlace { column, ..at });
                let section = self.sections.entry(section).or_default();
                section.hardware.extend(counters);
                section.public.push(Defined {
                    name: self.public.name.clone(),
                    description: self.public.description.clone(),
                    usage: self.public.usage,
                    from,
                    at: begin,
                });
            }
            Err(error) => {
                let column = column + error.at as u32;
                self.refuse(DefinitionPlace { column, ..at }, error.problem);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{Catalogue, Definition};
    use super::*;

    const TEXT: &str = "\
;name=Off
name=Fetch
desc=#General#Fetches.
type=gpa_float64
usage=percentage
[CLGfx8]
SQ_X
TA*_Y[0..3]
comp=0,1..4,sum4,-,(100),min

name=Bad
type=gpa_int32
usage=furlongs
[CLGfx8]
TA*_Y
SQ_X
comp=0,+
";

    #[test]
    fn ranges_are_counters_of_each_instance_and_errors_have_their_place() {
        let mut sources = Sources::default();
        read(("defs.txt", TEXT), None, &mut sources);
        let catalogue = Catalogue::from(sources);
        let refused: Vec<String> = catalogue.refused.iter().map(Refused::to_string).collect();
        let expected = [
            "defs.txt:12:1: Bad: expected the type gpa_float64, found \"gpa_int32\"",
            "defs.txt:13:1: Bad: unknown usage \"furlongs\"",
            "defs.txt:15:1: Bad: expected a hardware counter such as TA0_X or TA*_X[0..15]: no range in \"TA*_Y\"",
            "defs.txt:17:8: Bad: \"+\" takes 2 values, and the stack has 1",
        ];
        assert_eq!(refused, expected);
        let made = &catalogue.architectures["CLGfx8"];
        let names: Vec<&str> = made
            .counters()
            .iter()
            .map(|counter| counter.name.as_str())
            .collect();
        assert_eq!(names, ["SQ_X", "TA0_Y", "TA1_Y", "TA2_Y", "TA3_Y", "Fetch"]);
        let third = made.counter(made.find("TA2_Y").unwrap());
        assert!(matches!(
            third.definition,
            Definition::Basic {
                instance: Some(2),
                ..
            }
        ));
        assert_eq!(
            made.counter(made.find("Fetch").unwrap()).usage,
            Usage::Percentage
        );
        assert_eq!(made.blocks().len(), 2);
    }

    #[test]
    fn hardware_counters_are_those_of_the_list() {
        let mut sources = Sources::default();
        let list = "0 , SQ_W , gpa_uint64\n1 , SQ_X , gpa_uint64\n2 , TA0_Y , gpa_uint64\nx\n";
        read(("defs.txt", TEXT), Some(("names.txt", list)), &mut sources);
        let catalogue = Catalogue::from(sources);
        let refused: Vec<String> = catalogue.refused.iter().map(Refused::to_string).collect();
        assert!(
            refused
                .contains(&"defs.txt:8:1: the list of hardware counters has no TA1_Y".to_owned())
        );
        assert!(
            refused
                .iter()
                .any(|text| text.starts_with("names.txt:4:1: expected number, name and type"))
        );
        let made = &catalogue.architectures["CLGfx8"];
        let x = made.counter(made.find("SQ_X").unwrap());
        assert!(matches!(
            x.definition,
            Definition::Basic {
                event: 1,
                instance: None,
                ..
            }
        ));
        assert_eq!(made.find("Fetch"), None);
    }
}
