//! Buffers: the path of records from the recording threads to the sinks.
//!
//! A [`Buffer`] is a [`Mapping`] divided into blocks. Each recording thread owns a [`Lane`] and fills one block at a
//! time from front to back; writing a record is a bounds check, a copy and one release store. The [`Collector`] polls
//! the states of the blocks, delivers committed records to its [`Sink`]s, and returns emptied blocks to the pool from
//! which all lanes take blocks. The whole state is in the mapping: so the collector may be in another process, and the
//! same poll finds the records of a process that has died (`gputrail_capture::recover`).
//!
//! Queues of crates (crossbeam, rtrb) live on a heap, which is lost when the process is killed.
//!
//! If no block is empty, the buffer's [`Policy`] decides. Nothing here grows at run time.
//!
//! `ORDERINGS.md` beside this file lists the atomics of hand-overs, with their orderings and counterparts.
//!
//! A part of gputrail, not meant for others: what is public here may change in any version.

mod batch;
mod block;
#[cfg(not(loom))]
mod client;
pub mod clock;
#[cfg(not(loom))]
mod collector;
mod delivering;
mod lane;
pub mod lanes;
mod losses;
mod mapping;
#[cfg(not(loom))]
mod open_calls;
mod overwrite;
pub mod platform;
mod pool;
#[cfg(any(not(loom), test))]
mod queue_drops;
#[cfg(any(loom, target_os = "linux"))]
pub mod signal_ring;
#[cfg(not(loom))]
mod threads;
mod wake;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

pub use batch::ReservedBatch;
pub use block::BlockView;
#[cfg(not(loom))]
pub use block::{deliver_in_order, show_filling};
#[cfg(not(loom))]
pub use client::CLIENT_BLOCKS;
#[cfg(not(loom))]
pub use client::{
    BlockClient, ClientBlock, ClientMemory, CompletedBlock, SMALLEST_CLIENT_BLOCK, UnusableBlock,
};
#[cfg(not(loom))]
pub use collector::{Collector, CollectorOptions, Sink};
#[cfg(not(loom))]
pub use collector::{FINAL_LOSSES, SessionEvent};
pub use lane::{Lane, WhenFull};
#[cfg(not(loom))]
pub use losses::unreported;
#[cfg(not(loom))]
pub use losses::{forget_drops, show_unreported};
pub(crate) use mapping::LaneSlot;
#[cfg(not(loom))]
pub use mapping::MAX_OPEN_CALLS;
pub use mapping::{Layout, LayoutError, Mapping, MappingError, OpenCall, SessionState};
#[cfg(not(loom))]
pub use open_calls::OpenCalls;
#[cfg(not(loom))]
pub use queue_drops::QueuePlace;

#[cfg(not(loom))]
pub use threads::SharedThread;
#[cfg(not(loom))]
pub use threads::{CALLBACK_THREADS, CallbackThread};

use crate::platform::sync::Ordering;
use gputrail_record::{KINDS, Kind, ThreadId, Ticks};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32 as PlainU32, AtomicU64 as PlainU64};

/// The behaviour of a lane if the pool has no empty block.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Policy {
    /// Drop the record and count it. Writing is wait-free.
    #[default]
    Discard = 0,
    /// Wait for the collector, where waiting is allowed ([`Lane::set_may_wait`]); elsewhere discard
    /// and count. Two blocks are enough for any number of threads: blocks that idle threads hold partly filled are taken
    /// back.
    Lossless = 1,
    /// Overwrite the oldest records: the buffer keeps the latest, and shows them on request only. Each lane fills a block of its
    /// own: with fewer blocks than lanes, a lane takes one of an idle lane, and little is kept. Records are discarded and
    /// counted while a dump reads all blocks, or other lanes write into all of them.
    Overwrite = 2,
}

impl Policy {
    /// The policy with this number in configurations.
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

/// A word that is not the name of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy `{0}`, expected `lossless` or `discard`")]
pub struct UnknownPolicy(String);

/// Blocks, lanes and pool over one mapping. Clones are handles to the same buffer.
#[derive(Clone)]
pub struct Buffer {
    shared: Arc<BufferState>,
}

/// The state that lanes and collector share.
struct BufferState {
    mapping: Mapping,
    policy: Policy,
    /// The callback thread that collects and 1, or 0 if the collector's own thread sleeps on the mapping's word.
    #[cfg(not(loom))]
    served_by: PlainU32,
    /// Under [`Policy::Overwrite`]: the number of blocks that lanes have looked at. The remainder is the place of the next one.
    hand: PlainU64,
    /// [`Mapping::looks`] and a set bit when a lane found that the collector has stopped polling, or 0. Other lanes do
    /// not wait for it before it polls again.
    collector_lost: PlainU64,
    /// Returns whether the collecting process has ended, if another process collects.
    collector_ended: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Has idle lanes give their blocks to the collector.
    reclaim: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Ticks at which that was done last.
    #[cfg(not(loom))]
    reclaimed: PlainU64,
    /// Requests that the client of the blocks has refused.
    #[cfg(not(loom))]
    refusals: PlainU32,
    /// Whether lanes write how long they waited for a block.
    reports_waits: AtomicBool,
    /// Dropped records of each kind that lanes have reported.
    reported: [PlainU64; KINDS],
    /// Dropped records by the queue that they name.
    #[cfg(not(loom))]
    queue_drops: queue_drops::QueueDrops,
    /// Id of the latest lane. Ids are never used again, slots are.
    last_lane: PlainU32,
}

impl Buffer {
    /// A buffer over `mapping`.
    pub fn new(mapping: Mapping, policy: Policy) -> Buffer {
        Buffer {
            shared: Arc::new(BufferState {
                hand: PlainU64::new(0),
                mapping,
                policy,
                #[cfg(not(loom))]
                served_by: PlainU32::new(0),
                collector_lost: PlainU64::new(0),
                collector_ended: OnceLock::new(),
                reclaim: OnceLock::new(),
                #[cfg(not(loom))]
                reclaimed: PlainU64::new(0),
                #[cfg(not(loom))]
                refusals: PlainU32::new(0),
                reports_waits: AtomicBool::new(false),
                reported: [const { PlainU64::new(0) }; KINDS],
                #[cfg(not(loom))]
                queue_drops: queue_drops::QueueDrops::new(),
                last_lane: PlainU32::new(0),
            }),
        }
    }

