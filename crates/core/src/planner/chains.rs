//! Broadcast, scatter, reduce and gather along chains of neighbours whose circuits stay up.
//!
//! **Broadcast** of M bytes over c channels each way, as far as ranks have ports. Each of the 2c channels has a share of the
//! vector, M / 2c in p pieces, and carries it hop by hop all the way around: in slot s the i-th rank behind the root passes on piece
//! s - i. Every link of a channel has a circuit of its own, so that all circuits can be up together. After p + N - 2 slots of
//! M / (2 c p) bytes every rank has every piece: the time of transmission is M / (2 c B) (1 + (N - 2) / p), which
//! comes as near to its bound M / (2 c B) as p is large.
//!
//! **Scatter** of blocks of d bytes in p pieces. To each side of the root go n of the N - 1 blocks, as many as it has of all channels, the nearer ones on
//! the first channels. The n p / c pieces of a channel belong to neighbouring ranks: a circuit leads from the
//! root to the first of them, one from each of them to the next, and the farthest piece goes first. In slot s the root sends the
//! s-th piece; the h-th circuit carries it in slot s + h, and since every rank of a channel has a piece of its own, all
//! have arrived when the last has left the root: ceil(n p / c) slots, all that the root's channels allow.
//!
//! Every rank gets every chunk at most once, so that backwards a broadcast is a reduce and a scatter a gather.

use super::few_slots::{self, Estimate, Recipe};
use super::slot_cost::SlotCost;
use super::{Planner, PlannerError, Question, empty_plan, mirror};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Fabric;
use crate::family::wdm_ring::{Direction, WdmRing};
use crate::interrupt;
use crate::plan::{Lightpath, Plan};
use crate::schedule::Transfer;
use crate::spec::{OptionRecord, Spec};
use crate::units::Bytes;

/// The planner of chains.
pub(super) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "pieces",
        "chunks that the share of a channel is cut into; of a scatter or gather, each block",
    )
    .range("1 to 65536")
    .default("the fastest of powers of two")],
    by_size: true,
    candidates: few_slots::contenders::<Chains>,
    ..Planner::on_rings(
        Chains::NAME,
        "Chains",
        &[
            CollectiveKind::Broadcast,
            CollectiveKind::Scatter,
            CollectiveKind::Reduce,
            CollectiveKind::Gather,
        ],
        "Pieces passed on from neighbour to neighbour, both ways around, over circuits that stay up",
        "opticoll; pipelined chains as in MPI libraries",
        few_slots::plan::<Chains>,
    )
};

/// More pieces than that save no time on any ring that fits into memory.
const MOST_PIECES: u32 = 1 << 16;

/// The part of the time that twice as many pieces must save.
const WORTH: u64 = 50;

/// Chains with so many pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chains {
    pieces: u32,
    /// The transfers of the plan.
    transfers: u64,
}

impl Chains {
    fn new(ring: &WdmRing, scatters: bool, pieces: u32) -> Chains {
        let (ranks, channels) = (u64::from(ring.ranks), u64::from(channels(ring)));
        let transfers = match scatters {
            false => channels * u64::from(pieces) * ranks.saturating_sub(1),
            true => sides(ring)
                .into_iter()
                .flat_map(|side| lanes(side, pieces))
                .map(|lane| lane.transfers())
                .sum(),
        };
        Chains { pieces, transfers }
    }
}

fn scatters(kind: CollectiveKind) -> bool {
    matches!(kind, CollectiveKind::Scatter | CollectiveKind::Gather)
}

impl Recipe for Chains {
    const NAME: &'static str = "chains";

    fn spec(&self) -> Spec {
        Spec::new(Chains::NAME).with("pieces", self.pieces)
    }

    fn transfers(&self, _ranks: u64) -> u64 {
        self.transfers
    }

