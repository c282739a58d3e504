//! The session's thread: it admits processes, takes what they record, and does what is requested of the session.

use super::ending::{ProcessEnd, has_ended, how_it_ended};
use super::options::ServerOptions;
use super::processes::{Live, ProcessCapture, SessionResult};
use super::shared::{DUMP, FINISH, KILL, SessionShared, SessionSink, raise};
use crate::recorder::Recorder;
use crate::session::control::{Action, ProcessStatus, SessionStatus};
use crate::session::handshake::{self, Pending, SessionSocket};
use crate::session::memory::{self, ProcessPool};
use crate::session::message::{Config, Hello, ParentAnswer, Reason, Refusal};
use crate::session::switch::Switch;
use gputrail_buffer::clock::{self, TickSource};
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::{Buffer, Collector, CollectorOptions, Policy, SessionEvent, SessionState};
use gputrail_capture::{self as capture, CaptureSink, Writer};
use gputrail_record::{NoteKind, ProcessId, count};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// In this time the program is started, which wants a processor to begin on.
const HEAD_START: Duration = Duration::from_millis(1);

/// State of the session's thread.
pub(super) struct Session {
    options: ServerOptions,
    shared: Arc<SessionShared>,
    listener: SessionSocket,
    /// The pool for the next process, made ahead for the first one only: the others would wait for no less, and one
    /// that never comes would cost memory. Making it takes milliseconds, in which the program starts.
    ready: Option<ProcessPool>,
    is_ready_due: bool,
    pending: Vec<Pending>,
    live: Vec<Live>,
    /// Processes that have been given a number.
    admitted: u32,
    /// Dumps of what is kept so far.
    dumps: u32,
    finished: SessionResult,
    switch: Switch,
    /// When the switch was last used.
    switched: SystemTime,
    /// How often the session was switched on or off.
    switches: u64,
    /// Why the session is off, if it is.
    off_because: Option<String>,
    /// The processes that have ended, taken together.
    ended: ProcessStatus,
}

impl Session {
    pub fn new(
        options: ServerOptions,
        shared: Arc<SessionShared>,
        listener: SessionSocket,
        switch: Switch,
        off_because: Option<&str>,
    ) -> Session {
        Session {
            options,
            shared,
            listener,
            ready: None,
            is_ready_due: true,
            pending: Vec::new(),
            live: Vec::new(),
            admitted: 0,
            dumps: 0,
            finished: SessionResult::default(),
            switch,
            switched: SystemTime::now(),
            switches: 0,
            off_because: off_because.map(str::to_owned),
            ended: ProcessStatus::default(),
        }
    }

    pub fn run(mut self, result: &Sender<SessionResult>) {
        loop {
            let woken = self.wait();
            if woken.wake {
                let mut count = [0; 8];
                let _ = rustix::io::read(&self.shared.wake, &mut count);
            }
            let command = self.shared.command.fetch_and(!DUMP, Ordering::AcqRel);
            if command & KILL != 0 {
                self.kill();
            }
            if command & DUMP != 0 {
                self.dump();
            }
            self.bury(&woken.processes);
            self.serve();
            if command & FINISH != 0 {
                self.shared.requests.close();
                self.finish();
                // The receiver waits for it, unless its thread is gone.
                let _ = result.send(self.finished);
                return;
            }
            self.greet(woken.listener);
        }
    }

    /// Sleeps until something happens.
    fn wait(&mut self) -> Woken {
        let mut files = vec![
            PollFd::new(&self.listener, self.listener.events(self.pending.len())),
            PollFd::new(&self.shared.wake, PollFlags::IN),
        ];
        for live in &self.live {
            // A connection says nothing more; only its end, which poll reports unasked.
            files.extend(
                live.connection
                    .as_ref()
                    .map(|file| PollFd::new(file, PollFlags::empty())),
            );
            files.extend(
                live.pidfd
                    .as_ref()
                    .map(|file| PollFd::new(file, PollFlags::IN)),
            );
        }
        files.extend(
            self.pending
                .iter()
                .map(|pending| PollFd::new(&pending.connection, PollFlags::IN)),
        );
        let now = Instant::now();
        let deadlines = self.pending.iter().map(|pending| pending.deadline);
        let started = self.is_ready_due.then(|| now + HEAD_START);
        let deadlines = deadlines.chain(started).chain(self.listener.deadline());
        // A time that is too long for the system is as good as none.
        let timeout = deadlines.min().and_then(|deadline| {
            let left = deadline.saturating_duration_since(now) + Duration::from_millis(1);
            left.try_into().ok()
        });
        // An interruption by a signal looks like a wake-up without a cause.
        let happenings = rustix::event::poll(&mut files, timeout.as_ref());
        let mut happened = files.iter().map(|file| !file.revents().is_empty());
        let listener = happened.next().unwrap_or(false);
        let wake = happened.next().unwrap_or(false);
        let processes = self
            .live
            .iter()
            .map(|live| Signs {
                hung_up: live.connection.is_some() && happened.next().unwrap_or(false),
                ended: live.pidfd.is_some() && happened.next().unwrap_or(false),
            })
            .collect();
        if happenings == Ok(0) && std::mem::take(&mut self.is_ready_due) {
            // Without memory, the process that asks for it is refused.
            self.ready = memory::make(&self.options.layout).ok();
        }
        Woken {
            listener,
            wake,
            processes,
        }
    }

