//! The names and clocks of a capture.

use super::readings::Thinning;
use crate::code::CodeObjects;
use gputrail_record::number_map::NumberMap;
use gputrail_record::*;
use std::collections::{BTreeMap, HashMap};

/// The most bytes of names and clocks that are read from one capture, apart from the bytes of code objects: far above
/// what a program's names take.
pub(super) const MAX_BYTES: usize = 256 << 20;
/// Memory of an entry beside its own bytes.
const ENTRY_BYTES: usize = 32;

/// The number of further bytes that are read.
#[derive(Clone, Debug)]
struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Room(MAX_BYTES)
    }
}

/// The strings of a capture: one text with all of them, and the place of each.
#[derive(Clone, Debug, Default)]
struct CaptureStrings {
    text: String,
    /// The range of bytes of each string. [`MAX_BYTES`] fits in 32 bits.
    places: NumberMap<StringId, (u32, u32)>,
}

impl CaptureStrings {
    fn get(&self, id: StringId) -> Option<&str> {
        let (begin, end) = self.places.get(&id)?;
        Some(&self.text[*begin as usize..*end as usize])
    }

    fn insert(&mut self, id: StringId, text: &str) {
        let begin = self.text.len() as u32;
        self.text.push_str(text);
        self.places.insert(id, (begin, self.text.len() as u32));
    }
}

/// The names and clocks of a capture.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// The process.
    pub process: Option<Process>,
    /// Agents by id.
    pub agents: BTreeMap<AgentId, Agent>,
    /// Contexts by id.
    pub contexts: BTreeMap<ContextId, Context>,
    /// Queues by id.
    pub queues: BTreeMap<QueueId, Queue>,
    /// Streams by id.
    pub streams: BTreeMap<StreamId, Stream>,
    /// Event objects by id.
    pub events: BTreeMap<EventId, Event>,
    /// Modules by id.
    pub modules: BTreeMap<ModuleId, Module>,
    /// Code objects by id.
    pub code_objects: BTreeMap<CodeObjectId, CodeObject>,
    /// The bytes of code objects.
    pub code: CodeObjects,
    /// Kernel symbols by id.
    pub kernels: BTreeMap<KernelId, KernelSymbol>,
    /// Threads by id.
    pub threads: BTreeMap<ThreadId, Thread>,
    /// Modules with host code, by id.
    pub host_modules: BTreeMap<HostModuleId, HostModule>,
    /// Call stacks of the host, by id: the frames, innermost first.
    pub call_stacks: NumberMap<CallStackId, Box<[FrameAddress]>>,
    /// Operations.
    pub operations: HashMap<Operation, OperationName>,
    externals: HashMap<(ExternalKind, ExternalId), StringId>,
    attributes: BTreeMap<(AgentId, u16), AgentAttribute>,
    links: BTreeMap<(AgentId, AgentId, LinkKind), Link>,
    /// The kind of the ids of ranges, if the recording has such ids.
    range_kind: Option<ExternalKind>,
    /// Notes, in order.
    pub notes: Vec<Note>,
    /// Snapshots of the host's clocks, in order, thinned out if there are very many.
    pub snapshots: Vec<ClockSnapshot>,
    /// Readings of agents' clocks, those of each agent in order, thinned out if there are very many.
    pub pairs: Vec<ClockPair>,
    thinned_snapshots: Thinning,
    thinned_pairs: Thinning,
    strings: CaptureStrings,
    room: Room,
    /// Records that were left out because they exceeded the limit.
    pub left_out: u64,
}

impl Metadata {
    /// The text of a string, or "" if it is unknown.
    pub fn string(&self, id: StringId) -> &str {
        self.strings.get(id).unwrap_or_default()
    }

    /// The id of a text.
    pub(super) fn find_string(&self, text: &str) -> Option<StringId> {
        let mut ids = self.strings.places.keys().copied();
        ids.find(|id| self.strings.get(*id) == Some(text))
    }

    /// The greatest id of a string below `limit`.
    pub(super) fn last_string_below(&self, limit: StringId) -> StringId {
        let ids = self.strings.places.keys().copied();
        let ids = ids.filter(|id| id.0 < limit.0);
        ids.max_by_key(|id| id.0).unwrap_or(StringId::NONE)
    }

    /// The attributes of an agent, in the order of their numbers.
    pub fn attributes(&self, agent: AgentId) -> impl Iterator<Item = &AgentAttribute> {
        let of_agent = self.attributes.range((agent, 0)..=(agent, u16::MAX));
        of_agent.map(|(_, attribute)| attribute)
    }

    /// The links of an agent: those to the host first.
    pub fn links(&self, agent: AgentId) -> impl Iterator<Item = &Link> {
        let of_agent = self.links.iter().filter(move |(key, _)| key.0 == agent);
        of_agent.map(|(_, link)| link)
    }

    /// The name of an external id, if it has one.
    pub fn external_name(&self, kind: ExternalKind, id: ExternalId) -> Option<StringId> {
        self.externals.get(&(kind, id)).copied()
    }

    /// The name of the range whose id is `id`, behind that of its domain.
    pub fn range_name(&self, id: ExternalId) -> Option<&str> {
        let kind = self.range_kind.filter(|_| id.is_some())?;
        self.external_name(kind, id).map(|name| self.string(name))
    }

