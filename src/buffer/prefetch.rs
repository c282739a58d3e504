//! Memory that is going to be written soon, brought into the processor's cache.

/// Asks for the lines in which an `R` at `place` lies, to write them. Nothing but time depends on it, wherever `place` leads.
#[inline(always)]
pub(super) fn for_writing<R>(place: *const R) {
    for offset in (0..size_of::<R>()).step_by(LINE) {
        line(place.cast::<u8>().wrapping_add(offset));
    }
}

const LINE: usize = 64;

#[inline(always)]
fn line(place: *const u8) {
    // SAFETY: a hint, which reads and writes nothing and never faults. Processors that do not know it take it for no
    // operation.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}
