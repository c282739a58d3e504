//! The effects of the functions of ROCm's APIs, and whether they return a status: by their names, since the library tells no more.

use gputrail_record::{Domain, OperationGroup};

/// The kind of a function's result, of those that records have.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ResultType {
    /// A status.
    Status,
    /// Something else, or nothing.
    Other,
}

/// Whether calls of a function may enqueue work or allocate memory, so that they get ids even if only that is recorded. Calls
/// of HSA that are made for each dispatch, such as stores to signals, are left to those who record HSA: HIP makes them too.
pub(super) fn enqueues(domain: Domain, name: &str, group: OperationGroup) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match domain {
        Domain::HIP => {
            group == OperationGroup::ENQUEUE
                || has(&[
                    "Malloc",
                    "Alloc",
                    "Free",
                    "Synchronize",
                    "Register",
                    "ModuleLoad",
                ]) && !has(&["Get"])
        }
        Domain::HSA => has(&["_copy", "_allocate", "_free", "memory_fill"]),
        _ => false,
    }
}

/// The kind of a function's result. All but a few return a status.
pub(super) fn result(domain: Domain, name: &str) -> ResultType {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_status = match domain {
        Domain::HIP => !matches!(
            name,
            "hipGetErrorName"
                | "hipGetErrorString"
                | "hipApiName"
                | "hipKernelNameRef"
                | "hipKernelNameRefByPtr"
                | "hipGetStreamDeviceId"
                | "hipGetCmdName"
                | "hipCreateChannelDesc"
        ),
        Domain::HIP_COMPILER => has(&["CallConfiguration"]),
        Domain::HSA => {
            let is_value = has(&[
                "hsa_signal_load",
                "hsa_signal_store",
                "hsa_signal_silent_store",
                "hsa_signal_wait",
                "hsa_signal_and",
                "hsa_signal_or",
                "hsa_signal_xor",
                "hsa_signal_add",
                "hsa_signal_subtract",
                "hsa_signal_exchange",
                "hsa_signal_cas",
                "hsa_queue_load",
                "hsa_queue_store",
                "hsa_queue_add",
                "hsa_queue_cas",
                "hsa_amd_signal_wait",
                "hsa_amd_queue_get_info_value",
            ]);
            !is_value
        }
        Domain::RCCL => !matches!(name, "ncclGetErrorString" | "ncclGetLastError"),
        _ => false,
    };
    match is_status {
        true => ResultType::Status,
        false => ResultType::Other,
    }
}

/// The group of a function, by its name.
pub(super) fn group(domain: Domain, name: &str) -> OperationGroup {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if domain == Domain::OMPT {
        return OperationGroup::OTHER;
    }
    if domain == Domain::RCCL {
        return match name {
            _ if has(&["Get", "Count", "UserRank", "CuDevice"]) => OperationGroup::QUERY,
            _ if has(&["Init", "Split", "Create", "Alloc"]) => OperationGroup::CREATE,
            _ if has(&["Destroy", "Abort", "Finalize", "Free", "egister"]) => {
                OperationGroup::LIFETIME
            }
            _ if has(&["Group"]) => OperationGroup::OTHER,
            _ => OperationGroup::ENQUEUE,
        };
    }
    if has(&["Synchronize", "StreamWait", "_signal_wait", "_wait_"]) {
        OperationGroup::SYNCHRONIZE
    } else if has(&[
        "Launch",
        "Memcpy",
        "Memset",
        "MemPrefetch",
        "_copy",
        "memory_fill",
    ]) && !has(&["Get", "Graph", "Attribute"])
        || has(&["GraphLaunch"])
    {
        OperationGroup::ENQUEUE
    } else if has(&[
        "Get",
        "Query",
        "Peek",
        "IsCapturing",
        "_get_",
        "_iterate",
        "_info",
    ]) {
        OperationGroup::QUERY
    } else if has(&[
        "ModuleLoad",
        "Link",
        "hiprtc",
        "__hipRegister",
        "executable_load",
    ]) {
        OperationGroup::BUILD
    } else if has(&[
        "Create",
        "Alloc",
        "Malloc",
        "Instantiate",
        "_create",
        "_allocate",
    ]) {
        OperationGroup::CREATE
    } else if has(&[
        "Destroy", "Free", "Unload", "Release", "Retain", "_destroy", "_free",
    ]) {
        OperationGroup::LIFETIME
    } else if has(&["Set", "_set_", "CallConfiguration"]) {
        OperationGroup::SET
    } else {
        OperationGroup::OTHER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_of_a_function_follows_from_its_name() {
        for (domain, name, expected) in [
            (Domain::HIP, "hipLaunchKernel", OperationGroup::ENQUEUE),
            (
                Domain::HIP,
                "hipModuleLaunchKernel",
                OperationGroup::ENQUEUE,
            ),
            (Domain::HIP, "hipGraphLaunch", OperationGroup::ENQUEUE),
            (Domain::HIP, "hipMemcpyAsync", OperationGroup::ENQUEUE),
            (Domain::HIP, "hipGraphAddMemcpyNode", OperationGroup::OTHER),
            (Domain::HIP, "hipGetLastError", OperationGroup::QUERY),
            (
                Domain::HIP,
                "hipDeviceSynchronize",
                OperationGroup::SYNCHRONIZE,
            ),
            (Domain::HIP, "hipMalloc", OperationGroup::CREATE),
            (Domain::HIP, "hipFree", OperationGroup::LIFETIME),
            (Domain::HIP, "hipSetDevice", OperationGroup::SET),
            (
                Domain::HSA,
                "hsa_amd_memory_async_copy",
                OperationGroup::ENQUEUE,
            ),
            (Domain::HSA, "hsa_agent_get_info", OperationGroup::QUERY),
            (
                Domain::HSA,
                "hsa_signal_wait_scacquire",
                OperationGroup::SYNCHRONIZE,
            ),
            (Domain::RCCL, "ncclAllReduce", OperationGroup::ENQUEUE),
            (Domain::RCCL, "ncclCommInitRank", OperationGroup::CREATE),
        ] {
            assert_eq!(group(domain, name), expected, "{name}");
        }
        let works = |domain, name| enqueues(domain, name, group(domain, name));
        assert!(works(Domain::HIP, "hipMalloc") && works(Domain::HIP, "hipLaunchKernel"));
        assert!(!works(Domain::HIP, "hipGetDevice"));
        assert!(!works(Domain::HSA, "hsa_signal_store_screlease"));
        assert_eq!(
            result(Domain::HSA, "hsa_signal_load_relaxed"),
            ResultType::Other
        );
        assert_eq!(result(Domain::HSA, "hsa_signal_create"), ResultType::Status);
        assert_eq!(result(Domain::HIP, "hipGetErrorString"), ResultType::Other);
    }
}
