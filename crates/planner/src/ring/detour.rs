//! Plans for rings with cut cables, with a limit on how far light goes, or with light trees: the plan of a ring
//! without any of that, led around and relayed.
//!
//! **Around a cut.** A lightpath that would cross a cut goes the other way around. Take a plan for a whole ring
//! with c' channels per direction. In a slot at most c' lightpaths of each direction cross the place of the cut,
//! so that led the other way they add at most c' to the load of any link of the other direction. With one cut
//! c' = floor(c / 2) leaves room for both, and what was near a bound on the whole ring with half the channels is
//! near the bound on the line, whose last link and whose middle take half of what a ring's do.
//!
//! **Relays.** A lightpath longer than light reaches becomes several, in slots that follow one another. A rank
//! that relays chunks keeps them, so that no later lightpath brings them to it again; what then has no use is left
//! out, so that the plan can run backwards. Each lightpath takes the earliest slot after those that bring its chunks, in
//! which a channel and ports are free: list scheduling ([`crate::ring::relay_tree::demands`]), in the order of the slots of the first
//! plan.
//!
//! **Combining.** Chunks that are only copied can wait at any rank. So reduce_scatter, reduce and gather are an
//! all_gather, a broadcast and a scatter on the ring with its cuts turned round, backwards. In an all_reduce every
//! slot is kept together, and what is longer than light reaches has no place; its two phases are planned one by one
//! by [`crate::combined::two_phases`] then.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::assembly::{Assembly, Move};
use crate::ring::relay_tree::lightpath_requests::{self, Demand, PlacedDemand, Room};
use crate::selection::contest::{Contender, Contest, ContestOutcome, Made};
use crate::selection::named::{flat, nested};
use crate::time_reversal::{self, copying};
use crate::{
    OnMachine, Planned, Planner, PlannerError, Question, Scope, ring::relay_tree::capability,
};

use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::placement;
use opticoll_plan::collective::{Collective, CollectiveKind, Holders};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Transfer;

/// The planner of detours and relays.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
        "plan",
        "algorithm planned on the ring without cuts, limits of reach and light trees, such as grouped/groups=9",
    )
    .range("algorithms of the collective; of its copying half where it combines")
    .default("the fastest found"),
    ],
    by_size: true,
    ..Planner::new(
        NAME,
        "Detour",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::AllReduce,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
            CollectiveKind::AllToAll,
        ],
        "The plan of a ring without faults, led around cuts and relayed where light does not reach",
        "opticoll; list scheduling: Graham, SIAM Journal on Applied Mathematics 1969",
        Scope::Rings(OnMachine {
            // Other rings have nothing to go around.
            applies: leads,
            ..OnMachine::new(plan, contenders)
        }),
    )
};

const NAME: &str = "detour";

/// So many of the fastest plans of the ring without faults are led around.
const MOST_LED: usize = 4;

/// The most transfers that are packed anew, some seconds of list scheduling; but one for each pair of ranks in any case.
const MOST_PACKED: u64 = 1 << 18;

fn most_packed(ring: &WdmRing) -> u64 {
    MOST_PACKED.max(u64::from(ring.ranks) * u64::from(ring.ranks))
}

/// A plan's name with fewer pieces where each piece on every channel to every rank would be too many transfers.
fn of_fewer_pieces(name: String, ring: &WdmRing) -> String {
    let of_a_piece = u64::from(ring.ranks) * u64::from(ring.channels()).max(1);
    let most = (most_packed(ring) / of_a_piece).max(1);
    let Ok(spec) = name.parse::<Spec>() else {
        return name;
    };
    match spec.value::<u64>("pieces") {
        Ok(Some(pieces)) if pieces > most => {
            spec.without("pieces").with("pieces", most).to_string()
        }
        _ => name,
    }
}

/// Whether there is something to go around or to relay.
fn leads(ring: &WdmRing) -> bool {
    ring.ranks > 1 && (!ring.broken.is_empty() || ring.longest() < ring.ranks - 1)
}

