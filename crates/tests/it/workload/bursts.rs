//! Messages of a program over lightpaths that are requested one by one: times against formulas and
//! a slow simulation, and the messages that arrive when bursts block the lightpaths.

use opticoll::families::Medium;
use opticoll::simulate::SimulationError;
use opticoll::simulate::burst::collective::{OnRequest, RequestUse};
use opticoll::simulate::live::{Live, ReadyMessage};
use opticoll::units::{Bytes, Rate, Time};
use opticoll::workload::bursts::OverBursts;
use opticoll::workload::cost::{Hockney, Zero};
use opticoll::workload::csv;
use opticoll::workload::error::TraceError;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::program::Program;
use opticoll::workload::replay::{ReplaySettings, Replayed, replay};
use proptest::prelude::*;

use super::real::table;
use super::{program_of, run};

/// 1 Gb/s, that is 8 ns a byte; 16 hosts at each node.
const WIDE: &str = "wdm_ladder:rungs=4,hosts=2,wavelengths=512,rate=1Gb/s,latency=0s";
const NARROW: &str = "wdm_ladder:rungs=2,hosts=4,wavelengths=4,rate=1Gb/s,latency=0s";

fn over(network: &str, settings: &[(&str, &str)]) -> OverBursts {
    OverBursts::new(&Medium::parse(network).unwrap(), settings.iter().copied()).unwrap()
}

fn carried(program: &Program, over: &OverBursts) -> Result<(Replayed, u64, u64), TraceError> {
    let mut network = over.start().unwrap();
    let replayed = replay(program, &mut network, ReplaySettings::default())?;
    let found = Box::new(network).close(replayed.time).unwrap();
    let used = found.get::<RequestUse>().unwrap();
    Ok((replayed, used.setups, used.blocked))
}

fn ms(milliseconds: u64) -> Time {
    Time::from_ps(milliseconds * 1_000_000_000)
}

#[test]
fn recursive_doubling_takes_its_formula() {
    // An all_reduce of 125 kB, 1 ms a step, after 2 ms of setting up and before 3 ms of releasing.
    for rounds in 1..=4u64 {
        let ranks = 1u32 << rounds;
        let row = |rank| format!("{rank},Allreduce,,125000,125000,,0,,0\n");
        let rows: String = (0..ranks).map(row).collect();
        let program = program_of(ranks, &rows).unwrap();
        for ports in 1..=4u64 {
            let settings = [
                ("ports", ports.to_string()),
                ("setup", "2ms".into()),
                ("teardown", "3ms".into()),
                ("latency", "0s".into()),
            ];
            let settings = settings
                .each_ref()
                .map(|(name, text)| (*name, text.as_str()));
            let (replayed, setups, blocked) = carried(&program, &over(WIDE, &settings)).unwrap();
            // With one port the path of the next step waits for the release of the last; with two,
            // that of the last step but one is long released.
            let expected = match ports {
                1 => rounds * (2 + 1) + (rounds - 1) * 3,
                _ => rounds * (2 + 1),
            };
            assert_eq!(replayed.time, ms(expected), "{ranks} ranks, {ports} ports");
            assert_eq!((setups, blocked), (rounds * u64::from(ranks), 0));
        }
    }
}

#[test]
fn with_ports_and_wavelengths_for_all_a_real_run_takes_latency_and_rate() {
    // The ranks of EP send to each other one message at a time, so that each has a path of its own.
    let trace = csv::read(&table("ep")).unwrap();
    let program = expand(&trace, &Algorithms::default()).unwrap();
    let settings = [("ports", "15"), ("teardown", "0s")];
    let (replayed, setups, blocked) = carried(&program, &over(WIDE, &settings)).unwrap();
    // 5 ms until a path is there, 0.1 ms of latency.
    let mut model = Hockney {
        latency: Time::from_ps(5_100_000_000),
        rate: Rate::from_bits_per_second(1_000_000_000).unwrap(),
    };
    let expected = run(&program, &mut model);
    assert_eq!(replayed.time, expected.time);
    assert_eq!(replayed.ranks.finish, expected.ranks.finish);
    assert_eq!((setups, blocked), (replayed.messages, 0));
}

