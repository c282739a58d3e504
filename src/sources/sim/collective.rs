//! A collective library on top of the runtime: all-reduce over a ring of devices, with peer copies and summing kernels
//! inside one call.

use super::kernels::{SimLaunch, SimModule};
use super::memory::Pointer;
use super::operations::SimFunction;
use super::runtime::{SimEvent, SimStream};
use super::thread::{CallStatus, SimThread};

/// One device's part in a collective.
pub(super) struct Participant<'a> {
    pub(super) module: &'a SimModule,
    /// The kernel of `module` that sums.
    pub(super) reduce: usize,
    /// The stream for its work.
    pub(super) stream: SimStream,
    /// Recorded when the input is ready.
    pub(super) ready: SimEvent,
    /// Recorded when a chunk has been received; for the library's own use.
    pub(super) received: SimEvent,
    /// Recorded when the result is ready.
    pub(super) reduced: SimEvent,
    /// The input, and later the result.
    pub(super) data: Pointer,
    /// Memory for a received chunk.
    pub(super) scratch: Pointer,
}

impl SimThread {
    /// Sums `bytes` over all participants (devices 0, 1, ...) into all of them. Chunks travel around the ring twice:
    /// the first time they are summed, the second time copied.
    pub(super) async fn all_reduce(
        &mut self,
        participants: &[Participant<'_>],
        bytes: u64,
    ) -> Result<(), CallStatus> {
        let devices = participants.len();
        let call = self
            .enter(SimFunction::AllReduce, &[bytes, devices as u64])
            .await;
        for one in participants {
            self.stream_wait_event(one.stream, one.ready).await;
        }
        let result = self.travel(participants, bytes / devices as u64).await;
        for one in participants {
            self.event_record(one.reduced, one.stream).await;
        }
        self.exit(call, result).await
    }

    async fn travel(&mut self, ring: &[Participant<'_>], chunk: u64) -> Result<(), CallStatus> {
        let devices = ring.len();
        for round in 0..2 * (devices - 1) {
            let adds_up = round < devices - 1;
            for (device, sender) in ring.iter().enumerate() {
                let receiver = &ring[(device + 1) % devices];
                let offset = chunk * ((device + 2 * devices - round) % devices) as u64;
                let to = if adds_up {
                    receiver.scratch
                } else {
                    receiver.data.offset(offset)
                };
                self.set_device(device).await?;
                let from = sender.data.offset(offset);
                self.memcpy_peer_async(to, from, chunk, sender.stream)
                    .await?;
                self.event_record(receiver.received, sender.stream).await;
            }
            for (device, one) in ring.iter().enumerate() {
                self.stream_wait_event(one.stream, one.received).await;
                if adds_up {
                    self.set_device(device).await?;
                    let launch = SimLaunch {
                        groups: [(chunk / (64 << 10)).max(1) as u32, 1, 1],
                        local_memory: 0,
                        stream: one.stream,
                        managed: None,
                    };
                    self.launch(one.module, one.reduce, launch).await?;
                }
            }
        }
        Ok(())
    }
}
