//! Shared virtual memory of OpenCL: its maps and migrations are records, and the page faults of kernels are counted.

use std::collections::HashSet;

use gputrail_capture::Reader;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_record::{
    Activity, AllocationOperation, MemoryCopy, MemoryKind, TransferKind, WorkId,
};

use crate::command::TestDir;

const PAGE: u64 = 4096;
const SIZE: u64 = 1024 * PAGE;

#[test]
fn maps_and_migrations_of_shared_memory_are_records_and_page_faults_of_kernels_are_counted() {
    needs!(maps_and_migrations_of_shared_memory_are_records_and_page_faults_of_kernels_are_counted:
        Need::Pocl, Need::OpenClToolchain);
    for driver in [Driver::Basic, Driver::Threaded] {
        let dir = TestDir::new();
        let program = dir.program("svm");
        let options = ["-q", "--capture", "--counters", "PAGE_FAULTS"];
        let ended = run(&mut dir.record_with(&options, driver, &program, &[])).well();
        let text = ended.text();
        let address = text.lines().find_map(|line| line.strip_prefix("0x"));
        let address = u64::from_str_radix(address.expect("an address"), 16).unwrap();

        let reader = Reader::open(&dir.join("run.gputrail")).expect("a capture");
        let (mut copies, mut completed, mut faults) = (Vec::new(), HashSet::new(), Vec::new());
        let mut allocated = Vec::new();
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            for record in chunk.records() {
                match record.activity() {
                    Activity::MemoryCopy(copy) => copies.push(*copy),
                    Activity::Completion(one) if one.end.is_some() => {
                        completed.insert(one.work);
                    }
                    Activity::CounterValue(value) => faults.push((value.work, value.value)),
                    Activity::Allocation(one) => {
                        allocated.push((one.operation, one.address, one.memory));
                    }
                    _ => {}
                }
            }
        }
        let told = |copy: &MemoryCopy| {
            let ends = [copy.source_address, copy.destination_address];
            let ends = ends.map(|end| end == address);
            (copy.transfer, copy.bytes, ends)
        };
        let expected = [
            (TransferKind::MIGRATE, PAGE, [false, true]),
            (TransferKind::MAP, SIZE, [true, true]),
            (TransferKind::UNMAP, 0, [true, true]),
            (TransferKind::MIGRATE, SIZE, [true, false]),
        ];
        let got: Vec<_> = copies.iter().map(told).collect();
        assert_eq!(got, expected);
        assert!(copies.iter().all(|copy| completed.contains(&copy.work.id)));
        let life = [AllocationOperation::ALLOCATE, AllocationOperation::FREE];
        let life = life.map(|operation| (operation, address, MemoryKind::MANAGED));
        assert_eq!(allocated, life);
        // The kernel is the first to touch the pages, of which the kernel of the system may make larger ones.
        let [(work, number)] = faults[..] else {
            panic!("{faults:?}");
        };
        assert!(work != WorkId::NONE && number >= 2, "{number}");
    }
}
