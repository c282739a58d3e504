//! The names of the codes that the functions of an API return.

use gputrail_record::Domain;

/// CUDA's code for work that has not completed: an answer, not an error.
pub const CUDA_NOT_READY: i32 = 600;

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
        _ => None,
    }
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
    }
}
