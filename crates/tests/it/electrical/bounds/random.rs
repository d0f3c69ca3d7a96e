//! Random networks, plans, placements and settings: no plan on a small network is below its bound.

use opticoll::algorithms::records_for;
use opticoll::bounds::electrical as electrical_bound;
use opticoll::collective::{Collective, CollectiveKind, Holders};
use opticoll::fabric::Fabric;
use opticoll::hash::shuffled;
use opticoll::plan::Plan;
use opticoll::schedule::{Action, Schedule, Transfer};
use opticoll::simulate;
use opticoll::simulate::{SimulationError, TimingModel};
use opticoll::units::Bytes;
use opticoll::verify::verify;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{at_least, proved};

type Random = Pcg64Mcg;

/// Draws the specification of a network: a tree over ranks and switches and some more links, with
/// all kinds of rates, latencies and duplex modes.
fn network(random: &mut Random) -> String {
    let ranks = random.random_range(2..8u32);
    let switches = random.random_range(0..5u32);
    let courses = ["-", "~", ">"];
    // Networks of full-duplex cables alone are simulated packet by packet, too.
    let mixed = random.random_range(0..2);
    let latencies = ["0s", "1us", "1us", "3us", "20us", "137ns"];
    let rates = ["8Gb/s", "8Gb/s", "1Gb/s", "3Gb/s", "100Gb/s"];
    let most = [1, 2, 6][random.random_range(0..3usize)];
    let mut links = Vec::new();
    let order = shuffled(ranks + switches, random.random());
    let mut join = |random: &mut Random, one: u32, other: u32, course: &str| {
        let latency = latencies[random.random_range(0..most)];
        let rate = rates[random.random_range(0..most.min(5))];
        links.push(format!("{one}{course}{other}@{rate}@{latency}"));
    };
    for place in 1..order.len() {
        let before = order[random.random_range(0..place)];
        let course = courses[random.random_range(0..1 + mixed)];
        join(random, before, order[place], course);
    }
    for _ in 0..random.random_range(0..6) {
        let one = random.random_range(0..ranks + switches);
        let other = (one + random.random_range(1..ranks + switches)) % (ranks + switches);
        let course = courses[random.random_range(0..1 + 2 * mixed)];
        join(random, one, other, course);
    }
    let links = links.join("+");
    let count = match switches {
        0 => String::new(),
        _ => format!(",switches={switches}"),
    };
    format!("custom:ranks={ranks}{count},links={links}")
}

/// Copies that bring every chunk to those who need it, each over ranks chosen at random.
fn gossip(collective: Collective, random: &mut Random) -> Schedule {
    let (ranks, chunks) = (collective.ranks() as usize, collective.chunks() as usize);
    let has = |holders: Holders| -> Vec<bool> {
        let all =
            (0..ranks as u32).map(|rank| holders == Holders::All || holders == Holders::One(rank));
        all.collect()
    };
    let mut held: Vec<Vec<bool>> = (0..chunks as u32)
        .map(|chunk| has(collective.before(chunk)))
        .collect();
    let mut needed: Vec<Vec<bool>> = (0..chunks as u32)
        .map(|chunk| has(collective.after(chunk)))
        .collect();
    let share = random.random_range(1..5u32);
    let mut steps: Vec<Vec<Transfer>> = Vec::new();
    let lacks = |held: &[Vec<bool>], needed: &[Vec<bool>]| {
        let mut pairs = held.iter().flatten().zip(needed.iter().flatten());
        pairs.any(|(held, needed)| *needed && !held)
    };
    while lacks(&held, &needed) {
        let before = held.clone();
        let mut step = Vec::new();
        for chunk in 0..chunks {
            let holders: Vec<usize> = (0..ranks).filter(|&rank| before[chunk][rank]).collect();
            for (rank, has) in held[chunk].iter_mut().enumerate() {
                if !*has && random.random_range(0..4) < share {
                    let source = holders[random.random_range(0..holders.len())];
                    step.push(Transfer::copy(chunk as u32, source as u32, rank as u32));
                    *has = true;
                }
            }
        }
        steps.push(step);
    }
    // What leads nowhere is left out, from the last step on.
    for step in steps.iter_mut().rev() {
        step.retain(|transfer| {
            let of_chunk = &mut needed[transfer.chunk as usize];
            let leads_on = of_chunk[transfer.destination as usize];
            of_chunk[transfer.source as usize] |= leads_on;
            leads_on
        });
    }
    let mut schedule = Schedule::new(collective);
    for step in steps.into_iter().filter(|step| !step.is_empty()) {
        schedule.begin_step();
        step.into_iter()
            .for_each(|transfer| schedule.push(transfer));
    }
    schedule
}

