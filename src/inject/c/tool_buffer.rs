//! Buffers of tools: their records, joined if the tool asks for that, and their receivers.

use crate::joined::Joiner;
use crate::timeline::Timeline;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::{BlockView, Policy, QueuePlace};
use gputrail_collect::context::{KindSet, RecordBuffer, ToolError, WORK};
use gputrail_collect::delivering::InCallback;
use gputrail_record::{Kind, Records, Unfinished};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// The receiver of a buffer's joined records.
pub(super) trait Receiver: Send {
    /// Gets records. Calls `lost` with the kind of each that it has no room for.
    fn records(&mut self, view: &BlockView<'_>, lost: &mut dyn FnMut(Kind));

    /// A flush has delivered everything.
    fn flushed(&mut self) {}

    /// Nothing more comes.
    fn ended(&mut self) {}
}

/// A function that is shown records.
pub(super) struct RecordViewer<F>(pub F);

impl<F: FnMut(&BlockView<'_>) + Send> Receiver for RecordViewer<F> {
    fn records(&mut self, view: &BlockView<'_>, _: &mut dyn FnMut(Kind)) {
        (self.0)(view);
    }
}

/// Joins the records of a buffer for a receiver.
struct ReceiverJoining {
    /// Locked after `receiving`, and not while the receiver is called, which may never return.
    joiner: Mutex<Joiner>,
    receiving: Mutex<Receiving>,
}

/// The receiver of joined records.
struct Receiving {
    receiver: Box<dyn Receiver>,
    /// The records that it is passed.
    batch: Vec<u64>,
    has_ended: bool,
}

impl ReceiverJoining {
    fn records(&self, view: &BlockView<'_>, lost: &mut dyn FnMut(Kind)) {
        let Receiving {
            receiver, batch, ..
        } = &mut *lock_std(&self.receiving);
        let joined = lock_std(&self.joiner).join(view, batch);
        pass_on(&joined, &mut **receiver, lost);
    }
}

fn pass_on(view: &BlockView<'_>, to: &mut dyn Receiver, lost: &mut dyn FnMut(Kind)) {
    if !view.bytes.is_empty() {
        to.records(view, lost);
    }
}

/// A buffer of a tool.
pub(super) struct ToolBuffer {
    buffer: Arc<RecordBuffer>,
    /// If its records are joined.
    joining: Option<Arc<ReceiverJoining>>,
    /// Held while joined records of a buffer that keeps its blocks are shown: each flush joins all of them anew.
    showing: Mutex<()>,
}

impl std::ops::Deref for ToolBuffer {
    type Target = RecordBuffer;

    fn deref(&self) -> &RecordBuffer {
        &self.buffer
    }
}

impl ToolBuffer {
    /// A buffer whose records are delivered as they were written.
    pub fn raw(buffer: RecordBuffer) -> ToolBuffer {
        ToolBuffer {
            buffer: Arc::new(buffer),
            joining: None,
            showing: Mutex::default(),
        }
    }

    /// A buffer whose joined records `receiver` gets; `timeline` joins them. `create` creates it with the function that it delivers to.
    pub fn joined(
        receiver: Box<dyn Receiver>,
        timeline: Timeline,
        create: impl FnOnce(DeliverFunction) -> Result<RecordBuffer, ToolError>,
    ) -> Result<ToolBuffer, ToolError> {
        let joining = Arc::new(ReceiverJoining {
            joiner: Mutex::new(Joiner::new(timeline)),
            receiving: Mutex::new(Receiving {
                receiver,
                batch: Vec::new(),
                has_ended: false,
            }),
        });
        let (joins, counts) = (
            joining.clone(),
            Arc::new(OnceLock::<Weak<RecordBuffer>>::new()),
        );
        let created = counts.clone();
        let buffer = create(Box::new(move |view| {
            let mut lost = |kind| count_drop(created.get(), kind);
            joins.records(view, &mut lost);
        }))?;
        let buffer = Arc::new(buffer);
        let _ = counts.set(Arc::downgrade(&buffer));
        Ok(ToolBuffer {
            buffer,
            joining: Some(joining),
            showing: Mutex::default(),
        })
    }

