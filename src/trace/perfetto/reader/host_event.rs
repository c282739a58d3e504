//! Events of the host: slices, instants, and values of counters.

use super::annotations::AnnotationValue;
use super::fields::{FieldValue, MessageField, MessageFields, key, numbers_of};
use super::resolving::{MAX_REPEATED, NumberedText, Resolving};
use super::texts::TextId;
use super::tracks::{Known, Track, TrackId};
use crate::model::{CounterValue, FlowId, FlowPoint};
use crate::perfetto::schema::field::{
    debug_annotation, gpu_correlation, interned_data as table, track_event,
};
use gputrail_record::Nanos;

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
    pub name: NumberedText<'a>,
    /// Its first category.
    pub category: NumberedText<'a>,
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
    /// The bits of ids that say which trace of the file they belong to.
    pub(super) part: u64,
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
            name: NumberedText::default(),
            category: NumberedText::default(),
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
            part: 0,
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
        .map(|id| id ^ self.part)
    }

    /// Event ids of device work that it waited for.
    pub fn waited(&self) -> impl Iterator<Item = u64> {
        numbers_of(
            self.correlated,
            gpu_correlation::RENDER_STAGE_WAIT_EVENT_IDS,
        )
        .map(|id| id ^ self.part)
    }
}

/// Puts the values of further counters beside their tracks.
pub(super) fn read_further_values(bytes: &[u8], event: &mut HostEvent<'_>) {
    let (mut whole, mut fractions) = (Vec::new(), Vec::new());
    for field in MessageFields::new(bytes) {
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

impl<'a> Resolving<'a, '_> {
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
            let mut fields = MessageFields::new(left);
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
                    let mut fields = MessageFields::new(correlation);
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
    fn rare_field(&mut self, field: MessageField<'a>, event: &mut HostEvent<'a>) {
        match (field.number, field.value) {
            (track_event::COUNTER_VALUE, FieldValue::Number(value)) => {
                event.value = Some(CounterValue::Int(value as i64))
            }
            (track_event::DOUBLE_COUNTER_VALUE, FieldValue::Fixed64(bits)) => {
                event.value = Some(CounterValue::Double(f64::from_bits(bits)))
            }
            (track_event::FLOW_IDS | track_event::FLOW_IDS_OLD, _) => add_repeated(
                event,
                |event| &mut event.flows,
                flow_points(field, self.part, false),
            ),
            (track_event::TERMINATING_FLOW_IDS | track_event::TERMINATING_FLOW_IDS_OLD, _) => {
                add_repeated(
                    event,
                    |event| &mut event.flows,
                    flow_points(field, self.part, true),
                )
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
}

#[inline]
fn add_category<'a>(category: NumberedText<'a>, event: &mut HostEvent<'a>) {
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

fn flow_points(field: MessageField<'_>, part: u64, last: bool) -> impl Iterator<Item = FlowPoint> {
    let ids = fixed_or_varint(field);
    ids.map(move |id| FlowPoint {
        flow: FlowId(id ^ part),
        last,
    })
}

/// The numbers of a repeated field of fixed64 (or, in its older form, of varints), whether they are packed or not.
fn fixed_or_varint(field: MessageField<'_>) -> Box<dyn Iterator<Item = u64> + '_> {
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
