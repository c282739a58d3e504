//! The structures of the C API: of any size, with anything in them, and batches of any bytes.
#![no_main]

use gputrail::capi::*;
use gputrail::record::Header;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use std::ffi::c_void;
use std::sync::OnceLock;

unsafe extern "C" fn deliver(_: *const Batch, _: *mut c_void) {}
unsafe extern "C" fn told(work: *const WorkData, _: *mut c_void) {
    // SAFETY: the library's structure.
    let work = unsafe { &*work };
    assert!(!work.record.is_null() || !work.completion.is_null());
}

/// Objects that last for the whole run.
fn objects() -> (BufferHandle, TimelineHandle) {
    static OBJECTS: OnceLock<(BufferHandle, TimelineHandle)> = OnceLock::new();
    *OBJECTS.get_or_init(|| {
        assert_eq!(gputrail_initialise(), Status::OK);
        let (mut buffer, mut timeline) = Default::default();
        // SAFETY: usual options, a function, and a place for the id.
        let made = unsafe {
            gputrail_buffer_create(
                std::ptr::null(),
                Some(deliver),
                std::ptr::null_mut(),
                &mut buffer,
            )
        };
        assert_eq!(made, Status::OK);
        // SAFETY: a place for the id.
        assert_eq!(
            unsafe { gputrail_timeline_create(&mut timeline) },
            Status::OK
        );
        (buffer, timeline)
    })
}

/// Memory for a structure that says that it has `size` bytes: as many, if a structure can be so large, else the size
/// alone. Filled from the input.
fn structure(input: &mut Unstructured<'_>, size: usize) -> Vec<u64> {
    let bytes = if size <= 1 << 16 { size.max(8) } else { 8 };
    let mut memory = vec![0u64; bytes.div_ceil(8)];
    for word in &mut memory[1..] {
        *word = input.arbitrary().unwrap_or(0);
    }
    memory[0] = size as u64;
    memory
}

fuzz_target!(|data: &[u8]| {
    let (buffer, timeline) = objects();
    let mut input = Unstructured::new(data);
    let what = input.int_in_range(0..=3).unwrap_or(0);
    let near: bool = input.arbitrary().unwrap_or(true);
    let size: usize = match near {
        true => input.int_in_range(0..=4096).unwrap_or(0),
        false => input.arbitrary().unwrap_or(0),
    };
    match what {
        0 => {
            let mut drops = structure(&mut input, size);
            // SAFETY: as many bytes as it says.
            let status = unsafe { gputrail_buffer_dropped(buffer, drops.as_mut_ptr().cast()) };
            assert!([Status::OK, Status::WRONG_SIZE].contains(&status));
            assert_eq!(drops[0], size as u64);
        }
        1 => {
            let mut options = structure(&mut input, size);
            // No more memory than a machine has.
            for place in [1, 2] {
                if let Some(bytes) = options.get_mut(place) {
                    *bytes %= 1 << 22;
                }
            }
            // Nor more lanes than are worth their time.
            if let Some(threads) = options.get_mut(5) {
                *threads &= 0xffff_ffff_0000_00ff;
            }
            let mut made = BufferHandle::default();
            // SAFETY: as many bytes as it says, a function, and a place for the id.
            let status = unsafe {
                gputrail_buffer_create(
                    options.as_ptr().cast(),
                    Some(deliver),
                    std::ptr::null_mut(),
                    &mut made,
                )
            };
            if status == Status::OK {
                assert_eq!(gputrail_buffer_destroy(made), Status::OK);
                assert_eq!(gputrail_buffer_destroy(made), Status::NO_SUCH_BUFFER);
            }
        }
        _ => {
            let rest = input.take_rest();
            let mut bytes = vec![0u64; rest.len().div_ceil(8)];
            for (word, piece) in bytes.iter_mut().zip(rest.chunks(8)) {
                let mut whole = [0; 8];
                whole[..piece.len()].copy_from_slice(piece);
                *word = u64::from_ne_bytes(whole);
            }
            // SAFETY: zeros are valid for it.
            let mut batch: Batch = unsafe { std::mem::zeroed() };
            batch.size = size_of::<Batch>();
            (batch.records, batch.bytes) = (bytes.as_ptr().cast(), rest.len());
            let mut record: *const Header = std::ptr::null();
            let mut seen = 0;
            loop {
                // SAFETY: a batch whose bytes are there, and a place for a pointer.
                match unsafe { gputrail_batch_next(&batch, &mut record) } {
                    Status::OK => {
                        // SAFETY: the library has found it to be in the batch, all of it.
                        seen += unsafe { &*record }.bytes();
                        // SAFETY: zeros are valid for it.
                        let mut argument: Argument = unsafe { std::mem::zeroed() };
                        argument.size = size_of::<Argument>();
                        // SAFETY: as above, and a structure of this size.
                        unsafe {
                            gputrail_record_argument(record, size as u32 % 32, &mut argument)
                        };
                    }
                    Status::END => {
                        assert_eq!(seen, rest.len());
                        break;
                    }
                    status => {
                        assert_eq!(status, Status::MALFORMED);
                        break;
                    }
                }
            }
            // SAFETY: a batch whose bytes are there, and a function.
            let status = unsafe {
                gputrail_timeline_add(timeline, &batch, Some(told), std::ptr::null_mut())
            };
            assert_eq!(status, Status::OK);
        }
    }
});
