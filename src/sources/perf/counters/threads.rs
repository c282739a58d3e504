//! The threads that run kernels, and what their events have counted.

use super::group::{GroupReading, PerfGroup};
use super::host_event::{PerfEvent, TASK_CLOCK};
use gputrail_buffer::platform::internal_thread;
use gputrail_buffer::platform::system::thread_id;
use gputrail_collect::counting::CounterReading;
use gputrail_counters::{Architecture, Counted};
use gputrail_record::{ALWAYS_SCHEDULED, CounterInvalid};
use std::io;

/// The directory that lists the threads of the process.
const THREADS: &str = "/proc/self/task";
/// The name of our own threads.
const OWN: &str = "gputrail";
/// The most threads that are counted.
const MAX_THREADS: usize = 1024;

/// The threads of this process.
pub(super) fn all_threads() -> Vec<u32> {
    let list = std::fs::read_dir(THREADS).into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    list.filter_map(number).collect()
}

fn is_own(thread: u32) -> bool {
    let name = std::fs::read_to_string(format!("{THREADS}/{thread}/comm"));
    name.is_ok_and(|name| name.trim_end().starts_with(OWN))
}

/// The events of a set, by pass.
#[derive(Clone, Debug)]
pub(super) struct SetEvents {
    passes: Vec<PassEvents>,
    /// The only software event is [`TASK_CLOCK`], which the system's clocks of threads have without perf events.
    by_clocks: bool,
}

/// The events of a pass, by type.
#[derive(Clone, Debug)]
struct PassEvents {
    software: Vec<&'static PerfEvent>,
    hardware: Vec<&'static PerfEvent>,
    /// The basic counters in their order, each with its event.
    counted: Vec<(Counted, &'static PerfEvent)>,
}

impl PassEvents {
    fn new(architecture: &Architecture, counted: &[Counted]) -> PassEvents {
        let event = |counted: &Counted| Some((*counted, PerfEvent::of(architecture, *counted)?));
        let counted: Vec<(Counted, &'static PerfEvent)> =
            counted.iter().filter_map(event).collect();
        let of = |is_hardware: bool| {
            let events = counted.iter().map(|(_, event)| *event);
            events
                .filter(|event| event.is_hardware == is_hardware)
                .collect()
        };
        PassEvents {
            software: of(false),
            hardware: of(true),
            counted,
        }
    }
}

impl SetEvents {
    /// The events of `passes`.
    pub fn new(architecture: &Architecture, passes: &[Vec<Counted>]) -> SetEvents {
        SetEvents {
            passes: passes
                .iter()
                .map(|counted| PassEvents::new(architecture, counted))
                .collect(),
            by_clocks: false,
        }
    }

    /// The number of passes.
    pub fn passes(&self) -> usize {
        self.passes.len()
    }

    /// Checks whether the events can be counted. Where perf events are forbidden, the time that threads run can be.
    pub fn check(&mut self) -> Result<(), (io::Error, &'static str)> {
        for pass in self.passes.iter().filter(|pass| !pass.hardware.is_empty()) {
            PerfGroup::open(0, &pass.hardware).map_err(|error| (error, "hardware"))?;
        }
        for pass in &self.passes {
            if !pass.software.is_empty()
                && let Err(error) = PerfGroup::open(0, &pass.software)
            {
                let mut software = self.passes.iter().flat_map(|pass| &pass.software);
                self.by_clocks = software.all(|event| event.name == TASK_CLOCK);
                if self.by_clocks {
                    break;
                } else {
                    return Err((error, "software"));
                }
            }
        }
        Ok(())
    }
}

/// A thread has ended.
struct Ended;

/// A thread that runs kernels.
struct CountedThread {
    thread: u32,
    /// Its groups of each pass.
    passes: Vec<PassGroups>,
}

/// The groups of one thread and pass: of software and of hardware events.
#[derive(Default)]
struct PassGroups {
    groups: [Option<PerfGroup>; 2],
    /// The latest readings.
    latest: [GroupReading; 2],
}

/// The places of the types of events in [`PassGroups`].
const SOFTWARE: usize = 0;
const HARDWARE: usize = 1;

impl PassGroups {
    fn open(thread: u32, events: &PassEvents, of: &SetEvents) -> Result<PassGroups, Ended> {
        // Events of several passes would share the places of the processor if they counted all the time.
        let in_turns = of.passes() > 1;
        let open = |events: &[&PerfEvent], in_turns: bool| {
            let opened = match (events.is_empty(), in_turns) {
                (true, _) => return Ok(None),
                (false, true) => PerfGroup::open_disabled(thread, events),
                (false, false) => PerfGroup::open(thread, events),
            };
            match opened {
                Ok(group) => Ok(Some(group)),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(Ended),
                Err(_) => Ok(None),
            }
        };
        let software = if of.by_clocks {
            None
        } else {
            open(&events.software, false)?
        };
        Ok(PassGroups {
            groups: [software, open(&events.hardware, in_turns)?],
            ..PassGroups::default()
        })
    }
}

/// The threads that run the kernels of an agent.
pub(super) struct CountedThreads {
    events: SetEvents,
    threads: Vec<CountedThread>,
    /// Threads of the program: those that it had before the runtime made any, and others that enqueue kernels.
    of_program: Vec<u32>,
    /// Whether the runtime has no threads: those that enqueue kernels run them.
    run_in_callers: bool,
}

impl CountedThreads {
    pub fn new(events: SetEvents, of_program: Vec<u32>) -> CountedThreads {
        CountedThreads {
            events,
            threads: Vec::new(),
            of_program,
            run_in_callers: false,
        }
    }

