//! OpenCL programs with and without recording, in alternation: a program of cheap calls and enqueues, and clpeak. Both
//! run on PoCL's basic driver, which executes kernels in the calling thread.

use crate::sample::median;
use crate::sampling;
use crate::trace_size::TraceSize;
use crate::{Outcome, Places, Row};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Number of runs of each kind.
const CALLS_ROUNDS: usize = 9;
const CLPEAK_ROUNDS: usize = 9;
/// Number of batches of calls in a run, and in a long run.
const BATCHES: u32 = 400;
const MANY_BATCHES: u32 = 4_000;
/// The limit for a cheap call beyond the unrecorded one and two tick reads, in nanoseconds.
const ARGUMENT_ALLOWED: f64 = 20.0;
/// The limit for a call without consumers beyond a layer that passes it through, in nanoseconds.
const DISABLED_ALLOWED: f64 = 1.5;
/// The limit for two empty callbacks beyond two tick reads, in nanoseconds.
const CALLBACK_ALLOWED: f64 = 20.0;
/// A round counts only if the program alone takes at most this multiple of its best time.
const CALM: f64 = 1.06;
/// The maximum number of rounds, as a multiple of the wanted number.
const MAX_ROUNDS: usize = 4;
/// The limit for an enqueue beyond the minimal layer, in nanoseconds.
const ENQUEUE_ALLOWED: f64 = 140.0;
/// Events of the kernel that are counted for each dispatch, and the limit for what that adds to it, in nanoseconds.
const EVENTS: &str = "TASK_CLOCK,PAGE_FAULTS,CONTEXT_SWITCHES,CPU_MIGRATIONS";
const COUNTED_ALLOWED: f64 = 5_000.0;
/// The limit for the call stack of an enqueue, in nanoseconds.
const STACK_ALLOWED: f64 = 3_000.0;
/// The pool with which programs record, and the limit for their growth beyond it.
const POOL_MIB: f64 = 16.0;
const MEMORY_ALLOWED_MIB: f64 = 16.0;

/// The paths of the programs, and the ways in which they are recorded.
pub struct Programs<'a> {
    places: &'a Places,
    calls: PathBuf,
    minimal_layer: PathBuf,
    pass_layer: PathBuf,
}

/// The output of `calls`: nanoseconds, and MiB.
#[derive(Copy, Clone, Debug)]
struct Costs {
    argument: f64,
    enqueue: f64,
    peak: f64,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum How {
    Alone,
    MinimalLayer,
    /// A layer that passes `clSetKernelArg` through.
    PassLayer,
    /// A tool that records every call except `clSetKernelArg`.
    Disabled,
    /// A tool with an empty callback.
    Subscribed,
    Recorded,
    /// Recorded with [`EVENTS`] of each kernel.
    Counted,
    /// Recorded with call stacks.
    Stacks,
}

/// Measures single calls.
pub fn measure_calls(places: &Places, tick_pair: f64) -> Outcome<Vec<Row>> {
    set_up(places)?.calls(tick_pair)
}

/// Measures single calls and everything else.
pub fn measure(places: &Places, tick_pair: f64) -> Outcome<Vec<Row>> {
    let programs = set_up(places)?;
    let mut rows = programs.calls(tick_pair)?;
    rows.push(programs.memory()?);
    rows.extend(programs.clpeak()?);
    rows.extend(sampling::measure(&programs)?);
    Ok(rows)
}

fn set_up(places: &Places) -> Outcome<Programs<'_>> {
    Ok(Programs {
        places,
        calls: compile(places, "calls.c", "calls", &["-lOpenCL"])?,
        minimal_layer: compile(
            places,
            "minimal_layer.c",
            "minimal_layer.so",
            &["-shared", "-fPIC"],
        )?,
        pass_layer: compile(
            places,
            "minimal_layer.c",
            "pass_layer.so",
            &["-shared", "-fPIC", "-DPASS_THROUGH"],
        )?,
    })
}

