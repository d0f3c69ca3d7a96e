//! The formulas of port-limited collectives against a slow simulation of set-up, use and release, and
//! against worked values.

use std::collections::BTreeSet;

use opticoll::collective::CollectiveKind;

use crate::port_formulas::{A, B, G, formula};

/// The algorithms that have a formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Linear,
    Ring,
    RecursiveDoubling,
    BinomialTree,
}

const ALL: [Algorithm; 4] = [
    Algorithm::Linear,
    Algorithm::Ring,
    Algorithm::RecursiveDoubling,
    Algorithm::BinomialTree,
];

/// The time in picoseconds by the formula of an algorithm; without `ports` all paths are there from the beginning.
fn collective_time(algorithm: Algorithm, ranks: u32, bytes: u64, ports: Option<u64>) -> u64 {
    let (kind, name) = match algorithm {
        Algorithm::Linear => (CollectiveKind::Broadcast, "linear"),
        Algorithm::Ring => (CollectiveKind::AllGather, "ring"),
        Algorithm::RecursiveDoubling => (CollectiveKind::AllGather, "recursive_doubling"),
        Algorithm::BinomialTree => (CollectiveKind::Broadcast, "binomial"),
    };
    let (sending, set_ups) = formula(kind, name, ranks.into(), ports.unwrap_or(u64::MAX), bytes);
    sending + ports.map_or(0, |_| set_ups * G)
}

/// A message from one rank to another, so many bytes.
type Sent = (usize, usize, u64);

/// Who sends what to whom in each step.
fn steps(algorithm: Algorithm, ranks: usize, bytes: u64) -> Vec<Vec<Sent>> {
    let block = bytes / ranks as u64;
    let rounds = (0..usize::BITS)
        .filter(|&round| 1 << round < ranks)
        .collect::<Vec<u32>>();
    match algorithm {
        Algorithm::Linear => (1..ranks).map(|other| vec![(0, other, bytes)]).collect(),
        Algorithm::Ring => {
            let step: Vec<Sent> = (0..ranks)
                .map(|rank| (rank, (rank + 1) % ranks, block))
                .collect();
            vec![step; ranks - 1]
        }
        Algorithm::RecursiveDoubling => rounds
            .iter()
            .map(|&round| {
                (0..ranks)
                    .map(|rank| (rank, rank ^ (1 << round), block << round))
                    .collect()
            })
            .collect(),
        // Rank r < 2^i hands on to r + 2^i.
        Algorithm::BinomialTree => rounds
            .iter()
            .map(|&round| {
                let held = 1usize << round;
                let pairs = (0..held).filter(|rank| rank + held < ranks);
                pairs.map(|rank| (rank, rank + held, bytes)).collect()
            })
            .collect(),
    }
}

fn peers_fit(messages: &[Sent], ranks: usize, ports: usize) -> bool {
    let mut peers = vec![BTreeSet::new(); ranks];
    for &(from, to, _) in messages {
        peers[from].insert(to);
        peers[to].insert(from);
    }
    peers.iter().all(|peers| peers.len() <= ports)
}

/// Cuts a step that needs more ports than there are into parts, pair by pair, each into the first part
/// that has a port for it at both ends.
fn parts(step: &[Sent], ranks: usize, ports: usize) -> Vec<Vec<Sent>> {
    if peers_fit(step, ranks, ports) {
        return vec![step.to_vec()];
    }
    let mut parts: Vec<Vec<Sent>> = Vec::new();
    for &message in step {
        let fits = |part: &Vec<Sent>| peers_fit(&[&part[..], &[message]].concat(), ranks, ports);
        match parts.iter_mut().find(|part| fits(part)) {
            Some(part) => part.push(message),
            None => parts.push(vec![message]),
        }
    }
    parts
}

