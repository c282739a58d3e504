//! The constraints of the service, with a fake agent whose state the test sets.

use super::*;
use crate::agents::{ConfigureError, HeldBy, Provider};
use crate::context::{BufferOptions, Context, RecordBuffer, ToolError};
use crate::correlation::HostThread;
use crate::switchboard::Switchboard;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_interface::sampling::PeriodLevel;
use gputrail_record::{AgentId, HostTrapSample, ThreadId};
use std::sync::{Arc, Mutex};

/// The calls that the fake agent received, and the answers that it gives.
#[derive(Default)]
struct FakeState {
    calls: Vec<&'static str>,
    elsewhere: Option<Configuration>,
    /// The agent cannot be sampled.
    never: bool,
    /// The configuration with which another process takes the agent between query and configuration.
    quick: Option<Configuration>,
}

#[derive(Default)]
struct Fake(Mutex<FakeState>);

impl Provider<Request> for Fake {
    fn configurations(&self) -> Vec<Configuration> {
        let state = lock_std(&self.0);
        if state.never {
            return Vec::new();
        }
        state
            .elsewhere
            .map_or(vec![TRAP, CYCLES], |active| vec![active])
    }

    fn configure(&self, _: &Request) -> Result<(), ConfigureError> {
        let mut state = lock_std(&self.0);
        if let Some(active) = state.quick.take() {
            state.elsewhere = Some(active);
            return Err(ConfigureError::Taken);
        }
        state.calls.push("configure");
        Ok(())
    }

    fn release(&self) {
        lock_std(&self.0).calls.push("release");
    }

    fn start(&self, _: SampleDelivery) {
        lock_std(&self.0).calls.push("start");
    }

    fn stop(&self) {
        lock_std(&self.0).calls.push("stop");
    }

    fn flush(&self) {
        lock_std(&self.0).calls.push("flush");
    }
}

const TRAP: Configuration = Configuration {
    method: SamplingMethod::HOST_TRAP,
    unit: SamplingUnit::TIME,
    min: 1_000,
    max: 1_000_000_000,
    power_of_two: false,
};
const CYCLES: Configuration = Configuration {
    method: SamplingMethod::STOCHASTIC,
    unit: SamplingUnit::CYCLES,
    min: 256,
    max: 1 << 31,
    power_of_two: true,
};
const EVERY_1024: Request = Request {
    method: SamplingMethod::STOCHASTIC,
    unit: SamplingUnit::CYCLES,
    interval: 1024,
};
const EVERY_MS: Request = Request {
    method: SamplingMethod::HOST_TRAP,
    unit: SamplingUnit::TIME,
    interval: 1_000_000,
};
const ONE: AgentId = AgentId(1);
const TWO: AgentId = AgentId(2);

struct Bench {
    board: Arc<Switchboard>,
    one: Arc<Fake>,
    buffer: RecordBuffer,
}

impl Bench {
    /// Two agents, and a buffer.
    fn new() -> Bench {
        let board = Switchboard::new();
        let one = Arc::new(Fake::default());
        board.sampling().offer(ONE, "one", one.clone());
        board
            .sampling()
            .offer(TWO, "two", Arc::new(Fake::default()));
        let buffer = RecordBuffer::on(&board, BufferOptions::default(), |_| {}).unwrap();
        Bench { board, one, buffer }
    }

    fn context(&self) -> Context {
        Context::on(&self.board).unwrap()
    }

    fn sample(&self, context: &Context, agent: AgentId, request: Request) -> Result<(), ToolError> {
        context.sample(&self.buffer, agent, request, Deliver::Samples)
    }

    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut lock_std(&self.one.0).calls)
    }
}

