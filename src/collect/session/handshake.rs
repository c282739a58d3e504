//! The parent's end of a new connection, up to the answer. Nothing that comes in is trusted.

use super::message::{self, Hello, MalformedMessage, ParentAnswer, Refusal};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use rustix::process::{Pid, PidfdFlags};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a connection may stay silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of connections whose hello has not come.
const MAX_PENDING: usize = 64;
/// How long no connection is accepted after the system had no resources for one.
const PAUSE: Duration = Duration::from_millis(100);

/// The process at the other end, as the system reports it.
pub(super) struct Peer {
    /// 0 for a process of another pid namespace.
    pub pid: u32,
    pub uid: u32,
    /// Refers to the process that connected, whatever becomes of its id; `None` where the system gives none.
    pub pidfd: Option<OwnedFd>,
}

/// A connection whose hello has not come yet.
pub(super) struct Pending {
    pub connection: OwnedFd,
    pub peer: Peer,
    pub deadline: Instant,
}

/// The result of reading a connection.
pub(super) enum Received {
    Nothing,
    Hello(Hello),
    Refuse(Refusal),
    Close,
}

/// The session's socket.
pub(super) struct SessionSocket {
    socket: OwnedFd,
    /// The system had no resources: no connection is accepted until then.
    paused_until: Option<Instant>,
    /// Whether a connection could not be accepted because this process, or the system, had too many open files.
    ran_out_of_files: bool,
}

impl SessionSocket {
    /// Listens at `path`.
    pub fn bind(path: &Path) -> Result<SessionSocket, Errno> {
        Ok(SessionSocket {
            socket: listen(path)?,
            paused_until: None,
            ran_out_of_files: false,
        })
    }

    /// The events to poll the socket for. It is not polled for connections that would not be accepted, while `pending`
    /// of them are waiting: poll would return at once, again and again.
    pub fn events(&self, pending: usize) -> PollFlags {
        if pending < MAX_PENDING && self.paused_until.is_none() {
            PollFlags::IN
        } else {
            PollFlags::empty()
        }
    }

    /// When connections are accepted again, if they are not now.
    pub fn deadline(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Whether a process could not be recorded because too many files were open.
    pub fn ran_out_of_files(&self) -> bool {
        self.ran_out_of_files
    }

    /// Accepts the connections that are waiting, as far as `pending` has room.
    pub fn accept(&mut self, pending: &mut Vec<Pending>) {
        self.paused_until.take_if(|until| *until <= Instant::now());
        if self.paused_until.is_some() {
            return;
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while pending.len() < MAX_PENDING {
            match rustix::net::accept_with(&self.socket, flags) {
                Ok(connection) => pending.extend(Pending::new(connection)),
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    self.ran_out_of_files |= matches!(error, Errno::MFILE | Errno::NFILE);
                    self.paused_until = Some(Instant::now() + PAUSE);
                    return;
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => return,
            }
        }
    }
}

impl AsFd for SessionSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn listen(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::bind(&listener, &address)?;
    rustix::net::listen(&listener, 128)?;
    Ok(listener)
}

/// The user whose process made `connection`, a socket in the file system.
pub fn peer_user(connection: BorrowedFd<'_>) -> Option<u32> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    // The pid may be 0, for which rustix has no value.
    socket_option(&connection, libc::SO_PEERCRED, &mut credentials)?;
    Some(credentials.uid)
}

/// The process that made a connection.
fn peer(connection: &OwnedFd) -> Option<Peer> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    // The pid may be 0, for which rustix has no value.
    socket_option(connection, libc::SO_PEERCRED, &mut credentials)?;
    let mut descriptor = -1;
    let pidfd = match socket_option(connection, SO_PEERPIDFD, &mut descriptor) {
        // SAFETY: the system opened it for this call.
        Some(()) => Some(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        // Linux before 6.5.
        None => Pid::from_raw(credentials.pid)
            .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()),
    };
    Some(Peer {
        pid: credentials.pid as u32,
        uid: credentials.uid,
        pidfd,
    })
}

/// `libc` has it for few architectures.
const SO_PEERPIDFD: libc::c_int = 77;

/// Reads an option of the socket level; `T` is plain data of the option's type.
fn socket_option<T: Copy>(socket: &impl AsRawFd, option: libc::c_int, value: &mut T) -> Option<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: room for that many bytes, all values of which are valid.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    };
    (result == 0 && length as usize == size_of::<T>()).then_some(())
}

