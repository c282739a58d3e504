//! Flight recorders: what was recorded last, written out when something happens.

use super::Error;
use super::context::selection;
use super::functions::{act, ask, call, check, text};
use core::ffi::CStr;
pub use gputrail_interface::c::{FlightHandle, FlightSettings, SizedStruct};
use gputrail_record::Kind;
use std::ffi::CString;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

/// How a flight recorder works. 0 asks for the usual value.
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
    pub max_dumps: u32,
    /// The folder for triggered dumps; otherwise the current one.
    pub folder: Option<CString>,
    /// Only records of these kinds, if any are named.
    pub kinds: Vec<Kind>,
    /// Bytes of a block, the smallest piece that is overwritten.
    pub block_bytes: u64,
    /// Threads that may record at a time.
    pub threads: u32,
}

/// Keeps what was recorded last, and writes it out when something happens: triggered dumps go to
/// `flight-PROCESS-NUMBER.gputrail`. Dropping it ends it, and writes nothing.
#[derive(Debug)]
pub struct FlightRecorder(FlightHandle);

impl FlightRecorder {
    /// Begins to record.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` for a signal that cannot be had, `NOT_ALONE` for kinds that need others, and as for
    /// [`Buffer::new`](super::Buffer::new).
    pub fn start(options: FlightOptions) -> Result<FlightRecorder, Error> {
        let nanos = |time: Option<Duration>| {
            let nanos = time.map_or(0, |time| time.as_nanos());
            nanos.try_into().unwrap_or(u64::MAX)
        };
        let selection = selection(&options.kinds, &[]);
        let settings = FlightSettings {
            size: size_of::<FlightSettings>(),
            keep_bytes: options.keep_bytes,
            keep_nanos: nanos(options.keep_time),
            slow_call_nanos: nanos(options.slow_call),
            signal: options.signal.unwrap_or(0),
            max_dumps: options.max_dumps,
            folder: options
                .folder
                .as_ref()
                .map_or(ptr::null(), |path| path.as_ptr()),
            selection: if options.kinds.is_empty() {
                ptr::null()
            } else {
                &selection
            },
            block_bytes: options.block_bytes,
            threads: options.threads,
            ..FlightSettings::blank()
        };
        let mut handle = FlightHandle::default();
        // SAFETY: a structure of this size, whose text and selection are there, and a place for the handle.
        check(unsafe { call!(gputrail_flight_start(&settings, &mut handle)) })?;
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
        check(unsafe { call!(gputrail_flight_dump(self.0, path.as_ptr(), &mut records)) })?;
        Ok(records)
    }

    /// How many dumps have been triggered so far.
    ///
    /// # Errors
    ///
    /// `NO_SUCH_FLIGHT` after the tool's end.
    pub fn triggered(&self) -> Result<usize, Error> {
        ask!(gputrail_flight_triggered(self.0))
    }

    /// The path of a dump that was triggered, by its place from 0.
    pub fn path(&self, place: usize) -> Option<PathBuf> {
        text!(gputrail_flight_path(self.0, place)).map(PathBuf::from)
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        // It may be gone, with the tool's end.
        let _ = act!(gputrail_flight_stop(self.0));
    }
}
