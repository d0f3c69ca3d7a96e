//! Plans of all_to_all over static circuits: relays store blocks and forward them.
//!
//! Each rank has two kinds of circuits. *Far* circuits have m links, and m is called the *stride*.
//! At every rank, n parallel far circuits start in each direction. *Near* circuits lead to every
//! rank that is at most m / 2 links away. Consider a block whose destination is x links away, and
//! write x = a m + e with -(m - 1) / 2 <= e <= m / 2. The block first makes a far hops and then one
//! near hop of e links.
//!
//! If m divides N, the far circuits occupy m n channels of a direction. The near circuits of length
//! l occupy l + (N mod l) channels. All circuits are up at the same time, so a reconfiguration is
//! charged only once.
//!
//! A plan is rotation-symmetric if all circuit lengths divide N and if blocks for the opposite rank
//! always travel clockwise. (This rule for opposite ranks needs no additional slot.) Large plans
//! have this form, and store only the transfers of rank 0, chunk by chunk.
//!
//! Far step t = 1, 2, ... forwards the blocks that have made t - 1 far hops. In this step and in
//! each direction, a rank forwards blocks of one source for consecutive destinations. These blocks
//! are divided into n equal ranges, one range per far circuit. With m = 1, every block makes one
//! hop per link and all channels carry equal numbers of bytes. The transmission time then exceeds
//! the bound `cut` only by rounding: by less than a piece in each of the N / 2 steps. Larger
//! strides save transfers, but reserve some channels for the near step. In the near step, a rank
//! forwards one block of each source to each rank that its near circuits reach.

use crate::building::assembly::SharedMove;
use crate::ring::recipe::{self, Estimate, Recipe};
use crate::ring::slot_cost::SlotCost;
use crate::{Planner, PlannerError, PlanningProblem, empty_plan};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::Transfer;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("stride", "number of links of a far circuit")
            .range("1 to 64")
            .default("the fastest found"),
        OptionRecord::new(
            "lanes",
            "number of parallel far circuits of each rank in each direction",
        )
        .range("1 to 4096")
        .default("the maximum that fits"),
        OptionRecord::new("pieces", "number of chunks of a block")
            .range("1 to 64")
            .default("1"),
    ],
    depends_on_size: true,
    ..Planner::new(
        Relays::NAME,
        "Store and forward",
        &[CollectiveKind::AllToAll],
        "Blocks are forwarded from relay to relay in both directions around the ring, over static \
         circuits",
        "opticoll; store-and-forward routing on rings",
        recipe::scope::<Relays>(),
    )
};

/// Maximum number of links of a far circuit. (With longer far circuits, most hops would use near
/// circuits.)
const MAX_STRIDE: u32 = 64;

/// Maximum number of chunks of a collective, if blocks are cut into pieces. (The verifier tracks
/// every chunk separately.)
const MAX_CHUNKS: u64 = 1 << 20;

/// Maximum number of transfers of a plan that the user does not specify by options.
const MAX_TRANSFERS: u64 = 1 << 23;

/// Parameters of a store-and-forward plan. Blocks are first sent over *far* circuits of `stride`
/// links, from relay to relay. A shorter *near* circuit leads to the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relays {
    /// Number of links of a far circuit.
    stride: u32,
    /// Number of parallel far circuits of each rank in each direction.
    lanes: u32,
    pieces: u32,
    /// True if the plan stores only the transfers of rank 0, which stand for all rotations.
    is_rotation_symmetric: bool,
}

impl Recipe for Relays {
    const NAME: &'static str = "store_and_forward";

    fn longest(&self, _ring: &WdmRing) -> u32 {
        self.stride
    }

    fn spec(&self) -> Spec {
        Spec::new(Relays::NAME)
            .with("stride", self.stride)
            .with("lanes", self.lanes)
            .with("pieces", self.pieces)
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let steps = (1..).map_while(|step| self.far_blocks(ranks, step));
        let pieces = u64::from(self.pieces);
        if self.is_rotation_symmetric {
            let blocks = 2 * steps.sum::<u64>() + if self.stride > 1 { ranks } else { 0 };
            return blocks * pieces;
        }
        // The range of destinations may wrap around at rank 0, which adds a transfer.
        let far = steps.map(|blocks| (blocks * pieces).min(self.lanes.into()) + 1);
        let near = match self.stride {
            1 => 0,
            _ => ranks,
        };
        ranks * (2 * far.sum::<u64>() + near)
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        let collective = collective.with_pieces(self.pieces)?;
        let circuits = StaticCircuits { ring, recipe: self };
        let builder = PlanBuilder {
            ring,
            collective,
            recipe: self,
            circuits,
        };
        let plan = builder.plan();
        Ok(match self.is_rotation_symmetric {
            true => plan.with_all_rotations(),
            false => plan,
        })
    }

