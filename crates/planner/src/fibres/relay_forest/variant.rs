//! Candidates of the planner: values of all options, the search with these values, and the plan.

use std::rc::Rc;

use super::light_graph::{LightGraph, Turns, UNREACHABLE};
use super::rule::RULES;
use super::slot_filling::{Filled, Item, Lightpaths, SlotFilling};
use super::{
    CIRCUITS, MAX_SINGLE_PAIRS, MAX_SLOTS_OF_LOADS, MAX_UNEQUAL_RANKS, PLANNER, Part, RELAYS,
    SHORT_MESSAGES, Searches, assembly,
};
use crate::{PlannerError, PlanningProblem};
use opticoll_base::spec::Spec;
use opticoll_base::units::Time;
use opticoll_plan::collective::{Collective, CollectiveKind, Holders};
use opticoll_plan::plan::Plan;

/// Options that the user has set; `None` if the planner chooses.
#[derive(Default)]
pub(super) struct Menu {
    pub(super) pieces: Option<u32>,
    pub(super) kept: Option<Kept>,
    pub(super) load: Option<u32>,
    pub(super) delays: Option<[u32; 2]>,
    pub(super) along_trees: Option<bool>,
    pub(super) owners: Option<Owners>,
}

/// Lightpaths that stay up from the slot in which they are first used to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// None: each slot has lightpaths of its own.
    Never,
    /// All lightpaths.
    Any,
    /// All lightpaths, which lead over one link.
    OneLink,
}

/// Ranks that add up the parts of an all_reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owners {
    /// Every rank; also for other collectives.
    All,
    /// This number of ranks, those nearest to all others.
    Some(u32),
    /// None: every rank adds up the whole vector.
    None,
}

/// Values of all options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    /// Number of pieces per block.
    pub(super) pieces: u32,
    pub(super) kept: Kept,
    /// Maximum number of chunks that a lightpath carries in a slot.
    pub(super) load: u32,
    /// Maximum delays of lightpaths in the first slot and in all later slots, in percent of the
    /// delay to the farthest rank; `None` if delays have no limit.
    pub(super) delays: Option<[u32; 2]>,
    /// True if the blocks of an all_to_all follow the trees of an all_gather.
    pub(super) along_trees: bool,
    pub(super) owners: Owners,
}

impl Choice {
    pub(super) const PLAIN: Choice = Choice {
        pieces: 1,
        kept: Kept::Never,
        load: 1,
        delays: None,
        along_trees: false,
        owners: Owners::All,
    };
}

/// Candidate of a choice.
pub(super) struct Variant {
    pub(super) searches: Rc<Searches>,
    pub(super) choice: Choice,
    /// Sum over all parts of the propagation delay to the farthest rank.
    pub(super) farthest: Time,
    /// Number of pieces that the search places together, on consecutive channels.
    pub(super) stripes: u32,
    pub(super) parts: Vec<VariantPart>,
    /// Lower bound on the number of slots.
    pub(super) slots: u64,
    /// Lower bound on the number of chunks that a channel carries in all slots.
    pub(super) carried: u64,
}

/// Part of a collective with a number of pieces.
pub(super) struct VariantPart {
    pub(super) graph: LightGraph,
    /// Collective, in which the stripes are one piece.
    pub(super) collective: Collective,
    /// Chunks of the collective.
    pub(super) items: Vec<Item>,
    /// Lower bound on the number of slots.
    pub(super) slots: u64,
    /// Greatest of the least delays between the source and the targets of an item, in picoseconds.
    pub(super) farthest: u64,
}

