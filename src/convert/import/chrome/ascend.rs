//! Events of Huawei's CANN (`trace_view.json` of PyTorch on Ascend, `msprof_*.json`), in the words of PyTorch's profiler.
//!
//! They have no category, and the names of their processes stand behind them. So they are told apart by their arguments: tasks of
//! the hardware are device work on the stream that is their thread; functions of CANN are calls of the process whose id is in that
//! of their row, tied to tasks by `connection_id`; operations of communication (HCCL), whose tasks stand on the streams too, steps
//! and markers are slices on rows of the device. Arrows from the host to a task tie it to the call or slice in which they begin.

use serde_json::value::RawValue;

use super::arguments;
use super::collect::Collected;
use super::event::{ChromeEvent, text};
use super::ids::Id;
use super::reworded::{Reworded, member};

/// The category of functions of CANN.
pub(super) const CALL: &str = "cann";
/// Categories of slices on rows of devices.
pub(super) const COMMUNICATION: &str = "communication";
pub(super) const STEP: &str = "step_trace";
pub(super) const BESIDE_WORK: &str = "ascend";
/// The category of arrows from calls to tasks. Their ids have those of connections in the upper half.
pub(super) const ARROW: &str = "HostToDevice";
/// The category of arrows from operators to tasks.
pub(super) const OPERATOR_ARROW: &str = "async_npu";

/// Bits of the id of a row in front of which that of the process stands, and the part of them that rows of the host have.
const ROW_BITS: u32 = 10;
const HOST_ROW: i64 = 31;

/// What has been learned from the events of CANN.
#[derive(Debug, Default)]
pub(super) struct AscendState {
    /// Whether there are tasks.
    pub has_tasks: bool,
    /// The latest row of functions, and the process that it belongs to.
    row: Option<(Id, Id)>,
}

/// An event of CANN; `None` of others.
pub(super) fn translate(
    collected: &mut Collected<'_>,
    event: &ChromeEvent<'_>,
) -> Option<Reworded> {
    let args = event.args?;
    let has = |name: &str| args.contains(name);
    if has("\"Task Id\"") && has("Stream Id\"") {
        if has("\"Task Type\"") {
            collected.writers.ascend.has_tasks = true;
            return Some(task(event, args));
        }
        return Some(beside("\"ascend\""));
    }
    if has("\"connection_id\"") && has("\"item_id\"") && has("\"level\"") {
        return Some(call(collected, event, args));
    }
    let is_communication = has("\"transport type\"") && has("\"notify_id\"")
        || has("\"connection_id\"") && has("\"alg_type\"");
    if is_communication {
        return Some(beside("\"communication\""));
    }
    let is_step = has("\"Iteration ID\"") && (has("\"FP Start\"") || has("\"BP End\""));
    is_step.then(|| beside("\"step_trace\""))
}

fn beside(category: &'static str) -> Reworded {
    Reworded {
        category,
        ..Reworded::default()
    }
}

/// Whether a connection id is that of a connection.
fn is_connection(id: u64) -> bool {
    !matches!(id, u64::MAX) && id != u64::from(u32::MAX)
}

/// A task of the hardware.
fn task(event: &ChromeEvent<'_>, args: &str) -> Reworded {
    let name = event.name.map(text).unwrap_or_default();
    let stream = event.tid.map(text).unwrap_or_default();
    let stream: Option<u32> = stream.trim().parse().ok();
    let mut object = String::new();
    let mut kind = String::new();
    if let Some(stream) = stream {
        member(&mut object, "stream", &stream.to_string());
    }
    arguments::each(args, |argument, raw: &RawValue| {
        let value = raw.get();
        let number = || arguments::number(raw);
        match argument {
            "connection_id" => {
                if let Some(id) = number().filter(|id| is_connection(*id)) {
                    return member(&mut object, "correlation", &id.to_string());
                }
            }
            "size(B)" if number().is_some() => return member(&mut object, "bytes", value),
            "Stream Id" | "Physic Stream Id" if number() == stream.map(u64::from) => return,
            "Task Type" => kind = text(value).into_owned(),
            _ => {}
        }
        member(&mut object, argument, value);
    });
    object.push('}');
    Reworded {
        category: category(&kind, &name),
        arguments: Some(object),
        ..Reworded::default()
    }
}

/// The category of a task with this type and name. Tasks of operators have the name of the operator, others that of their type.
pub(super) fn category(kind: &str, name: &str) -> &'static str {
    let has = |word: &str| kind.contains(word) || name.contains(word);
    match kind {
        _ if name == "MEMCPY_ASYNC" => "\"gpu_memcpy\"",
        "SDMA_SQE" | "PCIE_DMA_SQE" | "MEMCPY_ASYNC" => "\"gpu_memcpy\"",
        _ if ["EVENT", "NOTIFY", "WAIT"]
            .iter()
            .any(|word| kind.contains(word)) =>
        {
            "\"gpu_sync\""
        }
        "AI_CORE" | "AI_VECTOR_CORE" | "AI_CPU" | "HCCL_AI_CPU" | "AIV_SQE" | "DSA_SQE"
        | "MIX_AIC" | "MIX_AIV" | "FFTS_PLUS" | "FFTS+" | "C_CORE_SQE" => "\"kernel\"",
        _ if has("KERNEL_") => "\"kernel\"",
        _ if name != kind && !name.ends_with("_SQE") => match name {
            _ if name.starts_with("EVENT_") || name.starts_with("NOTIFY_") => "\"gpu_sync\"",
            _ if name.chars().any(|letter| letter.is_ascii_lowercase()) => "\"kernel\"",
            _ => "\"gpu_work\"",
        },
        _ => "\"gpu_work\"",
    }
}

/// A function of CANN.
fn call(collected: &mut Collected<'_>, event: &ChromeEvent<'_>, args: &str) -> Reworded {
    let row = collected.id(event.pid);
    let pid = match home(collected, row) {
        Id::Number(pid) if Id::Number(pid) != row => Some(pid.to_string()),
        _ => None,
    };
    let mut object = String::new();
    arguments::each(args, |argument, raw: &RawValue| {
        let value = raw.get();
        let id = (argument == "connection_id").then(|| arguments::number(raw));
        if let Some(id) = id.flatten().filter(|id| is_connection(*id)) {
            member(&mut object, "correlation", &id.to_string());
        }
        member(&mut object, argument, value);
    });
    object.push('}');
    Reworded {
        category: "\"cann\"",
        arguments: Some(object),
        pid,
        ..Reworded::default()
    }
}

/// The process that a row of the host belongs to: the one with events before it in the file whose id stands in front of that of the
/// row, in bits or, as older versions write it, in decimal digits.
pub(super) fn home(collected: &mut Collected<'_>, row: Id) -> Id {
    if let Some((known, home)) = collected.writers.ascend.row
        && known == row
    {
        return home;
    }
    let Id::Number(number) = row else { return row };
    let in_bits = (number & HOST_ROW == HOST_ROW).then_some(number >> ROW_BITS);
    let mut candidates = in_bits.into_iter().chain([number / 100, number / 10_000]);
    let is_host = |pid: &i64| {
        let activity = collected.activity.get(&Id::Number(*pid));
        *pid > 0 && activity.is_some_and(|activity| activity.host > 0)
    };
    let Some(pid) = candidates.find(is_host) else {
        return row;
    };
    collected.writers.ascend.row = Some((row, Id::Number(pid)));
    Id::Number(pid)
}
