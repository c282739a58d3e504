//! Arrows between slices: a pass over the sorted records ahead of the one that passes them on, since a slice is passed on when it
//! begins and the points of arrows lie inside of it.
//!
//! Viewers draw an arrow between the points of a flow in the order of their times, and a point has the time at which its slice
//! begins or ends. So a point stands at the begin of its slice if that is behind the point before it, else at the end: the slice
//! in which a thread waits begins before the one that it waits for. Each further end of an arrow that has ended is a flow of its
//! own from the same begin.
//!
//! Work of devices has no points. An arrow between a call and its work is the tie by their correlation id. In files whose calls and
//! work may have no id in common, an arrow of a category for that ties work to the slice in which it begins. Other arrows at work
//! are counted. Memory: about 100 bytes for each arrow and 32 for each of its points and ties, up to [`MAX_FLOWS`] and
//! [`MAX_POINTS`].

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::mem;

use super::collect::{Collected, LaneKey};
use super::ids::Id;
use super::record::{NONE, RecordHead, StoredKind, flag};
use gputrail_record::number_map::NumberMap;
use gputrail_trace::model::{FlowId, FlowPoint};

/// Most ids of arrows.
const MAX_FLOWS: usize = 1 << 20;
/// Most points of arrows.
const MAX_POINTS: usize = 1 << 22;
/// Most ends of arrows that wait for the slice behind them.
const MAX_WAITING: usize = 1 << 16;
/// Slices of a thread beyond which those that have ended are looked for.
const MANY_OPEN: usize = 1 << 10;

/// The points of arrows on slices, in the order of the slices.
#[derive(Debug, Default)]
pub(super) struct Arrows {
    points: Vec<SlicePoint>,
    next: usize,
    ties: Vec<SliceTie>,
    next_tie: usize,
}

/// Ends of arrows from work to the slices that wait for it, in whatever order.
#[derive(Debug, Default)]
struct WaitEnds {
    work: Option<u32>,
    slices: Vec<u64>,
}

/// Work that an arrow ties to a slice.
#[derive(Copy, Clone, Debug)]
pub(super) struct SliceTie {
    /// The place of the slice among the records.
    ordinal: u64,
    /// The event id of the work.
    pub work: u32,
    /// The id by which the file names the tie.
    pub correlation: Option<u64>,
    /// Whether the slice waits for the work, and did not submit it.
    pub is_wait: bool,
}

/// A point of an arrow on a slice.
#[derive(Copy, Clone, Debug)]
struct SlicePoint {
    /// The place of the slice among the records.
    ordinal: u64,
    point: FlowPoint,
    at_end: bool,
}

impl Arrows {
    /// Adds the points on the slice at a place among the records to those at its begin and those at its end. Places only rise.
    pub fn take(&mut self, ordinal: u64, (begin, end): (&mut Vec<FlowPoint>, &mut Vec<FlowPoint>)) {
        while let Some(next) = self.points.get(self.next)
            && next.ordinal <= ordinal
        {
            self.next += 1;
            if next.ordinal == ordinal {
                if next.at_end {
                    end.push(next.point)
                } else {
                    begin.push(next.point)
                }
            }
        }
    }

    /// The work that arrows tie to the slice at a place among the records. Places only rise.
    pub fn ties(&mut self, ordinal: u64) -> &[SliceTie] {
        let rest = &self.ties[self.next_tie..];
        let first = rest.iter().take_while(|tie| tie.ordinal < ordinal).count();
        let own = rest[first..].iter();
        let count = own.take_while(|tie| tie.ordinal == ordinal).count();
        let first = self.next_tie + first;
        self.next_tie = first + count;
        &self.ties[first..self.next_tie]
    }
}

/// The best tie of a piece of work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BestTie {
    Operator,
    Call,
    /// Calls and work have an id in common.
    Id,
}