    /// Whether ids of `kind` are those of ranges.
    pub fn is_of_ranges(&self, kind: ExternalKind) -> bool {
        self.range_kind == Some(kind)
    }

    /// The name of an operation, or its number and domain if it is unnamed.
    pub fn operation(&self, operation: Operation) -> std::borrow::Cow<'_, str> {
        match self
            .operations
            .get(&operation)
            .map(|name| self.string(name.name))
        {
            Some(name) if !name.is_empty() => name.into(),
            _ => operation.to_string().into(),
        }
    }

    /// Adds a metadata record; ignores other kinds.
    pub fn add(&mut self, record: &RecordRef<'_>) {
        let own = match record.kind() {
            Kind::CODE_BYTES => 0,
            _ => record.bytes().len(),
        };
        let Some(left) = self.room.0.checked_sub(own + ENTRY_BYTES) else {
            self.left_out += 1;
            return;
        };
        self.room.0 = left;
        macro_rules! keep {
            ($map:ident, $type:ty) => {
                if let Some(entry) = record.read::<$type>() {
                    self.$map.insert(entry.id, entry);
                }
            };
        }
        match record.kind() {
            Kind::STRING => {
                if let Some((id, text)) = record.string() {
                    self.strings.insert(id, &text);
                }
            }
            Kind::PROCESS => self.process = record.read(),
            Kind::AGENT => keep!(agents, Agent),
            Kind::CONTEXT => keep!(contexts, Context),
            Kind::QUEUE => keep!(queues, Queue),
            Kind::STREAM => keep!(streams, Stream),
            Kind::EVENT => keep!(events, Event),
            Kind::MODULE => keep!(modules, Module),
            Kind::CODE_OBJECT => keep!(code_objects, CodeObject),
            Kind::CODE_BYTES => self.code.add(record),
            Kind::KERNEL_SYMBOL => keep!(kernels, KernelSymbol),
            Kind::THREAD => keep!(threads, Thread),
            Kind::HOST_MODULE => keep!(host_modules, HostModule),
            Kind::CALL_STACK => {
                if let Some(stack) = record.read::<CallStack>() {
                    // A record may claim more frames than it has.
                    let there = record.bytes().len().saturating_sub(CallStack::bytes_for(0)) / 8;
                    let frames = stack.frames();
                    let frames = &frames[..frames.len().min(there)];
                    self.call_stacks.insert(stack.id, frames.into());
                }
            }
            Kind::OPERATION => {
                if let Some(name) = record.read::<OperationName>() {
                    self.operations.insert(name.operation, name);
                }
            }
            Kind::EXTERNAL_NAME => {
                if let Some(external) = record.read::<ExternalName>() {
                    let is_kind = external.id == ExternalId::NONE;
                    if is_kind && self.string(external.name) == ExternalKind::RANGES {
                        self.range_kind = Some(external.kind);
                    }
                    self.externals
                        .insert((external.kind, external.id), external.name);
                }
            }
            Kind::AGENT_ATTRIBUTE => {
                if let Some(attribute) = record.read::<AgentAttribute>() {
                    self.attributes
                        .insert((attribute.agent, attribute.what.0), attribute);
                }
            }
            Kind::LINK => {
                if let Some(link) = record.read::<Link>() {
                    self.links.insert((link.agent, link.peer, link.what), link);
                }
            }
            Kind::NOTE => self.notes.extend(record.read::<Note>()),
            Kind::CLOCK_SNAPSHOT => {
                if let Some(snapshot) = record.read::<ClockSnapshot>() {
                    self.thinned_snapshots.add(&mut self.snapshots, snapshot);
                }
            }
            Kind::CLOCK_PAIR => {
                if let Some(pair) = record.read::<ClockPair>() {
                    self.thinned_pairs.add(&mut self.pairs, pair);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::string_record;

    #[test]
    fn names_beyond_the_limit_are_counted_and_left_out() {
        let mut metadata = Metadata {
            room: Room(1000),
            ..Metadata::default()
        };
        let mut bytes = Vec::new();
        for id in 1..=100 {
            bytes.extend_from_slice(&string_record(StringId(id), "a text of 20 letters"));
        }
        Records::new(&bytes).for_each(|record| metadata.add(&record));
        let known = (1..=100).filter(|id| !metadata.string(StringId(*id)).is_empty());
        let known = known.count();
        assert!((1..=1000 / 52).contains(&known), "{known}");
        assert_eq!(metadata.left_out, 100 - known as u64);
        assert!(metadata.strings.text.len() <= 1000);
    }

    #[test]
    fn a_string_is_found_by_its_id_and_by_its_text() {
        let mut metadata = Metadata::default();
        for (id, text) in [(7, "seven"), (9, "nine"), (7, "SEVEN")] {
            let bytes = string_record(StringId(id), text);
            Records::new(&bytes).for_each(|record| metadata.add(&record));
        }
        let strings = [7, 8, 9].map(|id| metadata.string(StringId(id)));
        assert_eq!(strings, ["SEVEN", "", "nine"]);
        assert_eq!(metadata.find_string("nine"), Some(StringId(9)));
        assert_eq!(metadata.last_string_below(StringId(9)), StringId(7));
    }
}
