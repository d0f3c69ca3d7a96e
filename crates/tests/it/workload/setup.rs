//! Replays over lightpaths that are set up and torn down, against the formulas and the published
//! table.

use opticoll::collective::CollectiveKind;
use opticoll::families::Medium;
use opticoll::simulate::TimingModel;
use opticoll::units::{Bytes, Time};
use opticoll::workload::csv;
use opticoll::workload::error::TraceError;
use opticoll::workload::expand::Algorithms;
use opticoll::workload::network::{ReplayOutcome, ReplayRequest, TraceContent, run};
use opticoll::workload::replay::{Eager, EndCosts, ReplaySettings};

use super::real::table;
use super::transport;
use crate::port_formulas::{G, formula};

fn replayed(
    text: &str,
    network: &str,
    algorithms: &Algorithms,
    ends: EndCosts,
) -> Result<ReplayOutcome, TraceError> {
    let trace = csv::read(text)?;
    let request = ReplayRequest {
        network: &transport(network, trace.ranks.len() as u32),
        method: &TimingModel::default(),
        algorithms,
        settings: ReplaySettings {
            ends,
            ..ReplaySettings::default()
        },
    };
    run(&TraceContent::Calls(trace), &request)
}

fn over_ports(text: &str, ports: &str, algorithms: &Algorithms) -> ReplayOutcome {
    let network = format!("lightpath_grid:{ports}");
    replayed(text, &network, algorithms, EndCosts::default()).unwrap()
}

/// Returns a program in which every rank makes the same calls, each a name and bytes, without
/// computation in between.
fn calls(ranks: u32, calls: &[(&str, u64)]) -> String {
    let header = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns";
    let mut text = format!("# app=test ranks={ranks}\n{header}\n");
    for (call, bytes) in calls {
        for rank in 0..ranks {
            let received = if *call == "Bcast" && rank > 0 {
                *bytes
            } else {
                0
            };
            let sent = if *call == "Bcast" && rank > 0 {
                0
            } else {
                *bytes
            };
            text += &format!("{rank},{call},0,{sent},{received},,0,,0\n");
        }
    }
    text
}

