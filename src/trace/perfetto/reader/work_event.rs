//! Work of devices.

use super::fields::{FieldValue, MessageFields, numbers_of};
use super::resolving::{MAX_REPEATED, NumberedText, Resolving};
use crate::model::{Value, Work};
use crate::perfetto::schema::field::{gpu_render_stage_event as stage, interned_data as table};
use gputrail_record::{Nanos, ProcessId, Unfinished};

/// Work of a device.
#[derive(Debug)]
pub struct WorkEvent<'a> {
    /// When it began.
    pub start: Nanos,
    /// How long it ran, ns; `None` if unknown.
    pub duration: Option<u64>,
    /// Its event id.
    pub event: Option<u64>,
    /// The device's index.
    pub gpu: u32,
    /// The process that enqueued it, if known.
    pub process: ProcessId,
    /// Its queue.
    pub queue: NumberedText<'a>,
    /// The name of the kernel or of the kind of work.
    pub name: NumberedText<'a>,
    /// Its category: 0 other, 1 graphics, 2 compute; `None` if unknown.
    pub category: Option<u64>,
    /// Its submission id.
    pub submission: u64,
    /// The details that are used most.
    pub details: Details,
    /// The interned entries of its queue, its stage, its context and its kernel; empty for those that it does not have.
    pub(super) queue_entry: &'a [u8],
    pub(super) stage_entry: &'a [u8],
    pub(super) context_entry: &'a [u8],
    pub(super) kernel_entry: &'a [u8],
    /// The whole event.
    pub(super) bytes: &'a [u8],
    /// Properties of its launch.
    pub(super) properties: Vec<(&'a str, Value<'a>)>,
    /// The bits of ids that say which trace of the file they belong to.
    pub(super) part: u64,
}

/// Details of work whose names gputrail knows.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Number of bytes copied; 0 if unknown.
    pub bytes: i64,
    /// The status of the runtime, negative for errors.
    pub status: i64,
    /// Whether there is a reason why it has no end.
    pub unfinished: bool,
    /// Whether the reason is that the runtime gave no times of work that completed.
    pub untimed: bool,
    /// Whether the reason is that the recording lacks completions.
    pub unrecorded: bool,
}

impl Details {
    fn add(&mut self, name: &[u8], value: &str) {
        match name {
            b"bytes" => self.bytes = value.parse().unwrap_or(0),
            b"status" => self.status = value.parse().unwrap_or(0),
            b"unfinished" => {
                self.unfinished = true;
                self.untimed = Unfinished::NO_TIMES.name() == Some(value);
                self.unrecorded = value == Work::UNRECORDED;
            }
            _ => {}
        }
    }
}

impl WorkEvent<'_> {
    /// Event ids of the work that it waited for.
    pub fn waits(&self) -> impl Iterator<Item = u64> {
        numbers_of(self.bytes, stage::EVENT_WAIT_IDS).map(|id| id ^ self.part)
    }
}