/// Finds the slices of all arrows.
pub(super) fn find(collected: &mut Collected<'_>) -> io::Result<Arrows> {
    let mut begun = collected.begun_flows.iter();
    let has_loose = begun.any(|id| !collected.correlations.has_work(*id));
    if !collected.has_arrows && !has_loose {
        return Ok(Arrows::default());
    }
    let mut events = mem::take(&mut collected.events);
    let mut finder = ArrowFinder::new(collected);
    let mut ordinal = 0;
    events.pass(|(time, _), bytes| {
        finder.record(time, ordinal, RecordHead::read(bytes));
        ordinal += 1;
        Ok(())
    })?;
    let arrows = finder.finish();
    collected.events = events;
    Ok(arrows)
}

/// A slice, or work of a device.
#[derive(Copy, Clone, Debug)]
struct ArrowPlace {
    ordinal: u64,
    start: i64,
    /// `i64::MAX` if it does not end.
    end: i64,
    kind: PlaceKind,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum PlaceKind {
    Slice,
    /// A call with its correlation id.
    Call(u64),
    /// Work with its event id.
    Work(u32),
}

/// Where a point is among the points of all slices: its time, whether it is at a begin, which come behind ends, and the slice.
type PointOrder = (i64, bool, u64);

/// Points of one flow.
#[derive(Debug)]
struct PendingArrow {
    /// Where the next arrow begins.
    from: ArrowPlace,
    offset: u64,
    /// The flow that has come to `from`, and its point there.
    carried: Option<(FlowId, PointOrder)>,
    is_connected: bool,
    has_ended: bool,
    by_correlation: bool,
}

/// Finds the slices of arrows, in the order of time.
struct ArrowFinder<'c, 'a> {
    collected: &'c mut Collected<'a>,
    /// The thread or row of each lane.
    groups: Vec<u32>,
    /// The slices and the work of each group that have begun, in this order. Those that have ended go when they come last.
    open: Vec<Vec<ArrowPlace>>,
    /// Ends of arrows that wait for the next slice of a group.
    waiting: BTreeMap<u32, Vec<RecordHead>>,
    waiting_count: usize,
    /// Slices that begin at `begin_time`, by their offsets; only if events name flows.
    begun: HashMap<u64, ArrowPlace, foldhash::fast::RandomState>,
    begin_time: i64,
    /// By id and process.
    flows: NumberMap<(u64, u32), PendingArrow>,
    /// Ends at work of arrows that tie it, ahead of their begins: the clocks of host and device differ. By id.
    early: NumberMap<u64, (RecordHead, ArrowPlace)>,
    /// The process in which the latest flow with an id began.
    latest: NumberMap<u64, u32>,
    processes: HashMap<Id, u32>,
    points: Vec<SlicePoint>,
    /// Ties by the event id of the work.
    ties: NumberMap<u32, (BestTie, SliceTie)>,
    /// Waits by the id of the arrow.
    waits: NumberMap<u64, WaitEnds>,
    flow_count: u64,
}

impl<'c, 'a> ArrowFinder<'c, 'a> {
    fn new(collected: &'c mut Collected<'a>) -> ArrowFinder<'c, 'a> {
        let mut threads: HashMap<(Id, Id), u32> = HashMap::new();
        let mut groups = Vec::new();
        let mut count = 0;
        for lane in &collected.lanes {
            let new = count;
            let group = match lane {
                LaneKey::Thread { pid, tid, .. } => *threads.entry((*pid, *tid)).or_insert(new),
                LaneKey::Async { .. } | LaneKey::Rest => new,
            };
            count += u32::from(group == new);
            groups.push(group);
        }
        ArrowFinder {
            collected,
            groups,
            open: vec![Vec::new(); count as usize],
            waiting: BTreeMap::new(),
            waiting_count: 0,
            begun: HashMap::default(),
            begin_time: i64::MIN,
            flows: NumberMap::default(),
            early: NumberMap::default(),
            latest: NumberMap::default(),
            processes: HashMap::new(),
            points: Vec::new(),
            ties: NumberMap::default(),
            waits: NumberMap::default(),
            flow_count: 0,
        }
    }

    fn lost(&mut self, reason: &'static str, offset: u64) {
        let file = self.collected.file;
        self.collected
            .report
            .unrepresented(file, reason, Some(offset));
    }

