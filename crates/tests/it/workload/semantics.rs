//! Times of small programs against times by hand from the stated semantics, in ns.

use opticoll::units::{Bytes, Rate, Time};
use opticoll::workload::cost::{Hockney, LogGp};
use opticoll::workload::error::{Place, TraceError};
use opticoll::workload::program::Program;
use opticoll::workload::replay::{Eager, EndCosts, ReplaySettings, replay};

use crate::{number, rows};

use super::{program_of, run, run_between};

/// Returns a model with L = 100 ns and 1 ns per byte.
fn hockney() -> Hockney {
    Hockney {
        latency: Time::from_ps(100_000),
        rate: Rate::from_bits_per_second(8_000_000_000).unwrap(),
    }
}

/// Returns the same model with ports and g = 30 ns.
fn loggp() -> LogGp {
    let Hockney { latency, rate } = hockney();
    let mut model = LogGp::new(3, latency, rate);
    model.gap = Time::from_ps(30_000);
    model
}

/// Returns costs without overhead; messages are eager up to a limit, or all are.
fn eager(limit: Option<u64>) -> EndCosts {
    EndCosts {
        eager: limit.map_or(Eager::All, |limit| Eager::UpTo(Bytes::new(limit))),
        ..EndCosts::default()
    }
}

/// Returns costs with o = 5 ns.
fn overhead() -> EndCosts {
    EndCosts {
        overhead: Time::from_ps(5_000),
        ..EndCosts::default()
    }
}

fn check(name: &str, program: &Program, expected_ns: [u64; 3]) {
    let times = [
        run(program, &mut hockney()).time,
        run_between(eager(Some(0)), program, &mut hockney()).time,
        run_between(overhead(), program, &mut loggp()).time,
    ];
    assert_eq!(
        times,
        expected_ns.map(|ns| Time::from_ps(ns * 1000)),
        "{name}"
    );
}

/// A name, ranks, the calls (separated by ` / `), and the ends in ns: eager, by rendezvous, and by
/// LogGP.
const ENDS: &str = "
# The sender is ready at 10, the receiver at 50: 10 + 100 + 20, 50 + 120, 5 + 10 + 120 + 5.
the receiver is late | 2 | 0,Send,1,20,0,0,0,,10 / 1,Recv,0,0,20,0,0,,50 | 130 | 170 | 140
# The message is there long before: the receive ends at once, or pays all.
the receiver is very late | 2 | 0,Send,1,20,0,0,0,,10 / 1,Recv,0,0,20,0,0,,1000
    | 1000 | 1120 | 1005
# Eager sends end at once, so the sender's work of 500 runs beside the message. By rendezvous it
# begins when the message has left, at 20. LogGP: after o.
work after a send | 2 | 0,Send,1,20,0,0,0,,0 / 0,Finalize,,0,0,,0,,500 / 1,Recv,0,0,20,0,0,,0
    | 500 | 520 | 505
# An immediate send by rendezvous lets the work begin, and its wait ends with it.
work between isend and wait | 2
    | 0,Isend,1,20,0,0,0,3,0 / 0,Wait,,0,0,,0,3,500 / 1,Recv,0,0,20,0,0,,0 | 500 | 500 | 505
# Without contention both are there at 120. Ports: left at 5 and 10 become 5 and 35 (g), heads
# at 105 and 135, streams of 20: 155, and o.
two messages of one sender | 2
    | 0,Send,1,20,0,0,0,,0 / 0,Send,1,20,0,1,0,,0 / 1,Irecv,0,0,20,0,0,0,0 / \
        1,Irecv,0,0,20,1,0,1,0 / 1,Waitall,,0,0,,0,,0
    | 120 | 140 | 160
# Two senders: heads at 105 for both, the receiver's port takes 30 for the first: 135 + 20 + 5.
two messages to one receiver | 3
    | 0,Send,2,20,0,0,0,,0 / 1,Send,2,20,0,0,0,,0 / 2,Irecv,0,0,20,0,0,0,0 / \
        2,Irecv,1,0,20,0,0,1,0 / 2,Waitall,,0,0,,0,,0
    | 120 | 120 | 160