impl<'a> Resolving<'a, '_> {
    /// Reads a `GpuRenderStageEvent`.
    #[inline(always)]
    pub fn work(&mut self, bytes: &'a [u8], start: Nanos) -> WorkEvent<'a> {
        let mut event = WorkEvent {
            start,
            duration: None,
            event: None,
            gpu: 0,
            process: ProcessId(0),
            queue: NumberedText::default(),
            name: NumberedText::default(),
            category: None,
            submission: 0,
            details: Details::default(),
            queue_entry: &[],
            stage_entry: &[],
            context_entry: &[],
            kernel_entry: &[],
            bytes,
            properties: Vec::new(),
            part: self.part,
        };
        let mut own_name = None;
        let mut fields = MessageFields::new(bytes);
        for field in fields.by_ref() {
            match (field.number, field.value) {
                (stage::EVENT_ID, FieldValue::Number(id)) => event.event = Some(id ^ self.part),
                (stage::DURATION, FieldValue::Number(duration)) => event.duration = Some(duration),
                (stage::CONTEXT, FieldValue::Number(number)) => {
                    let context = self.entry(table::GRAPHICS_CONTEXTS, number);
                    let pid = context.and_then(|context| context.number);
                    event.process = ProcessId(pid.unwrap_or(0) as u32);
                    event.context_entry = context.map_or(&[], |context| &context.bytes);
                }
                (stage::EXTRA_DATA, FieldValue::Bytes(detail)) => {
                    self.detail(detail, &mut event.details)
                }
                (stage::SUBMISSION_ID, FieldValue::Number(number)) => event.submission = number,
                (stage::GPU_ID, FieldValue::Number(gpu)) => event.gpu = gpu as u32,
                (stage::HW_QUEUE_IID, FieldValue::Number(number)) => {
                    if let Some(entry) = self.entry(table::GPU_SPECIFICATIONS, number) {
                        event.queue = NumberedText {
                            id: entry.name,
                            text: self.texts.get(entry.name),
                        };
                        event.queue_entry = &entry.bytes;
                    }
                }
                (stage::STAGE_IID, FieldValue::Number(number)) => {
                    if let Some(entry) = self.entry(table::GPU_SPECIFICATIONS, number) {
                        event.stage_entry = &entry.bytes;
                        event.name = NumberedText {
                            id: entry.name,
                            text: self.texts.get(entry.name),
                        };
                        event.category = entry.number;
                    }
                }
                (stage::NAME, FieldValue::Bytes(text)) => own_name = Some(self.own_text(text)),
                (stage::NAME_IID, FieldValue::Number(number)) => {
                    own_name = Some(self.name(table::EVENT_NAMES, number));
                }
                (stage::KERNEL_IID, FieldValue::Number(number)) => {
                    let kernel = self.entry(table::COMPUTE_KERNELS, number);
                    event.kernel_entry = kernel.map_or(&[], |kernel| &kernel.bytes);
                }
                (stage::LAUNCH, FieldValue::Bytes(launch)) => {
                    self.launch(launch, &mut event.properties)
                }
                _ => {}
            }
        }
        self.end_of("render stage event", &fields);
        if let Some(name) = own_name {
            event.name = name;
        }
        event
    }

    #[inline]
    fn detail(&mut self, bytes: &'a [u8], details: &mut Details) {
        let (mut name, mut value) = ("", "");
        let mut fields = MessageFields::new(bytes);
        for field in fields.by_ref() {
            match (field.number, field.value) {
                (stage::extra_data::NAME, FieldValue::Bytes(text)) => name = self.text(text),
                (stage::extra_data::VALUE, FieldValue::Bytes(text)) => value = self.text(text),
                _ => {}
            }
        }
        details.add(name.as_bytes(), value);
        self.end_of("extra data", &fields);
    }

    fn launch(&mut self, bytes: &'a [u8], properties: &mut Vec<(&'a str, Value<'a>)>) {
        use stage::extra_compute_arg as property;
        let mut fields = MessageFields::new(bytes);
        for field in fields.by_ref() {
            let (stage::compute_kernel_launch::ARGS, FieldValue::Bytes(argument)) =
                (field.number, field.value)
            else {
                continue;
            };
            if properties.len() >= MAX_REPEATED {
                self.findings.add(self.position, || {
                    format!(
                        "a launch with more than {MAX_REPEATED} properties: the rest is skipped"
                    )
                });
                break;
            }
            let (mut name, mut value) = ("", None);
            for field in MessageFields::new(argument) {
                match (field.number, field.value) {
                    (property::NAME_IID, FieldValue::Number(number)) => {
                        name = self.name(table::COMPUTE_ARG_NAMES, number).text
                    }
                    (property::NAME, FieldValue::Bytes(text)) => name = self.text(text),
                    (property::INT_VALUE, FieldValue::Number(number)) => {
                        value = Some(Value::Int(number as i64))
                    }
                    (property::UINT_VALUE, FieldValue::Number(number)) => {
                        value = Some(Value::Uint(number))
                    }
                    (property::DOUBLE_VALUE, FieldValue::Fixed64(bits)) => {
                        value = Some(Value::Double(f64::from_bits(bits)))
                    }
                    (property::STRING_VALUE, FieldValue::Bytes(text)) => {
                        value = Some(Value::Text(self.text(text)))
                    }
                    (property::STRING_VALUE_IID, FieldValue::Number(number)) => {
                        let text = self.name(table::DEBUG_ANNOTATION_STRING_VALUES, number);
                        value = Some(Value::Text(text.text));
                    }
                    _ => {}
                }
            }
            properties.extend(value.map(|value| (name, value)));
        }
        self.end_of("launch", &fields);
    }
}
