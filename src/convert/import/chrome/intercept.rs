//! Events of the intercept layer for OpenCL (`clintercept_trace.json`), in the words of PyTorch's profiler.
//!
//! Calls and commands stand in one process, which the metadata `clintercept_start_time` tells. Threads of calls have a number; rows
//! of commands a number with a fraction, or the name of the kernel. A command is one event, or three: waiting in the queue, waiting
//! on the device, and its execution. The number in `id` ties a command to the call that enqueued it.

use std::collections::{BTreeSet, HashMap};

use serde_json::value::RawValue;

use super::arguments;
use super::collect::Collected;
use super::event::{ChromeEvent, text};
use super::ids::Id;
use super::reworded::{QUEUE_NAME, QUEUED_AT, Reworded, Rewording, SUBMITTED_AT, member, quoted};

/// The metadata by which the writer is known.
pub(super) const START: &str = "clintercept_start_time";
/// The metadata at the end of a whole file.
pub(super) const END: &str = "clintercept_eof";
/// The category and the name of arrows from calls to commands.
pub(super) const ARROW: (&str, &str) = ("Commands", "Command");

/// Most processes, most devices, and most commands whose execution has not come.
const MAX_PROCESSES: usize = 1 << 10;
const MAX_DEVICES: usize = 1 << 8;
const MAX_WAITING: usize = 1 << 16;
/// The ends of the names of the parts of a command.
const QUEUED: &str = " (Queued)";
const SUBMITTED: &str = " (Submitted)";
const EXECUTION: &str = " (Execution)";

/// What has been learned from a file.
#[derive(Debug, Default)]
pub(super) struct InterceptState {
    /// The processes of calls and commands.
    processes: BTreeSet<Id>,
    /// Devices, as the names of their queues have them: numbers of platform and device, the name, the type.
    pub devices: Vec<String>,
    /// Times at which commands were queued and submitted, in JSON, by their id and row, and where that stands in the file.
    waiting: HashMap<(u64, Id), Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    queued: Option<String>,
    submitted: Option<String>,
    offset: u64,
}

impl InterceptState {
    /// Whether events of a process are those of the layer.
    pub fn is_of(&self, pid: Id) -> bool {
        self.processes.contains(&pid)
    }

    /// The offsets of parts of commands whose execution did not come.
    pub fn lost(&self) -> Vec<u64> {
        let mut offsets: Vec<u64> = self.waiting.values().map(|one| one.offset).collect();
        offsets.sort_unstable();
        offsets
    }
}

impl Collected<'_> {
    /// Metadata of a process of the layer.
    pub fn of_intercept(&mut self, pid: Id, name: &str, start: Option<String>) {
        if self.writers.intercept.processes.len() < MAX_PROCESSES {
            self.writers.intercept.processes.insert(pid);
        }
        if let Some(start) = start {
            self.fields.push((name.to_owned(), start));
        }
    }

    /// The file has been read: counts parts of commands whose execution has not come.
    pub fn end_parts(&mut self) {
        for offset in self.writers.intercept.lost() {
            let reason = "waiting of a command of OpenCL whose execution is not in the file";
            self.lost(reason, offset);
        }
    }
}

/// An event of the layer; `None` of others.
pub(super) fn translate(
    collected: &mut Collected<'_>,
    event: &ChromeEvent<'_>,
    offset: u64,
) -> Option<Rewording> {
    let pid = collected.id(event.pid);
    if !collected.writers.intercept.is_of(pid) {
        return None;
    }
    let name = event.name.map(text).unwrap_or_default();
    let row = collected.id(event.tid);
    match row {
        Id::Number(_) if name.starts_with("cl") => Some(Rewording::Own(call(event, &name))),
        Id::Number(_) => None,
        Id::Text(_) => command(collected, event, &name, (pid, row, offset)),
    }
}

