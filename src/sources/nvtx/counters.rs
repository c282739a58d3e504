//! The extension for counters: each sample becomes a marker of kind `COUNTER`.
//!
//! # Safety
//!
//! As in `functions`: the arguments are those of a program that keeps to NVTX's documentation.

use super::domain::{DomainHandle, domain};
use super::payload::{PAYLOAD, sample};
use super::registered::{Registered, register};
use super::schema::{LAYOUTS, PayloadLayout, size_of_kind};
use super::scope;
use super::semantics::{Facts, Semantics};
use super::tables::{FunctionOf, FunctionPointer, answer, functions_at};
use super::text::{ascii, kept};
use super::time::{SystemReading, Timestamp};
use super::values::{PayloadBytes, PayloadValues, ReadValue};
use core::ffi::{c_char, c_void};
use gputrail_collect::marker::Registry;
use gputrail_collect::marker::{KeptText, MarkerDomain, MarkerText};
use gputrail_record::{PayloadKind, Ticks};

/// The number of this extension.
pub(super) const MODULE: u16 = 4;

/// Counters and groups of counters, by the number of their domain and their id.
static COUNTERS: Registry<(u32, u64), NvtxCounter> = Registry::new();

struct NvtxCounter {
    name: &'static KeptText,
    unit: Option<&'static KeptText>,
    schema: u64,
    time_domain: u64,
}

/// A sample without a value that is known all the same.
const SAMPLE_ZERO: u8 = 0;

#[repr(C)]
pub(super) struct CounterAttributes {
    size: usize,
    schema: u64,
    name: *const c_char,
    description: *const c_char,
    scope: u64,
    semantics: *const Semantics,
    id: u64,
}

#[repr(C)]
pub(super) struct CounterBatch {
    counter: u64,
    samples: *const u8,
    size: usize,
    flags: u64,
    timestamps: *const i64,
    timestamps_size: usize,
}

/// The timestamps of a batch are its begin, or its end, and the interval between samples.
const BEGIN_AND_INTERVAL: u64 = 1 << 32;
const END_AND_INTERVAL: u64 = 2 << 32;

impl Registered for CounterAttributes {
    fn chosen(&self) -> Option<u64> {
        (self.size >= size_of::<CounterAttributes>()).then_some(self.id)
    }

    unsafe fn put(&self, domain: u32, id: u64) -> Option<()> {
        // SAFETY: null or a text.
        let name = unsafe { ascii(self.name) }.read();
        let name = if name.is_empty() {
            "counter".into()
        } else {
            name
        };
        // SAFETY: a list of the program's.
        let facts = unsafe { Facts::read(self.semantics) };
        let scope = scope::path(domain, facts.scope).or(scope::path(domain, self.scope));
        let name = match scope {
            Some(scope) => format!("{name} [{}]", scope.text()).into(),
            None => name,
        };
        let counter = NvtxCounter {
            name: kept(&name)?,
            unit: facts.unit,
            schema: self.schema,
            time_domain: facts.time_domain,
        };
        COUNTERS.put((domain, id), counter).map(|_| ())
    }
}

/// Runs `work` with a counter that has been registered.
fn with(handle: DomainHandle, counter: u64, work: impl FnOnce(&MarkerDomain, &NvtxCounter)) {
    answer((), || {
        let domain = domain(handle);
        if let Some(counter) = COUNTERS.get(&(domain.number(), counter)) {
            work(domain, counter);
        }
    });
}

impl NvtxCounter {
    fn sample(&self, domain: &MarkerDomain, time: Ticks, read: &ReadValue) {
        let unit = self.unit.map_or(MarkerText::None, MarkerText::Kept);
        sample(domain, MarkerText::Kept(self.name), unit, time, read);
    }

    /// Records the values in `bytes`: one, or those of a group, which are called by their parts. A time among them is
    /// converted by `reading`.
    fn sample_bytes(
        &self,
        domain: &MarkerDomain,
        time: Ticks,
        bytes: &[u8],
        reading: &SystemReading,
    ) {
        let mut values = PayloadValues::default();
        let source = PayloadBytes {
            domain: domain.number(),
            payloads: &[bytes],
        };
        values.read(&source, self.schema, bytes, PAYLOAD);
        let unit = self.unit.map_or(MarkerText::None, MarkerText::Kept);
        // A sample that has its time in itself is left out where the clock is unknown.
        let (timed, time) = match values.sampled {
            Some((place, sampled)) if time == Ticks::NONE => {
                match sampled.ticks(domain.number(), reading) {
                    Some(time) => (Some(place), time),
                    None => return,
                }
            }
            sampled => (sampled.map(|(place, _)| place), time),
        };
        for (place, (name, read)) in values.fields.iter().enumerate() {
            match &**name {
                _ if Some(place) == timed => {}
                "" | PAYLOAD => self.sample(domain, time, read),
                name => {
                    let name = format!("{}.{name}", self.name.text());
                    sample(domain, MarkerText::Plain(&name), unit, time, read);
                }
            }
        }
    }
}

