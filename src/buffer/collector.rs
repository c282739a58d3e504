//! The collector: the thread that takes committed records from the lanes and delivers them to the sinks.
//!
//! It is a thread of the program; or of `gputrail record`, which shares the program's mapping: then the program runs no
//! thread of ours, and its end waits for nothing. The contents of another process's mapping are not trusted: every poll
//! ends after as many steps as there are blocks.
//!
//! The collector sleeps for a bounded time and is woken by a lane that changes blocks; a lost wake-up costs one period.
//! A thread that flushes or ends the session does the collector's work itself, so that an exiting process waits for no
//! other thread.

use super::block::{self, BlockView, DeliveryStep, Scan, Undelivered, deliver_each};
use super::client::ClientBlocks;
use super::delivering::Delivering;
use super::losses::show_unreported;
use super::{BlockClient, Buffer, CallbackThread, Policy, SessionState};
use crate::clock::{self, TickSource};
use crate::platform::sync::lock_std;
use gputrail_record::{ClockSnapshot, Ticks};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A receiver of blocks. Called on the collector's thread, or on a thread that flushes.
pub trait Sink: Send {
    /// Some records of one lane, in the order the lane wrote them. They are valid during the call.
    fn records(&mut self, view: &BlockView<'_>);

    /// Called at each look of the collector, before records are shown.
    fn look(&mut self) {}

    /// Called about once a second, and before the end, with a reading of the host's clocks; `None` if ticks are virtual.
    /// With [`CollectorOptions::complete_at_ticks`], the sink has all records that were committed before the reading.
    fn tick(&mut self, _reading: Option<&ClockSnapshot>) {}
}

/// The options of a collector.
#[derive(Copy, Clone, Debug)]
pub struct CollectorOptions {
    /// Maximum sleep. While there are records to deliver, the collector polls more often.
    pub period: Duration,
    /// Number of bytes in a lane's block at which they are delivered before the block is full. 0 delivers all records
    /// at each poll, a block's size or more delivers full blocks only.
    pub watermark: u32,
    /// Whether blocks that are not full are delivered before each [`Sink::tick`] that has a reading, too. Bounds what is
    /// lost if the process that collects is killed, and lets a reader tell up to when the records are complete.
    pub complete_at_ticks: bool,
    /// The tick source of the recorded process.
    pub ticks: TickSource,
}

impl Default for CollectorOptions {
    fn default() -> Self {
        CollectorOptions {
            period: Duration::from_millis(100),
            watermark: u32::MAX,
            complete_at_ticks: false,
            ticks: clock::init(),
        }
    }
}

/// Maximum sleep after a poll that delivered records.
const BUSY_PERIOD: Duration = Duration::from_millis(2);
/// Time to the first call of [`Sink::tick`].
const FIRST_TICK: Duration = Duration::from_millis(20);
/// Time between two calls of [`Sink::tick`], once the collector has run for this long.
const TICK: Duration = Duration::from_secs(1);
/// Number of blocks whose pages are populated ahead of need.
const AHEAD: u32 = 48;

/// The sequence number, in lane 0, of the block of losses that no lane reported. The end of the session writes this
/// block, and so does the recovery of a process that dies in between: readers that find both take the first.
pub const FINAL_LOSSES: u32 = u32::MAX - 1;

/// Delivers the committed records of one buffer's lanes to the sinks.
#[derive(Clone)]
pub struct Collector {
    inner: Arc<CollectorState>,
}

pub(super) struct CollectorState {
    buffer: Buffer,
    options: CollectorOptions,
    /// Whether the recorded process is this one.
    is_own: bool,
    /// Locked while blocks are delivered, by one thread at a time.
    receivers: Mutex<Receivers>,
    ended: AtomicBool,
    /// The records that a sink or client is being shown.
    shown: ShownRecords,
    /// State of the periodic polls.
    rounds: Mutex<Rounds>,
    /// The callback thread that polls, if the tool assigned one.
    thread: Mutex<Option<CallbackThread>>,
    listener: EventListener,
}

/// A change in the process whose lanes a collector reads.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The process has asked for a dump.
    Triggered,
    /// The process has ended its session or begins to exit. What was committed by then has been delivered.
    Ended,
}