/// The ring on which the copying collective runs, and the ring without faults.
fn rings(ring: &WdmRing, kind: CollectiveKind) -> (WdmRing, WdmRing) {
    let there = match copying(kind) == kind {
        true => ring.clone(),
        false => capability::backwards(ring),
    };
    // Lightpaths that keep their channels carry several transfers, and each delivers at its end.
    let there = WdmRing {
        multicast: false,
        converters: false,
        ..there
    };
    let cuts = Direction::BOTH.map(|direction| {
        let of_it = ring.broken.iter();
        of_it.filter(|link| link.direction == direction).count()
    });
    let share = 1 + cuts[0].max(cuts[1]).min(1) as u32;
    let whole = WdmRing {
        fibres: 1,
        wavelengths: (ring.channels() / share).clamp(1, u32::from(CONVERTED) - 1),
        converters: false,
        multicast: false,
        reach: None,
        budget: None,
        broken: Vec::new(),
        cuts: Vec::new(),
        dead: Vec::new(),
        ports: ring.ports.filter(|_| capability::has_few_ports(ring)),
        ..ring.clone()
    };
    (there, whole)
}

/// The question for the ring without faults.
fn inner<'a>(question: &Question<'a>, whole: &'a Fabric) -> Result<Question<'a>, PlannerError> {
    let collective = question.collective;
    let kind = collective.kind();
    let of_block = Bytes::new(question.size.get().div_ceil(u64::from(collective.ranks())));
    Ok(Question {
        fabric: whole,
        collective: Collective::new(copying(kind), collective.ranks())?
            .with_root(collective.root())?,
        size: match kind {
            CollectiveKind::ReduceScatter => of_block,
            _ => question.size,
        },
        most_work: question.most_work / 2,
        ..*question
    })
}

fn contenders<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    if !leads(ring) {
        return Ok(Vec::new());
    }
    let (there, whole) = rings(ring, question.collective.kind());
    let one_by_one = question.collective.kind() == CollectiveKind::AllReduce;
    if one_by_one && there.longest() < there.ranks - 1 {
        return Ok(Vec::new());
    }
    let of_whole = Fabric::new(whole.clone());
    let inner = inner(question, &of_whole)?;
    let inner = Question {
        limit: None,
        joined: None,
        wanted: MOST_LED,
        ..inner
    };
    let mut plans: Vec<(String, Time)> = match inner.fastest() {
        Ok(found) => {
            let made = found.candidates.into_iter();
            let made = made.filter(|one| one.left_out.is_none()).take(MOST_LED);
            made.map(|one| (of_fewer_pieces(one.name, ring), one.time))
                .collect()
        }
        Err(_) => Vec::new(),
    };
    let slowest = plans.iter().map(|(_, time)| *time).max();
    let direct = opticoll_algorithms::find(inner.collective.kind(), "direct");
    if direct.is_ok() && !plans.iter().any(|(name, _)| name == "direct") {
        plans.push(("direct".into(), slowest.unwrap_or(Time::ZERO)));
    }
    let least = question.least()?;
    let transfers = u64::from(ring.ranks) * u64::from(ring.ranks);
    let mut contenders: Vec<Contender<'a>> = Vec::new();
    for (name, time) in plans {
        let spec = Spec::new(NAME).with("plan", flat(&name));
        let question = *question;
        contenders.push(Contender {
            name: spec.to_string(),
            slots: 1,
            least,
            estimate: time.max(least),
            transfers,
            make: Box::new(move |_| led(&spec, &question, ring).map(Made::from)),
        });
    }
    Ok(contenders)
}

fn plan(spec: &Spec, question: &Question<'_>, ring: &WdmRing) -> Result<Planned, PlannerError> {
    if question.fabric.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let contenders = match spec.option("plan") {
        None => contenders(question, ring)?,
        Some(_) => Vec::new(),
    };
    if contenders.is_empty() {
        return led(spec, question, ring).map(Planned::from);
    }
    let ContestOutcome { fastest, .. } = Contest::new(question)?.run(contenders, Vec::new())?;
    Ok(fastest?.0.into())
}

