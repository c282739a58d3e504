//! Samples of the program counter, by gputrail's sampling service: of processors by host trap, of the simulated GPU by both methods.
//!
//! The five constraints of the API hold:
//!
//! 1. An agent has one configuration, from when it is configured until the end of the tool; it is told alone then, with its flags.
//!    Another one is `NOT_AVAILABLE`, the same again `SERVICE_ALREADY_CONFIGURED`.
//! 2. What another process has configured is told alone, too, and may be configured as well; another configuration is `NOT_AVAILABLE`.
//!    This is so between processes that use this library, of one user and network namespace ([`claims`]). A simulated GPU is that of
//!    its process alone.
//! 3. One context of a process samples, on any number of agents: in another one it is `CONTEXT_CONFLICT`.
//! 4. Under a debugger it is `NOT_AVAILABLE`.
//! 5. A context that counts does not sample, and one that samples does not count: `CONTEXT_CONFLICT`, also when a context that counts is
//!    started while another one is configured to sample.
//!
//! | status of `configure` | reason |
//! |---|---|
//! | `NOT_AVAILABLE` | constraints 1, 2 and 4; the agent does not have the method with this unit, or cannot be sampled, as the host |
//! | `INVALID_ARGUMENT` | no method or unit; an interval that the agent cannot do |
//! | `INCOMPATIBLE_KERNEL` | the system does not allow it: perf events are missing or forbidden |
//! | `ERROR` | it allows it, and it failed, for want of open files say |
//! | `CONFIGURATION_LOCKED`, `CONTEXT_NOT_FOUND`, `BUFFER_NOT_FOUND`, `AGENT_NOT_FOUND` | as of other services |
//!
//! `ROCPROFILER_PC_SAMPLING_BETA_ENABLED` is not needed. Intervals in time are microseconds, as AMD's
//! library takes them. `flags` has no effect. What a sample does
//! not tell is 0. Dropped samples are in the drops of the buffer. On processors, `code_object_id` is that of the file in which the
//! runtime has the kernel; callbacks on code objects tell of it before the first sample of it is delivered.

mod claims;

use crate::context::{self, AgentService, Context};
use crate::result::{Answer, api};
use crate::{agents, buffer, counting, load, objects};
use claims::Claim;
use core::ffi::{c_char, c_int, c_void};
use gputrail_abi::{contained, kept, lock};
use gputrail_record::{
    CodeObjectId, HostTrapSample, InvalidSample, Kind, RecordRef, SamplingMethod, SamplingTotals,
    SamplingUnit, StochasticSample,
};
use gputrail_rocprofiler::*;
use gputrail_tool::sampling::{Configuration, Deliver, Request, configurations};
use gputrail_tool::{self as tool, Batch, BufferOptions, Policy};
use std::sync::{Arc, Mutex};

/// An agent that is sampled.
struct SampledAgent {
    agent: AgentId,
    request: Request,
    buffer: BufferId,
    /// Tells other processes, for as long as the tool lives.
    _claim: Option<Claim>,
}

/// The context that samples.
struct Sampling {
    context: ContextId,
    /// gputrail's buffers, by those of the client.
    buffers: Mutex<Vec<(BufferId, Arc<tool::Buffer>)>>,
    agents: Mutex<Vec<SampledAgent>>,
}

/// The one context of the process that samples.
static SAMPLING: Mutex<Option<Arc<Sampling>>> = Mutex::new(None);

/// Whether a context samples.
pub fn is_configured(context: ContextId) -> bool {
    let sampling = lock(&SAMPLING);
    let of = |sampling: &Arc<Sampling>| sampling.context == context;
    sampling.as_ref().is_some_and(of)
}

impl AgentService for Sampling {
    // gputrail's context starts and stops the agents.
    fn start(&self) -> Answer {
        Ok(())
    }

    fn stop(&self) {}

    fn collect(&self) -> bool {
        let buffers = lock(&self.buffers).clone();
        let flushed = buffers.iter().map(|(_, buffer)| buffer.flush().is_ok());
        flushed.fold(true, |all, is_flushed| all & is_flushed)
    }
}

