//! Comparison of rates with the definition of max-min fairness, after each of many random changes.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Shares;

struct TestClass {
    class: u32,
    route: Vec<u32>,
    cap: f64,
    weight: f64,
}

/// Computes the levels by progressive filling: all levels rise together, and a full link (or a cap)
/// stops the levels of its classes.
fn filled(capacities: &[f64], classes: &[TestClass]) -> Vec<f64> {
    let mut levels = vec![f64::INFINITY; classes.len()];
    loop {
        // Lowest level at which a full link, or a cap, stops some of the rising levels.
        let mut lowest = (f64::INFINITY, None);
        for (link, &capacity) in (0u32..).zip(capacities) {
            let (mut stopped, mut rising) = (0.0, 0.0);
            for (class, level) in classes.iter().zip(&levels) {
                let times = class.route.iter().filter(|&&on| on == link).count() as f64;
                if level.is_finite() {
                    stopped += times * class.weight * level;
                } else {
                    rising += times * class.weight;
                }
            }
            if rising > 0.0 && (capacity - stopped) / rising < lowest.0 {
                lowest = ((capacity - stopped) / rising, Some(link));
            }
        }
        let mut capped = None;
        for (index, (class, level)) in classes.iter().zip(&levels).enumerate() {
            if level.is_infinite() && class.cap / class.weight < lowest.0 {
                lowest = (class.cap / class.weight, None);
                capped = Some(index);
            }
        }
        if let Some(index) = capped {
            levels[index] = lowest.0;
        } else if let Some(link) = lowest.1 {
            for (class, level) in classes.iter().zip(&mut levels) {
                if level.is_infinite() && class.route.contains(&link) {
                    *level = lowest.0;
                }
            }
        } else {
            return levels;
        }
    }
}

/// Checks the definition: no link exceeds its capacity, and each class has a full link on which no
/// class has a higher level.
fn check(shares: &Shares, capacities: &[f64], classes: &[TestClass], place: &str) {
    let near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other;
    let mut load = vec![0.0; capacities.len()];
    let mut highest = vec![0f64; capacities.len()];
    for class in classes {
        let level = shares.level(class.class);
        assert!(
            level * class.weight <= class.cap * (1.0 + 1e-9),
            "{place}: over its cap"
        );
        for &link in &class.route {
            load[link as usize] += level * class.weight;
            highest[link as usize] = highest[link as usize].max(level);
        }
    }
    for (load, &capacity) in load.iter().zip(capacities) {
        assert!(
            *load <= capacity * (1.0 + 1e-9),
            "{place}: {load} on {capacity}"
        );
    }
    for class in classes {
        let level = shares.level(class.class);
        let is_bottleneck = |link: &u32| {
            let link = *link as usize;
            near(load[link], capacities[link]) && highest[link] <= level * (1.0 + 1e-9)
        };
        let bounded =
            class.route.iter().any(is_bottleneck) || near(level * class.weight, class.cap);
        assert!(bounded, "{place}: a class at {level} on {:?}", class.route);
        if let Some(link) = shares.bottleneck(class.class) {
            assert!(is_bottleneck(&link), "{place}: {link} is no bottleneck");
        }
    }
    for (class, level) in classes.iter().zip(filled(capacities, classes)) {
        let got = shares.level(class.class);
        assert!(near(got, level), "{place}: {got}, {level} by filling");
    }
}