    fn record(&mut self, time: i64, ordinal: u64, head: RecordHead) {
        let kind = match head.kind() {
            StoredKind::Slice if head.has(flag::CALL) => PlaceKind::Call(head.id),
            StoredKind::Slice => PlaceKind::Slice,
            StoredKind::Work => PlaceKind::Work(head.id as u32),
            StoredKind::Flow => return self.flow(time, head),
            _ => return,
        };
        let end = match (head.duration, kind) {
            (NONE, PlaceKind::Work(_)) => time,
            (NONE, _) => i64::MAX,
            (duration, _) => time.saturating_add_unsigned(duration),
        };
        let place = ArrowPlace {
            ordinal,
            start: time,
            end,
            kind,
        };
        let group = self.groups[head.lane as usize];
        let open = &mut self.open[group as usize];
        while open.last().is_some_and(|last| last.end <= time) {
            open.pop();
        }
        if open.len() >= MANY_OPEN && open.len() == open.capacity() {
            open.retain(|place| place.end > time);
        }
        open.push(place);
        if self.collected.has_bound_arrows {
            if self.begin_time != time {
                self.begun.clear();
                self.begin_time = time;
            }
            self.begun.insert(head.offset, place);
        }
        if let Some(waiting) = self.waiting.remove(&group) {
            self.waiting_count -= waiting.len();
            for point in waiting {
                self.point(point, place);
            }
        }
    }

    /// A point of a flow: on the innermost slice around it, or on the next one.
    fn flow(&mut self, time: i64, head: RecordHead) {
        if head.has(flag::BY_CORRELATION)
            && (self.collected.correlations.has_work(head.id)
                || !self.collected.begun_flows.contains(&head.id))
        {
            // Counted when it is passed on.
            return;
        }
        let group = self.groups[head.lane as usize];
        if head.has(flag::BOUND) {
            let place = self.begun.get(&head.offset).copied();
            return match place.filter(|place| place.start == time) {
                Some(place) => self.point(head, place),
                None => self.lost("arrow (bind_id) at an event that is no slice", head.offset),
            };
        }
        let open = &mut self.open[group as usize];
        while open.last().is_some_and(|last| last.end < time) {
            open.pop();
        }
        if let Some(place) = open.last().copied() {
            self.point(head, place)
        } else if head.has(flag::ENCLOSING) {
            self.lost("end of an arrow that is in no slice", head.offset)
        } else if self.waiting_count >= MAX_WAITING {
            self.lost(
                "end of an arrow that waits for a slice: too many",
                head.offset,
            )
        } else {
            self.waiting_count += 1;
            self.waiting.entry(group).or_default().push(head);
        }
    }

    /// The number of the process that a lane belongs to: of a device, that of its work.
    fn process(&mut self, lane: u32) -> u32 {
        let pid = match self.collected.lanes[lane as usize] {
            LaneKey::Thread { pid, .. } | LaneKey::Async { pid, .. } => pid,
            LaneKey::Rest => Id::NONE,
        };
        let home = self.collected.correlations.home_of_device(pid);
        let next = self.processes.len() as u32;
        *self.processes.entry(home.unwrap_or(pid)).or_insert(next)
    }

    /// The flow that a point belongs to. Profiles of several ranks in one file may have the same ids.
    fn flow_of(&mut self, head: &RecordHead) -> (u64, u32) {
        let own = (head.id, self.process(head.lane));
        if head.has(flag::FIRST) {
            if self.latest.len() < MAX_FLOWS {
                self.latest.insert(head.id, own.1);
            }
            return own;
        }
        let is_pending = |key: &(u64, u32)| self.flows.get(key).is_some_and(|flow| !flow.has_ended);
        let latest = self.latest.get(&head.id).map(|process| (head.id, *process));
        match latest {
            _ if is_pending(&own) => own,
            Some(latest) if is_pending(&latest) || !self.flows.contains_key(&own) => latest,
            _ => own,
        }
    }

