//! The groups of events that are counted in one context: for each kernel they are enabled before it and read after it. What does
//! not fit one set of groups is counted by CUPTI in as many runs of the kernel (kernel replay).

use super::ffi::{GroupSets, INVALID, INVALID_EVENT_VALUE, MODE_KERNEL, OVERFLOW, attribute, kind};
use super::{CuptiCounter, DeviceEvents, FailedFunction, ask, number};
use crate::cuda::ffi::{SUCCESS, call};
use core::ffi::c_void;
use gputrail_record::CounterInvalid;
use std::sync::Arc;

/// The most events of a group, and instances of a domain: what is more is no answer of CUPTI's.
const MOST: u32 = 1 << 12;

/// The values of events, normalised to all instances of their domains.
pub(in crate::cuda) type EventValues = Vec<(u32, Result<u64, CounterInvalid>)>;

/// The groups of one context.
pub(in crate::cuda) struct EventGroups {
    device: Arc<DeviceEvents>,
    context: *mut c_void,
    /// CUPTI's lists, which are destroyed at the end.
    sets: Vec<*mut GroupSets>,
    groups: Vec<CuptiGroup>,
    /// Whether CUPTI runs each kernel several times.
    is_replayed: bool,
    pub is_enabled: bool,
}

struct CuptiGroup {
    group: *mut c_void,
    events: u32,
    /// The instances of its domain that are read.
    instances: u32,
    /// All instances of its domain.
    all: u32,
}

// SAFETY: handles that CUPTI takes on any thread.
unsafe impl Send for EventGroups {}

impl EventGroups {
    /// The groups in which `wanted` is counted in `context`.
    pub fn create(
        device: &Arc<DeviceEvents>,
        context: *mut c_void,
        wanted: &[CuptiCounter],
    ) -> Result<EventGroups, FailedFunction> {
        let api = &device.api;
        let mut groups = EventGroups {
            device: device.clone(),
            context,
            sets: Vec::new(),
            groups: Vec::new(),
            is_replayed: false,
            is_enabled: false,
        };
        let (mut metrics, mut events) = (Vec::new(), Vec::new());
        for counted in wanted {
            match counted {
                CuptiCounter::Event(id) => events.push(*id),
                CuptiCounter::Metric { id, .. } => metrics.push(*id),
            }
        }
        let mut sets: *mut GroupSets = std::ptr::null_mut();
        if !metrics.is_empty() {
            let bytes = size_of_val(&metrics[..]);
            let list = metrics.as_mut_ptr();
            // SAFETY: the context of a call in progress; `list` has `bytes` bytes, and CUPTI writes the address of its list
            // to a local.
            unsafe {
                ask!(
                    api,
                    cuptiMetricCreateEventGroupSets(context, bytes, list, &raw mut sets)
                )
            }?;
            groups.sets.push(sets);
        }
        if !events.is_empty() {
            let bytes = size_of_val(&events[..]);
            let list = events.as_mut_ptr();
            // SAFETY: as for metrics.
            unsafe {
                ask!(
                    api,
                    cuptiEventGroupSetsCreate(context, bytes, list, &raw mut sets)
                )
            }?;
            groups.sets.push(sets);
        }
        groups.prepare()?;
        Ok(groups)
    }

