//! Lightpaths on rings and graphs of fibres, message by message, against cases by hand and a slow
//! simulation.

use opticoll::fabric::Fabric;
use opticoll::family::wdm_graph::WdmGraph;
use opticoll::family::wdm_ring::{Direction, WdmRing};
use opticoll::simulate::Policy;
use opticoll::simulate::live::{Live, OccupiedPart, PlannedCollective, ReadyMessage};
use opticoll::simulate::on_demand::OnDemand;
use opticoll::units::{Bytes, Time};

use crate::{number, rows, sum};

fn ring(options: &str) -> WdmRing {
    // 1 ns a byte.
    let text = format!("wdm_ring:rate=8Gb/s,reconfiguration=100ns,{options}");
    Fabric::parse(&text)
        .unwrap()
        .downcast::<WdmRing>()
        .unwrap()
        .clone()
}

fn graph(spec: &str) -> WdmGraph {
    let text = format!("{spec},rate=8Gb/s,reconfiguration=100ns");
    let fabric = Fabric::parse(&text).unwrap();
    fabric.downcast::<WdmGraph>().unwrap().clone()
}

/// Source, destination, bytes, and time of the request (ns).
type Asked = (u32, u32, u64, u64);

/// A name, options of the ring, a policy, the messages as `source-destination-bytes-request time
/// (ns)`, and their arrivals in ns.
const CASES: &str = "
one message pays for its light path, or not | ranks=4,wavelengths=1,propagation=5ns,conversion=3ns
    | every_step | 0-2-50-10 | 10 + 100 + 3 + 2*5 + 50
# Three flits of 16 bytes are converted 51 ns after the first bit, and then the one of 2 bytes.
flits are converted one after the other | ranks=4,wavelengths=1,conversion=3ns,flit=16B | free
    | 0-2-50-10 | 10 + 48 + 3 + 3
free | ranks=4,wavelengths=1 | free | 0-1-50-10 | 60
one wavelength: the second waits, a message elsewhere does not | ranks=6,wavelengths=1 | free
    | 0-2-50-0, 1-2-50-0, 3-4-50-0 | 50, 100, 50
two wavelengths: nobody waits | ranks=6,wavelengths=2 | free | 0-2-50-0, 1-2-50-0 | 50, 50
# The second waits for links 0 and 1, the third only for link 2, which is free.
a long way does not hold up a short one | ranks=9,wavelengths=1 | free
    | 1-2-50-0, 0-3-50-0, 2-3-70-0 | 50, 120, 70
opposite directions do not meet | ranks=6,wavelengths=1 | free | 0-1-50-0, 1-0-50-0 | 50, 50
halfway around the other way is as short | ranks=4,wavelengths=1 | free
    | 0-2-50-0, 0-2-50-0, 0-2-50-0 | 50, 50, 100
a port at each end is needed | ranks=6,wavelengths=4,ports=1 | free
    | 0-1-50-0, 0-5-50-0, 1-2-50-0, 3-2-50-0 | 50, 100, 50, 100
a light path that stayed set is used again | ranks=6,wavelengths=1 | on_change
    | 0-1-50-0, 0-1-50-200, 1-2-50-300 | 150, 250, 450
what is set anew in its place ends it | ranks=6,wavelengths=1 | on_change
    | 0-1-50-0, 0-2-50-200, 0-1-50-400 | 150, 350, 550
a free channel on which nothing stayed set comes first | ranks=6,wavelengths=2 | on_change
    | 0-1-50-0, 0-2-50-200, 0-1-50-400 | 150, 350, 450
the only port of a rank is set to one | ranks=6,wavelengths=4,ports=1 | on_change
    | 0-1-50-0, 0-5-50-200, 0-1-50-400 | 150, 350, 550
# Link 0 is full on channel 0, link 1 on channel 1: only with converters is there a way.
without converters a channel is free all the way or not at all | ranks=9,wavelengths=2 | free
    | 0-1-90-0, 1-2-10-0, 1-3-90-0, 0-2-50-20 | 90, 10, 90, 140
with converters any will do | ranks=9,wavelengths=2,converters=full | free
    | 0-1-90-0, 1-2-10-0, 1-3-90-0, 0-2-50-20 | 90, 10, 90, 70
