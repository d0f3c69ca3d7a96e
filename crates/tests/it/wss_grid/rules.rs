//! What the verifier sees on a grid: each rule with a plan that breaks it, and mutants of plans that hold,
//! judged by a second, naive checker.

use opticoll::family::wss_grid::WssGrid;
use std::collections::{BTreeMap, BTreeSet};

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Hop, Light};
use opticoll::family::wss_grid::TunedLight;
use opticoll::family::wss_grid::WavelengthPlan;
use opticoll::plan::Plan;
use opticoll::schedule::{Action, Schedule};
use opticoll::verify::{ViolationKind, tasks, verify};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::proved;
use crate::change_light;
use crate::verify::by_hand::cases;

#[test]
fn plans_by_hand_hold_where_a_naive_checker_says_so() {
    for case in cases().filter(|case| case.fabric.starts_with("wss_grid")) {
        assert_eq!(case.kinds.is_empty(), naive(&case.plan()), "{}", case.claim);
    }
}

#[test]
fn tasks_on_the_same_nodes_or_other_machines_do_not_get_along() {
    let task = |nodes: &str| {
        let fabric = format!("wss_grid:rows=2,columns=4{nodes}");
        proved(CollectiveKind::AllReduce, "halving_doubling", &fabric)
    };
    let (left, right) = (task(",nodes=0-1+4-5"), task(",nodes=2-3+6-7"));
    assert_eq!(tasks(&[&left, &right]), []);
    let both = tasks(&[&left, &right, &task(",nodes=1-2")]);
    let kinds: Vec<ViolationKind> = both.iter().map(|violation| violation.kind).collect();
    assert_eq!(kinds, [ViolationKind::Allocation; 2]);
    assert!(both[0].sentence.contains("node 1"), "{both:?}");
    let faster = task(",nodes=2-3,rate=400Gb/s");
    assert_eq!(tasks(&[&left, &faster]).len(), 1);
    let ring = Plan::without_light(
        &Fabric::parse("crossbar:ranks=2").unwrap(),
        Schedule::new(Collective::new(CollectiveKind::Barrier, 2).unwrap()),
        "none".into(),
    );
    assert_eq!(tasks(&[&left, &ring]).len(), 1);
}

/// Whether a plan holds, by the plainest reading of the rules.
fn naive(plan: &Plan) -> bool {
    let grid = plan.fabric.downcast::<WssGrid>().unwrap();
    let place = |rank: u32| {
        (
            grid.nodes[rank as usize] / grid.columns,
            grid.nodes[rank as usize] % grid.columns,
        )
    };
    let mut leads: BTreeMap<(u8, u32, u32, u16), BTreeSet<u32>> = BTreeMap::new();
    let mut comes: BTreeMap<(u8, u32, u32, u16), BTreeSet<u32>> = BTreeMap::new();
    let mut lasers: BTreeMap<(u32, u32, u8), BTreeSet<u16>> = BTreeMap::new();
    let mut ears: BTreeMap<(u32, u32, u8), BTreeSet<u32>> = BTreeMap::new();
    for step in 0..plan.schedule.steps() {
        for transfer in plan.schedule.step(step) {
            let hops: Vec<Hop> = plan.hops_of(transfer).collect();
            let ordered = hops.windows(2).all(|pair| pair[0].slot < pair[1].slot);
            let in_step = hops
                .iter()
                .all(|hop| plan.step_slots[step].contains(&hop.slot));
            if !ordered || !in_step {
                return false;
            }
            for hop in hops {
                let light = TunedLight::from(hop.light);
                if hop.from >= grid.ranks() || hop.to >= grid.ranks() || hop.from == hop.to {
                    return false;
                }
                if light.plane > 1 || u32::from(light.wavelength) >= grid.wavelengths {
                    return false;
                }
                let (from, to) = (place(hop.from), place(hop.to));
                let (switch, input, output, same, ports) = match light.plane {
                    0 => (from.0, from.1, to.1, from.0 == to.0, grid.columns),
                    _ => (from.1, from.0, to.0, from.1 == to.1, grid.rows),
                };
                let wavelength = u32::from(light.wavelength);
                let right = match grid.plan {
                    WavelengthPlan::Xor => input ^ output == 1 << wavelength,
                    WavelengthPlan::Cyclic => (input + 1 + wavelength) % ports == output,
                    WavelengthPlan::EdgeColouring => true,
                };
                let dead = [(hop.from, input), (hop.to, output)]
                    .iter()
                    .any(|&(rank, port)| {
                        let node = grid.nodes[rank as usize];
                        let name = ["row", "column"][usize::from(light.plane)];
                        let transceiver = format!("{node}.{name}");
                        let at = format!("{name}{switch}.{port}");
                        grid.dead_transceivers
                            .iter()
                            .any(|dead| dead.to_string() == transceiver)
                            || grid.dead_ports.iter().any(|dead| dead.to_string() == at)
                    });
                if !same || !right || dead {
                    return false;
                }
                let channel = (light.plane, switch, input, light.wavelength);
                leads.entry(channel).or_default().insert(output);
                let channel = (light.plane, switch, output, light.wavelength);
                comes.entry(channel).or_default().insert(input);
                let laser = (hop.slot, hop.from, light.plane);
                lasers.entry(laser).or_default().insert(light.wavelength);
                ears.entry((hop.slot, hop.to, light.plane))
                    .or_default()
                    .insert(hop.from);
            }
        }
    }
    leads.values().all(|set| set.len() == 1)
        && comes.values().all(|set| set.len() == 1)
        && lasers.values().all(|set| set.len() == 1)
        && ears.values().all(|set| set.len() == 1)
        && data_arrives(plan)
}

