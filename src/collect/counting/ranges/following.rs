//! Begins and ends of ranges, as the markers of the threads tell them.

use super::{
    CountedRanges, MAX_WAITING, NestingPlace, OpenRange, RangeAgent, RangesState, domain_of,
};
use crate::counting::ReadyValues;
use crate::switchboard::Switchboard;
use gputrail_record::{CounterInvalid, ExternalId, ExternalKind, Marker, MarkerKind, StringId};
use std::collections::HashMap;
use wildmatch::WildMatch;

impl RangesState {
    /// The outermost range that begins with the marker, if it is to be counted.
    fn begun(&self, board: &Switchboard, marker: &Marker) -> Option<(NestingPlace, StringId)> {
        let (place, name, text) = match marker.what {
            MarkerKind::PUSH if marker.name.is_some() => {
                let place = NestingPlace::Pushed(domain_of(marker), marker.level());
                (place, marker.name, board.names().text(marker.name)?)
            }
            MarkerKind::EXTERNAL_PUSH => {
                let kind = ExternalKind(marker.external_kind.into());
                let name = self.externals.get(&(kind, ExternalId(marker.id)))?;
                let place = NestingPlace::External(marker.external_kind, 0);
                (place, board.names().string(name), name.to_string())
            }
            _ => return None,
        };
        let is_counted = |pattern: Option<&WildMatch>, context| {
            pattern.is_none_or(|pattern| pattern.matches(&text)) && board.is_started(context)
        };
        let of_agent = |agent: &RangeAgent| is_counted(agent.pattern.as_ref(), agent.context);
        let expected = self.expected.as_ref();
        let is_expected =
            expected.is_some_and(|(pattern, context)| is_counted(pattern.as_ref(), *context));
        (is_expected || self.agents.iter().any(of_agent)).then_some((place, name))
    }
}

impl CountedRanges {
    /// A marker has been recorded, which may begin or end a range that is counted. Returns the values that are complete, for
    /// the caller to write.
    #[cold]
    #[inline(never)]
    pub fn follow(&self, board: &Switchboard, marker: &Marker) -> ReadyValues {
        let thread = marker.thread;
        let mut state = self.0.lock();
        let is_idle = state.agents.is_empty() && state.expected.is_none();
        if is_idle || marker.what == MarkerKind::POP && marker.id == u64::MAX {
            return Vec::new();
        }
        let of_thread = state.open.iter().position(|range| range.thread == thread);
        if let Some(place) = of_thread {
            if !state.open[place].is_ended_by(marker) {
                return Vec::new();
            }
            let mut range = state.open.swap_remove(place);
            range.end = marker.time;
            drop(state);
            // Ended by another range's begin: nobody knows when.
            self.end(range, marker.what != MarkerKind::PUSH);
            state = self.0.lock();
        }
        if let Some((place, name)) = state.begun(board, marker) {
            drop(state);
            self.begin(board, marker, place, name);
            state = self.0.lock();
        }
        std::mem::take(&mut state.ready)
    }

    fn begin(&self, board: &Switchboard, marker: &Marker, place: NestingPlace, name: StringId) {
        let mut state = self.0.lock();
        let is_counted = |range: &OpenRange| range.parts.is_some();
        let is_free = !state.is_changing && !state.open.iter().any(is_counted);
        state.latest += 1;
        let number = state.latest;
        state.open.push(OpenRange {
            number,
            thread: marker.thread,
            place,
            name,
            start: marker.time,
            end: marker.time,
            parts: is_free.then(Vec::new),
        });
        if !is_free {
            state.refused += 1;
            return;
        }
        let counters: Vec<_> = state.counters.values().cloned().collect();
        state.is_changing = !counters.is_empty();
        drop(state);
        if !counters.is_empty() {
            let name = board.names().text(name).unwrap_or_default();
            counters.iter().for_each(|counter| counter.begin(&name));
            self.0.lock().is_changing = false;
        }
    }

    fn end(&self, range: OpenRange, is_recorded: bool) {
        let subject = range.subject();
        let mut state = self.0.lock();
        state.unended += u64::from(!is_recorded);
        let state_ref = &mut *state;
        if range.parts.is_none() {
            for agent in state_ref.agents.iter().filter(|_| is_recorded) {
                let values = agent.invalid(&subject, CounterInvalid::OTHER_RANGE);
                state_ref.ready.extend(values);
            }
            return;
        }
        let counters: Vec<_> = state
            .counters
            .iter()
            .map(|(of, one)| (*of, one.clone()))
            .collect();
        state.is_changing = !counters.is_empty();
        drop(state);
        let counted = counters
            .iter()
            .map(|(agent, counter)| (*agent, counter.end()));
        let counted: Vec<_> = counted.collect();
        let mut state = self.0.lock();
        let state = &mut *state;
        state.is_changing = false;
        if !is_recorded {
            return;
        }
        for (id, values) in counted {
            let Some(agent) = state.agents.iter().find(|agent| agent.agent == id) else {
                continue;
            };
            let records = agent.records(HashMap::new());
            for values in values {
                let values = values.as_deref().map_err(|reason| *reason);
                let values = agent.to_buffers(records.of_numbers(&subject, values));
                state.ready.extend(values);
            }
        }
        let mut parts = range.parts.iter().flatten();
        if parts.all(|part| part.pending == 0) {
            let values = state.values_of(&range);
            state.ready.extend(values);
        } else if state.waiting.len() < MAX_WAITING {
            state.waiting.push(range);
        } else {
            state.unended += 1;
        }
    }
}
