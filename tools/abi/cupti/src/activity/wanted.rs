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
}

fn enabled() -> Option<Arc<Enabled>> {
    ENABLED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

fn store(new: Option<Arc<Enabled>>) {
    let anywhere = new.as_ref().map_or(0, |new| {
        let within = new.within.iter().filter(|(_, on)| **on);
        within.fold(new.everywhere, |all, ((_, kind), _)| all | kind.bit())
    });
    let mut place = ENABLED.write().unwrap_or_else(PoisonError::into_inner);
    *place = new;
    ANYWHERE.store(anywhere, Ordering::Relaxed);
}

/// Enables or disables a kind, in one context or everywhere; what is enabled then. Called by one thread at a time.
pub fn set(kind: ActivityKind, within: Option<ContextId>, on: bool) -> Arc<Enabled> {
    let mut new = enabled().as_deref().cloned().unwrap_or_default();
    match within {
        Some(context) => {
            new.within.insert((context, kind), on);
        }
        None if on => new.everywhere |= kind.bit(),
        None => new.everywhere &= !kind.bit(),
    }
    let new = Arc::new(new);
    store(Some(new.clone()));
    new
}

/// Disables all.
pub fn forget() {
    store(None);
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
