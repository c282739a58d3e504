//! PC sampling, and the words for what waves wait for.

use super::kinds::list;
use super::library::{self, board};
use super::sized;
use super::status::FailedCall;
use super::text::{given, kept};
use super::{Answer, done, place};
use core::ffi::c_char;
use gputrail_interface::c::{
    BufferHandle, ContextHandle, SamplingConfiguration, SamplingOptions, SamplingPeriodOptions,
    Status,
};
use gputrail_interface::sampling::{Configuration, Deliver, Request, SamplingPeriod};
use gputrail_record::{AgentId, InstructionType, NotIssued, StallReason, StochasticSample};

fn deliver(aggregates: u8) -> Answer<Deliver> {
    match aggregates {
        0 => Ok(Deliver::Samples),
        1 => Ok(Deliver::Aggregates),
        other => Err(FailedCall::new(
            Status::INVALID_ARGUMENT,
            format!("unknown aggregates {other}: expected 0 or 1"),
        )),
    }
}

/// The agents whose sources know whether they can be sampled. As `gputrail_kinds`.
///
/// # Safety
///
/// `agents` is null or leads to room for `capacity` ids, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_sampling_agents(
    agents: *mut AgentId,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let all = board()?.sampling().agents();
        // SAFETY: `agents` is null or has room for `capacity` ids, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, agents, capacity, count) }
    })
}

/// How an agent can be sampled at this moment: once somebody has configured it, only so; not at all if `count` is 0. As
/// `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_NO_SUCH_AGENT`; `GPUTRAIL_SAMPLING_NOT_AVAILABLE` under a debugger; `GPUTRAIL_TOO_SMALL`, and as
/// many as fit are written; `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `configurations` is null or leads to room for `capacity` of them, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_sampling_configurations(
    agent: AgentId,
    configurations: *mut SamplingConfiguration,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let found = board()?.sampling().configurations(agent);
        let found = found.map_err(gputrail_collect::context::ToolError::from)?;
        let of = |one: &Configuration| SamplingConfiguration {
            min_interval: one.min,
            max_interval: one.max,
            method: one.method,
            unit: one.unit,
            power_of_two: one.power_of_two.into(),
            reserved: [0; 5],
        };
        let all: Vec<SamplingConfiguration> = found.iter().map(of).collect();
        // SAFETY: `configurations` is null or has room for `capacity` configurations, `count` is null or a place for a
        // number (the caller's promises).
        unsafe { list(&all, configurations, capacity, count) }
    })
}

/// Configures PC sampling: the agent, or with `GPUTRAIL_ALL_AGENTS` each agent, is sampled while the context is started, and the
/// records go to the buffer. A context can sample several agents; one context of the process has this service, and nobody in the
/// process counts meanwhile (`gputrail_context_count`). The configuration is valid until the tool ends, or destroys the context or
/// the buffer.
///
/// Errors: `GPUTRAIL_SAMPLING_INCOMPATIBLE_SYSTEM` if the system does not allow it (rocprofiler-sdk:
/// `ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_KERNEL`); `GPUTRAIL_SAMPLING_FAILED` if it allows it, and it failed all the same, for want
/// of open files say (`ROCPROFILER_STATUS_ERROR`); `GPUTRAIL_SAMPLING_NOT_AVAILABLE` if the agent samples otherwise already, cannot do what is asked for, or
/// the process is being debugged; `GPUTRAIL_CONTEXT_CONFLICT` if another context samples, or one collects
/// counters; `GPUTRAIL_INVALID_ARGUMENT` for an interval that the agent cannot do; `GPUTRAIL_LOCKED` after the first
/// start; `GPUTRAIL_NO_SUCH_AGENT`, `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_WRONG_SIZE`,
/// `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`; `GPUTRAIL_BUSY` from within a buffer's callback.
/// `gputrail_last_error` names what the agent can do.
///
/// # Safety
///
/// `options` is null or leads to options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_sample(
    context: ContextHandle,
    buffer: BufferHandle,
    agent: AgentId,
    options: *const SamplingOptions,
) -> Status {
    done(|| {
        let (context, buffer) = (library::context(context)?, library::buffer(buffer)?);
        // SAFETY: `options` is null or leads to options of as many bytes as their size says (the caller's promise).
        let asked = unsafe { sized::read(options) }?;
        let request = Request {
            method: asked.method,
            unit: asked.unit,
            interval: asked.interval,
        };
        Ok(context.sample(&buffer, agent, request, deliver(asked.aggregates)?)?)
    })
}

/// Configures PC sampling by a period, as CUPTI does. `interval`, which may be null, gets the interval in the agent's
/// unit; 0 for `GPUTRAIL_ALL_AGENTS`.
///
/// Errors: also `GPUTRAIL_INVALID_ARGUMENT` if no period is set, or one that does not exist.
///
/// # Safety
///
/// `period` is null or leads to a period, `interval` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_sample_every(
    context: ContextHandle,
    buffer: BufferHandle,
    agent: AgentId,
    period: *const SamplingPeriodOptions,
    interval: *mut u64,
) -> Status {
    done(|| {
        let (context, buffer) = (library::context(context)?, library::buffer(buffer)?);
        // SAFETY: `period` is null or leads to a period of as many bytes as its size says (the caller's promise).
        let asked = unsafe { sized::read(period) }?;
        let period = SamplingPeriod {
            level: asked.level,
            exponent: asked.exponent,
        };
        if !interval.is_null() {
            super::checked(interval, "interval")?;
        }
        let request = context.sample_every(&buffer, agent, period, deliver(asked.aggregates)?)?;
        if !interval.is_null() {
            // SAFETY: `interval` is not null, `checked` has refused a misaligned one, and otherwise it is a place for a
            // number (the caller's promise).
            unsafe { interval.write(request.interval) };
        }
        Ok(())
    })
}