    /// Threads of the same kind, with other events.
    pub fn with(&self, events: SetEvents, of_program: Vec<u32>) -> CountedThreads {
        CountedThreads {
            run_in_callers: self.run_in_callers,
            ..CountedThreads::new(events, of_program)
        }
    }

    /// The number of passes of a kernel.
    pub fn passes(&self) -> usize {
        self.events.passes()
    }

    fn has(&self, thread: u32) -> bool {
        self.threads.iter().any(|known| known.thread == thread)
    }

    /// Whether `thread` is one of the runtime, which a kernel may need to run.
    pub fn is_of_runtime(&self, thread: u32) -> bool {
        !self.run_in_callers && self.has(thread)
    }

    /// `thread` is one of the program's.
    pub fn leave_out(&mut self, thread: u32) {
        self.threads.retain(|known| known.thread != thread);
        self.of_program.push(thread);
    }

    /// Prepares to count a kernel that the calling thread enqueues.
    pub fn prepare(&mut self) {
        if self.threads.is_empty() || self.run_in_callers && !self.has(thread_id()) {
            self.scan();
        }
    }

    /// Finds the threads of the runtime. If there are none, the threads that enqueue kernels run them, and the calling one
    /// is counted.
    pub fn scan(&mut self) {
        internal_thread::wait_for_names();
        let all = all_threads();
        self.threads.retain(|known| all.contains(&known.thread));
        self.of_program.retain(|thread| all.contains(thread));
        let is_new = |thread: &u32| !self.of_program.contains(thread) && !self.has(*thread);
        let mut new: Vec<u32> = all.into_iter().filter(is_new).collect();
        new.retain(|thread| !is_own(*thread));
        self.run_in_callers |= new.is_empty() && self.threads.is_empty();
        let caller = thread_id();
        if self.run_in_callers && !self.has(caller) && !new.contains(&caller) && !is_own(caller) {
            new.insert(0, caller);
        }
        new.truncate(MAX_THREADS - self.threads.len().min(MAX_THREADS));
        for thread in new {
            let events = &self.events;
            let open = |pass: &PassEvents| PassGroups::open(thread, pass, events);
            let passes: Result<Vec<PassGroups>, Ended> = events.passes.iter().map(open).collect();
            if let Ok(passes) = passes {
                self.threads.push(CountedThread { thread, passes });
            }
        }
    }

    /// Has the events of `pass` count, or stops them, where passes take turns.
    pub fn count(&self, pass: usize, counts: bool) {
        if self.events.passes() < 2 {
            return;
        }
        for thread in &self.threads {
            let groups = thread.passes.get(pass).map(|pass| &pass.groups);
            if let Some(hardware) = groups.and_then(|groups| groups[HARDWARE].as_ref()) {
                hardware.count(counts);
            }
        }
    }

    /// [`CountedThreads::read`] for a kernel of the calling thread. If that runs its kernels itself, its events alone are
    /// read.
    pub fn read_dispatch(&mut self, pass: usize) -> Vec<(Counted, CounterReading)> {
        self.read_those(pass, self.run_in_callers.then(thread_id))
    }

    /// Reads all events of the first pass, and returns what they have counted since the reading before.
    pub fn read(&mut self) -> Vec<(Counted, CounterReading)> {
        self.read_those(0, None)
    }

