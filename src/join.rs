//! Puts enqueue records and completions together.
//!
//! They come in either order: a completion is written by whatever thread learnt of it, and that
//! thread's block may be delivered first. What has no partner yet waits in tables of bounded
//! size, and the older half gives way.

use crate::number_map::NumberMap;
use crate::record::{Completion, Unfinished, WorkId};
use std::collections::BTreeMap;

/// Most enqueues, and most completions, that wait for their partner.
const MOST: usize = 1 << 18;
/// Most completions that have met parts of a command buffer, and may meet more of them: these come close behind.
const MOST_MET: usize = 1 << 14;

/// What was enqueued, as its reader keeps it.
pub(crate) trait Enqueue {
    /// The work.
    fn work(&self) -> WorkId;
    /// No completion will come.
    fn is_untracked(&self) -> bool;
    /// It is part of a command buffer, and shares its work id and its completion.
    fn is_shared(&self) -> bool;
    /// Its number among the parts of a command buffer, which share their work id; 0 otherwise.
    fn serial(&self) -> u32;
    /// Gives it its number.
    fn set_serial(&mut self, serial: u32);
}

/// Work as far as it is known.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Found<E> {
    /// Both records.
    Both(E, Completion),
    /// No completion came, or none will.
    Enqueued(E),
    /// No enqueue record came.
    Completed(Completion),
}

/// The records that wait for their partner.
#[derive(Debug)]
pub(crate) struct Join<E> {
    enqueued: NumberMap<WorkId, E>,
    /// Parts of command buffers, by their numbers too.
    parts: BTreeMap<(WorkId, u32), E>,
    completed: NumberMap<WorkId, Completion>,
    /// Completions of command buffers.
    met: NumberMap<WorkId, Completion>,
    most: usize,
    serial: u32,
}

impl<E: Enqueue + Copy> Default for Join<E> {
    fn default() -> Join<E> {
        Join::of_size(MOST)
    }
}

impl<E: Enqueue + Copy> Join<E> {
    pub fn of_size(most: usize) -> Join<E> {
        Join {
            enqueued: NumberMap::default(),
            parts: BTreeMap::new(),
            completed: NumberMap::default(),
            met: NumberMap::default(),
            most,
            serial: 0,
        }
    }

    /// Takes in an enqueue record; what is known in full by it is added to `found`. Returns the serial
    /// that the work was given.
    pub fn enqueue(&mut self, mut work: E, found: &mut Vec<Found<E>>) -> u32 {
        let shared = work.is_shared();
        if shared {
            self.serial = self.serial.wrapping_add(1).max(1);
            work.set_serial(self.serial);
        }
        if work.is_untracked() || !work.work().is_some() {
            found.push(Found::Enqueued(work));
            return work.serial();
        }
        if let Some(completion) = self.completion(work.work(), shared) {
            found.push(Found::Both(work, completion));
            return work.serial();
        }
        if shared {
            self.parts.insert((work.work(), work.serial()), work);
            if self.parts.len() > self.most
                && let Some((_, oldest)) = self.parts.pop_first()
            {
                found.push(Found::Enqueued(oldest));
            }
        } else {
            self.enqueued.insert(work.work(), work);
            if self.enqueued.len() > self.most {
                let older = older_half(&mut self.enqueued).into_iter();
                found.extend(older.map(Found::Enqueued));
            }
        }
        work.serial()
    }

    /// Takes in a completion; what is known in full by it is added to `found`.
    pub fn complete(&mut self, completion: &Completion, found: &mut Vec<Found<E>>) {
        // The real one comes later, or none.
        if completion.unfinished == Unfinished::AT_FLUSH {
            return;
        }
        let id = completion.work;
        if let Some(work) = self.enqueued.remove(&id) {
            found.push(Found::Both(work, *completion));
            return;
        }
        let parts = self.parts.extract_if((id, 0)..=(id, u32::MAX), |_, _| true);
        let before = found.len();
        found.extend(parts.map(|(_, work)| Found::Both(work, *completion)));
        if found.len() > before {
            self.has_met(*completion);
            return;
        }
        self.completed.insert(id, *completion);
        if self.completed.len() > self.most {
            let older = older_half(&mut self.completed).into_iter();
            found.extend(older.map(Found::Completed));
        }
    }

    /// The completion that came before its work, if it did.
    #[inline]
    fn completion(&mut self, work: WorkId, shared: bool) -> Option<Completion> {
        let early = match self.completed.is_empty() {
            true => None,
            false => self.completed.remove(&work),
        };
        match early {
            Some(completion) if shared => self.has_met(completion),
            None if !self.met.is_empty() => return self.met.get(&work).copied(),
            _ => {}
        }
        early
    }

    fn has_met(&mut self, completion: Completion) {
        self.met.insert(completion.work, completion);
        if self.met.len() > MOST_MET {
            older_half(&mut self.met);
        }
    }

    /// What still waits when there are no more records.
    pub fn finish(&mut self, found: &mut Vec<Found<E>>) {
        let parts = std::mem::take(&mut self.parts).into_iter();
        let singles = std::mem::take(&mut self.enqueued).into_iter();
        let mut enqueued: Vec<_> = singles
            .map(|(id, work)| ((id, 0), work))
            .chain(parts)
            .collect();
        enqueued.sort_unstable_by_key(|(key, _)| *key);
        found.extend(enqueued.into_iter().map(|(_, work)| Found::Enqueued(work)));
        let unmet = std::mem::take(&mut self.completed).into_values();
        let mut unmet: Vec<_> = unmet.collect();
        unmet.sort_unstable_by_key(|completion| completion.work);
        found.extend(unmet.into_iter().map(Found::Completed));
    }
}

/// Takes the older half of a table, in order: half of it at once, so that each entry costs little.
fn older_half<T>(table: &mut NumberMap<WorkId, T>) -> Vec<T> {
    let mut ids: Vec<WorkId> = table.keys().copied().collect();
    let half = ids.len() / 2;
    let (older, ..) = ids.select_nth_unstable(half);
    older.sort_unstable();
    older.iter().filter_map(|id| table.remove(id)).collect()
}
