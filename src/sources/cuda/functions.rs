//! The functions of CUDA's two APIs: their names come from the library, their effect follows from the name, and the
//! arguments of frequent functions are listed here.

use super::ffi::{self, Cupti, call};
use core::ffi::{CStr, c_void};
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_collect::operations::OperationInfo;
use gputrail_collect::switchboard::{ArgumentInfo, Observed};
use gputrail_record::{ArgumentType, Domain, MemoryKind, Operation, OperationGroup, TransferKind};

/// The largest callback number that is looked up, and that the switchboard has room for.
const MAX_NUMBER: u32 = 1023;
/// The most arguments of a function.
pub(super) const MAX_ARGUMENTS: usize = 12;

/// A function.
pub(super) struct CudaFunction {
    pub info: OperationInfo,
    /// What it does inside of its call, for subscribers.
    pub effect: Effect,
    /// Whether it enqueues work of which CUPTI makes a record, unless it copies or fills nothing.
    enqueues: bool,
    /// The place of the argument that says how much it copies or fills, if it is known.
    size: Option<usize>,
    /// Where the values of its arguments lie in CUPTI's structure: offset and type.
    pub places: Vec<(usize, Type)>,
}

/// What a function of the driver does, as far as its arguments say.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Nothing that subscribers are told.
    None,
    /// Launches a kernel, whose grid is among the arguments.
    Launch,
    /// Launches a kernel, whose grid is in the structure that the first argument leads to.
    LaunchByConfiguration,
    Copy(TransferKind),
    /// Fills elements of so many bytes.
    Fill(u16),
    Allocate(MemoryKind),
    Free(MemoryKind),
    /// Launches the graph that is the first argument.
    LaunchGraph,
}

impl Effect {
    /// The effect of the function with this name, without the suffix of its variants.
    pub fn of(name: &str) -> Effect {
        match name {
            "cuLaunchKernel" | "cuLaunchCooperativeKernel" => Effect::Launch,
            "cuLaunchKernelEx" => Effect::LaunchByConfiguration,
            "cuMemcpy" | "cuMemcpyAsync" => Effect::Copy(TransferKind::UNKNOWN),
            "cuMemcpyHtoD_v2" | "cuMemcpyHtoDAsync_v2" => {
                Effect::Copy(TransferKind::HOST_TO_DEVICE)
            }
            "cuMemcpyDtoH_v2" | "cuMemcpyDtoHAsync_v2" => {
                Effect::Copy(TransferKind::DEVICE_TO_HOST)
            }
            "cuMemcpyDtoD_v2" | "cuMemcpyDtoDAsync_v2" => {
                Effect::Copy(TransferKind::DEVICE_TO_DEVICE)
            }
            "cuMemsetD8_v2" | "cuMemsetD8Async" => Effect::Fill(1),
            "cuMemsetD32_v2" | "cuMemsetD32Async" => Effect::Fill(4),
            "cuMemAlloc_v2" | "cuMemAllocAsync" => Effect::Allocate(MemoryKind::DEVICE),
            "cuMemAllocManaged" => Effect::Allocate(MemoryKind::MANAGED),
            "cuMemAllocHost_v2" => Effect::Allocate(MemoryKind::PINNED),
            "cuMemFree_v2" | "cuMemFreeAsync" => Effect::Free(MemoryKind::DEVICE),
            "cuMemFreeHost" => Effect::Free(MemoryKind::PINNED),
            "cuGraphLaunch" => Effect::LaunchGraph,
            _ => Effect::None,
        }
    }

    /// Whether the function launches a kernel or a graph.
    pub fn is_launch(self) -> bool {
        matches!(
            self,
            Effect::Launch | Effect::LaunchByConfiguration | Effect::LaunchGraph
        )
    }
}

/// The names of arguments that say how much is copied or filled.
const SIZES: [&str; 3] = ["ByteCount", "N", "count"];

