//! Rows that belong together, found by sorting, in memory that does not grow with their number.
//!
//! Rows go through three sorters. The first has those of dispatches: work, values of counters, and samples. Work that comes out
//! of it has its counters and the outcomes of its samples. The second has calls and work by their correlation ids: the call that
//! submitted work gets the ids of its work, and work gets the start and the thread of its call. The third puts all events in the
//! order of their times.

use std::io;

use super::pack::Pack;
use super::rows::order;
use super::{
    ArgumentRow, DispatchCounterRow, HostRow, LaneHandle, MemoryRow, ProcessHandle, QueueHandle,
    RowCounts, SampleRow, StageHandle, TextHandle, ValueRow, WorkRow,
};
use crate::import::Allowance;
use gputrail_code::aggregate::WaveOutcome;
use gputrail_trace::sorter::Sorter;

/// Shares of the memory for sorting by dispatch, by correlation id, by time, and of samples, of [`WHOLE`].
const SHARES: [usize; 4] = [3, 5, 6, 2];
const WHOLE: usize = 16;
/// Memory of each sorter in tests, which use temporary files for a few rows.
const TEST_BUDGET: usize = 1 << 12;
/// Work with one dispatch id that is compared with the samples of that id.
const MAX_WORK: usize = 64;
/// Nanoseconds by which a sample may lie outside its dispatch: clocks of devices are converted.
const CLOCK_ERROR: u64 = 1_000_000;
/// Bits of an event id below the number of its process.
const EVENT_BITS: u32 = 40;

/// A row of the host with its arguments and the work that it submitted.
#[derive(Debug)]
pub(super) struct HostEntry {
    pub row: HostRow,
    pub arguments: Vec<ArgumentRow>,
    pub submitted: Vec<u64>,
}

/// Work with what belongs to it.
#[derive(Debug)]
pub(super) struct WorkEntry {
    pub row: WorkRow,
    pub arguments: Vec<ArgumentRow>,
    /// Its event id.
    pub event: u64,
    /// The start and the lane of the call that submitted it.
    pub submitter: Option<(u64, LaneHandle)>,
    pub counters: Vec<(TextHandle, f64)>,
    pub outcomes: Vec<(WaveOutcome, u64)>,
}

/// The queue and the stage of the dispatch of a sample.
pub(super) type Ran = (QueueHandle, StageHandle);

/// An entry of a sorter.
#[derive(Debug)]
pub(super) enum SorterEntry {
    Host(HostEntry),
    Work(WorkEntry),
    Value(ValueRow),
    Memory(MemoryRow),
    Counter(TextHandle, f64),
    Sample(SampleRow, Option<Ran>),
}

/// The place of entries among those of one dispatch.
#[derive(Copy, Clone)]
enum DispatchOrder {
    Work = 0,
    /// Work that a row of a counter describes, for dispatches that no other row describes.
    Counted = 1,
    Counter = 2,
    Sample = 3,
}

/// The rows of a recording.
#[derive(Debug, Default)]
pub(super) struct RecordingRows {
    by_dispatch: Sorter,
    by_correlation: Sorter,
    by_time: Sorter,
    /// Samples by process and time.
    samples: Sorter,
    /// The number of the latest event id.
    events: u64,
    /// The earliest time.
    first: Option<u64>,
    packed: Vec<u8>,
    /// The first error of a temporary file.
    error: Option<io::Error>,
}

impl RecordingRows {
    /// Rows that are sorted in the memory of `allowance`.
    pub fn new(allowance: Allowance) -> RecordingRows {
        let sorter = |share| {
            if cfg!(test) {
                Sorter::with_threads(TEST_BUDGET, allowance.has_threads)
            } else {
                allowance.sorter(share, WHOLE)
            }
        };
        let [by_dispatch, by_correlation, by_time, samples] = SHARES.map(sorter);
        RecordingRows {
            by_dispatch,
            by_correlation,
            by_time,
            samples,
            events: 0,
            first: None,
            packed: Vec::new(),
            error: None,
        }
    }
}

/// Adds an entry to a sorter.
fn put(
    sorter: &mut Sorter,
    packed: &mut Vec<u8>,
    key: (i64, u64),
    entry: &SorterEntry,
) -> io::Result<()> {
    packed.clear();
    entry.pack(packed);
    sorter.add(key, &[packed])
}