/// A call, with the name of the kernel that may stand behind its own.
fn call(event: &ChromeEvent<'_>, name: &str) -> Reworded {
    let parts = name
        .strip_suffix(" )")
        .and_then(|name| name.split_once("( "));
    let mut object = String::new();
    arguments::each(event.args.unwrap_or(""), |argument, value: &RawValue| {
        let id = (argument == "id")
            .then(|| arguments::number(value))
            .flatten();
        match id {
            Some(id) => member(&mut object, "correlation", &id.to_string()),
            None => member(&mut object, argument, value.get()),
        }
    });
    if let Some((_, tag)) = parts {
        member(&mut object, "tag", &quoted(tag));
    }
    if !object.is_empty() {
        object.push('}');
    }
    Reworded {
        category: "\"opencl\"",
        arguments: (!object.is_empty()).then_some(object),
        name: parts.map(|(function, _)| quoted(function)),
        ..Reworded::default()
    }
}

/// A command, or a part of one.
fn command(
    collected: &mut Collected<'_>,
    event: &ChromeEvent<'_>,
    name: &str,
    (pid, row, offset): (Id, Id, u64),
) -> Option<Rewording> {
    let mut id = None;
    let mut rest = Vec::new();
    arguments::each(
        event.args.unwrap_or(""),
        |argument, value: &RawValue| match argument {
            "id" => id = arguments::number(value),
            _ => rest.push((argument.to_owned(), value.get())),
        },
    );
    let id = id?;
    let part = [QUEUED, SUBMITTED, EXECUTION]
        .into_iter()
        .find(|part| name.ends_with(part));
    let command = part.map_or(name, |part| &name[..name.len() - part.len()]);
    let state = &mut collected.writers.intercept;
    if let Some(part @ (QUEUED | SUBMITTED)) = part {
        if state.waiting.len() >= MAX_WAITING && !state.waiting.contains_key(&(id, row)) {
            return None;
        }
        let one = state.waiting.entry((id, row)).or_default();
        let time = event.ts.map(str::to_owned);
        match part {
            QUEUED => one.queued = time,
            _ => one.submitted = time,
        }
        one.offset = offset;
        return Some(Rewording::Part);
    }
    let waited = state.waiting.remove(&(id, row)).unwrap_or_default();
    // Parts stand on rows `COMMAND.QUEUE`, whole commands on rows `QUEUE.1`.
    let text_of_row = event.tid.map(text).unwrap_or_default();
    let (whole, fraction) = text_of_row.split_once('.').unwrap_or(("", ""));
    let number = if part.is_some() { fraction } else { whole };
    let queue: Option<u32> = number.parse().ok();
    let device = device(collected, pid, queue);
    let mut object = String::new();
    match device {
        Some(device) => member(&mut object, "device", &device.to_string()),
        None => member(&mut object, "device", "-1"),
    }
    let row = collected.id(Some(&format!("{}.1", queue.unwrap_or(0))));
    let named = collected
        .threads
        .get(&(pid, row))
        .filter(|_| queue.is_some());
    let named = named.and_then(|row| row.name.as_deref());
    let queue_name = match (named, queue) {
        (Some(name), _) => name.to_owned(),
        (None, Some(queue)) => format!("queue {queue}"),
        (None, None) => "commands".to_owned(),
    };
    member(&mut object, "stream", &queue.unwrap_or(0).to_string());
    member(&mut object, QUEUE_NAME, &quoted(&queue_name));
    member(&mut object, "correlation", &id.to_string());
    for (name, time) in [(QUEUED_AT, waited.queued), (SUBMITTED_AT, waited.submitted)] {
        if let Some(time) = time {
            member(&mut object, name, &time);
        }
    }
    for (name, value) in rest {
        member(&mut object, &name, value);
    }
    object.push('}');
    Some(Rewording::Own(Reworded {
        category: category(command),
        arguments: Some(object),
        name: (command != name).then(|| quoted(command)),
        ..Reworded::default()
    }))
}

