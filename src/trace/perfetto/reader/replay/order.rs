//! Events of other programs in the order of their times, as far as these differ from their order in the file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slices::SliceDetails;
use crate::model::CounterValue;
use crate::perfetto::reader::PacketPosition;
use crate::perfetto::reader::tracks::TrackId;
use gputrail_record::Nanos;

/// Bytes of events of other programs that wait for earlier ones.
const WINDOW_BYTES: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// An event of the host that outlives its packet.
#[derive(Debug)]
pub(super) struct HostMoment {
    pub time: Nanos,
    pub position: PacketPosition,
    pub track: TrackId,
    pub machine: u32,
    pub what: HostAction,
    pub details: Option<Box<SliceDetails>>,
}

/// What an event of the host does.
#[derive(Debug)]
pub(super) enum HostAction {
    Begin {
        label: Option<u32>,
        correlation: Option<u64>,
        api: u64,
    },
    End,
    Instant(Option<u32>),
    Value(CounterValue),
}

impl HostMoment {
    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        let details = self.details.as_ref();
        size_of::<HostMoment>() + details.map_or(0, |details| details.bytes())
    }
}

/// Events that wait for earlier ones. Events with equal times keep their order.
#[derive(Debug, Default)]
pub(super) struct ReorderWindow {
    waiting: BinaryHeap<Reverse<WaitingEvent>>,
    bytes: usize,
    count: u64,
    /// The time of the event that was taken last.
    latest: Nanos,
}

#[derive(Debug)]
struct WaitingEvent {
    key: (Nanos, u64),
    moment: HostMoment,
}

impl PartialEq for WaitingEvent {
    fn eq(&self, other: &WaitingEvent) -> bool {
        self.key == other.key
    }
}

impl Eq for WaitingEvent {}

impl PartialOrd for WaitingEvent {
    fn partial_cmp(&self, other: &WaitingEvent) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WaitingEvent {
    fn cmp(&self, other: &WaitingEvent) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl ReorderWindow {
    /// Adds an event. Returns whether it comes too late: after an event with a later time has been taken.
    pub fn add(&mut self, moment: HostMoment) -> bool {
        let late = moment.time < self.latest;
        self.count += 1;
        self.bytes += moment.bytes();
        self.waiting.push(Reverse(WaitingEvent {
            key: (moment.time, self.count),
            moment,
        }));
        late
    }

    /// The next event, if there are so many that it cannot wait.
    pub fn take_if_full(&mut self) -> Option<HostMoment> {
        if self.bytes > WINDOW_BYTES {
            self.take()
        } else {
            None
        }
    }

    /// The next event.
    pub fn take(&mut self) -> Option<HostMoment> {
        let Reverse(WaitingEvent { moment, .. }) = self.waiting.pop()?;
        self.bytes -= moment.bytes();
        self.latest = self.latest.max(moment.time);
        Some(moment)
    }
}
