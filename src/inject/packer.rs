//! Joined records in blocks of a client: one writer copies them into a block until it is full, and goes on with the next.
//!
//! The policy of the buffer is that of these blocks; under [`Policy::Overwrite`] they hold the
//! [latest records](super::latest). The blocks that threads fill are the library's own.

use gputrail_buffer::{BlockClient, BlockView, ClientBlock, ClientMemory, CompletedBlock, Policy};
use gputrail_record::{Kind, ThreadId};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long records wait for a block of a client that nothing may be lost of.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time between two requests in such a wait.
const PAUSE: Duration = Duration::from_millis(1);

/// Packs records into blocks of a client.
pub struct Packer {
    client: Box<dyn BlockClient>,
    policy: Policy,
    /// Bytes that have not been shown from which on they are.
    watermark: u32,
    /// Empty blocks to have ahead of need.
    ahead: usize,
    empty: VecDeque<ClientBlock>,
    filling: Option<FillingBlock>,
    /// The number of the next block.
    next: u32,
    /// A wait for a block has ended without one. The next wait comes after a block.
    gave_up: bool,
}

struct FillingBlock {
    memory: ClientMemory,
    max_records: u32,
    number: u32,
    valid: usize,
    shown: usize,
    records: u32,
}

impl FillingBlock {
    fn has_room(&self, bytes: usize) -> bool {
        let is_limited = self.max_records != 0 && self.records >= self.max_records;
        !is_limited && bytes <= self.memory.len() - self.valid
    }

    /// Its records from `from` on.
    fn view(&self, from: usize) -> BlockView<'_> {
        BlockView {
            lane: 0,
            thread: ThreadId::NONE,
            sequence: self.number,
            offset: from as u32,
            first_record: 0,
            bytes: &self.memory.bytes(self.valid)[from..],
        }
    }

    fn completed(self) -> CompletedBlock {
        CompletedBlock {
            valid: self.valid,
            shown: self.shown,
            sequence: self.number,
            ..CompletedBlock::unused(self.memory)
        }
    }
}

impl Packer {
    /// A packer into blocks of `client`, which is asked for the first ones now: for `ahead`, or one if that is 0.
    pub fn new(client: Box<dyn BlockClient>, policy: Policy, watermark: u32, ahead: u32) -> Packer {
        let mut packer = Packer {
            client,
            policy,
            watermark,
            ahead: ahead.max(1) as usize,
            empty: VecDeque::new(),
            filling: None,
            next: 0,
            gave_up: false,
        };
        packer.request();
        packer
    }

    /// Copies the records of `view`. Calls `lost` with the kind of each for which there is no block.
    pub fn put(&mut self, view: &BlockView<'_>, mut lost: impl FnMut(Kind)) {
        for record in view.records() {
            let bytes = record.bytes();
            let block = self.block_for(bytes.len());
            let Some(block) = block else {
                lost(record.kind());
                continue;
            };
            block.memory.write(block.valid, bytes);
            block.valid += bytes.len();
            block.records += 1;
        }
        if let Some(block) = &mut self.filling
            && block.valid - block.shown >= (self.watermark as usize).max(1)
        {
            self.client.partial(&block.view(block.shown));
            block.shown = block.valid;
        }
    }

    /// A flush: the client gets the block that is being filled.
    pub fn flush(&mut self) {
        if let Some(block) = self.filling.take_if(|block| block.valid > 0) {
            self.client.complete(block.completed());
        }
    }

    /// The end: the client gets all blocks.
    pub fn end(&mut self) {
        if let Some(block) = self.filling.take() {
            self.client.complete(block.completed());
        }
        for block in self.empty.drain(..) {
            let (memory, _) = block.into_parts();
            self.client.complete(CompletedBlock::unused(memory));
        }
    }

    /// The block that takes a record of `bytes` bytes; `None` if there is none.
    fn block_for(&mut self, bytes: usize) -> Option<&mut FillingBlock> {
        let fits = |block: &FillingBlock| block.has_room(bytes);
        if !self.filling.as_ref().is_some_and(fits) {
            if let Some(full) = self.filling.take() {
                self.client.complete(full.completed());
            }
            self.filling = self.next_block();
        }
        self.filling.as_mut().filter(|block| block.has_room(bytes))
    }

    fn next_block(&mut self) -> Option<FillingBlock> {
        let block = self.empty.pop_front().or_else(|| self.wait_for_block())?;
        self.request();
        let (memory, max_records) = block.into_parts();
        let number = self.next;
        self.next = number.wrapping_add(1);
        Some(FillingBlock {
            memory,
            max_records,
            number,
            valid: 0,
            shown: 0,
            records: 0,
        })
    }

