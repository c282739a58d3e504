//! The memory of a buffer, as the recorded process and the recovering parent both see it.
//!
//! ```text
//! 0                 header: magic, version, layout, state of the session, losses without a lane
//! 4096              lane slots: thread, open-call stack, drop counters
//! ..                block headers: commit word, state, owner
//! ..                the pool: a bit for each block that is empty
//! .. (page aligned) block data
//! ```
//!
//! All fields that change are atomics, so that two processes may look at them. The layout is part
//! of the format version; `schemas/mapping.md` describes it.

use super::block::{BlockHeader, BlockState};
use super::pool::{Pool, WaitingLanes};
use super::wake::Wake;
use crate::platform::sync::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use crate::platform::system;
use gputrail_record::{FORMAT_VERSION, KINDS, Kind};
#[cfg(not(loom))]
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::{AtomicU32 as PlainU32, AtomicU64 as PlainU64};

/// Number of calls on a lane's open-call stack; deeper ones are recorded without being on it.
pub const MAX_OPEN_CALLS: usize = 16;

const MAGIC: u64 = u64::from_le_bytes(*b"GPUTPOOL");
const HEADER_BYTES: usize = 4096;
const PAGE: usize = 4096;
/// Minimum size of a block: space for a report of losses of every kind and one more record.
const MIN_BLOCK: usize = 4096;
const MAX_BLOCK: usize = 64 << 20;
const MAX_LANES: u32 = 1 << 16;

/// The division of a mapping.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    lanes: u32,
    blocks: u32,
    block_bytes: u32,
}

/// An invalid choice of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The block size is out of range or not a multiple of 4096.
    #[error("block size {0} bytes: expected a multiple of 4096 from 4096 to 67108864")]
    BlockSize(usize),
    /// The pool holds fewer than two blocks, or more than a 32-bit number can count.
    #[error("{pool} bytes do not hold 2 to 16777216 blocks of {block} bytes")]
    PoolSize {
        /// Requested size of the pool in bytes.
        pool: usize,
        /// Size of a block in bytes.
        block: usize,
    },
    /// The number of lanes is out of range.
    #[error("{0} lanes: expected 1 to 65536")]
    Lanes(u32),
}

impl Layout {
    /// A pool of `pool_bytes` (rounded down to whole blocks) in blocks of `block_bytes`, for up to
    /// `lanes` lanes at a time.
    pub fn new(pool_bytes: usize, block_bytes: usize, lanes: u32) -> Result<Layout, LayoutError> {
        if !(MIN_BLOCK..=MAX_BLOCK).contains(&block_bytes) || !block_bytes.is_multiple_of(PAGE) {
            return Err(LayoutError::BlockSize(block_bytes));
        }
        let blocks = pool_bytes / block_bytes;
        if !(2..=1 << 24).contains(&blocks) {
            return Err(LayoutError::PoolSize {
                pool: pool_bytes,
                block: block_bytes,
            });
        }
        if !(1..=MAX_LANES).contains(&lanes) {
            return Err(LayoutError::Lanes(lanes));
        }
        Ok(Layout {
            lanes,
            blocks: blocks as u32,
            block_bytes: block_bytes as u32,
        })
    }

    /// Bytes of the whole mapping.
    pub fn total_bytes(&self) -> usize {
        self.data_offset() + self.blocks as usize * self.block_bytes as usize
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes as usize
    }

    /// Maximum number of lanes at a time.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    fn blocks_offset(&self) -> usize {
        HEADER_BYTES + self.lanes as usize * size_of::<LaneSlot>()
    }

    fn pool_offset(&self) -> usize {
        self.blocks_offset() + self.blocks as usize * size_of::<BlockHeader>()
    }

    fn pool_words(&self) -> usize {
        (self.blocks as usize).div_ceil(64)
    }

    fn data_offset(&self) -> usize {
        (self.pool_offset() + self.pool_words() * 8).next_multiple_of(PAGE)
    }
}

