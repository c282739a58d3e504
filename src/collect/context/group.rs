//! Groups of counters that code starts, stops, reads and resets (ROCProfiler v1: `rocprofiler_group_start`, `_stop`,
//! `_read`, `_reset`; CUPTI: event groups).
//!
//! A group uses the [counter collection service](crate::counting) while it is started, with a context and a buffer
//! of its own, and adds up the values that come. So only one group of a process is started at a time, and none while another
//! context counts or samples.

use super::{BufferOptions, Context, RecordBuffer, RecordSelection, ToolError};
use crate::counting::{CountingError, CountingRequest};
use crate::process;
use crate::switchboard::Switchboard;
use gputrail_buffer::platform::sync::QuietMutex;
use gputrail_counters::{
    Architecture, CounterIndex, Definition, Formula, Invalid, Measured, Reduction, Resolution,
    Usage, evaluate,
};
use gputrail_interface::counting::{CountingMode, GroupOptions, GroupValue, Number};
use gputrail_record::{AgentId, CounterInvalid, CounterValue, CounterValueType, Kind, StringId};
use std::sync::Arc;

/// Why a group could not be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The group is started already.
    #[error("the group of counters is started already")]
    Started,
    /// The group is not started.
    #[error("the group of counters is not started")]
    Stopped,
    /// A metric that does not follow from the sums of its counters.
    #[error(
        "{name} is a percentage or ratio, which the sums of its counters do not tell: name the counters of its formula"
    )]
    DoesNotAddUp {
        /// The metric.
        name: String,
    },
    /// The service refused it.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

#[derive(Clone)]
struct GroupSum {
    counter: StringId,
    index: CounterIndex,
    value: GroupValue,
}

/// Where a value of a group comes from.
enum ValueOrigin {
    /// The sum of this counter or metric.
    Sum(CounterIndex),
    /// The sums of the counters of this percentage or ratio.
    Formula(CounterIndex),
}

/// A group of counters and metrics of one agent. Dropping it stops it.
pub struct CounterGroup {
    board: Arc<Switchboard>,
    agent: AgentId,
    request: CountingRequest,
    /// The values, in the order of the names.
    shown: Vec<ValueOrigin>,
    buffer: RecordBuffer,
    sums: Arc<QuietMutex<Vec<GroupSum>>>,
    /// While it is started.
    context: QuietMutex<Option<Context>>,
}

impl CounterGroup {
    /// A group of `names`, stopped.
    ///
    /// # Errors
    ///
    /// [`GroupError::DoesNotAddUp`]; as for [`Context::count`] and for the creation of a [`RecordBuffer`].
    pub fn new(
        agent: AgentId,
        names: &[impl AsRef<str>],
        options: GroupOptions,
    ) -> Result<CounterGroup, GroupError> {
        let board = process::begin_for_tool().ok_or(ToolError::NotAvailable)?;
        Self::on(board, agent, names, options)
    }

    /// A group of an agent of `board`.
    ///
    /// # Errors
    ///
    /// As for [`CounterGroup::new`].
    pub fn on(
        board: &Arc<Switchboard>,
        agent: AgentId,
        names: &[impl AsRef<str>],
        options: GroupOptions,
    ) -> Result<CounterGroup, GroupError> {
        let counting = board.counting();
        if options.mode == CountingMode::Range {
            // A group has a begin and an end of its own.
            let (_, agent) = counting
                .named_configurations(agent)
                .map_err(ToolError::from)?;
            let mode = options.mode;
            return Err(ToolError::from(CountingError::Mode { agent, mode }).into());
        }
        let request = counting.request(agent, names, options.mode, options.per_pass);
        let request = request.map_err(ToolError::from)?;
        let (shown, counted) = shown(request.set.architecture(), request.set.wanted())?;
        let request = counting.request(agent, &counted, options.mode, options.per_pass);
        let request = request
            .map_err(ToolError::from)?
            .with_instances(options.instances);
        let fresh = sums(board, &request);
        let sums = Arc::<QuietMutex<Vec<GroupSum>>>::default();
        *sums.lock() = fresh;
        let into = sums.clone();
        let buffer = RecordBuffer::on(board, BufferOptions::default(), move |batch| {
            let mut sums = into.lock();
            for record in batch.records() {
                if let Some(value) = record.read::<CounterValue>() {
                    add(&mut sums, &value);
                }
            }
        })?;
        Ok(CounterGroup {
            board: board.clone(),
            agent,
            request,
            shown,
            buffer,
            sums,
            context: QuietMutex::default(),
        })
    }