/// The plan that a spec names, led around.
fn led(spec: &Spec, question: &Question<'_>, ring: &WdmRing) -> Result<Plan, PlannerError> {
    let kind = question.collective.kind();
    let (there, whole) = rings(ring, kind);
    let fabric = Fabric::new(whole.clone());
    let of_whole = inner(question, &fabric)?;
    let planned = match spec.option("plan") {
        Some(text) => of_whole.answer(&nested(text)?)?,
        None => of_whole.fastest()?,
    };
    let (transfers, most) = (planned.plan.transfers(), most_packed(ring));
    if transfers > most {
        return Err(PlannerError::TooLarge { transfers, most });
    }
    let planned = planned.plan.into_written_out();
    let mut plan = match kind {
        CollectiveKind::AllReduce => led_around(ring, &planned)?,
        _ => relayed(&there, &planned, &of_whole)?,
    };
    plan = time_reversal::towards(plan, question.collective)?;
    plan.fabric = question.fabric.clone();
    let named = Spec::new(NAME).with("plan", flat(&planned.algorithm));
    plan.algorithm = named.to_string();
    Ok(plan)
}

/// Refuses a lightpath that no direction takes.
fn broken(index: usize, transfer: &Transfer) -> PlannerError {
    PlannerError::Placement(placement::broken(
        index,
        transfer.source,
        transfer.destination,
    ))
}

/// The direction of a lightpath, or the other one where the first is cut.
fn whole_way(ring: &WdmRing, transfer: &Transfer, direction: Direction) -> Option<Direction> {
    let ways = [direction, direction.opposite()];
    let is_whole = |way: &Direction| ring.is_whole(transfer.source, transfer.destination, *way);
    ways.into_iter().find(is_whole)
}

/// A plan slot by slot, with lightpaths around cuts.
fn led_around(ring: &WdmRing, planned: &Plan) -> Result<Plan, PlannerError> {
    let mut assembly = Assembly::new(ring, planned.schedule.collective);
    // Step by step, for a rank sends what it held when the step began, also in its later slots.
    for step in 0..planned.schedule.steps() {
        let indices = planned.schedule.step(step);
        let moves: Result<Vec<Move>, PlannerError> = indices
            .map(|index| {
                let transfer = planned.schedule.transfer(index);
                let direction = WdmLight::from(planned.light[index]).direction;
                let way = whole_way(ring, &transfer, direction);
                Ok((transfer, way.ok_or_else(|| broken(index, &transfer))?))
            })
            .collect();
        assembly.step(&moves?)?;
    }
    Ok(assembly.finish(String::new()))
}

/// The lightpaths of each slot.
fn by_slot(plan: &Plan) -> Vec<Vec<usize>> {
    let mut slots = vec![Vec::new(); plan.slots() as usize];
    for (index, &slot) in plan.slot.iter().enumerate() {
        interrupt::check();
        slots[slot as usize].push(index);
    }
    slots
}