    fn prepare(&mut self) -> Result<(), FailedFunction> {
        let device = self.device.clone();
        let api = &device.api;
        let mut passes = 0;
        let mut all = Vec::new();
        for sets in self.sets.iter().filter(|sets| !sets.is_null()) {
            // SAFETY: CUPTI's list, which lives until it is destroyed.
            let sets = unsafe { &**sets };
            passes += sets.count;
            for place in 0..sets.count as usize {
                // SAFETY: as many as it says.
                let set = unsafe { &*sets.sets.add(place) };
                // SAFETY: as many as it says.
                all.extend((0..set.count as usize).map(|at| unsafe { *set.groups.add(at) }));
            }
        }
        if passes > 1 {
            // SAFETY: the context of a call in progress.
            unsafe { ask!(api, cuptiEnableKernelReplayMode(self.context)) }?;
            self.is_replayed = true;
        }
        for group in all {
            let mut yes = 1u32;
            let bytes = size_of::<u32>();
            // SAFETY: a group of CUPTI's lists, and a number of `bytes` bytes, which CUPTI reads in the call.
            unsafe {
                ask!(
                    api,
                    cuptiEventGroupSetAttribute(
                        group,
                        attribute::GROUP_ALL_INSTANCES,
                        bytes,
                        (&raw mut yes).cast()
                    )
                )
            }?;
            let of_group = |attribute| {
                // SAFETY: a group of CUPTI's lists; `number` passes a place for the value, with its size in bytes.
                number(|bytes, value| unsafe {
                    ask!(
                        api,
                        cuptiEventGroupGetAttribute(group, attribute, bytes, value)
                    )
                })
            };
            let domain = of_group(attribute::GROUP_DOMAIN)?;
            let instances = of_group(attribute::GROUP_INSTANCES)?.min(MOST);
            let known = device.domains.iter().find(|known| known.id == domain);
            self.groups.push(CuptiGroup {
                group,
                events: of_group(attribute::GROUP_EVENTS)?.min(MOST),
                instances,
                all: known.map_or(instances, |known| known.instances.max(instances)),
            });
        }
        Ok(())
    }

    /// Counts what runs from now on: one kernel.
    pub fn enable(&mut self) -> Result<(), FailedFunction> {
        let api = &self.device.api;
        if !self.is_replayed {
            // SAFETY: the context of a call in progress.
            unsafe { ask!(api, cuptiSetEventCollectionMode(self.context, MODE_KERNEL)) }?;
        }
        self.is_enabled = true;
        for group in &self.groups {
            // SAFETY: a group of CUPTI's lists, which are destroyed when `self` is dropped.
            if let Err(refused) = unsafe { ask!(api, cuptiEventGroupEnable(group.group)) } {
                self.disable();
                return Err(refused);
            }
        }
        Ok(())
    }

    /// Disables the groups. Those that are not enabled stay so.
    fn disable(&mut self) {
        if std::mem::take(&mut self.is_enabled) {
            for group in &self.groups {
                // SAFETY: a group of CUPTI's lists, which are not destroyed yet.
                unsafe { call!(self.device.api, cuptiEventGroupDisable(group.group)) };
            }
        }
    }

    /// Reads what the kernel has counted, which has ended, and disables the groups.
    pub fn read(&mut self) -> Result<EventValues, FailedFunction> {
        let mut values = EventValues::new();
        let mut result = Ok(());
        for group in &self.groups {
            result = result.and_then(|()| self.read_group(group, &mut values));
        }
        self.disable();
        result.map(|()| values)
    }

    fn read_group(
        &self,
        group: &CuptiGroup,
        values: &mut EventValues,
    ) -> Result<(), FailedFunction> {
        let (events, instances) = (group.events as usize, group.instances as usize);
        let mut counts = vec![0u64; events * instances];
        let mut ids = vec![0u32; events];
        let mut bytes = size_of_val(&counts[..]);
        let mut id_bytes = size_of_val(&ids[..]);
        let mut read = 0;
        let api = &self.device.api;
        // SAFETY: a group of CUPTI's lists; `counts` and `ids` have as many bytes as stated, and CUPTI writes no more.
        unsafe {
            ask!(
                api,
                cuptiEventGroupReadAllEvents(
                    group.group,
                    0,
                    &raw mut bytes,
                    counts.as_mut_ptr(),
                    &raw mut id_bytes,
                    ids.as_mut_ptr(),
                    &raw mut read
                )
            )
        }?;
        let read = read.min(events);
        let rows = (bytes / size_of::<u64>()).min(counts.len()) / read.max(1);
        for (place, id) in ids.iter().take(read).enumerate() {
            let of_event = (0..rows).map(|instance| counts[instance * read + place]);
            values.push((*id, normalised(of_event, group.all)));
        }
        Ok(())
    }

