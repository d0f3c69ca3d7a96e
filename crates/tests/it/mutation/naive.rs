//! A checker of plans that is naive and slow, to check the verifier by.
//!
//! It shares nothing with the verifier: it walks every lightpath link by link, keeps whole sets of
//! contributions in maps, and goes step by step for all chunks at once.

use std::collections::{BTreeMap, BTreeSet};

use opticoll::collective::{CollectiveKind, Holders};
use opticoll::fabric::Light;
use opticoll::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll::plan::{Lightpath, Plan};
use opticoll::schedule::{Action, Transfer};

/// Whether a plan is right, by the rules of the plan file and of the collective.
pub(super) fn is_right(plan: &Plan) -> bool {
    entries_exist(plan) && light_fits(plan) && data_arrives(plan) && claims_hold(plan)
}

fn entries_exist(plan: &Plan) -> bool {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let collective = plan.schedule.collective;
    let step_of = |index: usize| {
        (0..plan.schedule.steps())
            .find(|&step| plan.schedule.step(step).contains(&index))
            .unwrap()
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
        && plan.lightpaths().enumerate().all(
            |(
                index,
                Lightpath {
                    slot,
                    light,
                    transfer,
                },
            )| {
                let light = WdmLight::from(light);
                transfer.source != transfer.destination
                    && transfer.source < ring.ranks
                    && transfer.destination < ring.ranks
                    && transfer.count >= 1
                    && u64::from(transfer.chunk) + u64::from(transfer.count)
                        <= u64::from(collective.chunks())
                    && plan.step_slots[step_of(index)].contains(&slot)
                    && u32::from(light.fibre) < ring.fibres
                    && if light.wavelength == CONVERTED {
                        ring.converters
                    } else {
                        u32::from(light.wavelength) < ring.wavelengths
                    }
                    && (collective.combines() || transfer.action == Action::Copy)
            },
        )
}

/// The links of a lightpath, as pairs of neighbours.
pub(super) fn walk(lightpath: &Lightpath, ranks: u32) -> Vec<(u32, u32)> {
    let mut links = Vec::new();
    let mut here = lightpath.transfer.source;
    while here != lightpath.transfer.destination {
        let next = match WdmLight::from(lightpath.light).direction {
            Direction::Clockwise => (here + 1) % ranks,
            Direction::CounterClockwise => (here + ranks - 1) % ranks,
        };
        links.push((here, next));
        here = next;
    }
    links
}

/// The number of a transfer that has its own light; 0 with the slot, light, source and chunks of a light tree; 1 with the slot,
/// light and ends of others.
type Carrier = (usize, Option<(u32, Light, u32, u32, u32)>);

/// The light that carries each transfer: its own, that of a tree that carries the same chunks, or that of all that
/// goes between two ranks on a wavelength.
fn carriers(plan: &Plan) -> Vec<Carrier> {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let sent = |lightpath: &Lightpath| {
        let Transfer {
            source,
            chunk,
            count,
            ..
        } = lightpath.transfer;
        (lightpath.slot, lightpath.light, source, chunk, count)
    };
    let mut alike = BTreeMap::new();
    for lightpath in plan.lightpaths() {
        *alike.entry(sent(&lightpath)).or_insert(0) += 1;
    }
    let own = |(index, lightpath): (usize, Lightpath)| {
        if ring.multicast && alike[&sent(&lightpath)] > 1 {
            return (0, Some(sent(&lightpath)));
        }
        between(&lightpath).map_or((index, None), |ends| (1, Some(ends)))
    };
    plan.lightpaths().enumerate().map(own).collect()
}

/// The slot, the light and the ends of a lightpath that has a wavelength.
fn between(path: &Lightpath) -> Option<(u32, Light, u32, u32, u32)> {
    let Transfer {
        source,
        destination,
        ..
    } = path.transfer;
    let has_wavelength = WdmLight::from(path.light).wavelength != CONVERTED;
    has_wavelength.then_some((path.slot, path.light, source, destination, 0))
}

pub(super) fn light_fits(plan: &Plan) -> bool {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let carriers = carriers(plan);
    let mut channels = BTreeMap::new();
    let mut loads: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut sends: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut receives: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (index, lightpath) in plan.lightpaths().enumerate() {
        let Lightpath {
            slot,
            light,
            transfer,
        } = lightpath;
        let WdmLight {
            direction,
            fibre,
            wavelength,
        } = WdmLight::from(light);
        let light = carriers[index];
        for link in walk(&lightpath, ring.ranks) {
            let place = (slot, direction, fibre, link);
            loads.entry(place).or_default().insert(light);
            let other = channels.entry((place, wavelength)).or_insert(light);
            if wavelength != CONVERTED && *other != light {
                return false;
            }
        }
        sends
            .entry((slot, transfer.source))
            .or_default()
            .insert(light);
        // A light tree has a receiver at each drop.
        let received = between(&lightpath).ok_or(index);
        receives
            .entry((slot, transfer.destination))
            .or_default()
            .insert(received);
    }
    let ports = ring.ports.unwrap_or(u32::MAX) as usize;
    loads
        .iter()
        .all(|((_, _, fibre, _), lights)| lights.len() as u32 <= usable(ring, *fibre))
        && sends.values().all(|lights| lights.len() <= ports)
        && receives.values().all(|lights| lights.len() <= ports)
        && (0..plan.len()).all(|index| arrives(plan, ring, &carriers, index))
}

fn usable(ring: &WdmRing, fibre: u8) -> u32 {
    let dead = |wavelength: &u32| {
        let mut all = ring.dead.iter();
        all.any(|dead| dead.fibre == u32::from(fibre) && dead.wavelength == *wavelength)
    };
    (0..ring.wavelengths)
        .filter(|wavelength| !dead(wavelength))
        .count() as u32
}

/// Whether light goes all the way, and is strong enough there.
fn arrives(plan: &Plan, ring: &WdmRing, carriers: &[Carrier], index: usize) -> bool {
    let path = plan.lightpath(index);
    let on = WdmLight::from(path.light);
    let links = walk(&path, ring.ranks);
    let cut = links.iter().any(|&(from, to)| {
        ring.broken.iter().any(|broken| {
            let next = (broken.position + 1) % ring.ranks;
            broken.direction == on.direction
                && match broken.direction {
                    Direction::Clockwise => (from, to) == (broken.position, next),
                    Direction::CounterClockwise => (from, to) == (next, broken.position),
                }
        })
    });
    let dead = ring
        .dead
        .iter()
        .any(|dead| (dead.fibre, dead.wavelength) == (on.fibre.into(), on.wavelength.into()));
    let nearer: BTreeSet<usize> = (0..plan.len())
        .filter(|&other| carriers[other] == carriers[index])
        .map(|other| walk(&plan.lightpath(other), ring.ranks).len())
        .filter(|&other| other < links.len())
        .collect();
    let bright = ring.budget.is_none_or(|budget| {
        let mut power = budget.launch_power.millionths();
        for _ in 1..links.len() {
            for _ in 0..budget.resonators {
                power -= budget.through_loss.millionths();
            }
        }
        for _ in nearer {
            power -= budget.split_loss.millionths();
        }
        power - budget.drop_loss.millionths() >= budget.sensitivity.millionths()
    });
    !cut && !dead && bright && ring.reach.is_none_or(|reach| links.len() <= reach as usize)
}

/// A rank and a chunk.
type Place = (u32, u32);

/// What is held: the ranks whose contributions (or whose block) it is made of.
type State = BTreeMap<Place, BTreeSet<u32>>;

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
        let makers: BTreeSet<u32> = everyone()
            .filter(|&rank| among(collective.before(chunk), rank))
            .collect();
        for &rank in &makers {
            state.insert((rank, chunk), [rank].into());
        }
        goal.insert(chunk, makers);
    }
    for step in 0..plan.schedule.steps() {
        let Some(after) = one_step(plan, step, &state) else {
            return false;
        };
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
    let barrier = plan.schedule.collective.kind() == CollectiveKind::Barrier;
    let mut signals = BTreeSet::new();
    let mut arrivals = BTreeMap::<Place, Vec<(Action, &BTreeSet<u32>)>>::new();
    for index in plan.schedule.step(step) {
        let Transfer {
            chunk,
            count,
            source,
            destination,
            action,
        } = plan.schedule.transfer(index);
        for chunk in chunk..chunk + count {
            let sent = before.get(&(source, chunk))?;
            let known = before.get(&(destination, chunk));
            let news = known.is_none_or(|known| !sent.is_subset(known));
            let once = signals.insert((source, destination, chunk));
            if barrier && action == Action::Reduce && !(news && once) {
                return None;
            }
            arrivals
                .entry((destination, chunk))
                .or_default()
                .push((action, sent));
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
                        let new = held.insert(contribution);
                        if action == Action::Copy || !(new || barrier) {
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
        && claims
            .schedule_steps
            .is_none_or(|steps| steps as usize == plan.schedule.steps())
        && claims
            .chunks_sent_per_rank
            .is_none_or(|most| sent.iter().max() == Some(&most))
}
