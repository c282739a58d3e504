//! Buffers: how records get from the threads that make them to the sinks that keep them.
//!
//! A [`Buffer`] is a [`Mapping`] divided into blocks. Each thread that records owns a [`Lane`] and fills one block at a
//! time from front to back; writing a record is a bounds check, a copy and one release store. The [`Collector`] looks
//! at the states of the blocks, hands what was committed to its [`Sink`]s, and puts emptied blocks back into the pool
//! that all lanes draw from. Everything that says what was written lies in the mapping itself: the collector may be
//! another process's, and the same look finds what a process left that has died ([`crate::capture::recover`]).
//!
//! When no block is empty, the buffer's [`Policy`] decides. Nothing here grows while it runs.
//!
//! `docs/memory-orderings.md` lists every atomic with its ordering and what it pairs with.

mod batch;
mod block;
#[cfg(not(loom))]
mod client;
#[cfg(not(loom))]
mod collector;
mod delivering;
mod lane;
pub(crate) mod lanes;
mod losses;
mod mapping;
#[cfg(not(loom))]
mod open_calls;
mod overwrite;
mod pool;
#[cfg(any(loom, all(feature = "opencl", target_os = "linux")))]
pub(crate) mod signal_ring;
#[cfg(not(loom))]
mod threads;
mod wake;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

pub use batch::Batch;
pub use block::BlockView;
#[cfg(not(loom))]
pub(crate) use block::{deliver_in_order, show_filling};
#[cfg(not(loom))]
pub(crate) use client::CLIENT_BLOCKS;
#[cfg(not(loom))]
pub use client::{BlockClient, ClientBlock, ClientMemory, CompletedBlock, SMALLEST_CLIENT_BLOCK};
#[cfg(not(loom))]
pub use collector::{Collector, CollectorOptions, Sink};
#[cfg(not(loom))]
pub(crate) use collector::{FINAL_LOSSES, SessionEvent};
pub use lane::{Lane, WhenFull};
#[cfg(not(loom))]
pub(crate) use losses::unreported;
pub(crate) use mapping::LaneSlot;
#[cfg(not(loom))]
pub(crate) use mapping::MAX_OPEN_CALLS;
pub use mapping::{Layout, LayoutError, Mapping, MappingError, OpenCall, SessionState};
#[cfg(not(loom))]
pub(crate) use open_calls::OpenCalls;

#[cfg(not(loom))]
pub(crate) use threads::SharedThread;
#[cfg(not(loom))]
pub use threads::{CALLBACK_THREADS, CallbackThread};

use crate::platform::sync::Ordering;
use crate::record::{KINDS, Kind, ThreadId, Ticks};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32 as PlainU32, AtomicU64 as PlainU64};

/// What a lane does when the pool has no empty block.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Policy {
    /// Drop the record and count it. Writing is wait-free.
    #[default]
    Discard = 0,
    /// Wait for the collector, where waiting is allowed ([`Lane::set_may_wait`]); elsewhere discard
    /// and count.
    Lossless = 1,
    /// Overwrite the oldest: the buffer keeps what was recorded last, and hands it out on request only. Writing is
    /// wait-free, but while a dump reads all blocks, records are discarded and counted.
    Overwrite = 2,
}

impl Policy {
    /// The policy with this number, as configurations carry it.
    pub fn from_code(code: u32) -> Option<Policy> {
        [Policy::Discard, Policy::Lossless, Policy::Overwrite]
            .into_iter()
            .find(|policy| *policy as u32 == code)
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Policy::Discard => "discard",
            Policy::Lossless => "lossless",
            Policy::Overwrite => "overwrite",
        })
    }
}

impl std::str::FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Policy, UnknownPolicy> {
        match text {
            "discard" => Ok(Policy::Discard),
            "lossless" => Ok(Policy::Lossless),
            _ => Err(UnknownPolicy(text.into())),
        }
    }
}

/// A word that names no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy `{0}`, expected `lossless` or `discard`")]
pub struct UnknownPolicy(String);

/// Blocks, lanes and pool over one mapping. Clones are handles to the same buffer.
#[derive(Clone)]
pub struct Buffer {
    shared: Arc<Shared>,
}

