//! rocprof's database, `results.db`.

use std::io;

use super::records::{CALL, KERNEL, MARKER, OPERATION, OperationTable, Records};
use crate::import::row::{Damage, Row};
use crate::import::sqlite::Database;
use crate::import::{Allowance, InputFile, Report};
use gputrail_record::Domain;
use gputrail_trace::model::Consumer;

/// Whether a database is one of rocprof.
pub(in crate::import) fn is_rocprof(database: &Database) -> bool {
    let has = |table, column| database.table(table).is_some_and(|info| info.has(column));
    has("KERN", "KernelName")
        || ["HIP", "HSA", "OPS", "COPY", "rocTX"]
            .iter()
            .any(|table| has(table, "BeginNs"))
}

/// Passes a database on.
pub(in crate::import) fn read(
    source: &InputFile,
    database: &Database,
    allowance: Allowance,
    consumer: &mut dyn Consumer,
    report: &mut Report,
) -> io::Result<()> {
    let mut records = Records::new(source.name(), allowance, report);
    records.set_format("rocprof database");
    let operations = database.table("OPS");
    let has_operations = operations.is_some_and(|table| database.count(table) > 0);
    let is_of_hip = database
        .table("COPY")
        .is_some_and(|table| table.has("dev-id"));
    let copies = if is_of_hip {
        OperationTable::HipCopies
    } else {
        OperationTable::HsaCopies
    };
    if let Some(table) = database.table("KERN") {
        let rest = table.columns.iter().map(|column| &column[..]);
        let is_known = |column: &str| {
            KERNEL
                .iter()
                .any(|own| own.split('|').any(|own| own == column))
        };
        let rest: Vec<&str> = rest.filter(|column| !is_known(column)).collect();
        let columns: Vec<&str> = KERNEL.iter().copied().chain(rest.iter().copied()).collect();
        let damages = database.rows(table, &columns, |row| {
            let counters = (KERNEL.len()..).zip(&rest);
            let counters: Vec<_> = counters
                .map(|(place, name)| (*name, row.field(place)))
                .collect();
            records.add_kernel(row, &counters, has_operations)
        });
        damages.report(source.name(), records.report);
    }
    let mut each =
        |table: &str,
         columns: &[&str],
         add: &dyn Fn(&mut Records<'_>, &dyn Row) -> Result<(), Damage>| {
            if let Some(table) = database.table(table) {
                let damages = database.rows(table, columns, |row| add(&mut records, row));
                damages.report(source.name(), records.report);
            }
        };
    each("HIP", CALL, &|records, row| {
        records.add_call(row, Domain::HIP)
    });
    each("HSA", CALL, &|records, row| {
        records.add_call(row, Domain::HSA)
    });
    each("OPS", OPERATION, &|records, row| {
        records.add_operation(row, OperationTable::Kernels)
    });
    each("COPY", OPERATION, &|records, row| {
        records.add_operation(row, copies)
    });
    each("rocTX", MARKER, &|records, row| records.add_marker(row));
    records.add_kept_back();
    for table in database.tables() {
        // The addresses of copies.
        let known = ["KERN", "HIP", "HSA", "OPS", "COPY", "rocTX"];
        if !known.contains(&&table.name[..]) {
            let reason = format!("rows of {}, which is not known", table.name);
            let rows = database.count(table);
            records
                .report
                .unrepresented_many(source.name(), reason, rows);
        }
    }
    let Records { tables, report, .. } = records;
    tables.pass_on(source.name(), consumer, report)
}
