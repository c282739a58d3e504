//! The markers of one thread: pushed ranges nest on a track for each domain whose ranges nest by themselves, external ids on
//! one track for each kind.

use std::io;

use super::ranges::{DescribedMarker, UnbalancedEnds, track_name};
use crate::model::{
    EventArgument, Instant, Parent, Slice, SliceEnd, Stream, Track, TrackIndex, TrackKind, Value,
    category,
};
use gputrail_capture::Metadata;
use gputrail_record::{
    CorrelationId, ExternalId, ExternalKind, Marker, MarkerKind, Nanos, StringId,
};

/// Maximum number of domains of a thread whose ranges have tracks of their own.
const MAX_DOMAINS: usize = 1 << 10;
/// The markers of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadMarkers {
    /// By domain, the ranges that nest by themselves; by no domain, those that nest in each other.
    pub domains: Vec<(StringId, NestedRanges)>,
    external: Vec<ExternalTrack>,
    /// Values of the next marker.
    pub fields: Vec<Marker>,
}

/// Pushed ranges that nest in each other.
#[derive(Debug, Default)]
pub(super) struct NestedRanges {
    track: Option<TrackIndex>,
    /// The levels of open ranges; 0 where they have none.
    pub open: Vec<u32>,
    /// When the latest marker was recorded.
    latest: Nanos,
}

impl NestedRanges {
    /// Ends the innermost range, which ended without a record: with the last marker inside of it.
    fn end_unrecorded(
        &mut self,
        stream: &mut Stream<'_>,
        track: TrackIndex,
        unbalanced: &mut UnbalancedEnds,
    ) -> io::Result<()> {
        self.open.pop();
        unbalanced.pushes += 1;
        stream.consumer.end_slice(&SliceEnd {
            track,
            time: self.latest,
            arguments: &[EventArgument {
                name: "end",
                value: Value::Text("not recorded: the last marker inside"),
            }],
            flows: &[],
        })
    }
}

/// The external ids of one kind.
#[derive(Debug)]
struct ExternalTrack {
    kind: ExternalKind,
    track: Option<TrackIndex>,
    /// For each pushed id, whether it has a slice.
    pushed: Vec<bool>,
}

impl ThreadMarkers {
    /// Adds a marker of the thread, or a range that is pushed or popped there.
    pub fn add(
        &mut self,
        stream: &mut Stream<'_>,
        (parent, kind): (TrackIndex, TrackKind),
        described: &DescribedMarker<'_>,
        time: Nanos,
        unbalanced: &mut UnbalancedEnds,
    ) -> io::Result<()> {
        let marker = described.marker;
        let (level, is_of_domain) = match marker.what {
            // Its id is the handle.
            MarkerKind::RESOURCE => (1, true),
            _ => (marker.level(), marker.nests_in_its_domain()),
        };
        let domain = if is_of_domain {
            marker.domain
        } else {
            StringId::NONE
        };
        let ranges = self.ranges(domain);
        let track = match (ranges.track, marker.what) {
            (Some(track), _) => track,
            // The range was pushed before the recording.
            (None, MarkerKind::POP) => {
                unbalanced.pops += 1;
                return Ok(());
            }
            (None, _) => *ranges.track.insert(stream.new_track(&Track {
                parent: Parent::Track(parent),
                name: &track_name("markers", described.metadata, domain),
                kind,
                order: None,
            })?),
        };
        let ended = match marker.what {
            MarkerKind::PUSH | MarkerKind::POP if marker.id != u64::MAX => {
                marker.ended_unrecorded() as usize
            }
            _ => 0,
        };
        for _ in 0..ended.min(ranges.open.len()) {
            ranges.end_unrecorded(stream, track, unbalanced)?;
        }
        // Ranges of this level and below have ended, too.
        let has_ended = |open: &u32| match marker.what {
            MarkerKind::PUSH => level != 0 && *open >= level,
            MarkerKind::POP => level != 0 && *open > level,
            _ => false,
        };
        while ranges.open.last().is_some_and(has_ended) {
            ranges.end_unrecorded(stream, track, unbalanced)?;
        }
        ranges.latest = time;
        match marker.what {
            MarkerKind::PUSH => {
                ranges.open.push(level);
                described.begin(stream, track, time, None, true)
            }
            MarkerKind::POP => {
                // The range may have been pushed before the recording, or never.
                if ranges.open.last() != Some(&level) {
                    unbalanced.pops += 1;
                    return Ok(());
                }
                ranges.open.pop();
                described.end(stream, track, time)
            }
            MarkerKind::INSTANT | MarkerKind::RESOURCE => {
                described.pass_on(|name, category, arguments| {
                    stream.consumer.instant(&Instant {
                        track,
                        name,
                        category,
                        time,
                        arguments,
                        flows: &[],
                    })
                })
            }
            _ => Ok(()),
        }
    }

    /// The pushed ranges of a domain.
    fn ranges(&mut self, domain: StringId) -> &mut NestedRanges {
        let known = self.domains.iter().position(|(of, _)| *of == domain);
        let place = known.unwrap_or_else(|| {
            if self.domains.len() < MAX_DOMAINS {
                self.domains.push((domain, NestedRanges::default()));
            }
            self.domains.len() - 1
        });
        &mut self.domains[place].1
    }

    /// Adds an external id that is pushed or popped. Ids with a name have slices.
    pub fn external(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        parent: TrackIndex,
        marker: &Marker,
        time: Nanos,
    ) -> io::Result<()> {
        let kind = ExternalKind(marker.external_kind.into());
        // The ranges themselves are shown.
        if metadata.is_of_ranges(kind) {
            return Ok(());
        }
        let external = self.external_track(kind);
        if marker.what == MarkerKind::EXTERNAL_POP {
            return match (external.pushed.pop(), external.track) {
                (Some(true), Some(track)) => stream.consumer.end(track, time),
                _ => Ok(()),
            };
        }
        let name = metadata.external_name(kind, ExternalId(marker.id));
        external.pushed.push(name.is_some());
        let Some(name) = name else {
            return Ok(());
        };
        let track = match external.track {
            Some(track) => track,
            None => *external.track.insert(stream.new_track(&Track {
                parent: Parent::Track(parent),
                name: &kind_title(metadata, kind),
                kind: TrackKind::Slices,
                order: None,
            })?),
        };
        stream.consumer.slice(&Slice {
            track,
            name: metadata.string(name),
            category: category::MARKER,
            start: time,
            end: None,
            open: true,
            correlation: CorrelationId::NONE,
            arguments: &[EventArgument {
                name: "external_id",
                value: Value::Uint(marker.id),
            }],
            flows: &[],
        })
    }

    fn external_track(&mut self, kind: ExternalKind) -> &mut ExternalTrack {
        let place = self.external.iter().position(|known| known.kind == kind);
        let place = place.unwrap_or_else(|| {
            self.external.push(ExternalTrack {
                kind,
                track: None,
                pushed: Vec::new(),
            });
            self.external.len() - 1
        });
        &mut self.external[place]
    }
}

fn kind_title(metadata: &Metadata, kind: ExternalKind) -> String {
    // The name of id 0 is the name that the program gave the kind.
    match (metadata.external_name(kind, ExternalId::NONE), kind.name()) {
        (Some(name), _) => metadata.string(name).to_owned(),
        (None, Some(name)) => format!("external ids: {name}"),
        (None, None) => format!("external ids: kind {}", kind.0),
    }
}
