//! Losses of light: values of components, budgets by hand, and margins of plans.

use opticoll::components::{COMPONENTS, Property, component};
use opticoll::fabric::Fabric;
use opticoll::fabric::loss::{Decibels, read_loss};
use opticoll::fabric::noise::Noise;
use opticoll::family::wdm_graph::WdmGraph;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::plan::Plan;
use opticoll::verify::{ViolationKind, verify};
use proptest::prelude::*;

use crate::{handwritten, rows};

#[test]
fn every_value_has_a_source_and_every_loss_is_at_most_the_greatest() {
    for component in COMPONENTS {
        for value in component.values {
            assert!(!value.source.is_empty(), "{}", component.name);
            for number in value.value.split(" to ") {
                assert!(number.parse::<f64>().unwrap() >= 0.0, "{value:?}");
            }
        }
        let losses = component.values.iter();
        let losses = losses.filter(|value| value.property == Property::Loss);
        let numbers = losses.flat_map(|value| value.value.split(" to "));
        let numbers = numbers.map(|number| number.parse::<Decibels>().unwrap().millionths());
        let Some(greatest) = numbers.max() else {
            assert!(component.greatest_loss().is_none(), "{}", component.name);
            assert!(read_loss(component.name).is_err(), "{}", component.name);
            continue;
        };
        let length = if component.is_fibre() { "1km*" } else { "" };
        let read = read_loss(&format!("{length}{}", component.name)).unwrap();
        assert_eq!(read.millionths(), greatest, "{}", component.name);
    }
}

/// A property for sums has its single numbers before its ranges, because sums use the first number.
#[test]
fn ranges_stand_after_numbers() {
    for component in COMPONENTS {
        for property in [
            Property::Power,
            Property::PowerPerPort,
            Property::Energy,
            Property::Price,
            Property::FailureRate,
        ] {
            let values = component.values.iter();
            let values = values.filter(|value| value.property == property);
            let ranges: Vec<bool> = values.map(|value| value.value.contains(" to ")).collect();
            assert!(ranges.is_sorted(), "{}", component.name);
        }
    }
}

/// Returns the number before `unit`, which ends the text, such as 11160 of `about 11,160 W`.
fn number_before(text: &str, unit: &str) -> Option<f64> {
    let number = text.strip_suffix(unit)?.rsplit(' ').next()?;
    number.replace(',', "").parse().ok()
}

/// Returns what a value is by the numbers of its condition: watts divided by the rate or by the
/// number of ports, or failures in 10^9 hours from the mean time between failures (MTBF).
fn by_condition(condition: &str) -> Option<f64> {
    if let Some((_, time)) = condition.split_once("MTBF ") {
        let hours = time.split_inclusive(" h").next()?;
        return Some(1e9 / number_before(hours, " h")?);
    }
    let (watts, size) = condition.split_once(" W for ")?;
    let watts = number_before(watts, "")?;
    let size = size.split([',', ';']).next()?;
    let terabits = number_before(size, " Tb/s");
    let gigabits = number_before(size, " Gb/s").map(|rate| rate / 1000.0);
    Some(watts / terabits.or(gigabits).or(number_before(size, " ports"))?)
}

/// 1 W for 1 Tb/s is 1 pJ/b; one failure in an MTBF of 10^9 h is 1 FIT.
#[test]
fn values_follow_from_the_numbers_of_their_conditions() {
    let mut followed = 0;
    for component in COMPONENTS {
        for value in component.values {
            let Some(exact) = by_condition(value.condition) else {
                continue;
            };
            followed += 1;
            let digits = value.value.split_once('.').map_or(0, |parts| parts.1.len());
            assert_eq!(
                value.value,
                format!("{exact:.digits$}"),
                "{}",
                component.name
            );
        }
    }
    assert!(followed > 20, "{followed}");
}

/// Llama 3, arXiv 2407.21783: 54 days of training with 16,384 GPUs were interrupted by 7 NICs, by
/// GPUs 246 times according to the text, and 148 + 72 + 19 + 17 + 6 + 6 times according to table 5.
#[test]
fn failure_rates_of_a_training_are_interruptions_in_its_hours() {
    let hours = 54.0 * 24.0 * 16_384.0;
    for (name, interruptions) in [
        ("nic", vec![7]),
        ("gpu_h100", vec![246, 148 + 72 + 19 + 17 + 6 + 6]),
    ] {
        let values = component(name).unwrap().values.iter();
        let rates = values.filter(|value| value.property == Property::FailureRate);
        let rates: Vec<&str> = rates.map(|value| value.value).collect();
        let expected = interruptions.iter();
        let expected = expected.map(|&count| format!("{:.0}", f64::from(count) * 1e9 / hours));
        assert_eq!(rates, expected.collect::<Vec<_>>(), "{name}");
    }
}