/// Whether the data is right: the same schedule where light does not matter.
fn data_arrives(plan: &Plan) -> bool {
    let fabric = Fabric::parse(&format!("crossbar:ranks={}", plan.fabric.ranks())).unwrap();
    let dark = Plan::without_light(&fabric, plan.schedule.clone(), String::new());
    verify(&dark).is_empty()
}

/// Plans to change.
fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (kind, algorithm, fabric) in [
        (
            CollectiveKind::AllReduce,
            "halving_doubling",
            "rows=2,columns=4,plan=xor",
        ),
        (
            CollectiveKind::AllReduce,
            "dual_plane_halving_doubling",
            "rows=2,columns=2,wavelengths=2",
        ),
        (
            CollectiveKind::AllReduce,
            "halving_doubling",
            "rows=3,columns=3,wavelengths=3",
        ),
        (
            CollectiveKind::AllGather,
            "ring",
            "rows=2,columns=3,plan=cyclic",
        ),
        (CollectiveKind::AllToAll, "direct", "rows=2,columns=3"),
        (
            CollectiveKind::Broadcast,
            "binomial",
            "rows=2,columns=4,dead_transceivers=1.row",
        ),
        (
            CollectiveKind::AllGather,
            "direct",
            "rows=2,columns=3,nodes=0-1+3-5",
        ),
    ] {
        plans.push(proved(kind, algorithm, &format!("wss_grid:{fabric}")));
    }
    plans
}

/// Changes a plan in one place; `None` where that is not possible.
type Mutation = fn(Plan, &mut Pcg64Mcg) -> Option<Plan>;

/// The plan with its schedule changed: transfers of a step by number.
fn rebuilt(plan: &Plan, keep: impl Fn(usize) -> usize) -> Plan {
    let mut next = plan.without_lightpaths();
    for step in 0..plan.schedule.steps() {
        next.schedule.begin_step();
        for transfer in plan.schedule.step(step) {
            for _ in 0..keep(transfer) {
                let index = next.len() as u32;
                next.push(plan.lightpath(transfer));
                let relays = plan.relays_of(transfer).iter();
                next.relays
                    .extend(relays.map(|relay| opticoll::plan::Relay {
                        transfer: index,
                        ..*relay
                    }));
            }
        }
    }
    next
}

/// The plan with one transfer's data or ends changed.
fn changed(plan: &Plan, at: usize, change: impl Fn(&mut opticoll::plan::Lightpath)) -> Plan {
    let mut next = plan.without_lightpaths();
    for step in 0..plan.schedule.steps() {
        next.schedule.begin_step();
        for transfer in plan.schedule.step(step) {
            let mut path = plan.lightpath(transfer);
            if transfer == at {
                change(&mut path);
            }
            next.push(path);
        }
    }
    next.relays = plan.relays.clone();
    next
}

/// Mutations after which a plan is wrong whatever it was.
const DEADLY: &[(&str, Mutation)] = &[
    ("drop", |plan, random| {
        let lost = random.random_range(0..plan.len());
        Some(rebuilt(&plan, |transfer| usize::from(transfer != lost)))
    }),
    ("double", |plan, random| {
        let twice = random.random_range(0..plan.len());
        Some(rebuilt(&plan, |transfer| {
            1 + usize::from(transfer == twice)
        }))
    }),
    (
        "two inputs on one wavelength of an output",
        |plan, random| {
            // Another circuit to the same output takes this one's wavelength.
            let one = random.random_range(0..plan.len());
            let to = |index: usize| {
                (
                    plan.schedule.ends(index).1,
                    TunedLight::from(plan.light[index]).plane,
                )
            };
            let from = |index: usize| plan.schedule.ends(index).0;
            let direct = |index: usize| plan.relays_of(index).is_empty();
            let other = (0..plan.len()).find(|&index| {
                to(index) == to(one) && from(index) != from(one) && direct(index) && direct(one)
            })?;
            let mut next = plan.clone();
            let taken = TunedLight::from(plan.light[one]).wavelength;
            change_light(&mut next.light[other], |light: &mut TunedLight| {
                light.wavelength = taken
            });
            Some(next)
        },
    ),
];