/// Every rank has a clock. Rounds form a group while no rank has more peers than ports; whoever takes part
/// in a group spends half the set-up before it and half after it; a message begins when both are ready.
/// The parts of a step that is cut are taken by all ranks in turn.
fn simulate(algorithm: Algorithm, ranks: usize, bytes: u64, ports: usize) -> u64 {
    let mut groups: Vec<Vec<Vec<Sent>>> = Vec::new();
    let mut cut = false;
    for step in steps(algorithm, ranks, bytes) {
        let parts = parts(&step, ranks, ports);
        cut |= parts.len() > 1;
        for part in &parts {
            let group = groups.last().filter(|_| parts.len() == 1);
            let together = group.map(|group| [&group.concat()[..], part].concat());
            match together.filter(|together| peers_fit(together, ranks, ports)) {
                Some(_) => groups.last_mut().unwrap().push(part.clone()),
                None => groups.push(vec![part.clone()]),
            }
        }
    }
    let half = G / 2;
    let mut clock = vec![0u64; ranks];
    for group in groups {
        if cut {
            let latest = *clock.iter().max().unwrap();
            clock.fill(latest);
        }
        let all = group.concat();
        let takes_part = |rank: usize| all.iter().any(|&(from, to, _)| from == rank || to == rank);
        let members: Vec<usize> = (0..ranks).filter(|&rank| takes_part(rank)).collect();
        members.iter().for_each(|&rank| clock[rank] += half);
        for round in group {
            let before = clock.clone();
            for (from, to, bytes) in round {
                let ready = before[from].max(before[to]);
                let end = ready + A + bytes * B;
                clock[from] = clock[from].max(end);
                clock[to] = clock[to].max(end);
            }
        }
        members.iter().for_each(|&rank| clock[rank] += half);
    }
    clock.into_iter().max().unwrap()
}

#[test]
fn formulas_are_the_time_of_setting_up_using_and_releasing() {
    for ranks in 2..=64u32 {
        // A kilobyte for each rank, or so.
        let bytes = u64::from(ranks) * 1000;
        for algorithm in ALL {
            if algorithm == Algorithm::RecursiveDoubling && !ranks.is_power_of_two() {
                continue;
            }
            for ports in 1..=6 {
                let found = collective_time(algorithm, ranks, bytes, Some(ports));
                let case = format!("{algorithm:?}, {ranks} ranks, {ports} ports");
                let expected = simulate(algorithm, ranks as usize, bytes, ports as usize);
                assert_eq!(found, expected, "{case}");
            }
        }
    }
}

/// Among 64 ranks, in microseconds: ideal, naive, 2, 3 and 4 ports.
#[test]
fn formulas_give_the_worked_values() {
    let cases = [
        (
            Algorithm::Linear,
            1_000,
            [Some(6_804), Some(636_804), None, None, Some(166_804)],
        ),
        (
            Algorithm::BinomialTree,
            1_000,
            [
                Some(648),
                Some(60_648),
                Some(30_648),
                Some(20_648),
                Some(20_648),
            ],
        ),
        (
            Algorithm::Linear,
            100_000,
            [Some(56_700), Some(686_700), None, None, Some(216_700)],
        ),
        (
            Algorithm::BinomialTree,
            100_000,
            [
                Some(5_400),
                Some(65_400),
                Some(35_400),
                Some(25_400),
                Some(25_400),
            ],
        ),
        (
            Algorithm::Linear,
            1_000_000,
            [Some(510_300), Some(1_140_300), None, None, Some(670_300)],
        ),
        (
            Algorithm::Ring,
            1_000_000,
            [
                Some(14_175),
                Some(1_288_350),
                Some(24_175),
                Some(24_175),
                Some(24_175),
            ],
        ),
        (
            Algorithm::RecursiveDoubling,
            1_000_000,
            [
                Some(8_475),
                Some(68_475),
                Some(38_475),
                Some(28_475),
                Some(28_475),
            ],
        ),
        (
            Algorithm::BinomialTree,
            1_000_000,
            [
                Some(48_600),
                Some(108_600),
                Some(78_600),
                Some(68_600),
                Some(68_600),
            ],
        ),
        (
            Algorithm::Linear,
            10_000_000,
            [
                Some(5_046_300),
                Some(5_676_300),
                None,
                None,
                Some(5_206_300),
            ],
        ),
        (
            Algorithm::Ring,
            10_000_000,
            [
                Some(85_050),
                Some(1_430_100),
                Some(95_050),
                Some(95_050),
                Some(95_050),
            ],
        ),
        (
            Algorithm::RecursiveDoubling,
            10_000_000,
            [
                Some(79_350),
                Some(139_350),
                Some(109_350),
                Some(99_350),
                Some(99_350),
            ],
        ),
        (
            Algorithm::BinomialTree,
            10_000_000,
            [
                Some(480_600),
                Some(540_600),
                Some(510_600),
                Some(500_600),
                Some(500_600),
            ],
        ),
    ];
    let management = [None, Some(1), Some(2), Some(3), Some(4)];
    for (algorithm, bytes, expected) in cases {
        for (ports, microseconds) in management.into_iter().zip(expected) {
            let Some(microseconds) = microseconds else {
                continue;
            };
            let found = collective_time(algorithm, 64, bytes, ports);
            assert_eq!(
                found,
                microseconds * 1_000_000,
                "{algorithm:?}, {bytes} bytes, {ports:?}"
            );
        }
    }
}
