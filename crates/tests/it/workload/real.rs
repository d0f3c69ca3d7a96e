//! Real runs of the NAS benchmarks against the facts that their traces state, and against times of
//! an independent simulator for the same messages.

use std::fs;
use std::io::Read;
use std::path::Path;

use opticoll::simulate::SimulationError;
use opticoll::simulate::live::{Live, MessageTimes, ReadyMessage};
use opticoll::units::{Bytes, Rate, Time};
use opticoll::workload::cost::{Hockney, Zero};
use opticoll::workload::csv;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::program::{Call, Program};
use opticoll::workload::replay::{Eager, EndCosts, ReplaySettings, replay};

use super::{run, run_between};

/// Returns the event table of a real run of 16 ranks.
pub(super) fn table(application: &str) -> String {
    let name = format!("data/traces/{application}.A.16.csv.zst");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let packed = fs::read(path).unwrap();
    let mut text = String::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&packed[..]).unwrap();
    decoder.read_to_string(&mut text).unwrap();
    text
}

fn program(application: &str) -> Program {
    let trace = csv::read(&table(application)).unwrap();
    expand(&trace, &Algorithms::default()).unwrap()
}

/// Messages of the collectives on 16 ranks: recursive doubling 16 log2 16, a tree 15, pairwise 16 x
/// 15.
const DOUBLING: u64 = 64;
const TREE: u64 = 15;
const PAIRWISE: u64 = 240;

/// Application, rows, messages, makespan on a network of zero cost in ns (by LogGOPSim with L = o =
/// g = G = 0).
const RUNS: &[(&str, usize, u64, u64)] = &[
    ("ep", 112, 5 * DOUBLING, 234_096_151),
    ("ft", 336, 8 * TREE + 8 * PAIRWISE + DOUBLING, 145_621_157),
    ("mg", 34_720, 11_024 + 94 * DOUBLING + 7 * TREE, 109_920_604),
    (
        "is",
        637,
        15 + 11 * DOUBLING + 22 * PAIRWISE + 2 * TREE,
        70_222_527,
    ),
    ("cg", 141_376, 47_104 + DOUBLING + TREE, 115_317_535),
];

#[test]
fn a_free_network_takes_as_long_as_an_independent_simulator_says() {
    for &(application, rows, messages, expected) in RUNS {
        let trace = csv::read(&table(application)).unwrap();
        let program = expand(&trace, &Algorithms::default()).unwrap();
        let replayed = run(&program, &mut Zero);
        assert_eq!(trace.events(), rows, "{application}");
        assert_eq!(
            replayed.time,
            Time::from_ps(expected * 1000),
            "{application}"
        );
        assert_eq!(replayed.messages, messages, "{application}");
        assert_eq!(replayed.timeline.rank.len(), rows, "{application}");
    }
}

#[test]
fn messages_and_bytes_are_those_of_the_table() {
    for &(application, ..) in RUNS {
        let (mut messages, mut bytes, mut exchanged) = (0u64, 0u128, 0u128);
        let text = table(application);
        for line in text.lines() {
            let fields: Vec<&str> = line.split(',').collect();
            let sent = |index: usize| fields[index].parse::<u128>().unwrap();
            match fields.get(1) {
                Some(&"Send") => (messages, bytes) = (messages + 1, bytes + sent(3)),
                // Every round sends the vector; a rank keeps its own block of an exchange.
                Some(&"Allreduce") => exchanged += 4 * sent(3),
                Some(&"Alltoall") => exchanged += sent(3) / 16 * 15,
                Some(&("Bcast" | "Reduce")) if fields[0] == fields[2] => {
                    exchanged += 15 * sent(3).max(sent(4));
                }
                _ => {}
            }
        }
        exchanged += various(&text);
        let trace = csv::read(&text).unwrap();
        assert_eq!(trace.messages(), (messages, bytes), "{application}");
        let replayed = run(&program(application), &mut Zero);
        assert_eq!(
            u128::from(replayed.bytes),
            bytes + exchanged,
            "{application}"
        );
    }
}

