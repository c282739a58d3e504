//! The scope of a recording, as the user asks for it from outside of the program: `gputrail record --delay 5s
//! --start-on NAME --kernels 'gemm*'`, or the variable `GPUTRAIL_SCOPE`.
//!
//! The program's own calls switch the recording on and off: the operations that may do so are gated, which sends them
//! to the [`Gate`] before their consumers are looked up. Without a scope, no operation is gated.

mod gate;

pub(crate) use gate::Due;
pub use gate::Gate;

use crate::counting::CounterChoice;
use gputrail_buffer::Policy;
use gputrail_buffer::clock::SystemClock;
use gputrail_capture::description::SELECTED;
use gputrail_counters::{KernelSelection, NumberRange};
use gputrail_interface::counting::CountingMode;
use gputrail_interface::sampling::Request;
use gputrail_record::{Domain, Kind, Nanos, SamplingMethod, SamplingUnit};
use std::fmt;
use std::time::Duration;
use wildmatch::WildMatch;

/// The variable that holds a scope, as [`Scope::to_text`] writes it.
pub const SCOPE_VARIABLE: &str = "GPUTRAIL_SCOPE";

/// Describes a recording by this policy, made in this `manner`.
pub(crate) fn configuration(manner: &str, policy: Policy, scope: &Scope) -> String {
    format!("{manner}, {policy} policy{}", selected(scope))
}

/// The end of a description: what the scope selects, or nothing if that is everything.
pub fn selected(scope: &Scope) -> String {
    if scope.is_everything() {
        String::new()
    } else {
        format!("{SELECTED}{}", scope.to_text())
    }
}

/// The APIs whose calls are recorded only if the scope names them: HIP makes several calls of HSA for each of its own, at every launch
/// of a kernel, too.
const ON_REQUEST: [Domain; 1] = [Domain::HSA];

/// The scope of a recording: what to record, and when. The default is everything, always, but the calls of HSA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Nothing is recorded before this time, on CLOCK_BOOTTIME.
    pub not_before: Option<Nanos>,
    /// The recording is over this long after it has begun.
    pub duration: Option<Duration>,
    /// The recording is switched on by each API call, marker, range or external id of this name; `*` stands for any
    /// letters, and `?` for one.
    pub start_on: Option<String>,
    /// The recording is switched off by each of this name: until the next one that switches it on, if there is such a
    /// name.
    pub stop_on: Option<String>,
    /// A flight recorder is dumped with each one of this name.
    pub dump_on: Option<String>,
    /// Only records of these kinds, if any are named.
    pub kinds: Vec<Kind>,
    /// Only calls of these names, or, with `!` before it, none of these.
    pub calls: Vec<String>,
    /// Only kernels of these names, or, with `!` before it, none of these.
    pub kernels: Vec<String>,
    /// How agents are sampled, those that can.
    pub sampling: Option<Request>,
    /// The counters that are collected, of agents that have them.
    pub counters: Option<CounterChoice>,
    /// The period at which clocks, temperature and power of agents are read, where their source does that.
    pub environment_period: Option<Duration>,
    /// Whether programs are built with line information.
    pub kernel_debug_info: bool,
    /// Whether the arguments of calls that enqueue work are left out.
    pub no_enqueue_arguments: bool,
    /// Whether pushed ranges are external ids of what happens inside of them.
    pub range_ids: bool,
    /// Whether the stacks of the host are taken in calls that enqueue work.
    pub call_stacks: bool,
}

/// Text that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// Not one of the keys.
    #[error(
        "`{0}`: expected delay=, from=, duration=, start-on=, stop-on=, dump-on=, kind=, call=, \
         kernel=, pc-sampling=, counter=, counters-period=, counters-per-pass=, counters-run=, counters-device=, counters-kernel=, counters-include=, counters-exclude=, counters-dispatches=, counters-iterations=, environment-period=, kernel-debug-info, no-enqueue-arguments, range-ids or call-stacks"
    )]
    Key(String),
    /// Not a span of time.
    #[error(
        "`{0}` is not a time: expected a number with ns, us, ms, s or m, such as 500ms or 1.5s"
    )]
    Time(String),
    /// Not a number of counters or of a run.
    #[error(
        "`{0}` is not a number that counters can have: expected 1 or more, 0 or more for a run"
    )]
    Count(String),
    /// Not a kind that the recording makes.
    #[error("`{0}` is not a kind of record; the kinds are: {known}", known = known_kinds())]
    Kind(String),
    /// Not a way to sample.
    #[error(
        "`{0}` is no way to sample, expected host-trap or stochastic and an interval, such as host-trap,1ms or \
         stochastic,65536cycles"
    )]
    Sampling(String),
    /// A name that the text cannot hold.
    #[error("`{0}`: a name must not be empty or contain a semicolon")]
    Name(String),
}

