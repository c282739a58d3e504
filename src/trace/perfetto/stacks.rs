//! Samples with stacks, which Perfetto draws as flame graphs.
//!
//! The samples of a track belong to one invented thread of their process: version 52 opens the graph of a single thread
//! by itself, and so shows all of them. No version of Perfetto weighs samples, so each sample is written.

use std::collections::HashMap;
use std::io;

use super::schema::trace_packet::Data;
use super::schema::{
    Callstack, Frame, InternedData, InternedString, Mapping, StreamingProfilePacket,
    ThreadDescriptor,
};
use super::trace_file::{SampleSequence, TraceFile};
use crate::model::{StackFrame, StackIndex};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{Nanos, ProcessId};

/// Ids of real threads are below this one.
pub(super) const INVENTED: u32 = 0x4000_0000;

/// A track of samples, and its packet sequence.
pub(super) struct StackTrack {
    process: ProcessId,
    name: String,
    /// The sequence, and the time of its latest sample in CLOCK_MONOTONIC us; `None` before the first sample.
    sequence: Option<(SampleSequence, i64)>,
    interned: InternedData,
    names: HashMap<String, u64>,
    mappings: HashMap<String, u64>,
    frames: HashMap<(u64, u64), u64>,
    callstacks: HashMap<Vec<u64>, u64>,
    stacks: NumberMap<StackIndex, u64>,
}

impl StackTrack {
    pub fn new(process: ProcessId, name: &str) -> StackTrack {
        StackTrack {
            process,
            name: name.to_owned(),
            sequence: None,
            interned: InternedData::default(),
            names: HashMap::new(),
            mappings: HashMap::new(),
            frames: HashMap::new(),
            callstacks: HashMap::new(),
            stacks: NumberMap::default(),
        }
    }

    /// Declares a stack: it is sent with the next samples.
    pub fn stack(&mut self, stack: StackIndex, frames: &[StackFrame]) {
        let frames = frames.iter().map(|frame| self.frame(frame));
        let frame_ids: Vec<u64> = frames.collect();
        let next = self.callstacks.len() as u64 + 1;
        let iid = *self
            .callstacks
            .entry(frame_ids)
            .or_insert_with_key(|frame_ids| {
                self.interned.callstacks.push(Callstack {
                    iid: Some(next),
                    frame_ids: frame_ids.clone(),
                });
                next
            });
        self.stacks.insert(stack, iid);
    }

    fn frame(&mut self, frame: &StackFrame) -> u64 {
        let text = |iid, text: &str| InternedString {
            iid: Some(iid),
            str: Some(text.as_bytes().to_vec()),
        };
        let interned = &mut self.interned;
        let next = self.names.len() as u64 + 1;
        let name = *self.names.entry(frame.name.clone()).or_insert_with(|| {
            interned.function_names.push(text(next, &frame.name));
            next
        });
        let next = self.mappings.len() as u64 + 1;
        let mapping = *self
            .mappings
            .entry(frame.mapping.clone())
            .or_insert_with(|| {
                interned.mapping_paths.push(text(next, &frame.mapping));
                interned.mappings.push(Mapping {
                    iid: Some(next),
                    path_string_ids: vec![next],
                });
                next
            });
        let next = self.frames.len() as u64 + 1;
        *self.frames.entry((name, mapping)).or_insert_with(|| {
            interned.frames.push(Frame {
                iid: Some(next),
                function_name_id: Some(name),
                mapping_id: Some(mapping),
                // Perfetto merges frames that differ in nothing else.
                rel_pc: Some(next),
            });
            next
        })
    }

    /// Writes samples as one packet.
    pub fn write(
        &mut self,
        file: &mut TraceFile<'_>,
        samples: &[(Nanos, StackIndex)],
    ) -> io::Result<()> {
        let first = samples.first().map(|(time, _)| time.0);
        // Perfetto cannot place samples in time if no snapshot contains their clock.
        let Some(first) = first.and_then(|first| file.monotonic(first)) else {
            return Ok(());
        };
        let (mut sequence, mut before) = match self.sequence.take() {
            Some(begun) => begun,
            None => self.begin(file, (first / 1000) as i64)?,
        };
        let mut packet = StreamingProfilePacket::default();
        for (time, stack) in samples {
            let Some(iid) = self.stacks.get(stack) else {
                continue;
            };
            packet.callstack_iid.push(*iid);
            let now = file.monotonic(time.0).unwrap_or(first);
            let now = (now / 1000) as i64;
            packet.timestamp_delta_us.push(now - before);
            before = now;
        }
        let interned = std::mem::take(&mut self.interned);
        let interned = (interned != InternedData::default()).then_some(interned);
        let data = Data::StreamingProfilePacket(packet);
        file.sample_packet(&mut sequence, interned, data)?;
        self.sequence = Some((sequence, before));
        Ok(())
    }

    fn begin(&self, file: &mut TraceFile<'_>, first: i64) -> io::Result<(SampleSequence, i64)> {
        let mut sequence = file.sample_sequence();
        let pid = self.process.0;
        let thread = ThreadDescriptor {
            pid: Some(pid as i32),
            tid: Some(i64::from(INVENTED | pid)),
            thread_name: Some(self.name.clone()),
            reference_timestamp_us: Some(first),
            legacy_sort_index: None,
        };
        file.sample_packet(&mut sequence, None, Data::ThreadDescriptor(thread))?;
        Ok((sequence, first))
    }
}
