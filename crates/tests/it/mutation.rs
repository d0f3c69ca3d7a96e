//! Mutants of valid plans. A second checker, naive and slow, judges every mutant, and the verifier
//! must agree with it: what it rejects is wrong, what it accepts is equivalent.

mod naive;
mod plans;

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::family::wdm_ring::{CONVERTED, WdmLight};
use opticoll::plan::{Lightpath, Plan};
use opticoll::planner;
use opticoll::schedule::Action;
use opticoll::verify::verify;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::change_light;
use naive::{is_right, walk};
use plans::{Draft, plans_by_algorithm, plans_by_hand};

// Mutations.

/// What a fabric may lack, beyond what a plan was made for.
const LACKS: &[&str] = &[
    "broken=1-2",
    "broken=2-3cw",
    "broken=0-1ccw",
    "dead=0",
    "dead=0.1",
    "reach=1",
    "reach=2",
    "launch_power=1dBm,sensitivity=0dBm,through_loss=0.2dB,resonators=2,split_loss=0.3dB",
];

/// Changes a draft; false where this draft offers nothing to change.
type Mutation = fn(&mut Draft, &mut Pcg64Mcg) -> bool;

/// Mutations after which a plan is wrong whatever it was.
const DEADLY: &[(&str, Mutation)] = &[
    ("drop", drop_one),
    ("double", double),
    ("double in a free slot", double_later),
    ("share", share),
];

/// Mutations after which a plan may be right.
const OTHER: &[(&str, Mutation)] = &[
    ("source", |draft, random| {
        let ranks = draft.ring().ranks;
        any(draft, random).transfer.source = random.random_range(0..ranks + 1);
        true
    }),
    ("destination", |draft, random| {
        let ranks = draft.ring().ranks;
        any(draft, random).transfer.destination = random.random_range(0..ranks + 1);
        true
    }),
    ("swap the ends", |draft, random| {
        let transfer = &mut any(draft, random).transfer;
        std::mem::swap(&mut transfer.source, &mut transfer.destination);
        true
    }),
    ("slot", |draft, random| {
        let slots = draft.step_slots.last().unwrap().end;
        any(draft, random).slot = random.random_range(0..slots + 1);
        true
    }),
    ("slot and step", |draft, random| {
        let index = random.random_range(0..draft.lightpaths.len());
        let step = random.random_range(0..draft.step_slots.len());
        let slots = draft.step_slots[step].clone();
        if slots.is_empty() {
            return false;
        }
        draft.lightpaths[index].0 = step;
        draft.lightpaths[index].1.slot = random.random_range(slots);
        true
    }),
    ("new slot at the end", |draft, random| {
        let index = random.random_range(0..draft.lightpaths.len());
        draft.lightpaths[index] = draft.at_the_end(draft.lightpaths[index].1);
        true
    }),
    ("wavelength", |draft, random| {
        let wavelengths = draft.ring().wavelengths as u16;
        any_light(draft, random, |light, random| {
            light.wavelength = random.random_range(0..wavelengths + 1);
        });
        true
    }),
    ("conversion", |draft, random| {
        any_light(draft, random, |light, _| light.wavelength = CONVERTED);
        true
    }),
    ("fibre", |draft, random| {
        let fibres = draft.ring().fibres as u8;
        any_light(draft, random, |light, random| {
            light.fibre = random.random_range(0..fibres + 1);
        });
        true
    }),
    ("direction", |draft, random| {
        any_light(draft, random, |light, _| *light = light.opposite());
        true
    }),
    ("chunk", |draft, random| {
        let chunks = draft.collective.chunks();
        any(draft, random).transfer.chunk = random.random_range(0..chunks + 1);
        true
    }),
    ("count", |draft, random| {
        any(draft, random).transfer.count = random.random_range(0..4);
        true
    }),
    ("action", |draft, random| {
        let transfer = &mut any(draft, random).transfer;
        transfer.action = match transfer.action {
            Action::Copy => Action::Reduce,
            Action::Reduce => Action::Copy,
        };
        true
    }),
    ("swap two chunks", |draft, random| {
        swap(draft, random, |one, two| {
            std::mem::swap(&mut one.transfer.chunk, &mut two.transfer.chunk);
        })
    }),
    ("swap two places", |draft, random| {
        swap(draft, random, |one, two| {
            std::mem::swap(&mut one.light, &mut two.light)
        })
    }),
    ("swap two transfers", |draft, random| {
        swap(draft, random, |one, two| {
            std::mem::swap(&mut one.transfer, &mut two.transfer)
        })
    }),
    ("swap two slots", |draft, random| {
        swap(draft, random, |one, two| {
            std::mem::swap(&mut one.slot, &mut two.slot)
        })
    }),
    ("new lightpath", |draft, random| {
        let ranks = draft.ring().ranks;
        let mut added = *any(draft, random);
        added.transfer.source = random.random_range(0..ranks);
        added.transfer.destination = random.random_range(0..ranks);
        let added = draft.at_the_end(added);
        draft.lightpaths.push(added);
        true
    }),
    ("step boundary", |draft, random| {
        let step = random.random_range(0..draft.step_slots.len());
        let end = &mut draft.step_slots[step].end;
        *end = if random.random() {
            *end + 1
        } else {
            end.saturating_sub(1)
        };
        true
    }),
];

