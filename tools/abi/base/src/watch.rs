//! Callbacks about what happens in the process, for a library itself.

use gputrail_record::Operation;
use gputrail_tool::{Callback, Context, Error, RecordFormat, Subscriber};

/// A callback, which is called until this is dropped.
pub struct Watch {
    _subscriber: Subscriber,
    _context: Context,
}

impl Watch {
    /// Has `told` called for `operations` from now on, on the threads on which they happen. Times of work are raw ones.
    ///
    /// # Errors
    ///
    /// gputrail has no place for more contexts or callbacks.
    pub fn new(
        operations: &[Operation],
        told: impl Fn(Callback<'_>) + Send + Sync + 'static,
    ) -> Result<Watch, Error> {
        let context = Context::new()?;
        let subscriber = context.call_back(operations, move |callback, _| told(callback))?;
        subscriber.set_format(RecordFormat::Raw)?;
        context.start()?;
        Ok(Watch {
            _subscriber: subscriber,
            _context: context,
        })
    }
}
