//! The kinds of records that we take, and those operations that make a difference, by the numbers that the library has for them.

use super::sdk::Sdk;
use core::ffi::CStr;
use gputrail_rocprofiler::{BufferTracingKind, TracingOperation};

/// The library's numbers. Kinds that it does not have are none.
#[derive(Debug, Default)]
pub(super) struct RecordKinds {
    pub kernels: Option<BufferTracingKind>,
    pub copies: Option<BufferTracingKind>,
    pub allocations: Option<BufferTracingKind>,
    pub scratch: Option<BufferTracingKind>,
    /// Pages that the driver has moved, since 1.1.
    pub migrations: Option<BufferTracingKind>,
    /// Page faults of GPUs.
    pub faults: Option<BufferTracingKind>,
    /// Queues that were off the hardware.
    pub queues: Option<BufferTracingKind>,
    /// Events that the driver has dropped.
    pub dropped: Option<BufferTracingKind>,
    /// The operations on memory that release it.
    pub frees: Vec<TracingOperation>,
    /// The operations on scratch memory, in words.
    scratch_words: Vec<(TracingOperation, String)>,
    /// The reasons why queues were off the hardware, in words.
    queue_words: Vec<(TracingOperation, String)>,
}

impl RecordKinds {
    /// Asks the library.
    pub fn of(sdk: &Sdk) -> RecordKinds {
        let kind = |name: &CStr| sdk.buffer_kind(name);
        let operations = |kind: Option<BufferTracingKind>| {
            kind.map_or_else(Vec::new, |kind| sdk.buffer_operations(kind))
        };
        let mut kinds = RecordKinds {
            kernels: kind(c"KERNEL_DISPATCH"),
            copies: kind(c"MEMORY_COPY"),
            allocations: kind(c"MEMORY_ALLOCATION"),
            scratch: kind(c"SCRATCH_MEMORY"),
            migrations: kind(c"KFD_PAGE_MIGRATE"),
            faults: kind(c"KFD_PAGE_FAULT"),
            queues: kind(c"KFD_QUEUE"),
            dropped: kind(c"KFD_EVENT_DROPPED_EVENTS"),
            ..RecordKinds::default()
        };
        let frees = operations(kinds.allocations).into_iter();
        kinds.frees = frees
            .filter(|(_, name)| name.contains("FREE"))
            .map(|(operation, _)| operation)
            .collect();
        kinds.scratch_words = in_words(operations(kinds.scratch), "SCRATCH_MEMORY_");
        kinds.queue_words = in_words(operations(kinds.queues), "KFD_QUEUE_");
        kinds
    }

    /// The kinds of work, each with the words for it.
    pub fn work(&self) -> [(&'static str, Option<BufferTracingKind>); 4] {
        [
            ("kernels", self.kernels),
            ("copies", self.copies),
            ("allocations", self.allocations),
            ("scratch memory", self.scratch),
        ]
    }

    /// The kinds of what the driver tells, each with the words for it.
    pub fn driver(&self) -> [(&'static str, Option<BufferTracingKind>); 4] {
        [
            ("migrations of pages", self.migrations),
            ("page faults", self.faults),
            ("evictions of queues", self.queues),
            ("events that the driver has dropped", self.dropped),
        ]
    }

    /// Changes of scratch memory.
    pub fn scratch_words(&self, operation: TracingOperation) -> &str {
        words(&self.scratch_words, operation)
    }

    /// Why queues were off the hardware.
    pub fn queue_words(&self, operation: TracingOperation) -> &str {
        words(&self.queue_words, operation)
    }
}

/// Names of operations as words: without their prefix, in lower case.
fn in_words(
    named: Vec<(TracingOperation, String)>,
    prefix: &str,
) -> Vec<(TracingOperation, String)> {
    let word = |name: &str| {
        let rest = name.strip_prefix(prefix).unwrap_or(name);
        rest.to_lowercase().replace('_', " ")
    };
    let named = named.into_iter();
    named
        .map(|(operation, name)| (operation, word(&name)))
        .collect()
}

fn words(known: &[(TracingOperation, String)], operation: TracingOperation) -> &str {
    let found = known.iter().find(|(one, _)| *one == operation);
    found.map_or("for an unknown reason", |(_, words)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_operations_become_words() {
        let named = vec![(2, "SCRATCH_MEMORY_ASYNC_RECLAIM".to_owned())];
        let known = in_words(named, "SCRATCH_MEMORY_");
        assert_eq!(words(&known, 2), "async reclaim");
        assert_eq!(words(&known, 9), "for an unknown reason");
    }
}