impl CudaFunction {
    /// Whether CUPTI makes a record of what a call has enqueued.
    ///
    /// # Safety
    ///
    /// `parameters` is null or leads to CUPTI's structure with the arguments of this function.
    #[inline]
    pub unsafe fn has_record(&self, parameters: *const c_void) -> bool {
        let is_empty = |at: usize| {
            let size = parameters.cast::<u8>().wrapping_add(at).cast::<u64>();
            // SAFETY: `parameters` is read where it is not null: then it leads to the function's structure, and arguments of
            // these names are sizes, with 8 bytes at `at`.
            !parameters.is_null() && unsafe { size.read_unaligned() } == 0
        };
        self.enqueues && !self.size.is_some_and(is_empty)
    }
}

/// The functions of both APIs, found once. Indexed by domain and number.
static FUNCTIONS: OnceBox<[Vec<Option<CudaFunction>>; 2]> = OnceBox::new();

/// The domain of CUPTI's callbacks of an API.
pub(super) fn callback_domain(domain: Domain) -> u32 {
    match domain {
        Domain::CUDA_RUNTIME => ffi::RUNTIME_API,
        _ => ffi::DRIVER_API,
    }
}

/// The API of a domain of CUPTI's callbacks.
pub(super) fn api_of(callback_domain: u32) -> Option<Domain> {
    match callback_domain {
        ffi::DRIVER_API => Some(Domain::CUDA_DRIVER),
        ffi::RUNTIME_API => Some(Domain::CUDA_RUNTIME),
        _ => None,
    }
}

fn row(domain: Domain) -> usize {
    usize::from(domain == Domain::CUDA_RUNTIME)
}

/// Asks the library for the names of all functions.
pub(super) fn find(cupti: &Cupti) {
    FUNCTIONS.get_or_init(|| {
        [Domain::CUDA_DRIVER, Domain::CUDA_RUNTIME].map(|domain| {
            let mut functions: Vec<Option<CudaFunction>> = Vec::new();
            for (number, name) in names(cupti, domain) {
                functions.resize_with(usize::from(number), || None);
                functions.push(Some(describe(domain, number, name)));
            }
            functions
        })
    });
}

/// The functions of an API; none before the library was found.
pub(super) fn all(domain: Domain) -> impl Iterator<Item = &'static CudaFunction> {
    let rows = FUNCTIONS.get().map(|rows| &rows[row(domain)]);
    rows.into_iter().flatten().flatten()
}

/// The function of an operation.
#[inline]
pub(super) fn get(operation: Operation) -> Option<&'static CudaFunction> {
    let rows = FUNCTIONS.get()?;
    rows[row(operation.domain)]
        .get(operation.number as usize)?
        .as_ref()
}

fn name_of(cupti: &Cupti, domain: u32, number: u32) -> Option<&'static str> {
    let mut name = core::ptr::null();
    // SAFETY: CUPTI writes the address of a text of its own to a local, and refuses a domain or number that it does not
    // know.
    let status = unsafe { call!(cupti, cuptiGetCallbackName(domain, number, &raw mut name)) }?;
    if status != ffi::SUCCESS || name.is_null() {
        return None;
    }
    // SAFETY: a text of the library, which is never unloaded.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    Some(without_version(name))
}

/// The numbers and names of all functions of an API.
pub(super) fn names(cupti: &Cupti, domain: Domain) -> Vec<(u16, &'static str)> {
    let domain = callback_domain(domain);
    let named = |number| Some((number as u16, name_of(cupti, domain, number)?));
    (1..=MAX_NUMBER).filter_map(named).collect()
}

/// The name without the version of the runtime in which the function came: `cudaMalloc_v3020`.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((name, version))
            if version.len() >= 4 && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => name,
    }
}

