//! The service, with agents of the tests' own.

use super::*;
use crate::agents::{ConfigureError, HeldBy, Provider};
use crate::context::{BufferOptions, Context, RecordBuffer, ToolError};
use crate::sampling::SamplingError;
use crate::switchboard::Switchboard;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_counters::{
    Architecture, Catalogue, Defined, DefinedFrom, DefinitionPlace, Definitions, Dialect,
    Expression, HardwareBlock, Sources, Usage,
};
use gputrail_record::AgentId;
use std::sync::Mutex;

/// Counters A and B of a block that counts one event at a time, and the metric M of both.
fn architecture() -> Arc<Architecture> {
    let at = DefinitionPlace {
        file: "made".into(),
        line: 1,
        column: 1,
    };
    let defined = |name: &str, from| Defined {
        name: name.to_owned(),
        description: String::new(),
        usage: Usage::Items,
        from,
        at: at.clone(),
    };
    let event = |event| DefinedFrom::Event {
        block: "SQ".to_owned(),
        event,
        instance: None,
    };
    let metric = DefinedFrom::Expression(Expression::parse("A/B").unwrap(), at.clone());
    let definitions = Definitions {
        dialect: Dialect::Sum,
        blocks: vec![HardwareBlock {
            name: "SQ".to_owned(),
            instances: Some(1),
            capacity: Some(1),
        }],
        counters: vec![
            defined("A", event(1)),
            defined("B", event(2)),
            defined("M", metric),
        ],
    };
    let mut sources = Sources::default();
    sources.architectures.insert("made".to_owned(), definitions);
    let mut catalogue = Catalogue::from(sources);
    Arc::new(catalogue.architectures.remove("made").unwrap())
}

struct Fake {
    architecture: Arc<Architecture>,
    passes: usize,
    calls: Mutex<Vec<&'static str>>,
}

impl Fake {
    fn call(&self, name: &'static str) {
        lock_std(&self.calls).push(name);
    }
}

impl Provider<CountingRequest> for Fake {
    fn configurations(&self) -> Vec<Countable> {
        vec![Countable {
            range_passes: 1,
            architecture: self.architecture.clone(),
            dispatches: true,
            shortest_period: None,
            passes: self.passes,
            per_pass: None,
        }]
    }

    fn configure(&self, _: &CountingRequest) -> Result<(), ConfigureError> {
        self.call("configure");
        Ok(())
    }

    fn release(&self) {
        self.call("release");
    }

    fn start(&self, _: CountingDelivery) {
        self.call("start");
    }

    fn stop(&self) {
        self.call("stop");
    }

    fn flush(&self) {
        self.call("flush");
    }
}

const ONE: AgentId = AgentId(1);

struct Bench {
    board: Arc<Switchboard>,
    one: Arc<Fake>,
    buffer: RecordBuffer,
}

impl Bench {
    fn new(passes: usize) -> Bench {
        let board = Switchboard::new();
        let one = Arc::new(Fake {
            architecture: architecture(),
            passes,
            calls: Mutex::default(),
        });
        board.counting().offer(ONE, "one", one.clone());
        let buffer = RecordBuffer::on(&board, BufferOptions::default(), |_| {}).unwrap();
        Bench { board, one, buffer }
    }

    fn context(&self) -> Context {
        Context::on(&self.board).unwrap()
    }

    fn count(&self, context: &Context, names: &[&str]) -> Result<(), ToolError> {
        context.count(&self.buffer, ONE, names, CountingMode::Dispatch)
    }
}