    /// Sets how a lane that waits for an empty block finds out whether the collecting process has ended. Only the first
    /// call has an effect.
    pub fn collector_ends_when(&self, ended: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.shared.collector_ended.set(Box::new(ended));
    }

    /// Sets how a lane that needs a block, while lanes hold all of them partly filled, has idle lanes give theirs up. The first
    /// call counts. `reclaim` must not wait for the calling thread's lane.
    pub fn reclaims_by(&self, reclaim: impl Fn() + Send + Sync + 'static) {
        let _ = self.shared.reclaim.set(Box::new(reclaim));
    }

    /// Sets whether lanes write records of [`Kind::OVERHEAD`] about their waits for a block.
    #[cfg(not(loom))]
    pub fn report_waits(&self, report: bool) {
        self.shared.reports_waits.store(report, Ordering::Relaxed);
    }

    /// Whether the process that collects is known to have ended.
    #[cfg(not(loom))]
    pub fn collector_has_ended(&self) -> bool {
        self.shared.collector_has_ended()
    }

    /// A lane for `thread`, or `None` if all lanes of the layout are in use or the buffer has ended. Losses of a thread
    /// without a lane must be counted by [`Buffer::count_unlaned`].
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

    /// Counts as dropped what is committed and has not been delivered: nobody is going to deliver it. The records of
    /// block `shown.0` up to offset `shown.1` are being delivered.
    #[cfg(not(loom))]
    pub(crate) fn count_undelivered(&self, shown: (u32, u32)) {
        block::show_undelivered(self.mapping(), shown, |bytes| {
            for record in gputrail_record::Records::new(bytes) {
                let kind = record.kind();
                // A report of drops, which are counted already.
                if kind == Kind::LOSS {
                    continue;
                }
                self.count_unlaned(kind);
                if QueuePlace::is_in(kind) {
                    self.count_drop_of(QueuePlace::of(kind, record.bytes()));
                }
            }
        });
    }

    /// Counts a dropped record, which is counted by kind elsewhere, by the place that it names.
    #[cfg(not(loom))]
    pub fn count_drop_of(&self, place: QueuePlace) {
        self.shared.queue_drops.count(place);
    }

    /// The dropped records that name a place which `selected` has, since the last call that counted them. Records
    /// without a context are those of [`QueuePlace::NONE`], which selects all.
    #[cfg(not(loom))]
    pub fn take_drops_of(&self, selected: QueuePlace) -> u64 {
        self.shared.queue_drops.take(selected)
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

    /// Under [`Policy::Overwrite`]: calls `show` with the kept records, each lane's blocks in the order it filled them,
    /// of the blocks in use after `since`. Returns the time back to which the memory reaches, if that is later than
    /// `since`. One thread at a time.
    pub fn dump(&self, since: Ticks, show: impl FnMut(&BlockView<'_>)) -> Option<Ticks> {
        overwrite::dump(&self.shared, since.0, show)
    }

    /// Requests a dump of the kept records from the collecting process, which may be another one.
    #[cfg(not(loom))]
    pub fn trigger(&self) {
        self.mapping().triggers().fetch_add(1, Ordering::Release);
        self.wake_collector();
    }

    /// The policy for a pool without empty blocks.
    pub fn policy(&self) -> Policy {
        self.shared.policy
    }

    /// The memory the buffer lies in.
    pub fn mapping(&self) -> &Mapping {
        &self.shared.mapping
    }

    /// Number of empty blocks.
    pub fn empty_blocks(&self) -> usize {
        self.shared.mapping.pool().len()
    }

    /// Stops lanes from taking further blocks, and wakes those that wait for one. Records that lanes still write into
    /// the blocks they hold stay in the mapping.
    pub fn end(&self) {
        self.shared.mapping.end();
    }

    /// Wakes the collector.
    #[cfg(not(loom))]
    pub fn wake_collector(&self) {
        self.shared.wake().wake();
    }
}
