//! The sampling of one context: its configuration, and what has been counted.

use super::layout::{
    PCSamplingConfigurationInfo, PCSamplingData, PCSamplingPCData, PCSamplingStallReason,
};
use super::{cubins, reasons};
use crate::activity::correlation;
use crate::objects::function_index;
use crate::result::{Answer, CUptiResult};
use crate::sampling::counts_cycles;
use core::mem::offset_of;
use gputrail_record::{AgentId, CodeObjectId, KernelId, SampleAggregate};
use gputrail_tool as tool;
use gputrail_tool::sampling::{PeriodLevel, SamplingPeriod};
use std::collections::{BTreeMap, BTreeSet};

/// Attributes (`CUpti_PCSamplingConfigurationAttributeType`).
mod attribute {
    pub const SAMPLING_PERIOD: u32 = 1;
    pub const STALL_REASON: u32 = 2;
    pub const SCRATCH_BUFFER_SIZE: u32 = 3;
    pub const HARDWARE_BUFFER_SIZE: u32 = 4;
    pub const COLLECTION_MODE: u32 = 5;
    pub const ENABLE_START_STOP_CONTROL: u32 = 6;
    pub const OUTPUT_DATA_FORMAT: u32 = 7;
    pub const SAMPLING_DATA_BUFFER: u32 = 8;
    pub const WORKER_THREAD_PERIODIC_SLEEP_SPAN: u32 = 9;
}

/// `CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS`
const CONTINUOUS: u64 = 1;
/// `CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED`
const SERIALIZED: u64 = 2;
/// The most addresses that wait for the program; samples of others are dropped.
const MAX_ADDRESSES: usize = 1 << 18;

/// Where samples were taken; the call is 0 in continuous mode.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Address {
    call: u32,
    object: CodeObjectId,
    offset: u64,
    kernel: KernelId,
}

/// The sampling of one context.
pub struct Session {
    pub agent: AgentId,
    /// The exponent of the period; 0 is not set.
    exponent: u32,
    mode: u64,
    /// The stall reasons that the program asks for; all, if it has not.
    reasons: Option<BTreeSet<u32>>,
    has_control: bool,
    is_started: bool,
    /// The address of the program's buffer, or 0.
    buffer: usize,
    /// Sizes and times that have no effect, by attribute.
    kept: BTreeMap<u32, u64>,
    range: u64,
    counted: BTreeMap<Address, BTreeMap<u32, u64>>,
    total: u64,
    dropped: u64,
}

impl Session {
    pub fn new(agent: AgentId) -> Session {
        Session {
            agent,
            exponent: 0,
            mode: CONTINUOUS,
            reasons: None,
            has_control: false,
            is_started: false,
            buffer: 0,
            kept: BTreeMap::from([
                (attribute::SCRATCH_BUFFER_SIZE, 1 << 20),
                (attribute::HARDWARE_BUFFER_SIZE, 512 << 20),
                (attribute::OUTPUT_DATA_FORMAT, 1),
                (attribute::WORKER_THREAD_PERIODIC_SLEEP_SPAN, 100),
            ]),
            range: 0,
            counted: BTreeMap::new(),
            total: 0,
            dropped: 0,
        }
    }

    /// Whether samples are taken.
    pub fn is_active(&self) -> bool {
        !self.has_control || self.is_started
    }

    /// How often the device is sampled, if the program has said so.
    pub fn period(&self) -> Option<SamplingPeriod> {
        let level = match self.exponent {
            0 => return None,
            1..=9 => PeriodLevel::MIN,
            10..=13 => PeriodLevel::LOW,
            14..=17 => PeriodLevel::MID,
            18..=21 => PeriodLevel::HIGH,
            _ => PeriodLevel::MAX,
        };
        let exponent = if counts_cycles(self.agent) {
            self.exponent
        } else {
            0
        };
        Some(SamplingPeriod { level, exponent })
    }

    /// The program's buffer for what has been counted when sampling stops.
    pub fn buffer(&self) -> Option<*mut PCSamplingData> {
        (self.buffer != 0).then(|| std::ptr::with_exposed_provenance_mut(self.buffer))
    }

    /// Begins a range.
    pub fn start(&mut self) -> Answer {
        if !self.has_control || self.is_started {
            return Err(CUptiResult::INVALID_OPERATION);
        }
        self.is_started = true;
        self.range += 1;
        Ok(())
    }

