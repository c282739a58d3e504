//! The data of callbacks, by domain.
//!
//! | domain | callback ids | data |
//! |---|---|---|
//! | driver | `CUPTI_CBID_GPUTRAIL` (0x10000) plus the number of the OpenCL function, which never changes | `CUpti_CallbackData` |
//! | runtime | the same, of the simulated GPU's runtime | `CUpti_CallbackData` |
//! | resource | `CUPTI_CBID_RESOURCE_*` (`domain` has each) | `CUpti_ResourceData` |
//! | synchronize | `CUPTI_CBID_SYNCHRONIZE_*`, after the host waited for a queue or context | `CUpti_SynchronizeData` |
//! | NVTX | `CUPTI_CBID_GPUTRAIL` plus a `CUpti_GputrailMarker`; markers of NVTX, ROCTx, CLPerfMarker and gputrail | `CUpti_NvtxData` |
//!
//! `functionParams` points to `CUpti_GputrailParams`: the number of arguments, and their values in the order of the signature, 8
//! bytes each. `functionReturnValue` points to 8 bytes at exit, and is null at enter; `correlationData` is 0 at enter. Calls made
//! by a callback are not reported.

use crate::callback::Client;
use crate::domain::{self, CallbackDomain};
use crate::objects::{CUcontext, CUstream, handle_of_context, handle_of_stream};
use crate::text;
use core::ffi::{CStr, c_char, c_void};
use gputrail_abi::kept;
use gputrail_record::{
    CodeObject, Context, ContextId, Domain, GraphChange, GraphOperation, Marker, MarkerKind,
    Module, Queue, QueueId, Stream, StreamId, Synchronization,
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

/// `CUpti_GraphData`
#[repr(C)]
struct GraphData {
    graph: *mut c_void,
    original_graph: *mut c_void,
    node: *mut c_void,
    node_type: u32,
    dependency: *mut c_void,
    graph_exec: *mut c_void,
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

/// A function of OpenCL or of the simulated runtime begins (`site` 0) or has returned (1).
pub fn call(client: &Client, callback: Callback<'_>, site: u32, number: &mut u64) {
    let operation = callback.operation();
    let domain = match operation.domain {
        Domain::OPENCL => CallbackDomain::DRIVER_API,
        _ => CallbackDomain::RUNTIME_API,
    };
    let mut params = Params {
        count: 0,
        values: [0; PARAMS],
    };
    for (to, argument) in params.values.iter_mut().zip(callback.arguments()) {
        *to = argument.value();
        params.count += 1;
    }
    let mut value = callback.return_value().unwrap_or(0);
    let context = callback.runtime_context();
    let data = CallbackData {
        callback_site: site,
        function_name: kept(callback.name()).as_ptr(),
        function_params: (&raw const params).cast(),
        function_return_value: match site {
            0 => null_mut(),
            _ => (&raw mut value).cast(),
        },
        symbol_name: text::of_kernel(callback.kernel()),
        context: context_handle(context),
        context_uid: context.0,
        correlation_data: number,
        correlation_id: callback.correlation().0 as u32,
    };
    let id = domain::FIRST + u32::from(operation.number);
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
    let mut graph;
    if let Some(context) = callback.record::<Context>() {
        data.context = without_provenance_mut(context.handle as usize);
    } else if let Some(stream) = callback.record::<Stream>() {
        data.context = context_handle(stream.context);
        data.stream = without_provenance_mut(stream.handle as usize);
    } else if let Some(queue) = callback.record::<Queue>() {
        // Where the runtime has streams, its queues are its own.
        let context = describe::<Context>(queue.context);
        if context.is_ok_and(|context| context.domain != Domain::OPENCL) {
            return;
        }
        data.context = context_handle(queue.context);
        data.stream = without_provenance_mut(queue.handle as usize);
    } else if let Some(code) = callback.record::<CodeObject>() {
        data.context = of_module(code.module);
        module.module_id = code.module.0;
        data.resource_descriptor = (&raw mut module).cast();
    } else if let Some(loaded) = callback.record::<Module>() {
        data.context = context_handle(loaded.context);
        module.module_id = loaded.id.0;
        data.resource_descriptor = (&raw mut module).cast();
    } else if let Some(change) = callback.record::<GraphChange>() {
        graph = graph_data(change);
        data.resource_descriptor = (&raw mut graph).cast();
    }
    client.call(CallbackDomain::RESOURCE, id, &data);
}

/// Graphs and nodes are numbers here.
fn graph_data(change: &GraphChange) -> GraphData {
    let number = |number: u64| without_provenance_mut::<c_void>(number as usize);
    let is_executable = matches!(
        change.what,
        GraphOperation::INSTANTIATED | GraphOperation::EXECUTABLE_DESTROYED
    );
    let graph = number(change.graph.into());
    GraphData {
        graph: if is_executable {
            number(change.other_graph.into())
        } else {
            graph
        },
        original_graph: number(change.other_graph.into()),
        node: number(change.node),
        node_type: u32::from(change.node_type.0).saturating_sub(1),
        dependency: number(change.other_node),
        graph_exec: if is_executable { graph } else { null_mut() },
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
        name: text::of_string(marker.name),
        domain: text::of_string(marker.domain),
        category: text::of_string(marker.category),
        color: marker.color,
        thread_id: marker.thread.0,
    };
    let data = NvtxData {
        function_name: function.as_ptr(),
        function_params: (&raw const params).cast(),
    };
    let id = domain::FIRST + u32::from(callback.operation().number);
    client.call(CallbackDomain::NVTX, id, &data);
}
