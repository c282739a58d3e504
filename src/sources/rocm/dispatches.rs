//! The kernels that are sampled or counted, by the SDK's numbers of their dispatches: samples and values name that number, and come
//! before the record of the dispatch does.
//!
//! A dispatch is noted when the SDK calls back about it, on the thread that enqueues it. It gets the id of its work then, which the
//! record of the dispatch takes over ([`work_of`]): the first kernel of a call has the one that the call announces. The table is a
//! ring: a dispatch takes the place of the one whose number is [`DISPATCHES`] smaller.

use super::recent::RECENT;
use gputrail_buffer::platform::sync::OnceBox;
use gputrail_collect::correlation::HostThread;
use gputrail_record::{CorrelationId, ExternalId, WorkId};
use gputrail_rocprofiler::{DispatchId, KernelId};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Dispatches in the table.
const DISPATCHES: usize = 1 << 16;

/// A dispatch as its samples and values need it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DispatchedKernel {
    /// The SDK's number of the kernel.
    pub kernel: KernelId,
    /// The call that enqueues it, or none.
    pub correlation: CorrelationId,
    /// The external id of its samples.
    pub external: ExternalId,
    /// The id of the work.
    pub work: WorkId,
}

/// A place of the table. `key` is the dispatch, or 0 while the place is written: a reader that finds it before and after the fields
/// has read those of one dispatch (a sequence lock).
#[derive(Default)]
struct DispatchSlot {
    key: AtomicU64,
    kernel: AtomicU64,
    correlation: AtomicU64,
    external: AtomicU64,
    work: AtomicU64,
}

/// The dispatches of a process.
struct DispatchedKernels(OnceBox<Box<[DispatchSlot]>>);

static KERNELS: DispatchedKernels = DispatchedKernels::new();

/// Dispatches are noted from now on. The table takes 2.5 MiB.
pub(super) fn open() {
    KERNELS.open();
}

/// Notes a dispatch that is being enqueued by the call in progress of `host`, unless it was noted before.
pub(super) fn note(
    host: &mut HostThread,
    dispatch: DispatchId,
    kernel: KernelId,
) -> DispatchedKernel {
    if let Some(known) = KERNELS.get(dispatch) {
        return known;
    }
    let (correlation, _) = host.innermost();
    let announced = RECENT.get(correlation).map(|call| call.work);
    let announced = announced.filter(|work| RECENT.take_work(correlation, *work));
    let noted = DispatchedKernel {
        kernel,
        correlation,
        external: host.external_of_samples(),
        work: announced.unwrap_or_else(|| host.new_work()),
    };
    KERNELS.put(dispatch, &noted);
    noted
}

/// A dispatch that was noted lately.
pub(super) fn noted(dispatch: DispatchId) -> Option<DispatchedKernel> {
    KERNELS.get(dispatch)
}

/// The id that the work of a dispatch has got already, if it was noted lately: the record of the dispatch has the same.
#[inline]
pub(super) fn work_of(dispatch: DispatchId) -> Option<WorkId> {
    KERNELS.get(dispatch).map(|noted| noted.work)
}

impl DispatchedKernels {
    const fn new() -> DispatchedKernels {
        DispatchedKernels(OnceBox::new())
    }

    fn open(&self) {
        let slots = (0..DISPATCHES).map(|_| DispatchSlot::default());
        self.0.get_or_init(|| slots.collect());
    }

    #[inline]
    fn slot(&self, dispatch: DispatchId) -> Option<&DispatchSlot> {
        let slots = self.0.get().filter(|_| dispatch != 0)?;
        slots.get(dispatch as usize % DISPATCHES)
    }

    fn put(&self, dispatch: DispatchId, kernel: &DispatchedKernel) {
        let Some(slot) = self.slot(dispatch) else {
            return;
        };
        slot.key.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        slot.kernel.store(kernel.kernel, Ordering::Relaxed);
        slot.correlation
            .store(kernel.correlation.0, Ordering::Relaxed);
        slot.external.store(kernel.external.0, Ordering::Relaxed);
        slot.work.store(kernel.work.0, Ordering::Relaxed);
        slot.key.store(dispatch, Ordering::Release);
    }

    #[inline]
    fn get(&self, dispatch: DispatchId) -> Option<DispatchedKernel> {
        let slot = self.slot(dispatch)?;
        if slot.key.load(Ordering::Acquire) != dispatch {
            return None;
        }
        let kernel = DispatchedKernel {
            kernel: slot.kernel.load(Ordering::Relaxed),
            correlation: CorrelationId(slot.correlation.load(Ordering::Relaxed)),
            external: ExternalId(slot.external.load(Ordering::Relaxed)),
            work: WorkId(slot.work.load(Ordering::Relaxed)),
        };
        fence(Ordering::Acquire);
        (slot.key.load(Ordering::Relaxed) == dispatch).then_some(kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dispatch_is_found_until_another_takes_its_place() {
        let kernels = DispatchedKernels::new();
        let one = DispatchedKernel {
            kernel: 10,
            correlation: CorrelationId(11),
            external: ExternalId(12),
            work: WorkId(13),
        };
        kernels.put(1, &one);
        assert_eq!(kernels.get(1), None);
        kernels.open();
        assert_eq!(kernels.get(0), None);
        kernels.put(1, &one);
        assert_eq!(kernels.get(1), Some(one));
        let next = 1 + DISPATCHES as u64;
        kernels.put(next, &DispatchedKernel::default());
        assert_eq!(kernels.get(1), None);
        assert_eq!(kernels.get(next), Some(DispatchedKernel::default()));
        assert_eq!(kernels.get(DISPATCHES as u64), None);
    }
}
