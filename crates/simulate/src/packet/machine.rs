//! Construction of the engine from a fabric, work and options, and of the outcome from the engine.

use std::iter::repeat_n;
use std::sync::Arc;

use super::arena::NONE;
use super::channel::VirtualChannels;
use super::delays::Delays;
use super::dragonfly::DragonflyRoutes;
use super::engine::{Counters, PacketEngine, Setup};
use super::event_queue::LATEST_PS;
use super::exchange::Exchange;
use super::partition::Partition;
use super::port::{PacketPort, check_time, port};
use super::result::outcome;
use super::routes::{PacketMachine, Routes};
use super::steps::{IssuedMessage, ScheduleProgress};
use super::traffic::Stream;
use super::{
    Overheads, PacketCollective, PacketError, PacketOptions, PacketProgress, PacketRouting,
    PacketWork, Traffic, paths, run,
};
use crate::live::MessageEvent;
use crate::outcome::packets::{LinkClass, PacketOutcome};
use crate::pattern::Pattern;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::fabric::Groups;
use opticoll_fabric::network::Network;

/// Maximum size of a chunk: 1 MiB.
const MAX_CHUNK_BYTES: u64 = 1 << 20;
/// Maximum number of network parts, which are numbered with 8 bits.
const MAX_PARTS: u32 = 255;

/// Engine, divided into network parts, with any routing.
pub(super) trait AnyEngine {
    /// Runs the simulation to its end; see [`run::run`].
    fn run(&mut self, watch: &mut dyn FnMut(&PacketProgress) -> bool) -> Result<u64, PacketError>;

    /// Prepares the engine for messages that the caller submits.
    fn begin_driven(&mut self);

    fn submit_from_caller(&mut self, order: IssuedMessage);

    /// Returns the time (ps) of the next event.
    fn next_time(&mut self) -> Option<u64>;

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), PacketError>;

    /// Returns the outcome of a run that ended at `time` (ps), and empties the engine. `placement`
    /// is the terminal of each rank, and `links` the number of links of the network.
    fn outcome(
        &mut self,
        time: u64,
        placement: &[u32],
        links: usize,
    ) -> Result<PacketOutcome, PacketError>;
}

/// Network parts of an engine, at least one. An engine that the caller drives has only one.
struct EngineParts<R> {
    parts: Vec<PacketEngine<R>>,
    exchange: Arc<Exchange>,
}

impl<R: Routes + Send> AnyEngine for EngineParts<R> {
    fn run(&mut self, watch: &mut dyn FnMut(&PacketProgress) -> bool) -> Result<u64, PacketError> {
        run::run(&mut self.parts, &self.exchange, watch)
    }

    fn begin_driven(&mut self) {
        self.parts[0].message_events = Some(Vec::new());
    }

    fn submit_from_caller(&mut self, order: IssuedMessage) {
        self.parts[0].submit_from_caller(order);
    }

    fn next_time(&mut self) -> Option<u64> {
        self.parts[0].event_queue.next_time()
    }

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), PacketError> {
        self.parts[0].advance(happened)
    }

    fn outcome(
        &mut self,
        time: u64,
        placement: &[u32],
        links: usize,
    ) -> Result<PacketOutcome, PacketError> {
        outcome(std::mem::take(&mut self.parts), time, placement, links)
    }
}

/// Engine that is ready to run, and the terminal of each rank, indexed by rank.
pub(super) struct BuiltEngine<'a> {
    pub(super) engine: Box<dyn AnyEngine + 'a>,
    pub(super) placement: Vec<u32>,
}

