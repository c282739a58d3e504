//! Lanes while their slices are passed on.

use crate::import::chrome::record::{EventRecord, RecordHead};
use gputrail_trace::model::{EventId, FlowPoint, TrackIndex};

/// A lane: slices in one or more rows, so that those of one row nest.
#[derive(Debug, Default)]
pub(super) struct SliceLane {
    pub rows: Vec<SliceRow>,
    /// The slice that comes next. It waits, since whether others are inside it is known from the event behind it.
    pub held: Option<DelayedSlice>,
    /// A buffer for a slice that waits.
    pub spare: HeldTexts,
}

impl SliceLane {
    /// Adds a row, which stands on `track`.
    pub fn add_row(&mut self, track: TrackIndex) {
        self.rows.push(SliceRow {
            track,
            open: Vec::new(),
        });
    }
}

/// A row of slices.
#[derive(Debug)]
pub(super) struct SliceRow {
    pub track: TrackIndex,
    /// The slices that have begun, the innermost one last.
    pub open: Vec<BegunSlice>,
}

/// A slice that has begun.
#[derive(Debug)]
pub(super) struct BegunSlice {
    /// When it ends; `i64::MAX` if it does not.
    pub end: i64,
    /// Its id, or 0.
    pub id: u64,
    /// Flows that pass through its end.
    pub flows: Vec<FlowPoint>,
}

/// The texts of the record of a slice that waits.
#[derive(Debug, Default)]
pub(super) struct HeldTexts {
    own_name: String,
    args: Vec<u8>,
}

impl HeldTexts {
    /// Takes the texts of a record.
    pub fn hold(&mut self, record: &EventRecord<'_>) {
        self.own_name.clear();
        self.own_name.push_str(record.own_name);
        self.args.clear();
        self.args.extend_from_slice(record.args);
    }

    /// Adds arguments.
    pub fn add(&mut self, args: &[u8]) {
        self.args.extend_from_slice(args);
    }

    /// The record with these texts.
    pub fn record(&self, head: RecordHead) -> EventRecord<'_> {
        EventRecord {
            head,
            own_name: &self.own_name,
            args: &self.args,
        }
    }
}

/// A slice that waits.
#[derive(Debug)]
pub(super) struct DelayedSlice {
    /// The row that it takes.
    pub row: usize,
    pub start: i64,
    /// `i64::MAX` if it does not end.
    pub end: i64,
    /// Its record.
    pub head: RecordHead,
    pub texts: HeldTexts,
    /// Flows that pass through its begin, and through its end.
    pub flows: Vec<FlowPoint>,
    pub end_flows: Vec<FlowPoint>,
    /// The work that it submitted, if it is a call.
    pub submitted: Vec<EventId>,
    /// The work that it waited for.
    pub waited: Vec<EventId>,
    /// The id of the tie to the work that it submitted, if it is not that of the call.
    pub correlation: Option<u64>,
}
