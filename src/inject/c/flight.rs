//! Flight recorders: keep what was recorded last, and write it out when something happens.

use super::context::selected;
use super::objects::destroy;
use super::sized;
use super::status::FailedCall;
use super::text::{self, given};
use super::{caller, done, library, place};
use core::ffi::c_char;
use gputrail_collect::context::{FlightOptions, FlightRecorder};
use gputrail_interface::c::{FlightHandle, FlightSettings, Status};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Starts a flight recorder, which keeps what happens last. A null `options` asks for the usual value.
///
/// Errors: as for `gputrail_buffer_create` and `gputrail_context_trace_to`; `GPUTRAIL_INVALID_ARGUMENT` for a signal
/// that cannot be had.
///
/// # Safety
///
/// `options` is null or leads to options whose text is null or ends with a 0, and whose selection is null or one that
/// `gputrail_context_trace_to` takes; `flight` is null or a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_flight_start(
    options: *const FlightSettings,
    flight: *mut FlightHandle,
) -> Status {
    done(|| {
        // SAFETY: `flight` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(flight, "flight") }?;
        drop(library::state()?);
        let mut made = FlightOptions::default();
        if !options.is_null() {
            // SAFETY: `options` is not null, so it leads to options of as many bytes as their size says (the caller's
            // promise).
            let asked = unsafe { sized::read(options) }?;
            let time = |nanos| (nanos != 0).then(|| Duration::from_nanos(nanos));
            for (asked, made) in [
                (asked.keep_bytes, &mut made.keep_bytes),
                (asked.block_bytes, &mut made.block_bytes),
            ] {
                if asked != 0 {
                    let too_many = |_| FailedCall::new(Status::LAYOUT, format!("{asked} bytes"));
                    *made = usize::try_from(asked).map_err(too_many)?;
                }
            }
            if asked.threads != 0 {
                made.threads = asked.threads;
            }
            // SAFETY: the selection in the options is null or one that `gputrail_context_trace_to` takes (the caller's
            // promise).
            made.selection = unsafe { selected(asked.selection) }?;
            (made.keep_time, made.slow_call) =
                (time(asked.keep_nanos), time(asked.slow_call_nanos));
            made.signal = (asked.signal != 0).then_some(asked.signal);
            if asked.max_dumps != 0 {
                made.max_dumps = asked.max_dumps;
            }
            if !asked.folder.is_null() {
                // SAFETY: the text in the options is not null, so it ends with a 0 (the caller's promise); the path is a
                // copy.
                made.folder = PathBuf::from(unsafe { given(asked.folder, "folder") }?);
            }
        }
        let recorder = Arc::new(FlightRecorder::start(made)?);
        let mut state = library::state()?;
        let id = state.flights.new_handle();
        state.flights.insert(id, recorder);
        place.write(FlightHandle { handle: id });
        Ok(())
    })
}

/// Writes what is kept now to a new capture at `path`, for `gputrail convert`, while the program goes on. `records`,
/// which may be null, gets how many there are in it.
///
/// Errors: `GPUTRAIL_NOT_WRITTEN` with the system's reason, among others where there is such a file already;
/// `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_FLIGHT`, `GPUTRAIL_NULL_POINTER`,
/// `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `path` is null or ends with a 0, `records` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_flight_dump(
    flight: FlightHandle,
    path: *const c_char,
    records: *mut u64,
) -> Status {
    done(|| {
        caller::refuse_inside()?;
        // SAFETY: `path` is null or a text that ends with a 0 (the caller's promise).
        let path = unsafe { given(path, "path") }?;
        let recorder = library::state()?.flights.get(flight.handle)?;
        let failed = |error| FailedCall::new(Status::NOT_WRITTEN, format!("{path}: {error}"));
        let dump = recorder.dump(Path::new(path)).map_err(failed)?;
        if !records.is_null() {
            // SAFETY: `records` is not null, and a place for a number (the caller's promise).
            unsafe { place(records, "records") }?.write(dump.records);
        }
        Ok(())
    })
}

/// How many dumps signals and slow calls have triggered so far.
///
/// Errors: `GPUTRAIL_NO_SUCH_FLIGHT`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `count` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_flight_triggered(
    flight: FlightHandle,
    count: *mut usize,
) -> Status {
    done(|| {
        // SAFETY: `count` is null or a place for a number (the caller's promise).
        let count = unsafe { place(count, "count") }?;
        count.write(
            library::state()?
                .flights
                .get(flight.handle)?
                .triggered()
                .len(),
        );
        Ok(())
    })
}

/// The path of a dump that was triggered, by its place from 0. As `gputrail_string`.
///
/// Errors: also `GPUTRAIL_NO_SUCH_FLIGHT`.
///
/// # Safety
///
/// As for `gputrail_string`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_flight_path(
    flight: FlightHandle,
    place: usize,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    done(|| {
        let dumps = library::state()?.flights.get(flight.handle)?.triggered();
        let missing = || {
            let text = format!("dump {place} of {}", dumps.len());
            FailedCall::new(Status::NOT_FOUND, text)
        };
        let dump = dumps.get(place).ok_or_else(missing)?;
        // SAFETY: `to` is null or leads to `capacity` bytes, `length` is null or a place for a number (the caller's
        // promises).
        unsafe { text::copy(&dump.path.to_string_lossy(), to, capacity, length) }
    })
}

/// Ends a flight recorder, and writes nothing.
///
/// Errors: `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_FLIGHT`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_flight_stop(flight: FlightHandle) -> Status {
    done(|| {
        caller::refuse_inside()?;
        let gone = library::state()?.flights.remove(flight.handle)?;
        destroy(gone);
        Ok(())
    })
}