impl Variant {
    pub(super) fn new(searches: &Rc<Searches>, choice: Choice) -> Result<Variant, PlannerError> {
        let stripes = searches.parts[0].stripes(choice.pieces, true);
        let (mut parts, mut carried) = (Vec::new(), 0);
        // Without owners, only the second part is planned, an all_gather.
        let first = match choice.owners {
            Owners::None => searches.parts.len() - 1,
            _ => 0,
        };
        let owners = match choice.owners {
            Owners::Some(count) => Some(
                searches.parts[0]
                    .graph
                    .central_ranks(count, choice.delays.is_some()),
            ),
            _ => None,
        };
        for part in &searches.parts[first..] {
            let planned = match part.collective.demand() {
                Some(_) => part.collective,
                None => part.collective.with_pieces(choice.pieces / stripes)?,
            };
            let graph = part.graph.striped(stripes);
            carried += least_slots(&graph, &items(&planned), Kept::Never, 1);
            let collective = match choice.along_trees {
                true => Collective::new(CollectiveKind::AllGather, planned.ranks())?
                    .with_pieces(planned.pieces())?,
                false => planned,
            };
            let mut items = items(&collective);
            if let Some(owners) = &owners {
                let number = |item: Item| {
                    let owner = owners.iter().position(|owner| *owner == item.source)?;
                    let piece = item.chunk % collective.pieces();
                    let chunk = owner as u32 * collective.pieces() + piece;
                    Some(Item { chunk, ..item })
                };
                items = items.into_iter().filter_map(number).collect();
            }
            parts.push(VariantPart {
                farthest: farthest(&graph, &items),
                slots: least_slots(&graph, &items, choice.kept, choice.load),
                graph,
                collective,
                items,
            });
        }
        let farthest = parts.iter().map(|part| part.farthest);
        Ok(Variant {
            farthest: Time::from_ps(farthest.fold(0, u64::saturating_add)),
            searches: Rc::clone(searches),
            choice,
            stripes,
            carried,
            slots: parts.iter().map(|part| part.slots).sum(),
            parts,
        })
    }

    pub(super) fn spec(&self) -> Spec {
        let choice = self.choice;
        let spec = Spec::new(PLANNER.name).with("pieces", choice.pieces);
        let circuits = CIRCUITS.iter().find(|(_, kept)| *kept == choice.kept);
        let spec = spec.with("circuits", circuits.map_or("", |(name, _)| name));
        let spec = match choice.load {
            1 => spec,
            load => spec.with("load", load),
        };
        let spec = match choice.delays {
            None => spec,
            Some([first, later]) => spec.with("delays", format!("{first}+{later}")),
        };
        let spec = match choice.owners {
            Owners::All => spec,
            Owners::Some(count) => spec.with("owners", count),
            Owners::None => spec.with("owners", "none"),
        };
        match choice.along_trees {
            true => spec.with("relays", RELAYS[1].0),
            false => spec,
        }
    }

    pub(super) fn transfers(&self) -> u64 {
        let parts = self.parts.iter();
        let parts = parts.map(|part| {
            let copies = match part.items.first().map(|item| item.target) {
                Some(None) => u64::from(part.collective.ranks() - 1),
                _ => 1,
            };
            // A block crosses a lightpath in each slot at most.
            let hops = match self.choice.along_trees {
                true => part.slots,
                false => 1,
            };
            part.items.len() as u64 * copies * u64::from(self.stripes) * hops
        });
        parts.sum()
    }

    /// Returns an estimate of the work of the search, in the unit of [`MAX_SEARCH`].
    pub(super) fn search_work(&self) -> u64 {
        let first = self.searches.parts.len() - self.parts.len();
        let parts = self.searches.parts[first..].iter().zip(&self.parts);
        let works = parts.map(|(whole, part)| {
            let ranks = u64::from(part.collective.ranks());
            let planned = match whole.turns {
                Some(_) if ranks > MAX_UNEQUAL_RANKS.into() => part.items.len() as u64 / ranks,
                _ => part.items.len() as u64,
            };
            let is_direct = part.items.iter().all(|item| item.target.is_some());
            let ranks = match is_direct && self.choice.kept == Kept::Never && self.choice.load == 1
            {
                true => 1,
                false => ranks,
            };
            planned * ranks * (1 + ranks / 64) * part.slots
        });
        works.sum::<u64>()
    }

