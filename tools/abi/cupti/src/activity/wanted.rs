//! The kinds of records that the program has enabled: everywhere, and in single contexts, which supersedes that.

use super::kind::ActivityKind;
use gputrail_record::ContextId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The kinds that are enabled.
#[derive(Clone, Default)]
pub struct Enabled {
    /// Bits of [`ActivityKind::bit`].
    everywhere: u64,
    within: HashMap<(ContextId, ActivityKind), bool>,
}

static ENABLED: RwLock<Option<Arc<Enabled>>> = RwLock::new(None);
/// The kinds that are enabled everywhere or in any context.
static ANYWHERE: AtomicU64 = AtomicU64::new(0);

impl Enabled {
    /// Whether `kind` is enabled everywhere.
    pub fn has(&self, kind: ActivityKind) -> bool {
        self.everywhere & kind.bit() != 0
    }

    /// Whether `kind` is enabled in `context`.
    pub fn has_in(&self, kind: ActivityKind, context: ContextId) -> bool {
        let of_context = self.within.get(&(context, kind)).copied();
        of_context.unwrap_or(self.has(kind))
    }

    /// Whether a context has settings of its own.
    pub fn differs(&self) -> bool {
        !self.within.is_empty()
    }

    /// The contexts in which one of the kinds, bits of [`ActivityKind::bit`], is enabled by a setting of their own.
    pub fn contexts(&self, kinds: u64) -> impl Iterator<Item = ContextId> {
        let within = self.within.iter();
        let on = within.filter(move |((_, of), on)| of.bit() & kinds != 0 && **on);
        on.map(|((context, _), _)| *context)
    }
}

/// The kinds that are enabled, if any has been.
pub fn enabled() -> Option<Arc<Enabled>> {
    ENABLED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Enables or disables a kind, in one context or everywhere; within a context, `None` returns to the setting of all. What is enabled
/// then, and the setting before.
pub fn set(
    kind: ActivityKind,
    within: Option<ContextId>,
    on: Option<bool>,
) -> (Arc<Enabled>, Option<bool>) {
    let mut place = ENABLED.write().unwrap_or_else(PoisonError::into_inner);
    let mut new = place.as_deref().cloned().unwrap_or_default();
    let before = match (within, on) {
        (Some(context), Some(on)) => new.within.insert((context, kind), on),
        (Some(context), None) => new.within.remove(&(context, kind)),
        (None, on) => {
            let before = new.has(kind);
            if on == Some(true) {
                new.everywhere |= kind.bit();
            } else {
                new.everywhere &= !kind.bit();
            }
            Some(before)
        }
    };
    let of_contexts = new.within.iter().filter(|(_, on)| **on);
    let anywhere = of_contexts.fold(new.everywhere, |all, ((_, kind), _)| all | kind.bit());
    ANYWHERE.store(anywhere, Ordering::Relaxed);
    let new = Arc::new(new);
    *place = Some(new.clone());
    (new, before)
}

/// Disables all.
pub fn forget() {
    let mut place = ENABLED.write().unwrap_or_else(PoisonError::into_inner);
    *place = None;
    ANYWHERE.store(0, Ordering::Relaxed);
}

/// The kinds that are enabled anywhere, bits of [`ActivityKind::bit`].
pub fn anywhere() -> u64 {
    ANYWHERE.load(Ordering::Relaxed)
}

/// Whether `kind` is enabled anywhere: of kinds whose records belong to no context, whether it is enabled.
pub fn is_anywhere(kind: ActivityKind) -> bool {
    anywhere() & kind.bit() != 0
}

/// Whether records of `kind` are wanted of `context`.
pub fn is_in(kind: ActivityKind, context: ContextId) -> bool {
    is_anywhere(kind) && enabled().is_some_and(|enabled| enabled.has_in(kind, context))
}
