//! Lightpaths that ranks keep during a replay, against one collective with the same rule and
//! against a plain list of the lightpaths used last.

use std::collections::BTreeSet;

use opticoll::collective::CollectiveKind;
use opticoll::collective::CollectiveKind::{AllGather, AllReduce, Broadcast};
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;
use opticoll::workload::csv;
use opticoll::workload::expand::Algorithms;
use opticoll::workload::network::{ReplayOutcome, ReplayRequest, TraceContent, run};
use opticoll::workload::replay::ReplaySettings;
use proptest::prelude::*;

use super::real::table;
use super::transport;
use crate::lightpath_grid::proved;

fn replayed(text: &str, network: &str, paths: &str, algorithms: &Algorithms) -> ReplayOutcome {
    let trace = csv::read(text).unwrap();
    let request = ReplayRequest {
        network: &transport(network, trace.ranks.len() as u32),
        method: &TimingModel::from_settings([("paths", paths)]).unwrap(),
        algorithms,
        settings: ReplaySettings::default(),
    };
    run(&TraceContent::Calls(trace), &request).unwrap()
}

fn program(ranks: u32, rows: &[String]) -> String {
    let header = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns";
    format!("# app=test ranks={ranks}\n{header}\n{}\n", rows.join("\n"))
}

#[test]
fn a_collective_alone_takes_as_long_as_its_plan() {
    let cases: [(CollectiveKind, &str, &str); 4] = [
        (AllGather, "Allgather", "ring"),
        (AllGather, "Allgather", "recursive_doubling"),
        (AllReduce, "Allreduce", "recursive_doubling"),
        (Broadcast, "Bcast", "linear"),
    ];
    for (kind, call, algorithm) in cases {
        for ranks in [2, 4, 8, 16] {
            for ports in 1..=5 {
                let fabric =
                    format!("lightpath_grid:ranks={ranks},ports={ports},setup=7ms,teardown=3ms");
                let plan = proved(kind, algorithm, &fabric);
                let row = |rank| {
                    let (sent, received) = match (kind, rank) {
                        (Broadcast, 0) => (1000, 0),
                        (Broadcast, _) => (0, 1000),
                        _ => (1000, 1000),
                    };
                    format!("{rank},{call},0,{sent},{received},,0,,0")
                };
                let rows: Vec<String> = (0..ranks).map(row).collect();
                let algorithms = Algorithms::default().with(kind, algorithm.parse().unwrap());
                for paths in ["kept", "warm"] {
                    let method = TimingModel::from_settings([("paths", paths)]).unwrap();
                    let expected = simulate::run(&plan, Bytes::new(1000), &method).unwrap();
                    let done = replayed(&program(ranks, &rows), &fabric, paths, &algorithms);
                    let case = format!("{kind} by {algorithm} on {fabric}, {paths}");
                    assert_eq!(done.replayed.time, expected.time, "{case}");
                }
            }
        }
    }
}

/// Returns the partners that a rank is connected to after these uses: the `ports` partners used
/// last.
fn kept(uses: &[u32], ports: usize) -> BTreeSet<u32> {
    let mut last = BTreeSet::new();
    for &other in uses.iter().rev() {
        if last.len() < ports {
            last.insert(other);
        }
    }
    last
}

/// Counts the setups and releases of a rank in the last of `runs` runs, group by group of partners
/// that are used together.
fn slowly(groups: &[Vec<u32>], ports: usize, runs: usize) -> (u64, u64) {
    let mut uses = Vec::new();
    let mut counted = (0, 0);
    for run in 0..runs {
        counted = (0, 0);
        for group in groups {
            let before = kept(&uses, ports);
            let wanted: BTreeSet<u32> = group.iter().copied().collect();
            counted.0 += u64::from(!wanted.is_subset(&before));
            counted.1 += u64::from(wanted.union(&before).count() > ports);
            uses.extend(group);
        }
        assert!(run < 2);
    }
    counted
}

