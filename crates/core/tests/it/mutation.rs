//! Mutants of valid plans. A second checker, naive and slow, judges every mutant, and the verifier
//! must agree with it: what it rejects is wrong, what it accepts is equivalent.
//!
//! The naive checker shares nothing with the verifier: it walks every lightpath link by link,
//! keeps whole sets of contributions in maps, and goes step by step for all chunks at once.

use std::collections::{BTreeMap, BTreeSet};

use opticoll::collective::{Collective, CollectiveKind, Holders};
use opticoll::fabric::{Direction, Fabric, WdmRing};
use opticoll::plan::{CONVERTED, Circuit, Lightpath, Plan};
use opticoll::schedule::{Action, Claims, Schedule, Transfer};
use opticoll::verify::verify;
use opticoll::{algorithm, route, wavelength};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

// The naive checker.

/// Whether a plan is right, by the rules of the plan file and of the collective.
fn is_right(plan: &Plan) -> bool {
    entries_exist(plan) && light_fits(plan) && data_arrives(plan) && claims_hold(plan)
}

fn entries_exist(plan: &Plan) -> bool {
    let Fabric::WdmRing(ring) = &plan.fabric;
    let collective = plan.schedule.collective;
    let step_of = |index: usize| {
        (0..plan.schedule.steps()).find(|&step| plan.schedule.step(step).contains(&index)).unwrap()
    };
    let mut slots_so_far = 0;
    for slots in &plan.step_slots {
        if slots.start != slots_so_far || slots.end < slots.start {
            return false;
        }
        slots_so_far = slots.end;
    }
    ring.ranks == collective.ranks()
        && plan.step_slots.len() == plan.schedule.steps()
        && plan.lightpaths().enumerate().all(|(index, Lightpath { slot, circuit, transfer })| {
            transfer.source != transfer.destination
                && transfer.source < ring.ranks
                && transfer.destination < ring.ranks
                && transfer.count >= 1
                && u64::from(transfer.chunk) + u64::from(transfer.count)
                    <= u64::from(collective.chunks())
                && plan.step_slots[step_of(index)].contains(&slot)
                && u32::from(circuit.fibre) < ring.fibres
                && if circuit.wavelength == CONVERTED {
                    ring.converters
                } else {
                    u32::from(circuit.wavelength) < ring.wavelengths
                }
                && (collective.combines() || transfer.action == Action::Copy)
        })
}

/// The links of a lightpath, as pairs of neighbours.
fn walk(lightpath: &Lightpath, ranks: u32) -> Vec<(u32, u32)> {
    let mut links = Vec::new();
    let mut here = lightpath.transfer.source;
    while here != lightpath.transfer.destination {
        let next = match lightpath.circuit.direction {
            Direction::Clockwise => (here + 1) % ranks,
            Direction::CounterClockwise => (here + ranks - 1) % ranks,
        };
        links.push((here, next));
        here = next;
    }
    links
}

fn light_fits(plan: &Plan) -> bool {
    let Fabric::WdmRing(ring) = &plan.fabric;
    let mut channels = BTreeSet::new();
    let mut loads: BTreeMap<_, u32> = BTreeMap::new();
    let mut sends: BTreeMap<_, u32> = BTreeMap::new();
    let mut receives: BTreeMap<_, u32> = BTreeMap::new();
    for lightpath in plan.lightpaths() {
        let Lightpath { slot, circuit, transfer } = lightpath;
        let Circuit { direction, fibre, wavelength } = circuit;
        for link in walk(&lightpath, ring.ranks) {
            let place = (slot, direction, fibre, link);
            *loads.entry(place).or_default() += 1;
            if wavelength != CONVERTED && !channels.insert((place, wavelength)) {
                return false;
            }
        }
        *sends.entry((slot, transfer.source)).or_default() += 1;
        *receives.entry((slot, transfer.destination)).or_default() += 1;
    }
    let ports = ring.ports.unwrap_or(u32::MAX);
    loads.values().all(|&load| load <= ring.wavelengths)
        && sends.values().chain(receives.values()).all(|&used| used <= ports)
}

