//! The structures of the C API, of any size and with any contents, and batches of any bytes.
#![no_main]

use gputrail::tool::c::*;
use gputrail::record::Header;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use std::ffi::c_void;
use std::sync::OnceLock;

unsafe extern "C-unwind" fn deliver(_: *const Batch, _: *mut c_void) {}
unsafe extern "C-unwind" fn lend(block: *mut Block, memory: *mut c_void) {
    // SAFETY: the library's structure, and memory that outlives the buffer.
    unsafe {
        let lent = &mut *memory.cast::<Lent>();
        if !std::mem::replace(&mut lent.is_out, true) {
            (*block).memory = lent.words.as_mut_ptr().cast::<u8>().add(lent.offset);
            ((*block).bytes, (*block).max_records) = (lent.bytes, lent.max_records);
        }
    }
}
unsafe extern "C-unwind" fn take_back(_: *const Block, records: *const Batch, memory: *mut c_void) {
    // SAFETY: as above.
    unsafe {
        assert!((*records).bytes <= 4096);
        (*memory.cast::<Lent>()).is_out = false;
    }
}

/// One block, which is lent again and again.
struct Lent {
    words: [u64; 512],
    offset: usize,
    bytes: usize,
    max_records: u32,
    is_out: bool,
}

/// The structure `words` without pointers: the words at the indices `pointers` become null.
fn without_pointers(mut words: Vec<u64>, pointers: &[usize]) -> Vec<u64> {
    for place in pointers {
        if let Some(word) = words.get_mut(*place) {
            *word = 0;
        }
    }
    words
}

unsafe extern "C-unwind" fn told(work: *const WorkData, _: *mut c_void) {
    // SAFETY: the library's structure.
    let work = unsafe { &*work };
    assert!(!work.record.is_null() || !work.completion.is_null());
}

/// Objects that exist during the whole run.
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

/// Memory for a structure whose size field is `size`: so many bytes if a structure can be so large, else the size field
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

/// Limits the options of a buffer to the memory of a machine, and to a number of lanes that does not slow the test
/// down.
fn affordable(mut options: Vec<u64>) -> Vec<u64> {
    for place in [1, 2] {
        if let Some(bytes) = options.get_mut(place) {
            *bytes %= 1 << 22;
        }
    }
    if let Some(threads) = options.get_mut(5) {
        *threads &= 0xffff_ffff_0000_00ff;
    }
    options
}

fuzz_target!(|data: &[u8]| {
    let (buffer, timeline) = objects();
    let mut input = Unstructured::new(data);
    let what = input.int_in_range(0..=8).unwrap_or(0);
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
            let options = affordable(structure(&mut input, size));
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
        2 => {
            let mut options = affordable(structure(&mut input, size));
            if let Some(threads) = options.get_mut(5) {
                *threads %= 256;
            }
            let mut lent = Lent {
                words: [0; 512],
                offset: input.int_in_range(0..=9).unwrap_or(0),
                bytes: input.int_in_range(0..=4000).unwrap_or(0),
                max_records: input.arbitrary().unwrap_or(0),
                is_out: false,
            };
            let mut made = BufferHandle::default();
            // SAFETY: as many bytes as it says, functions with what they are given, and a place for the id.
            let status = unsafe {
                gputrail_buffer_create_of_client(
                    options.as_ptr().cast(),
                    Some(lend),
                    Some(deliver),
                    Some(take_back),
                    (&raw mut lent).cast(),
                    &mut made,
                )
            };
            if status == Status::OK {
                assert_eq!(gputrail_buffer_flush(made), Status::OK);
                assert_eq!(gputrail_buffer_destroy(made), Status::OK);
            }
            assert!(!lent.is_out, "the block has come back");
        }
        3 => {
            let mut attributes = affordable(structure(&mut input, size));
            if let Some(threads) = attributes.get_mut(3) {
                *threads &= 0xffff_ffff_0000_00ff;
            }
            // SAFETY: as many bytes as it says.
            let status = unsafe { gputrail_attributes_set(attributes.as_ptr().cast()) };
            let refused = [Status::WRONG_SIZE, Status::LAYOUT, Status::INVALID_ARGUMENT];
            assert!(
                status == Status::OK || refused.contains(&status),
                "{status:?}"
            );
            // SAFETY: as above.
            let status = unsafe { gputrail_attributes_get(attributes.as_mut_ptr().cast()) };
            assert!([Status::OK, Status::WRONG_SIZE].contains(&status));
            assert_eq!(attributes[0], size as u64);
        }
        4 => {
            // Folder and selection, and a signal that nobody sends.
            let mut options = without_pointers(structure(&mut input, size), &[5, 6]);
            for place in [1, 7] {
                if let Some(bytes) = options.get_mut(place) {
                    *bytes %= 1 << 22;
                }
            }
            for (place, keep) in [(4, 0xffff_ffff_0000_0000), (8, 0xffff_ffff_0000_00ff)] {
                if let Some(word) = options.get_mut(place) {
                    *word &= keep;
                }
            }
            let mut flight = FlightHandle::default();
            // SAFETY: as many bytes as it says, pointers that are null, and a place for the id.
            let status = unsafe { gputrail_flight_start(options.as_ptr().cast(), &mut flight) };
            if status == Status::OK {
                assert_eq!(gputrail_flight_stop(flight), Status::OK);
            }
        }
        5 => {
            let mark = without_pointers(structure(&mut input, size), &[1, 2, 3]);
            // SAFETY: as many bytes as it says, and pointers that are null.
            let status = unsafe { gputrail_mark(mark.as_ptr().cast()) };
            assert!([Status::WRONG_SIZE, Status::NULL_POINTER].contains(&status));
        }
        6 => {
            use std::os::fd::AsRawFd;
            let file = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::CLOEXEC);
            let file = file.expect("memory");
            let _ = rustix::io::write(&file, input.take_rest());
            // SAFETY: a function; nobody else has the file.
            let status =
                unsafe { gputrail_recover(file.as_raw_fd(), Some(deliver), std::ptr::null_mut()) };
            assert!(
                [Status::OK, Status::MALFORMED].contains(&status),
                "{status:?}"
            );
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
