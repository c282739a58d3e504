//! Tables of functions of runtimes, of which none is registered here: the functions of OpenCL are no table of AMD's.

use crate::load;
use crate::place::put_name;
use crate::result::api;
use core::ffi::{CStr, c_char, c_int, c_void};
use gputrail_rocprofiler::{InterceptCallback, InterceptTable, Status};

/// Is told of tables that runtimes register; never.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_at_intercept_table_registration(
    callback: Option<InterceptCallback>,
    _libraries: c_int,
    _data: *mut c_void,
) -> Status {
    api(|| {
        if load::is_initialised() {
            return Err(Status::ERROR_CONFIGURATION_LOCKED);
        }
        callback.map(|_| ()).ok_or(Status::ERROR_INVALID_ARGUMENT)
    })
}

fn name_of(table: InterceptTable) -> Option<&'static CStr> {
    Some(match table {
        InterceptTable::HSA_TABLE => c"HSA",
        InterceptTable::HIP_RUNTIME_TABLE => c"HIP (runtime)",
        InterceptTable::HIP_COMPILER_TABLE => c"HIP (compiler)",
        InterceptTable::MARKER_CORE_TABLE => c"MARKER (ROCTx)",
        InterceptTable::MARKER_CONTROL_TABLE => c"MARKER (ROCTx Control)",
        InterceptTable::MARKER_NAME_TABLE => c"MARKER (ROCTx Name)",
        InterceptTable::RCCL_TABLE => c"RCCL",
        InterceptTable::ROCDECODE_TABLE => c"rocDecode",
        InterceptTable::ROCJPEG_TABLE => c"rocJPEG",
        _ => return None,
    })
}

/// The name of a table and its length, which last for ever. Each place may be null.
///
/// # Safety
///
/// The places are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_intercept_table_name(
    table: InterceptTable,
    name: *mut *const c_char,
    length: *mut u64,
) -> Status {
    api(|| {
        let found = name_of(table);
        // SAFETY: the places are null or can be written to.
        unsafe { put_name(found, name, length, Status::ERROR_KIND_NOT_FOUND) }
    })
}
