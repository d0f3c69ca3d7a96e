//! Plans of broadcast, scatter, reduce, gather and all_reduce along chains of neighbours whose
//! circuits stay up.
//!
//! **Broadcast** of M bytes over c channels in each direction, as far as ranks have ports. Each of
//! the 2c channels carries a share of M / 2c bytes, in p pieces, hop by hop all the way around: in
//! slot s the i-th rank behind the root passes on piece s - i. Every link of a channel has a
//! circuit of its own, so that all circuits can be up at the same time. After p + N - 2 slots of
//! M / (2 c p) bytes every rank has every piece. The transmission takes M / (2 c B)
//! (1 + (N - 2) / p), with B bytes per second on a channel, which approaches its bound M / (2 c B)
//! as p grows.
//!
//! **Scatter** of blocks of d bytes in p pieces. On each side of the root are n of the N - 1 other
//! ranks, in proportion to the channels of the side; the blocks of the nearer ranks use the first
//! channels. The n p / c pieces of a channel belong to neighbouring ranks: one circuit leads from
//! the root to the first of them, and one from each of them to the next. The piece of the farthest
//! rank leaves first. In slot s the root sends the s-th piece, and the h-th circuit carries it in
//! slot s + h. Since every rank of a channel has a piece of its own, all pieces have arrived when
//! the last one has left the root: after ceil(n p / c) slots, the least that the root's channels
//! allow.
//!
//! If light does not reach so far, every c-th piece uses the same channel, over circuits between
//! neighbours. If c divides p, a channel carries p / c pieces for each rank, so that the piece of
//! the farthest rank, which leaves first, has arrived when the piece of the nearest leaves: again n
//! p / c slots.
//!
//! **Around cuts.** Next to a cut, the whole vector of a broadcast travels to each side of the root
//! over all channels of one direction, up to the cut: M / (c B) plus the time to fill the pipeline.
//! The rank behind the cut needs at least M / (c B) to receive the vector. A scatter sends to each
//! side the blocks of its ranks.
//!
//! **All_reduce** on the line of ranks from one side of a cut to the other. Sums travel from rank
//! to rank over the channels of one direction, from the first rank to the last, and results return
//! over those of the other direction: p + 2 N - 3 slots of M / (c p) bytes. The last rank needs at
//! least M / (c B) to receive the vector. On a ring without faults the cut may be anywhere.
//!
//! Every rank receives every chunk at most once, so that the time reversal of a broadcast is a
//! reduce, and that of a scatter a gather.

mod lanes;
mod sides;

use self::lanes::Lane;
use self::sides::RootSides;
use crate::building::time_reversal::{self, copying};
use crate::ring::recipe::{self, Estimate, Recipe};
use crate::ring::slot_cost::SlotCost;
use crate::selection::evaluation::Candidate;
use crate::{PlannerError, PlanningProblem, empty_plan};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::{Action, Transfer};

/// Largest accepted number of pieces: more save no time on any ring that fits into memory.
const MAX_PIECES: u32 = 1 << 16;

/// Pipeline over a ring with a number of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingPipeline {
    pieces: u32,
    /// Number of transfers of the plan; for a pipelined plan, of those of its first chunks.
    transfers: u64,
    /// Number of equal channels, if the plan is pipelined.
    stripes: Option<u32>,
    /// Number of slots of the plan.
    slots: u64,
    /// Maximum number of links of a lightpath.
    longest: u32,
}

impl RingPipeline {
    /// Returns the recipe, or `None` if cuts or a lack of ports leave no channels.
    fn new(ring: &WdmRing, collective: Collective, pieces: u32) -> Option<RingPipeline> {
        let ranks = u64::from(ring.ranks);
        let forward = copying(collective.kind());
        let root_sides = RootSides::new(ring, collective)?;
        let hops = u64::from(root_sides.farthest());
        let streams = u64::from(root_sides.streams());
        let stripes = root_sides.stripes(ring, forward).filter(|_| pieces > 1);
        let pipeline = |transfers: u64, slots: u64| RingPipeline {
            pieces,
            transfers: match stripes {
                Some(stripes) => transfers / u64::from(stripes),
                None => transfers.saturating_mul(u64::from(pieces)),
            },
            stripes,
            slots: (u64::from(pieces) + slots).saturating_sub(1),
            longest: 1,
        };
        Some(match forward {
            CollectiveKind::AllReduce => pipeline(2 * streams * (ranks - 1), 2 * (ranks - 1)),
            CollectiveKind::Broadcast => {
                let sides = root_sides.sides.iter();
                let transfers = sides.map(|side| u64::from(side.channels) * u64::from(side.ranks));
                pipeline(transfers.sum(), hops)
            }
            _ => {
                let lanes: Vec<Lane> = lanes::assign(&root_sides, pieces).collect();
                RingPipeline {
                    pieces,
                    transfers: lanes.iter().map(Lane::transfers).sum(),
                    stripes: None,
                    slots: lanes.iter().map(Lane::slots).max().unwrap_or(0),
                    longest: lanes.iter().map(Lane::longest).max().unwrap_or(1),
                }
            }
        })
    }
}

