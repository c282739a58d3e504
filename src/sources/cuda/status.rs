//! Statuses of CUDA's two APIs, which share their numbers.

use gputrail_record::Domain;

/// The status of work that has not completed: an answer, not an error.
pub(super) const NOT_READY: i32 = 600;

/// The name of a status.
pub(super) fn name(domain: Domain, status: i32) -> Option<&'static str> {
    let (_, driver, runtime) = STATUSES.iter().find(|(number, ..)| *number == status)?;
    Some(match domain {
        Domain::CUDA_RUNTIME => runtime,
        _ => driver,
    })
}

/// Numbers with their names in the driver and in the runtime API.
#[rustfmt::skip]
const STATUSES: &[(i32, &str, &str)] = &[
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
