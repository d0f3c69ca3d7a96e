//! Time-independent traces against the same program as an event table.

use opticoll::units::{Rate, Time};
use opticoll::workload::cost::Hockney;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::time_independent;

use crate::rows;

use super::{program_of, run};

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
