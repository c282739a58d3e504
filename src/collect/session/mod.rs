//! The session between `gputrail record` (the parent) and the processes that it records.
//!
//! The parent's [`Server`] listens on a socket in a private directory, which [`SESSION_VARIABLE`] names to the program
//! and its children. The injected library [`attach`]es: it sends a [`Hello`] and gets a [`Config`], the memory of its
//! pool and the capture file, both as open files, so that a process needs no path of its own and works behind a chroot,
//! with other rights, or with a full table of mounts. The parent keeps the memory too. When the process ends, however
//! it ends, what its lanes had committed and its collector had not yet written goes into its capture.
//!
//! Bytes from the socket are taken as hostile. [`begin`] is all that a source calls: it
//! attaches, or records alone where the environment asks for that instead.

mod attach;
mod begin;
mod control;
mod environment;
mod filter;
mod flight;
mod handshake;
mod memory;
mod message;
mod pattern;
mod progress;
mod server;
mod signal;
mod switch;

pub use attach::{AttachError, Attached, attach};
pub use begin::{BeginError, begin};
pub use control::{Action, Controls, ProcessStatus, SessionStatus};
pub use environment::{
    BLOCK_VARIABLE, BUFFERS_VARIABLE, CAPTURE_VARIABLE, CaptureOptions, EnvironmentError,
    POLICY_VARIABLE, RequestedStart, SESSION_VARIABLE, Size, SizeError,
};
pub use flight::{Flight, FlightDump};
pub use handshake::peer_user;
pub use message::{Config, Hello, Reason, Refusal};
pub use pattern::{OutputPattern, PatternError, PatternValues, numbered};
pub use progress::{AttachProgress, note, progress};
pub use server::{
    Arrivals, ProcessCapture, ProcessEnd, Server, ServerError, ServerOptions, SessionResult,
};
pub use signal::signal_name;

/// Name of the socket in the session's directory.
const SOCKET: &str = "socket";

/// Decodes `bytes` as either side's message, for the fuzz target.
#[cfg(fuzzing)]
pub fn decode_messages(bytes: &[u8]) {
    let _ = Hello::decode(bytes);
    let _ = message::decode_answer(bytes);
}

#[cfg(test)]
mod tests;
