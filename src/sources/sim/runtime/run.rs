//! The course of a simulation: the threads of the program, those of the runtime that record completions, and what is read
//! and counted as time passes.

use super::{CLOCK_PERIOD, Runtime, SimulationError};
use crate::sim::callbacks;
use crate::sim::compute_units::COMPUTE_UNITS;
use crate::sim::environment::Readings;
use crate::sim::executor::World;
use crate::sim::host::HostState;
use crate::sim::machine::{Preempted, WaitsFor};
use crate::sim::random::Random;
use crate::sim::recent::WorkIndex;
use crate::sim::thread::{CallStatus, SimThread};
use crate::sim::time::{HostTime, Moment, us};
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::platform::system;
use gputrail_collect::attributes;
use gputrail_collect::process;
use gputrail_record::{Completion, Nanos, ThreadId};
use std::rc::Rc;
use std::time::Duration;

/// The shortest period at which the environment of devices is read.
const SHORTEST_PERIOD: Nanos = us(10);
/// How far simulated time may run ahead of real time.
const AHEAD: Duration = Duration::from_millis(1);

impl Runtime {
    /// Reads the clocks at the beginning.
    pub fn read_first_clocks(&self) {
        self.read_clocks(Moment::BEGIN);
    }

    /// Starts a thread of the program.
    pub fn spawn<F: Future<Output = Result<(), CallStatus>> + 'static>(
        self: &Rc<Self>,
        name: &str,
        body: impl FnOnce(SimThread) -> F,
    ) {
        let Some((host, random)) = self.new_host(name) else {
            return;
        };
        let body = body(SimThread::new(self.clone(), host, random));
        let (runtime, thread) = (self.clone(), name.to_owned());
        self.executor.spawn(name, async move {
            if !runtime.begin_thread(&thread) {
                return;
            }
            if let Err(CallStatus(status)) = body.await {
                let ended = SimulationError::Ended { thread, status };
                runtime.failure.borrow_mut().get_or_insert(ended);
            }
        });
    }

    /// Runs the program to its end.
    pub fn run(self: &Rc<Self>) -> Result<(), SimulationError> {
        for number in 0..self.devices.len() {
            self.serve(number);
        }
        self.start_readings();
        for number in 0..self.devices.len() {
            let name = format!("sim completions {number}");
            if let Some((host, random)) = self.new_host(&name) {
                let (runtime, thread) = (self.clone(), name.clone());
                self.executor.spawn_service(&name, async move {
                    if runtime.begin_thread(&thread) {
                        runtime.complete(number, host, random).await;
                    }
                });
            }
        }
        let result = self.executor.run(&**self);
        self.time.get().wait(self.now(), Duration::ZERO);
        self.read_due_clocks(self.now());
        self.read_clocks(self.now());
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => result.map_err(SimulationError::from),
        }
    }

    /// The state of a new thread of the program.
    fn new_host(&self, name: &str) -> Option<(HostState, Random)> {
        match self.time.get() {
            HostTime::Real { .. } => Some((HostState::Calling, self.count_thread())),
            HostTime::Virtual => {
                let (host, random) = self.new_thread(name)?;
                Some((HostState::Simulated(Box::new(host)), random))
            }
        }
    }

    /// Begins a thread of the program, on the thread that polls it. `false`, and a failure, if it cannot record.
    fn begin_thread(&self, name: &str) -> bool {
        if let HostTime::Virtual = self.time.get() {
            return true;
        }
        let id = system::thread_id();
        if id != std::process::id() {
            process::give_thread_name(ThreadId(attributes::thread_id(id)), name);
        }
        let records = process::current().is_some();
        if !records {
            let failure = SimulationError::NoLane(name.into());
            self.failure.borrow_mut().get_or_insert(failure);
        }
        records
    }

    /// The thread of the runtime that receives the completions of one device.
    async fn complete(&self, number: usize, mut host: HostState, mut random: Random) {
        let device = &self.devices[number];
        for one in 1.. {
            device.finished_gate.wait(&self.executor, one).await;
            self.executor.sleep(Nanos(random.host(380))).await;
            let next = device.finished.borrow_mut().pop_front();
            let finished = next.expect("the gate counts what is in the queue");
            let mut works = self.works.borrow_mut();
            let work = works.live_mut(finished.work);
            let (followers, replay) = (work.followers.take(), work.replay.take());
            work.completed = true;
            let (queued, submitted, stream) = (work.queued, work.submitted, work.stream);
            let (id, correlation, fault) = (work.id, work.correlation, work.fault);
            let buffers = work.buffers;
            let (family, instructions) = (work.family.take(), work.instructions.take());
            drop(works);
            self.keep_room();
            let mut writer = host.borrow();
            if let Some(fault) = fault {
                self.record_fault(&mut writer, &fault, finished.start);
            }
            if let Some(instructions) = instructions {
                let mut lines = lock_std(&self.lines);
                let place = (device.agent, id, correlation);
                instructions.record(&mut writer, self.names(), &mut lines, place);
            }
            let mut clock = device.clock.borrow_mut();
            if let Some(family) = family {
                family.record(&mut writer, &mut clock, (device.agent, id));
            }
            let mut record = Completion::blank();
            (record.work, record.correlation) = (id, correlation);
            record.queued = clock.read(queued);
            record.submitted = clock.read(submitted);
            record.start = clock.read(finished.start);
            record.end = clock.read(finished.end);
            record.completed = self.ticks();
            record.agent = device.agent;
            writer.write_to(buffers, record);
            writer.work_ends(record.correlation, record.completed);
            drop(writer);
            drop(clock);
            if let Some(replay) = replay {
                callbacks::replayed(&host.site(), &replay.0, (correlation, replay.1));
            }
            if let Some(mut followers) = followers {
                callbacks::completed(&host.site(), &mut followers, &record);
            }
            let streams = self.streams.borrow();
            streams[stream.0]
                .completed
                .open(&self.executor, Nanos(random.host(2_600)));
        }
    }

    /// Notes that work was saved or restored. Its children are queued and submitted when it is saved.
    fn note_preempted(&self, preempted: &Preempted) {
        let (work, at) = (preempted.work, preempted.at);
        let mut works = self.works.borrow_mut();
        let Some(family) = &mut works.live_mut(work).family else {
            return;
        };
        family.note(preempted);
        if preempted.waits_for != WaitsFor::Children {
            return;
        }
        let children = family.children as usize;
        for child in work.0 + 1..=work.0 + children {
            if preempted.saved
                && let Some(child) = works.get_mut(WorkIndex(child))
            {
                (child.queued, child.submitted) = (at, at);
            }
        }
    }

    /// Reads the clocks for each period up to `now`.
    fn read_due_clocks(&self, now: Moment) {
        while self.next_clocks.get() <= now {
            self.read_clocks(self.next_clocks.get());
            self.next_clocks.set(self.next_clocks.get() + CLOCK_PERIOD);
        }
    }

    /// Starts to read the environment of the devices, if the recording or a tool asks for it.
    fn start_readings(&self) {
        let scope = self
            .recorder
            .as_ref()
            .map(|recorder| recorder.gate().scope());
        let Some(period) = attributes::environment_period(scope) else {
            return;
        };
        let Some((host, _)) = self.new_thread("sim environment") else {
            return;
        };
        for device in &self.devices {
            self.machine.borrow_mut().watch(device.compute);
        }
        *self.readings.borrow_mut() = Some(Readings {
            host,
            period: period.max(SHORTEST_PERIOD),
            next: Moment::BEGIN,
        });
    }

    /// Reads the environment of the devices for each period up to `now`.
    fn read_due_environment(&self, now: Moment) {
        let mut readings = self.readings.borrow_mut();
        let Some(readings) = &mut *readings else {
            return;
        };
        while readings.next <= now {
            self.keep_room();
            for device in &self.devices {
                let mut environment = device.environment.borrow_mut();
                environment.advance(readings.next, COMPUTE_UNITS * 1_000);
                let time = self.ticks_at(readings.next);
                environment.record(&mut readings.host, device.agent, time);
            }
            readings.next = readings.next + readings.period;
        }
    }

    fn read_clocks(&self, now: Moment) {
        let names = self.names();
        if let HostTime::Virtual = self.time.get() {
            names.clock_snapshot(gputrail_buffer::clock::virtual_snapshot(self.ticks_at(now)));
        }
        for device in &self.devices {
            names.clock_pair(
                device
                    .clock
                    .borrow_mut()
                    .pair(device.agent, now, self.time.get()),
            );
        }
    }
}

impl World for Runtime {
    fn next(&self) -> Option<Moment> {
        self.machine.borrow().next()
    }

    fn reach(&self, now: Moment) {
        self.time.get().wait(now, AHEAD);
    }

    fn advance(&self, now: Moment) {
        self.read_due_clocks(now);
        self.read_due_environment(now);
        let mut finished = Vec::new();
        let (spans, preempted) = {
            let mut machine = self.machine.borrow_mut();
            machine.advance(now, &mut finished);
            (machine.take_spans(), machine.take_preempted())
        };
        preempted.iter().for_each(|one| self.note_preempted(one));
        for span in spans {
            let mut devices = self.devices.iter();
            if let Some(device) = devices.find(|device| device.compute == span.engine) {
                device.sampler.ran(&span, &mut device.clock.borrow_mut());
                device.counters.ran(&span, &mut device.clock.borrow_mut());
                device.environment.borrow_mut().ran(&span);
            }
        }
        for one in finished {
            let device = &self.devices[self.works.borrow().live(one.work).device];
            device.sampler.ended(one.work);
            device.counters.ended(&one);
            device.finished.borrow_mut().push_back(one);
            // The delay of the device's interrupt.
            device.finished_gate.open(&self.executor, us(2));
        }
    }
}
