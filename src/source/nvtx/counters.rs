//! The extension for counters: each sample becomes a marker of kind `COUNTER`.
//!
//! # Safety
//!
//! As in `functions`: the arguments are those of a program that keeps to NVTX's documentation.

use super::abi::{Function, ascii};
use super::functions::{Domain, FunctionOf, answer, domain, kept};
use super::payload::{PAYLOAD, id, sample, ticks};
use super::schema::{LAYOUTS, Layout, Read, Source, Values};
use crate::collect::marker::Registry;
use crate::collect::marker::{KeptText, MarkerDomain, Text};
use crate::record::{PayloadKind, Ticks};
use core::ffi::{c_char, c_void};

/// The number of this extension.
pub(super) const MODULE: u16 = 4;

/// Counters and groups of counters, by the number of their domain and their id.
static COUNTERS: Registry<(u32, u64), Counter> = Registry::new();

struct Counter {
    name: &'static KeptText,
    unit: Option<&'static KeptText>,
    schema: u64,
    time_domain: u64,
}

/// A sample without a value that is known all the same.
const SAMPLE_ZERO: u8 = 0;

#[repr(C)]
struct CounterAttributes {
    size: usize,
    schema: u64,
    name: *const c_char,
    description: *const c_char,
    scope: u64,
    semantics: *const Semantics,
    id: u64,
}

/// The head of further facts about a counter.
#[repr(C)]
struct Semantics {
    size: u32,
    kind: u16,
    version: u16,
    next: *const Semantics,
}

/// What a time domain's facts begin with, behind their head.
const SEMANTICS_TIME: u16 = 2;
const SEMANTICS_COUNTER: u16 = 5;

#[repr(C)]
struct TimeSemantics {
    head: Semantics,
    time_domain: u64,
}

#[repr(C)]
struct CounterSemantics {
    head: Semantics,
    flags: u64,
    unit: *const c_char,
}

#[repr(C)]
struct CounterBatch {
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

/// Facts about a counter in a list: their unit and their clock.
///
/// # Safety
///
/// `next` is null or leads to facts of the size that they name.
unsafe fn semantics(mut next: *const Semantics) -> (Option<&'static KeptText>, u64) {
    const MAX_FACTS: usize = 16;
    let (mut unit, mut time_domain) = (None, 0);
    for _ in 0..MAX_FACTS {
        // SAFETY: the caller's promise, here and below.
        let Some(head) = (unsafe { next.as_ref() }) else {
            break;
        };
        match (head.kind, head.size as usize) {
            (SEMANTICS_TIME, size) if size >= size_of::<TimeSemantics>() => {
                // SAFETY: of that type by its kind and size.
                time_domain = unsafe { (*next.cast::<TimeSemantics>()).time_domain };
            }
            (SEMANTICS_COUNTER, size) if size >= size_of::<CounterSemantics>() => {
                // SAFETY: as above; the unit is null or a text.
                let text = unsafe { ascii((*next.cast::<CounterSemantics>()).unit) }.read();
                unit = Some(text)
                    .filter(|text| !text.is_empty())
                    .and_then(|text| kept(&text));
            }
            _ => {}
        }
        next = head.next;
    }
    (unit, time_domain)
}

unsafe extern "C" fn counter_register(handle: Domain, given: *const CounterAttributes) -> u64 {
    answer(0, || {
        // SAFETY: see the module's page.
        let Some(given) = (unsafe { given.as_ref() })
            .filter(|given| given.size >= size_of::<CounterAttributes>())
        else {
            return 0;
        };
        // SAFETY: see the module's page.
        let name = unsafe { ascii(given.name) }.read();
        let name = if name.is_empty() {
            "counter".into()
        } else {
            name
        };
        // SAFETY: see the module's page.
        let (unit, time_domain) = unsafe { semantics(given.semantics) };
        let id = id(given.id);
        let counter = kept(&name).map(|name| Counter {
            name,
            unit,
            schema: given.schema,
            time_domain,
        });
        let key = (domain(handle).number(), id);
        let put = counter.and_then(|counter| COUNTERS.put(key, counter));
        put.map_or(0, |_| id)
    })
}

/// Runs `work` with a counter that has been registered.
fn with(handle: Domain, counter: u64, work: impl FnOnce(&MarkerDomain, &Counter)) {
    answer((), || {
        let domain = domain(handle);
        if let Some(counter) = COUNTERS.get(&(domain.number(), counter)) {
            work(domain, counter);
        }
    });
}

impl Counter {
    fn sample(&self, domain: &MarkerDomain, time: Ticks, read: &Read) {
        let unit = self.unit.map_or(Text::None, Text::Kept);
        sample(domain, Text::Kept(self.name), unit, time, read);
    }

