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

use crate::ring::few_slots::{joined, numbers};
use crate::ring::relay_tree::{Gathering, turned};
use crate::selection::contest::Contender;
use crate::{
    Form, GATHERED, MOST_TRANSFERS, OnMachine, Planned, Planner, PlannerError, Question, Scope,
    empty_plan, ensure, ring::relay_tree::capability, ring_of, selection::least,
};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::placement::{Assignment, assign};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::Policy;

/// More levels save no slots worth their settings.
const MOST_LEVELS: usize = 3;

/// A radix m and a reach x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReachLevel {
    radix: u32,
    reach: u32,
}

impl ReachLevel {
    /// The slots that the level takes.
    fn slots(self) -> u32 {
        (self.radix / 2).div_ceil(self.reach)
    }
}

/// Levels and pieces per block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LevelLayout {
    levels: Vec<ReachLevel>,
    pieces: u32,
}

impl LevelLayout {
    /// The slots that the plan takes.
    fn slots(&self) -> u32 {
        self.levels.iter().map(|level| level.slots()).sum()
    }

    /// How far apart the neighbours of each level are.
    fn strides(&self, ranks: u32) -> Vec<u32> {
        let mut stride = ranks;
        let levels = self.levels.iter().map(|level| {
            stride /= level.radix;
            stride
        });
        levels.collect()
    }

    /// Whether its circuits are rotations side by side.
    fn tiles(&self, ranks: u32) -> bool {
        let mut levels = self.levels.iter().zip(self.strides(ranks));
        levels.all(|(level, stride)| tiles(ranks, stride, level.reach))
    }

    /// As typed, such as `levels:radices=16x64,reaches=1x2,pieces=1`.
    fn spec(&self) -> Spec {
        let levels = self.levels.iter();
        let reaches = levels.clone().map(|level| level.reach);
        Spec::new(NAME)
            .with("radices", joined(levels.map(|level| level.radix)))
            .with("reaches", joined(reaches))
            .with("pieces", self.pieces)
    }
}

/// The planner of levels.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("radices", "ranks of each level, such as 16x64")
            .range("numbers joined by x, whose product is N")
            .default("the fewest slots"),
        OptionRecord::new(
            "reaches",
            "neighbours in each direction on each level, such as 1x2",
        )
        .range("numbers joined by x")
        .default("the most that fit"),
        OptionRecord::new("pieces", "chunks that a block is cut into")
            .range("1 to the number of channels")
            .default("1"),
    ],
    ..Planner::new(
        NAME,
        "Levels",
        GATHERED,
        "Flooding among neighbours over circuits that stay up, on one level or several",
        "opticoll",
        Scope::Rings(OnMachine::new(by_name, contenders)),
    )
};

const NAME: &str = "levels";

/// All_gathers over circuits that do not change within a level: for one level, two and three the
/// plan of fewest slots, where there is one. For a collective in pieces, with all pieces at once.
pub fn static_levels(fabric: &Fabric, collective: Collective) -> Vec<Plan> {
    let Some(ring) = ring_of(fabric).filter(|ring| suits(ring)) else {
        return Vec::new();
    };
    let gathers = collective.kind() == CollectiveKind::AllGather;
    if !gathers || collective.ranks() != ring.ranks || ring.ranks < 2 || ring.ports.is_some() {
        return Vec::new();
    }
    let transfers = u64::from(collective.chunks()) * u64::from(ring.ranks);
    let form = Form::of(transfers, MOST_TRANSFERS);
    layouts(ring, collective.pieces(), form)
        .iter()
        .filter_map(|layout| plan(ring, collective, layout))
        .collect()
}

/// Whether light goes both ways everywhere, and ranks use every channel.
fn suits(ring: &WdmRing) -> bool {
    ring.broken.is_empty() && !capability::has_few_ports(ring)
}

fn contenders<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let Some(gathering) = Gathering::new(question, ring).filter(|_| suits(ring)) else {
        return Ok(Vec::new());
    };
    let kind = question.collective.kind();
    let mut contenders = Vec::new();
    for (gather, most) in gathering.cuts() {
        let transfers = u64::from(gather.chunks()) * u64::from(ring.ranks);
        for layout in layouts(ring, gather.pieces(), Form::of(transfers, most)) {
            let slots = gathering.times * u64::from(layout.slots());
            let (settings, spec) = (layout.levels.len() as u64, layout.spec());
            let folds = ring.is_even() && layout.tiles(ring.ranks);
            let stays_up = settings == 1 && question.policy() == Policy::PerPort;
            let busy = u64::from(layout.slots());
            let make = move || turned_plan(ring, kind, gather, &layout);
            let mut contender = gathering.contender(gather, slots, settings, spec, make)?;
            if stays_up {
                // The ports of the only level send or receive a piece in each of its slots.
                let bytes = gathering.piece(gather).saturating_mul(busy);
                let sending = least::of_slots(ring, Policy::PerPort, busy, bytes, 1)?;
                contender.least = contender.least.max(sending);
            }
            if !folds {
                contender.transfers = transfers;
            }
            contenders.push(contender);
        }
    }
    Ok(contenders)
}

