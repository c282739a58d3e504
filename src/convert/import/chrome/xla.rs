//! Events of XLA's profiler (`trace.json.gz` and `perfetto_trace.json.gz` of JAX), in the words of PyTorch's profiler.
//!
//! They have no category. Which of them are work of a device is told by the names of their process (`/device:GPU:0`) and thread
//! (`Stream #7(Compute)`), which the file tells before the events; the XPlane file beside it says more. Streams, and operations
//! on devices without streams (TPU), become work; loops around operations and all other lines become slices on rows of the
//! device; functions of CUDA and HIP with a correlation id become calls.

use serde_json::value::RawValue;

use super::arguments;
use super::collect::Collected;
use super::event::{ChromeEvent, text};
use super::ids::Id;
use super::reworded::{Reworded, member, quoted};
use crate::import::tables::api_of_function;
use crate::import::xplane::Details;
use gputrail_record::Domain;

/// The category of slices on rows of devices.
pub(super) const BESIDE_WORK: &str = "xla";
/// Operations that contain others.
const CONTAINERS: [&str; 3] = ["while", "conditional", "call"];

/// The kind and the number of the device of a process.
pub(super) fn kind_of<'c>(collected: &'c Collected<'_>, pid: Id) -> Option<(&'c str, u32)> {
    let name = collected.processes.get(&pid)?.name.as_deref()?;
    let (kind, number) = name.strip_prefix("/device:")?.split_once(':')?;
    let digits = number.split(|letter: char| !letter.is_ascii_digit()).next();
    Some((kind, digits?.parse().ok()?))
}

/// The number of the device of a process.
fn device_of(collected: &Collected<'_>, pid: Id) -> Option<u32> {
    kind_of(collected, pid).map(|(_, number)| number)
}

/// The arguments of an event that decide what it is.
#[derive(Default)]
struct XlaArguments<'e> {
    correlation: Option<u64>,
    /// The texts that say more of the work.
    details: String,
    is_copy: bool,
    is_set: bool,
    is_container: bool,
    /// Others, as they stand in the file.
    rest: Vec<(String, &'e str)>,
}

impl<'e> XlaArguments<'e> {
    fn of(args: &'e str) -> XlaArguments<'e> {
        let mut own = XlaArguments::default();
        arguments::each(args, |name, value: &'e RawValue| {
            let mut detail = || {
                own.details.push(' ');
                own.details += &text(value.get());
            };
            match name {
                "correlation_id" => own.correlation = arguments::number(value),
                "kernel_details" => detail(),
                "memcpy_details" => {
                    detail();
                    own.is_copy = true;
                }
                "memset_details" => {
                    detail();
                    own.is_set = true;
                }
                _ => {
                    own.is_container |=
                        name == "hlo_category" && CONTAINERS.contains(&&*text(value.get()));
                    own.rest.push((name.to_owned(), value.get()));
                }
            }
        });
        own
    }
}

/// The kind of an event of XLA's profiler; `None` of other events, and of those that are slices of their thread.
pub(super) fn translate(
    collected: &mut Collected<'_>,
    event: &ChromeEvent<'_>,
) -> Option<Reworded> {
    if collected.processes.is_empty() {
        return None;
    }
    let (pid, tid) = (collected.id(event.pid), collected.id(event.tid));
    let name = event.name.map(text).unwrap_or_default();
    let args = event.args.unwrap_or("");
    let Some(device) = device_of(collected, pid) else {
        return call(collected, pid, &name, args);
    };
    let thread = collected.threads.get(&(pid, tid));
    let thread = thread.and_then(|thread| thread.name.as_deref());
    let thread = thread.unwrap_or_default();
    let stream = thread.strip_prefix("Stream #");
    let stream = stream.map(|rest| rest.split('(').next().unwrap_or(rest).trim());
    let beside = Some(Reworded {
        category: "\"xla\"",
        ..Reworded::default()
    });
    if stream.is_none() && thread != "XLA Ops" {
        return beside;
    }
    let own = XlaArguments::of(args);
    let opcode = name.split('.').next().unwrap_or_default();
    let is_container = own.is_container || CONTAINERS.contains(&opcode);
    if stream.is_none() && (is_container || has_streams(collected, pid)) {
        return beside;
    }
    let lower = name.to_ascii_lowercase();
    let category = if own.is_copy || lower.starts_with("memcpy") {
        "\"gpu_memcpy\""
    } else if own.is_set || lower.starts_with("memset") {
        "\"gpu_memset\""
    } else {
        "\"kernel\""
    };
    Some(Reworded {
        category,
        arguments: Some(of_work(&own, device, stream.unwrap_or("0"))),
        ..Reworded::default()
    })
}

/// Whether a device has streams: then lines of operations repeat what stands on them.
fn has_streams(collected: &Collected<'_>, pid: Id) -> bool {
    let threads = collected
        .threads
        .range((pid, Id::Number(i64::MIN))..)
        .take_while(|((process, _), _)| *process == pid);
    let mut names = threads.filter_map(|(_, thread)| thread.name.as_deref());
    names.any(|name| name.starts_with("Stream #"))
}

/// A function of an API that has a correlation id.
fn call(collected: &Collected<'_>, pid: Id, name: &str, args: &str) -> Option<Reworded> {
    let process = collected.processes.get(&pid)?.name.as_deref()?;
    if !process.starts_with("/host:") {
        return None;
    }
    let category = match api_of_function(name)? {
        Domain::CUDA_DRIVER => "\"cuda_driver\"",
        Domain::CUDA_RUNTIME => "\"cuda_runtime\"",
        Domain::HIP => "\"hip_runtime\"",
        _ => return None,
    };
    let mut correlation = None;
    arguments::each(args, |name, value: &RawValue| {
        if name == "correlation_id" {
            correlation = arguments::number(value);
        }
    });
    let mut object = String::new();
    member(&mut object, "correlation", &correlation?.to_string());
    arguments::each(args, |name, value: &RawValue| {
        if name != "correlation_id" {
            member(&mut object, name, value.get());
        }
    });
    object.push('}');
    Some(Reworded {
        category,
        arguments: Some(object),
        ..Reworded::default()
    })
}

/// The arguments of work.
fn of_work(own: &XlaArguments<'_>, device: u32, stream: &str) -> String {
    let mut object = String::new();
    member(&mut object, "device", &device.to_string());
    match stream.parse::<u32>() {
        Ok(stream) => member(&mut object, "stream", &stream.to_string()),
        Err(_) => member(&mut object, "stream name", &quoted(stream)),
    }
    if let Some(correlation) = own.correlation {
        member(&mut object, "correlation", &correlation.to_string());
    }
    let details = Details::read(&own.details);
    if let Some(workgroups) = details.launch.and_then(|launch| launch.workgroups()) {
        let block = details.launch.unwrap_or_default().workgroup;
        member(&mut object, "grid", &format!("{workgroups:?}"));
        member(&mut object, "block", &format!("{block:?}"));
    }
    let resources = details.resources;
    let local = u64::from(resources.static_local) + u64::from(resources.dynamic_local);
    for (name, number) in [
        ("registers per thread", u64::from(resources.registers)),
        ("shared memory", local),
        ("private memory", u64::from(resources.private)),
        ("bytes", details.bytes),
    ] {
        if number != 0 {
            member(&mut object, name, &number.to_string());
        }
    }
    for (name, value) in &details.rest {
        let value = match value.parse::<i64>() {
            Ok(number) => number.to_string(),
            Err(_) => quoted(value),
        };
        member(&mut object, name, &value);
    }
    for (name, value) in &own.rest {
        member(&mut object, name, value);
    }
    object.push('}');
    object
}
