//! The events that the model counts, and the names of the counters that count them.
//!
//! Counts of instructions follow from the programs of waves: how often each instruction is executed depends on neither
//! time nor contention. Cycles follow from the machine, which says when work ran and on how many compute units.

use super::waves::{Operation, Program, TEXEL_BYTES};
use gputrail_record::Nanos;

macro_rules! events {
    ($($(#[$meta:meta])* $name:ident,)*) => {
        /// An event.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub(super) enum Event { $($(#[$meta])* $name,)* }

        /// The number of events of each kind.
        const EVENTS: usize = [$(Event::$name),*].len();
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
pub(super) struct Counts([u64; EVENTS]);

impl Counts {
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize]
    }

    pub fn add(&mut self, event: Event, count: u64) {
        self.0[event as usize] += count;
    }

    fn combine(self, other: Counts, of: impl Fn(u64, u64) -> u64) -> Counts {
        let mut all = self;
        for (count, other) in all.0.iter_mut().zip(other.0) {
            *count = of(*count, other);
        }
        all
    }

    pub fn plus(self, other: Counts) -> Counts {
        self.combine(other, |count, other| count + other)
    }

    pub fn minus(self, other: Counts) -> Counts {
        self.combine(other, |count, other| count - other)
    }

    pub fn times(self, factor: u64) -> Counts {
        self.combine(self, |count, _| count * factor)
    }

    /// The part `done` of `whole`, each count rounded down.
    pub fn part(self, done: u64, whole: u64) -> Counts {
        self.combine(self, |count, _| {
            (u128::from(count) * u128::from(done.min(whole)) / u128::from(whole.max(1))) as u64
        })
    }

    /// The events of a launch of `groups` workgroups, which follow from its program.
    pub fn of_launch(program: &Program, groups: u64, waves_per_group: u64) -> Counts {
        let first = Counts::of_wave(program, true).times(groups);
        let others = groups * waves_per_group.saturating_sub(1);
        first.plus(Counts::of_wave(program, false).times(others))
    }

    /// The events of one wave, which is the first of its workgroup or another one.
    fn of_wave(program: &Program, is_first: bool) -> Counts {
        let mut counts = Counts::default();
        counts.add(Event::Wave, 1);
        program.walk(is_first, |place, _| {
            let line = &program.lines[place];
            counts.add(Event::Instruction, 1);
            match line.operation {
                Operation::Vector { cycles, .. } | Operation::Matrix { cycles } => {
                    let quads = u64::from(cycles / 4);
                    counts.add(Event::Vector, 1);
                    counts.add(Event::VectorQuadCycle, quads);
                    counts.add(Event::VectorLaneQuadCycle, quads * u64::from(line.lanes));
                }
                Operation::Scalar => counts.add(Event::Scalar, 1),
                Operation::ScalarLoad => counts.add(Event::ScalarLoad, 1),
                Operation::Load { bytes } => {
                    counts.add(Event::Load, 1);
                    counts.add(Event::MemoryPipeCycle, bytes.into());
                    counts.access(line.requests(bytes), Event::Read, Event::SmallRead);
                }
                Operation::Store { bytes } => {
                    counts.add(Event::Store, 1);
                    counts.add(Event::MemoryPipeCycle, bytes.into());
                    counts.access(line.requests(bytes), Event::Write, Event::SmallWrite);
                }
                Operation::Texture => {
                    counts.add(Event::Texture, 1);
                    counts.access(line.requests(TEXEL_BYTES), Event::Read, Event::SmallRead);
                }
                Operation::Local { bytes } => {
                    counts.add(Event::Local, 1);
                    counts.add(Event::LocalCycle, line.local_cycles(bytes));
                }
                Operation::LocalDirect => counts.add(Event::Local, 1),
                _ => {}
            }
        });
        counts
    }

    /// Adds the requests of an access.
    fn access(&mut self, requests: (u64, u64), whole: Event, small: Event) {
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
pub(super) fn values(name: &str, counts: &Counts) -> Vec<u64> {
    let of = |event| counts.get(event);
    let (reads, writes) = (
        of(Event::Read) + of(Event::SmallRead),
        of(Event::Write) + of(Event::SmallWrite),
    );
    let total = match name {
        "GRBM_COUNT" => of(Event::Cycle),
        "GRBM_GUI_ACTIVE" | "SQ_BUSY_CYCLES" => of(Event::ActiveCycle),
        "SQ_WAVES" => of(Event::Wave),
        "SQ_WAVE_CYCLES" => of(Event::WaveCycle),
        "SQ_INSTS_VALU" => of(Event::Vector),
        "SQ_INSTS_SALU" | "SQ_INST_CYCLES_SALU" => of(Event::Scalar),
        "SQ_INSTS_SMEM" => of(Event::ScalarLoad),
        "SQ_INSTS_VMEM_RD" => of(Event::Load) + of(Event::Texture),
        "SQ_INSTS_VMEM_WR" | "TA_FLAT_WRITE_WAVEFRONTS" => of(Event::Store),
        "TA_FLAT_READ_WAVEFRONTS" => of(Event::Load),
        "SQ_INSTS_FLAT" => of(Event::Load) + of(Event::Store),
        "SQ_INSTS_TEX_LOAD" => of(Event::Texture),
        "SQ_INSTS_LDS" => of(Event::Local),
        "SQ_ACTIVE_INST_VALU" => of(Event::VectorQuadCycle),
        "SQ_THREAD_CYCLES_VALU" => of(Event::VectorLaneQuadCycle),
        "SQC_LDS_IDX_ACTIVE" => of(Event::LocalCycle),
        "SQ_INST_CYCLES_VMEM" | "TA_TA_BUSY" => of(Event::MemoryPipeCycle),
        "SQ_WAVE64_INSTS" => of(Event::Instruction),
        "TCC_MISS" | "GL2C_MISS" => reads + writes,
        "TCC_EA_RDREQ" | "GL2C_MC_RDREQ" => reads,
        "TCC_EA_RDREQ_32B" | "GL2C_EA_RDREQ_32B" => of(Event::SmallRead),
        "GL2C_EA_RDREQ_64B" => of(Event::Read),
        "TCC_EA_WRREQ" | "GL2C_MC_WRREQ" => writes,
        "TCC_EA_WRREQ_64B" | "GL2C_EA_WRREQ_64B" => of(Event::Write),
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
