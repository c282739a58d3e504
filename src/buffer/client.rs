//! Blocks that a client supplies: CUPTI's pair of callbacks, `CUpti_BuffersCallbackRequestFunc` and
//! `CUpti_BuffersCallbackCompleteFunc`.
//!
//! The collector asks for blocks ahead of need, so that lanes never call clients: a lane finds memory in the pool or
//! drops. A block with a limit of records is measured out record by record, on the cold path of its lane.

use super::{BlockView, Mapping};
use std::ptr::NonNull;

/// Smallest block of a client's that is used: room for any record, and for reports of losses besides.
pub const SMALLEST_CLIENT_BLOCK: usize = 1024;
/// Blocks of a client's that are with us at a time, at most.
pub(crate) const CLIENT_BLOCKS: u32 = 1024;
/// Blocks that are asked for ahead of need, besides as many as are being filled.
const AHEAD: usize = 4;

/// Memory that a client lends.
#[derive(Debug)]
pub enum ClientMemory {
    /// Of the Rust heap.
    Owned(Box<[u64]>),
    /// Of anywhere.
    Lent {
        /// Its first byte.
        start: NonNull<u8>,
        /// How many bytes.
        bytes: usize,
    },
}

// SAFETY: owned memory may go anywhere; lent memory was promised to (`ClientBlock::lent`).
unsafe impl Send for ClientMemory {}

impl ClientMemory {
    /// Its bytes.
    pub fn len(&self) -> usize {
        match self {
            ClientMemory::Owned(words) => words.len() * 8,
            ClientMemory::Lent { bytes, .. } => *bytes,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn start(&mut self) -> *mut u8 {
        match self {
            ClientMemory::Owned(words) => words.as_mut_ptr().cast(),
            ClientMemory::Lent { start, .. } => start.as_ptr(),
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

    /// The same block for that many records at most; 0 for as many as have room.
    pub fn with_max_records(mut self, max: u32) -> ClientBlock {
        self.max_records = max;
        self
    }

    /// Its memory, and how many records it is for at most.
    #[cfg(feature = "tool")]
    pub(crate) fn into_parts(self) -> (ClientMemory, u32) {
        (self.memory, self.max_records)
    }

    /// Whether records can be put into it: it has [`SMALLEST_CLIENT_BLOCK`] bytes and is aligned to 8.
    fn is_usable(&mut self) -> bool {
        self.memory.len() >= SMALLEST_CLIENT_BLOCK && self.memory.start().addr().is_multiple_of(8)
    }
}

/// A block that is its client's again.
#[derive(Debug)]
pub struct CompletedBlock {
    /// The memory.
    pub memory: ClientMemory,
    /// Bytes of records in it, from its beginning.
    pub valid: usize,
    /// How many of them [`BlockClient::partial`] has shown already.
    pub shown: usize,
}

impl CompletedBlock {
    /// Its records: those that were shown already, too.
    pub fn records(&self) -> crate::record::Records<'_> {
        crate::record::Records::new(self.bytes())
    }

    /// The bytes of its records.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            ClientMemory::Owned(words) => &bytemuck::cast_slice(words)[..self.valid],
            // SAFETY: valid bytes have been written, and are not written again: the block is complete.
            ClientMemory::Lent { start, .. } => unsafe {
                std::slice::from_raw_parts(start.as_ptr(), self.valid)
            },
        }
    }
}

/// Who supplies a buffer's blocks and takes them back. Called on the buffer's callback thread, or on one that creates,
/// flushes or destroys the buffer; by one thread at a time.
pub trait BlockClient: Send {
    /// A block is wanted, ahead of need. `None`: there is none now, and records are dropped, and counted, once those
    /// that were supplied are full. It is asked again a little later. A block that cannot be used comes back at once,
    /// without records.
    fn request(&mut self) -> Option<ClientBlock>;

    /// Records in a block that is not complete, because somebody flushes or the watermark is reached. They are valid
    /// during the call, and come again with the block, which says how much of it was shown before.
    fn partial(&mut self, view: &BlockView<'_>);

    /// The block is the client's again: it is full, or the buffer is being destroyed.
    fn complete(&mut self, block: CompletedBlock);
}

/// The collector's side of a client's blocks.
pub(super) struct ClientBlocks {
    client: Box<dyn BlockClient>,
    /// What stands in each place of the mapping.
    places: Vec<Option<Lent>>,
}

struct Lent {
    memory: ClientMemory,
    shown: u32,
}

impl ClientBlocks {
    pub fn new(client: Box<dyn BlockClient>, mapping: &Mapping) -> ClientBlocks {
        ClientBlocks {
            client,
            places: (0..mapping.layout().blocks()).map(|_| None).collect(),
        }
    }

    /// Asks for blocks until there are enough, or the client has none.
    pub fn ask(&mut self, mapping: &Mapping) {
        let pool = mapping.pool();
        let lent = self.places.iter().filter(|place| place.is_some()).count();
        // As many empty ones as lanes have, and some more.
        let mut empty = pool.len();
        let wanted = AHEAD + lent.saturating_sub(empty);
        while empty < wanted {
            let Some(place) = self.places.iter().position(Option::is_none) else {
                return;
            };
            let Some(mut block) = self.client.request() else {
                return;
            };
            if !block.is_usable() {
                self.client.complete(CompletedBlock {
                    memory: block.memory,
                    valid: 0,
                    shown: 0,
                });
                return;
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
    }

    /// Shows records of `block`, which goes on being filled; or of none.
    pub fn partial(&mut self, block: Option<u32>, view: &BlockView<'_>) {
        self.client.partial(view);
        if let Some(Some(lent)) = block.and_then(|block| self.places.get_mut(block as usize)) {
            lent.shown = view.offset + view.bytes.len() as u32;
        }
    }

    /// Gives `block` back, with `valid` bytes of records.
    pub fn complete(&mut self, block: u32, valid: u32) {
        if let Some(Lent { memory, shown }) = self.places[block as usize].take() {
            self.client.complete(CompletedBlock {
                valid: (valid as usize).min(memory.len()),
                shown: shown as usize,
                memory,
            });
        }
    }

    /// Returns the unused blocks: those that are still in the pool. A lane that has taken a block may write to it at
    /// any time, also before the block's state says so: such a block is not returned before the lane gives it to the
    /// collector.
    pub fn give_back(&mut self, mapping: &Mapping) {
        let pool = mapping.pool();
        for block in 0..self.places.len() as u32 {
            if pool.take_back(block) {
                self.complete(block, 0);
            }
        }
    }
}