/// The processor time of all ended children and their children, in seconds.
fn processor_time() -> f64 {
    // SAFETY: all zeros are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable; it stays all zeros if the call fails.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Compiles one of the C files beside this package.
fn compile(places: &Places, source: &str, name: &str, flags: &[&str]) -> Outcome<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("opencl")
        .join(source);
    let built = places.scratch.join(name);
    let mut compiler = Command::new("cc");
    compiler
        .arg("-O2")
        .arg("-o")
        .arg(&built)
        .arg(source)
        .args(flags);
    if compiler.status()?.success() {
        Ok(built)
    } else {
        Err(format!("{compiler:?} failed").into())
    }
}

/// Rounds in which a program was run alone and in other ways.
struct Rounds<A, O> {
    kept: Vec<(A, O)>,
    /// How many rounds count, and of how many, as text.
    said: String,
}

/// Runs a program `alone` and in `others` ways, in alternation, until enough rounds count. A round counts if the runs
/// alone before and after it take, by `gauge`, about as long as on an undisturbed machine. If fewer than half of the
/// wanted rounds count, all rounds are used.
fn in_calm_rounds<A: Copy, O>(
    wanted: usize,
    mut alone: impl FnMut() -> Outcome<A>,
    gauge: impl Fn(&A) -> f64,
    mut others: impl FnMut() -> Outcome<O>,
) -> Outcome<Rounds<A, O>> {
    let (mut before, mut rounds) = (alone()?, Vec::new());
    loop {
        let other = others()?;
        let after = alone()?;
        rounds.push((before, other, gauge(&before).max(gauge(&after))));
        before = after;
        let best = rounds
            .iter()
            .map(|(alone, ..)| gauge(alone))
            .fold(f64::MAX, f64::min);
        let is_calm = |(_, _, slowest): &(A, O, f64)| *slowest <= best * CALM;
        let (calm, all) = (
            rounds.iter().filter(|round| is_calm(round)).count(),
            rounds.len(),
        );
        if calm >= wanted || all >= MAX_ROUNDS * wanted {
            let all_count = calm < wanted.div_ceil(2);
            let counts = |round: &(A, O, f64)| all_count || is_calm(round);
            let kept = rounds.into_iter().filter(counts);
            return Ok(Rounds {
                kept: kept.map(|(alone, other, _)| (alone, other)).collect(),
                said: if all_count {
                    format!("only {calm} calm rounds of {all}: all count")
                } else {
                    format!("{calm} calm rounds of {all}")
                },
            });
        }
    }
}

