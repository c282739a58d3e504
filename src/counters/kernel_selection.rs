//! The kernels whose counters are collected.

use std::fmt;

/// The kernels whose counters are collected. A kernel is counted if all that is set holds for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSelection {
    /// Numbers of devices, in the order in which the process knows those that count, from 0; none for all of them.
    pub devices: Vec<u32>,
    /// Parts of kernels' names, one of which the name has; none for all names.
    pub names: Vec<String>,
    /// A regular expression that finds something in the name.
    pub include: Option<String>,
    /// A regular expression that finds nothing in the name.
    pub exclude: Option<String>,
    /// Numbers of dispatches in the process, from 0; none for all of them.
    pub dispatches: Vec<NumberRange>,
    /// Numbers of the dispatches of each kernel, from 1, of those that the rest holds for; none for all of them.
    pub iterations: Vec<NumberRange>,
}

impl KernelSelection {
    /// Whether all kernels are counted.
    pub fn is_all(&self) -> bool {
        *self == KernelSelection::default()
    }

    /// Whether all kernels of the devices are counted.
    pub fn chooses_devices_alone(&self) -> bool {
        let devices = self.devices.clone();
        let all = KernelSelection::default();
        *self == KernelSelection { devices, ..all }
    }
}

/// Numbers from the first to the last one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct NumberRange {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl NumberRange {
    /// Whether `number` is one of them.
    pub fn has(&self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }

    /// Reads "2", "2-4" or "2-", as [`Display`](fmt::Display) writes them.
    pub fn read(text: &str) -> Option<NumberRange> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (first, last) = match text.split_once('-') {
            None => (number(text)?, number(text)?),
            Some((first, last)) if last.trim().is_empty() => (number(first)?, u64::MAX),
            Some((first, last)) => (number(first)?, number(last)?),
        };
        (first <= last).then_some(NumberRange { first, last })
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            last if last == self.first => write!(f, "{last}"),
            u64::MAX => write!(f, "{}-", self.first),
            last => write!(f, "{}-{last}", self.first),
        }
    }
}