    fn from_options(
        spec: &Spec,
        ring: &WdmRing,
        _collective: Collective,
    ) -> Result<Option<Relays>, PlannerError> {
        if spec.options().next().is_none() {
            return Ok(None);
        }
        let Some(stride) = spec.count("stride", 1, MAX_STRIDE)? else {
            return Err(spec.refuse("stride", "is needed with other options").into());
        };
        let max_lanes = max_lanes(ring, stride);
        if max_lanes == 0 || stride > ring.ranks / 2 {
            let error = format!(
                "must divide N, be at most N / 2, and leave channels for far circuits ({} \
                 channels in each direction)",
                ring.channels()
            );
            return Err(spec.refuse("stride", error).into());
        }
        let lanes = spec.count("lanes", 1, 4096)?.unwrap_or(max_lanes);
        if lanes > max_lanes {
            let error = format!("must be at most {max_lanes} with stride={stride} here");
            return Err(spec.refuse("lanes", error).into());
        }
        let pieces = spec.count("pieces", 1, 64)?.unwrap_or(1);
        Ok(Some(Relays {
            stride,
            lanes,
            pieces,
            is_rotation_symmetric: is_rotation_symmetric(ring, stride),
        }))
    }

    fn estimates(ring: &WdmRing, problem: &PlanningProblem<'_>) -> Vec<Estimate<Relays>> {
        let ranks = u64::from(ring.ranks);
        let block = problem.size.get().div_ceil(ranks);
        let (cost, once) = SlotCost::with_lasting_circuits(ring, problem.policy());
        let max_transfers = problem.max_transfers.min(MAX_TRANSFERS);
        let mut estimates: Vec<(u64, Estimate<Relays>)> = Vec::new();
        for stride in 1..=MAX_STRIDE.min(ring.ranks / 2).min(ring.longest()) {
            interrupt::check();
            let mut lanes = max_lanes(ring, stride);
            while lanes > 0 {
                for pieces in [1, 2, 4, 8] {
                    let recipe = Relays {
                        stride,
                        lanes,
                        pieces,
                        is_rotation_symmetric: is_rotation_symmetric(ring, stride),
                    };
                    let transfers = recipe.transfers(ranks);
                    let chunks = ranks * ranks * u64::from(pieces);
                    let (max_chunks, max_transfers) = match recipe.is_rotation_symmetric {
                        true => (u32::MAX.into(), max_transfers.min(MAX_REPRESENTATIVES)),
                        false => (MAX_CHUNKS, max_transfers),
                    };
                    let has_too_many_pieces =
                        pieces > 1 && (chunks > max_chunks || u64::from(pieces) > block);
                    if has_too_many_pieces || transfers > max_transfers {
                        break;
                    }
                    let (slots, time) = recipe.slots_and_time(ranks, block, cost);
                    let time = time.saturating_add(once);
                    estimates.push((
                        transfers,
                        Estimate {
                            time,
                            slots,
                            recipe,
                        },
                    ));
                }
                lanes /= 2;
            }
        }
        recipe::fastest_and_smallest(estimates)
    }
}

/// Maximum number of transfers of rank 0 of a rotation-symmetric plan.
const MAX_REPRESENTATIVES: u64 = 1 << 20;

/// Maximum number of ranks for which plans always store the transfers of all ranks.
const MAX_RANKS_WRITTEN_OUT: u32 = 64;

/// Returns whether plans with far circuits of `stride` links store only the transfers of rank 0.
fn is_rotation_symmetric(ring: &WdmRing, stride: u32) -> bool {
    let divides = |length: u32| ring.ranks % length == 0;
    let is_symmetric = ring.is_even() && !ring.converters && (1..=stride / 2).all(divides);
    ring.ranks > MAX_RANKS_WRITTEN_OUT && divides(stride) && is_symmetric
}

/// Returns the number of channels of one direction that are needed if a circuit of `length` links
/// starts at every rank. The circuit of rank i uses channel i mod `length`, except for the last
/// `ranks` mod `length` ranks. The circuits of these ranks use one additional channel each.
fn channels(ranks: u32, length: u32) -> u32 {
    length + ranks % length
}

/// Returns the maximum number of parallel far circuits from each rank in each direction. The far
/// circuits have `stride` links, and the near circuits also need channels and ports. Returns 0 if
/// `stride` does not divide N.
fn max_lanes(ring: &WdmRing, stride: u32) -> u32 {
    if ring.ranks % stride != 0 {
        return 0;
    }
    let near = stride / 2;
    let near_channels: u32 = (1..=near).map(|length| channels(ring.ranks, length)).sum();
    let lanes_by_channels = ring.channels().saturating_sub(near_channels) / stride;
    let ports = ring.ports.unwrap_or(u32::MAX);
    lanes_by_channels.min((ports / 2).saturating_sub(near))
}