pub(super) fn run(
    fabric: &Fabric,
    work: &PacketWork<'_>,
    options: &PacketOptions,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<PacketOutcome, PacketError> {
    for traffic in &work.traffic {
        if work.collective.is_none() && traffic.messages.is_none() && traffic.end.is_none() {
            return Err(PacketError::Endless);
        }
    }
    let network = network_of(fabric)?;
    let mut built = build(fabric, work, options)?;
    let run = built.engine.run(watch);
    let time = run.map_err(|error| with_channel_names(error, network))?;
    if time >= LATEST_PS {
        return Err(PacketError::TooLong);
    }
    let links = network.links().len();
    built.engine.outcome(time, &built.placement, links)
}

pub(super) fn network_of(fabric: &Fabric) -> Result<&dyn Network, PacketError> {
    fabric.network().ok_or(PacketError::Fabric {
        family: fabric.family(),
    })
}

pub(super) fn build<'a>(
    fabric: &'a Fabric,
    work: &PacketWork<'_>,
    options: &PacketOptions,
) -> Result<BuiltEngine<'a>, PacketError> {
    check_options(options)?;
    let network = network_of(fabric)?;
    check_work(work, network.ranks())?;
    let Some(dragonfly) = fabric.groups() else {
        if options.routing != PacketRouting::Minimal {
            return Err(PacketError::Option {
                option: "routing",
                problem: format!(
                    "{:?} needs a dragonfly; {} has fixed routes, use minimal",
                    options.routing,
                    fabric.family()
                ),
            });
        }
        let machine = paths::machine(network, options)?;
        return assemble(network, machine, work, options);
    };
    let routes = DragonflyRoutes::new(
        dragonfly,
        options.routing,
        options.seed,
        options.virtual_channels,
    )?;
    let mut ports = dragonfly_ports(dragonfly, &routes, options)?;
    let injection = (0..ports.len() as u32)
        .filter(|&link| ports[link as usize].class == LinkClass::Injection)
        .collect();
    let partition = dragonfly_parts(dragonfly, &routes, &mut ports, options.cores)?;
    let rates = network.links().iter();
    let machine = PacketMachine {
        routes,
        ports,
        injection,
        rates: rates.map(|link| link.rate.bits_per_second()).collect(),
        partition,
    };
    assemble(network, machine, work, options)
}

/// Returns the ports of a dragonfly, indexed by link. The injection ports are in the order of
/// terminals.
fn dragonfly_ports(
    dragonfly: &dyn Groups,
    routes: &DragonflyRoutes,
    options: &PacketOptions,
) -> Result<Vec<PacketPort>, PacketError> {
    let ranks = dragonfly.ranks();
    let port = |link: u32| {
        let (from, to) = dragonfly.ends(link).ok_or(PacketError::Ends { link })?;
        let (class, target) = if from < ranks {
            (LinkClass::Injection, routes.router_of(from))
        } else if to < ranks {
            (LinkClass::Ejection, to)
        } else if routes.is_global(from - ranks, to - ranks) {
            (LinkClass::Global, to - ranks)
        } else {
            (LinkClass::Local, to - ranks)
        };
        port(dragonfly, link, class, target, options)
    };
    // A half-duplex cable would be a single link that is used in both directions.
    let terminals = (0..dragonfly.links().len() as u32)
        .filter(|&link| dragonfly.ends(link).is_some_and(|(from, _)| from < ranks));
    if terminals.count() != ranks as usize || routes.lacks_links() {
        return Err(PacketError::Link {
            link: dragonfly.link_name(0),
            problem: "half-duplex links are not simulated packet by packet; use duplex=full",
        });
    }
    (0..dragonfly.links().len() as u32).map(port).collect()
}

/// Divides the groups of a dragonfly into at most `cores` network parts. Sets [`PacketPort::part`]
/// of each port.
fn dragonfly_parts(
    dragonfly: &dyn Groups,
    routes: &DragonflyRoutes,
    ports: &mut [PacketPort],
    cores: u32,
) -> Result<Partition, PacketError> {
    let (ranks, groups) = (dragonfly.ranks(), dragonfly.groups());
    let parts = cores.clamp(1, groups.min(MAX_PARTS));
    let part_of = |router: u32| {
        let group = router / dragonfly.routers_per_group();
        (u64::from(group) * u64::from(parts) / u64::from(groups)) as u8
    };
    let mut part_of_link = Vec::with_capacity(ports.len());
    for (link, port) in (0..).zip(ports.iter_mut()) {
        let (from, to) = dragonfly.ends(link).ok_or(PacketError::Ends { link })?;
        let router = |vertex: u32| match vertex.checked_sub(ranks) {
            Some(router) => router,
            None => routes.router_of(vertex),
        };
        part_of_link.push(part_of(router(from)));
        port.part = part_of(router(to));
    }
    let part_of_terminal = (0..ranks).map(|terminal| part_of(routes.router_of(terminal)));
    Ok(Partition::new(
        parts,
        part_of_terminal.collect(),
        part_of_link,
    ))
}

/// Returns the bytes of the shortest chunk of a message of `bytes` bytes.
fn shortest_chunk(bytes: u64, options: &PacketOptions) -> u64 {
    let (packet, chunk) = (options.packet.get(), options.chunk.get());
    let last_of = |bytes: u64| match bytes % chunk {
        0 => chunk.min(bytes),
        rest => rest,
    };
    match (bytes / packet, bytes % packet) {
        (0, rest) => last_of(rest),
        (_, 0) => last_of(packet),
        (_, rest) => last_of(packet).min(last_of(rest)),
    }
}

