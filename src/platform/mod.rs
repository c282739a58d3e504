//! What the operating system provides, behind safe interfaces.
//!
//! [`sync`] has the atomics and locks that hand-overs are made of, and loom's in their place under `--cfg loom`.
//! [`system`] has system calls with a fallback for systems other than Linux. [`internal_thread`] starts our own threads
//! inside a recorded process, and [`inside`] keeps us out of the way of the program's.

#[cfg(not(loom))]
pub(crate) mod inside;
#[cfg(not(loom))]
pub(crate) mod internal_thread;
pub(crate) mod sync;
#[cfg(not(loom))]
pub(crate) mod system;
