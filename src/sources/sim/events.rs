//! The events that the model counts, and the names of the counters that count them.
//!
//! Counts of instructions follow from the programs of waves: how often each instruction is executed depends on neither
//! time nor contention. Cycles follow from the machine, which says when work ran and on how many compute units.

use super::waves::{TEXEL_BYTES, WaveOperation, WaveProgram};
use gputrail_record::Nanos;

macro_rules! events {
    ($($(#[$meta:meta])* $name:ident,)*) => {
        /// An event.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub(super) enum CountedEvent { $($(#[$meta])* $name,)* }

        /// The number of events of each kind.
        const EVENTS: usize = [$(CountedEvent::$name),*].len();
    };
}
events!(
    /// A cycle of the device's clock.
    Cycle,
    /// A cycle in which the compute units had work.
    ActiveCycle,
    /// A cycle of a compute unit that had work.
    UnitCycle,
    /// A cycle of a wave.
    WaveCycle,
    /// A wave was started.
    Wave,
    /// An instruction was executed.
    Instruction,
    /// A vector or matrix instruction.
    Vector,
    /// 4 cycles of a vector or matrix pipe.
    VectorQuadCycle,
    /// 4 cycles of a vector or matrix pipe, for each active lane.
    VectorLaneQuadCycle,
    /// A scalar instruction.
    Scalar,
    /// A scalar read of memory.
    ScalarLoad,
    /// A vector load.
    Load,
    /// A vector store.
    Store,
    /// A texture read.
    Texture,
    /// A local memory access.
    Local,
    /// A cycle of local memory.
    LocalCycle,
    /// A cycle of the pipe for vector memory.
    MemoryPipeCycle,
    /// A read of 64 bytes of memory.
    Read,
    /// A read of 32 bytes of memory.
    SmallRead,
    /// A write of 64 bytes of memory.
    Write,
    /// A write of 32 bytes of memory.
    SmallWrite,
);

/// Numbers of events.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EventCounts([u64; EVENTS]);

impl EventCounts {
    pub fn get(&self, event: CountedEvent) -> u64 {
        self.0[event as usize]
    }

    pub fn add(&mut self, event: CountedEvent, count: u64) {
        self.0[event as usize] += count;
    }

    fn combine(self, other: EventCounts, of: impl Fn(u64, u64) -> u64) -> EventCounts {
        let mut all = self;
        for (count, other) in all.0.iter_mut().zip(other.0) {
            *count = of(*count, other);
        }
        all
    }

    pub fn plus(self, other: EventCounts) -> EventCounts {
        self.combine(other, |count, other| count + other)
    }

    pub fn minus(self, other: EventCounts) -> EventCounts {
        self.combine(other, |count, other| count - other)
    }

    pub fn times(self, factor: u64) -> EventCounts {
        self.combine(self, |count, _| count * factor)
    }

    /// The part `done` of `whole`, each count rounded down.
    pub fn part(self, done: u64, whole: u64) -> EventCounts {
        self.combine(self, |count, _| {
            (u128::from(count) * u128::from(done.min(whole)) / u128::from(whole.max(1))) as u64
        })
    }

    /// The events of a launch of `groups` workgroups, which follow from its program.
    pub fn of_launch(program: &WaveProgram, groups: u64, waves_per_group: u64) -> EventCounts {
        let first = EventCounts::of_wave(program, true).times(groups);
        let others = groups * waves_per_group.saturating_sub(1);
        first.plus(EventCounts::of_wave(program, false).times(others))
    }

    /// The events of one wave, which is the first of its workgroup or another one.
    fn of_wave(program: &WaveProgram, is_first: bool) -> EventCounts {
        let mut counts = EventCounts::default();
        counts.add(CountedEvent::Wave, 1);
        program.walk(is_first, |place, _| {
            let line = &program.lines[place];
            counts.add(CountedEvent::Instruction, 1);
            match line.operation {
                WaveOperation::Vector { cycles, .. } | WaveOperation::Matrix { cycles } => {
                    let quads = u64::from(cycles / 4);
                    counts.add(CountedEvent::Vector, 1);
                    counts.add(CountedEvent::VectorQuadCycle, quads);
                    counts.add(
                        CountedEvent::VectorLaneQuadCycle,
                        quads * u64::from(line.lanes),
                    );
                }
                WaveOperation::Scalar => counts.add(CountedEvent::Scalar, 1),
                WaveOperation::ScalarLoad => counts.add(CountedEvent::ScalarLoad, 1),
                WaveOperation::Load { bytes } => {
                    counts.add(CountedEvent::Load, 1);
                    counts.add(CountedEvent::MemoryPipeCycle, bytes.into());
                    counts.access(
                        line.requests(bytes),
                        CountedEvent::Read,
                        CountedEvent::SmallRead,
                    );
                }
                WaveOperation::Store { bytes } => {
                    counts.add(CountedEvent::Store, 1);
                    counts.add(CountedEvent::MemoryPipeCycle, bytes.into());
                    counts.access(
                        line.requests(bytes),
                        CountedEvent::Write,
                        CountedEvent::SmallWrite,
                    );
                }
                WaveOperation::Texture => {
                    counts.add(CountedEvent::Texture, 1);
                    counts.access(
                        line.requests(TEXEL_BYTES),
                        CountedEvent::Read,
                        CountedEvent::SmallRead,
                    );
                }
                WaveOperation::Local { bytes } => {
                    counts.add(CountedEvent::Local, 1);
                    counts.add(CountedEvent::LocalCycle, line.local_cycles(bytes));
                }
                WaveOperation::LocalDirect => counts.add(CountedEvent::Local, 1),
                _ => {}
            }
        });
        counts
    }

    /// Adds the requests of an access.
    fn access(&mut self, requests: (u64, u64), whole: CountedEvent, small: CountedEvent) {
        self.add(whole, requests.0);
        self.add(small, requests.1);
    }
}

/// The cycles of the device's clock in `time`.
pub(super) fn cycles(time: Nanos) -> u64 {
    time.0 * 3 / 2
}

/// Instances of the blocks that have several in an agent.
const INSTANCES: u64 = 16;

/// The values that the counter called `name` has for `counts`: one for each instance of its block. The model has no
/// caches, stalls of memory or bank conflicts: counters of these stay 0, and each request misses.
pub(super) fn values(name: &str, counts: &EventCounts) -> Vec<u64> {
    let of = |event| counts.get(event);
    let (reads, writes) = (
        of(CountedEvent::Read) + of(CountedEvent::SmallRead),
        of(CountedEvent::Write) + of(CountedEvent::SmallWrite),
    );
    let total = match name {
        "GRBM_COUNT" => of(CountedEvent::Cycle),
        "GRBM_GUI_ACTIVE" | "SQ_BUSY_CYCLES" => of(CountedEvent::ActiveCycle),
        "SQ_WAVES" => of(CountedEvent::Wave),
        "SQ_WAVE_CYCLES" => of(CountedEvent::WaveCycle),
        "SQ_INSTS_VALU" => of(CountedEvent::Vector),
        "SQ_INSTS_SALU" | "SQ_INST_CYCLES_SALU" => of(CountedEvent::Scalar),
        "SQ_INSTS_SMEM" => of(CountedEvent::ScalarLoad),
        "SQ_INSTS_VMEM_RD" => of(CountedEvent::Load) + of(CountedEvent::Texture),
        "SQ_INSTS_VMEM_WR" | "TA_FLAT_WRITE_WAVEFRONTS" => of(CountedEvent::Store),
        "TA_FLAT_READ_WAVEFRONTS" => of(CountedEvent::Load),
        "SQ_INSTS_FLAT" => of(CountedEvent::Load) + of(CountedEvent::Store),
        "SQ_INSTS_TEX_LOAD" => of(CountedEvent::Texture),
        "SQ_INSTS_LDS" => of(CountedEvent::Local),
        "SQ_ACTIVE_INST_VALU" => of(CountedEvent::VectorQuadCycle),
        "SQ_THREAD_CYCLES_VALU" => of(CountedEvent::VectorLaneQuadCycle),
        "SQC_LDS_IDX_ACTIVE" => of(CountedEvent::LocalCycle),
        "SQ_INST_CYCLES_VMEM" | "TA_TA_BUSY" => of(CountedEvent::MemoryPipeCycle),
        "SQ_WAVE64_INSTS" => of(CountedEvent::Instruction),
        "TCC_MISS" | "GL2C_MISS" => reads + writes,
        "TCC_EA_RDREQ" | "GL2C_MC_RDREQ" => reads,
        "TCC_EA_RDREQ_32B" | "GL2C_EA_RDREQ_32B" => of(CountedEvent::SmallRead),
        "GL2C_EA_RDREQ_64B" => of(CountedEvent::Read),
        "TCC_EA_WRREQ" | "GL2C_MC_WRREQ" => writes,
        "TCC_EA_WRREQ_64B" | "GL2C_EA_WRREQ_64B" => of(CountedEvent::Write),
        _ => 0,
    };
    let is_spread = ["TA_", "TC", "GL2C_"]
        .iter()
        .any(|block| name.starts_with(block));
    if is_spread {
        (0..INSTANCES)
            .map(|instance| total / INSTANCES + u64::from(instance < total % INSTANCES))
            .collect()
    } else {
        vec![total]
    }
}