impl Programs<'_> {
    /// The command that runs `program` in the given way; the recording goes to `trace`.
    fn command(&self, program: &Path, how: How, trace: &Path) -> Command {
        let mut command = match how {
            How::Recorded | How::Counted | How::Stacks => {
                let mut command = Command::new(&self.places.gputrail);
                command.args(["record", "-q", "-o"]).arg(trace);
                if how == How::Counted {
                    command.args(["--counters", EVENTS]);
                }
                if how == How::Stacks {
                    command.arg("--call-stacks");
                }
                command.arg("--").arg(program);
                command
            }
            _ => Command::new(program),
        };
        let layer = match how {
            How::MinimalLayer => Some(&self.minimal_layer),
            How::PassLayer => Some(&self.pass_layer),
            How::Disabled | How::Subscribed => Some(&self.places.library),
            How::Alone | How::Recorded | How::Counted | How::Stacks => None,
        };
        if let Some(layer) = layer {
            command.env("OPENCL_LAYERS", layer);
        }
        let tool = if how == How::Subscribed {
            "subscribed"
        } else {
            "disabled"
        };
        command.env("GPUTRAIL_COST_TOOL", tool);
        self.set_up(&mut command);
        command
    }

    /// Sets the environment of every run: one driver, and a cache, so that kernels are compiled once.
    pub fn set_up(&self, command: &mut Command) {
        let cache = self.places.scratch.join("pocl");
        let _ = std::fs::create_dir_all(&cache);
        command
            .env("POCL_DEVICES", "basic")
            .env("POCL_CACHE_DIR", cache);
    }

    /// The `gputrail` command that is measured.
    pub fn gputrail(&self) -> &Path {
        &self.places.gputrail
    }

    /// A C file of this package, compiled as an OpenCL program.
    pub fn compile(&self, source: &str, name: &str) -> Outcome<PathBuf> {
        compile(self.places, source, name, &["-lOpenCL"])
    }

    /// Runs `command` and returns the processor time of it and its children, in seconds.
    pub fn processor_time_of(&self, command: &mut Command) -> Outcome<f64> {
        let used = processor_time();
        if command.status()?.success() {
            Ok(processor_time() - used)
        } else {
            Err(format!("{command:?} failed").into())
        }
    }

    /// The path of the trace of a run.
    pub fn trace(&self) -> PathBuf {
        self.places.scratch.join("trace.pftrace")
    }

    fn costs(&self, how: How, batches: u32) -> Outcome<Costs> {
        let mut command = self.command(&self.calls, how, &self.trace());
        let output = command.arg(batches.to_string()).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = said
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        match numbers[..] {
            [argument, enqueue, kib] if output.status.success() => Ok(Costs {
                argument,
                enqueue,
                peak: kib / 1024.0,
            }),
            _ => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    }

    fn calls(&self, tick_pair: f64) -> Outcome<Vec<Row>> {
        self.costs(How::Alone, 1)?;
        let rounds = in_calm_rounds(
            CALLS_ROUNDS,
            || self.costs(How::Alone, BATCHES),
            |alone| alone.enqueue,
            || {
                const OTHERS: [How; 7] = [
                    How::MinimalLayer,
                    How::Recorded,
                    How::PassLayer,
                    How::Disabled,
                    How::Subscribed,
                    How::Counted,
                    How::Stacks,
                ];
                let costs: Outcome<Vec<Costs>> = OTHERS
                    .into_iter()
                    .map(|how| self.costs(how, BATCHES))
                    .collect();
                costs
            },
        )?;
        let (alone, others): (Vec<_>, Vec<_>) = rounds.kept.into_iter().unzip();
        let argument =
            |other: usize| median(others.iter().map(|one| one[other].argument).collect());
        let enqueue = |other: usize| median(others.iter().map(|one| one[other].enqueue).collect());
        let [
            minimal,
            recorded,
            passed,
            disabled,
            subscribed,
            counted,
            stacks,
        ] = [0, 1, 2, 3, 4, 5, 6];
        let argument_alone = median(alone.iter().map(|one| one.argument).collect());
        let enqueue_alone = median(alone.iter().map(|one| one.enqueue).collect());
        let added = argument(recorded) - argument_alone;
        let more = enqueue(recorded) - enqueue(minimal);
        let events = enqueue(counted) - enqueue(recorded);
        let stack = enqueue(stacks) - enqueue(recorded);
        let off = argument(disabled) - argument(passed);
        let back = argument(subscribed) - argument(passed);
        Ok(vec![
            Row {
                what: "`clSetKernelArg`, recorded",
                measured: format!("{added:+.1} ns: {:.2} x two tick reads", added / tick_pair),
                beside: format!("{argument_alone:.1} ns alone; {}", rounds.said),
                target: format!("two tick reads + {ARGUMENT_ALLOWED} ns"),
                met: added <= tick_pair + ARGUMENT_ALLOWED,
            },
            Row {
                what: "`clSetKernelArg`, observed and disabled",
                measured: format!("{off:+.1} ns"),
                beside: format!(
                    "{:.1} ns with a layer that passes it through",
                    argument(passed)
                ),
                target: format!("that layer + {DISABLED_ALLOWED} ns"),
                met: off <= DISABLED_ALLOWED,
            },
            Row {
                what: "`clSetKernelArg` with an empty callback at enter and exit",
                measured: format!("{back:+.1} ns: {:.2} x two tick reads", back / tick_pair),
                beside: format!(
                    "{:.1} ns with a layer that passes it through",
                    argument(passed)
                ),
                target: format!("two tick reads + {CALLBACK_ALLOWED} ns"),
                met: back <= tick_pair + CALLBACK_ALLOWED,
            },
            Row {
                what: "`clEnqueueNDRangeKernel` and its completion, recorded",
                measured: format!(
                    "{more:+.0} ns: {:.2} x",
                    enqueue(recorded) / enqueue(minimal)
                ),
                beside: format!(
                    "{:.0} ns with a minimal layer, {enqueue_alone:.0} ns alone",
                    enqueue(minimal)
                ),
                target: format!("minimal layer + {ENQUEUE_ALLOWED} ns"),
                met: more <= ENQUEUE_ALLOWED,
            },
            Row {
                what: "a dispatch with four events of the kernel counted",
                measured: format!("{:+.1} us", events / 1e3),
                beside: format!("{:.2} us recorded without", enqueue(recorded) / 1e3),
                target: format!("that + {:.0} us", COUNTED_ALLOWED / 1e3),
                met: events <= COUNTED_ALLOWED,
            },
            Row {
                what: "an enqueue with its call stack of 24 functions",
                measured: format!(
                    "{:+.2} us: {:.2} x",
                    stack / 1e3,
                    enqueue(stacks) / enqueue(recorded)
                ),
                beside: format!("{:.2} us recorded without", enqueue(recorded) / 1e3),
                target: format!("that + {:.0} us", STACK_ALLOWED / 1e3),
                met: stack <= STACK_ALLOWED,
            },
        ])
    }

    fn memory(&self) -> Outcome<Row> {
        let growth = |batches| -> Outcome<f64> {
            Ok(self.costs(How::Recorded, batches)?.peak - self.costs(How::Alone, batches)?.peak)
        };
        let (short, long) = (growth(BATCHES)?, growth(MANY_BATCHES)?);
        Ok(Row {
            what: "memory of the recorded process, 4.4 million calls",
            measured: format!("{long:+.1} MiB: its pool {:+.1} MiB", long - POOL_MIB),
            beside: format!("{short:+.1} MiB with a tenth of the calls"),
            target: format!("pool of {POOL_MIB} MiB + {MEMORY_ALLOWED_MIB} MiB"),
            met: long <= POOL_MIB + MEMORY_ALLOWED_MIB,
        })
    }

    fn clpeak(&self) -> Outcome<Vec<Row>> {
        let run = |how| -> Outcome<(f64, f64)> {
            let mut command = self.command(Path::new("clpeak"), how, &self.trace());
            command
                .arg("--kernel-latency")
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            // By default, a recorded program gets a new trace. Replacing an older one makes some file systems wait for
            // the disk, which is not to be measured.
            if how == How::Recorded {
                let _ = std::fs::remove_file(self.trace());
            }
            let (start, used) = (Instant::now(), processor_time());
            if command.status()?.success() {
                Ok((start.elapsed().as_secs_f64(), processor_time() - used))
            } else {
                Err(format!("{command:?} failed").into())
            }
        };
        run(How::Alone)?;
        let rounds = in_calm_rounds(
            CLPEAK_ROUNDS,
            || run(How::Alone),
            |(wall, _)| *wall,
            || run(How::Recorded),
        )?;
        let (alone, recorded): (Vec<_>, Vec<_>) = rounds.kept.into_iter().unzip();
        let wall = |runs: &[(f64, f64)]| median(runs.iter().map(|(wall, _)| *wall).collect());
        let used = |runs: &[(f64, f64)]| median(runs.iter().map(|(_, used)| *used).collect());
        let more = (used(&recorded) - used(&alone)) * 1e3;
        let best =
            |runs: &[(f64, f64)]| runs.iter().map(|(wall, _)| *wall).fold(f64::MAX, f64::min);
        let best = best(&recorded) / best(&alone);
        let (alone, recorded) = (wall(&alone), wall(&recorded));
        let size = TraceSize::of(&self.trace())?;
        let per_call = size.call_bytes as f64 / size.calls as f64;
        let per_kernel = size.kernel_bytes as f64 / size.kernels as f64;
        Ok(vec![
            Row {
                what: "`gputrail record -- clpeak --kernel-latency`, wall time, trace included",
                measured: format!("{:.3} x", recorded / alone),
                beside: format!(
                    "{alone:.3} s alone; {best:.3} x between the best of each; {more:+.0} ms of processor time; {}",
                    rounds.said
                ),
                target: "1.10 x".into(),
                met: recorded <= alone * 1.10,
            },
            Row {
                what: "its trace, per API call",
                measured: format!("{per_call:.1} bytes"),
                beside: format!("{} calls", size.calls),
                target: "40 bytes".into(),
                met: per_call <= 40.0,
            },
            Row {
                what: "its trace, per kernel",
                measured: format!("{per_kernel:.1} bytes"),
                beside: format!("{} pieces of work", size.kernels),
                target: "100 bytes".into(),
                met: per_kernel <= 100.0,
            },
        ])
    }
}
