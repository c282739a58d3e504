//! Profiles of Triton's Proton (`.hatchet`): a tree of scopes and kernels with sums, and without times. No timeline can be made of
//! one, so it is no recording: `gputrail summary` shows its tables and its stacks.
//!
//! The file is an array in JSON: the roots of trees, each with its `frame`, `metrics` and `children`, and an object about the
//! devices. Trees may be deeper than a parser that calls itself may go, so brackets of `children` are counted here; what stands in
//! `frame` and `metrics` is parsed with serde_json. The whole file and its tree are in memory.

use std::io::{self, Read};
use std::path::Path;

use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::json_window::{error_offset, reason};
use super::{ImportFinding, InputFile};

/// The description of such a file for commands that need a timeline.
pub(super) const NO_TIMELINE: &str = "a profile of Triton's Proton: a tree of sums without times, of which no timeline can be made; `gputrail summary` shows its tables, and with --flame folded its stacks";

/// Most bytes of a file.
const MAX_BYTES: u64 = 1 << 30;
/// Most nodes of a stack: of deeper ones, the innermost.
const MAX_STACK: usize = 512;
/// Metrics that have a place of their own.
const TIME: &str = "time (ns)";
const COUNT: &str = "count";
const DEVICE: [&str; 2] = ["device_type", "device_id"];

/// A scope or kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProtonNode {
    /// The place of the scope around it.
    pub parent: Option<usize>,
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// The time on a device, of this node without those in it, ns.
    pub time: u64,
    /// The device, such as `CUDA 0`; empty if none is named.
    pub device: String,
    /// Other metrics with their values, in JSON.
    pub metrics: Vec<(String, String)>,
}

/// A profile of Proton.
#[derive(Clone, Debug, Default)]
pub struct ProtonTree {
    /// Its nodes; each stands behind the one around it.
    pub nodes: Vec<ProtonNode>,
    /// Its devices with their properties in JSON.
    pub devices: Vec<(String, String)>,
    /// The parts that could not be read.
    pub findings: Vec<ImportFinding>,
}

/// Whether a file begins like such a profile.
pub(super) fn is_file(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut rest = head.trim_ascii_start();
    for byte in [b'[', b'{', b'"'] {
        match rest.strip_prefix(&[byte]) {
            Some(behind) => rest = behind.trim_ascii_start(),
            None => return false,
        }
    }
    let begins = |name: &[u8]| rest.starts_with(name);
    let has = |name: &[u8]| head.windows(name.len()).any(|part| part == name);
    (begins(b"children\"") || begins(b"frame\"") || begins(b"metrics\""))
        && has(b"\"frame\"")
        && (has(b"\"metrics\"") || has(b"\"children\""))
}

impl ProtonTree {
    /// Reads a file; none if it is no such profile.
    ///
    /// # Errors
    ///
    /// Errors of reading the file. Damage in it is a finding.
    pub fn open(path: &Path) -> io::Result<Option<ProtonTree>> {
        let source = InputFile::open(path)?;
        if !is_file(source.head()) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        source
            .reader()?
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            let text = "a profile of Proton larger than 1 GiB";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        Ok(Some(ProtonTree::parse(path, &bytes)))
    }

    /// Reads the bytes of a file; `path` is its name in findings.
    pub fn parse(path: &Path, bytes: &[u8]) -> ProtonTree {
        let mut parser = TreeParser {
            path,
            bytes,
            at: 0,
            tree: ProtonTree::default(),
            unnamed: 0,
        };
        if let Err((found, expected)) = parser.file() {
            let at = parser.at;
            parser.finding(at, found, expected);
        }
        if parser.unnamed > 0 {
            let found = format!("nodes without a name: {}", parser.unnamed);
            parser.finding(0, found, "a frame with a name");
        }
        parser.tree
    }

    /// The time of each node with those in it, ns.
    pub fn inclusive(&self) -> Vec<u64> {
        let mut times: Vec<u64> = self.nodes.iter().map(|node| node.time).collect();
        for (place, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                times[parent] = times[parent].saturating_add(times[place]);
            }
        }
        times
    }

    /// The place of a node and of those around it, the outermost first, at most 512. The root that Proton adds is left out.
    pub fn stack(&self, place: usize) -> Vec<usize> {
        let around = |place: &usize| self.nodes[*place].parent;
        let mut stack: Vec<usize> = std::iter::successors(Some(place), around)
            .take(MAX_STACK)
            .collect();
        stack.reverse();
        let is_root = self.nodes[stack[0]].name == "ROOT" && stack.len() > 1;
        stack.split_off(usize::from(is_root))
    }
}

/// The text that was found, and the expectation.
type TreeError = (String, &'static str);

/// A value whose end has not come.
#[derive(Copy, Clone, Debug)]
enum OpenValue {
    Node { node: usize, has_name: bool },
    Children(usize),
}

struct TreeParser<'b> {
    path: &'b Path,
    bytes: &'b [u8],
    at: usize,
    tree: ProtonTree,
    unnamed: u64,
}

