//! Plans that look the same from every rank: what rank 0 sends, standing for all ranks.
//!
//! A rotation by r takes rank v to v + r mod N and chunk c to c + r C / N mod C, where C is the number
//! of chunks: block b becomes block b + r. In an all_to_all the block from rank u to rank v becomes that from u + r to v + r. An *orbit* is a lightpath that leaves rank 0, with its N
//! rotations, all in one slot. What a rotation does to light, the fabric says
//! ([`Rotation`]): the copies take l channels side by side from a first one on, and
//! the copy that leaves rank s is on channel `first + s mod l`. Around a ring, l is the number of links, and
//! divides N: those on one channel leave ranks that are congruent modulo l, and so follow one another around
//! the ring without a gap. The channels of an orbit may go on from one fibre to the next. A converted
//! lightpath is converted in all rotations, on the same fibre. Rings with broken links, dead wavelengths or
//! light trees have no folded plans.

use super::{Lightpath, Plan};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::{Hop, Rotation};
use crate::interrupt;
use crate::schedule::Transfer;

/// A plan that is its own rotation by every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedPlan {
    /// The lightpaths that leave rank 0; fabric, claims, steps and slots are those of the whole.
    pub orbits: Plan,
}

/// By how many chunks a rotation by one rank moves each chunk, if a collective looks the same from
/// every rank. In an all_to_all those for rank N - 1 move by N blocks less, to the blocks for rank 0.
pub fn chunks_per_rank(collective: &Collective) -> Option<u32> {
    let turns = match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => true,
        CollectiveKind::AllReduce => collective.pieces() % collective.ranks() == 0,
        _ => false,
    };
    if collective.kind() == CollectiveKind::AllToAll && collective.demand().is_none() {
        return Some((collective.ranks() + 1) * collective.pieces());
    }
    turns.then(|| collective.chunks() / collective.ranks())
}

/// What a rotation by so many ranks makes of a chunk; one that does not exist stays.
pub fn turned_chunk(collective: &Collective, chunk: u32, by: u32) -> u32 {
    if collective.kind() != CollectiveKind::AllToAll {
        let moved = chunks_per_rank(collective).unwrap_or(0);
        let by = u64::from(by) * u64::from(moved);
        return turned(chunk, by, collective.chunks());
    }
    if chunk >= collective.chunks() || collective.demand().is_some() {
        return chunk;
    }
    let (ranks, pieces) = (collective.ranks(), collective.pieces());
    let (block, piece) = (chunk / pieces, chunk % pieces);
    let [source, destination] =
        [block / ranks, block % ranks].map(|rank| turned(rank, by.into(), ranks));
    (source * ranks + destination) * pieces + piece
}

impl FoldedPlan {
    /// The number of lightpaths of the whole plan.
    pub fn transfers(&self) -> u64 {
        self.orbits.len() as u64 * u64::from(self.orbits.fabric.ranks())
    }

    /// On how many channels side by side the lightpaths of an orbit are.
    pub fn span(&self, orbit: usize) -> u32 {
        let rotation = self.orbits.fabric.rotation();
        rotation.map_or(1, |rotation| {
            rotation.span(&hop(&self.orbits.lightpath(orbit)))
        })
    }

    /// The copy of an orbit that leaves rank `source`. What is out of range on rank 0 is so in every
    /// copy.
    pub fn copy(&self, orbit: usize, source: u32) -> Lightpath {
        self.rotate(self.orbits.lightpath(orbit), source)
    }

    /// The copies of every orbit that leave the ranks below `ranks`, orbit by orbit.
    pub fn copies(&self, ranks: u32) -> Plan {
        let of = &self.orbits;
        let mut plan = of.without_lightpaths();
        plan.reserve(of.len() * ranks as usize);
        for step in 0..of.schedule.steps() {
            plan.schedule.begin_step();
            for orbit in of.schedule.step(step) {
                interrupt::check();
                for source in 0..ranks {
                    interrupt::check();
                    plan.push(self.copy(orbit, source));
                }
            }
        }
        plan
    }

    /// The whole plan: the lightpath of orbit i that leaves rank s has the index i N + s.
    pub fn unfold(&self) -> Plan {
        self.copies(self.orbits.fabric.ranks())
    }