/// Returns candidates for the most promising chains. There are none for an all_reduce on a ring
/// without faults, because relay trees take as long in fewer slots.
pub(crate) fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    match problem.collective.kind() {
        CollectiveKind::AllReduce if ring.broken.is_empty() => Ok(Vec::new()),
        _ => recipe::candidates::<RingPipeline>(problem, ring),
    }
}

impl Recipe for RingPipeline {
    const NAME: &'static str = "pipelined";
    const SUPPORTS_CUTS: bool = true;

    fn spec(&self) -> Spec {
        Spec::new(RingPipeline::NAME).with("pieces", self.pieces)
    }

    fn transfers(&self, _ranks: u64) -> u64 {
        self.transfers
    }

    fn longest(&self, _ring: &WdmRing) -> u32 {
        self.longest
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        let pieces = self.pieces;
        let forward = copying(collective.kind());
        let Some(root_sides) = RootSides::new(ring, collective) else {
            return Err(no_line(ring));
        };
        let chunks = match forward {
            CollectiveKind::Scatter => pieces,
            _ => pieces.saturating_mul(root_sides.streams()),
        };
        let outwards = Collective::new(forward, collective.ranks())?
            .with_root(collective.root())?
            .with_pieces(chunks)?;
        if let Some(stripes) = self.stripes {
            let single = root_sides.with_single_channels();
            let mut first = broadcast(ring, outwards, &single, pieces, 1);
            first.algorithm = self.spec().to_string();
            return Ok(time_reversal::reversed_for(first, collective)?
                .with_stripes_and_pieces(stripes, pieces));
        }
        let mut plan = match forward {
            CollectiveKind::AllReduce => all_reduce(ring, outwards, &root_sides, pieces),
            CollectiveKind::Broadcast => broadcast(ring, outwards, &root_sides, pieces, pieces),
            _ => scatter(ring, outwards, &root_sides),
        };
        plan.algorithm = self.spec().to_string();
        time_reversal::reversed_for(plan, collective)
    }