impl Sampling {
    /// gputrail's buffer for one of the client's.
    fn buffer(&self, context: &Context, to: &Arc<buffer::Buffer>) -> Answer<Arc<tool::Buffer>> {
        let mut buffers = lock(&self.buffers);
        if let Some((_, known)) = buffers.iter().find(|(id, _)| *id == to.id) {
            return Ok(known.clone());
        }
        let options = BufferOptions {
            policy: match to.is_lossless {
                true => Policy::Lossless,
                false => Policy::Discard,
            },
            ..BufferOptions::default()
        };
        let client = to.clone();
        let new = tool::Buffer::new(options, move |batch: Batch<'_>| {
            let mut code = Vec::new();
            let of = batch.records().filter_map(sampled_code);
            of.for_each(|id| {
                if !code.contains(&id) {
                    code.push(id);
                }
            });
            objects::sampled(&code);
            batch.records().for_each(|one| put(&client, one));
        });
        let new = Arc::new(new.map_err(|_| Status::ERROR_OUT_OF_RESOURCES)?);
        // Samples belong to kernels, which therefore are recorded.
        let traced = context.gputrail.trace_to(&new, &[Kind::KERNEL_DISPATCH]);
        traced.map_err(failed)?;
        buffers.push((to.id, new.clone()));
        Ok(new)
    }
}

/// The status for an error of sampling.
fn failed(error: tool::Error) -> Status {
    use tool::Status as Of;
    match error.status {
        Of::SAMPLING_INCOMPATIBLE_SYSTEM => Status::ERROR_INCOMPATIBLE_KERNEL,
        Of::SAMPLING_FAILED => Status::ERROR,
        Of::SAMPLING_NOT_AVAILABLE | Of::NO_SUCH_AGENT => Status::ERROR_NOT_AVAILABLE,
        Of::LOCKED => Status::ERROR_CONFIGURATION_LOCKED,
        _ => crate::result::failed(error),
    }
}

/// How an agent can be sampled now: once it is configured, here or in another process, only so.
fn possible(agent: AgentId) -> Answer<Vec<Configuration>> {
    if agent == agents::host() {
        return Ok(Vec::new());
    }
    let device = agents::of_id(agent)?;
    let own = match configurations(device) {
        // Its runtime cannot sample it.
        Err(error) if error.status == tool::Status::NO_SUCH_AGENT => Vec::new(),
        own => own.map_err(failed)?,
    };
    let is_free = own.iter().any(|one| one.min != one.max);
    match is_free.then(|| claims::elsewhere(device)).flatten() {
        Some(request) => Ok(vec![Configuration::active(request, &own)]),
        None => Ok(own),
    }
}

/// Gives the ways in which an agent can be sampled to a callback, whose answer is the function's.
///
/// # Safety
///
/// `callback` takes configurations and `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_pc_sampling_agent_configurations(
    agent: AgentId,
    callback: Option<SamplingConfigurationsCallback>,
    data: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        let of = |one: Configuration| {
            let length = length(one.unit);
            let min = one.min.div_ceil(length);
            PcSamplingConfiguration {
                size: size_of::<PcSamplingConfiguration>() as u64,
                method: PcSamplingMethod(one.method.0.into()),
                unit: PcSamplingUnit(one.unit.0.into()),
                min_interval: min as usize,
                max_interval: min.max(one.max / length) as usize,
                flags: match one.power_of_two {
                    true => PcSamplingConfigurationFlags::INTERVAL_POW2.0 as u64,
                    false => PcSamplingConfigurationFlags::NONE.0 as u64,
                },
            }
        };
        let all: Vec<PcSamplingConfiguration> = possible(agent)?.into_iter().map(of).collect();
        // SAFETY: the client's function for this, with as many configurations as are said.
        match unsafe { callback(all.as_ptr(), all.len(), data) } {
            Status::SUCCESS => Ok(()),
            other => Err(other),
        }
    })
}

/// The length of the client's unit in gputrail's: microseconds in nanoseconds.
fn length(unit: SamplingUnit) -> u64 {
    match unit {
        SamplingUnit::TIME => 1_000,
        _ => 1,
    }
}

/// The client's request, in gputrail's words.
fn request(method: PcSamplingMethod, unit: PcSamplingUnit, interval: u64) -> Answer<Request> {
    let method = match method {
        PcSamplingMethod::STOCHASTIC => SamplingMethod::STOCHASTIC,
        PcSamplingMethod::HOST_TRAP => SamplingMethod::HOST_TRAP,
        _ => return Err(Status::ERROR_INVALID_ARGUMENT),
    };
    let unit = match unit {
        PcSamplingUnit::INSTRUCTIONS => SamplingUnit::INSTRUCTIONS,
        PcSamplingUnit::CYCLES => SamplingUnit::CYCLES,
        PcSamplingUnit::TIME => SamplingUnit::TIME,
        _ => return Err(Status::ERROR_INVALID_ARGUMENT),
    };
    let interval = interval.checked_mul(length(unit));
    Ok(Request {
        method,
        unit,
        interval: interval.ok_or(Status::ERROR_INVALID_ARGUMENT)?,
    })
}