    fn plan(&self, fabric: &Fabric, collective: Collective) -> Result<Plan, PlannerError> {
        let ring = fabric.needed::<WdmRing>(Chains::NAME)?;
        let (kind, pieces) = (collective.kind(), self.pieces);
        let (forward, chunks) = match kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => (
                CollectiveKind::Broadcast,
                pieces.saturating_mul(channels(ring)),
            ),
            _ => (CollectiveKind::Scatter, pieces),
        };
        let outwards = Collective::new(forward, collective.ranks())?
            .with_root(collective.root())?
            .with_pieces(chunks)?;
        let mut plan = match forward {
            CollectiveKind::Broadcast => broadcast(fabric, ring, outwards, pieces),
            _ => scatter(fabric, ring, outwards),
        };
        plan.algorithm = self.spec().to_string();
        Ok(match forward == kind {
            true => plan,
            false => mirror::backwards(&plan, collective.with_pieces(chunks)?),
        })
    }

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<Chains>, PlannerError> {
        let pieces = spec.count("pieces", 1, MOST_PIECES)?;
        let scatters = scatters(collective.kind());
        Ok(pieces.map(|pieces| Chains::new(ring, scatters, pieces)))
    }

    /// From one piece on twice as many, as long as that saves time.
    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<Chains>> {
        let scatters = scatters(question.collective.kind());
        let channels = u64::from(channels(ring));
        let share = match scatters {
            true => question.size.get(),
            false => question.size.get().div_ceil(channels),
        };
        let (cost, once) = SlotCost::of_circuits_that_stay(ring, question.policy());
        let mut best: Option<Estimate<Chains>> = None;
        let counts = (0..=MOST_PIECES.ilog2()).map(|power| 1u32 << power);
        for pieces in counts.take_while(|&pieces| u64::from(pieces) <= share.max(1)) {
            let recipe = Chains::new(ring, scatters, pieces);
            if recipe.transfers > question.most_transfers.min(MOST_ESTIMATED) {
                break;
            }
            let slots = match scatters {
                true => {
                    let slots = sides(ring).map(|side| {
                        let all = u64::from(side.ranks) * u64::from(pieces);
                        all.div_ceil(side.channels.max(1).into())
                    });
                    slots.into_iter().max().unwrap_or(0)
                }
                false => u64::from(pieces) + u64::from(ring.ranks) - 2,
            };
            let bytes = Bytes::new(share.div_ceil(pieces.into()));
            let time = cost.slots(slots, bytes, 1).saturating_add(once);
            let saves = |best: &Estimate<Chains>| time < best.time - best.time / WORTH;
            if best.as_ref().is_none_or(saves) {
                best = Some(Estimate {
                    time,
                    slots,
                    recipe,
                });
            }
        }
        best.into_iter().collect()
    }
}

/// The most transfers of a plan that is not asked for by its pieces.
const MOST_ESTIMATED: u64 = 1 << 21;

fn broadcast(fabric: &Fabric, ring: &WdmRing, collective: Collective, pieces: u32) -> Plan {
    let hops = ring.ranks - 1;
    let slots = pieces + hops - 1;
    let mut plan = empty_plan(fabric, collective, String::new(), slots);
    plan.reserve(collective.chunks() as usize * hops as usize);
    for slot in 0..slots {
        plan.schedule.begin_step();
        let mut first = 0;
        for side in sides(ring) {
            for hop in (slot + 1).saturating_sub(pieces)..hops.min(slot + 1) {
                interrupt::check();
                let source = ring.rank_after(collective.root(), side.direction, hop);
                let destination = ring.rank_after(source, side.direction, 1);
                for channel in 0..side.channels {
                    let piece = (first + channel) * pieces + slot - hop;
                    plan.push(Lightpath {
                        slot,
                        light: ring.light(side.direction, channel),
                        transfer: Transfer::copy(piece, source, destination),
                    });
                }
            }
            first += side.channels;
        }
    }
    plan
}