/// How far the session of a mapping has come; the `state` of its header. The codes are unlikely to come about when the
/// program writes over the header.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SessionState {
    /// Nobody has written yet.
    New = 0,
    /// A process records into it.
    Recording = u32::from_le_bytes(*b"reco"),
    /// The process has begun to exit: what its other threads still do is recorded until it is gone.
    Exiting = u32::from_le_bytes(*b"exit"),
    /// The process has ended its session: no lane takes another block.
    Ended = u32::from_le_bytes(*b"ende"),
    /// The owner of the memory no longer collects: the process must stop recording.
    Abandoned = u32::from_le_bytes(*b"aban"),
}

impl SessionState {
    /// A code that no version wrote counts as `Recording`.
    fn of(code: u32) -> SessionState {
        use SessionState::*;
        let mut all = [New, Exiting, Ended, Abandoned].into_iter();
        all.find(|state| *state as u32 == code).unwrap_or(Recording)
    }

    /// Whether the process has ended its recording or begins to exit.
    pub fn is_over(self) -> bool {
        !matches!(self, SessionState::New | SessionState::Recording)
    }
}

/// All fields are atomics: the other process may write any of them at any time.
#[repr(C)]
struct MappingHeader {
    magic: PlainU64,
    version: PlainU32,
    lanes: PlainU32,
    blocks: PlainU32,
    block_bytes: PlainU32,
    /// A [`SessionState`].
    state: AtomicU32,
    reserved: PlainU32,
    /// Records of each kind lost where there was no lane to count them.
    unlaned: [PlainU64; KINDS],
    /// The word on which the collector sleeps.
    wake: Wake,
    /// Counts the collector's polls: a sign of life.
    looks: PlainU32,
    waiting: WaitingLanes,
    /// Counts the triggers of dumps of kept records.
    triggers: PlainU32,
    reserved2: PlainU32,
}

/// One call in progress on a lane. 32 bytes.
#[repr(C)]
#[derive(Default)]
pub struct OpenCall {
    /// Ticks at which the call was entered.
    pub start: PlainU64,
    /// Its correlation id; 0 if the lane does not record the call of this depth.
    pub correlation: PlainU64,
    _reserved: PlainU64,
    /// domain | number << 16
    pub operation: PlainU32,
    _reserved2: PlainU32,
}

/// The header of one lane in the mapping. Only its lane writes it, except for `lane` and `thread`.
#[repr(C, align(64))]
pub struct LaneSlot {
    /// Id of the lane that uses the slot, 0 when it is free.
    pub lane: PlainU32,
    pub thread: PlainU32,
    /// Number of calls on the stack; may exceed the length of `calls`.
    pub depth: PlainU32,
    /// Thread of the first drop that was not reported.
    pub dropped_by: PlainU32,
    /// Number of dropped and unreported records, by [`Kind::index`]; see `losses`.
    pub dropped: [AtomicU64; KINDS],
    /// Ticks of the first and the last drop.
    pub first_drop: PlainU64,
    pub last_drop: PlainU64,
    pub calls: [OpenCall; MAX_OPEN_CALLS],
    /// The end of a report that is being written: block << 32 | offset in the block.
    pub report: AtomicU64,
}

const _: () = assert!(size_of::<MappingHeader>() <= HEADER_BYTES);
#[cfg(not(loom))]
const _: () = assert!(size_of::<LaneSlot>() == 1088 && size_of::<OpenCall>() == 32);
#[cfg(not(loom))]
const _: () = assert!(size_of::<BlockHeader>() == 64 && size_of::<MappingHeader>() == 568);

/// A file or memory that is not a mapping of this version.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// The system refused the memory.
    #[error("cannot map {bytes} bytes for the pool: {source}")]
    Map {
        /// Requested size in bytes.
        bytes: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The header is not that of a mapping.
    #[error("not a gputrail pool: {0}")]
    Header(String),
}

