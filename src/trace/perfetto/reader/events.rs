//! The two most frequent kinds of packets in our traces: events of the host, and work of a device.

use super::Known;
use super::fields::{Field, FieldValue, Fields, key};
use super::findings::{Findings, PacketPosition};
use super::sequences::{Entry, Sequence, name_of_table};
use super::texts::{TextId, Texts};
use super::tracks::{Track, TrackId};
use crate::model::{CounterValue, FlowId, FlowPoint, StackFrame, Value, Work};
use crate::perfetto::schema::field::{
    self, debug_annotation, gpu_correlation, gpu_render_stage_event as stage,
    interned_data as table, track_event,
};
use gputrail_record::{Nanos, ProcessId, Unfinished};

/// Maximum number of frames of a callstack that are read.
const MAX_FRAMES: usize = 1 << 12;
/// Maximum number of annotations, of flows, of further categories and of further values of an event. Each takes more memory than
/// its bytes in the packet. Further ones are counted as fields that are not read.
const MAX_REPEATED: usize = 1 << 16;

/// A text with its number.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a> {
    /// Its number: equal texts of a trace have equal numbers.
    pub id: TextId,
    /// The text.
    pub text: &'a str,
}

/// The kind of an event on a track.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A slice begins.
    Begin,
    /// The innermost open slice ends.
    End,
    /// An event without duration.
    Instant,
    /// A counter has a new value.
    Counter,
    /// Something else.
    Other,
}

impl From<u64> for EventKind {
    /// The kind with the number `kind` in a `TrackEvent`.
    #[inline]
    fn from(kind: u64) -> EventKind {
        match kind {
            1 => EventKind::Begin,
            2 => EventKind::End,
            3 => EventKind::Instant,
            4 => EventKind::Counter,
            _ => EventKind::Other,
        }
    }
}

/// The value of an annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum AnnotationValue<'a> {
    /// A bool.
    Bool(bool),
    /// An unsigned number.
    Number(u64),
    /// A signed number.
    Signed(i64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(&'a str),
    /// An address or a handle.
    Pointer(u64),
    /// JSON, as it is in the trace.
    Json(&'a str),
    /// A list or a table of values, as JSON.
    Nested(String),
    /// A message of a type of its own, a list or a table that is too long, or no value.
    Unread,
}

/// An event of the host.
#[derive(Debug)]
pub struct HostEvent<'a> {
    /// Its time.
    pub time: Nanos,
    /// Its kind.
    pub kind: EventKind,
    /// Its track.
    pub track: TrackId,
    /// The description of the track, if there is one.
    pub described: Option<&'a Track>,
    /// The names and tracks that have been read before it.
    pub known: &'a Known,
    /// Its name.
    pub name: Text<'a>,
    /// Its first category.
    pub category: Text<'a>,
    /// Its further categories.
    pub further_categories: Vec<&'a str>,
    /// The correlation id: an annotation in traces of gputrail.
    pub correlation: Option<u64>,
    /// Its GpuCorrelation, if it has one.
    correlated: &'a [u8],
    /// The API of the call as a number of Perfetto's, 0 if unknown.
    pub api: u64,
    /// Its annotations.
    pub annotations: Vec<(&'a str, AnnotationValue<'a>)>,
    /// The flows that pass through it.
    pub flows: Vec<FlowPoint>,
    /// The value of its track's counter.
    pub value: Option<CounterValue>,
    /// Values of further counters.
    pub further_values: Vec<(TrackId, CounterValue)>,
    /// The number of its fields that are of no kind above, or beyond the number of them that is read.
    pub unread_fields: u32,
    /// Whether it is an event of Chrome's older format.
    pub is_legacy: bool,
}

impl<'a> HostEvent<'a> {
    /// An event with a time and a track only.
    #[inline]
    pub(super) fn at(time: Nanos, track: TrackId, known: &'a Known) -> Self {
        HostEvent {
            time,
            kind: EventKind::Other,
            track,
            described: None,
            known,
            name: Text::default(),
            category: Text::default(),
            further_categories: Vec::new(),
            correlation: None,
            correlated: &[],
            api: 0,
            annotations: Vec::new(),
            flows: Vec::new(),
            value: None,
            further_values: Vec::new(),
            unread_fields: 0,
            is_legacy: false,
        }
    }

    /// The text of the annotation `name`, if there is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        let mut annotations = self.annotations.iter();
        annotations.find_map(|(known, value)| match value {
            AnnotationValue::Text(text) if *known == name => Some(*text),
            _ => None,
        })
    }

    /// Event ids of device work that it submitted.
    pub fn submitted(&self) -> impl Iterator<Item = u64> {
        numbers_of(
            self.correlated,
            gpu_correlation::RENDER_STAGE_SUBMISSION_EVENT_IDS,
        )
    }

    /// Event ids of device work that it waited for.
    pub fn waited(&self) -> impl Iterator<Item = u64> {
        numbers_of(
            self.correlated,
            gpu_correlation::RENDER_STAGE_WAIT_EVENT_IDS,
        )
    }
}