pub(super) unsafe extern "C" fn sample_int64(handle: DomainHandle, counter: u64, value: i64) {
    with(handle, counter, |domain, counter| {
        let read = ReadValue::Number(PayloadKind::SIGNED, value as u64);
        counter.sample(domain, Ticks::NONE, &read);
    });
}

pub(super) unsafe extern "C" fn sample_float64(handle: DomainHandle, counter: u64, value: f64) {
    with(handle, counter, |domain, counter| {
        let read = ReadValue::Number(PayloadKind::FLOAT, value.to_bits());
        counter.sample(domain, Ticks::NONE, &read);
    });
}

pub(super) unsafe extern "C" fn sample_bytes(
    handle: DomainHandle,
    counter: u64,
    value: *const c_void,
    size: usize,
) {
    with(handle, counter, |domain, counter| {
        if !value.is_null() {
            // SAFETY: see the module's page.
            let bytes = unsafe { std::slice::from_raw_parts(value.cast(), size) };
            counter.sample_bytes(domain, Ticks::NONE, bytes, &SystemReading::default());
        }
    });
}

pub(super) unsafe extern "C" fn sample_no_value(handle: DomainHandle, counter: u64, reason: u8) {
    with(handle, counter, |domain, counter| {
        if reason == SAMPLE_ZERO {
            let zero = ReadValue::Number(PayloadKind::SIGNED, 0);
            counter.sample(domain, Ticks::NONE, &zero);
        }
    });
}

pub(super) unsafe extern "C" fn batch_submit(handle: DomainHandle, batch: *const CounterBatch) {
    // SAFETY: see the module's page.
    let Some(batch) = (unsafe { batch.as_ref() }).filter(|batch| !batch.samples.is_null()) else {
        return;
    };
    with(handle, batch.counter, |domain, counter| {
        let (size, has_times) = match LAYOUTS.get(&(domain.number(), counter.schema)) {
            Some(PayloadLayout::Schema(schema)) => (schema.size, schema.has_timestamp()),
            _ => (size_of_kind(counter.schema), false),
        };
        if size == 0 {
            return;
        }
        // SAFETY: see the module's page.
        let samples = unsafe { std::slice::from_raw_parts(batch.samples, batch.size) };
        let times = match batch.timestamps.is_null() {
            true => &[][..],
            // SAFETY: as above.
            false => unsafe {
                std::slice::from_raw_parts(batch.timestamps, batch.timestamps_size / 8)
            },
        };
        let last = (samples.len() / size).saturating_sub(1) as i64;
        let reading = SystemReading::default();
        for (place, bytes) in (0..).zip(samples.chunks_exact(size)) {
            let time = match (batch.flags, times) {
                (flags, [begin, interval, ..]) if flags & BEGIN_AND_INTERVAL != 0 => {
                    Some(begin.saturating_add(interval.saturating_mul(place)))
                }
                (flags, [end, interval, ..]) if flags & END_AND_INTERVAL != 0 => {
                    Some(end.saturating_sub(interval.saturating_mul(last - place)))
                }
                (_, times) => times.get(place as usize).copied(),
            };
            match time {
                Some(time) => {
                    let time = Timestamp {
                        time_domain: counter.time_domain,
                        value: time,
                    };
                    if let Some(time) = time.ticks(domain.number(), &reading) {
                        counter.sample_bytes(domain, time, bytes, &reading);
                    }
                }
                // The samples have their times in themselves, or only the last one is of now.
                None if place == last || has_times => {
                    counter.sample_bytes(domain, Ticks::NONE, bytes, &reading);
                }
                None => {}
            }
        }
    });
}

/// The functions of this extension by their ids.
pub(super) static FUNCTIONS: [Option<FunctionOf>; 6] = functions_at![
    (register::<CounterAttributes>),
    sample_int64,
    sample_float64,
    sample_bytes,
    sample_no_value,
    batch_submit,
];