/// The memory of one buffer.
pub struct Mapping {
    layout: Layout,
    memory: MappedMemory,
    /// Whether another process has the memory, too, and may write any of it at any time.
    #[cfg(not(loom))]
    is_shared: bool,
    /// The client's blocks, for a buffer with a client.
    #[cfg(not(loom))]
    lent: Option<Box<[LentBlock]>>,
    /// The number of blocks, from the first, whose pages this process has populated.
    #[cfg(not(loom))]
    populated: PlainU32,
}

/// Number of bytes of blocks that a lane populates at once.
#[cfg(not(loom))]
const POPULATED_AT_ONCE: u32 = 256 << 10;

/// The location of a client's block. Written by the collector before it puts the block into the pool, from which a lane
/// takes it.
#[cfg(not(loom))]
#[derive(Default)]
struct LentBlock {
    start: AtomicPtr<u8>,
    bytes: PlainU32,
    record_limit: PlainU32,
}

#[cfg(not(loom))]
struct MappedMemory(memmap2::MmapRaw);

/// Under loom nothing is mapped: loom's atomics have no fixed addresses.
#[cfg(loom)]
struct MappedMemory {
    header: MappingHeader,
    slots: Vec<LaneSlot>,
    blocks: Vec<BlockHeader>,
    empty: Vec<AtomicU64>,
    data: Vec<ModelBlock>,
}

/// The bytes of a block in a model. The bytes themselves are plain memory, so that lanes and readers run their
/// production code; `accesses` has a cell for each word, through which loom observes accesses.
#[cfg(loom)]
struct ModelBlock {
    words: Box<[std::cell::UnsafeCell<u64>]>,
    accesses: Vec<loom::cell::UnsafeCell<()>>,
}

#[cfg(not(loom))]
impl Mapping {
    /// Memory of this process alone.
    pub fn anonymous(layout: Layout) -> Result<Mapping, MappingError> {
        let bytes = layout.total_bytes();
        let memory = memmap2::MmapOptions::new()
            .len(bytes)
            .map_anon()
            .map_err(|source| MappingError::Map { bytes, source })?;
        Ok(Mapping::format(MappedMemory(memory.into()), layout, false))
    }

    /// Memory of this process for up to `blocks` blocks of a client, without any block yet.
    pub fn for_client(blocks: u32, lanes: u32) -> Result<Mapping, MappingError> {
        let layout = Layout {
            lanes: lanes.clamp(1, MAX_LANES),
            blocks,
            block_bytes: 0,
        };
        let mut mapping = Mapping::anonymous(layout)?;
        mapping.lent = Some((0..blocks).map(|_| LentBlock::default()).collect());
        for word in mapping.empty_bits() {
            word.store(0, Ordering::Relaxed);
        }
        Ok(mapping)
    }

    /// Adds a client's block, which goes to the pool next.
    pub(super) fn lend(&self, index: u32, start: *mut u8, bytes: u32, record_limit: u32) {
        if let Some(lent) = self.lent.as_ref().and_then(|lent| lent.get(index as usize)) {
            lent.start.store(start, Ordering::Relaxed);
            lent.bytes.store(bytes, Ordering::Relaxed);
            lent.record_limit.store(record_limit, Ordering::Relaxed);
        }
    }

    /// Whether a client supplies the blocks.
    pub fn is_of_client(&self) -> bool {
        self.lent.is_some()
    }

    /// The number of blocks that there are; of a client's, those that it has supplied first.
    pub(super) fn supplied(&self) -> u32 {
        match &self.lent {
            Some(lent) => {
                let supplied = |block: &&LentBlock| block.bytes.load(Ordering::Relaxed) != 0;
                lent.iter().take_while(supplied).count() as u32
            }
            None => self.layout.blocks,
        }
    }

