//! Refusals of settings and of work, and settings that do not change a run.

use opticoll::families::Medium;
use opticoll::simulate::burst;
use opticoll::simulate::burst::{
    Burst, BurstError, BurstNetwork, BurstSettings, BurstWork, SETTINGS,
};
use opticoll::units::Time;

use super::{ladder, link, settings};

#[test]
fn networks_are_spelled_like_their_fabrics() {
    for (text, nodes, links, hosts) in [
        (
            "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s",
            10,
            26,
            100,
        ),
        ("wdm_ladder:rungs=5,wavelengths=28", 10, 26, 10),
        ("wdm_torus:dims=6,hosts=2,wavelengths=4", 6, 12, 12),
        ("wdm_mesh:dims=3x4,wavelengths=4", 12, 34, 12),
        ("wdm_torus:dims=3x4,wavelengths=4", 12, 48, 12),
        (
            "wdm_graph:ranks=2,switches=1,links=0-2+1-2,wavelengths=1",
            2,
            4,
            2,
        ),
    ] {
        let network = BurstNetwork::of(&Medium::parse(text).unwrap()).unwrap();
        let size = (network.nodes(), network.links().len(), network.hosts());
        assert_eq!(size, (nodes, links, hosts), "{text}");
    }
}

#[test]
fn a_node_of_a_ladder_knows_all_shortest_routes() {
    let network = BurstNetwork::of(&Medium::parse(&ladder(28)).unwrap()).unwrap();
    // From the first node of one row to the last of the other: four along, one across, at any of
    // five.
    let routes = network.routes(0, 9);
    assert_eq!(routes.len(), 5);
    assert!(routes.iter().all(|route| route.len() == 5));
    let ends = |link: u32| {
        let link = &network.links()[link as usize];
        (link.from, link.to)
    };
    // Row first.
    let first: Vec<(u32, u32)> = routes[0].iter().map(|link| ends(*link)).collect();
    assert_eq!(first, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 9)]);
}

