//! The program of the demo: a small vision transformer, trained on all devices at once.
//!
//! Each device has a thread for the forward pass and the optimizer, one for the backward pass, and one that loads the
//! next batch. One thread for all devices sums gradients block by block as the backward pass produces them, and one
//! writes a checkpoint during the training. Streams order the work, and events synchronize streams.

mod kernels;
mod passes;
mod programs;
mod setup;

use super::collective::Participant;
use super::executor::SimGate;
use super::graphs::Graph;
use super::kernels::SimModule;
use super::memory::Pointer;
use super::runtime::{Runtime, SimEvent, SimStream};
use super::thread::{CallStatus, SimThread};
use super::time::us;
use gputrail_record::ExternalId;
use std::cell::OnceCell;
use std::rc::Rc;

/// Blocks of the network.
const BLOCKS: usize = 6;
/// Parts of the gradient that are summed separately: one per block, and one for the rest.
const BUCKETS: usize = BLOCKS + 1;
/// Bytes of parameters in one bucket.
const BUCKET_BYTES: u64 = 14_180_352;
/// Bytes of the counts that all devices share in managed memory.
const SHARED_BYTES: u64 = 512 << 10;
/// Bytes of a batch of images as read from disk.
const BATCH_BYTES: u64 = 64 * 3 * 512 * 512;
/// Bytes of one part of a checkpoint.
const CHECKPOINT_PIECE: u64 = 2 * BUCKET_BYTES;

/// The state shared by the threads of the program.
pub(super) struct Training {
    steps: u64,
    replicas: Vec<Replica>,
    /// Counts the steps whose gradient reductions have been enqueued.
    reduced: SimGate,
    /// Opens when the parameters have been copied for the checkpoint.
    aside: SimGate,
    /// Counts the threads that have finished.
    done: SimGate,
}

/// The state of one device.
struct Replica {
    device: usize,
    equipment: OnceCell<Equipment>,
    /// The counts of correct answers, which all devices add to.
    shared: OnceCell<Pointer>,
    /// Opens when the equipment is ready.
    equipped: SimGate,
    /// Counts the batches whose upload has been enqueued.
    loaded: SimGate,
    /// Counts the steps whose forward pass has been enqueued.
    forward: SimGate,
    /// Counts the buckets whose backward pass has been enqueued, over all steps.
    buckets: SimGate,
}

/// The resources of a device's threads.
struct Equipment {
    module: SimModule,
    streams: Streams,
    memory: TrainingBuffers,
    events: TrainingEvents,
    /// The graph of the optimizer's kernels, and the executable graph.
    optimizer: (Graph, Graph),
}

struct Streams {
    compute: SimStream,
    upload: SimStream,
    all_reduce: SimStream,
    metrics: SimStream,
    checkpoint: SimStream,
}

struct TrainingBuffers {
    parameters: Pointer,
    gradients: Pointer,
    scratch: Pointer,
    loss: Pointer,
    loss_on_host: Pointer,
    /// The copy of the parameters for the checkpoint.
    aside: Pointer,
    checkpoint: Pointer,
    /// Two batches: one is used while the other is loaded.
    images: [Pointer; 2],
    staging: [Pointer; 2],
    /// All allocations.
    all: Vec<Pointer>,
}

struct TrainingEvents {
    loaded: [SimEvent; 2],
    used: [SimEvent; 2],
    loss: SimEvent,
    stepped: [SimEvent; 2],
    aside: SimEvent,
    buckets: Vec<Bucket>,
}

#[derive(Copy, Clone)]
struct Bucket {
    ready: SimEvent,
    received: SimEvent,
    reduced: SimEvent,
}

impl Training {
    /// Starts the main thread, which starts the others.
    pub(super) fn start(runtime: &Rc<Runtime>, steps: u64) {
        let replica = |device| Replica {
            device,
            equipment: OnceCell::new(),
            shared: OnceCell::new(),
            equipped: SimGate::default(),
            loaded: SimGate::default(),
            forward: SimGate::default(),
            buckets: SimGate::default(),
        };
        let training = Rc::new(Training {
            steps,
            replicas: (0..runtime.devices.len()).map(replica).collect(),
            reduced: SimGate::default(),
            aside: SimGate::default(),
            done: SimGate::default(),
        });
        runtime.spawn("main", |thread| training.main(thread));
    }