/// The device of a queue, by the name of its row; without one, that of all queues, if they have one in common.
fn device(collected: &mut Collected<'_>, pid: Id, queue: Option<u32>) -> Option<usize> {
    let row = queue.map(|queue| collected.id(Some(&format!("{queue}.1"))));
    let threads = &collected.threads;
    let named = row.and_then(|row| threads.get(&(pid, row))?.name.as_deref());
    let device = named.and_then(device_of);
    let devices = &mut collected.writers.intercept.devices;
    match device {
        Some(device) => match devices.iter().position(|known| known == device) {
            None if devices.len() < MAX_DEVICES => {
                devices.push(device.to_owned());
                Some(devices.len() - 1)
            }
            place => place,
        },
        None => {
            let mut names = threads.range((pid, Id::Number(i64::MIN))..);
            let mut of_queues = std::iter::from_fn(|| {
                let ((process, _), thread) = names.next()?;
                (*process == pid).then(|| thread.name.as_deref().and_then(device_of))
            })
            .take(MAX_DEVICES)
            .flatten();
            let first = of_queues.next()?;
            let are_equal = of_queues.all(|other| other == first);
            let is_known = devices.len() == 1 && devices[0] == first;
            let is_only = are_equal && (devices.is_empty() || is_known);
            if is_only && devices.is_empty() {
                devices.push(first.to_owned());
            }
            is_only.then_some(0)
        }
    }
}

/// The device in the name of a queue: `IOQ 0x55aa.0.0 NAME (TYPE)`.
fn device_of(queue: &str) -> Option<&str> {
    let rest = queue.strip_prefix("IOQ ").or(queue.strip_prefix("OOQ "))?;
    let (_, device) = rest.split_once('.')?;
    // The family and the index of a queue stand behind the device.
    Some(match device.find(" (F:") {
        Some(end) => &device[..end],
        None => device,
    })
}

/// The title and the name of a device.
pub(super) fn title(number: usize, device: &str) -> (String, String) {
    let (front, kind) = match device
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("))
    {
        Some((front, kind)) => (front, kind.trim_start_matches("CL_DEVICE_TYPE_")),
        None => (device, "GPU"),
    };
    // Numbers of platform and device stand in front of the name, or one word with them.
    let name = front.split_once(' ').map_or(front, |(_, name)| name);
    let is_number = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let name = match front.split_once(' ') {
        Some((numbers, _)) if is_number(numbers) => name,
        _ => front,
    };
    let kind = if kind.contains("GPU") { "GPU" } else { kind };
    (format!("{kind} {number}"), name.to_owned())
}

/// The category of a command, as JSON.
fn category(name: &str) -> &'static str {
    let Some(rest) = name.strip_prefix("clEnqueue") else {
        return "\"kernel\"";
    };
    let is = |words: &[&str]| words.iter().any(|word| rest.contains(word));
    match () {
        () if is(&["Fill", "Memset"]) => "\"gpu_memset\"",
        () if is(&["Read", "Write", "Copy", "Memcpy", "Migrate"]) => "\"gpu_memcpy\"",
        () if is(&["Barrier", "Marker", "WaitForEvents"]) => "\"gpu_sync\"",
        () if is(&["NDRange", "Task", "NativeKernel"]) => "\"kernel\"",
        () => "\"gpu_work\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_names_its_device() {
        let queue = "IOQ 0xaaab0630b770.0.0 cpu-cortex-a53-0x000 (CL_DEVICE_TYPE_CPU)";
        let device = device_of(queue).unwrap();
        assert_eq!(
            title(0, device),
            ("CPU 0".to_owned(), "cpu-cortex-a53-0x000".to_owned())
        );
        let queue = "OOQ 0x1.0.1 Intel(R) Arc(TM) (CL_DEVICE_TYPE_GPU) (F:0 I:1)";
        let device = device_of(queue).unwrap();
        assert_eq!(
            title(1, device),
            ("GPU 1".to_owned(), "Intel(R) Arc(TM)".to_owned())
        );
        assert_eq!(device_of("Host Thread 7"), None);
    }
}
