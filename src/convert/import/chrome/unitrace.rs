//! Events of Intel's unitrace (`--chrome-kernel-logging`, `--chrome-call-logging`), in the words of PyTorch's profiler.
//!
//! A device, or a tile of one, is a process, which the file names before its events; an engine or a queue is a thread. Commands have
//! the category `gpu_op` and are device work; functions of Level Zero and OpenCL have `cpu_op`, as all events of the host, and are
//! calls. Arrows from calls to commands (`Flow_H2D_*`) tie them, arrows from commands to the calls that waited for them
//! (`Flow_D2H_*`) are those waits.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::arguments;
use super::collect::Collected;
use super::event::{ChromeEvent, text};
use super::ids::Id;
use super::reworded::{QUEUE_NAME, Reworded, member, quoted};

/// The category of functions of Level Zero.
pub(super) const CALL: &str = "level_zero";
/// The beginnings of categories of arrows to commands and from commands.
const TO_DEVICE: [&str; 2] = ["Flow_H2D_", "CL_Flow_H2D_"];
const TO_HOST: [&str; 2] = ["Flow_D2H_", "CL_Flow_D2H_"];

/// Most devices, and most queues.
const MAX_DEVICES: usize = 1 << 8;
const MAX_QUEUES: usize = 1 << 12;

/// Devices in the order in which their processes are named.
#[derive(Debug, Default)]
pub(super) struct UnitraceState {
    /// Numbers of devices by the processes that stand for them.
    pub devices: BTreeMap<Id, u32>,
    /// Numbers of queues by the devices and names of their rows: those that run at a time have one name.
    queues: BTreeMap<(u32, String), u32>,
    /// Whether a process has a name as unitrace writes it.
    pub has_names: bool,
}

impl UnitraceState {
    /// A process or thread has a name.
    pub fn named(&mut self, name: &str) {
        self.has_names |= name.contains("HOST<") || name.contains("DEVICE<");
    }
}

/// Whether arrows of a category lead to commands.
pub(super) fn is_to_device(category: &str) -> bool {
    TO_DEVICE.iter().any(|begin| category.starts_with(begin))
}

/// Whether arrows of a category lead from commands to calls that wait for them.
pub(super) fn is_to_host(category: &str) -> bool {
    TO_HOST.iter().any(|begin| category.starts_with(begin))
}

/// The model of the device of a process, and its number among the devices of its machine, with a tile behind it.
pub(super) fn described(name: &str) -> Option<(&str, Option<&str>)> {
    let (_, rest) = name.split_once("DEVICE<")?;
    let (_, rest) = rest.split_once('>')?;
    let model = rest
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let model = model.map_or("", |(model, _)| model);
    let number = rest.rsplit_once(" #").map(|(_, number)| number);
    Some((model, number))
}

/// An event of unitrace; `None` of others.
pub(super) fn translate(
    collected: &mut Collected<'_>,
    event: &ChromeEvent<'_>,
    category: &str,
) -> Option<Reworded> {
    let pid = collected.id(event.pid);
    let process = collected.processes.get(&pid)?.name.as_deref()?;
    match category {
        "gpu_op" if described(process).is_some() => command(collected, event, pid),
        "cpu_op" if process.contains("HOST<") => call(event),
        _ => None,
    }
}

/// A command of a device.
fn command(collected: &mut Collected<'_>, event: &ChromeEvent<'_>, pid: Id) -> Option<Reworded> {
    let devices = &mut collected.writers.unitrace.devices;
    let next = devices.len();
    if next >= MAX_DEVICES && !devices.contains_key(&pid) {
        return None;
    }
    let device = *devices.entry(pid).or_insert(next as u32);
    let row = collected.id(event.tid);
    let row = collected.threads.get(&(pid, row));
    let row = row.and_then(|row| row.name.as_deref()).unwrap_or("queue");
    let queues = &mut collected.writers.unitrace.queues;
    let key = (device, row.to_owned());
    let next = queues.len();
    let queue = match queues.get(&key) {
        Some(queue) => *queue,
        None if next >= MAX_QUEUES => 0,
        None => {
            queues.insert(key, next as u32);
            next as u32
        }
    };
    let raw_name = event.name.map(text).unwrap_or_default();
    let (tile, name) = tile_of(&raw_name);
    let (name, sizes) = sizes_of(name);
    let mut object = String::new();
    member(&mut object, "device", &device.to_string());
    member(&mut object, "stream", &queue.to_string());
    member(&mut object, QUEUE_NAME, &quoted(row));
    if let Some(tile) = tile {
        member(&mut object, "tile", &tile.to_string());
    }
    let is_copy = name.contains("MemoryCopy") || name.contains("ImageCopy");
    let is_fill = name.contains("MemoryFill") || name.starts_with("clEnqueueFill");
    match sizes {
        Some(Sizes::Bytes(bytes)) => member(&mut object, "bytes", &bytes.to_string()),
        Some(Sizes::Launch { simd, grid, block }) => {
            member(&mut object, "grid", &format!("{grid:?}"));
            member(&mut object, "block", &format!("{block:?}"));
            if !simd.is_empty() {
                member(&mut object, "SIMD", &quoted(simd));
            }
        }
        None => {}
    }
    arguments::each(event.args.unwrap_or(""), |argument, value: &RawValue| {
        let id = (argument == "id")
            .then(|| arguments::number(value))
            .flatten();
        match id {
            Some(id) => member(&mut object, "correlation", &id.to_string()),
            None => member(&mut object, argument, value.get()),
        }
    });
    object.push('}');
    let is_transfer = ["Read", "Write", "Copy", "SVMMemcpy", "Memcpy", "Migrate"]
        .iter()
        .any(|word| {
            name.strip_prefix("clEnqueue")
                .is_some_and(|rest| rest.starts_with(word))
        });
    let category = match () {
        () if is_copy || is_transfer => "\"gpu_memcpy\"",
        () if is_fill => "\"gpu_memset\"",
        () if name.contains("Barrier") || name.contains("Marker") || name.contains("Event") => {
            is_function(name).map_or("\"kernel\"", |_| "\"gpu_sync\"")
        }
        () if is_function(name).is_some() => "\"gpu_work\"",
        () => "\"kernel\"",
    };
    Some(Reworded {
        category,
        arguments: Some(object),
        name: (name != raw_name).then(|| quoted(name)),
        ..Reworded::default()
    })
}