impl Relays {
    /// Returns the maximum number of links of a near hop whose direction is opposite to the
    /// preceding far hops.
    fn max_links_back(&self) -> u32 {
        (self.stride - 1) / 2
    }

    /// Returns the number of blocks that a rank forwards in each direction in far step `step` (1,
    /// 2, ...). Returns `None` after the last far step.
    fn far_blocks(&self, ranks: u64, step: u64) -> Option<u64> {
        let nearest = step * u64::from(self.stride) - u64::from(self.max_links_back());
        (ranks / 2 + 1)
            .checked_sub(nearest)
            .filter(|&blocks| blocks > 0)
    }

    /// Returns the number of slots of the plan and the sum of the slot times in picoseconds.
    /// `block` is the number of bytes of a block.
    fn slots_and_time(&self, ranks: u64, block: u64, cost: SlotCost) -> (u64, u64) {
        let (pieces, lanes) = (u64::from(self.pieces), u64::from(self.lanes));
        let hops = self.stride.into();
        let (mut slots, mut time) = (0, 0u64);
        for blocks in (1..).map_while(|step| self.far_blocks(ranks, step)) {
            let chunks = (blocks * pieces).div_ceil(lanes);
            let bytes = Bytes::new((chunks * block).div_ceil(pieces));
            slots += 1;
            time = time.saturating_add(cost.slots(1, bytes, hops));
        }
        if self.stride > 1 {
            let near = ranks.div_ceil(self.stride.into());
            slots += near;
            time = time.saturating_add(cost.slots(near, Bytes::new(block), hops));
        }
        (slots, time)
    }
}

struct StaticCircuits<'a> {
    ring: &'a WdmRing,
    recipe: &'a Relays,
}

impl StaticCircuits<'_> {
    /// Returns the channel of a far circuit that starts at `rank`. `lane` is the index of the
    /// circuit among the parallel far circuits of this rank.
    fn far(&self, rank: u32, direction: Direction, lane: u32) -> Light {
        self.light(
            rank,
            direction,
            self.recipe.stride,
            lane * self.recipe.stride,
        )
    }

    /// Returns the channel of the near circuit of `length` links that starts at `rank`.
    fn near(&self, rank: u32, direction: Direction, length: u32) -> Light {
        let shorter = (1..length).map(|shorter| channels(self.ring.ranks, shorter));
        let far = self.recipe.lanes * self.recipe.stride;
        self.light(rank, direction, length, far + shorter.sum::<u32>())
    }

    /// Returns the channel of the circuit of `length` links that starts at `rank`. `first` is the
    /// index of the first channel for circuits of this length.
    fn light(&self, rank: u32, direction: Direction, length: u32, first: u32) -> Light {
        let (ring, ranks) = (self.ring, self.ring.ranks);
        let start = match direction {
            Direction::Clockwise => rank,
            Direction::CounterClockwise => ring.rank_after(rank, direction, length),
        };
        let even = ranks - ranks % length;
        let channel = match start < even {
            true => start % length,
            false => length + start - even,
        };
        ring.light(direction, first + channel)
    }
}

struct PlanBuilder<'a> {
    ring: &'a WdmRing,
    collective: Collective,
    recipe: &'a Relays,
    circuits: StaticCircuits<'a>,
}

