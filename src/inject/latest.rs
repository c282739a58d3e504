//! The latest joined records in blocks of a client, under [`Policy::Overwrite`](gputrail_buffer::Policy::Overwrite).
//!
//! The threads record into a ring of the library's own. A flush joins all that is there; the latest records, as many as
//! have room, are then put into the blocks in the order of their times.

use crate::nanos::latest_time;
use gputrail_buffer::{
    BlockClient, BlockView, CLIENT_BLOCKS, ClientBlock, ClientMemory, CompletedBlock,
};
use gputrail_record::{Nanos, Records, ThreadId};

/// Puts the latest records into blocks of a client.
pub struct LatestRecords {
    client: Box<dyn BlockClient>,
    blocks: Vec<FilledBlock>,
    /// The records of the flush that is in progress.
    records: Vec<u8>,
    /// Where each of them begins, and its latest time; of one without times, that of the record before it.
    found: Vec<(Nanos, usize)>,
}

struct FilledBlock {
    memory: ClientMemory,
    max_records: u32,
    valid: usize,
}

impl LatestRecords {
    /// Requests the blocks of `client`: `ahead`, or if that is 0 as many as it supplies.
    pub fn new(mut client: Box<dyn BlockClient>, ahead: u32) -> LatestRecords {
        let most = if ahead == 0 { CLIENT_BLOCKS } else { ahead };
        let mut blocks = Vec::new();
        while (blocks.len() as u32) < most {
            let Some(mut block) = client.request() else {
                break;
            };
            if block.check().is_err() {
                client.complete(CompletedBlock::unused(block.into_parts().0));
                break;
            }
            blocks.push(FilledBlock::empty(block));
        }
        LatestRecords {
            client,
            blocks,
            records: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Bytes of all blocks.
    pub fn capacity(&self) -> usize {
        self.blocks.iter().map(|block| block.memory.len()).sum()
    }

    /// Adds joined records of the flush in progress.
    pub fn put(&mut self, view: &BlockView<'_>) {
        let mut time = Nanos::NONE;
        for record in view.records() {
            let of_record = latest_time(record);
            if of_record.is_some() {
                time = of_record;
            }
            self.found.push((time, self.records.len()));
            self.records.extend(record.bytes());
        }
    }

    /// A flush: the client is shown the blocks.
    pub fn flush(&mut self) {
        self.fill();
        for (number, block) in self.blocks.iter().enumerate() {
            if block.valid > 0 {
                self.client.partial(&BlockView {
                    lane: 0,
                    thread: ThreadId::NONE,
                    sequence: number as u32,
                    offset: 0,
                    first_record: 0,
                    bytes: block.memory.bytes(block.valid),
                });
            }
        }
    }

    /// The end: the client gets all blocks.
    pub fn end(&mut self) {
        self.fill();
        for (number, block) in self.blocks.drain(..).enumerate() {
            self.client.complete(CompletedBlock {
                valid: block.valid,
                sequence: number as u32,
                ..CompletedBlock::unused(block.memory)
            });
        }
    }

    /// Fills the blocks, the last one with the latest records.
    fn fill(&mut self) {
        let found = &mut self.found;
        // Stable: records of one time stay in their order.
        found.sort_by_key(|(time, _)| *time);
        let record_at = |place: usize| Records::new(&self.records[place..]).next();
        for block in self.blocks.iter_mut().rev() {
            let (mut bytes, mut records) = (0, 0);
            while let Some(place) = found.len().checked_sub(records as usize + 1) {
                let record = record_at(found[place].1).map_or(0, |record| record.bytes().len());
                if bytes + record > block.memory.len()
                    || block.max_records != 0 && records == block.max_records
                {
                    break;
                }
                (bytes, records) = (bytes + record, records + 1);
            }
            block.valid = 0;
            for (_, at) in found.split_off(found.len() - records as usize) {
                let record = record_at(at).map_or(&[][..], |record| record.bytes());
                block.memory.write(block.valid, record);
                block.valid += record.len();
            }
        }
        found.clear();
        self.records.clear();
    }
}

impl FilledBlock {
    fn empty(block: ClientBlock) -> FilledBlock {
        let (memory, max_records) = block.into_parts();
        FilledBlock {
            memory,
            max_records,
            valid: 0,
        }
    }
}

impl Drop for LatestRecords {
    /// A buffer that could not be made.
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::{Api, CorrelationId, Ticks};
    use std::sync::{Arc, Mutex};

    /// The ids of the calls in each block that was shown or came back.
    type Got = Arc<Mutex<Vec<Vec<u64>>>>;

    /// Supplies blocks for four calls each.
    struct Lender {
        blocks: usize,
        got: Got,
    }

    impl Lender {
        fn gets(&self, records: Records<'_>) {
            let calls = records.filter_map(|record| record.read::<Api>());
            let ids = calls.map(|call| call.correlation.0).collect();
            self.got.lock().unwrap().push(ids);
        }
    }

    impl BlockClient for Lender {
        fn request(&mut self) -> Option<ClientBlock> {
            self.blocks = self.blocks.checked_sub(1)?;
            Some(ClientBlock::owned(vec![0; 1024 / 8].into()).with_max_records(4))
        }

        fn partial(&mut self, view: &BlockView<'_>) {
            self.gets(view.records());
        }

        fn complete(&mut self, block: CompletedBlock) {
            self.gets(block.records());
        }
    }

    fn latest(blocks: usize) -> (LatestRecords, Got) {
        let got = Got::default();
        let client = Lender {
            blocks,
            got: got.clone(),
        };
        (LatestRecords::new(Box::new(client), 0), got)
    }

    /// Adds calls that end at these times, which are their ids too.
    fn put(latest: &mut LatestRecords, ends: impl IntoIterator<Item = u64>) {
        let calls: Vec<Api> = ends
            .into_iter()
            .map(|end| {
                let mut call = Api::blank();
                (call.start, call.end) = (Ticks(1), Ticks(end));
                call.correlation = CorrelationId(end);
                call
            })
            .collect();
        latest.put(&BlockView {
            lane: 1,
            thread: ThreadId(1),
            sequence: 0,
            offset: 0,
            first_record: 0,
            bytes: bytemuck::cast_slice(&calls),
        });
    }

    fn take(got: &Got) -> Vec<Vec<u64>> {
        std::mem::take(&mut got.lock().unwrap())
    }

    #[test]
    fn the_latest_records_are_kept_whichever_thread_comes_last() {
        let (mut latest, got) = latest(2);
        assert_eq!(latest.capacity(), 2048);
        put(&mut latest, (11..=30).rev());
        put(&mut latest, 1..=10);
        latest.flush();
        let kept = [vec![23, 24, 25, 26], vec![27, 28, 29, 30]];
        assert_eq!(take(&got), kept);
        // Each flush joins anew all that is in the ring of the threads.
        put(&mut latest, [40, 41, 42]);
        put(&mut latest, 1..=2);
        latest.flush();
        assert_eq!(take(&got), [vec![1], vec![2, 40, 41, 42]]);
        put(&mut latest, [50]);
        latest.end();
        assert_eq!(take(&got), [vec![], vec![50]], "every block comes back");
    }

    #[test]
    fn one_block_holds_the_latest_records_that_fit() {
        let (mut latest, got) = latest(1);
        put(&mut latest, 1..=6);
        latest.end();
        assert_eq!(take(&got), [[3, 4, 5, 6]]);
    }
}
