//! GOAL programs against the semantics of GOAL.

use opticoll::units::{Rate, Time};
use opticoll::workload::cost::{Hockney, LogGp, Zero};
use opticoll::workload::goal_text;

use super::run;
use crate::rows;

/// A node: kind (1 send, 2 receive, 3 work), peer, amount, tag, processor; whose end and whose
/// begin it waits for.
type Statement = ((u8, u32, u64, u32, u8), &'static [u32], &'static [u32]);

/// Ranks 0 and 1 exchange; rank 0 works on two processors meanwhile.
const EXAMPLE: &[&[Statement]] = &[
    &[
        ((3, 0, 50, 0, 0), &[], &[]),
        ((1, 1, 10, 7, 0), &[0], &[]),
        ((2, 1, 20, 8, 0), &[], &[1]),
        ((3, 0, 500, 0, 1), &[0], &[]),
        ((3, 0, 30, 0, 0), &[2], &[1]),
    ],
    &[
        ((2, 0, 10, 7, 0), &[], &[]),
        ((3, 0, 100, 0, 0), &[0], &[]),
        ((1, 0, 20, 8, 0), &[1], &[]),
    ],
    &[],
];

fn as_text(ranks: &[&[Statement]]) -> String {
    let mut text = format!("// made by hand\nnum_ranks {}\n", ranks.len());
    for (rank, statements) in ranks.iter().enumerate() {
        text += &format!("rank {rank} {{ /* statements,\n then */ // dependencies\n");
        for (index, ((kind, peer, amount, tag, processor), ..)) in statements.iter().enumerate() {
            text += &match kind {
                1 => format!("l{index}: send {amount}b to {peer} tag {tag} cpu {processor}\n"),
                2 => format!(
                    "l{index}: recv {amount}b from {peer} tag {tag} cpu {processor} nic 3\n"
                ),
                _ => format!("l{index}: calc {amount} cpu {processor}\n"),
            };
        }
        for (index, (_, requires, follows)) in statements.iter().enumerate() {
            for earlier in *requires {
                text += &format!("l{index} requires l{earlier}\n");
            }
            for earlier in *follows {
                text += &format!("l{index} irequires l{earlier}\n\n");
            }
        }
        text += "}\n";
    }
    text
}

#[test]
fn work_and_messages_wait_for_what_they_require() {
    let program = goal_text::read(&as_text(EXAMPLE)).unwrap();
    assert_eq!(program.dependencies(), 7);
    assert_eq!(program.messages(), (2, 30));
    let mut model = Hockney {
        latency: Time::from_ps(100_000),
        rate: Rate::from_bits_per_second(8_000_000_000).unwrap(),
    };
    // 50, the work of processor 1 until 550. With messages: sent at 50, there at 160, answered at
    // 260, there at 380, and 30 more; so processor 1 ends last.
    let times = [
        run(&program, &mut Zero).time,
        run(&program, &mut model).time,
    ];
    assert_eq!(times, [550, 550].map(|ns| Time::from_ps(ns * 1000)));
    let finish = run(&program, &mut model).ranks.finish;
    assert_eq!(finish, [550, 260, 0].map(|ns| Time::from_ps(ns * 1000)));
    let last = run(&program, &mut model).timeline;
    let work = last.event.iter().zip(&last.end).zip(&last.rank);
    let ended: Vec<u64> = work
        .filter(|((event, _), rank)| **event == 4 && **rank == 0)
        .map(|((_, end), _)| end.ps())
        .collect();
    assert_eq!(ended, [410_000]);
}

/// Lines of a text, separated by ` / `, and the refusal.
const NO_GOAL: &str = "
rank 0 { / }
    | line 1: ranks must be in order, each as `rank R { ... }`, after `num_ranks N`; the next rank is 0
num_ranks 0 | line 1: `num_ranks` occurs once, with 1 to 1048576 ranks
num_ranks 1 / rank 0 { / l1: calc 5 | line 3: the text ends within rank 1 of 1
num_ranks 1 / rank 0 { / l1: calc -5 / } | line 3: `-5` is not a time in nanoseconds
num_ranks 1 / rank 0 { / l1: dance 5 / } | line 3: `dance` is not calc, send or recv
num_ranks 1 / rank 0 { / l1: send 5 to 0 / } | line 3: `` is not a size such as `10b`
num_ranks 1 / rank 0 { / l1 requires l2 / } | line 3: label `l1` is not defined above
num_ranks 1 / rank 0 { / l1: calc 1 / l1: calc 1 / } | line 4: label `l1` is defined twice
num_ranks 1 / rank 0 { / l1: calc 1 / l1 requires l1 / }
    | line 4: a statement cannot wait for itself
num_ranks 2 / rank 1 { / }
    | line 2: ranks must be in order, each as `rank R { ... }`, after `num_ranks N`; the next rank is 0
num_ranks 1 / rank 0 { / recv 1b from -1 tag 2 / }
    | rank 0, event 0 (line 3): a receive from any rank or of any tag is not supported: \
        trace the rank and the tag that it received
num_ranks 1 / rank 0 { / send 1b to 4 / }
    | rank 0, event 0 (line 3): there is no rank 4; ranks are 0 to 0
";

#[test]
fn text_that_is_no_goal_is_refused_with_its_line() {
    for [text, expected] in rows(NO_GOAL) {
        let text = text.replace(" / ", "\n");
        assert_eq!(goal_text::read(&text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn interfaces_send_and_receive_side_by_side() {
    // A message of 1000 bytes takes 1 us at 1 GB/s, after a latency of 1 us. On one port, the second
    // message follows the first.
    for (sending, receiving, microseconds) in [
        ([0, 1], [0, 1], 2),
        ([0, 1], [5, 5], 3),
        ([2, 2], [0, 1], 3),
    ] {
        let lines = |word: &str, nics: [u8; 2]| {
            let line = |tag: usize| format!("{word} tag {tag} nic {}\n", nics[tag]);
            line(0) + &line(1)
        };
        let text = format!(
            "num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}\n",
            lines("send 1000b to 1", sending),
            lines("recv 1000b from 0", receiving),
        );
        let rate = Rate::from_bits_per_second(8_000_000_000).unwrap();
        let mut model = LogGp::new(2, Time::from_ps(1_000_000), rate);
        let found = run(&goal_text::read(&text).unwrap(), &mut model).time;
        assert_eq!(found, Time::from_ps(microseconds * 1_000_000));
    }
}
