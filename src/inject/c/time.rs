//! Clocks: the time now, and times of records in nanoseconds.

use super::library::board;
use super::status::FailedCall;
use super::{Answer, done, place};
use crate::nanos;
use gputrail_buffer::clock;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_collect::times::TimeConverter;
use gputrail_interface::c::Status;
use gputrail_record::{AgentId, DeviceTime, Nanos, Record, Ticks};

/// The times of the process.
static TIMES: PerProcess<Option<TimeConverter>> = PerProcess::new();

/// Does `work` with the times of this process.
pub(super) fn with_times<R>(work: impl FnOnce(&mut TimeConverter) -> R) -> Answer<R> {
    let board = board()?;
    let mut times = TIMES.lock();
    let times = match &mut *times {
        Some(times) => times,
        none => {
            let new = TimeConverter::new(board.names().clone());
            none.insert(
                new.map_err(|error| FailedCall::new(Status::CLOCK_UNKNOWN, error.to_string()))?,
            )
        }
    };
    Ok(work(times))
}

/// `record` with its times in nanoseconds.
pub(super) fn in_nanos<R: Record>(record: &R) -> R {
    let mut record = *record;
    let words = bytemuck::cast_slice_mut(std::slice::from_mut(&mut record));
    // It fails in a process that ends, whose times are of no use any more.
    let _ = with_times(|times| nanos::convert(words, times));
    record
}

/// The time now in the clock of host times in records, in ticks. Never fails, and may be called from anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_now() -> Ticks {
    clock::now()
}

/// How many ticks a second has. The first call may take a fifth of a millisecond.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_ticks_per_second() -> u64 {
    let mut frequency = 0;
    done(|| {
        frequency = clock::frequency();
        Ok(())
    });
    frequency
}

/// Host time in nanoseconds of CLOCK_BOOTTIME; 0, which is not known, stays 0. The clocks are read again about once a
/// second: the same time may be told a little differently later.
///
/// Errors: `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `nanos` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_ticks_to_nanos(ticks: Ticks, nanos: *mut Nanos) -> Status {
    done(|| {
        // SAFETY: `nanos` is null or a place for a number (the caller's promise).
        let nanos = unsafe { place(nanos, "nanos") }?;
        nanos.write(with_times(|times| times.host(ticks))?);
        Ok(())
    })
}

/// Time of an agent's clock in nanoseconds of CLOCK_BOOTTIME; 0, which is not known, stays 0.
///
/// Errors: `GPUTRAIL_CLOCK_UNKNOWN` before the agent's clock has been read: it is, when its first work completes;
/// `GPUTRAIL_NOT_INITIALISED`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `nanos` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_device_time_to_nanos(
    agent: AgentId,
    time: DeviceTime,
    nanos: *mut Nanos,
) -> Status {
    done(|| {
        // SAFETY: `nanos` is null or a place for a number (the caller's promise).
        let nanos = unsafe { place(nanos, "nanos") }?;
        if !time.is_some() {
            nanos.write(Nanos::NONE);
            return with_times(|_| ());
        }
        let told = with_times(|times| times.device(agent, time))?;
        nanos.write(told.ok_or(Status::CLOCK_UNKNOWN)?);
        Ok(())
    })
}

/// How far the times that `gputrail_device_time_to_nanos` tells of an agent may be off, or with 0 for the agent those
/// of the host, in nanoseconds.
///
/// Errors: as for `gputrail_device_time_to_nanos`.
///
/// # Safety
///
/// `nanos` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_clock_error(agent: AgentId, nanos: *mut Nanos) -> Status {
    done(|| {
        // SAFETY: `nanos` is null or a place for a number (the caller's promise).
        let nanos = unsafe { place(nanos, "nanos") }?;
        let error = with_times(|times| match agent {
            AgentId::NONE => Some(times.host_error()),
            agent => times.device_error(agent),
        })?;
        nanos.write(error.ok_or(Status::CLOCK_UNKNOWN)?);
        Ok(())
    })
}
