//! Buffers, their batches, and the records in them.

use super::caller::{Caller, refuse_inside};
use super::library::{self, board};
use super::objects::destroy;
use super::owner::ToolPointer;
use super::sized;
use super::status::FailedCall;
use super::tool_buffer::{RecordViewer, ToolBuffer};
use super::{Answer, answer, checked, done, place, timeline};
use core::ffi::c_void;
use gputrail_buffer::{BlockView, Policy, QueuePlace};
use gputrail_collect::context::{BufferOptions, Drops, RecordBuffer};
use gputrail_interface::c::{
    Batch, BatchFunction, BufferHandle, BufferSettings, CallbackThreadHandle, DropCounts,
    SizedStruct, Status,
};
use gputrail_interface::joined::{RecordFormat, WorkTimes};
use gputrail_record::{ContextId, Header, Kind, QueueId, Records, StreamId};
use std::sync::Arc;
use std::time::Duration;

/// Creates a buffer. `deliver` gets its records in batches until the buffer has been destroyed. A null `options` asks
/// for the usual values.
///
/// Errors: `GPUTRAIL_LAYOUT` for invalid buffer sizes; `GPUTRAIL_OUT_OF_MEMORY`, `GPUTRAIL_NO_THREAD`;
/// `GPUTRAIL_TOO_MANY` with 32 buffers in the process; `GPUTRAIL_INVALID_ARGUMENT` for an unknown policy or format;
/// `GPUTRAIL_NO_SUCH_THREAD`, `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `options` is null or leads to options, `deliver` is null or such a function, `buffer` is null or a place for the
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_buffer_create(
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
        // SAFETY: `options` is null or leads to options (the caller's promise), as both functions ask.
        let (options, format) = unsafe { (asked(options)?, format(options)?) };
        let id = library::state()?.buffers.new_handle();
        let (user_data, caller) = (ToolPointer(user_data), Caller::of_buffer());
        let show = move |view: &BlockView<'_>| {
            let batch = batch_of(BufferHandle { handle: id }, view);
            // SAFETY: a function of the tool's, which the tool gave for this.
            caller.run(|| unsafe { deliver(&batch, user_data.get()) });
        };
        let created = match format {
            RecordFormat::Raw => ToolBuffer::raw(RecordBuffer::create(options, show)?),
            RecordFormat::Joined => {
                ToolBuffer::joined(Box::new(RecordViewer(show)), timeline::new()?, |show| {
                    RecordBuffer::create(options, show)
                })?
            }
        };
        place.write(keep(id, created)?);
        Ok(())
    })
}

/// Gives a buffer its handle.
pub(super) fn keep(id: u64, buffer: ToolBuffer) -> Answer<BufferHandle> {
    library::state()?.buffers.insert(id, Arc::new(buffer));
    Ok(BufferHandle { handle: id })
}

/// # Safety
///
/// `options` is null or leads to options.
pub(super) unsafe fn format(options: *const BufferSettings) -> Answer<RecordFormat> {
    if options.is_null() {
        return Ok(RecordFormat::default());
    }
    // SAFETY: `options` is not null, so it leads to options of as many bytes as their size says (the caller's promise).
    format_from(unsafe { sized::read(options) }?.format)
}

/// The format with this number.
pub(super) fn format_from(number: u32) -> Answer<RecordFormat> {
    match number {
        0 => Ok(RecordFormat::Joined),
        1 => Ok(RecordFormat::Raw),
        other => {
            let text = format!("unknown format {other}: expected 0 (joined) or 1 (raw)");
            Err(FailedCall::new(Status::INVALID_ARGUMENT, text))
        }
    }
}