fn describe(domain: Domain, number: u16, name: &'static str) -> CudaFunction {
    let group = group(name);
    // Variants for the default stream of each thread take the same arguments.
    let base = name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    let row = ARGUMENTS.iter().find(|(of, _)| *of == base);
    let (arguments, places) = row.map_or((&[][..], Vec::new()), |(_, arguments)| {
        let infos = arguments.iter().map(|(name, kind)| kind.info(name));
        // Once in a process.
        let infos: &'static [ArgumentInfo] = Vec::leak(infos.collect());
        (infos, places(arguments))
    });
    let effect = match domain {
        Domain::CUDA_DRIVER => Effect::of(base),
        // Its functions call those of the driver.
        _ => Effect::None,
    };
    CudaFunction {
        effect,
        size: places
            .iter()
            .zip(arguments)
            .find(|(_, argument)| SIZES.contains(&argument.name))
            .map(|((at, _), _)| *at),
        // CUPTI makes no record of what the host does in a stream, nor of a hint where memory is wanted.
        enqueues: group == OperationGroup::ENQUEUE
            && !["LaunchHostFunc", "MemPrefetch"]
                .iter()
                .any(|word| name.contains(word)),
        info: OperationInfo {
            operation: Operation { domain, number },
            name,
            group,
            arguments,
            keeps_arguments: !arguments.is_empty(),
            observed: match group {
                OperationGroup::QUERY | OperationGroup::SET => Observed::No,
                // Waits, too: CUPTI reports them as synchronization.
                _ => Observed::Work,
            },
        },
        places,
    }
}

/// The group of a function, by its name.
fn group(name: &str) -> OperationGroup {
    let rest = name.strip_prefix("cuda").or(name.strip_prefix("cu"));
    let rest = rest.unwrap_or(name);
    let has = |words: &[&str]| words.iter().any(|word| rest.contains(word));
    let begins = |words: &[&str]| words.iter().any(|word| rest.starts_with(word));
    if has(&["Synchronize", "StreamWait"]) {
        OperationGroup::SYNCHRONIZE
    } else if has(&["Get", "Query", "Peek", "IsCapturing"]) && !has(&["Launch"]) {
        OperationGroup::QUERY
    } else if begins(&["Memcpy", "Memset", "MemPrefetch", "Launch", "GraphLaunch"]) {
        OperationGroup::ENQUEUE
    } else if has(&["Load", "Link"]) && !has(&["Unload"]) {
        OperationGroup::BUILD
    } else if has(&["Create", "Alloc", "Instantiate"]) {
        OperationGroup::CREATE
    } else if has(&["Destroy", "Free", "Unload", "Release", "Retain"]) {
        OperationGroup::LIFETIME
    } else if has(&["Set", "PushCurrent", "PopCurrent", "PushCallConfiguration"]) {
        OperationGroup::SET
    } else {
        OperationGroup::OTHER
    }
}

/// The type of an argument.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Type {
    /// A pointer or handle.
    Pointer,
    U8,
    U32,
    I32,
    /// A size.
    Size,
}

impl Type {
    const fn bytes(self) -> usize {
        match self {
            Type::U8 => 1,
            Type::U32 | Type::I32 => 4,
            Type::Pointer | Type::Size => 8,
        }
    }

    fn info(self, name: &'static str) -> ArgumentInfo {
        let (type_name, kept) = match self {
            Type::Pointer => ("*mut c_void", ArgumentType::POINTER),
            Type::U8 => ("u8", ArgumentType::UNSIGNED),
            Type::U32 => ("u32", ArgumentType::UNSIGNED),
            Type::I32 => ("i32", ArgumentType::SIGNED),
            Type::Size => ("usize", ArgumentType::UNSIGNED),
        };
        ArgumentInfo {
            name,
            type_name,
            kept: Some(kept),
        }
    }
}

/// Where a C structure with these members has them.
pub(super) fn places(arguments: &[(&str, Type)]) -> Vec<(usize, Type)> {
    let mut end = 0_usize;
    let place = |(_, kind): &(&str, Type)| {
        let start = end.next_multiple_of(kind.bytes());
        end = start + kind.bytes();
        (start, *kind)
    };
    arguments.iter().map(place).collect()
}