#[test]
fn networks_that_bursts_cannot_travel_are_refused() {
    for (text, problem) in [
        ("wdm_ladder:rungs=5,hosts=10", "needs wavelengths="),
        ("ladder:rungs=5", "use fibres with wavelengths"),
        (
            "ladder:rungs=5,wavelengths=28",
            "for fibres write wdm_ladder:",
        ),
        ("ladder:rungs=5,hosts=10", "for fibres write wdm_ladder:"),
        ("custom:ranks=2,links=0-1,wavelengths=4", "write wdm_graph:"),
        ("electrical_ring:ranks=8,wavelengths=4", "write wdm_graph:"),
        (
            "wdm_ladder:rungs=5,wavelengths=4,transmitters=2",
            "ports limit",
        ),
        (
            "wdm_ladder:rungs=5,wavelengths=4,reach=4",
            "5 links is beyond the reach",
        ),
        ("wdm_ladder:rungs=5,terminals=10,wavelengths=4", "hosts=..."),
        ("wdm_ladder:rungs=0,wavelengths=4", "must be from 1"),
        ("wdm_ladder:rungs=5,wavelengths=0", "must be from 1"),
        (
            "wdm_lader:rungs=5,wavelengths=4",
            "did you mean `wdm_ladder`",
        ),
        ("wdm_ring:ranks=8,wavelengths=4", "planned"),
        ("wdm_graph:ranks=2,links=0~1,wavelengths=4", "half-duplex"),
        (
            "wdm_graph:ranks=2,links=0-1@per_flow,wavelengths=4",
            "no limit",
        ),
        (
            "wdm_graph:ranks=3,links=0-1+1-2@40Gb/s,wavelengths=4",
            "the same rate",
        ),
        ("wdm_mesh:dims=1x1,wavelengths=4", "two hosts"),
        ("wdm_mesh:dims=1x1,hosts=2,wavelengths=4", "no links"),
        ("wdm_mesh:dims=40x40,wavelengths=4", "at most"),
    ] {
        let medium = Medium::parse(text).map_err(BurstError::from);
        let error = medium
            .and_then(|medium| BurstNetwork::of(&medium))
            .unwrap_err();
        assert!(error.to_string().contains(problem), "{text}: {error}");
        assert_eq!(error.setting(), Some("fabric"), "{text}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let network = BurstNetwork::of(&Medium::parse(&ladder(28)).unwrap()).unwrap();
    for (text, setting, problem) in [
        ("source=poison", "source", "did you mean `poisson`"),
        ("offered_load=0", "offered_load", "greater than 0"),
        ("offered_load=nan", "offered_load", "greater than 0"),
        ("offered_load=1", "offered_load", "below 1"),
        ("source=on_off offered_load=1.5", "offered_load", "below 1"),
        ("size=0B", "size", "at least one byte"),
        ("size=4M", "size", "power"),
        ("bursts=0", "bursts", "whole number"),
        ("bursts=1.5", "bursts", "whole number"),
        ("bursts=1e15", "bursts", "days"),
        ("signalling=two_way offset=1ms", "offset", "jet or jit"),
        ("converters=some", "converters", "neither"),
        ("receivers=0", "receivers", "whole number"),
        ("assembly=packets:packet=1MB", "assembly", "no burst"),
        ("assembly=packets:size=1MB,wait=1s", "assembly", "no option"),
        ("assembly=packets:time_out=0s", "assembly", "greater"),
        (
            "source=on_off assembly=packets:size=1MB",
            "assembly",
            "whole bursts",
        ),
        ("relative_error=-1", "relative_error", "greater than 0"),
        ("replications=0", "replications", "whole number"),
        ("processing=1000000s", "bursts", "days"),
        ("seed=x", "seed", "whole number"),
    ] {
        let words = text
            .split_whitespace()
            .map(|word| word.split_once('=').unwrap());
        let run = |settings: BurstSettings| {
            burst::simulate(&network, &BurstWork::Random, &settings, 1, |_| true).map(|_| ())
        };
        let error = BurstSettings::from_texts(words).and_then(run).unwrap_err();
        assert!(error.to_string().contains(problem), "{text}: {error}");
        assert_eq!(error.setting(), Some(setting), "{text}: {error}");
    }
    let unknown = BurstSettings::from_texts([("offered_lod", "1")]).unwrap_err();
    assert!(unknown.to_string().contains("did you mean `offered_load`"));
}

#[test]
fn given_bursts_that_do_not_fit_are_refused() {
    let network = BurstNetwork::of(&Medium::parse(&link(2, 1)).unwrap()).unwrap();
    let burst = |time, source, destination, length| Burst {
        time: Time::from_ps(time),
        source,
        destination,
        length: Time::from_ps(length),
    };
    for (bursts, problem) in [
        (vec![burst(0, 0, 4, 1)], "there are 4 hosts"),
        (vec![burst(0, 3, 3, 1)], "to itself"),
        (vec![burst(0, 0, 1, 0)], "no length"),
        (
            vec![burst(5, 0, 1, 1), burst(4, 0, 1, 1)],
            "before the previous burst",
        ),
        (vec![burst(u64::MAX, 0, 1, u64::MAX)], "46 days"),
    ] {
        let work = BurstWork::Given(bursts);
        let error = burst::simulate(&network, &work, &BurstSettings::default(), 1, |_| true);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn what_is_printed_as_default_is_the_default() {
    for record in SETTINGS.iter().map(|setting| setting.record) {
        let text = match record.name {
            "warm_up" | "relative_error" => continue,
            _ => record.default,
        };
        let set = BurstSettings::from_texts([(record.name, text)]).unwrap();
        assert_eq!(set, BurstSettings::default(), "{}", record.name);
    }
}

#[test]
fn the_outcome_does_not_depend_on_the_number_of_threads() {
    let network = BurstNetwork::of(&Medium::parse(&ladder(18)).unwrap()).unwrap();
    for text in [
        "replications=5",
        "signalling=jet assignment=pwa processing=1ms",
    ] {
        let mut settings = settings(&format!("bursts=60000 {text}"));
        settings.record = true;
        let of = |threads| {
            burst::simulate(&network, &BurstWork::Random, &settings, threads, |_| true).unwrap()
        };
        let alone = of(1);
        assert!(alone.lost > 0);
        for threads in [0, 2, 3, 16] {
            assert!(of(threads) == alone, "{text}: {threads} threads");
        }
        settings.seed += 1;
        let other = burst::simulate(&network, &BurstWork::Random, &settings, 1, |_| true).unwrap();
        assert_ne!(other.lost, alone.lost, "{text}: another seed");
    }
}

#[test]
fn a_run_ends_when_the_error_is_small_enough_or_the_caller_has_enough() {
    let network = BurstNetwork::of(&Medium::parse(&link(1, 10)).unwrap()).unwrap();
    let wanted = settings("source=poisson offered_load=10 bursts=1e7 relative_error=0.05");
    let mut told = Vec::new();
    let outcome = burst::simulate(&network, &BurstWork::Random, &wanted, 1, |progress| {
        told.push(progress.bursts);
        true
    });
    let outcome = outcome.unwrap();
    assert!(outcome.bursts < 10_000_000);
    assert!(outcome.loss_high - outcome.loss_low <= 0.1 * outcome.loss);
    assert_eq!(told.last(), Some(&outcome.bursts));
    assert_eq!(told.len(), outcome.moments.len());
    assert!(told.windows(2).all(|pair| pair[0] < pair[1]));
    let stopped = burst::simulate(&network, &BurstWork::Random, &wanted, 1, |one| {
        one.bursts < 400_000
    });
    assert!(matches!(stopped, Err(BurstError::Stopped { bursts }) if bursts >= 400_000));
}
