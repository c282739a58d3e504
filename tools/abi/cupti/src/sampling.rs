//! Samples of the program counter, and what instructions did: source-level kinds of activity records.
//!
//! One context of gputrail samples the devices for which the kind is enabled, and has executed instructions counted. What it
//! wants is fixed when it starts, so that each change makes a new one.
//!
//! | kind | here |
//! |---|---|
//! | `PC_SAMPLING` | one record (`CUpti_ActivityPCSampling3`) for each kernel, instruction and reason; with it come `PC_SAMPLING_RECORD_INFO` and `SOURCE_LOCATOR`. `pcOffset` counts from the begin of the code object. The period in nanoseconds is in `samplingPeriodInCycles` where the device counts time |
//! | `PC_SAMPLING_RECORD_INFO` | of each kernel that was sampled; enabled alone, it has the kernels sampled, too |
//! | `SOURCE_LOCATOR` | of each line that another record of these kinds refers to, where the code has lines (of PoCL only as far as it writes them) |
//! | `INSTRUCTION_CORRELATION` | of each instruction of the sampled functions |
//! | `INSTRUCTION_EXECUTION`, `GLOBAL_ACCESS`, `BRANCH`, `SHARED_ACCESS` | exact counts, of the simulated GPU. Of processors there are no records: nothing counts their instructions one by one. Lanes that a predicate has switched off are not told apart |
//! | `EVENT`, `EVENT_INSTANCE`, `METRIC`, `METRIC_INSTANCE`, `INSTANTANEOUS_...` | `NOT_COMPATIBLE`: the text has them for records that profilers make themselves |

