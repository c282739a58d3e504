//! External ids: ids of a tool's own that the records of a thread carry.

use super::sized::sized;
use core::ffi::{c_char, c_void};
use gputrail_record::{CorrelationId, ExternalId, KernelId, Operation, ThreadId};

/// A request for the external id of a call or of work that begins. Valid during the callback.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct ExternalRequest {
    /// Size of this structure.
    pub size: usize,
    /// The function, or the enqueue of a kernel, a copy or a fill, the allocation or the free in it.
    pub operation: Operation,
    /// The thread that makes the call, which is the calling one.
    pub thread: ThreadId,
    /// Its name, `clFinish` say.
    pub name: *const c_char,
    /// The call's id.
    pub correlation: CorrelationId,
    /// The kernel that is launched, where one is.
    pub kernel: KernelId,
    /// 0.
    pub reserved: u32,
}
sized!(ExternalRequest, "gputrail_external_request", 32);

/// Supplies the external id of a call or of work: returns 1 if it has written one to `id`, 0 to use the id that is pushed. Called
/// possibly on several threads at a time. Its own calls are not observed. It must not throw.
pub type SupplyFunction = Option<
    unsafe extern "C-unwind" fn(
        request: *const ExternalRequest,
        id: *mut ExternalId,
        user_data: *mut c_void,
    ) -> i32,
>;
