//! Errors in traces are reported with rank, event and line.

use super::program_of;
use crate::rows;
use opticoll::workload::csv;

/// Rows of a trace of two ranks, separated by ` / `, and the refusal. A blank
/// keeps a row that begins with `#` from being a remark.
const MALFORMED: &str = "
0,Send,1,8,0,5,0,,1 | rank 0, event 0 (line 3): no receive of rank 1 matches this send (tag 5)
1,Recv,0,0,8,5,0,,1
    | rank 1, event 0 (line 3): rank 0 sends no message that matches this receive (tag 5)
0,Send,1,8,0,5,0,,1 / 0,Send,1,8,0,5,0,,1 / 1,Recv,0,0,8,5,0,,1
    | rank 0, event 1 (line 4): no receive of rank 1 matches this send (tag 5)
0,Send,1,8,0,5,0,,1 / 1,Recv,0,0,7,5,0,,1
    | rank 1, event 0 (line 4): receives at most 7 bytes, but rank 0, event 0 (line 3) sends 8
0,Wait,,0,0,,0,4,1 | rank 0, event 0 (line 3): waits for request 4, which is not open
1,Irecv,0,0,8,5,0,2,1 / 1,Irecv,0,0,8,5,0,2,1
    | rank 1, event 1 (line 4): opens request 2, which rank 1, event 0 (line 3) opened and \
        nobody waited for
0,Barrier,,0,0,,0,,1 / 1,Barrier,,0,0,,0,,1 / 0,Barrier,,0,0,,0,,1
    | rank 0, event 1 (line 5): enters a barrier on communicator 0 that rank 1 never enters
0,Barrier,,0,0,,0,,1 / 1,Allreduce,,8,8,,0,,1
    | rank 1, event 0 (line 4): enters all_reduce of 8 bytes on communicator 0 where rank 0, \
        event 0 (line 3) enters barrier of 0 bytes
0,Bcast,0,8,0,,0,,1 / 1,Bcast,1,8,0,,0,,1
    | rank 1, event 0 (line 4): enters broadcast with root 1 of 8 bytes on communicator 0 where \
        rank 0, event 0 (line 3) enters broadcast with root 0 of 8 bytes
0,Barrier,,0,0,,7,,1 | rank 0, event 0 (line 3): communicator 7 is not declared
 # comm 1 = 1 / 0,Barrier,,0,0,,1,,1
    | rank 0, event 0 (line 4): the rank is not a member of communicator 1
0,Send,9,8,0,5,0,,1 | rank 0, event 0 (line 3): there is no rank 9; ranks are 0 to 1
2,Init,,0,0,,0,,0 | line 3: there is no rank 2; ranks are 0 to 1
0,Init,,0,0,,0,,-1
    | line 3: `-1` is not a number of nanoseconds: a whole number that is not negative
0,Init,,0,0 | line 3: the row ends before column `tag`
0,Dance,,0,0,,0,,0
    | line 3: unknown call `Dance`; known are Init, Finalize, Comm_split, Comm_dup, Send, Isend, \
        Recv, Irecv, Wait, Waitall, Barrier, Bcast, Reduce, Allreduce, Gather, Scatter, \
        Allgather, Reduce_scatter, Alltoall, Alltoallv, Gatherv, Scatterv, Allgatherv
0,Recv,1,,8,,0,,0 | line 3: column `send_bytes` is empty; it needs a number, such as 0
0,Send,,8,0,,0,,0 | line 3: Send needs a peer
0,Alltoallv,,8,8,,0,,0 | line 3: the text ends before the sizes of an Alltoallv
 | line 2: the text ends before the first call
0,Init,,0,0,,0,,18446744073709551615 | line 3: the local work exceeds 64 bits of picoseconds
 # comm 1 = 0 5 / 0,Init,,0,0,,0,,0
    | line 4: communicator 1: its members must be different ranks from 0 to 1
";

#[test]
fn a_wrong_trace_is_refused_with_its_place() {
    for [text, expected] in rows(MALFORMED) {
        let text = text.trim_start().replace(" / ", "\n");
        assert_eq!(program_of(2, &text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_table_says_how_many_ranks_and_which_columns_it_has() {
    let header = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns";
    let cases = [
        (
            "rank,call\n".to_owned(),
            "line 1: the first row names the columns; `peer` is missing",
        ),
        (
            format!("{header}\n0,Init,,0,0,,0,,0"),
            "line 2: `# app=NAME ranks=N` is missing before the first row",
        ),
        (
            format!("# ranks=4000000000\n{header}\n0,Init,,0,0,,0,,0"),
            "line 3: a trace has 1 to 1048576 ranks, not 4000000000",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(csv::read(&text).unwrap_err().to_string(), expected);
    }
}