/// # Safety
///
/// `options` is null or leads to options.
pub(super) unsafe fn asked(options: *const BufferSettings) -> Answer<BufferOptions> {
    let mut made = BufferOptions::default();
    if options.is_null() {
        return Ok(made);
    }
    // SAFETY: `options` is not null, so it leads to options of as many bytes as their size says (the caller's promise).
    let asked = unsafe { sized::read(options) }?;
    for (asked, made) in [
        (asked.pool_bytes, &mut made.pool_bytes),
        (asked.block_bytes, &mut made.block_bytes),
    ] {
        if asked != 0 {
            let too_many = |_| FailedCall::new(Status::LAYOUT, format!("{asked} bytes"));
            *made = usize::try_from(asked).map_err(too_many)?;
        }
    }
    for (asked, made) in [
        (asked.watermark, &mut made.watermark),
        (asked.threads, &mut made.threads),
    ] {
        if asked != 0 {
            *made = asked;
        }
    }
    if asked.period_nanos != 0 {
        made.period = Duration::from_nanos(asked.period_nanos);
    }
    if asked.callback_thread != CallbackThreadHandle::default() {
        made.callback_thread = Some((*library::thread(asked.callback_thread)?).clone());
    }
    made.blocks_ahead = asked.blocks_ahead;
    made.policy = Policy::from_code(asked.policy).ok_or_else(|| {
        let text = format!(
            "unknown policy {}: expected 0 (discard), 1 (lossless) or 2 (overwrite)",
            asked.policy
        );
        FailedCall::new(Status::INVALID_ARGUMENT, text)
    })?;
    Ok(made)
}

pub(super) fn batch_of(buffer: BufferHandle, view: &BlockView<'_>) -> Batch {
    Batch {
        buffer,
        records: view.bytes.as_ptr(),
        bytes: view.bytes.len(),
        lane: view.lane,
        thread: view.thread,
        block: view.sequence,
        offset: view.offset,
        first_record: view.first_record,
        ..Batch::blank()
    }
}

/// Destroys a buffer: what has been recorded is delivered first, while the buffer can still be asked about. When this
/// returns, its callback is not running and will not be called again. A buffer of joined records also delivers the work that
/// has not completed, flagged `GPUTRAIL_FLAG_UNFINISHED`, and the work whose completion was dropped, flagged
/// `GPUTRAIL_FLAG_TIME_UNKNOWN`; `unfinished` in its `gputrail_work_times` says which it is.
///
/// Errors: `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_buffer_destroy(buffer: BufferHandle) -> Status {
    done(|| {
        refuse_inside()?;
        library::buffer(buffer)?.end();
        let gone = library::state()?.buffers.remove(buffer.handle)?;
        destroy(gone);
        Ok(())
    })
}

/// Delivers everything that has been recorded so far, on the calling thread, and returns when that is done. Joined work
/// that has not completed by then is kept until it has. Of a buffer whose policy is `GPUTRAIL_POLICY_OVERWRITE`: what is
/// kept, which stays where it is. Blocks that the tool has supplied come back, however full they are, unless their thread is
/// in the middle of writing a record (CUPTI: `cuptiActivityFlushAll`).
///
/// Errors: `GPUTRAIL_BUSY` from within a callback; `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_NOT_INITIALISED`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_buffer_flush(buffer: BufferHandle) -> Status {
    done(|| {
        refuse_inside()?;
        Ok(library::buffer(buffer)?.flush()?)
    })
}

/// Flushes, and also tells of device work that has not completed (CUPTI: `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`). A buffer of
/// joined records delivers the record of the work, flagged `GPUTRAIL_FLAG_UNFINISHED`, with the times that are known; a raw
/// one a completion that is flagged so. The record, or the completion, comes again when the work has completed; the record also
/// when the buffer is destroyed before that. Work of
/// OpenCL is known; that of CUDA and of the simulated GPU comes when it has completed. Errors as for
/// `gputrail_buffer_flush`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_buffer_flush_forced(buffer: BufferHandle) -> Status {
    done(|| {
        refuse_inside()?;
        Ok(library::buffer(buffer)?.flush_forced()?)
    })
}

