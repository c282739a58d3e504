//! The observed process: its sources, its switchboard and recording, and the state of its threads.
//!
//! A [source](crate::source) [`attach`]es when its runtime is first used. The first one begins the recording that the
//! environment asks for; sources observe from the moment on at which there is a recording or a tool ([`begin_for_tool`]).
//! Until then a call passes through, at the cost of one look at the table.
//!
//! The table of who wants what lies in memory that the kernel wipes in forked children. A child's first call finds the
//! table wiped, and the child begins anew, with a switchboard, a pool, names and capture of its own and the sources of
//! its parent. It never touches again what it inherited.
//!
//! `table` is that table, `observed` the process, `thread` the state of each of its threads. `beginning` begins a process and
//! attaches sources to it, and `calls` is where the calls of the program come.

mod beginning;
mod calls;
mod observed;
mod table;
mod thread;

pub use beginning::{
    AttachOutcome, BeginRecording, attach, attach_before_tools, attach_with, begin, begin_for_tool,
    load_tools,
};
pub use calls::{flush_due, interest, late_calls, pass_gate};
pub use observed::{add_kernel, board, end, give_thread_name, is_observed, names, recorder};
pub(crate) use observed::{gate, observing};
pub(crate) use table::buffers_for;
pub use table::generation;
pub use thread::{Borrowed, Current, current, interrupted};
pub(crate) use thread::{is_in_callback, leave_callbacks, overhead};
