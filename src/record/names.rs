//! Metadata: the records that say what ids stand for.
//!
//! They live in the names store, which is never overwritten or dropped, and are committed before
//! their id is first used; a reader tolerates references to names that come later or never.
//! An id is named once; a second record with the same id replaces the first.

use super::*;

/// A string: 16 bytes, then `length` bytes of UTF-8, padded with zeros to a multiple of 8.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct StringName {
    /// Kind [`Kind::STRING`]; its size covers the text.
    pub header: Header,
    /// The id.
    pub id: StringId,
    /// Bytes of text that follow.
    pub length: u32,
}
record!(StringName, Kind::STRING, 16, false);

/// Longest text that a [`StringName`] holds, in bytes; longer ones are cut at a character boundary.
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
    /// Path of its executable.
    pub executable: StringId,
    /// Its command line, arguments separated by spaces.
    pub command: StringId,
    /// Name of the machine.
    pub host: StringId,
    /// Version of gputrail.
    pub version: StringId,
    /// The configuration of the recording, in words.
    pub configuration: StringId,
    /// The thread that runs main, whose external ids others inherit.
    pub main_thread: ThreadId,
    /// Its place in a job of several processes, "rank 3 of 8" say, or none.
    pub rank: StringId,
    /// 0.
    pub reserved: u32,
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
    /// 0.
    pub reserved: u64,
}
record!(Thread, Kind::THREAD, 24);

open_enum! {
    /// What an agent is.
    AgentKind(u8) {
        /// Something else.
        OTHER = 0, "other";
        /// A graphics processor.
        GPU = 1, "GPU";
        /// A processor of the host, behind a compute API.
        CPU = 2, "CPU";
        /// An accelerator.
        ACCELERATOR = 3, "accelerator";
        /// The simulated GPU.
        SIMULATED = 4, "simulated GPU";
    }
}

/// An agent and its attributes. 88 bytes. An attribute of 0 is not known.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Agent {
    /// Kind [`Kind::AGENT`].
    pub header: Header,
    /// Its id; also the index of its GPU in the trace, less 1.
    pub id: AgentId,
    /// Its name.
    pub name: StringId,
    /// Who made it.
    pub vendor: StringId,
    /// The driver and its version.
    pub driver: StringId,
    /// The API version it offers.
    pub version: StringId,
    /// Platform or runtime it belongs to.
    pub platform: StringId,
    /// Architecture, as its compiler calls it.
    pub architecture: StringId,
    /// PCI address, or universally unique id, as text.
    pub bus: StringId,
    /// Compute units.
    pub compute_units: u32,
    /// Highest clock, MHz.
    pub clock_mhz: u32,
    /// Global memory, bytes.
    pub memory: u64,
    /// Local memory per compute unit, bytes.
    pub local_memory: u64,
    /// Largest workgroup, work-items.
    pub max_workgroup: u32,
    /// Whose API it was seen through.
    pub domain: Domain,
    /// What it is.
    pub kind: AgentKind,
    /// 0.
    pub reserved: u8,
    /// Handle in its runtime.
    pub handle: u64,
    /// Resolution of its clock, ns.
    pub timer_resolution: u64,
}
record!(Agent, Kind::AGENT, 88);

/// A context of a runtime. 32 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Context {
    /// Kind [`Kind::CONTEXT`].
    pub header: Header,
    /// Its id.
    pub id: ContextId,
    /// Its (first) agent.
    pub agent: AgentId,
    /// Handle in its runtime.
    pub handle: u64,
    /// Number of agents.
    pub agents: u32,
    /// Whose API.
    pub domain: Domain,
    /// 0.
    pub reserved: u16,
}
record!(Context, Kind::CONTEXT, 32);

/// Bits of [`Queue::properties`].
pub mod queue_properties {
    /// Commands may run out of order.
    pub const OUT_OF_ORDER: u32 = 1 << 0;
    /// The program itself asked for profiling.
    pub const PROFILING: u32 = 1 << 1;
    /// The queue lives on the device; the host does not put work into it.
    pub const ON_DEVICE: u32 = 1 << 2;
    /// It only copies.
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
    /// Handle in its runtime.
    pub handle: u64,
    /// A name given to it, or none.
    pub name: StringId,
    /// Number of the queue on its agent, from 0.
    pub number: u32,
}
record!(Queue, Kind::QUEUE, 40);

