//! Spans of tasks on an executor, and events: run it as `gputrail record -- spans`.

use std::time::Duration;
use tracing::{Instrument, info, info_span};
use tracing_subscriber::prelude::*;

fn main() {
    let layer = gputrail_tracing::layer().lifetimes(true).fields(true);
    tracing_subscriber::registry().with(layer).init();
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("an executor");
    executor.block_on(async {
        let request = |number: u64| async move {
            info_span!("parse").in_scope(|| info!(bytes = number * 100, "parsed"));
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        let spawn =
            |number| tokio::spawn(request(number).instrument(info_span!("request", number)));
        for task in (1..=3).map(spawn).collect::<Vec<_>>() {
            task.await.expect("no panic");
        }
    });
}