fn refused(result: Result<(), ToolError>) -> CountingError {
    match result {
        Err(ToolError::Counting(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn an_agent_counts_while_its_context_is_started() {
    let bench = Bench::new(2);
    let context = bench.context();
    bench.count(&context, &["A"]).unwrap();
    context.start().unwrap();
    bench.buffer.flush().unwrap();
    context.stop().unwrap();
    drop(context);
    let calls = std::mem::take(&mut *lock_std(&bench.one.calls));
    assert_eq!(calls, ["configure", "start", "flush", "stop", "release"]);
}

#[test]
fn counting_and_sampling_exclude_each_other_and_one_context_counts() {
    let bench = Bench::new(2);
    let (first, second) = (bench.context(), bench.context());
    bench.count(&first, &["A"]).unwrap();
    assert_eq!(
        refused(bench.count(&second, &["A"])),
        CountingError::OtherContext(HeldBy::Tool)
    );
    assert!(matches!(
        refused(bench.count(&first, &["B"])),
        CountingError::Taken { .. }
    ));
    let sampled = first.sample(
        &bench.buffer,
        ONE,
        gputrail_interface::sampling::Request {
            method: gputrail_record::SamplingMethod::HOST_TRAP,
            unit: gputrail_record::SamplingUnit::TIME,
            interval: 1_000_000,
        },
        gputrail_interface::sampling::Deliver::Samples,
    );
    assert!(matches!(
        sampled,
        Err(ToolError::Sampling(SamplingError::Counters))
    ));
    drop(first);
    bench.count(&second, &["A"]).unwrap();
}

#[test]
fn impossible_sets_are_refused_with_what_is_in_the_way() {
    let bench = Bench::new(1);
    let context = bench.context();
    let unknown = refused(bench.count(&context, &["AA"])).to_string();
    assert!(unknown.contains("\"AA\"; the nearest is A"), "{unknown}");
    assert_eq!(refused(bench.count(&context, &[])), CountingError::NoNames);
    let passes = refused(bench.count(&context, &["M"])).to_string();
    assert!(
        passes.contains("2 passes") && passes.contains("agent 1 (one)"),
        "{passes}"
    );
    let period = CountingMode::Device {
        period: Nanos(1_000_000),
    };
    let mode = refused(context.count(&bench.buffer, ONE, &["A"], period));
    assert!(matches!(mode, CountingError::Mode { .. }));
    let other = context.count(&bench.buffer, AgentId(9), &["A"], CountingMode::Dispatch);
    assert_eq!(refused(other), CountingError::UnknownAgent(AgentId(9)));
    assert!(lock_std(&bench.one.calls).is_empty());
    bench.count(&context, &["a"]).unwrap();
    context.start().unwrap();
    assert!(matches!(
        bench.count(&context, &["A"]),
        Err(ToolError::Locked)
    ));
}

#[test]
fn values_of_metrics_are_computed_from_the_readings() {
    use super::values::{Subject, ValueRecords};
    use gputrail_record::{CounterInvalid, CounterValueType, WorkId};

    let bench = Bench::new(2);
    let set = CounterSet::new(&architecture(), &["M", "A", "b", "A"], None).unwrap();
    assert_eq!((set.names(), set.passes().len()), ("M, A, B".to_owned(), 2));
    let counted: Vec<_> = set.counted().collect();
    let set = Arc::new(set);
    let names = bench.board.names();
    let records = ValueRecords::new(set, ONE, Default::default(), names);
    let subject = Subject {
        work: WorkId(7),
        ..Subject::default()
    };
    let of = |a: u64, b: u64| {
        let readings = [
            (counted[0], CounterReading::of(a)),
            (counted[1], CounterReading::of(b)),
        ];
        records.of(&subject, &readings)
    };
    let values = of(6, 4);
    let numbers: Vec<_> = values.iter().map(|value| value.number()).collect();
    assert_eq!(numbers, [Some(1.5), Some(6.0), Some(4.0)]);
    let remaining: Vec<_> = values.iter().map(|value| value.remaining).collect();
    assert_eq!(remaining, [2, 1, 0]);
    assert_eq!(values[1].value_type, CounterValueType::UINT64);
    assert!(values.iter().all(|value| value.work == WorkId(7)));
    let shared = CounterReading {
        scheduled: 250,
        ..CounterReading::of(4)
    };
    let shared = [(counted[0], CounterReading::of(6)), (counted[1], shared)];
    let shares = records
        .of(&subject, &shared)
        .into_iter()
        .map(|value| value.scheduled);
    assert_eq!(shares.collect::<Vec<_>>(), [250, 1000, 250]);
    assert_eq!(of(6, 0)[0].invalid, CounterInvalid::DIVISION_BY_ZERO);
    let missing = records.of(&subject, &[(counted[0], CounterReading::of(1))]);
    assert!(missing[0].invalid == CounterInvalid::MISSING);
    assert!(missing[2].invalid == CounterInvalid::MISSING);
}

#[test]
fn names_that_cannot_be_had_are_left_out_with_their_reasons() {
    let bench = Bench::new(1);
    let counting = bench.board.counting();
    let possible =
        |names: &[&str]| counting.possible_request(ONE, names, CountingMode::Dispatch, None);
    let (request, left_out) = possible(&["AA", "B", "C0", "A", "M"]).unwrap();
    assert_eq!(request.set.names(), "B");
    let told: Vec<String> = left_out.iter().map(LeftOut::to_string).collect();
    let [unknown, passes] = &told[..] else {
        panic!("{told:?}");
    };
    let expected = "there is no counter or metric \"AA\"; the nearest is A; there is no counter or metric \"C0\"";
    assert!(unknown.starts_with(expected), "{unknown}");
    assert!(
        passes.starts_with("not counted: A, M: the counters need 2 passes"),
        "{passes}"
    );
    assert!(possible(&["A"]).unwrap().1.is_empty());
    // An error if none is left.
    let unknown = possible(&["AA", "C0"]).unwrap_err();
    assert!(matches!(unknown, CountingError::UnknownCounters(all) if all.len() == 2));
    let none = possible(&["AA", "M"]).unwrap_err().to_string();
    assert!(
        none.starts_with("none of the counters can be collected: there is no"),
        "{none}"
    );
    assert!(lock_std(&bench.one.calls).is_empty());
}