#[test]
fn every_message_is_delivered_once_whatever_bursts_refuse() {
    let trace = csv::read(&table("is")).unwrap();
    let program = expand(&trace, &Algorithms::default()).unwrap();
    let free = run(&program, &mut Zero);
    let mut times = Vec::new();
    for offered_load in ["0", "0.3", "0.6"] {
        let settings = [
            ("ports", "2"),
            ("setup", "100us"),
            ("teardown", "100us"),
            ("back_off", "1ms"),
            ("retries", "1000"),
            ("size", "1MB"),
            ("offered_load", offered_load),
        ];
        let (replayed, setups, blocked) = carried(&program, &over(NARROW, &settings)).unwrap();
        assert_eq!(
            (replayed.messages, replayed.bytes),
            (free.messages, free.bytes)
        );
        let by_kind = |of: &Replayed| -> Vec<(&str, u64, u64)> {
            let kinds = of.kinds.iter();
            kinds
                .map(|kind| (kind.call, kind.messages, kind.bytes))
                .collect()
        };
        assert_eq!(by_kind(&replayed), by_kind(&free), "by kind of call");
        assert!(setups <= replayed.messages);
        assert!(blocked > 0 || offered_load == "0");
        times.push(replayed.time);
    }
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_path_that_is_refused_too_often_ends_the_replay() {
    // Hosts 0 and 1 are at one node, 8 and 9 at the opposite one: one wavelength is too few for
    // both.
    let rows = "0,Send,8,1000000000,0,1,0,,0\n1,Send,9,8,0,1,0,,1000\n8,Recv,0,0,1000000000,1,0,,\
                0\n\
                9,Recv,1,0,8,1,0,,0\n";
    let program = program_of(10, rows).unwrap();
    let network = "wdm_ladder:rungs=2,hosts=4,wavelengths=1,rate=1Gb/s,latency=0s";
    let settings = [
        ("retries", "3"),
        ("back_off", "10ms"),
        ("max_back_off", "10ms"),
    ];
    let error = carried(&program, &over(network, &settings)).unwrap_err();
    assert!(matches!(
        &error,
        TraceError::Network(SimulationError::Refused { code: "bursts", .. })
    ));
    let sentence = error.to_string();
    assert!(
        sentence.contains("from host 1 to 9 was blocked 4 times"),
        "{sentence}"
    );
    // The first message takes 8 s.
    let patient = [
        ("retries", "1000"),
        ("back_off", "10ms"),
        ("max_back_off", "10ms"),
    ];
    let (replayed, _, blocked) = carried(&program, &over(network, &patient)).unwrap();
    assert!(replayed.time > Time::from_ps(8_000_000_000_000));
    assert!(
        (500..1000).contains(&blocked),
        "8 s of waits of 5 to 15 ms: {blocked}"
    );
}

#[test]
fn settings_of_phases_are_refused() {
    for setting in ["congestion", "degrade_after", "replications"] {
        let error =
            OverBursts::new(&Medium::parse(NARROW).unwrap(), [(setting, "retry")]).unwrap_err();
        assert_eq!(error.setting(), Some(setting));
    }
}

/// Times in ns to setup a lightpath, for a message to arrive, and to release the lightpath. A
/// byte takes 8 ns.
const ESTABLISH: u64 = 8_000;
const LATENCY: u64 = 16_000;
const RELEASE: u64 = 24_000;

/// A lightpath that is up: its direction, and the times of its next events.
struct Up {
    direction: (u32, u32),
    arrives: u64,
    released: Option<u64>,
}

/// Returns the arrival of each message, nanosecond by nanosecond, with enough wavelengths for all.
fn slowly(ports: usize, asked: &[((u32, u32), u64, u64)]) -> Vec<u64> {
    let mut arrivals = vec![0; asked.len()];
    let mut up: Vec<Up> = Vec::new();
    // What waits for each direction, the first message first; directions in the order of asking.
    let mut waiting: Vec<usize> = Vec::new();
    let mut asking: Vec<(u32, u32)> = Vec::new();
    let same_pair = |one: (u32, u32), other: (u32, u32)| one == other || one == (other.1, other.0);
    let mut now = 0;
    let mut left = asked.len();
    while left > 0 {
        let mut freed = None;
        for place in (0..up.len()).rev() {
            let direction = up[place].direction;
            if up[place].released == Some(now) {
                up.remove(place);
                freed = Some(direction);
            } else if up[place].released.is_none() && up[place].arrives == now {
                let of_way = waiting.iter().position(|&one| asked[one].0 == direction);
                arrivals[waiting.remove(of_way.unwrap())] = now;
                left -= 1;
                match waiting.iter().find(|&&one| asked[one].0 == direction) {
                    Some(&next) => up[place].arrives = now + LATENCY + 8 * asked[next].1,
                    None => up[place].released = Some(now + RELEASE),
                }
            }
        }
        for (number, &(direction, _, at)) in asked.iter().enumerate() {
            if at == now {
                let known = asking.contains(&direction);
                waiting.push(number);
                if !known && up.iter().all(|path| path.direction != direction) {
                    asking.push(direction);
                }
            }
        }
        if let Some(direction) = freed
            && waiting.iter().any(|&one| asked[one].0 == direction)
        {
            asking.push(direction);
        }
        // As long as one can go, the first goes; then one that shares its ports.
        while let Some(place) = asking.iter().position(|&direction| {
            let joined = up.iter().any(|path| same_pair(path.direction, direction));
            let has_port = |host: u32| {
                let mut others: Vec<(u32, u32)> = up
                    .iter()
                    .map(|path| path.direction)
                    .filter(|&(from, to)| from == host || to == host)
                    .map(|(from, to)| (from.min(to), from.max(to)))
                    .collect();
                others.sort_unstable();
                others.dedup();
                others.len() < ports
            };
            joined || (has_port(direction.0) && has_port(direction.1))
        }) {
            let direction = asking.remove(place);
            let first = waiting.iter().find(|&&one| asked[one].0 == direction);
            let bytes = asked[*first.unwrap()].1;
            up.push(Up {
                direction,
                arrives: now + ESTABLISH + LATENCY + 8 * bytes,
                released: None,
            });
        }
        now += 1;
    }
    arrivals
}

/// Returns the arrivals that [`OnRequest`] computes.
fn quickly(ports: usize, asked: &[((u32, u32), u64, u64)]) -> Vec<u64> {
    let ports = ports.to_string();
    let settings = [
        ("ports", ports.as_str()),
        ("setup", "8us"),
        ("latency", "16us"),
        ("teardown", "24us"),
    ];
    let over = over(WIDE, &settings);
    let mut paths =
        OnRequest::new(&over.network, &over.work, &over.settings, &over.congestion).unwrap();
    let mut arrivals = vec![0; asked.len()];
    let mut order: Vec<usize> = (0..asked.len()).collect();
    order.sort_by_key(|&one| asked[one].2);
    let mut order = order.into_iter().peekable();
    loop {
        let due = order.peek().map(|&one| Time::from_ps(asked[one].2 * 1000));
        match (due, paths.next_time().unwrap()) {
            (Some(due), event) if event.is_none_or(|event| due < event) => {
                let number = order.next().unwrap();
                let (direction, bytes, _) = asked[number];
                let bytes = Bytes::new(bytes);
                paths
                    .send(number as u32, ReadyMessage::new(direction, bytes, due))
                    .unwrap();
            }
            (_, Some(event)) => {
                let mut happened = Vec::new();
                paths.advance(&mut happened).unwrap();
                for one in happened {
                    let arrival = &mut arrivals[one.message as usize];
                    assert!(*arrival == 0 && one.arrived, "delivered once");
                    assert_eq!(one.time, event);
                    *arrival = one.time.ps() / 1000;
                }
            }
            _ => return arrivals,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Sizes differ in a bit of their own, and all else is in multiples of 8 us: no two things
    /// happen at once but messages that are ready together.
    #[test]
    fn messages_arrive_when_a_slow_simulation_says(
        ports in 1usize..4,
        drawn in prop::collection::vec((0u32..5, 1u32..5, 0u64..3, 0u64..12), 1..10),
    ) {
        let asked: Vec<((u32, u32), u64, u64)> = drawn
            .iter()
            .enumerate()
            .map(|(number, &(from, further, size, at))| {
                ((from, (from + further) % 5), 1000 * size + (1 << number), 8000 * at)
            })
            .collect();
        prop_assert_eq!(quickly(ports, &asked), slowly(ports, &asked));
    }
}