/// What lanes and collector share.
struct Shared {
    mapping: Mapping,
    policy: Policy,
    /// The callback thread that collects and 1, or 0: then it is who sleeps on the mapping's own word.
    #[cfg(not(loom))]
    served_by: PlainU32,
    /// Under [`Policy::Overwrite`]: lanes that have left full blocks behind.
    left_behind: PlainU64,
    /// 1 and [`Mapping::looks`] when a lane found that the collector does nothing any more, or 0. Others do not wait
    /// for it again before it does.
    collector_lost: PlainU64,
    /// Returns whether the process that collects has ended, where another process collects.
    collector_ended: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Has idle lanes give their blocks to the collector.
    reclaim: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Ticks at which that was done last.
    #[cfg(not(loom))]
    reclaimed: PlainU64,
    /// Dropped records of each kind that lanes have reported.
    reported: [PlainU64; KINDS],
    /// Id of the latest lane. Ids are never used again, slots are.
    last_lane: PlainU32,
}

impl Buffer {
    /// A buffer over `mapping`.
    pub fn new(mapping: Mapping, policy: Policy) -> Buffer {
        Buffer {
            shared: Arc::new(Shared {
                left_behind: PlainU64::new(0),
                mapping,
                policy,
                #[cfg(not(loom))]
                served_by: PlainU32::new(0),
                collector_lost: PlainU64::new(0),
                collector_ended: OnceLock::new(),
                reclaim: OnceLock::new(),
                #[cfg(not(loom))]
                reclaimed: PlainU64::new(0),
                reported: [const { PlainU64::new(0) }; KINDS],
                last_lane: PlainU32::new(0),
            }),
        }
    }

    /// Sets how a lane that waits for an empty block finds out that the process that collects has ended. The first call
    /// counts.
    pub(crate) fn collector_ends_when(&self, ended: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.shared.collector_ended.set(Box::new(ended));
    }

    /// Sets how a lane that waits for an empty block, while lanes hold all of them partly filled, has idle lanes give theirs
    /// to the collector. The first call counts. `reclaim` must not wait for the calling thread's lane.
    pub(crate) fn reclaims_by(&self, reclaim: impl Fn() + Send + Sync + 'static) {
        let _ = self.shared.reclaim.set(Box::new(reclaim));
    }

    /// Whether the process that collects is known to have ended.
    #[cfg(not(loom))]
    pub(crate) fn collector_has_ended(&self) -> bool {
        self.shared.collector_has_ended()
    }

    /// A lane for `thread`, or `None` when all lanes of the layout are in use or the buffer has
    /// ended. What a thread without a lane loses is to be counted by [`Buffer::count_unlaned`].
    pub fn lane(&self, thread: ThreadId) -> Option<Lane> {
        Lane::open(self.shared.clone(), thread)
    }

    /// Counts a record of `kind` that had no lane to be written to.
    pub fn count_unlaned(&self, kind: Kind) {
        self.shared
            .mapping
            .unlaned(kind)
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Records dropped since the beginning, by [`Kind::index`]: reported and unreported ones of all lanes, and those
    /// without a lane. Drops that a lane is reporting may count twice.
    pub fn dropped(&self) -> [u64; KINDS] {
        let mapping = self.mapping();
        let mut dropped: [u64; KINDS] = std::array::from_fn(|kind| {
            mapping.unlaned_by_index(kind).load(Ordering::Relaxed)
                + self.shared.reported[kind].load(Ordering::Relaxed)
        });
        for slot in 0..mapping.layout().lanes() {
            for (kind, count) in dropped.iter_mut().enumerate() {
                *count += mapping.slot(slot).drops(kind);
            }
        }
        dropped
    }

    /// Under [`Policy::Overwrite`]: shows `show` what is kept, each lane's blocks in the order it filled them, of
    /// those that were in use after `since`. One thread at a time.
    pub(crate) fn dump(&self, since: Ticks, show: impl FnMut(&BlockView<'_>)) {
        overwrite::dump(&self.shared, since.0, show);
    }

    /// Asks whoever collects, perhaps another process, for a dump of what is kept.
    #[cfg(not(loom))]
    pub(crate) fn trigger(&self) {
        self.mapping().triggers().fetch_add(1, Ordering::Release);
        self.wake_collector();
    }

    /// What happens when no block is empty.
    pub fn policy(&self) -> Policy {
        self.shared.policy
    }

    /// The memory the buffer lies in.
    pub fn mapping(&self) -> &Mapping {
        &self.shared.mapping
    }

    /// Blocks that are empty now.
    pub fn empty_blocks(&self) -> usize {
        self.shared.mapping.pool().len()
    }

    /// Lets no lane take another block, and wakes those that wait for one. What lanes still write
    /// into the blocks they hold stays in the mapping.
    pub fn end(&self) {
        self.shared.mapping.end();
    }

    /// Has the collector look now.
    #[cfg(not(loom))]
    pub(crate) fn wake_collector(&self) {
        self.shared.wake().wake();
    }
}
