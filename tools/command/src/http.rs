//! As much of HTTP as a browser needs to fetch a few files from its own machine.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Most bytes of a request's head.
const MAX_HEAD_BYTES: u64 = 16 << 10;
/// How long a request's head may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request, as far as it is looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Its path, without what follows a question mark, as it was sent.
    pub path: String,
    /// The host it was sent to.
    pub host: String,
    /// The site it was sent by, if the browser tells.
    pub origin: Option<String>,
}

impl Request {
    /// Reads the head of a request; none if it is not one.
    pub fn read(stream: &TcpStream) -> Option<Request> {
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Request::parse(BufReader::new(stream.take(MAX_HEAD_BYTES)))
    }

    fn parse(mut head: impl BufRead) -> Option<Request> {
        let mut line = String::new();
        head.read_line(&mut line).ok()?;
        let mut words = line.split_ascii_whitespace();
        let (method, target) = (words.next()?, words.next()?);
        let mut request = Request {
            method: method.to_owned(),
            path: target.split(['?', '#']).next()?.to_owned(),
            ..Request::default()
        };
        loop {
            line.clear();
            if head.read_line(&mut line).ok()? == 0 {
                // The head did not end.
                return None;
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                return line.trim_end().is_empty().then_some(request);
            };
            match name.to_ascii_lowercase().as_str() {
                "host" => request.host = value.trim().to_owned(),
                "origin" => request.origin = Some(value.trim().to_owned()),
                _ => {}
            }
        }
    }
}

/// What a request is answered with.
pub struct Response {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Option<(File, u64)>,
}

impl Response {
    /// An answer without a body: `404 Not Found`, say.
    pub fn empty(status: &'static str) -> Response {
        Response {
            status,
            headers: Vec::new(),
            body: None,
        }
    }

    /// A file.
    pub fn file(file: File, kind: &str) -> io::Result<Response> {
        let length = file.metadata()?.len();
        Ok(Response {
            status: "200 OK",
            headers: vec![
                ("Content-Type", kind.to_owned()),
                ("Cache-Control", "no-cache".to_owned()),
            ],
            body: Some((file, length)),
        })
    }

    /// The same with one more header.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.headers.push((name, value.into()));
        self
    }

    /// Sends it, without its body if only the head was asked for.
    pub fn send(mut self, mut stream: &TcpStream, head_only: bool) -> io::Result<()> {
        let length = self.body.as_ref().map_or(0, |(_, length)| *length);
        let mut head = format!("HTTP/1.1 {}\r\n", self.status);
        self.headers.push(("Content-Length", length.to_string()));
        self.headers.push(("Connection", "close".to_owned()));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        stream.write_all(head.as_bytes())?;
        if let Some((file, length)) = self.body.filter(|_| !head_only) {
            let sent = io::copy(&mut file.take(length), &mut stream)?;
            if sent != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_its_path_its_host_and_its_origin() {
        let head = "GET /run.pftrace?x=1 HTTP/1.1\r\nHost: 127.0.0.1:9001\r\norigin: https://ui.perfetto.dev\r\nA: b\r\n\r\nbody";
        let request = Request::parse(head.as_bytes()).unwrap();
        let expected = Request {
            method: "GET".into(),
            path: "/run.pftrace".into(),
            host: "127.0.0.1:9001".into(),
            origin: Some("https://ui.perfetto.dev".into()),
        };
        assert_eq!(request, expected);
    }

    #[test]
    fn what_is_no_request_is_none() {
        for head in [
            "",
            "GET\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n",
            "GET / HTTP/1.1\r\nnonsense\r\n\r\n",
        ] {
            assert_eq!(Request::parse(head.as_bytes()), None, "{head:?}");
        }
    }
}
