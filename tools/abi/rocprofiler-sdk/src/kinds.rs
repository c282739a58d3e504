//! The kinds of callbacks and records, with the names and numbers of their operations.
//!
//! | kind | here |
//! |---|---|
//! | `HIP_RUNTIME_API`, `HIP_RUNTIME_API_EXT` | calls of OpenCL and of the simulated GPU's runtime, under the operation of HIP that does the same (`hip` has the table) |
//! | `CODE_OBJECT` | machine code of programs for a device, and their kernels |
//! | `KERNEL_DISPATCH`, `MEMORY_COPY`, `MEMORY_ALLOCATION` | kernels, and fills as those of a kernel `gputrail_fill`; copies, maps and migrations; memory and its release |
//! | `CORRELATION_ID_RETIREMENT`, `RUNTIME_INITIALIZATION` | the same |
//! | `HIP_STREAM` | queues; callbacks only |
//! | `MARKER_CORE_API`, `MARKER_CORE_RANGE_API` | markers and ranges of ROCTx, NVTX and gputrail |
//! | `GPUTRAIL_OPENCL_API`, `GPUTRAIL_SIMULATED_API` | all calls of OpenCL and of the simulated GPU's runtime, with the numbers of gputrail's operations |
//!
//! The other kinds can be configured, and nothing comes of them: HSA, RCCL, rocDecode, rocJPEG, OMPT, scratch memory, the compiler's
//! part of HIP, events of AMD's driver, and the names and the control of ROCTx. Kinds of gputrail are not visited with the
//! others: clients have tables of the numbers up to the last of AMD's.

use crate::hip;
use core::ffi::CStr;
use gputrail_abi::kept;
use gputrail_record::{Domain, Operation};
use gputrail_rocprofiler::*;
use gputrail_tool as tool;

/// `ROCPROFILER_BUFFER_TRACING_GPUTRAIL_OPENCL_API`, and of callbacks and requests: calls of OpenCL.
pub const OPENCL_API: i32 = 0x1000;
/// `ROCPROFILER_BUFFER_TRACING_GPUTRAIL_SIMULATED_API`: calls of the simulated GPU's runtime.
pub const SIMULATED_API: i32 = 0x1001;

/// The domain of a kind of gputrail's, and the name of the kind.
fn own(kind: i32) -> Option<(Domain, &'static CStr)> {
    match kind {
        OPENCL_API => Some((Domain::OPENCL, c"GPUTRAIL_OPENCL_API")),
        SIMULATED_API => Some((Domain::SIM, c"GPUTRAIL_SIMULATED_API")),
        _ => None,
    }
}

/// The kind of gputrail's for the calls of a domain.
pub fn of_calls(domain: Domain) -> Option<i32> {
    match domain {
        Domain::OPENCL => Some(OPENCL_API),
        Domain::SIM => Some(SIMULATED_API),
        _ => None,
    }
}

/// The name of a kind of buffers.
pub fn buffer_name(kind: BufferTracingKind) -> Option<&'static CStr> {
    kind.name().or_else(|| own(kind.0).map(|(_, name)| name))
}

/// The name of a kind of callbacks.
pub fn callback_name(kind: CallbackTracingKind) -> Option<&'static CStr> {
    kind.name().or_else(|| own(kind.0).map(|(_, name)| name))
}

/// The name of a kind of requests for external ids.
pub fn request_name(kind: ExternalCorrelationRequestKind) -> Option<&'static CStr> {
    kind.name().or_else(|| own(kind.0).map(|(_, name)| name))
}

