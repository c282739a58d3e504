//! Parent and program in one process: what each end does with what the other sends.

use super::*;
use crate::recorder::Recorder;
use crate::scope::Scope;
use crate::switchboard::Switchboard;
use gputrail_buffer::clock::TickSource;
use gputrail_buffer::{Buffer, Policy};
use gputrail_capture::queue::QueueWriter;
use gputrail_capture::{Reader, Writer};
use gputrail_record::{Api, Kind, NoteKind, StringId, ThreadId, flags};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn server(directory: &Path, processes: usize) -> Server {
    Server::start(ServerOptions {
        directory: directory.into(),
        captures: directory.into(),
        layout: Size::layout(Size(1 << 20), Size(16 << 10)).unwrap(),
        policy: Policy::Discard,
        watermark: u32::MAX,
        processes,
        flight: None,
        paused: false,
    })
    .unwrap()
}

/// Begins to record, as [`begin`] does.
fn recorder(attached: Attached) -> Recorder {
    let ticks = gputrail_buffer::clock::init();
    let buffer = Buffer::new(attached.mapping, attached.config.policy);
    let writer = Writer::to_queue(QueueWriter::new(attached.metadata, buffer.clone()));
    Recorder::in_session(
        &Switchboard::new(),
        buffer,
        ticks,
        writer,
        &Scope::default(),
        true,
    )
    .unwrap()
}

/// Connects as anybody could, and sends `bytes`.
fn say(directory: &Path, bytes: &[u8]) -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(
        &socket,
        &SocketAddrUnix::new(directory.join(SOCKET)).unwrap(),
    )
    .unwrap();
    rustix::net::send(&socket, bytes, SendFlags::NOSIGNAL).unwrap();
    socket
}

/// The answer of the other end; empty once that has closed.
fn receive(socket: &OwnedFd) -> Vec<u8> {
    let mut bytes = [0; 256];
    let (length, _) = rustix::net::recv(socket, &mut bytes, RecvFlags::empty()).unwrap_or((0, 0));
    bytes[..length].to_vec()
}

#[test]
fn a_process_gets_a_pool_and_a_private_capture() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), 4);
    let attached = attach(directory.path(), Reason::Loaded).unwrap();
    assert_eq!(attached.config.process, 1);
    assert_eq!(attached.config.policy, Policy::Discard);
    assert_eq!(attached.mapping.layout().blocks(), 64);
    assert_eq!(server.attached(), [std::process::id()]);

    let recorder = recorder(attached);
    let host = recorder.host_thread(ThreadId(1), false).unwrap();
    drop(host);
    recorder.finish().unwrap();
    let finished = server.finish();
    let [capture] = &finished.processes[..] else {
        panic!("{finished:?}")
    };
    assert_eq!(
        (capture.end, capture.pid),
        (ProcessEnd::Finished, std::process::id())
    );
    assert_eq!(
        std::fs::metadata(&capture.path).unwrap().mode() & 0o777,
        0o600
    );
    assert!(Reader::open(&capture.path).unwrap().ended());
    assert!(finished.refused.is_empty());
}

#[test]
fn records_left_in_the_pool_of_a_process_are_saved() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), 4);
    let attached = attach(directory.path(), Reason::Loaded).unwrap();
    let buffer = Buffer::new(attached.mapping, Policy::Discard);
    let writer = Writer::to_queue(QueueWriter::new(attached.metadata, buffer.clone()));
    writer
        .metadata_record(&gputrail_buffer::clock::snapshot())
        .unwrap();
    let mut lane = buffer.lane(ThreadId(7)).unwrap();
    for _ in 0..3 {
        assert!(lane.write(gputrail_record::Api::blank()));
    }
    let capture = server.finish().processes.remove(0);
    assert_eq!((capture.end, &capture.lost), (ProcessEnd::Running, &None));
    let reader = Reader::open(&capture.path).unwrap();
    assert!(!reader.ended());
    let mut calls = 0;
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        calls += chunk
            .records()
            .filter(|record| record.header().kind == Kind::API)
            .count();
    }
    assert_eq!(calls, 3);
}