/// Waits until the work of the program's queues has completed, as `clFinish` does, and flushes: of all queues, of those of
/// `context` unless it is 0, or of `queue` only unless it is 0. It waits for OpenCL's queues: those of CUDA and of
/// the simulated GPU are flushed without (CUPTI: `cuptiActivityFlush`, `cuptiActivityFlushAll`). It does not return
/// while work waits for an event that the program sets later.
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` for a context or queue that no source has reported; otherwise as for
/// `gputrail_buffer_flush`.
#[unsafe(no_mangle)]
pub extern "C" fn gputrail_buffer_flush_synchronized(
    buffer: BufferHandle,
    context: ContextId,
    queue: QueueId,
) -> Status {
    done(|| {
        refuse_inside()?;
        let queues = QueuePlace {
            context,
            queue,
            stream: StreamId::NONE,
        };
        let buffer = library::buffer(buffer)?;
        check_place(queues)?;
        Ok(buffer.flush_synchronized(queues)?)
    })
}

/// Refuses ids that no source has given to a context, queue or stream.
fn check_place(place: QueuePlace) -> Answer {
    let names = board()?.names();
    let unknown = names.unknown_place(place);
    unknown.map_or(Ok(()), |what| {
        let text = format!("no source has reported the {what}");
        Err(FailedCall::new(Status::INVALID_ARGUMENT, text))
    })
}

/// The records of kernels, copies, fills, waits and allocations that a buffer has dropped since the last call that counted
/// them, of `context`, `queue` and `stream`, each unless it is 0 (CUPTI: `cuptiActivityGetNumDroppedRecords`). The drops
/// of 128 places are counted so; those of all places, and of records that name none, such as calls, are in
/// `gputrail_buffer_dropped`.
///
/// Errors: `GPUTRAIL_INVALID_ARGUMENT` for a context, queue or stream that no source has reported;
/// `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `dropped` is null or a place for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_buffer_dropped_at(
    buffer: BufferHandle,
    context: ContextId,
    queue: QueueId,
    stream: StreamId,
    dropped: *mut u64,
) -> Status {
    done(|| {
        // SAFETY: `dropped` is null or a place for a number (the caller's promise).
        let dropped = unsafe { place(dropped, "dropped") }?;
        let selected = QueuePlace {
            context,
            queue,
            stream,
        };
        let buffer = library::buffer(buffer)?;
        check_place(selected)?;
        dropped.write(buffer.dropped_at(selected));
        Ok(())
    })
}

/// The records that a buffer has dropped since the last call of this function.
///
/// Errors: `GPUTRAIL_NO_SUCH_BUFFER`, `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `drops` is null or leads to such a structure, whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_buffer_dropped(
    buffer: BufferHandle,
    drops: *mut DropCounts,
) -> Status {
    done(|| {
        let buffer = library::buffer(buffer)?;
        // Before what was counted is forgotten.
        // SAFETY: `drops` is null or leads to a structure of as many bytes as its size says (the caller's promise).
        unsafe { sized::write(drops, &DropCounts::blank()) }?;
        // SAFETY: as above: the first write has left the size as it was.
        unsafe { sized::write(drops, &counts(buffer.dropped())) }
    })
}

/// The records that a buffer has dropped since it was made. As `gputrail_buffer_dropped`.
///
/// # Safety
///
/// `drops` is null or leads to such a structure, whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_buffer_dropped_in_total(
    buffer: BufferHandle,
    drops: *mut DropCounts,
) -> Status {
    done(|| {
        let dropped = library::buffer(buffer)?.dropped_in_total();
        // SAFETY: `drops` is null or leads to a structure of as many bytes as its size says (the caller's promise).
        unsafe { sized::write(drops, &counts(dropped)) }
    })
}

fn counts(drops: Drops) -> DropCounts {
    let mut counts = DropCounts {
        total: drops.total(),
        ..DropCounts::blank()
    };
    for (kind, _) in Kind::ALL {
        counts.of_kind[kind.0 as usize] = drops.of(*kind);
    }
    counts
}