fn check_options(options: &PacketOptions) -> Result<(), PacketError> {
    let refuse = |option, problem| Err(PacketError::Option { option, problem });
    let (packet, chunk) = (options.packet.get(), options.chunk.get());
    if chunk == 0 || chunk > MAX_CHUNK_BYTES {
        return refuse("chunk", "must be from 1 B to 1 MiB".into());
    }
    if packet < chunk || packet > 1 << 30 {
        return refuse(
            "packet",
            format!("must be from one chunk ({}) to 1 GiB", options.chunk),
        );
    }
    let buffers = options.buffers;
    for (option, buffer) in [
        ("the local buffer", buffers.local),
        ("the global buffer", buffers.global),
        ("the terminal buffer", buffers.terminal),
    ] {
        if buffer < options.chunk || buffer.get() > 1 << 40 {
            let problem = format!("is {buffer}; from one chunk ({}) to 1 TiB", options.chunk);
            return refuse(option, problem);
        }
    }
    if options.seed != PacketOptions::default().seed && options.routing == PacketRouting::Minimal {
        let problem = "minimal routing draws no groups; leave it out, or use valiant, adaptive or \
                       progressive";
        return refuse("routing_seed", problem.into());
    }
    if options.jitter.is_some() && options.overheads == Overheads::NONE {
        let problem =
            "without small delays the seed has no effect; leave it out, or use small_delays=codes";
        return refuse("jitter", problem.into());
    }
    if options.virtual_channels == Some(0) {
        return refuse("virtual_channels", "must be at least 1".into());
    }
    if options
        .timeline_bin
        .is_some_and(|bin| bin < Time::from_ps(1000))
    {
        return refuse("timeline_bin", "must be at least 1 ns".into());
    }
    let overheads = options.overheads;
    let ranges = [
        overheads.handover,
        overheads.send,
        overheads.notice,
        overheads.credit,
    ];
    for range in ranges {
        check_time("an overhead", range.min)?;
        check_time("an overhead", range.width)?;
    }
    check_time("sequencing", overheads.sequencing)?;
    check_time("router_delay", options.router_delay)?;
    check_time("credit_delay", options.credit_delay)
}

fn check_work(work: &PacketWork<'_>, ranks: u32) -> Result<(), PacketError> {
    if let Some(collective) = &work.collective {
        let schedule = collective.schedule.collective.ranks();
        if schedule != ranks {
            return Err(PacketError::Ranks {
                schedule,
                fabric: ranks,
            });
        }
        check_time("overhead", collective.overhead)?;
        check_time("start", collective.start)?;
    }
    for traffic in &work.traffic {
        check_traffic(traffic, ranks)?;
    }
    let timers = work.traffic.len() as u64 * u64::from(ranks);
    if timers > u64::from(u32::MAX / 2) {
        return Err(PacketError::TooMany);
    }
    Ok(())
}

fn check_traffic(traffic: &Traffic, ranks: u32) -> Result<(), PacketError> {
    let refuse = |option, problem| Err(PacketError::Option { option, problem });
    check_time("period", traffic.period)?;
    check_time("start", traffic.start)?;
    if traffic.period < Time::from_ps(1000) {
        return refuse("period", "must be at least 1 ns".into());
    }
    if ranks < 2 {
        return refuse("traffic", "needs at least two terminals".into());
    }
    match traffic.pattern {
        Pattern::Shift(places) if places % ranks == 0 => {
            refuse("shift", format!("of {places} sends to oneself"))
        }
        Pattern::HotSpot { terminal, percent } if terminal >= ranks || percent > 100 => refuse(
            "hot_spot",
            format!("needs a terminal below {ranks} and at most 100 percent"),
        ),
        _ => Ok(()),
    }
}

impl BuiltEngine<'_> {
    /// Assigns each rank to a terminal. `terminals` is indexed by rank.
    pub(super) fn place(&mut self, terminals: Vec<u32>) -> Result<(), PacketError> {
        self.placement = check_permutation(&terminals, self.placement.len() as u32)?;
        Ok(())
    }
}

/// Returns the terminal of each rank of a collective, or an error if it is no permutation.
fn placement_of(collective: &PacketCollective<'_>, ranks: u32) -> Result<Vec<u32>, PacketError> {
    match &collective.placement {
        None => Ok((0..ranks).collect()),
        Some(placement) => check_permutation(placement, ranks),
    }
}