    /// Bytes that a block holds.
    pub(crate) fn capacity(&self, index: u32) -> u32 {
        match &self.lent {
            Some(lent) => lent[index as usize].bytes.load(Ordering::Relaxed),
            None => self.layout.block_bytes,
        }
    }

    /// The maximum number of records of a block; 0 means no limit.
    pub(crate) fn record_limit(&self, index: u32) -> u32 {
        self.lent.as_ref().map_or(0, |lent| {
            lent[index as usize].record_limit.load(Ordering::Relaxed)
        })
    }

    /// A new pool in `file`, which must contain zeros, be at least `layout.total_bytes()` long, and be sealed against
    /// shrinking: a file that shrinks kills the processes that map it.
    pub fn create(
        file: impl memmap2::MmapAsRawDesc,
        layout: Layout,
    ) -> Result<Mapping, MappingError> {
        let memory = Self::map(file, layout.total_bytes())?;
        Ok(Mapping::format(memory, layout, true))
    }

    /// The pool that another process made in `file`, of `file_bytes` bytes. The header is checked, and its layout is
    /// used from then on, whatever the header contains later.
    pub fn open(
        file: impl memmap2::MmapAsRawDesc,
        file_bytes: usize,
    ) -> Result<Mapping, MappingError> {
        if file_bytes < HEADER_BYTES {
            return Err(MappingError::Header(format!(
                "{file_bytes} bytes, expected at least {HEADER_BYTES}"
            )));
        }
        let memory = Self::map(file, file_bytes)?;
        let header = memory.header();
        let magic = header.magic.load(Ordering::Relaxed);
        let version = header.version.load(Ordering::Relaxed);
        let lanes = header.lanes.load(Ordering::Relaxed);
        let blocks = header.blocks.load(Ordering::Relaxed) as usize;
        let block_bytes = header.block_bytes.load(Ordering::Relaxed) as usize;
        if magic != MAGIC {
            return Err(MappingError::Header(format!(
                "magic {magic:#018x}, expected {MAGIC:#018x}"
            )));
        }
        if version != FORMAT_VERSION {
            return Err(MappingError::Header(format!(
                "version {version}, expected {FORMAT_VERSION}"
            )));
        }
        let layout = Layout::new(blocks.saturating_mul(block_bytes), block_bytes, lanes)
            .map_err(|error| MappingError::Header(error.to_string()))?;
        if layout.total_bytes() > file_bytes {
            return Err(MappingError::Header(format!(
                "{file_bytes} bytes, its layout needs {}",
                layout.total_bytes()
            )));
        }
        Ok(Mapping {
            layout,
            memory,
            is_shared: true,
            lent: None,
            populated: PlainU32::new(0),
        })
    }

    fn map(file: impl memmap2::MmapAsRawDesc, bytes: usize) -> Result<MappedMemory, MappingError> {
        memmap2::MmapOptions::new()
            .len(bytes)
            .map_raw(file)
            .map(MappedMemory)
            .map_err(|source| MappingError::Map { bytes, source })
    }

    /// Populates the pages of some blocks. The collector does this ahead of need, so that neither the program's start
    /// nor a lane's first writes to a block cost page faults.
    pub fn populate(&self, blocks: std::ops::Range<u32>) {
        if blocks.is_empty() || self.lent.is_some() {
            return;
        }
        let length = blocks.len() * self.layout.block_bytes();
        let place = self.data(blocks.start);
        assert!(blocks.end <= self.layout.blocks);
        self.populated.fetch_max(blocks.end, Ordering::Relaxed);
        system::populate(std::ptr::slice_from_raw_parts_mut(place, length));
    }

    /// Populates block `index`, which a lane has taken, and some of its successors, unless this process has done so:
    /// one system call instead of a fault for each page.
    pub(super) fn populate_for_lane(&self, index: u32) {
        if index >= self.populated.load(Ordering::Relaxed) {
            // Larger blocks may never be used to their end: faults populate them page by page.
            let blocks = POPULATED_AT_ONCE / self.layout.block_bytes.max(1);
            self.populate(index..(index + blocks).min(self.layout.blocks));
        }
    }