/// A plan that copies, with lightpaths around cuts and cut where light ends.
fn relayed(ring: &WdmRing, planned: &Plan, question: &Question<'_>) -> Result<Plan, PlannerError> {
    let collective = planned.schedule.collective;
    let mut relaying = Relaying {
        ring,
        collective,
        held: FxHashSet::default(),
        lightpaths: Vec::new(),
        transfers: 0,
    };
    for (slot, mut indices) in (0..).zip(by_slot(planned)) {
        // What shares a lightpath goes on sharing one.
        let lightpath = |index: &usize| (planned.schedule.ends(*index), planned.light[*index]);
        indices.sort_by_key(lightpath);
        let mut moves = Vec::with_capacity(indices.len());
        for together in indices.chunk_by(|one, other| lightpath(one) == lightpath(other)) {
            let first = planned.schedule.transfer(together[0]);
            let direction = WdmLight::from(planned.light[together[0]]).direction;
            let way = whole_way(ring, &first, direction);
            let way = way.ok_or_else(|| broken(together[0], &first))?;
            let chunks = together.iter().map(|&index| {
                let transfer = planned.schedule.transfer(index);
                (transfer.chunk, transfer.count)
            });
            moves.push((first, way, chunks.collect::<Vec<_>>()));
        }
        moves.sort_by_key(|(transfer, way, _)| relaying.order(transfer, *way));
        for (transfer, way, chunks) in moves {
            relaying.send(&transfer, way, &chunks, slot);
        }
        question.fits(relaying.transfers)?;
    }
    let lightpaths = useful(ring, collective, relaying.lightpaths);
    // Both in earlier slots and in those of the plan, for early slots may be long.
    let placed = [0, u32::MAX].map(|most| placed(ring, &lightpaths, most));
    let time = |places: &Vec<PlacedDemand>| time(question, ring, collective, &lightpaths, places);
    let placed = placed.into_iter().min_by_key(time).unwrap_or_default();
    let (mut demands, mut places) = (Vec::new(), Vec::new());
    for (lightpath, place) in lightpaths.iter().zip(placed) {
        demands.extend(lightpath.demands());
        places.resize(demands.len(), place);
    }
    Ok(lightpath_requests::plan(
        ring, collective, &demands, &places, NAME,
    ))
}

/// A lightpath as far as light reaches, with the runs of chunks that it carries one after the other.
struct RelayHop {
    /// Its first run stands for all.
    demand: Demand,
    runs: Vec<(u32, u32)>,
}

impl RelayHop {
    fn demands(&self) -> impl Iterator<Item = Demand> + '_ {
        let of_run = |&(chunk, count): &(u32, u32)| Demand {
            chunk,
            count,
            ..self.demand
        };
        self.runs.iter().map(of_run)
    }

    fn chunks(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs
            .iter()
            .flat_map(|&(chunk, count)| chunk..chunk + count)
    }
}

/// The lightpaths that bring chunks to whoever must hold them or sends them on.
fn useful(ring: &WdmRing, collective: Collective, lightpaths: Vec<RelayHop>) -> Vec<RelayHop> {
    let mut sent: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut useful = Vec::with_capacity(lightpaths.len());
    for lightpath in lightpaths.into_iter().rev() {
        let demand = lightpath.demand;
        let rank = demand.at(ring.ranks, demand.length);
        let has_use = |chunk: u32| match collective.after(chunk) {
            Holders::One(last) if last != rank => sent.contains(&(rank, chunk)),
            _ => true,
        };
        let runs = lightpath
            .runs
            .iter()
            .flat_map(|&(chunk, count)| runs(chunk, count, has_use));
        let used = RelayHop {
            demand,
            runs: runs.collect(),
        };
        if !used.runs.is_empty() {
            sent.extend(used.chunks().map(|chunk| (demand.source, chunk)));
            useful.push(used);
        }
    }
    useful.reverse();
    useful
}

/// Returns the time of the slots with lightpaths at these places, in picoseconds.
fn time(
    question: &Question<'_>,
    ring: &WdmRing,
    collective: Collective,
    lightpaths: &[RelayHop],
    places: &[PlacedDemand],
) -> u128 {
    let mut longest = vec![
        0;
        places
            .iter()
            .map(|place| place.slot as usize + 1)
            .max()
            .unwrap_or(0)
    ];
    for (lightpath, place) in lightpaths.iter().zip(places) {
        let chunks = lightpath
            .chunks()
            .map(|chunk| collective.chunk_bytes(question.size, chunk).get());
        let slot: &mut u64 = &mut longest[place.slot as usize];
        *slot = chunks.sum::<u64>().max(*slot);
    }
    let cost = question.slot_cost(ring);
    longest
        .into_iter()
        .map(|bytes| u128::from(cost.slots(1, Bytes::new(bytes), 0)))
        .sum()
}