    /// Takes what is left of processes that have ended or become other programs.
    fn bury(&mut self, signs: &[Signs]) {
        let mut gone = Vec::new();
        for (index, (live, signs)) in self.live.iter_mut().zip(signs).enumerate() {
            if signs.ended || (signs.hung_up && live.pidfd.is_none()) {
                gone.push((index, how_it_ended(live.capture.pid, live.pidfd.as_ref())));
            } else if signs.hung_up {
                live.connection = None;
                // A program may close files that it does not know; its memory tells that from exec.
                if !memory::still_mapped(live.capture.pid) {
                    gone.push((index, ProcessEnd::Replaced));
                }
            }
        }
        for (index, end) in gone.into_iter().rev() {
            let live = self.live.remove(index);
            self.take(live, end);
        }
    }

    /// Accepts connections and answers those that have said who they are.
    fn greet(&mut self, accept: bool) {
        if accept || self.listener.deadline().is_some() {
            self.listener.accept(&mut self.pending);
        }
        let mut index = 0;
        while index < self.pending.len() {
            match self.pending[index].receive() {
                handshake::Received::Nothing => index += 1,
                handshake::Received::Refuse(refusal) => {
                    let pending = self.pending.swap_remove(index);
                    self.finished.refused.push((pending.peer.pid, refusal));
                    let _ = handshake::reply(&pending.connection, Err(refusal), None);
                }
                handshake::Received::Close => drop(self.pending.swap_remove(index)),
                handshake::Received::Hello(hello) => {
                    let pending = self.pending.swap_remove(index);
                    self.admit(pending, hello);
                }
            }
        }
    }

    fn admit(&mut self, mut pending: Pending, hello: Hello) {
        let pid = pending.peer.pid;
        // The process has become another program, and its old memory is ours alone.
        if let Some(index) = self.live.iter().position(|live| live.capture.pid == pid)
            && !memory::still_mapped(pid)
        {
            let live = self.live.remove(index);
            self.take(live, ProcessEnd::Replaced);
        }
        self.admitted += 1;
        let process = self.admitted;
        let answer: ParentAnswer = if self.live.len() < self.options.processes {
            self.equip(process, &mut pending, hello)
        } else {
            Err(Refusal::Processes)
        };
        if let Err(refusal) = answer {
            self.finished.refused.push((pid, refusal));
            let _ = handshake::reply(&pending.connection, Err(refusal), None);
        }
    }

    /// Makes memory and capture for a process and hands them over.
    fn equip(&mut self, process: u32, pending: &mut Pending, hello: Hello) -> ParentAnswer {
        let resources =
            |error: std::io::Error| Refusal::Resources(error.raw_os_error().unwrap_or(0));
        let pid = pending.peer.pid;
        let connection = pending.connection.try_clone().map_err(resources)?;
        self.is_ready_due = false;
        let pool = match self.ready.take() {
            Some(pool) => pool,
            None => memory::make(&self.options.layout).map_err(resources)?,
        };
        let path = self
            .options
            .captures
            .join(format!("{pid}-{process}.gputrail"));
        let file = rustix::fs::open(
            &path,
            OFlags::RDWR
                | OFlags::APPEND
                | OFlags::CREATE
                | OFlags::EXCL
                | OFlags::NOFOLLOW
                | OFlags::CLOEXEC,
            Mode::RUSR | Mode::WUSR,
        )
        .map_err(|errno| Refusal::Resources(errno.raw_os_error()))?;
        let header = Recorder::file_header(hello.ticks, ProcessId(hello.pid));
        let writer = Writer::begin(file, &header).map_err(resources)?;
        let mapping_bytes = pool.mapping.layout().total_bytes() as u64;
        let buffer = Buffer::new(pool.mapping, self.options.policy);
        let metadata = Arc::new(Mutex::new(pool.metadata));
        let records = Arc::<AtomicU64>::default();
        let sink = SessionSink {
            metadata: metadata.clone(),
            capture: CaptureSink::new(writer.clone()),
            writer: writer.clone(),
            records: records.clone(),
            session: self.shared.clone(),
            rests: false,
        };
        let collector = self
            .collect(&buffer, sink, hello.ticks)
            .map_err(resources)?;
        let flight = self.options.flight.as_ref();
        let slow_call = flight.and_then(|flight| flight.slow_call);
        let config = Config {
            process,
            policy: self.options.policy,
            watermark: self.options.watermark,
            mapping_bytes,
            slow_nanos: slow_call
                .map_or(0, |slow| slow.as_nanos().clamp(1, u64::MAX.into()) as u64),
        };
        // Before the process has the switch: it may begin to record as soon as it has.
        if let Some(reason) = &self.off_because {
            capture::note(&writer, NoteKind::STOPPED, reason);
        }
        let files = [pool.file.as_fd(), self.switch.as_fd()];
        if handshake::reply(&pending.connection, Ok(config), Some(files)).is_err() {
            // The process left before the answer came, and nothing of it is kept.
            collector.stop();
            let _ = std::fs::remove_file(&path);
            return Ok(config);
        }
        lock_std(&self.shared.attached).push((pid, path.clone()));
        self.live.push(Live {
            capture: ProcessCapture {
                process,
                pid,
                reason: hello.reason,
                path,
                end: ProcessEnd::Running,
                capture_error: None,
                lost: None,
            },
            buffer,
            ticks: hello.ticks,
            metadata,
            writer,
            records,
            collector,
            pidfd: pending.peer.pidfd.take(),
            connection: Some(connection),
        });
        Ok(config)
    }

