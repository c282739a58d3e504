//! The service with a second type of request, beside PC sampling.

use super::*;
use crate::switchboard::{Buffers, ContextKey, Switchboard};
use gputrail_buffer::platform::sync::lock_std;
use gputrail_record::AgentId;
use std::sync::{Arc, Mutex};

/// A request for so many counters at once.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Count(u32);

#[derive(Debug)]
enum CountError {
    TooMany { agent: String, most: u32 },
    Service(AgentRefusal<u32>),
}

impl From<AgentRefusal<u32>> for CountError {
    fn from(refused: AgentRefusal<u32>) -> CountError {
        CountError::Service(refused)
    }
}

impl AgentRequest for Count {
    const SERVICE: ServiceKind = ServiceKind::Counters;
    type Configuration = u32;
    type Deliver = ();
    type Error = CountError;

    fn active(&self, _: &[u32]) -> u32 {
        self.0
    }

    fn check(&self, agent: &str, possible: Vec<u32>) -> Result<(), CountError> {
        let most = possible.into_iter().max().unwrap_or(0);
        let agent = agent.to_owned();
        (self.0 <= most)
            .then_some(())
            .ok_or(CountError::TooMany { agent, most })
    }
}

/// A device that has any use: it notes its calls.
#[derive(Default)]
struct Device(Mutex<Vec<&'static str>>);

impl<R: AgentRequest<Configuration = u32>> Provider<R> for Device {
    fn configurations(&self) -> Vec<u32> {
        vec![8]
    }

    fn configure(&self, _: &R) -> Result<(), ConfigureError> {
        lock_std(&self.0).push("configure");
        Ok(())
    }

    fn release(&self) {
        lock_std(&self.0).push("release");
    }

    fn start(&self, _: Delivery<R::Deliver>) {
        lock_std(&self.0).push("start");
    }

    fn stop(&self) {
        lock_std(&self.0).push("stop");
    }

    fn flush(&self) {
        lock_std(&self.0).push("flush");
    }
}

/// A request of another service, which excludes counters.
#[derive(Copy, Clone, Debug)]
struct Sample;

impl AgentRequest for Sample {
    const SERVICE: ServiceKind = ServiceKind::PcSampling;
    type Configuration = u32;
    type Deliver = ();
    type Error = AgentRefusal<u32>;

    fn active(&self, _: &[u32]) -> u32 {
        1
    }

    fn check(&self, _: &str, _: Vec<u32>) -> Result<(), AgentRefusal<u32>> {
        Ok(())
    }
}

const ONE: AgentId = AgentId(1);
const TWO: AgentId = AgentId(2);
const NOWHERE: Delivery<()> = Delivery {
    buffers: Buffers::NONE,
    deliver: (),
};

struct Bench {
    device: Arc<Device>,
    counters: AgentService<Count>,
    samples: AgentService<Sample>,
    claims: Arc<Claims>,
    contexts: [ContextKey; 2],
}

impl Bench {
    /// Two agents that have both services.
    fn new() -> Bench {
        let (device, claims) = (Arc::new(Device::default()), Arc::<Claims>::default());
        let counters = AgentService::new(claims.clone());
        let samples = AgentService::new(claims.clone());
        let board = Switchboard::new();
        for (agent, name) in [(ONE, "one"), (TWO, "two")] {
            counters.offer(agent, name, device.clone());
            samples.offer(agent, name, device.clone());
        }
        Bench {
            device,
            counters,
            samples,
            claims,
            contexts: std::array::from_fn(|_| board.add_context().unwrap()),
        }
    }

    fn count(&self, context: usize, agent: AgentId, count: u32) -> Result<(), CountError> {
        let context = self.contexts[context];
        self.counters
            .configure(context, agent, Count(count), NOWHERE)
    }

    fn sample(&self, context: usize, agent: AgentId) -> Result<(), AgentRefusal<u32>> {
        let context = self.contexts[context];
        self.samples.configure(context, agent, Sample, NOWHERE)
    }
}

#[test]
fn a_service_carries_any_request_from_its_configuration_to_its_release() {
    let bench = Bench::new();
    assert_eq!(bench.counters.configurations(ONE).unwrap(), [8]);
    match bench.count(0, ONE, 9) {
        Err(CountError::TooMany { agent, most: 8 }) => assert_eq!(agent, "agent 1 (one)"),
        other => panic!("{other:?}"),
    }
    bench.count(0, ONE, 3).unwrap();
    assert_eq!(bench.counters.configurations(ONE).unwrap(), [3]);
    let taken = bench.count(0, ONE, 4);
    assert!(
        matches!(&taken, Err(CountError::Service(AgentRefusal::Taken { active, .. })) if *active == [3]),
        "{taken:?}"
    );
    let [context, _] = bench.contexts;
    bench.counters.start(context);
    bench.counters.flush();
    bench.counters.stop(context);
    bench.counters.flush();
    bench.counters.release(context);
    let calls = std::mem::take(&mut *lock_std(&bench.device.0));
    assert_eq!(calls, ["configure", "start", "flush", "stop", "release"]);
    assert_eq!(bench.counters.configurations(ONE).unwrap(), [8]);
}

#[test]
fn services_that_exclude_each_other_share_no_process() {
    let bench = Bench::new();
    let excluded = |refused: Result<(), AgentRefusal<u32>>| match refused {
        Err(AgentRefusal::OtherService(service)) => assert_eq!(service, ServiceKind::Counters),
        other => panic!("{other:?}"),
    };
    bench.count(0, ONE, 1).unwrap();
    excluded(bench.sample(0, TWO));
    excluded(bench.sample(1, ONE));
    excluded(bench.sample(1, TWO));
    bench.counters.release(bench.contexts[0]);
    bench.sample(1, TWO).unwrap();
    let both_ways = bench.count(0, ONE, 1);
    assert!(matches!(
        both_ways,
        Err(CountError::Service(AgentRefusal::OtherService(
            ServiceKind::PcSampling
        )))
    ));
    // A service that is released is in nobody's way.
    bench.samples.release(bench.contexts[1]);
    bench.count(0, ONE, 1).unwrap();
}

#[test]
fn a_request_that_is_refused_claims_nothing() {
    let bench = Bench::new();
    bench.count(0, ONE, 9).unwrap_err();
    bench.count(0, AgentId(9), 1).unwrap_err();
    bench.sample(0, ONE).unwrap();
    assert!(matches!(
        bench.sample(1, TWO),
        Err(AgentRefusal::OtherContext(HeldBy::Tool))
    ));
}

#[test]
fn counters_by_a_tools_own_means_exclude_a_service_of_the_same_context_only() {
    let bench = Bench::new();
    let claim = |context: usize| {
        bench
            .claims
            .claim(ServiceKind::Counters, bench.contexts[context], None)
    };
    let (own, other) = (claim(0).ok().unwrap(), claim(1).ok().unwrap());
    bench.sample(0, ONE).unwrap_err();
    drop(own);
    bench.sample(0, ONE).unwrap();
    assert_eq!(
        claim(0).err().unwrap(),
        Conflict::Service(ServiceKind::PcSampling)
    );
    drop(other);
}