/// Kinds that a scope may name.
const KINDS: [Kind; 17] = [
    Kind::API,
    Kind::KERNEL_DISPATCH,
    Kind::MEMORY_COPY,
    Kind::MEMORY_SET,
    Kind::MEMORY_ALLOCATION,
    Kind::SYNCHRONIZATION,
    Kind::DEPENDENCY,
    Kind::CHILD_KERNEL,
    Kind::GRAPH_NODE,
    Kind::GRAPH_CHANGE,
    Kind::ARGUMENTS,
    Kind::OVERHEAD,
    Kind::MARKER,
    Kind::ENVIRONMENT,
    Kind::UNIFIED_MEMORY_COUNTER,
    Kind::PREEMPTION,
    Kind::INSTRUCTION_COUNT,
];

fn kind_text(kind: Kind) -> String {
    kind.name().unwrap_or_default().replace(' ', "-")
}

fn known_kinds() -> String {
    KINDS.map(kind_text).join(", ")
}

/// The kind of this name, `memory-copy` say.
pub fn kind(text: &str) -> Result<Kind, ScopeError> {
    KINDS
        .into_iter()
        .find(|kind| kind_text(*kind) == text)
        .ok_or_else(|| ScopeError::Kind(text.into()))
}

/// A span of time as people write it: `500ms`, `1.5s`.
pub fn time(text: &str) -> Result<Duration, ScopeError> {
    let error = || ScopeError::Time(text.into());
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        _ => return Err(error()),
    };
    let number: f64 = digits.parse().map_err(|_| error())?;
    // A year is more than anybody means, and less than what overflows.
    if !(0.0..=366.0 * 86400.0).contains(&(number * unit)) {
        return Err(error());
    }
    Ok(Duration::from_secs_f64(number * unit))
}

/// A way to sample: a method and an interval, `host-trap,1ms` or `stochastic,65536cycles`.
pub fn sampling(text: &str) -> Result<Request, ScopeError> {
    let error = || ScopeError::Sampling(text.into());
    let (method, interval) = text.split_once(',').ok_or_else(error)?;
    let method = SamplingMethod::from_name(method.trim()).ok_or_else(error)?;
    let (interval, unit) = interval_of(interval.trim())?;
    Ok(Request {
        method,
        unit,
        interval,
    })
}

/// An interval between samples: a time, or a number of cycles or instructions.
pub fn interval_of(text: &str) -> Result<(u64, SamplingUnit), ScopeError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match SamplingUnit::from_name(&text[digits.len()..]) {
        Some(unit) if unit != SamplingUnit::TIME => {
            let interval = digits.trim().parse();
            Ok((
                interval.map_err(|_| ScopeError::Sampling(text.into()))?,
                unit,
            ))
        }
        _ => Ok((time(text)?.as_nanos() as u64, SamplingUnit::TIME)),
    }
}

/// A name, or pattern of names, that the text can hold.
pub fn name(text: &str) -> Result<String, ScopeError> {
    if text.is_empty() || text.contains([';', '\n', '\0']) {
        return Err(ScopeError::Name(text.into()));
    }
    Ok(text.into())
}

/// Numbers as [`NumberRange`] writes them.
fn numbers(text: &str) -> Result<NumberRange, ScopeError> {
    NumberRange::read(text).ok_or_else(|| ScopeError::Count(text.into()))
}

impl Scope {
    /// Nothing is recorded until `delay` has passed from now.
    pub fn delayed(mut self, delay: Duration) -> Scope {
        let now = SystemClock::Boottime.read().0;
        self.not_before = Some(Nanos(now.saturating_add(delay.as_nanos() as u64)));
        self
    }

