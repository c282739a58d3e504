//! The switchboard of a process: which consumers want which records and callbacks.
//!
//! On the hot path, sources find the interest in an operation or a kind of record with one load ([`Interest`],
//! [`Buffers`]). Consumers are buffers, which receive records, and subscribers, which are called back. The services of
//! contexts ([`crate::context`]) define what they want; starting, stopping or changing a service computes the
//! table again, under a lock that the hot path never takes.
//!
//! A switchboard is never freed, since threads refer to it.
//!
//! `board` has the switchboard, which holds what most other files define. `contexts`, `agents` and `subscriber` act on it.

mod agents;
mod arguments;
mod board;
mod callback;
mod changes;
mod contexts;
mod external;
mod flush;
mod interest;
mod keys;
mod narrowed;
mod retirement;
mod selection;
mod services;
mod slow;
mod standing;
mod subscriber;
mod subscription;
#[cfg(test)]
mod tests;
mod thread;
mod user_data;

pub use arguments::{ArgumentInfo, CallArgument, CallArguments};
pub use board::Switchboard;
pub use callback::{CallbackArguments, Payload};
pub use external::{ContextSet, ExternalContexts, ExternalScope, ExternalStacks, Pushed};
pub use flush::Flush;
pub use interest::{BUFFERS, Buffers, Interest, Observed, SUBSCRIBERS};
pub(crate) use interest::{SubscriberSet, WantedTable};
pub use keys::TooMany;
pub(crate) use keys::{BufferKey, CONTEXTS, ContextKey, ServiceConsumer};
pub(crate) use narrowed::OF_CONTEXTS;
pub use selection::{KindSet, OperationSet, RecordSelection};
pub(crate) use services::ServiceError;
pub(crate) use slow::SlowCalls;
pub(crate) use standing::ForAll;
pub(crate) use subscriber::ExternalIds;
pub(crate) use subscription::SubscriberKey;
pub use thread::ThreadState;
pub use user_data::ReportedPart;
pub(crate) use user_data::UserData;
