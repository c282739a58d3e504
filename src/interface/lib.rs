//! What the library in a program and its tools share: the structures, handles and functions of the C API ([`c`],
//! [`functions`]), and the words of its services, which are the same in Rust.
//!
//! `gputrail-inject` implements the functions and `gputrail-tool` calls them; neither depends on the other. Nothing here
//! observes a program: a tool finds the functions in the library that is in its process.
//!
//! # Rules of callbacks
//!
//! * **Threads.** Calls, enqueues, allocations, waits and objects are reported on the thread that makes the call, while no
//!   lock of the library is held; a callback may run on several threads at once. Completions are reported on a thread that
//!   the runtime chooses, perhaps under the runtime's locks, in any order with the calls of other threads.
//! * **Allowed calls.** In callbacks of calls: everything, also calls of the runtime that synchronize. In callbacks of
//!   completions: what the runtime allows in its own callbacks (in OpenCL nothing that waits, builds, or creates queues and
//!   contexts). Resource callbacks may query the object: its end is reported before it comes; the runtime may then still
//!   refuse, or keep the object for as long as something uses it.
//! * **Not reported.** What a callback itself calls on its thread is neither reported nor recorded, and does not recurse. Work
//!   of the program that completes meanwhile on that thread is reported when the callback has returned. Completions of
//!   work that cannot be tracked (the runtime gave no event, or too much is in flight) are not reported; work that has not
//!   completed when the program ends is reported as unfinished.
//! * **Pairs.** A subscriber that saw an enter sees the exit, also if its context is stopped in between; one that
//!   subscribes in between sees neither. A call that is left by longjmp or an exception has no exit. A completion is
//!   reported to the subscribers that wanted it when the work was enqueued.
//! * **User data** is one word per subscriber: 0 at enter, kept until the exit, and copied from there to the completion of
//!   the work. A call and the enqueues within it have words of their own; the parts of a command buffer share one word and
//!   one completion, reported as that of its first kernel.
//! * **Harm.** A slow callback delays its own thread only. Changes that a callback makes to its data are visible to nobody
//!   else.
//! * **exit(3)** in a callback ends the program as it does elsewhere. The subscriber or buffer whose callback has called it is
//!   not called any more, on any thread; records that only this buffer could deliver are counted as dropped. Others are called
//!   until their tool has been finalised.
//! * **Subscribing**, unsubscribing and enabling are safe on any thread and in callbacks, with calls in flight. A flush or
//!   a destruction of a buffer in a callback is refused.
//!
//! A part of gputrail-tool, not meant for others: what is public here may change in any version.

pub mod attributes;
pub mod c;
pub mod counting;
mod function;
pub mod functions;
pub mod joined;
pub mod marker;
pub mod operations;
pub mod return_codes;
pub mod sampling;

pub use function::Function;