    /// Writes the header of a new mapping. All other bytes are 0, which is a valid state.
    fn format(memory: MappedMemory, layout: Layout, is_shared: bool) -> Mapping {
        let header = memory.header();
        header.magic.store(MAGIC, Ordering::Relaxed);
        header.version.store(FORMAT_VERSION, Ordering::Relaxed);
        header.lanes.store(layout.lanes, Ordering::Relaxed);
        header.blocks.store(layout.blocks, Ordering::Relaxed);
        header
            .block_bytes
            .store(layout.block_bytes, Ordering::Relaxed);
        let mapping = Mapping {
            layout,
            memory,
            is_shared,
            lent: None,
            populated: PlainU32::new(0),
        };
        for (place, word) in mapping.empty_bits().iter().enumerate() {
            let blocks = (layout.blocks as usize - place * 64).min(64);
            word.store(u64::MAX >> (64 - blocks), Ordering::Relaxed);
        }
        mapping
    }

    /// Keeps the memory out of children made by fork: they must not write into their parent's blocks.
    pub fn keep_from_children(&self) -> std::io::Result<()> {
        system::keep_from_children(&self.memory.0)
    }

    fn header(&self) -> &MappingHeader {
        self.memory.header()
    }

    /// The header of the lane in this slot.
    pub fn slot(&self, index: u32) -> &LaneSlot {
        assert!(index < self.layout.lanes);
        let offset = HEADER_BYTES + index as usize * size_of::<LaneSlot>();
        // SAFETY: within the mapping by the layout, aligned to 64, atomics only.
        unsafe { &*self.memory.0.as_ptr().add(offset).cast() }
    }

    fn empty_bits(&self) -> &[AtomicU64] {
        // SAFETY: within the mapping by the layout, aligned to 8, atomics only.
        unsafe {
            let first = self.memory.0.as_ptr().add(self.layout.pool_offset());
            std::slice::from_raw_parts(first.cast(), self.layout.pool_words())
        }
    }

    pub(crate) fn block(&self, index: u32) -> &BlockHeader {
        assert!(index < self.layout.blocks);
        let offset = self.layout.blocks_offset() + index as usize * size_of::<BlockHeader>();
        // SAFETY: within the mapping by the layout, aligned to 64, atomics only.
        unsafe { &*self.memory.0.as_ptr().add(offset).cast() }
    }

    /// Start of a block's data.
    pub(crate) fn data(&self, index: u32) -> *mut u8 {
        assert!(index < self.layout.blocks);
        if let Some(lent) = &self.lent {
            return lent[index as usize].start.load(Ordering::Relaxed);
        }
        let offset = self.layout.data_offset() + index as usize * self.layout.block_bytes();
        // SAFETY: within the mapping by the layout.
        unsafe { self.memory.0.as_mut_ptr().add(offset) }
    }

    /// Shows `read` the bytes `from..to` of a block, multiples of 8. It sees a copy if another process has the memory, too.
    ///
    /// # Safety
    ///
    /// They have been committed (an acquire load of the commit word said so), and the block is not
    /// returned to the pool while `read` runs.
    pub(crate) unsafe fn read<R>(
        &self,
        index: u32,
        from: u32,
        to: u32,
        read: impl FnOnce(&[u8]) -> R,
    ) -> R {
        assert!(from <= to && to <= self.capacity(index));
        if self.is_shared {
            let words = (to - from) as usize / 8;
            // SAFETY: within the block and aligned to 8; atomics only, for which any bytes are valid.
            let words: &[PlainU64] = unsafe {
                std::slice::from_raw_parts(self.data(index).add(from as usize).cast(), words)
            };
            let load = |word: &PlainU64| word.load(Ordering::Relaxed);
            let copy: Vec<u64> = words.iter().map(load).collect();
            return read(bytemuck::cast_slice(&copy));
        }
        // SAFETY: within the block; committed bytes are never written again before the block is
        // returned, which the caller excludes.
        read(unsafe {
            std::slice::from_raw_parts(self.data(index).add(from as usize), (to - from) as usize)
        })
    }
}

