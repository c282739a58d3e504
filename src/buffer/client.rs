//! Blocks supplied by a client, as with CUPTI's pair of callbacks, `CUpti_BuffersCallbackRequestFunc` and
//! `CUpti_BuffersCallbackCompleteFunc`.
//!
//! Lanes never call clients: the collector does. A lane that finds no empty block wakes the collector and, where it may
//! wait, waits until the client has supplied a block or refused one. A block with a limit of records is measured out
//! record by record, on the cold path of its lane.

use super::{BlockView, Mapping, Policy};
use gputrail_record::{Loss, ThreadId};
use std::num::NonZero;
use std::ptr::NonNull;

/// Minimum size of a client's block: space for any record, and for reports of losses.
pub const SMALLEST_CLIENT_BLOCK: usize = 1024;
/// Records are aligned to words.
const ALIGNMENT: usize = 8;
/// Maximum number of a client's blocks that the buffer holds at a time.
pub const CLIENT_BLOCKS: u32 = 1024;
/// Bytes of empty blocks that are requested ahead of need at most, unless the client sets the number of blocks.
const MAX_BYTES_AHEAD: usize = 1 << 20;

/// Memory that a client lends.
#[derive(Debug)]
pub enum ClientMemory {
    /// Memory of the Rust heap.
    Owned(Box<[u64]>),
    /// Any other memory.
    Lent {
        /// Its first byte.
        start: NonNull<u8>,
        /// Its size in bytes.
        bytes: usize,
    },
}

// SAFETY: owned memory may go anywhere; lent memory was promised to (`ClientBlock::lent`).
unsafe impl Send for ClientMemory {}

impl ClientMemory {
    /// Its size in bytes.
    pub fn len(&self) -> usize {
        match self {
            ClientMemory::Owned(words) => words.len() * 8,
            ClientMemory::Lent { bytes, .. } => *bytes,
        }
    }

    /// Whether its size is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn start(&mut self) -> *mut u8 {
        match self {
            ClientMemory::Owned(words) => words.as_mut_ptr().cast(),
            ClientMemory::Lent { start, .. } => start.as_ptr(),
        }
    }

    /// Copies `bytes` to the offset `at`. There is room for them.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len() && bytes.len() <= self.len() - at);
        // SAFETY: the memory has `len` bytes, which this value has alone: owned, or lent until it is given back
        // (`ClientBlock::lent`).
        unsafe {
            let to = self.start().add(at);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Its first `valid` bytes, which have been written.
    pub fn bytes(&self, valid: usize) -> &[u8] {
        match self {
            ClientMemory::Owned(words) => &bytemuck::cast_slice(words)[..valid],
            // SAFETY: written bytes of the memory, which nobody writes to while it is borrowed.
            ClientMemory::Lent { start, bytes } => unsafe {
                std::slice::from_raw_parts(start.as_ptr(), valid.min(*bytes))
            },
        }
    }
}

/// A block that a client supplies.
#[derive(Debug)]
pub struct ClientBlock {
    memory: ClientMemory,
    max_records: u32,
}

impl ClientBlock {
    /// A block in memory of the Rust heap.
    pub fn owned(memory: Box<[u64]>) -> ClientBlock {
        ClientBlock {
            memory: ClientMemory::Owned(memory),
            max_records: 0,
        }
    }

    /// A block in any memory.
    ///
    /// # Safety
    ///
    /// `bytes` bytes from `start` on may be read and written from any thread, and are left alone by everybody else,
    /// until [`BlockClient::complete`] gives them back.
    pub unsafe fn lent(start: NonNull<u8>, bytes: usize) -> ClientBlock {
        ClientBlock {
            memory: ClientMemory::Lent { start, bytes },
            max_records: 0,
        }
    }

    /// Limits the block to `max` records; 0 means no limit.
    pub fn with_max_records(mut self, max: u32) -> ClientBlock {
        self.max_records = max;
        self
    }

    /// Its memory, and how many records it is for at most.
    pub fn into_parts(self) -> (ClientMemory, u32) {
        (self.memory, self.max_records)
    }

    /// Checks that it can hold records.
    ///
    /// # Errors
    ///
    /// The block is too small or misaligned.
    pub fn check(&mut self) -> Result<(), UnusableBlock> {
        let (bytes, address) = (self.memory.len(), self.memory.start().addr());
        if bytes < SMALLEST_CLIENT_BLOCK {
            return Err(UnusableBlock::TooSmall(bytes));
        }
        if !address.is_multiple_of(ALIGNMENT) {
            return Err(UnusableBlock::Misaligned(address));
        }
        Ok(())
    }
}