    /// `INVALID_OPERATION` if there is nothing to stop.
    pub fn check_started(&self) -> Answer {
        if self.has_control && self.is_started {
            Ok(())
        } else {
            Err(CUptiResult::INVALID_OPERATION)
        }
    }

    /// Ends the range.
    pub fn stop(&mut self) {
        self.is_started = false;
    }

    /// Counts samples.
    pub fn add(&mut self, sample: &SampleAggregate) {
        self.total += sample.samples;
        let address = Address {
            call: match self.mode {
                SERIALIZED => correlation(sample.correlation),
                _ => 0,
            },
            object: sample.code_object,
            offset: sample.offset,
            kernel: sample.kernel,
        };
        if self.counted.len() >= MAX_ADDRESSES && !self.counted.contains_key(&address) {
            self.dropped += sample.samples;
            return;
        }
        let counted = self.counted.entry(address).or_default();
        *counted
            .entry(reasons::number(sample.stall, false))
            .or_default() += sample.samples;
        if sample.latency_samples > 0 {
            let number = reasons::number(sample.stall, true);
            *counted.entry(number).or_default() += sample.latency_samples;
        }
    }

    /// Counts samples that were dropped before.
    pub fn add_dropped(&mut self, dropped: u64) {
        self.total += dropped;
        self.dropped += dropped;
    }