    /// Returns whether few slots are possible, and two per part if messages are short compared to
    /// the delays of later slots.
    pub(super) fn suits_limits(&self) -> bool {
        let parts = self.parts.len() as u64;
        let later = self.choice.delays.map_or(0, |[_, later]| u64::from(later));
        let delay = self.farthest.ps() / (100 * parts.max(1)) * later;
        let is_short = self.sending(self.choice.load.into()).ps() < delay / SHORT_MESSAGES;
        self.slots
            <= if is_short {
                2 * parts
            } else {
                MAX_SLOTS_OF_LOADS
            }
    }

    /// Returns whether a lightpath may carry several chunks in a slot.
    pub(super) fn has_load(&self) -> bool {
        self.choice.load > 1 || self.choice.along_trees
    }

    /// Returns the time in which a channel sends `chunks` chunks.
    pub(super) fn sending(&self, chunks: u64) -> Time {
        let block = match self.choice.owners {
            Owners::All => self.searches.block,
            Owners::Some(count) => self.searches.size / u64::from(count),
            Owners::None => self.searches.size,
        };
        let bits = u128::from(block / u64::from(self.choice.pieces)) * 8;
        let bits_per_second = u128::from(self.searches.rate.bits_per_second());
        let sending = bits * u128::from(chunks) * 1_000_000_000_000 / bits_per_second.max(1);
        Time::from_ps(u64::try_from(sending).unwrap_or(u64::MAX))
    }

    /// Returns a lower bound on the time of `slots` slots.
    pub(super) fn time(&self, slots: u64) -> Result<Time, PlannerError> {
        let searches = &self.searches;
        let delays = searches.delay.times(slots)?.max(self.farthest);
        let paid = searches.every_slot.times(slots)?.plus(delays)?;
        let sending = self.sending(match self.has_load() {
            false => slots,
            true => self.carried.max(slots),
        });
        Ok(searches.once.plus(paid)?.plus(sending)?)
    }

    /// Returns the time of `slots` slots if all lightpaths carry chunks in all slots, if lightpaths
    /// that do not stay change in every slot, and if a lightpath of every slot reaches the limit of
    /// its delay.
    pub(super) fn expected(&self, slots: u64) -> Result<Time, PlannerError> {
        let changes = match self.choice.kept {
            Kept::Never => slots.saturating_sub(1),
            Kept::Any | Kept::OneLink => 0,
        };
        let excess = match self.choice.load {
            1 => 0,
            load => (slots * u64::from(load)).saturating_sub(self.carried.max(slots)),
        };
        let changing = self.searches.once.times(changes)?;
        let parts = self.parts.len().max(1) as u64;
        let delays = match self.choice.delays {
            None => Time::ZERO,
            Some(percent) => {
                // The lower bound contains the delay to the farthest rank.
                let delay = |percent: u32| self.farthest.ps() / 100 * u64::from(percent);
                let [first, later] = percent.map(delay);
                let later = (later / parts).saturating_mul(slots.saturating_sub(parts));
                let delays = first.saturating_add(later);
                Time::from_ps(delays.saturating_sub(self.farthest.ps()))
            }
        };
        Ok(self
            .time(slots)?
            .plus(changing)?
            .plus(delays)?
            .plus(self.sending(excess))?)
    }

