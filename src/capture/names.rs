//! The names store: assigns ids to the objects that records refer to, and stores their descriptions.
//!
//! Every method writes its metadata record to the captures before it returns the id, so a capture always contains the
//! names that its records refer to, however the process ends. This takes a lock and a system call: names are for
//! objects that are created once, not for the hot path.
//!
//! The store keeps up to [`MAX_KEPT`] bytes of names for captures that begin later and for queries of tools.

use crate::Writer;
use crate::code;
use crate::stacks::{MAX_BYTES, NewStack, Stacks};
use gputrail_buffer::QueuePlace;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_record::number_map::NumberMap;
use gputrail_record::*;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The most bytes of names kept in memory. Later names reach only the captures that exist at the time.
pub const MAX_KEPT: usize = 4 << 20;
/// The most bytes of code objects kept in memory.
const MAX_KEPT_CODE: usize = 16 << 20;

/// The most distinct strings, and the most bytes of them; all further ones become [`TOO_MANY`].
#[derive(Copy, Clone)]
struct StringLimits {
    strings: usize,
    bytes: usize,
}

impl Default for StringLimits {
    fn default() -> Self {
        StringLimits {
            strings: 1 << 20,
            bytes: 64 << 20,
        }
    }
}

/// The most readings kept of one agent's clock: the latest.
const MAX_PAIRS: usize = 256;
const TOO_MANY: &str = "(too many different strings)";

/// The names store of one process. Clones share one store.
#[derive(Clone, Default)]
pub struct Names {
    state: Arc<QuietMutex<NamesState>>,
}

#[derive(Default)]
struct NamesState {
    writers: Vec<Writer>,
    /// Records of names, in order.
    kept: Vec<u8>,
    /// Bytes of code objects, in order.
    code: Vec<u8>,
    /// How often bytes of a code object were replaced.
    replaced_code: u64,
    /// The offset in `kept` of the latest record of a kind and id.
    offsets: NumberMap<(Kind, u32), usize>,
    strings: HashMap<Box<str>, StringId>,
    stacks: Stacks,
    host_modules: u32,
    /// Bytes of the texts in `strings`.
    string_bytes: usize,
    limits: StringLimits,
    last: LastIds,
    pairs: HashMap<AgentId, Pairs>,
    /// Records to be written. Empty between calls, except during [`Names::batch`].
    pending: Vec<u8>,
    /// The thread that runs [`Names::batch`]. Other threads write their names and the pending ones at once.
    batching: Option<std::thread::ThreadId>,
}

/// Readings of one agent's clock.
#[derive(Default)]
struct Pairs {
    latest: VecDeque<ClockPair>,
    /// The number of readings so far.
    read: u64,
}

#[derive(Default)]
struct LastIds {
    agent: u32,
    context: u32,
    queue: u32,
    stream: u32,
    event: u32,
    module: u32,
    code_object: u32,
    kernel: u32,
}

