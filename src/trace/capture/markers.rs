//! Markers, ranges and named external ids: those of a thread nest on its tracks, started ranges are placed in rows of the
//! process in which they do not overlap.

use std::io;

use super::StreamOutput;
use super::process::{ProcessStream, known_or};
use super::ranges::{DescribedMarker, RangeEdge};
use crate::model::{Note, TrackKind};
use gputrail_record::{Marker, MarkerKind, ThreadId, count};

/// Maximum number of values of one marker.
const MAX_FIELDS: usize = 256;

impl ProcessStream<'_> {
    /// Passes on a marker.
    pub(super) fn marker(
        &mut self,
        output: &mut StreamOutput<'_>,
        thread: ThreadId,
        marker: &Marker,
    ) -> io::Result<()> {
        let time = self.time_or_latest(self.host.to_boottime(marker.time));
        output.report.marker_records += 1;
        output.report.markers += u64::from(matches!(
            marker.what,
            MarkerKind::PUSH | MarkerKind::START | MarkerKind::INSTANT
        ));
        let place = self.thread_place(output, known_or(marker.thread, thread))?;
        let (stream, metadata) = (&mut output.stream, &self.metadata);
        let thread = &mut self.threads[place];
        let fields = match marker.what {
            MarkerKind::FIELD => {
                if thread.markers.fields.len() < MAX_FIELDS {
                    thread.markers.fields.push(*marker);
                }
                return Ok(());
            }
            _ => std::mem::take(&mut thread.markers.fields),
        };
        match marker.what {
            MarkerKind::START | MarkerKind::END => {
                let edge = RangeEdge {
                    marker: *marker,
                    time,
                    fields,
                };
                self.ranges.add(stream, metadata, edge)
            }
            MarkerKind::COUNTER => self.ranges.counter(stream, metadata, marker, time),
            MarkerKind::EXTERNAL_PUSH | MarkerKind::EXTERNAL_POP => {
                thread
                    .markers
                    .external(stream, metadata, thread.track, marker, time)
            }
            _ => {
                let kind = TrackKind::ThreadRanges(self.index, thread.id);
                let described = DescribedMarker {
                    metadata,
                    marker,
                    fields: &fields,
                };
                let unbalanced = &mut self.ranges.unbalanced;
                let place = (thread.track, kind);
                thread
                    .markers
                    .add(stream, place, &described, time, unbalanced)
            }
        }
    }

    /// Passes on what is left of the markers when the recording ends.
    pub(super) fn finish_markers(&mut self, output: &mut StreamOutput<'_>) -> io::Result<()> {
        self.ranges.finish(&mut output.stream, &self.metadata)?;
        let mut unbalanced = self.ranges.unbalanced;
        for thread in &self.threads {
            let open = thread.markers.domains.iter();
            let open: usize = open.map(|(_, ranges)| ranges.open.len()).sum();
            unbalanced.pushes += open as u64;
        }
        let facts = [
            (unbalanced.pushes, "pushed range", "did not end"),
            (unbalanced.starts, "started range", "did not end"),
            (unbalanced.pops, "pop", "had no pushed range"),
            (unbalanced.ends, "end", "had no started range"),
            (
                self.ranges.moved,
                "started range",
                "ended on another thread",
            ),
        ];
        let facts = facts.iter().filter(|(number, ..)| *number > 0);
        let facts: Vec<String> = facts
            .map(|(number, one, what)| format!("{} {what}", count(*number, one)))
            .collect();
        if facts.is_empty() {
            Ok(())
        } else {
            self.detail(
                output,
                self.latest,
                Note::UNBALANCED_MARKERS,
                &facts.join("; "),
            )
        }
    }
}