    /// A block that the client supplies now, or a little later if nothing may be lost.
    fn wait_for_block(&mut self) -> Option<ClientBlock> {
        let begun = Instant::now();
        loop {
            self.request();
            if let Some(block) = self.empty.pop_front() {
                self.gave_up = false;
                return Some(block);
            }
            if self.policy != Policy::Lossless || self.gave_up || begun.elapsed() > PATIENCE {
                self.gave_up = true;
                return None;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Requests blocks until there are enough empty ones, or the client refuses.
    fn request(&mut self) {
        while self.empty.len() < self.ahead {
            let Some(mut block) = self.client.request() else {
                return;
            };
            if block.check().is_err() {
                let (memory, _) = block.into_parts();
                return self.client.complete(CompletedBlock::unused(memory));
            }
            self.empty.push_back(block);
        }
    }
}

impl Drop for Packer {
    /// A buffer that could not be made.
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::{Api, Header, Record};
    use std::sync::{Arc, Mutex};

    /// The records that a client has got: of each block that came back, and of each view.
    #[derive(Default)]
    struct Got {
        complete: Vec<Vec<u32>>,
        shown: Vec<Vec<u32>>,
        requests: usize,
    }

    struct Lender {
        blocks: usize,
        got: Arc<Mutex<Got>>,
    }

    fn numbers(records: gputrail_record::Records<'_>) -> Vec<u32> {
        records.map(|record| record.header().sequence).collect()
    }

    impl BlockClient for Lender {
        fn request(&mut self) -> Option<ClientBlock> {
            self.got.lock().unwrap().requests += 1;
            self.blocks = self.blocks.checked_sub(1)?;
            // Four calls to a block.
            Some(ClientBlock::owned(vec![0; 1024 / 8].into()).with_max_records(4))
        }

        fn partial(&mut self, view: &BlockView<'_>) {
            self.got.lock().unwrap().shown.push(numbers(view.records()));
        }

        fn complete(&mut self, block: CompletedBlock) {
            self.got
                .lock()
                .unwrap()
                .complete
                .push(numbers(block.records()));
        }
    }

    fn packer(blocks: usize, policy: Policy, watermark: u32) -> (Packer, Arc<Mutex<Got>>) {
        let got = Arc::default();
        let client = Lender {
            blocks,
            got: Arc::clone(&got),
        };
        (Packer::new(Box::new(client), policy, watermark, 0), got)
    }

    /// Packs calls with these numbers, and returns how many were dropped.
    fn put(packer: &mut Packer, numbers: std::ops::Range<u32>) -> usize {
        let calls: Vec<Api> = numbers
            .map(|number| {
                let mut call = Api::blank();
                call.header = Header {
                    sequence: number,
                    ..call.header
                };
                call
            })
            .collect();
        let mut dropped = 0;
        let view = BlockView {
            lane: 1,
            thread: ThreadId(1),
            sequence: 0,
            offset: 0,
            first_record: 0,
            bytes: bytemuck::cast_slice(&calls),
        };
        packer.put(&view, |kind| {
            assert_eq!(kind, Api::KIND);
            dropped += 1;
        });
        dropped
    }

    #[test]
    fn records_fill_one_block_after_the_other_and_a_flush_returns_the_last() {
        let (mut packer, got) = packer(9, Policy::Discard, u32::MAX);
        assert_eq!(put(&mut packer, 0..6), 0);
        assert_eq!(got.lock().unwrap().complete, [vec![0, 1, 2, 3]]);
        packer.flush();
        packer.flush();
        put(&mut packer, 6..7);
        packer.end();
        let got = got.lock().unwrap();
        let filled = [vec![0, 1, 2, 3], vec![4, 5], vec![6]];
        assert_eq!(got.complete[..3], filled);
        assert!(got.complete[3..].iter().all(Vec::is_empty) && got.shown.is_empty());
        assert_eq!(got.complete.len(), got.requests, "every block comes back");
    }

    #[test]
    fn without_a_block_records_are_dropped_and_counted() {
        let (mut packer, got) = packer(1, Policy::Discard, u32::MAX);
        assert_eq!(put(&mut packer, 0..10), 6);
        packer.end();
        assert_eq!(got.lock().unwrap().complete, [vec![0, 1, 2, 3]]);
    }

    #[test]
    fn records_at_the_watermark_are_shown_before_their_block_is_complete() {
        let (mut packer, got) = packer(9, Policy::Discard, 2 * size_of::<Api>() as u32);
        for number in 0..4 {
            put(&mut packer, number..number + 1);
        }
        assert_eq!(got.lock().unwrap().shown, [vec![0, 1], vec![2, 3]]);
        packer.flush();
        assert_eq!(got.lock().unwrap().complete, [vec![0, 1, 2, 3]]);
    }
}
