//! Output that is passed on while the next piece of it is made.

use std::io::{self, Write};

use gputrail_trace::ahead::{BatchSender, ahead};

/// Calls `make` with a writer, on another thread. Passes each piece that is written to it on to `out`, in the same order.
pub(super) fn pass_on<T: Send>(
    mut out: impl Write,
    make: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<T> + Send,
) -> io::Result<T> {
    let made = ahead(
        |sender| {
            make(&mut PieceSender {
                piece: Vec::new(),
                sender,
            })
        },
        |piece: &mut Vec<u8>| out.write_all(piece),
    )?;
    out.flush()?;
    Ok(made)
}

/// Gives pieces to the other thread.
struct PieceSender<'s> {
    piece: Vec<u8>,
    sender: &'s mut BatchSender<Vec<u8>>,
}

impl Write for PieceSender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        self.sender.send(&mut self.piece)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