#[cfg(not(loom))]
impl MappedMemory {
    fn header(&self) -> &MappingHeader {
        // SAFETY: mapped for as long as `self`, page aligned, at least as long as a header, atomics only.
        unsafe { &*self.0.as_ptr().cast() }
    }
}

impl Mapping {
    /// The division of the mapping.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How far its session has come.
    pub fn state(&self) -> SessionState {
        SessionState::of(self.header().state.load(Ordering::Acquire))
    }

    /// Begins the session, unless it is already over.
    pub fn begin(&self) {
        self.change_state(&[SessionState::New], SessionState::Recording);
    }

    /// The process begins to exit. Its lanes go on.
    #[cfg(not(loom))]
    pub fn exit(&self) {
        use SessionState::*;
        self.change_state(&[New, Recording], Exiting);
    }

    /// Ends the session of this process, unless it has been abandoned.
    pub(crate) fn end(&self) {
        use SessionState::*;
        self.change_state(&[New, Recording, Exiting], Ended);
        self.pool().wake_waiting();
    }

    /// Asks the process to stop recording, unless it has ended its session itself.
    pub fn abandon(&self) {
        use SessionState::*;
        self.change_state(&[New, Recording, Exiting], Abandoned);
        self.pool().wake_waiting();
    }

    /// Changes the state to `to` if it is one of `from`.
    fn change_state(&self, from: &[SessionState], to: SessionState) {
        let change = |code| from.contains(&SessionState::of(code)).then_some(to as u32);
        // An error: the state is another one, and stays.
        let state = &self.header().state;
        let _ = state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }

    /// The empty blocks.
    pub(super) fn pool(&self) -> Pool<'_> {
        Pool::new(self, self.empty_bits(), &self.header().waiting)
    }

    /// The word on which the collector sleeps.
    pub(super) fn wake(&self) -> &Wake {
        &self.header().wake
    }

    /// The number of the collector's polls: it changes while there is a collector.
    pub(super) fn looks(&self) -> &PlainU32 {
        &self.header().looks
    }

    /// The number of triggers of dumps.
    #[cfg(not(loom))]
    pub(super) fn triggers(&self) -> &PlainU32 {
        &self.header().triggers
    }

    /// The counter of records of `kind` that were lost without a lane to count them.
    pub(crate) fn unlaned(&self, kind: Kind) -> &PlainU64 {
        &self.header().unlaned[kind.index()]
    }

    pub(crate) fn unlaned_by_index(&self, index: usize) -> &PlainU64 {
        &self.header().unlaned[index]
    }

    pub(crate) fn block_state(&self, index: u32) -> BlockState {
        self.block(index).state()
    }
}

#[cfg(loom)]
impl Mapping {
    /// A mapping for a model: tiny, and made of loom's cells.
    pub(crate) fn model(lanes: u32, blocks: u32, block_bytes: u32) -> Mapping {
        let zeroed_slot = || LaneSlot {
            lane: PlainU32::new(0),
            thread: PlainU32::new(0),
            depth: PlainU32::new(0),
            dropped_by: PlainU32::new(0),
            dropped: std::array::from_fn(|_| AtomicU64::new(0)),
            first_drop: PlainU64::new(0),
            last_drop: PlainU64::new(0),
            calls: std::array::from_fn(|_| OpenCall::default()),
            report: AtomicU64::new(0),
        };
        Mapping {
            layout: Layout {
                lanes,
                blocks,
                block_bytes,
            },
            memory: MappedMemory {
                header: MappingHeader {
                    magic: PlainU64::new(MAGIC),
                    version: PlainU32::new(FORMAT_VERSION),
                    lanes: PlainU32::new(lanes),
                    blocks: PlainU32::new(blocks),
                    block_bytes: PlainU32::new(block_bytes),
                    state: AtomicU32::new(0),
                    reserved: PlainU32::new(0),
                    unlaned: [const { PlainU64::new(0) }; KINDS],
                    wake: Wake::default(),
                    looks: PlainU32::new(0),
                    waiting: WaitingLanes::new(),
                    triggers: PlainU32::new(0),
                    reserved2: PlainU32::new(0),
                },
                slots: (0..lanes).map(|_| zeroed_slot()).collect(),
                blocks: (0..blocks).map(|_| BlockHeader::new()).collect(),
                empty: vec![AtomicU64::new((1 << blocks) - 1)],
                data: (0..blocks)
                    .map(|_| ModelBlock::new(block_bytes / 8))
                    .collect(),
            },
        }
    }