#[test]
fn a_collective_takes_what_its_formula_says() {
    use CollectiveKind::{AllGather, Broadcast};
    let cases = [
        (Broadcast, "Bcast", "linear"),
        (Broadcast, "Bcast", "binomial"),
        (AllGather, "Allgather", "ring"),
        (AllGather, "Allgather", "recursive_doubling"),
    ];
    let mut compared = 0;
    for ranks in 2..=64u32 {
        for ports in 1..=6 {
            for (kind, call, algorithm) in cases {
                // A block of 1000 bytes from each rank, or as much from one.
                let whole = match kind {
                    AllGather => 1000 * u64::from(ranks),
                    _ => 1000,
                };
                let by_rounds = algorithm == "recursive_doubling";
                // The formula of an odd ring with one port has all ranks wait for one another
                // between the parts of a step.
                let odd = algorithm == "ring" && ports == 1 && ranks > 2 && ranks % 2 == 1;
                if by_rounds && !ranks.is_power_of_two() {
                    continue;
                }
                let (sending, setups) = formula(kind, algorithm, ranks.into(), ports, whole);
                let time = Time::from_ps(sending + setups * G);
                let algorithms = Algorithms::default().with(kind, algorithm.parse().unwrap());
                let text = calls(ranks, &[(call, 1000)]);
                let done = over_ports(&text, &format!("ports={ports}"), &algorithms);
                let case = format!("{call} by {algorithm}, {ranks} ranks, {ports} ports");
                let found = done.replayed.time;
                match odd {
                    true => assert!(
                        found <= time && found.ps() * 3 > time.ps() * 2,
                        "{case}: {found}"
                    ),
                    false => assert_eq!(found, time, "{case}"),
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

/// The calls of EP and of FT, class A.
const EP: [(&str, u64); 5] = [
    ("Barrier", 0),
    ("Allreduce", 8),
    ("Allreduce", 8),
    ("Allreduce", 80),
    ("Allreduce", 8),
];

fn ft() -> Vec<(&'static str, u64)> {
    let mut calls = vec![
        ("Bcast", 12),
        ("Bcast", 4),
        ("Alltoall", 8 << 20),
        ("Barrier", 0),
    ];
    calls.push(("Alltoall", 8 << 20));
    for _ in 0..6 {
        calls.push(("Alltoall", 8 << 20));
        calls.push(("Reduce", 16));
    }
    calls
}

#[test]
fn without_skew_ports_cost_what_the_published_table_counts() {
    // Over the ideal, in ms, with 1, 2, 3 and 4 ports.
    let cases = [
        (&EP[..], [200, 100, 100, 50]),
        (&ft(), [680, 340, 340, 170]),
    ];
    // The exchange is store and forward in four rounds, as in the paper.
    let algorithms = Algorithms::default().with(
        CollectiveKind::AllToAll,
        "recursive_doubling".parse().unwrap(),
    );
    for (made, expected) in cases {
        let text = calls(16, made);
        let ideal = over_ports(&text, "setup=0s", &algorithms).replayed.time;
        for (ports, expected) in (1..=4).zip(expected) {
            let done = over_ports(&text, &format!("ports={ports}"), &algorithms);
            let added = done.replayed.time.ps() - ideal.ps();
            assert_eq!(
                added,
                expected * 1_000_000_000,
                "{} calls, {ports} ports",
                made.len()
            );
        }
    }
}

#[test]
fn set_ups_of_single_messages_are_those_of_their_calls() {
    let added = |rows: &str| {
        let header = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns";
        let text = format!("# app=test ranks=2\n{header}\n{rows}");
        let algorithms = Algorithms::default();
        let done = over_ports(&text, "latency=0s,setup=3ms,teardown=2ms", &algorithms);
        (
            done.replayed.time.ps() / 1_000_000_000,
            done.replayed.ranks.setups,
        )
    };
    let cases = [
        // Both set up and release side by side.
        ("0,Send,1,0,0,0,0,,0\n1,Recv,0,0,0,0,0,,0", 5, [1, 1]),
        // The receiver sets up at once and works; the sender waits for nobody and is done at 5.
        (
            "0,Send,1,0,0,0,0,,0\n1,Irecv,0,0,0,0,0,1,0\n1,Wait,,0,0,,0,1,8000000",
            3 + 8 + 2,
            [1, 1],
        ),
        // Two messages one after the other.
        (
            "0,Send,1,0,0,0,0,,0\n0,Send,1,0,0,0,0,,0\n1,Recv,0,0,0,0,0,,0\n1,Recv,0,0,0,0,0,,0",
            10,
            [2, 2],
        ),
        // Two requests waited for together are released together.
        (
            "0,Send,1,0,0,0,0,,0\n0,Send,1,0,0,1,0,,0\n1,Irecv,0,0,0,0,0,1,0\n1,Irecv,0,0,0,1,0,\
             2,0\n1,Waitall,,0,0,,0,,0",
            10,
            [2, 2],
        ),
    ];
    for (rows, milliseconds, setups) in cases {
        assert_eq!(added(rows), (milliseconds, setups.to_vec()), "{rows}");
    }
}

#[test]
fn real_runs_end_and_pay_for_each_call_of_the_busiest_rank() {
    for (application, least) in [
        ("ep", 5 * 4),
        ("mg", 654 + 664 + 101),
        ("is", 33 * 4),
        ("ft", 17),
    ] {
        let text = table(application);
        let algorithms = Algorithms::default();
        let naive = over_ports(&text, "ports=1", &algorithms);
        let ideal = over_ports(&text, "setup=0s", &algorithms);
        assert_eq!(
            naive.replayed.messages, ideal.replayed.messages,
            "{application}"
        );
        let added = naive.replayed.time.ps() - ideal.replayed.time.ps();
        // 10 ms for each message and each round on the way of every rank; skew hides some of one.
        assert!(
            added >= (least - 1) * 10_000_000_000,
            "{application}: {added}"
        );
    }
}

#[test]
fn what_lightpaths_cannot_have_is_refused() {
    let text = calls(4, &[("Barrier", 0)]);
    let eager = EndCosts {
        eager: Eager::UpTo(Bytes::new(8)),
        ..EndCosts::default()
    };
    let algorithms = Algorithms::default();
    let error = |network: &str, ends| replayed(&text, network, &algorithms, ends).unwrap_err();
    let refused = error("lightpath_grid", eager).to_string();
    assert!(refused.ends_with("leave the eager limit out"), "{refused}");
    let few = TraceError::Ranks {
        trace: 4,
        fabric: 3,
    };
    assert_eq!(error("lightpath_grid:ranks=3", EndCosts::default()), few);
    for (spelling, expected) in [
        (
            "zero:rate=1Gb/s",
            "`zero` has no option `rate`; it has none",
        ),
        (
            "hockney:latency=1us",
            "`hockney` needs rate=..., for example rate=10Gb/s",
        ),
        ("lightpath_grid:ports=0", "ports"),
        ("hockney:rate=fast", "rate"),
    ] {
        let error = Medium::parse_for(spelling, 4).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