    /// Has a collector take to `sink` what comes into `buffer`.
    fn collect(
        &self,
        buffer: &Buffer,
        sink: SessionSink,
        ticks: TickSource,
    ) -> std::io::Result<Collector> {
        let options = CollectorOptions {
            watermark: self.options.watermark,
            complete_at_ticks: true,
            ticks,
            ..CollectorOptions::default()
        };
        let shared = self.shared.clone();
        let dumps = self.options.flight.is_some();
        let is_first = lock_std(&self.shared.attached).is_empty();
        let listener = move |news| match news {
            SessionEvent::Triggered if dumps => shared.send(DUMP),
            SessionEvent::Ended if is_first => raise(&shared.first_ended),
            SessionEvent::Triggered | SessionEvent::Ended => {}
        };
        let (buffer, sinks) = (buffer.clone(), vec![Box::new(sink) as _]);
        let listener = Some(Box::new(listener) as _);
        Collector::of_process(buffer, sinks, options, listener)
    }

    /// Saves what a process left in its memory. Giving the memory back takes a millisecond, in which the end of the
    /// session goes on: as a rule the collector's thread ends last, and has the mapping until then.
    fn take(&mut self, live: Live, end: ProcessEnd) {
        let Live {
            mut capture,
            buffer,
            collector,
            writer,
            metadata,
            records,
            ..
        } = live;
        let mapping = buffer.mapping();
        capture.end = match (mapping.state(), end) {
            (SessionState::Ended, ProcessEnd::Died(_) | ProcessEnd::Exited(_)) => {
                ProcessEnd::Finished
            }
            (SessionState::Exiting, ProcessEnd::Died(None) | ProcessEnd::Exited(_)) => {
                ProcessEnd::Finished
            }
            _ => end,
        };
        lock_std(&metadata).drain(&writer);
        if lock_std(&metadata).is_unused() {
            // The process ended before it had recorded anything, even its description.
            collector.stop();
            let _ = std::fs::remove_file(&capture.path);
            return;
        }
        memory::save(&collector, mapping, &metadata, &writer, capture.end);
        self.ended.records += records.load(Ordering::Relaxed);
        self.ended.bytes += writer.bytes();
        self.ended.dropped += dropped(&buffer);
        if let Some((error, _)) = writer.error() {
            capture.capture_error = Some((error.errno, error.bytes));
        }
        let lost = lock_std(&metadata).lost();
        if lost > 0 {
            let lost = count(lost, "piece") + " of its names did not reach the capture";
            capture::note(&writer, NoteKind::ENDED_EARLY, &lost);
            capture.lost = Some(lost);
        }
        self.finished.processes.push(capture);
    }

    /// Does what was requested of the session.
    fn serve(&mut self) {
        for request in self.shared.requests.take() {
            let was_on = self.switch.is_on();
            match &request.action {
                Action::Look => {}
                Action::Start => self.turn(true, "gputrail start"),
                Action::Stop => self.turn(false, "gputrail stop"),
                Action::Flush => self.flush(),
                Action::Dump => self.dump(),
            }
            request.answer(self.status(was_on));
        }
    }

