//! The SDK's functions for PC sampling behind safe ones.
//!
//! Intervals in time are nanoseconds here and microseconds in the library.

use super::records::SampleWords;
use crate::rocm::sdk::{Refused, Sdk, call, text_of};
use core::ffi::c_void;
use gputrail_interface::sampling::{Configuration, Request};
use gputrail_record::{SamplingMethod, SamplingUnit};
use gputrail_rocprofiler::{
    AgentId, BufferId, ContextId, PcSamplingConfiguration, PcSamplingConfigurationFlags,
    PcSamplingInstructionNotIssuedReason, PcSamplingInstructionType, PcSamplingMethod,
    PcSamplingUnit, Status, read,
};

/// Nanoseconds of the library's unit of time.
const MICROSECOND: u64 = 1_000;
/// The most configurations that are read of an agent.
const MAX_CONFIGURATIONS: usize = 256;

/// A configuration of the library, in our words. `None`: its method or unit is not known here.
fn configuration(of: &PcSamplingConfiguration, is_before_1_0: bool) -> Option<Configuration> {
    let method = match of.method {
        PcSamplingMethod::STOCHASTIC => SamplingMethod::STOCHASTIC,
        PcSamplingMethod::HOST_TRAP => SamplingMethod::HOST_TRAP,
        _ => return None,
    };
    let (unit, factor) = match of.unit {
        PcSamplingUnit::INSTRUCTIONS => (SamplingUnit::INSTRUCTIONS, 1),
        PcSamplingUnit::CYCLES => (SamplingUnit::CYCLES, 1),
        PcSamplingUnit::TIME => (SamplingUnit::TIME, MICROSECOND),
        _ => return None,
    };
    let power_of_two = PcSamplingConfigurationFlags::INTERVAL_POW2.0 as u64;
    Some(Configuration {
        method,
        unit,
        min: (of.min_interval as u64).saturating_mul(factor),
        max: (of.max_interval as u64).saturating_mul(factor),
        // Before 1.0 the flags had no meaning.
        power_of_two: !is_before_1_0 && of.flags & power_of_two != 0,
    })
}

/// The library's interval for one of ours: the nearest, which is not 0.
fn interval(request: &Request) -> u64 {
    match request.unit {
        SamplingUnit::TIME => {
            (request.interval.saturating_add(MICROSECOND / 2) / MICROSECOND).max(1)
        }
        _ => request.interval,
    }
}

/// The request that the library carries out in place of this one: with an interval that it can have.
pub(super) fn carried_out(request: Request) -> Request {
    match request.unit {
        SamplingUnit::TIME => Request {
            interval: interval(&request).saturating_mul(MICROSECOND),
            ..request
        },
        _ => request,
    }
}

impl Sdk {
    /// The ways in which an agent can be sampled now. If it is configured already, in this process or in another one, that one.
    pub(super) fn sampling_configurations(
        &self,
        agent: AgentId,
    ) -> Result<Vec<Configuration>, Refused> {
        struct Found {
            is_before_1_0: bool,
            all: Vec<Configuration>,
        }
        unsafe extern "C" fn take(
            first: *const PcSamplingConfiguration,
            count: usize,
            found: *mut c_void,
        ) -> Status {
            // SAFETY: the local of the caller below, which waits for this.
            let found = unsafe { &mut *found.cast::<Found>() };
            if first.is_null() || count == 0 {
                return Status::SUCCESS;
            }
            // SAFETY: there is one, which begins with its size.
            let stated = unsafe { first.cast::<u64>().read() };
            let known = size_of::<PcSamplingConfiguration>();
            let stride = usize::try_from(stated).unwrap_or(known).max(known);
            for place in 0..count.min(MAX_CONFIGURATIONS) {
                // SAFETY: the library gives `count` structures of its size, one behind the other.
                let one = unsafe { read(first.byte_add(place * stride.next_multiple_of(8))) };
                found.all.extend(configuration(&one, found.is_before_1_0));
            }
            Status::SUCCESS
        }
        let mut found = Found {
            is_before_1_0: self.is_before_1_0(),
            all: Vec::new(),
        };
        // SAFETY: the callback is called in the call, with the local.
        let status = unsafe {
            call!(
                self,
                query_pc_sampling_agent_configurations(agent, Some(take), (&raw mut found).cast())
            )
        };
        match status {
            Status::SUCCESS => Ok(found.all),
            refused => Err(refused),
        }
    }

    /// Has an agent sample while `context` is started: into `buffer`.
    pub(super) fn configure_sampling(
        &self,
        context: ContextId,
        agent: AgentId,
        request: &Request,
        buffer: BufferId,
    ) -> Result<(), Refused> {
        let method = match request.method {
            SamplingMethod::STOCHASTIC => PcSamplingMethod::STOCHASTIC,
            _ => PcSamplingMethod::HOST_TRAP,
        };
        let unit = match request.unit {
            SamplingUnit::INSTRUCTIONS => PcSamplingUnit::INSTRUCTIONS,
            SamplingUnit::CYCLES => PcSamplingUnit::CYCLES,
            _ => PcSamplingUnit::TIME,
        };
        let interval = interval(request);
        // SAFETY: numbers and handles, which the library checks.
        let status = unsafe {
            call!(
                self,
                configure_pc_sampling_service(context, agent, method, unit, interval, buffer, 0)
            )
        };
        match status {
            Status::SUCCESS => Ok(()),
            refused => Err(refused),
        }
    }

