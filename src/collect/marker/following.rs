//! The effects of a marker besides its record: it gives external ids to what happens in ranges, begins and ends ranges that are
//! counted, and calls back subscribers.

use crate::correlation::HostThread;
use crate::counting::ranges;
use crate::external;
use crate::operations::of_marker;
use crate::process::{self, Current};
use crate::switchboard::{CallbackArguments, Interest, Payload};
use gputrail_interface::operations::Phase;
use gputrail_record::{ExternalId, ExternalKind, Marker, MarkerKind, RecordRef, StringId};

/// Pushes or pops the id of a range that begins or ends with `marker`.
#[cold]
#[inline(never)]
pub(super) fn give_id(host: &mut HostThread, marker: &Marker) {
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

/// Has a marker followed by those who are interested in more than its record.
#[cold]
#[inline(never)]
pub(super) fn follow(thread: Current, interest: Interest, marker: &Marker) {
    if ranges::are_counted() {
        follow_counted(thread, marker);
    }
    if interest.has_subscribers() {
        notify(thread, interest, marker);
    }
}

/// Begins or ends a range that is counted, and writes the values that are complete.
fn follow_counted(thread: Current, marker: &Marker) {
    let Some(board) = process::board() else {
        return;
    };
    let ready = board.ranges().follow(board, marker);
    thread.with(|host| {
        for (buffers, value) in ready {
            host.write_to(buffers, value);
        }
    });
}

fn notify(thread: Current, interest: Interest, marker: &Marker) {
    let what = marker.what;
    let name = what.name().unwrap_or_default();
    let mut callback = CallbackArguments::new(of_marker(what), name, Phase::Instant);
    callback.thread = marker.thread;
    callback.payload = Payload::Record(RecordRef::of(marker));
    thread.notify(interest.subscribers(), &callback);
}
