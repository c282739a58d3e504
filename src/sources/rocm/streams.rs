//! The stream of HIP that a thread puts work into: the SDK calls back before and after each call with a stream.

use core::cell::Cell;
use gputrail_collect::process::Current;
use gputrail_rocprofiler::CallbackPhase;

/// Calls with a stream in progress on a thread.
const MAX_DEPTH: usize = 8;
/// Threads with such calls: as many as the switchboard numbers.
const THREADS: usize = 1024;

/// The streams of the calls in progress of one thread: the SDK's ids plus 1.
struct CurrentStreams {
    depth: Cell<usize>,
    streams: [Cell<u64>; MAX_DEPTH],
}

// SAFETY: `of` gives each thread its own. The number of a thread is one thread's at a time, and the next one to get it sees
// what the one before did.
unsafe impl Sync for CurrentStreams {}

static STREAMS: [CurrentStreams; THREADS] = [const {
    CurrentStreams {
        depth: Cell::new(0),
        streams: [const { Cell::new(0) }; MAX_DEPTH],
    }
}; THREADS];

fn of(thread: Current) -> &'static CurrentStreams {
    &STREAMS[thread.state().number() as usize % THREADS]
}

/// A call with a stream begins or ends on `thread`.
pub(super) fn set(thread: Current, phase: CallbackPhase, stream: u64) {
    let streams = of(thread);
    let depth = streams.depth.get();
    if phase == CallbackPhase::ENTER {
        if let Some(place) = streams.streams.get(depth) {
            place.set(stream.wrapping_add(1));
        }
        streams.depth.set(depth + 1);
    } else {
        // An exit without an enter: the context was started in the middle of the call.
        streams.depth.set(depth.saturating_sub(1));
    }
}

/// The SDK's id of the stream that `thread` puts work into, plus 1; 0 if there is none, or the calls are too deep.
pub(super) fn current(thread: Current) -> u64 {
    let streams = of(thread);
    let innermost = streams.depth.get().checked_sub(1);
    let place = innermost.and_then(|place| streams.streams.get(place));
    place.map_or(0, Cell::get)
}
