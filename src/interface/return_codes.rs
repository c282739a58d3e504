//! The names of the codes that the functions of an API return.

use gputrail_record::Domain;

/// CUDA's code for work that has not completed: an answer, not an error.
pub const CUDA_NOT_READY: i32 = 600;
/// HIP's code for work that has not completed.
const HIP_NOT_READY: i32 = 600;
/// HSA's code for an iteration that its caller has ended.
const HSA_INFO_BREAK: i32 = 1;
/// RCCL's code for an operation that has not completed.
const RCCL_IN_PROGRESS: i32 = 7;

/// Whether a code of ROCm's APIs that is not 0 is an answer, not an error.
pub fn is_answer(domain: Domain, code: i32) -> bool {
    match domain {
        Domain::HIP | Domain::HIP_COMPILER => code == HIP_NOT_READY,
        Domain::HSA => code == HSA_INFO_BREAK,
        Domain::RCCL => code == RCCL_IN_PROGRESS,
        _ => false,
    }
}

/// The code with its name, if it has one: `CL_INVALID_VALUE (-30)`.
pub fn text(domain: Domain, code: i32) -> String {
    match name(domain, code) {
        Some(name) => format!("{name} ({code})"),
        None => code.to_string(),
    }
}

/// The name of a code.
pub fn name(domain: Domain, code: i32) -> Option<&'static str> {
    match domain {
        Domain::OPENCL => of_opencl(code),
        Domain::CUDA_DRIVER | Domain::CUDA_RUNTIME => {
            let (_, driver, runtime) = CUDA.iter().find(|(number, ..)| *number == code)?;
            Some(if domain == Domain::CUDA_RUNTIME {
                runtime
            } else {
                driver
            })
        }
        Domain::SIM => SIMULATED.get(usize::try_from(code).ok()?).copied(),
        Domain::HIP | Domain::HIP_COMPILER => of_list(HIP, code),
        Domain::HSA => of_list(HSA, code),
        Domain::RCCL => RCCL.get(usize::try_from(code).ok()?).copied(),
        _ => None,
    }
}