fn signed(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

impl RecordingRows {
    fn keep(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    fn saw(&mut self, time: u64) {
        if time != 0 {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
        }
    }

    /// The earliest time of a row.
    pub fn first_time(&self) -> u64 {
        self.first.unwrap_or(1)
    }

    /// Adds a row of the host; `process` is that of a call.
    pub fn add_host(
        &mut self,
        row: HostRow,
        arguments: &[ArgumentRow],
        process: Option<ProcessHandle>,
    ) {
        self.saw(row.start);
        let entry = HostEntry {
            row,
            arguments: arguments.to_vec(),
            submitted: Vec::new(),
        };
        let result = match process.zip(correlation_key(row.correlation)) {
            Some((process, key)) => {
                let key = (process.0.into(), key);
                put(
                    &mut self.by_correlation,
                    &mut self.packed,
                    key,
                    &SorterEntry::Host(entry),
                )
            }
            None => self.in_time(entry),
        };
        self.keep(result);
    }

    fn in_time(&mut self, entry: HostEntry) -> io::Result<()> {
        // An outer event comes before those inside it.
        let key = (signed(entry.row.start), !entry.row.end);
        put(
            &mut self.by_time,
            &mut self.packed,
            key,
            &SorterEntry::Host(entry),
        )
    }

    /// Adds work. `counted`: a row of a counter describes it.
    pub fn add_work(&mut self, row: WorkRow, arguments: &[ArgumentRow], counted: bool) {
        self.saw(row.start);
        let entry = WorkEntry {
            row,
            arguments: arguments.to_vec(),
            event: 0,
            submitter: None,
            counters: Vec::new(),
            outcomes: Vec::new(),
        };
        let class = if counted {
            DispatchOrder::Counted
        } else {
            DispatchOrder::Work
        };
        let result = match dispatch_key(row.process, row.dispatch, class) {
            Some(key) => put(
                &mut self.by_dispatch,
                &mut self.packed,
                key,
                &SorterEntry::Work(entry),
            ),
            None => self.submitted(entry),
        };
        self.keep(result);
    }

    /// Work that has its counters and samples.
    fn submitted(&mut self, entry: WorkEntry) -> io::Result<()> {
        let key = correlation_key(entry.row.correlation).filter(|_| entry.row.start != 0);
        match key {
            Some(key) => {
                let key = (entry.row.process.0.into(), key | 1);
                put(
                    &mut self.by_correlation,
                    &mut self.packed,
                    key,
                    &SorterEntry::Work(entry),
                )
            }
            None => self.work_in_time(entry),
        }
    }

    fn work_in_time(&mut self, mut entry: WorkEntry) -> io::Result<()> {
        if entry.event == 0 {
            entry.event = self.event(&entry.row);
        }
        // Before host events of the same time.
        let key = (signed(entry.row.start), entry.row.end.min(1 << 62));
        put(
            &mut self.by_time,
            &mut self.packed,
            key,
            &SorterEntry::Work(entry),
        )
    }

    fn event(&mut self, row: &WorkRow) -> u64 {
        self.events += 1;
        u64::from(row.process.0) << EVENT_BITS | self.events
    }

    pub fn add_value(&mut self, row: ValueRow) {
        self.saw(row.time);
        let key = (signed(row.time), u64::MAX);
        let result = put(
            &mut self.by_time,
            &mut self.packed,
            key,
            &SorterEntry::Value(row),
        );
        self.keep(result);
    }

    pub fn add_memory(&mut self, row: MemoryRow) {
        let key = (signed(row.time), u64::MAX);
        let result = put(
            &mut self.by_time,
            &mut self.packed,
            key,
            &SorterEntry::Memory(row),
        );
        self.keep(result);
    }

    /// Adds a value of a counter. Returns `false` if it is of no dispatch.
    pub fn add_dispatch_counter(&mut self, row: DispatchCounterRow) -> bool {
        let key = dispatch_key(row.process, row.dispatch, DispatchOrder::Counter);
        let entry = SorterEntry::Counter(row.counter, row.value);
        if let Some(key) = key {
            let result = put(&mut self.by_dispatch, &mut self.packed, key, &entry);
            self.keep(result);
        }
        key.is_some()
    }

    pub fn add_sample(&mut self, row: SampleRow) {
        self.saw(row.time);
        let result = match dispatch_key(row.process, row.dispatch, DispatchOrder::Sample) {
            Some(key) => {
                let entry = SorterEntry::Sample(row, None);
                put(&mut self.by_dispatch, &mut self.packed, key, &entry)
            }
            None => self.sampled(row, None),
        };
        self.keep(result);
    }

    fn sampled(&mut self, row: SampleRow, ran: Option<Ran>) -> io::Result<()> {
        let key = (row.process.0.into(), row.time);
        put(
            &mut self.samples,
            &mut self.packed,
            key,
            &SorterEntry::Sample(row, ran),
        )
    }

    /// Joins the rows. Passes all events to `take` in the order of their times, and returns the samples by process and time.
    pub fn join(
        mut self,
        counts: &mut RowCounts,
        mut take: impl FnMut(SorterEntry, &mut RowCounts) -> io::Result<()>,
    ) -> io::Result<Sorter> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut group = DispatchGroup::default();
        std::mem::take(&mut self.by_dispatch).drain(|(process, key), mut bytes| {
            let dispatch = (process, key >> 2);
            if group.dispatch != dispatch {
                let ended = std::mem::take(&mut group);
                group.dispatch = dispatch;
                ended
                    .work
                    .into_iter()
                    .try_for_each(|work| self.submitted(work))?;
            }
            let counted = key & 3 == DispatchOrder::Counted as u64;
            if counted && !group.work.is_empty() {
                return Ok(());
            }
            group.add(&mut self, SorterEntry::unpack(&mut bytes), counts)
        })?;
        group
            .work
            .into_iter()
            .try_for_each(|work| self.submitted(work))?;
        let mut group = CallGroup::default();
        std::mem::take(&mut self.by_correlation).drain(|(process, key), mut bytes| {
            let correlation = (process, key >> 1);
            if group.correlation != correlation {
                let ended = std::mem::take(&mut group);
                group.correlation = correlation;
                ended.end(&mut self, counts)?;
            }
            group.add(&mut self, SorterEntry::unpack(&mut bytes), counts)
        })?;
        group.end(&mut self, counts)?;
        self.by_time
            .drain(|_, mut bytes| take(SorterEntry::unpack(&mut bytes), counts))?;
        Ok(self.samples)
    }
}

/// The part of a key that is of a correlation id; calls come before work. None for no id.
fn correlation_key(correlation: u64) -> Option<u64> {
    (1..1 << 63)
        .contains(&correlation)
        .then_some(correlation << 1)
}

/// The key of an entry of a dispatch; none if it is of no dispatch.
fn dispatch_key(process: ProcessHandle, dispatch: u64, class: DispatchOrder) -> Option<(i64, u64)> {
    let is_known = (1..1 << 62).contains(&dispatch);
    is_known.then_some((process.0.into(), dispatch << 2 | class as u64))
}

/// The entries of one dispatch: work first, then counters, then samples.
#[derive(Default)]
struct DispatchGroup {
    dispatch: (i64, u64),
    work: Vec<WorkEntry>,
}

impl DispatchGroup {
    fn add(
        &mut self,
        rows: &mut RecordingRows,
        entry: SorterEntry,
        counts: &mut RowCounts,
    ) -> io::Result<()> {
        match entry {
            SorterEntry::Work(work) if self.work.len() >= MAX_WORK => return rows.submitted(work),
            SorterEntry::Work(work) => self.work.push(work),
            SorterEntry::Counter(name, value) => match self.work.first_mut() {
                // Only one piece of work has the number of a dispatch.
                Some(work) => work.counters.push((name, value)),
                None => counts.without_dispatch += 1,
            },
            SorterEntry::Sample(row, _) => {
                // Files of several runs may lie in one folder: numbers of dispatches are those of a run.
                let is_known = !self.work.is_empty();
                let mut own = self.work.iter_mut();
                let ran = own.find(|work| {
                    let (start, end) = (work.row.start, work.row.end);
                    let from = start.saturating_sub(CLOCK_ERROR);
                    start == 0 || (from..=end.saturating_add(CLOCK_ERROR)).contains(&row.time)
                });
                counts.of_other_runs += u64::from(ran.is_none() && is_known);
                let ran = ran.map(|work| {
                    let outcomes = &mut work.outcomes;
                    match outcomes.iter_mut().find(|(known, _)| *known == row.outcome) {
                        Some((_, count)) => *count += 1,
                        None => outcomes.push((row.outcome, 1)),
                    }
                    (work.row.queue, work.row.stage)
                });
                rows.sampled(row, ran)?;
            }
            SorterEntry::Host(_) | SorterEntry::Value(_) | SorterEntry::Memory(_) => {}
        }
        Ok(())
    }
}

/// The calls and the work with one correlation id: calls first.
#[derive(Default)]
struct CallGroup {
    correlation: (i64, u64),
    /// The outermost call.
    call: Option<HostEntry>,
}

impl CallGroup {
    fn add(
        &mut self,
        rows: &mut RecordingRows,
        entry: SorterEntry,
        counts: &mut RowCounts,
    ) -> io::Result<()> {
        match entry {
            SorterEntry::Host(call) => {
                let order = |call: &HostEntry| order(call.row.start, call.row.end);
                let inner = match &self.call {
                    Some(outer) if order(outer) <= order(&call) => Some(call),
                    _ => self.call.replace(call),
                };
                inner.map_or(Ok(()), |inner| rows.in_time(inner))
            }
            SorterEntry::Work(mut work) => {
                work.event = rows.event(&work.row);
                if let Some(call) = &mut self.call {
                    work.submitter = Some((call.row.start, call.row.lane));
                    call.submitted.push(work.event);
                    counts.early += u64::from(work.row.start < call.row.start);
                }
                rows.work_in_time(work)
            }
            _ => Ok(()),
        }
    }

    fn end(self, rows: &mut RecordingRows, counts: &mut RowCounts) -> io::Result<()> {
        let Some(call) = self.call else {
            return Ok(());
        };
        counts.ties += call.submitted.len() as u64;
        rows.in_time(call)
    }
}