fn any<'a>(draft: &'a mut Draft, random: &mut Pcg64Mcg) -> &'a mut Lightpath {
    let index = random.random_range(0..draft.lightpaths.len());
    &mut draft.lightpaths[index].1
}

/// Changes the light of one.
fn any_light(
    draft: &mut Draft,
    random: &mut Pcg64Mcg,
    change: impl FnOnce(&mut WdmLight, &mut Pcg64Mcg),
) {
    let light = &mut any(draft, random).light;
    change_light(light, |light| change(light, random));
}

fn swap(
    draft: &mut Draft,
    random: &mut Pcg64Mcg,
    exchange: impl Fn(&mut Lightpath, &mut Lightpath),
) -> bool {
    let count = draft.lightpaths.len();
    let (one, two) = (random.random_range(0..count), random.random_range(0..count));
    if one == two {
        return false;
    }
    let (low, high) = draft.lightpaths.split_at_mut(one.max(two));
    exchange(&mut low[one.min(two)].1, &mut high[0].1);
    true
}

fn drop_one(draft: &mut Draft, random: &mut Pcg64Mcg) -> bool {
    let index = random.random_range(0..draft.lightpaths.len());
    draft.lightpaths.remove(index);
    true
}

fn double(draft: &mut Draft, random: &mut Pcg64Mcg) -> bool {
    let again = draft.lightpaths[random.random_range(0..draft.lightpaths.len())];
    draft.lightpaths.push(again);
    true
}

/// Sends a transfer again in a slot of its own at the end, so that no light collides.
fn double_later(draft: &mut Draft, random: &mut Pcg64Mcg) -> bool {
    let again = *any(draft, random);
    let again = draft.at_the_end(again);
    draft.lightpaths.push(again);
    true
}

/// Puts two lightpaths between different ranks that meet on a link of a slot onto one channel.
fn share(draft: &mut Draft, random: &mut Pcg64Mcg) -> bool {
    let ranks = draft.ring().ranks;
    let one = draft.lightpaths[random.random_range(0..draft.lightpaths.len())].1;
    let links = walk(&one, ranks);
    let light = WdmLight::from(one.light);
    let meeting = draft
        .lightpaths
        .iter_mut()
        .map(|(_, lightpath)| lightpath)
        .find(|other| {
            let ends = |path: &Lightpath| (path.transfer.source, path.transfer.destination);
            ends(other) != ends(&one)
                && other.slot == one.slot
                && WdmLight::from(other.light).direction == light.direction
                && WdmLight::from(other.light).wavelength != CONVERTED
                && walk(other, ranks).iter().any(|link| links.contains(link))
        });
    meeting.map(|other| other.light = one.light).is_some()
}

// The tests.

/// How mutants fared.
#[derive(Default, Debug)]
struct Tally {
    mutants: usize,
    accepted: usize,
}

fn mutate(plans: &[Plan], mutations: &[(&str, Mutation)], each: usize, seed: u64) -> Tally {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut tally = Tally::default();
    for plan in plans {
        assert!(
            is_right(plan),
            "{} {}",
            plan.schedule.collective.kind(),
            plan.algorithm
        );
        assert_eq!(
            verify(plan),
            [],
            "{} {}",
            plan.schedule.collective.kind(),
            plan.algorithm
        );
        let draft = Draft::of(plan);
        for (name, mutation) in mutations {
            for _ in 0..each {
                let mut mutant = draft.clone();
                if !mutation(&mut mutant, &mut random) {
                    continue;
                }
                let mutant = mutant.plan();
                let (right, violations) = (is_right(&mutant), verify(&mutant));
                assert_eq!(
                    right,
                    violations.is_empty(),
                    "{name}: {:#?}\n{violations:#?}",
                    mutant.lightpaths().collect::<Vec<_>>()
                );
                tally.mutants += 1;
                tally.accepted += usize::from(right);
            }
        }
    }
    tally
}

#[test]
fn dropped_and_doubled_transfers_and_wavelengths_are_always_rejected() {
    let tally = mutate(&plans_by_hand(), DEADLY, 30, 1);
    assert!(tally.mutants > 1_000, "{tally:?}");
    assert_eq!(tally.accepted, 0, "{tally:?}");
}