a broken link is gone around | ranks=4,wavelengths=1,propagation=1ns,broken=0-1 | free | 0-1-50-0
    | 53
";

/// The same for graphs; the second column is the whole specification without the rate.
const GRAPH_CASES: &str = "
one message pays for its lightpath | wdm_mesh:dims=3x3,wavelengths=1,latency=5ns,conversion=3ns
    | every_step | 0-8-50-10 | 10 + 100 + 3 + 4*5 + 50
free | wdm_mesh:dims=3x3,wavelengths=1,latency=5ns | free | 0-8-50-10 | 10 + 4*5 + 50
light passes a switch | wdm_graph:ranks=2,switches=1,links=0-2+2-1,wavelengths=1,latency=5ns | free
    | 0-1-50-0, 0-1-50-0 | 60, 120
one wavelength: the second waits | wdm_line:ranks=4,wavelengths=1 | free
    | 0-2-50-0, 1-3-50-0, 2-0-50-0 | 50, 100, 50
two wavelengths: nobody waits | wdm_line:ranks=4,wavelengths=2 | free | 0-2-50-0, 1-3-50-0 | 50, 50
two fibres are two channels | wdm_line:ranks=4,wavelengths=1,fibres=2 | free
    | 0-2-50-0, 1-3-50-0 | 50, 50
a dead wavelength is not used | wdm_line:ranks=4,wavelengths=2,dead=0 | free
    | 0-2-50-0, 1-3-50-0 | 50, 100
a wavelength of half the rate | wdm_line:ranks=3,wavelengths=2,degraded=w0@4Gb/s | free
    | 0-2-50-0, 0-2-50-0 | 100, 50
# Two shortest routes lead from corner to corner, and the third message waits for one of them.
the other shortest route is as good | wdm_mesh:dims=2x2,wavelengths=1 | free
    | 0-3-50-0, 0-3-50-0, 0-3-50-0 | 50, 50, 100
the length limits the rate | wdm_line:ranks=3,wavelengths=1,reach=1@8Gb/s+2@4Gb/s | free
    | 0-1-50-0, 0-2-50-100 | 50, 200
transmitters | wdm_graph:ranks=3,links=0-1+0-2+1-2,wavelengths=4,transmitters=1 | free
    | 0-1-50-0, 0-2-50-0, 1-2-50-0 | 50, 100, 50
receivers | wdm_graph:ranks=3,links=0-1+0-2+1-2,wavelengths=4,receivers=1 | free
    | 0-2-50-0, 1-2-50-0, 0-1-50-0 | 50, 100, 50
a lightpath that stayed up is used again | wdm_line:ranks=4,wavelengths=1 | on_change
    | 0-1-50-0, 0-1-50-200, 1-2-50-300 | 150, 250, 450
a new lightpath in its place tears it down | wdm_line:ranks=4,wavelengths=1 | on_change
    | 0-1-50-0, 0-2-50-200, 0-1-50-400 | 150, 350, 550
a free channel on which nothing stayed up comes first | wdm_line:ranks=4,wavelengths=2 | on_change
    | 0-1-50-0, 0-2-50-200, 0-1-50-400 | 150, 350, 450
# The lightpath 0-1 stays up; the corners have a second shortest route.
a route on which nothing stayed up comes first | wdm_mesh:dims=2x2,wavelengths=1 | on_change
    | 0-1-50-0, 0-3-50-200, 0-1-50-400 | 150, 350, 450
# The only transmitter is tuned to another receiver, and the lightpath that stayed up is lost.
the only transmitter | wdm_graph:ranks=3,links=0-1+0-2+1-2,wavelengths=4,transmitters=1 | per_port
    | 0-1-50-0, 0-2-50-200, 0-1-50-400 | 150, 350, 550
# Link 0 is full on channel 0, link 1 on channel 1.
without converters | wdm_line:ranks=4,wavelengths=2 | free
    | 0-1-90-0, 1-2-10-0, 1-3-90-0, 0-2-50-20 | 90, 10, 90, 140
full converters | wdm_line:ranks=4,wavelengths=2,converters=full | free
    | 0-1-90-0, 1-2-10-0, 1-3-90-0, 0-2-50-20 | 90, 10, 90, 70
