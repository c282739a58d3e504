//! The functions of an API, as the trace names them, and the words that stand beside events.

use std::io::Write;

use super::directory::Directory;
use super::events::{Heading, Label};
use super::names::Name;
use super::schema::GpuApi;
use super::work::ContextApi;
use super::writer::TraceWriter;
use crate::capture::Metadata;
use crate::record::{ArgumentType, Domain, Operation, OperationGroup};

/// Whose API it is, for Perfetto.
pub(super) fn gpu_api(domain: Domain) -> Option<GpuApi> {
    match domain {
        Domain::OPENCL => Some(GpuApi::OpenCl),
        Domain::CUDA_DRIVER | Domain::CUDA_RUNTIME => Some(GpuApi::Cuda),
        Domain::HIP | Domain::HSA => Some(GpuApi::Hip),
        _ => None,
    }
}

/// The same, of a context.
pub(super) fn context_api(domain: Domain) -> ContextApi {
    match gpu_api(domain) {
        Some(GpuApi::OpenCl) => ContextApi::OpenCl,
        Some(GpuApi::Cuda) => ContextApi::Cuda,
        Some(GpuApi::Hip) => ContextApi::Hip,
        _ => ContextApi::Undefined,
    }
}

/// A name in whichever form it can be sent.
#[derive(Clone, Debug)]
pub(super) enum OwnLabel {
    Name(Name),
    Text(Box<str>),
}

impl OwnLabel {
    pub fn new<W: Write>(writer: &mut TraceWriter<W>, text: &str) -> OwnLabel {
        match writer.name(text) {
            Some(name) => OwnLabel::Name(name),
            None => OwnLabel::Text(text.into()),
        }
    }

    #[inline]
    pub fn get(&self) -> Label<'_> {
        match self {
            OwnLabel::Name(name) => Label::Name(*name),
            OwnLabel::Text(text) => Label::Text(text),
        }
    }
}

/// A function.
#[derive(Debug)]
pub(super) struct Function {
    /// Its place among the functions of the process.
    pub number: u32,
    pub name: Box<str>,
    pub label: OwnLabel,
    pub category: Name,
    /// How its calls begin; none if its name has to be written out.
    pub heading: Option<Heading>,
    pub domain: Domain,
    pub group: OperationGroup,
    pub api: Option<GpuApi>,
    /// Names and types of its recorded arguments.
    pub arguments: Vec<(Name, ArgumentType)>,
}

/// The functions that a process has called.
#[derive(Debug, Default)]
pub(super) struct Functions {
    list: Vec<Function>,
    places: Directory<Operation>,
}

impl Functions {
    /// The place of `operation`'s function.
    #[inline]
    pub fn place<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        words: &Words,
        metadata: &Metadata,
        operation: Operation,
    ) -> usize {
        match self.places.get(operation.number.into(), operation) {
            Some(place) => place,
            None => self.add(writer, words, metadata, operation),
        }
    }

    #[cold]
    fn add<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        words: &Words,
        metadata: &Metadata,
        operation: Operation,
    ) -> usize {
        let place = self.list.len();
        let function = function(writer, words, metadata, operation, place as u32);
        self.list.push(function);
        self.places.insert(operation, place);
        place
    }

    /// The function at a place that [`Functions::place`] gave.
    #[inline]
    pub fn at(&self, place: usize) -> &Function {
        &self.list[place]
    }
}

fn function<W: Write>(
    writer: &mut TraceWriter<W>,
    words: &Words,
    metadata: &Metadata,
    operation: Operation,
    number: u32,
) -> Function {
    let name = metadata.operation(operation);
    let entry = metadata.operations.get(&operation);
    let group = entry.map_or(OperationGroup::OTHER, |entry| {
        OperationGroup(entry.group as u8)
    });
    let arguments = entry.map_or("", |entry| metadata.string(entry.arguments));
    let arguments = arguments
        .split(',')
        .filter_map(|argument| argument.split_once(':'));
    let arguments = arguments
        .filter_map(|(name, kind)| {
            Some((
                writer.name(name.trim())?,
                ArgumentType::from_name(kind.trim())?,
            ))
        })
        .collect();
    let category = operation
        .domain
        .name()
        .and_then(|domain| writer.name(domain));
    let category = category.unwrap_or(words.other);
    let label = OwnLabel::new(writer, &name);
    Function {
        number,
        heading: match label {
            OwnLabel::Name(name) => Heading::new(category, name),
            OwnLabel::Text(_) => None,
        },
        label,
        name: name.into(),
        category,
        domain: operation.domain,
        group,
        api: gpu_api(operation.domain),
        arguments,
    }
}

macro_rules! words {
    ($($name:ident = $text:literal,)*) => {
        /// Names that we give ourselves.
        #[derive(Debug)]
        pub(super) struct Words {
            $(pub $name: Name,)*
        }

        impl Words {
            /// To be called before any other name is given: these few always fit.
            pub fn new<W: Write>(writer: &mut TraceWriter<W>) -> Words {
                Words {
                    $($name: writer.name($text).expect("the first names fit"),)*
                }
            }
        }
    };
}

words! {
    other = "other",
    gputrail = "gputrail",
    overhead = "overhead",
    error = "error",
    external = "external_id",
    marker = "marker",
    domain = "domain",
    payload = "payload",
    color = "color",
    records_lost = "records lost",
    not_readable = "not readable",
    kind = "kind",
    count = "count",
    from = "from",
    to = "to",
    detail = "detail",
    recording = "recording",
    version = "version",
    host = "host",
    command = "command",
    configuration = "configuration",
    clock = "clock",
}
