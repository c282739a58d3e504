//! The recorded process: its threads, who wants what, and where records go.
//!
//! A source calls this crate at each API call. [`process`] finds the calling thread's state, [`switchboard`] says who
//! wants the call, [`correlation`] gives it ids, and a lane of [`buffer`](gputrail_buffer) takes its records. Tools
//! configure services through [`context`]; `gputrail record` reaches the process through [`session`].

pub mod agents;
pub mod attributes;
pub mod call_stacks;
pub mod context;
pub mod correlation;
pub mod counting;
pub mod delivering;
pub mod exit;
pub mod external;
#[cfg(target_os = "linux")]
pub mod loading;
pub mod marker;
pub mod notify;
pub mod operations;
pub mod outstanding;
pub mod process;
pub mod question;
mod rank;
pub mod recorder;
pub mod sampling;
pub mod scope;
#[cfg(target_os = "linux")]
pub mod session;
pub(crate) mod session_switch;
pub mod source;
pub mod switchboard;
pub mod times;
pub mod unified_memory;