    /// The library's numbers of instruction types and reasons.
    pub(super) fn sample_words(&self) -> SampleWords {
        SampleWords::of(
            |number| {
                let name = self.functions.get_pc_sampling_instruction_type_name?;
                // SAFETY: any number is taken; the answer is null or a text that lasts as long as the library.
                unsafe { text_of(name(PcSamplingInstructionType(number))) }
            },
            |number| {
                let name = self
                    .functions
                    .get_pc_sampling_instruction_not_issued_reason_name?;
                // SAFETY: as above.
                unsafe { text_of(name(PcSamplingInstructionNotIssuedReason(number))) }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_library(unit: PcSamplingUnit, flags: u64) -> PcSamplingConfiguration {
        PcSamplingConfiguration {
            size: size_of::<PcSamplingConfiguration>() as u64,
            method: PcSamplingMethod::STOCHASTIC,
            unit,
            min_interval: 1 << 8,
            max_interval: 1 << 16,
            flags,
        }
    }

    #[test]
    fn configurations_are_told_in_our_units() {
        let cycles = configuration(&of_library(PcSamplingUnit::CYCLES, 1), false).unwrap();
        assert_eq!((cycles.min, cycles.max), (1 << 8, 1 << 16));
        assert!(cycles.power_of_two);
        let older = configuration(&of_library(PcSamplingUnit::CYCLES, 1), true).unwrap();
        assert!(!older.power_of_two);
        let time = configuration(&of_library(PcSamplingUnit::TIME, 0), false).unwrap();
        assert_eq!((time.min, time.unit), (256_000, SamplingUnit::TIME));
        assert_eq!(
            configuration(&of_library(PcSamplingUnit(9), 0), false),
            None
        );
    }

    #[test]
    fn intervals_in_time_are_those_of_the_library() {
        let request = |unit, interval| Request {
            method: SamplingMethod::HOST_TRAP,
            unit,
            interval,
        };
        let time = |interval| interval_of(request(SamplingUnit::TIME, interval));
        assert_eq!([1, 1_499, 1_500, 1_000_000].map(time), [1, 1, 2, 1_000]);
        assert_eq!(interval_of(request(SamplingUnit::CYCLES, 1_499)), 1_499);
        let done = carried_out(request(SamplingUnit::TIME, 1_499));
        assert_eq!(done.interval, 1_000);
    }

    fn interval_of(request: Request) -> u64 {
        interval(&request)
    }
    /// A configuration of a later version.
    #[repr(C)]
    struct Grown {
        known: PcSamplingConfiguration,
        _more: u64,
    }

    /// A library that tells of two configurations, in structures that have grown by 8 bytes.
    unsafe extern "C" fn two(
        agent: AgentId,
        callback: Option<gputrail_rocprofiler::SamplingConfigurationsCallback>,
        data: *mut c_void,
    ) -> Status {
        let status = Status(agent.handle as i32);
        if status != Status::SUCCESS {
            return status;
        }
        let mut one = of_library(PcSamplingUnit::TIME, 0);
        one.size += 8;
        let two = PcSamplingConfiguration {
            unit: PcSamplingUnit::CYCLES,
            flags: 1,
            ..one
        };
        let all = [one, two].map(|known| Grown { known, _more: 0 });
        // SAFETY: the callback of the caller, with as many structures as stated.
        unsafe { callback.unwrap()(all.as_ptr().cast(), all.len(), data) }
    }

    #[test]
    fn configurations_of_a_later_version_are_read_by_their_size() {
        let functions = gputrail_rocprofiler::Functions {
            query_pc_sampling_agent_configurations: Some(two),
            ..gputrail_rocprofiler::Functions::default()
        };
        let mut sdk = Sdk::with(functions);
        sdk.version.major = 1;
        let agent = |status: Status| AgentId {
            handle: status.0 as u64,
        };
        let found = sdk.sampling_configurations(agent(Status::SUCCESS)).unwrap();
        let units: Vec<_> = found
            .iter()
            .map(|one| (one.unit, one.power_of_two))
            .collect();
        assert_eq!(
            units,
            [(SamplingUnit::TIME, false), (SamplingUnit::CYCLES, true)]
        );
        let refused = sdk.sampling_configurations(agent(Status::ERROR_INCOMPATIBLE_KERNEL));
        assert_eq!(refused, Err(Status::ERROR_INCOMPATIBLE_KERNEL));
        // A library that lacks the function.
        let none = Sdk::with(gputrail_rocprofiler::Functions::default());
        let refused = none.sampling_configurations(agent(Status::SUCCESS));
        assert_eq!(refused, Err(Status::ERROR_NOT_IMPLEMENTED));
    }
}
