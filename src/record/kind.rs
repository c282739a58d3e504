//! The record kinds.

use super::open_enum;

open_enum! {
    /// The kind of a record. Values are part of the format and never reused; readers skip unknown ones.
    Kind(u8) {
        /// An API call: [`Api`](super::Api).
        API = 0x01, "api";

        /// A kernel was enqueued: [`KernelDispatch`](super::KernelDispatch).
        KERNEL_DISPATCH = 0x10, "kernel dispatch";
        /// A copy, map or migration was enqueued: [`MemoryCopy`](super::MemoryCopy).
        MEMORY_COPY = 0x11, "memory copy";
        /// A fill was enqueued: [`MemorySet`](super::MemorySet).
        MEMORY_SET = 0x12, "memory set";
        /// Memory was allocated or freed: [`Allocation`](super::Allocation).
        MEMORY_ALLOCATION = 0x13, "memory allocation";
        /// A wait, marker or barrier: [`Synchronization`](super::Synchronization).
        SYNCHRONIZATION = 0x14, "synchronization";
        /// The times of work that was enqueued: [`Completion`](super::Completion).
        COMPLETION = 0x15, "completion";
        /// The parent of a kernel that a kernel launched: [`ChildKernel`](super::ChildKernel).
        CHILD_KERNEL = 0x16, "child kernel";
        /// A correlation id is complete: [`Retirement`](super::Retirement).
        RETIREMENT = 0x17, "retirement";
        /// A wait for a piece of work: [`Dependency`](super::Dependency).
        DEPENDENCY = 0x18, "dependency";
        /// The latest external id of one kind, ahead of a call's record:
        /// [`ExternalCorrelation`](super::ExternalCorrelation).
        EXTERNAL_CORRELATION = 0x19, "external correlation";
        /// The node of a graph that a piece of work is: [`GraphNode`](super::GraphNode).
        GRAPH_NODE = 0x1a, "graph node";
        /// A graph was created, changed, instantiated, launched or destroyed: [`GraphChange`](super::GraphChange).
        GRAPH_CHANGE = 0x1b, "graph change";

        /// Arguments of an API call: [`Arguments`](super::Arguments).
        ARGUMENTS = 0x20, "arguments";
        /// Time taken by a compiler, the runtime or the collector: [`Overhead`](super::Overhead).
        OVERHEAD = 0x21, "overhead";
        /// Records that were dropped: [`Loss`](super::Loss).
        LOSS = 0x22, "loss";

        /// A reading of the host's clocks: [`ClockSnapshot`](super::ClockSnapshot).
        CLOCK_SNAPSHOT = 0x30, "clock snapshot";
        /// A reading of an agent's clock with the host's ticks: [`ClockPair`](super::ClockPair).
        CLOCK_PAIR = 0x31, "clock pair";

        /// A call stack of the host, in captures only.
        CALL_STACK = 0x32, "call stack";
        /// A program or library with host code, in captures only.
        HOST_MODULE = 0x33, "host module";

        /// A string and its id: [`StringName`](super::StringName).
        STRING = 0x40, "string";
        /// A process: [`Process`](super::Process).
        PROCESS = 0x41, "process";
        /// A thread: [`Thread`](super::Thread).
        THREAD = 0x42, "thread";
        /// An agent and its attributes: [`Agent`](super::Agent).
        AGENT = 0x43, "agent";
        /// A context of a runtime: [`Context`](super::Context).
        CONTEXT = 0x44, "context";
        /// A queue: [`Queue`](super::Queue).
        QUEUE = 0x45, "queue";
        /// A stream: [`Stream`](super::Stream).
        STREAM = 0x46, "stream";
        /// An event object: [`Event`](super::Event).
        EVENT = 0x47, "event";
        /// A module or program: [`Module`](super::Module).
        MODULE = 0x48, "module";
        /// A code object: [`CodeObject`](super::CodeObject).
        CODE_OBJECT = 0x49, "code object";
        /// A kernel symbol: [`KernelSymbol`](super::KernelSymbol).
        KERNEL_SYMBOL = 0x4a, "kernel symbol";
        /// An operation of a domain, with its arguments: [`OperationName`](super::OperationName).
        OPERATION = 0x4b, "operation";
        /// A text about the recording: [`Note`](super::Note).
        NOTE = 0x4c, "note";
        /// The name of an external id: [`ExternalName`](super::ExternalName).
        EXTERNAL_NAME = 0x4d, "external name";
        /// Bytes of a code object: [`CodeBytes`](super::CodeBytes).
        CODE_BYTES = 0x4e, "code bytes";
        /// An attribute of an agent: [`AgentAttribute`](super::AgentAttribute).
        AGENT_ATTRIBUTE = 0x4f, "agent attribute";

        /// A marker or one end of a range: [`Marker`](super::Marker).
        MARKER = 0x50, "marker";

        /// Clocks, temperature, power or fan of an agent: [`Environment`](super::Environment).
        ENVIRONMENT = 0x60, "environment";
        /// Page faults of managed memory: [`UnifiedMemoryCounter`](super::UnifiedMemoryCounter).
        UNIFIED_MEMORY_COUNTER = 0x61, "unified memory counter";
        /// A link of an agent: [`Link`](super::Link).
        LINK = 0x62, "link";
        /// A workgroup was saved or restored: [`Preemption`](super::Preemption).
        PREEMPTION = 0x65, "preemption";

        /// A host-trap sample of the program counter: [`HostTrapSample`](super::HostTrapSample).
        PC_SAMPLE_HOST_TRAP = 0x70, "pc sample (host trap)";
        /// A stochastic sample of the program counter: [`StochasticSample`](super::StochasticSample).
        PC_SAMPLE_STOCHASTIC = 0x71, "pc sample (stochastic)";
        /// A sample that the agent could not complete: [`InvalidSample`](super::InvalidSample).
        PC_SAMPLE_INVALID = 0x72, "pc sample (invalid)";
        /// Totals of the samples of one dispatch: [`SamplingTotals`](super::SamplingTotals).
        PC_SAMPLING_TOTALS = 0x73, "pc sampling totals";
        /// Samples aggregated by address and reason: [`SampleAggregate`](super::SampleAggregate).
        PC_SAMPLE_AGGREGATE = 0x74, "pc sample aggregate";
        /// A source line: [`SourceLocator`](super::SourceLocator).
        SOURCE_LOCATOR = 0x75, "source locator";
        /// Address and source line: [`InstructionCorrelation`](super::InstructionCorrelation).
        INSTRUCTION_CORRELATION = 0x76, "instruction correlation";
        /// How often an instruction was executed: [`InstructionCount`](super::InstructionCount).
        INSTRUCTION_COUNT = 0x77, "instruction count";

        /// The value of a counter or metric: [`CounterValue`](super::CounterValue).
        COUNTER_VALUE = 0x80, "counter value";
    }
}