#[test]
fn dropped_and_doubled_transfers_of_every_algorithm_are_always_rejected() {
    let tally = mutate(&plans_by_algorithm(), DEADLY, 10, 2);
    assert!(tally.mutants > 1_000, "{tally:?}");
    assert_eq!(tally.accepted, 0, "{tally:?}");
}

#[test]
fn each_mutant_of_a_plan_by_hand_is_rejected_or_equivalent() {
    let tally = mutate(&plans_by_hand(), OTHER, 20, 3);
    assert!(tally.mutants > 4_000, "{tally:?}");
    // Some mutants are as good as the original: another free wavelength, for one.
    assert!(tally.accepted > 100, "{tally:?}");
}

#[test]
fn each_mutant_of_every_algorithm_is_rejected_or_equivalent() {
    let plans: Vec<Plan> = crate::some_of(plans_by_algorithm(), 3).collect();
    let tally = mutate(&plans, OTHER, 8, 4);
    assert!(tally.mutants > crate::share(4_000, 3), "{tally:?}");
    assert!(tally.accepted > crate::share(100, 3), "{tally:?}");
}

/// All_gathers on fabrics with more, or with less, than channels.
const CAPABLE: &[&str] = &[
    "ranks=6,wavelengths=2,multicast=drop_and_continue",
    "ranks=5,wavelengths=2,fibres=2,multicast=drop_and_continue,reach=2",
    "ranks=6,wavelengths=2,multicast=drop_and_continue,converters=full,ports=2",
    "ranks=6,wavelengths=3,broken=2-3,multicast=drop_and_continue",
    "ranks=6,wavelengths=3,broken=2-3",
    "ranks=6,wavelengths=3,broken=4-5cw,dead=1",
    "ranks=7,wavelengths=3,fibres=2,dead=0.0+2",
    "ranks=7,wavelengths=3,ports=2",
    "ranks=7,wavelengths=3,reach=2",
    "ranks=6,wavelengths=2,multicast=drop_and_continue,launch_power=1dBm,sensitivity=0dBm,\
     through_loss=0.1dB,split_loss=0.2dB",
];

fn capable_plans() -> Vec<Plan> {
    let of = |options: &&str| {
        let fabric = Fabric::parse(&format!("wdm_ring:{options}")).unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, fabric.ranks()).unwrap();
        planner::relay_tree(&fabric, collective)
            .unwrap()
            .into_written_out()
    };
    CAPABLE.iter().map(of).collect()
}

#[test]
fn each_mutant_of_a_plan_for_a_capable_fabric_is_rejected_or_equivalent() {
    let tally = mutate(&capable_plans(), OTHER, 20, 7);
    assert!(tally.mutants > 3_000, "{tally:?}");
    assert!(tally.accepted > 100, "{tally:?}");
}

#[test]
fn each_plan_on_a_fabric_that_lacks_something_is_rejected_or_does_without() {
    let (mut rejected, mut accepted) = (0, 0);
    for plan in [plans_by_hand(), plans_by_algorithm(), capable_plans()].concat() {
        let ring = plan.fabric.downcast::<WdmRing>().unwrap();
        for lack in LACKS {
            let key = &lack[..lack.find('=').unwrap() + 1];
            let spelled = plan.fabric.to_string();
            let parsed = Fabric::parse(&format!("{spelled},{lack}"));
            // Small rings have no such place, and some lack the same already.
            let (false, Ok(fabric)) = (spelled.contains(key), parsed) else {
                continue;
            };
            assert!(ring.ranks > 1);
            let weaker = Plan {
                fabric,
                ..plan.clone()
            };
            let (right, violations) = (is_right(&weaker), verify(&weaker));
            assert_eq!(
                right,
                violations.is_empty(),
                "{}: {violations:#?}",
                weaker.fabric
            );
            rejected += usize::from(!right);
            accepted += usize::from(right);
        }
    }
    assert!(
        rejected > 100 && accepted > 100,
        "{rejected} and {accepted}"
    );
}

#[test]
fn each_mutant_of_mutants_is_rejected_or_equivalent() {
    // Two mutations may hide one another, or make another valid plan together.
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let mut accepted = Vec::new();
    for plan in plans_by_hand() {
        for (_, mutation) in OTHER {
            for _ in 0..4 {
                let mut mutant = Draft::of(&plan);
                mutation(&mut mutant, &mut random);
                let mutant = mutant.plan();
                if is_right(&mutant) {
                    accepted.push(mutant);
                }
            }
        }
    }
    let tally = mutate(&accepted, OTHER, 2, 6);
    assert!(tally.mutants > 1_000, "{tally:?}");
}
