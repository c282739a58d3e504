//! CUPTI's Event and Metric APIs, which a libcupti before CUDA 13 has for devices below compute capability 7.5. They count where
//! the range profiler does not: below 7.0, and from 7.0 on with a libcupti before CUDA 12.6.
//!
//! An *event* is counted by a *domain* of the hardware, which has several instances; a *metric* is computed by CUPTI from events
//! and from properties of the device. Both are known by numbers, which CUPTI tells with their names.
//!
//! * An enqueue returns when the kernel has ended.
//! * A value is the sum of the instances that can be read, scaled to all: an estimate if the kernel does not use all alike.
//! * The number of passes is not known before: `gputrail record --replay application` runs the program once for each
//!   `--counters-per-pass` names.
//! * Overflowed events are invalid, and so are rates of kernels whose time was not recorded.
//!
//! Layouts and numbers were compared with the headers of 11.8, 12.1 and 12.9; nothing here has met a GPU.

pub(super) mod ffi;
pub(super) mod groups;
#[cfg(test)]
mod tests;

use super::ffi::{CuptiStatus, NOT_IMPLEMENTED, SUCCESS, call};
use core::ffi::{c_char, c_void};
use ffi::{EventApi, attribute, kind};
use gputrail_counters::{CounterLibrary, LibraryCounter, LibraryError, Usage, nearest};
use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;

/// The least compute capability that these APIs do not support: 7.5.
pub(super) const TOO_NEW: u32 = 75;
/// The most events, metrics and domains of a device: what is more is no answer of CUPTI's.
const MOST: u32 = 1 << 16;
/// The room for a name or description, bytes.
const TEXT: usize = 2048;

/// A function that failed, and its status.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedFunction {
    pub step: &'static str,
    pub status: CuptiStatus,
}

impl fmt::Display for FailedFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            NOT_IMPLEMENTED => write!(f, "libcupti lacks {}", self.step),
            status => write!(f, "{} failed with status {status}", self.step),
        }
    }
}

/// Calls a function of the APIs. Numbers of devices, domains, events, metrics and attributes are checked there; the caller's
/// `unsafe` block says where pointers lead.
macro_rules! ask {
    ($api:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match call!($api, $name($($argument),*)) {
            Some(SUCCESS) => Ok(()),
            status => Err($crate::cuda::events::FailedFunction {
                step: stringify!($name),
                status: status.unwrap_or($crate::cuda::ffi::NOT_IMPLEMENTED),
            }),
        }
    };
}
pub(in crate::cuda) use ask;

/// A domain of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventDomain {
    pub id: u32,
    pub name: String,
    /// All instances, also those that cannot be read.
    pub instances: u32,
}

/// A counter, as CUPTI knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CuptiCounter {
    /// An event.
    Event(u32),
    /// A metric, the kind of its values, and its events.
    Metric {
        id: u32,
        kind: u32,
        events: Vec<u32>,
    },
}

/// An event or metric of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceCounter {
    pub definition: LibraryCounter,
    pub counted: CuptiCounter,
}

/// The events and metrics of a device.
pub(super) struct DeviceEvents {
    pub api: EventApi,
    pub device: i32,
    name: String,
    pub domains: Vec<EventDomain>,
    counters: Vec<DeviceCounter>,
}

impl fmt::Debug for DeviceEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceEvents")
            .field("device", &self.device)
            .field("counters", &self.counters.len())
            .finish_non_exhaustive()
    }
}

/// A list of numbers: `count` tells how many there are, and `fill` writes them to room of so many bytes.
fn numbers(
    count: impl FnOnce(*mut u32) -> Result<(), FailedFunction>,
    fill: impl FnOnce(*mut usize, *mut u32) -> Result<(), FailedFunction>,
) -> Result<Vec<u32>, FailedFunction> {
    let mut many = 0;
    count(&raw mut many)?;
    let mut all = vec![0u32; many.min(MOST) as usize];
    let room = size_of_val(&all[..]);
    let mut bytes = room;
    if room > 0 {
        fill(&raw mut bytes, all.as_mut_ptr())?;
    }
    all.truncate(bytes.min(room) / size_of::<u32>());
    Ok(all)
}