/// The all_gather of a layout, or what it gives backwards, or there and back.
fn turned_plan(
    ring: &WdmRing,
    kind: CollectiveKind,
    gather: Collective,
    layout: &LevelLayout,
) -> Result<Plan, PlannerError> {
    let pieces = gather.pieces();
    turned(ring, kind, |ring| {
        plan(ring, gather, layout).ok_or(PlannerError::NotFound { pieces })
    })
}

/// The plan that a spec names, turned into a reduce_scatter or an all_reduce where one is asked for:
/// without radices the one of fewest slots, without reaches as far as channels allow.
fn by_name(spec: &Spec, question: &Question<'_>, ring: &WdmRing) -> Result<Planned, PlannerError> {
    if ring.ranks < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let reason = "it needs a ring without broken links, with a port for every channel";
    ensure(suits(ring), NAME, ring.ranks, reason)?;
    let pieces = spec.count("pieces", 1, ring.channels())?.unwrap_or(1);
    let gather = Collective::new(CollectiveKind::AllGather, ring.ranks)?.with_pieces(pieces)?;
    let transfers = u64::from(gather.chunks()) * u64::from(ring.ranks);
    let layout = match given(spec, ring, pieces)? {
        Some(layout) => Some(layout),
        None => layouts(ring, pieces, Form::of(transfers, MOST_TRANSFERS))
            .into_iter()
            .min_by_key(LevelLayout::slots),
    };
    let layout = layout.ok_or(PlannerError::NotFound { pieces })?;
    let kind = question.collective.kind();
    turned_plan(ring, kind, gather, &layout).map(Planned::from)
}

/// The layout that options give, if any.
fn given(spec: &Spec, ring: &WdmRing, pieces: u32) -> Result<Option<LevelLayout>, PlannerError> {
    let reaches = numbers(spec, "reaches", "16x4")?;
    let Some(radices) = numbers(spec, "radices", "16x4")? else {
        return match reaches {
            None => Ok(None),
            Some(_) => Err(spec.refuse("reaches", "needs radices, too").into()),
        };
    };
    let mut factors = radices.iter();
    let product = factors.try_fold(1u32, |product, &radix| product.checked_mul(radix));
    if product != Some(ring.ranks) || radices.contains(&1) {
        let problem = format!("must be 2 or more, with the product {}", ring.ranks);
        return Err(spec.refuse("radices", problem).into());
    }
    if reaches
        .as_ref()
        .is_some_and(|reaches| reaches.len() != radices.len())
    {
        let problem = format!("needs {} numbers, one for each radix", radices.len());
        return Err(spec.refuse("reaches", problem).into());
    }
    let mut stride = ring.ranks;
    let mut levels = Vec::with_capacity(radices.len());
    for (place, &radix) in radices.iter().enumerate() {
        stride /= radix;
        let longest = farthest(ring, pieces, radix, stride);
        let wanted = reaches.as_ref().map_or(longest, |reaches| reaches[place]);
        if wanted == 0 || wanted > longest {
            let problem = format!(
                "{wanted} strides of {stride} do not fit level {}: {longest} at most",
                place + 1
            );
            return Err(spec.refuse("reaches", problem).into());
        }
        let reach = wanted;
        levels.push(ReachLevel { radix, reach });
    }
    Ok(Some(LevelLayout { levels, pieces }))
}

/// How many strides circuits of a level may reach at most, by light and channels; 0 where none fits.
fn farthest(ring: &WdmRing, pieces: u32, radix: u32, stride: u32) -> u32 {
    let each = u64::from(ring.ranks / radix) * u64::from(pieces);
    let fits = |reach: &u32| {
        let reach = u64::from(*reach);
        reach * u64::from(stride) <= u64::from(ring.longest())
            && each * reach * (reach + 1) / 2 <= u64::from(ring.channels())
    };
    (1..=radix / 2).take_while(fits).last().unwrap_or(0)
}

/// For every number of levels up to [`MOST_LEVELS`] the layout of fewest slots with so many pieces,
/// where there is one.
fn layouts(ring: &WdmRing, pieces: u32, form: Form) -> Vec<LevelLayout> {
    let mut best: Vec<Option<LevelLayout>> = vec![None; MOST_LEVELS];
    let mut levels = Vec::new();
    extend(ring, pieces, form, ring.ranks, &mut levels, &mut best);
    best.into_iter().flatten().collect()
}

