//! Kinds per runtime context: what a buffer wants in one context, regardless of others (CUPTI:
//! `cuptiActivityEnableContext`, which overrides `cuptiActivityEnable`).

use super::interest::Buffers;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_record::{ContextId, KINDS, Kind};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Kinds of records that belong to a runtime context.
pub(crate) const OF_CONTEXTS: [Kind; 5] = [
    Kind::KERNEL_DISPATCH,
    Kind::MEMORY_COPY,
    Kind::MEMORY_SET,
    Kind::MEMORY_ALLOCATION,
    Kind::SYNCHRONIZATION,
];

/// The buffers by runtime context, computed from the services.
#[derive(Default)]
pub(super) struct Narrowed {
    /// Whether there is a setting for any context.
    any: AtomicBool,
    table: QuietMutex<BufferTable>,
}

/// The buffers for contexts with settings, and for all others.
#[derive(Default)]
pub(super) struct BufferTable {
    pub contexts: HashMap<(ContextId, Kind), Buffers>,
    pub others: HashMap<Kind, Buffers>,
}

impl BufferTable {
    /// The buffers that want records of `kind` in at least one context.
    pub fn anywhere(&self, kind: Kind) -> Buffers {
        let of_kind = self.contexts.iter().filter(|((_, of), _)| *of == kind);
        of_kind.fold(Buffers::NONE, |all, (_, buffers)| all.or(*buffers))
    }
}

impl Narrowed {
    pub fn set(&self, table: BufferTable) {
        let any = !table.contexts.is_empty();
        *self.table.lock() = table;
        self.any.store(any, Ordering::Release);
    }

    /// Whether there is a setting for any context.
    #[inline]
    pub fn is_there(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// The buffers that currently want records of `kind` in `context`. Without a setting for any, they are `wanted`.
    #[inline]
    pub fn buffers_in(&self, wanted: Buffers, kind: Kind, context: ContextId) -> Buffers {
        if wanted.is_none() || !self.any.load(Ordering::Acquire) {
            wanted
        } else {
            self.of_table(wanted, kind, context)
        }
    }

    #[cold]
    fn of_table(&self, wanted: Buffers, kind: Kind, context: ContextId) -> Buffers {
        let table = self.table.lock();
        let word = table.contexts.get(&(context, kind));
        word.or_else(|| table.others.get(&kind))
            .copied()
            .unwrap_or(wanted)
    }
}

const _: () = assert!(KINDS >= OF_CONTEXTS.len());