# Link 0 is full on channels 0 and 1, link 1 on channels 2 and 3: each message needs a converter.
one converter | wdm_line:ranks=3,wavelengths=4,converters=1 | free
    | 0-1-190-0, 0-1-190-0, 1-2-10-0, 1-2-10-0, 1-2-190-0, 1-2-190-0, 0-2-50-20, 0-2-50-20
    | 190, 190, 10, 10, 190, 190, 70, 120
two converters | wdm_line:ranks=3,wavelengths=4,converters=2 | free
    | 0-1-190-0, 0-1-190-0, 1-2-10-0, 1-2-10-0, 1-2-190-0, 1-2-190-0, 0-2-50-20, 0-2-50-20
    | 190, 190, 10, 10, 190, 190, 70, 70
";

/// Returns the arrival of each message, in ns.
fn arrivals(mut on_demand: OnDemand<'_>, asked: &[Asked]) -> Vec<u64> {
    let mut found = vec![0; asked.len()];
    let mut next = 0;
    loop {
        let due = asked.get(next).map(|one| Time::from_ps(one.3 * 1000));
        match (due, on_demand.next_time().unwrap()) {
            (Some(due), event) if event.is_none_or(|event| due < event) => {
                let (source, destination, bytes, _) = asked[next];
                let bytes = Bytes::new(bytes);
                on_demand
                    .send(
                        next as u32,
                        ReadyMessage::new((source, destination), bytes, due),
                    )
                    .unwrap();
                next += 1;
            }
            (_, Some(event)) => {
                let mut happened = Vec::new();
                on_demand.advance(&mut happened).unwrap();
                for one in happened {
                    assert_eq!(one.time, event);
                    found[one.message as usize] = one.time.ps() / 1000;
                }
            }
            _ => return found,
        }
    }
}

fn asked_in(text: &str) -> Vec<Asked> {
    let one = |one: &str| {
        let numbers: Vec<u64> = one.split('-').map(number).collect();
        (numbers[0] as u32, numbers[1] as u32, numbers[2], numbers[3])
    };
    text.split(", ").map(one).collect()
}

#[test]
fn lightpaths_are_set_up_when_there_is_room() {
    for [name, options, policy, asked, expected] in rows(CASES) {
        let expected: Vec<u64> = expected.split(", ").map(sum).collect();
        let ring = ring(options);
        let on_demand = OnDemand::new(&ring, policy.parse().unwrap()).unwrap();
        assert_eq!(arrivals(on_demand, &asked_in(asked)), expected, "{name}");
    }
    for [name, spec, policy, asked, expected] in rows(GRAPH_CASES) {
        let expected: Vec<u64> = expected.split(", ").map(sum).collect();
        let graph = graph(spec);
        let on_demand = OnDemand::on_graph(&graph, policy.parse().unwrap()).unwrap();
        assert_eq!(arrivals(on_demand, &asked_in(asked)), expected, "{name}");
    }
}

#[test]
fn a_message_beyond_reach_is_refused() {
    let graph = graph("wdm_line:ranks=3,wavelengths=1,reach=1");
    let mut on_demand = OnDemand::on_graph(&graph, Policy::Free).unwrap();
    let message = ReadyMessage::new((0, 2), Bytes::new(1), Time::ZERO);
    let error = on_demand.send(0, message).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no lightpath leads from rank 0 to 2: every route is cut, beyond the reach of light or \
         without wavelengths"
    );
}

/// End, links, channel, source, destination.
type Lit = (u64, Vec<u32>, u32, u32, u32);

/// Channels of each link, transmitters and receivers of each rank.
type Counts = (u32, Option<u32>, Option<u32>);

