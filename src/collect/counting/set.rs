//! A set of counters and metrics of one architecture, with the passes that they need.

use super::{CountingError, UnknownCounter};
use gputrail_counters::{
    self as counters, Architecture, Counted, CounterIndex, CounterLibrary, LibraryError, Resolution,
};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Counters and metrics of one architecture (CUPTI: event and metric groups; ROCProfiler v1: features; rocprofiler-sdk:
/// counter configuration).
#[derive(Clone, Debug)]
pub struct CounterSet {
    architecture: Arc<Architecture>,
    wanted: Vec<CounterIndex>,
    passes: Vec<Vec<Counted>>,
    per_pass: Option<NonZeroU32>,
    /// The most instances of a block that are read.
    instances: Option<NonZeroU32>,
    /// Whether each instance of a block has a value of its own.
    each_instance: bool,
}

impl CounterSet {
    /// The set of these names, each once. A name is found exactly, or else without regard to case. A pass has at most
    /// `per_pass` counters, and as many of each block as that counts at a time.
    ///
    /// # Errors
    ///
    /// [`CountingError::NoNames`]; [`CountingError::UnknownCounters`], with the nearest names;
    /// [`CountingError::Impossible`] if the hardware cannot count one of them.
    pub fn new(
        architecture: &Arc<Architecture>,
        names: &[impl AsRef<str>],
        per_pass: Option<NonZeroU32>,
    ) -> Result<CounterSet, CountingError> {
        if let Some(library) = architecture.library() {
            return CounterSet::of_library(library, names, per_pass);
        }
        let mut wanted = Vec::with_capacity(names.len());
        let mut unknown = Vec::new();
        for name in names {
            let name = name.as_ref().trim();
            let found = architecture.find(name);
            let found = found.or_else(|| architecture.find_ignoring_case(name));
            let Some(index) = found else {
                unknown.push(UnknownCounter {
                    counter: name.to_owned(),
                    refused: architecture.refused(name).map(str::to_owned),
                    nearest: architecture.nearest(name),
                });
                continue;
            };
            if !wanted.contains(&index) {
                wanted.push(index);
            }
        }
        if !unknown.is_empty() {
            return Err(CountingError::UnknownCounters(unknown));
        }
        if wanted.is_empty() {
            return Err(CountingError::NoNames);
        }
        let plan = counters::plan_limited(architecture, &wanted, per_pass)?;
        Ok(CounterSet {
            architecture: architecture.clone(),
            wanted,
            passes: plan.passes,
            per_pass,
            instances: None,
            each_instance: false,
        })
    }

    /// The set of these names, of a device whose library defines them and plans their passes. The library does not tell
    /// which counters belong to which pass: all are in the first one.
    fn of_library(
        library: &Arc<dyn CounterLibrary>,
        names: &[impl AsRef<str>],
        per_pass: Option<NonZeroU32>,
    ) -> Result<CounterSet, CountingError> {
        let failed = |reason| CountingError::System {
            agent: library.device().to_owned(),
            reason,
        };
        let (mut counters, mut unknown) = (Vec::new(), Vec::new());
        for name in names {
            let name = name.as_ref().trim();
            match library.define(name) {
                Ok(counter) if !counters.contains(&counter) => counters.push(counter),
                Ok(_) => {}
                Err(LibraryError::Unknown(nearest)) => unknown.push(UnknownCounter {
                    counter: name.to_owned(),
                    refused: None,
                    nearest,
                }),
                Err(LibraryError::Failed(reason)) => return Err(failed(reason)),
            }
        }
        if !unknown.is_empty() {
            return Err(CountingError::UnknownCounters(unknown));
        }
        if counters.is_empty() {
            return Err(CountingError::NoNames);
        }
        let names: Vec<&str> = counters.iter().map(|one| one.name.as_str()).collect();
        let planned = library.passes(&names).map_err(failed)?.max(1);
        let limited = per_pass.map_or(1, |most| names.len().div_ceil(most.get() as usize));
        let architecture = Arc::new(Architecture::of_library(counters, library.clone()));
        let wanted: Vec<CounterIndex> = (0..architecture.counters().len())
            .map(|place| CounterIndex(place as u32))
            .collect();
        let mut passes = vec![Vec::new(); planned.max(limited)];
        passes[0] = wanted
            .iter()
            .map(|index| (*index, Resolution::None))
            .collect();
        Ok(CounterSet {
            architecture,
            wanted,
            passes,
            per_pass,
            instances: None,
            each_instance: false,
        })
    }

    /// The set without counters.
    pub(crate) fn empty(architecture: &Arc<Architecture>) -> CounterSet {
        CounterSet {
            architecture: architecture.clone(),
            wanted: Vec::new(),
            passes: Vec::new(),
            per_pass: None,
            instances: None,
            each_instance: false,
        }
    }

    /// The basic counters of one pass alone, without values of their own: a pass that a tool repeats itself.
    pub(crate) fn of_pass(&self, pass: usize) -> CounterSet {
        CounterSet {
            wanted: Vec::new(),
            passes: vec![self.passes.get(pass).cloned().unwrap_or_default()],
            ..self.clone()
        }
    }

    /// The architecture.
    pub fn architecture(&self) -> &Arc<Architecture> {
        &self.architecture
    }

    /// The counters and metrics, in the order in which they were named.
    pub fn wanted(&self) -> &[CounterIndex] {
        &self.wanted
    }

    /// The basic counters of each pass.
    pub fn passes(&self) -> &[Vec<Counted>] {
        &self.passes
    }

    /// The most counters of a pass, if there is such a limit.
    pub fn per_pass(&self) -> Option<NonZeroU32> {
        self.per_pass
    }

    /// The set, with at most so many instances of each block, the first ones.
    pub fn with_instances(mut self, instances: Option<NonZeroU32>) -> CounterSet {
        self.instances = instances;
        self
    }

    /// The most instances of a block that are read; `None` for all of them.
    pub fn instances(&self) -> Option<NonZeroU32> {
        self.instances
    }

    /// The set, whose counters have a value for each instance of their block if `each` is set, in the place of their sum
    /// (CUPTI: `CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES`).
    pub fn with_each_instance(mut self, each: bool) -> CounterSet {
        self.each_instance = each;
        self
    }

    /// Whether counters have a value for each instance of their block.
    pub fn each_instance(&self) -> bool {
        self.each_instance
    }

    /// The basic counters of all passes.
    pub fn counted(&self) -> impl Iterator<Item = Counted> {
        self.passes.iter().flatten().copied()
    }

    /// The names, as text.
    pub fn names(&self) -> String {
        let name = |index: &CounterIndex| self.architecture.counter(*index).name.as_str();
        let names: Vec<&str> = self.wanted.iter().map(name).collect();
        names.join(", ")
    }
}

impl PartialEq for CounterSet {
    fn eq(&self, other: &CounterSet) -> bool {
        Arc::ptr_eq(&self.architecture, &other.architecture)
            && self.wanted == other.wanted
            && self.passes == other.passes
            && self.per_pass == other.per_pass
            && self.instances == other.instances
            && self.each_instance == other.each_instance
    }
}