    /// Builds the plan. Returns `None` if its time would reach `limit`.
    pub(super) fn build(
        &self,
        problem: &PlanningProblem<'_>,
        limit: Option<Time>,
    ) -> Result<Option<Plan>, PlannerError> {
        // Greatest number of slots of a plan that is faster than the limit.
        let mut most = u64::from(u16::MAX) - 1;
        if let Some(limit) = limit {
            let mut least = self.slots;
            if self.time(least)? >= limit {
                return Ok(None);
            }
            while least < most {
                let middle = least + (most - least).div_ceil(2);
                match self.time(middle)? < limit {
                    true => least = middle,
                    false => most = middle - 1,
                }
            }
        }
        let mut solutions = Vec::new();
        let first = self.searches.parts.len() - self.parts.len();
        let wholes = &self.searches.parts[first..];
        if self.choice.owners == Owners::None {
            most = 1;
        }
        for (whole, part) in wholes.iter().zip(&self.parts) {
            let turns = match self.choice.owners {
                Owners::Some(_) => None,
                _ => whole.turns.as_ref(),
            };
            let lightpaths = Lightpaths {
                stay: self.choice.kept != Kept::Never,
                max_links: match self.choice.kept {
                    Kept::OneLink => 1,
                    Kept::Never | Kept::Any => u32::MAX,
                },
                max_delays: match self.choice.delays.filter(|_| part.farthest > 0) {
                    None => [u64::MAX; 2],
                    Some(percent) => percent.map(|percent| {
                        (u128::from(part.farthest) * u128::from(percent) / 100) as u64
                    }),
                },
                load: self.choice.load,
            };
            let Some(solution) = part.fewest_slots(turns, lightpaths, most as u32) else {
                return Ok(None);
            };
            most = most.saturating_sub(solution.filled.slots.len() as u64);
            solutions.push(solution);
        }
        let parts = wholes.iter().zip(&self.parts).zip(&solutions);
        let parts = parts.map(|((whole, part), solution)| assembly::FilledPart {
            part: whole,
            graph: &part.graph,
            collective: part.collective,
            stripes: self.stripes,
            exchanges: self.choice.owners == Owners::None,
            solution,
        });
        let parts: Vec<assembly::FilledPart<'_>> = parts.collect();
        let mut plan = assembly::plan(problem, &parts)?;
        plan.algorithm = self.spec().to_string();
        Ok(Some(plan))
    }
}

/// Lightpaths of a part, with the items that they carry.
pub(super) struct Solution<'a> {
    pub(super) filled: Filled,
    pub(super) items: Vec<&'a Item>,
    /// True if each lightpath stands for its images under all translations.
    pub(super) has_images: bool,
}

impl Part {
    /// Returns the number of stripes into which the search divides `pieces` pieces. If `exact`, the
    /// stripes divide the number of pieces evenly.
    pub(super) fn stripes(&self, pieces: u32, exact: bool) -> u32 {
        if self.collective.demand().is_some() {
            return 1;
        }
        let ranks = u64::from(self.graph.ranks);
        let chunks = match self.turns {
            Some(_) if self.graph.ranks > MAX_UNEQUAL_RANKS => pieces.into(),
            _ => self.collective.blocks() * u64::from(pieces),
        };
        let ideal = (chunks * ranks / MAX_SINGLE_PAIRS) as u32;
        let divisor = if exact { pieces } else { 0 };
        self.graph.stripes(ideal, divisor)
    }
}

/// Returns a lower bound on the number of slots: each rank receives the chunks that it lacks, and
/// sends the chunks that only it has.
pub(super) fn least_slots(graph: &LightGraph, items: &[Item], kept: Kept, load: u32) -> u64 {
    let load = u64::from(load);
    let mut missing = vec![0u64; graph.ranks as usize];
    let mut leaving = vec![0u64; graph.ranks as usize];
    for item in items {
        leaving[item.source as usize] += 1;
        match item.target {
            Some(target) => missing[target as usize] += 1,
            None => {
                let ranks = (0..).zip(&mut missing);
                let others = ranks.filter(|(rank, _)| *rank != item.source);
                others.for_each(|(_, missing)| *missing += 1);
            }
        }
    }
    let slots = (0..graph.ranks).map(|rank| {
        let received = load * u64::from(graph.received_at_once(rank).max(1));
        let sent = load * u64::from(graph.sent_at_once(rank).max(1));
        let missing = missing[rank as usize].div_ceil(received);
        missing.max(leaving[rank as usize].div_ceil(sent))
    });
    let slots = slots.max().unwrap_or(0);
    if items.iter().all(|item| item.target.is_some()) {
        let channels = graph.usable.iter();
        let channels: u64 = channels.map(|free| u64::from(free.count_ones())).sum();
        return slots.max(total_distance(graph, items).div_ceil((channels * load).max(1)));
    }
    match kept {
        Kept::OneLink => slots.max(graph.eccentricity(items[0].source).into()),
        Kept::Never | Kept::Any => slots,
    }
}