/// The function that is called for each [`SessionEvent`].
pub(crate) type EventListener = Option<Box<dyn Fn(SessionEvent) + Send + Sync>>;

struct Rounds {
    /// Number of blocks whose pages have been populated.
    populated: u32,
    last_tick: Instant,
    next_tick: Duration,
    pause: Duration,
    /// The number of triggers that have been reported.
    triggers: u32,
    /// Whether [`SessionEvent::Ended`] has been reported.
    end_reported: bool,
}

/// The block whose records are being delivered, and the offset at which they end: `block << 32 | end`.
struct ShownRecords(AtomicU64);

impl ShownRecords {
    /// No block has this number.
    const NONE: u64 = u64::MAX;

    fn set(&self, delivery: &DeliveryStep<'_, '_>) {
        if let DeliveryStep::Filling(block, view) | DeliveryStep::Full(block, view) = delivery {
            let end = view.offset + view.bytes.len() as u32;
            self.0
                .store(u64::from(*block) << 32 | u64::from(end), Ordering::Relaxed);
        }
    }

    fn clear(&self) {
        self.0.store(Self::NONE, Ordering::Relaxed);
    }

    fn get(&self) -> (u32, u32) {
        let shown = self.0.load(Ordering::Relaxed);
        ((shown >> 32) as u32, shown as u32)
    }
}

impl Default for ShownRecords {
    fn default() -> Self {
        ShownRecords(AtomicU64::new(Self::NONE))
    }
}

struct Receivers {
    sinks: Vec<Box<dyn Sink>>,
    /// The client that supplies the blocks and receives them back with their records.
    client: Option<ClientBlocks>,
    scan: Scan,
    /// Set at the end: nothing more is delivered.
    stopped: bool,
}

impl Receivers {
    fn tick(&mut self, reading: Option<&ClockSnapshot>) {
        self.sinks.iter_mut().for_each(|sink| sink.tick(reading));
    }
}

impl Collector {
    /// A collector of `buffer` without a thread: blocks are delivered by flushes.
    pub fn without_thread(
        buffer: Buffer,
        sinks: Vec<Box<dyn Sink>>,
        options: CollectorOptions,
    ) -> Collector {
        buffer.mapping().begin();
        Collector::new(buffer, sinks, options, true, None)
    }

    fn new(
        buffer: Buffer,
        sinks: Vec<Box<dyn Sink>>,
        options: CollectorOptions,
        is_own: bool,
        listener: EventListener,
    ) -> Collector {
        let rounds = Rounds {
            populated: 0,
            last_tick: Instant::now(),
            next_tick: FIRST_TICK,
            pause: BUSY_PERIOD.min(options.period),
            triggers: 0,
            end_reported: false,
        };
        Collector {
            inner: Arc::new(CollectorState {
                buffer,
                options,
                is_own,
                rounds: Mutex::new(rounds),
                thread: Mutex::new(None),
                shown: ShownRecords::default(),
                listener,
                receivers: Mutex::new(Receivers {
                    sinks,
                    client: None,
                    scan: Scan::default(),
                    stopped: false,
                }),
                ended: AtomicBool::new(false),
            }),
        }
    }

    /// A collector of `buffer` with a thread of its own, named `gputrail`, on which all signals are
    /// blocked: they are the program's.
    pub fn start(
        buffer: Buffer,
        sinks: Vec<Box<dyn Sink>>,
        options: CollectorOptions,
    ) -> std::io::Result<Collector> {
        let collector = Collector::without_thread(buffer, sinks, options);
        collector.run()?;
        Ok(collector)
    }

    /// A collector with a thread in this process for `buffer`, whose lanes belong to another process. The other process begins and ends the recording, and requests dumps. The thread ends soon after
    /// [`finish`](Collector::finish) or [`stop`](Collector::stop), and uses the mapping until then.
    pub fn of_process(
        buffer: Buffer,
        sinks: Vec<Box<dyn Sink>>,
        options: CollectorOptions,
        listener: EventListener,
    ) -> std::io::Result<Collector> {
        let collector = Collector::new(buffer, sinks, options, false, listener);
        collector.run()?;
        Ok(collector)
    }