    /// Starts counting; what has been counted before stays.
    ///
    /// # Errors
    ///
    /// [`GroupError::Started`]; as for [`Context::count`], if another group or context of the process counts.
    pub fn start(&self) -> Result<(), GroupError> {
        let mut started = self.context.lock();
        if started.is_some() {
            return Err(GroupError::Started);
        }
        let context = Context::on(&self.board)?;
        context.trace_to(
            &self.buffer,
            RecordSelection::kinds(&[Kind::KERNEL_DISPATCH]),
        )?;
        context.count_request(&self.buffer, self.agent, self.request.clone())?;
        context.start()?;
        *started = Some(context);
        Ok(())
    }

    /// Stops counting. Other groups can be started.
    ///
    /// # Errors
    ///
    /// [`GroupError::Stopped`]; [`ToolError::Busy`] within callbacks.
    pub fn stop(&self) -> Result<(), GroupError> {
        let context = self.context.lock().take().ok_or(GroupError::Stopped)?;
        let stopped = context.stop();
        drop(context);
        stopped?;
        Ok(self.buffer.flush()?)
    }

    /// What has been counted so far, in the order of the names. The group may be started: kernels that run are not in it.
    ///
    /// # Errors
    ///
    /// [`ToolError::Busy`] within callbacks.
    pub fn read(&self) -> Result<Vec<GroupValue>, GroupError> {
        self.buffer.flush()?;
        let sums = self.sums.lock();
        let architecture = self.request.set.architecture();
        let values = self.shown.iter().filter_map(|shown| match shown {
            ValueOrigin::Sum(index) => {
                let found = sums.iter().find(|sum| sum.index == *index);
                found.map(|sum| sum.value.clone())
            }
            ValueOrigin::Formula(index) => Some(computed(architecture, *index, &sums)),
        });
        Ok(values.collect())
    }

    /// Forgets what has been counted. The group may be started.
    ///
    /// # Errors
    ///
    /// [`ToolError::Busy`] within callbacks.
    pub fn reset(&self) -> Result<(), GroupError> {
        self.buffer.flush()?;
        let fresh = sums(&self.board, &self.request);
        *self.sums.lock() = fresh;
        Ok(())
    }

    /// The number of passes of a kernel that the group needs.
    pub fn passes(&self) -> usize {
        self.request.set.passes().len()
    }
}

impl Drop for CounterGroup {
    fn drop(&mut self) {
        // It may be stopped.
        let _ = self.stop();
    }
}

impl std::fmt::Debug for CounterGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CounterGroup")
            .field("agent", &self.agent)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// The values that a group shows of `wanted`, and the names of what it counts for them.
fn shown(
    architecture: &Architecture,
    wanted: &[CounterIndex],
) -> Result<(Vec<ValueOrigin>, Vec<String>), GroupError> {
    let (mut shown, mut counted) = (Vec::new(), Vec::new());
    let mut count = |index| {
        let name = &architecture.counter(index).name;
        if !counted.contains(name) {
            counted.push(name.clone());
        }
    };
    for index in wanted {
        let counter = architecture.counter(*index);
        if !matches!(counter.usage, Usage::Percentage | Usage::Ratio) {
            count(*index);
            shown.push(ValueOrigin::Sum(*index));
            continue;
        }
        match &counter.definition {
            Definition::Derived(_, formula) if follows_from_sums(architecture, formula) => {
                let counters = architecture.basic_counters(*index);
                counters.iter().for_each(|(index, _)| count(*index));
                shown.push(ValueOrigin::Formula(*index));
            }
            _ => {
                let name = counter.name.clone();
                return Err(GroupError::DoesNotAddUp { name });
            }
        }
    }
    Ok((shown, counted))
}