    /// A point of a flow that is on a slice or on work.
    fn point(&mut self, head: RecordHead, place: ArrowPlace) {
        if head.has(flag::WAIT) {
            return self.wait(head, place);
        }
        let key = self.flow_of(&head);
        let new = PendingArrow {
            from: place,
            offset: head.offset,
            carried: None,
            is_connected: false,
            has_ended: false,
            by_correlation: head.has(flag::BY_CORRELATION),
        };
        let is_known = self.flows.contains_key(&key);
        let may_tie = head.has(flag::TIE) || head.has(flag::TIE_OF_OPERATOR);
        if is_known && !head.has(flag::FIRST) {
            self.connect(key, &head, place);
        } else if !is_known && head.has(flag::LAST) {
            let is_at_work = matches!(place.kind, PlaceKind::Work(_));
            let has_room = self.early.len() < MAX_FLOWS;
            if !(may_tie && is_at_work && has_room) {
                self.lost("end of an arrow that does not begin", head.offset);
            } else if let Some((before, _)) = self.early.insert(head.id, (head, place)) {
                self.lost("end of an arrow that does not begin", before.offset);
            }
        } else if !is_known && self.flows.len() >= MAX_FLOWS {
            self.lost("point of an arrow beyond the first 1,048,576", head.offset);
        } else {
            if let Some(before) = self.flows.insert(key, new)
                && !before.is_connected
            {
                self.loose(before.offset, before.by_correlation);
            }
            if may_tie && let Some((end, work)) = self.early.remove(&head.id) {
                self.connect(key, &end, work);
            }
        }
    }

    /// An end of an arrow from work to a slice that waits for it. The slice may begin before the work.
    fn wait(&mut self, head: RecordHead, place: ArrowPlace) {
        if self.waits.len() >= MAX_FLOWS && !self.waits.contains_key(&head.id) {
            return self.lost("point of an arrow beyond the first 1,048,576", head.offset);
        }
        let ends = self.waits.entry(head.id).or_default();
        match place.kind {
            PlaceKind::Work(work) => ends.work = Some(work),
            PlaceKind::Slice | PlaceKind::Call(_) => ends.slices.push(place.ordinal),
        }
    }

    /// The begin of an arrow that does not end.
    fn loose(&mut self, offset: u64, by_correlation: bool) {
        if by_correlation {
            self.collected.report.loose_arrows += 1;
        } else {
            self.lost("begin of an arrow that does not end", offset);
        }
    }

    /// An arrow from where its flow has come to, to `place`.
    fn connect(&mut self, key: (u64, u32), head: &RecordHead, place: ArrowPlace) {
        let Some(mut flow) = self.flows.remove(&key) else {
            return;
        };
        let id = head.duration;
        let correlations = &self.collected.correlations;
        // Work does not begin before the call that submits it.
        let is_early = place.start < flow.from.start;
        let is_tie = match (flow.from.kind, place.kind) {
            (PlaceKind::Call(call), PlaceKind::Work(work))
                if call == id && correlations.is_of(work, id) =>
            {
                true
            }
            (PlaceKind::Slice | PlaceKind::Call(_), PlaceKind::Work(work)) if !is_early => {
                self.tie(head, flow.from.ordinal, work)
            }
            _ => false,
        };
        let is_at_work = [flow.from.kind, place.kind]
            .iter()
            .any(|kind| matches!(kind, PlaceKind::Work(_)));
        if is_tie {
            self.collected.report.arrows += if flow.is_connected { 1 } else { 2 };
        } else if is_at_work && is_early {
            let reason = "arrow to device work that begins before the call in which the arrow does";
            self.lost(reason, head.offset);
        } else if is_at_work {
            self.lost("arrow that touches device work", head.offset);
        } else if self.points.len() + 2 > MAX_POINTS {
            self.lost("arrow beyond the first 2,097,152", head.offset);
        } else if !self.draw(&mut flow, place, head.has(flag::LAST)) {
            self.lost("arrow that ends before it begins", head.offset);
        }
        flow.is_connected = true;
        if head.has(flag::LAST) {
            flow.has_ended = true;
            // A further end is one more arrow from the same begin.
            flow.carried = None;
        } else {
            flow.from = place;
        }
        self.flows.insert(key, flow);
    }

