//! The calls of the program as they come: whether anybody wants them, and whether they begin or end the recording.

use super::beginning::attach_again;
use super::observed::{gate, inherited, recorder};
use super::table::wanted;
use crate::scope::Due;
use crate::session_switch;
use crate::switchboard::{Interest, WantedTable};
use gputrail_buffer::platform::inside::{Uncancelled, defer_cancellation};
use gputrail_record::Operation;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls seen after the recording had ended.
static LATE_CALLS: AtomicU64 = AtomicU64::new(0);

/// The consumers of calls of `operation` in this process. Without any, the call passes through.
#[inline]
pub fn interest(operation: Operation) -> Interest {
    let wanted = wanted();
    let interest = wanted.operation(operation);
    if interest.is_none_or_late() {
        return not_wanted(wanted, operation, interest);
    }
    if session_switch::has_moved() {
        follow_switch(operation)
    } else {
        interest
    }
}

#[inline]
fn not_wanted(wanted: &WantedTable, operation: Operation, interest: Interest) -> Interest {
    if interest.is_late() {
        LATE_CALLS.fetch_add(1, Ordering::Relaxed);
    } else if wanted.generation.load(Ordering::Relaxed) == 0 {
        return new_process(operation);
    } else if session_switch::has_moved() {
        return follow_switch(operation);
    }
    Interest::NONE
}

/// The session was switched: the recording follows before this call is looked at.
#[cold]
#[inline(never)]
fn follow_switch(operation: Operation) -> Interest {
    uncancelled_at_any_instruction(follow_session, operation)
}

/// Does `work`, which is not to be unwound where it cannot be. A pointer to a function has no destructor (see
/// [`WantedTable::operation`]).
#[inline(always)]
fn uncancelled_at_any_instruction(
    work: fn(Operation) -> Interest,
    operation: Operation,
) -> Interest {
    let cancel_type = defer_cancellation();
    let interest = work(operation);
    cancel_type.restore();
    interest
}

#[inline(never)]
fn follow_session(operation: Operation) -> Interest {
    // Without a recorder the process is at its beginning or end.
    if let Some(recorder) = recorder() {
        let _uncancelled = Uncancelled::begin();
        recorder.gate().follow_session();
    }
    wanted().operation(operation)
}

/// Before the process has begun, or in a forked child, which attaches at its first call.
#[cold]
#[inline(never)]
fn new_process(operation: Operation) -> Interest {
    uncancelled_at_any_instruction(begin_again, operation)
}

#[inline(never)]
fn begin_again(operation: Operation) -> Interest {
    // The parent's, in a child that has inherited it.
    let Some(parent) = inherited() else {
        return Interest::NONE;
    };
    let sources = parent.attached.load(Ordering::Acquire);
    if sources == 0 {
        return Interest::NONE;
    }
    if parent.has_ended() {
        LATE_CALLS.fetch_add(1, Ordering::Relaxed);
        return Interest::NONE;
    }
    if attach_again(sources) {
        wanted().operation(operation)
    } else {
        Interest::NONE
    }
}

/// A call of `operation` comes to the gate of the recording. Returns its consumers then, and what is due with it
/// ([`flush_due`]).
#[cold]
#[inline(never)]
pub fn pass_gate(operation: Operation) -> (Interest, Due) {
    let due = gate().map_or_else(Due::default, |gate| gate.pass(operation));
    (wanted().operation(operation).without_gate(), due)
}

/// Ends the recording or has it dumped, as its gate has found due.
#[cold]
pub fn flush_due(due: Due) {
    let Some(recorder) = recorder() else {
        return;
    };
    let _uncancelled = Uncancelled::begin();
    if due.dump {
        // A recording that keeps everything has nothing to dump.
        recorder.dump();
    }
    if due.close {
        recorder.gate().close();
    }
}

/// Calls that came after the end of the recording.
pub fn late_calls() -> u64 {
    LATE_CALLS.load(Ordering::Relaxed)
}