    /// Reads `key=value;key=value`.
    pub fn parse(text: &str) -> Result<Scope, ScopeError> {
        let mut scope = Scope::default();
        for part in text.split(';').filter(|part| !part.trim().is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key.trim() {
                "delay" => scope = scope.delayed(time(value)?),
                "from" => {
                    let nanos = value.parse().map_err(|_| ScopeError::Time(value.into()))?;
                    scope.not_before = Some(Nanos(nanos));
                }
                "duration" => scope.duration = Some(time(value)?),
                "start-on" => scope.start_on = Some(name(value)?),
                "stop-on" => scope.stop_on = Some(name(value)?),
                "dump-on" => scope.dump_on = Some(name(value)?),
                "kind" => scope.kinds.push(kind(value)?),
                "call" => scope.calls.push(name(value)?),
                "kernel" => scope.kernels.push(name(value)?),
                "pc-sampling" => scope.sampling = Some(sampling(value)?),
                "counter" => scope.choose_counters().names.push(name(value)?),
                "counters-period" => {
                    let period = Nanos(time(value)?.as_nanos() as u64);
                    scope.choose_counters().mode = CountingMode::Device { period };
                }
                "counters-ranges" => scope.choose_counters().mode = CountingMode::Range,
                "counters-range" => scope.choose_counters().range = Some(name(value)?),
                "counters-per-pass" => {
                    let limit = value.parse().map_err(|_| ScopeError::Count(value.into()))?;
                    scope.choose_counters().per_pass = Some(limit);
                }
                "counters-run" => {
                    let run = value.parse().map_err(|_| ScopeError::Count(value.into()))?;
                    scope.choose_counters().run = Some(run);
                }
                "counters-device" => {
                    let number = value.parse().map_err(|_| ScopeError::Count(value.into()))?;
                    scope.choose_kernels().devices.push(number);
                }
                "counters-kernel" => scope.choose_kernels().names.push(name(value)?),
                "counters-include" => scope.choose_kernels().include = Some(name(value)?),
                "counters-exclude" => scope.choose_kernels().exclude = Some(name(value)?),
                "counters-dispatches" => {
                    let range = numbers(value)?;
                    scope.choose_kernels().dispatches.push(range);
                }
                "counters-iterations" => {
                    let range = numbers(value)?;
                    scope.choose_kernels().iterations.push(range);
                }
                "environment-period" => scope.environment_period = Some(time(value)?),
                "kernel-debug-info" => scope.kernel_debug_info = true,
                "no-enqueue-arguments" => scope.no_enqueue_arguments = true,
                "range-ids" => scope.range_ids = true,
                "call-stacks" => scope.call_stacks = true,
                _ => return Err(ScopeError::Key(part.into())),
            }
        }
        Ok(scope)
    }

    fn choose_kernels(&mut self) -> &mut KernelSelection {
        &mut self.choose_counters().kernels
    }

    fn choose_counters(&mut self) -> &mut CounterChoice {
        self.counters.get_or_insert_default()
    }

