//! The extension for structured payloads: layouts that the program registers, and markers that carry data of such a
//! layout. Their values are recorded as [fields](gputrail_record::MarkerKind::FIELD) of the marker.
//!
//! # Safety
//!
//! As in `functions`: the arguments are those of a program that keeps to NVTX's documentation.

use super::attributes::PayloadData;
use super::domain::{
    DomainHandle, NO_PUSH_POP_TRACKING, category, domain, ended, popped, pushed, started,
};
use super::registered::{Registered, register};
use super::schema::{Enumeration, LAYOUTS, PayloadLayout, Schema, SchemaEntry};
use super::scope::{self, ScopeAttributes};
use super::semantics::{Facts, Semantics};
use super::tables::{FunctionOf, FunctionPointer, answer, functions_at};
use super::text::ascii;
use super::time::{
    SystemReading, TimeDomainAttributes, time_sync_point, time_sync_point_table,
    timestamp_conversion_factor, timestamp_get,
};
use super::values::{PayloadBytes, PayloadValues, ReadValue};
use core::ffi::{c_char, c_int, c_void};
use gputrail_collect::marker::{EventValue, MarkerDomain, MarkerEvent, MarkerText};
use gputrail_record::{MarkerKind, PayloadKind, Ticks};

/// The number of this extension.
pub(super) const MODULE: u16 = 2;
/// Maximum number of payloads of a marker.
const MAX_PAYLOADS: usize = 32;
/// Maximum number of entries of a layout or names of an enumeration.
const MAX_ENTRIES: usize = 4096;
/// The name of a payload that has none.
pub(super) const PAYLOAD: &str = "payload";
/// A payload that ends with a zero.
const UNKNOWN_SIZE: usize = usize::MAX;

/// Runs `work` with the marker that `event` and the payloads describe. Values of the payload replace those of
/// `event`.
///
/// # Safety
///
/// `data` is null or leads to `count` payloads that stay as they are during the call. The data of each is null, has the
/// bytes of its size, or is a text that ends with a zero if its size is unknown.
#[cold]
pub(super) unsafe fn with<R>(
    domain: &MarkerDomain,
    data: *const PayloadData,
    count: usize,
    event: MarkerEvent<'_>,
    work: impl FnOnce(&MarkerEvent<'_>) -> R,
) -> R {
    // SAFETY: `data` is null or leads to `count` payloads, each with the data that it names.
    let values = unsafe { read(domain, data, count) };
    apply(domain, &values, event, work)
}

/// Reads the payloads of a marker.
///
/// # Safety
///
/// As for [`with`].
unsafe fn read(domain: &MarkerDomain, data: *const PayloadData, count: usize) -> PayloadValues {
    let mut values = PayloadValues::default();
    if data.is_null() {
        return values;
    }
    // SAFETY: `data` is not null, so that it leads to `count` payloads, which stay as they are during the call.
    let all = unsafe { std::slice::from_raw_parts(data, count.min(MAX_PAYLOADS)) };
    let bytes: Vec<&[u8]> = all
        .iter()
        .map(|one| match (one.data.is_null(), one.size) {
            (true, _) => &[][..],
            // SAFETY: the data is a text that ends with a zero: no other data has an unknown size.
            (_, UNKNOWN_SIZE) => match unsafe { ascii(one.data.cast()) } {
                MarkerText::C(text) => text.to_c_str().to_bytes_with_nul(),
                _ => &[],
            },
            // SAFETY: the data has this size.
            (_, size) => unsafe { std::slice::from_raw_parts(one.data, size) },
        })
        .collect();
    let source = PayloadBytes {
        domain: domain.number(),
        payloads: &bytes,
    };
    for (place, (one, bytes)) in all.iter().zip(&bytes).enumerate() {
        let name = match place {
            0 => PAYLOAD,
            place => &format!("{PAYLOAD} {place}"),
        };
        values.read(&source, one.schema, bytes, name);
    }
    values
}

fn value(read: &ReadValue) -> EventValue<'_> {
    match read {
        ReadValue::Number(kind, bits) => EventValue::Number(*kind, *bits),
        ReadValue::Text(text) => EventValue::Text(MarkerText::Plain(text)),
    }
}

