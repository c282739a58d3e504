//! Further facts about entries of a layout and about counters, which programs pass as a linked list.

use super::text::{ascii, kept};
use core::ffi::c_char;
use gputrail_collect::marker::KeptText;

/// The head of a fact.
#[repr(C)]
pub(super) struct Semantics {
    size: u32,
    kind: u16,
    version: u16,
    next: *const Semantics,
}

const SCOPE: u16 = 1;
const TIME: u16 = 2;
const COUNTER: u16 = 5;
/// Maximum number of facts of one list.
const MAX_FACTS: usize = 16;

/// A fact with one id: of a scope or of a time domain.
#[repr(C)]
struct IdSemantics {
    head: Semantics,
    id: u64,
}

#[repr(C)]
struct CounterSemantics {
    head: Semantics,
    flags: u64,
    unit: *const c_char,
}

/// The facts of a list. Ids are 0 where nothing is said.
#[derive(Copy, Clone, Default)]
pub(super) struct Facts {
    pub unit: Option<&'static KeptText>,
    pub time_domain: u64,
    pub scope: u64,
}

impl Facts {
    /// Reads the list that begins at `next`.
    ///
    /// # Safety
    ///
    /// `next` is null or leads to a list of facts, each of the size and type that it names.
    pub unsafe fn read(mut next: *const Semantics) -> Facts {
        let mut facts = Facts::default();
        for _ in 0..MAX_FACTS {
            // SAFETY: `next` is null or leads to a fact, which begins with a head.
            let Some(head) = (unsafe { next.as_ref() }) else {
                break;
            };
            let size = head.size as usize;
            match head.kind {
                SCOPE if size >= size_of::<IdSemantics>() => {
                    // SAFETY: of that type by its kind and size.
                    facts.scope = unsafe { (*next.cast::<IdSemantics>()).id };
                }
                TIME if size >= size_of::<IdSemantics>() => {
                    // SAFETY: of that type by its kind and size.
                    facts.time_domain = unsafe { (*next.cast::<IdSemantics>()).id };
                }
                COUNTER if size >= size_of::<CounterSemantics>() => {
                    // SAFETY: of that type by its kind and size; the unit is null or a text.
                    let unit = unsafe { ascii((*next.cast::<CounterSemantics>()).unit) }.read();
                    let unit = Some(unit).filter(|unit| !unit.is_empty());
                    facts.unit = unit.and_then(|unit| kept(&unit));
                }
                _ => {}
            }
            next = head.next;
        }
        facts
    }
}
