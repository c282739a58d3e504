//! The facts about a trace that merging needs in advance.

use std::io::Read;

use super::super::counters::described_block;
use super::super::reader::{
    Finding, Findings, Known, Packet, PacketPosition, TextId, TraceInput, Visitor, WorkEvent, rare,
    read,
};
use super::super::rows::{RowName, counter_parts};
use super::super::schema::{
    BuiltinClock, ClockSnapshot, GpuCounterEvent, GpuInfo, SystemInfo, TraceStats, field, gpu_info,
    trace_stats::FinalFlushOutcome,
};
use super::BOOTTIME;
use gputrail_record::ProcessId;

/// REALTIME among Perfetto's clocks.
const REALTIME: u32 = BuiltinClock::Realtime as u32;

/// The facts about a trace that merging needs in advance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The machine's name; empty if unknown.
    pub host: String,
    /// The time at which the machine was started, by its real-time clock, ns; `None` if unknown.
    pub started: Option<u64>,
    /// The first process that has rows on devices: those that name no process are its.
    pub(super) process: Option<ProcessId>,
    pub(super) latest_row: Option<TextId>,
    /// The devices.
    pub(super) gpus: Vec<gpu_info::Gpu>,
    /// Number of lost records.
    pub(super) lost: u64,
    /// Whether a recording in it ended early.
    pub(super) ended_early: bool,
    /// Number of packets.
    pub packets: u64,
    /// The defects found.
    pub findings: Vec<Finding>,
}

impl Visitor for Survey {
    fn packet(&mut self, packet: &Packet<'_>, _: &Known, _: &mut Findings) {
        let (kind, data) = packet.data;
        match kind {
            field::trace_packet::SYSTEM_INFO => {
                let system = rare::<SystemInfo>(data).unwrap_or_default();
                if let Some(host) = system.machine_name {
                    self.host = host;
                }
            }
            field::trace_packet::CLOCK_SNAPSHOT if self.started.is_none() => {
                let snapshot = rare::<ClockSnapshot>(data).unwrap_or_default();
                let time = |id: u32| {
                    let clock = snapshot
                        .clocks
                        .iter()
                        .find(|clock| clock.clock_id == Some(id));
                    clock.and_then(|clock| clock.timestamp)
                };
                if let (Some(boottime), Some(realtime)) = (time(BOOTTIME), time(REALTIME)) {
                    self.started = realtime.checked_sub(boottime);
                }
            }
            field::trace_packet::GPU_COUNTER_EVENT if self.process.is_none() => {
                let event = rare::<GpuCounterEvent>(data).unwrap_or_default();
                let descriptor = event.counter_descriptor.unwrap_or_default();
                if let ([block], [counter, ..]) = (&descriptor.blocks[..], &descriptor.specs[..])
                    && let Some((process, _)) = described_block(block.description())
                    && counter_parts(counter.name()).1.is_empty()
                {
                    self.process = Some(process);
                }
            }
            field::trace_packet::GPU_INFO => {
                self.gpus = rare::<GpuInfo>(data).unwrap_or_default().gpus
            }
            field::trace_packet::TRACE_STATS => {
                let stats = rare::<TraceStats>(data).unwrap_or_default();
                self.ended_early |=
                    stats.final_flush_outcome() == FinalFlushOutcome::FinalFlushFailed;
                for buffer in stats.buffer_stats {
                    let lost = buffer.trace_writer_packet_loss.unwrap_or(0);
                    self.lost = self.lost.saturating_add(lost);
                }
            }
            _ => {}
        }
    }

    fn work(&mut self, _: PacketPosition, event: &WorkEvent<'_>, _: &mut Findings) {
        if self.process.is_some() || self.latest_row == Some(event.queue.id) {
            return;
        }
        self.latest_row = Some(event.queue.id);
        if RowName::of(event.queue.text).is_some_and(|row| row.process.is_empty()) {
            self.process = Some(event.process);
        }
    }
}

/// Reads the facts that merging needs from a trace.
pub fn survey(source: impl Read) -> Survey {
    survey_of(Box::new(source))
}

fn survey_of(source: TraceInput<'_>) -> Survey {
    let mut survey = Survey::default();
    let outcome = read(source, &mut survey);
    survey.packets = outcome.packets;
    survey.findings = outcome.findings.list().to_vec();
    survey
}
