//! The peers, each used as its documentation says, and recording: none is measured while it is disabled.

use crate::Outcome;
use crate::rounds::{Peer, SPANS};
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::prelude::{LocalSpan, Span};
use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::*;
use perfetto_sdk::{track_event_begin, track_event_categories, track_event_end};
use rtrb::{Consumer, Producer as RingProducer, RingBuffer};
use std::cell::RefCell;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing_perfetto::PerfettoLayer;
use tracing_subscriber::layer::SubscriberExt;
use tracy_client::{Client, span_location};

/// All peers except gputrail and LTTng.
pub fn all() -> Outcome<Vec<Box<dyn Peer>>> {
    Ok(vec![
        Box::new(Ring),
        Box::new(Tracy(Client::start())),
        Box::new(Fastrace::start()),
        Box::new(Perfetto::start()?),
        Box::new(Tracing::start()?),
    ])
}

/// The lower bound: 64 bytes with a tick, written to a ring that nobody empties meanwhile.
struct Ring;

type Event = [u64; 8];

thread_local! {
    static RING: RefCell<Option<(RingProducer<Event>, Consumer<Event>)>> = const { RefCell::new(None) };
}

impl Ring {
    fn push(call: u64) {
        RING.with_borrow_mut(|ring| {
            if let Some((producer, _)) = ring {
                let time = gputrail_buffer::clock::now().0;
                black_box(producer.push([time, call, 0, 0, 0, 0, 0, 0]).is_ok());
            }
        });
    }
}

impl Peer for Ring {
    fn name(&self) -> &str {
        "tick and rtrb push of 64 bytes, twice"
    }

    /// Creates a ring for the thread, with its pages in place.
    fn prepare(&self) {
        let (mut producer, mut consumer) = RingBuffer::new(4 * SPANS as usize);
        while producer.push([0; 8]).is_ok() {}
        while consumer.pop().is_ok() {}
        RING.set(Some((producer, consumer)));
    }

    fn spans(&self, count: u64) {
        for call in 0..count {
            Ring::push(call);
            Ring::push(call);
        }
    }
}

/// Tracy without a viewer: its records stay in memory.
struct Tracy(Client);

impl Peer for Tracy {
    fn name(&self) -> &str {
        "Tracy (tracy-client 0.19)"
    }

    fn spans(&self, count: u64) {
        for _ in 0..count {
            let span = self.0.clone().span(span_location!("call"), 0);
            black_box(&span);
        }
    }
}

/// fastrace, with a reporter that discards its spans.
struct Fastrace;

struct Forget;

/// Number of spans that fastrace has reported.
static REPORTED: AtomicU64 = AtomicU64::new(0);

impl Reporter for Forget {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        REPORTED.fetch_add(spans.len() as u64, Ordering::Relaxed);
    }
}

impl Fastrace {
    fn start() -> Fastrace {
        fastrace::set_reporter(Forget, Config::default());
        Fastrace
    }
}

impl Peer for Fastrace {
    fn name(&self) -> &str {
        "fastrace 0.7"
    }

    /// Spans need a root span, below which at most 10 240 are kept.
    fn spans(&self, count: u64) {
        let mut left = count;
        while left > 0 {
            let some = left.min(4096);
            let root = Span::root("some", SpanContext::random());
            let _parent = root.set_local_parent();
            for _ in 0..some {
                let span = LocalSpan::enter_with_local_parent("call");
                black_box(&span);
            }
            left -= some;
        }
    }

    fn settle(&self) {
        fastrace::flush();
    }

    fn remark(&self, spans: u64) -> Option<String> {
        let missing = spans.saturating_sub(REPORTED.load(Ordering::Relaxed));
        (missing > 0).then(|| format!("{missing} of {spans} spans were not reported"))
    }
}

track_event_categories! {
    pub mod categories {
        ("call", "Calls", []),
    }
}
use categories as perfetto_te_ns;

/// Perfetto's SDK, with a session in the process that keeps the latest 64 MiB.
struct Perfetto(#[allow(dead_code)] Mutex<Session>);

struct Session(#[allow(dead_code)] TracingSession);

// SAFETY: the session is only kept, and ended by whoever drops it.
unsafe impl Send for Session {}

impl Perfetto {
    fn start() -> Outcome<Perfetto> {
        Producer::init(
            ProducerInitArgsBuilder::new()
                .backends(Backends::IN_PROCESS)
                .build(),
        );
        TrackEvent::init();
        perfetto_te_ns::register()?;
        let mut session = TracingSession::in_process()?;
        session.setup(&Perfetto::configuration());
        session.start_blocking();
        Ok(Perfetto(Mutex::new(Session(session))))
    }

    fn configuration() -> Vec<u8> {
        let writer = PbMsgWriter::new();
        let buffer = HeapBuffer::new(writer.stream_writer());
        let mut message = PbMsg::new(&writer).expect("a first message");
        {
            let mut trace = TraceConfig { msg: &mut message };
            trace.set_buffers(|buffers: &mut TraceConfigBufferConfig| {
                buffers.set_size_kb(64 << 10);
            });
            trace.set_data_sources(|sources: &mut TraceConfigDataSource| {
                sources.set_config(|source: &mut DataSourceConfig| {
                    source.set_name("track_event");
                    source.set_track_event_config(|events: &mut TrackEventConfig| {
                        events.set_enabled_categories("call");
                    });
                });
            });
        }
        message.finalize();
        let mut bytes = vec![0; writer.stream_writer().get_written_size()];
        buffer.copy_into(&mut bytes);
        bytes
    }
}

impl Peer for Perfetto {
    fn name(&self) -> &str {
        "perfetto-sdk 1.2"
    }

    fn spans(&self, count: u64) {
        for _ in 0..count {
            track_event_begin!("call", "call");
            track_event_end!("call");
        }
    }
}

/// tracing, with the layer that writes Perfetto's packets, to an output that discards them.
struct Tracing;

impl Tracing {
    fn start() -> Outcome<Tracing> {
        let layer = PerfettoLayer::new(std::io::sink as fn() -> std::io::Sink);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
        Ok(Tracing)
    }
}

impl Peer for Tracing {
    fn name(&self) -> &str {
        "tracing 0.1 with tracing-perfetto 0.1"
    }

    fn spans(&self, count: u64) {
        for _ in 0..count {
            let span = tracing::info_span!("call").entered();
            black_box(&span);
        }
    }
}
