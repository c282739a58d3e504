//! Recovery of the records that a dead process left in its mapping.

use super::writer::Writer;
use gputrail_buffer::clock;
use gputrail_buffer::{
    BlockView, FINAL_LOSSES, MAX_OPEN_CALLS, Mapping, OpenCall, deliver_in_order, show_filling,
    unreported,
};
use gputrail_record::*;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// Number, in lane 0, of the block of calls in progress.
const OPEN_CALLS: u32 = u32::MAX;

/// How the process ended, for the note in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// [`NoteKind::DIED`], or [`NoteKind::ENDED_EARLY`] if the process still runs.
    pub kind: NoteKind,
    /// The cause for users, such as "killed by signal 9 (SIGKILL)".
    pub text: String,
}

/// The result of [`recover`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records that were committed but not written.
    pub records: u64,
    /// Calls that were in progress.
    pub open_calls: u64,
    /// Records that were dropped but not reported.
    pub dropped: u64,
}

/// Appends to `writer` the records that the process committed to `mapping` but did not write, the drops that it did not
/// report, and unfinished API records of the calls that were in progress.
///
/// The process must not be running. The contents of the mapping are not trusted.
pub fn recover(mapping: &Mapping, writer: &Writer, cause: &Cause) -> Recovered {
    let mut recovered = Recovered::default();
    let deliver = |view: &BlockView<'_>| {
        // Up to the first malformed record: the dying process may have corrupted its memory.
        let valid: usize = Records::new(view.bytes)
            .map(|record| record.bytes().len())
            .sum();
        recovered.records += Records::new(view.bytes).count() as u64;
        let view = BlockView {
            bytes: &view.bytes[..valid],
            ..*view
        };
        // The writer holds its error.
        let _ = writer.records(&view);
    };
    deliver_in_order(mapping, 0, &mut Default::default(), deliver, |_| {});

    let mut own = OwnRecords::default();
    for mut loss in unreported(mapping, Ticks::NONE) {
        loss.header = loss.header.with(flags::RECOVERED);
        recovered.dropped = recovered.dropped.saturating_add(loss.count);
        own.push(loss);
    }
    own.write(writer, FINAL_LOSSES);
    let ended = calls_that_ended_last(mapping);
    recovered.open_calls = own.open_calls(mapping, &ended);
    own.write(writer, OPEN_CALLS);
    note(writer, cause.kind, &cause.text);
    recovered
}

/// Appends to `writer` unfinished API records of the calls that were in progress in a process that has ended.
#[cfg(target_os = "linux")]
pub fn write_open_calls(mapping: &Mapping, writer: &Writer) {
    let mut own = OwnRecords::default();
    own.open_calls(mapping, &calls_that_ended_last(mapping));
    own.write(writer, OPEN_CALLS);
}

/// Unfinished API records of the calls in progress on the lanes of `mapping`, except those in `ended`. The
/// process may be running.
pub fn open_calls(mapping: &Mapping, ended: &HashSet<CorrelationId>) -> Vec<u8> {
    let mut own = OwnRecords::default();
    own.open_calls(mapping, ended);
    own.bytes
}

/// The calls that ended last on each lane. A process may die after it wrote the record of such a call and before it
/// removed the call from the open-call stack. The record is then in the block that the lane is filling.
fn calls_that_ended_last(mapping: &Mapping) -> HashSet<CorrelationId> {
    let mut calls = HashSet::new();
    show_filling(mapping, |bytes| {
        let last = Records::new(bytes)
            .filter_map(|record| record.read::<Api>())
            .last();
        calls.extend(last.map(|api| api.correlation));
    });
    calls
}

fn open_call(call: &OpenCall, ancestor: CorrelationId, thread: ThreadId) -> Api {
    let operation = call.operation.load(Ordering::Relaxed);
    let mut api = Api::blank();
    api.header = api.header.with(flags::UNFINISHED | flags::RECOVERED);
    api.start = Ticks(call.start.load(Ordering::Relaxed));
    api.correlation = CorrelationId(call.correlation.load(Ordering::Relaxed));
    api.ancestor = ancestor;
    api.thread = thread;
    api.operation = Operation {
        domain: Domain(operation as u16),
        number: (operation >> 16) as u16,
    };
    api
}

/// Records that the recovery itself creates.
#[derive(Default)]
struct OwnRecords {
    bytes: Vec<u8>,
    sequence: u32,
    /// Sequence number of the first record in `bytes`.
    first: u32,
}

impl OwnRecords {
    fn push<R: Record>(&mut self, mut record: R) {
        let bytes = bytemuck::bytes_of_mut(&mut record);
        bytes[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        self.bytes.extend_from_slice(bytes);
        self.sequence += 1;
    }

    /// Adds the calls in progress and returns their number.
    fn open_calls(&mut self, mapping: &Mapping, ended: &HashSet<CorrelationId>) -> u64 {
        let mut count = 0;
        for index in 0..mapping.layout().lanes() {
            let slot = mapping.slot(index);
            if slot.lane.load(Ordering::Acquire) == 0 {
                continue;
            }
            let thread = ThreadId(slot.thread.load(Ordering::Relaxed));
            let depth = (slot.depth.load(Ordering::Acquire) as usize).min(MAX_OPEN_CALLS);
            let mut ancestor = CorrelationId::NONE;
            for call in &slot.calls[..depth] {
                let api = open_call(call, ancestor, thread);
                if !api.correlation.is_some() {
                    // A call that is not recorded on this lane.
                    continue;
                }
                ancestor = api.correlation;
                if !ended.contains(&api.correlation) {
                    self.push(api);
                    count += 1;
                }
            }
        }
        count
    }

    /// Appends the records to `writer`, as block `sequence` of lane 0.
    fn write(&mut self, writer: &Writer, sequence: u32) {
        if self.bytes.is_empty() {
            return;
        }
        // The writer holds its error.
        let _ = writer.records(&BlockView {
            lane: 0,
            thread: ThreadId::NONE,
            sequence,
            offset: 0,
            first_record: self.first,
            bytes: &self.bytes,
        });
        self.bytes.clear();
        self.first = self.sequence;
    }
}

/// Appends a note from outside the process. Its string id comes from a range that no process uses.
pub fn note(writer: &Writer, what: NoteKind, text: &str) {
    let id = StringId(0xffff_0000 | crc32fast::hash(text.as_bytes()) & 0xffff);
    let mut payload = crate::names::string_record(id, text);
    let mut note = Note::blank();
    // Processes that share a mapping use the same tick source.
    (note.time, note.text, note.what) = (clock::now(), id, what);
    payload.extend_from_slice(bytemuck::bytes_of(&note));
    let _ = writer.metadata(&payload);
}
