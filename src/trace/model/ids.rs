//! Ids of the elements of a trace.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($number:ty);)*) => {
        $(
            $(#[$doc])*
            #[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub $number);
        )*
    };
}

ids! {
    /// A process: its index in the stream.
    ProcessIndex(u32);
    /// An agent (device): its index in the stream.
    AgentIndex(u32);
    /// A track: its index in the stream.
    TrackIndex(u32);
    /// A queue of an agent: its index in the stream.
    QueueIndex(u32);
    /// A block of counters: its index in the stream.
    CounterIndex(u32);
    /// A function of an API: its index in the stream. All calls of a function have the same index.
    FunctionIndex(u32);
    /// A stack of a track of samples: its index on that track.
    StackIndex(u32);
    /// The scope of the ids in [`Samples`](super::Samples): one process, or one part of a file.
    SamplerIndex(u32);
    /// A kernel, or a kind of copy, fill or barrier. In one process, all work with the same id has the same name.
    StageId(u64);
    /// A chain of arrows between slices, unique in the trace.
    FlowId(u64);
    /// A piece of device work, unique in the trace. Calls and other work refer to it.
    EventId(u64);
}

impl EventId {
    /// The bits of an id that belong to the process's own number.
    pub(crate) const OWN_BITS: u32 = 40;
    /// The bits of the id of a launch of a graph: no call names it as its work, but its nodes.
    pub(crate) const GRAPH_LAUNCH: u64 = EventId::WITHOUT_CALL;
    /// The bits of the id of work that no call enqueued, such as a migration of managed memory.
    pub(crate) const OF_RUNTIME: u64 = EventId::WITHOUT_CALL | 1 << 32;
    const WITHOUT_CALL: u64 = 1 << 39 | 1 << 33;

    /// Whether no call names it as its work, in a trace of gputrail's.
    pub fn is_without_call(self) -> bool {
        self.0 & EventId::WITHOUT_CALL == EventId::WITHOUT_CALL
    }
}

impl AgentIndex {
    /// An agent that the recording does not describe.
    pub const UNKNOWN: AgentIndex = AgentIndex(u32::MAX);
}
