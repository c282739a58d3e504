//! The passes of a step, as sequences of kernels.

use super::super::kernels::SimLaunch;
use super::super::runtime::SimStream;
use super::super::thread::{CallStatus, SimThread};
use super::super::time::us;
use super::*;

/// Rows of the activations: images of a batch times patches of an image.
const ROWS: u32 = 64 * 197;
/// Width of the network.
const WIDTH: u32 = 768;
/// Width inside a block's second half.
const INNER: u32 = 4 * WIDTH;
/// The number of classes, rounded up to a multiple of a tile.
const CLASSES: u32 = 1_024;
/// Workgroups of an operation over all rows.
const BY_ROW: [u32; 3] = [ROWS / 8, 1, 1];
/// Workgroups of the attention: tiles of a sequence, heads, images.
const BY_HEAD: [u32; 3] = [2, 12, 64];

/// Workgroups for an operation on every element, 2048 to a workgroup.
const fn by_element(columns: u32) -> [u32; 3] {
    [ROWS * columns / 2_048, 1, 1]
}

/// Launches kernels of one module into one stream.
struct Launcher<'a> {
    thread: &'a mut SimThread,
    module: &'a SimModule,
    stream: SimStream,
    /// Managed memory that the kernels access.
    managed: Option<Pointer>,
}

impl Launcher<'_> {
    async fn kernel(&mut self, name: &str, groups: [u32; 3]) -> Result<(), CallStatus> {
        // The host time of a framework between launches.
        self.thread.compute(us(5)).await;
        let launch = SimLaunch {
            groups,
            local_memory: 0,
            stream: self.stream,
            managed: self.managed,
        };
        self.thread
            .launch(self.module, self.module.find(name), launch)
            .await
    }

    async fn gemm(&mut self, name: &str, shape: [u32; 3]) -> Result<(), CallStatus> {
        self.thread.compute(us(6)).await;
        let place = self.module.find(name);
        self.thread
            .blas_gemm(self.module, place, shape, self.stream)
            .await
    }
}

impl Replica {
    /// Converts the images of a batch to the input of the network.
    pub(super) async fn augment(
        &self,
        thread: &mut SimThread,
        equipment: &Equipment,
    ) -> Result<(), CallStatus> {
        let Equipment {
            module, streams, ..
        } = equipment;
        let stream = streams.upload;
        let groups = [7, 28, 64];
        Launcher {
            thread,
            module,
            stream,
            managed: None,
        }
        .kernel("data::augment", groups)
        .await
    }

    /// The forward pass up to the loss, and the copy of the loss to the host.
    pub(super) async fn forward(
        &self,
        thread: &mut SimThread,
        equipment: &Equipment,
        slot: usize,
    ) -> Result<(), CallStatus> {
        let Equipment {
            module,
            streams,
            events,
            memory,
            ..
        } = equipment;
        let stream = streams.compute;
        let gradients = BUCKETS as u64 * BUCKET_BYTES;
        thread
            .memset_async(memory.gradients, 0, gradients, stream)
            .await?;
        let mut launch = Launcher {
            thread,
            module,
            stream,
            managed: None,
        };
        launch.kernel("patch_embed_forward", BY_ROW).await?;
        launch.thread.event_record(events.used[slot], stream).await;
        for _ in 0..BLOCKS {
            launch.kernel("layer_norm_forward", BY_ROW).await?;
            launch.gemm("gemm_f16_tn", [ROWS, 3 * WIDTH, WIDTH]).await?;
            launch.kernel("flash_attention_forward", BY_HEAD).await?;
            launch.gemm("gemm_f16_tn", [ROWS, WIDTH, WIDTH]).await?;
            launch.kernel("dropout_add", by_element(WIDTH)).await?;
            launch.kernel("layer_norm_forward", BY_ROW).await?;
            launch.gemm("gemm_f16_tn", [ROWS, INNER, WIDTH]).await?;
            launch
                .kernel("bias_gelu_forward", by_element(INNER))
                .await?;
            launch.gemm("gemm_f16_tn", [ROWS, WIDTH, INNER]).await?;
            launch.kernel("dropout_add", by_element(WIDTH)).await?;
        }
        launch.kernel("layer_norm_forward", BY_ROW).await?;
        launch.gemm("gemm_f16_tn", [64, CLASSES, WIDTH]).await?;
        launch.kernel("softmax_cross_entropy", [64, 1, 1]).await?;
        launch.thread.event_record(events.loss, stream).await;

        launch.stream = streams.metrics;
        launch
            .thread
            .stream_wait_event(streams.metrics, events.loss)
            .await;
        launch.managed = self.shared.get().copied();
        launch.kernel("nn::accuracy", [16, 1, 1]).await?;
        let (to, from) = (memory.loss_on_host, memory.loss);
        thread.memcpy_async(to, from, 8, streams.metrics).await
    }

