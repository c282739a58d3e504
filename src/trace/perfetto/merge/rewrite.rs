//! Copies messages field by field and replaces ids that are valid in one trace only.

use super::super::packets::BOOTTIME;
use super::super::reader::{FieldValue, MessageField, MessageFields, number_of};
use super::super::schema::field::clock_snapshot::clock;
use super::super::schema::field::{self, interned_gpu_render_stage_specification as queue};
use super::super::wire::Encoder;
use super::place::Placement;
use crate::model::AGENT_TITLES;
use crate::perfetto::rows::{self, RowName};
use gputrail_record::ProcessId;
use gputrail_record::number_map::NumberMap;

/// One of the traces.
pub(super) struct TracePart {
    pub index: u32,
    /// The number of traces.
    pub of: u32,
    pub placement: Placement,
    /// The first process that has rows on devices.
    pub process: Option<ProcessId>,
    pub gpus: Vec<u32>,
    /// The default clock of each sequence's packets.
    pub clocks: NumberMap<u32, u32>,
}

impl TracePart {
    /// The number in the merged trace of the name of a queue or a stage: old versions of Perfetto identify queues by
    /// it, on all sequences.
    pub fn specification(&self, iid: u64) -> u64 {
        let before = iid.checked_sub(1);
        let shared = before.and_then(|before| before.checked_mul(self.of.into()));
        let own = shared.and_then(|shared| shared.checked_add(u64::from(self.index) + 1));
        own.unwrap_or(iid)
    }

    /// The number in the merged trace of one of this trace's devices.
    pub fn gpu(&self, gpu: u64) -> u64 {
        let new = usize::try_from(gpu).ok().and_then(|gpu| self.gpus.get(gpu));
        new.map_or(gpu, |new| u64::from(*new))
    }
}

/// The fields of a message, each with all of its bytes.
pub(super) fn raw_fields(message: &[u8]) -> impl Iterator<Item = (MessageField<'_>, &[u8])> {
    let mut fields = MessageFields::new(message);
    std::iter::from_fn(move || {
        let begin = fields.position();
        let field = fields.next()?;
        Some((field, &message[begin..fields.position()]))
    })
}

pub(super) fn is_sound(message: &[u8]) -> bool {
    let mut fields = MessageFields::new(message);
    fields.by_ref().for_each(drop);
    fields.malformed().is_none()
}

