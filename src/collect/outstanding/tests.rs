//! Work that is enqueued, completes, and is asked after.

use super::*;

type Slots = Outstanding<()>;

fn work(number: u64) -> OutstandingWork {
    OutstandingWork {
        key: number << 4,
        work: WorkId(number),
        correlation: CorrelationId(number),
        agent: AgentId(1),
        window: (Ticks(number), Ticks(number + 1)),
        buffers: Buffers(1),
    }
}

/// Takes a slot, of which the callback is set and has not come.
fn take(outstanding: &Slots, work: OutstandingWork) -> Option<Ticket> {
    let own = outstanding.of_thread(0);
    let taken = outstanding.take(work, own)?;
    let ticket = taken.ticket;
    assert!(outstanding.publish(taken, own).is_none());
    Some(ticket)
}

fn open() -> Slots {
    let outstanding = Outstanding::new([const { OfThread::new(()) }; THREADS]);
    outstanding.open().unwrap();
    outstanding
}

#[test]
fn a_callback_that_comes_after_the_sweep_finds_nothing_to_do() {
    let outstanding = open();
    let ticket = take(&outstanding, work(1)).unwrap();
    outstanding.sweep(|_| true, |claim| outstanding.free(claim, None));
    assert!(outstanding.claim(ticket).is_none());
    let again = take(&outstanding, work(2)).unwrap();
    assert_eq!(again.index(), ticket.index());
    assert!(outstanding.claim(ticket).is_none());
    assert_eq!(outstanding.claim(again).unwrap().work(), work(2));
}

#[test]
fn a_callback_that_comes_while_it_is_set_has_the_slot_on_that_thread_alone() {
    let outstanding = open();
    let (own, other) = (outstanding.of_thread(3), outstanding.of_thread(4));
    let taken = outstanding.take(work(1), own).unwrap();
    let ticket = taken.ticket;
    // A sweep leaves it alone.
    outstanding.sweep(|_| panic!("not asked after"), |_| ());
    assert!(outstanding.claim_in_enqueue(ticket, other).is_none());
    let claim = outstanding.claim_in_enqueue(ticket, own).unwrap();
    assert_eq!(claim.work(), work(1));
    outstanding.free(claim, Some(own));
    assert!(outstanding.publish(taken, own).is_none());
    assert_eq!(outstanding.len(), 0);
}

#[test]
fn a_callback_that_comes_elsewhere_meanwhile_leaves_the_work_to_who_sets_it() {
    let outstanding = open();
    let own = outstanding.of_thread(3);
    let taken = outstanding.take(work(1), own).unwrap();
    let ticket = taken.ticket;
    assert!(outstanding.claim(ticket).is_none());
    let claim = outstanding.publish(taken, own).unwrap();
    assert_eq!(claim.work(), work(1));
    outstanding.free(claim, None);
    assert!(outstanding.claim(ticket).is_none());
}

#[test]
fn a_callback_during_a_sweep_leaves_the_work_to_the_sweep() {
    let outstanding = open();
    let ticket = take(&outstanding, work(1)).unwrap();
    let mut done = 0;
    outstanding.sweep(
        |_| {
            assert!(outstanding.claim(ticket).is_none());
            false
        },
        |claim| {
            done += 1;
            outstanding.free(claim, None);
        },
    );
    assert_eq!((done, outstanding.len()), (1, 0));
}

#[test]
fn work_that_has_not_completed_stays_for_its_callback() {
    let outstanding = open();
    let ticket = take(&outstanding, work(1)).unwrap();
    outstanding.sweep(|_| false, |_| unreachable!());
    assert_eq!(outstanding.with_key(work(1).key), 1);
    assert!(outstanding.claim(ticket).is_some());
}

#[test]
fn parked_times_are_written_later_and_once() {
    let outstanding = open();
    let ticket = take(&outstanding, work(9)).unwrap();
    let mut completion = Completion::blank();
    (completion.work, completion.correlation, completion.agent) =
        (WorkId(9), CorrelationId(9), AgentId(1));
    (completion.start, completion.end, completion.status) = (DeviceTime(5), DeviceTime(6), -3);
    completion.header = completion_header(completion.status, completion.unfinished);
    outstanding.park(outstanding.claim(ticket).unwrap(), Buffers(2), &completion);
    assert!(outstanding.any_parked());
    let mut written = vec![];
    outstanding.unpark(|buffers, completion| {
        assert_eq!(buffers, Buffers(2));
        written.push(completion);
    });
    outstanding.unpark(|_, _| unreachable!());
    assert_eq!(written, [completion]);
    assert_eq!(outstanding.len(), 0);
}

#[test]
fn a_full_slab_says_so() {
    let outstanding = open();
    let tickets: Vec<_> = (0..CAPACITY as u64)
        .map(|number| take(&outstanding, work(number)).unwrap())
        .collect();
    assert!(take(&outstanding, work(0)).is_none());
    outstanding.free(outstanding.claim(tickets[7]).unwrap(), None);
    assert_eq!(take(&outstanding, work(0)).unwrap().index(), 7);
    assert!(take(&outstanding, work(0)).is_none());
}

#[test]
fn threads_share_the_slots_without_meeting_in_one() {
    let outstanding = open();
    std::thread::scope(|scope| {
        for thread in 1..=3u64 {
            let outstanding = &outstanding;
            scope.spawn(move || {
                for round in 0..5_000 {
                    let one = work(thread << 32 | round << 1);
                    let two = work(thread << 32 | round << 1 | 1);
                    let tickets = [
                        take(outstanding, one).unwrap(),
                        take(outstanding, two).unwrap(),
                    ];
                    for (ticket, expected) in tickets.into_iter().zip([one, two]) {
                        let claim = outstanding.claim(ticket).unwrap();
                        assert_eq!(claim.work(), expected);
                        outstanding.free(claim, None);
                    }
                }
            });
        }
    });
    assert!(outstanding.fresh.load(Ordering::Relaxed) <= 6);
}
