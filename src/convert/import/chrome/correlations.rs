//! Calls and the work that they caused, by correlation id. The ids are those of one process: in a file with the profiles of
//! several ranks, each rank counts its own.
//!
//! The process of a piece of work is found by what the file has around it: the rank in the text of the process id; if no two
//! processes have calls with one id, the id alone; the process whose events stand before it, if the file has the profiles one
//! behind the other. If the profiles are mixed, an id that one process alone has called is that of its call; else the process is
//! the one whose events stand before nearly all work of the device; else the work is tied to no call.

use std::collections::{BTreeMap, HashMap};

use super::ids::{Id, ProcessText};
use super::pages::Pages;
use super::strings::Strings;

/// Most places, and most processes with calls, that are told apart. Work at further ones counts as that of the first place.
const MAX_PLACES: usize = 1 << 16;
/// Pieces of work of other processes that calls may look at in vain, for each piece of work of the file.
const MAX_WASTE: u64 = 1 << 10;
/// Most pieces of work with one id among which one is looked for.
const MAX_FOLLOWED: usize = 1 << 10;
/// No work, and no place.
const NONE: u32 = u32::MAX;
/// Several processes have calls with this id.
const SEVERAL: u32 = u32::MAX - 1;

/// The work that calls with one id caused: the first and the latest, from where the chain leads on.
#[derive(Copy, Clone, Debug)]
struct Chain {
    first: u32,
    last: u32,
    /// The number of the process whose calls have the id, or `SEVERAL`.
    caller: u32,
    /// Whether an arrow begins at the id.
    has_arrow: bool,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain {
            first: NONE,
            last: NONE,
            caller: NONE,
            has_arrow: false,
        }
    }
}

/// Where work stands in a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct FilePlace {
    /// The process id of the row: the device.
    device: Id,
    /// The process whose calls and operators stand before it in the file.
    behind: Option<Id>,
}

/// The process whose calls caused the work of a place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Owner {
    /// Any: no two processes have calls with one id.
    Any,
    /// This one.
    Only(Id),
    /// This one, unless no call of it has the id and one of another process has.
    Mostly(Id),
    /// Not known: the process with the id, if it is one alone.
    Unsure,
}

/// The calls and the work of a file by correlation id: about 32 bytes for each call with an id and each piece of work, where ids
/// mostly follow each other.
#[derive(Debug, Default)]
pub(super) struct Correlations {
    chains: Pages<Chain>,
    /// The next work of the same correlation id, by event id.
    next: Vec<u32>,
    /// The place of each piece of work, by event id.
    places: Vec<u32>,
    place_list: Vec<FilePlace>,
    place_numbers: HashMap<FilePlace, u32>,
    /// Pieces of work at each place.
    counts: Vec<u64>,
    /// The owner of each place, once the file has been read, and of most work of each device.
    owners: Vec<Owner>,
    homes: HashMap<Id, Id>,
    /// The processes with calls, and their numbers.
    callers: HashMap<Id, u32>,
    /// The process of the latest call and its number, and how often it changed.
    latest_caller: Option<(Id, u32)>,
    changes: usize,
    /// The process of the latest event of the host.
    behind: Option<Id>,
    /// Whether calls of several processes have the same id.
    collide: bool,
    /// Pieces of work of other processes that calls have looked at.
    wasted: u64,
}

impl Correlations {
    /// An event of the host: what follows in the file is likely of the same profile.
    pub fn host(&mut self, process: Id) {
        self.behind = Some(process);
    }

    /// A call, with its correlation id if it has one.
    pub fn call(&mut self, process: Id, correlation: Option<u64>) {
        let number = match self.latest_caller {
            Some((latest, number)) if latest == process => number,
            before => {
                let next = self.callers.len() as u32;
                if self.callers.len() >= MAX_PLACES && !self.callers.contains_key(&process) {
                    return;
                }
                let number = *self.callers.entry(process).or_insert(next);
                self.latest_caller = Some((process, number));
                self.changes += usize::from(before.is_some());
                number
            }
        };
        let Some(correlation) = correlation else {
            return;
        };
        let chain = self.chains.entry(correlation);
        chain.caller = match chain.caller {
            NONE => number,
            known if known == number => number,
            _ => {
                self.collide = true;
                SEVERAL
            }
        };
    }

