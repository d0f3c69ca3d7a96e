//! O/E/O conversion of flits against a pipeline that is computed packet by packet, and against
//! formulas by hand.

use opticoll::collective::Collective;
use opticoll::collective::CollectiveKind;
use opticoll::collective::CollectiveKind::{AllGather, AllReduce, Barrier, Broadcast};
use opticoll::fabric::{Fabric, Transmission};
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;

use crate::verified_with;

/// Ways to convert flits of 32 B, which 40 Gb/s send in 6.4 ns.
const READINGS: [&str; 5] = [
    "conversion=1ns",
    "conversion=1ns,flit=32B",
    "conversion=1ns,flit=32B,packet=128B",
    "conversion=1ns,flit=32B,packet=message",
    "conversion=10ns,flit=32B",
];

/// Computes the time packet by packet: a packet is converted after it has arrived and the packet
/// before it has been converted.
fn pipeline(by: Transmission, bytes: u64) -> u128 {
    let flit = by.flit.map_or(u64::MAX, Bytes::get);
    let packet = by.packet.map_or(u64::MAX, Bytes::get);
    let (mut sent, mut converted) = (0, 0);
    loop {
        let part = packet.min(bytes - sent);
        sent += part;
        let arrival = by.rate.transmission(Bytes::new(sent)).unwrap().ps();
        let flits = u128::from(part.div_ceil(flit).max(1));
        converted = converted.max(u128::from(arrival)) + flits * u128::from(by.conversion.ps());
        if sent == bytes {
            return converted;
        }
    }
}

#[test]
fn a_message_takes_the_time_of_its_pipeline_and_no_less_than_the_bound() {
    let rate = "40Gb/s".parse().unwrap();
    for conversion in [0, 1, 999, 6400, 6401, 25_600, 70_000] {
        for (flit, packets) in [(1, 1), (3, 2), (32, 1), (32, 4), (7, 1000)] {
            let flits = Transmission {
                conversion: Time::from_ps(conversion),
                flit: Some(Bytes::new(flit)),
                packet: Some(Bytes::new(flit * packets)),
                ..Transmission::at(rate)
            };
            let whole = Transmission {
                packet: None,
                ..flits
            };
            let once = Transmission {
                flit: None,
                ..whole
            };
            for by in [flits, whole, once] {
                for bytes in (0..300).chain([4095, 4096, 4097, 65_536, 99_999]) {
                    let time = by.time(Bytes::new(bytes)).unwrap().ps();
                    assert_eq!(u128::from(time), pipeline(by, bytes), "{by:?} {bytes}");
                    let least = by.least(bytes.into(), 1).unwrap();
                    let least = least + u128::from(by.latency().ps());
                    assert!(u128::from(time) >= least, "{by:?} {bytes}: {time} {least}");
                }
            }
        }
    }
}

#[test]
fn each_lightpath_of_a_relay_converts_its_flits() {
    // 16 KiB in 3276.8 ns. A flit is converted after the last has arrived; so are the four of a
    // packet; all 512 flits; and where conversion is slower, all 512 after the first has arrived.
    let after = ["3277.8ns", "3277.8ns", "3280.8ns", "3788.8ns", "5126.4ns"];
    for (reading, expected) in READINGS.iter().zip(after) {
        let fabric = format!("wdm_ring:ranks=16,wavelengths=32,propagation=5ns,{reading}");
        let one: Time = expected.parse().unwrap();
        let delay = |hops: u64| Time::from_ps(5000 * hops);
        let check = |algorithm: &str, policy, simulator, expected: Time| {
            let plan = verified_with(AllGather, algorithm, &fabric, "auto");
            let outcome = simulate::simulate(&plan, Bytes::new(1 << 14), policy, simulator);
            assert_eq!(outcome.unwrap().time, expected, "{algorithm} {reading}");
        };
        // One lightpath of up to 8 links; 15 of one link, one after the other, each with its
        // conversion.
        let direct = one.plus(delay(8)).unwrap();
        check("one_stage", Policy::Free, "circuit", direct);
        let relayed = one.plus(delay(1)).unwrap().times(15).unwrap();
        check("ring", Policy::Free, "circuit", relayed);
        // A reconfiguration of 25 us before each.
        let step = one.plus(Time::from_ps(25_000_000)).unwrap();
        let steps = step.plus(delay(1)).unwrap().times(15).unwrap();
        check("ring", Policy::EveryStep, "circuit", steps);
    }
}

#[test]
fn a_signal_without_bytes_is_a_flit() {
    for reading in READINGS {
        let fabric = format!("wdm_ring:ranks=4,wavelengths=8,reconfiguration=0s,{reading}");
        let plan = verified_with(Barrier, "dissemination", &fabric, "auto");
        let outcome = simulate::simulate(&plan, Bytes::new(0), Policy::Free, "circuit").unwrap();
        let each: Time = if reading.contains("10ns") {
            "10ns"
        } else {
            "1ns"
        }
        .parse()
        .unwrap();
        assert_eq!(outcome.time, each.times(plan.slots().into()).unwrap());
    }
}

#[test]
fn no_plan_is_faster_than_the_bounds_with_conversion() {
    for reading in READINGS {
        let options = format!("ranks=8,wavelengths=2,rate=40Gb/s,{reading}");
        let fabric = Fabric::parse(&format!("wdm_ring:{options}")).unwrap();
        for kind in [AllGather, AllReduce, Broadcast, CollectiveKind::AllToAll] {
            let collective = Collective::new(kind, 8).unwrap();
            for (size, policy) in [
                ("100B", Policy::Free),
                ("40KiB", Policy::PerPort),
                ("1MB", Policy::EveryStep),
            ] {
                let method = TimingModel::from(policy);
                let size = size.parse().unwrap();
                let bound = planner::time_bound(&fabric, &collective, size, &method)
                    .unwrap()
                    .unwrap();
                for name in ["auto", "relay_tree"] {
                    let Ok(planned) =
                        planner::plan(&name.parse().unwrap(), &fabric, collective, size, &method)
                    else {
                        continue;
                    };
                    assert_eq!(verify(&planned.plan), []);
                    let time = simulate::run(&planned.plan, size, &method).unwrap().time;
                    assert!(
                        time >= bound.time,
                        "{kind} {name} {reading} {policy:?}: {time} {bound:?}"
                    );
                }
            }
        }
    }
}
