//! Counter collection.

use super::kinds::list;
use super::library::{self, board};
use super::sized;
use super::status::FailedCall;
use super::text::{given, kept};
use super::{done, place};
use core::ffi::c_char;
use core::num::NonZeroU32;
use gputrail_buffer::platform::inside::message;
use gputrail_collect::counting::values::usage;
use gputrail_counters as counters;
use gputrail_counters::Definition;
use gputrail_interface::c::{
    BufferHandle, ContextHandle, CounterDefinition, CountingOptions, Status,
};
use gputrail_interface::counting::CountingMode;
use gputrail_record::{AgentId, Nanos};
use std::path::Path;

/// The agents whose sources know their counters. As `gputrail_kinds`.
///
/// # Safety
///
/// `agents` is null or leads to room for `capacity` ids, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counting_agents(
    agents: *mut AgentId,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let all = board()?.counting().agents();
        // SAFETY: `agents` is null or has room for `capacity` ids, `count` is null or a place for a number (the caller's
        // promises).
        unsafe { list(&all, agents, capacity, count) }
    })
}

/// The counters and metrics of an agent. As `gputrail_kinds`.
///
/// Errors: `GPUTRAIL_NO_SUCH_AGENT`; `GPUTRAIL_TOO_SMALL`, and as many as fit are written; `GPUTRAIL_NOT_INITIALISED`,
/// `GPUTRAIL_NULL_POINTER`; `GPUTRAIL_BUSY` from within a buffer's callback.
///
/// # Safety
///
/// `counters` is null or leads to room for `capacity` of them, `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counters(
    agent: AgentId,
    counters: *mut CounterDefinition,
    capacity: usize,
    count: *mut usize,
) -> Status {
    done(|| {
        let found = board()?.counting().configurations(agent);
        let found = found.map_err(gputrail_collect::context::ToolError::from)?;
        let mut all = Vec::new();
        for countable in &found {
            let blocks = countable.architecture.blocks();
            all.extend(countable.architecture.counters().iter().map(|counter| {
                let (from, block) = match &counter.definition {
                    Definition::Basic { block, .. } => {
                        let block = &blocks[block.0 as usize];
                        (&block.name, Some(block))
                    }
                    Definition::Derived(expression, _) => (&expression.text, None),
                };
                let capacity = block.and_then(|block| block.capacity).unwrap_or(0);
                CounterDefinition {
                    name: kept(&counter.name),
                    description: kept(&counter.description),
                    from: kept(from),
                    is_metric: block.is_none().into(),
                    usage: usage(counter.usage),
                    capacity: capacity.min(u16::MAX.into()) as u16,
                    instances: block.map_or(1, |block| block.instances.unwrap_or(0)),
                }
            }));
        }
        // SAFETY: `counters` is null or has room for `capacity` definitions, `count` is null or a place for a number (the
        // caller's promises).
        unsafe { list(&all, counters, capacity, count) }
    })
}

/// Adds the metrics of a file of definitions to those of the agents, for all counters that are asked for from now on
/// (ROCProfiler v1: `ROCP_METRICS`). An agent has the metrics of its architecture and those of `<global>`, as far as it
/// has their counters; processors have the architecture `host`. Definitions that are refused are told on the standard error,
/// and `refused`, which may be null, gets their number.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if the file cannot be read; `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `path` is null or ends with a 0; `refused` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_counters_add(path: *const c_char, refused: *mut u32) -> Status {
    done(|| {
        board()?;
        // SAFETY: `path` is null or a text that ends with a 0 (the caller's promise).
        let path = unsafe { given(path, "path") }?;
        let all = counters::add_metrics(Path::new(path));
        let all =
            all.map_err(|error| FailedCall::new(Status::NOT_FOUND, format!("{path}: {error}")))?;
        for one in &all {
            message(format_args!("{one}"));
        }
        if !refused.is_null() {
            // SAFETY: `refused` is not null, and a place for a number (the caller's promise); `place` refuses a misaligned
            // one.
            unsafe { place(refused, "refused") }?.write(all.len() as u32);
        }
        Ok(())
    })
}