fn of_list(list: &[(i32, &'static str)], code: i32) -> Option<&'static str> {
    let found = list.iter().find(|(number, _)| *number == code);
    found.map(|(_, name)| *name)
}

/// The codes of the simulated GPU.
const SIMULATED: [&str; 4] = ["SUCCESS", "INVALID_VALUE", "OUT_OF_MEMORY", "NOT_READY"];

fn of_opencl(code: i32) -> Option<&'static str> {
    Some(match code {
        -1 => "CL_DEVICE_NOT_FOUND",
        -2 => "CL_DEVICE_NOT_AVAILABLE",
        -3 => "CL_COMPILER_NOT_AVAILABLE",
        -4 => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        -5 => "CL_OUT_OF_RESOURCES",
        -6 => "CL_OUT_OF_HOST_MEMORY",
        -7 => "CL_PROFILING_INFO_NOT_AVAILABLE",
        -8 => "CL_MEM_COPY_OVERLAP",
        -9 => "CL_IMAGE_FORMAT_MISMATCH",
        -10 => "CL_IMAGE_FORMAT_NOT_SUPPORTED",
        -11 => "CL_BUILD_PROGRAM_FAILURE",
        -12 => "CL_MAP_FAILURE",
        -13 => "CL_MISALIGNED_SUB_BUFFER_OFFSET",
        -14 => "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
        -15 => "CL_COMPILE_PROGRAM_FAILURE",
        -16 => "CL_LINKER_NOT_AVAILABLE",
        -17 => "CL_LINK_PROGRAM_FAILURE",
        -18 => "CL_DEVICE_PARTITION_FAILED",
        -19 => "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
        -30 => "CL_INVALID_VALUE",
        -31 => "CL_INVALID_DEVICE_TYPE",
        -32 => "CL_INVALID_PLATFORM",
        -33 => "CL_INVALID_DEVICE",
        -34 => "CL_INVALID_CONTEXT",
        -35 => "CL_INVALID_QUEUE_PROPERTIES",
        -36 => "CL_INVALID_COMMAND_QUEUE",
        -37 => "CL_INVALID_HOST_PTR",
        -38 => "CL_INVALID_MEM_OBJECT",
        -39 => "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR",
        -40 => "CL_INVALID_IMAGE_SIZE",
        -41 => "CL_INVALID_SAMPLER",
        -42 => "CL_INVALID_BINARY",
        -43 => "CL_INVALID_BUILD_OPTIONS",
        -44 => "CL_INVALID_PROGRAM",
        -45 => "CL_INVALID_PROGRAM_EXECUTABLE",
        -46 => "CL_INVALID_KERNEL_NAME",
        -47 => "CL_INVALID_KERNEL_DEFINITION",
        -48 => "CL_INVALID_KERNEL",
        -49 => "CL_INVALID_ARG_INDEX",
        -50 => "CL_INVALID_ARG_VALUE",
        -51 => "CL_INVALID_ARG_SIZE",
        -52 => "CL_INVALID_KERNEL_ARGS",
        -53 => "CL_INVALID_WORK_DIMENSION",
        -54 => "CL_INVALID_WORK_GROUP_SIZE",
        -55 => "CL_INVALID_WORK_ITEM_SIZE",
        -56 => "CL_INVALID_GLOBAL_OFFSET",
        -57 => "CL_INVALID_EVENT_WAIT_LIST",
        -58 => "CL_INVALID_EVENT",
        -59 => "CL_INVALID_OPERATION",
        -60 => "CL_INVALID_GL_OBJECT",
        -61 => "CL_INVALID_BUFFER_SIZE",
        -62 => "CL_INVALID_MIP_LEVEL",
        -63 => "CL_INVALID_GLOBAL_WORK_SIZE",
        -64 => "CL_INVALID_PROPERTY",
        -65 => "CL_INVALID_IMAGE_DESCRIPTOR",
        -66 => "CL_INVALID_COMPILER_OPTIONS",
        -67 => "CL_INVALID_LINKER_OPTIONS",
        -68 => "CL_INVALID_DEVICE_PARTITION_COUNT",
        -69 => "CL_INVALID_PIPE_SIZE",
        -70 => "CL_INVALID_DEVICE_QUEUE",
        -71 => "CL_INVALID_SPEC_ID",
        -72 => "CL_MAX_SIZE_RESTRICTION_EXCEEDED",
        -1001 => "CL_PLATFORM_NOT_FOUND_KHR",
        _ => return None,
    })
}

/// CUDA's codes with their names in the driver and in the runtime API.
#[rustfmt::skip]
const CUDA: &[(i32, &str, &str)] = &[
    (0, "CUDA_SUCCESS", "cudaSuccess"),
    (1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue"),
    (2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"),
    (3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError"),
    (4, "CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading"),
    (100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice"),
    (101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice"),
    (200, "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage"),
    (201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized"),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice"),
    (218, "CUDA_ERROR_INVALID_PTX", "cudaErrorInvalidPtx"),
    (400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle"),
    (500, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound"),
    (600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress"),
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout"),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress"),
    (719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure"),
    (801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported"),
    (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported"),
    (999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown"),
];

/// HIP's codes with their names.
const HIP: &[(i32, &str)] = &[
    (0, "hipSuccess"),
    (1, "hipErrorInvalidValue"),
    (2, "hipErrorOutOfMemory"),
    (3, "hipErrorNotInitialized"),
    (4, "hipErrorDeinitialized"),
    (9, "hipErrorInvalidConfiguration"),
    (13, "hipErrorInvalidSymbol"),
    (17, "hipErrorInvalidDevicePointer"),
    (21, "hipErrorInvalidMemcpyDirection"),
    (35, "hipErrorInsufficientDriver"),
    (53, "hipErrorPriorLaunchFailure"),
    (98, "hipErrorInvalidDeviceFunction"),
    (100, "hipErrorNoDevice"),
    (101, "hipErrorInvalidDevice"),
    (200, "hipErrorInvalidImage"),
    (201, "hipErrorInvalidContext"),
    (205, "hipErrorMapFailed"),
    (209, "hipErrorNoBinaryForGpu"),
    (214, "hipErrorECCNotCorrectable"),
    (217, "hipErrorPeerAccessUnsupported"),
    (218, "hipErrorInvalidKernelFile"),
    (300, "hipErrorInvalidSource"),
    (301, "hipErrorFileNotFound"),
    (302, "hipErrorSharedObjectSymbolNotFound"),
    (303, "hipErrorSharedObjectInitFailed"),
    (304, "hipErrorOperatingSystem"),
    (400, "hipErrorInvalidHandle"),
    (401, "hipErrorIllegalState"),
    (500, "hipErrorNotFound"),
    (600, "hipErrorNotReady"),
    (700, "hipErrorIllegalAddress"),
    (701, "hipErrorLaunchOutOfResources"),
    (702, "hipErrorLaunchTimeOut"),
    (704, "hipErrorPeerAccessAlreadyEnabled"),
    (705, "hipErrorPeerAccessNotEnabled"),
    (709, "hipErrorContextIsDestroyed"),
    (710, "hipErrorAssert"),
    (712, "hipErrorHostMemoryAlreadyRegistered"),
    (713, "hipErrorHostMemoryNotRegistered"),
    (719, "hipErrorLaunchFailure"),
    (720, "hipErrorCooperativeLaunchTooLarge"),
    (801, "hipErrorNotSupported"),
    (900, "hipErrorStreamCaptureUnsupported"),
    (901, "hipErrorStreamCaptureInvalidated"),
    (904, "hipErrorStreamCaptureUnjoined"),
    (906, "hipErrorStreamCaptureImplicit"),
    (908, "hipErrorStreamCaptureWrongThread"),
    (910, "hipErrorGraphExecUpdateFailure"),
    (999, "hipErrorUnknown"),
    (1052, "hipErrorRuntimeMemory"),
    (1053, "hipErrorRuntimeOther"),
];

/// HSA's codes with their names.
#[rustfmt::skip]
const HSA: &[(i32, &str)] = &[
    (0, "HSA_STATUS_SUCCESS"),
    (1, "HSA_STATUS_INFO_BREAK"),
    (40, "HSA_STATUS_ERROR_INVALID_MEMORY_POOL"),
    (41, "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION"),
    (42, "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION"),
    (43, "HSA_STATUS_ERROR_MEMORY_FAULT"),
    (45, "HSA_STATUS_ERROR_OUT_OF_REGISTERS"),
    (46, "HSA_STATUS_ERROR_RESOURCE_BUSY"),
    (47, "HSA_STATUS_ERROR_NOT_SUPPORTED"),
    (48, "HSA_STATUS_ERROR_XNACK_DISABLED"),
    (49, "HSA_STATUS_ERROR_INVALID_DISPATCH_PARAMETERS"),
    (0x1000, "HSA_STATUS_ERROR"),
    (0x1001, "HSA_STATUS_ERROR_INVALID_ARGUMENT"),
    (0x1002, "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION"),
    (0x1003, "HSA_STATUS_ERROR_INVALID_ALLOCATION"),
    (0x1004, "HSA_STATUS_ERROR_INVALID_AGENT"),
    (0x1005, "HSA_STATUS_ERROR_INVALID_REGION"),
    (0x1006, "HSA_STATUS_ERROR_INVALID_SIGNAL"),
    (0x1007, "HSA_STATUS_ERROR_INVALID_QUEUE"),
    (0x1008, "HSA_STATUS_ERROR_OUT_OF_RESOURCES"),
    (0x1009, "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT"),
    (0x100a, "HSA_STATUS_ERROR_RESOURCE_FREE"),
    (0x100b, "HSA_STATUS_ERROR_NOT_INITIALIZED"),
    (0x100c, "HSA_STATUS_ERROR_REFCOUNT_OVERFLOW"),
    (0x100d, "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS"),
    (0x100e, "HSA_STATUS_ERROR_INVALID_INDEX"),
    (0x100f, "HSA_STATUS_ERROR_INVALID_ISA"),
    (0x1010, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT"),
    (0x1011, "HSA_STATUS_ERROR_INVALID_EXECUTABLE"),
    (0x1012, "HSA_STATUS_ERROR_FROZEN_EXECUTABLE"),
    (0x1013, "HSA_STATUS_ERROR_INVALID_SYMBOL_NAME"),
    (0x1014, "HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED"),
    (0x1015, "HSA_STATUS_ERROR_VARIABLE_UNDEFINED"),
    (0x1016, "HSA_STATUS_ERROR_EXCEPTION"),
    (0x1017, "HSA_STATUS_ERROR_INVALID_ISA_NAME"),
    (0x1018, "HSA_STATUS_ERROR_INVALID_CODE_SYMBOL"),
    (0x1019, "HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL"),
    (0x1020, "HSA_STATUS_ERROR_INVALID_FILE"),
    (0x1021, "HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER"),
    (0x1022, "HSA_STATUS_ERROR_INVALID_CACHE"),
    (0x1023, "HSA_STATUS_ERROR_INVALID_WAVEFRONT"),
    (0x1024, "HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP"),
    (0x1025, "HSA_STATUS_ERROR_INVALID_RUNTIME_STATE"),
    (0x1026, "HSA_STATUS_ERROR_FATAL"),
];

/// RCCL's codes.
const RCCL: [&str; 8] = [
    "ncclSuccess",
    "ncclUnhandledCudaError",
    "ncclSystemError",
    "ncclInternalError",
    "ncclInvalidArgument",
    "ncclInvalidUsage",
    "ncclRemoteError",
    "ncclInProgress",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_codes_have_names_and_others_are_numbers() {
        assert_eq!(text(Domain::OPENCL, -30), "CL_INVALID_VALUE (-30)");
        assert_eq!(text(Domain::OPENCL, -12345), "-12345");
        assert_eq!(text(Domain::SIM, 2), "OUT_OF_MEMORY (2)");
        assert_eq!(text(Domain::SIM, -30), "-30");
        assert_eq!(name(Domain::CUDA_RUNTIME, 0), Some("cudaSuccess"));
        assert_eq!(name(Domain::CUDA_DRIVER, 0), Some("CUDA_SUCCESS"));
        assert_eq!(name(Domain::HIP, 98), Some("hipErrorInvalidDeviceFunction"));
        let resources = name(Domain::HSA, 0x1008);
        assert_eq!(resources, Some("HSA_STATUS_ERROR_OUT_OF_RESOURCES"));
        assert_eq!(name(Domain::RCCL, 7), Some("ncclInProgress"));
        assert_eq!(name(Domain::OMPT, 1), None);
        assert!(is_answer(Domain::HIP, 600) && !is_answer(Domain::HSA, 600));
    }
}