/// Whether the sums of its counters over their instances, and over dispatches or periods, tell the value of a formula.
fn follows_from_sums(architecture: &Architecture, formula: &Formula) -> bool {
    let instances = |index: CounterIndex| match architecture.counter(index).definition {
        Definition::Basic { block, .. } => architecture.blocks()[block.0 as usize].instances,
        Definition::Derived(..) => None,
    };
    match formula {
        Formula::Number(_) => true,
        Formula::Counter(index, Resolution::None) => instances(*index) == Some(1),
        Formula::Metric(index) => match &architecture.counter(*index).definition {
            Definition::Derived(_, formula) => follows_from_sums(architecture, formula),
            Definition::Basic { .. } => false,
        },
        Formula::Binary(_, operands) => operands
            .iter()
            .all(|operand| follows_from_sums(architecture, operand)),
        Formula::Reduce(reduction, of, count) => match **of {
            Formula::Counter(index, Resolution::None) if *reduction == Reduction::Sum => {
                count.is_none_or(|count| instances(index).is_some_and(|all| all <= count))
            }
            _ => follows_from_sums(architecture, of),
        },
        Formula::Counter(..)
        | Formula::Instance(..)
        | Formula::Property(_)
        | Formula::Select(..) => false,
    }
}

/// The value of a percentage or ratio, by the sums of its counters.
fn computed(architecture: &Architecture, index: CounterIndex, sums: &[GroupSum]) -> GroupValue {
    let counters = architecture.basic_counters(index);
    let mut measured = Measured {
        dispatches: 1,
        ..Measured::default()
    };
    let mut value = GroupValue {
        name: architecture.counter(index).name.clone(),
        value: Number::Double(0.0),
        readings: u64::MAX,
        invalid: 0,
        reason: CounterInvalid::NO,
        sampled_instances: 1,
        total_instances: 1,
    };
    for counted in counters {
        let Some(sum) = sums.iter().find(|sum| sum.index == counted.0) else {
            continue;
        };
        let total = match sum.value.value {
            Number::Uint(total) => total as f64,
            Number::Double(total) => total,
        };
        measured.counters.insert(counted, vec![vec![total]]);
        value.readings = value.readings.min(sum.value.readings);
        if sum.value.invalid > value.invalid {
            (value.invalid, value.reason) = (sum.value.invalid, sum.value.reason);
        }
    }
    let columns = evaluate(architecture, &[index], &measured);
    match columns.first().map(|column| column.get(0)) {
        Some(Ok(number)) => value.value = Number::Double(number),
        failed => {
            value.reason = match failed {
                Some(Err(Invalid::DivisionByZero)) => CounterInvalid::DIVISION_BY_ZERO,
                Some(Err(Invalid::Overflow)) => CounterInvalid::OVERFLOW,
                _ => CounterInvalid::MISSING,
            };
            (value.readings, value.invalid) = (0, value.invalid.max(1));
        }
    }
    value
}

/// Sums of nothing.
fn sums(board: &Switchboard, request: &CountingRequest) -> Vec<GroupSum> {
    let set = &request.set;
    let architecture = set.architecture();
    let sum = |index: &_| {
        let counter = architecture.counter(*index);
        let name = counter.name.clone();
        let (value, total) = match counter.definition {
            Definition::Basic { block, .. } => {
                let block = &architecture.blocks()[block.0 as usize];
                let zero = match architecture.library() {
                    // It computes values.
                    Some(_) => Number::Double(0.0),
                    None => Number::Uint(0),
                };
                (zero, block.instances.unwrap_or(1))
            }
            Definition::Derived(..) => (Number::Double(0.0), 1),
        };
        let sampled = set.instances().map_or(total, |most| most.get().min(total));
        GroupSum {
            counter: board.names().string(&name),
            index: *index,
            value: GroupValue {
                name,
                value,
                readings: 0,
                invalid: 0,
                reason: CounterInvalid::NO,
                sampled_instances: sampled,
                total_instances: total,
            },
        }
    };
    set.wanted().iter().map(sum).collect()
}

fn add(sums: &mut [GroupSum], value: &CounterValue) {
    let Some(sum) = sums.iter_mut().find(|sum| sum.counter == value.counter) else {
        return;
    };
    let sum = &mut sum.value;
    let Some(number) = value.number() else {
        sum.invalid += 1;
        sum.reason = value.invalid;
        return;
    };
    sum.readings += 1;
    match &mut sum.value {
        Number::Uint(total) if value.value_type == CounterValueType::UINT64 => {
            *total = total.saturating_add(value.value);
        }
        Number::Double(total) => *total += number,
        Number::Uint(_) => {}
    }
}