/// The record of a batch that follows `*record`; the first if `*record` is null. It stays where it is, in the batch:
/// look at its kind, and at it as the structure of that kind.
///
/// Returns `GPUTRAIL_END`, and a null `*record`, behind the last.
///
/// Errors: `GPUTRAIL_MALFORMED` if what follows is no record; `GPUTRAIL_INVALID_ARGUMENT` if `*record` is not in the
/// batch; `GPUTRAIL_WRONG_SIZE`, `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `batch` is null or leads to a batch whose records are null or lead to as many bytes as it says, `record` is null or leads
/// to a pointer, which may be null and can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_batch_next(
    batch: *const Batch,
    record: *mut *const Header,
) -> Status {
    answer(|| {
        // SAFETY: `batch` is null or leads to a batch of as many bytes as its size says (the caller's promise).
        let batch = unsafe { sized::read(batch) }?;
        checked(record, "record")?;
        if batch.bytes > 0 {
            checked(batch.records.cast::<Header>(), "the batch's records")?;
        }
        // SAFETY: `checked` has refused null and misaligned pointers; otherwise `record` leads to a pointer that can be read
        // and written and that nobody else uses (the caller's promise). What it points to is not read before it is found in
        // the batch.
        let current = unsafe { record.read() };
        let bytes = batch.bytes;
        let malformed = |at: usize| {
            let text = format!("at byte {at} of a batch of {bytes}: not a record");
            FailedCall::new(Status::MALFORMED, text)
        };
        // SAFETY: the record lies in the batch, whose bytes are there: checked before each call.
        let size_at = |offset: usize| match unsafe {
            batch.records.add(offset).cast::<Header>().read_unaligned()
        }
        .bytes()
        {
            size if size < size_of::<Header>() || size > bytes - offset => Err(malformed(offset)),
            size => Ok(size),
        };
        let next = if current.is_null() {
            0
        } else {
            let offset = (current as usize).wrapping_sub(batch.records as usize);
            if offset >= bytes || bytes - offset < size_of::<Header>() || !offset.is_multiple_of(8)
            {
                return Err(FailedCall::new(
                    Status::INVALID_ARGUMENT,
                    "the record is not in the batch",
                ));
            }
            offset + size_at(offset)?
        };
        if next == bytes {
            // SAFETY: as above.
            unsafe { record.write(std::ptr::null()) };
            return Ok(Status::END);
        }
        if bytes - next < size_of::<Header>() {
            return Err(malformed(next));
        }
        size_at(next)?;
        // SAFETY: within the batch; and as above.
        unsafe { record.write(batch.records.add(next).cast()) };
        Ok(Status::OK)
    })
}

/// The times of a kernel, copy, fill, marker or barrier from a buffer of joined records, into `times`. All that are not known
/// are 0; `unfinished` says why, and the record's flags `GPUTRAIL_FLAG_UNFINISHED` and `GPUTRAIL_FLAG_TIME_UNKNOWN`.
///
/// Errors: `GPUTRAIL_NOT_FOUND` for a record without times, of another kind or from a buffer of raw records;
/// `GPUTRAIL_NULL_POINTER`.
///
/// # Safety
///
/// `record` is null or leads to a record, as long as its header says; `times` is null or a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_times_of(record: *const Header, times: *mut WorkTimes) -> Status {
    done(|| {
        checked(record, "record")?;
        // SAFETY: `times` is null or a place for the answer (the caller's promise).
        let times = unsafe { place(times, "times") }?;
        // SAFETY: `checked` has refused null and misaligned pointers; otherwise `record` leads to as many bytes as its
        // header says, none of them in `times`, and nobody writes them (the caller's promise).
        let bytes = unsafe { std::slice::from_raw_parts(record.cast(), (*record).bytes()) };
        let found = Records::new(bytes).next().and_then(WorkTimes::of);
        times.write(
            found.ok_or_else(|| FailedCall::new(Status::NOT_FOUND, "the record has no times"))?,
        );
        Ok(())
    })
}