/// Methods that append a record to the names store. An object without an id gets the next one; a known id replaces the
/// earlier description.
macro_rules! named {
    ($($(#[$meta:meta])* $method:ident($type:ty) -> $id:ident, $last:ident;)*) => {$(
        $(#[$meta])*
        pub fn $method(&self, mut named: $type) -> $id {
            let mut state = self.state.lock();
            if !named.id.is_some() {
                state.last.$last += 1;
                named.id = $id(state.last.$last);
            } else {
                state.last.$last = state.last.$last.max(named.id.0);
            }
            state.name(named.id.0, &named);
            state.write();
            named.id
        }
    )*};
}

impl Names {
    /// An empty store.
    pub fn new() -> Names {
        Names::default()
    }

    /// An empty store that writes to `writer`.
    pub fn writing_to(writer: Writer) -> Names {
        let names = Names::new();
        names.add_writer(writer);
        names
    }

    /// Adds a capture, which receives all kept names now and all new ones from now on.
    pub fn add_writer(&self, writer: Writer) {
        let mut state = self.state.lock();
        state.write_kept(&writer);
        state.writers.push(writer);
    }

    /// Writes all kept names and readings of agents' clocks to `writer`.
    pub fn write_all_to(&self, writer: &Writer) {
        let state = self.state.lock();
        state.write_kept(writer);
    }

    /// The description of `id`, if it is kept.
    pub fn get<R: Record>(&self, id: u32) -> Option<R> {
        let state = self.state.lock();
        let offset = *state.offsets.get(&(R::KIND, id))?;
        Records::new(&state.kept[offset..]).next()?.read()
    }

    /// The first of the ids in `place` that has been given to nothing, in words.
    pub fn unknown_place(&self, place: QueuePlace) -> Option<String> {
        let state = self.state.lock();
        let ids = [
            ("context", place.context.0, state.last.context),
            ("queue", place.queue.0, state.last.queue),
            ("stream", place.stream.0, state.last.stream),
        ];
        let (what, id, _) = ids.into_iter().find(|(_, id, last)| id > last)?;
        Some(format!("{what} {id}"))
    }

    /// The text of `id`, if it is kept.
    pub fn text(&self, id: StringId) -> Option<String> {
        let state = self.state.lock();
        let offset = *state.offsets.get(&(Kind::STRING, id.0))?;
        let (_, text) = Records::new(&state.kept[offset..]).next()?.string()?;
        Some(text.into_owned())
    }

    /// All kept descriptions of one kind, in order; the latest one of each id.
    pub fn all<R: Record>(&self) -> Vec<R> {
        let state = self.state.lock();
        let mut offsets: Vec<usize> = state
            .offsets
            .iter()
            .filter(|((kind, _), _)| *kind == R::KIND)
            .map(|(_, offset)| *offset)
            .collect();
        offsets.sort_unstable();
        let read = |offset| Records::new(&state.kept[offset..]).next()?.read();
        offsets.into_iter().filter_map(read).collect()
    }

    /// The id of `text`, the same for equal texts. Texts longer than [`MAX_STRING`] are cut.
    pub fn string(&self, text: &str) -> StringId {
        let mut state = self.state.lock();
        let id = state.string(text);
        state.write();
        id
    }

    named! {
        /// Names an agent.
        agent(Agent) -> AgentId, agent;
        /// Names a context.
        context(Context) -> ContextId, context;
        /// Names a queue.
        queue(Queue) -> QueueId, queue;
        /// Names a stream.
        stream(Stream) -> StreamId, stream;
        /// Names an event object.
        event(Event) -> EventId, event;
        /// Names a module.
        module(Module) -> ModuleId, module;
        /// Names a code object.
        code_object(CodeObject) -> CodeObjectId, code_object;
        /// Names a kernel symbol.
        kernel(KernelSymbol) -> KernelId, kernel;
    }

    /// Stores an attribute of an agent.
    pub fn agent_attribute(&self, agent: AgentId, what: AgentAttributeKind, value: u64) {
        self.append(|state| {
            let mut record = AgentAttribute::blank();
            (record.agent, record.what, record.value) = (agent, what, value);
            state.name(attribute_key(agent, what), &record);
        });
    }

    /// An attribute of an agent, if it is known.
    pub fn attribute_of(&self, agent: AgentId, what: AgentAttributeKind) -> Option<u64> {
        let record: AgentAttribute = self.get(attribute_key(agent, what))?;
        ((record.agent, record.what) == (agent, what)).then_some(record.value)
    }

    /// Stores a link of an agent; it takes the place of one of the same kind between the same agents.
    pub fn link(&self, link: Link) {
        self.append(|state| state.name(link_key(&link), &link));
    }

    /// Stores the bytes of a code object; `flags` are bits of [`code_bytes`]. They take the place of bytes that were
    /// stored for it before.
    pub fn code_bytes(&self, id: CodeObjectId, bytes: &[u8], flags: u32) {
        let mut state = self.state.lock();
        let is_of = |piece: &RecordRef<'_>| {
            let of = piece.read::<CodeBytes>();
            of.is_some_and(|of| of.id == id)
        };
        if Records::new(&state.code).any(|piece| is_of(&piece)) {
            let others = Records::new(&state.code).filter(|piece| !is_of(piece));
            state.code = others.flat_map(|piece| piece.bytes().to_vec()).collect();
            state.replaced_code += 1;
        }
        for piece in code::pieces(id, bytes, flags) {
            if state.code.len() + piece.len() <= MAX_KEPT_CODE {
                state.code.extend_from_slice(&piece);
            }
            state.push(&piece);
            state.write();
        }
    }

    /// How often bytes of a code object have been replaced: what was read before may be out of date.
    pub fn replaced_code(&self) -> u64 {
        self.state.lock().replaced_code
    }

    /// Calls `read` with each kept piece of a code object.
    pub fn read_code(&self, id: CodeObjectId, mut read: impl FnMut(&RecordRef<'_>)) {
        let state = self.state.lock();
        Records::new(&state.code)
            .filter(|piece| {
                piece
                    .read::<CodeBytes>()
                    .is_some_and(|bytes| bytes.id == id)
            })
            .for_each(|piece| read(&piece));
    }

    /// Names a program or library with host code.
    pub fn host_module(&self, path: &str, build_id: &str) -> HostModuleId {
        let mut state = self.state.lock();
        state.host_modules += 1;
        let mut module = HostModule::blank();
        module.id = HostModuleId(state.host_modules);
        module.path = state.string(path);
        if !build_id.is_empty() {
            module.build_id = state.string(build_id);
        }
        state.name(module.id.0, &module);
        state.write();
        module.id
    }

    /// The id of a call stack, the same for equal stacks. None if there are too many: the capture says so.
    pub fn call_stack(&self, frames: &[FrameAddress], is_complete: bool) -> CallStackId {
        let mut state = self.state.lock();
        let (id, new) = state.stacks.id(frames, is_complete);
        match new {
            NewStack::Known => {}
            NewStack::Record(range) => {
                let NamesState {
                    stacks, pending, ..
                } = &mut *state;
                pending.extend_from_slice(&stacks.records()[range]);
                state.write();
            }
            NewStack::TooMany => {
                let text = format!(
                    "there were more different call stacks than fit in {} MiB: later calls have none",
                    MAX_BYTES >> 20
                );
                let mut note = Note::blank();
                note.time = gputrail_buffer::clock::now();
                (note.what, note.text) = (NoteKind::MISSING, state.string(&text));
                state.push(bytemuck::bytes_of(&note));
                state.write();
            }
        }
        id
    }

    /// Describes the process.
    pub fn process(&self, process: Process) {
        self.append(|state| state.name(process.id.0, &process));
    }

    /// Names a thread.
    pub fn thread(&self, id: ThreadId, name: &str) {
        self.append(|state| {
            let mut thread = Thread::blank();
            (thread.id, thread.name) = (id, state.string(name));
            state.name(id.0, &thread);
        });
    }

    /// Names an operation and its recorded arguments (see [`OperationName::arguments`]).
    pub fn operation(
        &self,
        operation: Operation,
        name: &str,
        arguments: &str,
        group: OperationGroup,
    ) {
        self.append(|state| state.operation(operation, name, arguments, group));
    }

    /// Names many operations at once.
    pub fn operations<'a>(
        &self,
        operations: impl IntoIterator<Item = (Operation, &'a str, String, OperationGroup)>,
    ) {
        let operations = operations.into_iter();
        let count = operations.size_hint().1.unwrap_or(0);
        self.append(|state| {
            state.strings.reserve(2 * count);
            state.offsets.reserve(3 * count);
            for (operation, name, arguments, group) in operations {
                state.operation(operation, name, &arguments, group);
            }
        });
    }

    /// Names an external id.
    pub fn external(&self, kind: ExternalKind, id: ExternalId, name: &str) {
        self.append(|state| {
            let mut record = ExternalName::blank();
            (record.id, record.kind, record.name) = (id, kind, state.string(name));
            // Not kept, as there may be very many: only existing captures receive it.
            state.push(bytemuck::bytes_of(&record));
        });
    }

    /// Adds a note about the recording.
    pub fn note(&self, what: NoteKind, text: &str) {
        self.append(|state| {
            let mut note = Note::blank();
            if !what.is_of_whole_recording() {
                note.time = gputrail_buffer::clock::now();
            }
            (note.what, note.text) = (what, state.string(text));
            state.push(bytemuck::bytes_of(&note));
        });
    }

    /// Stores a reading of an agent's clock.
    pub fn clock_pair(&self, pair: ClockPair) {
        self.append(|state| {
            let pairs = state.pairs.entry(pair.agent).or_default();
            if pairs.latest.len() == MAX_PAIRS {
                pairs.latest.pop_front();
            }
            pairs.latest.push_back(pair);
            pairs.read += 1;
            state.push(bytemuck::bytes_of(&pair))
        });
    }

    /// The latest readings of an agent's clock, at most 256.
    pub fn clock_pairs(&self, agent: AgentId) -> Vec<ClockPair> {
        let state = self.state.lock();
        let pairs = state.pairs.get(&agent);
        pairs.map_or_else(Vec::new, |pairs| pairs.latest.iter().copied().collect())
    }

    /// The number of readings of an agent's clock so far.
    pub fn clock_pairs_read(&self, agent: AgentId) -> u64 {
        let state = self.state.lock();
        state.pairs.get(&agent).map_or(0, |pairs| pairs.read)
    }

    /// Stores a reading of the host's clocks.
    pub fn clock_snapshot(&self, snapshot: ClockSnapshot) {
        self.append(|state| state.push(bytemuck::bytes_of(&snapshot)));
    }

    /// Writes the names that `name_many` adds in one piece. `names` is their approximate number. Records must not use
    /// the new ids before this returns.
    pub fn batch<R>(&self, names: usize, name_many: impl FnOnce(&Names) -> R) -> R {
        let mut state = self.state.lock();
        state.batching = Some(std::thread::current().id());
        state.strings.reserve(2 * names);
        state.offsets.reserve(3 * names);
        drop(state);
        let result = name_many(self);
        let mut state = self.state.lock();
        state.batching = None;
        state.write();
        result
    }

    /// Runs `work` while the store is locked, in tests.
    #[doc(hidden)]
    pub fn while_locked(&self, work: impl FnOnce()) {
        let _state = self.state.lock();
        work();
    }

    fn append(&self, push: impl FnOnce(&mut NamesState)) {
        let mut state = self.state.lock();
        push(&mut state);
        state.write();
    }
}

/// The key under which a link is kept.
fn link_key(link: &Link) -> u32 {
    link.agent.0 << 18 | link.peer.0 << 4 & 0x3_fff0 | u32::from(link.what.0) & 0xf
}

/// The key under which an attribute is kept.
fn attribute_key(agent: AgentId, what: AgentAttributeKind) -> u32 {
    agent.0 << 16 | u32::from(what.0)
}

impl NamesState {
    fn string(&mut self, text: &str) -> StringId {
        let text = cut(text);
        if let Some(id) = self.strings.get(text) {
            return *id;
        }
        let StringLimits { strings, bytes } = self.limits;
        if self.strings.len() < strings && self.string_bytes + text.len() <= bytes {
            return self.new_string(text);
        }
        if let Some(id) = self.strings.get(TOO_MANY) {
            return *id;
        }
        let id = self.new_string(TOO_MANY);
        let text = format!(
            "there were more different texts than {strings}, or than {} MiB of them: later ones are called \"{TOO_MANY}\"",
            bytes >> 20
        );
        let mut note = Note::blank();
        note.time = gputrail_buffer::clock::now();
        (note.what, note.text) = (NoteKind::MISSING, self.new_string(&text));
        self.push(bytemuck::bytes_of(&note));
        id
    }

    /// The id of `text`, which has none.
    fn new_string(&mut self, text: &str) -> StringId {
        self.string_bytes += text.len();
        let id = StringId(self.strings.len() as u32 + 1);
        self.strings.insert(text.into(), id);
        let mut pending = std::mem::take(&mut self.pending);
        let begin = pending.len();
        write_string(id, text, &mut pending);
        self.keep(Kind::STRING, id.0, &pending[begin..]);
        self.pending = pending;
        id
    }

    fn operation(
        &mut self,
        operation: Operation,
        name: &str,
        arguments: &str,
        group: OperationGroup,
    ) {
        let mut record = OperationName::blank();
        record.operation = operation;
        record.name = self.string(name);
        record.arguments = if arguments.is_empty() {
            StringId::NONE
        } else {
            self.string(arguments)
        };
        record.group = u32::from(group.0);
        let id = u32::from(operation.domain.0) << 16 | u32::from(operation.number);
        self.name(id, &record);
    }

    /// Stores `record` as the description of `id`.
    fn name<R: Record>(&mut self, id: u32, record: &R) {
        self.keep(R::KIND, id, bytemuck::bytes_of(record));
        self.push(bytemuck::bytes_of(record));
    }

    fn keep(&mut self, kind: Kind, id: u32, record: &[u8]) {
        if self.kept.len() + record.len() <= MAX_KEPT {
            self.offsets.insert((kind, id), self.kept.len());
            self.kept.extend_from_slice(record);
        }
    }

    fn write_kept(&self, writer: &Writer) {
        // The writer holds its error.
        for piece in [&*self.kept, &self.code, self.stacks.records()]
            .into_iter()
            .flat_map(pieces)
        {
            let _ = writer.metadata(piece);
        }
        for pairs in self.pairs.values() {
            for pair in &pairs.latest {
                let _ = writer.metadata_record(pair);
            }
        }
    }

    fn push(&mut self, record: &[u8]) {
        self.pending.extend_from_slice(record);
    }

    fn write(&mut self) {
        let in_batch = self
            .batching
            .is_some_and(|thread| thread == std::thread::current().id());
        let more_to_come = in_batch && self.pending.len() < PIECE_BYTES;
        if self.pending.is_empty() || more_to_come {
            return;
        }
        for writer in &self.writers {
            for piece in pieces(&self.pending) {
                // The writer holds its error, which ends the capture.
                let _ = writer.metadata(piece);
            }
        }
        self.pending.clear();
        self.pending.shrink_to(1 << 16);
    }
}

/// Bytes of metadata that are written at once, if no single record is longer.
const PIECE_BYTES: usize = 256 << 10;

/// Cuts `records` into pieces of complete records, of [`PIECE_BYTES`] or of one longer record.
fn pieces(records: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = records;
    std::iter::from_fn(move || {
        let mut end = 0;
        for record in Records::new(rest) {
            let next = end + record.bytes().len();
            if end > 0 && next > PIECE_BYTES {
                break;
            }
            end = next;
        }
        let (piece, left) = rest.split_at(end);
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The longest prefix of `text` that fits a record.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(text.len().min(MAX_STRING))]
}

/// The record of a string.
pub fn string_record(id: StringId, text: &str) -> Vec<u8> {
    let mut record = Vec::new();
    write_string(id, text, &mut record);
    record
}

fn write_string(id: StringId, text: &str, record: &mut Vec<u8>) {
    let text = cut(text);
    let mut name = StringName::blank();
    let bytes = (size_of::<StringName>() + text.len()).next_multiple_of(8);
    name.header.words = (bytes / 8) as u16;
    (name.id, name.length) = (id, text.len() as u32);
    let end = record.len() + bytes;
    record.reserve(bytes);
    record.extend_from_slice(bytemuck::bytes_of(&name));
    record.extend_from_slice(text.as_bytes());
    record.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with room for so many strings and bytes of them.
    fn limited(strings: usize, bytes: usize) -> Names {
        let names = Names::new();
        names.state.lock().limits = StringLimits { strings, bytes };
        names
    }

    #[test]
    fn strings_beyond_the_limits_have_one_name_which_a_note_says() {
        for names in [limited(3, 1 << 20), limited(1 << 20, 9)] {
            let ids = ["one", "two", "six", "four", "five", "one"].map(|text| names.string(text));
            let texts = ids.map(|id| names.text(id).unwrap());
            assert_eq!(texts, ["one", "two", "six", TOO_MANY, TOO_MANY, "one"]);
            let state = names.state.lock();
            assert_eq!(state.strings.len(), 5, "these, the name and the note");
            let is_note = |text: &&str| text.starts_with("there were more different texts than");
            let mut texts = state.strings.keys().map(|text| &**text);
            assert_eq!(texts.by_ref().filter(is_note).count(), 1);
        }
    }
}