/// A text that `read` writes to room of so many bytes; empty if it fails.
fn text(read: impl FnOnce(*mut usize, *mut c_void) -> Result<(), FailedFunction>) -> String {
    let mut room = [0 as c_char; TEXT];
    // The last byte stays 0.
    let mut bytes = TEXT - 1;
    if read(&raw mut bytes, room.as_mut_ptr().cast()).is_err() {
        return String::new();
    }
    // SAFETY: it ends with a 0 within the room.
    let text = unsafe { CStr::from_ptr(room.as_ptr()) };
    text.to_string_lossy().into_owned()
}

/// A number that `read` writes to room of so many bytes.
pub(super) fn number(
    read: impl FnOnce(*mut usize, *mut c_void) -> Result<(), FailedFunction>,
) -> Result<u32, FailedFunction> {
    let mut value = 0u32;
    let mut bytes = size_of::<u32>();
    read(&raw mut bytes, (&raw mut value).cast())?;
    Ok(value)
}

/// The first text that is not empty.
fn first(texts: [String; 2]) -> String {
    let [first, second] = texts;
    if first.is_empty() { second } else { first }
}

/// The unit of a metric's values. Those that do not add up are ratios.
fn usage(metric: u32) -> Usage {
    match metric {
        kind::PERCENT => Usage::Percentage,
        kind::UINT64 | kind::INT64 => Usage::Items,
        _ => Usage::Ratio,
    }
}

impl DeviceEvents {
    /// Asks CUPTI for the events and metrics of device number `device`, called `name`.
    pub fn read(api: EventApi, device: i32, name: &str) -> Result<DeviceEvents, FailedFunction> {
        let mut all = DeviceEvents {
            api,
            device,
            name: name.to_owned(),
            domains: Vec::new(),
            counters: Vec::new(),
        };
        // SAFETY: `numbers` passes places for the count, and for the list with its size in bytes.
        let domains = unsafe {
            numbers(
                |count| ask!(all.api, cuptiDeviceGetNumEventDomains(device, count)),
                |bytes, list| ask!(all.api, cuptiDeviceEnumEventDomains(device, bytes, list)),
            )
        }?;
        for id in domains {
            all.read_domain(id)?;
        }
        // SAFETY: as for the domains.
        let metrics = unsafe {
            numbers(
                |count| ask!(all.api, cuptiDeviceGetNumMetrics(device, count)),
                |bytes, list| ask!(all.api, cuptiDeviceEnumMetrics(device, bytes, list)),
            )
        }?;
        for id in metrics {
            all.read_metric(id)?;
        }
        Ok(all)
    }

    fn read_domain(&mut self, id: u32) -> Result<(), FailedFunction> {
        let (api, device) = (&self.api, self.device);
        let of_domain = |attribute| {
            // SAFETY: `number` and `text` pass a place for the value, with its size in bytes.
            move |bytes, value| unsafe {
                ask!(
                    api,
                    cuptiDeviceGetEventDomainAttribute(device, id, attribute, bytes, value)
                )
            }
        };
        let instances = number(of_domain(attribute::DOMAIN_ALL_INSTANCES))?;
        let name = match text(of_domain(attribute::DOMAIN_NAME)) {
            name if name.is_empty() => format!("domain {id}"),
            name => name,
        };
        // SAFETY: as in `read`.
        let events = unsafe {
            numbers(
                |count| ask!(api, cuptiEventDomainGetNumEvents(id, count)),
                |bytes, list| ask!(api, cuptiEventDomainEnumEvents(id, bytes, list)),
            )
        }?;
        let event = |event| {
            let of_event = |attribute| {
                // SAFETY: `text` passes room, with its size in bytes.
                text(|bytes, value| unsafe {
                    ask!(api, cuptiEventGetAttribute(event, attribute, bytes, value))
                })
            };
            let definition = LibraryCounter {
                name: of_event(attribute::NAME),
                description: first([
                    of_event(attribute::LONG_DESCRIPTION),
                    of_event(attribute::SHORT_DESCRIPTION),
                ]),
                usage: Usage::Items,
                block: name.clone(),
            };
            DeviceCounter {
                definition,
                counted: CuptiCounter::Event(event),
            }
        };
        let events: Vec<DeviceCounter> = events.into_iter().map(event).collect();
        self.counters.extend(events);
        self.domains.push(EventDomain {
            id,
            name,
            instances,
        });
        Ok(())
    }

