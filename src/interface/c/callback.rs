//! Callbacks: subscribers in C, and the data of their callbacks.

use super::sized::sized;
use core::ffi::{c_char, c_void};
use gputrail_record::{
    ContextId, CorrelationId, ExternalId, Header, KernelId, Operation, ThreadId,
};

/// The data of a callback. Valid during the callback.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct CallbackData {
    /// Size of this structure.
    pub size: usize,
    /// The operation that is reported: `gputrail_operation_code` makes its constant of it.
    pub operation: Operation,
    /// The moment: `GPUTRAIL_PHASE_ENTER` or another of them.
    pub phase: u32,
    /// Its name, `clFinish` say.
    pub name: *const c_char,
    /// The call's id, or that of the call that caused it.
    pub correlation: CorrelationId,
    /// The thread.
    pub thread: ThreadId,
    /// The value that the call returned, if `has_return_code` is 1.
    pub return_code: i32,
    /// Whether the call has returned: 1 or 0.
    pub has_return_code: u32,
    /// How many arguments the call has: see `gputrail_callback_argument`.
    pub arguments: u32,
    /// The record of the work, the wait or the object that is reported, or null. Its structure is in the comment of the
    /// operation's constant: of `GPUTRAIL_RESOURCE_AGENT_KNOWN` a `gputrail_record_agent`. Its times are nanoseconds of
    /// CLOCK_BOOTTIME, unless `gputrail_subscriber_format` asks for raw ones.
    pub record: *const Header,
    /// The subscriber's own word: 0 at enter, at exit the value that it left here at enter, at a completion the value
    /// that it left at the exit of the enqueue.
    pub user_data: u64,
    /// The kernel that is launched or has completed, where one is: `gputrail_kernel_name` tells its name, also here.
    pub kernel: KernelId,
    /// 0.
    pub reserved: u32,
    /// Of a code object that is loaded or unloaded: its machine code, or null where the runtime does not give it.
    /// `record` is its `gputrail_record_code_object`; where it was loaded may be known later than that it was, or
    /// never.
    pub code: *const u8,
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// The external id of the call or the work, as records in buffers of the subscriber's context carry it; 0 for none.
    pub external: ExternalId,
    /// Of a kernel that runs in several passes for its counters (`GPUTRAIL_KERNEL_DISPATCH_REPLAY`): the passes that have
    /// run.
    pub passes_done: u32,
    /// All of its passes.
    pub passes: u32,
    /// The whole value that the call returned, if `has_return_code` is 1: a status, or the handle or address of what it
    /// made.
    pub return_value: u64,
    /// The runtime's own id of the call, or 0 (CUPTI: `correlationId`).
    pub runtime_correlation: u64,
    /// The context in the runtime of a call, where its first argument or the runtime tells it: the id of a
    /// `gputrail_record_context`.
    pub runtime_context: ContextId,
    /// 0.
    pub reserved2: u32,
}
sized!(CallbackData, "gputrail_callback", 64);

/// Called for the operations of a subscriber, with the user data of `gputrail_subscribe`, possibly on several threads
/// at a time. Its own calls are not observed. It must not throw.
pub type CallbackFunction =
    Option<unsafe extern "C-unwind" fn(callback: *mut CallbackData, user_data: *mut c_void)>;
