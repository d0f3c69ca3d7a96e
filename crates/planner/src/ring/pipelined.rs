//! Broadcast, scatter, reduce, gather and all_reduce along chains of neighbours whose circuits stay up.
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
//! Where light does not reach so far, every c-th piece goes over a channel, and each over circuits between all neighbours on its
//! way. With p a multiple of c a channel has p / c pieces for each rank, so that the farthest, which leaves first, has arrived
//! when the nearest leaves: n p / c slots again.
//!
//! **Around cuts.** Next to a cut the vector of a broadcast goes to each side of the root over all channels of one direction, to
//! as many ranks as stand before the cut: M / (c B) and what the pipeline adds, where the rank behind the cut takes in M over c
//! channels at least. A scatter sends each side the blocks of its ranks.
//!
//! **All_reduce** on the line of ranks from one side of a cut to the other. Over the channels of one direction sums go from rank
//! to rank, from the first to the last, and results come back over those of the other: p + 2 N - 3 slots of M / (c p) bytes,
//! where the last rank takes in M over c channels at least. The cut may be anywhere on a whole ring.
//!
//! Every rank gets every chunk at most once, so that backwards a broadcast is a reduce and a scatter a gather.

mod lanes;
mod room;

use self::lanes::Lane;
use self::room::Room;
use crate::ring::few_slots::{self, Estimate, Recipe};
use crate::ring::slot_cost::SlotCost;
use crate::selection::contest::Contender;
use crate::time_reversal::{self, copying};
use crate::{PlannerError, Question, empty_plan};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::{Action, Transfer};

/// More pieces than that save no time on any ring that fits into memory.
const MOST_PIECES: u32 = 1 << 16;

/// RingPipeline with so many pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingPipeline {
    pieces: u32,
    /// The transfers of the plan, or of the first chunks of one that is pipelined.
    transfers: u64,
    /// Channels side by side that are alike, where the plan is pipelined.
    stripes: Option<u32>,
    /// The slots of the plan.
    slots: u64,
    /// The most links of a lightpath.
    longest: u32,
}

