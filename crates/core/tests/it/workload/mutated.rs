//! Traces with bytes changed, lost and doubled: readers refuse them or read them, and never panic; what
//! is read is replayed to an end or refused.

use opticoll::workload::cost::Zero;
use opticoll::workload::error::TraceError;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::program::Program;
use opticoll::workload::replay::{Settings, replay};
use opticoll::workload::{csv, goal_text, time_independent};
use proptest::prelude::*;

const TABLE: &str = "\
# app=test ranks=4
# comm 1 = 0 2
rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns
0,Init,,0,0,,0,,0
0,Isend,1,8,0,3,0,1,100
1,Irecv,0,0,8,3,0,2,7
0,Wait,,0,0,,0,1,5
1,Waitall,,0,0,,0,,5
0,Send,2,16,0,1,1,,9
2,Recv,0,0,16,1,1,,9
0,Allreduce,,80,80,,1,,10
2,Allreduce,,80,80,,1,,11
0,Alltoallv,,12,12,,1,,1
# v 5 7
2,Alltoallv,,12,12,,1,,1
# v 3 9
0,Bcast,3,0,24,,0,,1
1,Bcast,3,0,24,,0,,1
2,Bcast,3,0,24,,0,,1
3,Bcast,3,24,0,,0,,1
";

const GOAL: &str = "\
num_ranks 2
rank 0 {
  l1: calc 100 cpu 1
  l2: send 10b to 1 tag 7 nic 2 /* a
  comment */
  l2 requires l1
}
rank 1 {
  l1: recv 10b from 0 tag 7 // another
  l2: calc 5
  l2 irequires l1
}
";

const ACTIONS: &str = "\
0 init 1
1 init 1
0 compute 1e6
0 isend 1 5 100 0
1 irecv 0 5 100 0
0 wait 0 1 5
1 wait 0 1 5
0 allreduce 10 20 0
1 allreduce 10 20 0
0 bcast 4 1 2
1 bcast 4 1 2
0 waitall
0 finalize
1 finalize
";

/// A change: where, and what with the bytes there.
type Change = (prop::sample::Index, u8, u8);

fn changed(text: &str, changes: &[Change]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (place, kind, byte) in changes {
        if bytes.is_empty() {
            break;
        }
        let place = place.index(bytes.len());
        let line = |bytes: &[u8]| {
            let end = |byte: &u8| *byte == b'\n';
            let start = bytes[..place].iter().rposition(end).map_or(0, |at| at + 1);
            let length = bytes[place..].iter().position(end);
            (
                start,
                length.map_or(bytes.len(), |length| place + length + 1),
            )
        };
        // Bytes that mean something to a reader are likelier than others.
        let meaning = b"0123456789-,:# \n{}/*abrel";
        let byte = meaning[usize::from(*byte) % meaning.len()];
        match kind % 6 {
            0 => bytes[place] = byte,
            1 => bytes.insert(place, byte),
            2 => _ = bytes.remove(place),
            3 => bytes.truncate(place),
            4 => {
                let (start, end) = line(&bytes);
                bytes.drain(start..end);
            }
            _ => {
                let (start, end) = line(&bytes);
                let copy = bytes[start..end].to_vec();
                bytes.splice(start..start, copy);
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn finishes(program: Result<Program, TraceError>) -> Result<(), TestCaseError> {
    let replayed = program.and_then(|program| replay(&program, &mut Zero, Settings::default()));
    if let Err(error) = replayed {
        let said = error.to_string();
        prop_assert!(!said.is_empty() && !said.contains('\n'), "{}", said);
    }
    Ok(())
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec(
        (any::<prop::sample::Index>(), any::<u8>(), any::<u8>()),
        0..4,
    )
}

#[test]
fn what_is_changed_here_is_whole() {
    let table = csv::read(TABLE).unwrap();
    let actions = time_independent::read(ACTIONS, 1_000_000_000).unwrap();
    for trace in [table, actions] {
        let program = expand(&trace, &Algorithms::default()).unwrap();
        replay(&program, &mut Zero, Settings::default()).unwrap();
    }
    replay(
        &goal_text::read(GOAL).unwrap(),
        &mut Zero,
        Settings::default(),
    )
    .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_changed_table_is_read_or_refused(changes in changes()) {
        let text = changed(TABLE, &changes);
        finishes(csv::read(&text).and_then(|trace| expand(&trace, &Algorithms::default())))?;
    }

    #[test]
    fn changed_goal_is_read_or_refused(changes in changes()) {
        finishes(goal_text::read(&changed(GOAL, &changes)))?;
    }

    #[test]
    fn changed_actions_are_read_or_refused(changes in changes()) {
        let read = time_independent::read(&changed(ACTIONS, &changes), 1_000_000_000);
        finishes(read.and_then(|trace| expand(&trace, &Algorithms::default())))?;
    }
}