use crate::activity::record::{self, ActivityRecord};
use crate::activity::{ActivityKind, correlation, put, wanted};
use crate::counting::engine;
use crate::objects::{self, CUcontext};
use crate::result::{Answer, CUptiResult};
use crate::{pc_sampling, with_gputrail};
use gputrail_abi::{Watch, lock, names};
use gputrail_buffer::platform::internal_thread;
use gputrail_record::{
    AccessDirection, AgentId, ContextId, InstructionClass, InstructionCorrelation,
    InstructionCount, InstructionType, KernelDispatch, KernelId, KernelSymbol, Kind, Module,
    NotIssued, RecordRef, SampleAggregate, SamplingTotals, SamplingUnit, SourceLocator,
    StallReason, WorkId,
};
use gputrail_tool::events::resource;
use gputrail_tool::sampling::{Configuration, Deliver, PeriodLevel, SamplingPeriod};
use gputrail_tool::{
    self as tool, Batch, Buffer, BufferOptions, Context, Policy, RecordFormat, Status,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Kinds for which instructions are counted.
const COUNTS: u64 = ActivityKind::GLOBAL_ACCESS.bit()
    | ActivityKind::BRANCH.bit()
    | ActivityKind::SHARED_ACCESS.bit()
    | ActivityKind::INSTRUCTION_EXECUTION.bit();
/// Kinds for which devices are sampled.
const SAMPLED: [ActivityKind; 2] = [
    ActivityKind::PC_SAMPLING,
    ActivityKind::PC_SAMPLING_RECORD_INFO,
];
const SAMPLES: u64 = SAMPLED[0].bit() | SAMPLED[1].bit();
/// All kinds of this module.
const ALL: u64 = COUNTS
    | SAMPLES
    | ActivityKind::SOURCE_LOCATOR.bit()
    | ActivityKind::INSTRUCTION_CORRELATION.bit();

/// How often devices are sampled that have no period of their own.
const PERIOD: SamplingPeriod = SamplingPeriod {
    level: PeriodLevel::MID,
    exponent: 0,
};

/// The devices that are sampled, of those that can be.
fn sampled_agents(
    periods: &HashMap<AgentId, SamplingPeriod>,
) -> Result<BTreeMap<AgentId, SamplingPeriod>, tool::Error> {
    let enabled = wanted::enabled().unwrap_or_default();
    let everywhere = SAMPLED.into_iter().any(|kind| enabled.has(kind));
    let others = pc_sampling::agents();
    let mut agents = BTreeMap::new();
    for agent in tool::sampling::agents()? {
        let other = others.iter().find(|(of, _)| *of == agent);
        let of_agent = |context| {
            let context = tool::describe::<gputrail_record::Context>(context);
            context.is_ok_and(|context| context.agent == agent)
        };
        let is_sampled = other.is_some() || everywhere || enabled.contexts(SAMPLES).any(of_agent);
        if is_sampled && !tool::sampling::configurations(agent)?.is_empty() {
            let period = other.and_then(|(_, period)| *period);
            let period = period.or_else(|| periods.get(&agent).copied());
            agents.insert(agent, period.unwrap_or(PERIOD));
        }
    }
    Ok(agents)
}

/// What is recorded.
struct Recording {
    context: Context,
    agents: BTreeMap<AgentId, SamplingPeriod>,
    kinds: Vec<Kind>,
}

#[derive(Default)]
struct State {
    /// How often devices are sampled.
    periods: HashMap<AgentId, SamplingPeriod>,
    recording: Option<Recording>,
    /// Told of devices that the process has come to know, once a kind has been enabled.
    watching: Option<Watch>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// The buffer of all recordings. It lasts as long as the process: within callbacks buffers are not destroyed.
static BUFFER: Mutex<Option<Arc<Buffer>>> = Mutex::new(None);

fn buffer() -> Result<Arc<Buffer>, tool::Error> {
    let mut buffer = lock(&BUFFER);
    if let Some(buffer) = &*buffer {
        return Ok(buffer.clone());
    }
    let options = BufferOptions {
        format: RecordFormat::Raw,
        policy: Policy::Discard,
        ..BufferOptions::default()
    };
    let new = Buffer::new(options, |batch: Batch<'_>| {
        batch.records().for_each(translate);
    })?;
    Ok(buffer.insert(Arc::new(new)).clone())
}

impl Recording {
    fn new(
        agents: BTreeMap<AgentId, SamplingPeriod>,
        kinds: Vec<Kind>,
    ) -> Result<Recording, tool::Error> {
        let (buffer, context) = (buffer()?, Context::new()?);
        context.trace_to(&buffer, &kinds)?;
        for (agent, period) in &agents {
            context.sample_every(&buffer, *agent, *period, Deliver::Aggregates)?;
        }
        context.start()?;
        Ok(Recording {
            context,
            agents,
            kinds,
        })
    }
}

impl State {
    /// Records what is asked for.
    fn update(&mut self) -> Answer {
        let wanted = wanted::anywhere() & ALL;
        let agents = sampled_agents(&self.periods).map_err(failed)?;
        let mut kinds = Vec::new();
        if wanted & COUNTS != 0 {
            kinds.push(Kind::INSTRUCTION_COUNT);
        }
        // Where results have lines, these are told.
        if wanted != 0 {
            kinds.push(Kind::SOURCE_LOCATOR);
        }
        if wanted & ActivityKind::INSTRUCTION_CORRELATION.bit() != 0 {
            kinds.push(Kind::INSTRUCTION_CORRELATION);
        }
        // Samples belong to kernels, which therefore are recorded.
        if !agents.is_empty() {
            kinds.push(Kind::KERNEL_DISPATCH);
        }
        let is_same =
            |recording: &Recording| recording.agents == agents && recording.kinds == kinds;
        if self.recording.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        if let Some(recording) = self.recording.take() {
            recording.context.stop().map_err(failed)?;
        }
        if !kinds.is_empty() {
            self.recording = Some(Recording::new(agents, kinds).map_err(failed)?);
        }
        Ok(())
    }

    /// Has devices sampled that the process comes to know later.
    fn watch(&mut self) -> Answer {
        if self.watching.is_some() {
            return Ok(());
        }
        self.watching = Some(Watch::new(&[resource::AGENT_KNOWN], |_| {
            // A device that cannot be sampled is not.
            let _ = lock(&STATE).get_or_insert_default().update();
        })?);
        Ok(())
    }
}

fn failed(error: tool::Error) -> CUptiResult {
    match error.status {
        Status::CONTEXT_CONFLICT | Status::BUSY => CUptiResult::NOT_COMPATIBLE,
        Status::SAMPLING_INCOMPATIBLE_SYSTEM | Status::SAMPLING_NOT_AVAILABLE => {
            CUptiResult::NOT_SUPPORTED
        }
        Status::SAMPLING_FAILED => CUptiResult::HARDWARE,
        _ => error.into(),
    }
}

/// Enables or disables a kind, in one context or in all.
///
/// # Errors
///
/// What `cuptiActivityEnable` and its like return.
pub fn enable(kind: ActivityKind, within: Option<ContextId>, on: bool) -> Answer {
    if !on {
        flush();
    }
    let mut state = lock(&STATE);
    let state = state.get_or_insert_default();
    state.watch()?;
    let (_, before) = wanted::set(kind, within, Some(on));
    let updated = state.update();
    if updated.is_err() {
        wanted::set(kind, within, before);
        let _ = state.update();
    }
    updated
}

/// Records what is asked for, after that has changed.
///
/// # Errors
///
/// What `cuptiActivityEnable` and its like return.
pub fn update() -> Answer {
    let mut state = lock(&STATE);
    let state = state.get_or_insert_default();
    state.watch()?;
    state.update()
}

/// How long a callback waits for its samples.
const LONGEST_FLUSH: Duration = Duration::from_secs(2);

/// Puts what has been recorded into the sink. Tools stop sampling in the callback of a context that ends, where gputrail flushes
/// nothing on the calling thread: another one does, and is waited for.
pub fn flush() {
    let Some(buffer) = lock(&BUFFER).clone() else {
        return;
    };
    if buffer
        .flush()
        .is_err_and(|error| error.status == Status::BUSY)
    {
        let (done, is_done) = std::sync::mpsc::channel();
        let flush = move || {
            let _ = buffer.flush();
            let _ = done.send(());
        };
        if internal_thread::spawn(flush).is_ok() {
            let _ = is_done.recv_timeout(LONGEST_FLUSH);
        }
    }
}

/// Ends all. What has been recorded is delivered.
pub fn finish() {
    let state = lock(&STATE).take();
    if let Some(mut state) = state {
        drop(state.recording.take());
        flush();
    }
}

/// `CUpti_ActivityPCSamplingConfig`
#[derive(Copy, Clone)]
#[repr(C)]
pub struct PcSamplingConfig {
    /// The size of the structure; the third field came later.
    size: u32,
    period: u32,
    exponent: u32,
}

/// The size of [`PcSamplingConfig`] in its first version.
const FIRST_SIZE: usize = 8;

/// Says how often the device of a context is sampled.
///
/// # Safety
///
/// `config` is null or leads to as many bytes as its first field says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityConfigurePCSampling(
    context: CUcontext,
    config: *mut PcSamplingConfig,
) -> CUptiResult {
    with_gputrail(|| {
        if config.is_null() || !config.is_aligned() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: `config` is not null, so that it leads to the field with its size.
        let size = unsafe { (*config).size as usize };
        if size < FIRST_SIZE {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: the structure has the field, as its size says.
        let level = unsafe { (*config).period };
        let exponent = match size < size_of::<PcSamplingConfig>() {
            true => 0,
            // SAFETY: the structure has the field, as its size says.
            false => unsafe { (*config).exponent },
        };
        let is_known = match exponent {
            0 => (1..=5).contains(&level),
            exponent => (5..=31).contains(&exponent),
        };
        if !is_known {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        let of = objects::context(context).map_err(|_| CUptiResult::INVALID_PARAMETER)?;
        if engine::is_set(of.id) {
            return Err(CUptiResult::INVALID_OPERATION);
        }
        let period = SamplingPeriod {
            level: PeriodLevel(level),
            exponent,
        };
        let mut state = lock(&STATE);
        let state = state.get_or_insert_default();
        // A device that is sampled offers no other period.
        drop(state.recording.take());
        if let Err(refused) = check(of.agent, exponent) {
            let _ = state.update();
            return Err(refused);
        }
        let before = state.periods.insert(of.agent, period);
        let updated = state.update();
        if updated.is_err() {
            match before {
                Some(before) => state.periods.insert(of.agent, before),
                None => state.periods.remove(&of.agent),
            };
            let _ = state.update();
        }
        updated
    })
}

/// Whether an agent is sampled by cycles.
pub fn counts_cycles(agent: AgentId) -> bool {
    let possible = tool::sampling::configurations(agent).unwrap_or_default();
    possible.iter().any(|one| one.unit == SamplingUnit::CYCLES)
}

/// Whether an agent can be sampled, if `exponent` is not 0 once in 2 to that many cycles.
pub fn check(agent: AgentId, exponent: u32) -> Answer {
    let possible = match tool::sampling::configurations(agent) {
        Ok(possible) => possible,
        Err(error) if error.status == Status::NO_SUCH_AGENT => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    let fits = |one: &Configuration| {
        let cycles = 1 << exponent;
        one.unit == SamplingUnit::CYCLES && (one.min..=one.max).contains(&cycles)
    };
    if possible.is_empty() || exponent != 0 && !possible.iter().any(fits) {
        Err(CUptiResult::NOT_SUPPORTED)
    } else {
        Ok(())
    }
}

/// The contexts of work that is sampled, until its totals come: those of kernels, as far as they are known.
static CONTEXTS: Mutex<BTreeMap<WorkId, ContextId>> = Mutex::new(BTreeMap::new());
/// The most of them that are kept.
const MAX_CONTEXTS: usize = 1 << 16;

/// The context that a kernel is loaded in.
fn context_of(kernel: KernelId) -> ContextId {
    let kernel = tool::describe::<KernelSymbol>(kernel);
    let module = kernel.and_then(|kernel| tool::describe::<Module>(kernel.module));
    module.map_or(ContextId::NONE, |module| module.context)
}

/// Keeps the context of work for its totals.
fn keep(work: WorkId, context: ContextId) {
    let differs = || wanted::enabled().is_some_and(|enabled| enabled.differs());
    if context.is_some() && (pc_sampling::is_active() || differs()) {
        let mut contexts = lock(&CONTEXTS);
        contexts.insert(work, context);
        if contexts.len() > MAX_CONTEXTS {
            contexts.pop_first();
        }
    }
}

/// Whether records of a kind are wanted of what `context` finds: of no context, if they are wanted everywhere.
fn is_wanted(kind: ActivityKind, context: impl FnOnce() -> ContextId) -> bool {
    let enabled = wanted::is_anywhere(kind).then(wanted::enabled).flatten();
    enabled.is_some_and(|enabled| match enabled.differs() {
        true => enabled.has_in(kind, context()),
        false => enabled.has(kind),
    })
}

/// A number as a field of 32 bits has it.
fn narrow(number: u64) -> u32 {
    number.min(u32::MAX.into()) as u32
}

/// Puts what is made from a record into the sink.
fn translate(of: RecordRef<'_>) {
    if let Some(kernel) = of.get::<KernelDispatch>() {
        keep(kernel.work.id, kernel.work.context);
    } else if let Some(sample) = of.get::<SampleAggregate>() {
        let context = context_of(sample.kernel);
        keep(sample.work, context);
        pc_sampling::add(sample, context);
        if is_wanted(ActivityKind::PC_SAMPLING, || context) {
            put(&sampled(sample));
        }
    } else if let Some(totals) = of.get::<SamplingTotals>() {
        let context = lock(&CONTEXTS).remove(&totals.work);
        let context = context.unwrap_or(ContextId::NONE);
        pc_sampling::add_totals(totals, context);
        let context = || context;
        // Of what is sampled, the totals are told, too.
        if SAMPLED.into_iter().any(|kind| is_wanted(kind, context)) {
            let mut one = record::PcSamplingRecordInfo::blank();
            one.correlation_id = correlation(totals.correlation);
            one.total_samples = totals.total;
            one.dropped_samples = totals.dropped;
            one.sampling_period_in_cycles = totals.interval;
            put(&one);
        }
    } else if let Some(line) = of.get::<SourceLocator>()
        && wanted::anywhere() & ALL != 0
    {
        let mut one = record::SourceLocator::blank();
        one.id = line.id.0;
        one.line_number = line.line;
        one.file_name = names::of_string(line.file);
        put(&one);
    } else if let Some(instruction) = of.get::<InstructionCorrelation>() {
        if is_wanted(ActivityKind::INSTRUCTION_CORRELATION, || {
            context_of(instruction.kernel)
        }) {
            let mut one = record::InstructionCorrelation::blank();
            one.flags = class(instruction.instruction);
            one.source_locator_id = instruction.source_locator.0;
            one.function_id = instruction.kernel.0;
            one.pc_offset = narrow(instruction.offset);
            put(&one);
        }
    } else if let Some(count) = of.get::<InstructionCount>() {
        counted(count);
    }
}

fn sampled(sample: &SampleAggregate) -> record::PcSampling3 {
    let mut one = record::PcSampling3::blank();
    one.source_locator_id = sample.source_locator.0;
    one.correlation_id = correlation(sample.correlation);
    one.function_id = sample.kernel.0;
    one.latency_samples = narrow(sample.latency_samples);
    one.samples = narrow(sample.samples);
    // Reasons of later versions are those that they are cases of.
    one.stall_reason = match sample.stall {
        known if known.0 <= StallReason::SLEEPING.0 => known.0.into(),
        later => StallReason::from(NotIssued::from(later)).0.into(),
    };
    one.pc_offset = sample.offset;
    one
}

/// The class of an instruction (`CUpti_ActivityInstructionClass`) in flags.
fn class(of: InstructionType) -> u32 {
    let class = match of {
        InstructionType::TEX => 12,
        InstructionType::LDS | InstructionType::LDS_DIRECT => 7,
        InstructionType::FLAT => 9,
        InstructionType::BARRIER => 17,
        InstructionType::BRANCH_NOT_TAKEN
        | InstructionType::BRANCH_TAKEN
        | InstructionType::JUMP => 5,
        InstructionType::EXPORT | InstructionType::MESSAGE | InstructionType::OTHER => 18,
        // What is computed, and with which types, is not known.
        _ => 0,
    };
    class << 1
}

/// Puts what an instruction did: its execution, and its branch or access.
fn counted(count: &InstructionCount) {
    let (line, call) = (count.source_locator.0, correlation(count.correlation));
    let (function, executed) = (count.kernel.0, narrow(count.executed));
    let is_wanted = |kind| is_wanted(kind, || context_of(count.kernel));
    // Of an access: bytes of each lane, and CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_LOAD or its like.
    let access = match count.access {
        AccessDirection::LOAD => u32::from(count.bytes) | 1 << 8,
        _ => u32::from(count.bytes),
    };
    if is_wanted(ActivityKind::INSTRUCTION_EXECUTION) {
        let mut one = record::InstructionExecution::blank();
        one.flags = class(count.instruction);
        (one.source_locator_id, one.correlation_id) = (line, call);
        (one.function_id, one.pc_offset) = (function, narrow(count.offset));
        one.threads_executed = count.threads;
        one.not_pred_off_threads_executed = count.threads;
        one.executed = executed;
        put(&one);
    }
    match count.class {
        InstructionClass::BRANCH if is_wanted(ActivityKind::BRANCH) => {
            let mut one = record::Branch2::blank();
            (one.source_locator_id, one.correlation_id) = (line, call);
            (one.function_id, one.pc_offset) = (function, narrow(count.offset));
            one.diverged = narrow(count.diverged);
            one.threads_executed = count.threads;
            one.executed = executed;
            put(&one);
        }
        InstructionClass::GLOBAL_ACCESS if is_wanted(ActivityKind::GLOBAL_ACCESS) => {
            let mut one = record::GlobalAccess3::blank();
            one.flags = access;
            (one.source_locator_id, one.correlation_id) = (line, call);
            (one.function_id, one.executed) = (function, executed);
            one.pc_offset = count.offset;
            one.threads_executed = count.threads;
            one.l2_transactions = count.transactions;
            one.theoretical_l2_transactions = count.ideal_transactions;
            put(&one);
        }
        InstructionClass::LOCAL_ACCESS if is_wanted(ActivityKind::SHARED_ACCESS) => {
            let mut one = record::SharedAccess::blank();
            one.flags = access;
            (one.source_locator_id, one.correlation_id) = (line, call);
            (one.function_id, one.pc_offset) = (function, narrow(count.offset));
            one.threads_executed = count.threads;
            one.shared_transactions = count.transactions;
            one.theoretical_shared_transactions = count.ideal_transactions;
            one.executed = executed;
            put(&one);
        }
        _ => {}
    }
}
