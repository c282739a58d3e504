//! Several runs of a program as one: the capture of the first run with the values of counters of the others.
//!
//! Counters that cannot be counted together are counted in one run of the program after the other. A dispatch of a run gets
//! its values into the first capture if it has the same kernel name and external id, and comes in the same order of its queue.

mod matching;

use super::format::{ChunkHeader, ChunkKind, MAX_PAYLOAD};
use super::names::string_record;
use super::reader::{ReadError, Reader};
use super::recover::note;
use super::writer::Writer;
use gputrail_buffer::BlockView;
use gputrail_record::{
    CounterValue, KernelDispatch, NoteKind, QueueId, RecordRef, Records, StringId, ThreadId, WorkId,
};
use matching::ComparedDispatch;
pub use matching::Unmatched;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

/// The lane of the values that are added; no process has so many.
const LANE: u32 = u32::MAX - 1;
/// String ids from here on are those of notes.
const NOTES: u32 = 0xffff_0000;

/// The dispatches of a run, by queue in the order of their launch, and the values of its counters.
#[derive(Default)]
struct RunRecords {
    queues: BTreeMap<QueueId, Vec<ComparedDispatch>>,
    dispatches: HashMap<WorkId, KernelDispatch>,
    values: HashMap<WorkId, Vec<CounterValue>>,
}

/// The numbers of kernel names.
type KernelNames = HashMap<String, usize>;

impl RunRecords {
    fn read(reader: &Reader, names: &mut KernelNames) -> RunRecords {
        let mut run = RunRecords::default();
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            chunk
                .records()
                .for_each(|record| run.take(reader, names, &record));
        }
        for launches in run.queues.values_mut() {
            launches.sort_by_key(|launch| launch.order);
        }
        run
    }

    fn take(&mut self, reader: &Reader, names: &mut KernelNames, record: &RecordRef<'_>) {
        if let Some(value) = record.read::<CounterValue>() {
            if value.work.is_some() {
                self.values.entry(value.work).or_default().push(value);
            }
        } else if let Some(dispatch) = record.read::<KernelDispatch>() {
            let metadata = reader.metadata();
            let symbol = metadata.kernels.get(&dispatch.kernel);
            let name = symbol.map_or("", |symbol| metadata.string(symbol.name));
            let next = names.len();
            let name = match names.get(name) {
                Some(known) => *known,
                None => *names.entry(name.to_owned()).or_insert(next),
            };
            let launches = self.queues.entry(dispatch.work.queue).or_default();
            launches.push(ComparedDispatch::of(&dispatch, name));
            self.dispatches.insert(dispatch.work.id, dispatch);
        }
    }
}

/// The capture of the first run of a program, to which values of other runs are added.
pub struct Joining {
    base: Reader,
    run: RunRecords,
    kernels: KernelNames,
    strings: HashMap<String, StringId>,
    next_string: u32,
    new_strings: Vec<u8>,
    notes: Vec<String>,
    /// The values that are added, by dispatch of the first run.
    added: HashMap<WorkId, Vec<CounterValue>>,
}

impl Joining {
    /// Reads the capture of the first run.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read.
    pub fn new(base: &Path) -> Result<Joining, ReadError> {
        let base = Reader::open(base)?;
        let mut kernels = HashMap::new();
        let run = RunRecords::read(&base, &mut kernels);
        let last = base.metadata().last_string_below(StringId(NOTES));
        Ok(Joining {
            next_string: last.0 + 1,
            base,
            run,
            kernels,
            strings: HashMap::new(),
            new_strings: Vec::new(),
            notes: Vec::new(),
            added: HashMap::new(),
        })
    }

    /// The capture of the first run.
    pub fn base(&self) -> &Reader {
        &self.base
    }

    /// Adds the values of another run. Returns the number of dispatches that match, and those that do not: their values
    /// are left out.
    pub fn add(&mut self, other: &Reader) -> (u64, Unmatched) {
        let run = RunRecords::read(other, &mut self.kernels);
        let (mut matched, mut unmatched) = (0, Unmatched::default());
        let none = Vec::new();
        let mut queues: Vec<QueueId> = self.run.queues.keys().copied().collect();
        queues.extend(run.queues.keys());
        queues.sort_unstable();
        queues.dedup();
        let mut pairs = Vec::new();
        for queue in queues {
            let first = self.run.queues.get(&queue).unwrap_or(&none);
            let other = run.queues.get(&queue).unwrap_or(&none);
            let (of_queue, not) = matching::pairs(first, other);
            matched += of_queue.len() as u64;
            unmatched += not;
            pairs.extend(of_queue);
        }
        for (first, of_other) in pairs {
            let Some(dispatch) = self.run.dispatches.get(&first).copied() else {
                continue;
            };
            for mut value in run.values.get(&of_other).into_iter().flatten().copied() {
                value.work = first;
                value.correlation = dispatch.work.correlation;
                value.queue = dispatch.work.queue;
                value.agent = dispatch.work.agent;
                value.counter = self.string(other.metadata().string(value.counter));
                value.block = self.string(other.metadata().string(value.block));
                self.added.entry(first).or_default().push(value);
            }
        }
        (matched, unmatched)
    }

