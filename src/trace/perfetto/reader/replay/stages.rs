//! Kernels, and kinds of other work: what all work of one stage and one kernel has in common.

use std::collections::HashMap;
use std::rc::Rc;

use super::limits::MAX_NAME_BYTES;
use crate::arguments::StoredArguments;
use crate::model::{Launch, Resources, StageId, Value, WorkKind};
use crate::perfetto::reader::{FieldValue, MessageFields, NumberedText, WorkEvent};
use crate::perfetto::schema::field::gpu_render_stage_event::{
    compute_kernel_launch, dim3, extra_compute_arg,
};
use crate::perfetto::schema::field::{
    interned_compute_kernel as kernel, interned_gpu_render_stage_specification as specification,
};
use gputrail_record::{SynchronizationType, TransferKind};

/// Maximum number of combinations of a stage and a kernel that are remembered.
const MAX_STAGES: usize = 1 << 16;

/// A stage and a kernel.
#[derive(Debug)]
pub(super) struct StageOfWork {
    pub id: StageId,
    pub kind: WorkKind,
    pub name: Box<str>,
    pub demangled: Box<str>,
    pub architecture: Box<str>,
    pub launch: Option<Launch>,
    pub resources: Resources,
    pub stream: u32,
    /// Properties that the model has no field for.
    pub arguments: StoredArguments,
}

/// All stages.
#[derive(Debug, Default)]
pub(super) struct Stages {
    /// By their interned entries and the name of the work.
    known: HashMap<Vec<u8>, Rc<StageOfWork>>,
    ids: HashMap<(WorkKind, [Box<str>; 3]), StageId>,
    next: u32,
    key: Vec<u8>,
    /// Bytes of all keys, approximately half of the memory that the stages take.
    bytes: usize,
}

impl Stages {
    /// Whether there are so many that they should be forgotten.
    pub fn are_full(&self) -> bool {
        self.known.len() >= MAX_STAGES || self.bytes >= MAX_NAME_BYTES
    }

    /// Forgets all stages. Work that refers to them should have been passed on: it keeps them in memory.
    pub fn clear(&mut self) {
        self.known.clear();
        self.ids.clear();
        self.bytes = 0;
    }

    /// The stage of a piece of work.
    pub fn of(&mut self, event: &WorkEvent<'_>) -> Rc<StageOfWork> {
        self.key.clear();
        for part in [
            event.stage_entry,
            event.kernel_entry,
            event.name.text.as_bytes(),
        ] {
            self.key.extend_from_slice(&part.len().to_le_bytes());
            self.key.extend_from_slice(part);
        }
        if let Some(known) = self.known.get(&self.key) {
            return Rc::clone(known);
        }
        let stage = Rc::new(self.read(event));
        self.bytes += self.key.len();
        self.known.insert(self.key.clone(), Rc::clone(&stage));
        stage
    }

    fn read(&mut self, event: &WorkEvent<'_>) -> StageOfWork {
        let mut stage = StageOfWork {
            id: StageId(0),
            kind: kind_of(event.category, event.name),
            name: event.name.text.into(),
            demangled: Box::default(),
            architecture: Box::default(),
            launch: None,
            resources: Resources::default(),
            stream: 0,
            arguments: StoredArguments::default(),
        };
        for field in MessageFields::new(event.stage_entry) {
            if let (specification::DESCRIPTION, FieldValue::Bytes(text)) =
                (field.number, field.value)
            {
                let text = String::from_utf8_lossy(text);
                stage.launch = launch_of(&text);
                if stage.launch.is_none() && !text.is_empty() {
                    stage.arguments.push("description", Value::Text(&text));
                }
            }
        }
        for field in MessageFields::new(event.kernel_entry) {
            let text = |bytes| String::from_utf8_lossy(bytes).into();
            match (field.number, field.value) {
                (kernel::DEMANGLED_NAME, FieldValue::Bytes(name)) => stage.demangled = text(name),
                (kernel::ARCH, FieldValue::Bytes(name)) => stage.architecture = text(name),
                (kernel::ARGS, FieldValue::Bytes(argument)) => stage.property(argument),
                _ => {}
            }
        }
        stage.id = self.id(
            stage.kind,
            [&stage.name, &stage.demangled, &stage.architecture],
        );
        stage
    }

    /// The id of a stage with a name, a demangled name and an architecture.
    pub fn id(&mut self, kind: WorkKind, names: [&str; 3]) -> StageId {
        let next = &mut self.next;
        let key = (kind, names.map(Box::from));
        *self.ids.entry(key).or_insert_with(|| {
            self.bytes += names.iter().map(|name| name.len()).sum::<usize>();
            *next += 1;
            StageId((kind as u64) << 32 | u64::from(*next))
        })
    }
}