/// The reason why a block of a client cannot hold records.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableBlock {
    /// It has fewer bytes than [`SMALLEST_CLIENT_BLOCK`].
    #[error("a block of {0} bytes was supplied: expected {SMALLEST_CLIENT_BLOCK} bytes or more")]
    TooSmall(usize),
    /// Its address is not a multiple of 8.
    #[error(
        "a block at {0:#x} was supplied: expected an address that is a multiple of {ALIGNMENT}"
    )]
    Misaligned(usize),
}

/// A block that is returned to its client.
#[derive(Debug)]
pub struct CompletedBlock {
    /// The memory.
    pub memory: ClientMemory,
    /// Number of bytes of records, from the beginning of the memory.
    pub valid: usize,
    /// How many of them were passed to [`BlockClient::partial`] before.
    pub shown: usize,
    /// The lane that wrote the records, unique in the process; 0 if there are none, or the library wrote them.
    pub lane: u32,
    /// The lane's thread.
    pub thread: ThreadId,
    /// Number of the block in its lane.
    pub sequence: u32,
    /// Sequence number of the first record of the block.
    pub first_record: u32,
}

impl CompletedBlock {
    /// A block that comes back unused.
    pub fn unused(memory: ClientMemory) -> CompletedBlock {
        CompletedBlock {
            memory,
            valid: 0,
            shown: 0,
            lane: 0,
            thread: ThreadId::NONE,
            sequence: 0,
            first_record: 0,
        }
    }

    /// Its records, including those that were shown before.
    pub fn records(&self) -> gputrail_record::Records<'_> {
        gputrail_record::Records::new(self.bytes())
    }

    /// The bytes of its records.
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes(self.valid)
    }
}

/// The supplier of a buffer's blocks, to which they are returned. Called on the buffer's callback thread, or on a
/// thread that creates, flushes or destroys the buffer; by one thread at a time.
pub trait BlockClient: Send {
    /// Supplies a block. `None`: there is none now, and records are dropped and counted once the blocks that were
    /// supplied are full. The next request comes a little later. A block that cannot be used comes back at once,
    /// without records.
    fn request(&mut self) -> Option<ClientBlock>;

    /// Shows records in a block that is not complete, because the watermark is reached, or a thread could not give its
    /// block back at a flush. They are valid during the call, and come again with the block, which says how much of it
    /// was shown before. Under [`Policy::Overwrite`] a flush shows all records so.
    fn partial(&mut self, view: &BlockView<'_>);

    /// Gives a block back: it is full, or the buffer is flushed or destroyed. Under [`Policy::Overwrite`] blocks come back
    /// when the buffer is destroyed.
    fn complete(&mut self, block: CompletedBlock);
}

/// The collector's side of a client's blocks.
pub(super) struct ClientBlocks {
    client: Box<dyn BlockClient>,
    /// The client's memory in each place of the mapping.
    places: Vec<Option<Lent>>,
    /// The empty blocks that are requested ahead of need.
    ahead: usize,
    /// Whether the client has set `ahead`.
    is_fixed: bool,
    /// [`Policy::Overwrite`]: no block is requested after the first ones.
    is_ring: bool,
}

struct Lent {
    memory: ClientMemory,
    shown: u32,
}

impl ClientBlocks {
    /// Of a client that is asked for `ahead` blocks ahead of need; 0: for one, and for more when they run out. Under
    /// [`Policy::Overwrite`] it is asked once, for `ahead` blocks, or with 0 until it refuses.
    pub fn new(
        client: Box<dyn BlockClient>,
        ahead: u32,
        mapping: &Mapping,
        policy: Policy,
    ) -> ClientBlocks {
        let blocks = mapping.layout().blocks();
        let is_ring = policy == Policy::Overwrite;
        let usual = if is_ring { blocks } else { 1 };
        ClientBlocks {
            client,
            places: (0..blocks).map(|_| None).collect(),
            ahead: if ahead == 0 { usual } else { ahead } as usize,
            is_fixed: ahead != 0 || is_ring,
            is_ring,
        }
    }