/// What a channel brings to one side of the root: so many pieces of each of these ranks, given by how far they
/// are from the root.
struct Lane {
    direction: Direction,
    channel: u32,
    /// The nearest first, with the range of its pieces.
    ranks: Vec<(u32, std::ops::Range<u32>)>,
}

impl Lane {
    /// Each piece goes over a circuit for every rank as near as its own.
    fn transfers(&self) -> u64 {
        let counts = (1..).zip(&self.ranks);
        counts.map(|(hops, (_, own))| hops * own.len() as u64).sum()
    }
}

/// One side of the root.
#[derive(Clone, Copy)]
struct Side {
    direction: Direction,
    /// The channels that leave the root there.
    channels: u32,
    /// The ranks whose blocks of a scatter go there.
    ranks: u32,
}

/// The channels that leave a rank, and lead into it, at a time.
fn channels(ring: &WdmRing) -> u32 {
    let both = 2 * ring.channels();
    ring.ports.map_or(both, |ports| ports.min(both))
}

fn sides(ring: &WdmRing) -> [Side; 2] {
    let (all, others) = (channels(ring), u64::from(ring.ranks - 1));
    let clockwise = all.div_ceil(2);
    let ranks = (others * u64::from(clockwise)).div_ceil(all.max(1).into()) as u32;
    [
        Side {
            direction: Direction::Clockwise,
            channels: clockwise,
            ranks,
        },
        Side {
            direction: Direction::CounterClockwise,
            channels: all - clockwise,
            ranks: ring.ranks - 1 - ranks,
        },
    ]
}

/// The channels of one side, each with an equal part of the pieces.
fn lanes(side: Side, pieces: u32) -> impl Iterator<Item = Lane> {
    let (channels, pieces) = (u64::from(side.channels), u64::from(pieces));
    let all = u64::from(side.ranks) * pieces;
    (0..channels).map(move |channel| {
        let (first, end) = (all * channel / channels, all * (channel + 1) / channels);
        let ranks = (first / pieces..end.div_ceil(pieces)).filter(|_| first < end);
        let own = |rank: u64| {
            let from = first.saturating_sub(rank * pieces);
            let to = (end - rank * pieces).min(pieces);
            (rank as u32 + 1, from as u32..to as u32)
        };
        Lane {
            direction: side.direction,
            channel: channel as u32,
            ranks: ranks.map(own).collect(),
        }
    })
}

fn scatter(fabric: &Fabric, ring: &WdmRing, collective: Collective) -> Plan {
    let (root, pieces) = (collective.root(), collective.pieces());
    let mut of_slot: Vec<Vec<Lightpath>> = Vec::new();
    for side in sides(ring) {
        for lane in lanes(side, pieces) {
            let direction = lane.direction;
            let light = ring.light(direction, lane.channel);
            // The farthest piece leaves first.
            let farthest = lane.ranks.iter().rev();
            let leaving =
                farthest.flat_map(|(far, own)| own.clone().map(move |piece| (*far, piece)));
            for (leaves, (far, piece)) in (0..).zip(leaving) {
                interrupt::check();
                let stops = lane.ranks.iter().map(|&(far, _)| far);
                let stops = stops.take_while(|&stop| stop <= far);
                let mut source = root;
                for (slot, stop) in (leaves..).zip(stops) {
                    let destination = ring.rank_after(root, direction, stop);
                    let chunk = ring.rank_after(root, direction, far) * pieces + piece;
                    let transfer = Transfer::copy(chunk, source, destination);
                    source = destination;
                    if of_slot.len() <= slot as usize {
                        of_slot.resize(slot as usize + 1, Vec::new());
                    }
                    of_slot[slot as usize].push(Lightpath {
                        slot,
                        light,
                        transfer,
                    });
                }
            }
        }
    }
    let mut plan = empty_plan(fabric, collective, String::new(), of_slot.len() as u32);
    for lightpaths in of_slot {
        plan.schedule.begin_step();
        lightpaths
            .into_iter()
            .for_each(|lightpath| plan.push(lightpath));
    }
    plan
}
