//! Rounds: everybody takes a turn in each, so that what happens on the machine meanwhile happens to all.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Spans in one turn of one thread: enough that what is cold at first hardly counts.
pub const SPANS: u64 = 16_384;

/// Somebody who records spans.
pub trait Peer: Sync {
    fn name(&self) -> &str;

    /// Does on the calling thread what is done once a thread, and fills caches as a turn does.
    fn prepare(&self) {
        self.spans(SPANS);
    }

    /// Records `count` spans, one after the other, on the calling thread: begin and end, each with its time.
    fn spans(&self, count: u64);

    /// Empties what a turn has filled, where that is not done by threads of its own.
    fn settle(&self) {}

    /// What became of `spans` recorded spans, where there is something to say: that they were dropped, say.
    fn remark(&self, spans: u64) -> Option<String> {
        let _ = spans;
        None
    }
}

/// Spans that a peer records in a round: prepared and measured, alone and in two threads.
pub const SPANS_IN_A_ROUND: u64 = 6 * SPANS;

/// Nanoseconds a span: medians of all rounds.
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

/// A thread of its own too, so that both ways differ in nothing but their number.
fn alone(peer: &dyn Peer) -> f64 {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            peer.prepare();
            turn(peer)
        });
        worker.join().expect("a peer does not panic")
    })
}

/// The mean of two threads at once.
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
