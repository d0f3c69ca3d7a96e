//! Plans on passive stars: bounds that plans meet and never go below, rules of the verifier, and
//! times by hand.

use std::collections::{BTreeSet, HashSet};

use opticoll::algorithms::records_for;
use opticoll::bounds::passive_star;
use opticoll::collective::{Collective, CollectiveKind, DemandMatrix, Holders};
use opticoll::fabric::Fabric;
use opticoll::family::passive_star::PassiveStar;
use opticoll::plan::Plan;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;

use crate::{handwritten, reconfiguration_cost};

use CollectiveKind::{AllGather, AllToAll, Broadcast};

fn proved(kind: CollectiveKind, algorithm: &str, fabric: &str) -> Plan {
    crate::placed(kind, algorithm, &format!("passive_star:{fabric}"))
}

fn bound_of(plan: &Plan) -> u64 {
    let star = plan.fabric.downcast::<PassiveStar>().unwrap();
    passive_star::slots(star, &plan.schedule.collective).steps
}

/// Lists stars: ranks, wavelengths, transmitters, receivers.
fn stars() -> impl Iterator<Item = [u32; 4]> {
    [2, 3, 4, 7, 8, 13].into_iter().flat_map(|ranks| {
        [1, 2, 3, 8, 20].into_iter().flat_map(move |wavelengths| {
            [1, 2, 5].into_iter().flat_map(move |transmitters| {
                [1, 2, 3, 20].map(|receivers| [ranks, wavelengths, transmitters, receivers])
            })
        })
    })
}

fn spec([ranks, wavelengths, transmitters, receivers]: [u32; 4]) -> String {
    format!(
        "ranks={ranks},wavelengths={wavelengths},transmitters={transmitters},receivers={receivers}"
    )
}

#[test]
fn an_all_gather_meets_its_bound_or_misses_it_by_a_slot() {
    for star in stars() {
        let [ranks, wavelengths, transmitters, receivers] = star.map(u64::from);
        let plan = proved(AllGather, "direct:order=at_once", &spec(star));
        // As the issue of such couplers has it: what a rank hears, and what is sent.
        let heard = (ranks - 1).div_ceil(receivers);
        let sent = ranks.div_ceil(wavelengths.min(ranks * transmitters));
        let found = u64::from(plan.slots());
        assert!(bound_of(&plan) >= heard.max(sent), "{star:?}");
        assert!(found <= bound_of(&plan) + 1, "{star:?}: {found}");
        if receivers >= wavelengths {
            assert_eq!(found, heard.max(sent), "{star:?}");
        }
    }
}

#[test]
fn a_broadcast_takes_one_slot_and_an_all_to_all_fills_all_wavelengths() {
    for star in stars() {
        let [ranks, wavelengths, transmitters, receivers] = star.map(u64::from);
        assert_eq!(
            proved(Broadcast, "direct", &spec(star)).slots(),
            1,
            "{star:?}"
        );
        let plan = proved(AllToAll, "direct", &spec(star));
        let at_once = wavelengths.min(ranks * transmitters).min(ranks * receivers);
        let least = (ranks * (ranks - 1)).div_ceil(at_once);
        assert_eq!(bound_of(&plan), least, "{star:?}");
        if transmitters == 1 && receivers == 1 && wavelengths <= ranks {
            assert_eq!(u64::from(plan.slots()), least, "{star:?}");
        }
    }
}

/// Returns the plan of all copies in one step, where each block is cut into pieces.
fn one_step_in_pieces(kind: CollectiveKind, star: [u32; 4], pieces: u32) -> Plan {
    let fabric = Fabric::parse(&format!("passive_star:{}", spec(star))).unwrap();
    let collective = Collective::new(kind, star[0])
        .unwrap()
        .with_pieces(pieces)
        .unwrap();
    let mut schedule = Schedule::new(collective);
    for chunk in 0..collective.chunks() {
        let Holders::One(source) = collective.before(chunk) else {
            panic!("{kind}");
        };
        let to = match collective.after(chunk) {
            Holders::One(rank) => rank..rank + 1,
            Holders::All => 0..star[0],
        };
        for destination in to.filter(|&rank| rank != source) {
            schedule.push(Transfer::copy(chunk, source, destination));
        }
    }
    let plan = opticoll::placement::place_by_default(schedule, &fabric, "by hand".into()).unwrap();
    assert_eq!(verify(&plan), [], "{star:?}");
    plan
}