/// A chunk of a rank: the ranks whose contributions (or whose block) it is made of.
type State = BTreeMap<(u32, u32), BTreeSet<u32>>;

fn data_arrives(plan: &Plan) -> bool {
    let collective = plan.schedule.collective;
    let everyone = || 0..collective.ranks();
    let among = |holders: Holders, rank| match holders {
        Holders::One(holder) => holder == rank,
        Holders::All => true,
    };
    let mut state = State::new();
    let mut goal = BTreeMap::new();
    for chunk in 0..collective.chunks() {
        let makers: BTreeSet<u32> =
            everyone().filter(|&rank| among(collective.before(chunk), rank)).collect();
        for &rank in &makers {
            state.insert((rank, chunk), [rank].into());
        }
        goal.insert(chunk, makers);
    }
    for step in 0..plan.schedule.steps() {
        let Some(after) = one_step(plan, step, &state) else { return false };
        state = after;
    }
    (0..collective.chunks()).all(|chunk| {
        everyone()
            .filter(|&rank| among(collective.after(chunk), rank))
            .all(|rank| state.get(&(rank, chunk)) == Some(&goal[&chunk]))
    })
}

/// What ranks hold after a step, if all goes well in it.
fn one_step(plan: &Plan, step: usize, before: &State) -> Option<State> {
    let mut arrivals: BTreeMap<(u32, u32), Vec<(Action, &BTreeSet<u32>)>> = BTreeMap::new();
    for index in plan.schedule.step(step) {
        let Transfer { chunk, count, source, destination, action } = plan.schedule.transfer(index);
        for chunk in chunk..chunk + count {
            let sent = before.get(&(source, chunk))?;
            arrivals.entry((destination, chunk)).or_default().push((action, sent));
        }
    }
    let mut after = before.clone();
    for (place, arrivals) in arrivals {
        let held = after.entry(place).or_default();
        match arrivals[..] {
            [(Action::Copy, sent)] => {
                if sent == held || !sent.is_superset(held) {
                    return None;
                }
                held.clone_from(sent);
            }
            _ => {
                for (action, sent) in arrivals {
                    for &contribution in sent {
                        if action == Action::Copy || !held.insert(contribution) {
                            return None;
                        }
                    }
                }
            }
        }
    }
    Some(after)
}

fn claims_hold(plan: &Plan) -> bool {
    let claims = &plan.schedule.claims;
    let ranks = plan.schedule.collective.ranks();
    let mut sent = vec![0u64; ranks as usize];
    let mut neighbours = true;
    for transfer in plan.schedule.transfers() {
        sent[transfer.source as usize] += u64::from(transfer.count);
        neighbours &= (transfer.source + 1) % ranks == transfer.destination
            || (transfer.destination + 1) % ranks == transfer.source;
    }
    (neighbours || !claims.neighbours_only)
        && claims.schedule_steps.is_none_or(|steps| steps as usize == plan.schedule.steps())
        && claims.chunks_sent_per_rank.is_none_or(|most| sent.iter().max() == Some(&most))
}

// Plans to mutate.

/// A plan taken apart: lightpaths with their step.
#[derive(Clone)]
struct Draft {
    fabric: Fabric,
    collective: Collective,
    claims: Claims,
    lightpaths: Vec<(usize, Lightpath)>,
    step_slots: Vec<std::ops::Range<u32>>,
}

impl Draft {
    fn of(plan: &Plan) -> Draft {
        let steps = (0..plan.schedule.steps())
            .flat_map(|step| plan.schedule.step(step).map(move |index| (step, index)));
        Draft {
            fabric: plan.fabric.clone(),
            collective: plan.schedule.collective,
            claims: plan.schedule.claims.clone(),
            lightpaths: steps.map(|(step, index)| (step, plan.lightpath(index))).collect(),
            step_slots: plan.step_slots.clone(),
        }
    }