/// Puts the values of further counters beside their tracks.
pub(super) fn read_further_values(bytes: &[u8], event: &mut HostEvent<'_>) {
    let (mut whole, mut fractions) = (Vec::new(), Vec::new());
    for field in Fields::new(bytes) {
        match (field.number, field.value) {
            (track_event::EXTRA_COUNTER_VALUES, _) => whole.extend(field.numbers()),
            (track_event::EXTRA_DOUBLE_COUNTER_VALUES, FieldValue::Bytes(packed)) => {
                let chunks = packed.chunks_exact(8);
                let bits = chunks.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8")));
                fractions.extend(bits);
            }
            (track_event::EXTRA_DOUBLE_COUNTER_VALUES, _) => fractions.extend(field.number()),
            _ => {}
        }
    }
    let (mut whole, mut fractions) = (whole.into_iter(), fractions.into_iter());
    event.further_values.retain_mut(|(_, value)| {
        let next = match value {
            CounterValue::Int(_) => whole.next().map(|value| CounterValue::Int(value as i64)),
            CounterValue::Double(_) => fractions
                .next()
                .map(|bits| CounterValue::Double(f64::from_bits(bits))),
        };
        *value = next.unwrap_or(*value);
        next.is_some()
    });
}

/// The numbers of a repeated field of a message.
fn numbers_of(message: &[u8], number: u32) -> impl Iterator<Item = u64> {
    let fields = Fields::new(message).filter(move |field| field.number == number);
    fields.flat_map(|field| field.numbers())
}

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
    pub queue: Text<'a>,
    /// The name of the kernel or of the kind of work.
    pub name: Text<'a>,
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
        numbers_of(self.bytes, stage::EVENT_WAIT_IDS)
    }
}

/// The state with which references are resolved, and the list of findings.
pub(super) struct Resolving<'a, 'f> {
    pub sequence: Option<&'a Sequence>,
    pub texts: &'a Texts,
    pub position: PacketPosition,
    pub findings: &'f mut Findings,
    /// Whether entries were left out, so that a missing one is not a defect.
    pub incomplete: bool,
    /// Bytes of the tables and lists among the packet's annotations.
    pub json_bytes: usize,
}

