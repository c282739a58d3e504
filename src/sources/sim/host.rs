//! Threads that record: those of the simulation, and those of the process.

use super::callbacks::SimSite;
use gputrail_collect::correlation::HostThread;
use gputrail_collect::process::{self, Borrowed};
use gputrail_collect::recorder::Recorder;
use gputrail_collect::switchboard::Buffers;
use gputrail_record::Kind;
use std::ops::{Deref, DerefMut};

/// The state of a thread that records.
pub(super) enum HostState {
    /// A thread of the simulation, in virtual time.
    Simulated(Box<HostThread>),
    /// The thread of the process that calls.
    Calling,
}

impl HostState {
    /// The thread's state, while the result lives.
    pub(super) fn borrow(&mut self) -> HostRef<'_> {
        match self {
            HostState::Simulated(host) => HostRef::Simulated(host),
            HostState::Calling => {
                let current = process::current().expect(
                    "a thread records to its end, unless its process was forked in a callback",
                );
                // The thread is in the simulation, and in no call of another source.
                HostRef::Calling(current.borrow().expect("not in use"))
            }
        }
    }

    /// The thread as callbacks see it. The thread's state is not in use meanwhile: subscribers may push external ids.
    pub(super) fn site(&mut self) -> SimSite {
        let host = self.borrow();
        SimSite {
            board: host.board().clone(),
            state: host.state().clone(),
        }
    }
}

/// A [`HostState`] in use.
pub(super) enum HostRef<'a> {
    Simulated(&'a mut HostThread),
    Calling(Borrowed),
}

impl Deref for HostRef<'_> {
    type Target = HostThread;

    fn deref(&self) -> &HostThread {
        match self {
            HostRef::Simulated(host) => host,
            HostRef::Calling(host) => host,
        }
    }
}

impl DerefMut for HostRef<'_> {
    fn deref_mut(&mut self) -> &mut HostThread {
        match self {
            HostRef::Simulated(host) => host,
            HostRef::Calling(host) => host,
        }
    }
}

/// The buffers that get the completion of work whose record, of this kind, is written now.
pub(super) fn completion_buffers(host: &HostThread, kind: Kind) -> Buffers {
    host.buffers_for(kind)
        .and(host.buffers_for(Kind::COMPLETION))
}

/// Flushes if few blocks are empty: in a simulation the collector does not run in time.
pub(super) fn keep_room(recorder: Option<&Recorder>) {
    if let Some(recorder) = recorder
        && recorder.buffer().empty_blocks() < 2
    {
        recorder.flush();
    }
}