/// Configures counter collection: the counters are collected while the context is started, and their values go to the
/// buffer as records of the kind `GPUTRAIL_KIND_COUNTER_VALUE`. A context can count on several agents, with `GPUTRAIL_ALL_AGENTS` on
/// each; one context of the process has this service, and nobody in the process samples meanwhile (`gputrail_context_sample`). The
/// configuration is valid until the tool ends, or destroys the context or the buffer.
/// Values of dispatches take calls that are recorded or reported: of a buffer or subscriber that wants kernel dispatches.
///
/// Errors: `GPUTRAIL_NOT_FOUND` for an unknown counter; `GPUTRAIL_INVALID_ARGUMENT` for counters that need more passes than
/// the agent can do, and for a period that is too short; `GPUTRAIL_COUNTERS_NOT_AVAILABLE` if the agent counts already,
/// cannot count in this way, or the system does not allow it; `GPUTRAIL_CONTEXT_CONFLICT` if another context counts, or
/// one samples; `GPUTRAIL_LOCKED` after the first start; `GPUTRAIL_NO_SUCH_AGENT`, `GPUTRAIL_NO_SUCH_CONTEXT`,
/// `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`; `GPUTRAIL_BUSY`
/// from within a buffer's callback. `gputrail_last_error` names the nearest counters.
///
/// # Safety
///
/// `options` is null or leads to options, whose texts are null or end with a 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_context_count(
    context: ContextHandle,
    buffer: BufferHandle,
    agent: AgentId,
    options: *const CountingOptions,
) -> Status {
    done(|| {
        let (context, buffer) = (library::context(context)?, library::buffer(buffer)?);
        // SAFETY: `options` is null or leads to options of as many bytes as their size says (the caller's promise).
        let asked = unsafe { sized::read(options) }?;
        // SAFETY: the list of counters is null or ends with a 0 (the caller's promise); `names` is not used after this call.
        let names = unsafe { given(asked.counters, "counters") }?;
        let names: Vec<&str> = names.split(',').collect();
        if names.iter().any(|name| name.trim().is_empty()) {
            return Err(FailedCall::new(
                Status::INVALID_ARGUMENT,
                "counters: expected names with commas between them",
            ));
        }
        if !asked.range.is_null() {
            if asked.period != 0 || asked.per_pass != 0 || asked.each_instance != 0 {
                return Err(FailedCall::new(
                    Status::INVALID_ARGUMENT,
                    "range: expected no period, per_pass or each_instance",
                ));
            }
            // SAFETY: the pattern is not null, so it ends with a 0 (the caller's promise); it is not used after this call.
            let pattern = unsafe { given(asked.range, "range") }?;
            return match pattern {
                "" => Ok(context.count(&buffer, agent, &names, CountingMode::Range)?),
                pattern => Ok(context.count_ranges(&buffer, agent, &names, pattern)?),
            };
        }
        let mode = match asked.period {
            0 => CountingMode::Dispatch,
            period => CountingMode::Device {
                period: Nanos(period),
            },
        };
        match NonZeroU32::new(asked.per_pass) {
            None if asked.each_instance != 0 => {
                Ok(context.count_each_instance(&buffer, agent, &names, mode)?)
            }
            Some(_) if asked.each_instance != 0 => Err(FailedCall::new(
                Status::INVALID_ARGUMENT,
                "each_instance: not together with per_pass",
            )),
            None => Ok(context.count(&buffer, agent, &names, mode)?),
            Some(_) if mode != CountingMode::Dispatch => Err(FailedCall::new(
                Status::INVALID_ARGUMENT,
                "per_pass: there is one pass at a period",
            )),
            Some(per_pass) => Ok(context.count_in_passes(&buffer, agent, &names, per_pass)?),
        }
    })
}

/// Reserves counter collection for the context, also before its agents are known: no other context of the process can count
/// while this one is there.
///
/// Errors: `GPUTRAIL_CONTEXT_CONFLICT` if another context counts or has reserved it, that of the recording say, or this one
/// samples; `GPUTRAIL_NO_SUCH_CONTEXT`, `GPUTRAIL_NOT_INITIALISED`. `gputrail_last_error` says which.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_context_reserve_counters(context: ContextHandle) -> Status {
    done(|| Ok(library::context(context)?.reserve_counters()?))
}
