//! What is wrong with a trace, and where.

use std::fmt;

/// Findings that are kept; more are counted.
const MAX_FINDINGS: usize = 1000;

/// Where a packet stands.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Byte in the trace (in what is unpacked, of a trace that is gzipped as a whole).
    pub offset: u64,
    /// Number of the packet in the compressed group that begins there, from 1; 0: it is in no group.
    pub inner: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inner {
            0 => write!(f, "at byte {}", self.offset),
            inner => write!(f, "at byte {}, packet {inner} of the group", self.offset),
        }
    }
}

/// Something that is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The packet.
    pub place: Place,
    /// What was found, and what was expected.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// The findings of one trace. Memory is bounded: those that are too many are only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    count: u64,
}

impl Findings {
    /// Adds one. `what` is asked only where there is room.
    #[cold]
    pub fn add(&mut self, place: Place, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.list.len() < MAX_FINDINGS {
            let what = what();
            self.list.push(Finding { place, what });
        }
    }

    /// Those that were kept, in the order in which they were found.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }
}
