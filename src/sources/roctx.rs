//! ROCTx, AMD's markers: `libroctx64.so` of roctracer and `librocprofiler-sdk-roctx.so`.
//!
//! A recorded program finds the injected library under both names. The functions of this module are those of the
//! library's interface, without its names. Levels of pushed ranges are counted in every process, recorded or not. Calls are not passed
//! on to another library of that name: programs are linked with versions of symbols that ours does not have.

use super::markers;
use core::ffi::{c_char, c_int};
use gputrail_buffer::platform::inside::{Uncancelled, contain};
use gputrail_buffer::platform::system;
use gputrail_collect::marker::nesting::PushedRanges;
use gputrail_collect::marker::{
    self, CText, MarkerDomain, MarkerEvent, MarkerText, name_thread, start_event,
};
use gputrail_collect::process;
use gputrail_interface::marker::RangeId;
use gputrail_record::MarkerKind;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The version of roctracer's ROCTx whose functions these are.
pub const VERSION: (u32, u32) = (4, 1);

static DOMAIN: MarkerDomain = MarkerDomain::built_in("ROCTx", 1);

thread_local! {
    /// The ranges pushed on this thread.
    static PUSHED: PushedRanges = const { PushedRanges::new() };
}

/// Attaches the source of markers at the first call in a process.
#[inline]
fn attached() {
    static ONCE: AtomicU32 = AtomicU32::new(0);
    if ONCE.load(Ordering::Relaxed) == 0 {
        let _uncancelled = Uncancelled::begin();
        markers::attach();
        ONCE.store(1, Ordering::Relaxed);
    }
}

/// Runs `work`, and returns `default` if it panics.
#[inline]
fn answer<R>(default: R, work: impl FnOnce() -> R) -> R {
    let mut result = default;
    contain(|| {
        attached();
        result = work();
    });
    result
}

/// # Safety
///
/// `message` is null, or a text that ends with a zero, and lives and stays as it is for `'a`.
unsafe fn named<'a>(message: *const c_char) -> MarkerEvent<'a> {
    let text = NonNull::new(message.cast_mut());
    let name = text.map_or(MarkerText::None, |text| {
        // SAFETY: a `message` that is not null ends with a zero, and lives and stays as it is for `'a` (`# Safety`).
        MarkerText::C(unsafe { CText::new(text) })
    });
    MarkerEvent {
        name,
        ..MarkerEvent::default()
    }
}

/// Marks a moment.
///
/// # Safety
///
/// `message` is null or a text that ends with a zero, which stays as it is during the call.
pub unsafe fn mark(message: *const c_char) {
    // SAFETY: `message` is null or ends with a zero; the program keeps it during the call, and the event does not outlast
    // that.
    answer((), || DOMAIN.mark(&unsafe { named(message) }));
}

/// Begins a range of the calling thread. Returns its level, from 0.
///
/// # Safety
///
/// As for [`mark`].
pub unsafe fn push(message: *const c_char) -> c_int {
    answer(-1, || {
        let pushed = PUSHED.with(PushedRanges::push);
        // SAFETY: `message` is null or ends with a zero, and lasts longer than the event, which ends with this call.
        let event = unsafe { named(message) };
        DOMAIN.report(MarkerKind::PUSH, pushed.id(), &event);
        c_int::try_from(pushed.level).unwrap_or(c_int::MAX)
    })
}

/// Ends the innermost range of the calling thread. Returns its level, or -1 if there is none.
pub fn pop() -> c_int {
    answer(-1, || {
        let Some(popped) = PUSHED.with(PushedRanges::pop) else {
            DOMAIN.unbalanced_pop();
            return -1;
        };
        DOMAIN.report(MarkerKind::POP, popped.id(), &MarkerEvent::default());
        c_int::try_from(popped.level).unwrap_or(c_int::MAX)
    })
}

/// Starts a range that may end on any thread. Returns its id.
///
/// # Safety
///
/// As for [`mark`].
pub unsafe fn start(message: *const c_char) -> u64 {
    answer(0, || {
        let domain = MarkerText::Kept(DOMAIN.name());
        // SAFETY: `message` is null or ends with a zero, and lasts longer than the event, which ends with this call.
        let event = unsafe { named(message) };
        start_event(&MarkerEvent { domain, ..event }).number()
    })
}

/// Ends a started range.
pub fn stop(range: u64) {
    answer((), || {
        // An id that was never given out is counted where the record is read.
        let _ = marker::end(RangeId::from_number(range));
    });
}

/// Pauses the recording of this process. `thread` must be 0: single threads are not paused. Returns 0 if the recording is
/// paused then.
pub fn pause(thread: u64) -> c_int {
    switch(thread, |recorder| recorder.pause())
}

/// Lets the recording of this process go on after [`pause`].
pub fn resume(thread: u64) -> c_int {
    switch(thread, |recorder| recorder.resume())
}

fn switch(
    thread: u64,
    change: impl FnOnce(&gputrail_collect::recorder::Recorder) -> bool,
) -> c_int {
    answer(-1, || {
        if thread != 0 {
            return -1;
        }
        let _uncancelled = Uncancelled::begin();
        if let Some(recorder) = process::recorder() {
            // A recording that is paused already stays paused.
            change(recorder);
        }
        0
    })
}

/// Names the calling thread.
///
/// # Safety
///
/// As for [`mark`], of `name`.
pub unsafe fn name_os_thread(name: *const c_char) -> c_int {
    answer(-1, || {
        // SAFETY: `name` is null or ends with a zero, and is read before this call returns.
        name_thread(&unsafe { named(name) }.name.read());
        0
    })
}

/// Names an object of HIP or HSA.
///
/// # Safety
///
/// As for [`mark`], of `name`.
pub unsafe fn name_object(name: *const c_char, kind: &'static str, handle: u64) -> c_int {
    answer(-1, || {
        let event = MarkerEvent {
            category: MarkerText::Plain(kind),
            // SAFETY: `name` is null or ends with a zero, and lasts longer than the event, which ends with this call.
            ..unsafe { named(name) }
        };
        DOMAIN.report(MarkerKind::RESOURCE, handle, &event);
        0
    })
}

/// The id of the calling thread.
pub fn thread_id() -> u64 {
    u64::from(system::thread_id())
}
