//! Processors of the host, which are agents where a runtime executes kernels on them: their environment, as the kernel
//! reports it in `/sys`.
//!
//! `readings` finds the files and reads them; `monitor` is the thread that does so at a period.

mod monitor;
mod readings;

pub use monitor::ProcessorMonitor;
pub use readings::ProcessorReadings;