/// Reads the arguments of a call.
///
/// # Safety
///
/// `parameters` is null or leads to CUPTI's structure with the arguments of this function.
pub(super) unsafe fn arguments(
    function: &CudaFunction,
    parameters: *const c_void,
    values: &mut [u64; MAX_ARGUMENTS],
) -> usize {
    if parameters.is_null() {
        return 0;
    }
    for (value, (offset, kind)) in values.iter_mut().zip(&function.places) {
        let at = parameters.cast::<u8>().wrapping_add(*offset);
        // SAFETY: `parameters` is not null, so that it leads to the function's structure, which has a member of this type at
        // `offset`.
        *value = unsafe {
            match kind {
                Type::U8 => u64::from(at.read()),
                Type::U32 => u64::from(at.cast::<u32>().read_unaligned()),
                Type::I32 => i64::from(at.cast::<i32>().read_unaligned()) as u64,
                Type::Pointer | Type::Size => at.cast::<u64>().read_unaligned(),
            }
        };
    }
    function.places.len().min(MAX_ARGUMENTS)
}

/// A function's name, and its arguments in the order of CUPTI's structure.
type FunctionArguments = (&'static str, &'static [(&'static str, Type)]);

/// The arguments of frequent functions.
#[rustfmt::skip]
pub(super) const ARGUMENTS: &[FunctionArguments] = {
    use Type::{I32, Pointer, Size, U8, U32};
    &[
        ("cuInit", &[("Flags", U32)]),
        ("cuCtxCreate_v2", &[("pctx", Pointer), ("flags", U32), ("dev", I32)]),
        ("cuCtxSetCurrent", &[("ctx", Pointer)]),
        ("cuModuleLoadData", &[("module", Pointer), ("image", Pointer)]),
        ("cuModuleGetFunction", &[("hfunc", Pointer), ("hmod", Pointer), ("name", Pointer)]),
        ("cuMemAlloc_v2", &[("dptr", Pointer), ("bytesize", Size)]),
        ("cuMemAllocAsync", &[("dptr", Pointer), ("bytesize", Size), ("hStream", Pointer)]),
        ("cuMemAllocManaged", &[("dptr", Pointer), ("bytesize", Size), ("flags", U32)]),
        ("cuMemAllocHost_v2", &[("pp", Pointer), ("bytesize", Size)]),
        ("cuMemFree_v2", &[("dptr", Pointer)]),
        ("cuMemFreeAsync", &[("dptr", Pointer), ("hStream", Pointer)]),
        ("cuMemFreeHost", &[("p", Pointer)]),
        ("cuMemcpy", &[("dst", Pointer), ("src", Pointer), ("ByteCount", Size)]),
        ("cuMemcpyAsync", &[("dst", Pointer), ("src", Pointer), ("ByteCount", Size), ("hStream", Pointer)]),
        ("cuMemcpyHtoD_v2", &[("dstDevice", Pointer), ("srcHost", Pointer), ("ByteCount", Size)]),
        ("cuMemcpyDtoH_v2", &[("dstHost", Pointer), ("srcDevice", Pointer), ("ByteCount", Size)]),
        ("cuMemcpyDtoD_v2", &[("dstDevice", Pointer), ("srcDevice", Pointer), ("ByteCount", Size)]),
        ("cuMemcpyHtoDAsync_v2", &[("dstDevice", Pointer), ("srcHost", Pointer), ("ByteCount", Size), ("hStream", Pointer)]),
        ("cuMemcpyDtoHAsync_v2", &[("dstHost", Pointer), ("srcDevice", Pointer), ("ByteCount", Size), ("hStream", Pointer)]),
        ("cuMemcpyDtoDAsync_v2", &[("dstDevice", Pointer), ("srcDevice", Pointer), ("ByteCount", Size), ("hStream", Pointer)]),
        ("cuMemcpyPeer", &[
            ("dstDevice", Pointer), ("dstContext", Pointer), ("srcDevice", Pointer), ("srcContext", Pointer),
            ("ByteCount", Size),
        ]),
        ("cuMemcpyPeerAsync", &[
            ("dstDevice", Pointer), ("dstContext", Pointer), ("srcDevice", Pointer), ("srcContext", Pointer),
            ("ByteCount", Size), ("hStream", Pointer),
        ]),
        ("cuMemsetD8_v2", &[("dstDevice", Pointer), ("uc", U8), ("N", Size)]),
        ("cuMemsetD32_v2", &[("dstDevice", Pointer), ("ui", U32), ("N", Size)]),
        ("cuMemsetD8Async", &[("dstDevice", Pointer), ("uc", U8), ("N", Size), ("hStream", Pointer)]),
        ("cuMemsetD32Async", &[("dstDevice", Pointer), ("ui", U32), ("N", Size), ("hStream", Pointer)]),
        ("cuLaunchKernel", &[
            ("f", Pointer), ("gridDimX", U32), ("gridDimY", U32), ("gridDimZ", U32), ("blockDimX", U32),
            ("blockDimY", U32), ("blockDimZ", U32), ("sharedMemBytes", U32), ("hStream", Pointer),
            ("kernelParams", Pointer), ("extra", Pointer),
        ]),
        ("cuLaunchKernelEx", &[("config", Pointer), ("f", Pointer), ("kernelParams", Pointer), ("extra", Pointer)]),
        ("cuLaunchCooperativeKernel", &[
            ("f", Pointer), ("gridDimX", U32), ("gridDimY", U32), ("gridDimZ", U32), ("blockDimX", U32),
            ("blockDimY", U32), ("blockDimZ", U32), ("sharedMemBytes", U32), ("hStream", Pointer),
            ("kernelParams", Pointer),
        ]),
        ("cuGraphLaunch", &[("hGraph", Pointer), ("hStream", Pointer)]),
        ("cuStreamCreate", &[("phStream", Pointer), ("Flags", U32)]),
        ("cuStreamSynchronize", &[("hStream", Pointer)]),
        ("cuStreamWaitEvent", &[("hStream", Pointer), ("hEvent", Pointer), ("Flags", U32)]),
        ("cuEventRecord", &[("hEvent", Pointer), ("hStream", Pointer)]),
        ("cuEventSynchronize", &[("hEvent", Pointer)]),
        ("cudaSetDevice", &[("device", I32)]),
        ("cudaMalloc", &[("devPtr", Pointer), ("size", Size)]),
        ("cudaMallocAsync", &[("devPtr", Pointer), ("size", Size), ("hStream", Pointer)]),
        ("cudaMallocManaged", &[("devPtr", Pointer), ("size", Size), ("flags", U32)]),
        ("cudaMallocHost", &[("ptr", Pointer), ("size", Size)]),
        ("cudaHostAlloc", &[("pHost", Pointer), ("size", Size), ("flags", U32)]),
        ("cudaFree", &[("devPtr", Pointer)]),
        ("cudaFreeAsync", &[("devPtr", Pointer), ("hStream", Pointer)]),
        ("cudaFreeHost", &[("ptr", Pointer)]),
        ("cudaMemcpy", &[("dst", Pointer), ("src", Pointer), ("count", Size), ("kind", I32)]),
        ("cudaMemcpyAsync", &[("dst", Pointer), ("src", Pointer), ("count", Size), ("kind", I32), ("stream", Pointer)]),
        ("cudaMemcpyPeer", &[("dst", Pointer), ("dstDevice", I32), ("src", Pointer), ("srcDevice", I32), ("count", Size)]),
        ("cudaMemcpyPeerAsync", &[
            ("dst", Pointer), ("dstDevice", I32), ("src", Pointer), ("srcDevice", I32), ("count", Size), ("stream", Pointer),
        ]),
        ("cudaMemset", &[("devPtr", Pointer), ("value", I32), ("count", Size)]),
        ("cudaMemsetAsync", &[("devPtr", Pointer), ("value", I32), ("count", Size), ("stream", Pointer)]),
        ("cudaLaunchKernel", &[
            ("func", Pointer), ("gridDim.x", U32), ("gridDim.y", U32), ("gridDim.z", U32), ("blockDim.x", U32),
            ("blockDim.y", U32), ("blockDim.z", U32), ("args", Pointer), ("sharedMem", Size), ("stream", Pointer),
        ]),
        ("cudaGraphLaunch", &[("graphExec", Pointer), ("stream", Pointer)]),
        ("cudaStreamCreate", &[("pStream", Pointer)]),
        ("cudaStreamCreateWithFlags", &[("pStream", Pointer), ("flags", U32)]),
        ("cudaStreamSynchronize", &[("stream", Pointer)]),
        ("cudaStreamWaitEvent", &[("stream", Pointer), ("event", Pointer), ("flags", U32)]),
        ("cudaEventRecord", &[("event", Pointer), ("stream", Pointer)]),
        ("cudaEventSynchronize", &[("event", Pointer)]),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_the_version_of_the_runtime_only() {
        for (name, short) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel_ptsz"),
            ("cudaMemPoolCreate_v11020", "cudaMemPoolCreate"),
            ("cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2"),
            ("cuInit", "cuInit"),
        ] {
            assert_eq!(without_version(name), short);
        }
    }

    #[test]
    fn the_effect_of_a_function_follows_from_its_name() {
        for (name, expected) in [
            ("cuLaunchKernel", OperationGroup::ENQUEUE),
            ("cudaLaunchKernelExC", OperationGroup::ENQUEUE),
            ("cuGraphLaunch", OperationGroup::ENQUEUE),
            ("cudaMemcpyAsync", OperationGroup::ENQUEUE),
            ("cudaMemsetAsync", OperationGroup::ENQUEUE),
            ("cudaGetLastError", OperationGroup::QUERY),
            ("cudaStreamIsCapturing", OperationGroup::QUERY),
            ("cuEventQuery", OperationGroup::QUERY),
            ("cudaDeviceSynchronize", OperationGroup::SYNCHRONIZE),
            ("cuStreamWaitEvent", OperationGroup::SYNCHRONIZE),
            ("cuModuleLoadData", OperationGroup::BUILD),
            ("cuModuleUnload", OperationGroup::LIFETIME),
            ("cuMemAlloc_v2", OperationGroup::CREATE),
            ("cudaFree", OperationGroup::LIFETIME),
            ("cudaSetDevice", OperationGroup::SET),
        ] {
            assert_eq!(group(name), expected, "{name}");
        }
    }

    #[test]
    fn arguments_are_read_where_c_puts_them() {
        #[repr(C)]
        struct Launch {
            function: u64,
            grid: [u32; 3],
            block: [u32; 3],
            arguments: u64,
            shared: u64,
            stream: u64,
        }
        let call = Launch {
            function: 1,
            grid: [2, 3, 4],
            block: [5, 6, 7],
            arguments: 8,
            shared: 9,
            stream: 10,
        };
        let function = describe(Domain::CUDA_RUNTIME, 211, "cudaLaunchKernel");
        let mut values = [0; MAX_ARGUMENTS];
        // SAFETY: the structure of this function.
        let count = unsafe { arguments(&function, (&raw const call).cast(), &mut values) };
        assert_eq!(values[..count], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(function.info.arguments.len(), count);
        assert!(ARGUMENTS.iter().all(|(_, all)| all.len() <= MAX_ARGUMENTS));
    }

    #[test]
    fn nothing_is_recorded_of_a_copy_of_no_bytes() {
        let has_record = |name, structure: &[u64]| {
            let function = describe(Domain::CUDA_DRIVER, 1, name);
            // SAFETY: the structure of this function, of members of 8 bytes.
            unsafe { function.has_record(structure.as_ptr().cast()) }
        };
        assert!(has_record("cuMemcpyHtoD_v2", &[1, 2, 3]));
        assert!(!has_record("cuMemcpyHtoD_v2", &[1, 2, 0]));
        assert!(!has_record("cuMemcpyPeerAsync", &[1, 2, 3, 4, 0, 6]));
        assert!(has_record("cuGraphLaunch", &[1, 0]));
        assert!(!has_record("cuStreamSynchronize", &[1]));
    }
}