    fn plan(&self) -> Plan {
        let mut schedule = Schedule::new(self.collective);
        schedule.claims = self.claims.clone();
        let mut lightpaths = Vec::new();
        for step in 0..self.step_slots.len() {
            schedule.begin_step();
            for (_, lightpath) in self.lightpaths.iter().filter(|(own, _)| *own == step) {
                schedule.push(lightpath.transfer);
                lightpaths.push(*lightpath);
            }
        }
        Plan {
            fabric: self.fabric.clone(),
            schedule,
            algorithm: "mutant".into(),
            size: None,
            direction: lightpaths.iter().map(|lightpath| lightpath.circuit.direction).collect(),
            fibre: lightpaths.iter().map(|lightpath| lightpath.circuit.fibre).collect(),
            wavelength: lightpaths.iter().map(|lightpath| lightpath.circuit.wavelength).collect(),
            slot: lightpaths.iter().map(|lightpath| lightpath.slot).collect(),
            step_slots: self.step_slots.clone(),
        }
    }

    /// A lightpath moved to a new slot at the end of the last step.
    fn at_the_end(&mut self, lightpath: Lightpath) -> (usize, Lightpath) {
        let step = self.step_slots.len() - 1;
        let end = &mut self.step_slots[step].end;
        *end += 1;
        (step, Lightpath { slot: *end - 1, ..lightpath })
    }

    fn ring(&self) -> &WdmRing {
        let Fabric::WdmRing(ring) = &self.fabric;
        ring
    }
}

/// Transfers of one chunk, step by step: chunk, source, destination, action.
type Steps = Vec<Vec<(u32, u32, u32, Action)>>;

/// Gives each transfer the first slot and channel of its step in which its light fits.
fn by_hand(fabric: &str, collective: Collective, steps: &Steps) -> Plan {
    let mut draft = Draft {
        fabric: Fabric::parse(fabric).unwrap(),
        collective,
        claims: Claims::default(),
        lightpaths: Vec::new(),
        step_slots: Vec::new(),
    };
    let ring = draft.ring().clone();
    let mut first_slot = 0;
    for (step, transfers) in steps.iter().enumerate() {
        draft.step_slots.push(first_slot..first_slot + transfers.len() as u32);
        for &(chunk, source, destination, action) in transfers {
            let clockwise = (destination + ring.ranks - source) % ring.ranks <= ring.ranks / 2;
            let direction =
                if clockwise { Direction::Clockwise } else { Direction::CounterClockwise };
            let wavelengths = if ring.converters { 1 } else { ring.wavelengths };
            let places = (first_slot..).flat_map(|slot| {
                (0..ring.fibres * wavelengths).map(move |channel| (slot, channel))
            });
            let transfer = Transfer { chunk, count: 1, source, destination, action };
            for (slot, channel) in places {
                let wavelength = if ring.converters { CONVERTED } else { (channel % wavelengths) as u16 };
                let fibre = (channel / wavelengths) as u8;
                let circuit = Circuit { direction, fibre, wavelength };
                draft.lightpaths.push((step, Lightpath { slot, circuit, transfer }));
                if light_fits(&draft.plan()) {
                    break;
                }
                draft.lightpaths.pop();
            }
        }
        let last = draft.lightpaths.iter().map(|(_, lightpath)| lightpath.slot + 1).max();
        first_slot = last.unwrap_or(0);
        draft.step_slots[step].end = first_slot;
    }
    draft.plan()
}

fn ring_all_gather(ranks: u32) -> Steps {
    let step = |time| {
        (0..ranks)
            .map(move |rank| ((rank + ranks - time) % ranks, rank, (rank + 1) % ranks, Action::Copy))
            .collect()
    };
    (0..ranks - 1).map(step).collect()
}