impl Pending {
    fn new(connection: OwnedFd) -> Option<Pending> {
        Some(Pending {
            peer: peer(&connection)?,
            connection,
            deadline: Instant::now() + PATIENCE,
        })
    }

    /// Reads the message that has come, without waiting.
    pub fn receive(&self) -> Received {
        // One byte more than a message, so that a longer one shows.
        let mut bytes = [0; message::HELLO_BYTES + 1];
        let length = match rustix::net::recv(&self.connection, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((length, _)) => length,
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < self.deadline => {
                return Received::Nothing;
            }
            Err(_) => return Received::Close,
        };
        // The directory is private, so the peer is the user, or root.
        if self.peer.uid != rustix::process::geteuid().as_raw() && self.peer.uid != 0 {
            return Received::Close;
        }
        match Hello::decode(&bytes[..length]) {
            Ok(hello) => Received::Hello(hello),
            Err(MalformedMessage::Protocol(_)) => Received::Refuse(Refusal::Version),
            Err(_) => Received::Close,
        }
    }
}

/// Sends the answer, on success with two files: the memory of the process, and the switch of the session.
pub(super) fn reply(
    connection: &OwnedFd,
    answer: ParentAnswer,
    files: Option<[BorrowedFd<'_>; 2]>,
) -> Result<(), Errno> {
    let bytes = message::encode_answer(answer);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(files) = &files {
        let fits = control.push(SendAncillaryMessage::ScmRights(files));
        assert!(fits, "there is room for two files");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(connection, &[IoSlice::new(&bytes)], &mut control, flags).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::readlink;

    fn connect(path: &Path) -> OwnedFd {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        socket
    }

    #[test]
    fn silent_connections_at_the_limit_do_not_wake_the_session() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let mut listener = SessionSocket::bind(&path).unwrap();
        let connections: Vec<OwnedFd> = (0..MAX_PENDING + 10).map(|_| connect(&path)).collect();
        let mut pending = Vec::new();
        listener.accept(&mut pending);
        assert_eq!(pending.len(), MAX_PENDING);
        assert_eq!(listener.events(pending.len()), PollFlags::empty());
        // Their time is over: the others get their turn.
        pending.clear();
        assert_eq!(listener.events(pending.len()), PollFlags::IN);
        listener.accept(&mut pending);
        assert_eq!(pending.len(), 10);
        drop(connections);
    }

    #[test]
    fn without_resources_for_a_connection_the_listener_pauses() {
        let directory = tempfile::tempdir().unwrap();
        let mut listener = SessionSocket::bind(&directory.path().join("socket")).unwrap();
        listener.paused_until = Some(Instant::now() + Duration::from_secs(3600));
        assert_eq!(listener.events(0), PollFlags::empty());
        assert!(listener.deadline().is_some());
        listener.paused_until = Some(Instant::now());
        listener.accept(&mut Vec::new());
        assert_eq!(listener.events(0), PollFlags::IN);
    }

    #[test]
    fn a_peer_is_held_by_a_pidfd_from_the_connection_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let mut listener = SessionSocket::bind(&path).unwrap();
        let connection = connect(&path);
        let mut pending = Vec::new();
        listener.accept(&mut pending);
        let peer = &pending[0].peer;
        assert_eq!(peer.pid, std::process::id());
        let pidfd = peer.pidfd.as_ref().expect("a pidfd");
        let link = format!("/proc/self/fd/{}", pidfd.as_raw_fd());
        let target = readlink(&link, Vec::new()).unwrap();
        assert!(target.to_string_lossy().contains("pidfd"), "{target:?}");
        drop(connection);
    }
}
