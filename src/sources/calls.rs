//! The recorded calls in progress of each thread, from the enter of a call to its exit, of runtimes whose profiler calls back at
//! both: CUDA's and ROCm's.

use gputrail_collect::correlation::CallInProgress;
use gputrail_collect::process::Current;
use gputrail_record::WorkId;
use std::cell::Cell;

/// Calls in progress on a thread that are recorded: a function of a runtime calls some of the driver.
const MAX_DEPTH: usize = 16;
/// Threads with calls in progress: as many as the switchboard numbers.
const THREADS: usize = 1024;
/// How far the frames of two of a profiler's callbacks, of a call and of one inside of it, may lie the other way round.
const FRAMES: usize = 16 << 10;

/// A call in progress.
#[derive(Copy, Clone)]
pub(crate) struct CurrentCall {
    pub call: CallInProgress,
    pub work: WorkId,
    /// The profiler's correlation id, if it has numbered the call.
    pub id: u32,
}

/// The calls in progress of one thread. They are no thread-local variables: the library's are part of the static ones,
/// for which a process has little room left when the driver loads it.
pub(crate) struct CallStack {
    /// By depth.
    pub calls: [Cell<CurrentCall>; MAX_DEPTH],
    /// The stack addresses of the innermost call: of its callback, and as it was entered; or 0.
    pub innermost: Cell<(usize, usize)>,
}

// SAFETY: `stack` gives each thread its own. The number of a thread is one thread's at a time, and the next one to get
// it sees what the one before did.
unsafe impl Sync for CallStack {}

static STACKS: [CallStack; THREADS] = {
    const NONE: CurrentCall = CurrentCall {
        call: CallInProgress::NONE,
        work: WorkId::NONE,
        id: 0,
    };
    [const {
        CallStack {
            calls: [const { Cell::new(NONE) }; MAX_DEPTH],
            innermost: Cell::new((0, 0)),
        }
    }; THREADS]
};

/// The calls in progress of the calling thread.
pub(crate) fn stack(thread: Current) -> &'static CallStack {
    &STACKS[thread.state().number() as usize % THREADS]
}

impl CallStack {
    /// An address that is below that of the call around this one. Callbacks have returned when the call goes on,
    /// so that their frames say little about which call is the inner one.
    #[inline(always)]
    pub fn pointer(&self) -> usize {
        let here = 0_u8;
        let here = (&raw const here) as usize;
        let (around, entered) = self.innermost.get();
        let is_inside = around != 0 && here < around + FRAMES;
        let entered = if is_inside {
            here.min(entered - 16)
        } else {
            here
        };
        self.innermost.set((here, entered));
        entered
    }
}

/// A node of a graph was created on `thread`: what its calls in progress would have enqueued is that node now.
pub(crate) fn captured(thread: Current) {
    for open in &stack(thread).calls {
        open.set(CurrentCall {
            work: WorkId::NONE,
            ..open.get()
        });
    }
}