fn extend(
    ring: &WdmRing,
    pieces: u32,
    form: Form,
    rest: u32,
    levels: &mut Vec<ReachLevel>,
    best: &mut [Option<LevelLayout>],
) {
    if rest == 1 {
        let layout = LevelLayout {
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
        let stride = rest / radix;
        let folds = |reach: &u32| form == Form::Any || tiles(ring.ranks, stride, *reach);
        let reaches = 1..=farthest(ring, pieces, radix, stride);
        if let Some(reach) = reaches.take_while(folds).last() {
            levels.push(ReachLevel { radix, reach });
            extend(ring, pieces, form, rest / radix, levels, best);
            levels.pop();
        }
    }
}

/// Whether circuits to all multiples of a stride, up to a reach, are rotations side by side.
fn tiles(ranks: u32, stride: u32, reach: u32) -> bool {
    (1..=reach).all(|distance| ranks % (distance * stride) == 0)
}

/// The plan of a layout, folded where its circuits are rotations side by side. Where the circuits of a level
/// need more channels than their load says, with a shorter reach there; `None` where even reach 1 does not fit.
fn plan(ring: &WdmRing, collective: Collective, layout: &LevelLayout) -> Option<Plan> {
    let fabric = Fabric::new(ring.clone());
    let strides = layout.strides(ring.ranks);
    let mut layout = layout.clone();
    loop {
        let folded = ring.is_even() && layout.tiles(ring.ranks);
        let mut circuits_of = Vec::with_capacity(strides.len());
        let mut held = ring.ranks;
        for (level, &stride) in layout.levels.iter().zip(&strides) {
            let found = match folded {
                true => Some(rank_0_circuits(
                    ring,
                    collective.pieces(),
                    *level,
                    stride,
                    held,
                )),
                false => circuits(&fabric, collective, *level, stride, held),
            };
            let Some(found) = found else { break };
            circuits_of.push(found);
            held = stride;
        }
        let Some(too_far) = layout.levels.get_mut(circuits_of.len()) else {
            let plan = over(&fabric, collective, &layout, &circuits_of);
            return Some(match folded {
                true => plan.in_all_rotations(),
                false => plan,
            });
        };
        if too_far.reach == 1 {
            return None;
        }
        too_far.reach -= 1;
    }
}

/// The plan of a layout over the circuits of its levels.
fn over(
    fabric: &Fabric,
    collective: Collective,
    layout: &LevelLayout,
    circuits_of: &[Vec<LevelCircuit>],
) -> Plan {
    let mut plan = empty_plan(
        fabric.clone(),
        collective,
        layout.spec().to_string(),
        layout.slots(),
    );
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
                let farthest = match circuit.light.direction {
                    Direction::Clockwise => level.radix / 2,
                    Direction::CounterClockwise => (level.radix - 1) / 2,
                };
                if strides > farthest {
                    continue;
                }
                let behind = u64::from(round * level.reach) * u64::from(stride);
                let origin = match circuit.light.direction {
                    Direction::Clockwise => u64::from(circuit.block) + ranks - behind % ranks,
                    Direction::CounterClockwise => u64::from(circuit.block) + behind,
                };
                let chunk = (origin % ranks) as u32 * layout.pieces + circuit.piece;
                plan.push(Lightpath {
                    slot,
                    light: Light::from(circuit.light),
                    transfer: Transfer::copy(chunk, circuit.source, circuit.destination),
                });
            }
            slot += 1;
        }
    }
    plan
}

/// A circuit of a level, with what it carries in the level's first slot.
struct LevelCircuit {
    source: u32,
    destination: u32,
    distance: u32,
    light: WdmLight,
    block: u32,
    piece: u32,
}

/// Rank 0's circuits of a level whose distances divide N, each on the first channel of its orbit.
fn rank_0_circuits(
    ring: &WdmRing,
    pieces: u32,
    level: ReachLevel,
    stride: u32,
    held: u32,
) -> Vec<LevelCircuit> {
    let mut circuits = Vec::new();
    for direction in Direction::BOTH {
        let mut channel = 0;
        for distance in 1..=level.reach {
            let hops = distance * stride;
            for block in (0..ring.ranks).step_by(held as usize) {
                interrupt::check();
                for piece in 0..pieces {
                    circuits.push(LevelCircuit {
                        source: 0,
                        destination: match direction {
                            Direction::Clockwise => hops % ring.ranks,
                            Direction::CounterClockwise => ring.ranks - hops,
                        },
                        distance,
                        light: WdmLight {
                            direction,
                            fibre: (channel / ring.wavelengths) as u8,
                            wavelength: (channel % ring.wavelengths) as u16,
                        },
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
    level: ReachLevel,
    stride: u32,
    held: u32,
) -> Option<Vec<LevelCircuit>> {
    let ranks = fabric.ranks();
    let pieces = collective.pieces();
    let mut schedule = Schedule::new(collective);
    let mut light = Vec::new();
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
                        light.push(WdmLight::towards(direction));
                        distances.push(distance);
                    }
                }
            }
        }
    }
    let assigned = assign(schedule, light, fabric, Assignment::AUTO, String::new()).ok()?;
    if assigned.slots() > 1 {
        return None;
    }
    let circuits = assigned.lightpaths().zip(distances);
    let circuits = circuits.map(|(lightpath, distance)| LevelCircuit {
        source: lightpath.transfer.source,
        destination: lightpath.transfer.destination,
        distance,
        light: WdmLight::from(lightpath.light),
        block: lightpath.transfer.chunk / pieces,
        piece: lightpath.transfer.chunk % pieces,
    });
    Some(circuits.collect())
}