    /// Requests blocks until there are enough empty ones. `false`: the client has refused, or all places are taken.
    pub fn request(&mut self, mapping: &Mapping) -> bool {
        let pool = mapping.pool();
        let mut empty = pool.len();
        let largest = self.places.iter().flatten().map(|lent| lent.memory.len());
        if let Some(largest) = largest.max()
            && empty == 0
            && !self.is_fixed
            && 2 * self.ahead * largest <= MAX_BYTES_AHEAD
        {
            self.ahead *= 2;
        }
        while empty < self.ahead {
            let Some(place) = self.places.iter().position(Option::is_none) else {
                return false;
            };
            let Some(mut block) = self.client.request() else {
                return false;
            };
            if block.check().is_err() {
                self.client.complete(CompletedBlock::unused(block.memory));
                return false;
            }
            let bytes = block.memory.len().min(u32::MAX as usize) as u32 & !7;
            mapping.lend(place as u32, block.memory.start(), bytes, block.max_records);
            self.places[place] = Some(Lent {
                memory: block.memory,
                shown: 0,
            });
            pool.put(place as u32);
            empty += 1;
        }
        true
    }

    /// Shows records of `block`, which its lane goes on filling.
    pub fn partial(&mut self, block: u32, view: &BlockView<'_>) {
        self.client.partial(view);
        if let Some(Some(lent)) = self.places.get_mut(block as usize) {
            lent.shown = view.offset + view.bytes.len() as u32;
        }
    }

    /// Shows kept records, which come again.
    pub fn show(&mut self, view: &BlockView<'_>) {
        self.client.partial(view);
    }

    /// Gives back `block`, which its lane has left.
    pub fn complete(&mut self, block: u32, mapping: &Mapping) {
        let header = mapping.block(block);
        let (valid, owner) = (header.committed() as usize, header.owner());
        if let Some(Lent { memory, shown }) = self.places[block as usize].take() {
            self.client.complete(CompletedBlock {
                valid: valid.min(memory.len()),
                shown: shown as usize,
                memory,
                lane: owner.lane,
                thread: owner.thread,
                sequence: owner.sequence,
                first_record: owner.first_record,
            });
        }
    }

    /// Gives the client reports of losses that no lane has written, in blocks of their own; without a block, it shows them as
    /// a partial one.
    pub fn report(&mut self, mapping: &Mapping, mut losses: &[Loss]) {
        while let Some(first) = losses.first() {
            let first_record = first.header.sequence;
            let Some((mut memory, limit)) = self.take_unused(mapping) else {
                return self.client.partial(&BlockView {
                    lane: 0,
                    thread: ThreadId::NONE,
                    sequence: 0,
                    offset: 0,
                    first_record,
                    bytes: bytemuck::cast_slice(losses),
                });
            };
            let limit = NonZero::new(limit as usize).map_or(usize::MAX, NonZero::get);
            let room = (memory.len() / size_of::<Loss>()).min(limit);
            let (here, others) = losses.split_at(losses.len().min(room));
            let bytes: &[u8] = bytemuck::cast_slice(here);
            // SAFETY: the block has room for the bytes, and is this thread's alone: it was taken out of the pool, or
            // never put into it.
            unsafe {
                memory
                    .start()
                    .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
            self.client.complete(CompletedBlock {
                valid: bytes.len(),
                first_record,
                ..CompletedBlock::unused(memory)
            });
            losses = others;
        }
    }

    /// The memory of an unused block, of the pool or new, and its limit of records.
    fn take_unused(&mut self, mapping: &Mapping) -> Option<(ClientMemory, u32)> {
        let mut blocks = 0..self.places.len() as u32;
        let in_pool = blocks.find(|block| mapping.pool().take_back(*block));
        if let Some(block) = in_pool
            && let Some(lent) = self.places[block as usize].take()
        {
            return Some((lent.memory, mapping.record_limit(block)));
        }
        if self.is_ring {
            return None;
        }
        let mut block = self.client.request()?;
        if block.check().is_ok() {
            return Some(block.into_parts());
        }
        self.client.complete(CompletedBlock::unused(block.memory));
        None
    }

    /// Returns the unused blocks: those that are still in the pool. A lane that has taken a block may write to it at any
    /// time, also before the block's state says so: such a block is not returned before the lane gives it to the collector.
    pub fn give_back(&mut self, mapping: &Mapping) {
        let pool = mapping.pool();
        for block in 0..self.places.len() as u32 {
            if pool.take_back(block)
                && let Some(Lent { memory, .. }) = self.places[block as usize].take()
            {
                self.client.complete(CompletedBlock::unused(memory));
            }
        }
    }
}