/// Runs `work` with the marker that `event` and `values` describe.
fn apply<'a, R>(
    domain: &MarkerDomain,
    values: &'a PayloadValues,
    mut event: MarkerEvent<'a>,
    work: impl FnOnce(&MarkerEvent<'_>) -> R,
) -> R {
    if let Some(message) = &values.message {
        event.name = MarkerText::Plain(message);
    }
    if let Some(id) = values.category {
        event.category = category(domain, id);
    }
    event.color = values.color.unwrap_or(event.color);
    let mut fields: Vec<(String, EventValue<'_>)> = match &values.fields[..] {
        // One value without a name is the payload.
        [(name, one)]
            if name.is_empty()
                || name.strip_prefix(PAYLOAD).is_some_and(|rest| {
                    rest.trim_start().bytes().all(|byte| byte.is_ascii_digit())
                }) =>
        {
            event.payload = value(one);
            Vec::new()
        }
        all => all
            .iter()
            .map(|(name, one)| (name.clone(), value(one)))
            .collect(),
    };
    let scope = values.scope.or(values.layout_scope);
    let scope = scope.iter();
    fields.extend(scope.map(|scope| {
        (
            "scope".to_owned(),
            EventValue::Text(MarkerText::Kept(scope)),
        )
    }));
    let fields = &fields[..];
    work(&MarkerEvent { fields, ..event })
}

/// The registration of a layout.
#[repr(C)]
pub(super) struct SchemaAttributes {
    fields: u64,
    name: *const c_char,
    form: u64,
    flags: u64,
    entries: *const RawEntry,
    entries_count: usize,
    size: usize,
    pack: usize,
    id: u64,
    extension: *const c_void,
}

#[repr(C)]
pub(super) struct RawEntry {
    flags: u64,
    kind: u64,
    name: *const c_char,
    description: *const c_char,
    detail: u64,
    offset: u64,
    semantics: *const Semantics,
    reserved: *const c_void,
}

/// The registration of an enumeration.
#[repr(C)]
pub(super) struct EnumAttributes {
    fields: u64,
    name: *const c_char,
    entries: *const RawEnum,
    entries_count: usize,
    size: usize,
    id: u64,
    extension: *const c_void,
}

#[repr(C)]
pub(super) struct RawEnum {
    name: *const c_char,
    value: u64,
    is_flag: i8,
}

#[repr(C)]
pub(super) struct EventBatch {
    schema: u64,
    size: usize,
    events: *const u8,
    scope: u64,
    flags: u64,
    flexible: *const u8,
    flexible_size: usize,
    flexible_offset: usize,
}

/// The bits of given fields.
const SCHEMA_HAS_ID: u64 = 1 << 8;
const ENUM_HAS_ID: u64 = 1 << 5;

const _: () = assert!(size_of::<SchemaAttributes>() == 80 && size_of::<RawEntry>() == 64);
const _: () = assert!(size_of::<EnumAttributes>() == 56 && size_of::<RawEnum>() == 24);
const _: () = assert!(size_of::<EventBatch>() == 64);

/// # Safety
///
/// `name` is null or a text that ends with a zero.
unsafe fn owned(name: *const c_char) -> Box<str> {
    // SAFETY: `name` is null or ends with a zero; it is copied.
    unsafe { ascii(name) }.read().into()
}

impl Registered for SchemaAttributes {
    fn chosen(&self) -> Option<u64> {
        const NEEDED: u64 = 1 << 2 | 1 << 4 | 1 << 5;
        let is_complete = self.fields & NEEDED == NEEDED
            && !self.entries.is_null()
            && self.entries_count <= MAX_ENTRIES;
        is_complete.then_some(match self.fields & SCHEMA_HAS_ID {
            0 => 0,
            _ => self.id,
        })
    }

