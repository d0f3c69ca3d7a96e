//! Pipelined plans of broadcast, scatter, reduce, gather and all_reduce along chains of ranks with
//! static circuits.
//!
//! **Broadcast** of M bytes over c channels in each direction (fewer if ranks lack ports). Each of
//! the 2c channels carries a share of M / 2c bytes, in p pieces, around the whole ring. Circuits
//! connect neighbouring ranks: in slot s, the i-th rank after the root forwards piece s - i. All
//! circuits can be up at the same time. The plan has p + N - 2 slots of M / (2 c p) bytes. If a
//! channel has a rate of B bytes per second, the transmission takes M / (2 c B) (1 + (N - 2) / p).
//! The transmission time approaches the lower bound M / (2 c B) as p grows.
//!
//! **Scatter** of blocks in p pieces. The N - 1 other ranks are divided between the two directions,
//! in proportion to the channels. In a direction with n ranks and c channels, each channel carries
//! n p / c pieces, which belong to consecutive ranks. One circuit leads from the root to the
//! nearest of these ranks, and further circuits lead from each of these ranks to the next. The root
//! sends the s-th piece in slot s, beginning with the farthest rank, and the h-th circuit forwards
//! this piece in slot s + h. All pieces have arrived when the root has sent the last piece, after
//! ceil(n p / c) slots. The root's channels do not allow fewer slots.
//!
//! If the ranks exceed the reach, circuits connect neighbouring ranks and each channel carries
//! every c-th piece. If c divides p, the plan again has n p / c slots.
//!
//! **Cuts.** A broadcast sends the whole vector in both directions up to the cut, over all channels
//! of each direction. The plan takes M / (c B) plus the time to fill the pipeline; the lower bound
//! is M / (c B). A scatter sends in each direction the blocks of the ranks before the cut.
//!
//! **All_reduce** on the line of ranks from one end of a cut to the other end. Partial sums are
//! sent from the first rank to the last rank over the channels of one direction. Results return
//! over the channels of the other direction. The plan has p + 2 N - 3 slots of M / (c p) bytes.
//!
//! Every rank receives every chunk at most once. The time reversal of a broadcast is therefore a
//! reduce, and the time reversal of a scatter is a gather.

mod lanes;
mod sides;

use self::lanes::Lane;
use self::sides::RootSides;
use crate::building::SEARCHED_TRANSFERS;
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

/// Largest accepted number of pieces. (More pieces save no time on any ring that fits into memory.)
const MAX_PIECES: u32 = 1 << 16;

/// Parameters of a pipelined plan on a ring, and the numbers of slots and transfers of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingPipeline {
    /// Number of pieces of a block in a scatter. In other collectives, number of pieces of the data
    /// that a channel carries.
    pieces: u32,
    /// Number of transfers that the plan stores.
    transfers: u64,
    /// Number of channels of each direction if the plan stores only the transfers of the first
    /// piece on the first channel. `None` if the plan stores all transfers.
    stripes: Option<u32>,
    slots: u64,
    /// Number of links of the longest lightpath.
    longest: u32,
}

impl RingPipeline {
    /// Computes the numbers of slots and transfers of the plan with `pieces` pieces. Returns `None`
    /// if cuts or too few ports leave no channels.
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

/// Returns the fastest pipelined plans as candidates for `auto`. Returns no candidates for an
/// all_reduce on a ring without faults, because relay trees are as fast in fewer slots.
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
            let max_transfers = problem.max_transfers.min(SEARCHED_TRANSFERS);
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

/// Maximum product of the number of pieces and the number of stored transfers of a plan. (The
/// simulation takes a few nanoseconds for each transfer of each piece.)
const MAX_SIMULATED_TRANSFERS: u64 = 1 << 26;

fn no_line(ring: &WdmRing) -> PlannerError {
    PlannerError::Algorithm(AlgorithmError::refused(
        RingPipeline::NAME,
        ring.ranks,
        "cuts, or too few ports, leave no line along which both directions have a channel",
    ))
}

/// Builds a broadcast in which each channel carries `pieces` pieces. The plan contains only the
/// transfers of the first `sent` pieces of each channel.
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

/// Builds an all_reduce along a line of ranks. Partial sums are sent in one direction, and results
/// return in the other direction.
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

fn scatter(ring: &WdmRing, collective: Collective, root_sides: &RootSides) -> Plan {
    let (root, pieces) = (collective.root(), collective.pieces());
    let mut lightpaths_by_slot: Vec<Vec<Lightpath>> = Vec::new();
    for lane in lanes::assign(root_sides, pieces) {
        let direction = lane.direction;
        let light = ring.light(direction, lane.channel);
        for (first_slot, (distance, piece, _)) in (0..).zip(lane.sent_pieces()) {
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
