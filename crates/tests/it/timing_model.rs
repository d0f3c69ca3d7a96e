//! Settings of simulators as text, and background traffic of plans.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::timing_model::settings;
use opticoll::simulate::{SIMULATORS, TimingModel};
use opticoll::units::Bytes;

use crate::electrical::proved;

fn seconds(plan: &Plan, settings: &[(&str, &str)]) -> Result<f64, String> {
    let text = |error: simulate::SimulationError| error.to_string();
    let method = TimingModel::from_settings(settings.iter().copied()).map_err(text)?;
    let outcome = simulate::run(plan, Bytes::new(1_000_000), &method).map_err(text)?;
    Ok(outcome.time.seconds())
}

#[test]
fn traffic_beside_a_plan_takes_its_fair_share() {
    // Rank 0 of four sends 1 MB to 1, to 2 and to 3, over cables of 1 GB/s to the switch and back:
    // 1 ms each if nothing is beside it.
    let fabric = Fabric::parse("crossbar:ranks=4,rate=1GB/s,latency=0s").unwrap();
    let plan = proved(CollectiveKind::Broadcast, "linear", &fabric);
    for (background, expected) in [
        ("pair:from=1,to=2", 4e-3),
        ("pair:from=0,to=1,rate=0.5GB/s", 6e-3),
        ("nearest:rate=0.5GB/s", 6e-3),
        ("shift:by=1,rate=0.5GB/s", 6e-3),
        ("shift:by=4", 3e-3),
        ("nearest:rate=0.5GB/s,end=2ms", 4e-3),
        ("nearest:rate=0.5GB/s,start=1ms,end=2ms", 3.5e-3),
        ("nearest:rate=0.25GB/s; shift:by=2,rate=0.25GB/s", 6e-3),
    ] {
        let found = seconds(&plan, &[("background", background)]).unwrap();
        assert!((found - expected).abs() < 1e-12, "{background}: {found} s");
    }
}

#[test]
fn an_endpoint_costs_what_loggp_says() {
    // One message of 1 MB over two idle cables of 1 GB/s and 1 us each: o + L + 2 us + 1 ms + o.
    let fabric = Fabric::parse("crossbar:ranks=2,rate=1GB/s,latency=1us").unwrap();
    let plan = proved(CollectiveKind::Broadcast, "linear", &fabric);
    for (endpoint, expected_us) in [
        ("none", 1002.0),
        ("loggp:latency=3us", 1005.0),
        ("loggp:overhead=4us", 1010.0),
        ("LogGP:send_overhead=4us,receive-overhead=5us", 1011.0),
        ("loggp:overhead=4us,receive_overhead=5us", 1011.0),
        ("loggp:rate=0.5GB/s", 2002.0),
        // Announced and answered first: twice the latency of the route and of the message.
        ("loggp:eager=64KiB", 1006.0),
        ("loggp:eager=1MB", 1002.0),
        ("loggp:latency=3us,eager=64KiB", 1015.0),
    ] {
        let found = seconds(&plan, &[("endpoint", endpoint)]).unwrap() * 1e6;
        assert!((found - expected_us).abs() < 1e-6, "{endpoint}: {found} us");
    }
}

#[test]
fn what_is_no_setting_is_refused_with_a_hint() {
    let fabric = Fabric::parse("crossbar:ranks=4").unwrap();
    let plan = proved(CollectiveKind::AllGather, "ring", &fabric);
    for (name, text, hint) in [
        ("simulator", "fluyd", "did you mean `fluid`"),
        ("strat", "step", "did you mean `start`"),
        (
            "start",
            "stepp",
            "start: unknown start rule `stepp`; did you mean `step`",
        ),
        ("weights", "eqal", "did you mean `equal`"),
        ("endpoint", "logp", "did you mean `loggp`"),
        ("endpoint", "loggp:overhed=1us", "did you mean `overhead`"),
        ("endpoint", "loggp:overhead=1", "overhead=1"),
        ("endpoint", "loggp:rate=0GB/s", "rate=0GB/s"),
        ("endpoint", "none:gap=1us", "it has none"),
        ("background", "neerest", "did you mean `nearest`"),
        ("background", "nearest:by=1", "no option `by`"),
        ("background", "shift", "is missing"),
        ("background", "pair:from=0", "is missing"),
        ("background", "pair:from=0,to=4", "0 to 3"),
        ("background", "pair:from=1,to=1", "0 to 3"),
        ("background", "hot_spot:rank=9", "0 to 3"),
        ("background", "group_shift", "has no groups; use shift"),
        ("background", "uniform", "use permutation"),
        ("background", "nearest:rate=fast", "rate=fast"),
        ("background", "", "background"),
    ] {
        let error = seconds(&plan, &[(name, text)]).unwrap_err();
        assert!(error.contains(hint), "{name}={text}: {error}");
    }
}

