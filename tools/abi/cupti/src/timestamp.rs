//! A clock of the program's for records (`cuptiActivityRegisterTimestampCallback`): it may have any origin and speed.
//!
//! The clock is read together with gputrail's whenever a time is told that is later than the latest reading, and times between two
//! readings are interpolated.

use crate::load::callee;
use crate::result::{Answer, CUptiResult};
use crate::with_gputrail;
use gputrail_tool::{now, to_nanos};
use std::sync::{PoisonError, RwLock};

/// `CUpti_TimestampCallbackFunc`
pub type Function = unsafe extern "C-unwind" fn() -> u64;

/// A reading that is less than this behind the one before the last replaces the last one, in nanoseconds.
const APART: u64 = 1_000_000;
/// The readings that are kept.
const READINGS: usize = 4096;

/// Both clocks at one time.
#[derive(Copy, Clone, Debug)]
struct Reading {
    own: u64,
    theirs: u64,
}

/// The program's clock.
struct Clock {
    function: Function,
    readings: Vec<Reading>,
}

static CLOCK: RwLock<Option<Clock>> = RwLock::new(None);

/// Has records and `cuptiGetTimestamp` use a clock of the program's from now on.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterTimestampCallback(
    function: Option<Function>,
) -> CUptiResult {
    with_gputrail(|| {
        function.ok_or(CUptiResult::INVALID_PARAMETER)?;
        register(function)
    })
}

/// Has records use the program's clock from now on, or, without one, CUPTI's.
pub fn register(function: Option<Function>) -> Answer {
    let Some(function) = function else {
        finish();
        return Ok(());
    };
    let first = read(function)?;
    let mut clock = CLOCK.write().unwrap_or_else(PoisonError::into_inner);
    *clock = Some(Clock {
        function,
        readings: vec![first],
    });
    Ok(())
}

/// The address of the program's clock; 0 for none.
pub fn registered() -> usize {
    let clock = CLOCK.read().unwrap_or_else(PoisonError::into_inner);
    clock
        .as_ref()
        .map_or(0, |clock| (clock.function as *const ()).expose_provenance())
}

/// Forgets the program's clock.
pub fn finish() {
    *CLOCK.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// A time of gputrail's in the program's clock, if there is one.
pub fn told(nanos: u64) -> Option<u64> {
    let function = {
        let clock = CLOCK.read().unwrap_or_else(PoisonError::into_inner);
        let clock = clock.as_ref()?;
        if clock.readings.last().is_some_and(|last| last.own >= nanos) {
            return Some(interpolated(&clock.readings, nanos));
        }
        clock.function
    };
    let reading = read(function).ok();
    let mut clock = CLOCK.write().unwrap_or_else(PoisonError::into_inner);
    let clock = clock.as_mut()?;
    // Another clock may have been registered meanwhile.
    if let Some(reading) = reading
        && core::ptr::fn_addr_eq(clock.function, function)
    {
        add(&mut clock.readings, reading);
    }
    Some(interpolated(&clock.readings, nanos))
}

/// Reads both clocks.
fn read(function: Function) -> Answer<Reading> {
    let mut theirs = 0;
    let before = to_nanos(now())?.0;
    // SAFETY: the program's function for this.
    let call = || theirs = unsafe { function() };
    callee(
        "cuptiActivityRegisterTimestampCallback",
        function as *const (),
    )
    .call(call);
    let after = to_nanos(now())?.0;
    Ok(Reading {
        own: before + (after - before) / 2,
        theirs,
    })
}

/// Adds a reading, the latest one.
fn add(readings: &mut Vec<Reading>, new: Reading) {
    if readings.last().is_some_and(|last| last.own >= new.own) {
        return;
    }
    if let [.., before, _] = readings[..]
        && new.own - before.own < APART
    {
        readings.pop();
    }
    if readings.len() >= READINGS {
        let mut is_kept = false;
        readings.retain(|_| {
            is_kept = !is_kept;
            is_kept
        });
    }
    readings.push(new);
}

/// The program's time at `nanos`, between the readings around it or as they go on.
fn interpolated(readings: &[Reading], nanos: u64) -> u64 {
    let behind = readings.partition_point(|reading| reading.own <= nanos);
    let place = behind.clamp(1, readings.len().saturating_sub(1).max(1));
    let (first, second) = match (readings.get(place - 1), readings.get(place)) {
        (Some(first), Some(second)) => (first, second),
        // A single reading: both clocks count nanoseconds, as far as is known.
        (Some(only), None) => return only.theirs.wrapping_add(nanos.wrapping_sub(only.own)),
        (None, _) => return nanos,
    };
    let span = i128::from(second.own) - i128::from(first.own);
    let theirs = i128::from(second.theirs) - i128::from(first.theirs);
    let since = i128::from(nanos) - i128::from(first.own);
    (i128::from(first.theirs) + since * theirs / span.max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(own: u64, theirs: u64) -> Reading {
        Reading { own, theirs }
    }

    #[test]
    fn times_between_readings_are_interpolated_and_go_on_beyond_them() {
        assert_eq!(interpolated(&[reading(100, 7)], 150), 57);
        let readings = [reading(100, 1000), reading(200, 1300), reading(300, 1400)];
        let told = [50, 100, 150, 200, 250, 400].map(|time| interpolated(&readings, time));
        assert_eq!(told, [850, 1000, 1150, 1300, 1350, 1500]);
    }

    #[test]
    fn readings_that_are_near_each_other_are_not_kept() {
        let mut readings = vec![reading(0, 0)];
        for own in [10, 20, 10 + APART, 15 + APART, 15 + APART] {
            add(&mut readings, reading(own, own));
        }
        let kept: Vec<u64> = readings.iter().map(|reading| reading.own).collect();
        assert_eq!(kept, [0, 20, 15 + APART]);
        for number in 2..2 * READINGS as u64 {
            add(&mut readings, reading(number * APART * 2, number));
        }
        assert!(readings.len() <= READINGS && readings[0].own == 0);
    }
}