#[test]
fn pieces_fill_slots_as_blocks_do() {
    for (kind, star, pieces, slots) in [
        // Three ranks' six pieces, two at once.
        (AllGather, [3, 2, 1, 2], 2, 3),
        // With one receiver each hears one light at a time: nine.
        (AllGather, [3, 2, 1, 1], 3, 9),
        // 60 pieces, four at once.
        (AllToAll, [6, 4, 1, 1], 2, 15),
    ] {
        let plan = one_step_in_pieces(kind, star, pieces);
        assert_eq!(plan.slots(), slots, "{kind} {star:?}");
        assert!(bound_of(&plan) <= slots.into());
    }
}

#[test]
fn many_chunks_in_a_light_need_as_many_slots_as_hearing_takes() {
    let of = |kind, star| {
        let fabric = Fabric::parse(&format!("passive_star:{}", spec(star))).unwrap();
        let collective = Collective::new(kind, star[0]).unwrap();
        let own = fabric.downcast::<PassiveStar>().unwrap();
        passive_star::slots_for_any_load(own, &collective).steps
    };
    // One rank after another, or one and then two at once.
    assert_eq!(of(AllToAll, [4, 4, 1, 1]), 2);
    assert_eq!(of(AllGather, [9, 9, 1, 2]), 2);
    assert_eq!(of(CollectiveKind::Gather, [9, 9, 1, 1]), 4);
    // All that the root has in one light, of which each takes its own.
    assert_eq!(of(CollectiveKind::Scatter, [4, 1, 1, 1]), 1);
    // Two pairs exchange, and then each tells the other pair what both have.
    let two = "slot 0\ncopy 0 0>1 0\ncopy 1 1>0 1\ncopy 2 2>3 2\ncopy 3 3>2 3\nslot 1\n\
               copy 0+2 0>2 0\ncopy 0+2 0>3 0\ncopy 2+2 2>0 1\ncopy 2+2 2>1 1";
    let plan = handwritten("passive_star:ranks=4,wavelengths=4", "all_gather 1 1", two);
    assert_eq!(verify(&plan), []);
    assert_eq!(of(AllGather, [4, 4, 1, 1]), 2);
}

/// Returns the fewest slots of an all_gather, or of a broadcast from rank 0, over all plans, by
/// breadth-first search. A state is the set of blocks of each rank. In a slot each wavelength has
/// one sender, which sends a block that it holds, and each rank hears as many wavelengths as it has
/// receivers.
fn fewest_slots(ranks: u32, [wavelengths, transmitters, receivers]: [u32; 3], gather: bool) -> u64 {
    let blocks = if gather { ranks } else { 1 };
    let start: Vec<u32> = (0..ranks)
        .map(|rank| match (gather, rank) {
            (true, _) => 1 << rank,
            (false, 0) => 1,
            (false, _) => 0,
        })
        .collect();
    let all = (1 << blocks) - 1;
    let mut reached: HashSet<Vec<u32>> = [start].into();
    for slot in 0.. {
        if reached
            .iter()
            .any(|held| held.iter().all(|blocks| *blocks == all))
        {
            return slot;
        }
        let mut next = HashSet::new();
        for held in &reached {
            for lights in sendings(held, wavelengths, transmitters, blocks) {
                let heard: Vec<Vec<u32>> = held
                    .iter()
                    .map(|own| hearings(*own, &lights, receivers))
                    .collect();
                let mut states = vec![Vec::new()];
                for choices in heard {
                    states = states
                        .into_iter()
                        .flat_map(|state: Vec<u32>| {
                            choices
                                .iter()
                                .map(move |held| [state.clone(), vec![*held]].concat())
                        })
                        .collect();
                }
                next.extend(states);
            }
        }
        reached = next;
    }
    unreachable!()
}

/// Lists all assignments of blocks to the wavelengths of a slot; an unused wavelength never helps.
fn sendings(held: &[u32], wavelengths: u32, transmitters: u32, blocks: u32) -> Vec<Vec<u32>> {
    let mut all: Vec<(Vec<u32>, Vec<u32>)> = vec![(vec![], vec![0; held.len()])];
    for _ in 0..wavelengths {
        let mut longer = Vec::new();
        for (lights, used) in &all {
            for sender in (0..held.len()).filter(|&rank| used[rank] < transmitters) {
                for block in (0..blocks).filter(|block| held[sender] >> block & 1 == 1) {
                    let mut used = used.clone();
                    used[sender] += 1;
                    longer.push(([lights.clone(), vec![block]].concat(), used));
                }
            }
        }
        if longer.is_empty() {
            break;
        }
        all = longer;
    }
    let mut distinct = BTreeSet::new();
    for (mut lights, _) in all {
        lights.sort_unstable();
        distinct.insert(lights);
    }
    distinct.into_iter().collect()
}

