//! Flight recorders: what was recorded last, written out when something happens.

use super::Error;
use super::functions::{check, functions};
use crate::capi::{FlightHandle, FlightSettings, Sized_};
use core::ffi::CStr;
use std::time::Duration;

/// How a flight recorder works; see [`crate::context::FlightOptions`]. 0 asks for what is usual.
#[derive(Clone, Debug, Default)]
pub struct FlightOptions {
    /// Bytes that are kept, of all threads together.
    pub keep_bytes: u64,
    /// Time that is written out, counted back from the dump.
    pub keep_time: Option<Duration>,
    /// A call that takes at least as long triggers a dump.
    pub slow_call: Option<Duration>,
    /// This signal triggers a dump. It must be one that the program has no handler for.
    pub signal: Option<i32>,
    /// Triggered dumps, at most.
    pub most_dumps: u32,
}

/// Keeps what was recorded last, and writes it out when something happens: triggered dumps go to
/// `flight-PROCESS-NUMBER.gputrail` in the current folder. Dropping it ends it, and writes nothing.
#[derive(Debug)]
pub struct FlightRecorder(FlightHandle);

impl FlightRecorder {
    /// Begins to record everything.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` for a signal that cannot be had, and as for [`Buffer::new`].
    pub fn start(options: FlightOptions) -> Result<FlightRecorder, Error> {
        let nanos = |time: Option<Duration>| {
            let nanos = time.map_or(0, |time| time.as_nanos());
            nanos.try_into().unwrap_or(u64::MAX)
        };
        let settings = FlightSettings {
            size: size_of::<FlightSettings>(),
            keep_bytes: options.keep_bytes,
            keep_nanos: nanos(options.keep_time),
            slow_call_nanos: nanos(options.slow_call),
            signal: options.signal.unwrap_or(0),
            most_dumps: options.most_dumps,
            ..FlightSettings::blank()
        };
        let mut handle = FlightHandle::default();
        // SAFETY: a structure of this size, and a place for the id.
        check(unsafe { (functions()?.flight_start)(&settings, &mut handle) })?;
        Ok(FlightRecorder(handle))
    }

    /// Writes what is kept now to a new capture at `path`; returns how many records are in it.
    ///
    /// # Errors
    ///
    /// `NOT_WRITTEN`, among others where there is such a file already; `BUSY` within a callback.
    pub fn dump(&self, path: &CStr) -> Result<u64, Error> {
        let mut records = 0;
        // SAFETY: a text that ends with a 0, and a place for the number.
        check(unsafe { (functions()?.flight_dump)(self.0, path.as_ptr(), &mut records) })?;
        Ok(records)
    }

    /// How many dumps have been triggered so far.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_FLIGHT` after the tool's end.
    pub fn triggered(&self) -> Result<usize, Error> {
        let mut count = 0;
        // SAFETY: a place for the number.
        check(unsafe { (functions()?.flight_triggered)(self.0, &mut count) })?;
        Ok(count)
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        if let Ok(functions) = functions() {
            // It may be gone, with the tool's end.
            (functions.flight_stop)(self.0);
        }
    }
}

/// Has `gputrail record --flight-recorder`, which keeps only what happens last, write that out soon.
///
/// # Errors
///
/// `NOT_FOUND` if the process is not recorded, `NOT_AVAILABLE` if its recording keeps everything.
pub fn dump_recording() -> Result<(), Error> {
    check((functions()?.recording_dump)())
}