    /// Adds a note about the recording.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    fn string(&mut self, text: &str) -> StringId {
        if text.is_empty() {
            return StringId::NONE;
        }
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let id = self.base.metadata().find_string(text).unwrap_or_else(|| {
            let id = StringId(self.next_string);
            self.next_string += 1;
            self.new_strings.extend(string_record(id, text));
            id
        });
        self.strings.insert(text.to_owned(), id);
        id
    }

    /// Writes the capture of the first run with the values that have been added to a new file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(mut self, to: &Path) -> io::Result<()> {
        let writer = Writer::create(to, self.base.header())?;
        let failed = |error: super::WriteError| io::Error::other(error.to_string());
        for strings in pieces(&self.new_strings) {
            writer.metadata(strings).map_err(failed)?;
        }
        for text in &self.notes {
            note(&writer, NoteKind::OTHER, text);
        }
        let mut lane = AddedLane::default();
        let (added, run) = (&mut self.added, &self.run);
        self.base.each_chunk(|header, payload| match header.kind {
            ChunkKind::RECORDS => {
                let mut patched = payload.to_vec();
                let values = values_after(&mut patched, added, run);
                writer.records(&view(header, &patched)).map_err(failed)?;
                lane.write(&writer, header.thread, &values).map_err(failed)
            }
            ChunkKind::METADATA => writer.metadata(payload).map_err(failed),
            ChunkKind::END => writer.end().map_err(failed),
            _ => Ok(()),
        })?;
        writer
            .error()
            .map_or(Ok(()), |(error, _)| Err(failed(error)))
    }
}

fn view<'a>(header: &ChunkHeader, bytes: &'a [u8]) -> BlockView<'a> {
    BlockView {
        lane: header.lane,
        thread: header.thread,
        sequence: header.sequence,
        offset: header.offset,
        first_record: header.first_record,
        bytes,
    }
}

/// The lane of the values that are added.
#[derive(Default)]
struct AddedLane {
    sequence: u32,
    record: u32,
}

impl AddedLane {
    fn write(
        &mut self,
        writer: &Writer,
        thread: ThreadId,
        values: &[CounterValue],
    ) -> Result<(), super::WriteError> {
        for values in values.chunks(MAX_PAYLOAD / size_of::<CounterValue>()) {
            let first_record = self.record;
            let mut bytes = Vec::with_capacity(size_of_val(values));
            for value in values {
                let mut value = *value;
                value.header.sequence = self.record;
                self.record = self.record.wrapping_add(1);
                bytes.extend_from_slice(bytemuck::bytes_of(&value));
            }
            let (lane, offset) = (LANE, 0);
            let sequence = self.sequence;
            self.sequence = self.sequence.wrapping_add(1);
            writer.records(&BlockView {
                lane,
                thread,
                sequence,
                offset,
                first_record,
                bytes: &bytes,
            })?;
        }
        Ok(())
    }
}

/// The parts of metadata that fit chunks.
fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let mut length = 0;
        for record in Records::new(bytes) {
            if length + record.bytes().len() > MAX_PAYLOAD {
                break;
            }
            length += record.bytes().len();
        }
        let (piece, rest) = bytes.split_at(length);
        bytes = rest;
        (length > 0).then_some(piece)
    })
}

/// The values that follow a chunk: those of dispatches whose own values end in it, and of dispatches in it that have none of
/// their own. Values in the chunk are told that others follow.
fn values_after(
    chunk: &mut [u8],
    added: &mut HashMap<WorkId, Vec<CounterValue>>,
    run: &RunRecords,
) -> Vec<CounterValue> {
    const BYTES: usize = size_of::<CounterValue>();
    let (mut places, mut ready, mut offset) = (Vec::new(), Vec::new(), 0);
    for record in Records::new(chunk) {
        if let Some(value) = record.read::<CounterValue>() {
            if let Some(more) = added.get(&value.work) {
                places.push((offset, more.len()));
                if value.remaining == 0 {
                    ready.push(value.work);
                }
            }
        } else if let Some(dispatch) = record.read::<KernelDispatch>()
            && !run.values.contains_key(&dispatch.work.id)
        {
            ready.push(dispatch.work.id);
        }
        offset += record.bytes().len();
    }
    for (place, more) in places {
        let bytes = &mut chunk[place..place + BYTES];
        let mut value: CounterValue = bytemuck::pod_read_unaligned(bytes);
        value.remaining = value
            .remaining
            .saturating_add(more.min(u16::MAX.into()) as u16);
        bytes.copy_from_slice(bytemuck::bytes_of(&value));
    }
    let mut values = Vec::new();
    for work in ready {
        let more = added.remove(&work).unwrap_or_default();
        let count = more.len();
        for (place, mut value) in more.into_iter().enumerate() {
            value.remaining = (count - 1 - place).min(u16::MAX.into()) as u16;
            values.push(value);
        }
    }
    values
}
