//! All_gathers over circuits that stay up: flooding among neighbours, on one level or several.
//!
//! Radices m_1 m_2 ... m_k = N give strides s_j = N / (m_1 ... m_j). Before level j rank v holds the
//! blocks of all ranks at multiples of s_(j-1) from it (s_0 = N: its own); after it, those at multiples
//! of s_j. On level j circuits lead from every rank to those i s_j away, i = 1..x, both ways, one
//! channel for each block; they do not change. In slot t = 0, 1, ... of the level a rank sends over
//! the circuit of distance i what it has from t x strides behind it: the receiver gets the blocks of
//! the rank t x + i strides away. That takes ceil(ceil((m_j - 1) / 2) / x) slots and a load of
//! P (N / m_j) x (x + 1) / 2 channels. With one level, x = 1 and as many pieces as channels it is the
//! striped ring in both directions, which meets the bandwidth bound.

use super::{Kept, empty_plan};
use crate::collective::Collective;
use crate::fabric::{Direction, Fabric, WdmRing};
use crate::interrupt;
use crate::plan::{AnyPlan, Circuit as Channel, FoldedPlan, Lightpath, Plan};
use crate::schedule::{Schedule, Transfer};
use crate::wavelength::{Assignment, assign};

/// More levels save no slots worth their settings.
pub(super) const MOST_LEVELS: usize = 3;

/// A radix m and a reach x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) radix: u32,
    pub(super) reach: u32,
}

impl Level {
    /// The slots that the level takes.
    fn slots(self) -> u32 {
        (self.radix / 2).div_ceil(self.reach)
    }
}

/// Levels and pieces per block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) levels: Vec<Level>,
    pub(super) pieces: u32,
}

impl Layout {
    /// The slots that the plan takes.
    pub(super) fn slots(&self) -> u32 {
        self.levels.iter().map(|level| level.slots()).sum()
    }

    /// Its spelling, such as `levels:radices=16x64,reaches=1x2,pieces=1`.
    pub(super) fn spelling(&self) -> String {
        let join = |of: fn(&Level) -> u32| {
            let parts: Vec<String> = self
                .levels
                .iter()
                .map(|level| of(level).to_string())
                .collect();
            parts.join("x")
        };
        let (radices, reaches) = (join(|level| level.radix), join(|level| level.reach));
        format!(
            "levels:radices={radices},reaches={reaches},pieces={}",
            self.pieces
        )
    }
}

/// For every number of levels up to `most_levels` the layout of fewest slots with so many pieces,
/// where there is one.
pub(super) fn layouts(ring: &WdmRing, pieces: u32, most_levels: usize, kept: Kept) -> Vec<Layout> {
    let mut best: Vec<Option<Layout>> = vec![None; most_levels];
    let mut levels = Vec::new();
    extend(ring, pieces, kept, ring.ranks, &mut levels, &mut best);
    best.into_iter().flatten().collect()
}

fn extend(
    ring: &WdmRing,
    pieces: u32,
    kept: Kept,
    rest: u32,
    levels: &mut Vec<Level>,
    best: &mut [Option<Layout>],
) {
    if rest == 1 {
        let layout = Layout {
            levels: levels.clone(),
            pieces,
        };
        let known = &mut best[levels.len() - 1];
        if known
            .as_ref()
            .is_none_or(|known| layout.slots() < known.slots())
        {
            *known = Some(layout);
        }
        return;
    }
    if levels.len() == best.len() {
        return;
    }
    for radix in (2..=rest).filter(|radix| rest % *radix == 0) {
        let each = u64::from(ring.ranks / radix) * u64::from(pieces);
        let stride = u64::from(rest / radix);
        let fits = |reach: u32| {
            u64::from(reach) * stride <= u64::from(ring.longest())
                && each * u64::from(reach) * u64::from(reach + 1) / 2 <= u64::from(ring.channels())
                && (kept == Kept::Any || tiles(ring.ranks, rest / radix, reach))
        };
        if let Some(reach) = (1..=radix / 2).take_while(|reach| fits(*reach)).last() {
            levels.push(Level { radix, reach });
            extend(ring, pieces, kept, rest / radix, levels, best);
            levels.pop();
        }
    }
}

/// Whether circuits to all multiples of a stride, up to a reach, are rotations side by side.
fn tiles(ranks: u32, stride: u32, reach: u32) -> bool {
    (1..=reach).all(|distance| ranks % (distance * stride) == 0)
}

/// The plan of a layout. Where the circuits of a level need more channels than their load says, with
/// a shorter reach there; `None` where even reach 1 does not fit.
pub(super) fn plan(fabric: &Fabric, collective: Collective, layout: &Layout) -> Option<AnyPlan> {
    let ring = fabric.ring()?;
    let mut stride = fabric.ranks();
    let strides: Vec<u32> = layout
        .levels
        .iter()
        .map(|level| {
            stride /= level.radix;
            stride
        })
        .collect();
    let mut levels = layout.levels.iter().zip(&strides);
    let folded =
        ring.is_even() && levels.all(|(level, stride)| tiles(ring.ranks, *stride, level.reach));
    let mut layout = layout.clone();
    let mut circuits_of = Vec::with_capacity(strides.len());
    let mut held = fabric.ranks();
    for (level, &stride) in layout.levels.iter_mut().zip(&strides) {
        let found = loop {
            let found = if folded {
                Some(rank_0_circuits(
                    ring,
                    collective.pieces(),
                    *level,
                    stride,
                    held,
                ))
            } else {
                circuits(fabric, collective, *level, stride, held)
            };
            match found {
                Some(found) => break found,
                None if level.reach > 1 => level.reach -= 1,
                None => return None,
            }
        };
        circuits_of.push(found);
        held = stride;
    }
    let plan = over(fabric, collective, &layout, &circuits_of);
    Some(if folded {
        AnyPlan::Folded(FoldedPlan { orbits: plan })
    } else {
        AnyPlan::Full(plan)
    })
}