    async fn main(self: Rc<Self>, mut thread: SimThread) -> Result<(), CallStatus> {
        thread.compute(us(400)).await;
        thread.init().await;
        for device in 0..thread.device_count().await {
            thread.set_device(device).await?;
            for attribute in [1, 16, 39, 75, 76] {
                thread.device_attribute(attribute).await;
            }
            thread.memory_info().await;
        }
        thread.compute(us(350)).await;
        let shared = thread.malloc_managed(SHARED_BYTES).await?;
        for replica in &self.replicas {
            replica.shared.get_or_init(|| shared);
        }
        let runtime = thread.runtime.clone();
        let mut others = 0;
        for device in 0..self.replicas.len() {
            let training = || self.clone();
            runtime.spawn(&format!("trainer {device}"), |t| {
                training().train(t, device)
            });
            runtime.spawn(&format!("autograd {device}"), |t| {
                training().differentiate(t, device)
            });
            runtime.spawn(&format!("loader {device}"), |t| training().load(t, device));
            others += 3;
            thread.compute(us(120)).await;
        }
        runtime.spawn("all-reduce", |t| self.clone().reduce(t));
        runtime.spawn("checkpoint", |t| self.clone().checkpoint(t));
        self.done.wait(&runtime.executor, others + 2).await;

        for replica in &self.replicas {
            thread.set_device(replica.device).await?;
            thread.device_synchronize().await;
        }
        thread.read_managed(shared).await;
        thread.free(shared).await?;
        for replica in &self.replicas {
            thread.set_device(replica.device).await?;
            replica.tear_down(&mut thread).await?;
        }
        thread.shutdown().await;
        Ok(())
    }

    fn replica(&self, device: usize) -> &Replica {
        &self.replicas[device]
    }

    fn finished(&self, thread: &SimThread) {
        self.done.open(&thread.runtime.executor, us(8));
    }

    /// Loads batches, one ahead of the computation.
    async fn load(self: Rc<Self>, mut thread: SimThread, device: usize) -> Result<(), CallStatus> {
        let replica = self.replica(device);
        let equipment = replica.equipment(&thread).await;
        let (streams, memory, events) = (&equipment.streams, &equipment.memory, &equipment.events);
        thread.set_device(device).await?;
        for step in 0..self.steps {
            let slot = (step % 2) as usize;
            // Decoding and shuffling on the host.
            thread.compute(us(4_500)).await;
            if step >= 2 {
                replica
                    .forward
                    .wait(&thread.runtime.executor, step - 1)
                    .await;
            }
            thread.push_external(step_id(step));
            if step >= 2 {
                thread
                    .stream_wait_event(streams.upload, events.used[slot])
                    .await;
            }
            let piece = BATCH_BYTES / 4;
            for n in 0..4 {
                let (to, from) = (memory.images[slot], memory.staging[slot]);
                let (to, from) = (to.offset(n * piece), from.offset(n * piece));
                thread.memcpy_async(to, from, piece, streams.upload).await?;
                thread.compute(us(240)).await;
            }
            replica.augment(&mut thread, equipment).await?;
            thread
                .event_record(events.loaded[slot], streams.upload)
                .await;
            thread.pop_external();
            replica.loaded.open(&thread.runtime.executor, us(6));
        }
        self.finished(&thread);
        Ok(())
    }

    /// Forward pass, loss and optimizer.
    async fn train(self: Rc<Self>, mut thread: SimThread, device: usize) -> Result<(), CallStatus> {
        let replica = self.replica(device);
        thread.set_device(device).await?;
        let equipment = replica.equip(&mut thread).await?;
        let runtime = thread.runtime.clone();
        let (streams, events) = (&equipment.streams, &equipment.events);
        for step in 0..self.steps {
            let slot = (step % 2) as usize;
            thread.push_external(step_id(step));
            replica.loaded.wait(&runtime.executor, step + 1).await;
            if step >= 2 {
                // At most two steps are in flight.
                thread.event_synchronize(events.stepped[slot]).await;
            }
            thread
                .stream_wait_event(streams.compute, events.loaded[slot])
                .await;
            replica.forward(&mut thread, equipment, slot).await?;
            replica.forward.open(&runtime.executor, us(7));

            self.reduced.wait(&runtime.executor, step + 1).await;
            replica.optimize(&mut thread, equipment).await?;
            if step == self.steps / 2 {
                replica.set_aside(&mut thread, equipment).await?;
                self.aside.open(&runtime.executor, us(5));
            }
            thread
                .event_record(events.stepped[slot], streams.compute)
                .await;
            replica.read_loss(&mut thread, equipment).await?;
            thread.pop_external();
            thread.compute(us(90)).await;
        }
        self.finished(&thread);
        Ok(())
    }

