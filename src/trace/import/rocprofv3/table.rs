//! The tables that rocprofv3 writes as CSV, recognised by their columns.

use std::io::BufRead;

use super::csv::{Column, Csv, Damage, Record};

/// A table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// The devices.
    Agents,
    /// Calls of HIP, HSA, RCCL and other libraries, and markers.
    Calls,
    /// Kernels.
    Kernels,
    /// Counters of dispatches.
    Counters,
    /// Copies.
    Copies,
    /// Memory that is allocated and freed.
    Allocations,
    /// Memory for private variables of kernels.
    Scratch,
    /// Samples of the program counter, taken by the host or by the hardware.
    Samples,
    /// Another table of things that last.
    Spans,
    /// Sums over the other tables.
    Statistics,
}

impl Table {
    /// The table with these columns.
    pub fn recognise(columns: &[String]) -> Option<Table> {
        let has = |names: &[&str]| {
            names
                .iter()
                .all(|name| columns.iter().any(|one| one == name))
        };
        let spans = ["Start_Timestamp", "End_Timestamp"];
        let tables: [(&[&str], Table); 10] = [
            (&["Node_Id", "Agent_Type"], Table::Agents),
            (
                &["Counter_Name", "Counter_Value", "Dispatch_Id"],
                Table::Counters,
            ),
            (&["Sample_Timestamp", "Instruction"], Table::Samples),
            (&["Name", "Calls", "TotalDurationNs"], Table::Statistics),
            (&["Kernel_Name", spans[0], spans[1]], Table::Kernels),
            (&["Direction", spans[0], spans[1]], Table::Copies),
            (&["Allocation_Size", spans[0], spans[1]], Table::Allocations),
            (&["Alloc_Flags", spans[0], spans[1]], Table::Scratch),
            (&["Domain", "Function", spans[0], spans[1]], Table::Calls),
            (&spans, Table::Spans),
        ];
        let found = tables.iter().find(|(names, _)| has(names));
        found.map(|(_, table)| *table)
    }

    /// Whether a file that begins so is one of these tables.
    pub fn is_head(head: &[u8]) -> bool {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Ok(csv) = Csv::open(line) else {
            return false;
        };
        Table::recognise(csv.columns()).is_some()
    }
}

/// A column that holds numbers.
#[derive(Copy, Clone, Debug)]
pub(super) struct Number {
    name: &'static str,
    column: Column,
}

impl Number {
    /// The first of the columns `names` that the file has.
    pub fn of<R: BufRead>(csv: &Csv<R>, names: &[&'static str]) -> Number {
        let name = names.iter().find(|name| csv.column(&[name]).exists());
        let name = *name.unwrap_or(&names[0]);
        Number {
            name,
            column: csv.column(&[name]),
        }
    }

    /// Its value; 0 where it is empty, or missing from the file.
    pub fn get(&self, record: &Record<'_>) -> Result<u64, Damage> {
        let field = record.field(self.column);
        match field {
            "" => Ok(0),
            _ => parse(field).ok_or_else(|| record.damage(self.name, field, "a whole number")),
        }
    }

    /// As [`Number::get`], of numbers that are small.
    pub fn small(&self, record: &Record<'_>) -> Result<u32, Damage> {
        let value = self.get(record)?;
        u32::try_from(value).map_err(|_| {
            let field = record.field(self.column);
            record.damage(self.name, field, "a number below 4294967296")
        })
    }

    /// Whether the file has the column.
    pub fn exists(&self) -> bool {
        self.column.exists()
    }
}

/// A whole number, in decimal or with `0x` in hexadecimal.
pub(super) fn parse(field: &str) -> Option<u64> {
    let field = field.trim();
    match field.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => field.parse().ok(),
    }
}