const RANKS: u32 = 8;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Messages between two ranks, some of them without blocking, and barriers of three rounds.
    #[test]
    fn every_rank_keeps_the_paths_that_it_used_last(
        ports in 1usize..5,
        warm in any::<bool>(),
        drawn in prop::collection::vec((0u32..RANKS, 0u32..RANKS, 0u8..3), 1..30),
    ) {
        let mut rows = Vec::new();
        let mut groups: Vec<Vec<Vec<u32>>> = vec![Vec::new(); RANKS as usize];
        for (from, further, kind) in drawn {
            if further == 0 {
                for rank in 0..RANKS {
                    rows.push(format!("{rank},Barrier,,0,0,,0,,0"));
                    let rounds: Vec<u32> = (0..3).map(|round| rank ^ (1 << round)).collect();
                    groups[rank as usize].extend(rounds.chunks(ports).map(<[u32]>::to_vec));
                }
                continue;
            }
            let to = (from + further) % RANKS;
            groups[from as usize].push(vec![to]);
            groups[to as usize].push(vec![from]);
            match kind {
                0 => {
                    rows.push(format!("{from},Isend,{to},8,0,1,0,5,0"));
                    rows.push(format!("{from},Wait,,0,0,,0,5,0"));
                }
                _ => rows.push(format!("{from},Send,{to},8,0,1,0,,0")),
            }
            rows.push(format!("{to},Recv,{from},0,8,1,0,,0"));
        }
        let network = format!("lightpath_grid:ports={ports},setup=3ms,teardown=2ms");
        let paths = if warm { "warm" } else { "kept" };
        let text = program(RANKS, &rows);
        let done = replayed(&text, &network, paths, &Algorithms::default());
        for (rank, groups) in groups.iter().enumerate() {
            let (setups, releases) = slowly(groups, ports, 1 + usize::from(warm));
            let found = &done.replayed.ranks;
            prop_assert_eq!(found.setups[rank], setups);
            let spent = found.setup[rank].ps() / 1_000_000_000;
            prop_assert_eq!(spent, 3 * setups + 2 * releases);
        }
    }
}

#[test]
fn a_path_with_an_open_request_stays() {
    // One port: the path to rank 1 is open while messages go to rank 2 and come back; then one of
    // the two goes.
    let rows = [
        "0,Irecv,1,0,8,1,0,1,0",
        "0,Send,2,8,0,1,0,,0",
        "0,Wait,,0,0,,0,1,0",
        "0,Send,2,8,0,2,0,,0",
        "1,Send,0,8,0,1,0,,0",
        "2,Recv,0,0,8,1,0,,0",
        "2,Recv,0,0,8,2,0,,0",
    ]
    .map(String::from);
    let network = "lightpath_grid:ports=1,setup=3ms,teardown=2ms";
    let done = replayed(&program(3, &rows), network, "kept", &Algorithms::default());
    let found = done.replayed.ranks;
    assert_eq!(found.setups, [2, 1, 1]);
    let milliseconds = found.setup.iter().map(|time| time.ps() / 1_000_000_000);
    assert!(milliseconds.eq([3 + 3 + 2, 3, 3]));
}

#[test]
fn what_the_run_before_never_waited_for_is_over() {
    let rows = [
        "0,Send,2,8,0,1,0,,0",
        "0,Irecv,1,0,8,1,0,1,0",
        "1,Send,0,8,0,1,0,,0",
        "2,Recv,0,0,8,1,0,,0",
    ]
    .map(String::from);
    let network = "lightpath_grid:ports=1";
    let done = replayed(&program(3, &rows), network, "warm", &Algorithms::default());
    // With one port rank 0 leaves rank 1 for rank 2, and comes back; the others have their only
    // path.
    assert_eq!(done.replayed.ranks.setups, [2, 0, 0]);
}

#[test]
fn real_runs_pay_less_for_paths_that_stay() {
    for application in ["ep", "ft", "mg"] {
        let text = table(application);
        let of = |paths| {
            let network = "lightpath_grid:ports=4";
            let done = replayed(&text, network, paths, &Algorithms::default());
            let setups: u64 = done.replayed.ranks.setups.iter().sum();
            (done.replayed.time, setups, done.replayed.messages)
        };
        let (released, kept, warm) = (of("released"), of("kept"), of("warm"));
        assert!(kept < released && warm <= kept, "{application}");
        assert_eq!((kept.2, warm.2), (released.2, released.2));
        if application == "ep" {
            // Only the four partners of recursive doubling: one set-up of each rank, or none at
            // all.
            assert_eq!((kept.1, warm.1), (16, 0));
        }
    }
}

#[test]
fn within_a_collective_too_the_path_used_last_stays() {
    // Partners of rank 0: 1, 2, 4, 4, 2, 1, over three ports. Then the path to 4 goes for that to
    // 3, and not that to 1.
    let rows = (0..8).map(|rank| format!("{rank},Allreduce,,1000,1000,,0,,0"));
    let mut rows: Vec<String> = rows.collect();
    for to in [3, 1] {
        rows.push(format!("0,Send,{to},8,0,1,0,,0"));
        rows.push(format!("{to},Recv,0,0,8,1,0,,0"));
    }
    let algorithms = Algorithms::default().with(AllReduce, "halving_doubling".parse().unwrap());
    let network = "lightpath_grid:ports=3,setup=3ms,teardown=2ms";
    let done = replayed(&program(8, &rows), network, "kept", &algorithms);
    let found = done.replayed.ranks;
    assert_eq!(found.setups[0], 2);
    assert_eq!(found.setup[0].ps() / 1_000_000_000, 3 + 2 + 3);
}