/// Losses, and their values in dB: the greatest of the values that the sources state.
const NAMED: &str = "
palomar | 2
wss | 8
connector | 0.75
2*connector+splice | 1.65
80km*fibre_1550 | 16
0.000001km*fibre_1310 | 0.000001
2.5km*fibre_1310+0.5dB | 1.5
3*0.1dB | 0.3
";

#[test]
fn a_component_stands_for_its_greatest_loss() {
    for [loss, expected] in rows(NAMED) {
        assert_eq!(read_loss(loss).unwrap().to_string(), expected, "{loss}");
    }
}

#[test]
fn a_splitter_divides_power_evenly() {
    for (outputs, loss) in [
        (1, "0"),
        (2, "3.0103"),
        (10, "10"),
        (64, "18.0618"),
        (1000, "30"),
    ] {
        assert_eq!(Decibels::from_splitter(outputs).to_string(), loss);
    }
}

/// A fabric, a collective with the slots of its step, the lightpaths, and the margins in dB, by
/// hand.
const MARGINS: &str = "
# 10 dB; 2 dB for each of two resonators at a rank passed.
wdm_ring:ranks=4,wavelengths=2,launch_power=3dBm,sensitivity=-7dBm,through_loss=1dB,drop_loss=0.5dB
    | broadcast 1
    | copy 0 0>1 cw 0.0;copy 0 0>2 cw 0.1;copy 0 0>3 ccw 0.0 | 9.5 7.5 9.5
# A light tree: each rank that takes a share costs 3 dB.
wdm_ring:ranks=4,wavelengths=2,launch_power=3dBm,sensitivity=-7dBm,through_loss=0dB,split_loss=3dB,\
        multicast=drop_and_continue
    | broadcast 1
    | copy 0 0>1 cw 0.0;copy 0 0>2 cw 0.0;copy 0 0>3 cw 0.0 | 10 7 4
# Nodes that take no part count: three links, of which each loses 1 dB.
wdm_ring:ranks=6,wavelengths=1,members=0+3,launch_power=0dBm,sensitivity=-9dBm,through_loss=0.5dB,\
        link_loss=1dB
    | broadcast 1 | copy 0 0>1 cw 0.0 | 5
passive_star:ranks=10,wavelengths=2,launch_power=0dBm,sensitivity=-12dBm,excess_loss=0.5dB
    | broadcast 1 | copy 0 0>1 0;copy 0 0>9 0 | 1.5 1.5
circuit_switch:ranks=4,launch_power=0dBm,sensitivity=-6dBm,switch_loss=palomar,fixed_loss=2*0.75dB
    | broadcast 1 | copy 0 0>1 0.0 | 2.5
circuit_switch:ranks=4,packet_rate=1Gb/s,launch_power=0dBm,sensitivity=-6dBm
    | broadcast 1 | copy 0 0>1 packet;copy 0 0>2 0.0 | - 6
wss_grid:rows=1,columns=3,wavelengths=3,launch_power=0dBm,sensitivity=-10dBm,switch_loss=wss
    | broadcast 1 | copy 0 0>1 row.0 | 2
lightpath_grid:ranks=4,launch_power=0dBm,sensitivity=-20dBm,fixed_loss=80km*fibre_1550
    | broadcast 1 | copy 0 0>1 0.0 | 4
# 1 dB a link, 0.2 dB a kilometre, 2 dB at the vertex passed, 0.5 dB at the drop.
wdm_graph:ranks=3,links=0-1@10km+1-2@20km,wavelengths=2,launch_power=0dBm,sensitivity=-20dBm,\
        fibre_loss=0.2dB/km,link_loss=1dB,through_loss=2dB,drop_loss=0.5dB
    | broadcast 1 | copy 0 0>1 0.0 via 0;copy 0 0>2 0.1 via 0.2 | 16.5 9.5