/// The tile in the name of a command, and the rest of the name.
fn tile_of(name: &str) -> (Option<u32>, &str) {
    let tile = name.strip_prefix("Tile #");
    let parts = tile.and_then(|rest| rest.split_once(": "));
    let parts = parts.and_then(|(tile, rest)| Some((tile.parse().ok()?, rest)));
    match parts {
        Some((tile, rest)) => (Some(tile), rest),
        None => (None, name),
    }
}

/// The sizes in the name of a command.
#[derive(Debug, PartialEq, Eq)]
enum Sizes<'n> {
    Bytes(u64),
    Launch {
        simd: &'n str,
        /// Workgroups.
        grid: [u64; 3],
        block: [u64; 3],
    },
}

/// The sizes behind the name of a command, and the name: `name[SIMD32 {4; 1; 1} {256; 1; 1}]`, `zeCommandListAppendMemoryCopy(M2D)[64]`.
fn sizes_of(name: &str) -> (&str, Option<Sizes<'_>>) {
    let Some((front, sizes)) = name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once('['))
    else {
        return (name, None);
    };
    if let Ok(bytes) = sizes.parse() {
        return (front, Some(Sizes::Bytes(bytes)));
    }
    let triple = |text: &str| {
        let mut parts = text.split(';').map(|part| part.trim().parse::<u64>());
        let mut next = || parts.next()?.ok();
        Some([next()?, next()?, next()?])
    };
    let launch = || {
        let (simd, rest) = sizes.split_once('{')?;
        let (grid, rest) = rest.split_once("} {")?;
        let block = rest.strip_suffix('}')?;
        let simd = simd.trim();
        Some(Sizes::Launch {
            simd: simd.strip_prefix("SIMD").unwrap_or(simd),
            grid: triple(grid)?,
            block: triple(block)?,
        })
    };
    match launch() {
        Some(launch) => (front, Some(launch)),
        None => (name, None),
    }
}

/// The API of a function, as JSON.
pub(super) fn is_function(name: &str) -> Option<&'static str> {
    let is_of = |prefix: &str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    match () {
        () if is_of("ze") || is_of("zes") || is_of("zet") || is_of("zex") => Some("\"level_zero\""),
        () if is_of("cl") => Some("\"opencl\""),
        () => None,
    }
}

/// A function of Level Zero or OpenCL. Other events of the host (MPI, oneCCL, ITT, SYCL) stay slices.
fn call(event: &ChromeEvent<'_>) -> Option<Reworded> {
    let name = event.name.map(text)?;
    Some(Reworded {
        category: is_function(&name)?,
        ..Reworded::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_commands_have_tiles_and_sizes() {
        assert_eq!(tile_of("Tile #1: gemm"), (Some(1), "gemm"));
        assert_eq!(tile_of("Tile #x: gemm"), (None, "Tile #x: gemm"));
        let launch = Sizes::Launch {
            simd: "32",
            grid: [4, 2, 1],
            block: [256, 1, 1],
        };
        let cases = [
            ("gemm[SIMD32 {4; 2; 1} {256; 1; 1}]", "gemm", Some(launch)),
            ("copy(M2D)[64]", "copy(M2D)", Some(Sizes::Bytes(64))),
            ("f<int[4]>(int)", "f<int[4]>(int)", None),
            ("operator[]", "operator[]", None),
            (
                "gemm[SIMD32 {4; 2} {1; 1; 1}]",
                "gemm[SIMD32 {4; 2} {1; 1; 1}]",
                None,
            ),
            ("]", "]", None),
        ];
        for (name, front, sizes) in cases {
            assert_eq!(sizes_of(name), (front, sizes), "{name}");
        }
    }

    #[test]
    fn a_process_describes_its_device() {
        let name = "RANK 1 DEVICE<node>[Intel(R) Data Center GPU Max 1550] 0:4d:0:0 #0.1";
        let model = "Intel(R) Data Center GPU Max 1550";
        assert_eq!(described(name), Some((model, Some("0.1"))));
        assert_eq!(described("DEVICE<node>0:4d:0:0"), Some(("", None)));
        assert_eq!(described("HOST<node>"), None);
    }
}