/// Returns for each lightpath the earliest slot after those that bring its chunks, and not before its own slot if that is
/// at most `latest`.
fn placed(ring: &WdmRing, lightpaths: &[RelayHop], latest: u32) -> Vec<PlacedDemand> {
    let mut room = Room::new(ring);
    // From which slot on a rank that received a chunk can send it.
    let mut ready: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let place = |lightpath: &RelayHop| {
        let demand = &lightpath.demand;
        let chunks = lightpath.chunks();
        let slots = chunks.filter_map(|chunk| ready.get(&(demand.source, chunk)));
        // Slots have no end.
        let from = slots
            .copied()
            .max()
            .unwrap_or(0)
            .max(demand.earliest.min(latest));
        let placed = room.take(demand, from, u32::MAX).unwrap_or_default();
        let rank = demand.at(ring.ranks, demand.length);
        ready.extend(
            lightpath
                .chunks()
                .map(|chunk| ((rank, chunk), placed.slot + 1)),
        );
        placed
    };
    lightpaths.iter().map(place).collect()
}

/// The runs of consecutive chunks for which something is so.
fn runs(first: u32, count: u32, is_so: impl Fn(u32) -> bool) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for chunk in (first..first + count).filter(|&chunk| is_so(chunk)) {
        interrupt::check();
        match runs.last_mut() {
            Some((first, count)) if *first + *count == chunk => *count += 1,
            _ => runs.push((chunk, 1)),
        }
    }
    runs
}

/// Lightpaths so far, each as long as light reaches at most.
struct Relaying<'a> {
    ring: &'a WdmRing,
    collective: Collective,
    /// Which ranks have received which chunks.
    held: FxHashSet<(u32, u32)>,
    lightpaths: Vec<RelayHop>,
    /// The runs of all of them.
    transfers: u64,
}

impl Relaying<'_> {
    /// From a cut on by left ends, for intervals are coloured without loss in that order; on a ring the longest
    /// first.
    fn order(&self, transfer: &Transfer, way: Direction) -> (Direction, u32, u32) {
        let ranks = self.ring.ranks;
        let hops = self.ring.hops(transfer.source, transfer.destination, way);
        let cut = self.ring.broken.iter().find(|link| link.direction == way);
        let first = match way {
            Direction::Clockwise => transfer.source,
            Direction::CounterClockwise => transfer.destination,
        };
        match cut {
            Some(cut) => {
                let left = (first + ranks - (cut.position + 1) % ranks) % ranks;
                (way, left, ranks - hops)
            }
            None => (way, ranks - hops, first),
        }
    }

    fn is_held(&self, rank: u32, chunk: u32) -> bool {
        self.collective.before(chunk) == Holders::One(rank) || self.held.contains(&(rank, chunk))
    }

    /// Sends chunks from rank to rank, as far as light reaches each time.
    fn send(
        &mut self,
        transfer: &Transfer,
        direction: Direction,
        chunks: &[(u32, u32)],
        slot: u32,
    ) {
        let links = self
            .ring
            .hops(transfer.source, transfer.destination, direction);
        let reach = self.ring.longest();
        let mut source = transfer.source;
        for behind in (0..links).step_by(reach as usize) {
            let hop = Demand {
                chunk: transfer.chunk,
                count: transfer.count,
                source,
                direction,
                length: reach.min(links - behind),
                shared: false,
                earliest: slot,
                after: None,
            };
            let next = hop.at(self.ring.ranks, hop.length);
            let is_missing = |chunk: u32| !self.is_held(next, chunk);
            let missing = chunks
                .iter()
                .flat_map(|&(chunk, count)| runs(chunk, count, is_missing));
            let relayed = RelayHop {
                demand: hop,
                runs: missing.collect(),
            };
            if !relayed.runs.is_empty() {
                self.held
                    .extend(relayed.chunks().map(|chunk| (next, chunk)));
                self.transfers += relayed.runs.len() as u64;
                self.lightpaths.push(relayed);
            }
            source = next;
        }
    }
}
