//! The state that readers keep of a packet sequence: its interned data, its defaults, its clocks.

use super::fields::{FieldValue, MessageFields};
use super::findings::{Findings, PacketPosition};
use super::texts::{TextId, Texts};
use crate::perfetto::packets::BOOTTIME;
use crate::perfetto::schema::field::clock_snapshot::{self, clock};
use crate::perfetto::schema::field::{
    event_name, interned_data as table, interned_gpu_render_stage_specification as specification,
    interned_graphics_context,
};
use gputrail_record::number_map::NumberMap;

/// Maximum number of sequences.
const MAX_SEQUENCES: usize = 1 << 16;
/// Maximum size of all interned entries together, including their overhead.
const MAX_BYTES: usize = 256 << 20;
const ENTRY_BYTES: usize = 192;
/// Maximum number of clocks of one sequence, and of those that all sequences share.
const MAX_CLOCKS: usize = 256;

/// Clocks from this number on, and below [`GLOBAL_CLOCKS`], belong to one sequence.
const OWN_CLOCKS: u32 = 64;
const GLOBAL_CLOCKS: u32 = 128;

/// The name of a table of `InternedData`, for messages.
pub(super) fn name_of_table(table: u32) -> String {
    let name = match table {
        table::EVENT_CATEGORIES => "category",
        table::EVENT_NAMES => "event name",
        table::DEBUG_ANNOTATION_NAMES => "annotation name",
        table::SOURCE_LOCATIONS => "source location",
        table::FUNCTION_NAMES => "function name",
        table::FRAMES => "frame",
        table::CALLSTACKS => "callstack",
        table::MAPPINGS => "mapping",
        table::GRAPHICS_CONTEXTS => "graphics context",
        table::GPU_SPECIFICATIONS => "stage or queue",
        table::DEBUG_ANNOTATION_STRING_VALUES => "annotation text",
        table::COMPUTE_KERNELS => "kernel",
        table::COMPUTE_ARG_NAMES => "argument name",
        _ => return format!("entry of table {table}"),
    };
    name.to_owned()
}

/// An entry of an interning table.
#[derive(Debug)]
pub(super) struct InternedEntry {
    /// Its name, if its second field is one, as in all tables of names.
    pub name: TextId,
    /// The process of a context, or the category of a stage; `None` in other tables.
    pub number: Option<u64>,
    /// The whole entry.
    pub bytes: Box<[u8]>,
}

/// The relation between a clock and BOOTTIME.
#[derive(Copy, Clone, Debug)]
struct Clock {
    id: u32,
    /// A time of the clock.
    own: u64,
    /// The time of BOOTTIME at that instant.
    boottime: u64,
    /// Nanoseconds in one unit.
    multiplier: u64,
    incremental: bool,
}

impl Clock {
    /// Converts a time to BOOTTIME. An incremental clock is advanced by it.
    fn convert(&mut self, time: u64) -> u64 {
        let delta = if self.incremental {
            time
        } else {
            time.wrapping_sub(self.own)
        };
        let boottime = self
            .boottime
            .wrapping_add(delta.wrapping_mul(self.multiplier));
        if self.incremental {
            self.boottime = boottime;
        }
        boottime
    }
}

/// A packet sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// Whether its state has been cleared and no packet was dropped since, so that references to the state can be
    /// resolved.
    pub sound: bool,
    /// Whether packets that cannot be read for that reason have been reported.
    pub reported: bool,
    /// Whether it has had packets.
    pub begun: bool,
    /// The clock of packets that name none.
    pub default_clock: Option<u32>,
    /// The track of events that name none.
    pub default_track: u64,
    clocks: Vec<Clock>,
    entries: Entries,
    /// The size of `entries`.
    bytes: usize,
}

/// Tables below this number are used so often that their entries are stored in vectors.
const DENSE: usize = 32;
/// A number that exceeds the length of such a vector by more than this goes to the sparse table.
const DENSE_AHEAD: usize = 4;

/// The entries of all tables of a sequence. Most numbers count from 1.
#[derive(Debug, Default)]
struct Entries {
    dense: Vec<Vec<Option<InternedEntry>>>,
    sparse: NumberMap<(u32, u64), InternedEntry>,
}