    /// Adds the points of an arrow. Returns whether there is a place for them in the order of time.
    fn draw(&mut self, flow: &mut PendingArrow, to: ArrowPlace, last: bool) -> bool {
        let behind = |order: PointOrder| -> Option<PointOrder> {
            let begin = (to.start, true, to.ordinal);
            let end = (to.end, false, to.ordinal);
            let has_end = to.end != i64::MAX;
            if begin > order {
                Some(begin)
            } else {
                Some(end).filter(|end| has_end && *end > order)
            }
        };
        let point = |flow, (_, at_begin, ordinal): PointOrder, last| SlicePoint {
            ordinal,
            point: FlowPoint { flow, last },
            at_end: !at_begin,
        };
        let goes_on = flow
            .carried
            .and_then(|(id, order)| Some((id, behind(order)?)));
        if let Some((id, order)) = goes_on {
            self.points.push(point(id, order, last));
            flow.carried = Some((id, order));
            return true;
        }
        let from = (flow.from.start, true, flow.from.ordinal);
        let Some(order) = behind(from) else {
            flow.carried = None;
            return false;
        };
        self.flow_count += 1;
        let id = FlowId(self.flow_count);
        self.points.push(point(id, from, false));
        self.points.push(point(id, order, last));
        flow.carried = Some((id, order));
        true
    }

    /// Whether an arrow ties work to the slice in which it begins, or repeats what ties it.
    fn tie(&mut self, head: &RecordHead, ordinal: u64, work: u32) -> bool {
        let id = Some(head.duration).filter(|id| *id != NONE);
        let correlations = &self.collected.correlations;
        let (best, correlation) = if head.has(flag::TIE) {
            match id {
                Some(id) if correlations.has_call(id) && correlations.is_of(work, id) => {
                    (BestTie::Id, None)
                }
                id => (BestTie::Call, id),
            }
        } else if head.has(flag::TIE_OF_OPERATOR) {
            (BestTie::Operator, None)
        } else {
            return false;
        };
        let tie = SliceTie {
            ordinal,
            work,
            correlation,
            is_wait: false,
        };
        let is_full = self.ties.len() >= MAX_POINTS;
        match self.ties.get_mut(&work) {
            Some((known, _)) if *known >= best => {}
            Some(known) => *known = (best, tie),
            None if is_full => return false,
            None => {
                self.ties.insert(work, (best, tie));
            }
        }
        true
    }

    /// The points and the ties by the order of slices.
    fn finish(mut self) -> Arrows {
        for head in mem::take(&mut self.waiting).into_values().flatten() {
            self.lost("end of an arrow behind which no slice begins", head.offset);
        }
        let early = mem::take(&mut self.early).into_values();
        let mut early: Vec<u64> = early.map(|(head, _)| head.offset).collect();
        early.sort_unstable();
        for offset in early {
            self.lost("end of an arrow that does not begin", offset);
        }
        let flows = mem::take(&mut self.flows).into_values();
        let loose = flows.filter(|flow| !flow.is_connected);
        let mut loose: Vec<_> = loose
            .map(|flow| (flow.offset, flow.by_correlation))
            .collect();
        loose.sort_unstable();
        for (offset, by_correlation) in loose {
            self.loose(offset, by_correlation);
        }
        // Stable, so that the points of a slice keep their order.
        self.points.sort_by_key(|point| point.ordinal);
        let ties = self.ties.into_values();
        let ties = ties.filter(|(best, _)| *best != BestTie::Id);
        let mut ties: Vec<SliceTie> = ties.map(|(_, tie)| tie).collect();
        for ends in self.waits.into_values() {
            let WaitEnds { work, slices } = ends;
            let Some(work) = work else {
                self.collected.report.loose_arrows += slices.len() as u64;
                continue;
            };
            // Arrows are written for work that nothing waits for, too.
            self.collected.report.loose_arrows += u64::from(slices.is_empty());
            self.collected.report.arrows += slices.len() as u64;
            ties.extend(slices.into_iter().map(|ordinal| SliceTie {
                ordinal,
                work,
                correlation: None,
                is_wait: true,
            }));
        }
        ties.sort_by_key(|tie| (tie.ordinal, tie.work));
        Arrows {
            points: self.points,
            next: 0,
            ties,
            next_tie: 0,
        }
    }
}
