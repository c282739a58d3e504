//! Modules and their kernels: what a launch demands of a device, its record, and what samples and counts of it.

use super::callbacks;
use super::code::{KernelSource, LoadedModule};
use super::compute_units::COMPUTE_UNITS;
use super::counters::{CountedLaunch, DispatchCounters};
use super::instructions::CountedInstructions;
use super::machine::Demand;
use super::memory::Pointer;
use super::operations::SimFunction;
use super::runtime::{EnqueuedWork, SimStream, count};
use super::sampler::Launched;
use super::thread::SimThread;
use gputrail_collect::correlation::CallInProgress;
use gputrail_interface::operations::resource;
use gputrail_record::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A module loaded on one device.
#[derive(Debug)]
pub(super) struct SimModule {
    id: ModuleId,
    code: CodeObjectId,
    pub(super) device: usize,
    kernels: Vec<SimKernel>,
    /// The code of the kernels.
    executed: Rc<LoadedModule>,
    /// Whether its bytes have been stored, which samples and counts of instructions need for their lines.
    is_stored: Cell<bool>,
    /// Whether each kernel has been compiled for the device, which its first launch does.
    compiled: RefCell<Vec<bool>>,
}

#[derive(Debug)]
struct SimKernel {
    id: KernelId,
    source: &'static KernelSource,
}

/// The size and the stream of a launch.
#[derive(Copy, Clone, Debug)]
pub(super) struct SimLaunch {
    /// Workgroups in x, y, z.
    pub(super) groups: [u32; 3],
    /// Local memory per workgroup beyond the kernel's own, in bytes.
    pub(super) local_memory: u32,
    pub(super) stream: SimStream,
    /// Managed memory that the kernel accesses.
    pub(super) managed: Option<Pointer>,
}

impl SimLaunch {
    fn all_groups(&self) -> u64 {
        self.groups.iter().copied().map(u64::from).product()
    }
}

/// The most waves of a compute unit, and the lanes of a wave.
const MOST_WAVES: u64 = 40;
const LANES: u64 = 64;
/// Cache configurations: no preference, more local memory, more first-level cache, equal parts.
const CACHE_NONE: u8 = 0;
const CACHE_LOCAL: u8 = 1;
const CACHE_FIRST_LEVEL: u8 = 2;
const CACHE_EQUAL: u8 = 3;

impl SimModule {
    /// The source of kernel `index`.
    pub(super) fn source(&self, index: usize) -> &'static KernelSource {
        self.kernels[index].source
    }

    /// The id of kernel `index`.
    pub(super) fn kernel_id(&self, index: usize) -> KernelId {
        self.kernels[index].id
    }

    /// The index of the kernel that each workgroup of kernel `index` launches.
    pub(super) fn child(&self, index: usize) -> Option<usize> {
        self.kernels[index].source.child.map(|name| self.find(name))
    }

    /// The index of the kernel whose demangled name contains `name`.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(super) fn find(&self, name: &str) -> usize {
        let index = self
            .kernels
            .iter()
            .position(|one| one.source.demangled.contains(name));
        index.unwrap_or_else(|| panic!("no kernel is called {name}"))
    }
}

