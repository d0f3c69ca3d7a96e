//! All_to_all over circuits that stay up: blocks go from relay to relay.
//!
//! A block for the rank x links away in a direction, x = a m + e with -(m - 1) / 2 <= e <= m / 2, makes a *far* hops of m links
//! and then a *near* one of e. From every rank n circuits lead m links far each way, and one to every rank up to
//! m / 2 links away: m n channels of a direction for a stride m that divides N, and for
//! each length l of the near ones l, and one more for each of N mod l ranks. All of them are up together, so that
//! changes of circuits are paid once.
//!
//! A plan looks the same from every rank where all lengths divide N and the block for the rank opposite goes clockwise, which takes no slot
//! more. Large plans are of this form, and only the transfers of rank 0 are kept, chunk by chunk.
//!
//! Far step t = 1, 2, ... takes on what still has t far hops before it: at each rank the blocks of one source, for neighbouring
//! destinations, cut into n equal ranges. With m = 1 every block makes one hop for each link, all channels
//! carry the same, and the transmission takes the cut bound but for what is rounded up: in each of the N / 2 steps less than a
//! piece. Greater strides save transfers and leave some channels to the near step, in which a rank has one block of each source for
//! each of its neighbours.

use crate::assembly::SharedMove;
use crate::ring::few_slots::{self, Estimate, Recipe};
use crate::ring::slot_cost::SlotCost;
use crate::{Planner, PlannerError, Question, empty_plan};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::Transfer;

/// The planner of all_to_alls from relay to relay.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("stride", "links of a far circuit")
            .range("1 to 64")
            .default("the fastest found"),
        OptionRecord::new(
            "lanes",
            "far circuits side by side from each rank, each way",
        )
        .range("1 to 4096")
        .default("as many as there is room for"),
        OptionRecord::new("pieces", "chunks that a block is cut into")
            .range("1 to 64")
            .default("1"),
    ],
    by_size: true,
    ..Planner::new(
        Relays::NAME,
        "Store and forward",
        &[CollectiveKind::AllToAll],
        "Blocks passed from relay to relay, both ways around, over circuits that stay up",
        "opticoll; store-and-forward routing on rings",
        few_slots::scope::<Relays>(),
    )
};

/// Longer far circuits leave too little to the far steps.
const MOST_STRIDE: u32 = 64;

/// Blocks are cut into no more chunks in all: the proof of a plan follows each of them from rank to rank.
const MOST_CUT: u64 = 1 << 20;

/// The most transfers of a plan that is not asked for by its options.
const MOST_ESTIMATED: u64 = 1 << 23;