impl<'b> TreeParser<'b> {
    fn finding(&mut self, at: usize, found: String, expected: &'static str) {
        self.tree.findings.push(ImportFinding {
            file: self.path.to_owned(),
            offset: Some(at as u64),
            found,
            expected: expected.into(),
        });
    }

    /// The next byte behind white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.bytes[self.at..];
        self.at += rest.len() - rest.trim_ascii_start().len();
        self.bytes.get(self.at).copied()
    }

    /// The next byte behind white space and commas.
    fn next(&mut self, expected: &'static str) -> Result<u8, TreeError> {
        while self.peek() == Some(b',') {
            self.at += 1;
        }
        self.peek().ok_or(("the end of the file".into(), expected))
    }

    fn wrong(&self, expected: &'static str) -> TreeError {
        let rest = &self.bytes[self.at..];
        let text = String::from_utf8_lossy(&rest[..rest.len().min(20)]);
        (format!("{text:?}"), expected)
    }

    /// A value that has few others in it.
    fn value(&mut self, expected: &'static str) -> Result<&'b RawValue, TreeError> {
        let rest = &self.bytes[self.at..];
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => {
                self.at += error_offset(rest, &error);
                Err((reason(&error), expected))
            }
            None => Err(("the end of the file".into(), expected)),
        }
    }

    fn file(&mut self) -> Result<(), TreeError> {
        const NODE: &str = "a node, or `]`";
        if self.bytes.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        if self.peek() != Some(b'[') {
            return Err(self.wrong("an array of nodes"));
        }
        self.at += 1;
        let mut open: Vec<OpenValue> = Vec::new();
        loop {
            match open.last().copied() {
                None => match self.next(NODE)? {
                    b'{' => open.push(self.begin(None)),
                    b']' => {
                        self.at += 1;
                        return match self.peek() {
                            None => Ok(()),
                            Some(_) => Err(self.wrong("the end of the file")),
                        };
                    }
                    _ => return Err(self.wrong(NODE)),
                },
                Some(OpenValue::Children(parent)) => match self.next(NODE)? {
                    b'{' => open.push(self.begin(Some(parent))),
                    b']' => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return Err(self.wrong(NODE)),
                },
                Some(OpenValue::Node { node, has_name }) => match self.next("a field, or `}`")? {
                    b'}' => {
                        self.at += 1;
                        open.pop();
                        self.end(node, has_name);
                    }
                    b'"' => {
                        let name = self.value("the name of a field")?;
                        if self.next("`:`")? != b':' {
                            return Err(self.wrong("`:`"));
                        }
                        self.at += 1;
                        if let Some(value) = self.field(node, name, &mut open)? {
                            open.push(value);
                        }
                    }
                    _ => return Err(self.wrong("a field, or `}`")),
                },
            }
        }
    }

    fn begin(&mut self, parent: Option<usize>) -> OpenValue {
        self.at += 1;
        self.tree.nodes.push(ProtonNode {
            parent,
            ..ProtonNode::default()
        });
        OpenValue::Node {
            node: self.tree.nodes.len() - 1,
            has_name: false,
        }
    }

    /// A node ends: the object about the devices is none.
    fn end(&mut self, node: usize, has_name: bool) {
        let last = self.tree.nodes.len() - 1;
        if has_name {
            return;
        }
        if self.tree.nodes[node].parent.is_none() && node == last {
            self.tree.nodes.pop();
        } else {
            self.unnamed += 1;
        }
    }

    /// A field of a node; the array of its children is read by the caller.
    fn field(
        &mut self,
        node: usize,
        name: &RawValue,
        open: &mut [OpenValue],
    ) -> Result<Option<OpenValue>, TreeError> {
        let name: String = serde_json::from_str(name.get()).unwrap_or_default();
        let first = self.next("a value")?;
        if name == "children" && first == b'[' {
            self.at += 1;
            return Ok(Some(OpenValue::Children(node)));
        }
        let value = self.value("a value")?;
        match &*name {
            "frame" => {
                let frame: Json = serde_json::from_str(value.get()).unwrap_or_default();
                if let Some(name) = frame.get("name").and_then(Json::as_str) {
                    self.tree.nodes[node].name = name.to_owned();
                    if let Some(OpenValue::Node { has_name, .. }) = open.last_mut() {
                        *has_name = true;
                    }
                }
            }
            "metrics" => {
                let metrics: Json = serde_json::from_str(value.get()).unwrap_or_default();
                self.tree.nodes[node].take(&metrics);
            }
            _ if self.tree.nodes[node].parent.is_none() => {
                let devices: Json = serde_json::from_str(value.get()).unwrap_or_default();
                for (number, device) in devices.as_object().into_iter().flatten() {
                    let title = format!("{name} {number}");
                    self.tree.devices.push((title, device.to_string()));
                }
            }
            _ => {
                let metric = (name, value.get().to_owned());
                self.tree.nodes[node].metrics.push(metric);
            }
        }
        Ok(None)
    }
}