    /// Switches the session on or off, and notes that in the captures of its processes.
    fn turn(&mut self, on: bool, by: &str) {
        let was_on = self.switch.is_on();
        if was_on != on {
            self.read_clocks();
            self.shared.is_off.store(!on, Ordering::Relaxed);
        }
        // Calls that see the new position lie on its side of the note.
        if on && !was_on {
            self.note(NoteKind::STARTED, by);
        }
        self.switch.turn(on);
        if was_on == on {
            return;
        }
        if !on {
            self.note(NoteKind::STOPPED, by);
        }
        self.off_because = (!on).then(|| by.to_owned());
        self.switched = SystemTime::now();
        self.switches += 1;
    }

    fn note(&self, what: NoteKind, text: &str) {
        for live in &self.live {
            capture::note(&live.writer, what, text);
        }
    }

    /// Times of records that come next are converted by this reading and the next one.
    fn read_clocks(&self) {
        let real = |live: &&Live| live.ticks != TickSource::Virtual;
        for live in self.live.iter().filter(real) {
            let reading = clock::snapshot_of(live.ticks);
            // A reading in a capture states that all earlier records are there.
            self.flush_process(live);
            let _ = live.writer.metadata_record(&reading);
        }
    }

    /// Takes to the captures everything that the processes have committed.
    fn flush(&self) {
        self.live.iter().for_each(|live| self.flush_process(live));
    }

    fn flush_process(&self, live: &Live) {
        lock_std(&live.metadata).drain(&live.writer);
        // The latest records are kept until a dump.
        if self.options.policy != Policy::Overwrite {
            live.collector.flush();
        }
    }

    /// The captures of all processes so far.
    fn captures(&self) -> Vec<PathBuf> {
        let ended = self.finished.processes.iter().map(|ended| &ended.path);
        let live = self.live.iter().map(|live| &live.capture.path);
        ended.chain(live).cloned().collect()
    }

    fn status(&self, was_on: bool) -> SessionStatus {
        let of_process = |live: &Live| {
            let undelivered = live.collector.undelivered();
            ProcessStatus {
                pid: live.capture.pid,
                process: live.capture.process,
                forked: live.capture.reason == Reason::Forked,
                capture: live.capture.path.clone(),
                records: live.records.load(Ordering::Relaxed) + undelivered.records,
                bytes: live.writer.bytes() + undelivered.bytes,
                dropped: dropped(&live.buffer),
                has_ended: live.buffer.mapping().state().is_over(),
                failed: live.writer.error().map(|(error, _)| error.to_string()),
            }
        };
        SessionStatus {
            was_on,
            is_on: self.switch.is_on(),
            since: self.switched,
            switches: self.switches,
            processes: self.live.iter().map(of_process).collect(),
            ended_processes: self.finished.processes.len(),
            refused_processes: self.finished.refused.len(),
            ended: self.ended.clone(),
            captures: self.captures(),
            dumps: self.options.flight.as_ref().map(|_| self.dumps),
        }
    }

    /// Writes out what the processes keep, unless that has been done often enough.
    fn dump(&mut self) {
        let Some(flight) = &self.options.flight else {
            return;
        };
        if self.dumps < flight.max_dumps {
            self.dumps += 1;
            flight.dump(self.dumps, &self.live, &self.options.captures);
        }
    }

    fn kill(&self) {
        for pidfd in self.live.iter().filter_map(|live| live.pidfd.as_ref()) {
            // A process that is gone already needs no signal.
            let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
        }
    }

    /// Takes what there is of processes that have ended, and of those that are still running, which are told to stop.
    fn finish(&mut self) {
        for live in std::mem::take(&mut self.live) {
            let end = match &live.pidfd {
                _ if live.buffer.mapping().state() == SessionState::Ended => ProcessEnd::Finished,
                Some(pidfd) if has_ended(pidfd) => how_it_ended(live.capture.pid, Some(pidfd)),
                _ => ProcessEnd::Running,
            };
            // One that is gone keeps the state in which it went: that tells `take` how it went.
            if end == ProcessEnd::Running {
                live.buffer.mapping().abandon();
            }
            self.take(live, end);
        }
        self.finished.ran_out_of_files = self.listener.ran_out_of_files();
        self.finished.was_never_on = self.options.paused && self.switches == 0;
        // Dropping the last sender shows the receiver that no more dumps come.
        self.options.flight = None;
        self.finished
            .processes
            .sort_by_key(|capture| capture.process);
    }
}

/// The number of records that a process has lost so far.
fn dropped(buffer: &Buffer) -> u64 {
    buffer.dropped().iter().sum()
}

/// The events that woke the thread.
struct Woken {
    listener: bool,
    wake: bool,
    processes: Vec<Signs>,
}

/// The result of poll for a live process.
struct Signs {
    hung_up: bool,
    ended: bool,
}