    /// The scope in one line, for [`SCOPE_VARIABLE`].
    pub fn to_text(&self) -> String {
        let mut parts = Vec::new();
        let mut say = |key: &str, value: String| parts.push(format!("{key}={value}"));
        if let Some(from) = self.not_before {
            say("from", from.to_string());
        }
        if let Some(duration) = self.duration {
            say("duration", format!("{}ns", duration.as_nanos()));
        }
        for (key, name) in [
            ("start-on", &self.start_on),
            ("stop-on", &self.stop_on),
            ("dump-on", &self.dump_on),
        ] {
            if let Some(name) = name {
                say(key, name.clone());
            }
        }
        for kind in &self.kinds {
            say("kind", kind_text(*kind));
        }
        for (key, names) in [("call", &self.calls), ("kernel", &self.kernels)] {
            for name in names {
                say(key, name.clone());
            }
        }
        if let Some(request) = &self.sampling {
            let method = request.method.name().unwrap_or_default();
            let unit = request.unit.name().unwrap_or_default();
            say(
                "pc-sampling",
                format!("{method},{}{unit}", request.interval),
            );
        }
        if let Some(counters) = &self.counters {
            for name in &counters.names {
                parts.push(format!("counter={name}"));
            }
            if let CountingMode::Device { period } = counters.mode {
                parts.push(format!("counters-period={period}ns"));
            }
            if counters.mode == CountingMode::Range {
                parts.push("counters-ranges".to_owned());
            }
            if let Some(range) = &counters.range {
                parts.push(format!("counters-range={range}"));
            }
            if let Some(limit) = counters.per_pass {
                parts.push(format!("counters-per-pass={limit}"));
            }
            if let Some(run) = counters.run {
                parts.push(format!("counters-run={run}"));
            }
            let kernels = &counters.kernels;
            let mut say = |key: &str, value: &dyn fmt::Display| {
                parts.push(format!("counters-{key}={value}"));
            };
            kernels.devices.iter().for_each(|of| say("device", of));
            kernels.names.iter().for_each(|of| say("kernel", of));
            kernels.include.iter().for_each(|of| say("include", of));
            kernels.exclude.iter().for_each(|of| say("exclude", of));
            let dispatches = kernels.dispatches.iter();
            dispatches.for_each(|of| say("dispatches", of));
            let iterations = kernels.iterations.iter();
            iterations.for_each(|of| say("iterations", of));
        }
        if let Some(period) = self.environment_period {
            parts.push(format!("environment-period={}ns", period.as_nanos()));
        }
        if self.kernel_debug_info {
            parts.push("kernel-debug-info".to_owned());
        }
        if self.no_enqueue_arguments {
            parts.push("no-enqueue-arguments".to_owned());
        }
        if self.range_ids {
            parts.push("range-ids".to_owned());
        }
        if self.call_stacks {
            parts.push("call-stacks".to_owned());
        }
        parts.join(";")
    }

    /// The part of the scope that decides what is recorded when, without the ways in which that is done.
    pub(crate) fn is_everything(&self) -> bool {
        let ways = Scope {
            sampling: self.sampling,
            counters: self.counters.clone(),
            environment_period: self.environment_period,
            kernel_debug_info: self.kernel_debug_info,
            no_enqueue_arguments: self.no_enqueue_arguments,
            range_ids: self.range_ids,
            call_stacks: self.call_stacks,
            ..Scope::default()
        };
        *self == ways
    }

    /// Whether there is a time or an event before which nothing is recorded.
    pub fn waits(&self) -> bool {
        self.not_before.is_some() || self.start_on.is_some()
    }

    /// Whether calls of `name` in `domain` are recorded.
    pub fn has_call(&self, domain: Domain, name: &str) -> bool {
        let is_asked_for = |pattern: &String| !pattern.starts_with('!');
        among(&self.calls, &[name])
            && (!ON_REQUEST.contains(&domain) || self.calls.iter().any(is_asked_for))
    }

    /// Whether a kernel of these names is recorded.
    pub fn has_kernel(&self, names: &[&str]) -> bool {
        among(&self.kernels, names)
    }
}

/// Whether `name` matches `pattern`.
fn matches(pattern: &str, name: &str) -> bool {
    WildMatch::new(pattern).matches(name)
}