#[test]
fn kept_records_are_dumped_with_names_and_calls_in_progress_while_the_process_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (sender, dumps) = std::sync::mpsc::channel();
    let server = Server::start(ServerOptions {
        directory: directory.path().into(),
        captures: directory.path().into(),
        layout: Size::layout(Size(64 << 10), Size(4 << 10)).unwrap(),
        policy: Policy::Overwrite,
        watermark: u32::MAX,
        processes: 4,
        flight: Some(Flight {
            keep: None,
            slow_call: None,
            max_dumps: 2,
            dumps: sender,
        }),
        paused: false,
    })
    .unwrap();
    let recorder = recorder(attach(directory.path(), Reason::Loaded).unwrap());
    let name = recorder.names().string("named long ago");
    let mut host = recorder.host_thread(ThreadId(1), false).unwrap();
    let operation = gputrail_record::Operation {
        domain: gputrail_record::Domain::SIM,
        number: 1,
    };
    let call = |host: &mut crate::correlation::HostThread, exits| {
        let call = host.enter(operation, 1000, gputrail_buffer::clock::now());
        if exits {
            host.exit(
                &call,
                gputrail_buffer::clock::now(),
                0,
                crate::correlation::Extra::NONE,
            );
        }
        call.correlation
    };
    let mut dumped = |asks: &dyn Fn()| {
        let ended = (0..5000).map(|_| call(&mut host, true)).last();
        let in_progress = call(&mut host, false);
        asks();
        let dump = dumps.recv().unwrap();
        assert_eq!((dump.captures.len(), &dump.failed), (1, &None));
        let reader = Reader::open(&dump.captures[0]).unwrap();
        assert!(reader.ended() && reader.findings().is_empty());
        assert_eq!(reader.metadata().string(name), "named long ago");
        let (mut chunks, mut calls) = (reader.chunks(), Vec::new());
        while let Some(chunk) = chunks.next() {
            calls.extend(chunk.records().filter_map(|record| record.read::<Api>()));
        }
        let is_unfinished = |call: &&Api| call.header.has(flags::UNFINISHED);
        let (open, done): (Vec<&Api>, Vec<&Api>) = calls.iter().partition(is_unfinished);
        assert_eq!(
            open.iter().map(|call| call.correlation).collect::<Vec<_>>(),
            [in_progress]
        );
        assert_eq!(done.last().map(|call| call.correlation), ended);
        assert!(done.len() < 5000, "the memory holds fewer");
        dump.number
    };
    assert_eq!(dumped(&|| server.dump()), 1);
    assert_eq!(dumped(&|| assert!(recorder.dump())), 2);
    server.dump();
    let finished = server.finish();
    assert!(dumps.recv().is_err(), "two were wanted at most");
    assert_eq!(finished.processes.len(), 1);
}

#[test]
fn a_recording_that_keeps_everything_is_not_dumped() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), 4);
    let recorder = recorder(attach(directory.path(), Reason::Loaded).unwrap());
    assert!(!recorder.dump());
    server.dump();
    server.finish();
}

#[test]
fn a_process_that_recorded_nothing_leaves_no_capture() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), 4);
    drop(attach(directory.path(), Reason::Loaded).unwrap());
    assert!(server.finish().processes.is_empty());
    assert!(
        std::fs::read_dir(directory.path())
            .unwrap()
            .all(|entry| entry.unwrap().file_name() == SOCKET)
    );
}

#[test]
fn noise_is_hung_up_on_and_harms_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), 4);
    let mut long = Hello {
        pid: 1,
        reason: Reason::Loaded,
        ticks: TickSource::Monotonic,
    }
    .encode()
    .to_vec();
    long.push(0);
    for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 32], &[], &long] {
        let socket = say(directory.path(), noise);
        assert_eq!(receive(&socket), b"");
    }
    // Silent ones do not stand in the way either.
    let silent = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(
        &silent,
        &SocketAddrUnix::new(directory.path().join(SOCKET)).unwrap(),
    )
    .unwrap();
    assert!(attach(directory.path(), Reason::Loaded).is_ok());
    assert!(server.finish().refused.is_empty());
}

