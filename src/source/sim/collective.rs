//! A collective library on top of the runtime: all-reduce over a ring of devices, by peer copies and
//! kernels that add up, all of them inside one call.

use super::enqueue::{Launch, Module};
use super::memory::Pointer;
use super::operations::Function;
use super::runtime::{Event, Stream};
use super::thread::{Status, Thread};

/// One device's part in a collective.
pub(super) struct Participant<'a> {
    pub(super) module: &'a Module,
    /// The kernel of `module` that adds up.
    pub(super) reduce: usize,
    /// Where its work goes.
    pub(super) stream: Stream,
    /// What is to be reduced has been computed.
    pub(super) ready: Event,
    /// A chunk has been received; for the library's own use.
    pub(super) received: Event,
    /// The result is there.
    pub(super) reduced: Event,
    /// What is to be reduced, and where the result will be.
    pub(super) data: Pointer,
    /// Room for a chunk that was received.
    pub(super) scratch: Pointer,
}

impl Thread {
    /// Adds up `bytes` of every participant (device 0, 1, ...) and gives all of them the sum: chunks travel
    /// around the ring twice, first being added up, then as they are.
    pub(super) async fn all_reduce(
        &mut self,
        participants: &[Participant<'_>],
        bytes: u64,
    ) -> Result<(), Status> {
        let devices = participants.len();
        let call = self
            .enter(Function::AllReduce, &[bytes, devices as u64])
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

    async fn travel(&mut self, ring: &[Participant<'_>], chunk: u64) -> Result<(), Status> {
        let devices = ring.len();
        for round in 0..2 * (devices - 1) {
            let adds_up = round < devices - 1;
            for (device, sender) in ring.iter().enumerate() {
                let receiver = &ring[(device + 1) % devices];
                let place = chunk * ((device + 2 * devices - round) % devices) as u64;
                let to = if adds_up {
                    receiver.scratch
                } else {
                    receiver.data.offset(place)
                };
                self.set_device(device).await?;
                let from = sender.data.offset(place);
                self.memcpy_peer_async(to, from, chunk, sender.stream)
                    .await?;
                self.event_record(receiver.received, sender.stream).await;
            }
            for (device, one) in ring.iter().enumerate() {
                self.stream_wait_event(one.stream, one.received).await;
                if adds_up {
                    self.set_device(device).await?;
                    let launch = Launch {
                        groups: [(chunk / (64 << 10)).max(1) as u32, 1, 1],
                        local_memory: 0,
                        stream: one.stream,
                    };
                    self.launch(one.module, one.reduce, launch).await?;
                }
            }
        }
        Ok(())
    }
}