/// Returns the arrivals without setup by looking at every pair of messages in every nanosecond:
/// each waiting message is tried in order, against all lightpaths that are up. `ways` returns the
/// routes between two ranks, in the order in which they are tried.
fn slow(
    ways: impl Fn(u32, u32) -> Vec<Vec<u32>>,
    (channels, transmitters, receivers): Counts,
    asked: &[Asked],
) -> Vec<u64> {
    let mut found = vec![0; asked.len()];
    let mut lit: Vec<Lit> = Vec::new();
    let mut now = 0;
    let limit = |ports: Option<u32>| ports.map_or(usize::MAX, |ports| ports as usize);
    while found.contains(&0) {
        lit.retain(|one| one.0 > now);
        for (index, &(source, destination, bytes, at)) in asked.iter().enumerate() {
            if at > now || found[index] != 0 {
                continue;
            }
            let busy = lit.iter().filter(|one| one.3 == source).count() >= limit(transmitters)
                || lit.iter().filter(|one| one.4 == destination).count() >= limit(receivers);
            let ways = ways(source, destination);
            let mut choices = ways
                .iter()
                .flat_map(|way| (0..channels).map(move |c| (way, c)));
            let free = |way: &[u32], channel: u32| {
                !lit.iter()
                    .any(|one| one.2 == channel && one.1.iter().any(|link| way.contains(link)))
            };
            if let Some((way, channel)) =
                choices.find(|(way, channel)| !busy && free(way, *channel))
            {
                found[index] = now + bytes;
                lit.push((now + bytes, way.clone(), channel, source, destination));
            }
        }
        now += 1;
    }
    found
}

/// Returns the shortest ways around a ring, the clockwise way first.
fn ring_ways(ring: &WdmRing, source: u32, destination: u32) -> Vec<Vec<u32>> {
    let ways = Direction::BOTH.map(|direction| -> Vec<u32> {
        let hops = ring.hops(source, destination, direction);
        let step = |hop: u32| match direction {
            Direction::Clockwise => (source + hop) % ring.ranks,
            Direction::CounterClockwise => ring.ranks + (source + ring.ranks - hop) % ring.ranks,
        };
        (0..hops).map(step).collect()
    });
    let least = ways.iter().map(Vec::len).min();
    let shortest = ways.into_iter().filter(|way| Some(way.len()) == least);
    shortest.collect()
}

/// Returns the graph's route, then the other shortest ways in the order of their links. Tries all
/// ways that visit no vertex twice.
fn graph_ways(graph: &WdmGraph, source: u32, destination: u32) -> Vec<Vec<u32>> {
    let network = graph.fibre_links();
    let ends: Vec<_> = network.wiring().ends().collect();
    let mut own = Vec::new();
    network.route(source, destination, &mut own);
    let mut ways = Vec::new();
    let mut partial = vec![(vec![source], Vec::new())];
    while let Some((visited, way)) = partial.pop() {
        let last = visited[visited.len() - 1];
        if last == destination {
            ways.push(way);
            continue;
        }
        for (link, &(from, to, _)) in (0..).zip(&ends) {
            if from == last && !visited.contains(&to) {
                partial.push(([&visited[..], &[to]].concat(), [&way[..], &[link]].concat()));
            }
        }
    }
    let least = ways.iter().map(Vec::len).min();
    ways.retain(|way| Some(way.len()) == least);
    ways.sort_by_key(|way| (*way != own, way.clone()));
    ways
}

/// Returns a function that draws numbers below a limit.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 1u64;
    move |below| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    }
}

/// Returns messages between different ranks, sorted by their times.
fn drawn(draw: &mut impl FnMut(u64) -> u64, ranks: u64, count: usize, time: u64) -> Vec<Asked> {
    let mut one = || {
        let source = draw(ranks);
        let destination = (source + 1 + draw(ranks - 1)) % ranks;
        (source as u32, destination as u32, 1 + draw(40), draw(time))
    };
    let mut asked: Vec<Asked> = (0..count).map(|_| one()).collect();
    asked.sort_by_key(|one| one.3);
    asked
}

