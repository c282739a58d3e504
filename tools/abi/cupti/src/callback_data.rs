//! The data of callbacks, by domain.
//!
//! | domain | callback ids | data |
//! |---|---|---|
//! | driver, runtime | those of the function of CUDA that does the same ([`cuda`]) | `CUpti_CallbackData` |
//! | driver | `CUPTI_CBID_GPUTRAIL` (0x10000) plus the number of the OpenCL function, which never changes | `CUpti_CallbackData` |
//! | runtime | the same, of the simulated GPU's runtime | `CUpti_CallbackData` |
//! | resource | `CUPTI_CBID_RESOURCE_*` (`domain` has each) | `CUpti_ResourceData` |
//! | synchronize | `CUPTI_CBID_SYNCHRONIZE_*`, after the host waited for a queue or context | `CUpti_SynchronizeData` |
//! | NVTX | `CUPTI_CBID_GPUTRAIL` plus a `CUpti_GputrailMarker`; markers of NVTX, ROCTx, CLPerfMarker and gputrail | `CUpti_NvtxData` |
//!
//! A call is told under each of its ids that is enabled, within each other: the runtime's, the driver's, gputrail's.
//!
//! Under an id of CUDA, `functionParams` points to the structure of the function (`generated_cuda_meta.h`, `generated_cuda_runtime_api_meta.h`), and `functionReturnValue` to its
//! status. Under gputrail's own, `functionParams` points to `CUpti_GputrailParams`: the number of arguments, and their values in the order of the signature, 8
//! bytes each. `functionReturnValue` points to 8 bytes at exit, and is null at enter; `correlationData` is 0 at enter. Calls made
//! by a callback are not reported.

use crate::callback::Client;
use crate::cuda;
use crate::domain::{self, CallbackDomain};
use crate::layout::{Layout, layout};
use crate::objects::{CUcontext, CUstream, handle_of_context, handle_of_stream};
use core::ffi::{CStr, c_char, c_void};
use gputrail_abi::activity::stream_of;
use gputrail_abi::functions::{Arguments, Made, error_of, returned};
use gputrail_abi::{kept, names};
use gputrail_record::{
    CodeObject, Context, ContextId, Domain, GraphChange, GraphOperation, Marker, MarkerKind,
    Module, Queue, QueueId, StreamId, Synchronization,
};
use gputrail_tool::{Callback, describe};
use std::ptr::{null, null_mut, without_provenance_mut};

/// `CUPTI_GPUTRAIL_PARAMS`
const PARAMS: usize = 32;

/// `CUpti_GputrailParams`
#[repr(C)]
struct Params {
    count: u64,
    values: [u64; PARAMS],
}