/// Says that the context collects counters by means of the tool's own: it cannot sample then.
///
/// Errors: `GPUTRAIL_CONTEXT_CONFLICT` if it samples; `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_collects_counters(context: ContextHandle) -> Status {
    done(|| Ok(library::context(context)?.collects_counters()?))
}

fn vendor(name: Option<&'static str>) -> *const c_char {
    name.map_or(std::ptr::null(), kept)
}

fn unknown(what: &str, name: &str) -> FailedCall {
    FailedCall::new(Status::NOT_FOUND, format!("there is no {what} \"{name}\""))
}

/// The name of a type of instruction in rocprofiler-sdk, `ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU` say, or null
/// for one that this version does not know. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_instruction_type_name(of: InstructionType) -> *const c_char {
    vendor(of.vendor_name())
}

/// The type of instruction that has this name in rocprofiler-sdk.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `name` is null or ends with a 0, `found` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_instruction_type_by_name(
    name: *const c_char,
    found: *mut InstructionType,
) -> Status {
    done(|| {
        // SAFETY: `name` is null or a text that ends with a 0, `found` is null or a place for the answer (the caller's
        // promises).
        let (name, found) = unsafe { (given(name, "name")?, place(found, "found")?) };
        let of = InstructionType::from_vendor_name(name);
        found.write(of.ok_or_else(|| unknown("type of instruction", name))?);
        Ok(())
    })
}

/// The name of a reason in rocprofiler-sdk, `ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT` say, or
/// null for one that this version does not know. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_not_issued_name(of: NotIssued) -> *const c_char {
    vendor(of.vendor_name())
}

/// The reason that has this name in rocprofiler-sdk.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `name` is null or ends with a 0, `found` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_not_issued_by_name(
    name: *const c_char,
    found: *mut NotIssued,
) -> Status {
    done(|| {
        // SAFETY: `name` is null or a text that ends with a 0, `found` is null or a place for the answer (the caller's
        // promises).
        let (name, found) = unsafe { (given(name, "name")?, place(found, "found")?) };
        let of = NotIssued::from_vendor_name(name);
        found.write(of.ok_or_else(|| unknown("reason", name))?);
        Ok(())
    })
}

/// The name of a stall reason in CUPTI, `CUPTI_ACTIVITY_PC_SAMPLING_STALL_SYNC` or
/// `smsp__pcsamp_warps_issue_stalled_barrier` say, or null for one that this version does not know. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_stall_reason_name(of: StallReason) -> *const c_char {
    vendor(of.vendor_name())
}

/// The stall reason that has this name in CUPTI.
///
/// Errors: `GPUTRAIL_NOT_FOUND`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `name` is null or ends with a 0, `found` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_stall_reason_by_name(
    name: *const c_char,
    found: *mut StallReason,
) -> Status {
    done(|| {
        // SAFETY: `name` is null or a text that ends with a 0, `found` is null or a place for the answer (the caller's
        // promises).
        let (name, found) = unsafe { (given(name, "name")?, place(found, "found")?) };
        let of = StallReason::from_vendor_name(name);
        found.write(of.ok_or_else(|| unknown("stall reason", name))?);
        Ok(())
    })
}

/// The stall reason in CUPTI's words of a single sample: the one under which records of samples by address and reason count it.
/// It takes more of the sample than the reason in rocprofiler-sdk's words: a wait for scalar reads alone is one for constant memory,
/// and a stalled pipe is throttled memory (flat) or the texture sub-system (texture).
///
/// Errors: none; a null sample has the reason `GPUTRAIL_STALL_REASON_INVALID`.
///
/// # Safety
///
/// `sample` is null or leads to a sample.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_stall_reason_of_sample(
    sample: *const StochasticSample,
) -> StallReason {
    if !sample.is_aligned() {
        return StallReason::INVALID;
    }
    // SAFETY: `sample` is aligned, and null or leads to a sample that nobody writes until this returns (the caller's
    // promise).
    let sample = unsafe { sample.as_ref() };
    sample.map_or(StallReason::INVALID, StallReason::of)
}

/// The stall reason in CUPTI's words for a reason in rocprofiler-sdk's alone: `GPUTRAIL_STALL_REASON_PIPE_BUSY` for every stalled
/// pipe. Counts of single samples by it differ from records of samples by address and reason, which tell throttled memory, textures
/// and constant memory apart: `gputrail_stall_reason_of_sample` does so, too.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_stall_reason_of(reason: NotIssued) -> StallReason {
    reason.into()
}

/// The reason in rocprofiler-sdk's words for a stall reason in CUPTI's.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_not_issued_of(reason: StallReason) -> NotIssued {
    reason.into()
}