    /// The value of an event or metric from those of the events of a kernel, which took so many ns if that is known.
    pub fn value(
        device: &DeviceEvents,
        counted: &CuptiCounter,
        values: &EventValues,
        duration: Option<u64>,
    ) -> Result<f64, CounterInvalid> {
        let of = |event: u32| {
            let found = values.iter().find(|(id, _)| *id == event);
            found.map_or(Err(CounterInvalid::MISSING), |(_, value)| *value)
        };
        let (id, kind, events) = match counted {
            CuptiCounter::Event(event) => return of(*event).map(|value| value as f64),
            CuptiCounter::Metric { id, kind, events } => (*id, *kind, events),
        };
        // A metric that CUPTI divides by the time has no value without it.
        if kind == kind::THROUGHPUT && duration.is_none() {
            return Err(CounterInvalid::MISSING);
        }
        let mut ids = events.clone();
        let counts: Result<Vec<u64>, CounterInvalid> = events.iter().map(|id| of(*id)).collect();
        let mut counts = counts?;
        let mut bits = 0u64;
        let (id_bytes, bytes) = (size_of_val(&ids[..]), size_of_val(&counts[..]));
        // SAFETY: CUPTI reads the lists, which have as many bytes as stated, and writes a value of 64 bits
        // (`CUpti_MetricValue`).
        let status = unsafe {
            call!(
                device.api,
                cuptiMetricGetValue(
                    device.device,
                    id,
                    id_bytes,
                    ids.as_mut_ptr(),
                    bytes,
                    counts.as_mut_ptr(),
                    duration.unwrap_or(0),
                    &raw mut bits
                )
            )
        };
        match status {
            Some(SUCCESS) => Ok(number_of(kind, bits)),
            Some(INVALID_EVENT_VALUE) => Err(CounterInvalid::OVERFLOW),
            _ => Err(CounterInvalid::MISSING),
        }
    }
}

/// The sum of the instances that were read, multiplied by all over the instances that were read.
fn normalised(
    instances: impl ExactSizeIterator<Item = u64>,
    all: u32,
) -> Result<u64, CounterInvalid> {
    let read = instances.len() as u128;
    let mut sum = 0u128;
    for value in instances {
        match value {
            OVERFLOW => return Err(CounterInvalid::OVERFLOW),
            INVALID => return Err(CounterInvalid::MISSING),
            value => sum += u128::from(value),
        }
    }
    match read {
        0 => Err(CounterInvalid::MISSING),
        read => u64::try_from(sum * u128::from(all) / read).map_err(|_| CounterInvalid::OVERFLOW),
    }
}

/// The value of a metric of a kind, whose union has these bits.
fn number_of(kind: u32, bits: u64) -> f64 {
    match kind {
        kind::DOUBLE | kind::PERCENT => f64::from_bits(bits),
        kind::INT64 => bits as i64 as f64,
        kind::UTILIZATION => f64::from(bits as u32),
        _ => bits as f64,
    }
}

impl Drop for EventGroups {
    fn drop(&mut self) {
        self.disable();
        let api = &self.device.api;
        for sets in self.sets.iter().filter(|sets| !sets.is_null()) {
            // SAFETY: a list of CUPTI's, whose groups are disabled and are used no more.
            unsafe { call!(api, cuptiEventGroupSetsDestroy(*sets)) };
        }
        if self.is_replayed {
            // SAFETY: the groups of a context are dropped before it is destroyed (`counting::resource`).
            unsafe { call!(api, cuptiDisableKernelReplayMode(self.context)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_all_instances() {
        let of = |values: &[u64], all| normalised(values.iter().copied(), all);
        // As in CUPTI's text: 4 of 8 multiprocessors, and one of 3 memory units.
        assert_eq!(of(&[10, 20, 30, 40], 8), Ok(200));
        assert_eq!(of(&[7], 3), Ok(21));
        assert_eq!(of(&[1, OVERFLOW], 2), Err(CounterInvalid::OVERFLOW));
        assert_eq!(of(&[1, INVALID], 2), Err(CounterInvalid::MISSING));
        assert_eq!(of(&[u64::MAX - 2; 2], 2), Err(CounterInvalid::OVERFLOW));
        assert_eq!(of(&[], 2), Err(CounterInvalid::MISSING));
    }

    #[test]
    fn values_have_the_type_of_their_kind() {
        assert_eq!(number_of(kind::PERCENT, 62.5f64.to_bits()), 62.5);
        assert_eq!(number_of(kind::INT64, (-4i64) as u64), -4.0);
        assert_eq!(number_of(kind::UTILIZATION, 0xffff_ffff_0000_0005), 5.0);
        assert_eq!(number_of(kind::THROUGHPUT, 1_000), 1000.0);
    }
}