/// Sums the bytes that leave their rank in exchanges of various sizes: rows `# v` without the
/// rank's own entry.
fn various(text: &str) -> u128 {
    let mut rank = 0;
    let mut sum = 0;
    for line in text.lines() {
        if let Some(sizes) = line.strip_prefix("# v ") {
            let sizes = sizes
                .split_whitespace()
                .map(|size| size.parse::<u128>().unwrap());
            let others = sizes.enumerate().filter(|(member, _)| *member != rank);
            sum += others.map(|(_, size)| size).sum::<u128>();
        }
        rank = line
            .split(',')
            .next()
            .and_then(|rank| rank.parse().ok())
            .unwrap_or(rank);
    }
    sum
}

/// LogGOPSim's stream of n - 1 bytes instead of n.
struct OneByteLess(Hockney);

impl Live for OneByteLess {
    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        let bytes = Bytes::new(message.bytes.get().saturating_sub(1));
        self.0.send(number, ReadyMessage { bytes, ..message })
    }
}

#[test]
fn latency_costs_what_loggopsim_says_where_no_receiver_is_blocked() {
    // FT and MG differ, and IS and CG at the short latency: their receivers are blocked by messages
    // that come early, which ours are not.
    let runs = [
        ("ep", "100us", 235_748_568),
        ("ep", "10.1ms", 435_742_596),
        ("is", "10.1ms", 4_081_745_866),
        ("cg", "10.1ms", 30_190_326_312),
    ];
    for (application, latency, expected) in runs {
        let mut model = OneByteLess(Hockney {
            latency: latency.parse().unwrap(),
            rate: Rate::from_bits_per_second(1_000_000_000).unwrap(),
        });
        let replayed = run(&program(application), &mut model);
        let expected = Time::from_ps(expected * 1000);
        assert_eq!(replayed.time, expected, "{application} {latency}");
    }
}

#[test]
fn the_calls_of_mg_are_those_that_were_counted() {
    let timeline = run(&program("mg"), &mut Zero).timeline;
    for rank in 0..16 {
        let inner = rank < 4 || (8..12).contains(&rank);
        let (receives, sends) = if inner { (664, 654) } else { (714, 724) };
        let expected = [
            (Call::AllReduce, 88),
            (Call::Barrier, 6),
            (Call::Broadcast, 6),
            (Call::Reduce, 1),
            (Call::ImmediateReceive, receives),
            (Call::Send, sends),
            (Call::Wait, receives),
        ];
        for (call, count) in expected {
            let calls = timeline.rank.iter().zip(&timeline.call);
            let found = calls
                .filter(|&(&at, &what)| at == rank && what == call)
                .count();
            assert_eq!(found, count, "rank {rank}, {}", call.name());
        }
    }
}

#[test]
fn a_rank_computes_or_is_in_a_call_until_it_ends() {
    for &(application, ..) in RUNS {
        let mut model = Hockney {
            latency: Time::from_ps(1_000_000),
            rate: Rate::from_bits_per_second(10_000_000_000).unwrap(),
        };
        let ends = EndCosts {
            eager: Eager::UpTo(Bytes::new(4096)),
            ..EndCosts::default()
        };
        let ranks = run_between(ends, &program(application), &mut model).ranks;
        for rank in 0..16 {
            let all = ranks.compute[rank].ps() + ranks.calls[rank].ps();
            assert_eq!(all, ranks.finish[rank].ps(), "{application}, rank {rank}");
        }
    }
}

#[test]
fn on_a_free_network_time_is_proportional_to_local_work() {
    for &(application, _, _, expected) in RUNS {
        let settings = ReplaySettings {
            compute_factor: (5, 2),
            timeline: false,
            ..ReplaySettings::default()
        };
        let replayed = replay(&program(application), &mut Zero, settings).unwrap();
        assert_eq!(
            replayed.time,
            Time::from_ps(expected * 2500),
            "{application}"
        );
    }
}
