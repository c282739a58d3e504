//! The resources of the training, allocated before its first step and freed after its last.

use super::super::kernels::SimLaunch;
use super::super::memory::Pointer;
use super::super::thread::{CallStatus, SimThread};
use super::super::time::us;
use super::kernels::KERNELS;
use super::*;
use gputrail_record::StreamFlag;

/// Bytes of the activations of a step.
const ACTIVATION_BYTES: u64 = 5 << 30;
/// The workspace that is tried first, larger than the free memory.
const WISHED_WORKSPACE: u64 = 32 << 30;
/// The workspace that is used.
const WORKSPACE: u64 = 1 << 30;

impl Replica {
    /// Allocates the resources of the device.
    pub(super) async fn equip(&self, thread: &mut SimThread) -> Result<&Equipment, CallStatus> {
        let module = thread
            .module_load("/opt/train/lib/kernels.sim1.co", KERNELS)
            .await;
        let streams = Streams {
            compute: thread
                .stream_create("compute", 0, StreamFlag::DEFAULT)
                .await,
            upload: thread
                .stream_create("upload", 0, StreamFlag::NON_BLOCKING)
                .await,
            all_reduce: thread
                .stream_create("all-reduce", -1, StreamFlag::NON_BLOCKING)
                .await,
            metrics: thread
                .stream_create("metrics", 0, StreamFlag::DEFAULT)
                .await,
            checkpoint: thread
                .stream_create("checkpoint", 1, StreamFlag::NON_BLOCKING)
                .await,
        };
        let memory = TrainingBuffers::allocate(thread).await?;
        let events = TrainingEvents::create(thread).await;
        // Parameters come from a file, through pageable memory.
        let file = Pointer::pageable(0x40_0000 * self.device as u64);
        let bytes = BUCKETS as u64 * BUCKET_BYTES;
        thread
            .memcpy(memory.parameters, file, bytes / 4, streams.upload)
            .await?;
        let rest = memory.parameters.offset(bytes / 4);
        thread
            .memcpy(
                rest,
                file.offset(bytes / 4),
                bytes - bytes / 4,
                streams.upload,
            )
            .await?;
        thread
            .memset_async(memory.gradients, 0, bytes, streams.compute)
            .await?;
        let launch = SimLaunch {
            groups: [2, 1, 1],
            local_memory: 0,
            stream: streams.upload,
            managed: None,
        };
        thread
            .launch(&module, module.find("data::partition"), launch)
            .await?;
        let optimizer = optimizer(thread, &module, streams.compute).await;
        let equipment = Equipment {
            module,
            streams,
            memory,
            events,
            optimizer,
        };
        let equipment = self.equipment.get_or_init(|| equipment);
        self.equipped.open(&thread.runtime.executor, us(9));
        Ok(equipment)
    }

    /// Frees all resources.
    pub(super) async fn tear_down(&self, thread: &mut SimThread) -> Result<(), CallStatus> {
        let equipment = self.equipment(thread).await;
        let (graph, executable) = &equipment.optimizer;
        thread.graph_exec_destroy(executable).await;
        thread.graph_destroy(graph).await;
        let Streams {
            compute,
            upload,
            all_reduce,
            metrics,
            checkpoint,
        } = &equipment.streams;
        for stream in [compute, upload, all_reduce, metrics, checkpoint] {
            thread.stream_destroy(*stream).await;
        }
        for pointer in &equipment.memory.all {
            thread.free(*pointer).await?;
        }
        thread.module_unload(&equipment.module).await;
        Ok(())
    }
}

/// The kernels of the optimizer as a graph, and the executable graph.
async fn optimizer(
    thread: &mut SimThread,
    module: &SimModule,
    stream: SimStream,
) -> (Graph, Graph) {
    let mut graph = thread.graph_create().await;
    let norm = ("gradient_norm", 640);
    for (name, groups) in std::iter::once(norm).chain([("adam_step", 3_461); BUCKETS]) {
        let launch = SimLaunch {
            groups: [groups, 1, 1],
            local_memory: 0,
            stream,
            managed: None,
        };
        let kernel = module.find(name);
        thread
            .graph_add_kernel_node(&mut graph, module, kernel, launch)
            .await;
    }
    let executable = thread.graph_instantiate(&graph, module).await;
    (graph, executable)
}

impl TrainingBuffers {
    async fn allocate(thread: &mut SimThread) -> Result<TrainingBuffers, CallStatus> {
        let parameters = BUCKETS as u64 * BUCKET_BYTES;
        let mut all = Vec::new();
        let mut kept = |pointer| {
            all.push(pointer);
            pointer
        };
        let mut buffers = TrainingBuffers {
            parameters: kept(thread.malloc(parameters).await?),
            gradients: kept(thread.malloc(parameters).await?),
            scratch: kept(thread.malloc(BUCKET_BYTES).await?),
            loss: kept(thread.malloc(4_096).await?),
            loss_on_host: kept(thread.malloc_host(4_096).await?),
            aside: kept(thread.malloc(parameters).await?),
            checkpoint: kept(thread.malloc_host(parameters).await?),
            images: [
                kept(thread.malloc(BATCH_BYTES).await?),
                kept(thread.malloc(BATCH_BYTES).await?),
            ],
            staging: [
                kept(thread.malloc_host(BATCH_BYTES).await?),
                kept(thread.malloc_host(BATCH_BYTES).await?),
            ],
            all: Vec::new(),
        };
        // The optimizer's moments, in single precision.
        kept(thread.malloc(2 * parameters).await?);
        kept(thread.malloc(2 * parameters).await?);
        kept(thread.malloc(ACTIVATION_BYTES).await?);
        match thread.malloc(WISHED_WORKSPACE).await {
            Ok(workspace) => kept(workspace),
            Err(_) => {
                thread.last_error().await;
                thread.memory_info().await;
                kept(thread.malloc(WORKSPACE).await?)
            }
        };
        buffers.all = all;
        Ok(buffers)
    }
}

impl TrainingEvents {
    async fn create(thread: &mut SimThread) -> TrainingEvents {
        let mut events = TrainingEvents {
            loaded: [thread.event_create().await, thread.event_create().await],
            used: [thread.event_create().await, thread.event_create().await],
            loss: thread.event_create().await,
            stepped: [thread.event_create().await, thread.event_create().await],
            aside: thread.event_create().await,
            buckets: Vec::new(),
        };
        for _ in 0..BUCKETS {
            events.buckets.push(Bucket {
                ready: thread.event_create().await,
                received: thread.event_create().await,
                reduced: thread.event_create().await,
            });
        }
        events
    }
}
