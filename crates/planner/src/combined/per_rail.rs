//! Collectives of servers joined on rails: the fastest plan of the outside fabric on each rail, and
//! packets within servers at the same time. (Here, a packet is any message within a server.)
//!
//! Let a server have G GPUs. GPU r of every server is on rail r. All rails carry out the same plan
//! of the outside fabric, whose ranks are the servers. The plan is for the same collective, with
//! these chunks:
//!
//! | collective | chunks of rail r |
//! |---|---|
//! | all_reduce, broadcast, reduce | one G-th of the vector |
//! | all_gather, gather | the blocks that GPUs r own |
//! | reduce_scatter, scatter | the blocks that GPUs r receive |
//! | all_to_all | the blocks for GPUs r, from all GPUs of the source's server |
//!
//! Before GPU r sends a chunk on its rail, the other GPUs of its server send GPU r their
//! contributions or blocks. These packets have the step before the first transfer of the chunk, or,
//! if this is earlier, the step in which GPU r receives the last part of the chunk. One step after
//! that reception, GPU r sends the chunk to the GPUs of its server that need it. The root of a
//! broadcast has nothing to receive: its server distributes the chunk in the step in which GPU r
//! first sends it. So packets within servers use the same steps as light, and a plan has at most
//! two steps more than the plan of the outside.
//!
//! **Correctness.** GPU r stands for its server in the plan of the outside. It has the sum or the
//! blocks of its server before it first sends a chunk. If it never sends the chunk, or only after
//! its last reception (the root of a tree), the contributions of its server arrive with this
//! reception at the latest. So a chunk is complete one step before GPU r sends it to its server.

use rustc_hash::FxHashMap;

use crate::building::{PLANS_OF_PART, claim_steps};
use crate::selection::evaluation::{Built, Candidate};
use crate::{CandidateResult, Planned, Planner, PlannerError, PlanningProblem, Scope};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec, flat, nested};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::gpu_servers::{GpuServers, Layout, Outside, ServersOnLight};
use opticoll_placement::servers::{OnCopy, on_servers};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Schedule, Transfer};

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("outside", "algorithm of each rail, such as ring/stripes=4")
            .range("algorithms of that collective")
            .default("the fastest found"),
    ],
    depends_on_size: true,
    ..Planner::new(
        "per_rail",
        "Per rail",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::AllReduce,
            CollectiveKind::AllToAll,
            CollectiveKind::Broadcast,
            CollectiveKind::Gather,
            CollectiveKind::Reduce,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Scatter,
        ],
        "The fastest plan found for each rail, and packets within servers at the same time",
        "opticoll; after BlueConnect, Cho et al., MLSys 2019",
        Scope::Any(|fabric| rails(fabric).is_some(), plan, candidates),
    )
};

/// Servers that rails join.
#[derive(Clone, Copy)]
enum OnRails<'a> {
    Light(&'a ServersOnLight),
    Links(&'a GpuServers),
}

impl<'a> OnRails<'a> {
    fn outside(self) -> Option<&'a Outside> {
        match self {
            OnRails::Light(servers) => Some(servers.outside()),
            OnRails::Links(servers) => servers.outside(),
        }
    }
}

/// Returns the servers and their outside if rails join them.
fn rails(fabric: &Fabric) -> Option<(OnRails<'_>, &Outside)> {
    let light = fabric.downcast().map(OnRails::Light);
    let servers = light.or_else(|| fabric.downcast().map(OnRails::Links))?;
    let outside = servers.outside()?;
    (outside.layout == Layout::Rails).then_some((servers, outside))
}

fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let ranks = u64::from(problem.collective.ranks());
    let problem = *problem;
    Ok(vec![Candidate {
        name: PLANNER.name.into(),
        slots: 0,
        lower_bound: Time::ZERO,
        estimate: Time::ZERO,
        transfers: ranks * ranks,
        build: Box::new(move |_| {
            plan(&Spec::new(PLANNER.name), &problem).map(|it| Built::from(it.plan))
        }),
    }])
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let refused =
        |reason: &str| AlgorithmError::refused(PLANNER.name, problem.collective.ranks(), reason);
    let reason = "it needs gpu_servers with an outside on rails";
    let (servers, outside) = rails(problem.fabric).ok_or_else(|| refused(reason))?;
    let whole = problem.collective;
    let kind = whole.kind();
    let among = Collective::new(kind, outside.fabric.ranks())?;
    let among = among.with_root(whole.root() / outside.per_box)?;
    use CollectiveKind::{AllReduce, Broadcast, Reduce, ReduceScatter};
    let divisor = match kind {
        AllReduce | Broadcast | Reduce | ReduceScatter => u64::from(outside.per_box),
        _ => 1,
    };
    let of_rail = PlanningProblem {
        fabric: &outside.fabric,
        collective: among,
        size: Bytes::new(problem.size.get().div_ceil(divisor)),
        keeps_representatives: false,
        max_work: problem.max_work / 2,
        tried: None,
        limit: None,
        joined: None,
        wanted: 1,
        ..*problem
    };
    let on_servers = |rail: Plan| {
        let rail = rail.into_expanded();
        if rail.schedule.is_in_network() {
            let reason = "switches between servers would have to add or multicast";
            return Err(refused(reason).into());
        }
        let circuits = outside.fabric.circuits();
        let has_channel = |light: &Light| circuits.is_none_or(|own| own.has_channel(*light));
        if kind == CollectiveKind::AllToAll && !rail.light.iter().all(has_channel) {
            let reason =
                "a lightpath that converters move carries one block, not those of a server";
            return Err(refused(reason).into());
        }
        let rails = Rails::new(&rail, whole, outside.per_box)?;
        problem.fits(rails.transfers())?;
        let name = Spec::new(PLANNER.name).with("outside", flat(&rail.algorithm));
        let mut plan = rails.plan(problem.fabric, servers);
        plan.algorithm = name.to_string();
        Ok::<Plan, PlannerError>(plan)
    };
    if let Some(text) = spec.option("outside") {
        return on_servers(of_rail.solve(&nested(text)?)?.plan).map(Planned::from);
    }
    // A step on servers takes the latency of a packet, too, so a rail's fastest plan may have too
    // many steps.
    let fastest = of_rail.solve(&Spec::new("auto"))?;
    let latency = match servers {
        OnRails::Light(servers) => servers.inside_latency().ps(),
        OnRails::Links(servers) => servers.inside_latency().ps(),
    };
    let expected = |one: &CandidateResult| {
        let packets = latency.saturating_mul(one.slots);
        one.time.ps().saturating_add(packets)
    };
    // A candidate that was left out has lower bounds in place of its slots and time. It is tried,
    // too: on servers it may be faster.
    let others = fastest.candidates.iter().skip(1);
    let mut next: Vec<_> = others.filter(|one| one.slots > 0).collect();
    next.sort_by_key(|one| expected(one));
    let next: Vec<String> = next
        .into_iter()
        .take(PLANS_OF_PART - 1)
        .map(|one| one.name.clone())
        .collect();
    let time = |plan: &Plan| {
        let outcome = opticoll_simulate::run(plan, problem.size, problem.method);
        outcome.map(|outcome| outcome.time)
    };
    let mut best = on_servers(fastest.plan)?;
    let mut least = time(&best)?;
    for name in next {
        let Ok(plan) = of_rail
            .solve(&name.parse()?)
            .and_then(|it| on_servers(it.plan))
        else {
            continue;
        };
        let taken = time(&plan)?;
        if taken < least {
            (best, least) = (plan, taken);
        }
    }
    Ok(best.into())
}

/// Chunk of the outside's plan at a server.
type ChunkAt = (u32, u32);

/// Plan of the outside, and the collective of all GPUs.
struct Rails<'a> {
    rail: &'a Plan,
    collective: Collective,
    /// Number of GPUs of a server, G.
    per_box: u32,
    /// First step in which a server sends a chunk.
    first_sent: FxHashMap<ChunkAt, usize>,
    /// Last step in which a server receives a part of a chunk.
    last_received: FxHashMap<ChunkAt, usize>,
}

