//! What is enabled in CUPTI: the callbacks and the activities that a recording or tool wants at the time.
//!
//! Callbacks are enabled one by one, for the functions that are wanted. The record of a graph as a whole, which CUPTI makes instead of
//! those of its nodes, is not asked for. An activity that CUPTI refuses is noted at the end with the reason; kernels and copies at
//! once.

use super::ffi::{self, Cupti, call};
use super::functions::{self, callback_domain};
use super::inside::InsideCupti;
use super::notes::why;
use super::resources;
use super::session::{CuptiSession, current_session};
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::names::Names;
use gputrail_collect::process;
use gputrail_collect::switchboard::Switchboard;
use gputrail_collect::unified_memory;
use gputrail_interface::operations::resource;
use gputrail_record::{Agent, Domain, Kind, NoteKind, Operation};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The activities that CUPTI records, and the kinds of records that are made of them.
const ACTIVITIES: [(u32, Kind, &str); 15] = [
    (ffi::CONCURRENT_KERNEL, Kind::KERNEL_DISPATCH, "kernels"),
    (ffi::STREAM, Kind::KERNEL_DISPATCH, "creations of streams"),
    (ffi::MEMCPY, Kind::MEMORY_COPY, "copies"),
    (
        ffi::MEMCPY_PEER,
        Kind::MEMORY_COPY,
        "copies between devices",
    ),
    (ffi::MEMSET, Kind::MEMORY_SET, "fills"),
    (ffi::MEMORY, Kind::MEMORY_ALLOCATION, "allocations"),
    (ffi::MEMORY_POOL, Kind::MEMORY_ALLOCATION, "memory pools"),
    (ffi::SYNCHRONIZATION, Kind::SYNCHRONIZATION, "waits"),
    (ffi::CUDA_EVENT, Kind::SYNCHRONIZATION, "CUDA events"),
    (
        ffi::UNIFIED_MEMORY_COUNTER,
        Kind::UNIFIED_MEMORY_COUNTER,
        "managed memory",
    ),
    (
        ffi::ENVIRONMENT,
        Kind::ENVIRONMENT,
        "clocks and temperatures",
    ),
    (ffi::FUNCTION, Kind::KERNEL_SYMBOL, "functions of modules"),
    (ffi::OVERHEAD, Kind::OVERHEAD, "overhead"),
    (ffi::JIT, Kind::OVERHEAD, "compilations of kernels"),
    (
        ffi::EXTERNAL_CORRELATION,
        Kind::EXTERNAL_CORRELATION,
        "external ids of the program",
    ),
];

/// What is enabled in CUPTI.
#[derive(Default)]
struct CuptiEnabled {
    operations: std::collections::HashSet<Operation>,
    told: resources::WantedResources,
    activities: [bool; ACTIVITIES.len()],
    /// The statuses with which CUPTI refused activities. Some it records only once the driver is initialised.
    refused: [Option<ffi::CuptiStatus>; ACTIVITIES.len()],
    /// Whether a refusal has been reported.
    has_complained: bool,
}

static ENABLED: PerProcess<CuptiEnabled> = PerProcess::new();
/// Changes of what is wanted that are not enabled yet. The thread that finds 0 enables them all: CUPTI is not called with
/// [`ENABLED`] locked.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// Whether an agent of this process is counted: calls that launch are enabled then, whoever wants them.
pub(super) static IS_COUNTING: AtomicBool = AtomicBool::new(false);

/// The value of [`IS_COUNTING`].
#[inline(always)]
pub(super) fn is_counting() -> bool {
    IS_COUNTING.load(Ordering::Relaxed)
}

/// Enables in CUPTI what is wanted now, and disables the rest: a call that nobody wants costs nothing.
pub(super) fn enable() {
    let (Some(session), Some(board)) = (current_session(), process::board()) else {
        return;
    };
    // CUPTI may call the driver on this thread.
    let _inside = InsideCupti::begin();
    let any = Operation {
        domain: Domain::CUDA_DRIVER,
        number: 1,
    };
    if board.interest(any).is_late() {
        // The process ends: calls are only counted.
        return;
    }
    if CHANGES.fetch_add(1, Ordering::AcqRel) > 0 {
        return;
    }
    let mut enabled = std::mem::take(&mut *ENABLED.lock());
    loop {
        let seen = CHANGES.load(Ordering::Acquire);
        enable_all(session, board, &mut enabled);
        // Before others may take it.
        *ENABLED.lock() = std::mem::take(&mut enabled);
        let done = CHANGES.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Relaxed);
        if done.is_ok() {
            return;
        }
        enabled = std::mem::take(&mut *ENABLED.lock());
    }
}