/// Copies a message except for the fields that `change` writes itself. Damaged bytes are copied unchanged.
pub(super) fn rewrite(
    message: &[u8],
    out: &mut Encoder,
    mut change: impl FnMut(MessageField<'_>, &mut Encoder) -> bool,
) {
    if !is_sound(message) {
        out.append(message);
        return;
    }
    for (field, raw) in raw_fields(message) {
        if !change(field, out) {
            out.append(raw);
        }
    }
}

/// The id of a track in the merged trace; tracks of the first trace keep their ids.
pub(super) fn track_of(part: &TracePart, uuid: u64) -> u64 {
    if part.index == 0 || uuid == 0 {
        return uuid;
    }
    let salt = u64::from(part.index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match uuid ^ salt {
        0 => salt,
        uuid => uuid,
    }
}

pub(super) fn shifted(time: u64, offset: i64) -> u64 {
    time.saturating_add_signed(offset)
}

pub(super) fn shift_snapshot(offset: i64, snapshot: &[u8], out: &mut Encoder) {
    let open = out.open(field::trace_packet::CLOCK_SNAPSHOT);
    rewrite(snapshot, out, |field, out| {
        let (field::clock_snapshot::CLOCKS, FieldValue::Bytes(clock)) = (field.number, field.value)
        else {
            return false;
        };
        let is_boottime = number_of(clock, clock::CLOCK_ID) == Some(BOOTTIME.into());
        let incremental = MessageFields::new(clock)
            .any(|field| field.number == clock::IS_INCREMENTAL && field.number() == Some(1));
        let open = out.open(field::clock_snapshot::CLOCKS);
        rewrite(clock, out, |field, out| match (field.number, field.value) {
            (clock::TIMESTAMP, FieldValue::Number(time)) if is_boottime || incremental => {
                out.uint(clock::TIMESTAMP, shifted(time, offset));
                true
            }
            _ => false,
        });
        out.close(open);
        true
    });
    out.close(open);
}

/// BOOTTIME of a snapshot of a machine's clocks; `None` for snapshots of a sequence's own clock or without BOOTTIME.
pub(super) fn of_machine(snapshot: &[u8]) -> Option<u64> {
    let mut boottime = None;
    for field in MessageFields::new(snapshot) {
        let (field::clock_snapshot::CLOCKS, FieldValue::Bytes(clock)) = (field.number, field.value)
        else {
            continue;
        };
        match number_of(clock, clock::CLOCK_ID) {
            Some(64..128) => return None,
            Some(id) if id == u64::from(BOOTTIME) => boottime = number_of(clock, clock::TIMESTAMP),
            _ => {}
        }
    }
    boottime
}

/// Copies interned data: queues get new numbers, and names that contain a device get that device's new number.
pub(super) fn interned(part: &TracePart, data: &[u8], out: &mut Encoder) {
    let open = out.open(field::trace_packet::INTERNED_DATA);
    rewrite(data, out, |field, out| {
        let (field::interned_data::GPU_SPECIFICATIONS, FieldValue::Bytes(specification)) =
            (field.number, field.value)
        else {
            return false;
        };
        let open = out.open(field::interned_data::GPU_SPECIFICATIONS);
        rewrite(specification, out, |field, out| {
            if let (queue::IID, FieldValue::Number(iid)) = (field.number, field.value) {
                out.uint(queue::IID, part.specification(iid));
                return true;
            }
            let (queue::NAME, FieldValue::Bytes(name)) = (field.number, field.value) else {
                return false;
            };
            write_renamed(renamed_queue(part, name), queue::NAME, out)
        });
        out.close(open);
        true
    });
    out.close(open);
}

/// Writes field `number` with a new name. `false` if there is none: the field stays as it is.
pub(super) fn write_renamed(renamed: Option<String>, number: u32, out: &mut Encoder) -> bool {
    if let Some(name) = &renamed {
        out.string(number, name);
    }
    renamed.is_some()
}

/// A name that begins with a device, `GPU 0 memory in use`, as that of the device's number in the merged trace. `None` for
/// other names.
pub(super) fn renamed_device(part: &TracePart, name: &[u8]) -> Option<String> {
    rename_device(part, std::str::from_utf8(name).ok()?)
}

fn rename_device(part: &TracePart, name: &str) -> Option<String> {
    let (kind, rest) = name.split_once(' ')?;
    if !AGENT_TITLES.contains(&kind) {
        return None;
    }
    let (number, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    let new = *part.gpus.get(number.parse::<usize>().ok()?)?;
    Some(format!("{kind} {new}{rest}"))
}

/// The process that a row names, as it is called in the merged trace: rows of a trace's first process name none.
fn process(part: &TracePart, named: &str) -> String {
    match named {
        "" => part.process.map_or(String::new(), |pid| pid.0.to_string()),
        named => named.to_owned(),
    }
}

/// The name of a queue's row in the merged trace. The process `7` of another machine becomes `7@1`.
fn renamed_queue(part: &TracePart, name: &[u8]) -> Option<String> {
    let row = RowName::of(std::str::from_utf8(name).ok()?)?;
    let mut process = process(part, &row.process);
    let machine = part.placement.machine;
    if machine > 0 && process.bytes().all(|byte| byte.is_ascii_digit()) && !process.is_empty() {
        process += &format!("@{machine}");
    }
    let row = RowName {
        device: rename_device(part, &row.device)?,
        process,
        queue: row.queue,
    };
    Some(row.padded())
}

/// The name of a counter's row in the merged trace. Viewers add the machine.
pub(super) fn renamed_counter(part: &TracePart, name: &[u8]) -> Option<String> {
    let (counter, named) = rows::counter_parts(std::str::from_utf8(name).ok()?);
    let counter = rename_device(part, counter)?;
    Some(rows::counter_row(&counter, &process(part, named)))
}

#[cfg(test)]
mod tests {
    use super::super::Trust;
    use super::*;

    #[test]
    fn queues_and_counters_are_named_after_their_devices_new_number() {
        let part = |machine| TracePart {
            index: 1,
            of: 2,
            placement: Placement {
                machine,
                offset: 0,
                trust: Trust::RealTime,
            },
            process: Some(ProcessId(5)),
            gpus: vec![4],
            clocks: NumberMap::default(),
        };
        let queue = |machine, name: &str| renamed_queue(&part(machine), name.as_bytes());
        let counter = |name: &str| renamed_counter(&part(0), name.as_bytes());
        let device = |name: &str| renamed_device(&part(2), name.as_bytes());
        for (machine, name, renamed) in [
            (0, "GPU 0 · 7 · engine", "GPU 4 · 7 · engine"),
            (2, "GPU 0 · 7 · engine", "GPU 4 · 7@2 · engine"),
            (0, "GPU 0 ·  queue    1", "GPU 4 · 5 ·  queue    1"),
            (2, "GPU 0 · engine", "GPU 4 · 5@2 · engine"),
            (
                2,
                "GPU 0 · rank    3 · engine",
                "GPU 4 · rank    3 · engine",
            ),
        ] {
            assert_eq!(queue(machine, name).as_deref(), Some(renamed));
        }
        assert_eq!(counter("GPU 0 busy · 7").as_deref(), Some("GPU 4 busy · 7"));
        assert_eq!(counter("GPU 0 busy").as_deref(), Some("GPU 4 busy · 5"));
        assert_eq!(
            device("CPU 0 memory in use").as_deref(),
            Some("CPU 4 memory in use")
        );
        assert_eq!(device("GPU 0").as_deref(), Some("GPU 4"));
        for other in ["gemm", "gemm 0 · 7", "GPU 1 · 7", "GPU zero", "GPU 0x"] {
            assert_eq!(device(other), None, "{other}");
            assert_eq!(queue(0, other), None, "{other}");
        }
    }
}