/// The size of arrays indexed by [`Kind::index`].
pub const KINDS: usize = 64;

impl Kind {
    /// The producer of records of this kind for the buffers of tools. `None` if the kind is reserved, or occurs in
    /// captures only.
    pub fn producer(self) -> Option<&'static str> {
        Some(match self {
            Kind::API | Kind::ARGUMENTS => "calls of an API that a source observes",
            Kind::EXTERNAL_CORRELATION => "calls made while external ids are pushed",
            Kind::GRAPH_NODE => "the completion of work that is a node of a graph",
            Kind::GRAPH_CHANGE => "calls that make, change, launch or destroy graphs",
            Kind::RETIREMENT => "calls whose work has completed",
            Kind::KERNEL_DISPATCH | Kind::MEMORY_COPY | Kind::MEMORY_SET => {
                "calls that enqueue such work"
            }
            Kind::COMPLETION => "the completion of work whose enqueue record the buffer got",
            Kind::MEMORY_ALLOCATION => "calls that allocate or free memory of an agent",
            Kind::SYNCHRONIZATION => "calls that wait, or enqueue a marker or barrier",
            Kind::DEPENDENCY => "calls that wait for work, or enqueue work that does",
            Kind::OVERHEAD => "the runtime's compiler, and the library itself",
            Kind::CHILD_KERNEL => "kernels that launch kernels",
            Kind::PREEMPTION => "kernels that make room for others while they wait",
            Kind::INSTRUCTION_COUNT => "kernels of agents that count their instructions",
            Kind::MARKER => "markers and ranges of programs and tools",
            Kind::ENVIRONMENT => "the driver of an agent, now and then",
            Kind::UNIFIED_MEMORY_COUNTER => "page faults of managed memory",
            Kind::LOSS => "the buffer itself, for records that it has dropped",
            Kind::PC_SAMPLE_HOST_TRAP
            | Kind::PC_SAMPLE_STOCHASTIC
            | Kind::PC_SAMPLE_INVALID
            | Kind::PC_SAMPLING_TOTALS
            | Kind::PC_SAMPLE_AGGREGATE => "PC sampling, once a context has configured it",
            Kind::COUNTER_VALUE => "counter collection, once a context has configured it",
            Kind::SOURCE_LOCATOR | Kind::INSTRUCTION_CORRELATION => {
                "PC sampling that delivers aggregates, of code with source lines"
            }
            _ => return None,
        })
    }

    /// A dense index below [`KINDS`], for counters per kind: the place in [`Kind::ALL`]; kinds that
    /// this version does not know share the last one.
    pub const fn index(self) -> usize {
        INDEX[self.0 as usize] as usize
    }

    /// The kind with this [`index`](Kind::index), or `None` for the shared last one.
    pub fn from_index(index: usize) -> Option<Kind> {
        Self::ALL.get(index).map(|(kind, _)| *kind)
    }
}

/// [`Kind::index`] for every value, so that counting a drop takes one load.
const INDEX: [u8; 256] = {
    assert!(Kind::ALL.len() < KINDS);
    let mut index = [KINDS as u8 - 1; 256];
    let mut place = 0;
    while place < Kind::ALL.len() {
        index[Kind::ALL[place].0.0 as usize] = place as u8;
        place += 1;
    }
    index
};
