//! Output that a thread of its own passes on, while the next piece of it is made.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Most pieces that wait.
const WAITING: usize = 4;

/// Calls `make` with a writer. A thread passes each piece that is written to it on to `out`, in the same order.
pub(super) fn pass_on<T>(
    mut out: impl Write + Send,
    make: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T>,
) -> io::Result<T> {
    let (sender, pieces) = sync_channel::<Vec<u8>>(WAITING);
    thread::scope(|scope| {
        let passed = thread::Builder::new().spawn_scoped(scope, move || {
            for piece in pieces {
                out.write_all(&piece)?;
            }
            out.flush()
        })?;
        let mut writer = PieceSender(sender);
        let made = make(&mut writer);
        drop(writer);
        let passed = passed.join();
        // An error of `out` is also why a piece was not taken.
        passed.unwrap_or_else(|_| Err(failed()))?;
        made
    })
}

/// Gives pieces to the thread.
struct PieceSender(SyncSender<Vec<u8>>);

impl Write for PieceSender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send(bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(failed()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failed() -> io::Error {
    io::Error::other("the thread that writes the output has failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps pieces, up to a number of them.
    struct Pieces<'a>(&'a mut Vec<Vec<u8>>, usize);

    impl Write for Pieces<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() == self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn many(out: &mut (dyn Write + Send)) -> io::Result<u32> {
        for number in 0..1000_u32 {
            out.write_all(&number.to_le_bytes())?;
        }
        Ok(7)
    }

    #[test]
    fn pieces_stay_as_they_are_and_in_order() {
        let mut pieces = Vec::new();
        assert_eq!(pass_on(Pieces(&mut pieces, 1000), many).unwrap(), 7);
        assert!(
            pieces.iter().eq((0..1000_u32)
                .map(|number| number.to_le_bytes().to_vec())
                .collect::<Vec<_>>()
                .iter())
        );
    }

    #[test]
    fn an_error_of_the_output_is_the_error() {
        let mut pieces = Vec::new();
        let error = pass_on(Pieces(&mut pieces, 10), many).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(pieces.len(), 10);
        let error = pass_on(io::sink(), |_| {
            io::Result::<()>::Err(io::ErrorKind::NotFound.into())
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