# Same tag: in order, though the second is short. 1 byte after 300 sent at the same instant.
# Rendezvous: the first leaves at 300, is there at 400; then 1 byte: 501. LogGP: 5, 305 + 1 +
# 100 at the port: 405 + 1, and o twice: the first is received at 405 + 5, the second at 410 +
# 5.
messages of one tag keep their receives | 2
    | 0,Send,1,300,0,0,0,,0 / 0,Send,1,1,0,0,0,,0 / 1,Recv,0,0,300,0,0,,0 / 1,Recv,0,0,300,0,0,,0
    | 400 | 501 | 415
# One round: both send 8 at 10, arrive at 118 (LogGP: o before and after).
an all_reduce of two | 2 | 0,Allreduce,,8,8,,0,,10 / 1,Allreduce,,8,8,,0,,4 | 118 | 118 | 128
";

#[test]
fn messages_end_when_the_semantics_say() {
    for [name, ranks, text, times @ ..] in rows::<6>(ENDS) {
        let program = program_of(number(ranks), &text.replace(" / ", "\n")).unwrap();
        check(name, &program, times.map(number));
    }
}

/// Programs that deadlock at any costs, or only if sends wait for their receives.
#[test]
fn ranks_that_wait_for_one_another_are_named() {
    let send_first =
        "0,Send,1,8,0,0,0,,1\n0,Recv,1,0,8,0,0,,1\n1,Send,0,8,0,0,0,,1\n1,Recv,0,0,8,0,0,,1";
    let program = program_of(2, send_first).unwrap();
    assert_eq!(
        run_between(eager(Some(8)), &program, &mut hockney()).time,
        Time::from_ps(109_000)
    );
    let receive_first =
        "0,Recv,1,0,8,0,0,,1\n0,Send,1,8,0,0,0,,1\n1,Recv,0,0,8,0,0,,1\n1,Send,0,8,0,0,0,,1";
    let three = "0,Recv,2,0,8,0,0,,1\n0,Send,1,8,0,0,0,,1\n1,Recv,0,0,8,0,0,,1\n1,Send,2,8,0,0,0,\
                 ,1\n2,Recv,1,0,8,0,0,,1\n2,Send,0,8,0,0,0,,1";
    for (rows, ranks, limit) in [
        (send_first, 2, Some(7)),
        (receive_first, 2, None),
        (three, 3, None),
    ] {
        let program = program_of(ranks, rows).unwrap();
        let settings = ReplaySettings {
            ends: eager(limit),
            ..ReplaySettings::default()
        };
        let error = replay(&program, &mut hockney(), settings).unwrap_err();
        let TraceError::Deadlock { waiting, .. } = &error else {
            panic!("{error}");
        };
        let ranks_named: Vec<u32> = (0..ranks)
            .filter(|&rank| waiting.iter().any(|place| place.rank == rank))
            .collect();
        assert_eq!(ranks_named, (0..ranks).collect::<Vec<u32>>(), "{error}");
        let first = Place {
            rank: 0,
            event: 0,
            line: 3,
        };
        assert_eq!(waiting[0], first, "{error}");
    }
}

#[test]
fn a_rank_may_have_a_factor_of_its_own() {
    let program = program_of(2, "0,Send,1,8,0,0,0,,1\n1,Recv,0,0,8,0,0,,1").unwrap();
    let time = |rank, factor| {
        let settings = ReplaySettings {
            rank_factors: [(rank, factor)].into(),
            ..ReplaySettings::default()
        };
        replay(&program, &mut hockney(), settings).map(|replayed| replayed.time)
    };
    let traced = time(0, (1, 1)).unwrap();
    assert_eq!(time(0, (7, 2)).unwrap().ps() - traced.ps(), 2_500);
    let error = time(2, (1, 1)).unwrap_err();
    assert!(error.to_string().contains("rank 2 has a factor"), "{error}");
    assert!(time(1, (1, 0)).is_err());
}