    /// Records the values in `bytes`: one, or those of a group, which are called by their parts.
    fn sample_bytes(&self, domain: &MarkerDomain, time: Ticks, bytes: &[u8]) {
        let mut values = Values::default();
        let source = Source {
            domain: domain.number(),
            payloads: &[bytes],
        };
        values.read(&source, self.schema, bytes, PAYLOAD);
        let unit = self.unit.map_or(Text::None, Text::Kept);
        for (name, read) in &values.fields {
            match &**name {
                "" | PAYLOAD => self.sample(domain, time, read),
                name => {
                    let name = format!("{}.{name}", self.name.text());
                    sample(domain, Text::Plain(&name), unit, time, read);
                }
            }
        }
    }
}

unsafe extern "C" fn sample_int64(handle: Domain, counter: u64, value: i64) {
    with(handle, counter, |domain, counter| {
        let read = Read::Number(PayloadKind::SIGNED, value as u64);
        counter.sample(domain, Ticks::NONE, &read);
    });
}

unsafe extern "C" fn sample_float64(handle: Domain, counter: u64, value: f64) {
    with(handle, counter, |domain, counter| {
        let read = Read::Number(PayloadKind::FLOAT, value.to_bits());
        counter.sample(domain, Ticks::NONE, &read);
    });
}

unsafe extern "C" fn sample_bytes(handle: Domain, counter: u64, value: *const c_void, size: usize) {
    with(handle, counter, |domain, counter| {
        if !value.is_null() {
            // SAFETY: see the module's page.
            let bytes = unsafe { std::slice::from_raw_parts(value.cast(), size) };
            counter.sample_bytes(domain, Ticks::NONE, bytes);
        }
    });
}

unsafe extern "C" fn sample_no_value(handle: Domain, counter: u64, reason: u8) {
    with(handle, counter, |domain, counter| {
        if reason == SAMPLE_ZERO {
            let zero = Read::Number(PayloadKind::SIGNED, 0);
            counter.sample(domain, Ticks::NONE, &zero);
        }
    });
}

unsafe extern "C" fn batch_submit(handle: Domain, batch: *const CounterBatch) {
    // SAFETY: see the module's page.
    let Some(batch) = (unsafe { batch.as_ref() }).filter(|batch| !batch.samples.is_null()) else {
        return;
    };
    with(handle, batch.counter, |domain, counter| {
        let size = match LAYOUTS.get(&(domain.number(), counter.schema)) {
            Some(Layout::Schema(schema)) => schema.size,
            _ => super::schema::size_of_kind(counter.schema),
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
                    if let Some(time) = ticks(counter.time_domain, time) {
                        counter.sample_bytes(domain, time, bytes);
                    }
                }
                // Without times only the last sample is one of now.
                None if place == last => counter.sample_bytes(domain, Ticks::NONE, bytes),
                None => {}
            }
        }
    });
}

/// The functions of this extension by their ids.
pub(super) static FUNCTIONS: [Option<FunctionOf>; 6] = [
    Some(FunctionOf(counter_register as Function)),
    Some(FunctionOf(sample_int64 as Function)),
    Some(FunctionOf(sample_float64 as Function)),
    Some(FunctionOf(sample_bytes as Function)),
    Some(FunctionOf(sample_no_value as Function)),
    Some(FunctionOf(batch_submit as Function)),
];