    /// Puts what has been counted into a place of the program's, as far as it has room.
    ///
    /// # Safety
    ///
    /// `data` is null or leads to a structure of the size that it says, with as many places as it says for addresses of one size, each
    /// with null or places for the reasons of the configuration.
    pub unsafe fn put(&mut self, data: *mut PCSamplingData) -> Answer {
        if data.is_null() || !data.is_aligned() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: `data` leads to a structure that begins with its size.
        let size = unsafe { (*data).size };
        if size < offset_of!(PCSamplingData, is_full) {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: the structure has these fields, as its size says.
        let (capacity, pcs) = unsafe { ((*data).capacity, (*data).pcs) };
        if capacity > 0 && (pcs.is_null() || !pcs.is_aligned()) {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        let stride = match capacity {
            0 => 0,
            // SAFETY: there is a place, which begins with its size.
            _ => unsafe { (*pcs).size },
        };
        let first = offset_of!(PCSamplingPCData, correlation);
        if capacity > 0 && (stride < first || !stride.is_multiple_of(8)) {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        let mut count = 0;
        while count < capacity
            && let Some((address, samples)) = self.counted.pop_first()
        {
            // SAFETY: one of the `capacity` places, all of which have the size of the first one.
            unsafe { self.put_address(pcs.byte_add(count * stride), stride, address, &samples) };
            count += 1;
        }
        // SAFETY: the structure has these fields, as its size says.
        unsafe {
            (*data).total = std::mem::take(&mut self.total);
            (*data).dropped = std::mem::take(&mut self.dropped);
            (*data).count = count;
            (*data).remaining = self.counted.len();
            (*data).range = self.range;
            (*data).foreign = 0;
            if size >= size_of::<PCSamplingData>() {
                (*data).is_full = u8::from(self.counted.len() >= MAX_ADDRESSES);
            }
        }
        Ok(())
    }

    /// Puts the samples of an address.
    ///
    /// # Safety
    ///
    /// `place` leads to `size` bytes of the structure, with null or places for the reasons of the configuration.
    unsafe fn put_address(
        &self,
        place: *mut PCSamplingPCData,
        size: usize,
        address: Address,
        samples: &BTreeMap<u32, u64>,
    ) {
        let name = tool::kernel_name(address.kernel).unwrap_or_default();
        let is_asked = |number: &u32| self.reasons.as_ref().is_none_or(|all| all.contains(number));
        let asked = samples.iter().filter(|(number, _)| is_asked(number));
        // SAFETY: the structure has these fields, as `size` says; there is a place for each reason of the configuration.
        unsafe {
            (*place).crc = cubins::crc(address.object);
            (*place).offset = address.offset;
            (*place).function_index = function_index(address.kernel);
            (*place).function = cubins::duplicate(&name);
            let to = (*place).reasons;
            let mut count = 0;
            for (number, samples) in asked {
                if to.is_null() {
                    break;
                }
                to.add(count).write(PCSamplingStallReason {
                    number: *number,
                    samples: u32::try_from(*samples).unwrap_or(u32::MAX),
                });
                count += 1;
            }
            (*place).reason_count = count;
            if size >= size_of::<PCSamplingPCData>() {
                (*place).correlation = address.call;
            }
        }
    }

    /// Sets an attribute.
    pub fn set(&mut self, attribute: &mut PCSamplingConfigurationInfo) -> Answer {
        let value = attribute.value[0];
        let word = value as u32;
        match attribute.attribute {
            attribute::SAMPLING_PERIOD if (5..=31).contains(&word) => self.exponent = word,
            attribute::STALL_REASON => {
                let list = std::ptr::with_exposed_provenance::<u32>(attribute.value[1] as usize);
                let count = value as usize;
                if list.is_null() || count > reasons::count() {
                    return Err(CUptiResult::INVALID_PARAMETER);
                }
                // SAFETY: the list is as long as the program says.
                let numbers = (0..count).map(|place| unsafe { list.add(place).read_unaligned() });
                self.reasons = Some(numbers.collect());
            }
            attribute::COLLECTION_MODE
                if matches!(value as u32 as u64, CONTINUOUS | SERIALIZED) =>
            {
                self.mode = word.into();
            }
            attribute::ENABLE_START_STOP_CONTROL if word <= 1 => self.has_control = word == 1,
            // CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED
            attribute::OUTPUT_DATA_FORMAT if word == 1 => {}
            attribute::SAMPLING_DATA_BUFFER if value != 0 => self.buffer = value as usize,
            attribute::SCRATCH_BUFFER_SIZE | attribute::HARDWARE_BUFFER_SIZE if value != 0 => {
                self.kept.insert(attribute.attribute, value);
            }
            attribute::WORKER_THREAD_PERIODIC_SLEEP_SPAN => {
                self.kept.insert(attribute.attribute, word.into());
            }
            _ => return Err(CUptiResult::INVALID_PARAMETER),
        }
        Ok(())
    }

    /// Reads an attribute.
    pub fn get(&self, attribute: &mut PCSamplingConfigurationInfo) -> Answer {
        let value = match attribute.attribute {
            attribute::SAMPLING_PERIOD => self.exponent.into(),
            attribute::STALL_REASON => return self.get_reasons(attribute),
            attribute::COLLECTION_MODE => self.mode,
            attribute::ENABLE_START_STOP_CONTROL => self.has_control.into(),
            attribute::SAMPLING_DATA_BUFFER => self.buffer as u64,
            kept => *self.kept.get(&kept).ok_or(CUptiResult::INVALID_PARAMETER)?,
        };
        attribute.value = [value, 0, 0];
        Ok(())
    }

    /// Reads the stall reasons, as many as there are places.
    fn get_reasons(&self, attribute: &mut PCSamplingConfigurationInfo) -> Answer {
        let list = std::ptr::with_exposed_provenance_mut::<u32>(attribute.value[1] as usize);
        let places = attribute.value[0] as usize;
        let all = || (0..reasons::count() as u32).collect();
        let numbers: BTreeSet<u32> = self.reasons.clone().unwrap_or_else(all);
        for (place, number) in numbers.iter().enumerate().take(places) {
            if list.is_null() {
                return Err(CUptiResult::INVALID_PARAMETER);
            }
            // SAFETY: the list has as many places as the program says.
            unsafe { list.add(place).write_unaligned(*number) };
        }
        attribute.value[0] = numbers.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_period_is_never_a_shorter_one_of_a_device_that_is_sampled_by_time() {
        let mut session = Session::new(AgentId(1));
        assert!(session.period().is_none());
        let levels = (5..=31).map(|exponent| {
            session.exponent = exponent;
            session.period().unwrap().level.0
        });
        let levels: Vec<u32> = levels.collect();
        assert!(levels.is_sorted());
        // The levels that docs/apis.md names.
        let of = |exponent: usize| levels[exponent - 5];
        assert_eq!(
            [9, 10, 13, 14, 17, 18, 21, 22].map(of),
            [1, 2, 2, 3, 3, 4, 4, 5]
        );
    }
}
