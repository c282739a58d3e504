//! Memory that CUPTI fills with addresses and their samples.

use super::ffi::{Data, Pc, Reason, StructureSizes};
use core::ffi::c_void;

/// Addresses in a buffer.
const ADDRESSES: usize = 4096;

/// A buffer. CUPTI knows its address: it stays where it is until it is dropped.
pub(super) struct SampleBuffer {
    data: *mut Data,
    /// Places of [`StructureSizes::pc`] bytes.
    pcs: *mut [u64],
    /// As many for each address as the device has stall reasons.
    reasons: *mut [Reason],
    sizes: StructureSizes,
}

// SAFETY: the memory is its own; CUPTI's threads write it between calls that are made with the buffer.
unsafe impl Send for SampleBuffer {}

impl SampleBuffer {
    /// A buffer for addresses with as many `reasons`.
    pub fn new(sizes: StructureSizes, reasons: usize) -> SampleBuffer {
        let places = vec![0_u64; ADDRESSES * sizes.pc / 8].into_boxed_slice();
        let none = Reason {
            number: 0,
            samples: 0,
        };
        let reasons = vec![none; ADDRESSES * reasons].into_boxed_slice();
        // SAFETY: numbers and pointers, of which zeros are values.
        let data: Data = unsafe { core::mem::zeroed() };
        let buffer = SampleBuffer {
            data: Box::into_raw(Box::new(data)),
            pcs: Box::into_raw(places),
            reasons: Box::into_raw(reasons),
            sizes,
        };
        buffer.clear();
        buffer
    }

    /// Makes it empty.
    pub fn clear(&self) {
        let of_each = self.reasons.len() / ADDRESSES;
        // SAFETY: the memory of this buffer, which CUPTI does not use now. Pointers stay inside of the allocations.
        unsafe {
            self.pcs.cast::<u64>().write_bytes(0, self.pcs.len());
            for number in 0..ADDRESSES {
                let pc = self.place(number).cast::<Pc>();
                (&raw mut (*pc).size).write(self.sizes.pc);
                let reasons = self.reasons.cast::<Reason>().add(number * of_each);
                (&raw mut (*pc).reasons).write(reasons);
            }
            self.data.write(core::mem::zeroed());
            (*self.data).size = self.sizes.data;
            (*self.data).capacity = ADDRESSES;
            (*self.data).pcs = self.pcs.cast::<c_void>();
        }
    }

    fn place(&self, number: usize) -> *mut u8 {
        self.pcs
            .cast::<u8>()
            .wrapping_add(number.min(ADDRESSES - 1) * self.sizes.pc)
    }

    /// Its address, for CUPTI.
    pub fn data(&self) -> *mut Data {
        self.data
    }

    /// The totals.
    pub fn totals(&self) -> Data {
        // SAFETY: the memory of this buffer, which CUPTI does not use now.
        let mut data = unsafe { self.data.read() };
        if self.sizes.data < size_of::<Data>() {
            data.is_full = 0;
        }
        data
    }

    /// The addresses, each with its reasons; `None` for reasons that lie elsewhere than in the buffer.
    pub fn addresses(&self) -> impl Iterator<Item = (Pc, Option<&[Reason]>)> {
        let count = self.totals().count.min(ADDRESSES);
        (0..count).map(|number| {
            // SAFETY: as many bytes of a structure of numbers and pointers as the version has; the rest is 0.
            let pc = unsafe {
                let mut pc: Pc = core::mem::zeroed();
                let to = (&raw mut pc).cast::<u8>();
                core::ptr::copy_nonoverlapping(self.place(number), to, self.sizes.pc);
                pc
            };
            (pc, self.reasons_of(&pc))
        })
    }

    /// CUPTI may have exchanged addresses with each other.
    fn reasons_of(&self, pc: &Pc) -> Option<&[Reason]> {
        let offset = (pc.reasons as usize).checked_sub(self.reasons.cast::<Reason>() as usize)?;
        let first = offset / size_of::<Reason>();
        let end = first.checked_add(pc.reason_count)?;
        // SAFETY: the memory of this buffer, which CUPTI does not use now.
        let all = unsafe { &*self.reasons };
        all.get(first..end)
            .filter(|_| offset.is_multiple_of(size_of::<Reason>()))
    }
}

impl Drop for SampleBuffer {
    fn drop(&mut self) {
        // SAFETY: boxes of `new`, which CUPTI no longer knows.
        unsafe {
            drop(Box::from_raw(self.data));
            drop(Box::from_raw(self.pcs));
            drop(Box::from_raw(self.reasons));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_read_inside_of_the_buffer_only() {
        for version in [18, 28] {
            let sizes = StructureSizes::of(version);
            let buffer = SampleBuffer::new(sizes, 3);
            // SAFETY: what CUPTI would do.
            unsafe {
                (*buffer.data()).count = 3;
                let pc = |number| buffer.place(number).cast::<Pc>();
                assert_eq!((*pc(1)).size, sizes.pc);
                (*pc(0)).reason_count = 3;
                (*(*pc(0)).reasons.add(2)).samples = 7;
                (*pc(1)).reason_count = 3 * ADDRESSES;
                (*pc(2)).reasons = core::ptr::null_mut();
            }
            let reasons: Vec<_> = buffer.addresses().map(|(_, reasons)| reasons).collect();
            assert_eq!(reasons.len(), 3);
            assert_eq!(reasons[0].map(|all| all[2].samples), Some(7));
            assert!(reasons[1].is_none() && reasons[2].is_none());
            buffer.clear();
            assert_eq!(buffer.addresses().count(), 0);
        }
    }
}
