//! Rounds: each peer takes a turn in each round, so that disturbances of the machine affect all peers.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Number of spans in one turn of one thread: enough that the effects of a cold start hardly count.
pub const SPANS: u64 = 16_384;

/// A tracer that records spans.
pub trait Peer: Sync {
    fn name(&self) -> &str;

    /// Does the work that is needed once per thread on the calling thread, and fills caches as a turn does.
    fn prepare(&self) {
        self.spans(SPANS);
    }

    /// Records `count` spans, one after the other, on the calling thread: begin and end, each with its time.
    fn spans(&self, count: u64);

    /// Empties the buffers that a turn has filled, if the peer has no threads for that.
    fn settle(&self) {}

    /// A remark on the fate of `spans` recorded spans, such as that they were dropped.
    fn remark(&self, spans: u64) -> Option<String> {
        let _ = spans;
        None
    }
}

/// Number of spans that a peer records in a round: prepared and measured, by one thread and by two.
pub const SPANS_IN_A_ROUND: u64 = 6 * SPANS;

/// Nanoseconds per span: medians of all rounds.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub one_thread: f64,
    pub two_threads: f64,
}

/// Measures all of `peers` in alternation.
pub fn measure(peers: &[Box<dyn Peer>], rounds: usize) -> Vec<Measured> {
    let mut turns = vec![(Vec::new(), Vec::new()); peers.len()];
    for _ in 0..rounds {
        for (peer, (one, two)) in peers.iter().zip(&mut turns) {
            one.push(alone(&**peer));
            peer.settle();
            two.push(in_two_threads(&**peer));
            peer.settle();
        }
    }
    let measured = |(one, two): (Vec<f64>, Vec<f64>)| Measured {
        one_thread: median(one),
        two_threads: median(two),
    };
    turns.into_iter().map(measured).collect()
}

fn turn(peer: &dyn Peer) -> f64 {
    let start = Instant::now();
    peer.spans(SPANS);
    start.elapsed().as_nanos() as f64 / SPANS as f64
}

/// Measures one thread. It is a new thread, so that both measurements differ only in the number of threads.
fn alone(peer: &dyn Peer) -> f64 {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            peer.prepare();
            turn(peer)
        });
        worker.join().expect("a peer does not panic")
    })
}

/// Measures two threads at once: their mean.
fn in_two_threads(peer: &dyn Peer) -> f64 {
    let together = Barrier::new(2);
    let work = || {
        peer.prepare();
        together.wait();
        turn(peer)
    };
    thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        let times = workers.map(|worker| worker.join().expect("a peer does not panic"));
        times.iter().sum::<f64>() / 2.0
    })
}

fn median(mut turns: Vec<f64>) -> f64 {
    turns.sort_by(f64::total_cmp);
    turns[turns.len() / 2]
}