/// The plan of a layout over the circuits of its levels.
fn over(
    fabric: &Fabric,
    collective: Collective,
    layout: &Layout,
    circuits_of: &[Vec<Circuit>],
) -> Plan {
    let mut plan = empty_plan(fabric, collective, layout.spelling(), layout.slots());
    let ranks = u64::from(fabric.ranks());
    let mut stride = fabric.ranks();
    let mut slot = 0;
    for (level, circuits) in layout.levels.iter().zip(circuits_of) {
        stride /= level.radix;
        for round in 0..level.slots() {
            plan.schedule.begin_step();
            for circuit in circuits {
                interrupt::check();
                // Both ways together reach radix - 1 strides.
                let strides = round * level.reach + circuit.distance;
                let farthest = match circuit.direction {
                    Direction::Clockwise => level.radix / 2,
                    Direction::CounterClockwise => (level.radix - 1) / 2,
                };
                if strides > farthest {
                    continue;
                }
                let behind = u64::from(round * level.reach) * u64::from(stride);
                let origin = match circuit.direction {
                    Direction::Clockwise => u64::from(circuit.block) + ranks - behind % ranks,
                    Direction::CounterClockwise => u64::from(circuit.block) + behind,
                };
                let chunk = (origin % ranks) as u32 * layout.pieces + circuit.piece;
                plan.push(Lightpath {
                    slot,
                    circuit: Channel {
                        direction: circuit.direction,
                        fibre: circuit.fibre,
                        wavelength: circuit.wavelength,
                    },
                    transfer: Transfer::copy(chunk, circuit.source, circuit.destination),
                });
            }
            slot += 1;
        }
    }
    plan
}

/// A circuit of a level, with what it carries in the level's first slot.
struct Circuit {
    source: u32,
    destination: u32,
    distance: u32,
    direction: Direction,
    fibre: u8,
    wavelength: u16,
    block: u32,
    piece: u32,
}

/// Rank 0's circuits of a level whose distances divide N, each on the first channel of its orbit.
fn rank_0_circuits(
    ring: &WdmRing,
    pieces: u32,
    level: Level,
    stride: u32,
    held: u32,
) -> Vec<Circuit> {
    let mut circuits = Vec::new();
    for direction in Direction::BOTH {
        let mut channel = 0;
        for distance in 1..=level.reach {
            let hops = distance * stride;
            for block in (0..ring.ranks).step_by(held as usize) {
                interrupt::check();
                for piece in 0..pieces {
                    circuits.push(Circuit {
                        source: 0,
                        destination: match direction {
                            Direction::Clockwise => hops % ring.ranks,
                            Direction::CounterClockwise => ring.ranks - hops,
                        },
                        distance,
                        direction,
                        fibre: (channel / ring.wavelengths) as u8,
                        wavelength: (channel % ring.wavelengths) as u16,
                        block,
                        piece,
                    });
                    channel += hops;
                }
            }
        }
    }
    circuits
}

/// The circuits of a level: each rank to those up to `reach` strides away, one for each chunk that
/// ranks hold (of ranks at multiples of `held`).
fn circuits(
    fabric: &Fabric,
    collective: Collective,
    level: Level,
    stride: u32,
    held: u32,
) -> Option<Vec<Circuit>> {
    let ranks = fabric.ranks();
    let pieces = collective.pieces();
    let mut schedule = Schedule::new(collective);
    let mut directions = Vec::new();
    let mut distances = Vec::new();
    for distance in 1..=level.reach {
        for direction in Direction::BOTH {
            for source in 0..ranks {
                let hops = distance * stride;
                let destination = match direction {
                    Direction::Clockwise => (source + hops) % ranks,
                    Direction::CounterClockwise => (source + ranks - hops) % ranks,
                };
                for multiple in 0..ranks / held {
                    interrupt::check();
                    let block = (source + multiple * held) % ranks;
                    for piece in 0..pieces {
                        schedule.push(Transfer::copy(block * pieces + piece, source, destination));
                        directions.push(direction);
                        distances.push(distance);
                    }
                }
            }
        }
    }
    let assigned = assign(
        schedule,
        directions,
        fabric,
        Assignment::AUTO,
        String::new(),
    )
    .ok()?;
    if assigned.slots() > 1 {
        return None;
    }
    let circuits = assigned.lightpaths().zip(distances);
    let circuits = circuits.map(|(lightpath, distance)| Circuit {
        source: lightpath.transfer.source,
        destination: lightpath.transfer.destination,
        distance,
        direction: lightpath.circuit.direction,
        fibre: lightpath.circuit.fibre,
        wavelength: lightpath.circuit.wavelength,
        block: lightpath.transfer.chunk / pieces,
        piece: lightpath.transfer.chunk % pieces,
    });
    Some(circuits.collect())
}