#[test]
fn a_library_of_another_version_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), 4);
    let mut hello = Hello {
        pid: 1,
        reason: Reason::Loaded,
        ticks: TickSource::Monotonic,
    }
    .encode();
    hello[8] ^= 0xff;
    let answer = receive(&say(directory.path(), &hello));
    assert_eq!(message::decode_answer(&answer), Ok(Err(Refusal::Version)));
    assert_eq!(
        server.finish().refused,
        [(std::process::id(), Refusal::Version)]
    );
}

#[test]
fn more_processes_than_the_limit_are_refused_until_one_ends() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), 1);
    let _first = recorder(attach(directory.path(), Reason::Loaded).unwrap());
    let second = attach(directory.path(), Reason::Forked);
    assert!(matches!(
        second,
        Err(AttachError::Refused(Refusal::Processes))
    ));
    let finished = server.finish();
    assert_eq!((finished.processes.len(), finished.refused.len()), (1, 1));

    finished.note_refusals().unwrap();
    let capture = Reader::open(&finished.processes[0].path).unwrap();
    let metadata = capture.metadata();
    let notes = metadata.notes.iter();
    let missing = notes.filter(|note| note.what == NoteKind::MISSING);
    let missing: Vec<&str> = missing.map(|note| metadata.string(note.text)).collect();
    let pid = std::process::id();
    let refusal = Refusal::Processes;
    assert_eq!(
        missing,
        [format!("1 process was not recorded ({pid}): {refusal}")]
    );
}

#[test]
fn a_session_that_is_over_is_no_error_to_report() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(
        attach(directory.path(), Reason::Loaded),
        Err(AttachError::Over(_))
    ));
    server(directory.path(), 1).finish();
    assert!(matches!(
        attach(directory.path(), Reason::Loaded),
        Err(AttachError::Over(_))
    ));
}

#[test]
fn an_answer_that_is_none_is_refused_by_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let mut listener = handshake::SessionSocket::bind(&directory.path().join(SOCKET)).unwrap();
    let path = directory.path().to_owned();
    let parent = std::thread::spawn(move || {
        loop {
            let mut pending = Vec::new();
            listener.accept(&mut pending);
            if let Some(pending) = pending.pop() {
                while matches!(pending.receive(), handshake::Received::Nothing) {}
                rustix::net::send(&pending.connection, &[0; 64], SendFlags::NOSIGNAL).unwrap();
                return;
            }
            std::thread::yield_now();
        }
    });
    let error = attach(&path, Reason::Loaded).err().unwrap();
    assert!(matches!(error, AttachError::Answer(..)), "{error}");
    parent.join().unwrap();
}

#[test]
fn a_parent_that_was_killed_is_known_to_have_ended() {
    use super::attach::has_ended;
    let directory = tempfile::tempdir().unwrap();
    // The directory of a session may be out of reach of the program.
    assert!(!has_ended(directory.path()));
    // A killed parent leaves its socket behind, and nobody listens.
    let listener = handshake::SessionSocket::bind(&directory.path().join(SOCKET)).unwrap();
    assert!(!has_ended(directory.path()));
    drop(listener);
    assert!(has_ended(directory.path()));
}

#[test]
fn a_process_that_is_asked_to_stop_ends_its_session() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path(), 4);
    let recorder = recorder(attach(directory.path(), Reason::Loaded).unwrap());
    let name = recorder.names().string("a name");
    assert_ne!(name, StringId::NONE);
    let finished = server.finish();
    assert_eq!(
        (finished.processes.len(), finished.processes[0].end),
        (1, ProcessEnd::Running)
    );
    assert!(recorder.host_thread(ThreadId(1), false).is_none());
}
