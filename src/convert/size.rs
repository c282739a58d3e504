//! Sizes of outputs by time: how many bytes of an output belong to which part of the time.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gputrail_record::Nanos;
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterIndex, CounterValue, Instant, Loss,
    Note, Process, ProcessIndex, Queue, QueueIndex, Samples, Slice, SliceEnd, StackFrame,
    StackIndex, StackSamples, Track, TrackIndex, Work,
};

/// Maximum number of spans of time that are told apart.
const MAX_SPANS: usize = 1 << 14;

/// Counts the bytes that are written, and passes them on.
pub(super) struct ByteCounter<W> {
    out: W,
    bytes: Arc<AtomicU64>,
}

impl<W> ByteCounter<W> {
    /// A writer to `out`, and its counter.
    pub fn new(out: W) -> (ByteCounter<W>, Arc<AtomicU64>) {
        let bytes = Arc::new(AtomicU64::new(0));
        (
            ByteCounter {
                out,
                bytes: Arc::clone(&bytes),
            },
            bytes,
        )
    }
}

impl<W: Write> Write for ByteCounter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A part of the time of a trace: what touches it is in the part.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its begin; none for that of the trace.
    pub from: Option<Nanos>,
    /// Its end; none for that of the trace.
    pub to: Option<Nanos>,
}

impl Window {
    /// The parts of this one, each of which ends at one of `cuts`.
    pub(super) fn cut_at(self, cuts: &[Nanos]) -> Vec<Window> {
        let ends = cuts.iter().copied().map(Some).chain([self.to]);
        let begins = cuts.iter().map(|cut| Some(Nanos(cut.0.saturating_add(1))));
        let begins = [self.from].into_iter().chain(begins);
        let windows = begins.zip(ends).map(|(from, to)| Window { from, to });
        windows.collect()
    }
}

/// The place of an item in an output.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OutputPlace {
    /// In each part: the item is a declaration.
    All,
    /// In the first part: the item has no time.
    First,
    /// At a time: the number of a span of 2^shift ns.
    At(u64),
}

impl OutputPlace {
    /// The place when spans are twice as wide.
    fn widened(self) -> OutputPlace {
        match self {
            OutputPlace::At(span) => OutputPlace::At(span >> 1),
            place => place,
        }
    }
}

/// Attributes the bytes of an output to the times of its items. It stands behind the writer of the output, whose buffers give
/// bytes away now and then: these belong to the items since the last time, in equal shares.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    bytes: Arc<AtomicU64>,
    /// Bytes that have been attributed.
    seen: u64,
    /// Bytes of an output without events: names, processes, tracks, notes.
    pub declarations: u64,
    /// Items to which no bytes have been attributed yet.
    pending: BTreeMap<OutputPlace, u64>,
    /// Bytes at each place.
    places: BTreeMap<OutputPlace, u64>,
    shift: u32,
}

impl Sizes {
    /// The sizes of the output that counts its bytes in `bytes`.
    pub fn new(bytes: Arc<AtomicU64>) -> Sizes {
        Sizes {
            bytes,
            ..Sizes::default()
        }
    }

    /// Adds an item.
    fn add(&mut self, place: OutputPlace) -> io::Result<()> {
        *self.pending.entry(place).or_default() += 1;
        if self.bytes.load(Ordering::Relaxed) > self.seen || self.pending.len() > MAX_SPANS {
            self.settle();
        }
        Ok(())
    }

    fn at(&mut self, time: Nanos) -> io::Result<()> {
        self.add(OutputPlace::At(time.0 >> self.shift))
    }

    /// Attributes the bytes that the writer has given away since the last time.
    pub fn settle(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let news = bytes - self.seen;
        self.seen = bytes;
        let pending = std::mem::take(&mut self.pending);
        let mut items: u64 = pending.values().sum();
        let mut rest = news;
        for (place, count) in pending {
            let share = scaled(rest, count, items);
            (rest, items) = (rest - share, items - count);
            *self.places.entry(place).or_default() += share;
        }
        while self.places.len() > MAX_SPANS {
            self.shift += 1;
            let mut wider = BTreeMap::new();
            for (place, bytes) in &self.places {
                *wider.entry(place.widened()).or_default() += bytes;
            }
            self.places = wider;
        }
    }

    /// The spans that begin in a window, with their bytes; items without a time are in the first one.
    fn spans_in(&self, window: Window) -> impl Iterator<Item = (u64, u64)> {
        let first = window.from.map_or(0, |from| from.0 >> self.shift);
        let last = window.to.map_or(u64::MAX, |to| to.0 >> self.shift);
        let untimed = self.places.get(&OutputPlace::First);
        let mut untimed = untimed.copied().filter(|_| window.from.is_none());
        let spans = self
            .places
            .range(OutputPlace::At(first)..=OutputPlace::At(last));
        spans.filter_map(move |(place, bytes)| match place {
            OutputPlace::At(span) => Some((*span, bytes + untimed.take().unwrap_or(0))),
            OutputPlace::All | OutputPlace::First => None,
        })
    }

    /// Bytes of the events that begin in a window.
    pub fn events(&self, window: Window) -> u64 {
        self.spans_in(window).map(|(_, bytes)| bytes).sum()
    }

