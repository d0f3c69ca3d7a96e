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

use crate::collective::Collective;
use crate::fabric::{Direction, Fabric, WdmRing};
use crate::plan::Plan;
use crate::schedule::{Claims, Schedule, Transfer};
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
pub(super) fn layouts(ring: &WdmRing, pieces: u32, most_levels: usize) -> Vec<Layout> {
    let mut best: Vec<Option<Layout>> = vec![None; most_levels];
    let mut levels = Vec::new();
    extend(ring, pieces, ring.ranks, &mut levels, &mut best);
    best.into_iter().flatten().collect()
}

fn extend(
    ring: &WdmRing,
    pieces: u32,
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
        };
        if let Some(reach) = (1..=radix / 2).take_while(|reach| fits(*reach)).last() {
            levels.push(Level { radix, reach });
            extend(ring, pieces, rest / radix, levels, best);
            levels.pop();
        }
    }
}

/// The plan of a layout. Where the circuits of a level need more channels than their load says, with
/// a shorter reach there; `None` where even reach 1 does not fit.
pub(super) fn plan(fabric: &Fabric, collective: Collective, layout: &Layout) -> Option<Plan> {
    let mut layout = layout.clone();
    let mut stride = fabric.ranks();
    let mut circuits_of = Vec::with_capacity(layout.levels.len());
    for level in &mut layout.levels {
        let held = stride;
        stride /= level.radix;
        let found = loop {
            match circuits(fabric, collective, *level, stride, held) {
                Some(found) => break found,
                None if level.reach > 1 => level.reach -= 1,
                None => return None,
            }
        };
        circuits_of.push(found);
    }
    Some(over(fabric, collective, &layout, &circuits_of))
}

/// The plan of a layout over the circuits of its levels.
fn over(
    fabric: &Fabric,
    collective: Collective,
    layout: &Layout,
    circuits_of: &[Vec<Circuit>],
) -> Plan {
    let Fabric::WdmRing(ring) = fabric;
    let slots = layout.slots();
    let mut plan = Plan {
        fabric: fabric.clone(),
        schedule: Schedule::new(collective),
        algorithm: layout.spelling(),
        size: None,
        direction: Vec::new(),
        fibre: Vec::new(),
        wavelength: Vec::new(),
        slot: Vec::new(),
        step_slots: (0..slots).map(|slot| slot..slot + 1).collect(),
    };
    plan.schedule.claims = Claims {
        schedule_steps: Some(slots),
        ..Claims::default()
    };
    let mut stride = ring.ranks;
    let mut slot = 0;
    for (level, circuits) in layout.levels.iter().zip(circuits_of) {
        stride /= level.radix;
        for round in 0..level.slots() {
            plan.schedule.begin_step();
            for circuit in circuits {
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
                let ranks = u64::from(ring.ranks);
                let origin = match circuit.direction {
                    Direction::Clockwise => u64::from(circuit.block) + ranks - behind % ranks,
                    Direction::CounterClockwise => u64::from(circuit.block) + behind,
                };
                plan.schedule.push(Transfer::copy(
                    (origin % ranks) as u32 * layout.pieces + circuit.piece,
                    circuit.source,
                    circuit.destination,
                ));
                plan.direction.push(circuit.direction);
                plan.fibre.push(circuit.fibre);
                plan.wavelength.push(circuit.wavelength);
                plan.slot.push(slot);
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