fn check_permutation(placement: &[u32], ranks: u32) -> Result<Vec<u32>, PacketError> {
    let mut seen = vec![false; ranks as usize];
    let once = placement.iter().all(|&terminal| {
        let place = seen.get_mut(terminal as usize);
        place.is_some_and(|place| !std::mem::replace(place, true))
    });
    if !once || placement.len() != ranks as usize {
        return Err(PacketError::Placement { ranks });
    }
    Ok(placement.to_vec())
}

fn assemble<'a, R: Routes + Clone + Send + 'a>(
    network: &dyn Network,
    machine: PacketMachine<R>,
    work: &PacketWork<'_>,
    options: &PacketOptions,
) -> Result<BuiltEngine<'a>, PacketError> {
    let PacketMachine {
        routes,
        mut ports,
        injection,
        rates,
        mut partition,
    } = machine;
    let ranks = network.ranks();
    let chunk = options.chunk.get();
    let places = |buffer: Bytes| u32::try_from(buffer.get() / chunk).unwrap_or(u32::MAX);
    let capacities = ports.iter().map(|port| match port.class {
        LinkClass::Injection | LinkClass::Ejection => places(options.buffers.terminal),
        LinkClass::Local => places(options.buffers.local),
        LinkClass::Global => places(options.buffers.global),
    });
    let channels = VirtualChannels::new(routes.channels(), capacities);
    let mut placement = (0..ranks).collect();
    let shortest_of = |bytes| shortest_chunk(bytes, options);
    let sizes = work.traffic.iter().map(|traffic| traffic.size.get());
    let mut shortest = sizes.map(shortest_of).min().unwrap_or(chunk);
    let mut steps = Vec::new();
    if let Some(collective) = &work.collective {
        placement = placement_of(collective, ranks)?;
        let whole = ScheduleProgress::new(
            collective.schedule,
            collective.size,
            placement.clone(),
            collective.issue,
            collective.overhead.ps(),
        )?;
        if partition.parts > 1 {
            shortest = shortest.min(whole.messages().map(shortest_of).min().unwrap_or(chunk));
        }
        steps.push(whole);
    }
    partition.measure(&mut ports, &rates, shortest, options);
    if let Some(whole) = steps.pop() {
        steps = whole.divide(partition.parts, &partition.part_of_terminal);
    }
    let begin = work.collective.as_ref().map_or(0, |work| work.start.ps());
    let max_queued_chunks = (2 * options.buffers.terminal.get()).div_ceil(chunk);
    let mut terminal_at = vec![NONE; ports.len()];
    for (terminal, &link) in (0..).zip(&injection) {
        terminal_at[link as usize] = terminal;
    }
    let exchange = Arc::new(Exchange::new(partition.parts));
    let setup = Setup {
        partition,
        packet: options.packet.get(),
        chunk,
        router_delay: options.router_delay.ps(),
        router_delay_rule: options.router_delay_rule,
        credit_delay: options.credit_delay.ps(),
        arbitration: options.arbitration,
        delays: Delays::new(options.overheads, options.jitter),
        begin,
        max_queued_chunks: u32::try_from(max_queued_chunks).unwrap_or(u32::MAX),
        injection,
        terminal_at,
        bits_per_second: rates,
    };
    let count = setup.partition.parts;
    let mut steps = steps.into_iter();
    let pieces = repeat_n((setup, routes, ports, channels), count as usize);
    let parts = (0..)
        .zip(pieces)
        .map(|(part, (setup, routes, ports, channels))| {
            let streams = work.traffic.iter();
            let streams = streams.map(|traffic| Stream::new(traffic.clone(), ranks));
            let bin = options.timeline_bin.unwrap_or(Time::ZERO).ps();
            PacketEngine::new(
                (setup, Arc::clone(&exchange), part),
                routes,
                ports,
                channels,
                steps.next(),
                streams.collect(),
                Counters::new(ranks, bin),
            )
        });
    let parts = parts.collect();
    Ok(BuiltEngine {
        engine: Box::new(EngineParts { parts, exchange }),
        placement,
    })
}

/// Adds the names of channels to a deadlock error.
pub(super) fn with_channel_names(error: PacketError, network: &dyn Network) -> PacketError {
    let PacketError::Deadlock { chunks, cycle, .. } = error else {
        return error;
    };
    let names: Vec<String> = cycle
        .iter()
        .map(|&(link, channel)| format!("{} channel {channel}", network.link_name(link)))
        .collect();
    PacketError::Deadlock {
        chunks,
        cycle,
        names: names.join(", "),
    }
}
