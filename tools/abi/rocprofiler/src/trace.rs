//! Traces: what each instruction of a kernel did, of the simulated GPU.
//!
//! A context with the trace has the records of the kernel of its first group. They come with gputrail's buffers, which
//! `rocprofiler_iterate_trace_data` waits for. There is one instance; its bytes are [`Entry`] after [`Entry`], by the offset of the
//! instruction.

use crate::types::{Answer, Failure};
use gputrail_abi::lock;
use gputrail_record::{Agent, AgentId, AgentKind, InstructionCount, Kind, WorkId};
use gputrail_tool::{
    Batch, Buffer, BufferOptions, Context, Policy, RecordFormat, Status, describe,
};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::sync::{Arc, Mutex};

/// The name of the trace.
pub const NAME: &CStr = c"GPUTRAIL_INSTRUCTION_TRACE";
/// Its description.
pub const DESCRIPTION: &CStr =
    c"What each instruction of a kernel did: executions, lanes, diverged branches and \
    transactions of memory (rocprofiler_gputrail_instruction_t)";
/// The most entries of a kernel.
const MAX_ENTRIES: usize = 1 << 16;

/// The action of an instruction (`rocprofiler_gputrail_instruction_t`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Entry {
    /// From the begin of the code object.
    pub offset: u64,
    /// Executions by wavefronts.
    pub executed: u64,
    /// Executions by lanes.
    pub lanes: u64,
    /// Branches that lanes took differently.
    pub diverged: u64,
    /// Transactions of memory, and those that an ideal pattern would have.
    pub transactions: u64,
    pub ideal_transactions: u64,
}

/// The actions of a kernel's instructions, by their offset.
type Entries = BTreeMap<u64, Entry>;

/// The kernels whose traces are wanted.
static KERNELS: Mutex<Option<HashMap<WorkId, Entries>>> = Mutex::new(None);
/// The recording of instructions, once a context with a trace is opened.
static RECORDING: Mutex<Option<Arc<(Buffer, Context)>>> = Mutex::new(None);

/// Whether a device has the trace.
pub fn has(agent: AgentId) -> bool {
    describe::<Agent>(agent).is_ok_and(|agent| agent.kind == AgentKind::SIMULATED)
}

/// Records instructions from now on.
pub fn record() -> Answer {
    let mut recording = lock(&RECORDING);
    if recording.is_some() {
        return Ok(());
    }
    let options = BufferOptions {
        format: RecordFormat::Raw,
        policy: Policy::Discard,
        ..BufferOptions::default()
    };
    let buffer = Buffer::new(options, |batch: Batch<'_>| {
        for record in batch.records() {
            if let Some(count) = record.get::<InstructionCount>() {
                add(count);
            }
        }
    })?;
    let context = Context::new()?;
    context.trace_to(&buffer, &[Kind::INSTRUCTION_COUNT])?;
    context.start()?;
    *recording = Some(Arc::new((buffer, context)));
    Ok(())
}

/// Keeps what the instructions of a kernel do.
pub fn want(work: WorkId) {
    lock(&KERNELS)
        .get_or_insert_default()
        .entry(work)
        .or_default();
}

fn add(count: &InstructionCount) {
    let mut kernels = lock(&KERNELS);
    let Some(entries) = kernels.as_mut().and_then(|all| all.get_mut(&count.work)) else {
        return;
    };
    if entries.len() >= MAX_ENTRIES && !entries.contains_key(&count.offset) {
        return;
    }
    let entry = entries.entry(count.offset).or_default();
    entry.offset = count.offset;
    entry.executed += count.executed;
    entry.lanes += count.threads;
    entry.diverged += count.diverged;
    entry.transactions += count.transactions;
    entry.ideal_transactions += count.ideal_transactions;
}

/// The trace of a kernel that has ended, which is not kept.
///
/// # Errors
///
/// Within a callback, which cannot wait for the records.
pub fn take(work: WorkId) -> Answer<Vec<Entry>> {
    let recording = lock(&RECORDING).clone();
    if let Some(recording) = recording {
        // After gputrail's end, all records have been delivered.
        if recording
            .0
            .flush()
            .is_err_and(|error| error.status == Status::BUSY)
        {
            let text = "the records of the trace cannot be waited for in a callback";
            return Err(Failure::state(text));
        }
    }
    let mut kernels = lock(&KERNELS);
    let entries = kernels.as_mut().and_then(|all| all.remove(&work));
    Ok(entries.unwrap_or_default().into_values().collect())
}

/// Nobody wants the trace of a kernel.
pub fn forget(work: WorkId) {
    if let Some(kernels) = &mut *lock(&KERNELS) {
        kernels.remove(&work);
    }
}
