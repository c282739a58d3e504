//! Counters of dispatches.

use super::kernels;
use super::reader::{File, Reader};
use crate::trace::import::row::{Damage, Row, rows};
use crate::trace::import::tables::{DispatchCounterRow, WorkRow};
use crate::trace::model::Resources;

rows! {
    /// The value of a counter during a dispatch. Sizes are products of their dimensions here: they become arguments.
    Counted<'r> {
        start: u64 = "Start_Timestamp",
        end: u64 = "End_Timestamp",
        agent: &'r str = "Agent_Id",
        queue: u64 = "Queue_Id",
        stream: Option<u32> = "Stream_Id",
        process: Option<u32> = "Process_Id",
        thread: u32 = "Thread_Id",
        dispatch: u64 = "Dispatch_Id",
        kernel: &'r str = "Kernel_Name",
        correlation: u64 = "Correlation_Id",
        local: u32 = "LDS_Block_Size",
        private: u32 = "Scratch_Size",
        registers: u32 = "VGPR_Count",
        counter: &'r str = "Counter_Name",
        value: f64 = "Counter_Value",
    }
}

pub(super) const COLUMNS: &[&str] = Counted::COLUMNS;

pub(super) fn add<'r>(
    reader: &mut Reader<'_>,
    file: &File<'_>,
    row: &'r (dyn Row + 'r),
) -> Result<(), Damage> {
    let counted = Counted::read(row)?;
    let (process, dispatch) = (reader.process(file, counted.process), counted.dispatch);
    let counter = reader.tables.text(counted.counter);
    reader.tables.add_dispatch_counter(DispatchCounterRow {
        process,
        dispatch,
        counter,
        value: counted.value,
    });
    if reader.counted.replace((process, dispatch)) == Some((process, dispatch)) {
        return Ok(());
    }
    let agent = reader.agent(file, counted.agent);
    let queue = format!("queue {}", counted.queue);
    let queue = reader.queue(process, agent, counted.stream, &queue);
    let work = WorkRow {
        process,
        queue,
        stage: kernels::stage(&mut reader.tables, counted.kernel),
        thread: counted.thread,
        correlation: counted.correlation,
        dispatch,
        start: counted.start,
        end: counted.end,
        bytes: 0,
        launch: None,
        resources: Resources {
            registers: counted.registers,
            static_local: counted.local,
            dynamic_local: 0,
            private: counted.private,
        },
        arguments: reader.arguments(&[("dispatch_id", dispatch)], row),
    };
    reader.tables.add_counted_work(work);
    Ok(())
}