/// Whether `patterns` let something of these names in: a name matches one of them, or there are only those that keep
/// others out, and no name matches one of these.
fn among(patterns: &[String], names: &[&str]) -> bool {
    let (out, within): (Vec<&str>, Vec<&str>) = patterns
        .iter()
        .map(|pattern| &**pattern)
        .partition(|pattern| pattern.starts_with('!'));
    let is_named = |pattern: &str| names.iter().any(|name| matches(pattern, name));
    (within.is_empty() || within.iter().any(|pattern| is_named(pattern)))
        && !out.iter().any(|pattern| is_named(&pattern[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_scope_survives_the_way_through_the_environment() {
        let text = "from=5000000000;duration=1500ms;start-on=clFinish;stop-on=step ?;dump-on=late*;kind=api;\
                    kind=memory-copy;call=clEnqueue*;call=!clEnqueueMarker*;kernel=gemm*;\
                    pc-sampling=host-trap,1ms;kernel-debug-info;no-enqueue-arguments;call-stacks";
        let scope = Scope::parse(text).unwrap();
        assert_eq!(scope.duration, Some(Duration::from_millis(1500)));
        assert_eq!(scope.kinds, [Kind::API, Kind::MEMORY_COPY]);
        assert!(scope.kernel_debug_info && scope.no_enqueue_arguments && scope.call_stacks);
        assert_eq!(Scope::parse(&scope.to_text()), Ok(scope));
        let cycles = Scope::parse("pc-sampling=stochastic,65536cycles").unwrap();
        assert_eq!(cycles.sampling.unwrap().interval, 65536);
        assert_eq!(Scope::parse(&cycles.to_text()), Ok(cycles));
        let counted =
            Scope::parse("counter=SQ_WAVES;counter=VALUBusy;counters-period=1ms;counters-per-pass=2;counters-run=0").unwrap();
        let counters = counted.counters.as_ref().unwrap();
        assert_eq!(counters.names, ["SQ_WAVES", "VALUBusy"]);
        let period = Nanos(1_000_000);
        assert_eq!(counters.mode, CountingMode::Device { period });
        assert_eq!(
            (counters.per_pass.map(|limit| limit.get()), counters.run),
            (Some(2), Some(0))
        );
        assert_eq!(Scope::parse(&counted.to_text()), Ok(counted));
        let ranges = "counter=A;counters-ranges;counters-range=step ?";
        let counted = Scope::parse(ranges).unwrap();
        assert_eq!(counted.to_text(), ranges);
        assert_eq!(counted.counters.unwrap().mode, CountingMode::Range);
        let selected = "counter=A;counters-device=1;counters-kernel=gemm;counters-include=^a=b;counters-exclude=x|y;\
                        counters-dispatches=2-;counters-iterations=3";
        assert_eq!(Scope::parse(selected).unwrap().to_text(), selected);
        assert_eq!(Scope::parse(""), Ok(Scope::default()));
        assert_eq!(Scope::default().to_text(), "");
    }

    #[test]
    fn damaged_scopes_say_what_was_expected() {
        let error = |text: &str| Scope::parse(text).unwrap_err().to_string();
        assert!(error("dely=5s").contains("expected delay="));
        assert!(error("delay=5 apples").contains("500ms"));
        assert!(error("delay=-1s").contains("is not a time"));
        assert!(error("kind=kernel").contains("kernel-dispatch"));
        assert!(error("start-on=").contains("must not be empty"));
        assert!(error("counters-per-pass=0").contains("expected 1 or more"));
        assert!(error("counters-dispatches=4-2").contains("`4-2` is not a number"));
        assert!(error("pc-sampling=often").contains("host-trap,1ms"));
        assert!(error("pc-sampling=host-trap,1 apple").contains("500ms"));
    }

    #[test]
    fn patterns_let_in_and_keep_out() {
        let calls = |patterns: &[&str], name: &str| {
            let calls = patterns
                .iter()
                .map(|pattern| (*pattern).to_owned())
                .collect();
            let scope = Scope {
                calls,
                ..Scope::default()
            };
            let domain = match name.starts_with("hsa") {
                true => Domain::HSA,
                false => Domain::OPENCL,
            };
            scope.has_call(domain, name)
        };
        assert!(calls(&[], "clFinish"));
        assert!(calls(&["clFi*"], "clFinish") && !calls(&["clFi*"], "clFlush"));
        assert!(!calls(&["!clGet*"], "clGetDeviceInfo") && calls(&["!clGet*"], "clFinish"));
        assert!(!calls(&["cl*", "!clGet*"], "clGetDeviceInfo"));
        // HIP's own calls are enough, unless HSA's are asked for.
        assert!(!calls(&[], "hsa_init") && !calls(&["!clGet*"], "hsa_init"));
        assert!(calls(&["hsa_*"], "hsa_init") && calls(&["*"], "hsa_init"));
        // A kernel has several names.
        let kernel = |pattern: &str| {
            let kernels = vec![pattern.to_owned()];
            let scope = Scope {
                kernels,
                ..Scope::default()
            };
            scope.has_kernel(&["_Z4geluf", "gelu(float)", "gelu"])
        };
        assert!(["gelu", "_Z4*", "gelu(*"].map(kernel) == [true; 3]);
        assert!(["scale", "!gelu", "!_Z*"].map(kernel) == [false; 3]);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_panic(text in ".{0,80}") {
            let _ = Scope::parse(&text);
            let _ = time(&text);
        }
    }
}