    fn rotate(&self, lightpath: Lightpath, by: u32) -> Lightpath {
        if by == 0 {
            return lightpath;
        }
        let collective = self.orbits.schedule.collective;
        let ranks = self.orbits.fabric.ranks();
        let Lightpath {
            light, transfer, ..
        } = lightpath;
        let light = match self.orbits.fabric.rotation() {
            Some(rotation) => rotation.further(light, by % rotation.span(&hop(&lightpath))),
            None => light,
        };
        Lightpath {
            light,
            transfer: Transfer {
                chunk: turned_chunk(&collective, transfer.chunk, by),
                source: turned(transfer.source, by.into(), ranks),
                destination: turned(transfer.destination, by.into(), ranks),
                ..transfer
            },
            ..lightpath
        }
    }
}

/// A lightpath as its light goes.
fn hop(lightpath: &Lightpath) -> Hop {
    Hop {
        from: lightpath.transfer.source,
        to: lightpath.transfer.destination,
        light: lightpath.light,
        slot: lightpath.slot,
    }
}

/// Folds a plan, if it is its own rotation by every rank and its channels lie as an orbit's do.
///
/// Each lightpath is turned back to rank 0, with the channel that its orbit would then have. The plan
/// is the unfolding of what rank 0 sends if and only if every rank sends the same then, step by step.
pub fn fold(plan: &Plan) -> Option<FoldedPlan> {
    let rotation = plan.fabric.rotation()?;
    let collective = plan.schedule.collective;
    chunks_per_rank(&collective)?;
    let ranks = plan.fabric.ranks();
    let columns = [plan.light.len(), plan.slot.len()];
    if collective.ranks() != ranks || columns != [plan.len(); 2] {
        return None;
    }
    // Ranges that go on from the blocks for rank N - 1 to those for rank 0 are cut in two.
    if collective.kind() == CollectiveKind::AllToAll && !plan.schedule.is_in_single_chunks() {
        return None;
    }
    // What each rank sends, turned back to rank 0, with its step.
    let mut sent: Vec<Vec<(usize, Lightpath)>> = vec![Vec::new(); ranks as usize];
    for step in 0..plan.schedule.steps() {
        for index in plan.schedule.step(step) {
            interrupt::check();
            let lightpath = plan.lightpath(index);
            let back = turned_back(rotation, collective, lightpath)?;
            sent[lightpath.transfer.source as usize].push((step, back));
        }
    }
    let mut orbits = plan.without_lightpaths();
    for step in 0..plan.schedule.steps() {
        orbits.schedule.begin_step();
        let own = sent[0].iter().filter(|(at, _)| *at == step);
        own.for_each(|(_, lightpath)| orbits.push(*lightpath));
    }
    sent.iter_mut().for_each(|sent| sent.sort_unstable());
    let same = sent.windows(2).all(|pair| pair[0] == pair[1]);
    same.then_some(FoldedPlan { orbits })
}

/// The copy at rank 0 of a lightpath's orbit; `None` where it can be in none.
fn turned_back(
    rotation: &dyn Rotation,
    collective: Collective,
    lightpath: Lightpath,
) -> Option<Lightpath> {
    let transfer = lightpath.transfer;
    let (by, ranks) = (transfer.source, collective.ranks());
    if by >= ranks || transfer.destination >= ranks {
        return None;
    }
    let span = rotation.span(&hop(&lightpath));
    if ranks % span != 0 {
        return None;
    }
    let back = u64::from(ranks - by);
    Some(Lightpath {
        light: rotation.turn_back(lightpath.light, span, by % span)?,
        transfer: Transfer {
            chunk: turned_chunk(&collective, transfer.chunk, ranks - by),
            source: 0,
            destination: turned(transfer.destination, back, ranks),
            ..transfer
        },
        ..lightpath
    })
}

/// A number moved modulo another; one that is out of range stays.
fn turned(number: u32, by: u64, modulus: u32) -> u32 {
    if number >= modulus {
        return number;
    }
    ((u64::from(number) + by) % u64::from(modulus)) as u32
}