#[test]
fn many_messages_arrive_when_a_slow_simulation_says() {
    let mut draw = numbers();
    for case in 0..80 {
        let ranks = 2 + draw(9);
        let ports = ["", ",ports=1", ",ports=2"][draw(3) as usize];
        let options = format!("ranks={ranks},wavelengths={}{ports}", 1 + draw(3));
        let ring = ring(&options);
        let asked = drawn(&mut draw, ranks, 40, 300);
        let counts = (ring.channels(), ring.ports, ring.ports);
        let ways = |source, destination| ring_ways(&ring, source, destination);
        let expected = slow(ways, counts, &asked);
        let on_demand = OnDemand::new(&ring, Policy::Free).unwrap();
        assert_eq!(
            arrivals(on_demand, &asked),
            expected,
            "case {case}: {options}"
        );
    }
    let shapes = [
        ("wdm_mesh:dims=3x3", 9),
        ("wdm_torus:dims=3x3", 9),
        ("wdm_torus:dims=2x4", 8),
        ("wdm_hypercube:ranks=8", 8),
        (
            "wdm_graph:ranks=4,switches=2,links=0-4+4-1+1-2+2-5+5-3+3-0+4-5",
            4,
        ),
    ];
    for case in 0..40 {
        let (shape, ranks) = shapes[draw(5) as usize];
        let limit = |name: &str, count: u64| match count {
            0 => String::new(),
            count => format!(",{name}={count}"),
        };
        let spec = format!(
            "{shape},wavelengths={}{}{}",
            1 + draw(3),
            limit("transmitters", draw(3)),
            limit("receivers", draw(3)),
        );
        let graph = graph(&spec);
        let asked = drawn(&mut draw, ranks, 40, 200);
        let counts = (graph.channels(), graph.transmitters, graph.receivers);
        let ways = |source, destination| graph_ways(&graph, source, destination);
        let expected = slow(ways, counts, &asked);
        let on_demand = OnDemand::on_graph(&graph, Policy::Free).unwrap();
        assert_eq!(arrivals(on_demand, &asked), expected, "case {case}: {spec}");
    }
}

#[test]
fn a_ring_given_as_a_graph_has_the_times_of_the_ring() {
    // Options of the ring, and the same options of the graph.
    let options = [
        ["", ""],
        ["propagation=7ns", "latency=7ns"],
        ["ports=1", "transmitters=1,receivers=1"],
        [
            "ports=2,conversion=3ns",
            "transmitters=2,receivers=2,conversion=3ns",
        ],
        ["fibres=2,dead=0.0", "fibres=2,dead=0.0"],
        ["degraded=w0@4Gb/s", "degraded=w0@4Gb/s"],
        ["reach=2", "reach=2"],
        ["converters=full", "converters=full"],
    ];
    let mut draw = numbers();
    for case in 0..200 {
        let ranks = 3 + draw(8);
        let [of_ring, of_graph] = options[draw(8) as usize];
        if of_ring == "reach=2" && ranks > 5 {
            continue;
        }
        let wavelengths = 1 + draw(3);
        let with = |own: &str| format!("wavelengths={wavelengths},{own}");
        let links = |rank: u64| format!("{rank}-{}", (rank + 1) % ranks);
        let shape = match ranks % 2 {
            0 => format!("wdm_torus:dims={ranks}"),
            _ => {
                let links: Vec<String> = (0..ranks).map(links).collect();
                format!("wdm_graph:ranks={ranks},links={}", links.join("+"))
            }
        };
        let ring = ring(format!("ranks={ranks},{}", with(of_ring)).trim_end_matches(','));
        let spec = format!("{shape},{}", with(of_graph));
        let graph = graph(spec.trim_end_matches(','));
        let asked = drawn(&mut draw, ranks, 60, 3000);
        for policy in Policy::ALL {
            // With full converters, a ring clears the links of a counter-clockwise route from the
            // destination on and a graph from the source on, so other idle lightpaths may stay up.
            let keeps_up = matches!(policy, Policy::OnChange | Policy::PerPort);
            if of_ring == "converters=full" && keeps_up {
                continue;
            }
            let on_ring = arrivals(OnDemand::new(&ring, policy).unwrap(), &asked);
            let on_graph = arrivals(OnDemand::on_graph(&graph, policy).unwrap(), &asked);
            assert_eq!(
                on_graph,
                on_ring,
                "case {case}: {spec} under {}",
                policy.name()
            );
        }
    }
}

/// Request at a time (ns): a message of 50 bytes, or a planned collective of 100 ns among
/// consecutive ranks.
#[derive(Clone, Copy)]
enum Request {
    Message(u32, u32),
    Collective(u32, u32),
}