/// Returns the sum of the distances between the sources and the targets of all items, in links.
fn total_distance(graph: &LightGraph, items: &[Item]) -> u64 {
    let distances = items.iter().map(|item| {
        let distances = graph.distances_from(item.source);
        match item.target {
            Some(target) => u64::from(distances[target as usize]),
            None => distances
                .iter()
                .filter(|distance| **distance != UNREACHABLE)
                .map(|&distance| u64::from(distance))
                .sum(),
        }
    });
    distances.sum()
}

impl VariantPart {
    /// Returns the lightpaths with the fewest slots that the rules find, at most `most` slots.
    pub(super) fn fewest_slots(
        &self,
        turns: Option<&Turns>,
        lightpaths: Lightpaths,
        most: u32,
    ) -> Option<Solution<'_>> {
        let least = self.slots as u32;
        let mut best: Option<Solution<'_>> = None;
        let pairs = self.items.len() as u64 * u64::from(self.graph.ranks);
        let is_small = self.graph.ranks <= MAX_UNEQUAL_RANKS && pairs <= MAX_SINGLE_PAIRS;
        let unequal = turns.is_none() || is_small;
        // If all lightpaths have one link, rules with different exponents of the length are alike.
        let rules = match lightpaths.max_links {
            1 => &RULES[..1],
            _ if self.slots > MAX_SLOTS_OF_ALL_RULES => &RULES[..2],
            _ => &RULES,
        };
        for turns in turns.map(Some).into_iter().chain(unequal.then_some(None)) {
            let of_rank_0 = |item: &&Item| turns.is_none() || item.source == 0;
            let planned: Vec<&Item> = self.items.iter().filter(of_rank_0).collect();
            let mut weights = vec![1; self.graph.ranks as usize];
            // Under translations, all ranks receive alike.
            for &rule in rules
                .iter()
                .filter(|rule| turns.is_none() || rule.differs_if_alike())
            {
                let slots = best.as_ref().map(|best| best.filled.slots.len() as u32);
                if slots.is_some_and(|slots| slots <= least + least / LEAST_GAIN_DIVISOR) {
                    return best;
                }
                let filling = SlotFilling {
                    graph: &self.graph,
                    turns,
                    items: &planned,
                    lightpaths,
                    max_slots: slots.map_or(most, |slots| slots - 1),
                };
                if let Some(filled) = filling.fill_within_delays(rule, &mut weights) {
                    best = Some(Solution {
                        filled,
                        items: planned.clone(),
                        has_images: turns.is_some(),
                    });
                }
            }
        }
        best
    }
}

/// Returns the greatest of the least delays between the source and the targets of an item, in
/// picoseconds.
fn farthest(graph: &LightGraph, items: &[Item]) -> u64 {
    let delays = items.iter().map(|item| match item.target {
        Some(target) => graph.delay(item.source, target),
        None => graph.farthest(item.source),
    });
    delays.max().unwrap_or(0)
}

/// Maximum number of slots of searches that try all rules. With more slots, rules differ little.
const MAX_SLOTS_OF_ALL_RULES: u64 = 8;

/// Distance from the lower bound at which the search ends: 1 / `LEAST_GAIN_DIVISOR` of the bound.
const LEAST_GAIN_DIVISOR: u32 = 64;

/// Returns the chunks of a collective that only copies, without the chunks that are at their
/// targets.
pub(super) fn items(collective: &Collective) -> Vec<Item> {
    let chunks = 0..collective.chunks();
    let items = chunks.filter_map(|chunk| {
        let Holders::One(source) = collective.before(chunk) else {
            return None;
        };
        let target = match collective.after(chunk) {
            Holders::One(target) => Some(target),
            Holders::All => None,
        };
        let item = Item {
            chunk,
            source,
            target,
        };
        (target != Some(source)).then_some(item)
    });
    items.collect()
}
