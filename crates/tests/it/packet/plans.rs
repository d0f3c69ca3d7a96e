//! Plans packet by packet, with settings as text.

use opticoll::algorithms;
use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::simulate;
use opticoll::simulate::outcome::packets::PacketOutcome;
use opticoll::simulate::packet;
use opticoll::simulate::packet::{Draws, PacketWork};
use opticoll::simulate::{TimingModel, background};
use opticoll::units::Bytes;

use super::{balanced, check_laws, cut};
use crate::placed;

fn method(settings: &[(&str, &str)]) -> TimingModel {
    let packet = ("simulator", "packet");
    TimingModel::from_settings(std::iter::once(packet).chain(settings.iter().copied())).unwrap()
}

const FABRICS: &[&str] = &[
    "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2",
    "fat_tree:down=4x4,up=1x2",
    "torus:dims=3x3",
    "crossbar:ranks=8",
    "custom:ranks=3,switches=2,links=0-3+1-3+2-4+3-4",
];

#[test]
fn every_plan_arrives_on_every_fabric() {
    for spelling in FABRICS {
        let fabric = Fabric::parse(&format!("{spelling},rate=10GB/s")).unwrap();
        let network = fabric.network().unwrap();
        for record in algorithms::records_for(&fabric) {
            let lit = matches!(record.name, "one_stage" | "wrht");
            if lit || (record.accepts)(fabric.ranks()).is_err() {
                continue;
            }
            let plan = placed(record.collective, record.name, &fabric.to_string());
            let name = format!("{} {} on {spelling}", record.collective, record.name);
            let outcome = simulate::run(&plan, Bytes::new(3000), &method(&[])).unwrap();
            let packets = outcome.details.get::<PacketOutcome>().unwrap();
            check_laws(&name, &fabric, packets);
            let sent: u64 = outcome.ranks.sent.iter().sum();
            assert_eq!(packets.bytes_delivered, sent, "{name}");
            assert_eq!(outcome.ranks.received.iter().sum::<u64>(), sent, "{name}");
            assert_eq!(outcome.slots.end.len(), plan.schedule.steps(), "{name}");
            assert_eq!(
                outcome.slots.end.iter().max().copied(),
                Some(outcome.time),
                "{name}"
            );
            assert_eq!(
                outcome.ranks.finish.iter().max().copied(),
                Some(outcome.time),
                "{name}"
            );
            let messages: u64 = outcome.slots.lightpaths.iter().sum();
            assert_eq!(packets.message_latency.count(), messages, "{name}");
            assert_eq!(outcome.links.bytes.len(), network.links().len(), "{name}");
            assert!((0.0..=1.0).contains(&outcome.utilisation), "{name}");
        }
    }
}

#[test]
fn settings_as_text_are_the_options_they_name() {
    let fabric = balanced(2);
    let plan = placed(CollectiveKind::AllGather, "tar", &fabric.to_string());
    let settings = method(&[
        ("packet", "512B"),
        ("chunk", "512B"),
        ("buffers", "16KiB,32KiB,16KiB"),
        ("routing", "adaptive"),
        ("routing_seed", "7"),
        ("router_delay", "20ns"),
        ("router_delay_rule", "occupies-port"),
        ("placement", "shuffled-1"),
        // It changes no outcome, and so is no part of one.
        ("cores", "3"),
    ]);
    let outcome = simulate::run(&plan, Bytes::new(4096), &settings).unwrap();
    let work = PacketWork {
        collective: Some(packet::PacketCollective {
            placement: Some(opticoll::hash::shuffled(72, 1)),
            start: opticoll::units::Time::ZERO,
            ..packet::PacketCollective::new(&plan.schedule, Bytes::new(4096))
        }),
        traffic: Vec::new(),
    };
    let options = packet::PacketOptions {
        routing: packet::PacketRouting::Adaptive,
        seed: 7,
        router_delay: "20ns".parse().unwrap(),
        router_delay_rule: packet::RouterDelay::OccupiesPort,
        ..cut(512, 512)
    };
    let expected = packet::simulate(&fabric, &work, &options).unwrap();
    assert_eq!(*outcome.details.get::<PacketOutcome>().unwrap(), expected);
    let changed = outcome.settings;
    let names: Vec<&str> = changed.iter().map(|one| one.name).collect();
    // Those that are as by default are not among them; `chunk` and `buffers` are.
    let order = [
        "packet",
        "routing",
        "routing_seed",
        "router_delay",
        "router_delay_rule",
        "placement",
    ];
    assert_eq!(names, order);
}

