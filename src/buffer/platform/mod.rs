//! Services of the operating system behind safe interfaces.
//!
//! [`sync`] has the atomics and locks used for hand-overs, replaced by loom's under `--cfg loom`. [`system`] has system
//! calls, with fallbacks for systems other than Linux. [`internal_thread`] starts our own threads inside a recorded
//! process, and [`inside`] keeps our code from disturbing the program's. [`environment`] reads the variables that
//! instruct us. `function_names` asks the program's loader and its C++ runtime for names; `sysfs` reads the kernel's
//! description of the machine, and `pci` its devices on the PCI bus.

pub mod environment;
pub mod function_names;
#[cfg(not(loom))]
pub mod inside;
#[cfg(not(loom))]
pub mod internal_thread;
#[cfg(all(target_os = "linux", not(loom)))]
pub mod pci;
pub mod sync;
#[cfg(all(target_os = "linux", not(loom)))]
pub mod sysfs;
#[cfg(not(loom))]
pub mod system;