/// Lists the sets of blocks that a rank may hold after it has tuned its receivers.
fn hearings(own: u32, lights: &[u32], receivers: u32) -> Vec<u32> {
    let mut held: BTreeSet<u32> = [own].into();
    for _ in 0..receivers.min(lights.len() as u32) {
        held = held
            .iter()
            .flat_map(|held| lights.iter().map(move |block| held | 1 << block))
            .collect();
    }
    held.into_iter().collect()
}

#[test]
fn no_plan_of_all_is_below_a_bound() {
    for ranks in 2..=4 {
        for wavelengths in 1..=3 {
            for transmitters in 1..=2 {
                for receivers in 1..=3 {
                    if ranks == 4 && wavelengths == 3 {
                        continue;
                    }
                    let ports = [wavelengths, transmitters, receivers];
                    let star = spec([ranks, wavelengths, transmitters, receivers]);
                    let gathered = fewest_slots(ranks, ports, true);
                    let plan = proved(AllGather, "direct:order=at_once", &star);
                    assert!(bound_of(&plan) <= gathered, "{star}: {gathered}");
                    assert!(gathered <= plan.slots().into(), "{star}: {gathered}");
                    let told = fewest_slots(ranks, ports, false);
                    assert_eq!(
                        (bound_of(&proved(Broadcast, "direct", &star)), told),
                        (1, 1),
                        "{star}"
                    );
                }
            }
        }
    }
}

/// Returns the fewest slots of a demand over all plans, by breadth-first search: a rank sends all
/// that it has, in one light that any rank may hear. A state has the sources whose data each rank
/// has. `wanted[rank]` are the sources whose data the rank must get.
fn fewest_slots_of_demand(wanted: [u32; 3], wavelengths: u32, receivers: u32) -> u64 {
    let mut reached: HashSet<[u32; 3]> = [[1, 2, 4]].into();
    for slot in 0.. {
        let is_done = |held: &[u32; 3]| wanted.iter().zip(held).all(|(all, own)| all & !own == 0);
        if reached.iter().any(is_done) {
            return slot;
        }
        let sets = |most: u32| (0..8u32).filter(move |set| set.count_ones() <= most);
        let mut next = HashSet::new();
        for held in &reached {
            for senders in sets(wavelengths) {
                let heard = |own: u32, set: u32| {
                    let lights = (0..3).filter(|rank| set >> rank & 1 == 1);
                    lights.fold(own, |all, rank| all | held[rank])
                };
                let choices = || sets(receivers).filter(|set| set & !senders == 0);
                for first in choices() {
                    for second in choices() {
                        next.extend(choices().map(|third| {
                            let sets = [first, second, third];
                            [0, 1, 2].map(|rank| heard(held[rank], sets[rank]))
                        }));
                    }
                }
            }
        }
        reached = next;
    }
    unreachable!()
}

#[test]
fn no_plan_of_a_demand_has_fewer_slots_than_the_bound() {
    let mut met = 0;
    for pattern in 1..64u32 {
        // Bits 2 i and 2 i + 1: the two other ranks whose data rank i must get.
        let others = [[1, 2], [0, 2], [0, 1]];
        let mut amounts = [0; 9];
        let mut wanted = [0; 3];
        for (bit, (rank, source)) in (0..3)
            .flat_map(|rank| others[rank].map(|source| (rank, source)))
            .enumerate()
        {
            if pattern >> bit & 1 == 1 {
                amounts[source * 3 + rank] = 1;
                wanted[rank] |= 1 << source;
            }
        }
        let demand = DemandMatrix::from_matrix(3, &amounts).unwrap();
        let collective = Collective::new(AllToAll, 3).unwrap();
        let collective = collective.with_demand(demand).unwrap();
        for (wavelengths, receivers) in (1..=3).flat_map(|one| [(one, 1), (one, 2)]) {
            let text = format!("passive_star:{}", spec([3, wavelengths, 1, receivers]));
            let fabric = Fabric::parse(&text).unwrap();
            let own = fabric.downcast::<PassiveStar>().unwrap();
            let bound = passive_star::slots_for_any_load(own, &collective).steps;
            let fewest = fewest_slots_of_demand(wanted, wavelengths, receivers);
            assert!(bound <= fewest, "{wanted:?} {text}: {bound} above {fewest}");
            met += u32::from(bound == fewest);
        }
    }
    // Most bounds are met: the search does not only find large numbers.
    assert!(met > 63 * 6 / 2, "{met}");
}