impl Entries {
    #[inline]
    fn get(&self, table: u32, number: u64) -> Option<&InternedEntry> {
        let dense = self.dense.get(table as usize);
        match dense.and_then(|dense| dense.get(number as usize)) {
            Some(Some(entry)) => Some(entry),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&(table, number)),
        }
    }

    fn insert(&mut self, table: u32, number: u64, entry: InternedEntry) {
        let index = table as usize;
        if index < DENSE && self.dense.is_empty() {
            self.dense.resize_with(DENSE, Vec::new);
        }
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        match self.dense.get_mut(index) {
            Some(dense) if at < dense.len() + DENSE_AHEAD => {
                if at >= dense.len() {
                    dense.resize_with(at + 1, || None);
                }
                dense[at] = Some(entry);
            }
            _ => drop(self.sparse.insert((table, number), entry)),
        }
    }

    fn clear(&mut self) {
        self.dense.clear();
        self.sparse.clear();
    }
}

impl Sequence {
    /// The entry with `number` in a table.
    #[inline]
    pub fn entry(&self, table: u32, number: u64) -> Option<&InternedEntry> {
        self.entries.get(table, number)
    }
}

/// The sequences of a trace.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    list: Vec<Sequence>,
    places: NumberMap<u32, usize>,
    latest: Option<(u32, usize)>,
    clocks: Vec<Clock>,
    /// The size of all entries.
    bytes: usize,
    /// Whether entries have been left out because there are too many.
    pub full: bool,
}

impl Sequences {
    /// The number of sequences.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The index of the sequence `number`; `None` if there are too many.
    #[inline]
    pub fn index_of(&mut self, number: u32) -> Option<usize> {
        if let Some((latest, index)) = self.latest
            && latest == number
        {
            return Some(index);
        }
        let index = match self.places.get(&number) {
            Some(index) => *index,
            None if self.list.len() >= MAX_SEQUENCES => return None,
            None => {
                self.list.push(Sequence::default());
                self.places.insert(number, self.list.len() - 1);
                self.list.len() - 1
            }
        };
        self.latest = Some((number, index));
        Some(index)
    }

    /// The sequence at `index`.
    #[inline]
    pub fn at(&self, index: usize) -> &Sequence {
        &self.list[index]
    }

    /// The sequence at `index`, mutable.
    #[inline]
    pub fn at_mut(&mut self, index: usize) -> &mut Sequence {
        &mut self.list[index]
    }

    /// Clears the state of a sequence.
    pub fn clear(&mut self, index: usize) {
        let sequence = &mut self.list[index];
        self.bytes -= std::mem::take(&mut sequence.bytes);
        sequence.entries.clear();
        sequence.default_clock = None;
        sequence.default_track = 0;
        sequence.sound = true;
    }

    /// Adds the interned data of a packet.
    pub fn intern(
        &mut self,
        sequence: usize,
        texts: &mut Texts,
        data: &[u8],
        position: PacketPosition,
        findings: &mut Findings,
    ) {
        let mut fields = MessageFields::new(data);
        for field in fields.by_ref() {
            if let FieldValue::Bytes(entry) = field.value {
                self.entry(sequence, texts, field.number, entry, position, findings);
            }
        }
        if let Some(what) = fields.malformed() {
            findings.add(position, || format!("interned data: {what}"));
        }
    }

    fn entry(
        &mut self,
        sequence: usize,
        texts: &mut Texts,
        table: u32,
        entry: &[u8],
        position: PacketPosition,
        findings: &mut Findings,
    ) {
        let mut number = 0;
        let mut name = None;
        let mut own_number = None;
        let mut fields = MessageFields::new(entry);
        for field in fields.by_ref() {
            match (field.number, field.value) {
                (event_name::IID, FieldValue::Number(iid)) => number = iid,
                (interned_graphics_context::PID, FieldValue::Number(pid))
                    if table == table::GRAPHICS_CONTEXTS =>
                {
                    own_number = Some(pid)
                }
                (specification::CATEGORY, FieldValue::Number(category))
                    if table == table::GPU_SPECIFICATIONS =>
                {
                    own_number = Some(category);
                }
                (event_name::NAME, FieldValue::Bytes(bytes)) => name = Some(bytes),
                _ => {}
            }
        }
        if let Some(what) = fields.malformed() {
            findings.add(position, || {
                format!("interned {}: {what}", name_of_table(table))
            });
            return;
        }
        if number == 0 {
            findings.add(position, || {
                format!("an interned {} without a number", name_of_table(table))
            });
            return;
        }
        let state = &mut self.list[sequence];
        if let Some(known) = state.entries.get(table, number) {
            // An entry may be sent again, but not with other content.
            if *known.bytes != *entry {
                findings.add(position, || {
                    let name = name_of_table(table);
                    format!("{name} {number} is interned again as something else")
                });
            }
            return;
        }
        let bytes = entry.len() + ENTRY_BYTES;
        if self.bytes + bytes > MAX_BYTES {
            if !self.full {
                findings.add(position, || {
                    format!("more than {MAX_BYTES} bytes of interned data: the rest is not held")
                });
            }
            self.full = true;
            return;
        }
        let name = match name.map(std::str::from_utf8) {
            None => TextId::EMPTY,
            Some(Ok(name)) => texts.add(name),
            // Only names must be text.
            Some(Err(_)) if matches!(table, table::FRAMES | table::CALLSTACKS) => TextId::EMPTY,
            Some(Err(_)) => {
                if is_name(table) {
                    findings.add(position, || {
                        format!("{} {number} is not UTF-8", name_of_table(table))
                    });
                }
                TextId::EMPTY
            }
        };
        self.bytes += bytes;
        state.bytes += bytes;
        let entry = InternedEntry {
            name,
            number: own_number,
            bytes: entry.into(),
        };
        state.entries.insert(table, number, entry);
    }

