//! Counters whose names, units and passes a vendor's library knows.

use super::{
    Architecture, BlockIndex, Counter, CounterIndex, Definition, DefinitionPlace, HardwareBlock,
    Usage,
};
use std::fmt;
use std::sync::Arc;

/// A vendor's library that defines the counters of a device and plans their passes. Threads call it one at a time.
pub trait CounterLibrary: fmt::Debug + Send + Sync {
    /// The device's name, for messages.
    fn device(&self) -> &str;

    /// The counter with this name; upper and lower case are alike where that is unique.
    ///
    /// # Errors
    ///
    /// [`LibraryError`]
    fn define(&self, name: &str) -> Result<LibraryCounter, LibraryError>;

    /// The passes in which the device counts the counters with these names.
    ///
    /// # Errors
    ///
    /// A sentence about what is in the way.
    fn passes(&self, names: &[&str]) -> Result<usize, String>;
}

/// Why a library does not define a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryError {
    /// There is none with the name. The nearest names.
    Unknown(Vec<String>),
    /// The library cannot be asked: a sentence that says what to do.
    Failed(String),
}

/// A counter, as a library defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryCounter {
    /// Its full name.
    pub name: String,
    /// Its description, for people.
    pub description: String,
    /// The unit of its values.
    pub usage: Usage,
    /// The hardware unit that counts it.
    pub block: String,
}

impl Architecture {
    /// The architecture with these counters, of a device whose `library` defines more.
    pub fn of_library(
        counters: Vec<LibraryCounter>,
        library: Arc<dyn CounterLibrary>,
    ) -> Architecture {
        let mut architecture = Architecture {
            library: Some(library),
            ..Architecture::default()
        };
        for (place, counter) in (0..).zip(counters) {
            let blocks = &mut architecture.blocks;
            let known = blocks.iter().position(|block| block.name == counter.block);
            let block = known.unwrap_or_else(|| {
                blocks.push(HardwareBlock {
                    name: counter.block,
                    instances: None,
                    capacity: None,
                });
                blocks.len() - 1
            });
            let index = CounterIndex(place);
            let folded = counter.name.to_ascii_lowercase();
            architecture.by_name.insert(counter.name.clone(), index);
            architecture.by_folded_name.entry(folded).or_insert(index);
            architecture.counters.push(Counter {
                name: counter.name,
                description: counter.description,
                usage: counter.usage,
                definition: Definition::Basic {
                    block: BlockIndex(block as u32),
                    event: place,
                    instance: None,
                },
                at: DefinitionPlace {
                    file: "".into(),
                    line: 0,
                    column: 0,
                },
            });
        }
        architecture
    }

    /// The library that defines its counters and plans their passes, if one does.
    pub fn library(&self) -> Option<&Arc<dyn CounterLibrary>> {
        self.library.as_ref()
    }
}
