//! Lightpaths on a ring, message by message, against cases by hand and a slow simulation.

use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::{Direction, WdmRing};
use opticoll::simulate::Policy;
use opticoll::simulate::live::{Live, PlannedCollective, ReadyMessage};
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

/// Returns the arrival of each message, in ns.
fn arrivals(ring: &WdmRing, policy: Policy, asked: &[Asked]) -> Vec<u64> {
    let mut on_demand = OnDemand::new(ring, policy).unwrap();
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

#[test]
fn lightpaths_are_set_up_when_there_is_room() {
    for [name, options, policy, asked, expected] in rows(CASES) {
        let asked: Vec<Asked> = asked
            .split(", ")
            .map(|one| {
                let numbers: Vec<u64> = one.split('-').map(number).collect();
                (numbers[0] as u32, numbers[1] as u32, numbers[2], numbers[3])
            })
            .collect();
        let expected: Vec<u64> = expected.split(", ").map(sum).collect();
        let found = arrivals(&ring(options), policy.parse().unwrap(), &asked);
        assert_eq!(found, expected, "{name}");
    }
}

/// End, links, channel, source, destination.
type Lit = (u64, Vec<(u32, u32)>, u32, u32, u32);

/// Returns the arrivals without setup by looking at every pair of messages in every nanosecond:
/// each waiting message is tried in order, against all lightpaths that are up.
fn slow(ring: &WdmRing, asked: &[Asked]) -> Vec<u64> {
    let links = |source: u32, destination: u32, direction: Direction| -> Vec<(u32, u32)> {
        let hops = ring.hops(source, destination, direction);
        let step = |hop: u32| match direction {
            Direction::Clockwise => (source + hop) % ring.ranks,
            Direction::CounterClockwise => (source + ring.ranks - hop) % ring.ranks,
        };
        (0..hops).map(|hop| (direction as u32, step(hop))).collect()
    };
    let mut found = vec![0; asked.len()];
    let mut lit: Vec<Lit> = Vec::new();
    let mut now = 0;
    while found.contains(&0) {
        lit.retain(|one| one.0 > now);
        for (index, &(source, destination, bytes, at)) in asked.iter().enumerate() {
            if at > now || found[index] != 0 {
                continue;
            }
            let ports = ring.ports.unwrap_or(u32::MAX) as usize;
            let busy = lit.iter().filter(|one| one.3 == source).count() >= ports
                || lit.iter().filter(|one| one.4 == destination).count() >= ports;
            let ways = Direction::BOTH.map(|direction| links(source, destination, direction));
            let least = ways.iter().map(Vec::len).min();
            let choices = ways.iter().filter(|way| Some(way.len()) == least);
            let mut choices = choices.flat_map(|way| (0..ring.channels()).map(move |c| (way, c)));
            let free = |way: &[(u32, u32)], channel: u32| {
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

#[test]
fn many_messages_arrive_when_a_slow_simulation_says() {
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for case in 0..80 {
        let ranks = 2 + draw(9);
        let ports = ["", ",ports=1", ",ports=2"][draw(3) as usize];
        let options = format!("ranks={ranks},wavelengths={}{ports}", 1 + draw(3));
        let ring = ring(&options);
        let mut asked: Vec<Asked> = (0..40)
            .map(|_| {
                let source = draw(ranks);
                let destination = (source + 1 + draw(ranks - 1)) % ranks;
                (source as u32, destination as u32, 1 + draw(40), draw(300))
            })
            .collect();
        asked.sort_by_key(|one| one.3);
        let expected = slow(&ring, &asked);
        assert_eq!(
            arrivals(&ring, Policy::Free, &asked),
            expected,
            "case {case}: {options}"
        );
    }
}

#[test]
fn a_planned_collective_holds_the_links_that_it_spans() {
    enum Asked {
        Message(u32, u32),
        Collective((u32, u32)),
    }
    use Asked::{Collective, Message};
    // Messages of 50 bytes take 50 ns, plans 100 ns. Each row: the time of the request (ns), the
    // request, and its end (ns).
    let asked = [
        (0, Message(0, 1), 50),
        // Waits for the message on the link between 0 and 1.
        (10, Collective((0, 3)), 150),
        (20, Collective((3, 3)), 120),
        // Waits for the first collective; nothing holds the link between 2 and 3.
        (60, Message(1, 2), 200),
        (60, Message(2, 3), 110),
        // The whole ring waits for all earlier requests.
        (70, Collective((0, 6)), 300),
        (80, Message(5, 0), 130),
    ];
    let ring = ring("ranks=6,wavelengths=2");
    let mut on_demand = OnDemand::new(&ring, Policy::Free).unwrap();
    let mut ends = [0; 7];
    let mut next = 0;
    loop {
        let due = asked.get(next).map(|one| Time::from_ps(one.0 * 1000));
        match (due, on_demand.next_time().unwrap()) {
            (Some(due), event) if event.is_none_or(|event| due < event) => {
                let number = next as u32;
                match asked[next].1 {
                    Message(from, to) => {
                        let message = ReadyMessage::new((from, to), Bytes::new(50), due);
                        on_demand.send(number, message).map(|_| ())
                    }
                    Collective(span) => {
                        let time = Time::from_ps(100_000);
                        on_demand.carry_out(number, PlannedCollective { time, span }, due)
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
            _ => break,
        }
    }
    assert_eq!(ends, asked.map(|one| one.2));
}