impl ProtonNode {
    fn take(&mut self, metrics: &Json) {
        let text = |name: &str| match metrics.get(name)? {
            Json::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        };
        // Sums that were averaged over processes have fractions.
        let whole = |name: &str| match metrics.get(name).and_then(Json::as_f64) {
            Some(number) if number >= 0.0 => number.round() as u64,
            _ => 0,
        };
        let number = |name: &str| {
            let exact = metrics.get(name).and_then(Json::as_u64);
            exact.unwrap_or_else(|| whole(name))
        };
        (self.count, self.time) = (number(COUNT), number(TIME));
        let device: Vec<String> = DEVICE.into_iter().filter_map(text).collect();
        self.device = device.join(" ");
        for (name, value) in metrics.as_object().into_iter().flatten() {
            if name != COUNT && name != TIME && !DEVICE.contains(&&**name) {
                self.metrics.push((name.clone(), value.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = r#"[
  {"children":[
    {"children":[
      {"children":[],"frame":{"name":"matmul","type":"function"},
       "metrics":{"count":10,"device_id":"1","device_type":"CUDA","time (ns)":2000,"flops8":1e11}},
      {"children":[],"frame":{"name":"add","type":"function"},
       "metrics":{"count":2,"device_id":"1","device_type":"CUDA","time (ns)":500}}],
     "frame":{"name":"forward","type":"function"},"metrics":{}},
    {"children":[],"frame":{"name":"add","type":"function"},
     "metrics":{"count":1,"device_id":"0","device_type":"CUDA","time (ns)":100.4}}],
   "frame":{"name":"ROOT","type":"function"},"metrics":{"count":0,"time (ns)":0}},
  {"CUDA":{"0":{"arch":"89"},"1":{"arch":"90"}}}
]"#;

    fn parse(text: &[u8]) -> ProtonTree {
        ProtonTree::parse(Path::new("x.hatchet"), text)
    }

    #[test]
    fn a_tree_is_read_with_its_sums() {
        assert!(is_file(TREE.as_bytes()));
        let tree = parse(TREE.as_bytes());
        assert_eq!(tree.findings, []);
        let names: Vec<&str> = tree.nodes.iter().map(|node| &*node.name).collect();
        assert_eq!(names, ["ROOT", "forward", "matmul", "add", "add"]);
        assert_eq!(tree.inclusive(), [2600, 2500, 2000, 500, 100]);
        assert_eq!(tree.stack(2), [1, 2]);
        assert_eq!(tree.stack(0), [0]);
        let matmul = &tree.nodes[2];
        assert_eq!((matmul.count, &*matmul.device), (10, "CUDA 1"));
        assert_eq!(
            matmul.metrics,
            [("flops8".to_owned(), "100000000000.0".to_owned())]
        );
        let devices: Vec<&str> = tree.devices.iter().map(|(name, _)| &**name).collect();
        assert_eq!(devices, ["CUDA 0", "CUDA 1"]);
    }

    #[test]
    fn a_deep_tree_is_read() {
        let depth = 100_000;
        let node = r#"{"frame":{"name":"f"},"metrics":{"time (ns)":1},"children":["#;
        let text = format!("[{}{}]", node.repeat(depth), "]}".repeat(depth));
        let tree = parse(text.as_bytes());
        assert_eq!(tree.findings, []);
        assert_eq!(tree.inclusive()[0], depth as u64);
    }

    #[test]
    fn damage_is_a_finding_and_what_stands_before_it_is_kept() {
        for end in 1..TREE.len() {
            let tree = parse(&TREE.as_bytes()[..end]);
            assert_eq!(tree.findings.len(), 1, "{end}");
            tree.inclusive();
        }
        let mut changed = TREE.as_bytes().to_vec();
        for place in 0..changed.len() {
            for byte in [b'[', b'}', b'"', 0xff] {
                let before = std::mem::replace(&mut changed[place], byte);
                let tree = parse(&changed);
                tree.inclusive();
                for node in 0..tree.nodes.len() {
                    tree.stack(node);
                }
                changed[place] = before;
            }
        }
        let cut = &TREE.as_bytes()[..TREE.find("\"forward\"").unwrap()];
        let tree = parse(cut);
        assert_eq!(tree.nodes[2].name, "matmul");
        let offset = tree.findings[0].offset.unwrap();
        assert!((350..=cut.len() as u64).contains(&offset), "{offset}");
    }

    #[test]
    fn other_json_is_no_tree() {
        for text in [
            "[]",
            "{}",
            r#"[{"ph":"X","frame":1,"metrics":2}]"#,
            r#"[{"children":[]}]"#,
            r#"{"children":[],"frame":{},"metrics":{}}"#,
        ] {
            assert!(!is_file(text.as_bytes()), "{text}");
        }
    }
}
