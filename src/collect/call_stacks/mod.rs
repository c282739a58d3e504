//! Call stacks of the host in calls that enqueue work, for recordings that ask for them.
//!
//! `CallStacks::take` is called at the exit of such a call, after its time was taken. It follows the calling thread's stack
//! with the unwind information of loaded modules, or by frame pointers in code that has none, up to
//! [`MAX_FRAMES`](gputrail_record::MAX_FRAMES) frames, and stores the stack among the names. What it costs is bounded, and no
//! stack is taken for granted: memory is read within the bounds of the thread's stack, or through the system.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod loaded;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod outside;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod walker;

use gputrail_buffer::platform::system;
use gputrail_capture::names::Names;
use gputrail_record::CallStackId;

/// The bounds of a thread's stack: `low..high`. Empty if they are not known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackBounds {
    pub low: u64,
    pub high: u64,
}

impl StackBounds {
    /// The bounds of the calling thread's stack.
    pub fn of_thread() -> StackBounds {
        let (low, high) = system::stack_bounds().unwrap_or_default();
        StackBounds { low, high }
    }
}

/// Takes the call stacks of the threads of a process, one at a time.
#[derive(Default)]
pub(crate) struct CallStacks {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    walker: gputrail_buffer::platform::sync::QuietMutex<walker::Walker>,
}

impl CallStacks {
    /// The stack of the calling thread; none if there is no room for it, or if it cannot be followed now.
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    pub fn take(&self, bounds: &StackBounds, names: &Names) -> CallStackId {
        // SAFETY: errno of the calling thread.
        let errno = unsafe { *system::errno() };
        let id = self.walker.lock().take(bounds, names);
        // SAFETY: as above. The program may look at what its call has left there.
        unsafe { *system::errno() = errno };
        id
    }

    /// Stacks are not followed on this system.
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    pub fn take(&self, _: &StackBounds, _: &Names) -> CallStackId {
        CallStackId::NONE
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests;