impl<'a> Rails<'a> {
    fn new(rail: &'a Plan, whole: Collective, per_box: u32) -> Result<Rails<'a>, PlannerError> {
        let own = rail.schedule.collective;
        let pieces = match is_shared(whole.kind()) {
            true => own.chunks().saturating_mul(per_box),
            false => own.pieces(),
        };
        let mut rails = Rails {
            rail,
            collective: whole.with_pieces(pieces)?,
            per_box,
            first_sent: FxHashMap::default(),
            last_received: FxHashMap::default(),
        };
        for step in 0..rail.schedule.steps() {
            for index in rail.schedule.step(step) {
                let moved = rail.schedule.transfer(index);
                for chunk in moved.chunk..moved.chunk + moved.count {
                    rails
                        .first_sent
                        .entry((chunk, moved.source))
                        .or_insert(step);
                    rails.last_received.insert((chunk, moved.destination), step);
                }
            }
        }
        Ok(rails)
    }

    /// Returns an upper bound on the number of transfers.
    fn transfers(&self) -> u64 {
        let own = self.rail.schedule.collective;
        let (size, boxes) = (u64::from(self.per_box), u64::from(own.ranks()));
        let at_servers = u64::from(own.chunks()) * boxes;
        let (outside, inside) = match own.kind() {
            CollectiveKind::AllToAll => (size, u64::from(own.chunks())),
            _ => (1, at_servers),
        };
        let sent = self
            .rail
            .schedule
            .deliveries()
            .saturating_mul(outside * size);
        sent.saturating_add(2 * inside * size * size)
    }

    /// Returns the chunks of the whole collective that `chunk` of rail `rail` stands for.
    fn chunks(&self, rail: u32, chunk: u32) -> impl Iterator<Item = u32> + use<> {
        let own = self.rail.schedule.collective;
        let (size, pieces, boxes) = (self.per_box, own.pieces(), own.ranks());
        let (block, piece) = (chunk / pieces, chunk % pieces);
        let (first, count) = match own.kind() {
            CollectiveKind::AllToAll => {
                let (from, to) = (block / boxes, block % boxes);
                let first = from * size * boxes * size + to * size + rail;
                (first * pieces + piece, size)
            }
            kind if is_shared(kind) => (rail * own.chunks() + chunk, 1),
            _ => ((block * size + rail) * pieces + piece, 1),
        };
        // Blocks of consecutive GPUs of the source's server.
        (0..count).map(move |source| first + source * boxes * size * pieces)
    }

    fn plan(&self, fabric: &Fabric, servers: OnRails<'_>) -> Plan {
        let steps = self.rail.schedule.steps();
        // Packets of each step. Step t of the rail's plan is step t + 1 of the whole plan.
        let mut packets: Vec<Vec<Transfer>> = vec![Vec::new(); steps + 2];
        for rail in 0..self.per_box {
            for server in 0..self.rail.schedule.collective.ranks() {
                self.add_packets(rail, server, &mut packets);
            }
        }
        let first = usize::from(packets[0].is_empty());
        let last = steps + 1 - usize::from(packets[steps + 1].is_empty());
        let mut schedule = Schedule::new(self.collective);
        let mut copies = vec![Vec::new(); self.per_box as usize];
        for (step, packets) in packets.into_iter().enumerate().take(last + 1).skip(first) {
            interrupt::check();
            schedule.begin_step();
            if (1..=steps).contains(&step) {
                for (rail, moves) in (0..).zip(&mut copies) {
                    self.add_light(rail, step - 1, &mut schedule, moves);
                }
            }
            joined(packets)
                .into_iter()
                .for_each(|packet| schedule.push(packet));
        }
        schedule.claims = claim_steps(&schedule);
        let copies: Vec<OnCopy<'_>> = copies
            .into_iter()
            .map(|moves| OnCopy {
                plan: self.rail,
                first_step: 1 - first,
                moves,
            })
            .collect();
        match servers {
            OnRails::Light(servers) => {
                on_servers(schedule, fabric, servers, &copies, String::new())
            }
            OnRails::Links(servers) => on_links(schedule, fabric, servers, &copies),
        }
    }

    /// Adds the transfers of a step of the rail's plan to the last step of `schedule`, and their
    /// indices to `moves`.
    fn add_light(
        &self,
        rail: u32,
        step: usize,
        schedule: &mut Schedule,
        moves: &mut Vec<(usize, usize)>,
    ) {
        for index in self.rail.schedule.step(step) {
            let moved = self.rail.schedule.transfer(index);
            let [source, destination] =
                [moved.source, moved.destination].map(|server| server * self.per_box + rail);
            let chunks = moved.chunk..moved.chunk + moved.count;
            let chunks = chunks.flat_map(|chunk| self.chunks(rail, chunk));
            let transfers = chunks.map(|chunk| Transfer {
                chunk,
                count: 1,
                source,
                destination,
                action: moved.action,
            });
            for transfer in joined(transfers.collect()) {
                moves.push((index, schedule.len()));
                schedule.push(transfer);
            }
        }
    }

    /// Adds the packets within a server that rail `rail` needs.
    fn add_packets(&self, rail: u32, server: u32, packets: &mut [Vec<Transfer>]) {
        use CollectiveKind::{
            AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
        };
        let own = self.rail.schedule.collective;
        let (kind, steps) = (own.kind(), self.rail.schedule.steps());
        let (first_gpu, root) = (server * self.per_box, self.collective.root());
        let on_rail = first_gpu + rail;
        let others = (first_gpu..first_gpu + self.per_box).filter(|&gpu| gpu != on_rail);
        let has_root = root / self.per_box == server;
        let mut add = |step: usize, chunk: u32, from: u32, to: u32, action: Action| {
            packets[step].push(Transfer {
                chunk,
                count: 1,
                source: from,
                destination: to,
                action,
            });
        };
        for chunk in 0..own.chunks() {
            interrupt::check();
            let sent = self.first_sent.get(&(chunk, server)).copied();
            let received = self.last_received.get(&(chunk, server)).copied();
            // Packets come one step before the server first sends the chunk. They come no later
            // than the last part of a sum, so that the sum is complete.
            let complete = received.map(|step| step + 1);
            let before = sent.into_iter().chain(complete).min().unwrap_or(steps);
            let after = received.map_or(1, |step| step + 2);
            let mut whole = self.chunks(rail, chunk);
            let part = whole
                .next()
                .expect("a chunk of a rail has one chunk or more");
            match kind {
                AllReduce | Reduce | ReduceScatter => {
                    for gpu in others.clone() {
                        add(before, part, gpu, on_rail, Action::Reduce);
                    }
                }
                Broadcast | Scatter if has_root && root != on_rail => {
                    add(before, part, root, on_rail, Action::Copy);
                }
                AllToAll if chunk / own.pieces() / own.ranks() == server => {
                    let parts = std::iter::once(part).chain(whole);
                    for (gpu, part) in (first_gpu..).zip(parts).filter(|(gpu, _)| *gpu != on_rail) {
                        add(before, part, gpu, on_rail, Action::Copy);
                    }
                }
                _ => {}
            }
            match kind {
                AllGather | AllReduce => {
                    others
                        .clone()
                        .for_each(|gpu| add(after, part, on_rail, gpu, Action::Copy));
                }
                Broadcast => {
                    let after = if has_root { before + 1 } else { after };
                    let receivers = others.clone().filter(|&gpu| !has_root || gpu != root);
                    receivers.for_each(|gpu| add(after, part, on_rail, gpu, Action::Copy));
                }
                Gather | Reduce if has_root && root != on_rail => {
                    add(after, part, on_rail, root, Action::Copy);
                }
                _ => {}
            }
        }
    }
}

/// Returns the plan of `schedule` on servers joined by links, with the routes of the rails' plans.
fn on_links(
    schedule: Schedule,
    fabric: &Fabric,
    servers: &GpuServers,
    copies: &[OnCopy<'_>],
) -> Plan {
    let mut plan = Plan::without_light(fabric, schedule, String::new());
    for own in copies {
        for &(place, index) in &own.moves {
            let (source, destination) = plan.schedule.ends(index);
            let route = own.plan.routes.of(place);
            let route = route.and_then(|own| servers.route_outside([source, destination], own));
            if let Some(route) = route {
                plan.routes.assign(index, &route);
            }
        }
    }
    plan
}

/// Returns whether each rail has a share of one vector, rather than blocks.
fn is_shared(kind: CollectiveKind) -> bool {
    use CollectiveKind::{AllReduce, Broadcast, Reduce};
    matches!(kind, AllReduce | Broadcast | Reduce)
}

/// Joins transfers of consecutive chunks between the same ranks.
fn joined(mut transfers: Vec<Transfer>) -> Vec<Transfer> {
    transfers.sort_unstable_by_key(|one| (one.source, one.destination, one.chunk));
    let mut joined: Vec<Transfer> = Vec::new();
    for transfer in transfers {
        match joined.last_mut() {
            Some(last)
                if (last.source, last.destination, last.action)
                    == (transfer.source, transfer.destination, transfer.action)
                    && last.chunk + last.count == transfer.chunk =>
            {
                last.count += transfer.count;
            }
            _ => joined.push(transfer),
        }
    }
    joined
}
