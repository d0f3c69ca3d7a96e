//! From a fabric, work and options to a running engine, and from that to the outcome.

use super::channel::Channels;
use super::delays::Delays;
use super::dragonfly::DragonflyRoutes;
use super::driven::Report;
use super::engine::{Engine, LATEST_PS, Measured, Port, Setup};
use super::pool::NONE;
use super::routes::Routes;
use super::steps::{Order, Steps};
use super::traffic::Stream;
use super::{Collective, Options, PacketError, Progress, Routing, Traffic, Work, paths};
use crate::fabric::{Dragonfly, Fabric};
use crate::network::{Network, Sharing};
use crate::outcome::packets::{ChannelColumns, Class, PacketOutcome, StepColumns, timeline};
use crate::simulate::pattern::Pattern;
use crate::units::{Bytes, Time};

/// No delay, period or latency may be longer: 10 days.
const LONGEST: Time = Time::from_ps(1 << 60);
const LARGEST_CHUNK: u64 = 1 << 20;

/// Ports with what goes with them: routes, the port of each terminal, the rate of each port.
pub(super) struct Machine<R> {
    pub(super) routes: R,
    pub(super) ports: Vec<Port>,
    pub(super) injection: Vec<u32>,
    pub(super) rates: Vec<u64>,
}