fn ring_all_reduce(ranks: u32) -> Steps {
    let step = |time| {
        let action = if time < ranks - 1 { Action::Reduce } else { Action::Copy };
        (0..ranks)
            .map(move |rank| ((rank + 2 * ranks - time) % ranks, rank, (rank + 1) % ranks, action))
            .collect()
    };
    (0..2 * (ranks - 1)).map(step).collect()
}

/// Every rank sends every other its block of `chunk(source, destination)`, all in one step.
fn direct(ranks: u32, action: Action, chunk: impl Fn(u32, u32) -> u32) -> Steps {
    let pairs = (0..ranks).flat_map(|source| (0..ranks).map(move |other| (source, other)));
    vec![
        pairs
            .filter(|(source, other)| source != other)
            .map(|(source, other)| (chunk(source, other), source, other, action))
            .collect(),
    ]
}

/// A star: all reduce into the root, which copies the result to all.
fn star_all_reduce(ranks: u32) -> Steps {
    vec![
        (1..ranks).map(|rank| (0, rank, 0, Action::Reduce)).collect(),
        (1..ranks).map(|rank| (0, 0, rank, Action::Copy)).collect(),
    ]
}

/// The pieces of a vector follow one another down the line 0, 1, 2, ...
fn pipeline(ranks: u32, pieces: u32) -> Steps {
    let step = |time: u32| {
        (0..ranks - 1)
            .filter(|&rank| rank <= time && time - rank < pieces)
            .map(|rank| (time - rank, rank, rank + 1, Action::Copy))
            .collect()
    };
    (0..ranks - 1 + pieces - 1).map(step).collect()
}

fn plans_by_hand() -> Vec<Plan> {
    let make = |kind, ranks, pieces| {
        Collective::new(kind, ranks).and_then(|made| made.with_pieces(pieces)).unwrap()
    };
    let fabric = |ranks, rest: &str| format!("wdm_ring:ranks={ranks},{rest}");
    use CollectiveKind::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter};
    let gather = |ranks| make(AllGather, ranks, 1);
    let mut plans = vec![
        by_hand(&fabric(5, "wavelengths=1"), gather(5), &ring_all_gather(5)),
        by_hand(&fabric(4, "wavelengths=2,fibres=2"), gather(4), &ring_all_gather(4)),
        by_hand(&fabric(4, "wavelengths=1"), make(AllReduce, 4, 4), &ring_all_reduce(4)),
        by_hand(&fabric(3, "wavelengths=3"), make(AllReduce, 3, 3), &ring_all_reduce(3)),
        by_hand(&fabric(6, "wavelengths=2"), make(AllReduce, 6, 1), &star_all_reduce(6)),
        by_hand(
            &fabric(6, "wavelengths=2,converters=full"),
            make(AllReduce, 6, 1),
            &star_all_reduce(6),
        ),
        by_hand(&fabric(4, "wavelengths=1"), make(Broadcast, 4, 3), &pipeline(4, 3)),
        by_hand(&fabric(4, "wavelengths=2,ports=1"), make(Broadcast, 4, 2), &pipeline(4, 2)),
    ];
    for options in ["wavelengths=2", "wavelengths=3,fibres=2", "wavelengths=4,ports=2"] {
        let one_stage = direct(5, Action::Copy, |source, _| source);
        plans.push(by_hand(&fabric(5, options), gather(5), &one_stage));
    }
    let swap = direct(4, Action::Copy, |source, destination| source * 4 + destination);
    plans.push(by_hand(&fabric(4, "wavelengths=2"), make(AllToAll, 4, 1), &swap));
    let scatter = direct(5, Action::Reduce, |_, destination| destination);
    plans.push(by_hand(&fabric(5, "wavelengths=2"), make(ReduceScatter, 5, 1), &scatter));
    for (steps, slots) in plans[0].step_slots.iter().enumerate() {
        assert_eq!(slots.start as usize, steps, "a ring takes one slot a step");
    }
    plans[0].schedule.claims.neighbours_only = true;
    plans[1].schedule.claims.schedule_steps = Some(3);
    plans[2].schedule.claims.chunks_sent_per_rank = Some(6);
    plans
}

