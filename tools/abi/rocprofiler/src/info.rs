//! The counters and metrics of devices.

use crate::agents::{self, Device};
use crate::errors::callee;
use crate::trace;
use crate::types::{
    AgentHandle, Answer, Failure, InfoCallback, InfoData, InfoKind, InfoUnion, MetricInfo, Status,
    TraceInfo,
};
use core::ffi::{CStr, c_char, c_void};
use gputrail_abi::kept;
use gputrail_tool::counting::{self, Counter};

/// The device of an argument, or all of them.
fn devices(agent: Option<AgentHandle>) -> Answer<Vec<Device>> {
    match agent {
        Some(agent) => Ok(vec![agents::found(agent)?]),
        None => agents::all(),
    }
}

/// The number of metrics or traces.
pub fn count(agent: Option<AgentHandle>, kind: InfoKind) -> Answer<u32> {
    let devices = devices(agent)?;
    match kind {
        InfoKind::METRIC_COUNT => {
            let mut all = 0;
            for device in devices {
                all += counting::counters(device.id)?.len();
            }
            Ok(all as u32)
        }
        InfoKind::TRACE_COUNT => {
            let traced = devices.iter().filter(|device| trace::has(device.id));
            Ok(traced.count() as u32)
        }
        InfoKind::TRACE_PARAMETER_COUNT => Ok(0),
        InfoKind::METRIC | InfoKind::TRACE | InfoKind::TRACE_PARAMETER => Err(Failure::argument(
            "metrics and traces are iterated, and their numbers are asked for",
        )),
        InfoKind(other) => Err(unknown(other)),
    }
}

fn unknown(kind: i32) -> Failure {
    Failure::argument(format!("there is no information of the kind {kind}"))
}

/// The fields of a query in the document's form; one that is null or 0 fits all metrics.
#[derive(Copy, Clone, Debug, Default)]
pub struct Query<'a> {
    pub name: Option<&'a CStr>,
    pub expr: Option<&'a CStr>,
    pub description: Option<&'a CStr>,
    pub block_name: Option<&'a CStr>,
    pub instances: u32,
    pub block_counters: u32,
}

impl<'a> Query<'a> {
    /// The query of the program's.
    ///
    /// # Safety
    ///
    /// The texts are null, or end with a 0 and live for `'a`.
    pub unsafe fn new(metric: &'a MetricInfo) -> Query<'a> {
        // SAFETY: a text that is not null ends with a 0, and lives for `'a`.
        let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
        Query {
            name: text(metric.name),
            expr: text(metric.expr),
            description: text(metric.description),
            block_name: text(metric.block_name),
            instances: metric.instances,
            block_counters: metric.block_counters,
        }
    }

    fn fits(&self, metric: &MetricInfo) -> bool {
        let text = |wanted: Option<&CStr>, text: *const c_char| {
            // SAFETY: null, or a text that was made below.
            wanted.is_none_or(|wanted| !text.is_null() && wanted == unsafe { CStr::from_ptr(text) })
        };
        let number = |wanted: u32, number: u32| wanted == 0 || wanted == number;
        text(self.name, metric.name)
            && text(self.expr, metric.expr)
            && text(self.description, metric.description)
            && text(self.block_name, metric.block_name)
            && number(self.instances, metric.instances)
            && number(self.block_counters, metric.block_counters)
    }
}

fn metric(counter: &Counter) -> MetricInfo {
    let (expr, block_name) = if counter.is_metric {
        (kept(counter.from).as_ptr(), std::ptr::null())
    } else {
        (std::ptr::null(), kept(counter.from).as_ptr())
    };
    MetricInfo {
        name: kept(counter.name).as_ptr(),
        instances: counter.instances.max(1),
        expr,
        description: kept(counter.description).as_ptr(),
        block_name,
        block_counters: counter.capacity.into(),
    }
}

/// Calls `callback` for metrics or traces, until it returns another status than success.
///
/// # Safety
///
/// `callback` does what its type says, with `data`.
pub unsafe fn iterate(
    agent: Option<AgentHandle>,
    kind: InfoKind,
    query: Query<'_>,
    callback: InfoCallback,
    data: *mut c_void,
) -> Answer {
    let devices = devices(agent)?;
    match kind {
        InfoKind::METRIC => {}
        InfoKind::TRACE => {
            let mut traced = devices.iter().filter(|device| trace::has(device.id));
            return traced.try_for_each(|device| {
                let of = InfoUnion {
                    trace: TraceInfo {
                        name: trace::NAME.as_ptr(),
                        description: trace::DESCRIPTION.as_ptr(),
                        parameter_count: 0,
                    },
                };
                // SAFETY: `callback` does what its type says, with `data`.
                unsafe { tell(callback, (device.index, kind, of), data) }
            });
        }
        // The trace has no parameters.
        InfoKind::TRACE_PARAMETER => return Ok(()),
        InfoKind::METRIC_COUNT | InfoKind::TRACE_COUNT | InfoKind::TRACE_PARAMETER_COUNT => {
            return Err(Failure::argument("a number is asked for, and not iterated"));
        }
        InfoKind(other) => return Err(unknown(other)),
    }
    for device in devices {
        for counter in counting::counters(device.id)? {
            let metric = metric(&counter);
            if !query.fits(&metric) {
                continue;
            }
            // SAFETY: `callback` does what its type says, with `data`.
            unsafe { tell(callback, (device.index, kind, InfoUnion { metric }), data) }?;
        }
    }
    Ok(())
}

/// Calls `callback` with an information.
///
/// # Safety
///
/// `callback` does what its type says, with `data`.
unsafe fn tell(
    callback: InfoCallback,
    (agent_index, kind, of): (u32, InfoKind, InfoUnion),
    data: *mut c_void,
) -> Answer {
    let info = InfoData {
        agent_index,
        kind,
        of,
    };
    // SAFETY: `callback` takes an information, all of which is filled in, and `data`; the texts last for ever.
    let call = || unsafe { callback(info, data) };
    let status = callee("rocprofiler_iterate_info", callback as *const ()).call(call);
    if status == Status::SUCCESS {
        Ok(())
    } else {
        Err(Failure::new(status, "the callback ended the iteration"))
    }
}