#[test]
fn every_algorithm_is_proved_and_not_below_the_bounds() {
    for star in [
        [1, 1, 1, 1],
        [2, 1, 1, 1],
        [5, 3, 1, 2],
        [8, 8, 2, 1],
        [9, 4, 1, 4],
    ] {
        let text = format!(
            "{},reconfiguration=1us,latency=300ns,rate=8Gb/s",
            spec(star)
        );
        let fabric = Fabric::parse(&format!("passive_star:{text}")).unwrap();
        let own = fabric.downcast::<PassiveStar>().unwrap();
        for record in records_for(&fabric) {
            if (record.accepts)(star[0]).is_err() || OF_RINGS.contains(&record.name) {
                continue;
            }
            let plan = proved(record.collective, record.name, &text);
            let collective = &plan.schedule.collective;
            assert!(
                u64::from(plan.slots()) >= bound_of(&plan),
                "{} {text}",
                record.name
            );
            for policy in Policy::ALL {
                for size in [1, 1000, 4096].map(Bytes::new) {
                    let time = simulate::run(&plan, size, &policy.into()).unwrap().time;
                    let bound = passive_star::best(
                        own,
                        collective,
                        size,
                        reconfiguration_cost(own, policy),
                    )
                    .unwrap();
                    assert!(
                        time >= bound.time,
                        "{} {} {text} {policy:?}: {time} below {}",
                        record.collective,
                        record.name,
                        bound.time
                    );
                }
            }
        }
    }
}

/// Algorithms that need ranks on a ring.
const OF_RINGS: [&str; 2] = ["one_stage", "wrht"];

#[test]
fn times_are_those_by_hand() {
    // A byte a nanosecond; four ranks hear two blocks of 100 B in each of two slots.
    let text = "ranks=4,wavelengths=2,receivers=2,rate=8Gb/s,reconfiguration=1us,latency=300ns";
    let plan = proved(AllGather, "direct:order=at_once", text);
    let time = |policy: Policy| {
        let outcome = simulate::run(&plan, Bytes::new(100), &TimingModel::from(policy)).unwrap();
        (outcome.time, outcome.reconfigurations)
    };
    let ns = |ns: u64| Time::from_ps(1000 * ns);
    // Each slot: tune, 300 ns, 100 B.
    assert_eq!(time(Policy::EveryStep), (ns(2 * (1000 + 300 + 100)), 2));
    // Ranks 2 and 3 send where ranks 0 and 1 have sent: other circuits.
    assert_eq!(time(Policy::OnChange), (ns(2 * (1000 + 300 + 100)), 2));
    assert_eq!(time(Policy::Free), (ns(2 * (300 + 100)), 0));
    // The receivers hear the first slot until then; after it the circuits from other transmitters
    // are set up: both slots wait.
    assert_eq!(time(Policy::PerPort), (ns(2 * (1000 + 300 + 100)), 2));
    // What a rank sends counts once, however many hear it; what it hears counts each time.
    let outcome = simulate::run(&plan, Bytes::new(100), &TimingModel::default()).unwrap();
    assert_eq!(outcome.ranks.sent, [100; 4]);
    assert_eq!(outcome.ranks.received, [300; 4]);
    assert_eq!(outcome.links.bytes, [200; 2]);
    assert!((outcome.utilisation - 1.0).abs() < 1e-12);
    // Two ranks take turns on one wavelength, also where no slot ends for all: the second circuit
    // is set up when the wavelength is free.
    let text = "ranks=2,wavelengths=1,rate=8Gb/s,reconfiguration=1us,latency=300ns";
    let plan = proved(AllGather, "direct:order=at_once", text);
    let method = TimingModel::from(Policy::PerPort);
    let outcome = simulate::run(&plan, Bytes::new(100), &method).unwrap();
    assert_eq!(outcome.time, ns(2 * (1000 + 300 + 100)));
}