# Rank 1 takes a share of light that goes on over three links: four outputs, two splits of 3 dB.
wdm_graph:ranks=5,links=0-1+1-2+1-3+1-4,wavelengths=1,multicast=drop_and_continue,\
        launch_power=3dBm,sensitivity=-7dBm,split_loss=3dB
    | broadcast 1
    | copy 0 0>1 0.0 via 0;copy 0 0>2 0.0 via 0.2;copy 0 0>3 0.0 via 0.4;copy 0 0>4 0.0 via 0.6
    | 10 4 4 4
# Amplifiers restore what the links lose.
wdm_mesh:dims=3,wavelengths=1,launch_power=0dBm,sensitivity=-20dBm,link_loss=30dB,fixed_loss=1dB,\
        noise_figure=5dB
    | broadcast 1 | copy 0 0>2 0.0 via 0.2 | 19
wdm_ring:ranks=4,wavelengths=2 | broadcast 1 | copy 0 0>1 cw 0.0 | -
";

#[test]
fn margins_are_what_remains_of_the_power() {
    for [fabric, collective, lightpaths, expected] in rows(MARGINS) {
        let lightpaths = lightpaths.replace(';', "\n");
        let plan = handwritten(fabric, collective, &format!("slot 0\n{lightpaths}"));
        let margins = plan.margins_in_slot(0);
        let listed = expected.split(' ').enumerate().filter(|one| one.1 != "-");
        let listed: Vec<(u64, String)> = listed
            .map(|(transfer, margin)| (transfer as u64, margin.to_owned()))
            .collect();
        let found = margins.iter().map(|one| {
            let margin = Decibels::from_millionths(one.margin);
            (one.transfer, margin.to_string())
        });
        assert_eq!(found.collect::<Vec<_>>(), listed, "{fabric}");
        let least = margins.iter().map(|one| one.margin).min();
        assert_eq!(plan.least_margin().map(|one| one.margin), least, "{fabric}");
    }
}

proptest! {
    #[test]
    fn light_arrives_after_the_longest_lightpath_and_not_after_a_longer_one(
        [power, fixed, link, through, drop] in prop::array::uniform5(0u32..400),
        resonators in 1u32..4,
    ) {
        let ring = format!(
            "wdm_ring:ranks=64,wavelengths=1,launch_power={power}dBm,sensitivity=0dBm,\
             fixed_loss={fixed}dB,link_loss={link}dB,through_loss={through}dB,drop_loss={drop}dB,\
             resonators={resonators}"
        );
        // Losses of a lightpath of `links` links, as docs/model.md states them.
        let arrives = |links: u32| {
            let lost = fixed + links * link + (links - 1) * resonators * through + drop;
            lost <= power
        };
        let Ok(fabric) = Fabric::parse(&ring) else {
            prop_assert!(!arrives(1));
            return Ok(());
        };
        let longest = fabric.downcast::<WdmRing>().unwrap().longest();
        prop_assert!(arrives(longest));
        prop_assert!(longest == 63 || !arrives(longest + 1));
    }
}

/// Names of GNPy's examples; OSNR of the transmitter and of adding and dropping, in dB; each
/// amplifier as power of a channel at its input in dBm and noise figure in dB; and the OSNR of ASE
/// in 0.1 nm at the receiver. All numbers are printed in GNPy's tests/invocation or stated in its
/// files of equipment (commit d65865b8).
const GNPY: &str = "
transmission_main_example | 40 | -17/6.62 | 33.29
openroadm-v5-Stockholm-Gothenburg | 35 33
    | -14.33/8 -14.32/11.42 -9/16 -24.8/8.01 -15.82/10.53 -11.53/13.53 | 21.84
transmission_main_example_long | 100 38
    | -20/6.58 -15.99/8.86 -15.99/9 -15.98/8.86 -15.98/9 -15.97/8.86 -20/6.58 -15.99/9 -15.99/8.86 \
    -15.98/9 -15.98/8.86 -15.97/9 -20/6.58 -15.99/8.86 -15.99/9 -20/6.58 -15.99/8.86 -15.99/9 \
    -15.98/8.86 | 19.69
";

#[test]
fn noise_adds_up_as_in_gnpy() {
    for [example, others, amplifiers, expected] in rows(GNPY) {
        let decibels = |text: &str| -> f64 { text.parse().unwrap() };
        let others = others
            .split(' ')
            .map(|osnr| Noise::from_osnr(decibels(osnr)));
        let amplifiers = amplifiers.split(' ').map(|amplifier| {
            let (input, noise_figure) = amplifier.split_once('/').unwrap();
            Noise::from_amplifier(decibels(input), decibels(noise_figure))
        });
        let all = others.chain(amplifiers).fold(Noise::NONE, Noise::plus);
        let expected: Decibels = expected.parse().unwrap();
        let apart = all.osnr().unwrap().millionths() - expected.millionths();
        assert!(
            apart.abs() <= 100_000,
            "{example}: {apart} millionths of a dB"
        );
    }
}