    /// The backward pass, from the last block to the first. Announces each bucket once it is enqueued.
    pub(super) async fn backward(
        &self,
        thread: &mut SimThread,
        equipment: &Equipment,
    ) -> Result<(), CallStatus> {
        let Equipment {
            module,
            streams,
            events,
            ..
        } = equipment;
        let stream = streams.compute;
        let mut launch = Launcher {
            thread,
            module,
            stream,
            managed: None,
        };
        launch.gemm("gemm_f16_nt", [CLASSES, WIDTH, 64]).await?;
        launch.gemm("gemm_f16_nn", [64, WIDTH, CLASSES]).await?;
        launch.kernel("layer_norm_backward", BY_ROW).await?;
        for block in 0..BLOCKS {
            // Each product has one for the gradient of its input and one for that of its weights.
            launch.gemm("gemm_f16_nn", [ROWS, INNER, WIDTH]).await?;
            launch.gemm("gemm_f16_nt", [WIDTH, INNER, ROWS]).await?;
            launch
                .kernel("bias_gelu_backward", by_element(INNER))
                .await?;
            launch.gemm("gemm_f16_nn", [ROWS, WIDTH, INNER]).await?;
            launch.gemm("gemm_f16_nt", [INNER, WIDTH, ROWS]).await?;
            launch.kernel("layer_norm_backward", BY_ROW).await?;
            launch.kernel("dropout_add", by_element(WIDTH)).await?;
            launch.gemm("gemm_f16_nn", [ROWS, WIDTH, WIDTH]).await?;
            launch.gemm("gemm_f16_nt", [WIDTH, WIDTH, ROWS]).await?;
            launch.kernel("flash_attention_backward", BY_HEAD).await?;
            launch.gemm("gemm_f16_nn", [ROWS, WIDTH, 3 * WIDTH]).await?;
            launch.gemm("gemm_f16_nt", [3 * WIDTH, WIDTH, ROWS]).await?;
            launch.kernel("layer_norm_backward", BY_ROW).await?;
            launch.announce(self, events.buckets[block].ready).await;
        }
        launch.kernel("patch_embed_backward", BY_ROW).await?;
        launch.announce(self, events.buckets[BLOCKS].ready).await;
        Ok(())
    }

    /// Waits on the device for the summed gradients, and updates the parameters.
    pub(super) async fn optimize(
        &self,
        thread: &mut SimThread,
        equipment: &Equipment,
    ) -> Result<(), CallStatus> {
        let Equipment {
            module,
            streams,
            events,
            ..
        } = equipment;
        let stream = streams.compute;
        for bucket in &events.buckets {
            thread.stream_wait_event(stream, bucket.reduced).await;
        }
        thread.compute(us(5)).await;
        thread
            .graph_launch(&equipment.optimizer.1, module, stream)
            .await
    }

    /// Copies the parameters within the device, so that the training can continue while they are written.
    pub(super) async fn set_aside(
        &self,
        thread: &mut SimThread,
        equipment: &Equipment,
    ) -> Result<(), CallStatus> {
        let Equipment {
            streams,
            events,
            memory,
            ..
        } = equipment;
        let bytes = BUCKETS as u64 * BUCKET_BYTES;
        thread
            .memcpy_async(memory.aside, memory.parameters, bytes, streams.compute)
            .await?;
        thread.event_record(events.aside, streams.compute).await;
        Ok(())
    }

    /// Waits for the loss and reads it.
    pub(super) async fn read_loss(
        &self,
        thread: &mut SimThread,
        equipment: &Equipment,
    ) -> Result<(), CallStatus> {
        thread.stream_synchronize(equipment.streams.metrics).await;
        thread.compute(us(15)).await;
        Ok(())
    }
}

impl Launcher<'_> {
    /// Announces that a bucket's gradients have been enqueued.
    async fn announce(&mut self, replica: &Replica, ready: SimEvent) {
        self.thread.event_record(ready, self.stream).await;
        replica.buckets.open(&self.thread.runtime.executor, us(4));
    }
}