impl StageOfWork {
    fn property(&mut self, argument: &[u8]) {
        let (mut name, mut value) = (None, None);
        for field in MessageFields::new(argument) {
            match (field.number, field.value) {
                (extra_compute_arg::NAME, FieldValue::Bytes(text)) => {
                    name = std::str::from_utf8(text).ok()
                }
                (extra_compute_arg::UINT_VALUE, FieldValue::Number(number)) => {
                    value = Some(Value::Uint(number))
                }
                (extra_compute_arg::INT_VALUE, FieldValue::Number(number)) => {
                    value = Some(Value::Int(number as i64))
                }
                (extra_compute_arg::DOUBLE_VALUE, FieldValue::Fixed64(bits)) => {
                    value = Some(Value::Double(f64::from_bits(bits)))
                }
                (extra_compute_arg::STRING_VALUE, FieldValue::Bytes(text)) => {
                    value = std::str::from_utf8(text).ok().map(Value::Text)
                }
                _ => {}
            }
        }
        let (Some(name), Some(value)) = (name, value) else {
            return;
        };
        let number = match value {
            Value::Uint(number) => u32::try_from(number).ok(),
            Value::Int(number) => u32::try_from(number).ok(),
            _ => None,
        };
        let known = match name {
            "device" => return,
            "stream" => &mut self.stream,
            "registers_per_thread" => &mut self.resources.registers,
            "accum_vgpr_count" => &mut self.resources.accumulation_registers,
            "sgpr_count" => &mut self.resources.scalar_registers,
            "shared_mem_static" => &mut self.resources.static_local,
            "shared_mem_dynamic" => &mut self.resources.dynamic_local,
            "private_mem_per_thread" => &mut self.resources.private,
            _ => return self.arguments.push(name, value),
        };
        match number {
            Some(number) => *known = number,
            None => self.arguments.push(name, value),
        }
    }
}

/// The launch in the description of a stage of gputrail: "64 x 1 x 1 work-items in workgroups of 8 x 1 x 1".
fn launch_of(description: &str) -> Option<Launch> {
    let (grid, rest) = description.split_once(" work-items")?;
    let workgroup = match rest.strip_prefix(" in workgroups of ") {
        Some(workgroup) => three(workgroup)?,
        None if rest == ", workgroup chosen by the runtime" => [0; 3],
        None => return None,
    };
    Some(Launch {
        grid: three(grid)?,
        workgroup,
    })
}

fn three<T: std::str::FromStr + Copy>(text: &str) -> Option<[T; 3]> {
    let numbers: Option<Vec<T>> = text.split(" x ").map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// The launch of a piece of work by its numbers of workgroups.
pub(super) fn launch_in(message: &[u8]) -> Option<Launch> {
    let size = |wanted| {
        let field = MessageFields::new(message).find(|field| field.number == wanted)?;
        let mut size = [1; 3];
        for field in MessageFields::new(field.bytes()?) {
            let place = match field.number {
                dim3::X => 0,
                dim3::Y => 1,
                dim3::Z => 2,
                _ => continue,
            };
            size[place] = field.number()? as u32;
        }
        Some(size)
    };
    let groups = size(compute_kernel_launch::GRID_SIZE)?;
    let workgroup = size(compute_kernel_launch::WORKGROUP_SIZE)?;
    let items = |place: usize| u64::from(groups[place]) * u64::from(workgroup[place]);
    Some(Launch {
        grid: [items(0), items(1), items(2)],
        workgroup,
    })
}

/// The kind of work, by its category and name: so our traces have it, and most others.
fn kind_of(category: Option<u64>, name: NumberedText<'_>) -> WorkKind {
    let name = name.text;
    if matches!(category, Some(1 | 2)) {
        return WorkKind::Kernel;
    }
    if TransferKind::from_name(name).is_some() {
        return WorkKind::Copy;
    }
    if SynchronizationType::from_name(name).is_some() {
        return WorkKind::Synchronization;
    }
    match name {
        WorkKind::FILL => return WorkKind::Set,
        WorkKind::GRAPH => return WorkKind::Graph,
        WorkKind::NO_ENQUEUE => return WorkKind::Unknown,
        _ => {}
    }
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match category {
        _ if has(&["memset", "memory_set", "fill"]) => WorkKind::Set,
        _ if has(&["memcpy", "copy", "transfer"]) => WorkKind::Copy,
        Some(_) if has(&["sync", "barrier", "wait"]) => WorkKind::Synchronization,
        Some(_) => WorkKind::Unknown,
        None => WorkKind::Kernel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_that_are_full_have_room_again_when_they_are_forgotten() {
        let mut stages = Stages {
            bytes: MAX_NAME_BYTES,
            ..Stages::default()
        };
        assert!(stages.are_full());
        stages.clear();
        assert!(!stages.are_full());
    }
}
