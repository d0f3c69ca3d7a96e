//! Plans of all_to_alls over circuits that stay up: blocks travel from relay to relay.
//!
//! Let x = a m + e with -(m - 1) / 2 <= e <= m / 2. A block for the rank x links away in a
//! direction makes a *far* hops of m links and then a *near* hop of e links. From every rank, n far
//! circuits of m links leave in each direction, and one near circuit to every rank up to m / 2
//! links away. The far circuits occupy m n channels of a direction if the stride m divides N. The
//! near circuits of length l occupy l channels, plus one more for each of N mod l ranks. All
//! circuits are up at the same time, so that changes of circuits are paid once.
//!
//! A plan looks the same from every rank if all lengths divide N and the block for the opposite
//! rank travels clockwise, which takes no further slot. Large plans have this form, and only the
//! transfers of rank 0 are stored, chunk by chunk.
//!
//! Far step t = 1, 2, ... transports the blocks that still have t far hops to go: at each rank the
//! blocks of one source, for neighbouring destinations, cut into n equal ranges. With m = 1 every
//! block makes one hop for each link, all channels carry equally much, and the transmission takes
//! the time of the cut bound plus rounding: less than a piece in each of the N / 2 steps. Greater
//! strides save transfers and leave some channels to the near step, in which a rank has one block
//! of each source for each of its neighbours.

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
        "Blocks passed from relay to relay in both directions around the ring, over circuits that \
         stay up",
        "opticoll; store-and-forward routing on rings",
        recipe::scope::<Relays>(),
    )
};

/// Maximum stride, in links: longer far circuits leave too few blocks to the far steps.
const MAX_STRIDE: u32 = 64;

/// Maximum number of chunks of a collective whose blocks are cut into pieces: the proof of a plan
/// follows each chunk from rank to rank.
const MAX_CHUNKS: u64 = 1 << 20;

/// Maximum number of transfers of a plan that options do not give.
const MAX_TRANSFERS: u64 = 1 << 23;

/// Recipe: the far circuits, and the pieces of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relays {
    /// Links of a far circuit.
    stride: u32,
    /// Far circuits of each rank in each direction.
    lanes: u32,
    pieces: u32,
    /// True if the plan stores the transfers of rank 0 only.
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
        // The range of a rank may be divided at rank 0.
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
                "must divide N, be at most N / 2 and leave room for far circuits on {} channels in \
                 each direction",
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
                    let (slots, time) = recipe.time(ranks, block, cost);
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

/// Maximum number of transfers of rank 0 of a plan that stores only these.
const MAX_REPRESENTATIVES: u64 = 1 << 20;

/// Maximum number of ranks of rings whose plans store the transfers of all ranks.
const MAX_RANKS_WRITTEN_OUT: u32 = 64;

/// Returns whether plans of a stride store the transfers of rank 0 only.
fn is_rotation_symmetric(ring: &WdmRing, stride: u32) -> bool {
    let divides = |length: u32| ring.ranks % length == 0;
    let is_symmetric = ring.is_even() && !ring.converters && (1..=stride / 2).all(divides);
    ring.ranks > MAX_RANKS_WRITTEN_OUT && divides(stride) && is_symmetric
}

/// Returns the number of channels that circuits of a length from every rank occupy in one
/// direction. Rank i uses channel i mod l of l; the last N mod l ranks use one further channel
/// each.
fn channels(ranks: u32, length: u32) -> u32 {
    length + ranks % length
}

/// Returns the maximum number of far circuits of a stride from each rank in each direction, next to
/// the near circuits. The number is 0 if the stride does not divide N.
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
    /// Returns the maximum number of links that a near circuit leads back, against the direction of
    /// the far circuits.
    fn max_links_back(&self) -> u32 {
        (self.stride - 1) / 2
    }

    /// Returns the number of blocks that a rank passes on in a far step in each direction; `None`
    /// behind the last step.
    fn far_blocks(&self, ranks: u64, step: u64) -> Option<u64> {
        let nearest = step * u64::from(self.stride) - u64::from(self.max_links_back());
        (ranks / 2 + 1)
            .checked_sub(nearest)
            .filter(|&blocks| blocks > 0)
    }

    /// Returns the number of slots and their time in picoseconds.
    fn time(&self, ranks: u64, block: u64, cost: SlotCost) -> (u64, u64) {
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

/// Assignment of channels to circuits that are all up at the same time.
struct StaticCircuits<'a> {
    ring: &'a WdmRing,
    recipe: &'a Relays,
}

impl StaticCircuits<'_> {
    fn far(&self, rank: u32, direction: Direction, lane: u32) -> Light {
        self.light(
            rank,
            direction,
            self.recipe.stride,
            lane * self.recipe.stride,
        )
    }

    fn near(&self, rank: u32, direction: Direction, length: u32) -> Light {
        let shorter = (1..length).map(|shorter| channels(self.ring.ranks, shorter));
        let far = self.recipe.lanes * self.recipe.stride;
        self.light(rank, direction, length, far + shorter.sum::<u32>())
    }

    /// Returns the light of a circuit whose length has channels from `first` on. A
    /// counter-clockwise circuit is numbered by the rank at its end, so that it lies on the links
    /// as a clockwise circuit does.
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

/// Builder of the plan of a recipe.
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

    /// Returns how many links the blocks of a source travel at most in a direction. Blocks for the
    /// opposite rank travel clockwise from every second rank, or from all ranks.
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

    /// Adds the lightpaths of a rank in a far step, in as many slots as its ranges need.
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
        // The blocks are cut into equal parts, one for each lane; one of the parts may continue
        // from rank N - 1 to rank 0.
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

    /// Adds a transfer over a lightpath, chunk by chunk if the plan stores the transfers of rank 0
    /// only.
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

    /// Adds the lightpaths of a rank to its neighbours after the far steps, with one block of each
    /// source in a slot.
    fn near(&self, rank: u32, lightpaths: &mut Vec<Lightpath>) {
        let (ring, recipe) = (self.ring, self.recipe);
        let (max_links_back, ahead) =
            (recipe.max_links_back() as i64, i64::from(recipe.stride / 2));
        // Number of blocks sent so far, by direction and length.
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

/// Appends a step. The slots of the lightpaths count from the first slot of the step.
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