/// Mutations after which a plan may be right.
const OTHER: &[(&str, Mutation)] = &[
    ("destination", |plan, random| {
        let at = random.random_range(0..plan.len());
        let to = random.random_range(0..plan.fabric.ranks() + 1);
        Some(changed(&plan, at, |path| path.transfer.destination = to))
    }),
    ("source", |plan, random| {
        let at = random.random_range(0..plan.len());
        let from = random.random_range(0..plan.fabric.ranks());
        Some(changed(&plan, at, |path| path.transfer.source = from))
    }),
    ("slot", |mut plan, random| {
        let at = random.random_range(0..plan.len());
        plan.slot[at] = random.random_range(0..plan.slots() + 1);
        Some(plan)
    }),
    ("slot of a longer step", |mut plan, random| {
        // A step gets a slot more, at its end, and one transfer goes there.
        let step = random.random_range(0..plan.schedule.steps());
        let end = plan.step_slots[step].end;
        for slots in &mut plan.step_slots[step..] {
            (slots.start, slots.end) = (slots.start + 1, slots.end + 1);
        }
        plan.step_slots[step].start -= 1;
        let later = |slot: &mut u32| *slot += u32::from(*slot >= end);
        plan.slot.iter_mut().for_each(later);
        plan.relays
            .iter_mut()
            .for_each(|relay| later(&mut relay.slot));
        let moved = plan.schedule.step(step);
        if moved.is_empty() {
            return None;
        }
        plan.slot[random.random_range(moved)] = end;
        Some(plan)
    }),
    ("wavelength", |mut plan, random| {
        let at = random.random_range(0..plan.len());
        let most = plan.fabric.downcast::<WssGrid>()?.wavelengths as u16;
        change_light(&mut plan.light[at], |light: &mut TunedLight| {
            light.wavelength = random.random_range(0..most + 1);
        });
        Some(plan)
    }),
    ("plane", |mut plan, random| {
        let at = random.random_range(0..plan.len());
        change_light(&mut plan.light[at], |light: &mut TunedLight| {
            light.plane = random.random_range(0..3);
        });
        Some(plan)
    }),
    ("action", |plan, random| {
        let at = random.random_range(0..plan.len());
        Some(changed(&plan, at, |path| {
            path.transfer.action = match path.transfer.action {
                Action::Copy => Action::Reduce,
                Action::Reduce => Action::Copy,
            }
        }))
    }),
    ("chunk", |plan, random| {
        let at = random.random_range(0..plan.len());
        let chunk = random.random_range(0..plan.schedule.collective.chunks() + 1);
        Some(changed(&plan, at, |path| path.transfer.chunk = chunk))
    }),
    ("relay", |mut plan, random| {
        let at = random.random_range(0..plan.relays.len().max(1));
        let ranks = plan.fabric.ranks();
        plan.relays.get_mut(at)?.rank = random.random_range(0..ranks + 1);
        Some(plan)
    }),
    ("light of a relay", |mut plan, random| {
        let at = random.random_range(0..plan.relays.len().max(1));
        let relay = plan.relays.get_mut(at)?;
        relay.light = Light::from(TunedLight {
            plane: random.random_range(0..3),
            wavelength: random.random_range(0..3),
        });
        Some(plan)
    }),
    ("slot of a relay", |mut plan, random| {
        let at = random.random_range(0..plan.relays.len().max(1));
        let slots = plan.slots();
        plan.relays.get_mut(at)?.slot = random.random_range(0..slots + 1);
        Some(plan)
    }),
    ("no relay", |mut plan, random| {
        let at = random.random_range(0..plan.relays.len().max(1));
        (at < plan.relays.len()).then(|| plan.relays.remove(at))?;
        Some(plan)
    }),
];

/// How many mutants there are, and how many hold.
fn mutate(mutations: &[(&str, Mutation)], each: usize, seed: u64) -> (usize, usize) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (mut mutants, mut accepted) = (0, 0);
    for plan in plans() {
        assert!(naive(&plan), "{}", plan.algorithm);
        for (name, mutation) in mutations {
            for _ in 0..each {
                let Some(mutant) = mutation(plan.clone(), &mut random) else {
                    continue;
                };
                let (right, violations) = (naive(&mutant), verify(&mutant));
                let of = format!("{name} of {} on {}", plan.algorithm, plan.fabric);
                assert_eq!(right, violations.is_empty(), "{of}: {violations:#?}");
                mutants += 1;
                accepted += usize::from(right);
            }
        }
    }
    (mutants, accepted)
}

#[test]
fn dropped_and_doubled_transfers_and_shared_outputs_are_always_rejected() {
    let (mutants, accepted) = mutate(DEADLY, 60, 1);
    assert!(mutants > 700, "{mutants}");
    assert_eq!(accepted, 0);
}

#[test]
fn each_mutant_is_rejected_or_equivalent() {
    let (mutants, accepted) = mutate(OTHER, 60, 2);
    assert!(mutants > 3000, "{mutants}");
    assert!(accepted > 100, "{accepted} of {mutants}");
}
