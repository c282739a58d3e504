//! Blocks supplied by a client, as with CUPTI's pair of callbacks, `CUpti_BuffersCallbackRequestFunc` and
//! `CUpti_BuffersCallbackCompleteFunc`.
//!
//! The collector requests blocks ahead of need, so that lanes never call clients: a lane takes memory from the pool or
//! drops records. In a block with a limit of records, each record takes the cold path of its lane.

use super::{BlockView, Mapping};
use std::ptr::NonNull;

/// Minimum size of a client's block: space for any record, and for reports of losses.
pub const SMALLEST_CLIENT_BLOCK: usize = 1024;
/// Maximum number of a client's blocks that the buffer holds at a time.
pub(crate) const CLIENT_BLOCKS: u32 = 1024;
/// Number of blocks that are requested ahead of need, in addition to one for each lane.
const AHEAD: usize = 4;

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

    /// Its memory, and its maximum number of records.
    #[cfg(feature = "tool")]
    pub(crate) fn into_parts(self) -> (ClientMemory, u32) {
        (self.memory, self.max_records)
    }

    /// Whether it can hold records: it has [`SMALLEST_CLIENT_BLOCK`] bytes and is aligned to 8.
    fn is_usable(&mut self) -> bool {
        self.memory.len() >= SMALLEST_CLIENT_BLOCK && self.memory.start().addr().is_multiple_of(8)
    }
}

/// A block that is returned to its client.
#[derive(Debug)]
pub struct CompletedBlock {
    /// The memory.
    pub memory: ClientMemory,
    /// Number of bytes of records, from the beginning of the memory.
    pub valid: usize,
    /// Number of these bytes that [`BlockClient::partial`] has already shown.
    pub shown: usize,
}

impl CompletedBlock {
    /// Its records, including those already shown.
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

/// The supplier of a buffer's blocks, to which they are returned. Called on the buffer's callback thread, or on a
/// thread that creates, flushes or destroys the buffer; by one thread at a time.
pub trait BlockClient: Send {
    /// Requests a block, ahead of need. `None` if none is available: when the supplied blocks are full, records are
    /// dropped and counted. The request is repeated a little later. A block that cannot be used is returned at once,
    /// without records.
    fn request(&mut self) -> Option<ClientBlock>;

    /// Shows records in an incomplete block, because of a flush or because the watermark is reached. They are valid
    /// during the call, and are delivered again with the complete block, which says how many bytes were shown before.
    fn partial(&mut self, view: &BlockView<'_>);

    /// Returns a block: it is full, or the buffer is being destroyed.
    fn complete(&mut self, block: CompletedBlock);
}

/// The collector's side of a client's blocks.
pub(super) struct ClientBlocks {
    client: Box<dyn BlockClient>,
    /// The client's block in each slot of the mapping.
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

    /// Requests blocks until there are enough, or the client has none.
    pub fn ask(&mut self, mapping: &Mapping) {
        let pool = mapping.pool();
        let lent = self.places.iter().filter(|place| place.is_some()).count();
        // As many empty blocks as there are lanes, and some more.
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

    /// Shows records of `block`, which is still being filled; or of no block.
    pub fn partial(&mut self, block: Option<u32>, view: &BlockView<'_>) {
        self.client.partial(view);
        if let Some(Some(lent)) = block.and_then(|block| self.places.get_mut(block as usize)) {
            lent.shown = view.offset + view.bytes.len() as u32;
        }
    }

    /// Returns `block` with `valid` bytes of records.
    pub fn complete(&mut self, block: u32, valid: u32) {
        if let Some(Lent { memory, shown }) = self.places[block as usize].take() {
            self.client.complete(CompletedBlock {
                valid: (valid as usize).min(memory.len()),
                shown: shown as usize,
                memory,
            });
        }
    }

    /// Returns the unused blocks: those in the pool. A lane that has taken a block may write to it at any time, even
    /// before the block's state shows that, so such a block is returned only after the lane has passed it to the
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
