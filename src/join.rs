//! Puts enqueue records and completions together.
//!
//! They come in either order: a completion is written by whatever thread learnt of it, and that
//! thread's block may be delivered first. What has no partner yet waits in a table of bounded
//! size, and the oldest gives way.

use crate::record::{Completion, Unfinished, WorkId};
use std::collections::BTreeMap;

/// Most enqueues, and most completions, that wait for their partner.
const MOST: usize = 1 << 18;

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

/// A completion that waits.
#[derive(Debug)]
struct Early {
    completion: Completion,
    /// It has met parts of a command buffer, and waits for more of them only.
    met: bool,
}

/// The records that wait for their partner.
#[derive(Debug)]
pub(crate) struct Join<E> {
    enqueued: BTreeMap<(WorkId, u32), E>,
    completed: BTreeMap<WorkId, Early>,
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
            enqueued: BTreeMap::new(),
            completed: BTreeMap::new(),
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
        if let Some(early) = self.completed.get_mut(&work.work()) {
            early.met = true;
            found.push(Found::Both(work, early.completion));
            if !shared {
                self.completed.remove(&work.work());
            }
            return work.serial();
        }
        self.enqueued.insert((work.work(), work.serial()), work);
        if self.enqueued.len() > self.most
            && let Some((_, oldest)) = self.enqueued.pop_first()
        {
            found.push(Found::Enqueued(oldest));
        }
        work.serial()
    }

    /// Takes in a completion; what is known in full by it is added to `found`.
    pub fn complete(&mut self, completion: Completion, found: &mut Vec<Found<E>>) {
        // The real one comes later, or none.
        if completion.unfinished == Unfinished::AT_FLUSH {
            return;
        }
        let id = completion.work;
        let mut met = false;
        while let Some((&key, _)) = self.enqueued.range((id, 0)..=(id, u32::MAX)).next() {
            let work = self.enqueued.remove(&key).expect("it was just found");
            found.push(Found::Both(work, completion));
            met = true;
            if !work.is_shared() {
                return;
            }
        }
        self.completed.insert(id, Early { completion, met });
        if self.completed.len() > self.most
            && let Some((_, oldest)) = self.completed.pop_first()
            && !oldest.met
        {
            found.push(Found::Completed(oldest.completion));
        }
    }

    /// What still waits when there are no more records.
    pub fn finish(&mut self, found: &mut Vec<Found<E>>) {
        let enqueued = std::mem::take(&mut self.enqueued);
        found.extend(enqueued.into_values().map(Found::Enqueued));
        let completed = std::mem::take(&mut self.completed).into_values();
        let unmet = completed.filter(|early| !early.met);
        found.extend(unmet.map(|early| Found::Completed(early.completion)));
    }
}
