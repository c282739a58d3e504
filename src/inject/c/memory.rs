//! Buffers in memory that the tool supplies: blocks that it lends one by one, or a file that another process can look
//! into when this one has died.

use super::buffer::{asked, batch_of, format, keep};
use super::caller::Caller;
use super::owner::ToolPointer;
use super::status::FailedCall;
use super::tool_buffer::{Receiver, RecordViewer, ToolBuffer};
use super::{Answer, done, library, place, timeline};
use crate::latest::LatestRecords;
use crate::packer::Packer;
use core::ffi::c_void;
use gputrail_buffer::platform::inside::message;
use gputrail_buffer::{
    BlockView, Layout, Mapping, Policy, UnusableBlock, deliver_in_order, forget_drops,
    show_unreported,
};
use gputrail_collect::context::{
    BlockClient, BufferOptions, ClientBlock, ClientMemory, CompletedBlock, RecordBuffer,
};
use gputrail_interface::c::{
    Batch, BatchFunction, Block, BufferHandle, BufferSettings, CompleteFunction, RequestFunction,
    SizedStruct, Status,
};
use gputrail_interface::joined::RecordFormat;
use gputrail_record::{Kind, Ticks};
use rustix::fd::{BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// The blocks that a tool has supplied.
#[derive(Default)]
struct SuppliedBlocks {
    usable: AtomicU32,
    /// The first block that cannot be used.
    unusable: OnceLock<UnusableBlock>,
    /// The buffer has been made: what is wrong can only be told.
    is_made: AtomicBool,
}

impl SuppliedBlocks {
    fn add(&self, block: &mut ClientBlock) {
        match block.check() {
            Ok(()) => {
                self.usable.fetch_add(1, Ordering::Relaxed);
            }
            Err(unusable) => {
                let is_first = self.unusable.set(unusable).is_ok();
                if is_first && self.is_made.load(Ordering::Relaxed) {
                    message(format_args!(
                        "buffer of a tool: {unusable}; such blocks come back unused, and records without a block are \
                         dropped"
                    ));
                }
            }
        }
    }

    /// Whether the buffer is going to be refused.
    fn is_refused(&self) -> bool {
        self.unusable.get().is_some() && !self.is_made.load(Ordering::Relaxed)
    }

    /// Checks the blocks that were supplied while the buffer was made.
    fn check(&self, policy: Policy) -> Answer {
        if let Some(unusable) = self.unusable.get() {
            let status = match unusable {
                UnusableBlock::TooSmall(_) => Status::TOO_SMALL,
                UnusableBlock::Misaligned(_) => Status::INVALID_ARGUMENT,
            };
            return Err(FailedCall::new(status, format!("request: {unusable}")));
        }
        if policy == Policy::Overwrite && self.usable.load(Ordering::Relaxed) == 0 {
            let text =
                "request has supplied no block: a ring consists of those that are supplied now";
            return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
        }
        self.is_made.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The tool's functions.
struct MemoryClient {
    buffer: BufferHandle,
    supplied: Arc<SuppliedBlocks>,
    caller: Caller,
    request: unsafe extern "C-unwind" fn(*mut Block, *mut c_void),
    partial: BatchFunction,
    complete: unsafe extern "C-unwind" fn(*const Block, *const Batch, *mut c_void),
    user_data: ToolPointer,
}

impl BlockClient for MemoryClient {
    fn request(&mut self) -> Option<ClientBlock> {
        if self.supplied.is_refused() {
            return None;
        }
        let mut block = Block::blank();
        let ask = || {
            // SAFETY: a function of the tool's, which the tool gave for this.
            unsafe { (self.request)(&mut block, self.user_data.get()) }
        };
        self.caller.run(ask);
        let memory = NonNull::new(block.memory)?;
        // SAFETY: the tool lends the memory, until it gets it back.
        let mut lent = unsafe { ClientBlock::lent(memory, block.bytes) };
        self.supplied.add(&mut lent);
        Some(lent.with_max_records(block.max_records))
    }

    fn partial(&mut self, view: &BlockView<'_>) {
        if let Some(partial) = self.partial {
            let batch = batch_of(self.buffer, view);
            // SAFETY: as above.
            (self.caller).run(|| unsafe { partial(&batch, self.user_data.get()) });
        }
    }

    fn complete(&mut self, block: CompletedBlock) {
        let ClientMemory::Lent { start, bytes } = block.memory else {
            return;
        };
        let records = Batch {
            buffer: self.buffer,
            records: start.as_ptr(),
            bytes: block.valid,
            lane: block.lane,
            thread: block.thread,
            block: block.sequence,
            first_record: block.first_record,
            ..Batch::blank()
        };
        let block = Block {
            memory: start.as_ptr(),
            bytes,
            shown: self.partial.map_or(0, |_| block.shown),
            ..Block::blank()
        };
        // SAFETY: as above.
        (self.caller).run(|| unsafe { (self.complete)(&block, &records, self.user_data.get()) });
    }
}

impl Receiver for Packer {
    fn records(&mut self, view: &BlockView<'_>, lost: &mut dyn FnMut(Kind)) {
        self.put(view, lost);
    }

    fn flushed(&mut self) {
        self.flush();
    }

    fn ended(&mut self) {
        self.end();
    }
}

impl Receiver for LatestRecords {
    fn records(&mut self, view: &BlockView<'_>, _: &mut dyn FnMut(Kind)) {
        self.put(view);
    }

    fn flushed(&mut self) {
        self.flush();
    }

    fn ended(&mut self) {
        self.end();
    }
}

/// Makes a buffer whose blocks the tool supplies (CUPTI: `cuptiActivityRegisterCallbacks`). `request` is asked for them,
/// the first ones within this function; `complete` gets each back with its records, when it is full, or the buffer is
/// flushed or destroyed. `partial`, which may be null, is shown records in blocks that are not complete when the watermark
/// is reached, or when a flush finds their thread in the middle of writing; they come again with their block. All three
/// are called on a thread of the library's or on one that makes, flushes or destroys the buffer, never on two at a time:
/// none runs within a call of the program.
///
/// Joined records are copied into one block after the other, which has records of all threads. The threads record into
/// memory of the library's, of the sizes in `options`. Under `GPUTRAIL_POLICY_LOSSLESS` records wait up to 5 seconds for
/// `request` to supply a block. Raw records are written into the blocks, each thread's into blocks of its own, and the sizes
/// in `options` are not used. A thread that records waits until `request` has supplied a block or refused it; it does not wait
/// where `GPUTRAIL_POLICY_LOSSLESS` does not, nor for longer than 5 seconds. `blocks_ahead` avoids such waits.
///
/// With `GPUTRAIL_POLICY_OVERWRITE` the blocks are a ring that keeps the latest records, a flight recorder in memory of the
/// tool's. `request` is called within this function only, `blocks_ahead` times, or until it supplies none or has supplied
/// 1024. A flush shows `partial` all that is kept; the blocks come back when the buffer is destroyed, joined records in the
/// order of their latest times, raw ones with the oldest block of each thread first. Records are joined by the flush, in
/// memory of the library's that is at least twice as large as the blocks. Of raw records, each thread fills a block of its own and
/// takes the oldest one next: supply several blocks for each thread that records. With fewer blocks than threads, a thread
/// takes the block of an idle one, and what was in it is overwritten. A record is dropped where other threads write into all
/// blocks at that moment, or a flush shows them.
///
/// Errors: `GPUTRAIL_TOO_SMALL` if `request` supplies a block of less than 1024 bytes; `GPUTRAIL_INVALID_ARGUMENT` if it
/// supplies a misaligned one, or none for a ring; else as for `gputrail_buffer_create`. All blocks have come
/// back then. An unusable block that is supplied later comes back at once, and the first one is reported as a message
/// (`gputrail_log_to`).
///
/// # Safety
///
/// `options` is null or leads to options, the functions are null or such functions, `buffer` is null or a place for the
/// id. Blocks stay as they are, left alone by everybody else, until they come back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_buffer_create_of_client(
    options: *const BufferSettings,
    request: RequestFunction,
    partial: BatchFunction,
    complete: CompleteFunction,
    user_data: *mut c_void,
    buffer: *mut BufferHandle,
) -> Status {
    done(|| {
        // SAFETY: `buffer` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(buffer, "buffer") }?;
        let null = |name| move || FailedCall::new(Status::NULL_POINTER, format!("{name} is null"));
        let (request, complete) = (
            request.ok_or_else(null("request"))?,
            complete.ok_or_else(null("complete"))?,
        );
        // SAFETY: `options` is null or leads to options (the caller's promise), as both functions ask.
        let (options, format) = unsafe { (asked(options)?, format(options)?) };
        let id = library::state()?.buffers.new_handle();
        let (policy, supplied) = (options.policy, Arc::<SuppliedBlocks>::default());
        let client = MemoryClient {
            buffer: BufferHandle { handle: id },
            supplied: supplied.clone(),
            caller: Caller::of_buffer(),
            request,
            partial,
            complete,
            user_data: ToolPointer(user_data),
        };
        let created = match format {
            RecordFormat::Raw => ToolBuffer::raw(RecordBuffer::of_client(options, client)?),
            RecordFormat::Joined if policy == Policy::Overwrite => {
                let latest = LatestRecords::new(Box::new(client), options.blocks_ahead);
                let pool_bytes = options.pool_bytes.max(2 * latest.capacity());
                let options = BufferOptions {
                    pool_bytes,
                    ..options
                };
                ToolBuffer::joined(Box::new(latest), timeline::new()?, |deliver| {
                    RecordBuffer::create(options, deliver)
                })?
            }
            RecordFormat::Joined => {
                let watermark = options.watermark;
                let packer = Packer::new(Box::new(client), policy, watermark, options.blocks_ahead);
                let options = BufferOptions {
                    watermark: 0,
                    ..options
                };
                ToolBuffer::joined(Box::new(packer), timeline::new()?, |deliver| {
                    RecordBuffer::create(options, deliver)
                })?
            }
        };
        if let Err(failure) = supplied.check(policy) {
            created.end();
            return Err(failure);
        }
        place.write(keep(id, created)?);
        Ok(())
    })
}

/// Writes how many bytes a file needs for a buffer with these options, for `gputrail_buffer_create_in_file`.
///
/// Errors: as for `gputrail_buffer_create`.
///
/// # Safety
///
/// `options` is null or leads to options, `bytes` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_buffer_file_bytes(
    options: *const BufferSettings,
    bytes: *mut u64,
) -> Status {
    done(|| {
        // SAFETY: `bytes` is null or a place for a number (the caller's promise).
        let bytes = unsafe { place(bytes, "bytes") }?;
        drop(library::state()?);
        // SAFETY: `options` is null or leads to options (the caller's promise), as `layout` asks.
        bytes.write(unsafe { layout(options) }?.total_bytes() as u64);
        Ok(())
    })
}

/// # Safety
///
/// `options` is null or leads to options.
unsafe fn layout(options: *const BufferSettings) -> Answer<Layout> {
    // SAFETY: `options` is null or leads to options (the caller's promise), as `asked` asks.
    let asked = unsafe { asked(options) }?;
    let layout = Layout::new(asked.pool_bytes, asked.block_bytes, asked.threads);
    layout.map_err(|error| FailedCall::new(Status::LAYOUT, error.to_string()))
}

/// Makes a buffer in a file, or in memory that processes share (memfd_create): another process that has it too finds
/// there what was recorded when this one has died (`gputrail_recover`), as it was written: `deliver` gets joined records unless
/// `options` ask for raw ones, the file has raw ones. The file is empty but for its length, which
/// `gputrail_buffer_file_bytes` tells; its descriptor may be closed afterwards. It must not shrink while the buffer is
/// there.
///
/// Errors: `GPUTRAIL_TOO_SMALL` for a file that is; `GPUTRAIL_INVALID_ARGUMENT` for one that is not open for reading
/// and writing, or holds something; else as for `gputrail_buffer_create`.
///
/// # Safety
///
/// As for `gputrail_buffer_create`. While the buffer is there, the file does not shrink, and nobody else writes to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_buffer_create_in_file(
    file: i32,
    options: *const BufferSettings,
    deliver: BatchFunction,
    user_data: *mut c_void,
    buffer: *mut BufferHandle,
) -> Status {
    done(|| {
        // SAFETY: `buffer` is null or a place for a handle (the caller's promise).
        let place = unsafe { place(buffer, "buffer") }?;
        let deliver =
            deliver.ok_or_else(|| FailedCall::new(Status::NULL_POINTER, "deliver is null"))?;
        // SAFETY: `options` is null or leads to options (the caller's promise), as all three functions ask.
        let (options, format, layout) =
            unsafe { (asked(options)?, format(options)?, layout(options)?) };
        let id = library::state()?.buffers.new_handle();
        let (there, needed) = (length(file)?, layout.total_bytes() as u64);
        if there < needed {
            let text = format!("file {file} has {there} bytes, the buffer needs {needed}");
            return Err(FailedCall::new(Status::TOO_SMALL, text));
        }
        let mut first = [0; 4096];
        let wrong = |what: String| FailedCall::new(Status::INVALID_ARGUMENT, what);
        let read = rustix::io::pread(descriptor(file)?, &mut first, 0);
        read.map_err(|errno| wrong(format!("file {file} cannot be read: {errno}")))?;
        if first.iter().any(|byte| *byte != 0) {
            return Err(wrong(format!("file {file} is not empty")));
        }
        let mapping = Mapping::create(file, layout)
            .map_err(|error| wrong(format!("file {file}: {error}")))?;
        let (user_data, caller) = (ToolPointer(user_data), Caller::of_buffer());
        let show = move |view: &BlockView<'_>| {
            let batch = batch_of(BufferHandle { handle: id }, view);
            // SAFETY: a function of the tool's, which the tool gave for this.
            caller.run(|| unsafe { deliver(&batch, user_data.get()) });
        };
        let created = match format {
            RecordFormat::Raw => ToolBuffer::raw(RecordBuffer::in_mapping(mapping, options, show)?),
            RecordFormat::Joined => {
                ToolBuffer::joined(Box::new(RecordViewer(show)), timeline::new()?, |show| {
                    RecordBuffer::in_mapping(mapping, options, show)
                })?
            }
        };
        place.write(keep(id, created)?);
        Ok(())
    })
}

