//! What goes on inside a compute unit while a kernel runs: waves that fetch instructions, wait for operands and for memory,
//! compete for issue, meet at barriers, sleep. Why a wave does not issue in a cycle is a consequence of that.
//!
//! * `program` reads a kernel's disassembly, which is also what the model executes.
//! * `unit` is a compute unit, cycle by cycle.
//! * `window` keeps what a unit did in a stretch of its steady state: a long kernel repeats it, so that it need not be
//!   simulated cycle by cycle, and every cycle of the kernel still has one state that can be counted exactly.

mod program;
mod unit;
mod window;

#[cfg(test)]
mod tests;

pub(super) use program::Program;
pub(super) use unit::Did;
pub(super) use unit::SIMDS;
pub(super) use window::{Seen, Visit, Window};
