//! One queue for each device of a process, in place of those that it has.

use std::collections::HashMap;
use std::io;

use super::{AgentIndex, Consumer, EventArgument, ProcessIndex, Queue, QueueIndex, Value, Work};
use crate::forward;

/// The name of the queue that has the work of all.
const NAME: &str = "all queues";

/// Passes a stream on in which all queues of a process on a device are one. Work has its queue as an argument.
#[derive(Debug)]
pub struct DeviceRows<C> {
    consumer: C,
    rows: HashMap<(ProcessIndex, AgentIndex), QueueIndex>,
    /// The queues of the stream: the row of each, and its name.
    queues: Vec<(QueueIndex, Box<str>)>,
}

impl<C: Consumer> DeviceRows<C> {
    /// Passes the stream on to `consumer`.
    pub fn new(consumer: C) -> DeviceRows<C> {
        DeviceRows {
            consumer,
            rows: HashMap::new(),
            queues: Vec::new(),
        }
    }
}

impl<C: Consumer> Consumer for DeviceRows<C> {
    forward!(
        self, (self.consumer),
        begin clocks attributes agents process track counters call slice end end_slice instant value counter_values
        derived_value derived_values samples stack stack_samples loss note flush finish
    );

    fn wants_calls(&self) -> bool {
        self.consumer.wants_calls()
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        let next = QueueIndex(self.rows.len() as u32);
        let row = *self
            .rows
            .entry((queue.process, queue.agent))
            .or_insert(next);
        self.queues.push((row, queue.name.into()));
        if row < next {
            return Ok(());
        }
        let all = Queue {
            name: NAME,
            out_of_order: true,
            ..*queue
        };
        self.consumer.queue(row, &all)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let Some((row, name)) = self.queues.get(work.queue.0 as usize) else {
            return self.consumer.work(work);
        };
        let mut arguments = work.arguments.to_vec();
        arguments.push(EventArgument {
            name: "queue",
            value: Value::Text(name),
        });
        self.consumer.work(&Work {
            queue: *row,
            arguments: &arguments,
            ..*work
        })
    }
}