    /// Adds clocks that were read together.
    pub fn snapshot(&mut self, sequence: Option<usize>, snapshot: &[u8]) {
        let mut read = Vec::new();
        for field in MessageFields::new(snapshot) {
            if let (clock_snapshot::CLOCKS, FieldValue::Bytes(clock)) = (field.number, field.value)
                && read.len() < MAX_CLOCKS
            {
                read.push(clock_of(clock));
            }
        }
        // Without BOOTTIME, another known clock of the snapshot gives the time.
        let boottime = read
            .iter()
            .find(|clock| clock.id == BOOTTIME)
            .map(|clock| clock.own)
            .or_else(|| {
                read.iter().find_map(|clock| {
                    let mut known = *self.clocks.iter().find(|known| known.id == clock.id)?;
                    Some(known.convert(clock.own))
                })
            });
        let Some(boottime) = boottime else {
            return;
        };
        for mut clock in read {
            let own = (OWN_CLOCKS..GLOBAL_CLOCKS).contains(&clock.id);
            let clocks = match (own, sequence) {
                (false, _) => &mut self.clocks,
                (true, Some(sequence)) => &mut self.list[sequence].clocks,
                (true, None) => continue,
            };
            clock.boottime = boottime;
            match clocks.iter().position(|known| known.id == clock.id) {
                Some(index) => clocks[index] = clock,
                None if clocks.len() < MAX_CLOCKS => clocks.push(clock),
                None => {}
            }
        }
    }

    /// A packet's time in BOOTTIME ns; `None` if no snapshot contains its clock.
    #[inline]
    pub fn time(&mut self, sequence: Option<usize>, clock: Option<u32>, time: u64) -> Option<u64> {
        let sequence = sequence.map(|index| &mut self.list[index]);
        let default = sequence
            .as_ref()
            .and_then(|sequence| sequence.default_clock);
        let clock = clock.or(default).unwrap_or(BOOTTIME);
        if clock == BOOTTIME {
            return Some(time);
        }
        let own = (OWN_CLOCKS..GLOBAL_CLOCKS).contains(&clock);
        let clocks = match (own, sequence) {
            (true, Some(sequence)) => &mut sequence.clocks,
            _ => &mut self.clocks,
        };
        match clocks.iter_mut().find(|known| known.id == clock) {
            Some(known) => Some(known.convert(time)),
            // A trace with a single clock and no snapshots keeps the times of that clock.
            None if clock < BOOTTIME => Some(time),
            None => None,
        }
    }
}

/// Whether the second field of a table's entries is always a text.
fn is_name(number: u32) -> bool {
    matches!(
        number,
        table::EVENT_CATEGORIES
            | table::EVENT_NAMES
            | table::DEBUG_ANNOTATION_NAMES
            | table::COMPUTE_ARG_NAMES
    ) || matches!(number, table::GPU_SPECIFICATIONS | table::COMPUTE_KERNELS)
}

fn clock_of(bytes: &[u8]) -> Clock {
    let mut clock = Clock {
        id: 0,
        own: 0,
        boottime: 0,
        multiplier: 1,
        incremental: false,
    };
    for field in MessageFields::new(bytes) {
        let Some(number) = field.number() else {
            continue;
        };
        match field.number {
            clock::CLOCK_ID => clock.id = number as u32,
            clock::TIMESTAMP => clock.own = number,
            clock::IS_INCREMENTAL => clock.incremental = number != 0,
            clock::UNIT_MULTIPLIER_NS => clock.multiplier = number.max(1),
            _ => {}
        }
    }
    clock
}