impl SimThread {
    pub(super) async fn module_load(
        &mut self,
        path: &str,
        sources: &'static [KernelSource],
    ) -> SimModule {
        let names = self.runtime.names().clone();
        let path = names.string(path);
        let call = self.enter(SimFunction::ModuleLoad, &[path.0.into()]).await;
        let is_counted = !self.host().buffers_for(Kind::INSTRUCTION_COUNT).is_none();
        let device = &self.runtime.devices[self.device];
        let executed = self.runtime.load(sources);
        let sampled = is_counted || device.sampler.is_configured();
        let mut module = gputrail_record::Module::blank();
        module.context = device.context;
        if sampled {
            module.source = names.string(executed.source());
        }
        let module = names.module(module);
        let mut object = CodeObject::blank();
        (object.module, object.agent, object.path) = (module, device.agent, path);
        object.load_base = 0x7e80_0000_0000 + 0x100_0000 * self.device as u64;
        object.load_size = 0x4_0000;
        object.id = names.code_object(object);
        let code = object.id;
        if sampled {
            executed.store_bytes(&names, code);
        }
        self.returns(module.0.into());
        let loaded = resource::MODULE_LOADED;
        callbacks::object::<gputrail_record::Module>(&self.site(), &call, loaded, module.0);
        callbacks::code_loaded(&self.site(), &call, &object, || executed.bytes());
        let _ = self.exit(call, Ok(())).await;

        let mut kernels = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            let name = names.string(source.name);
            let arguments = [module.0.into(), name.0.into()];
            let call = self.enter(SimFunction::ModuleGetKernel, &arguments).await;
            let mut symbol = KernelSymbol::blank();
            (symbol.module, symbol.code_object, symbol.name) = (module, code, name);
            symbol.demangled = names.string(source.demangled);
            symbol.handle = 0x5581_4600_0000 + 0x100 * number as u64;
            symbol.local_memory = source.local_memory.into();
            symbol.max_workgroup = 1_024;
            symbol.workgroup_multiple = 32;
            let id = names.kernel(symbol);
            self.returns(id.0.into());
            let registered = resource::KERNEL_SYMBOL_REGISTERED;
            callbacks::object::<KernelSymbol>(&self.site(), &call, registered, id.0);
            kernels.push(SimKernel { id, source });
            let _ = self.exit(call, Ok(())).await;
        }
        SimModule {
            id: module,
            code,
            executed,
            is_stored: Cell::new(sampled),
            device: self.device,
            compiled: RefCell::new(vec![false; kernels.len()]),
            kernels,
        }
    }

    pub(super) async fn module_unload(&mut self, module: &SimModule) {
        let call = self
            .enter(SimFunction::ModuleUnload, &[module.id.0.into()])
            .await;
        for kernel in &module.kernels {
            let unloaded = resource::KERNEL_SYMBOL_UNREGISTERED;
            callbacks::object::<KernelSymbol>(&self.site(), &call, unloaded, kernel.id.0);
        }
        let unloaded = resource::CODE_OBJECT_UNLOADED;
        callbacks::object::<CodeObject>(&self.site(), &call, unloaded, module.code.0);
        let unloaded = resource::MODULE_UNLOADED;
        callbacks::object::<gputrail_record::Module>(&self.site(), &call, unloaded, module.id.0);
        let _ = self.exit(call, Ok(())).await;
    }

    /// Compiles a kernel for the device, which its first launch does.
    pub(super) async fn compile_once(
        &mut self,
        call: &CallInProgress,
        module: &SimModule,
        index: usize,
    ) {
        if !std::mem::replace(&mut module.compiled.borrow_mut()[index], true) {
            self.compile(call, module, module.kernels[index].source)
                .await;
        }
    }

    /// What a launch of kernel `index` demands of the device, which shares its compute units between kernels.
    pub(super) fn kernel_demand(
        &mut self,
        module: &SimModule,
        index: usize,
        launch: SimLaunch,
    ) -> Demand {
        let source = module.kernels[index].source;
        // The number of compute units that the launch fills.
        let busy = launch.all_groups().div_ceil(source.resident);
        Demand {
            amount: self.random.around(busy * source.group_time * 1_000, 3),
            width: busy.min(COMPUTE_UNITS) * 1_000,
            setup: Nanos(0),
        }
    }

    /// The record of a launch of kernel `index`, without the fields of all work.
    pub(super) fn kernel_record(
        &self,
        module: &SimModule,
        index: usize,
        launch: SimLaunch,
    ) -> KernelDispatch {
        let SimKernel { id, source } = &module.kernels[index];
        let mut record = KernelDispatch::blank();
        record.header = record.header.with(flags::ASYNCHRONOUS);
        record.kernel = *id;
        for axis in 0..3 {
            record.grid[axis] = u64::from(launch.groups[axis] * source.workgroup[axis]);
        }
        record.workgroup = source.workgroup;
        record.registers = source.registers;
        record.static_local_memory = source.local_memory;
        record.dynamic_local_memory = launch.local_memory;
        record.executed_local_memory =
            (source.local_memory + launch.local_memory).next_multiple_of(8 << 10);
        record.private_memory = source.private_memory;
        record.private_memory_total =
            u64::from(source.private_memory) * COMPUTE_UNITS * MOST_WAVES * LANES;
        record.grid_id = 1 + self.runtime.counts.kernels.get() as i64;
        (record.cache_requested, record.cache_executed) =
            cache_configuration(source.local_memory + launch.local_memory);
        record.local_memory_config = module.executed.kernel(index).bank_configuration();
        record.carveout = 255;
        record.launch = LaunchType::REGULAR;
        record.dimensions = 3;
        record
    }

    /// Tells what samples and counts of a kernel that was enqueued.
    pub(super) fn kernel_launched(
        &mut self,
        module: &SimModule,
        index: usize,
        launch: SimLaunch,
        (enqueued, demand): (&EnqueuedWork, Demand),
        chosen: DispatchCounters,
    ) {
        let SimKernel { id, source } = &module.kernels[index];
        let groups = launch.all_groups();
        let external = self.host().external_of_samples();
        let is_counted = !self.host().buffers_for(Kind::INSTRUCTION_COUNT).is_none();
        let device = &self.runtime.devices[module.device];
        let is_wanted = is_counted || device.sampler.is_configured();
        if is_wanted && !module.is_stored.replace(true) {
            let names = self.runtime.names();
            module.executed.store_bytes(names, module.code);
        }
        let waves_per_group = source.workgroup.iter().product::<u32>().div_ceil(64);
        let resident = source.resident.min(groups.div_ceil(COMPUTE_UNITS));
        device.sampler.launched(enqueued.index, || Launched {
            work: enqueued.work.id,
            correlation: enqueued.work.correlation,
            external,
            kernel: *id,
            code_object: module.code,
            code: module.executed.kernel(index),
            groups: launch.groups,
            waves_per_group,
            resident,
            queue: enqueued.queue_number,
        });
        device
            .counters
            .launched(enqueued.index, chosen, || CountedLaunch {
                work: enqueued.work.id,
                correlation: enqueued.work.correlation,
                queue: enqueued.work.queue,
                code: module.executed.kernel(index),
                groups,
                waves_per_group: waves_per_group.into(),
                resident,
                demand: demand.amount,
            });
        if is_counted {
            self.runtime.count_instructions(CountedInstructions {
                code: module.executed.kernel(index),
                code_object: module.code,
                kernel: *id,
                groups,
                waves_per_group: waves_per_group.into(),
            });
        }
        count(&self.runtime.counts.kernels);
    }

    async fn compile(&mut self, call: &CallInProgress, module: &SimModule, source: &KernelSource) {
        let start = self.runtime.now();
        let work = 180_000 + 2_600 * u64::from(source.registers);
        self.compute(Nanos(work)).await;
        let mut record = Overhead::blank();
        record.correlation = call.correlation;
        record.start = self.runtime.ticks_at(start);
        record.end = self.runtime.ticks();
        record.thread = self.host().thread();
        record.agent = self.runtime.devices[module.device].agent;
        record.module = module.id;
        record.what = OverheadKind::COMPILATION;
        record.detail = self.runtime.names().string(source.demangled);
        self.host().write(record);
    }
}

/// The cache configuration that a kernel with this much local memory asks for, and the one that it gets.
fn cache_configuration(local_memory: u32) -> (u8, u8) {
    match local_memory {
        0 => (CACHE_FIRST_LEVEL, CACHE_FIRST_LEVEL),
        1..0x4000 => (CACHE_NONE, CACHE_EQUAL),
        _ => (CACHE_LOCAL, CACHE_LOCAL),
    }
}
