//! GOAL: text against binary, and both against the semantics.

use opticoll::units::{Rate, Time};
use opticoll::workload::cost::{Hockney, Zero};
use opticoll::workload::program::{Node, Program};
use opticoll::workload::{goal_binary, goal_text};

use super::run;

/// A node: kind (1 send, 2 receive, 3 work), peer, amount, tag, processor; whose end and whose begin it
/// waits for.
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

fn as_binary(ranks: &[&[Statement]]) -> Vec<u8> {
    let mut head = Vec::new();
    head.extend(4223u64.to_le_bytes());
    head.extend((ranks.len() as u32).to_le_bytes());
    head.extend([1, 3]);
    let mut body: Vec<u8> = Vec::new();
    let begin = 14 + 16 * ranks.len();
    for statements in ranks {
        let first = (begin + body.len() - 8) as u64;
        let free = |(_, requires, follows): &&Statement| requires.is_empty() && follows.is_empty();
        let roots: Vec<u32> = (0..statements.len() as u32)
            .filter(|&index| free(&&statements[index as usize]))
            .collect();
        body.extend((statements.len() as u32).to_le_bytes());
        body.extend((roots.len() as u32).to_le_bytes());
        roots
            .iter()
            .for_each(|root| body.extend(root.to_le_bytes()));
        let mut edges: Vec<u32> = Vec::new();
        for (index, (node, requires, follows)) in statements.iter().enumerate() {
            let (kind, peer, amount, tag, processor) = node;
            body.extend(((requires.len() + follows.len()) as u32).to_le_bytes());
            body.push(*kind);
            body.extend(peer.to_le_bytes());
            body.extend(amount.to_le_bytes());
            body.extend(tag.to_le_bytes());
            body.extend([*processor, 3]);
            for begins in [false, true] {
                let waits = |(_, requires, follows): &Statement| {
                    let list = if begins { follows } else { requires };
                    list.contains(&(index as u32))
                };
                let later = (0..statements.len()).filter(|&later| waits(&statements[later]));
                let later: Vec<u32> = later.map(|later| later as u32).collect();
                body.extend((later.len() as u32).to_le_bytes());
                body.extend((edges.len() as u32).to_le_bytes());
                edges.extend(later);
            }
        }
        edges
            .iter()
            .for_each(|edge| body.extend(edge.to_le_bytes()));
        head.extend(first.to_le_bytes());
        head.extend(((begin + body.len() - 8) as u64).to_le_bytes());
    }
    head.extend(body);
    head
}

fn without_lines(program: &Program) -> Vec<Vec<Node>> {
    let ranks = (0..program.ranks()).map(|rank| program.rank_nodes(rank));
    let bare = |nodes: &[Node]| nodes.iter().map(|&node| Node { line: 0, ..node }).collect();
    ranks.map(bare).collect()
}

#[test]
fn text_and_binary_are_one_program() {
    let text = goal_text::read(&as_text(EXAMPLE)).unwrap();
    let binary = goal_binary::read(&as_binary(EXAMPLE)).unwrap();
    assert_eq!(without_lines(&text), without_lines(&binary));
    assert_eq!(text.dependencies(), 7);
    assert_eq!(text.messages(), (2, 30));
    let mut model = Hockney {
        latency: Time::from_ps(100_000),
        rate: Rate::from_bits_per_second(8_000_000_000).unwrap(),
    };
    for program in [text, binary] {
        // 50, the work of processor 1 until 550. With messages: sent at 50, there at 160, answered at 260,
        // there at 380, and 30 more; so processor 1 ends last.
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
}

#[test]
fn a_binary_that_ends_early_is_refused_and_a_changed_one_never_panics() {
    let whole = as_binary(EXAMPLE);
    for length in 0..whole.len() {
        assert!(
            goal_binary::read(&whole[..length]).is_err(),
            "{length} bytes"
        );
    }
    for index in 0..whole.len() {
        for value in [0, 1, 2, 127, 255] {
            let mut changed = whole.clone();
            changed[index] = value;
            if let Ok(program) = goal_binary::read(&changed) {
                let replayed =
                    opticoll::workload::replay::replay(&program, &mut Zero, Default::default());
                assert!(replayed.is_ok_and(|found| found.messages == 2) || changed != whole);
            }
        }
    }
}

#[test]
fn text_that_is_no_goal_is_refused_with_its_line() {
    let cases: &[(&str, &str)] = &[
        (
            "rank 0 {\n}",
            "line 1: ranks stand in order, each as `rank R { ... }`, after `num_ranks N`; the next is 0",
        ),
        (
            "num_ranks 0",
            "line 1: `num_ranks` stands once, with 1 to 1048576 ranks",
        ),
        (
            "num_ranks 1\nrank 0 {\nl1: calc 5",
            "line 3: the text ends within rank 1 of 1",
        ),
        (
            "num_ranks 1\nrank 0 {\nl1: calc -5\n}",
            "line 3: `-5` is not a time in nanoseconds",
        ),
        (
            "num_ranks 1\nrank 0 {\nl1: dance 5\n}",
            "line 3: `dance` is none of calc, send, recv",
        ),
        (
            "num_ranks 1\nrank 0 {\nl1: send 5 to 0\n}",
            "line 3: `` is not a size such as `10b`",
        ),
        (
            "num_ranks 1\nrank 0 {\nl1 requires l2\n}",
            "line 3: label `l1` is not defined above",
        ),
        (
            "num_ranks 1\nrank 0 {\nl1: calc 1\nl1: calc 1\n}",
            "line 4: label `l1` is defined twice",
        ),
        (
            "num_ranks 1\nrank 0 {\nl1: calc 1\nl1 requires l1\n}",
            "line 4: a statement cannot wait for itself",
        ),
        (
            "num_ranks 2\nrank 1 {\n}",
            "line 2: ranks stand in order, each as `rank R { ... }`, after `num_ranks N`; the next is 0",
        ),
        (
            "num_ranks 1\nrank 0 {\nrecv 1b from -1 tag 2\n}",
            "rank 0, event 0 (line 3): a receive from any rank or of any tag: trace the rank and the tag it got",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 1b to 4\n}",
            "rank 0, event 0 (line 3): there is no rank 4; ranks are 0 to 0",
        ),
    ];
    for &(text, expected) in cases {
        assert_eq!(goal_text::read(text).unwrap_err().to_string(), expected);
    }
}