    fn run(&self) -> std::io::Result<()> {
        let inner = self.inner.clone();
        crate::platform::internal_thread::spawn(move || inner.run())
    }

    /// Assigns the collector to `thread`, which replaces an earlier callback thread.
    pub fn serve_on(&self, thread: &CallbackThread) {
        let shared = &self.inner.buffer.shared;
        let number = thread.number() + 1;
        let before = lock_std(&self.inner.thread).replace(thread.clone());
        shared.served_by.store(number, Ordering::Relaxed);
        thread.serve(&self.inner);
        // This may end the thread.
        drop(before);
    }

    /// Takes the blocks of the buffer from `client`, which gets their records, and requests the first ones. `ahead` blocks
    /// are requested ahead of need; 0: as many as turn out to be needed, or under [`Policy::Overwrite`] as many as it supplies.
    /// The buffer is [`Mapping::for_client`](super::Mapping).
    pub fn with_client(self, client: Box<dyn BlockClient>, ahead: u32) -> Collector {
        let mapping = self.inner.buffer.mapping();
        let mut client = ClientBlocks::new(client, ahead, mapping, self.inner.buffer.policy());
        client.request(mapping);
        lock_std(&self.inner.receivers).client = Some(client);
        self
    }

    /// Stops all delivery. Undelivered records stay in the mapping.
    pub fn stop(&self) {
        self.inner.ended.store(true, Ordering::SeqCst);
        lock_std(&self.inner.receivers).stopped = true;
        self.inner.buffer.wake_collector();
    }

    /// Delivers everything that is committed now, including blocks that are not full. Under [`Policy::Overwrite`],
    /// shows the kept records, which stay where they are.
    pub fn flush(&self) {
        if self.inner.buffer.policy() == Policy::Overwrite {
            self.dump(Ticks::NONE);
        } else {
            self.inner.deliver(0);
        }
    }

    /// Shows the sinks the kept records of the time after `since`.
    pub(crate) fn dump(&self, since: Ticks) {
        let _delivering = Delivering::begin(&*self.inner);
        let mut receivers = lock_std(&self.inner.receivers);
        if !receivers.stopped {
            let Receivers { sinks, client, .. } = &mut *receivers;
            let show = |view: &BlockView<'_>| {
                sinks.iter_mut().for_each(|sink| sink.records(view));
                client.iter_mut().for_each(|client| client.show(view));
            };
            self.inner.buffer.dump(since, show);
        }
    }

    /// The records in the memory of another process that have not been delivered, under [`Policy::Overwrite`] those that are
    /// kept. Lanes continue meanwhile; blocks that they begin to overwrite are left out.
    pub fn undelivered(&self) -> Undelivered {
        assert!(!self.inner.is_own, "its lanes may write what is read here");
        // Nothing is delivered meanwhile.
        let _receivers = lock_std(&self.inner.receivers);
        block::undelivered(self.inner.buffer.mapping())
    }

    /// Whether the calling thread is in a callback of this collector's.
    pub fn is_delivered_here(&self) -> bool {
        Delivering::is_for(&*self.inner)
    }

    /// Ends the session: no lane takes another block, everything committed is delivered, and so are
    /// the losses that no lane could report. Safe to call more than once, and while the collector's
    /// thread works; that thread is not joined. If a callback of the collector has called exit(3), on whose thread this
    /// is, what is committed behind the records of that callback is counted as dropped.
    pub fn finish(&self) {
        self.inner.finish();
    }
}

impl CollectorState {
    fn finish(&self) {
        if self.ended.swap(true, Ordering::SeqCst) {
            return;
        }
        self.buffer.end();
        if Delivering::is_for(self) {
            // The receivers stay locked: a callback has called exit(3), and never returns.
            self.buffer.count_undelivered(self.shown.get());
            return;
        }
        self.deliver(0);
        self.report_losses();
        let mut receivers = lock_std(&self.receivers);
        receivers.stopped = true;
        if let Some(client) = &mut receivers.client {
            client.give_back(self.buffer.mapping());
        }
        drop(receivers);
        self.buffer.wake_collector();
    }

    /// Whether callback thread `number` polls for this collector.
    pub fn is_served_by(&self, number: u32) -> bool {
        !self.ended.load(Ordering::SeqCst)
            && self.buffer.shared.served_by.load(Ordering::Relaxed) == number + 1
    }