fn enable_all(session: &CuptiSession, board: &Switchboard, enabled: &mut CuptiEnabled) {
    for domain in [Domain::CUDA_DRIVER, Domain::CUDA_RUNTIME] {
        for function in functions::all(domain) {
            let operation = function.info.operation;
            let is_needed = is_counting() && function.effect.is_launch();
            let wanted = is_needed || !board.interest(operation).is_none();
            if wanted != enabled.operations.contains(&operation) {
                session.enable_callback(wanted, callback_domain(domain), operation.number.into());
                if wanted {
                    enabled.operations.insert(operation)
                } else {
                    enabled.operations.remove(&operation)
                };
            }
        }
    }
    resources::enable(session, board, &mut enabled.told);
    for (place, (activity, kind, what)) in ACTIVITIES.into_iter().enumerate() {
        let wanted = match kind {
            // All functions of a module, however many: for those who ask to be told.
            Kind::KERNEL_SYMBOL => board
                .interest(resource::KERNEL_SYMBOL_REGISTERED)
                .has_subscribers(),
            kind => !board.buffers_for(kind).is_none(),
        };
        if wanted == enabled.activities[place] {
            continue;
        }
        let status = if wanted {
            enable_activity(&session.cupti, activity)
        } else {
            // SAFETY: a number alone.
            unsafe { call!(session.cupti, cuptiActivityDisable(activity)) }
        };
        let status = status.unwrap_or(ffi::NOT_IMPLEMENTED);
        enabled.refused[place] = (wanted && status != ffi::SUCCESS).then_some(status);
        if status == ffi::SUCCESS {
            enabled.activities[place] = wanted;
        }
        // Not all devices and versions have the others; a note says so at the end.
        let is_needed = activity == ffi::CONCURRENT_KERNEL || activity == ffi::MEMCPY;
        if is_needed
            && enabled.refused[place].is_some()
            && !std::mem::replace(&mut enabled.has_complained, true)
        {
            message(format_args!("{}", refusal(activity, what, status)));
        }
    }
}

fn enable_activity(cupti: &Cupti, activity: u32) -> Option<ffi::CuptiStatus> {
    match activity {
        ffi::UNIFIED_MEMORY_COUNTER => {
            configure_unified_memory(cupti)?;
        }
        ffi::CUDA_EVENT => {
            // Since 13.0. Without their times, events are no more than the calls that record them.
            // SAFETY: a flag alone.
            let status = unsafe { call!(cupti, cuptiActivityEnableCudaEventDeviceTimestamps(1)) }?;
            if status != ffi::SUCCESS {
                return Some(status);
            }
        }
        _ => {}
    }
    // SAFETY: a number alone. The records come in buffers of ours: the functions for them were registered in
    // `subscription`.
    unsafe { call!(cupti, cuptiActivityEnable(activity)) }
}

/// Says which counters of managed memory are wanted on all devices, and on those that differ. Migrations (1, 2, 8) always
/// are: they are copies.
fn configure_unified_memory(cupti: &Cupti) -> Option<ffi::CuptiStatus> {
    const ONE_DEVICE: u32 = 1;
    const ALL_DEVICES: u32 = 2;
    const MIGRATIONS: u32 = 1 << 1 | 1 << 2 | 1 << 8;
    let names = process::board().map(|board| board.names());
    let mut counters = unified_memory::with_enabled(|enabled| {
        let devices = enabled.of_agents.iter().filter_map(|(agent, mask)| {
            let agent: Agent = names?.get(agent.0)?;
            (agent.domain == Domain::CUDA_DRIVER).then_some((
                ONE_DEVICE,
                agent.handle as u32,
                *mask,
            ))
        });
        let all = std::iter::once((ALL_DEVICES, 0, enabled.all)).chain(devices);
        let of_mask = |(scope, device, mask): (u32, u32, u32)| {
            (1..=8).map(move |counter| ffi::UnifiedMemoryConfig {
                scope,
                counter,
                device,
                enable: u32::from((mask | MIGRATIONS) >> counter & 1 == 1),
            })
        };
        all.flat_map(of_mask).collect::<Vec<_>>()
    });
    let count = counters.len() as u32;
    // SAFETY: `counters` has `count` entries, which CUPTI reads in the call.
    unsafe {
        call!(
            cupti,
            cuptiActivityConfigureUnifiedMemoryCounter(counters.as_mut_ptr(), count)
        )
    }
}

/// The sentence about an activity that CUPTI does not record.
fn refusal(activity: u32, what: &str, status: ffi::CuptiStatus) -> String {
    format!(
        "CUPTI records no {what} (activity {activity}): {}",
        why(status)
    )
}

/// Notes the activities that are wanted, and that CUPTI refuses.
pub(super) fn note_refusals(names: &Names) {
    let refused = ENABLED.lock().refused;
    for ((activity, _, what), status) in ACTIVITIES.into_iter().zip(refused) {
        if let Some(status) = status {
            names.note(NoteKind::OTHER, &refusal(activity, what, status));
        }
    }
}