#[test]
fn traffic_as_text_is_the_traffic_it_names() {
    let fabric = balanced(2);
    let traffic = |text: &str| {
        let parsed = background::parse(text).map_err(|error| error.to_string())?;
        let one = parsed[0].packets(&fabric, Draws::Foreground);
        one.map_err(|error| error.to_string())
    };
    let plain = packet::Traffic::uniform(Bytes::new(2048), "1us".parse().unwrap(), 5);
    let check = |text: &str, expected: &packet::Traffic| {
        assert_eq!(&traffic(text).unwrap(), expected, "{text}");
    };
    check("uniform:bytes=2KiB,period=1us,messages=5", &plain);
    // 2048 B at 2.048 GB/s take 1 us.
    check("uniform:bytes=2KiB,rate=2.048GB/s,messages=5", &plain);
    let shift = packet::Traffic {
        pattern: packet::Pattern::Shift(8),
        ..plain.clone()
    };
    check("group_shift:bytes=2KiB,period=1us,messages=5", &shift);
    let hot = packet::Traffic {
        pattern: packet::Pattern::HotSpot {
            terminal: 3,
            percent: 20,
        },
        ..plain.clone()
    };
    check(
        "hot_spot:rank=3,percent=20,bytes=2KiB,period=1us,messages=5",
        &hot,
    );
    for (text, reason) in [
        ("uniform:period=1us", "bytes=2KiB"),
        ("uniform:bytes=1KiB", "period"),
        ("uniform:bytes=1KiB,period=1us,rate=1GB/s", "give one"),
        ("uniform:bytes=1KiB,period=1", "period=1"),
        ("unifrom", "uniform"),
        ("pair:from=0,to=1,bytes=1KiB,period=1us", "pair"),
        ("hot_spot:rank=72,bytes=1KiB,period=1us", "0 to 71"),
        ("hot_spot:percent=0,bytes=1KiB,period=1us", "from 1 to 100"),
    ] {
        let error = traffic(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn traffic_ends_when_it_is_told_to() {
    // One message per microsecond and terminal, from within the first on, none from 10 us on.
    let fabric = balanced(2);
    let parsed = background::parse("uniform:bytes=512B,period=1us,end=10us").unwrap();
    let traffic = parsed[0].packets(&fabric, Draws::Foreground).unwrap();
    let work = PacketWork {
        collective: None,
        traffic: vec![traffic],
    };
    let outcome = packet::simulate(&fabric, &work, &cut(512, 512)).unwrap();
    let each = outcome.message_latency.count() as f64 / 72.0;
    assert!((9.0..=10.0).contains(&each), "{each}");
}

#[test]
fn values_that_are_none_are_refused_with_a_reason() {
    let fabric = balanced(1);
    let plan = placed(CollectiveKind::AllGather, "ring", &fabric.to_string());
    for (name, text, reason) in [
        ("routing", "minimum", "did you mean `minimal`"),
        ("packet", "2", "2"),
        ("chunk", "fast", "fast"),
        ("chunk", "0B", "chunk"),
        ("buffers", "16KiB", "three sizes"),
        ("buffers", "16KiB,0B,16KiB", "buffer"),
        ("jitter", "-1", "whole number"),
        ("placement", "0-1-2", "each of the"),
        ("placement", "random", "shuffled-SEED"),
        ("virtual_channels", "0", "whole number from 1 to"),
        ("cores", "0", "whole number from 1 to"),
        ("cores", "two", "whole number"),
        (
            "background",
            "pair:from=0,to=1,bytes=1KiB,period=1us",
            "pair",
        ),
        ("background", "nearest:rate=1GB/s", "bytes=2KiB"),
        ("start", "step", "fluid"),
        ("policy", "free", "circuit"),
    ] {
        let settings = [("simulator", "packet"), (name, text)];
        let outcome = TimingModel::from_settings(settings)
            .and_then(|method| simulate::run(&plan, Bytes::new(100), &method));
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(reason), "{name}={text}: {error}");
    }
}

#[test]
fn the_work_expected_is_the_work_done() {
    for spelling in FABRICS {
        let fabric = Fabric::parse(&format!("{spelling},rate=10GB/s")).unwrap();
        let plan = placed(CollectiveKind::AllGather, "ring", &fabric.to_string());
        let settings = packet::PacketSettings::default();
        let work = packet::work_of(&plan.schedule, &fabric, Bytes::new(3000), &settings);
        let expected = packet::expected_work(&fabric, &work, &settings.options).unwrap();
        let outcome = packet::simulate(&fabric, &work, &settings.options).unwrap();
        assert_eq!(
            expected.messages,
            outcome.message_latency.count(),
            "{spelling}"
        );
        assert_eq!(expected.chunks, outcome.chunk_latency.count(), "{spelling}");
        assert_eq!(expected.forwards, outcome.router_forwards, "{spelling}");
    }
}

#[test]
fn a_watcher_breaks_a_simulation_off() {
    let fabric = balanced(4);
    let sent = packet::Traffic::uniform(Bytes::new(2048), "1us".parse().unwrap(), 100);
    let work = PacketWork {
        collective: None,
        traffic: vec![sent],
    };
    let mut calls = 0;
    let error = packet::simulate_watched(&fabric, &work, &cut(2048, 512), &mut |progress| {
        calls += 1;
        // The nearest moment after each million at which nothing is half done.
        assert!((calls << 20..(calls << 20) + (calls << 10)).contains(&progress.events));
        calls < 2
    });
    assert_eq!((error, calls), (Err(packet::PacketError::Stopped), 2));
}

#[test]
fn a_rank_reached_in_the_instant_in_which_it_begins_still_sends() {
    // One message of 1 B, one of none; without delays that takes twice 100 ps, over two links, and
    // nothing.
    let fabric = Fabric::parse("crossbar:ranks=2,rate=10GB/s").unwrap();
    let plan = placed(CollectiveKind::AllToAll, "direct", &fabric.to_string());
    for issue in ["sequential", "together"] {
        let settings = [
            ("router_delay", "0ns"),
            ("credit_delay", "0ns"),
            ("small_delays", "none"),
            ("issue", issue),
        ];
        let outcome = simulate::run(&plan, Bytes::new(1), &method(&settings)).unwrap();
        assert_eq!(outcome.time.ps(), 200, "{issue}");
    }
}
