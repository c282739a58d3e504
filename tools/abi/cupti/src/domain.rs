//! The domains of callbacks, and the ids of callbacks in them. Those of the driver and the runtime are in [`cuda`](crate::cuda); nothing
//! is ever told in the domain state, whose ids are of errors within CUPTI. Those of the domain resource:
//!
//! | `CUPTI_CBID_RESOURCE_` | here |
//! |---|---|
//! | `CONTEXT_CREATED`, `CONTEXT_DESTROY_STARTING` | contexts |
//! | `STREAM_CREATED`, `STREAM_DESTROY_STARTING` | streams; queues of OpenCL |
//! | `CU_INIT_FINISHED` | within the first call that is observed |
//! | `MODULE_LOADED`, `MODULE_UNLOAD_STARTING` | machine code of a program for a device: `CUpti_ModuleResourceData` has it as far as the runtime gives it |
//! | `MODULE_PROFILED` | the first kernel of a program while kernels are sampled or counted |
//! | `GRAPH_CREATED` to `GRAPHEXEC_DESTROY_STARTING` | command buffers, and the graphs of the simulated GPU: `CUpti_GraphData` has numbers in the places of handles. A node that is cloned is `GRAPHNODE_CREATED`. `GRAPHNODE_CREATE_STARTING`, `GRAPHEXEC_CREATE_STARTING` and those that are younger than CUDA 10.0 are never told |

use crate::cuda;
use crate::layout::{Layout, layout};
use crate::result::{Answer, CUptiResult};
use gputrail_record::{Domain, Operation};
use gputrail_tool as tool;
use gputrail_tool::events::{resource, synchronization};

/// `CUpti_CallbackDomain`
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CallbackDomain(pub u32);

#[allow(missing_docs)]
impl CallbackDomain {
    pub const DRIVER_API: CallbackDomain = CallbackDomain(1);
    pub const RUNTIME_API: CallbackDomain = CallbackDomain(2);
    pub const RESOURCE: CallbackDomain = CallbackDomain(3);
    pub const SYNCHRONIZE: CallbackDomain = CallbackDomain(4);
    pub const NVTX: CallbackDomain = CallbackDomain(5);
    pub const STATE: CallbackDomain = CallbackDomain(6);
}

/// All domains.
pub const ALL: [CallbackDomain; 6] = [
    CallbackDomain::DRIVER_API,
    CallbackDomain::RUNTIME_API,
    CallbackDomain::RESOURCE,
    CallbackDomain::SYNCHRONIZE,
    CallbackDomain::NVTX,
    CallbackDomain::STATE,
];

/// All domains, as programs get them.
static TABLE: [CallbackDomain; 6] = ALL;

/// The domains of a version of CUPTI; the last one is younger than CUDA 11.
pub fn table(layout: Layout) -> &'static [CallbackDomain] {
    match layout {
        Layout::Cuda10 | Layout::Cuda11 => &TABLE[..5],
        Layout::Cuda12 | Layout::Cuda13 => &TABLE,
    }
}

/// `CUPTI_CBID_GPUTRAIL`: what is added to the number of a function or marker.
pub const FIRST: u32 = 0x10000;
/// One more than the greatest id of NVTX's functions (`CUPTI_CBID_NVTX_SIZE`).
const NVTX_SIZE: u32 = 50;

/// One more than the greatest id of a version of CUPTI, gputrail's own left out.
fn size(domain: CallbackDomain) -> u32 {
    let layout = layout();
    match domain {
        CallbackDomain::RESOURCE => [20, 21, 22, 26][layout as usize],
        CallbackDomain::SYNCHRONIZE => 3,
        CallbackDomain::NVTX => NVTX_SIZE,
        CallbackDomain::STATE => 4,
        _ => cuda::size(domain, layout),
    }
}

/// Ids of resources, and below those of synchronization, each with an operation that is told under it.
const RESOURCES: [(u32, Operation); 20] = [
    (1, resource::CONTEXT_CREATED),
    (2, resource::CONTEXT_DESTROYED),
    (3, resource::STREAM_CREATED),
    (3, resource::QUEUE_CREATED),
    (4, resource::STREAM_DESTROYED),
    (4, resource::QUEUE_DESTROYED),
    (5, resource::RUNTIME_INITIALIZED),
    (6, resource::CODE_OBJECT_LOADED),
    (7, resource::CODE_OBJECT_UNLOADED),
    (8, resource::MODULE_PROFILED),
    (9, resource::GRAPH_CREATED),
    (10, resource::GRAPH_DESTROYED),
    (11, resource::GRAPH_CLONED),
    (13, resource::GRAPH_NODE_CREATED),
    (13, resource::GRAPH_NODE_CLONED),
    (14, resource::GRAPH_NODE_DESTROYED),
    (15, resource::GRAPH_DEPENDENCY_CREATED),
    (16, resource::GRAPH_DEPENDENCY_DESTROYED),
    (18, resource::GRAPH_INSTANTIATED),
    (19, resource::GRAPH_EXECUTABLE_DESTROYED),
];
const WAITS: [(u32, Operation); 2] = [
    (1, synchronization::STREAM_SYNCHRONIZE),
    (2, synchronization::CONTEXT_SYNCHRONIZE),
];