/// Draws a plan of a collective.
fn drawn(fabric: &Fabric, random: &mut Random) -> Plan {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
    let ranks = fabric.ranks();
    let kinds = [
        AllGather,
        AllReduce,
        Broadcast,
        Gather,
        Reduce,
        ReduceScatter,
        Scatter,
    ];
    let kind = kinds[random.random_range(0..kinds.len())];
    let root = random.random_range(0..ranks);
    let pieces = random.random_range(1..4);
    let of = |kind, pieces| {
        let collective = Collective::new(kind, ranks).unwrap();
        let collective = collective.with_root(root).unwrap_or(collective);
        collective.with_pieces(pieces).unwrap()
    };
    let schedule = match kind {
        AllGather | Broadcast | Scatter => gossip(of(kind, pieces), random),
        ReduceScatter => gossip(of(AllGather, pieces), random).reversed(of(kind, pieces)),
        Reduce => gossip(of(Broadcast, pieces), random).reversed(of(kind, pieces)),
        Gather => gossip(of(Scatter, pieces), random).reversed(of(kind, pieces)),
        _ => {
            let mut both = gossip(of(AllGather, 1), random).reversed(of(AllReduce, ranks));
            let copies = gossip(of(AllGather, 1), random);
            for step in 0..copies.steps() {
                both.begin_step();
                for transfer in copies.columns(step).transfers() {
                    both.push(Transfer {
                        action: Action::Copy,
                        ..transfer
                    });
                }
            }
            both
        }
    };
    let plan = Plan::without_light(fabric, schedule, "drawn".into());
    let violation = verify(&plan).into_iter().next();
    assert_eq!(
        violation.map(|one| one.sentence),
        None,
        "{kind} on {fabric}"
    );
    plan
}

/// Simulates a plan under some settings and compares it with its bound.
fn check(plan: &Plan, random: &mut Random) {
    let ranks = plan.fabric.ranks();
    let network = plan.fabric.network().unwrap();
    let collective = plan.schedule.collective;
    let sizes = [0, 1, 100, 1000, 20_000, 100_000];
    let size = Bytes::new(sizes[random.random_range(0..sizes.len())]);
    let places = shuffled(ranks, random.random());
    let placement: Vec<String> = places.iter().map(u32::to_string).collect();
    let placement = placement.join("-");
    let start = ["rendezvous", "sender", "step"][random.random_range(0..3usize)];
    let issue = ["sequential", "together"][random.random_range(0..2usize)];
    let at_root = places[collective.root() as usize];
    let flows = [("start", start)];
    let packets = [
        ("simulator", "packet"),
        ("placement", &*placement),
        ("router_delay", "0ns"),
        ("small_delays", "none"),
        ("credit_delay", "0ns"),
        ("buffers", "1MiB,1MiB,1MiB"),
        ("issue", issue),
    ];
    // Links that lead both ways are not simulated packet by packet, nor here chunks that take no
    // time at all.
    let in_packets = !plan.fabric.to_string().contains('~')
        && size.get() >= 100
        && collective.kind() != CollectiveKind::Barrier;
    let cases = [(&flows[..], collective.root()), (&packets[..], at_root)];
    for (settings, root) in &cases[..1 + usize::from(in_packets)] {
        let method = TimingModel::from_settings(settings.iter().copied()).unwrap();
        let time = match simulate::run(plan, size, &method) {
            Ok(outcome) => outcome.time,
            // Two ranks joined without a router between have no packets.
            Err(SimulationError::Refused {
                code: "packets", ..
            }) => continue,
            Err(error) => panic!("{error}"),
        };
        let placed = collective.with_root(*root).unwrap();
        let bound = electrical_bound::best(network, &placed, size).unwrap();
        let bound = bound.unwrap();
        assert!(
            at_least(time, bound.time),
            "{} of {size} by {} on {}, {settings:?}: {time} is below {bound:?}",
            collective.kind(),
            plan.algorithm,
            plan.fabric
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_plan_on_any_network_is_below_its_bound(seed: u64) {
        let mut random = Random::seed_from_u64(seed);
        let Ok(fabric) = Fabric::parse(&network(&mut random)) else {
            // Some rank cannot be reached.
            return Ok(());
        };
        for _ in 0..4 {
            check(&drawn(&fabric, &mut random), &mut random);
        }
        let records = records_for(&fabric).filter(|record| {
            let lit = matches!(record.name, "optree" | "one_stage" | "wrht");
            !lit && (record.accepts)(fabric.ranks()).is_ok()
        });
        let records: Vec<_> = records.collect();
        for _ in 0..4 {
            let record = records[random.random_range(0..records.len())];
            check(&proved(record.collective, record.name, &fabric), &mut random);
        }
    }
}