/// Networks of three ranks in a line, and the OSNR of light from the first to the last, in dB, by
/// hand. An ideal amplifier whose input has 0 dBm has an OSNR of 57.953 dB.
const RATIOS: &str = "
# Two links of 20 dB each, with a noise figure of 5 dB: 57.953 - 25 - 10 log10 2.
wdm_mesh:dims=3,link_loss=20dB,noise_figure=5dB | 29.943
# Each link has two spans of 10 dB: 57.953 - 15 - 10 log10 4.
wdm_graph:ranks=3,links=0-1@100km+1-2@100km,fibre_loss=0.2dB/km,noise_figure=5dB | 36.933
# Each link has five spans of 4 dB: 57.953 - 9 - 10 log10 10.
wdm_graph:ranks=3,links=0-1@100km+1-2@100km,fibre_loss=0.2dB/km,noise_figure=5dB,span=20km | 38.953
# The vertex between has the noise of a third amplifier: 57.953 - 25 - 10 log10 3.
wdm_mesh:dims=3,link_loss=20dB,through_loss=20dB,noise_figure=5dB | 28.182
wdm_mesh:dims=3,crosstalk=-30dB | 30
";

#[test]
fn amplifiers_and_crosstalk_limit_the_osnr() {
    for [options, expected] in rows(RATIOS) {
        let expected: f64 = expected.parse().unwrap();
        let fabric = |osnr: f64| {
            format!("{options},wavelengths=1,launch_power=0dBm,sensitivity=-9dBm,osnr={osnr:.3}dB")
        };
        let lightpath = "slot 0\ncopy 0 0>2 0.0 via 0.2";
        let plan = handwritten(&fabric(expected - 0.01), "broadcast 1", lightpath);
        let found = plan.margins_in_slot(0)[0].osnr.unwrap().as_f64();
        assert!((found - expected).abs() < 0.001, "{options}: {found}");
        let far = |plan: &Plan| {
            let violations = verify(plan);
            violations
                .iter()
                .any(|one| one.kind == ViolationKind::Reach)
        };
        assert!(!far(&plan), "{options}");
        let plan = handwritten(&fabric(expected + 0.01), "broadcast 1", lightpath);
        assert!(far(&plan), "{options}");
    }
}

/// Networks, and the longest lightpath that is received, by hand: 20 dB to lose.
const REACHES: &str = "
wdm_mesh:dims=40,link_loss=2dB | 10
wdm_mesh:dims=40,link_loss=1dB,through_loss=1dB | 10
wdm_mesh:dims=40,link_loss=1dB,through_loss=1dB,drop_loss=1.5dB | 9
wdm_mesh:dims=40,link_loss=1dB,reach=3 | 3
wdm_mesh:dims=40,through_loss=0.5dB,fixed_loss=2*connector | 38
# 57.953 - 25 dB for each link; 20 links are 13.01 dB below one link.
wdm_mesh:dims=40,link_loss=20dB,noise_figure=5dB,osnr=19.94dB | 20
wdm_mesh:dims=40,link_loss=20dB,noise_figure=5dB,osnr=19.95dB | 19
";

#[test]
fn reach_follows_from_loss_and_noise() {
    for [options, expected] in rows(REACHES) {
        let spec = format!("{options},wavelengths=1,launch_power=0dBm,sensitivity=-20dBm");
        let fabric = Fabric::parse(&spec).unwrap();
        let graph: &WdmGraph = fabric.downcast().unwrap();
        assert_eq!(graph.reach.unwrap().to_string(), expected, "{spec}");
        assert_eq!(
            Fabric::parse(&fabric.to_string()).unwrap(),
            fabric,
            "{spec}"
        );
    }
}

#[test]
fn crosstalk_adds_up_in_linear_units() {
    // 100 switches of -40 dB each: a hundredth of the power, 20 dB below the signal.
    let crosstalk = Noise::from_crosstalk(-40.0).times(100);
    assert_eq!(crosstalk.osnr().unwrap().to_string(), "20");
    assert_eq!(Noise::NONE.osnr(), None);
}
