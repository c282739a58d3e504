//! Counting the kernels that a recording selects.

use super::{CounterSet, DispatchCounting};
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_capture::names::Names;
use gputrail_counters::{KernelSelection, NumberRange};
use gputrail_record::{KernelDispatch, KernelId, KernelSymbol};
use regex_lite::Regex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The selected kernels of a recording, of all devices.
#[derive(Default)]
pub(crate) struct SelectedKernels {
    selection: KernelSelection,
    include: Option<NameExpression>,
    exclude: Option<NameExpression>,
    /// The number of devices that have been seen.
    devices: AtomicU64,
    /// The number of dispatches on all devices.
    dispatches: AtomicU64,
    kernels: QuietMutex<HashMap<KernelId, OfKernel>>,
}

/// A regular expression; one that is not valid finds nothing.
struct NameExpression(Option<Regex>);

impl NameExpression {
    fn new(text: &str) -> NameExpression {
        NameExpression(Regex::new(text).ok())
    }

    fn finds(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(name))
    }
}

#[derive(Default)]
struct OfKernel {
    /// Whether its name is selected; `None` if it is not known.
    is_named: Option<bool>,
    /// The number of its dispatches that the rest of the selection holds for.
    iterations: u64,
}

impl SelectedKernels {
    /// The kernels of `selection`, whose regular expressions were checked when it was read.
    pub fn new(selection: &KernelSelection) -> SelectedKernels {
        let regex = |text: &Option<String>| text.as_deref().map(NameExpression::new);
        SelectedKernels {
            include: regex(&selection.include),
            exclude: regex(&selection.exclude),
            selection: selection.clone(),
            ..SelectedKernels::default()
        }
    }

    /// Whether kernels of the next device are counted.
    pub fn has_next_device(&self) -> bool {
        let number = self.devices.fetch_add(1, Ordering::Relaxed);
        let devices = &self.selection.devices;
        devices.is_empty() || devices.iter().any(|device| u64::from(*device) == number)
    }

    fn has_name(&self, name: &str) -> bool {
        let parts = &self.selection.names;
        let finds = |regex: &NameExpression| regex.finds(name);
        (parts.is_empty() || parts.iter().any(|part| name.contains(part)))
            && self.include.as_ref().is_none_or(finds)
            && !self.exclude.as_ref().is_some_and(finds)
    }

    /// Whether the next dispatch is counted, of this kernel.
    fn has_next(&self, kernel: KernelId, name: impl FnOnce() -> Option<String>) -> bool {
        let within = |ranges: &[NumberRange], number| {
            ranges.is_empty() || ranges.iter().any(|range| range.has(number))
        };
        let number = self.dispatches.fetch_add(1, Ordering::Relaxed);
        if !within(&self.selection.dispatches, number) {
            return false;
        }
        let mut kernels = self.kernels.lock();
        let of = kernels.entry(kernel).or_default();
        if of.is_named.is_none() {
            of.is_named = name().map(|name| self.has_name(&name));
        }
        // A kernel without a name is found only if names do not matter.
        if !of.is_named.unwrap_or_else(|| self.has_name("")) {
            return false;
        }
        of.iterations += 1;
        within(&self.selection.iterations, of.iterations)
    }
}

/// Counts the selected kernels of one device.
pub(crate) struct CountSelected {
    pub kernels: Arc<SelectedKernels>,
    pub set: Arc<CounterSet>,
    pub names: Names,
}

impl DispatchCounting for CountSelected {
    fn choose(&self, dispatch: &KernelDispatch) -> Option<Arc<CounterSet>> {
        let name = || {
            let symbol = self.names.get::<KernelSymbol>(dispatch.kernel.0)?;
            let demangled = self.names.text(symbol.demangled);
            let demangled = demangled.filter(|name| !name.is_empty());
            demangled.or_else(|| self.names.text(symbol.name))
        };
        let is_counted = self.kernels.has_next(dispatch.kernel, name);
        is_counted.then(|| self.set.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the dispatches that are counted, of kernels a and gemm in turn.
    fn counted(selection: KernelSelection) -> Vec<usize> {
        let kernels = SelectedKernels::new(&selection);
        let names = ["a", "gemm_nt"];
        let has = |number: &usize| {
            let kernel = KernelId(*number as u32 % 2 + 1);
            kernels.has_next(kernel, || Some(names[number % 2].to_owned()))
        };
        (0..10).filter(has).collect()
    }

    #[test]
    fn kernels_are_selected_by_name_number_and_iteration() {
        let all = KernelSelection::default();
        assert_eq!(counted(all.clone()).len(), 10);
        let range = |first, last| vec![NumberRange { first, last }];
        let named = KernelSelection {
            names: vec!["gemm".to_owned(), "other".to_owned()],
            ..all.clone()
        };
        assert_eq!(counted(named.clone()), [1, 3, 5, 7, 9]);
        let numbered = KernelSelection {
            dispatches: range(2, 4),
            ..all.clone()
        };
        assert_eq!(counted(numbered), [2, 3, 4]);
        let iterated = KernelSelection {
            iterations: range(2, 3),
            ..named.clone()
        };
        assert_eq!(counted(iterated), [3, 5]);
        let found = KernelSelection {
            include: Some("^g.*_n".to_owned()),
            ..all.clone()
        };
        assert_eq!(counted(found), [1, 3, 5, 7, 9]);
        let without = KernelSelection {
            exclude: Some("mm".to_owned()),
            ..all.clone()
        };
        assert_eq!(counted(without), [0, 2, 4, 6, 8]);
        // An expression that is none finds nothing.
        let broken = KernelSelection {
            include: Some("(".to_owned()),
            ..all
        };
        assert!(counted(broken).is_empty());
    }

    #[test]
    fn devices_are_selected_by_their_number() {
        let selection = KernelSelection {
            devices: vec![1],
            ..KernelSelection::default()
        };
        let kernels = SelectedKernels::new(&selection);
        let has: Vec<bool> = (0..3).map(|_| kernels.has_next_device()).collect();
        assert_eq!(has, [false, true, false]);
        assert!(SelectedKernels::default().has_next_device());
    }
}