impl PlanBuilder<'_> {
    fn plan(&self) -> Plan {
        let ranks = self.ring.ranks;
        let senders = if self.recipe.is_rotation_symmetric {
            1
        } else {
            ranks
        };
        let fabric = Fabric::new(self.ring.clone());
        let mut plan = empty_plan(fabric, self.collective, self.recipe.spec().to_string(), 0);
        let steps = (1..).take_while(|&step| self.recipe.far_blocks(ranks.into(), step).is_some());
        for step in steps {
            let mut lightpaths = Vec::new();
            for rank in 0..senders {
                for direction in Direction::BOTH {
                    self.far(step as u32, rank, direction, &mut lightpaths);
                }
            }
            append(&mut plan, lightpaths);
        }
        if self.recipe.stride > 1 {
            let mut lightpaths = Vec::new();
            (0..senders).for_each(|rank| self.near(rank, &mut lightpaths));
            append(&mut plan, lightpaths);
        }
        plan.schedule.claims.schedule_steps = Some(plan.schedule.steps() as u32);
        plan
    }

    /// Returns the distance, in links, of the farthest destination to which `source` sends in
    /// `direction`. In a rotation-symmetric plan, all ranks send clockwise to the opposite rank. In
    /// other plans, even ranks send clockwise and odd ranks send counter-clockwise to the opposite
    /// rank.
    fn farthest(&self, source: u32, direction: Direction) -> u32 {
        let half = self.ring.ranks / 2;
        let parity = if self.recipe.is_rotation_symmetric {
            0
        } else {
            source % 2
        };
        let excludes_opposite = self.ring.ranks % 2 == 0 && direction as u32 != parity;
        half - u32::from(excludes_opposite)
    }

    /// Adds the lightpaths over which `rank` sends in `direction` in far step `step` (1, 2, ...).
    fn far(&self, step: u32, rank: u32, direction: Direction, lightpaths: &mut Vec<Lightpath>) {
        let (ring, recipe) = (self.ring, self.recipe);
        let source = ring.rank_after(rank, direction.opposite(), (step - 1) * recipe.stride);
        let nearest = step * recipe.stride - recipe.max_links_back();
        let farthest = self.farthest(source, direction);
        if nearest > farthest {
            return;
        }
        let first = match direction {
            Direction::Clockwise => ring.rank_after(source, direction, nearest),
            Direction::CounterClockwise => ring.rank_after(source, direction, farthest),
        };
        let to = ring.rank_after(rank, direction, recipe.stride);
        let length = farthest - nearest + 1;
        let straight = length.min(ring.ranks - first);
        let blocks = [first..first + straight, 0..length - straight];
        let row = source * ring.ranks;
        let chunks =
            blocks.map(|run| (row + run.start) * recipe.pieces..(row + run.end) * recipe.pieces);
        let parts = SharedMove::cut(rank, to, chunks.to_vec(), recipe.lanes);
        for (lane, part) in (0..).zip(parts) {
            interrupt::check();
            let light = self.circuits.far(rank, direction, lane);
            for transfer in part.transfers() {
                self.add(0, light, transfer, lightpaths);
            }
        }
    }

    /// Adds a lightpath for `transfer` on channel `light`. `slot` is the index of the slot within
    /// the step. In a rotation-symmetric plan, adds one lightpath for each chunk of the transfer.
    fn add(&self, slot: u32, light: Light, transfer: Transfer, lightpaths: &mut Vec<Lightpath>) {
        let chunks = transfer.chunk..transfer.chunk + transfer.count;
        let count = if self.recipe.is_rotation_symmetric {
            1
        } else {
            transfer.count
        };
        lightpaths.extend(chunks.step_by(count as usize).map(|chunk| Lightpath {
            slot,
            light,
            transfer: Transfer {
                chunk,
                count,
                ..transfer
            },
        }));
    }

    /// Adds the lightpaths over which `rank` sends in the near step. In each slot, a near circuit
    /// transmits one block.
    fn near(&self, rank: u32, lightpaths: &mut Vec<Lightpath>) {
        let (ring, recipe) = (self.ring, self.recipe);
        let (max_links_back, ahead) =
            (recipe.max_links_back() as i64, i64::from(recipe.stride / 2));
        // Number of blocks sent so far, indexed by direction and length of the circuit.
        let mut sent = [vec![0; ahead as usize + 1], vec![0; ahead as usize + 1]];
        for far in 0.. {
            let mut has_blocks = false;
            for direction in Direction::BOTH {
                let hops = far * recipe.stride;
                let source = ring.rank_after(rank, direction.opposite(), hops);
                for near in (-max_links_back..=ahead).filter(|&near| near != 0) {
                    interrupt::check();
                    let distance = i64::from(hops) + near;
                    if !(1..=i64::from(self.farthest(source, direction))).contains(&distance) {
                        continue;
                    }
                    has_blocks = true;
                    let towards = if near > 0 {
                        direction
                    } else {
                        direction.opposite()
                    };
                    let length = near.unsigned_abs() as u32;
                    let to = ring.rank_after(rank, towards, length);
                    let slot = &mut sent[towards as usize][length as usize];
                    let light = self.circuits.near(rank, towards, length);
                    let transfer = Transfer {
                        chunk: (source * ring.ranks + to) * recipe.pieces,
                        count: recipe.pieces,
                        ..Transfer::copy(0, rank, to)
                    };
                    self.add(*slot, light, transfer, lightpaths);
                    *slot += 1;
                }
            }
            if !has_blocks {
                return;
            }
        }
    }
}

/// Appends a step to the plan. In `lightpaths`, the slots of the step are numbered from 0.
fn append(plan: &mut Plan, mut lightpaths: Vec<Lightpath>) {
    let before = plan.slots();
    let ends = lightpaths.iter().map(|lightpath| lightpath.slot + 1);
    let slots = ends.max().unwrap_or(0);
    lightpaths.sort_by_key(|lightpath| lightpath.slot);
    plan.schedule.begin_step();
    for lightpath in lightpaths {
        plan.push(Lightpath {
            slot: before + lightpath.slot,
            ..lightpath
        });
    }
    plan.step_slots.push(before..before + slots);
}
