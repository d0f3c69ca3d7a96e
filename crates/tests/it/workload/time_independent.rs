//! Time-independent traces against the same program as an event table.

use opticoll::units::{Rate, Time};
use opticoll::workload::cost::Hockney;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::time_independent;

use crate::rows;

use super::{program_of, run};
use opticoll::workload::program::Program;

#[test]
fn a_time_independent_trace_is_the_same_program_as_its_table() {
    // 1000 operations per microsecond; 3 of the all_reduce's operations come before what follows
    // it.
    let text = "0 init\n1 init\n0 compute 5000\n1 compute 2.5e3\n0 isend 1 7 10 0\n1 irecv 0 7 \
                10 0\n\
        0 wait 0 1 7\n1 wait 0 1 7\n0 allreduce 4 3000 1\n1 allreduce 4 3000 1\n0 alltoall 6 6\n\
        1 alltoall 6 6\n\
        0 bcast 9 1 6\n1 bcast 9 1 6\n0 send 1 1 5\n1 recv 0 1 -1\n0 finalize\n1 finalize\n";
    let rows: String = [0, 1]
        .map(|rank| {
            let (work, first, last) = match rank {
                0 => (5000, "Isend,1,80,0", "Send,1,5,0,1,0,,0"),
                _ => (2500, "Irecv,0,0,80", "Recv,0,0,5,1,0,,0"),
            };
            format!(
                "{rank},Init,,0,0,,0,,{work}\n{rank},{first},7,0,0,0\n{rank},Wait,,0,0,,0,0,0\n\
                 {rank},Allreduce,,16,16,,0,,0\n{rank},Alltoall,,12,12,,0,,3000\n{rank},Bcast,1,\
                 9,9,,0,,0\n\
                 {rank},{last}\n"
            )
        })
        .concat();
    let trace = time_independent::read(text, 1_000_000_000).unwrap();
    let programs = [
        expand(&trace, &Algorithms::default()).unwrap(),
        program_of(2, &rows).unwrap(),
    ];
    let found = programs.map(|program| {
        let mut model = Hockney {
            latency: Time::from_ps(1_000_000),
            rate: Rate::from_bits_per_second(8_000_000_000).unwrap(),
        };
        let replayed = run(&program, &mut model);
        (
            replayed.time,
            replayed.messages,
            replayed.bytes,
            replayed.ranks.compute,
        )
    });
    assert_eq!(found[0], found[1]);
    assert_eq!((found[0].1, found[0].2), (7, 80 + 2 * 16 + 2 * 6 + 9 + 5));
}

/// Returns time in picoseconds, messages, bytes and work of a program on links of 1 GB/s and 1 us.
fn replayed(program: &Program) -> (u64, u64, u64, Vec<u64>) {
    let mut model = Hockney {
        latency: Time::from_ps(1_000_000),
        rate: Rate::from_bits_per_second(8_000_000_000).unwrap(),
    };
    let replayed = run(program, &mut model);
    let work = replayed.ranks.compute.iter().map(|time| time.ps());
    (
        replayed.time.ps(),
        replayed.messages,
        replayed.bytes,
        work.collect(),
    )
}

fn of_actions(text: &str) -> Program {
    let trace = time_independent::read(&text.replace(" / ", "\n"), 1_000_000_000).unwrap();
    expand(&trace, &Algorithms::default()).unwrap()
}

#[test]
fn collectives_of_different_blocks_are_those_of_the_table() {
    let cases = [
        // Blocks to each rank; the sums are those of the rows of the table.
        (
            "0 alltoallv 100 1 40 30 1000 1 80 100 / 1 alltoallv 1000 80 1 40 1000 40 1 30 / \
             2 allToAllV 1000 100 30 1 1000 30 40 1",
            "0,Alltoallv,,71,181,,0,,0\n# v 1 40 30\n1,Alltoallv,,121,71,,0,,0\n# v 80 1 40\n\
             2,Alltoallv,,131,71,,0,,0\n# v 100 30 1",
            40 + 30 + 80 + 40 + 100 + 30,
        ),
        // Each block comes to two other ranks once, in elements of 4 bytes.
        (
            "0 allgatherv 5 5 7 0 1 / 1 allgatherv 7 5 7 0 1 / 2 allgatherv 0 5 7 0 1",
            "0,Allgatherv,,20,48,,0,,0\n1,Allgatherv,,28,48,,0,,0\n2,Allgatherv,,0,48,,0,,0",
            2 * 4 * (5 + 7),
        ),
    ];
    for (actions, table, bytes) in cases {
        let found = replayed(&of_actions(actions));
        assert_eq!(found, replayed(&program_of(3, table).unwrap()));
        assert_eq!(found.2, bytes);
    }
}