    fn header(&self) -> &MappingHeader {
        &self.memory.header
    }

    pub(crate) fn slot(&self, index: u32) -> &LaneSlot {
        &self.memory.slots[index as usize]
    }

    pub(crate) fn block(&self, index: u32) -> &BlockHeader {
        &self.memory.blocks[index as usize]
    }

    fn empty_bits(&self) -> &[AtomicU64] {
        &self.memory.empty
    }

    pub(crate) fn is_of_client(&self) -> bool {
        false
    }

    pub(super) fn supplied(&self) -> u32 {
        self.layout.blocks
    }

    pub(crate) fn capacity(&self, _: u32) -> u32 {
        self.layout.block_bytes
    }

    pub(crate) fn record_limit(&self, _: u32) -> u32 {
        0
    }

    /// Start of a block's data.
    pub(crate) fn data(&self, index: u32) -> *mut u8 {
        self.memory.data[index as usize]
            .words
            .as_ptr()
            .cast_mut()
            .cast()
    }

    fn accesses(&self, index: u32, from: u32, to: u32) -> &[loom::cell::UnsafeCell<()>] {
        &self.memory.data[index as usize].accesses[from as usize / 8..to as usize / 8]
    }

    /// Informs loom that the calling thread writes these bytes of a block; loom checks that no other thread accesses
    /// them meanwhile.
    pub(crate) fn note_write(&self, index: u32, from: u32, to: u32) {
        self.accesses(index, from, to)
            .iter()
            .for_each(|cell| cell.with_mut(|_| ()));
    }

    pub(crate) unsafe fn read<R>(
        &self,
        index: u32,
        from: u32,
        to: u32,
        read: impl FnOnce(&[u8]) -> R,
    ) -> R {
        // Loom checks that no other thread writes these bytes meanwhile.
        self.accesses(index, from, to)
            .iter()
            .for_each(|cell| cell.with(|_| ()));
        let start = self.data(index).wrapping_add(from as usize);
        // SAFETY: within the block's memory; threads of a model run one at a time.
        read(unsafe { std::slice::from_raw_parts(start, (to - from) as usize) })
    }
}

#[cfg(loom)]
impl ModelBlock {
    fn new(words: u32) -> ModelBlock {
        ModelBlock {
            words: (0..words).map(|_| std::cell::UnsafeCell::new(0)).collect(),
            accesses: (0..words)
                .map(|_| loom::cell::UnsafeCell::new(()))
                .collect(),
        }
    }
}

// SAFETY: the memory is plain bytes that stay mapped while the value lives; everything in it that
// two threads may touch at once is atomic, and block data is handed over by the commit word.
#[cfg(not(loom))]
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
#[cfg(not(loom))]
unsafe impl Sync for Mapping {}
// SAFETY: loom's cells check every access themselves.
#[cfg(loom)]
unsafe impl Send for Mapping {}
// SAFETY: loom's cells check every access themselves.
#[cfg(loom)]
unsafe impl Sync for Mapping {}
