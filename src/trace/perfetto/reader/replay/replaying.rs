//! What is known of a trace that is being replayed.

use std::collections::HashMap;
use std::io;

use super::activity::Activities;
use super::counters::DescribedCounters;
use super::held::{Enqueuing, HeldWork};
use super::labels::Labels;
use super::order::ReorderWindow;
use super::processes::Processes;
use super::slices::EventLane;
use super::stacks::Stacks;
use super::stages::Stages;
use super::tally::Tallies;
use crate::model::{
    AgentIndex, Consumer, ProcessIndex, QueueIndex, Stream, SystemClocks, TraceHeader,
};
use crate::perfetto::reader::findings::PacketPosition;
use crate::perfetto::reader::texts::TextId;
use crate::perfetto::reader::tracks::TrackId;
use gputrail_record::Nanos;
use gputrail_record::number_map::NumberMap;

/// A queue: its process, its agent and its name in the trace.
type QueueKey = (ProcessIndex, u32, TextId);

/// A trace that is being replayed.
pub(super) struct Replaying<'a> {
    pub stream: Stream<'a>,
    pub wants_calls: bool,
    /// The error of the consumer: nothing more is passed on after it.
    pub failed: Option<io::Error>,
    /// The beginning of the stream, until it has been passed on, and further clock snapshots.
    pub header: Option<Box<(TraceHeader, Vec<SystemClocks>)>>,
    /// The machine and the position of the current packet.
    pub machine: u32,
    pub position: PacketPosition,
    pub version: Option<String>,
    pub processes: Processes,
    pub labels: Labels,
    pub lanes: Vec<EventLane>,
    pub places: NumberMap<TrackId, usize>,
    pub latest_lane: Option<(TrackId, usize)>,
    pub window: ReorderWindow,
    /// Number of open slices of all tracks.
    pub open: usize,
    /// Number of slices of all tracks that wait for the end of their outermost one.
    pub waiting: usize,
    /// Bytes of the details of both.
    pub detail_bytes: usize,
    pub waiting_bytes: usize,
    /// Number of slices and instants that have begun.
    pub begun: u64,
    /// Calls whose work has not come, by the id of the work.
    pub calls: NumberMap<u64, Enqueuing>,
    pub held: NumberMap<u64, HeldWork>,
    /// Bytes of the details of held work.
    pub held_bytes: usize,
    pub queues: HashMap<QueueKey, (AgentIndex, QueueIndex)>,
    pub latest_queue: Option<(QueueKey, (AgentIndex, QueueIndex))>,
    pub stages: Stages,
    pub activities: Activities,
    /// Titles of the declared agents.
    pub titles: Vec<String>,
    pub counters: DescribedCounters,
    pub stacks: Stacks,
    /// Number of lost records that instants have reported.
    pub lost: u64,
    pub untied: u64,
    pub left_out: Tallies,
    pub late: Tallies,
}

impl<'a> Replaying<'a> {
    pub fn new(consumer: &'a mut dyn Consumer) -> Replaying<'a> {
        Replaying {
            wants_calls: consumer.wants_calls(),
            stream: Stream::new(consumer),
            failed: None,
            header: Some(Box::default()),
            machine: 0,
            position: PacketPosition::default(),
            version: None,
            processes: Processes::default(),
            labels: Labels::default(),
            lanes: Vec::new(),
            places: NumberMap::default(),
            latest_lane: None,
            window: ReorderWindow::default(),
            open: 0,
            waiting: 0,
            detail_bytes: 0,
            waiting_bytes: 0,
            begun: 0,
            calls: NumberMap::default(),
            held: NumberMap::default(),
            held_bytes: 0,
            queues: HashMap::new(),
            latest_queue: None,
            stages: Stages::default(),
            activities: Activities::default(),
            titles: Vec::new(),
            counters: DescribedCounters::default(),
            stacks: Stacks::default(),
            lost: 0,
            untied: 0,
            left_out: Tallies::default(),
            late: Tallies::default(),
        }
    }

    /// Whether gputrail has made the trace.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.version.is_some()
    }

    pub fn leave_out(&mut self, reason: &'static str, count: u64) {
        self.left_out.add(reason, self.position, count);
    }

    /// Begins the stream, if it has not begun, at the latest with an event at `time`.
    #[inline]
    pub fn begin(&mut self, time: Nanos) -> io::Result<()> {
        match self.header.take() {
            None => Ok(()),
            Some(header) => self.begin_stream(*header, time),
        }
    }

    #[cold]
    fn begin_stream(
        &mut self,
        (mut header, clocks): (TraceHeader, Vec<SystemClocks>),
        time: Nanos,
    ) -> io::Result<()> {
        if header.clocks == SystemClocks::default() {
            header.clocks.boottime = time;
        }
        self.stream.consumer.begin(&header)?;
        let mut clocks = clocks.iter();
        clocks.try_for_each(|clocks| self.stream.consumer.clocks(clocks))
    }
}