impl<'a> Resolving<'a, '_> {
    /// The entry with `number` in a table; `None` for 0.
    #[inline]
    pub fn entry(&mut self, table: u32, number: u64) -> Option<&'a Entry> {
        let entry = self
            .sequence
            .and_then(|sequence| sequence.entry(table, number));
        if entry.is_none() && number != 0 && !self.incomplete {
            self.findings.add(self.position, || {
                format!("{} {number} was never interned", name_of_table(table))
            });
        }
        entry
    }

    #[inline]
    pub(super) fn name(&mut self, table: u32, number: u64) -> Text<'a> {
        self.entry(table, number)
            .map_or(Text::default(), |entry| Text {
                id: entry.name,
                text: self.texts.get(entry.name),
            })
    }

    /// A text that is written in full in the packet.
    #[inline]
    pub(super) fn text(&mut self, bytes: &'a [u8]) -> &'a str {
        std::str::from_utf8(bytes).unwrap_or_else(|_| {
            self.findings
                .add(self.position, || "a text that is not UTF-8".into());
            ""
        })
    }

    pub(super) fn own_text(&mut self, bytes: &'a [u8]) -> Text<'a> {
        Text {
            id: TextId::OTHER,
            text: self.text(bytes),
        }
    }

    #[inline]
    pub(super) fn end_of(&mut self, what: &str, fields: &Fields<'_>) {
        if let Some(why) = fields.malformed() {
            self.findings
                .add(self.position, || format!("{what}: {why}"));
        }
    }

    /// Reads a `TrackEvent`.
    #[inline]
    pub fn host(&mut self, bytes: &'a [u8], event: &mut HostEvent<'a>) {
        const TYPE: u8 = key::number(track_event::TYPE);
        const CATEGORY: u8 = key::number(track_event::CATEGORY_IIDS);
        const NAME: u8 = key::number(track_event::NAME_IID);
        const TRACK: u8 = key::number(track_event::TRACK_UUID);
        const ANNOTATION: u8 = key::bytes(track_event::DEBUG_ANNOTATIONS);
        let mut left = bytes;
        while let Some(key) = left.first() {
            let behind = match *key {
                TYPE => key::split_number(left).map(|(kind, rest)| {
                    event.kind = kind.into();
                    rest
                }),
                CATEGORY => key::split_number(left).map(|(number, rest)| {
                    self.category(number, event);
                    rest
                }),
                NAME => key::split_number(left).map(|(number, rest)| {
                    event.name = self.name(table::EVENT_NAMES, number);
                    rest
                }),
                TRACK => key::split_number(left).map(|(track, rest)| {
                    event.track = TrackId(track);
                    rest
                }),
                ANNOTATION => key::split_bytes(left).map(|(annotation, rest)| {
                    self.annotate(annotation, event);
                    rest
                }),
                _ => None,
            };
            if let Some(rest) = behind {
                left = rest;
                continue;
            }
            let mut fields = Fields::new(left);
            let Some(field) = fields.next() else {
                self.end_of("track event", &fields);
                break;
            };
            left = fields.rest();
            match (field.number, field.value) {
                (track_event::CATEGORY_IIDS, FieldValue::Bytes(_)) => {
                    for number in field.numbers() {
                        self.category(number, event);
                    }
                }
                (track_event::CATEGORIES, FieldValue::Bytes(text)) => {
                    let category = self.own_text(text);
                    add_category(category, event);
                }
                (track_event::NAME, FieldValue::Bytes(text)) => event.name = self.own_text(text),
                (track_event::CORRELATION_ID, FieldValue::Number(number)) => {
                    event.correlation = Some(number)
                }
                (track_event::DEBUG_ANNOTATIONS, FieldValue::Bytes(annotation)) => {
                    self.annotate(annotation, event)
                }
                (track_event::SOURCE_LOCATION_IID, FieldValue::Number(number)) => {
                    self.entry(table::SOURCE_LOCATIONS, number);
                }
                (track_event::CALLSTACK_IID, FieldValue::Number(number)) => {
                    self.entry(table::CALLSTACKS, number);
                }
                (track_event::GPU_CORRELATION, FieldValue::Bytes(correlation)) => {
                    event.correlated = correlation;
                    let mut fields = Fields::new(correlation);
                    fields.by_ref().for_each(drop);
                    self.end_of("gpu_correlation", &fields);
                }
                (track_event::GPU_API, FieldValue::Number(api)) => event.api = api,
                (track_event::LEGACY_EVENT, _) => event.is_legacy = true,
                _ => self.rare_field(field, event),
            }
        }
    }

    /// Reads a field that few events have.
    #[inline(never)]
    fn rare_field(&mut self, field: Field<'a>, event: &mut HostEvent<'a>) {
        match (field.number, field.value) {
            (track_event::COUNTER_VALUE, FieldValue::Number(value)) => {
                event.value = Some(CounterValue::Int(value as i64))
            }
            (track_event::DOUBLE_COUNTER_VALUE, FieldValue::Fixed64(bits)) => {
                event.value = Some(CounterValue::Double(f64::from_bits(bits)))
            }
            (track_event::FLOW_IDS | track_event::FLOW_IDS_OLD, _) => {
                add_repeated(event, |event| &mut event.flows, flow_points(field, false))
            }
            (track_event::TERMINATING_FLOW_IDS | track_event::TERMINATING_FLOW_IDS_OLD, _) => {
                add_repeated(event, |event| &mut event.flows, flow_points(field, true))
            }
            // The tracks and the values of further counters are two lists; either may come first.
            (
                track_event::EXTRA_COUNTER_TRACK_UUIDS
                | track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS,
                _,
            ) => {
                let zero = match field.number {
                    track_event::EXTRA_COUNTER_TRACK_UUIDS => CounterValue::Int(0),
                    _ => CounterValue::Double(0.0),
                };
                let tracks = field.numbers().map(|track| (TrackId(track), zero));
                add_repeated(event, |event| &mut event.further_values, tracks);
            }
            (track_event::EXTRA_COUNTER_VALUES | track_event::EXTRA_DOUBLE_COUNTER_VALUES, _) => {}
            _ => event.unread_fields += 1,
        }
    }

    #[inline]
    fn category(&mut self, number: u64, event: &mut HostEvent<'a>) {
        let category = self.name(table::EVENT_CATEGORIES, number);
        add_category(category, event);
    }

    #[inline]
    fn annotate(&mut self, bytes: &'a [u8], event: &mut HostEvent<'a>) {
        let (name, value) = match named_number(bytes) {
            Some((name, number)) => {
                let name = self.name(table::DEBUG_ANNOTATION_NAMES, name);
                (name, AnnotationValue::Number(number))
            }
            None => self.annotation(bytes),
        };
        match value {
            AnnotationValue::Number(id) if name.id == TextId::CORRELATION => {
                event.correlation = Some(id);
            }
            _ if event.annotations.len() >= MAX_REPEATED => event.unread_fields += 1,
            _ => event.annotations.push((name.text, value)),
        }
    }

    /// Reads a `GpuRenderStageEvent`.
    #[inline(always)]
    pub fn work(&mut self, bytes: &'a [u8], start: Nanos) -> WorkEvent<'a> {
        let mut event = WorkEvent {
            start,
            duration: None,
            event: None,
            gpu: 0,
            process: ProcessId(0),
            queue: Text::default(),
            name: Text::default(),
            category: None,
            submission: 0,
            details: Details::default(),
            queue_entry: &[],
            stage_entry: &[],
            context_entry: &[],
            kernel_entry: &[],
            bytes,
            properties: Vec::new(),
        };
        let mut own_name = None;
        let mut fields = Fields::new(bytes);
        for field in fields.by_ref() {
            match (field.number, field.value) {
                (stage::EVENT_ID, FieldValue::Number(id)) => event.event = Some(id),
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
                        event.queue = Text {
                            id: entry.name,
                            text: self.texts.get(entry.name),
                        };
                        event.queue_entry = &entry.bytes;
                    }
                }
                (stage::STAGE_IID, FieldValue::Number(number)) => {
                    if let Some(entry) = self.entry(table::GPU_SPECIFICATIONS, number) {
                        event.stage_entry = &entry.bytes;
                        event.name = Text {
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
        let mut fields = Fields::new(bytes);
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
        let mut fields = Fields::new(bytes);
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
            for field in Fields::new(argument) {
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

    /// Resolves the callstacks that a sample names: repeated field `number` of its message.
    pub fn callstacks(&mut self, bytes: &'a [u8], number: u32) {
        let mut fields = Fields::new(bytes);
        let wanted = |field: &Field<'_>| field.number == number;
        for field in fields.by_ref().filter(wanted) {
            for callstack in field.numbers() {
                self.callstack(callstack);
            }
        }
        self.end_of("sample", &fields);
    }

    /// The frames of a callstack, outermost first.
    pub fn frames(&mut self, number: u64) -> Vec<StackFrame> {
        let Some(stack) = self.entry(table::CALLSTACKS, number) else {
            return Vec::new();
        };
        let frames =
            Fields::new(&stack.bytes).filter(|field| field.number == field::callstack::FRAME_IDS);
        let frames = frames.flat_map(|field| field.numbers());
        frames
            .take(MAX_FRAMES)
            .map(|frame| {
                let frame = self.entry(table::FRAMES, frame);
                let number = |name| frame.and_then(|frame| number_of(&frame.bytes, name));
                let function = number(field::frame::FUNCTION_NAME_ID).unwrap_or(0);
                let mapping = number(field::frame::MAPPING_ID).unwrap_or(0);
                let mapping = self.entry(table::MAPPINGS, mapping);
                let path = mapping.and_then(|mapping| {
                    let paths = field::mapping::PATH_STRING_IDS;
                    let mut fields = Fields::new(&mapping.bytes);
                    let path = fields.find(|field| field.number == paths)?;
                    path.numbers().next()
                });
                StackFrame {
                    name: self.name(table::FUNCTION_NAMES, function).text.to_owned(),
                    mapping: self
                        .name(table::MAPPING_PATHS, path.unwrap_or(0))
                        .text
                        .to_owned(),
                }
            })
            .collect()
    }

    fn callstack(&mut self, number: u64) {
        let Some(stack) = self.entry(table::CALLSTACKS, number) else {
            return;
        };
        let frames =
            Fields::new(&stack.bytes).filter(|field| field.number == field::callstack::FRAME_IDS);
        for frame in frames.flat_map(|field| field.numbers()) {
            let Some(frame) = self.entry(table::FRAMES, frame) else {
                continue;
            };
            for (field, table) in [
                (field::frame::FUNCTION_NAME_ID, table::FUNCTION_NAMES),
                (field::frame::MAPPING_ID, table::MAPPINGS),
            ] {
                if let Some(number) = number_of(&frame.bytes, field) {
                    self.entry(table, number);
                }
            }
        }
    }
}

#[inline]
fn add_category<'a>(category: Text<'a>, event: &mut HostEvent<'a>) {
    match event.category.text {
        "" => event.category = category,
        _ if event.further_categories.len() >= MAX_REPEATED => event.unread_fields += 1,
        _ => event.further_categories.push(category.text),
    }
}

/// Adds the values of a repeated field of an event to one of its lists, as far as there is room.
fn add_repeated<'a, T>(
    event: &mut HostEvent<'a>,
    list: impl for<'e> Fn(&'e mut HostEvent<'a>) -> &'e mut Vec<T>,
    values: impl Iterator<Item = T>,
) {
    for value in values {
        if list(event).len() < MAX_REPEATED {
            list(event).push(value)
        } else {
            event.unread_fields += 1
        }
    }
}

fn flow_points(field: Field<'_>, last: bool) -> impl Iterator<Item = FlowPoint> {
    let ids = fixed_or_varint(field);
    ids.map(move |id| FlowPoint {
        flow: FlowId(id),
        last,
    })
}

/// The numbers of a repeated field of fixed64 (or, in its older form, of varints), whether they are packed or not.
fn fixed_or_varint(field: Field<'_>) -> Box<dyn Iterator<Item = u64> + '_> {
    let fixed = matches!(
        field.number,
        track_event::FLOW_IDS | track_event::TERMINATING_FLOW_IDS
    );
    match field.value {
        FieldValue::Bytes(packed) if fixed => {
            let chunks = packed.chunks_exact(8);
            Box::new(chunks.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes"))))
        }
        _ => Box::new(field.numbers()),
    }
}

/// The name's number and the value of an annotation that has just these two, as most have.
#[inline]
fn named_number(annotation: &[u8]) -> Option<(u64, u64)> {
    const NAME: u8 = key::number(debug_annotation::NAME_IID);
    const UINT: u8 = key::number(debug_annotation::UINT_VALUE);
    annotation.first().filter(|key| **key == NAME)?;
    let (name, rest) = key::split_number(annotation)?;
    rest.first().filter(|key| **key == UINT)?;
    let (number, rest) = key::split_number(rest)?;
    rest.is_empty().then_some((name, number))
}

/// The number in a field of a message.
fn number_of(message: &[u8], number: u32) -> Option<u64> {
    Fields::new(message)
        .find(|field| field.number == number)
        .and_then(|field| field.number())
}