/// A stream: what the program sees of a queue, where the runtime maps many on few. 40 bytes.
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
    /// A name given to it, or none.
    pub name: StringId,
    /// Handle in its runtime.
    pub handle: u64,
    /// Priority.
    pub priority: i32,
    /// 0.
    pub reserved: u32,
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
    /// Handle in its runtime.
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
    /// Handle in its runtime.
    pub handle: u64,
    /// Its source text, if it was kept.
    pub source: StringId,
    /// The options it was built with.
    pub options: StringId,
    /// 0.
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
    /// Path or URI of its binary.
    pub path: StringId,
    /// Address it was loaded at.
    pub load_base: u64,
    /// Bytes loaded.
    pub load_size: u64,
    /// 0.
    pub reserved: u64,
}
record!(CodeObject, Kind::CODE_OBJECT, 48);

/// Some bytes of a code object: 40 bytes, then `length` bytes of it, padded with zeros to a multiple of 8. They come
/// from front to back; a piece at offset 0 begins the object anew.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CodeBytes {
    /// Kind [`Kind::CODE_BYTES`]; its size covers the bytes.
    pub header: Header,
    /// The code object.
    pub id: CodeObjectId,
    /// Bytes that follow.
    pub length: u32,
    /// Where in the code object they begin.
    pub offset: u64,
    /// Bytes of the whole code object.
    pub total: u64,
    /// Bits: [`code_bytes`].
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}
record!(CodeBytes, Kind::CODE_BYTES, 40, false);

/// Bits of [`CodeBytes::flags`].
pub mod code_bytes {
    /// Copied from memory, since the file was gone: loaded segments only, without a symbol table or lines.
    pub const FROM_MEMORY: u32 = 1 << 0;
}

/// Most bytes of a code object that one [`CodeBytes`] holds.
pub const MAX_CODE_PIECE: usize = 8 * u16::MAX as usize - 40 - 7;

/// A kernel symbol. 64 bytes. Attributes are those of the first device asked; 0 is not known.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct KernelSymbol {
    /// Kind [`Kind::KERNEL_SYMBOL`].
    pub header: Header,
    /// Its id.
    pub id: KernelId,
    /// Its module.
    pub module: ModuleId,
    /// Its name, as the program calls it.
    pub name: StringId,
    /// Its name for people, where it differs.
    pub demangled: StringId,
    /// Handle in its runtime.
    pub handle: u64,
    /// Local memory, bytes per workgroup.
    pub local_memory: u64,
    /// Private memory, bytes per work-item.
    pub private_memory: u64,
    /// Largest workgroup for this kernel, work-items.
    pub max_workgroup: u32,
    /// Preferred multiple of the workgroup size.
    pub workgroup_multiple: u32,
    /// Number of arguments.
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
    /// Its recorded arguments as `name:type,name:type`, types as in [`ArgumentType`]'s names.
    pub arguments: StringId,
    /// [`OperationGroup`] in the low byte, the rest 0.
    pub group: u32,
}
record!(OperationName, Kind::OPERATION, 24);

open_enum! {
    /// What a function does, so that readers can fold and sort without knowing the API.
    OperationGroup(u8) {
        /// Something else.
        OTHER = 0, "other";
        /// Asks for information.
        QUERY = 1, "query";
        /// Creates an object.
        CREATE = 2, "create";
        /// Retains or releases an object.
        LIFETIME = 3, "lifetime";
        /// Compiles or links.
        BUILD = 4, "build";
        /// Puts work into a queue.
        ENQUEUE = 5, "enqueue";
        /// Waits.
        SYNCHRONIZE = 6, "synchronize";
        /// Sets something, a kernel's argument say.
        SET = 7, "set";
    }
}

/// A plain sentence about the recording: what was passed through, where it was cut. 24 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Note {
    /// Kind [`Kind::NOTE`].
    pub header: Header,
    /// When.
    pub time: Ticks,
    /// The sentence.
    pub text: StringId,
    /// What it is about.
    pub what: NoteKind,
}
record!(Note, Kind::NOTE, 24);

open_enum! {
    /// What a [`Note`] is about.
    NoteKind(u32) {
        /// Something else.
        OTHER = 0, "note";
        /// An extension function was handed out unobserved; the text is its name.
        UNOBSERVED_FUNCTION = 1, "unobserved function";
        /// Calls that came after the recording ended; the text is their number.
        CALLS_AFTER_END = 2, "calls after the end";
        /// The recording ended early; the text says why.
        ENDED_EARLY = 3, "ended early";
        /// The program's process died; the text says how.
        DIED = 4, "process died";
        /// Samples of the program counter that were taken outside of kernels; the text is their number and where.
        SAMPLES_ELSEWHERE = 5, "samples outside of kernels";
        /// The program's process exited without ending its recording, by `_exit` for example; all that it recorded was saved.
        EXITED = 6, "process exited";
        /// The program's process became another program by exec; all that it recorded was saved.
        REPLACED = 7, "process replaced";
    }
}