    /// Delivers everything; nothing is recorded to it any more.
    pub fn end(&self) {
        let Some(joining) = &self.joining else {
            return self.buffer.end();
        };
        // In a callback, and in a forked child, the reason is not known of each piece of work.
        let _ = self.buffer.write_unfinished();
        self.buffer.end();
        if self.buffer.is_left_delivering() {
            // The callback of its joined records has called exit(3): it never returns, and nothing more can be delivered.
            let mut left = Vec::new();
            let none = Unfinished::AT_END;
            let left = lock_std(&joining.joiner).finish(none, none, &mut left);
            Records::new(left.bytes).for_each(|record| self.buffer.count_drop(record.kind()));
            return;
        }
        let _delivering = InCallback::begin();
        let Receiving {
            receiver,
            batch,
            has_ended,
        } = &mut *lock_std(&joining.receiving);
        if std::mem::replace(has_ended, true) {
            return;
        }
        let dropped = self.buffer.dropped_in_total().of(Kind::COMPLETION);
        let others = match dropped {
            0 => Unfinished::AT_END,
            _ => Unfinished::NO_COMPLETION,
        };
        let left = lock_std(&joining.joiner).finish(Unfinished::AT_END, others, batch);
        pass_on(&left, &mut **receiver, &mut |kind| {
            self.buffer.count_drop(kind)
        });
        receiver.ended();
    }

    /// As [`RecordBuffer::flush`].
    pub fn flush(&self) -> Result<(), ToolError> {
        self.flush_by(false, RecordBuffer::flush)
    }

    /// As [`RecordBuffer::flush_forced`].
    pub fn flush_forced(&self) -> Result<(), ToolError> {
        self.flush_by(true, RecordBuffer::flush_forced)
    }

    /// As [`RecordBuffer::flush_synchronized`].
    pub fn flush_synchronized(&self, queues: QueuePlace) -> Result<(), ToolError> {
        self.flush_by(false, |buffer| buffer.flush_synchronized(queues))
    }

    fn flush_by(
        &self,
        is_forced: bool,
        flush: impl FnOnce(&RecordBuffer) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let Some(joining) = &self.joining else {
            return flush(&self.buffer);
        };
        let keeps = self.buffer.policy() == Policy::Overwrite;
        let _showing = keeps.then(|| lock_std(&self.showing));
        flush(&self.buffer)?;
        let _delivering = InCallback::begin();
        let Receiving {
            receiver, batch, ..
        } = &mut *lock_std(&joining.receiving);
        let left = if keeps {
            lock_std(&joining.joiner).finish(Unfinished::AT_FLUSH, Unfinished::NO_COMPLETION, batch)
        } else {
            lock_std(&joining.joiner).flushed(is_forced, batch)
        };
        pass_on(&left, &mut **receiver, &mut |kind| {
            self.buffer.count_drop(kind)
        });
        receiver.flushed();
        Ok(())
    }

    /// The kinds that have to be recorded where `kinds` are wanted: joined work needs its completions.
    pub fn needed(&self, kinds: KindSet) -> KindSet {
        if self.joining.is_some() && WORK.iter().any(|kind| kinds.has(*kind)) {
            kinds.or(KindSet::of(&[Kind::COMPLETION]))
        } else {
            kinds
        }
    }
}

/// The function that a buffer delivers to.
pub(super) type DeliverFunction = Box<dyn FnMut(&BlockView<'_>) + Send>;

/// Counts a joined record that its receiver had no room for.
fn count_drop(buffer: Option<&Weak<RecordBuffer>>, kind: Kind) {
    if let Some(buffer) = buffer.and_then(Weak::upgrade) {
        buffer.count_drop(kind);
    }
}