/// Returns the end of each request, in ns. `part` returns what a collective occupies.
fn ends(
    mut on_demand: OnDemand<'_>,
    requests: &[(u64, Request)],
    part: impl Fn(u32, u32) -> OccupiedPart,
) -> Vec<u64> {
    let mut ends = vec![0; requests.len()];
    let mut next = 0;
    loop {
        let due = requests.get(next).map(|one| Time::from_ps(one.0 * 1000));
        match (due, on_demand.next_time().unwrap()) {
            (Some(due), event) if event.is_none_or(|event| due < event) => {
                let number = next as u32;
                match requests[next].1 {
                    Request::Message(from, to) => {
                        let message = ReadyMessage::new((from, to), Bytes::new(50), due);
                        on_demand.send(number, message).map(|_| ())
                    }
                    Request::Collective(first, count) => {
                        let (time, part) = (Time::from_ps(100_000), part(first, count));
                        on_demand.carry_out(number, PlannedCollective { time, part }, due)
                    }
                }
                .unwrap();
                next += 1;
            }
            (_, Some(_)) => {
                let mut happened = Vec::new();
                on_demand.advance(&mut happened).unwrap();
                for one in happened {
                    ends[one.message as usize] = one.time.ps() / 1000;
                }
            }
            _ => return ends,
        }
    }
}

#[test]
fn a_planned_collective_holds_its_links() {
    use Request::{Collective, Message};
    let asked = [
        (0, Message(0, 1), 50),
        // Waits for the message on the link between 0 and 1.
        (10, Collective(0, 3), 150),
        (20, Collective(3, 3), 120),
        // Waits for the first collective; nothing holds the link between 2 and 3.
        (60, Message(1, 2), 200),
        (60, Message(2, 3), 110),
        // The whole ring waits for all earlier requests.
        (70, Collective(0, 6), 300),
        (80, Message(5, 0), 130),
    ];
    let requests = asked.map(|(time, request, _)| (time, request));
    let expected = asked.map(|one| one.2);
    let ring = ring("ranks=6,wavelengths=2");
    let on_demand = OnDemand::new(&ring, Policy::Free).unwrap();
    assert_eq!(ends(on_demand, &requests, OccupiedPart::Span), expected);

    let graph = graph("wdm_torus:dims=6,wavelengths=2");
    let part = |first: u32, count: u32| {
        let ranks = first..first + count;
        let wiring = graph.fibre_links().wiring().ends();
        let links = (0u32..).zip(wiring);
        let links = links.filter(|(_, (from, to, _))| ranks.contains(from) && ranks.contains(to));
        OccupiedPart::Links {
            links: links.map(|(link, _)| link).collect(),
            ranks: ranks.clone().collect(),
        }
    };
    let on_demand = OnDemand::on_graph(&graph, Policy::Free).unwrap();
    assert_eq!(ends(on_demand, &requests, part), expected);
}

#[test]
fn a_planned_collective_holds_limited_ports_and_converters() {
    use Request::{Collective, Message};
    // The collective of ranks 0 to 2 occupies the links of the line between them.
    let part = |_, _| OccupiedPart::Links {
        ranks: [0, 1, 2].into(),
        links: [0, 1, 2, 3].into(),
    };
    let requests = [(0, Collective(0, 3)), (10, Message(2, 3))];
    let line = "wdm_line:ranks=4,wavelengths=2";
    for (options, end) in [("", 60), (",transmitters=2", 150), (",receivers=2", 60)] {
        let graph = graph(&format!("{line}{options}"));
        let on_demand = OnDemand::on_graph(&graph, Policy::Free).unwrap();
        assert_eq!(ends(on_demand, &requests, part), [100, end], "{options}");
    }
    // The collective of ranks 0 to 3 occupies the only converter of vertex 3.
    let graph = graph("wdm_graph:ranks=6,links=0-1+1-2+2-3+4-3+3-5,wavelengths=2,converters=1");
    let part = |_, _| OccupiedPart::Links {
        ranks: [0, 1, 2, 3].into(),
        links: [0, 1, 2, 3, 4, 5].into(),
    };
    // At 60 ns, only the second wavelength is free from 4 to 3, and only the first from 3 to 5. At
    // 61 ns, the second is free on both links.
    let requests = [
        (0, Message(4, 3)),
        (10, Message(3, 5)),
        (11, Message(3, 5)),
        (51, Collective(0, 4)),
        (52, Message(4, 3)),
        (59, Message(4, 5)),
    ];
    let on_demand = OnDemand::on_graph(&graph, Policy::Free).unwrap();
    assert_eq!(
        ends(on_demand, &requests, part),
        [50, 60, 61, 151, 102, 111]
    );
}
