//! Ids of what a trace is made of.

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
    /// A process, by its place in the trace.
    ProcessIndex(u32);
    /// An agent (device), by its place in the trace.
    AgentIndex(u32);
    /// A track, by its place in the trace.
    TrackIndex(u32);
    /// A queue of an agent, by its place in the trace.
    QueueIndex(u32);
    /// A block of counters, by its place in the trace.
    CounterIndex(u32);
    /// A function of an API, by its place in the trace. Calls of one function have one index.
    FunctionIndex(u32);
    /// A stack of a track of samples, by its place on that track.
    StackIndex(u32);
    /// The scope of the ids in [`Samples`](super::Samples): one process, or one part of a file.
    SamplerIndex(u32);
    /// A kernel, or a kind of copy, fill or barrier. Work of one process with one id has one name.
    StageId(u64);
    /// A chain of arrows between slices, unique in the trace.
    FlowId(u64);
    /// A piece of device work, unique in the trace. Calls and other work refer to it.
    EventId(u64);
}

impl AgentIndex {
    /// An agent that the recording does not describe.
    pub const UNKNOWN: AgentIndex = AgentIndex(u32::MAX);
}
