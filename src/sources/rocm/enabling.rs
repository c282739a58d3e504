//! The contexts that are started: those of what a recording or tool wants at the time.
//!
//! The SDK takes services once, for all operations of a kind. A context that nobody wants is stopped, so that calls and work pass
//! by as if it were not there. Starts that the SDK refuses are said once.

use super::functions;
use super::notes;
use super::session::{Session, current_session};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::process;
use gputrail_collect::switchboard::Switchboard;
use gputrail_record::{Domain, Kind, Operation};
use gputrail_rocprofiler::ContextId;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Contexts whose state is followed: those of calls, and those of work and of the driver's events.
const CONTEXTS: usize = super::DOMAINS.len() + 2;
/// The kinds of records that are made of work.
const WORK: [Kind; 4] = [
    Kind::KERNEL_DISPATCH,
    Kind::MEMORY_COPY,
    Kind::MEMORY_ALLOCATION,
    Kind::OVERHEAD,
];
/// The kind of records that says whether migrations and page faults are wanted.
pub(super) const DRIVER: Kind = Kind::UNIFIED_MEMORY_COUNTER;

/// The contexts that have been started.
#[derive(Default)]
struct StartedContexts {
    started: [bool; CONTEXTS],
    /// Whether a refusal has been reported.
    has_complained: [bool; CONTEXTS],
}

static STARTED: PerProcess<StartedContexts> = PerProcess::new();
/// Changes of what is wanted that are not carried out yet. The thread that finds 0 carries them all out: the SDK is not called
/// with [`STARTED`] locked.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// Whether the contexts have been stopped for good. To stop one may change what is wanted, which is not to start it again.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Starts the contexts that are wanted now, and stops the rest.
pub(super) fn enable() {
    let (Some(session), Some(board)) = (current_session(), process::board()) else {
        return;
    };
    let any = Operation {
        domain: Domain::HIP,
        number: 1,
    };
    if board.interest(any).is_late() || HAS_ENDED.load(Ordering::Acquire) {
        // The process ends: calls are only counted.
        return;
    }
    if CHANGES.fetch_add(1, Ordering::AcqRel) > 0 {
        return;
    }
    loop {
        let seen = CHANGES.load(Ordering::Acquire);
        enable_all(session, board);
        let done = CHANGES.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Relaxed);
        if done.is_ok() {
            return;
        }
    }
}

/// The subjects of the contexts, in words, with the contexts.
fn contexts(session: &Session) -> [(&'static str, Option<ContextId>); CONTEXTS] {
    let contexts = &session.contexts;
    core::array::from_fn(|place| match place.checked_sub(super::DOMAINS.len()) {
        None => (
            super::DOMAINS[place].name().unwrap_or_default(),
            contexts.calls[place],
        ),
        Some(0) => ("kernels, copies and allocations", contexts.work),
        Some(_) => ("migrations and page faults", contexts.driver),
    })
}

/// Whether each of the contexts is wanted, in the order of [`contexts`].
fn wanted(board: &Switchboard) -> [bool; CONTEXTS] {
    let is_any_wanted =
        |kinds: &[Kind]| kinds.iter().any(|kind| !board.buffers_for(*kind).is_none());
    core::array::from_fn(|place| match place.checked_sub(super::DOMAINS.len()) {
        None => functions::all(super::DOMAINS[place]).any(|function| {
            // Work alone needs no callbacks of calls: it is noted when the SDK asks for its id.
            let interest = board.interest(function.operation());
            let is_told = !interest.buffers().is_none() || interest.has_subscribers();
            is_told || interest.is_gated()
        }),
        Some(0) => is_any_wanted(&WORK),
        Some(_) => is_any_wanted(&[DRIVER]),
    })
}

fn enable_all(session: &Session, board: &Switchboard) {
    let wanted = wanted(board);
    for (place, (what, context)) in contexts(session).into_iter().enumerate() {
        let Some(context) = context else {
            continue;
        };
        if STARTED.lock().started[place] == wanted[place] {
            continue;
        }
        let switched = session.sdk.switch(context, wanted[place]);
        let mut started = STARTED.lock();
        match switched {
            Ok(()) => started.started[place] = wanted[place],
            Err(refused) if wanted[place] => {
                let is_first = !std::mem::replace(&mut started.has_complained[place], true);
                drop(started);
                if is_first {
                    notes::refused(&session.sdk, Some(board.names()), what, refused);
                }
            }
            // A context that was stopped otherwise, by the end of the SDK.
            Err(_) => started.started[place] = false,
        }
    }
}

/// The process ends: stops all that was started.
pub(super) fn stop(session: &Session) {
    HAS_ENDED.store(true, Ordering::Release);
    for (place, (_, context)) in contexts(session).into_iter().enumerate() {
        let was_started = std::mem::take(&mut STARTED.lock().started[place]);
        if let Some(context) = context.filter(|_| was_started) {
            // A context that is refused at the end has ended.
            let _ = session.sdk.switch(context, false);
        }
    }
}
