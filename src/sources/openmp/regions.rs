//! The parallel regions of a process: their names, and when they ended.
//!
//! A thread leaves the barrier at the end of a region when the next one begins, which may be much later: what it was in
//! ends with the region. The table is a ring, which the thread that begins a region writes and all threads read.

use gputrail_buffer::clock;
use gputrail_collect::marker::KeptText;
use gputrail_record::Ticks;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

/// Regions in the table.
const REGIONS: usize = 1024;

/// A region of the process, from 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Region(pub u64);

struct RegionPlace {
    /// The number of the region, or 0 while the place is written.
    number: AtomicU64,
    /// When it ended, or 0.
    end: AtomicU64,
    name: AtomicPtr<KeptText>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);
static PLACES: [RegionPlace; REGIONS] = [const {
    RegionPlace {
        number: AtomicU64::new(0),
        end: AtomicU64::new(0),
        name: AtomicPtr::new(std::ptr::null_mut()),
    }
}; REGIONS];

impl Region {
    /// A region that begins.
    pub fn begin(name: &'static KeptText) -> Region {
        let region = Region(NEXT.fetch_add(1, Ordering::Relaxed));
        let place = region.place();
        place.number.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        place.end.store(0, Ordering::Relaxed);
        let name = std::ptr::from_ref(name).cast_mut();
        place.name.store(name, Ordering::Relaxed);
        place.number.store(region.0, Ordering::Release);
        region
    }

    /// The region has ended.
    pub fn end(self, now: Ticks) {
        let place = self.place();
        if place.number.load(Ordering::Relaxed) == self.0 {
            place.end.store(now.0, Ordering::Release);
        }
    }

    /// When it ended; `None` if it has not, or is no longer in the table.
    fn ended(self) -> Option<Ticks> {
        let (end, _) = self.read()?;
        end.is_some().then_some(end)
    }

    /// When a thread leaves it that reports this now: then, or when the region ended, if it has. The clock is read first: a
    /// region that has not ended afterwards ends no earlier, however long the thread is kept from its processor meanwhile.
    pub fn left(self) -> Ticks {
        let now = clock::now();
        self.ended().unwrap_or(now)
    }

    /// Its name.
    pub fn name(self) -> Option<&'static KeptText> {
        let (_, name) = self.read()?;
        // SAFETY: a name that was kept for ever.
        unsafe { name.as_ref() }
    }

    fn read(self) -> Option<(Ticks, *mut KeptText)> {
        let place = self.place();
        if place.number.load(Ordering::Acquire) != self.0 {
            return None;
        }
        let read = (
            Ticks(place.end.load(Ordering::Acquire)),
            place.name.load(Ordering::Relaxed),
        );
        fence(Ordering::Acquire);
        (place.number.load(Ordering::Relaxed) == self.0).then_some(read)
    }

    fn place(self) -> &'static RegionPlace {
        &PLACES[self.0 as usize % REGIONS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn a_region_is_known_until_another_takes_its_place() {
        static NAME: KeptText = KeptText::new(Cow::Borrowed("parallel"));
        let region = Region::begin(&NAME);
        assert_eq!(region.ended(), None);
        assert_eq!(region.name().map(KeptText::text), Some("parallel"));
        region.end(Ticks(7));
        assert_eq!((region.ended(), region.left()), (Some(Ticks(7)), Ticks(7)));
        for _ in 0..REGIONS {
            Region::begin(&NAME).end(Ticks(8));
        }
        assert_eq!((region.ended(), region.name().is_none()), (None, true));
        assert_eq!(Region(0).ended(), None);
    }
}
