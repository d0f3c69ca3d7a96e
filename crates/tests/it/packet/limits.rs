//! The end of simulated time after 2^60 ps: an error, beyond which nothing hangs and no time wraps.

use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::schedule::Schedule;
use opticoll::simulate::SimulationError;
use opticoll::simulate::live::{Live, ReadyMessage};
use opticoll::simulate::packet;
use opticoll::simulate::packet::{
    Arbitration, DelayRange, DrivenPackets, Overheads, PacketError, PacketOptions, PacketSettings,
    PacketWork, RouterDelay, Traffic,
};
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};

use super::sends;

const END_PS: u64 = 1 << 60;

fn ring(fabric: &Fabric) -> Schedule {
    let collective = Collective::new(CollectiveKind::AllReduce, fabric.ranks()).unwrap();
    algorithms::build(&Spec::new("ring"), collective, fabric).unwrap()
}

fn run(
    fabric: &Fabric,
    schedule: &Schedule,
    bytes: u64,
    options: &PacketOptions,
) -> Result<Time, PacketError> {
    let work = PacketWork {
        collective: Some(packet::PacketCollective::new(schedule, Bytes::new(bytes))),
        traffic: Vec::new(),
    };
    packet::simulate(fabric, &work, options).map(|outcome| outcome.time)
}

#[test]
fn a_time_beyond_the_end_is_an_error_however_little_beyond() {
    // Six messages of a quarter of the size one after the other, at one byte in eight seconds over
    // two links, chunk by chunk: more than 12 s a byte in all, and less than 24 s.
    let fabric = Fabric::parse("crossbar:ranks=4,rate=1b/s").unwrap();
    let schedule = ring(&fabric);
    for arbitration in [
        Arbitration::Ahead,
        Arbitration::RoundRobin,
        Arbitration::Strict,
    ] {
        for router_delay_rule in [RouterDelay::Pipelined, RouterDelay::OccupiesPort] {
            let options = PacketOptions {
                arbitration,
                router_delay_rule,
                ..PacketOptions::default()
            };
            let second = 1_000_000_000_000;
            let mut refused = 0;
            for kilobytes in (40..=130).step_by(2) {
                let bytes = 1000 * kilobytes;
                match run(&fabric, &schedule, bytes, &options) {
                    Ok(time) => {
                        assert_eq!(refused, 0, "{kilobytes} kB {arbitration:?}");
                        assert!(time.ps() < END_PS && time.ps() > 12 * bytes * second);
                    }
                    Err(error) => {
                        assert_eq!(error, PacketError::TooLong);
                        assert!(24 * bytes * second > END_PS);
                        refused += 1;
                    }
                }
            }
            // 12 s a byte alone are too much from 96.08 kB on.
            assert!(refused >= 17, "{refused} {arbitration:?}");
        }
    }
}

#[test]
fn the_end_is_the_same_on_any_number_of_cores() {
    let spelling = "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,\
                    terminal_rate=1b/s,local_rate=1b/s,global_rate=1b/s";
    let fabric = Fabric::parse(spelling).unwrap();
    let first_and_last: Vec<(u32, u32)> = (0..36).map(|rank| (rank, 71 - rank)).collect();
    let schedule = sends(72, &first_and_last);
    for cores in [1, 2, 3] {
        let options = PacketOptions {
            cores,
            ..PacketOptions::default()
        };
        let time = run(&fabric, &schedule, 100, &options);
        assert!(time.is_ok(), "{time:?}");
        // 8 s a byte for 144.2 kB on the first link alone.
        for bytes in [145_000, 1 << 20] {
            let time = run(&fabric, &schedule, bytes, &options);
            assert_eq!(time, Err(PacketError::TooLong), "{bytes} B");
        }
    }
}

#[test]
fn the_longest_delays_add_up_to_an_error() {
    let fabric = Fabric::parse("crossbar:ranks=3,rate=1GB/s").unwrap();
    let schedule = sends(3, &[(0, 1), (0, 2), (1, 0), (2, 0)]);
    let longest = Time::from_ps(END_PS);
    let spread = DelayRange {
        min: longest,
        width: longest,
    };
    let overheads = [
        Overheads {
            handover: spread,
            ..Overheads::NONE
        },
        Overheads {
            send: spread,
            ..Overheads::NONE
        },
        Overheads {
            notice: spread,
            ..Overheads::NONE
        },
        Overheads {
            sequencing: longest,
            ..Overheads::NONE
        },
    ];
    for overheads in overheads {
        for jitter in [None, Some(7)] {
            let options = PacketOptions {
                overheads,
                jitter,
                ..PacketOptions::default()
            };
            let time = run(&fabric, &schedule, 1 << 20, &options);
            assert_eq!(time, Err(PacketError::TooLong), "{overheads:?}");
        }
    }
    // A packet of 2^20 chunks, each of which takes 8 s.
    let fabric = Fabric::parse("crossbar:ranks=2,rate=1b/s").unwrap();
    let options = PacketOptions {
        packet: Bytes::new(1 << 20),
        chunk: Bytes::new(1),
        ..PacketOptions::default()
    };
    let time = run(&fabric, &sends(2, &[(0, 1)]), 1 << 20, &options);
    assert_eq!(time, Err(PacketError::TooLong));
}

#[test]
fn a_driven_network_ends_there_too() {
    let fabric = Fabric::parse("crossbar:ranks=2,rate=1b/s").unwrap();
    let mut packets = DrivenPackets::new(&fabric, &PacketSettings::default()).unwrap();
    let send = |packets: &mut DrivenPackets<'_>, ps| {
        let bytes = Bytes::new(200_000);
        packets.send(0, ReadyMessage::new((0, 1), bytes, Time::from_ps(ps)))
    };
    let too_long = SimulationError::from(PacketError::TooLong);
    assert_eq!(send(&mut packets, END_PS), Err(too_long.clone()));
    send(&mut packets, 0).unwrap();
    let mut happened = Vec::new();
    let error = loop {
        if let Err(error) = packets.advance(&mut happened) {
            break error;
        }
        let next = packets.next_time().unwrap();
        assert!(next.is_some_and(|time| time.ps() <= END_PS));
    };
    assert_eq!((error, happened), (too_long, Vec::new()));
}

#[test]
fn more_bytes_than_64_bits_count_are_an_error() {
    // Each of 20 terminals sends 10^18 B in the first microsecond, while a message of 4 KiB is on
    // its way.
    let fabric = Fabric::parse("crossbar:ranks=20,rate=1GB/s").unwrap();
    let schedule = sends(20, &[(0, 1)]);
    let large = Bytes::new(1_000_000_000_000_000_000);
    let work = PacketWork {
        collective: Some(packet::PacketCollective::new(&schedule, Bytes::new(4096))),
        traffic: vec![Traffic {
            start: Time::from_ps(10_000),
            ..Traffic::background(large, Time::from_ps(1_000_000))
        }],
    };
    let error = packet::simulate(&fabric, &work, &PacketOptions::default()).unwrap_err();
    assert!(matches!(error, PacketError::Unit(_)), "{error}");
}
