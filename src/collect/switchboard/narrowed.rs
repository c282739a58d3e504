//! Kinds per context of a runtime: what a buffer wants of the work in one of them, whatever it wants elsewhere (CUPTI:
//! `cuptiActivityEnableContext`, which supersedes `cuptiActivityEnable`).

use super::{Buffers, Switchboard};
use crate::platform::sync::QuietMutex;
use crate::record::{ContextId, KINDS, Kind};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Kinds of records that belong to a context of a runtime.
pub(crate) const OF_CONTEXTS: [Kind; 5] = [
    Kind::KERNEL_DISPATCH,
    Kind::MEMORY_COPY,
    Kind::MEMORY_SET,
    Kind::MEMORY_ALLOCATION,
    Kind::SYNCHRONIZATION,
];

/// Who wants what in which context, as it follows from the services.
#[derive(Default)]
pub(super) struct Narrowed {
    /// Whether anybody has asked for a context of its own.
    any: AtomicBool,
    table: QuietMutex<Table>,
}

/// The words of contexts that are told apart, and those of all others.
#[derive(Default)]
pub(super) struct Table {
    pub contexts: HashMap<(ContextId, Kind), Buffers>,
    pub others: HashMap<Kind, Buffers>,
}

impl Table {
    /// The buffers that want records of `kind` in any context.
    pub fn anywhere(&self, kind: Kind) -> Buffers {
        let of_kind = self.contexts.iter().filter(|((_, of), _)| *of == kind);
        of_kind.fold(Buffers::NONE, |all, (_, buffers)| all.or(*buffers))
    }
}

impl Narrowed {
    pub fn set(&self, table: Table) {
        let any = !table.contexts.is_empty();
        *self.table.lock() = table;
        self.any.store(any, Ordering::Release);
    }
}

const _: () = assert!(KINDS >= OF_CONTEXTS.len());

impl Switchboard {
    /// The buffers that want records of `kind` in `context` now.
    #[inline]
    pub fn buffers_in(&self, kind: Kind, context: ContextId) -> Buffers {
        let wanted = self.buffers_for(kind);
        match wanted.is_none() || !self.narrowed.any.load(Ordering::Acquire) {
            true => wanted,
            false => self.buffers_narrowed(kind, context),
        }
    }

    #[cold]
    fn buffers_narrowed(&self, kind: Kind, context: ContextId) -> Buffers {
        let table = self.narrowed.table.lock();
        let word = table.contexts.get(&(context, kind));
        word.or_else(|| table.others.get(&kind))
            .copied()
            .unwrap_or_else(|| self.buffers_for(kind))
    }
}