    /// Backward pass.
    async fn differentiate(
        self: Rc<Self>,
        mut thread: SimThread,
        device: usize,
    ) -> Result<(), CallStatus> {
        let replica = self.replica(device);
        let equipment = replica.equipment(&thread).await;
        thread.set_device(device).await?;
        for step in 0..self.steps {
            replica
                .forward
                .wait(&thread.runtime.executor, step + 1)
                .await;
            thread.push_external(step_id(step));
            replica.backward(&mut thread, equipment).await?;
            thread.pop_external();
        }
        self.finished(&thread);
        Ok(())
    }

    /// Sums the gradients over all devices.
    async fn reduce(self: Rc<Self>, mut thread: SimThread) -> Result<(), CallStatus> {
        let mut equipment = Vec::new();
        for replica in &self.replicas {
            equipment.push(replica.equipment(&thread).await);
        }
        let executor = &thread.runtime.clone().executor;
        for step in 0..self.steps {
            for bucket in 0..BUCKETS {
                let so_far = step * BUCKETS as u64 + bucket as u64 + 1;
                for replica in &self.replicas {
                    replica.buckets.wait(executor, so_far).await;
                }
                thread.push_external(step_id(step));
                let ring: Vec<_> = equipment
                    .iter()
                    .map(|one| one.participant(bucket))
                    .collect();
                thread.all_reduce(&ring, BUCKET_BYTES).await?;
                thread.pop_external();
            }
            self.reduced.open(executor, us(7));
        }
        self.finished(&thread);
        Ok(())
    }

    /// Writes a checkpoint of the first device in the middle of the run.
    async fn checkpoint(self: Rc<Self>, mut thread: SimThread) -> Result<(), CallStatus> {
        let equipment = self.replica(0).equipment(&thread).await;
        let runtime = thread.runtime.clone();
        self.aside.wait(&runtime.executor, 1).await;
        thread.set_device(0).await?;
        let (memory, events) = (&equipment.memory, &equipment.events);
        let stream = equipment.streams.checkpoint;
        thread.stream_wait_event(stream, events.aside).await;
        let total = BUCKETS as u64 * BUCKET_BYTES;
        for at in (0..total).step_by(CHECKPOINT_PIECE as usize) {
            let piece = CHECKPOINT_PIECE.min(total - at);
            let (to, from) = (memory.checkpoint, memory.aside);
            thread
                .memcpy_async(to.offset(at), from.offset(at), piece, stream)
                .await?;
        }
        let written = thread.event_create().await;
        thread.event_record(written, stream).await;
        while thread.event_query(written).await.is_err() {
            thread.compute(us(2_500)).await;
        }
        thread.event_destroy(written).await;
        // Writing the file.
        thread.compute(us(3_000)).await;
        self.finished(&thread);
        Ok(())
    }
}

impl Replica {
    /// The resources of the device's threads, once they are ready.
    async fn equipment(&self, thread: &SimThread) -> &Equipment {
        self.equipped.wait(&thread.runtime.executor, 1).await;
        self.equipment
            .get()
            .expect("the gate opens once it is there")
    }
}

impl Equipment {
    fn participant(&self, bucket: usize) -> Participant<'_> {
        let events = &self.events.buckets[bucket];
        Participant {
            module: &self.module,
            reduce: self.module.find("comm::reduce_add"),
            stream: self.streams.all_reduce,
            ready: events.ready,
            received: events.received,
            reduced: events.reduced,
            data: self.memory.gradients.offset(bucket as u64 * BUCKET_BYTES),
            scratch: self.memory.scratch,
        }
    }
}

/// The external id of a step.
pub(super) fn step_id(step: u64) -> ExternalId {
    ExternalId(step + 1)
}