/// Has an agent sampled while a context is started. `flags` has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_configure_pc_sampling_service(
    context: ContextId,
    agent: AgentId,
    method: PcSamplingMethod,
    unit: PcSamplingUnit,
    interval: u64,
    buffer: BufferId,
    _flags: c_int,
) -> Status {
    api(|| {
        load::configurable()?;
        if agent != agents::host() {
            agents::of_id(agent)?;
        }
        let context = context::found(context)?;
        let buffer = buffer::found(buffer)?;
        let request = request(method, unit, interval)?;
        if counting::is_configured(context.id) {
            return Err(Status::ERROR_CONTEXT_CONFLICT);
        }
        if agent == agents::host() {
            return Err(Status::ERROR_NOT_AVAILABLE);
        }
        configure(&context, agent, request, &buffer)
    })
}

fn configure(
    context: &Context,
    agent: AgentId,
    request: Request,
    to: &Arc<buffer::Buffer>,
) -> Answer {
    let current = lock(&SAMPLING).clone();
    if let Some(sampling) = &current {
        if sampling.context != context.id {
            return Err(Status::ERROR_CONTEXT_CONFLICT);
        }
        let agents = lock(&sampling.agents);
        if let Some(known) = agents.iter().find(|one| one.agent == agent) {
            let is_same = known.request == request && known.buffer == to.id;
            return Err(match is_same {
                true => Status::ERROR_SERVICE_ALREADY_CONFIGURED,
                false => Status::ERROR_NOT_AVAILABLE,
            });
        }
    }
    // Outside of the lock: the runtime may call back.
    let device = agents::of_id(agent)?;
    let sampling = current.unwrap_or_else(|| {
        Arc::new(Sampling {
            context: context.id,
            buffers: Mutex::default(),
            agents: Mutex::default(),
        })
    });
    let claim = claims::claim(device, request)?;
    let own = sampling.buffer(context, to)?;
    let sampled = context
        .gputrail
        .sample(&own, device, request, Deliver::Samples);
    sampled.map_err(failed)?;
    lock(&sampling.agents).push(SampledAgent {
        agent,
        request,
        buffer: to.id,
        _claim: claim,
    });
    let mut current = lock(&SAMPLING);
    if current.is_none() {
        lock(&context.services).agents.push(sampling.clone());
        *current = Some(sampling);
    }
    Ok(())
}

/// The code object that a sample is in.
fn sampled_code(record: RecordRef<'_>) -> Option<CodeObjectId> {
    let host_trap = record.get::<HostTrapSample>();
    let place = host_trap.or_else(|| {
        record
            .get::<StochasticSample>()
            .map(StochasticSample::place)
    });
    let code = place?.code_object;
    code.is_some().then_some(code)
}

/// Puts what is made from a record into a client's buffer.
fn put(to: &Arc<buffer::Buffer>, of: RecordRef<'_>) {
    let category = BufferCategory::PC_SAMPLING;
    if let Some(sample) = of.get::<HostTrapSample>() {
        let kind = PcSamplingRecordKind::HOST_TRAP_V0_SAMPLE;
        to.put(category, kind.0, &host_trap(sample));
    } else if let Some(sample) = of.get::<StochasticSample>() {
        let kind = PcSamplingRecordKind::STOCHASTIC_V0_SAMPLE;
        to.put(category, kind.0, &stochastic(sample));
    } else if of.get::<InvalidSample>().is_some() {
        let kind = PcSamplingRecordKind::INVALID_SAMPLE;
        let record = PcSamplingInvalidRecord {
            size: size_of::<PcSamplingInvalidRecord>() as u64,
        };
        to.put(category, kind.0, &record);
    } else if let Some(totals) = of.get::<SamplingTotals>()
        && totals.dropped != 0
    {
        to.count_dropped(totals.dropped);
    }
}

fn pc(sample: &HostTrapSample) -> Pc {
    Pc {
        code_object_id: sample.code_object.0.into(),
        code_object_offset: sample.offset,
    }
}

fn correlation(sample: &HostTrapSample) -> AsyncCorrelationId {
    AsyncCorrelationId {
        internal: sample.correlation.0,
        external: UserData::from(sample.external.0),
    }
}

fn workgroup(sample: &HostTrapSample) -> Dim3 {
    let [x, y, z] = sample.workgroup;
    Dim3 { x, y, z }
}

