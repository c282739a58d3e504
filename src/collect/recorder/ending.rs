//! The way of committed records to the capture: when somebody asks for it, and at the end of the recording and of the process.

use super::Recorder;
use crate::process;
use gputrail_buffer::clock::{self, TickSource};
use gputrail_capture::WriteError;
use gputrail_record::OverheadKind;

impl Recorder {
    /// Writes everything that is committed now to the capture; where the parent collects, it has it look soon.
    pub fn flush(&self) {
        let start = (self.ticks != TickSource::Virtual).then(clock::now);
        match &self.collector {
            Some(collector) => collector.flush(),
            None => self.buffer.wake_collector(),
        }
        if let Some(start) = start {
            process::overhead(OverheadKind::FLUSH, start);
        }
    }

    /// The process begins to exit. What its other threads do until it is gone is still recorded, and by now everything
    /// committed is written, or will be soon by the parent.
    pub(crate) fn exit(&self) {
        self.board.ranges().finish(self.names());
        // Ends the periods in progress.
        self.board.counting().flush();
        if self.outlives_exit() {
            self.buffer.mapping().exit();
        }
        self.flush();
    }

    /// Ends the recording: everything committed is written, with the losses, and the capture is
    /// marked as whole. What comes later is not recorded. Where the parent collects, it does all that, and
    /// nothing is waited for. The error says why the capture ended early, and how many records were lost
    /// to that, as far as this process knows.
    pub fn finish(&self) -> Result<(), (WriteError, u64)> {
        self.board.ranges().finish(self.names());
        self.gate.end();
        match &self.collector {
            Some(collector) => {
                collector.finish();
                let _ = self.writer.end();
            }
            None => {
                self.buffer.end();
                self.buffer.wake_collector();
            }
        }
        self.writer.error().map_or(Ok(()), Err)
    }
}
