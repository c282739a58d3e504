//! Metadata: the records that describe ids.
//!
//! They are part of the names store, which is never overwritten or dropped, and are committed before their id is first
//! used. Readers tolerate references to names that come later or never. A second record with the same id replaces the
//! first.

use super::*;

/// A string: 16 bytes, then `length` bytes of UTF-8, padded with zeros to a multiple of 8.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct StringName {
    /// Kind [`Kind::STRING`]; its size covers the text.
    pub header: Header,
    /// The id.
    pub id: StringId,
    /// The number of bytes of text that follow.
    pub length: u32,
}
record!(StringName, Kind::STRING, 16, false);

/// The longest text of a [`StringName`] in bytes. Longer ones are cut at a character boundary.
pub const MAX_STRING: usize = 8 * u16::MAX as usize - 24;

/// The process that wrote the capture. 48 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Process {
    /// Kind [`Kind::PROCESS`].
    pub header: Header,
    /// Its id.
    pub id: ProcessId,
    /// Its parent's id.
    pub parent: ProcessId,
    /// The path of its executable.
    pub executable: StringId,
    /// Its command line, with arguments separated by spaces.
    pub command: StringId,
    /// The name of the machine.
    pub host: StringId,
    /// The version of gputrail.
    pub version: StringId,
    /// The configuration of the recording as text.
    pub configuration: StringId,
    /// The main thread, whose external ids other threads inherit.
    pub main_thread: ThreadId,
    /// Its rank in a job of several processes, such as "rank 3 of 8", or none.
    pub rank: StringId,
    /// A name that was given to it, or none (CUPTI: `CUpti_ActivityName` of a process).
    pub name: StringId,
}
record!(Process, Kind::PROCESS, 48);

/// A thread. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Thread {
    /// Kind [`Kind::THREAD`].
    pub header: Header,
    /// Its id.
    pub id: ThreadId,
    /// Its name.
    pub name: StringId,
    /// Reserved, 0.
    pub reserved: u64,
}
record!(Thread, Kind::THREAD, 24);

open_enum! {
    /// The type of an agent.
    AgentKind(u8) {
        /// Something else.
        OTHER = 0, "other";
        /// A graphics processor.
        GPU = 1, "GPU";
        /// A processor of the host behind a compute API.
        CPU = 2, "CPU";
        /// An accelerator.
        ACCELERATOR = 3, "accelerator";
        /// The simulated GPU.
        SIMULATED = 4, "simulated GPU";
    }
}

/// An agent and its attributes. Unknown attributes are 0. 88 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Agent {
    /// Kind [`Kind::AGENT`].
    pub header: Header,
    /// Its id, which is also the index of its GPU in the trace plus 1.
    pub id: AgentId,
    /// Its name.
    pub name: StringId,
    /// Its vendor.
    pub vendor: StringId,
    /// Its driver and the driver's version.
    pub driver: StringId,
    /// The API version that it supports.
    pub version: StringId,
    /// The platform or runtime.
    pub platform: StringId,
    /// The architecture, as the compiler calls it.
    pub architecture: StringId,
    /// The PCI address or UUID as text.
    pub bus: StringId,
    /// The number of compute units.
    pub compute_units: u32,
    /// The highest clock rate in MHz.
    pub clock_mhz: u32,
    /// Global memory in bytes.
    pub memory: u64,
    /// Local memory per compute unit in bytes.
    pub local_memory: u64,
    /// The largest workgroup, in work-items.
    pub max_workgroup: u32,
    /// The API through which it was found.
    pub domain: Domain,
    /// Its type.
    pub kind: AgentKind,
    /// Reserved, 0.
    pub reserved: u8,
    /// Its handle in the runtime.
    pub handle: u64,
    /// The resolution of its clock in nanoseconds.
    pub timer_resolution: u64,
}
record!(Agent, Kind::AGENT, 88);

/// A context of a runtime. 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Context {
    /// Kind [`Kind::CONTEXT`].
    pub header: Header,
    /// Its id.
    pub id: ContextId,
    /// Its (first) agent.
    pub agent: AgentId,
    /// Its handle in the runtime.
    pub handle: u64,
    /// Number of agents.
    pub agents: u32,
    /// Its API.
    pub domain: Domain,
    /// Reserved, 0.
    pub reserved: u16,
    /// A name that was given to it, or none (CUPTI: `CUpti_ActivityName` of a context).
    pub name: StringId,
    /// Reserved, 0.
    pub reserved2: u32,
}
record!(Context, Kind::CONTEXT, 40);

