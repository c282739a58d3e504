//! The simulation of a compute unit that runs a kernel: waves fetch instructions, wait for operands and memory, compete
//! for issue, meet at barriers, and sleep. The reasons for stalls follow from that.
//!
//! * `program` parses a kernel's disassembly, which the model executes.
//! * `executed` counts the instructions of whole launches.
//! * `unit` simulates a compute unit cycle by cycle.
//! * `window` stores the cycles of a stretch of steady state. A long kernel repeats it, so that not all
//!   cycles need to be simulated, and every cycle still has one well-defined state.

mod executed;
mod program;
mod unit;
mod window;

#[cfg(test)]
mod tests;

pub(super) use executed::Executed;
pub(super) use program::{TEXEL_BYTES, WaveOperation, WaveProgram};
pub(super) use unit::Did;
pub(super) use unit::SIMDS;
pub(super) use window::{SampledWave, Visit, WaveWindow};