impl RingPipeline {
    /// None where cuts or few ports leave no room.
    fn new(ring: &WdmRing, collective: Collective, pieces: u32) -> Option<RingPipeline> {
        let ranks = u64::from(ring.ranks);
        let forward = copying(collective.kind());
        let room = Room::new(ring, collective)?;
        let hops = u64::from(room.farthest());
        let streams = u64::from(room.streams());
        let stripes = room.stripes(ring, forward).filter(|_| pieces > 1);
        let each = |transfers: u64, slots: u64| RingPipeline {
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
            CollectiveKind::AllReduce => each(2 * streams * (ranks - 1), 2 * (ranks - 1)),
            CollectiveKind::Broadcast => {
                let sides = room.sides.iter();
                let hops_of_all =
                    sides.map(|side| u64::from(side.channels) * u64::from(side.ranks));
                each(hops_of_all.sum(), hops)
            }
            _ => {
                let lanes: Vec<Lane> = lanes::of(&room, pieces).collect();
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

/// The most promising chains; no all_reduce on a whole ring, where relay trees take as long in fewer slots.
pub(crate) fn contenders<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    match question.collective.kind() {
        CollectiveKind::AllReduce if ring.broken.is_empty() => Ok(Vec::new()),
        _ => few_slots::contenders::<RingPipeline>(question, ring),
    }
}

impl Recipe for RingPipeline {
    const NAME: &'static str = "pipelined";
    const AROUND_CUTS: bool = true;

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
        let Some(room) = Room::new(ring, collective) else {
            return Err(no_room(ring));
        };
        let chunks = match forward {
            CollectiveKind::Scatter => pieces,
            _ => pieces.saturating_mul(room.streams()),
        };
        let outwards = Collective::new(forward, collective.ranks())?
            .with_root(collective.root())?
            .with_pieces(chunks)?;
        if let Some(stripes) = self.stripes {
            let mut first = broadcast(ring, outwards, &room.of_first_chunks(), pieces, 1);
            first.algorithm = self.spec().to_string();
            return Ok(time_reversal::towards(first, collective)?.in_pieces(stripes, pieces));
        }
        let mut plan = match forward {
            CollectiveKind::AllReduce => there_and_back(ring, outwards, &room, pieces),
            CollectiveKind::Broadcast => broadcast(ring, outwards, &room, pieces, pieces),
            _ => scatter(ring, outwards, &room),
        };
        plan.algorithm = self.spec().to_string();
        time_reversal::towards(plan, collective)
    }

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<RingPipeline>, PlannerError> {
        let Some(pieces) = spec.count("pieces", 1, MOST_PIECES)? else {
            return Ok(None);
        };
        match RingPipeline::new(ring, collective, pieces) {
            None if ring.ranks > 1 => Err(no_room(ring)),
            recipe => Ok(recipe),
        }
    }

    /// From one piece on twice as many each time.
    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<RingPipeline>> {
        let collective = question.collective;
        let Some(room) = Room::new(ring, collective) else {
            return Vec::new();
        };
        let kind = copying(collective.kind());
        let share = match kind {
            CollectiveKind::Scatter => question.size.get(),
            _ => question.size.get().div_ceil(room.streams().into()),
        };
        let (cost, once) = SlotCost::of_circuits_that_stay(ring, question.policy());
        let mut all = Vec::new();
        let counts = (0..=MOST_PIECES.ilog2()).map(|power| 1u32 << power);
        for pieces in counts.take_while(|&pieces| u64::from(pieces) <= share.max(1)) {
            let Some(recipe) = RingPipeline::new(ring, collective, pieces) else {
                break;
            };
            let most = question.most_transfers.min(MOST_ESTIMATED);
            let steps = recipe.transfers.saturating_mul(pieces.into());
            if recipe.transfers > most || recipe.stripes.is_some() && steps > MOST_STEPS {
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
            all.push((recipe.transfers, estimate));
        }
        few_slots::worth_their_size(all)
    }
}

/// The most transfers of a plan that is not asked for by its pieces.
const MOST_ESTIMATED: u64 = 1 << 21;

/// The most pieces times transfers of the first chunks: a simulation takes some nanoseconds for each.
const MOST_STEPS: u64 = 1 << 26;

fn no_room(ring: &WdmRing) -> PlannerError {
    PlannerError::Algorithm(AlgorithmError::Refused {
        name: RingPipeline::NAME,
        ranks: ring.ranks,
        reason: "cuts, or too few ports, leave no line along which both directions have a channel"
            .into(),
    })
}

/// The lightpaths of the first so many pieces of each channel.
fn broadcast(ring: &WdmRing, collective: Collective, room: &Room, pieces: u32, sent: u32) -> Plan {
    let slots = sent + room.farthest() - 1;
    let mut plan = empty_plan(Fabric::new(ring.clone()), collective, String::new(), slots);
    for slot in 0..slots {
        plan.schedule.begin_step();
        for side in room.sides {
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

/// Sums along a line, and results back.
fn there_and_back(ring: &WdmRing, collective: Collective, room: &Room, pieces: u32) -> Plan {
    let hops = ring.ranks - 1;
    let slots = pieces + 2 * hops - 1;
    let [there, back] = room.sides;
    let last = ring.rank_after(room.start, there.direction, hops);
    let mut plan = empty_plan(Fabric::new(ring.clone()), collective, String::new(), slots);
    for slot in 0..slots {
        plan.schedule.begin_step();
        for hop in (slot + 1).saturating_sub(pieces)..(2 * hops).min(slot + 1) {
            interrupt::check();
            let (action, side, from, passed) = match hop < hops {
                true => (Action::Reduce, there, room.start, hop),
                false => (Action::Copy, back, last, hop - hops),
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

fn scatter(ring: &WdmRing, collective: Collective, room: &Room) -> Plan {
    let (root, pieces) = (collective.root(), collective.pieces());
    let mut of_slot: Vec<Vec<Lightpath>> = Vec::new();
    for lane in lanes::of(room, pieces) {
        let direction = lane.direction;
        let light = ring.light(direction, lane.channel);
        for (leaves, (far, piece, _)) in (0..).zip(lane.leaving()) {
            interrupt::check();
            let mut source = root;
            for (slot, stop) in (leaves..).zip(lane.stops_to(far)) {
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
    let mut plan = empty_plan(
        Fabric::new(ring.clone()),
        collective,
        String::new(),
        of_slot.len() as u32,
    );
    for lightpaths in of_slot {
        plan.schedule.begin_step();
        lightpaths
            .into_iter()
            .for_each(|lightpath| plan.push(lightpath));
    }
    plan
}