fn refused(result: Result<(), ToolError>) -> SamplingError {
    match result {
        Err(ToolError::Sampling(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn an_agent_starts_and_stops_with_the_context_and_is_flushed_with_the_buffer() {
    let bench = Bench::new();
    let context = bench.context();
    bench.sample(&context, ONE, EVERY_1024).unwrap();
    // Again, as rocprofiler-sdk allows.
    bench.sample(&context, ONE, EVERY_1024).unwrap();
    bench.buffer.flush().unwrap();
    assert_eq!(bench.calls(), ["configure"]);
    for _ in 0..2 {
        context.start().unwrap();
        bench.buffer.flush().unwrap();
        context.stop().unwrap();
        assert_eq!(bench.calls(), ["start", "flush", "stop"]);
    }
    context.start().unwrap();
    drop(context);
    assert_eq!(bench.calls(), ["start", "stop", "release"]);
}

#[test]
fn an_agent_has_one_configuration_which_is_all_that_it_names_from_then_on() {
    let bench = Bench::new();
    let context = bench.context();
    assert_eq!(
        context.sampling_configurations(ONE).unwrap(),
        [TRAP, CYCLES]
    );
    bench.sample(&context, ONE, EVERY_1024).unwrap();
    let active = Configuration::active(EVERY_1024, &[TRAP, CYCLES]);
    assert_eq!(context.sampling_configurations(ONE).unwrap(), [active]);
    // Also its flag.
    assert!(active.power_of_two);
    let error = refused(bench.sample(&context, ONE, EVERY_MS));
    assert!(
        matches!(&error, SamplingError::Taken { active: Possible(now), .. } if *now == [active])
    );
    assert!(error.to_string().contains("stochastic every 1024 cycles"));
    // It stays valid through stops and starts, and others cannot change it.
    context.start().unwrap();
    context.stop().unwrap();
    assert_eq!(context.sampling_configurations(ONE).unwrap(), [active]);
    assert_eq!(
        context.sampling_configurations(TWO).unwrap(),
        [TRAP, CYCLES]
    );
}

#[test]
fn another_process_may_be_quicker_and_then_only_its_configuration_is_left() {
    let bench = Bench::new();
    let context = bench.context();
    let theirs = Configuration::active(EVERY_MS, &[TRAP, CYCLES]);
    lock_std(&bench.one.0).quick = Some(theirs);
    let error = refused(bench.sample(&context, ONE, EVERY_1024));
    assert!(
        matches!(&error, SamplingError::Taken { active: Possible(now), .. } if *now == [theirs])
    );
    assert_eq!(context.sampling_configurations(ONE).unwrap(), [theirs]);
    refused(bench.sample(&context, ONE, EVERY_1024));
    // Both can use it in the same way.
    bench.sample(&context, ONE, EVERY_MS).unwrap();
}

#[test]
fn one_context_has_the_service_for_several_agents() {
    let bench = Bench::new();
    let (first, second) = (bench.context(), bench.context());
    bench.sample(&first, ONE, EVERY_1024).unwrap();
    bench.sample(&first, TWO, EVERY_MS).unwrap();
    let free = AgentId(3);
    let third = Arc::new(Fake::default());
    bench.board.sampling().offer(free, "three", third);
    assert_eq!(
        refused(bench.sample(&second, free, EVERY_MS)),
        SamplingError::OtherContext(HeldBy::Tool)
    );
    drop(first);
    bench.sample(&second, ONE, EVERY_MS).unwrap();
}

#[test]
fn all_agents_are_sampled_also_those_that_come_while_the_context_is_started() {
    let bench = Bench::new();
    let (context, other) = (bench.context(), bench.context());
    bench.sample(&context, TWO, EVERY_MS).unwrap();
    bench.sample(&context, AgentId::ALL, EVERY_1024).unwrap();
    // Agents that the context has configured itself keep that.
    let configured = |agent| context.sampling_configurations(agent).unwrap();
    let active = |request| [Configuration::active(request, &[TRAP, CYCLES])];
    assert_eq!(configured(ONE), active(EVERY_1024));
    assert_eq!(configured(TWO), active(EVERY_MS));
    // Once for a context; other contexts do not get the service meanwhile, nor counters.
    let again = bench.sample(&context, AgentId::ALL, EVERY_MS);
    assert!(matches!(again, Err(ToolError::Conflict)), "{again:?}");
    let taken = SamplingError::OtherContext(HeldBy::Tool);
    assert_eq!(refused(bench.sample(&other, AgentId::ALL, EVERY_MS)), taken);
    assert!(other.reserve_counters().is_err());

    context.start().unwrap();
    assert_eq!(bench.calls(), ["configure", "start"]);
    let (late, never) = (Arc::new(Fake::default()), Arc::new(Fake::default()));
    lock_std(&never.0).never = true;
    for (id, agent) in [(3, &late), (4, &never)] {
        let sampling = bench.board.sampling();
        sampling.offer(AgentId(id), "late", agent.clone());
        bench.board.agent_offered(AgentId(id));
        bench.board.agent_offered(AgentId(id));
    }
    let calls = |agent: &Fake| std::mem::take(&mut lock_std(&agent.0).calls);
    assert_eq!(calls(&late), ["configure", "start"]);
    assert_eq!(calls(&never), [""; 0]);
    // Agents that come while it is stopped are started with it.
    context.stop().unwrap();
    let later = Arc::new(Fake::default());
    let sampling = bench.board.sampling();
    sampling.offer(AgentId(5), "later", later.clone());
    bench.board.agent_offered(AgentId(5));
    assert_eq!(calls(&later), ["configure"]);
    context.start().unwrap();
    assert_eq!(calls(&later), ["start"]);
    assert_eq!(calls(&late), ["stop", "start"]);
    drop(context);
    assert_eq!(calls(&late), ["stop", "release"]);
    let sampling = bench.board.sampling();
    sampling.offer(AgentId(6), "too late", later.clone());
    bench.board.agent_offered(AgentId(6));
    assert_eq!(calls(&later), ["stop", "release"]);
    bench.sample(&other, AgentId::ALL, EVERY_MS).unwrap();
    assert_eq!(calls(&later), ["configure", "configure"]);
}

#[test]
fn a_request_for_all_agents_is_refused_if_none_can_do_it() {
    let bench = Bench::new();
    let context = bench.context();
    let every_3 = Request {
        interval: 3,
        ..EVERY_1024
    };
    let error = refused(bench.sample(&context, AgentId::ALL, every_3));
    let SamplingError::Interval { agent, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(agent, "agent 1 (one)");
    // Nothing is kept of it: neither the service nor the request.
    let other = bench.context();
    bench.sample(&other, ONE, EVERY_1024).unwrap();
    drop(other);
    bench.sample(&context, AgentId::ALL, EVERY_1024).unwrap();
    assert_eq!(bench.calls(), ["configure", "release", "configure"]);
}

#[test]
fn a_request_for_all_agents_leaves_out_those_that_cannot_do_it() {
    let bench = Bench::new();
    let context = bench.context();
    lock_std(&bench.one.0).elsewhere = Some(TRAP);
    bench.sample(&context, AgentId::ALL, EVERY_1024).unwrap();
    assert!(bench.calls().is_empty());
    let configured = context.sampling_configurations(TWO).unwrap();
    assert_eq!(
        configured,
        [Configuration::active(EVERY_1024, &[TRAP, CYCLES])]
    );
    // Where agents are not known, or only those without the service, all is still open.
    let bench = Bench::new();
    let context = bench.context();
    lock_std(&bench.one.0).never = true;
    let board = &bench.board;
    board.sampling().offer(TWO, "two", bench.one.clone());
    bench.sample(&context, AgentId::ALL, EVERY_1024).unwrap();
}

#[test]
fn a_request_for_all_agents_goes_with_its_buffer_and_is_made_before_the_start() {
    let bench = Bench::new();
    let context = bench.context();
    context.start().unwrap();
    let late = bench.sample(&context, AgentId::ALL, EVERY_MS);
    assert!(matches!(late, Err(ToolError::Locked)));
    let context = bench.context();
    bench.sample(&context, AgentId::ALL, EVERY_1024).unwrap();
    drop(bench.buffer);
    let one = Arc::new(Fake::default());
    bench
        .board
        .sampling()
        .offer(AgentId(3), "three", one.clone());
    bench.board.agent_offered(AgentId(3));
    assert!(lock_std(&one.0).calls.is_empty());
    assert_eq!(
        std::mem::take(&mut lock_std(&bench.one.0).calls),
        ["configure", "release"]
    );
}

#[test]
fn counters_and_sampling_exclude_each_other() {
    let bench = Bench::new();
    let (sampling, counting) = (bench.context(), bench.context());
    bench.sample(&sampling, ONE, EVERY_1024).unwrap();
    assert_eq!(
        refused(sampling.collects_counters()),
        SamplingError::Counters
    );
    drop(sampling);
    counting.collects_counters().unwrap();
    assert_eq!(
        refused(bench.sample(&counting, ONE, EVERY_1024)),
        SamplingError::Counters
    );
    drop(counting);
    bench.sample(&bench.context(), ONE, EVERY_1024).unwrap();
}

#[test]
fn impossible_requests_are_refused_with_the_possible_ones() {
    let bench = Bench::new();
    let context = bench.context();
    let unknown = AgentId(9);
    assert_eq!(
        refused(bench.sample(&context, unknown, EVERY_MS)),
        SamplingError::UnknownAgent(unknown)
    );
    let every = |interval| Request {
        interval,
        ..EVERY_1024
    };
    let error = refused(bench.sample(&context, ONE, every(1 << 40)));
    assert!(matches!(error, SamplingError::Interval { .. }));
    assert!(error.to_string().contains("agent 1 (one)"));
    let error = refused(bench.sample(&context, ONE, every(1000)));
    assert!(matches!(
        error,
        SamplingError::PowerOfTwo {
            below: 512,
            above: 1024,
            ..
        }
    ));
    assert!(bench.calls().is_empty());
    let asked = SamplingPeriod {
        level: PeriodLevel::MIN,
        exponent: 20,
    };
    let request = context
        .sample_every(&bench.buffer, ONE, asked, Deliver::Aggregates)
        .unwrap();
    assert_eq!(request, every(1 << 20));
    context.start().unwrap();
    let late = bench.sample(&context, TWO, EVERY_MS);
    assert!(matches!(late, Err(ToolError::Locked)));
}

#[test]
fn an_agent_that_is_unknown_or_cannot_be_sampled_is_named() {
    let bench = Bench::new();
    let context = bench.context();
    let refuse = |agent| refused(bench.sample(&context, agent, EVERY_MS)).to_string();
    let unknown = refuse(AgentId(9));
    assert!(unknown.contains("has the id 9"), "{unknown}");
    let listed = context.sampling_configurations(AgentId(9)).unwrap_err();
    assert!(listed.to_string().contains(&unknown), "{listed}");
    let never = Arc::new(Fake::default());
    lock_std(&never.0).never = true;
    bench.board.sampling().offer(AgentId(3), "three", never);
    assert_eq!(context.sampling_configurations(AgentId(3)).unwrap(), []);
    let cannot = refuse(AgentId(3));
    assert!(
        cannot.starts_with("agent 3 (three) cannot be sampled"),
        "{cannot}"
    );
    assert!(cannot.contains("gputrail agents"), "{cannot}");
}

#[test]
fn a_buffer_that_goes_takes_its_agents_services_with_it() {
    let bench = Bench::new();
    let context = bench.context();
    bench.sample(&context, ONE, EVERY_1024).unwrap();
    context.start().unwrap();
    drop(bench.buffer);
    let calls = std::mem::take(&mut lock_std(&bench.one.0).calls);
    assert_eq!(calls, ["configure", "start", "stop", "release"]);
}

/// An agent whose device holds more than the buffer: whoever flushes it waits for the tool's callback.
struct Full(Arc<Switchboard>, Mutex<Option<SampleDelivery>>);

const HELD: u32 = 4000;

impl Provider<Request> for Full {
    fn configurations(&self) -> Vec<Configuration> {
        vec![TRAP]
    }

    fn configure(&self, _: &Request) -> Result<(), ConfigureError> {
        Ok(())
    }

    fn release(&self) {}

    fn start(&self, to: SampleDelivery) {
        *lock_std(&self.1) = Some(to);
    }

    fn stop(&self) {}

    fn flush(&self) {
        let to = lock_std(&self.1).unwrap();
        let mut host = HostThread::new(&self.0, ThreadId(1), true).unwrap();
        for number in 0..HELD {
            let sample = HostTrapSample {
                offset: number.into(),
                ..HostTrapSample::blank()
            };
            assert!(host.write_to(to.buffers, sample));
        }
    }
}

#[test]
fn a_callback_that_sampling_waits_for_may_query_and_change_sampling_and_gets_a_busy_error() {
    let board = Switchboard::new();
    let full = Full(board.clone(), Mutex::default());
    board.sampling().offer(ONE, "full", Arc::new(full));
    let slot = Arc::new(Mutex::new(None::<(Context, Context)>));
    let (answers, contexts) = (Arc::new(Mutex::new(Vec::new())), slot.clone());
    let (into, of_callback) = (answers.clone(), board.clone());
    let got = Arc::new(Mutex::new(0));
    let counted = got.clone();
    let options = BufferOptions {
        pool_bytes: 1 << 16,
        block_bytes: 4096,
        threads: 8,
        policy: gputrail_buffer::Policy::Lossless,
        ..BufferOptions::default()
    };
    let buffer = RecordBuffer::on(&board, options, move |batch| {
        let samples = batch
            .records()
            .filter_map(|record| record.read::<HostTrapSample>());
        *lock_std(&counted) += samples.count();
        let Some((samples, other)) = lock_std(&contexts).take() else {
            return;
        };
        let sampling = of_callback.sampling();
        sampling.offer(
            TWO,
            "found by a call of the callback",
            Arc::new(Fake::default()),
        );
        assert_eq!(sampling.agents(), [ONE, TWO]);
        let mut answers = lock_std(&into);
        answers.push(samples.stop());
        answers.push(samples.sampling_configurations(TWO).map(|_| ()));
        answers.push(other.stop());
        // Both are gone when the callback is.
    });
    let buffer = buffer.unwrap();
    let context = Context::on(&board).unwrap();
    context
        .sample(&buffer, ONE, EVERY_MS, Deliver::Samples)
        .unwrap();
    context.start().unwrap();
    let other = Context::on(&board).unwrap();
    other.start().unwrap();
    *lock_std(&slot) = Some((context, other));
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        buffer.flush().unwrap();
        drop(buffer);
        done.send(()).unwrap();
    });
    let patience = std::time::Duration::from_secs(120);
    is_done
        .recv_timeout(patience)
        .expect("they wait for each other");
    assert_eq!(*lock_std(&got), HELD as usize);
    let answers = lock_std(&answers);
    assert!(matches!(
        answers[..],
        [
            Err(ToolError::Busy),
            Err(ToolError::Sampling(SamplingError::Busy)),
            Ok(())
        ]
    ));
    drop(answers);
    // The one that was dropped in the callback has given its agent back, on a thread of its own.
    let free = |board: &Switchboard| board.sampling().configurations(ONE).unwrap() == [TRAP];
    let begun = std::time::Instant::now();
    while !free(&board) {
        assert!(begun.elapsed() < patience, "the agent stays configured");
        std::thread::yield_now();
    }
}

/// Run by [`it_is_not_available_under_a_debugger`] in a process of its own, which that test traces as soon as it has
/// printed that it is ready.
#[test]
#[ignore = "waits to be traced"]
fn asks_before_and_while_it_is_traced() {
    let bench = Bench::new();
    let context = bench.context();
    assert!(bench.sample(&context, ONE, EVERY_1024).is_ok());
    drop(context);
    eprintln!("ready");
    let mut tracer = String::new();
    std::io::stdin().read_line(&mut tracer).unwrap();
    let tracer = tracer.trim().parse().unwrap();
    let debugged = SamplingError::Debugger { tracer };
    let context = bench.context();
    assert_eq!(refused(bench.sample(&context, ONE, EVERY_1024)), debugged);
    let asked = context.sampling_configurations(ONE);
    assert!(matches!(asked, Err(ToolError::Sampling(error)) if error == debugged));
    assert!(debugged.to_string().contains("debugger"));
}

#[test]
fn it_is_not_available_under_a_debugger() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::{Command, Stdio};
    let mut itself = Command::new(std::env::current_exe().unwrap());
    let (_, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::asks_before_and_while_it_is_traced");
    itself.args(["--exact", &name, "--ignored", "--nocapture"]);
    itself.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = itself.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let (seize, process) = (libc::PTRACE_SEIZE, child.id() as libc::pid_t);
    // SAFETY: a child that has not been waited for, and no pointers. What traces a process this way does not stop it.
    let traced = unsafe { libc::ptrace(seize, process, 0, 0) };
    assert_eq!(traced, 0, "{}", std::io::Error::last_os_error());
    let tracer = format!("{}\n", rustix::thread::gettid());
    let mut input = child.stdin.take().unwrap();
    input.write_all(tracer.as_bytes()).unwrap();
    let mut text = String::new();
    let mut output = child.stdout.take().unwrap();
    output.read_to_string(&mut text).unwrap();
    said.read_to_string(&mut line).unwrap();
    let ended = child.wait().unwrap();
    assert!(ended.success() && text.contains("1 passed"), "{text}{line}");
}
