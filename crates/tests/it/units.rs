//! Quantities are read exactly or refused.

use opticoll::fabric::Fabric;
use opticoll::families::FAMILIES;
use opticoll::units::{Bytes, Rate, Time};

fn check_time(text: &str, picoseconds: Option<u64>) {
    assert_eq!(
        text.parse::<Time>().ok().map(Time::ps),
        picoseconds,
        "{text}"
    );
}

#[test]
fn times_are_exact_or_refused() {
    check_time("25us", Some(25_000_000));
    check_time("10.5ns", Some(10_500));
    check_time("1.000001us", Some(1_000_001));
    check_time("0s", Some(0));
    check_time("18446744073709551615ps", Some(u64::MAX));
    for refused in [
        "25",
        "25 parsecs",
        "0.5ps",
        "-1us",
        "1e3us",
        ".5us",
        "5.us",
        "1.2.3us",
        "",
        "us",
    ] {
        check_time(refused, None);
    }
    check_time("18446744073709551616ps", None);
    check_time("99999999999999999999999999999999999999999999s", None);
}

#[test]
fn sizes_are_exact_or_refused() {
    let check = |text: &str, bytes: Option<u64>| {
        assert_eq!(text.parse::<Bytes>().ok().map(Bytes::get), bytes, "{text}");
    };
    check("4MiB", Some(4 << 20));
    check("4MB", Some(4_000_000));
    check("0.5KiB", Some(512));
    check("1B", Some(1));
    check("0B", Some(0));
    for refused in ["4M", "4K", "4", "1.5B", "4MIB", "4 megabytes"] {
        check(refused, None);
    }
    let hint = "4M".parse::<Bytes>().unwrap_err().to_string();
    assert!(hint.contains("4MB or 4MiB"), "{hint}");
}

#[test]
fn rates_are_bits_or_bytes_per_second() {
    let check = |text: &str, bits: Option<u64>| {
        assert_eq!(
            text.parse::<Rate>().ok().map(Rate::bits_per_second),
            bits,
            "{text}"
        );
    };
    check("40Gb/s", Some(40_000_000_000));
    check("12.5GB/s", Some(100_000_000_000));
    check("1GiB/s", Some(8 << 30));
    for refused in ["0Gb/s", "40Gbps", "40G", "40"] {
        check(refused, None);
    }
}

/// 4.7 * 2^33 = 40372692582.4; halves go up.
#[test]
fn rates_are_rounded_to_the_nearest_bit_per_second() {
    let check = |text: &str, rounded: Option<u64>| {
        let found = Rate::rounded(text).unwrap().map(Rate::bits_per_second);
        assert_eq!(found, rounded, "{text}");
        if let Some(bits) = rounded {
            assert_eq!(
                text.parse::<Rate>().unwrap().bits_per_second(),
                bits,
                "{text}"
            );
        }
    };
    check("4.7GiB/s", Some(40_372_692_582));
    check("1.5b/s", Some(2));
    check("1.49b/s", Some(1));
    check("0.9999999999Gb/s", Some(1_000_000_000));
    check("0.000000001Gb/s", None);
    check("40Gb/s", None);
    assert!("0.4b/s".parse::<Rate>().is_err());
}

#[test]
fn transmission_rounds_up_to_a_picosecond() {
    let check = |bytes: u64, rate: &str, picoseconds: u64| {
        let rate: Rate = rate.parse().unwrap();
        assert_eq!(
            rate.transmission(Bytes::new(bytes)).unwrap().ps(),
            picoseconds
        );
    };
    // 4 MiB at 40 Gb/s: 4194304 * 8 / 40e9 s = 838.8608 us.
    check(4 << 20, "40Gb/s", 838_860_800);
    // One byte at 3 b/s: 8/3 s, rounded up.
    check(1, "3b/s", 2_666_666_666_667);
    check(0, "40Gb/s", 0);
    let slow: Rate = "1b/s".parse().unwrap();
    assert!(
        slow.transmission(Bytes::new(u64::MAX)).is_err(),
        "an overflow is an error"
    );
}

#[test]
fn what_is_printed_is_read_back() {
    for text in ["25us", "838.8608us", "1.5s", "999ps", "0s"] {
        assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
    }
    for text in ["4MiB", "100MB", "64MB", "64000KiB", "1000001B", "0B"] {
        assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
    }
    for text in ["40Gb/s", "2.5Gb/s", "1Tb/s"] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
}

#[test]
fn fabrics_are_read_back_from_their_spelling() {
    for spec in [
        "wdm_ring:ranks=16,wavelengths=2",
        "wdm_ring:ranks=7,wavelengths=3,fibres=2,rate=25Gb/s,reconfiguration=20us,conversion=1ns,\
         propagation=5ns,ports=4,converters=full",
        "wdm_ring:ranks=7,wavelengths=3,conversion=1ns,flit=32B",
        "wdm_ring:ranks=7,wavelengths=3,conversion=1ns,flit=32B,packet=128B",
        "wdm_ring:ranks=7,wavelengths=3,flit=32B,packet=message",
        "terarack",
        "optree_paper:ranks=512",
    ] {
        let fabric = Fabric::parse(spec).unwrap();
        assert_eq!(
            Fabric::parse(&fabric.to_string()).unwrap(),
            fabric,
            "{spec}"
        );
    }
}

#[test]
fn options_of_fabrics_state_their_values_and_their_defaults() {
    let mut given = 0;
    for record in FAMILIES {
        for option in record.all_options() {
            let (name, what) = (option.record.name, record.name);
            assert!(!option.range.is_empty(), "{what}: {name} has no range");
            let quantity = option.range.contains("or more") && !option.range.starts_with("as ");
            let unit = !option.record.unit.is_empty() || option.range.contains("the longer side");
            assert!(!quantity || unit, "{what}: {name} has no unit");
            let Some(default) = option.default else {
                continue;
            };
            assert!(!default.is_empty(), "{what}: {name} has no default");
            // Where the default is a value, it may as well be given.
            let Ok(machine) = Fabric::parse(record.example) else {
                continue;
            };
            let separator = if record.example.contains(':') {
                ','
            } else {
                ':'
            };
            let text = format!("{}{separator}{name}={default}", record.example);
            if let Ok(explicit) = Fabric::parse(&text) {
                assert_eq!(explicit, machine, "{text}");
                given += 1;
            }
        }
    }
    assert!(given > 50, "{given}");
}
