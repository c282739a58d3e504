//! External ids of pushed ranges, where a recording asks for them: everything that happens on the thread inside of a range
//! carries an id of the kind [`ExternalKind::RANGES`], whose name is that of the range, behind that of its domain.

use crate::correlation::HostThread;
use crate::external;
use gputrail_record::{ExternalId, ExternalKind, Marker, MarkerKind, StringId};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether ranges have external ids. Forked children inherit it.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// The ids of one thread's ranges.
#[derive(Default)]
pub(crate) struct RangeIds {
    /// Domains and levels of the ranges whose ids are pushed.
    pushed: Vec<(StringId, u64)>,
    /// The names that are known as ids.
    named: HashSet<ExternalId>,
}

/// Gives ranges external ids from now on.
pub(crate) fn give() {
    GIVEN.store(true, Ordering::Relaxed);
}

/// Whether ranges have external ids.
#[inline]
pub(super) fn are_given() -> bool {
    GIVEN.load(Ordering::Relaxed)
}

/// Pushes or pops the id of a range that begins or ends with `marker`.
#[cold]
#[inline(never)]
pub(super) fn follow(host: &mut HostThread, marker: &Marker) {
    let Ok(kind) = external::register_kind(ExternalKind::RANGES) else {
        return;
    };
    let domain = if marker.nests_in_its_domain() {
        marker.domain
    } else {
        StringId::NONE
    };
    let key = (domain, u64::from(marker.level()));
    match marker.what {
        MarkerKind::PUSH if marker.name.is_some() => {
            let id = ExternalId(u64::from(marker.domain.0) << 32 | u64::from(marker.name.0));
            if host.range_ids().named.insert(id) {
                let text = |id| host.board().names().text(id).unwrap_or_default();
                let name = text(marker.name);
                let _ = match marker.domain {
                    StringId::NONE => external::name(kind, id, &name),
                    domain => external::name(kind, id, &format!("{}: {name}", text(domain))),
                };
            }
            if host.push_external(kind, id, marker.time) {
                host.range_ids().pushed.push(key);
            }
        }
        MarkerKind::POP => {
            let pushed = &mut host.range_ids().pushed;
            if let Some(place) = pushed.iter().rposition(|of| *of == key) {
                pushed.remove(place);
                host.pop_external(kind, marker.time);
            }
        }
        _ => {}
    }
}