/// A small plan by every algorithm there is, on a fabric that suits few of them well.
fn plans_by_algorithm() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (ranks, options) in [(6, "wavelengths=2"), (4, "wavelengths=1,fibres=2,ports=2")] {
        let fabric = Fabric::parse(&format!("wdm_ring:ranks={ranks},{options}")).unwrap();
        let Fabric::WdmRing(ring) = &fabric;
        for record in algorithm::records() {
            if (record.accepts)(ranks).is_err() {
                continue;
            }
            let collective = Collective::new(record.collective, ranks).unwrap();
            let spec = record.name.parse().unwrap();
            let schedule = algorithm::build(&spec, collective, &fabric).unwrap();
            let directions = route::shortest_arcs(&schedule, ring);
            let assignment = wavelength::Assignment::AUTO;
            let plan =
                wavelength::assign(schedule, directions, &fabric, assignment, record.name.into());
            plans.push(plan.unwrap());
        }
    }
    plans
}

// Mutations.

/// Changes a draft; false where this draft offers nothing to change.
type Mutation = fn(&mut Draft, &mut Pcg64Mcg) -> bool;

/// Mutations after which a plan is wrong whatever it was.
const DEADLY: &[(&str, Mutation)] =
    &[("drop", drop_one), ("double", double), ("double in a free slot", double_later), ("share", share)];

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
        any(draft, random).circuit.wavelength = random.random_range(0..wavelengths + 1);
        true
    }),
    ("conversion", |draft, random| {
        any(draft, random).circuit.wavelength = CONVERTED;
        true
    }),
    ("fibre", |draft, random| {
        let fibres = draft.ring().fibres as u8;
        any(draft, random).circuit.fibre = random.random_range(0..fibres + 1);
        true
    }),
    ("direction", |draft, random| {
        let circuit = &mut any(draft, random).circuit;
        circuit.direction = circuit.direction.opposite();
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
        swap(draft, random, |one, two| std::mem::swap(&mut one.circuit, &mut two.circuit))
    }),
    ("swap two transfers", |draft, random| {
        swap(draft, random, |one, two| std::mem::swap(&mut one.transfer, &mut two.transfer))
    }),
    ("swap two slots", |draft, random| {
        swap(draft, random, |one, two| std::mem::swap(&mut one.slot, &mut two.slot))
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
        *end = if random.random() { *end + 1 } else { end.saturating_sub(1) };
        true
    }),
];

fn any<'a>(draft: &'a mut Draft, random: &mut Pcg64Mcg) -> &'a mut Lightpath {
    let index = random.random_range(0..draft.lightpaths.len());
    &mut draft.lightpaths[index].1
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

/// Puts two lightpaths that meet on a link of a slot onto one channel.
fn share(draft: &mut Draft, random: &mut Pcg64Mcg) -> bool {
    let ranks = draft.ring().ranks;
    let one = draft.lightpaths[random.random_range(0..draft.lightpaths.len())].1;
    let links = walk(&one, ranks);
    let meeting = draft.lightpaths.iter_mut().map(|(_, lightpath)| lightpath).find(|other| {
        other.transfer != one.transfer
            && other.slot == one.slot
            && other.circuit.direction == one.circuit.direction
            && other.circuit.wavelength != CONVERTED
            && walk(other, ranks).iter().any(|link| links.contains(link))
    });
    meeting.map(|other| other.circuit = one.circuit).is_some()
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
        assert!(is_right(plan), "{} {}", plan.schedule.collective.kind(), plan.algorithm);
        assert_eq!(verify(plan), [], "{} {}", plan.schedule.collective.kind(), plan.algorithm);
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
    let tally = mutate(&plans_by_algorithm(), OTHER, 8, 4);
    assert!(tally.mutants > 4_000, "{tally:?}");
    assert!(tally.accepted > 100, "{tally:?}");
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
