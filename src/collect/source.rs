//! Sources: what observes one runtime and produces records.
//!
//! A source is one implementation of [`Source`]. Its library calls [`process::attach`](super::process::attach) when the
//! runtime is first used; from then on the process drives it. It calls [`Source::begin`] in this process and again in
//! each forked child, [`Source::flush`] when somebody flushes, and [`Source::end`] when the program begins to exit.
//!
//! The source itself calls down into this crate:
//!
//! * around each call of its API, [`process::interest`](super::process::interest), and
//!   [`HostThread::enter_wanted`](super::correlation::HostThread::enter_wanted) and `exit` of the calling thread;
//! * for asynchronous work, `outstanding`, with a key of its own choice, such as the handle of an
//!   event or a vendor's correlation id;
//! * for agents, queues, code and clock pairs, the names store; what an agent can sample goes to the sampling service.
//!
//! Several sources may live in one process. They share its threads, correlation ids, external ids and buffers.

use super::operations::OperationInfo;
use super::process::Current;
use super::switchboard::{Buffers, Flush, Switchboard};
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_record::{ContextId, Domain, StreamId};

/// The observer of one runtime.
pub trait Source: Sync {
    /// The domain of the runtime's API. No two sources have the same.
    fn domain(&self) -> Domain;

    /// The operations of the API.
    fn operations(&self) -> Vec<OperationInfo>;

    /// The operation with this number.
    fn operation(&self, number: u16) -> Option<OperationInfo> {
        let mut all = self.operations().into_iter();
        all.find(|info| info.operation.number == number)
    }

    /// The contexts and streams of the runtime, where the names store does not have their handles.
    fn handles(&self) -> Option<&'static dyn Handles> {
        None
    }

    /// Prepares to observe this process, which may be a forked child: forgets what the parent process knew. Called once
    /// in a process, before any call is observed. The error says why the source stays out.
    fn begin(&self, board: &Switchboard) -> std::io::Result<()> {
        let _ = board;
        Ok(())
    }

    /// Writes completions, on the calling thread, as `flush` asks. Must not wait for work, unless for
    /// [`Flush::Synchronized`].
    fn flush(&self, flush: Flush) {
        let _ = flush;
    }

    /// The process begins to exit, and `buffers` and all subscribers end: writes to `buffers`, and tells subscribers, of
    /// all work that is still outstanding that it did not finish. Other buffers may get its completion later. Must not
    /// wait for work.
    fn end(&self, thread: Current, buffers: Buffers) {
        let _ = (thread, buffers);
    }
}

/// Contexts and streams whose handles a runtime has to be asked for. Each method returns `None` if the runtime knows no live
/// object with the handle.
pub trait Handles: Sync {
    /// The context with this handle, if a record has named it.
    fn context(&self, handle: u64) -> Option<ContextId>;

    /// The stream with this handle, if work has run in it.
    fn stream(&self, handle: u64) -> Option<StreamId>;

    /// Names a context. Returns its id, which is none if no record has named it yet.
    fn name_context(&self, handle: u64, name: &str) -> Option<ContextId>;

    /// Names a stream. Returns its id, which is none if no work has run in it yet.
    fn name_stream(&self, handle: u64, name: &str) -> Option<StreamId>;
}

/// Sources that a process can have.
pub const MAX_SOURCES: usize = 16;

/// The sources that have attached, in this process or in one that it was forked from.
static ATTACHED: [OnceBox<&'static dyn Source>; MAX_SOURCES] =
    [const { OnceBox::new() }; MAX_SOURCES];

/// A set of attached sources: a bit for each place in the list.
pub(super) type SourceSet = u32;

/// Adds `source` to the list unless it is there, and returns it as a set; the empty set if the list is full.
pub(super) fn add(source: &'static dyn Source) -> SourceSet {
    let entries = ATTACHED.iter();
    let added = entries.map(|entry| entry.get_or_init(|| source).domain() == source.domain());
    let place = added.enumerate().find(|(_, is_source)| *is_source);
    place.map_or(0, |(place, _)| 1 << place)
}

/// The sources of a set, each with its bit.
pub(super) fn of(set: SourceSet) -> impl Iterator<Item = (SourceSet, &'static dyn Source)> {
    let listed = ATTACHED
        .iter()
        .enumerate()
        .filter_map(|(place, entry)| Some((1 << place, *entry.get()?)));
    listed.filter(move |(bit, _)| set & bit != 0)
}