/// `CUpti_CallbackData`
#[repr(C)]
pub struct CallbackData {
    callback_site: u32,
    function_name: *const c_char,
    function_params: *const c_void,
    function_return_value: *mut c_void,
    symbol_name: *const c_char,
    context: CUcontext,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

/// `CUpti_ResourceData`
#[repr(C)]
pub struct ResourceData {
    context: CUcontext,
    stream: CUstream,
    resource_descriptor: *mut c_void,
}

/// `CUpti_ModuleResourceData`
#[repr(C)]
struct ModuleData {
    module_id: u32,
    cubin_size: usize,
    cubin: *const c_char,
}

/// The fields of `CUpti_GraphData` behind those of nodes, which are others from CUDA 11 on.
#[repr(C)]
struct GraphLinks {
    node_type: u32,
    dependency: *mut c_void,
    graph_exec: *mut c_void,
}

/// `CUpti_GraphData` of CUDA 10
#[repr(C)]
struct FirstGraphData {
    graph: *mut c_void,
    original_graph: *mut c_void,
    node: *mut c_void,
    links: GraphLinks,
}

/// `CUpti_GraphData`
#[repr(C)]
struct GraphData {
    graph: *mut c_void,
    original_graph: *mut c_void,
    node: *mut c_void,
    /// Of a clone; which one it is of is not known.
    original_node: *mut c_void,
    links: GraphLinks,
}

/// `CUpti_SynchronizeData`
#[repr(C)]
pub struct SynchronizeData {
    context: CUcontext,
    stream: CUstream,
}

/// `CUpti_NvtxData`
#[repr(C)]
pub struct NvtxData {
    function_name: *const c_char,
    function_params: *const c_void,
    /// Null: ranges are told when they begin. CUDA 10 ends before it.
    function_return_value: *const c_void,
}

/// `CUpti_GputrailMarkerParams`
#[repr(C)]
struct MarkerParams {
    id: u64,
    name: *const c_char,
    domain: *const c_char,
    category: *const c_char,
    color: u32,
    thread_id: u32,
}

/// The words that the program's function keeps from the enter of a call to its exit, under each id.
#[derive(Copy, Clone, Default)]
#[repr(C)]
struct Numbers {
    own: u64,
    runtime: u64,
    driver: u64,
}

/// Takes the numbers of a call back at its exit. Between enter and exit gputrail keeps one word: 0, or the address of them.
fn take_numbers(word: u64) -> Numbers {
    let numbers = core::ptr::with_exposed_provenance_mut::<Numbers>(word as usize);
    if numbers.is_null() {
        return Numbers::default();
    }
    // SAFETY: `keep_numbers` has put them there at the call's enter, and nobody takes them twice.
    *unsafe { Box::from_raw(numbers) }
}

fn keep_numbers(numbers: Numbers) -> u64 {
    match numbers {
        Numbers {
            own: 0,
            runtime: 0,
            driver: 0,
        } => 0,
        numbers => Box::into_raw(Box::new(numbers)).expose_provenance() as u64,
    }
}

/// A function of OpenCL or of the simulated runtime begins (`site` 0) or has returned (1): it is told under each of its ids that
/// is enabled, the runtime's outermost, as CUDA's runtime calls its driver.
pub fn call(client: &Client, callback: Callback<'_>, site: u32, word: &mut u64) {
    let mut numbers = take_numbers(std::mem::take(word));
    let arguments = Arguments::of(&callback);
    let of_cuda = |domain, number: &mut u64| {
        call_of_cuda(client, &callback, &arguments, domain, site, number);
    };
    if site == 0 {
        of_cuda(CallbackDomain::RUNTIME_API, &mut numbers.runtime);
        of_cuda(CallbackDomain::DRIVER_API, &mut numbers.driver);
        own_call(client, &callback, site, &mut numbers.own);
        *word = keep_numbers(numbers);
    } else {
        own_call(client, &callback, site, &mut numbers.own);
        of_cuda(CallbackDomain::DRIVER_API, &mut numbers.driver);
        of_cuda(CallbackDomain::RUNTIME_API, &mut numbers.runtime);
    }
}

/// The call as it is told under any of its ids.
fn data_of(callback: &Callback<'_>, site: u32, number: &mut u64) -> CallbackData {
    let context = callback.runtime_context();
    CallbackData {
        callback_site: site,
        function_name: null(),
        function_params: null(),
        function_return_value: null_mut(),
        symbol_name: names::of_kernel(callback.kernel()),
        context: context_handle(context),
        context_uid: context.0,
        correlation_data: number,
        correlation_id: callback.correlation().0 as u32,
    }
}

/// The call under gputrail's own id, if that is enabled.
fn own_call(client: &Client, callback: &Callback<'_>, site: u32, number: &mut u64) {
    let operation = callback.operation();
    let domain = match operation.domain {
        Domain::OPENCL => CallbackDomain::DRIVER_API,
        _ => CallbackDomain::RUNTIME_API,
    };
    let id = domain::FIRST + u32::from(operation.number);
    if !client.is_enabled(domain, id) {
        return;
    }
    let mut params = Params {
        count: 0,
        values: [0; PARAMS],
    };
    for (to, argument) in params.values.iter_mut().zip(callback.arguments()) {
        *to = argument.value();
        params.count += 1;
    }
    let mut value = returned(callback);
    let mut data = data_of(callback, site, number);
    data.function_name = kept(callback.name()).as_ptr();
    data.function_params = (&raw const params).cast();
    if site != 0 {
        data.function_return_value = (&raw mut value).cast();
    }
    client.call(domain, id, &data);
}

/// The call under the id of the function of CUDA that does the same, if there is one and it is enabled.
fn call_of_cuda(
    client: &Client,
    callback: &Callback<'_>,
    arguments: &Arguments,
    domain: CallbackDomain,
    site: u32,
    number: &mut u64,
) {
    let Some(shown) = cuda::shown(domain, callback.operation()) else {
        return;
    };
    let cuda::Numbered {
        number: id,
        function,
    } = shown.function(arguments);
    if !client.is_enabled(domain, id) {
        return;
    }
    let made = match site {
        0 => Made::default(),
        _ => shown.made(arguments, callback),
    };
    let mut params = [0; cuda::WORDS];
    shown.put(arguments, (&raw const made).addr() as u64, &mut params);
    let mut status = u64::from(error_of(callback.return_code().unwrap_or(0)));
    let mut data = data_of(callback, site, number);
    data.function_name = cuda::plain_name(function).as_ptr();
    data.function_params = (&raw const params).cast();
    if site != 0 {
        data.function_return_value = (&raw mut status).cast();
    }
    client.call(domain, id, &data);
}

fn context_handle(context: ContextId) -> CUcontext {
    if context.is_some() {
        handle_of_context(context)
    } else {
        null_mut()
    }
}

/// An object has come, or goes.
pub fn resource(client: &Client, callback: Callback<'_>) {
    let Some(id) = domain::id_of(callback.operation()) else {
        return;
    };
    let mut data = ResourceData {
        context: context_handle(callback.runtime_context()),
        stream: null_mut(),
        resource_descriptor: null_mut(),
    };
    let of_module = |id| {
        let module = describe::<Module>(id);
        module.map_or(null_mut(), |module| context_handle(module.context))
    };
    let mut module = ModuleData {
        module_id: 0,
        cubin_size: callback.code().len(),
        cubin: match callback.code() {
            [] => null(),
            code => code.as_ptr().cast(),
        },
    };
    let (mut graph, mut first_graph);
    if let Some(context) = callback.record::<Context>() {
        data.context = without_provenance_mut(context.handle as usize);
    } else if let Some((_, handle, context)) = stream_of(&callback) {
        data.context = context_handle(context);
        data.stream = without_provenance_mut(handle as usize);
    } else if callback.record::<Queue>().is_some() {
        return;
    } else if let Some(code) = callback.record::<CodeObject>() {
        data.context = of_module(code.module);
        module.module_id = code.module.0;
        data.resource_descriptor = (&raw mut module).cast();
    } else if let Some(loaded) = callback.record::<Module>() {
        data.context = context_handle(loaded.context);
        module.module_id = loaded.id.0;
        data.resource_descriptor = (&raw mut module).cast();
    } else if let Some(change) = callback.record::<GraphChange>() {
        let [graph_of, original_graph, node] = graph_handles(change);
        let links = graph_links(change);
        data.resource_descriptor = if layout() == Layout::Cuda10 {
            first_graph = FirstGraphData {
                graph: graph_of,
                original_graph,
                node,
                links,
            };
            (&raw mut first_graph).cast()
        } else {
            graph = GraphData {
                graph: graph_of,
                original_graph,
                node,
                original_node: null_mut(),
                links,
            };
            (&raw mut graph).cast()
        };
    }
    client.call(CallbackDomain::RESOURCE, id, &data);
}

fn number(number: u64) -> *mut c_void {
    without_provenance_mut(number as usize)
}

/// Whether a graph is one that was instantiated; the other graph is then the one that it was made of.
fn is_executable(change: &GraphChange) -> bool {
    matches!(
        change.what,
        GraphOperation::INSTANTIATED | GraphOperation::EXECUTABLE_DESTROYED
    )
}

/// The graph, the one that it was made of, and the node: numbers here.
fn graph_handles(change: &GraphChange) -> [*mut c_void; 3] {
    let (graph, other) = (change.graph.into(), change.other_graph.into());
    let shown = if is_executable(change) { other } else { graph };
    [number(shown), number(other), number(change.node)]
}

fn graph_links(change: &GraphChange) -> GraphLinks {
    GraphLinks {
        node_type: u32::from(change.node_type.0).saturating_sub(1),
        dependency: number(change.other_node),
        graph_exec: if is_executable(change) {
            number(change.graph.into())
        } else {
            null_mut()
        },
    }
}

/// The host has waited for a queue or a context.
pub fn synchronization(client: &Client, callback: Callback<'_>) {
    let Some(id) = domain::id_of(callback.operation()) else {
        return;
    };
    let work = callback.record::<Synchronization>().map(|one| one.work);
    let (stream, queue) = work.map_or((StreamId::NONE, QueueId::NONE), |work| {
        (work.stream, work.queue)
    });
    let context = work.map_or(callback.runtime_context(), |work| work.context);
    let data = SynchronizeData {
        context: context_handle(context),
        stream: match id {
            1 => handle_of_stream(stream, queue),
            _ => null_mut(),
        },
    };
    client.call(CallbackDomain::SYNCHRONIZE, id, &data);
}

/// The name of NVTX's function for a marker.
fn marker_function(what: MarkerKind) -> Option<&'static CStr> {
    Some(match what {
        MarkerKind::INSTANT => c"nvtxDomainMarkEx",
        MarkerKind::PUSH => c"nvtxDomainRangePushEx",
        MarkerKind::POP => c"nvtxDomainRangePop",
        MarkerKind::START => c"nvtxDomainRangeStartEx",
        MarkerKind::END => c"nvtxDomainRangeEnd",
        _ => return None,
    })
}

/// A marker, or an end of a range.
pub fn marker(client: &Client, callback: Callback<'_>) {
    let Some(marker) = callback.record::<Marker>() else {
        return;
    };
    let Some(function) = marker_function(marker.what) else {
        return;
    };
    let params = MarkerParams {
        id: match marker.what {
            MarkerKind::START | MarkerKind::END => marker.id,
            _ => 0,
        },
        name: names::of_string(marker.name),
        domain: names::of_string(marker.domain),
        category: names::of_string(marker.category),
        color: marker.color,
        thread_id: marker.thread.0,
    };
    let data = NvtxData {
        function_name: function.as_ptr(),
        function_params: (&raw const params).cast(),
        function_return_value: null(),
    };
    let id = domain::FIRST + u32::from(callback.operation().number);
    client.call(CallbackDomain::NVTX, id, &data);
}