/// An engine, whatever its rule of routing.
pub(super) trait Running {
    /// See [`Engine::run`].
    fn run(&mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<u64, PacketError>;

    /// See [`Engine::begin_driven`].
    fn begin_driven(&mut self);

    /// See [`Engine::hand_in`].
    fn hand_in(&mut self, order: Order);

    /// See [`Engine::next_time`].
    fn next_time(&mut self) -> Option<u64>;

    /// See [`Engine::advance`].
    fn advance(&mut self, reports: &mut Vec<Report>) -> Result<(), PacketError>;

    /// What was found; the terminal of each rank, and the number of links.
    fn outcome(&mut self, time: u64, placement: &[u32], links: usize) -> PacketOutcome;
}

impl<R: Routes> Running for Engine<R> {
    fn run(&mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<u64, PacketError> {
        Engine::run(self, watch)
    }

    fn begin_driven(&mut self) {
        Engine::begin_driven(self);
    }

    fn hand_in(&mut self, order: Order) {
        Engine::hand_in(self, order);
    }

    fn next_time(&mut self) -> Option<u64> {
        Engine::next_time(self)
    }

    fn advance(&mut self, reports: &mut Vec<Report>) -> Result<(), PacketError> {
        Engine::advance(self, reports)
    }

    fn outcome(&mut self, time: u64, placement: &[u32], links: usize) -> PacketOutcome {
        outcome(self, time, placement, links)
    }
}

/// A machine that is built, and the terminal of each rank.
pub(super) struct Built<'a> {
    pub(super) engine: Box<dyn Running + 'a>,
    pub(super) placement: Vec<u32>,
}

/// Checks everything, builds the machine and runs it.
pub(super) fn run(
    fabric: &Fabric,
    work: &Work<'_>,
    options: &Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<PacketOutcome, PacketError> {
    for traffic in &work.traffic {
        if work.collective.is_none() && traffic.messages.is_none() && traffic.end.is_none() {
            return Err(PacketError::Endless);
        }
    }
    let network = network_of(fabric)?;
    let mut built = build(fabric, work, options)?;
    let run = built.engine.run(watch);
    let time = run.map_err(|error| named(error, network))?;
    if time > LATEST_PS {
        return Err(PacketError::TooLong);
    }
    let links = network.links().len();
    Ok(built.engine.outcome(time, &built.placement, links))
}

/// The network that packets travel.
pub(super) fn network_of(fabric: &Fabric) -> Result<&dyn Network, PacketError> {
    fabric.network().ok_or(PacketError::Fabric {
        family: fabric.family(),
    })
}

/// Checks everything and builds the machine.
pub(super) fn build<'a>(
    fabric: &'a Fabric,
    work: &Work<'_>,
    options: &Options,
) -> Result<Built<'a>, PacketError> {
    check_options(options)?;
    let network = network_of(fabric)?;
    check_work(work, network.ranks())?;
    let Fabric::Dragonfly(dragonfly) = fabric else {
        if options.routing != Routing::Minimal {
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
    let ports = dragonfly_ports(dragonfly, &routes, options)?;
    let injection = (0..ports.len() as u32)
        .filter(|&link| ports[link as usize].class == Class::Injection)
        .collect();
    let rates = network.links().iter();
    let machine = Machine {
        routes,
        ports,
        injection,
        rates: rates.map(|link| link.rate.bits_per_second()).collect(),
    };
    assemble(network, machine, work, options)
}

/// The ports of a dragonfly, one per link; those from terminals in order of terminal.
fn dragonfly_ports(
    dragonfly: &Dragonfly,
    routes: &DragonflyRoutes,
    options: &Options,
) -> Result<Vec<Port>, PacketError> {
    let ranks = dragonfly.ranks();
    let port = |link: u32| {
        let (from, to) = dragonfly.ends(link).ok_or(PacketError::Ends { link })?;
        let (class, target) = if from < ranks {
            (Class::Injection, routes.router_of(from))
        } else if to < ranks {
            (Class::Ejection, to)
        } else if routes.is_global(from - ranks, to - ranks) {
            (Class::Global, to - ranks)
        } else {
            (Class::Local, to - ranks)
        };
        port(dragonfly, link, class, target, options)
    };
    // A half-duplex cable would be one link that leads both ways.
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

pub(super) fn port(
    network: &dyn Network,
    link: u32,
    class: Class,
    target: u32,
    options: &Options,
) -> Result<Port, PacketError> {
    let wire = network.links()[link as usize];
    if wire.sharing != Sharing::Shared {
        return Err(PacketError::Link {
            link: network.link_name(link),
            problem: "packets share links; a rate per flow has no meaning for them",
        });
    }
    check_time("latency", wire.latency)?;
    let full_wire = wire.rate.transmission(options.chunk)?;
    check_time("the time of a chunk on a link", full_wire)?;
    Ok(Port::new(class, target, full_wire.ps(), wire.latency.ps()))
}

fn check_time(option: &'static str, time: Time) -> Result<(), PacketError> {
    if time > LONGEST {
        return Err(PacketError::Option {
            option,
            problem: format!("is {time}; at most 10 days are accepted"),
        });
    }
    Ok(())
}

fn check_options(options: &Options) -> Result<(), PacketError> {
    let refuse = |option, problem| Err(PacketError::Option { option, problem });
    let (packet, chunk) = (options.packet.get(), options.chunk.get());
    if chunk == 0 || chunk > LARGEST_CHUNK {
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
    let spreads = [
        overheads.handover,
        overheads.send,
        overheads.notice,
        overheads.credit,
    ];
    for spread in spreads {
        check_time("an overhead", spread.least)?;
        check_time("an overhead", spread.range)?;
    }
    check_time("sequencing", overheads.sequencing)?;
    check_time("router_delay", options.router_delay)?;
    check_time("credit_delay", options.credit_delay)
}

fn check_work(work: &Work<'_>, ranks: u32) -> Result<(), PacketError> {
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

impl Built<'_> {
    /// Puts ranks at terminals.
    ///
    /// # Errors
    /// They are no permutation.
    pub(super) fn place(&mut self, terminals: Vec<u32>) -> Result<(), PacketError> {
        self.placement = checked(&terminals, self.placement.len() as u32)?;
        Ok(())
    }
}

/// The terminal of each rank, checked.
fn placed(collective: &Collective<'_>, ranks: u32) -> Result<Vec<u32>, PacketError> {
    match &collective.placement {
        None => Ok((0..ranks).collect()),
        Some(placement) => checked(placement, ranks),
    }
}

fn checked(placement: &[u32], ranks: u32) -> Result<Vec<u32>, PacketError> {
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

fn assemble<'a, R: Routes + 'a>(
    network: &dyn Network,
    machine: Machine<R>,
    work: &Work<'_>,
    options: &Options,
) -> Result<Built<'a>, PacketError> {
    let Machine {
        routes,
        ports,
        injection,
        rates,
    } = machine;
    let ranks = network.ranks();
    let chunk = options.chunk.get();
    let places = |buffer: Bytes| u32::try_from(buffer.get() / chunk).unwrap_or(u32::MAX);
    let capacities = ports.iter().map(|port| match port.class {
        Class::Injection | Class::Ejection => places(options.buffers.terminal),
        Class::Local => places(options.buffers.local),
        Class::Global => places(options.buffers.global),
    });
    let channels = Channels::new(routes.channels(), capacities);
    let mut placement = (0..ranks).collect();
    let mut steps = None;
    if let Some(collective) = &work.collective {
        placement = placed(collective, ranks)?;
        steps = Some(Steps::new(
            collective.schedule,
            collective.size,
            placement.clone(),
            collective.issue,
            collective.overhead.ps(),
        )?);
    }
    let streams = work.traffic.iter();
    let streams = streams.map(|traffic| Stream::new(traffic.clone(), ranks));
    let begin = work.collective.as_ref().map_or(0, |work| work.start.ps());
    let most_queued = (2 * options.buffers.terminal.get()).div_ceil(chunk);
    let mut terminal_at = vec![NONE; ports.len()];
    for (terminal, &link) in (0..).zip(&injection) {
        terminal_at[link as usize] = terminal;
    }
    let setup = Setup {
        packet: options.packet.get(),
        chunk,
        router_delay: options.router_delay.ps(),
        router_delay_rule: options.router_delay_rule,
        credit_delay: options.credit_delay.ps(),
        arbitration: options.arbitration,
        delays: Delays::new(options.overheads, options.jitter),
        begin,
        most_queued: u32::try_from(most_queued).unwrap_or(u32::MAX),
        injection,
        terminal_at,
        bits_per_second: rates,
    };
    let bin = options.timeline_bin.unwrap_or(Time::ZERO).ps();
    let measured = Measured::new(ranks as usize, bin);
    let streams = streams.collect();
    let engine = Engine::new(setup, routes, ports, channels, steps, streams, measured);
    Ok(Built {
        engine: Box::new(engine),
        placement,
    })
}

/// A deadlock in words.
pub(super) fn named(error: PacketError, network: &dyn Network) -> PacketError {
    let PacketError::Stuck { chunks, circle, .. } = error else {
        return error;
    };
    let names: Vec<String> = circle
        .iter()
        .map(|&(link, channel)| format!("{} channel {channel}", network.link_name(link)))
        .collect();
    PacketError::Stuck {
        chunks,
        circle,
        names: names.join(", "),
    }
}

fn outcome<R: Routes>(
    engine: &mut Engine<R>,
    time: u64,
    placement: &[u32],
    links: usize,
) -> PacketOutcome {
    let shift = engine.channels.shift;
    for number in 0..engine.stalls.len() as u32 {
        engine.end_stall(number >> shift, number, time);
    }
    let mut columns = ChannelColumns::default();
    let per_channel = engine.stalls.iter().zip(&engine.channels.list);
    for (number, (stall, channel)) in (0u32..).zip(per_channel) {
        let (link, of_link) = (number >> shift, number % (1 << shift));
        if of_link >= engine.routes.channels() || link as usize >= links {
            continue;
        }
        columns.link.push(link);
        columns.channel.push(of_link);
        let full = channel.chunks * engine.setup.chunk;
        columns
            .bytes
            .push(full - engine.short_bytes[number as usize]);
        columns.chunks.push(channel.chunks);
        columns.stall.push(Time::from_ps(stall.sum));
        columns.peak_chunks.push(channel.peak);
        columns.capacity_chunks.push(channel.capacity);
    }
    let measured = engine.take_measured();
    let finish = |&terminal: &u32| Time::from_ps(measured.finish[terminal as usize]);
    PacketOutcome {
        time: Time::from_ps(time),
        finish: placement.iter().map(finish).collect(),
        message_latency: measured.message_latency,
        background_latency: measured.background_latency,
        chunk_latency: measured.chunk_latency,
        routers_passed: measured.routers_passed,
        minimal_chunks: measured.minimal_chunks,
        detoured_chunks: measured.detoured_chunks,
        bytes_sent: measured.bytes_sent,
        bytes_delivered: measured.bytes_delivered,
        channels: columns,
        classes: engine.ports[..links]
            .iter()
            .map(|port| port.class)
            .collect(),
        busy: engine.ports[..links]
            .iter()
            .map(|port| Time::from_ps(port.busy))
            .collect(),
        timeline: timeline(measured.occupancy, measured.stalled, engine.setup.chunk),
        steps: engine
            .steps
            .take()
            .map_or_else(StepColumns::default, Steps::columns),
        forwards: measured.forwards,
        events: measured.events,
    }
}
