//! What a service wants: kinds of records, and operations of domains.

use super::interest::{DOMAINS, OPERATIONS};
use crate::record::{Domain, KINDS, Kind, Operation};

/// A set of record kinds.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct KindSet(u64);

impl KindSet {
    /// No kind.
    pub const NONE: KindSet = KindSet(0);
    /// Every kind, known or not.
    pub const ALL: KindSet = KindSet(u64::MAX);

    /// These kinds.
    pub const fn of(kinds: &[Kind]) -> KindSet {
        let (mut set, mut place) = (0, 0);
        while place < kinds.len() {
            set |= 1 << kinds[place].index();
            place += 1;
        }
        KindSet(set)
    }

    /// Whether `kind` is among them.
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

    /// Those in either.
    pub const fn or(self, other: KindSet) -> KindSet {
        KindSet(self.0 | other.0)
    }

    /// Those that are not in `other`.
    pub const fn without(self, other: KindSet) -> KindSet {
        KindSet(self.0 & !other.0)
    }
}

/// A set of operations, in any domains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationSet(Box<[[u64; OPERATIONS / 64]; DOMAINS]>);

impl Default for OperationSet {
    fn default() -> Self {
        OperationSet(Box::new([[0; OPERATIONS / 64]; DOMAINS]))
    }
}

impl OperationSet {
    /// Every operation of every domain.
    pub fn all() -> OperationSet {
        OperationSet(Box::new([[u64::MAX; OPERATIONS / 64]; DOMAINS]))
    }

    /// Whether `operation` is among them.
    pub fn has(&self, operation: Operation) -> bool {
        self.0
            .get(operation.domain.0 as usize)
            .and_then(|domain| domain.get(operation.number as usize / 64))
            .is_some_and(|word| word & 1 << (operation.number % 64) != 0)
    }

    /// A bit for each operation of `domain`.
    pub(super) fn of(&self, domain: Domain) -> [u64; OPERATIONS / 64] {
        self.0.get(domain.0 as usize).copied().unwrap_or_default()
    }

    /// Puts `operation` in, or takes it out. `false`: no table has room for it.
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

    /// Puts those of `other` in.
    pub fn add(&mut self, other: &OperationSet) {
        for (words, others) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *words |= others;
        }
    }

    /// Whether any operation of `domain` is among them.
    pub fn has_any(&self, domain: Domain) -> bool {
        self.0
            .get(domain.0 as usize)
            .is_some_and(|words| words.iter().any(|word| *word != 0))
    }

    /// Puts every operation of `domain` in, or takes them out. `false`: no table has room for the domain.
    pub fn set_domain(&mut self, domain: Domain, within: bool) -> bool {
        let Some(words) = self.0.get_mut(domain.0 as usize) else {
            return false;
        };
        words.fill(if within { u64::MAX } else { 0 });
        true
    }
}

/// What a buffer service wants: records of `kinds`; of API calls only those of `operations`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// Kinds of records.
    pub kinds: KindSet,
    /// Operations whose calls are recorded, if [`Kind::API`] is among the kinds.
    pub operations: OperationSet,
    /// Whether the arguments of calls that enqueue work are recorded, if [`Kind::ARGUMENTS`] is among the kinds. Their
    /// work shows most of them, and there are many.
    pub enqueue_arguments: bool,
}

impl Selection {
    /// Everything.
    pub fn all() -> Selection {
        Selection {
            kinds: KindSet::ALL,
            operations: OperationSet::all(),
            enqueue_arguments: true,
        }
    }

    /// These kinds, of all operations.
    pub fn kinds(kinds: &[Kind]) -> Selection {
        Selection {
            kinds: KindSet::of(kinds),
            operations: OperationSet::all(),
            enqueue_arguments: true,
        }
    }

    /// Nothing yet.
    pub fn none() -> Selection {
        Selection {
            kinds: KindSet::NONE,
            operations: OperationSet::default(),
            enqueue_arguments: true,
        }
    }
}