    /// A new event id for work of a device, with its correlation id if it has one.
    pub fn work(&mut self, device: Id, correlation: Option<u64>) -> u32 {
        let place = FilePlace {
            device,
            behind: self.behind,
        };
        let count = self.place_list.len();
        let number = match self.place_numbers.get(&place) {
            Some(number) => *number,
            None if count >= MAX_PLACES => 0,
            None => {
                self.place_list.push(place);
                self.counts.push(0);
                self.place_numbers.insert(place, count as u32);
                count as u32
            }
        };
        self.counts[number as usize] += 1;
        self.places.push(number);
        let id = self.next.len() as u32;
        self.next.push(NONE);
        if let Some(correlation) = correlation {
            let chain = self.chains.entry(correlation);
            match chain.last {
                NONE => chain.first = id,
                last => self.next[last as usize] = id,
            }
            chain.last = id;
        }
        id
    }

    /// The file has been read: finds the owners of all places.
    pub fn settle(&mut self, strings: &Strings) {
        let rank = |id: Id| match id {
            Id::Number(_) => "",
            Id::Text(text) => ProcessText::of(strings.text(text)).rank,
        };
        let mut ranks: HashMap<&str, Vec<Id>> = HashMap::new();
        for caller in self.callers.keys() {
            ranks.entry(rank(*caller)).or_default().push(*caller);
        }
        let are_in_a_row = self.changes < self.callers.len();
        // Work of each device behind events of each process with calls.
        let mut behind: HashMap<Id, BTreeMap<Id, u64>> = HashMap::new();
        for (place, count) in self.place_list.iter().zip(&self.counts) {
            if let Some(process) = place.behind.filter(|id| self.callers.contains_key(id)) {
                *behind
                    .entry(place.device)
                    .or_default()
                    .entry(process)
                    .or_default() += count;
            }
        }
        let has_number = |id: &Id| match id {
            Id::Number(_) => false,
            Id::Text(text) => ProcessText::of(strings.text(*text)).number.is_some(),
        };
        let are_merged = self.callers.keys().any(has_number);
        let owner = |place: &FilePlace| {
            let rank = rank(place.device);
            let of_rank = ranks.get(rank).map_or(&[][..], |list| list);
            if are_merged && of_rank.is_empty() && has_number(&place.device) {
                // Of a rank without calls: the device stands for its process.
                return Owner::Only(place.device);
            }
            if self.callers.len() < 2 {
                return Owner::Any;
            }
            match of_rank {
                [one] if !rank.is_empty() => return Owner::Only(*one),
                _ if !self.collide => return Owner::Any,
                _ if self.callers.contains_key(&place.device) => {
                    return Owner::Mostly(place.device);
                }
                _ => {}
            }
            let fits = |process: &Id| of_rank.is_empty() || of_rank.contains(process);
            if let Some(process) = place.behind.filter(fits)
                && are_in_a_row
                && self.callers.contains_key(&process)
            {
                return Owner::Only(process);
            }
            let Some(counts) = behind.get(&place.device) else {
                return Owner::Unsure;
            };
            let all: u64 = counts.values().sum();
            let most = counts.iter().max_by_key(|(_, count)| **count);
            match most {
                Some((process, count)) if *count >= all - all / 4 && fits(process) => {
                    Owner::Mostly(*process)
                }
                _ => Owner::Unsure,
            }
        };
        self.owners = self.place_list.iter().map(owner).collect();
        let mut most: HashMap<Id, u64> = HashMap::new();
        let places = self.place_list.iter().zip(&self.counts);
        for ((place, count), owner) in places.zip(&self.owners) {
            let known = most.entry(place.device).or_default();
            if let Owner::Only(process) | Owner::Mostly(process) = owner
                && *count > *known
            {
                *known = *count;
                self.homes.insert(place.device, *process);
            }
        }
    }