    unsafe fn put(&self, domain: u32, id: u64) -> Option<()> {
        let has = |bit: u64| self.fields & 1 << bit != 0;
        // SAFETY: an array of this length.
        let raw = unsafe { std::slice::from_raw_parts(self.entries, self.entries_count) };
        let entries = raw.iter().map(|raw| SchemaEntry {
            flags: raw.flags,
            kind: raw.kind,
            // SAFETY: null or a text.
            name: unsafe { owned(raw.name) },
            detail: raw.detail,
            offset: raw.offset,
            // SAFETY: a list of the program's.
            facts: unsafe { Facts::read(raw.semantics) },
        });
        let name = match has(1) {
            // SAFETY: null or a text.
            true => unsafe { owned(self.name) },
            false => Box::default(),
        };
        let schema = Schema::new(
            domain,
            name,
            self.form,
            entries.collect(),
            if has(6) { self.size } else { 0 },
            if has(7) { self.pack } else { 0 },
        );
        let layout = PayloadLayout::Schema(schema);
        LAYOUTS.put((domain, id), layout).map(|_| ())
    }
}

impl Registered for EnumAttributes {
    fn chosen(&self) -> Option<u64> {
        const NEEDED: u64 = 1 << 2 | 1 << 3 | 1 << 4;
        let is_complete = self.fields & NEEDED == NEEDED
            && !self.entries.is_null()
            && self.entries_count <= MAX_ENTRIES
            && (1..=8).contains(&self.size);
        is_complete.then_some(match self.fields & ENUM_HAS_ID {
            0 => 0,
            _ => self.id,
        })
    }

    unsafe fn put(&self, domain: u32, id: u64) -> Option<()> {
        // SAFETY: an array of this length.
        let raw = unsafe { std::slice::from_raw_parts(self.entries, self.entries_count) };
        let values = raw
            .iter()
            // SAFETY: null or a text.
            .map(|raw| (raw.value, raw.is_flag != 0, unsafe { owned(raw.name) }));
        let layout = PayloadLayout::Enumeration(Enumeration {
            size: self.size,
            values: values.collect(),
        });
        LAYOUTS.put((domain, id), layout).map(|_| ())
    }
}

pub(super) unsafe extern "C" fn mark_payload(
    handle: DomainHandle,
    data: *const PayloadData,
    count: usize,
) {
    answer((), || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe {
            with(domain, data, count, MarkerEvent::default(), |event| {
                domain.mark(event)
            })
        }
    });
}

pub(super) unsafe extern "C" fn range_push_payload(
    handle: DomainHandle,
    data: *const PayloadData,
    count: usize,
) -> c_int {
    answer(NO_PUSH_POP_TRACKING, || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe {
            with(domain, data, count, MarkerEvent::default(), |event| {
                pushed(domain, event)
            })
        }
    })
}

pub(super) unsafe extern "C" fn range_pop_payload(
    handle: DomainHandle,
    data: *const PayloadData,
    count: usize,
) -> c_int {
    answer(NO_PUSH_POP_TRACKING, || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe {
            with(domain, data, count, MarkerEvent::default(), |event| {
                popped(domain, event)
            })
        }
    })
}

pub(super) unsafe extern "C" fn range_start_payload(
    handle: DomainHandle,
    data: *const PayloadData,
    count: usize,
) -> u64 {
    answer(0, || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe {
            with(domain, data, count, MarkerEvent::default(), |event| {
                started(domain, event)
            })
        }
    })
}

pub(super) unsafe extern "C" fn range_end_payload(
    handle: DomainHandle,
    range: u64,
    data: *const PayloadData,
    count: usize,
) {
    answer((), || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        unsafe {
            with(domain, data, count, MarkerEvent::default(), |event| {
                ended(domain, range, event);
            });
        }
    });
}

pub(super) unsafe extern "C" fn domain_is_enabled(_: DomainHandle) -> u8 {
    1
}

pub(super) unsafe extern "C" fn event_submit(
    handle: DomainHandle,
    data: *const PayloadData,
    count: usize,
) {
    answer((), || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        let values = unsafe { read(domain, data, count) };
        submit(domain, values);
    });
}