/// Passes to `deliver` the records that a process that has died has left in the file of a buffer
/// (`gputrail_buffer_create_in_file`) and not delivered, and the counts of those that it dropped, on the calling thread. The contents of the file are not
/// trusted: `gputrail_batch_next` reports where bytes are no record. Records are delivered once.
///
/// Errors: `GPUTRAIL_MALFORMED` for a file that holds no buffer of this version; `GPUTRAIL_INVALID_ARGUMENT` for one
/// that is not open for reading and writing; `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `deliver` is null or such a function. No process writes to the file any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_recover(
    file: i32,
    deliver: BatchFunction,
    user_data: *mut c_void,
) -> Status {
    done(|| {
        let deliver =
            deliver.ok_or_else(|| FailedCall::new(Status::NULL_POINTER, "deliver is null"))?;
        drop(library::state()?);
        let malformed =
            |what: String| FailedCall::new(Status::MALFORMED, format!("file {file}: {what}"));
        let bytes = usize::try_from(length(file)?).map_err(|error| malformed(error.to_string()))?;
        let mapping = Mapping::open(file, bytes).map_err(|error| malformed(error.to_string()))?;
        let show = |view: &BlockView<'_>| {
            let batch = batch_of(BufferHandle::default(), view);
            // SAFETY: a function of the tool's, which the tool gave for this.
            Caller::of_buffer().run(|| unsafe { deliver(&batch, user_data) });
        };
        deliver_in_order(&mapping, 0, &mut Default::default(), show, |_| {});
        show_unreported(&mapping, Ticks::NONE, |view, _| show(view));
        forget_drops(&mapping);
        Ok(())
    })
}

/// The file with this descriptor, for as long as a call of the tool's lasts.
fn descriptor(file: RawFd) -> Answer<BorrowedFd<'static>> {
    if file < 0 {
        let text = format!("{file} is not a file descriptor");
        return Err(FailedCall::new(Status::INVALID_ARGUMENT, text));
    }
    // SAFETY: not negative; one that is not open is refused by the system.
    Ok(unsafe { BorrowedFd::borrow_raw(file) })
}

fn length(file: RawFd) -> Answer<u64> {
    let found = rustix::fs::fstat(descriptor(file)?);
    let wrong = |errno| {
        FailedCall::new(
            Status::INVALID_ARGUMENT,
            format!("file descriptor {file}: {errno}"),
        )
    };
    Ok(found.map_err(wrong)?.st_size as u64)
}