    fn run(&self) {
        let mapping = self.buffer.mapping();
        let mut pause = {
            let mut rounds = lock_std(&self.rounds);
            rounds.populated = self.populate_from(0);
            rounds.pause
        };
        while !self.ended.load(Ordering::SeqCst) {
            mapping.wake().sleep(pause);
            if self.ended.load(Ordering::SeqCst) {
                break;
            }
            pause = self.look();
        }
    }

    /// Polls: delivers records that are due, and does the periodic work. Returns the time until the next poll.
    pub fn look(&self) -> Duration {
        let mut rounds = lock_std(&self.rounds);
        let mapping = self.buffer.mapping();
        // Nobody may fill the blocks up in a process that ends.
        let is_over = mapping.state().is_over();
        // Soon after the start, too: two readings of the clocks determine their rates.
        let is_tick = rounds.last_tick.elapsed() >= rounds.next_tick;
        let reading = is_tick.then(|| self.reading());
        // The blocks that a simulation delivers depend on its seed alone, and on no time of the host.
        let completes = matches!(reading, Some(Some(_))) && self.options.complete_at_ticks;
        let watermark = if is_over || completes {
            0
        } else {
            self.options.watermark
        };
        rounds.pause = if self.deliver(watermark) {
            BUSY_PERIOD.min(self.options.period)
        } else {
            self.options.period.min(rounds.pause * 2)
        };
        let triggers = mapping.triggers().load(Ordering::Acquire);
        if triggers != rounds.triggers {
            rounds.triggers = triggers;
            self.report(SessionEvent::Triggered);
        }
        if is_over && !std::mem::replace(&mut rounds.end_reported, true) {
            self.report(SessionEvent::Ended);
        }
        rounds.populated = self.populate_from(rounds.populated);
        if let Some(reading) = reading {
            rounds.last_tick = Instant::now();
            rounds.next_tick = TICK.min(rounds.next_tick * 4);
            let mut receivers = lock_std(&self.receivers);
            if !receivers.stopped && mapping.state() != SessionState::New {
                receivers.tick(reading.as_ref());
            }
        }
        rounds.pause
    }

    /// A reading of the clocks for [`Sink::tick`]. A simulation, whose ticks are virtual, writes its own.
    fn reading(&self) -> Option<ClockSnapshot> {
        let is_real = self.options.ticks != TickSource::Virtual;
        is_real.then(|| clock::snapshot_of(self.options.ticks))
    }

    fn report(&self, event: SessionEvent) {
        self.listener.iter().for_each(|listener| listener(event));
    }

    /// Populates the pages of twice the blocks in use and some more, given the number of populated blocks. Returns the
    /// new number.
    fn populate_from(&self, populated: u32) -> u32 {
        if !self.is_own {
            return 0;
        }
        let mapping = self.buffer.mapping();
        let blocks = mapping.layout().blocks();
        let in_use = blocks.saturating_sub(self.buffer.empty_blocks() as u32);
        let wanted = (2 * in_use + AHEAD).min(blocks).max(populated);
        mapping.populate(populated..wanted);
        wanted
    }

    /// Delivers records that are due, and returns whether there were any.
    fn deliver(&self, watermark: u32) -> bool {
        let _delivering = Delivering::begin(self);
        let mut receivers = lock_std(&self.receivers);
        let mapping = self.buffer.mapping();
        mapping.looks().fetch_add(1, Ordering::Relaxed);
        if receivers.stopped {
            return false;
        }
        receivers.sinks.iter_mut().for_each(|sink| sink.look());
        // Kept records are shown on request, and at the end.
        if self.buffer.policy() == Policy::Overwrite && !self.buffer.mapping().pool().is_closed() {
            return false;
        }
        let Receivers {
            sinks,
            scan,
            client,
            ..
        } = &mut *receivers;
        let mut any = false;
        let pool = mapping.pool();
        deliver_each(mapping, watermark, scan, |found| {
            any = true;
            self.shown.set(&found);
            match (found, &mut *client) {
                (DeliveryStep::Filling(block, view), Some(client)) => client.partial(block, view),
                // They come with the block.
                (DeliveryStep::Full(..), Some(_)) => {}
                (DeliveryStep::Emptied(block), Some(client)) => client.complete(block, mapping),
                (DeliveryStep::Filling(_, view) | DeliveryStep::Full(_, view), None) => {
                    sinks.iter_mut().for_each(|sink| sink.records(view));
                }
                (DeliveryStep::Emptied(block), None) => pool.put(block),
            }
            self.shown.clear();
            mapping.looks().fetch_add(1, Ordering::Relaxed);
        });
        if let Some(client) = client
            && !pool.is_closed()
            && !client.request(mapping)
        {
            self.buffer.shared.refusals.fetch_add(1, Ordering::Relaxed);
            if self.buffer.policy() == Policy::Discard {
                pool.wake_waiting();
            }
        }
        any
    }

