//! Metrics that a user defines for the devices of this process, beside those that they have (ROCProfiler v1: `ROCP_METRICS`).

use super::catalogue::{
    Architecture, Catalogue, Defined, DefinedFrom, Definition, DefinitionPlace, Definitions,
    Refused, Sources,
};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The metrics that have been added.
static ADDED: Mutex<Option<Arc<Sources>>> = Mutex::new(None);

fn added() -> MutexGuard<'static, Option<Arc<Sources>>> {
    ADDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the metrics of a definition file to the devices of this process whose counters are asked for from now on. A device
/// has the metrics of its architecture and those that all architectures have, as far as it has their counters. Returns
/// the definitions that were refused.
///
/// # Errors
///
/// As for [`read_file`](super::read_file).
pub fn add_metrics(file: &Path) -> io::Result<Vec<Refused>> {
    let mut added = added();
    let mut sources = Sources::clone(&added.clone().unwrap_or_default());
    super::read_file(file, &mut sources, |name, _, sources| {
        sources.refused.push(Refused {
            at: DefinitionPlace {
                file: name.into(),
                line: 1,
                column: 1,
            },
            problem: "expected definitions of ROCProfiler v1 or GPUPerfAPI; a recorded program reads no YAML"
                .to_owned(),
        });
    })?;
    let refused = std::mem::take(&mut sources.refused);
    *added = Some(Arc::new(sources));
    Ok(refused)
}

/// The counters of a device whose architecture has this name, with the metrics that were added.
pub fn with_added(name: &str, architecture: Arc<Architecture>) -> Arc<Architecture> {
    match added().clone() {
        Some(added) => Arc::new(extended(name, &architecture, &added)),
        None => architecture,
    }
}

fn extended(name: &str, architecture: &Architecture, added: &Sources) -> Architecture {
    let of_name = added.architectures.get(name);
    let metrics = of_name.map_or(&added.global, |definitions| &definitions.counters);
    let is_basic = |name: &str| {
        let known = architecture
            .find(name)
            .map(|index| architecture.counter(index));
        known.is_some_and(|counter| matches!(counter.definition, Definition::Basic { .. }))
    };
    // A device counts no other events than those that it has.
    let metrics = metrics.iter().filter(|defined| {
        matches!(defined.from, DefinedFrom::Expression(..)) && !is_basic(&defined.name)
    });
    let own = architecture.counters().iter().map(|counter| Defined {
        name: counter.name.clone(),
        description: counter.description.clone(),
        usage: counter.usage,
        from: match &counter.definition {
            Definition::Basic {
                block,
                event,
                instance,
            } => DefinedFrom::Event {
                block: architecture.blocks()[block.0 as usize].name.clone(),
                event: *event,
                instance: *instance,
            },
            Definition::Derived(expression, _) => {
                DefinedFrom::Expression(expression.clone(), counter.at.clone())
            }
        },
        at: DefinitionPlace::clone(&counter.at),
    });
    let definitions = Definitions {
        dialect: architecture.dialect(),
        blocks: architecture.blocks().to_vec(),
        counters: own.chain(metrics.cloned()).collect(),
    };
    let mut sources = Sources::default();
    sources.architectures.insert(name.to_owned(), definitions);
    // Refused metrics have counters that the device does not have.
    let mut catalogue = Catalogue::from(sources);
    let extended = catalogue.architectures.remove(name).unwrap_or_default();
    extended.with_properties(architecture.properties().clone())
}

#[cfg(test)]
mod tests {
    use super::super::read_text;
    use super::*;

    fn sources(text: &str) -> Sources {
        let mut sources = Sources::default();
        let mut none = |_: &str| Err("nothing is included".to_owned());
        read_text("made.xml", text, &mut none, &mut sources);
        sources
    }

    #[test]
    fn metrics_are_added_as_far_as_their_counters_are_there() {
        let own = "<gfx9>\n<metric name=A block=SQ event=1>\n<metric name=B block=SQ event=2>\n\
                   <metric name=M expr=A+B>\n</gfx9>";
        let mut own = Catalogue::from(sources(own));
        let own = own.architectures.remove("gfx9").unwrap();
        let added = "<gfx9>\n<metric name=C block=SQ event=3>\n<metric name=M expr=A-B>\n\
                     <metric name=OF_C expr=C/A>\n<metric name=A expr=B>\n</gfx9>\n\
                     <global>\n<metric name=HALF expr=M/2>\n</global>";
        let added = sources(added);
        assert_eq!(added.refused, []);
        let names = |architecture: &Architecture| -> Vec<String> {
            let counters = architecture.counters().iter();
            counters.map(|counter| counter.name.clone()).collect()
        };
        let here = extended("gfx9", &own, &added);
        assert_eq!(names(&here), ["A", "B", "HALF", "M"]);
        let text = |name: &str| match &here.counter(here.find(name).unwrap()).definition {
            Definition::Derived(expression, _) => expression.text.clone(),
            Definition::Basic { .. } => "basic".to_owned(),
        };
        assert_eq!([text("A"), text("M")], ["basic", "A-B"]);
        // Another architecture has what all of them have.
        let elsewhere = extended("host", &own, &added);
        assert_eq!(names(&elsewhere), ["A", "B", "M", "HALF"]);
        // A metric that is refused is known all the same.
        let why = here.refused("OF_C").unwrap();
        assert_eq!(why, "there is no counter, metric or property \"C\"");
        assert_eq!(elsewhere.refused("OF_C"), None);
    }
}