#[test]
fn every_setting_is_known_to_recorded_simulators_only() {
    let dragonfly = "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1";
    let electrical = Fabric::parse(dragonfly).unwrap();
    let electrical = proved(CollectiveKind::AllGather, "ring", &electrical);
    let lit = crate::verified(CollectiveKind::AllGather, "ring", 4, 1);
    let tunable = crate::wss_grid::proved(
        CollectiveKind::AllGather,
        "ring",
        "wss_grid:rows=2,columns=2",
    );
    let lightpaths = crate::lightpath_grid::proved(
        CollectiveKind::AllGather,
        "ring",
        "lightpath_grid:ranks=4,ports=2",
    );
    let with_library = crate::electrical::proved(
        CollectiveKind::AllGather,
        "ring",
        &Fabric::parse("gpu_servers:model=dgx_h100,library=h100_sxm").unwrap(),
    );
    let value = |name| match name {
        "policy" => "free",
        "paths" => "kept",
        "start" => "step",
        "weights" => "inverse_latency",
        "endpoint" => "loggp:overhead=1us",
        "background" => "nearest:bytes=1KiB,period=2us",
        "link_bin" => "10us",
        "routing" => "valiant",
        "packet" => "1KiB",
        "chunk" => "256B",
        "buffers" => "8KiB,8KiB,8KiB",
        "router_delay" => "60ns",
        "router_delay_rule" => "occupies_port",
        "credit_delay" => "2ns",
        "arbitration" => "strict",
        "small_delays" => "none",
        "jitter" | "routing_seed" | "virtual_channels" => "3",
        "cores" => "2",
        "issue" => "together",
        "overhead" | "step_overhead" => "1us",
        "protocol" => "ll",
        "placement" => "shuffled-3",
        other => panic!("give the setting {other} a value here"),
    };
    for setting in settings() {
        for simulator in SIMULATORS.iter().filter(|one| one.run.is_some()) {
            let plan = match (setting.name, simulator.name) {
                ("paths", "circuit") => &lightpaths,
                ("protocol", "bulk_synchronous") => &with_library,
                (_, "circuit") => &lit,
                (_, "control") => &tunable,
                _ => &electrical,
            };
            let value = match (setting.name, simulator.name) {
                ("policy", "control") => "two_tier",
                (name, _) => value(name),
            };
            let settings = [("simulator", simulator.name), (setting.name, value)];
            let method = TimingModel::from_settings(settings).unwrap();
            let error = simulate::run(plan, Bytes::new(4), &method).err();
            let refused = error.and_then(|error| error.setting()) == Some(setting.name);
            let known = setting.simulators.contains(&simulator.name);
            assert_eq!(refused, !known, "{} by {}", setting.name, simulator.name);
        }
        let known = SIMULATORS.iter().map(|record| record.name);
        let known: Vec<&str> = known.collect();
        assert!(setting.simulators.iter().all(|name| known.contains(name)));
    }
}

#[test]
fn messages_of_no_bytes_that_arrive_at_once_end_every_step() {
    // An eager message waits for overheads only, and here there are none but what is given: the
    // last of the rounds ends after all of them.
    for (kind, algorithm, fabric, rounds) in [
        (
            CollectiveKind::Barrier,
            "dissemination",
            "crossbar:ranks=4,latency=0s",
            2.0,
        ),
        (
            CollectiveKind::Barrier,
            "dissemination",
            "torus:dims=2x2,latency=0s",
            2.0,
        ),
        (
            CollectiveKind::Barrier,
            "dissemination",
            "crossbar:ranks=8,latency=0s",
            3.0,
        ),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let plan = proved(kind, algorithm, &fabric);
        for start in ["rendezvous", "sender", "step"] {
            for (endpoint, round) in [
                ("loggp:eager=64KiB", 0.0),
                ("loggp:eager=64KiB,latency=1us", 1e-6),
                ("loggp:eager=64KiB,overhead=1us", 2e-6),
            ] {
                let settings = [("endpoint", endpoint), ("start", start)];
                let found = seconds(&plan, &settings).unwrap();
                let least = rounds * round;
                // A processor that both sends and receives may do so side by side.
                assert!(
                    found <= least + 1e-12,
                    "{fabric} {start} {endpoint}: {found}"
                );
                assert!(
                    found >= rounds * round / 2.0 - 1e-12,
                    "{fabric} {start} {endpoint}: {found}"
                );
            }
        }
    }
}

#[test]
fn weights_that_differ_much_leave_no_byte_behind() {
    // Rank 0 sends a block to rank 1, next door, and one to rank 2 over a long cable: its own
    // cable, at 10 Gb/s, is busy from beginning to end.
    for (bytes, delay, picoseconds) in [
        (1_000_000, "100us", 1_600_000_000_u64),
        (100_000_000, "7ms", 160_000_000_000),
        (1_000_000_000_000, "10s", 1_600_000_000_000_000),
        (100_000_000_000_000, "9000s", 160_000_000_000_000_000),
    ] {
        let fabric = format!(
            "custom:ranks=3,switches=1,links=0-3+1-3@0s+2-3@{delay},rate=10Gb/s,latency=0s"
        );
        let fabric = Fabric::parse(&fabric).unwrap();
        let plan = proved(CollectiveKind::Scatter, "direct", &fabric);
        let method = TimingModel::from_settings([("weights", "inverse_latency")]).unwrap();
        let outcome = simulate::run(&plan, Bytes::new(bytes), &method).unwrap();
        let found = outcome.time.ps();
        let error = found as f64 / picoseconds as f64 - 1.0;
        assert!(error.abs() < 1e-12, "{delay}: {found} ps");
    }
}
