//! Buffers whose blocks the tool supplies.

use super::callee::{self, Callee, HeldCallee};
use super::functions::call;
use super::{Batch, Buffer, BufferOptions, Error};
use core::ffi::c_void;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::{BlockClient, ClientMemory, CompletedBlock};
use gputrail_interface::c::{Batch as BatchData, Block};
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::Mutex;

/// The tool, and what it has supplied.
struct Client {
    client: Box<dyn BlockClient>,
    /// Where the blocks begin that are memory of the Rust heap: C gives them back as addresses.
    owned: HashSet<usize>,
}

type Lending = Callee<Mutex<Client>>;

impl Buffer {
    /// A buffer whose blocks `client` supplies: it is asked for the first ones within this function, and gets each back with
    /// its records, when it is full, or the buffer is flushed or destroyed. Joined records are copied into one block after the
    /// other; raw ones are written there by their threads, and the sizes in `options` are not used. Under `Policy::Overwrite`
    /// the blocks are a ring with the latest records, which a flush shows.
    ///
    /// If `client` panics, it is not called again: what it has supplied and that is not memory of the Rust heap stays
    /// with the library.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::new`]; for a block that is too small or misaligned, and under `Policy::Overwrite` for none.
    pub fn of_client(
        options: BufferOptions,
        client: impl BlockClient + 'static,
    ) -> Result<Buffer, Error> {
        let settings = options.settings();
        let client = Mutex::new(Client {
            client: Box::new(client),
            owned: HashSet::new(),
        });
        Buffer::made(HeldCallee::new(client), |callee, handle| {
            // SAFETY: a structure of this size, functions, their user data, and a place for the id.
            unsafe {
                call!(gputrail_buffer_create_of_client(
                    &settings,
                    Some(request),
                    Some(partial),
                    Some(complete),
                    callee,
                    handle
                ))
            }
        })
    }
}

unsafe extern "C-unwind" fn request(block: *mut Block, user_data: *mut c_void) {
    // SAFETY: the library's place for a block, and what `of_client` gave, which lasts as long as the buffer.
    let (block, callee) = unsafe { (&mut *block, &*user_data.cast::<Lending>()) };
    callee::call(&callee.failed, || {
        let mut lending = lock_std(&callee.function);
        let Some((memory, max_records)) = lending.client.request().map(|block| block.into_parts())
        else {
            return;
        };
        (block.memory, block.bytes) = match memory {
            ClientMemory::Owned(words) => {
                let words = Box::leak(words);
                let start = words.as_mut_ptr().cast::<u8>();
                lending.owned.insert(start.addr());
                (start, words.len() * 8)
            }
            ClientMemory::Lent { start, bytes } => (start.as_ptr(), bytes),
        };
        block.max_records = max_records;
    });
}

unsafe extern "C-unwind" fn partial(batch: *const BatchData, user_data: *mut c_void) {
    // SAFETY: the library's batch, and what `of_client` gave.
    let (batch, callee) = unsafe { (&*batch, &*user_data.cast::<Lending>()) };
    callee::call(&callee.failed, || {
        lock_std(&callee.function)
            .client
            .partial(&Batch(batch).view());
    });
}

unsafe extern "C-unwind" fn complete(
    block: *const Block,
    records: *const BatchData,
    user_data: *mut c_void,
) {
    // SAFETY: the library's structures, and what `of_client` gave.
    let (block, records, callee) = unsafe { (&*block, &*records, &*user_data.cast::<Lending>()) };
    let Some(start) = NonNull::new(block.memory) else {
        return;
    };
    let mut lending = lock_std(&callee.function);
    let memory = if lending.owned.remove(&start.addr().get()) {
        let words = NonNull::slice_from_raw_parts(start.cast::<u64>(), block.bytes / 8);
        // SAFETY: a box that `request` has let go of, which the library has given back.
        ClientMemory::Owned(unsafe { Box::from_raw(words.as_ptr()) })
    } else {
        ClientMemory::Lent {
            start,
            bytes: block.bytes,
        }
    };
    let completed = CompletedBlock {
        memory,
        valid: records.bytes,
        shown: block.shown,
        lane: records.lane,
        thread: records.thread,
        sequence: records.block,
        first_record: records.first_record,
    };
    callee::call(&callee.failed, || lending.client.complete(completed));
}