#[test]
fn blocks_of_two_ranks_cross_once() {
    // The elements of gatherv and scatterv are doubles for rank 0, which says so (`init 1`).
    for (actions, messages, bytes) in [
        ("0 gatherv 3 3 9 0 / 1 gatherv 9 0 0 0 6 6", 1, 9),
        ("0 gatherv 3 0 0 1 2 2 / 1 gatherv 9 3 9 1 2 2", 1, 3),
        ("0 scatterv 5 8 5 0 0 0 / 1 scatterv 0 0 8 0 0 0", 1, 64),
        ("0 scatterv 0 0 5 1 6 3 / 1 scatterv 5 8 8 1 6 3", 1, 10),
        (
            "0 reducescatter 3 5 1000 6 / 1 reducescatter 3 5 1000 6",
            2,
            8,
        ),
    ] {
        let found = replayed(&of_actions(actions));
        assert_eq!((found.1, found.2), (messages, bytes), "{actions}");
    }
}

#[test]
fn operations_and_seconds_become_work() {
    let found = replayed(&of_actions(
        "0 init / 1 init / 0 sleep 0.5 / 0 reducescatter 1 1 3000 / 1 reduceScatter 1 1 3000 / \
         0 location main.c 7 / 0 finalize / 1 finalize",
    ));
    assert_eq!(found.3, [500_003_000_000, 3_000_000]);
}

#[test]
fn a_scan_is_recursive_doubling() {
    // Steps of distance 1, 2 and 4 have 4, 3 and 1 messages. A message takes 2 us; rank 2 gets the
    // value of rank 1 first, and sends the sum to rank 4 then.
    for name in ["scan", "exscan"] {
        let lines = (0..5).map(|rank| format!("{rank} {name} 1000 0\n"));
        let found = replayed(&of_actions(&lines.collect::<String>()));
        assert_eq!(found, (4_000_000, 8, 8000, vec![0; 5]));
    }
}

#[test]
fn both_messages_of_a_send_and_receive_go_at_once() {
    let lines = (0..3).map(|rank| {
        let (to, from) = ((rank + 1) % 3, (rank + 2) % 3);
        format!("{rank} sendRecv 250 {to} 250 {from} 1 1\n")
    });
    let found = replayed(&of_actions(&lines.collect::<String>()));
    assert_eq!(found, (2_000_000, 3, 3000, vec![0; 3]));
}

/// Actions, separated by ` / `, and the refusal.
const REFUSED: &str = "
 | line 1: the text has no action
x init | line 1: `x` is not a rank below 1048576
0 dance | line 1: unknown action `dance`
0 | line 1: an action has a name
0 init / 0 compute | line 2: `compute` needs 1 arguments or more
0 compute -3 | line 1: `-3` is not a number of at least 0
0 send 4 0 8 | line 1: there is no rank 4; ranks are 0 to 0
0 recv -1 0 8 | line 1: `-1` is not a whole number; any rank or tag is not supported
0 wait 0 0 3 | line 1: no request from 0 to 0 with tag 3 is open
0 alltoallv 1 | line 1: `alltoallv` needs 2 arguments or more
0 init / 1 alltoallv 1 2 | line 2: `alltoallv` needs 3 arguments or more
0 reducescatter 1 | line 1: `reducescatter` needs 2 arguments or more
0 sendRecv 1 1 1 0 | line 1: there is no rank 1; ranks are 0 to 0
0 bcast 1.5 | line 1: `1.5` is not a whole number of elements below 2^53
0 bcast 2 0 9 | line 1: `9` is not a type from 0 to 6
0 compute 1e30 | line 1: the work exceeds 64 bits of picoseconds; state the operations per second
";

#[test]
fn actions_that_cannot_be_read_are_refused_with_their_line() {
    for [text, expected] in rows(REFUSED) {
        let refused = time_independent::read(&text.replace(" / ", "\n"), 1_000_000_000);
        assert_eq!(refused.unwrap_err().to_string(), expected);
    }
}