    fn from_options(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<RingPipeline>, PlannerError> {
        let Some(pieces) = spec.count("pieces", 1, MAX_PIECES)? else {
            return Ok(None);
        };
        match RingPipeline::new(ring, collective, pieces) {
            None if ring.ranks > 1 => Err(no_line(ring)),
            recipe => Ok(recipe),
        }
    }

    /// Estimates plans of 1, 2, 4, ... pieces.
    fn estimates(ring: &WdmRing, problem: &PlanningProblem<'_>) -> Vec<Estimate<RingPipeline>> {
        let collective = problem.collective;
        let Some(root_sides) = RootSides::new(ring, collective) else {
            return Vec::new();
        };
        let kind = copying(collective.kind());
        let share = match kind {
            CollectiveKind::Scatter => problem.size.get(),
            _ => problem.size.get().div_ceil(root_sides.streams().into()),
        };
        let (cost, once) = SlotCost::with_lasting_circuits(ring, problem.policy());
        let mut estimates = Vec::new();
        let counts = (0..=MAX_PIECES.ilog2()).map(|power| 1u32 << power);
        for pieces in counts.take_while(|&pieces| u64::from(pieces) <= share.max(1)) {
            let Some(recipe) = RingPipeline::new(ring, collective, pieces) else {
                break;
            };
            let max_transfers = problem.max_transfers.min(MAX_TRANSFERS);
            let simulated = recipe.transfers.saturating_mul(pieces.into());
            let is_too_slow = recipe.stripes.is_some() && simulated > MAX_SIMULATED_TRANSFERS;
            if recipe.transfers > max_transfers || is_too_slow {
                break;
            }
            let bytes = Bytes::new(share.div_ceil(pieces.into()));
            let hops = recipe.longest.into();
            let time = cost.slots(recipe.slots, bytes, hops).saturating_add(once);
            let estimate = Estimate {
                time,
                slots: recipe.slots,
                recipe,
            };
            estimates.push((recipe.transfers, estimate));
        }
        recipe::fastest_and_smallest(estimates)
    }
}

/// Maximum number of transfers of a plan whose number of pieces is not given by an option.
const MAX_TRANSFERS: u64 = 1 << 21;

/// Maximum number of pieces times transfers of the first chunks of a pipelined plan: the simulation
/// takes some nanoseconds for each of them.
const MAX_SIMULATED_TRANSFERS: u64 = 1 << 26;

fn no_line(ring: &WdmRing) -> PlannerError {
    PlannerError::Algorithm(AlgorithmError::Refused {
        name: RingPipeline::NAME,
        ranks: ring.ranks,
        reason: "cuts, or too few ports, leave no line along which both directions have a channel"
            .into(),
    })
}

/// Returns the broadcast of the first `sent` pieces of each channel.
fn broadcast(
    ring: &WdmRing,
    collective: Collective,
    root_sides: &RootSides,
    pieces: u32,
    sent: u32,
) -> Plan {
    let slots = sent + root_sides.farthest() - 1;
    let mut plan = empty_plan(Fabric::new(ring.clone()), collective, String::new(), slots);
    for slot in 0..slots {
        plan.schedule.begin_step();
        for side in root_sides.sides {
            for hop in (slot + 1).saturating_sub(sent)..side.ranks.min(slot + 1) {
                interrupt::check();
                let source = ring.rank_after(collective.root(), side.direction, hop);
                let destination = ring.rank_after(source, side.direction, 1);
                for channel in 0..side.channels {
                    let piece = (side.first_stream + channel) * pieces + slot - hop;
                    plan.push(Lightpath {
                        slot,
                        light: ring.light(side.direction, channel),
                        transfer: Transfer::copy(piece, source, destination),
                    });
                }
            }
        }
    }
    plan
}

/// Returns the all_reduce of sums along a line, and of results along the way back.
fn all_reduce(ring: &WdmRing, collective: Collective, root_sides: &RootSides, pieces: u32) -> Plan {
    let hops = ring.ranks - 1;
    let slots = pieces + 2 * hops - 1;
    let [forward, backward] = root_sides.sides;
    let last = ring.rank_after(root_sides.start, forward.direction, hops);
    let mut plan = empty_plan(Fabric::new(ring.clone()), collective, String::new(), slots);
    for slot in 0..slots {
        plan.schedule.begin_step();
        for hop in (slot + 1).saturating_sub(pieces)..(2 * hops).min(slot + 1) {
            interrupt::check();
            let (action, side, from, passed) = match hop < hops {
                true => (Action::Reduce, forward, root_sides.start, hop),
                false => (Action::Copy, backward, last, hop - hops),
            };
            let source = ring.rank_after(from, side.direction, passed);
            let destination = ring.rank_after(source, side.direction, 1);
            for channel in 0..side.channels {
                plan.push(Lightpath {
                    slot,
                    light: ring.light(side.direction, channel),
                    transfer: Transfer {
                        action,
                        ..Transfer::copy(channel * pieces + slot - hop, source, destination)
                    },
                });
            }
        }
    }
    plan
}

/// Returns the scatter over the lanes of all channels.
fn scatter(ring: &WdmRing, collective: Collective, root_sides: &RootSides) -> Plan {
    let (root, pieces) = (collective.root(), collective.pieces());
    let mut lightpaths_by_slot: Vec<Vec<Lightpath>> = Vec::new();
    for lane in lanes::assign(root_sides, pieces) {
        let direction = lane.direction;
        let light = ring.light(direction, lane.channel);
        for (first_slot, (distance, piece, _)) in (0..).zip(lane.leaving()) {
            interrupt::check();
            let mut source = root;
            for (slot, stop) in (first_slot..).zip(lane.stops_to(distance)) {
                let destination = ring.rank_after(root, direction, stop);
                let chunk = ring.rank_after(root, direction, distance) * pieces + piece;
                let transfer = Transfer::copy(chunk, source, destination);
                source = destination;
                if lightpaths_by_slot.len() <= slot as usize {
                    lightpaths_by_slot.resize(slot as usize + 1, Vec::new());
                }
                lightpaths_by_slot[slot as usize].push(Lightpath {
                    slot,
                    light,
                    transfer,
                });
            }
        }
    }
    let mut plan = empty_plan(
        Fabric::new(ring.clone()),
        collective,
        String::new(),
        lightpaths_by_slot.len() as u32,
    );
    for lightpaths in lightpaths_by_slot {
        plan.schedule.begin_step();
        lightpaths
            .into_iter()
            .for_each(|lightpath| plan.push(lightpath));
    }
    plan
}