/// Far circuits and how blocks are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relays {
    stride: u32,
    lanes: u32,
    pieces: u32,
    /// Whether only the transfers of rank 0 are kept.
    is_folded: bool,
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
        if self.is_folded {
            let blocks = 2 * steps.sum::<u64>() + if self.stride > 1 { ranks } else { 0 };
            return blocks * pieces;
        }
        // One range of each rank may be cut in two at rank 0.
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
        let relaying = Relaying {
            ring,
            collective,
            recipe: self,
            circuits,
        };
        let plan = relaying.plan();
        Ok(match self.is_folded {
            true => plan.in_all_rotations(),
            false => plan,
        })
    }

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        _collective: Collective,
    ) -> Result<Option<Relays>, PlannerError> {
        if spec.options().next().is_none() {
            return Ok(None);
        }
        let Some(stride) = spec.count("stride", 1, MOST_STRIDE)? else {
            return Err(spec
                .refuse("stride", "is needed beside other options")
                .into());
        };
        let most = room(ring, stride);
        if most == 0 || stride > ring.ranks / 2 {
            let problem = format!(
                "must divide N, be at most half of it and leave room for far circuits on {} channels each way",
                ring.channels()
            );
            return Err(spec.refuse("stride", problem).into());
        }
        let lanes = spec.count("lanes", 1, 4096)?.unwrap_or(most);
        if lanes > most {
            let problem = format!("must be {most} at most with stride={stride} here");
            return Err(spec.refuse("lanes", problem).into());
        }
        let pieces = spec.count("pieces", 1, 64)?.unwrap_or(1);
        Ok(Some(Relays {
            stride,
            lanes,
            pieces,
            is_folded: is_folded(ring, stride),
        }))
    }

    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<Relays>> {
        let ranks = u64::from(ring.ranks);
        let block = question.size.get().div_ceil(ranks);
        let (cost, once) = SlotCost::of_circuits_that_stay(ring, question.policy());
        let most = question.most_transfers.min(MOST_ESTIMATED);
        let mut estimates: Vec<(u64, Estimate<Relays>)> = Vec::new();
        for stride in 1..=MOST_STRIDE.min(ring.ranks / 2).min(ring.longest()) {
            interrupt::check();
            let mut lanes = room(ring, stride);
            while lanes > 0 {
                for pieces in [1, 2, 4, 8] {
                    let recipe = Relays {
                        stride,
                        lanes,
                        pieces,
                        is_folded: is_folded(ring, stride),
                    };
                    let transfers = recipe.transfers(ranks);
                    let chunks = ranks * ranks * u64::from(pieces);
                    let most_cut = match recipe.is_folded {
                        true => u32::MAX.into(),
                        false => MOST_CUT,
                    };
                    let is_cut = pieces > 1 && (chunks > most_cut || u64::from(pieces) > block);
                    let most = match recipe.is_folded {
                        true => most.min(MOST_KEPT),
                        false => most,
                    };
                    if is_cut || transfers > most {
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
        few_slots::worth_their_size(estimates)
    }
}

/// The most transfers of rank 0 that are kept of such a plan.
const MOST_KEPT: u64 = 1 << 20;

/// Larger rings have plans of which only the transfers of rank 0 are kept.
const WRITTEN_OUT: u32 = 64;

fn is_folded(ring: &WdmRing, stride: u32) -> bool {
    let divides = |length: u32| ring.ranks % length == 0;
    let alike = ring.is_even() && !ring.converters && (1..=stride / 2).all(divides);
    ring.ranks > WRITTEN_OUT && divides(stride) && alike
}

/// The channels of circuits of a length from every rank, one way. Rank i has channel i mod l of l; the last N mod l ranks
/// have one each of their own.
fn channels(ranks: u32, length: u32) -> u32 {
    length + ranks % length
}

/// The most far circuits of a stride that divides N from each rank, each way, beside the near ones.
fn room(ring: &WdmRing, stride: u32) -> u32 {
    if ring.ranks % stride != 0 {
        return 0;
    }
    let near = stride / 2;
    let taken: u32 = (1..=near).map(|length| channels(ring.ranks, length)).sum();
    let by_channels = ring.channels().saturating_sub(taken) / stride;
    let ports = ring.ports.unwrap_or(u32::MAX);
    by_channels.min((ports / 2).saturating_sub(near))
}

impl Relays {
    /// The farthest that a near circuit leads behind its rank, seen along the far ones.
    fn behind(&self) -> u32 {
        (self.stride - 1) / 2
    }

    /// How many blocks a rank passes on in a far step each way; none behind the last step.
    fn far_blocks(&self, ranks: u64, step: u64) -> Option<u64> {
        let nearest = step * u64::from(self.stride) - u64::from(self.behind());
        (ranks / 2 + 1)
            .checked_sub(nearest)
            .filter(|&blocks| blocks > 0)
    }

    /// Slots, and their time.
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

/// Circuits that are all up together.
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

    /// The light of a circuit whose length has channels from `first` on. Counter-clockwise the rank at its end counts, so
    /// that circuits lie on the links as clockwise ones do.
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

/// A plan in the making.
struct Relaying<'a> {
    ring: &'a WdmRing,
    collective: Collective,
    recipe: &'a Relays,
    circuits: StaticCircuits<'a>,
}

impl Relaying<'_> {
    fn plan(&self) -> Plan {
        let ranks = self.ring.ranks;
        let senders = if self.recipe.is_folded { 1 } else { ranks };
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

    /// How far the blocks of a source go in a direction. Those for the rank opposite go clockwise from every second rank, or from all.
    fn farthest(&self, source: u32, direction: Direction) -> u32 {
        let half = self.ring.ranks / 2;
        let own = if self.recipe.is_folded { 0 } else { source % 2 };
        let opposite = self.ring.ranks % 2 == 0 && direction as u32 != own;
        half - u32::from(opposite)
    }

    /// What a rank passes on in a far step, in as many slots as its ranges need.
    fn far(&self, step: u32, rank: u32, direction: Direction, lightpaths: &mut Vec<Lightpath>) {
        let (ring, recipe) = (self.ring, self.recipe);
        let source = ring.rank_after(rank, direction.opposite(), (step - 1) * recipe.stride);
        let nearest = step * recipe.stride - recipe.behind();
        let farthest = self.farthest(source, direction);
        if nearest > farthest {
            return;
        }
        let first = match direction {
            Direction::Clockwise => ring.rank_after(source, direction, nearest),
            Direction::CounterClockwise => ring.rank_after(source, direction, farthest),
        };
        let to = ring.rank_after(rank, direction, recipe.stride);
        // In equal parts, one for each lane; one of them may go on from rank N - 1 to rank 0.
        let length = farthest - nearest + 1;
        let straight = length.min(ring.ranks - first);
        let blocks = [first..first + straight, 0..length - straight];
        let row = source * ring.ranks;
        let chunks =
            blocks.map(|own| (row + own.start) * recipe.pieces..(row + own.end) * recipe.pieces);
        let parts = SharedMove::cut(rank, to, chunks.to_vec(), recipe.lanes);
        for (lane, part) in (0..).zip(parts) {
            interrupt::check();
            let light = self.circuits.far(rank, direction, lane);
            for transfer in part.transfers() {
                self.add(0, light, transfer, lightpaths);
            }
        }
    }

    /// Adds what goes over a lightpath, chunk by chunk where rotations are to follow.
    fn add(&self, slot: u32, light: Light, transfer: Transfer, lightpaths: &mut Vec<Lightpath>) {
        let chunks = transfer.chunk..transfer.chunk + transfer.count;
        let count = if self.recipe.is_folded {
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

    /// What a rank has for its neighbours after the far steps, one block of each source in a slot.
    fn near(&self, rank: u32, lightpaths: &mut Vec<Lightpath>) {
        let (ring, recipe) = (self.ring, self.recipe);
        let (behind, ahead) = (recipe.behind() as i64, i64::from(recipe.stride / 2));
        // By direction and length, the blocks so far.
        let mut sent = [vec![0; ahead as usize + 1], vec![0; ahead as usize + 1]];
        for far in 0.. {
            let mut any = false;
            for direction in Direction::BOTH {
                let hops = far * recipe.stride;
                let source = ring.rank_after(rank, direction.opposite(), hops);
                for near in (-behind..=ahead).filter(|&near| near != 0) {
                    interrupt::check();
                    let distance = i64::from(hops) + near;
                    if !(1..=i64::from(self.farthest(source, direction))).contains(&distance) {
                        continue;
                    }
                    any = true;
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
            if !any {
                return;
            }
        }
    }
}

/// Appends a step whose lightpaths say in which of its slots they are.
fn append(plan: &mut Plan, mut lightpaths: Vec<Lightpath>) {
    let before = plan.slots();
    let slots = lightpaths.iter().map(|one| one.slot + 1).max().unwrap_or(0);
    lightpaths.sort_by_key(|one| one.slot);
    plan.schedule.begin_step();
    for lightpath in lightpaths {
        plan.push(Lightpath {
            slot: before + lightpath.slot,
            ..lightpath
        });
    }
    plan.step_slots.push(before..before + slots);
}