/// Numbers and names.
pub type Named = Vec<(TracingOperation, &'static CStr)>;

/// The operations of an enumeration, whose names AMD writes with the name of the kind before them.
fn with(prefix: &str, all: impl Iterator<Item = (i32, &'static CStr)>) -> Named {
    let named = all.filter(|(number, _)| *number >= 0);
    let name = |name: &CStr| kept(&format!("{prefix}_{}", name.to_string_lossy()));
    named.map(|(number, of)| (number, name(of))).collect()
}

/// The operations of an enumeration, as they are called.
fn plain(all: impl Iterator<Item = (i32, &'static CStr)>) -> Named {
    all.filter(|(number, _)| *number >= 0).collect()
}

/// The numbers and names of an enumeration.
macro_rules! all {
    ($type:ident) => {
        $type::ALL.iter().map(|(number, name)| (number.0, *name))
    };
}

/// The operations of calls of a domain of gputrail's.
fn calls(domain: Domain) -> Named {
    let all = tool::operations(domain).unwrap_or_default().into_iter();
    let named = all.filter_map(|operation: Operation| {
        let name = tool::operation_name(operation)?;
        Some((TracingOperation::from(operation.number), kept(name)))
    });
    named.collect()
}

/// The operations of a kind of callbacks. Of kinds of which nothing comes there are none.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for `NONE`, `KIND_NOT_FOUND`.
pub fn of_callback(kind: CallbackTracingKind) -> Result<Named, Status> {
    use CallbackTracingKind as Kind;
    Ok(match kind {
        Kind::NONE => return Err(Status::ERROR_INVALID_ARGUMENT),
        Kind::HIP_RUNTIME_API => hip::runtime_operations(),
        Kind::HIP_COMPILER_API => hip::compiler_operations(),
        Kind::MARKER_CORE_API => plain(all!(MarkerCoreApi)),
        Kind::MARKER_CONTROL_API => plain(all!(MarkerControlApi)),
        Kind::MARKER_NAME_API => plain(all!(MarkerNameApi)),
        Kind::MARKER_CORE_RANGE_API => plain(all!(MarkerCoreRangeApi)),
        Kind::CODE_OBJECT => with("CODE_OBJECT", all!(CodeObjectOperation)),
        Kind::SCRATCH_MEMORY => with("SCRATCH_MEMORY", all!(ScratchMemoryOperation)),
        Kind::KERNEL_DISPATCH => with("KERNEL_DISPATCH", all!(KernelDispatchOperation)),
        Kind::MEMORY_COPY => with("MEMORY_COPY", all!(MemoryCopyOperation)),
        Kind::MEMORY_ALLOCATION => with("MEMORY_ALLOCATION", all!(MemoryAllocationOperation)),
        Kind::RUNTIME_INITIALIZATION => with(
            "RUNTIME_INITIALIZATION",
            all!(RuntimeInitializationOperation),
        ),
        Kind::HIP_STREAM => with("HIP_STREAM", all!(HipStreamOperation)),
        other => match own(other.0) {
            Some((domain, _)) => calls(domain),
            None if other.name().is_some() => Vec::new(),
            None => return Err(Status::ERROR_KIND_NOT_FOUND),
        },
    })
}

/// The operations of a kind of buffers. Of kinds of which nothing comes there are none.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for `NONE`, `NOT_IMPLEMENTED` for `CORRELATION_ID_RETIREMENT`, `KIND_NOT_FOUND`.
pub fn of_buffer(kind: BufferTracingKind) -> Result<Named, Status> {
    use BufferTracingKind as Kind;
    Ok(match kind {
        Kind::NONE => return Err(Status::ERROR_INVALID_ARGUMENT),
        Kind::CORRELATION_ID_RETIREMENT => return Err(Status::ERROR_NOT_IMPLEMENTED),
        Kind::HIP_RUNTIME_API | Kind::HIP_RUNTIME_API_EXT => hip::runtime_operations(),
        Kind::HIP_COMPILER_API | Kind::HIP_COMPILER_API_EXT => hip::compiler_operations(),
        Kind::KFD_EVENT_PAGE_MIGRATE => {
            with("KFD_EVENT_PAGE_MIGRATE", all!(KfdEventPageMigrateOperation))
        }
        Kind::KFD_EVENT_PAGE_FAULT => {
            with("KFD_EVENT_PAGE_FAULT", all!(KfdEventPageFaultOperation))
        }
        Kind::KFD_EVENT_QUEUE => with("KFD_EVENT_QUEUE", all!(KfdEventQueueOperation)),
        Kind::KFD_EVENT_UNMAP_FROM_GPU => with(
            "KFD_EVENT_UNMAP_FROM_GPU",
            all!(KfdEventUnmapFromGpuOperation),
        ),
        Kind::KFD_EVENT_DROPPED_EVENTS => with(
            "KFD_EVENT_DROPPED_EVENTS",
            all!(KfdEventDroppedEventsOperation),
        ),
        Kind::KFD_PAGE_MIGRATE => with("KFD_PAGE_MIGRATE", all!(KfdPageMigrateOperation)),
        Kind::KFD_PAGE_FAULT => with("KFD_PAGE_FAULT", all!(KfdPageFaultOperation)),
        Kind::KFD_QUEUE => with("KFD_QUEUE", all!(KfdQueueOperation)),
        other => match same_callback(other) {
            Some(same) => return of_callback(same),
            None if other.name().is_some() => Vec::new(),
            None => return Err(Status::ERROR_KIND_NOT_FOUND),
        },
    })
}

/// The kind of callbacks with the same operations.
fn same_callback(kind: BufferTracingKind) -> Option<CallbackTracingKind> {
    use {BufferTracingKind as Of, CallbackTracingKind as Same};
    Some(match kind {
        Of::MARKER_CORE_API => Same::MARKER_CORE_API,
        Of::MARKER_CONTROL_API => Same::MARKER_CONTROL_API,
        Of::MARKER_NAME_API => Same::MARKER_NAME_API,
        Of::MARKER_CORE_RANGE_API => Same::MARKER_CORE_RANGE_API,
        Of::SCRATCH_MEMORY => Same::SCRATCH_MEMORY,
        Of::KERNEL_DISPATCH => Same::KERNEL_DISPATCH,
        Of::MEMORY_COPY => Same::MEMORY_COPY,
        Of::MEMORY_ALLOCATION => Same::MEMORY_ALLOCATION,
        Of::RUNTIME_INITIALIZATION => Same::RUNTIME_INITIALIZATION,
        Of::HIP_STREAM => Same::HIP_STREAM,
        other => own(other.0).map(|_| CallbackTracingKind(other.0))?,
    })
}

/// Whether a service may name `operation`: it is one of `all`, or nothing comes of the kind, which has no operations here.
pub fn may_name(all: &Named, operation: TracingOperation) -> bool {
    let is_one = all.iter().any(|(number, _)| *number == operation);
    is_one || all.is_empty() && operation >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_and_operations_with_names_or_says_why_not() {
        for (kind, _) in CallbackTracingKind::ALL {
            assert!(callback_name(*kind).is_some(), "{kind:?}");
            match of_callback(*kind) {
                Ok(all) => assert!(all.iter().all(|(_, name)| !name.is_empty()), "{kind:?}"),
                Err(status) => assert_eq!(
                    (*kind, status),
                    (CallbackTracingKind::NONE, Status::ERROR_INVALID_ARGUMENT)
                ),
            }
        }
        for (kind, _) in BufferTracingKind::ALL {
            assert!(buffer_name(*kind).is_some(), "{kind:?}");
            let without = [
                BufferTracingKind::NONE,
                BufferTracingKind::CORRELATION_ID_RETIREMENT,
            ];
            assert_eq!(
                of_buffer(*kind).is_err(),
                without.contains(kind),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn names_are_as_amds_library_has_them() {
        let name = |kind, number| {
            let all = of_callback(kind).unwrap();
            let found = all.iter().find(|(one, _)| *one == number);
            found.map(|(_, name)| name.to_str().unwrap())
        };
        use CallbackTracingKind as Kind;
        assert_eq!(
            name(Kind::MEMORY_COPY, 2),
            Some("MEMORY_COPY_HOST_TO_DEVICE")
        );
        assert_eq!(
            name(Kind::KERNEL_DISPATCH, 1),
            Some("KERNEL_DISPATCH_ENQUEUE")
        );
        assert_eq!(name(Kind::HIP_STREAM, 3), Some("HIP_STREAM_SET"));
        assert_eq!(name(Kind::MARKER_CORE_API, 0), Some("roctxMarkA"));
        assert_eq!(name(Kind::MARKER_CORE_API, -1), None);
        assert_eq!(
            name(Kind::RUNTIME_INITIALIZATION, 2),
            Some("RUNTIME_INITIALIZATION_HIP")
        );
    }
}
