//! Plans of the lightpaths that the search found: images under translations, time reversal, and
//! the two parts of an all_reduce.

use super::light_graph::LightGraph;
use super::slot_filling::Delivery;
use super::{Part, Solution};
use crate::building::claim_steps;
use crate::{PlannerError, PlanningProblem};
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{Lightpath, NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Action, Schedule, Transfer};

/// Part of a collective with its lightpaths.
pub(super) struct FilledPart<'a> {
    pub(super) part: &'a Part,
    pub(super) graph: &'a LightGraph,
    /// Collective of the part. A piece is the data of all stripes.
    pub(super) collective: Collective,
    /// Number of stripes of a piece, each of which is a chunk of the plan.
    pub(super) stripes: u32,
    /// True if all ranks exchange whole vectors.
    pub(super) exchanges: bool,
    pub(super) solution: &'a Solution<'a>,
}

/// Returns the plan of the collective of `problem`, whose parts run one after the other. Each slot
/// is a step.
pub(super) fn plan(
    problem: &PlanningProblem<'_>,
    parts: &[FilledPart<'_>],
) -> Result<Plan, PlannerError> {
    let (planned, stripes) = (parts[0].collective, parts[0].stripes);
    let whole = match problem.collective.kind() {
        CollectiveKind::AllReduce if parts[0].exchanges => {
            problem.collective.with_pieces(planned.pieces() * stripes)?
        }
        CollectiveKind::AllReduce => problem
            .collective
            .with_pieces(parts[0].chunks() * stripes)?,
        _ if planned.demand().is_some() => planned,
        _ => problem.collective.with_pieces(planned.pieces() * stripes)?,
    };
    let mut plan = Plan {
        fabric: problem.fabric.clone(),
        schedule: Schedule::new(whole),
        algorithm: String::new(),
        size: None,
        light: Vec::new(),
        slot: Vec::new(),
        step_slots: Vec::new(),
        relays: Vec::new(),
        routes: NamedRoutes::default(),
        repetition: Repetition::NONE,
    };
    for part in parts {
        part.append_to(&mut plan, whole);
    }
    plan.schedule.claims = claim_steps(&plan.schedule);
    Ok(plan)
}

impl FilledPart<'_> {
    /// Returns the number of chunks, without the division into stripes.
    fn chunks(&self) -> u32 {
        match self.solution.has_images {
            true => self.collective.chunks(),
            false => self.solution.items.len() as u32,
        }
    }

    /// Appends the slots to a plan of `whole`. If the part is reversed in time and `whole` combines
    /// contributions, so do its transfers.
    fn append_to(&self, plan: &mut Plan, whole: Collective) {
        let images = match (self.solution.has_images, &self.part.turns) {
            (true, Some(_)) => self.graph.ranks,
            _ => 1,
        };
        let slots = &self.solution.filled.slots;
        let along_trees = whole.kind() == CollectiveKind::AllToAll
            && self.collective.kind() == CollectiveKind::AllGather;
        let below = along_trees.then(|| self.ranks_below());
        let mut route = Vec::new();
        for index in 0..slots.len() {
            let deliveries = match self.part.reversed {
                true => &slots[slots.len() - 1 - index],
                false => &slots[index],
            };
            let slot = plan.slots();
            plan.step_slots.push(slot..slot + 1);
            plan.schedule.begin_step();
            for delivery in deliveries {
                for image in 0..images {
                    interrupt::check();
                    let mut transfer = self.image(delivery, image, &mut route);
                    if self.part.reversed {
                        route.reverse();
                        (transfer.source, transfer.destination) =
                            (transfer.destination, transfer.source);
                        if whole.combines() {
                            transfer.action = Action::Reduce;
                        }
                    }
                    if self.exchanges {
                        transfer.action = Action::Reduce;
                        transfer.chunk %= self.collective.pieces();
                    }
                    let channel = self.solution.filled.channel(delivery, image);
                    let chunks = match &below {
                        None => vec![transfer.chunk],
                        Some(below) => {
                            let place = delivery.item as usize * self.graph.ranks as usize;
                            let below = below[place + delivery.to as usize].iter();
                            below
                                .map(|&rank| self.block_for(transfer.chunk, rank, image))
                                .collect()
                        }
                    };
                    for chunk in chunks {
                        for stripe in 0..self.stripes {
                            plan.routes.assign(plan.len(), &route);
                            plan.push(Lightpath {
                                slot,
                                light: self.graph.light(channel, stripe).into(),
                                transfer: Transfer {
                                    chunk: chunk * self.stripes + stripe,
                                    ..transfer
                                },
                            });
                        }
                    }
                }
            }
        }
    }

    /// Returns the ranks that each rank serves in the tree of each item, including itself; indexed
    /// by item * ranks + rank.
    fn ranks_below(&self) -> Vec<Vec<u32>> {
        let ranks = self.graph.ranks as usize;
        let places = 0..self.solution.items.len() * ranks;
        let mut below: Vec<Vec<u32>> = places.map(|place| vec![(place % ranks) as u32]).collect();
        for delivery in self.solution.filled.slots.iter().rev().flatten() {
            let tree = delivery.item as usize * ranks;
            let served = below[tree + delivery.to as usize].clone();
            below[tree + delivery.from as usize].extend(served);
        }
        below
    }

    /// Returns the chunk of an all_to_all from the source of chunk `chunk` of an all_gather to the
    /// image of `rank`.
    fn block_for(&self, chunk: u32, rank: u32, image: u32) -> u32 {
        let (ranks, pieces) = (self.graph.ranks, self.collective.pieces());
        let turns = self.part.turns.as_ref();
        let turns = turns.filter(|_| self.solution.has_images);
        let destination = turns.map_or(rank, |turns| turns.rank(rank, image));
        ((chunk / pieces) * ranks + destination) * pieces + chunk % pieces
    }

    /// Returns the transfer of a lightpath's image, and stores its links in `route`.
    fn image(&self, delivery: &Delivery, image: u32, route: &mut Vec<u32>) -> Transfer {
        let chunk = self.solution.items[delivery.item as usize].chunk;
        let links = self.solution.filled.route(delivery).iter();
        route.clear();
        let turns = self.part.turns.as_ref();
        let Some(turns) = turns.filter(|_| self.solution.has_images) else {
            route.extend(links);
            return Transfer::copy(chunk, delivery.from, delivery.to);
        };
        route.extend(links.map(|&link| turns.link(link, image)));
        let (ranks, pieces) = (self.collective.ranks(), self.collective.pieces());
        let (block, piece) = (chunk / pieces, chunk % pieces);
        let block = match self.collective.kind() {
            CollectiveKind::AllToAll => {
                turns.rank(block / ranks, image) * ranks + turns.rank(block % ranks, image)
            }
            _ => turns.rank(block, image),
        };
        Transfer::copy(
            block * pieces + piece,
            turns.rank(delivery.from, image),
            turns.rank(delivery.to, image),
        )
    }
}
