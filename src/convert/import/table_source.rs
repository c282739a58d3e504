//! Tables of a recording, whatever kind of file holds them.

use std::path::Path;

use super::Report;
use super::row::{Damage, Row};

/// Damage of a table that is described.
const MAX_DAMAGES: usize = 100;

/// A table.
#[derive(Clone, Debug)]
pub(super) struct TableInfo {
    pub name: String,
    pub columns: Vec<String>,
}

impl TableInfo {
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|one| one == column)
    }

    /// Of each column, which may have several names with `|` between them, the name that the table has.
    pub fn own<'c>(&self, columns: &[&'c str]) -> Vec<&'c str> {
        let own = |names: &&'c str| {
            let own = names.split('|').find(|name| self.has(name));
            own.unwrap_or(names)
        };
        columns.iter().map(own).collect()
    }
}

/// The function that a row of a table is passed to.
pub(super) type EachRow<'e> = dyn FnMut(&dyn Row) -> Result<(), Damage> + 'e;

/// Tables that are read one after the other, each as often as needed.
pub(super) trait TableSource {
    /// The tables.
    fn tables(&self) -> &[TableInfo];

    /// The table of a name.
    fn table(&self, name: &str) -> Option<&TableInfo> {
        self.tables().iter().find(|table| table.name == name)
    }

    /// Calls `each` with every row of a table, with the values of `columns`; columns that the table lacks have no value. Returns
    /// the damage of rows, and that which ends the table early.
    fn each_row(&self, table: &TableInfo, columns: &[&str], each: &mut EachRow<'_>) -> Damages;

    /// The number of rows of a table, as far as they can be read.
    fn count(&self, table: &TableInfo) -> u64;
}

/// The damage of a table: the first of it, and the number of the rest.
#[derive(Debug, Default)]
pub(super) struct Damages {
    first: Vec<Damage>,
    more: u64,
    /// Number of texts that are not UTF-8, which are no damage.
    pub repaired: u64,
}

impl Damages {
    pub fn add(&mut self, damage: Damage) {
        if self.first.len() < MAX_DAMAGES {
            self.first.push(damage)
        } else {
            self.more += 1
        }
    }

    /// Reports it as findings of `file`.
    pub fn report(self, file: &Path, report: &mut Report) {
        for damage in self.first {
            report.damage(file, damage);
        }
        report.further_findings += self.more;
        let reason = "text that is not UTF-8, with U+FFFD in place of other bytes";
        report.remarks(file, reason, self.repaired);
    }
}