/// Bits of [`Queue::properties`].
pub mod queue_properties {
    /// Commands may execute out of order.
    pub const OUT_OF_ORDER: u32 = 1 << 0;
    /// The program itself enabled profiling.
    pub const PROFILING: u32 = 1 << 1;
    /// The queue is on the device; the host does not enqueue work in it.
    pub const ON_DEVICE: u32 = 1 << 2;
    /// A copy engine.
    pub const COPY_ENGINE: u32 = 1 << 3;
}

/// A queue. 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Queue {
    /// Kind [`Kind::QUEUE`].
    pub header: Header,
    /// Its id.
    pub id: QueueId,
    /// Its context.
    pub context: ContextId,
    /// Its agent.
    pub agent: AgentId,
    /// Bits: [`queue_properties`].
    pub properties: u32,
    /// Its handle in the runtime.
    pub handle: u64,
    /// Its name, or none.
    pub name: StringId,
    /// Its number on the agent, from 0.
    pub number: u32,
}
record!(Queue, Kind::QUEUE, 40);

open_enum! {
    /// How a stream is ordered with the default stream of its context (CUPTI: `CUpti_ActivityStreamFlag`, same values).
    StreamFlag(u32) {
        /// Unknown.
        UNKNOWN = 0, "unknown";
        /// Each waits for what was put into the other before.
        DEFAULT = 1, "default";
        /// Neither waits for the other.
        NON_BLOCKING = 2, "non-blocking";
        /// The default stream itself.
        NULL = 3, "default stream";
    }
}

/// A stream: a queue as the program sees it, where the runtime maps many streams to few queues. 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Stream {
    /// Kind [`Kind::STREAM`].
    pub header: Header,
    /// Its id.
    pub id: StreamId,
    /// Its context.
    pub context: ContextId,
    /// Its agent.
    pub agent: AgentId,
    /// Its name, or none.
    pub name: StringId,
    /// Its handle in the runtime.
    pub handle: u64,
    /// Its priority.
    pub priority: i32,
    /// Its ordering with the default stream.
    pub flag: StreamFlag,
}
record!(Stream, Kind::STREAM, 40);

/// An event object. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Event {
    /// Kind [`Kind::EVENT`].
    pub header: Header,
    /// Its id.
    pub id: EventId,
    /// Its context.
    pub context: ContextId,
    /// Its handle in the runtime.
    pub handle: u64,
}
record!(Event, Kind::EVENT, 24);

/// A module or program. 40 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Module {
    /// Kind [`Kind::MODULE`].
    pub header: Header,
    /// Its id.
    pub id: ModuleId,
    /// Its context.
    pub context: ContextId,
    /// Its handle in the runtime.
    pub handle: u64,
    /// Its source text, if it was stored.
    pub source: StringId,
    /// Its build options.
    pub options: StringId,
    /// Reserved, 0.
    pub reserved: u64,
}
record!(Module, Kind::MODULE, 40);

/// A code object: machine code of a module for one agent. 48 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CodeObject {
    /// Kind [`Kind::CODE_OBJECT`].
    pub header: Header,
    /// Its id.
    pub id: CodeObjectId,
    /// Its module.
    pub module: ModuleId,
    /// Its agent.
    pub agent: AgentId,
    /// The path or URI of its binary.
    pub path: StringId,
    /// The address at which it was loaded.
    pub load_base: u64,
    /// The number of bytes loaded.
    pub load_size: u64,
    /// Reserved, 0.
    pub reserved: u64,
}
record!(CodeObject, Kind::CODE_OBJECT, 48);

/// A piece of a code object: 40 bytes, then `length` bytes of it, padded with zeros to a multiple of 8. Pieces are in
/// order; a piece at offset 0 starts the object again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CodeBytes {
    /// Kind [`Kind::CODE_BYTES`]; its size covers the bytes.
    pub header: Header,
    /// The code object.
    pub id: CodeObjectId,
    /// The number of bytes that follow.
    pub length: u32,
    /// Their offset in the code object.
    pub offset: u64,
    /// The size of the code object.
    pub total: u64,
    /// Bits: [`code_bytes`].
    pub flags: u32,
    /// Reserved, 0.
    pub reserved: u32,
}
record!(CodeBytes, Kind::CODE_BYTES, 40, false);

/// Bits of [`CodeBytes::flags`].
pub mod code_bytes {
    /// Copied from memory because the file was deleted: loaded segments only, without a full symbol table or line
    /// table.
    pub const FROM_MEMORY: u32 = 1 << 0;
}

/// The most bytes of a code object in one [`CodeBytes`].
pub const MAX_CODE_PIECE: usize = 8 * u16::MAX as usize - 40 - 7;

