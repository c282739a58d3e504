//! Records of markers: moments, and the two ends of ranges, which have the same number.

use super::kind::ActivityKind;
use super::record::{ActivityRecord, Marker2, MarkerData, object};
use super::sink;
use super::wanted::is_anywhere;
use core::ffi::c_char;
use gputrail_abi::activity::{RangeEvent, Ranges};
use gputrail_abi::names;
use gputrail_record::{LockStep, Marker, PayloadKind, StringId};
use gputrail_tool::string;

/// `CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS`, `_START` and `_END`
const INSTANT: u32 = 1 << 0;
const START: u32 = 1 << 1;
const END: u32 = 1 << 2;
/// `CUPTI_ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE`, `_ACQUIRE_SUCCESS`, `_ACQUIRE_FAILED` and `_RELEASE`, by a marker's step.
const SYNC: [(LockStep, u32); 4] = [
    (LockStep::Acquire, 1 << 3),
    (LockStep::Success, 1 << 4),
    (LockStep::Failed, 1 << 5),
    (LockStep::Release, 1 << 6),
];
/// The ranges that have not ended, with their numbers.
#[derive(Default)]
pub struct Markers {
    last: u32,
    ranges: Ranges<u32>,
}

impl Markers {
    /// Puts the records of a marker. Other events of marker libraries have none, and an end whose beginning was not recorded.
    pub fn put(&mut self, marker: &Marker) {
        let (flags, id) = match self.ranges.event(marker) {
            Some(RangeEvent::Mark) => (INSTANT, self.next()),
            Some(RangeEvent::Begin) => {
                let id = self.next();
                self.ranges.begin(marker, id);
                (START, id)
            }
            Some(RangeEvent::End(id)) => (END, id),
            None => return,
        };
        if is_anywhere(ActivityKind::MARKER) {
            let is_it = |(step, _): &&(LockStep, u32)| *step as u16 == marker.external_kind;
            let of_lock = SYNC.iter().find(is_it).map_or(0, |(_, flag)| *flag);
            put_marker(marker, flags | of_lock, id);
        }
        if is_anywhere(ActivityKind::MARKER_DATA) && flags != END {
            put_data(marker, id);
        }
    }

    fn next(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        self.last
    }
}

fn put_marker(marker: &Marker, flags: u32, id: u32) {
    let mut record = Marker2::blank();
    (record.flags, record.id) = (flags, id);
    record.timestamp = marker.time.0;
    record.object_kind = object::THREAD;
    record.object_id = [std::process::id(), marker.thread.0, 0];
    record.name = names::of_string(marker.name);
    record.domain = names::of_string(marker.domain);
    sink::put(&record);
}

fn put_data(marker: &Marker, id: u32) {
    let mut record = MarkerData::blank();
    record.id = id;
    // CUPTI_ACTIVITY_FLAG_MARKER_COLOR_NONE, or _ARGB
    record.flags = if marker.color == 0 { 1 } else { 2 };
    record.color = marker.color;
    record.category = category(marker.category);
    // CUPTI_METRIC_VALUE_KIND_DOUBLE, _UINT64 and _INT64
    (record.payload_kind, record.payload) = match marker.payload_kind {
        PayloadKind::FLOAT => (0, marker.payload),
        PayloadKind::SIGNED => (4, marker.payload),
        PayloadKind::TEXT => (
            1,
            address(names::of_string(StringId(marker.payload as u32))),
        ),
        _ => (1, marker.payload),
    };
    sink::put(&record);
}

/// The number of a category: the program's own where it has given it no name, or else that of its name.
fn category(category: StringId) -> u32 {
    let text = category.is_some().then(|| string(category)).flatten();
    let number = text.and_then(|text| text.parse().ok());
    number.unwrap_or(category.0)
}

/// A text as a number: where it is.
fn address(text: *const c_char) -> u64 {
    text.expose_provenance() as u64
}

#[cfg(test)]
mod tests {
    use super::super::wanted;
    use super::*;
    use crate::objects::CUcontext;
    use gputrail_abi::lock;
    use gputrail_record::{MarkerKind, ThreadId};
    use std::sync::Mutex;

    /// The flags and numbers of the markers that the program got.
    static GOT: Mutex<Vec<(u32, u32)>> = Mutex::new(Vec::new());

    unsafe extern "C-unwind" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
        let memory: &'static mut [u64] = Box::leak(vec![0; 64].into_boxed_slice());
        // SAFETY: places for the answers.
        unsafe {
            buffer.write(memory.as_mut_ptr().cast());
            size.write(size_of_val(memory));
            most.write(1);
        }
    }

    unsafe extern "C-unwind" fn complete(
        _: CUcontext,
        _: u32,
        buffer: *mut u8,
        _: usize,
        valid: usize,
    ) {
        assert_eq!(valid, size_of::<Marker2>());
        // SAFETY: one record, as was requested.
        let record = unsafe { buffer.cast::<Marker2>().read() };
        lock(&GOT).push((record.flags, record.id));
    }

    fn marker(what: MarkerKind, thread: u32, id: u64) -> Marker {
        let mut marker = Marker::blank();
        (marker.what, marker.thread, marker.id) = (what, ThreadId(thread), id);
        marker
    }

    #[test]
    fn both_ends_of_a_range_have_one_number() {
        assert!(sink::register(sink::Functions::Plain(request, complete)).is_ok());
        wanted::set(ActivityKind::MARKER, None, Some(true));
        let mut markers = Markers::default();
        for one in [
            marker(MarkerKind::PUSH, 1, 1),
            marker(MarkerKind::PUSH, 2, 1),
            marker(MarkerKind::PUSH, 1, 2),
            marker(MarkerKind::START, 1, 70),
            marker(MarkerKind::INSTANT, 1, 2),
            // One range more of this thread has ended without a record.
            marker(MarkerKind::POP, 1, 1 << 32 | 1),
            marker(MarkerKind::END, 2, 70),
            marker(MarkerKind::POP, 2, 1),
            // Their beginnings were not recorded.
            marker(MarkerKind::POP, 2, 1),
            marker(MarkerKind::END, 2, 70),
            marker(MarkerKind::COUNTER, 2, 0),
        ] {
            markers.put(&one);
        }
        sink::flush();
        let wanted = [
            (START, 1),
            (START, 2),
            (START, 3),
            (START, 4),
            (INSTANT, 5),
            (END, 1),
            (END, 4),
            (END, 2),
        ];
        assert_eq!(*lock(&GOT), wanted);
        wanted::forget();
        sink::reset();
    }
}