    fn read_those(&mut self, pass: usize, only: Option<u32>) -> Vec<(Counted, CounterReading)> {
        let Some(events) = self.events.passes.get(pass) else {
            return Vec::new();
        };
        let none = |(counted, _): &(Counted, _)| (*counted, CounterReading::of(0));
        let mut readings: Vec<_> = events.counted.iter().map(none).collect();
        if self.events.by_clocks {
            // The clock of a thread ends with it.
            self.threads
                .retain(|thread| thread_clock(thread.thread).is_some());
        }
        let is_read = |thread: &&mut CountedThread| only.is_none_or(|only| only == thread.thread);
        for thread in self.threads.iter_mut().filter(is_read) {
            let PassGroups { groups, latest } = &mut thread.passes[pass];
            let read =
                |group: &Option<PerfGroup>| group.as_ref().and_then(|group| group.read().ok());
            let software = if self.events.by_clocks {
                thread_clock(thread.thread)
            } else {
                read(&groups[SOFTWARE])
            };
            let now = [software, read(&groups[HARDWARE])];
            let mut next = [0, 0];
            for ((_, reading), (_, event)) in readings.iter_mut().zip(&events.counted) {
                let kind = if event.is_hardware {
                    HARDWARE
                } else {
                    SOFTWARE
                };
                let place = next[kind];
                next[kind] += 1;
                add(reading, place, latest[kind], now[kind]);
            }
            for (latest, now) in latest.iter_mut().zip(now) {
                *latest = now.unwrap_or(*latest);
            }
        }
        readings
    }
}

/// Adds the counts of one event of a thread.
fn add(
    reading: &mut CounterReading,
    place: usize,
    before: GroupReading,
    now: Option<GroupReading>,
) {
    let Some(now) = now else {
        *reading = CounterReading::invalid(CounterInvalid::NOT_PERMITTED);
        return;
    };
    let count = now.values[place].saturating_sub(before.values[place]);
    let enabled = now.enabled.saturating_sub(before.enabled);
    let running = now.running.saturating_sub(before.running);
    if reading.invalid != CounterInvalid::NO {
        return;
    }
    let scaled = match running {
        // A thread that did not run has counted nothing; a thread that ran without its event has.
        0 if enabled > 0 => {
            *reading = CounterReading::invalid(CounterInvalid::NOT_SCHEDULED);
            return;
        }
        0 => count,
        running if running >= enabled => count,
        running => (u128::from(count) * u128::from(enabled) / u128::from(running)) as u64,
    };
    if running > 0 && running < enabled {
        let share = (u128::from(running) * 1000 / u128::from(enabled)) as u16;
        reading.scheduled = reading.scheduled.min(share.min(ALWAYS_SCHEDULED - 1));
    }
    reading.instances[0] = reading.instances[0].saturating_add(scaled);
}

/// The time that a thread of this process has run, as the only event of a group.
fn thread_clock(thread: u32) -> Option<GroupReading> {
    // The clock of a thread: its number, CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED.
    let clock = (!(thread as libc::clockid_t)) << 3 | 4 | 2;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a place for the time.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    let mut reading = GroupReading::default();
    reading.values[0] = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    Some(reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::counters::architecture::architecture;

    fn events(names: &[&str]) -> SetEvents {
        let architecture = architecture();
        let counted = names.iter().map(|name| {
            let index = architecture.find(name).unwrap();
            (index, gputrail_counters::Resolution::None)
        });
        SetEvents::new(&architecture, &[counted.collect()])
    }

    fn spin() {
        let mut sum = 0u64;
        for number in 0..20_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
    }

    /// Counts a thread that faults on this many pages, and one that sleeps.
    fn counted(mut events: SetEvents, pages: usize) -> Vec<CounterReading> {
        events.check().unwrap();
        let before = all_threads();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (done, is_done) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            done.send(thread_id()).unwrap();
            wait.recv().unwrap();
            let mut memory = memmap2::MmapMut::map_anon(pages * 4096).unwrap();
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            spin();
            done.send(0).unwrap();
            let _ = ends.recv();
        });
        let worker_thread = is_done.recv().unwrap();
        // Other tests have threads, too.
        let mut threads = CountedThreads::new(events, before);
        threads.scan();
        threads
            .threads
            .retain(|known| known.thread == worker_thread);
        threads.read();
        go.send(()).unwrap();
        is_done.recv().unwrap();
        let readings = threads.read();
        drop(end);
        worker.join().unwrap();
        readings.into_iter().map(|(_, reading)| reading).collect()
    }

    #[test]
    fn the_events_of_a_thread_are_counted_between_two_readings() {
        let readings = counted(events(&[TASK_CLOCK, "PAGE_FAULTS"]), 100);
        assert!(readings[0].instances[0] > 100_000, "{readings:?}");
        assert!(readings[1].instances[0] >= 100, "{readings:?}");
        assert!(readings.iter().all(|reading| reading.scheduled == 1000));
    }

    #[test]
    fn the_time_of_threads_needs_no_perf_events() {
        let mut by_clocks = events(&[TASK_CLOCK]);
        by_clocks.by_clocks = true;
        let clocks = counted(by_clocks.clone(), 1)[0].instances[0];
        assert!(clocks > 100_000, "{clocks}");
    }

    #[test]
    fn an_event_that_shared_its_place_is_scaled_to_the_whole_time() {
        let mut reading = CounterReading::of(0);
        let mut now = GroupReading {
            enabled: 1000,
            running: 250,
            ..GroupReading::default()
        };
        now.values[0] = 10;
        add(&mut reading, 0, GroupReading::default(), Some(now));
        assert_eq!((reading.instances[0], reading.scheduled), (40, 250));
        now.running = 0;
        add(&mut reading, 0, GroupReading::default(), Some(now));
        assert_eq!(reading.invalid, CounterInvalid::NOT_SCHEDULED);
    }
}