/// Records an event that happened earlier: a range with a begin and an end, or a moment. An event whose clock is unknown
/// is a moment of now, with its timestamps as values.
fn submit(domain: &MarkerDomain, mut values: PayloadValues) {
    let number = domain.number();
    let reading = SystemReading::default();
    let ticks = values.times.map(|time| time?.ticks(number, &reading));
    for (place, name) in ["range begin", "range end", "time"].into_iter().enumerate() {
        if let (Some(time), None) = (values.times[place], ticks[place]) {
            let value = ReadValue::Number(PayloadKind::SIGNED, time.value as u64);
            values.add(name.to_owned(), value);
        }
    }
    let [begin, end, moment] = ticks;
    apply(domain, &values, MarkerEvent::default(), |event| {
        match (begin, end) {
            (Some(begin), Some(end)) => {
                let range = started(
                    domain,
                    &MarkerEvent {
                        time: begin,
                        ..*event
                    },
                );
                let end = MarkerEvent {
                    time: end,
                    ..MarkerEvent::default()
                };
                ended(domain, range, &end);
            }
            _ => {
                let time = moment.or(begin).or(end).unwrap_or(Ticks::NONE);
                domain.mark(&MarkerEvent { time, ..*event });
            }
        }
    });
}

pub(super) unsafe extern "C" fn event_batch_submit(handle: DomainHandle, batch: *const EventBatch) {
    answer((), || {
        let domain = domain(handle);
        // SAFETY: see the module's page.
        let Some(batch) = (unsafe { batch.as_ref() }).filter(|batch| !batch.events.is_null())
        else {
            return;
        };
        // SAFETY: as above.
        let mut events = unsafe { std::slice::from_raw_parts(batch.events, batch.size) };
        let shared = match batch.flexible.is_null() {
            true => &[][..],
            // SAFETY: as above.
            false => unsafe {
                let start = batch.flexible.add(batch.flexible_offset);
                std::slice::from_raw_parts(start, batch.flexible_size)
            },
        };
        let number = domain.number();
        let align = match LAYOUTS.get(&(number, batch.schema)) {
            Some(PayloadLayout::Schema(schema)) if schema.size == 0 => schema.align,
            _ => 1,
        };
        let mut is_displaced = false;
        while !events.is_empty() {
            let mut values = PayloadValues {
                is_displaced,
                ..PayloadValues::default()
            };
            let source = PayloadBytes {
                domain: number,
                payloads: &[events, shared],
            };
            let size = values.read_event(&source, batch.schema, events);
            if size == 0 {
                return;
            }
            values.scope = values.scope.or(scope::path(number, batch.scope));
            submit(domain, values);
            // There may be padding before the next event.
            is_displaced |= !size.is_multiple_of(align);
            events = &events[size..];
        }
    });
}

/// Records a sample of a counter.
pub(super) fn sample(
    domain: &MarkerDomain,
    name: MarkerText<'_>,
    unit: MarkerText<'_>,
    time: Ticks,
    read: &ReadValue,
) {
    let ReadValue::Number(kind, bits) = read else {
        return;
    };
    let event = MarkerEvent {
        name,
        category: unit,
        payload: EventValue::Number(*kind, *bits),
        time,
        ..MarkerEvent::default()
    };
    debug_assert!(*kind != PayloadKind::TEXT);
    domain.report(MarkerKind::COUNTER, 0, &event);
}

/// The functions of this extension by their ids. Functions of the program that read a clock are not taken: clocks are tied
/// by readings.
pub(super) static FUNCTIONS: [Option<FunctionOf>; 18] = functions_at![
    (register::<SchemaAttributes>),
    (register::<EnumAttributes>),
    mark_payload,
    range_push_payload,
    range_pop_payload,
    range_start_payload,
    range_end_payload,
    domain_is_enabled,
    timestamp_get,
    (register::<TimeDomainAttributes>),
    _,
    _,
    (register::<ScopeAttributes>),
    time_sync_point,
    time_sync_point_table,
    timestamp_conversion_factor,
    event_submit,
    event_batch_submit,
];
