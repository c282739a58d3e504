//! The recording that `gputrail record`, or GPUTRAIL_CAPTURE, makes of the process.

use super::Error;
use super::functions::act;

/// Goes on with it.
///
/// # Errors
///
/// `NOT_FOUND` if the process is not recorded, `STARTED` if it is not paused.
pub fn start() -> Result<(), Error> {
    act!(gputrail_recording_start())
}

/// Pauses it: what begins from now on is not in the trace. Calls and work in progress still are.
///
/// # Errors
///
/// `NOT_FOUND` if the process is not recorded, `STOPPED` if it is paused.
pub fn stop() -> Result<(), Error> {
    act!(gputrail_recording_stop())
}

/// Has everything that is recorded so far written to the capture, at once or, where another process writes it, soon.
///
/// # Errors
///
/// `NOT_FOUND` if the process is not recorded.
pub fn flush() -> Result<(), Error> {
    act!(gputrail_recording_flush())
}

/// Has `gputrail record --flight-recorder`, which keeps only what happens last, write that out soon.
///
/// # Errors
///
/// `NOT_FOUND` if the process is not recorded, `NOT_AVAILABLE` if its recording keeps everything.
pub fn dump() -> Result<(), Error> {
    act!(gputrail_recording_dump())
}