    /// Passes to the sinks the losses that no lane has reported, as a block in lane 0. The counters keep them.
    fn report_losses(&self) {
        let _delivering = Delivering::begin(self);
        let mut receivers = lock_std(&self.receivers);
        receivers.tick(self.reading().as_ref());
        show_unreported(
            self.buffer.mapping(),
            clock::now_of(self.options.ticks),
            |view, losses| {
                let Receivers { sinks, client, .. } = &mut *receivers;
                sinks.iter_mut().for_each(|sink| sink.records(view));
                if let Some(client) = client {
                    client.report(self.buffer.mapping(), losses);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Mapping};
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[derive(Clone, Default)]
    struct Ticks(Arc<AtomicU32>);

    impl Sink for Ticks {
        fn records(&mut self, _: &BlockView<'_>) {}

        fn tick(&mut self, _: Option<&ClockSnapshot>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the records that come before each tick.
    #[derive(Clone, Default)]
    struct BeforeTicks(Arc<Mutex<(usize, Vec<usize>)>>);

    impl Sink for BeforeTicks {
        fn records(&mut self, view: &BlockView<'_>) {
            self.0.lock().unwrap().0 += view.records().count();
        }

        fn tick(&mut self, _: Option<&ClockSnapshot>) {
            let mut state = self.0.lock().unwrap();
            let records = state.0;
            state.1.push(records);
        }
    }

    #[test]
    fn all_that_is_committed_is_delivered_before_a_tick_if_that_is_asked_for() {
        for complete_at_ticks in [false, true] {
            let mapping = Mapping::anonymous(Layout::new(1 << 16, 4096, 4).unwrap()).unwrap();
            let (buffer, ticks) = (
                Buffer::new(mapping, Policy::Discard),
                BeforeTicks::default(),
            );
            let options = CollectorOptions {
                complete_at_ticks,
                ..CollectorOptions::default()
            };
            let sinks: Vec<Box<dyn Sink>> = vec![Box::new(ticks.clone())];
            let collector = Collector::without_thread(buffer.clone(), sinks, options);
            let mut lane = buffer.lane(gputrail_record::ThreadId(1)).unwrap();
            assert!(lane.write(gputrail_record::Api::blank()));
            lock_std(&collector.inner.rounds).next_tick = Duration::ZERO;
            collector.inner.look();
            let seen = ticks.0.lock().unwrap().1.clone();
            assert_eq!(seen, [usize::from(complete_at_ticks)]);
        }
    }

    #[test]
    fn a_collector_ticks_more_rarely_than_it_looks() {
        let mapping = Mapping::anonymous(Layout::new(1 << 16, 4096, 4).unwrap()).unwrap();
        let (buffer, ticks) = (Buffer::new(mapping, Policy::Discard), Ticks::default());
        let sinks: Vec<Box<dyn Sink>> = vec![Box::new(ticks.clone())];
        let collector = Collector::without_thread(buffer, sinks, CollectorOptions::default());
        for _ in 0..1000 {
            collector.inner.look();
        }
        assert!(ticks.0.load(Ordering::Relaxed) < 500);
        lock_std(&collector.inner.rounds).next_tick = Duration::ZERO;
        let before = ticks.0.load(Ordering::Relaxed);
        collector.inner.look();
        assert_eq!(ticks.0.load(Ordering::Relaxed), before + 1);
    }
}