    /// Times at which to cut a window so that the events of each part take about `limit` bytes: the ends of all parts but the
    /// last. A span of time that is larger by itself is one part.
    pub fn cuts(&self, window: Window, limit: u64) -> Vec<Nanos> {
        let (mut cuts, mut part) = (Vec::new(), 0_u64);
        for (span, bytes) in self.spans_in(window) {
            if part > 0 && part + bytes > limit {
                cuts.push(Nanos((span << self.shift).saturating_sub(1)));
                part = 0;
            }
            part += bytes;
        }
        cuts
    }
}

/// The part of `bytes` that `share` is of `whole`.
pub(super) fn scaled(bytes: u64, share: u64, whole: u64) -> u64 {
    let scaled = u128::from(bytes) * u128::from(share) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl Consumer for Sizes {
    gputrail_trace::leave_out!(clocks);

    fn attributes(&mut self, _: &[(String, String)]) -> io::Result<()> {
        self.add(OutputPlace::All)
    }

    fn agents(&mut self, _: AgentIndex, _: &[Agent]) -> io::Result<()> {
        self.add(OutputPlace::All)
    }

    fn process(&mut self, _: ProcessIndex, _: &Process<'_>) -> io::Result<()> {
        self.add(OutputPlace::All)
    }

    fn track(&mut self, _: TrackIndex, _: &Track<'_>) -> io::Result<()> {
        self.add(OutputPlace::All)
    }

    fn queue(&mut self, _: QueueIndex, _: &Queue<'_>) -> io::Result<()> {
        self.add(OutputPlace::All)
    }

    fn counters(&mut self, _: CounterIndex, _: &CounterBlock) -> io::Result<()> {
        self.add(OutputPlace::All)
    }

    fn stack(&mut self, _: TrackIndex, _: StackIndex, _: &[StackFrame]) -> io::Result<()> {
        self.add(OutputPlace::All)
    }

    fn note(&mut self, _: &Note<'_>) -> io::Result<()> {
        self.add(OutputPlace::All)
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.at(call.start)
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.at(slice.start)
    }

    fn end(&mut self, _: TrackIndex, end: Nanos) -> io::Result<()> {
        self.at(end)
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        self.at(end.time)
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        self.at(instant.time)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        match work.start {
            Some(start) => self.at(start),
            None => self.add(OutputPlace::First),
        }
    }

    fn value(&mut self, _: TrackIndex, time: Nanos, _: CounterValue) -> io::Result<()> {
        self.at(time)
    }

    fn counter_values(
        &mut self,
        _: CounterIndex,
        time: Nanos,
        _: &[CounterValue],
    ) -> io::Result<()> {
        self.at(time)
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        match samples.raw.first() {
            Some(sample) => self.at(sample.time),
            None => self.add(OutputPlace::First),
        }
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        match samples.samples.first() {
            Some((time, _)) => self.at(*time),
            None => Ok(()),
        }
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.at(loss.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Window = Window {
        from: None,
        to: None,
    };

    fn sizes(events: u64, bytes_each: u64) -> Sizes {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut sizes = Sizes::new(Arc::clone(&bytes));
        for time in 0..events {
            bytes.fetch_add(bytes_each, Ordering::Relaxed);
            sizes.at(Nanos(time)).unwrap();
        }
        sizes
    }

    #[test]
    fn cuts_leave_parts_of_the_wanted_size() {
        let sizes = sizes(100_000, 3);
        assert!(sizes.places.len() <= MAX_SPANS);
        let cuts = sizes.cuts(ALL, 30_000);
        assert_eq!(cuts.len(), 9, "{cuts:?}");
        assert!(cuts.is_sorted());
        assert_eq!(sizes.cuts(ALL, 1 << 30), []);
    }

    #[test]
    fn a_window_is_cut_again_within_itself() {
        let sizes = sizes(100_000, 3);
        let windows = ALL.cut_at(&sizes.cuts(ALL, 100_020));
        assert_eq!(windows.len(), 3);
        let sum: u64 = windows.iter().map(|window| sizes.events(*window)).sum();
        assert_eq!(sum, sizes.events(ALL));
        let inner = sizes.cuts(windows[1], 50_000);
        let (from, to) = (windows[1].from.unwrap(), windows[1].to.unwrap());
        assert!((1..=2).contains(&inner.len()), "{inner:?}");
        assert!(inner.iter().all(|cut| *cut > from && *cut < to));
    }

    #[test]
    fn bytes_of_a_buffer_belong_to_all_items_in_it() {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut sizes = Sizes::new(Arc::clone(&bytes));
        for time in 0..1000 {
            if time % 100 == 99 {
                bytes.fetch_add(300, Ordering::Relaxed);
            }
            sizes.at(Nanos(time)).unwrap();
        }
        assert_eq!(sizes.events(ALL), 3000);
        assert!(sizes.cuts(ALL, 750).len() == 3 || sizes.cuts(ALL, 750).len() == 4);
    }

    #[test]
    fn bytes_without_a_time_belong_to_the_first_part() {
        let mut sizes = sizes(1000, 3);
        sizes.places.insert(OutputPlace::First, 500);
        let [first, second] = ALL.cut_at(&[Nanos(511)])[..] else {
            panic!("one cut makes two parts");
        };
        assert_eq!(sizes.events(first), 500 + 3 * 512);
        assert_eq!(sizes.events(first) + sizes.events(second), 3500);
    }
}
