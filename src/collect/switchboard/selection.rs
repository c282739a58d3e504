//! The selection of a service: kinds of records, and operations of domains.

use super::interest::{DOMAINS, OPERATIONS};
use gputrail_record::{Domain, KINDS, Kind, Operation};

/// A set of record kinds.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct KindSet(u64);

impl KindSet {
    /// The empty set.
    pub const NONE: KindSet = KindSet(0);
    /// All kinds, including unknown ones.
    pub const ALL: KindSet = KindSet(u64::MAX);

    /// The set of `kinds`.
    pub const fn of(kinds: &[Kind]) -> KindSet {
        let (mut set, mut place) = (0, 0);
        while place < kinds.len() {
            set |= 1 << kinds[place].index();
            place += 1;
        }
        KindSet(set)
    }

    /// Whether the set contains `kind`.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & 1 << kind.index() != 0
    }

    /// The kinds of the set that this version knows. Empty for a set that is made of [`KindSet::ALL`] and also contains
    /// what this version does not know.
    pub fn listed(self) -> impl Iterator<Item = Kind> {
        let open = self.0 >> (KINDS - 1) & 1 != 0;
        let all = Kind::ALL.iter().map(|(kind, _)| *kind);
        all.filter(move |kind| !open && self.has(*kind))
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The union.
    pub const fn or(self, other: KindSet) -> KindSet {
        KindSet(self.0 | other.0)
    }

    /// The difference.
    pub const fn without(self, other: KindSet) -> KindSet {
        KindSet(self.0 & !other.0)
    }
}

/// A set of operations of any domains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationSet(Box<[[u64; OPERATIONS / 64]; DOMAINS]>);

impl Default for OperationSet {
    fn default() -> Self {
        OperationSet(Box::new([[0; OPERATIONS / 64]; DOMAINS]))
    }
}

impl OperationSet {
    /// All operations of all domains.
    pub fn all() -> OperationSet {
        OperationSet(Box::new([[u64::MAX; OPERATIONS / 64]; DOMAINS]))
    }

    /// Whether the set contains `operation`.
    pub fn has(&self, operation: Operation) -> bool {
        self.0
            .get(operation.domain.0 as usize)
            .and_then(|domain| domain.get(operation.number as usize / 64))
            .is_some_and(|word| word & 1 << (operation.number % 64) != 0)
    }

    /// The operations of `domain`, a bit each.
    pub(super) fn of(&self, domain: Domain) -> [u64; OPERATIONS / 64] {
        self.0.get(domain.0 as usize).copied().unwrap_or_default()
    }

    /// Adds or removes `operation`. Returns `false` if it is out of range.
    pub fn set(&mut self, operation: Operation, within: bool) -> bool {
        let word = self
            .0
            .get_mut(operation.domain.0 as usize)
            .and_then(|domain| domain.get_mut(operation.number as usize / 64));
        let Some(word) = word else {
            return false;
        };
        let bit = 1 << (operation.number % 64);
        *word = if within { *word | bit } else { *word & !bit };
        true
    }

    /// Adds all operations of `other`.
    pub fn add(&mut self, other: &OperationSet) {
        for (words, others) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *words |= others;
        }
    }

    /// Whether the set contains an operation of `domain`.
    pub fn has_any(&self, domain: Domain) -> bool {
        self.0
            .get(domain.0 as usize)
            .is_some_and(|words| words.iter().any(|word| *word != 0))
    }

    /// Adds or removes all operations of `domain`. Returns `false` if it is out of range.
    pub fn set_domain(&mut self, domain: Domain, within: bool) -> bool {
        let Some(words) = self.0.get_mut(domain.0 as usize) else {
            return false;
        };
        words.fill(if within { u64::MAX } else { 0 });
        true
    }
}

/// The selection of a buffer service: records of `kinds`, with API calls limited to `operations`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordSelection {
    /// The kinds of records.
    pub kinds: KindSet,
    /// The operations whose calls are recorded, if `kinds` contains [`Kind::API`].
    pub operations: OperationSet,
    /// Whether the arguments of enqueuing calls are recorded, if `kinds` contains [`Kind::ARGUMENTS`]. They are
    /// numerous, and mostly repeated in the records of the work.
    pub enqueue_arguments: bool,
    /// Whether the stacks of enqueuing calls are taken.
    pub call_stacks: bool,
}

impl RecordSelection {
    /// All kinds and operations.
    pub fn all() -> RecordSelection {
        RecordSelection {
            kinds: KindSet::ALL,
            operations: OperationSet::all(),
            enqueue_arguments: true,
            call_stacks: false,
        }
    }

    /// The given kinds and all operations.
    pub fn kinds(kinds: &[Kind]) -> RecordSelection {
        RecordSelection {
            kinds: KindSet::of(kinds),
            operations: OperationSet::all(),
            enqueue_arguments: true,
            call_stacks: false,
        }
    }

    /// The empty selection.
    pub fn none() -> RecordSelection {
        RecordSelection {
            kinds: KindSet::NONE,
            operations: OperationSet::default(),
            enqueue_arguments: true,
            call_stacks: false,
        }
    }
}
