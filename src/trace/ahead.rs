//! Two steps of one stream on two threads: the first runs ahead of the second.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Most batches that wait. A step that is slower on the whole is waited for with any number.
const WAITING: usize = 4;

/// A part of a stream. It keeps its memory when it is emptied, for a part that comes later.
pub trait Batch: Default + Send {
    /// Removes the content.
    fn clear(&mut self);
}

impl Batch for Vec<u8> {
    fn clear(&mut self) {
        self.clear();
    }
}

/// Calls `make` on another thread, and on this one `take` with each batch that `make` sends, in the same order. An error of
/// `take` ends both, and is the result.
///
/// # Errors
///
/// An error of `take` or `make`, or that of the system if it has no further thread.
///
/// # Panics
///
/// As `make` does.
pub fn ahead<B: Batch, T: Send>(
    make: impl FnOnce(&mut BatchSender<B>) -> io::Result<T> + Send,
    mut take: impl FnMut(&mut B) -> io::Result<()>,
) -> io::Result<T> {
    let (full, batches) = sync_channel::<B>(WAITING);
    let (used, emptied) = sync_channel::<B>(WAITING + 2);
    thread::scope(|scope| {
        let making = thread::Builder::new().spawn_scoped(scope, move || {
            let mut sender = BatchSender { full, emptied };
            make(&mut sender)
        })?;
        let mut taken = Ok(());
        for mut batch in &batches {
            taken = take(&mut batch);
            if taken.is_err() {
                break;
            }
            batch.clear();
            // The other side may be done, and needs none.
            let _ = used.try_send(batch);
        }
        // `make` does not wait for batches to be taken any more: its next one fails.
        drop(batches);
        match making.join() {
            Ok(made) => taken.and(made),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Gives batches to the other thread.
pub struct BatchSender<B> {
    full: SyncSender<B>,
    emptied: Receiver<B>,
}

impl<B: Batch> BatchSender<B> {
    /// Gives `batch`, and leaves an empty one in its place. Waits while several are waiting.
    ///
    /// # Errors
    ///
    /// If the other thread takes no more.
    pub fn send(&mut self, batch: &mut B) -> io::Result<()> {
        let sent = self.full.send(std::mem::take(batch));
        *batch = self.emptied.try_recv().unwrap_or_default();
        sent.map_err(|_| io::Error::other("what takes the stream has failed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(sender: &mut BatchSender<Vec<u8>>) -> io::Result<u32> {
        let mut batch = Vec::new();
        for number in 0..1000_u32 {
            assert!(batch.is_empty());
            batch.extend_from_slice(&number.to_le_bytes());
            sender.send(&mut batch)?;
        }
        Ok(7)
    }

    #[test]
    fn batches_stay_as_they_are_and_in_order() {
        let mut taken = Vec::new();
        let take = |batch: &mut Vec<u8>| {
            taken.push(u32::from_le_bytes(batch[..].try_into().unwrap()));
            Ok(())
        };
        assert_eq!(ahead(numbers, take).unwrap(), 7);
        assert!(taken.into_iter().eq(0..1000));
    }

    #[test]
    fn an_error_of_what_takes_is_the_error() {
        let mut count = 0;
        let take = |_: &mut Vec<u8>| {
            count += 1;
            match count {
                11 => Err(io::ErrorKind::StorageFull.into()),
                _ => Ok(()),
            }
        };
        let error = ahead(numbers, take).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(count, 11);
        let make = |_: &mut BatchSender<Vec<u8>>| Err::<(), _>(io::ErrorKind::NotFound.into());
        let error = ahead(make, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    #[should_panic(expected = "in the other thread")]
    fn a_panic_of_what_makes_is_a_panic() {
        let make = |_: &mut BatchSender<Vec<u8>>| -> io::Result<()> {
            panic!("in the other thread");
        };
        let _ = ahead(make, |_| Ok(()));
    }
}