/// A kernel symbol. Attributes are those of the first device; unknown ones are 0. 64 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct KernelSymbol {
    /// Kind [`Kind::KERNEL_SYMBOL`].
    pub header: Header,
    /// Its id.
    pub id: KernelId,
    /// Its module.
    pub module: ModuleId,
    /// Its name in the program.
    pub name: StringId,
    /// Its demangled name, if that differs.
    pub demangled: StringId,
    /// Its handle in the runtime.
    pub handle: u64,
    /// Local memory per workgroup, in bytes.
    pub local_memory: u64,
    /// Private memory per work-item, in bytes.
    pub private_memory: u64,
    /// The largest workgroup for this kernel, in work-items.
    pub max_workgroup: u32,
    /// The preferred multiple of the workgroup size.
    pub workgroup_multiple: u32,
    /// The number of arguments.
    pub arguments: u32,
    /// Its code object.
    pub code_object: CodeObjectId,
}
record!(KernelSymbol, Kind::KERNEL_SYMBOL, 64);

/// The name of an operation. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct OperationName {
    /// Kind [`Kind::OPERATION`].
    pub header: Header,
    /// The operation.
    pub operation: Operation,
    /// Its name.
    pub name: StringId,
    /// Its recorded arguments as `name:type,name:type`, with the names of [`ArgumentType`].
    pub arguments: StringId,
    /// An [`OperationGroup`] in the low byte; the rest is 0.
    pub group: u32,
}
record!(OperationName, Kind::OPERATION, 24);

open_enum! {
    /// The purpose of a function, for readers that do not know the API.
    OperationGroup(u8) {
        /// Something else.
        OTHER = 0, "other";
        /// Queries information.
        QUERY = 1, "query";
        /// Creates an object.
        CREATE = 2, "create";
        /// Retains or releases an object.
        LIFETIME = 3, "lifetime";
        /// Compiles or links.
        BUILD = 4, "build";
        /// Enqueues work.
        ENQUEUE = 5, "enqueue";
        /// Waits.
        SYNCHRONIZE = 6, "synchronize";
        /// Sets a value, such as an argument of a kernel.
        SET = 7, "set";
    }
}

/// A text about the recording, such as why it ended early. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Note {
    /// Kind [`Kind::NOTE`].
    pub header: Header,
    /// The time. 0: it holds for the whole recording.
    pub time: Ticks,
    /// The text.
    pub text: StringId,
    /// The subject.
    pub what: NoteKind,
}
record!(Note, Kind::NOTE, 24);

open_enum! {
    /// The subject of a [`Note`].
    NoteKind(u32) {
        /// Something else.
        OTHER = 0, "note";
        /// An extension function that is not recorded was returned to the program; the text is its name.
        UNOBSERVED_FUNCTION = 1, "unobserved function";
        /// Calls after the end of the recording; the text is their number.
        CALLS_AFTER_END = 2, "calls after the end";
        /// The recording ended early; the text is the reason.
        ENDED_EARLY = 3, "ended early";
        /// The process died; the text is the cause.
        DIED = 4, "process died";
        /// Samples outside of kernels; the text is their number and location.
        SAMPLES_ELSEWHERE = 5, "samples outside of kernels";
        /// The program's process exited without ending its recording, by `_exit` for example; all that it recorded was
        /// saved.
        EXITED = 6, "process exited";
        /// The program's process became another program by exec; all that it recorded was saved.
        REPLACED = 7, "process replaced";
        /// The recording of the process was switched off by its scope or its program; the text is the reason.
        PAUSED = 8, "recording paused";
        /// The recording of the process goes on.
        RESUMED = 9, "recording resumed";
        /// The recording was switched off from outside, for all its processes; the text is the reason.
        STOPPED = 10, "recording stopped";
        /// The recording was switched on from outside.
        STARTED = 11, "recording started";
        /// Counters of an agent are collected for each dispatch; the text lists them.
        COUNTERS = 12, "counters collected";
        /// Counters of an agent are collected at a period; the text lists them.
        DEVICE_COUNTERS = 13, "counters collected at a period";
        /// Records that a source should have had are missing; the text says how many, and why.
        MISSING = 14, "records missing";
    }
}

impl NoteKind {
    /// Whether such notes hold for the whole recording, so that they have no time.
    pub fn is_of_whole_recording(self) -> bool {
        matches!(self, NoteKind::COUNTERS | NoteKind::DEVICE_COUNTERS)
    }

    /// Whether such notes say how the recording of a process ended that did not end it itself.
    pub fn is_of_end(self) -> bool {
        self == NoteKind::ENDED_EARLY || NoteKind::PROCESS_ENDS.contains(&self)
    }

    /// The kinds of notes that say how a process ended without ending its recording.
    pub const PROCESS_ENDS: [NoteKind; 3] = [NoteKind::DIED, NoteKind::EXITED, NoteKind::REPLACED];
}