    fn owner_of(&self, work: u32) -> Owner {
        owner_of(&self.owners, &self.places, work)
    }

    /// An arrow begins at this correlation id.
    pub fn begin_arrow(&mut self, correlation: u64) {
        self.chains.entry(correlation).has_arrow = true;
    }

    /// Whether an arrow begins at this correlation id.
    pub fn has_arrow(&self, correlation: u64) -> bool {
        let chain = self.chains.get(correlation);
        chain.is_some_and(|chain| chain.has_arrow)
    }

    /// Whether an arrow begins at a correlation id without work.
    pub fn has_loose_arrows(&self) -> bool {
        let mut chains = self.chains.values();
        chains.any(|chain| chain.has_arrow && chain.last == NONE)
    }

    /// Whether there is work with this correlation id.
    pub fn has_work(&self, correlation: u64) -> bool {
        self.chains
            .get(correlation)
            .is_some_and(|chain| chain.last != NONE)
    }

    /// Whether a call has this correlation id.
    pub fn has_call(&self, correlation: u64) -> bool {
        self.chains
            .get(correlation)
            .is_some_and(|chain| chain.caller != NONE)
    }

    /// Whether work has this correlation id.
    pub fn is_of(&self, work: u32, correlation: u64) -> bool {
        let first = self.chains.get(correlation).map(|chain| chain.first);
        let first = first.filter(|first| *first != NONE);
        let next = |id: &u32| Some(self.next[*id as usize]).filter(|next| *next != NONE);
        let mut ids = std::iter::successors(first, next).take(MAX_FOLLOWED);
        ids.any(|id| id == work)
    }

    /// Whether calls of several processes have the id, and it is not known which of them caused the work.
    pub fn is_unsure(&self, work: u32, correlation: u64) -> bool {
        let chain = self.chains.get(correlation);
        let is_called_often = chain.is_some_and(|chain| chain.caller == SEVERAL);
        is_called_often && self.owner_of(work) == Owner::Unsure
    }

    /// Takes the work that a call of a process caused: calls `take` with the event ids. Further calls with the id do not get it.
    /// In a file in which too many processes use one id, calls get none.
    pub fn claim(&mut self, correlation: u64, process: Id, mut take: impl FnMut(u32)) {
        let Some(chain) = self.chains.get_mut(correlation) else {
            return;
        };
        let is_called_often = chain.caller == SEVERAL;
        let (mut id, mut before) = (chain.first, NONE);
        let most = (self.next.len() as u64 + MAX_WASTE) * MAX_WASTE;
        while id != NONE && self.wasted < most {
            let next = self.next[id as usize];
            let is_own = match owner_of(&self.owners, &self.places, id) {
                Owner::Any => true,
                Owner::Only(owner) => owner == process,
                Owner::Mostly(owner) => owner == process || !is_called_often,
                Owner::Unsure => !is_called_often,
            };
            if is_own {
                match before {
                    NONE => chain.first = next,
                    before => self.next[before as usize] = next,
                }
                take(id);
            } else {
                before = id;
                self.wasted += 1;
            }
            id = next;
        }
    }

    /// The process that work belongs to whose call is not known.
    pub fn home(&self, work: u32) -> Option<Id> {
        match self.owner_of(work) {
            Owner::Only(process) | Owner::Mostly(process) => Some(process),
            Owner::Any => None,
            Owner::Unsure => {
                let place = *self.places.get(work as usize)?;
                self.place_list.get(place as usize)?.behind
            }
        }
    }

    /// The process that the work of a device mostly belongs to, if several have calls.
    pub fn home_of_device(&self, device: Id) -> Option<Id> {
        self.homes.get(&device).copied()
    }
}

fn owner_of(owners: &[Owner], places: &[u32], work: u32) -> Owner {
    let place = places.get(work as usize);
    let owner = place.and_then(|place| owners.get(*place as usize));
    owner.copied().unwrap_or(Owner::Any)
}
