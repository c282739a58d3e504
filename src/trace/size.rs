//! Sizes of outputs by time: how much of a stream fits into so many bytes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::model::{
    Call, Consumer, CounterIndex, CounterValue, Instant, Slice, SliceEnd, Track, TrackIndex, Work,
};
use crate::record::Nanos;

/// Maximum number of spans of time that are told apart.
const MAX_SPANS: usize = 1 << 14;

/// Counts the bytes that are written, and passes them on.
pub(super) struct Counted<W> {
    out: W,
    bytes: Arc<AtomicU64>,
}

impl<W> Counted<W> {
    /// A writer to `out`, and its counter.
    pub fn new(out: W) -> (Counted<W>, Arc<AtomicU64>) {
        let bytes = Arc::new(AtomicU64::new(0));
        (
            Counted {
                out,
                bytes: Arc::clone(&bytes),
            },
            bytes,
        )
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Attributes the bytes of an output to the times of its events. It stands behind the writer of the output.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    bytes: Arc<AtomicU64>,
    /// Bytes that have been attributed.
    seen: u64,
    /// Bytes of declarations.
    declared: u64,
    /// Bytes of spans of 2^shift ns, by their numbers.
    spans: BTreeMap<u64, u64>,
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

    fn news(&mut self) -> u64 {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let news = bytes - self.seen;
        self.seen = bytes;
        news
    }

    fn at(&mut self, time: Nanos) {
        let bytes = self.news();
        *self.spans.entry(time.0 >> self.shift).or_default() += bytes;
        while self.spans.len() > MAX_SPANS {
            self.shift += 1;
            let mut wider = BTreeMap::new();
            for (span, bytes) in &self.spans {
                *wider.entry(span >> 1).or_default() += bytes;
            }
            self.spans = wider;
        }
    }

    /// Times at which to cut so that each part takes about `limit` bytes with the declarations, which all have: the ends of
    /// all parts but the last. A span of time that is larger by itself is one part.
    pub fn cuts(&self, limit: u64) -> Vec<Nanos> {
        let limit = limit.saturating_sub(self.declared).max(1);
        let (mut cuts, mut part) = (Vec::new(), 0);
        for (span, bytes) in &self.spans {
            if part > 0 && part + bytes > limit {
                cuts.push(Nanos((span << self.shift).saturating_sub(1)));
                part = 0;
            }
            part += bytes;
        }
        cuts
    }
}

impl Consumer for Sizes {
    fn track(&mut self, _: TrackIndex, _: &Track<'_>) -> io::Result<()> {
        self.declared += self.news();
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.at(call.start);
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.at(slice.start);
        Ok(())
    }

    fn end(&mut self, _: TrackIndex, end: Nanos) -> io::Result<()> {
        self.at(end);
        Ok(())
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        self.at(end.time);
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        self.at(instant.time);
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        match work.start {
            Some(start) => self.at(start),
            None => self.declared += self.news(),
        }
        Ok(())
    }

    fn value(&mut self, _: TrackIndex, time: Nanos, _: CounterValue) -> io::Result<()> {
        self.at(time);
        Ok(())
    }

    fn counter_values(
        &mut self,
        _: CounterIndex,
        time: Nanos,
        _: &[CounterValue],
    ) -> io::Result<()> {
        self.at(time);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_leave_parts_of_the_wanted_size() {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut sizes = Sizes::new(Arc::clone(&bytes));
        bytes.fetch_add(10, Ordering::Relaxed);
        sizes.declared += sizes.news();
        for time in 0..100_000_u64 {
            bytes.fetch_add(3, Ordering::Relaxed);
            sizes.at(Nanos(time));
        }
        assert!(sizes.spans.len() <= MAX_SPANS);
        let cuts = sizes.cuts(30_010);
        assert_eq!(cuts.len(), 9, "{cuts:?}");
        assert!(cuts.is_sorted());
        assert_eq!(sizes.cuts(1 << 30), []);
    }
}