/// The ids of resources or of synchronization; none of other domains.
fn told_in(domain: CallbackDomain) -> &'static [(u32, Operation)] {
    match domain {
        CallbackDomain::RESOURCE => &RESOURCES,
        CallbackDomain::SYNCHRONIZE => &WAITS,
        _ => &[],
    }
}

/// The domain of gputrail whose functions or markers have ids of their own in `domain`.
pub fn numbered(domain: CallbackDomain) -> Option<Domain> {
    match domain {
        CallbackDomain::DRIVER_API => Some(Domain::OPENCL),
        CallbackDomain::RUNTIME_API => Some(Domain::SIM),
        CallbackDomain::NVTX => Some(Domain::MARKER),
        _ => None,
    }
}

/// The operation of an id of gputrail's own in a [`numbered`] domain, if there is one.
fn operation(domain: CallbackDomain, id: u32) -> Option<Operation> {
    let number = id.checked_sub(FIRST)?.try_into().ok()?;
    let operation = Operation {
        domain: numbered(domain)?,
        number,
    };
    // Of the events of marker libraries those that NVTX has functions for.
    let is_range = domain != CallbackDomain::NVTX || (1..=5).contains(&number);
    let is_known = is_range && tool::operation_name(operation).is_some();
    is_known.then_some(operation)
}

/// `INVALID_PARAMETER` for an unknown domain, and for an id that is none of its.
pub fn check(domain: CallbackDomain, id: u32) -> Answer {
    if (1..size(domain)).contains(&id) || operation(domain, id).is_some() {
        Ok(())
    } else {
        Err(CUptiResult::INVALID_PARAMETER)
    }
}

/// All ids of a domain.
pub fn ids(domain: CallbackDomain) -> Answer<Vec<u32>> {
    let size = size(domain);
    if size == 0 {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    let mut ids: Vec<u32> = (1..size).collect();
    if let Some(of) = numbered(domain) {
        let all = tool::operations(of)?.into_iter();
        let own = all.map(|operation| FIRST + u32::from(operation.number));
        ids.extend(own.filter(|id| operation(domain, *id).is_some()));
    }
    Ok(ids)
}

/// The operations that are told under an id. Some ids have none: nothing of their kind happens here.
pub fn operations(domain: CallbackDomain, id: u32) -> Vec<Operation> {
    if let Some(own) = operation(domain, id) {
        return vec![own];
    }
    let found = told_in(domain).iter().filter(|one| one.0 == id);
    let found = found.map(|one| one.1);
    found.chain(cuda::operations_of(domain, id)).collect()
}

/// The ids under which an operation is told.
pub fn ids_of(told: Operation) -> Vec<(CallbackDomain, u32)> {
    let mut ids = Vec::new();
    for domain in ALL {
        let all = told_in(domain).iter().filter(|one| one.1 == told);
        ids.extend(all.map(|one| (domain, one.0)));
        if numbered(domain) == Some(told.domain) {
            ids.push((domain, FIRST + u32::from(told.number)));
        }
        let shown = cuda::shown(domain, told).into_iter();
        ids.extend(shown.flat_map(|shown| shown.numbers().map(move |id| (domain, id))));
    }
    ids
}

/// The id under which an operation of objects or waits is told.
pub fn id_of(told: Operation) -> Option<u32> {
    let mut all = RESOURCES.iter().chain(&WAITS);
    all.find(|one| one.1 == told).map(|one| one.0)
}

/// The name of a function. Other callbacks have none.
pub fn name(domain: CallbackDomain, id: u32) -> Option<&'static str> {
    match domain {
        CallbackDomain::DRIVER_API | CallbackDomain::RUNTIME_API => {
            let own = operation(domain, id).and_then(tool::operation_name);
            own.or_else(|| cuda::name(domain, id))
        }
        _ => None,
    }
}