#[test]
fn rates_are_max_min_fair_after_every_change() {
    for seed in 0..400 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let links = random.random_range(1..12);
        // Few distinct capacities and weights, so that levels are often equal.
        let even = seed % 2 == 0;
        let capacities: Vec<f64> = (0..links)
            .map(|_| f64::from(random.random_range(1..4u32)) * 0.0125)
            .collect();
        let mut shares = Shares::new(capacities.iter().copied());
        let (mut classes, mut changed): (Vec<TestClass>, Vec<u32>) = (Vec::new(), Vec::new());
        for change in 0..60 {
            for _ in 0..random.random_range(1..4) {
                let weight = match even {
                    true => f64::from(random.random_range(1..3u32)),
                    false => random.random_range(0.1..3.0),
                };
                let choice = random.random_range(0..4);
                if choice < 2 || classes.is_empty() {
                    let mut route: Vec<u32> = (0..links)
                        .filter(|_| random.random_range(0..3) == 0)
                        .collect();
                    if route.is_empty() {
                        route.push(random.random_range(0..links));
                    }
                    let cap = match random.random_range(0..4) {
                        0 => random.random_range(0.001..0.03),
                        _ => f64::INFINITY,
                    };
                    // A link that occurs several times on a route equals a weight that counts
                    // several times.
                    let times: Vec<f64> = match seed % 4 {
                        2 | 3 => route
                            .iter()
                            .map(|_| random.random_range(1..5).into())
                            .collect(),
                        _ => Vec::new(),
                    };
                    let class = shares.add_class(&route, &times, cap);
                    let again = |(&link, &times): (&u32, &f64)| vec![link; times as usize - 1];
                    let more: Vec<u32> = route.iter().zip(&times).flat_map(again).collect();
                    route.extend(more);
                    shares.set_weight(class, weight);
                    classes.push(TestClass {
                        class,
                        route,
                        cap,
                        weight,
                    });
                } else {
                    let at = random.random_range(0..classes.len());
                    if choice == 2 {
                        shares.set_weight(classes[at].class, weight);
                        classes[at].weight = weight;
                    } else {
                        let removed = classes.swap_remove(at);
                        shares.set_weight(removed.class, 0.0);
                        shares.remove_class(removed.class);
                    }
                }
            }
            let before: Vec<f64> = classes
                .iter()
                .map(|class| shares.level(class.class))
                .collect();
            changed.clear();
            shares.settle(&mut changed);
            check(
                &shares,
                &capacities,
                &classes,
                &format!("seed {seed}, change {change}"),
            );
            for (class, before) in classes.iter().zip(before) {
                let moved = shares.level(class.class) != before;
                assert!(
                    !moved || changed.contains(&class.class),
                    "a change was not told"
                );
            }
        }
    }
}

#[test]
fn changes_of_a_link_that_bounds_nothing_are_not_counted_on() {
    // The fast link's only class is limited by the slow link, which other classes enter and leave.
    let mut shares = Shares::new([2.0, 1.0].into_iter());
    let (class, other) = (
        shares.add_class(&[0, 1], &[], f64::INFINITY),
        shares.add_class(&[1], &[], f64::INFINITY),
    );
    shares.set_weight(class, 1.0);
    for _ in 0..40_000 {
        for weight in [1.0, 0.0] {
            shares.set_weight(other, weight);
            shares.settle(&mut Vec::new());
        }
    }
    assert_eq!(shares.level(class), 1.0);
}

#[test]
fn weights_of_any_size_leave_no_link_over_its_capacity() {
    for seed in 0..200 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let capacities: Vec<f64> = (0..30)
            .map(|_| f64::from(random.random_range(1..4u32)) * 0.0125)
            .collect();
        let mut shares = Shares::new(capacities.iter().copied());
        let mut classes: Vec<(u32, Vec<u32>, f64)> = Vec::new();
        for change in 0..40 {
            for _ in 0..random.random_range(1..30) {
                if random.random_range(0..3) > 0 || classes.is_empty() {
                    let mut route: Vec<u32> =
                        (0..30).filter(|_| random.random_range(0..6) == 0).collect();
                    route.push(random.random_range(0..30));
                    let weight = f64::powf(10.0, random.random_range(-12.0..12.0));
                    let class = shares.add_class(&route, &[], f64::INFINITY);
                    shares.set_weight(class, weight);
                    classes.push((class, route, weight));
                } else {
                    let at = random.random_range(0..classes.len());
                    let (class, ..) = classes.swap_remove(at);
                    shares.set_weight(class, 0.0);
                    shares.remove_class(class);
                }
            }
            shares.settle(&mut Vec::new());
            let mut load = vec![0.0; capacities.len()];
            for (class, route, weight) in &classes {
                let level = shares.level(*class);
                assert!(level > 0.0, "seed {seed}, change {change}: {level}");
                for &link in route {
                    load[link as usize] += level * weight;
                }
            }
            for (load, capacity) in load.iter().zip(&capacities) {
                let fits = *load <= capacity * (1.0 + 1e-9);
                assert!(fits, "seed {seed}, change {change}: {load} on {capacity}");
            }
        }
    }
}

#[test]
fn equal_hosts_fill_their_trunk_without_a_loss() {
    // Summed one by one, the rates of the hosts differ slightly from the rate of the trunk.
    for hosts in [10_000, 65_536] {
        let capacities = (0..hosts)
            .map(|_| 0.0125)
            .chain([f64::from(hosts) * 0.0125]);
        let mut shares = Shares::new(capacities);
        let classes: Vec<u32> = (0..hosts)
            .map(|host| {
                let class = shares.add_class(&[host, hosts], &[], f64::INFINITY);
                shares.set_weight(class, 1.0);
                class
            })
            .collect();
        shares.settle(&mut Vec::new());
        let even = |&class: &u32| (shares.level(class) - 0.0125).abs() <= 0.0125e-12;
        assert!(classes.iter().all(even));
    }
}