fn host_trap(sample: &HostTrapSample) -> PcSamplingHostTrapRecord {
    PcSamplingHostTrapRecord {
        size: size_of::<PcSamplingHostTrapRecord>() as u64,
        hw_id: HwId(sample.hardware.0),
        pc: pc(sample),
        exec_mask: sample.exec_mask,
        timestamp: sample.time.0,
        dispatch_id: sample.work.0,
        correlation_id: correlation(sample),
        workgroup_id: workgroup(sample),
        wave: sample.wave_in_group.into(),
    }
}

// The words of bits have the layout of gputrail's.
fn stochastic(sample: &StochasticSample) -> PcSamplingStochasticRecord {
    let place = sample.place();
    PcSamplingStochasticRecord {
        size: size_of::<PcSamplingStochasticRecord>() as u64,
        flags: match sample.has_memory_counters & 1 {
            0 => 0,
            _ => HAS_MEMORY_COUNTER,
        },
        wave_in_group: sample.wave_in_group,
        issue: sample.issue.0,
        hw_id: HwId(sample.hardware.0),
        pc: pc(place),
        exec_mask: sample.exec_mask,
        workgroup_id: workgroup(place),
        wave_count: sample.wave_count,
        timestamp: sample.time.0,
        dispatch_id: sample.work.0,
        correlation_id: correlation(place),
        snapshot: Snapshot(sample.snapshot.0),
        memory_counters: MemoryCounters(sample.memory_counters.0.into()),
    }
}

/// The name of a constant, which lasts for ever; null if there is none.
fn full_name(prefix: &str, name: Option<&core::ffi::CStr>) -> *const c_char {
    let name = contained(|| Some(kept(&format!("{prefix}_{}", name?.to_str().ok()?))));
    name.flatten()
        .map_or(std::ptr::null(), |name| name.as_ptr())
}

/// The name of an instruction type's constant, which lasts for ever; null if it is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_pc_sampling_instruction_type_name(
    of: PcSamplingInstructionType,
) -> *const c_char {
    full_name("ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE", of.name())
}

/// The name of a reason's constant, which lasts for ever; null if it is none.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
    of: PcSamplingInstructionNotIssuedReason,
) -> *const c_char {
    let prefix = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON";
    full_name(prefix, of.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::{HardwareId, Issue, MemoryCounters as Pending, Snapshot as State};

    #[test]
    fn a_sample_keeps_its_bits() {
        let mut sample = StochasticSample::blank();
        sample.issue = Issue(0).with_issued(1).with_instruction(6);
        sample.snapshot = State(0).with_reason_not_issued(3).with_stall_flat(1);
        sample.memory_counters = Pending(0).with_load(5).with_scalar(31);
        sample.has_memory_counters = 1;
        sample.hardware = HardwareId(0).with_compute_unit(9).with_queue(2);
        let record = stochastic(&sample);
        assert_eq!((record.issue & 1, record.issue >> 1), (1, 6));
        assert_eq!(record.snapshot.reason_not_issued(), 3);
        // The seventh of the types of instructions.
        assert_eq!(record.snapshot.arb_state_stall(), 1 << 6);
        let counters = record.memory_counters;
        assert_eq!((counters.load_cnt(), counters.km_cnt()), (5, 31));
        assert_eq!(record.flags, HAS_MEMORY_COUNTER);
        let place = (record.hw_id.cu_or_wgp_id(), record.hw_id.queue_id());
        assert_eq!(place, (9, 2));
    }

    #[test]
    fn methods_and_units_that_there_are_not_are_refused() {
        let (method, unit) = (PcSamplingMethod::HOST_TRAP, PcSamplingUnit::TIME);
        assert_eq!(request(method, unit, 2).unwrap().interval, 2_000);
        let cycles = request(PcSamplingMethod::STOCHASTIC, PcSamplingUnit::CYCLES, 256);
        assert_eq!(cycles.unwrap().interval, 256);
        let too_long = request(method, unit, u64::MAX / 999).unwrap_err();
        assert_eq!(too_long, Status::ERROR_INVALID_ARGUMENT);
        for (method, unit) in [
            (PcSamplingMethod::NONE, unit),
            (PcSamplingMethod(3), unit),
            (method, PcSamplingUnit::NONE),
            (method, PcSamplingUnit(4)),
        ] {
            let refused = request(method, unit, 1).unwrap_err();
            assert_eq!(refused, Status::ERROR_INVALID_ARGUMENT);
        }
    }
}