    fn read_metric(&mut self, id: u32) -> Result<(), FailedFunction> {
        let api = &self.api;
        let of_metric = |attribute| {
            // SAFETY: `number` and `text` pass a place for the value, with its size in bytes.
            move |bytes, value| unsafe {
                ask!(api, cuptiMetricGetAttribute(id, attribute, bytes, value))
            }
        };
        let kind = number(of_metric(attribute::METRIC_KIND))?;
        // SAFETY: as in `read`.
        let events = unsafe {
            numbers(
                |count| ask!(api, cuptiMetricGetNumEvents(id, count)),
                |bytes, list| ask!(api, cuptiMetricEnumEvents(id, bytes, list)),
            )
        }?;
        let definition = LibraryCounter {
            name: text(of_metric(attribute::NAME)),
            description: first([
                text(of_metric(attribute::LONG_DESCRIPTION)),
                text(of_metric(attribute::SHORT_DESCRIPTION)),
            ]),
            usage: usage(kind),
            block: String::new(),
        };
        let counted = CuptiCounter::Metric { id, kind, events };
        self.counters.push(DeviceCounter {
            definition,
            counted,
        });
        Ok(())
    }

    /// The definitions of all events and metrics that have a name.
    pub fn definitions(&self) -> Vec<LibraryCounter> {
        let named = |counter: &&DeviceCounter| !counter.definition.name.is_empty();
        let all = self.counters.iter().filter(named);
        all.map(|counter| counter.definition.clone()).collect()
    }

    /// The event or metric with this name; upper and lower case are alike where that is unique.
    pub fn find(&self, name: &str) -> Option<&DeviceCounter> {
        let exact = |counter: &&DeviceCounter| counter.definition.name == name;
        let alike = |counter: &&DeviceCounter| counter.definition.name.eq_ignore_ascii_case(name);
        let exact = self.counters.iter().find(exact);
        exact.or_else(|| self.counters.iter().find(alike))
    }
}

impl CounterLibrary for DeviceEvents {
    fn device(&self) -> &str {
        &self.name
    }

    fn define(&self, name: &str) -> Result<LibraryCounter, LibraryError> {
        let found = self.find(name).filter(|_| !name.is_empty());
        found.map(|found| found.definition.clone()).ok_or_else(|| {
            let all = self.counters.iter();
            let names = all.map(|counter| &*counter.definition.name);
            LibraryError::Unknown(nearest(name, names))
        })
    }

    fn passes(&self, names: &[&str]) -> Result<usize, String> {
        // CUPTI tells them for a context, which a program may not have yet; kernels are replayed for any number of them.
        match names.iter().find(|name| self.find(name).is_none()) {
            Some(name) => Err(format!("{name} is no event or metric of {}", self.name)),
            None => Ok(1),
        }
    }
}

/// The events and metrics that a device counts by these APIs, of a process that has loaded the driver. Opens libcupti.
///
/// # Errors
///
/// A sentence that says why it counts nothing.
pub fn event_counters(device: i32, name: &str) -> Result<gputrail_counters::Architecture, String> {
    let found = super::cupti::open().map_err(|error| error.to_string())?;
    let events = DeviceEvents::read(EventApi::of(&found.library), device, name)
        .map_err(|refused| format!("{}: {refused}", found.path.display()))?;
    let counters = events.definitions();
    if counters.is_empty() {
        return Err(format!(
            "{}: CUPTI tells no event of the device",
            found.path.display()
        ));
    }
    Ok(gputrail_counters::Architecture::of_library(
        counters,
        Arc::new(events),
    ))
}
