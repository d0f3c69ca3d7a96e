//! Plans that look the same from every rank: what rank 0 sends, standing for all ranks.
//!
//! A rotation by r takes rank v to v + r mod N and chunk c to c + r C / N mod C, where C is the number
//! of chunks: block b becomes block b + r. An *orbit* is a lightpath that leaves rank 0, with its N
//! rotations, all in one slot. With l links, l dividing N, it takes l channels of its direction,
//! side by side from a first one on: the copy that leaves rank s is on channel `first + s mod l`.
//! Those on one channel leave ranks that are congruent modulo l, and so follow one another around
//! the ring without a gap. Channels are numbered fibre by fibre, `fibre * wavelengths + wavelength`,
//! and the channels of an orbit may go on from one fibre to the next. A converted lightpath is
//! converted in all rotations, on the same fibre. Rings with broken links, dead wavelengths or light trees
//! have no folded plans.

use super::{CONVERTED, Circuit, Lightpath, Plan};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::WdmRing;
use crate::interrupt;
use crate::schedule::Transfer;

/// A plan that is its own rotation by every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedPlan {
    /// The lightpaths that leave rank 0; fabric, claims, steps and slots are those of the whole.
    pub orbits: Plan,
}

/// By how many chunks a rotation by one rank moves each chunk, if a collective looks the same from
/// every rank.
pub fn chunks_per_rank(collective: &Collective) -> Option<u32> {
    let turns = match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => true,
        CollectiveKind::AllReduce => collective.pieces() % collective.ranks() == 0,
        _ => false,
    };
    turns.then(|| collective.chunks() / collective.ranks())
}

impl FoldedPlan {
    /// The number of lightpaths of the whole plan.
    pub fn transfers(&self) -> u64 {
        self.orbits.len() as u64 * u64::from(self.orbits.fabric.ranks())
    }

    /// The links that each lightpath of an orbit takes.
    pub fn links(&self, orbit: usize) -> u32 {
        self.ring()
            .map_or(1, |ring| links(ring, &self.orbits.lightpath(orbit)))
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

    fn ring(&self) -> Option<&WdmRing> {
        self.orbits.fabric.ring()
    }

    fn rotate(&self, lightpath: Lightpath, by: u32) -> Lightpath {
        let Some(ring) = self.ring() else {
            return lightpath;
        };
        let collective = self.orbits.schedule.collective;
        let Lightpath {
            slot,
            circuit,
            transfer,
        } = lightpath;
        let chunks = chunks_per_rank(&collective).unwrap_or(0);
        Lightpath {
            slot,
            circuit: beside(ring, circuit, by % links(ring, &lightpath)),
            transfer: Transfer {
                chunk: turned(
                    transfer.chunk,
                    u64::from(by) * u64::from(chunks),
                    collective.chunks(),
                ),
                source: turned(transfer.source, by.into(), ring.ranks),
                destination: turned(transfer.destination, by.into(), ring.ranks),
                ..transfer
            },
        }
    }
}

/// Folds a plan, if it is its own rotation by every rank and its channels lie as an orbit's do.
///
/// Each lightpath is turned back to rank 0, with the channel that its orbit would then have. The plan
/// is the unfolding of what rank 0 sends if and only if every rank sends the same then, step by step.
pub fn fold(plan: &Plan) -> Option<FoldedPlan> {
    let ring = plan.fabric.ring()?;
    let collective = plan.schedule.collective;
    let chunks = chunks_per_rank(&collective)?;
    let ranks = ring.ranks as usize;
    let columns = [
        plan.direction.len(),
        plan.fibre.len(),
        plan.wavelength.len(),
        plan.slot.len(),
    ];
    if !ring.is_even() || collective.ranks() != ring.ranks || columns != [plan.len(); 4] {
        return None;
    }
    // What each rank sends, turned back to rank 0, with its step.
    let mut sent: Vec<Vec<(usize, Lightpath)>> = vec![Vec::new(); ranks];
    for step in 0..plan.schedule.steps() {
        for index in plan.schedule.step(step) {
            interrupt::check();
            let lightpath = plan.lightpath(index);
            let back = turned_back(ring, collective, chunks, lightpath)?;
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
    ring: &WdmRing,
    collective: Collective,
    chunks: u32,
    lightpath: Lightpath,
) -> Option<Lightpath> {
    let Lightpath {
        slot,
        circuit,
        transfer,
    } = lightpath;
    let by = transfer.source;
    if by >= ring.ranks || transfer.destination >= ring.ranks {
        return None;
    }
    let length = links(ring, &lightpath);
    let circuit = if circuit.wavelength == CONVERTED {
        circuit
    } else {
        let exists = u32::from(circuit.fibre) < ring.fibres
            && u32::from(circuit.wavelength) < ring.wavelengths;
        if !exists || ring.ranks % length != 0 {
            return None;
        }
        let first = channel(ring, circuit).checked_sub(by % length)?;
        if first + length > ring.channels() {
            return None;
        }
        at(ring, circuit, first)
    };
    let back = u64::from(ring.ranks - by);
    Some(Lightpath {
        slot,
        circuit,
        transfer: Transfer {
            chunk: turned(
                transfer.chunk,
                back * u64::from(chunks),
                collective.chunks(),
            ),
            source: 0,
            destination: turned(transfer.destination, back, ring.ranks),
            ..transfer
        },
    })
}

/// A number moved modulo another; one that is out of range stays.
fn turned(number: u32, by: u64, modulus: u32) -> u32 {
    if number >= modulus {
        return number;
    }
    ((u64::from(number) + by) % u64::from(modulus)) as u32
}

/// The links of a lightpath, at least one.
fn links(ring: &WdmRing, lightpath: &Lightpath) -> u32 {
    let [source, destination] =
        [lightpath.transfer.source, lightpath.transfer.destination].map(|rank| rank % ring.ranks);
    ring.hops(source, destination, lightpath.circuit.direction)
        .max(1)
}

fn channel(ring: &WdmRing, circuit: Circuit) -> u32 {
    u32::from(circuit.fibre) * ring.wavelengths + u32::from(circuit.wavelength)
}

/// A circuit on the channel with a number; beyond the last one on wavelengths that do not exist.
fn at(ring: &WdmRing, circuit: Circuit, channel: u32) -> Circuit {
    let fibre = (channel / ring.wavelengths).min(ring.fibres - 1);
    let wavelength = channel - fibre * ring.wavelengths;
    Circuit {
        fibre: fibre as u8,
        wavelength: wavelength.min(u32::from(CONVERTED) - 1) as u16,
        ..circuit
    }
}

/// The circuit `channels` further; one that has no channel stays.
fn beside(ring: &WdmRing, circuit: Circuit, channels: u32) -> Circuit {
    let exists =
        u32::from(circuit.fibre) < ring.fibres && u32::from(circuit.wavelength) < ring.wavelengths;
    if exists && circuit.wavelength != CONVERTED {
        at(ring, circuit, channel(ring, circuit) + channels)
    } else {
        circuit
    }
}
