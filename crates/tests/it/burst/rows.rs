//! The 2 x 5 ladder with ten hosts at each node: the rows of an independent simulation, and what
//! must hold whatever the numbers are.

use opticoll::simulate::burst::BurstOutcome;

use super::{ladder, link, run, run_with, settings};

/// Checks that the loss agrees with the loss of an independent simulation, which is known to two
/// digits, within the errors of both.
fn check_row(wavelengths: u32, text: &str, expected: f64, tolerance: f64) {
    let outcome = run(&ladder(wavelengths), text);
    let half = (outcome.loss_high - outcome.loss_low) / 2.0;
    let error = (outcome.loss - expected).abs();
    assert!(
        error <= 2.0 * half + tolerance * expected && half < 0.2 * expected,
        "{wavelengths} wavelengths, {text}: {} (half width {half}) instead of {expected}",
        outcome.loss
    );
}

#[test]
fn the_paper_s_network_loses_nothing_with_whole_paths() {
    for text in [
        "",
        "length=exponential",
        "destinations=other_nodes",
        "converters=full",
    ] {
        let outcome = run(&ladder(28), &format!("bursts=1000000 {text}"));
        assert_eq!((outcome.lost, outcome.bursts), (0, 1_000_000), "{text}");
        assert!(outcome.loss_high < 3.7e-6 && outcome.loss_low == 0.0);
        // 10.91 Erlang of 28 on the busiest link; other hosts get 99/90 of it where none is near.
        let busiest = outcome.links.iter().map(|link| link.utilisation);
        let expected = match text {
            "destinations=other_nodes" => 12.0,
            _ => 10.91,
        };
        let erlang = 28.0 * busiest.fold(0.0, f64::max);
        assert!((erlang / expected - 1.0).abs() < 0.02, "{text}: {erlang}");
    }
}

#[test]
fn fewer_wavelengths_lose_as_in_another_simulation() {
    check_row(18, "bursts=1000000", 2.2e-3, 0.05);
    check_row(20, "bursts=4000000", 2.1e-4, 0.05);
    check_row(20, "bursts=4000000 converters=full", 8.5e-5, 0.05);
}

#[test]
fn one_way_signalling_loses_as_in_another_simulation() {
    let one_way = |assignment| format!("signalling=jet bursts=500000 assignment={assignment}");
    check_row(28, &one_way("random"), 1.28e-1, 0.01);
    check_row(28, &one_way("first_fit"), 3.2e-1, 0.02);
    check_row(28, &one_way("source_offset"), 1.9e-1, 0.04);
    // It goes on learning: 1.0 to 1.3e-2 there.
    let learnt = format!("{} warm_up=3e6 replications=1", one_way("pwa"));
    check_row(28, &learnt, 1.15e-2, 0.13);
    // Of its first bursts many more are lost: 2.25e-2 of those from 1e5 to 3e5, where another
    // simulation counts tries as we do.
    let learning = "signalling=jet assignment=pwa warm_up=1e5 replications=8 bursts=1600000";
    check_row(28, learning, 2.25e-2, 0.12);
}

#[test]
fn one_receiver_per_host_loses_almost_half() {
    check_row(28, "receivers=1 bursts=500000", 4.7e-1, 0.01);
}

/// Without processing, bursts come to a link in the order of their control messages.
#[test]
fn signalling_without_delay_is_one_and_the_same() {
    for text in [
        "assignment=random",
        "assignment=pwa",
        "converters=3",
        "assignment=lauc_vf",
    ] {
        let of = |signalling| {
            run(
                &ladder(20),
                &format!("bursts=50000 signalling={signalling} {text}"),
            )
        };
        assert_eq!(of("jet"), of("jit"), "{text}");
    }
    // On one link, two-way signalling knows no more than one-way signalling.
    for text in [
        "",
        "converters=full",
        "converters=2",
        "routing=least_loaded",
    ] {
        let of = |signalling: &str| {
            let common = "source=poisson offered_load=20 bursts=50000";
            let outcome = run(
                &link(1, 28),
                &format!("{common} signalling={signalling} {text}"),
            );
            (outcome.lost, outcome.moments)
        };
        assert_eq!(of("two_way"), of("jet"), "{text}");
    }
}

#[test]
fn horizon_and_void_filling_are_one_where_no_void_can_be_used() {
    let of = |assignment| {
        let text = format!("bursts=50000 signalling=jet switching=1ms assignment={assignment}");
        run(&ladder(16), &text)
    };
    assert_eq!(of("horizon"), of("lauc_vf"));
    // Where control takes its time, bursts with a short way come in between.
    let of = |assignment| {
        let text = format!(
            "bursts=100000 signalling=jet processing=20ms converters=full source=poisson \
             length=exponential \
             assignment={assignment}"
        );
        run(&ladder(16), &text).lost
    };
    let (horizon, filling) = (of("horizon"), of("lauc_vf"));
    assert!(filling < horizon, "{filling} lost, {horizon}");
}

#[test]
fn converters_wavelengths_and_other_routes_save_bursts() {
    let lost = |wavelengths, text: &str| {
        let common = "source=poisson offered_load=0.9 bursts=200000";
        run(&ladder(wavelengths), &format!("{common} {text}")).lost
    };
    for signalling in ["two_way", "jet"] {
        let of = |converters| {
            lost(
                16,
                &format!("signalling={signalling} converters={converters}"),
            )
        };
        let (none, few, full) = (of("none"), of("2"), of("full"));
        assert!(
            none > few && few > full && full > 0,
            "{none}, {few}, {full}"
        );
        assert_eq!(of("1000"), of("1001"), "enough is enough");
    }
    let (fixed, other) = (lost(20, ""), lost(20, "routing=least_loaded"));
    assert!(other < fixed / 2, "{other} lost, {fixed} on fixed routes");
    assert_eq!(
        lost(200, "signalling=jet assignment=random converters=full"),
        0
    );
}

#[test]
fn what_is_counted_adds_up() {
    for text in [
        "signalling=jet assignment=random processing=1ms",
        "signalling=jit processing=10ms converters=2 receivers=3",
        "signalling=two_way assignment=pwa source=poisson switching=5ms",
        "source=on_off receivers=1",
        "signalling=jet assembly=packets:packet=25MB,size=100MB,time_out=2s",
    ] {
        let mut wanted = settings(&format!("bursts=20000 replications=1 warm_up=0 {text}"));
        wanted.record = true;
        let outcome = run_with(&ladder(12), &wanted);
        check_sums(&outcome, text);
        check_no_overlap(&outcome, text);
    }
}

fn check_sums(outcome: &BurstOutcome, text: &str) {
    let sum = |shares: &mut dyn Iterator<Item = (u64, u64)>| {
        shares.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let total = (outcome.bursts, outcome.lost);
    assert!(outcome.lost > 0 && outcome.bursts == 20_000, "{text}");
    assert_eq!(
        sum(&mut outcome.by_hops.iter().map(|one| (one.offered, one.lost))),
        total,
        "{text}"
    );
    assert_eq!(
        sum(&mut outcome.by_pair.iter().map(|one| (one.offered, one.lost))),
        total,
        "{text}"
    );
    assert_eq!(
        sum(&mut outcome.moments.iter().map(|one| (one.offered, one.lost))),
        total
    );
    let causes = outcome.lost_at_links + outcome.lost_at_converters + outcome.lost_at_receivers;
    assert_eq!(causes, outcome.lost, "{text}");
    let ended = |arrived| {
        let records = outcome.records.iter();
        records.filter(|one| one.arrived == Some(arrived)).count() as u64
    };
    assert_eq!((ended(true) + ended(false), ended(false)), total, "{text}");
    // Every picosecond that a link was held belongs to a burst.
    let held: u64 = outcome
        .records
        .iter()
        .flat_map(|record| &record.reservations)
        .map(|taken| taken.until.ps() - taken.from.ps())
        .sum();
    let counted: f64 = outcome.links.iter().map(|link| link.utilisation).sum();
    let whole = outcome.simulated_seconds * 12.0;
    assert!(
        (counted * whole / (held as f64 / 1e12) - 1.0).abs() < 1e-9,
        "{text}"
    );
    for record in &outcome.records {
        if record.arrived == Some(true) {
            let links: Vec<u32> = record.reservations.iter().map(|taken| taken.link).collect();
            assert_eq!(links, record.route, "{text}");
        }
    }
}

fn check_no_overlap(outcome: &BurstOutcome, text: &str) {
    let mut held: Vec<(u32, u32, u64, u64)> = outcome
        .records
        .iter()
        .flat_map(|record| &record.reservations)
        .map(|one| (one.link, one.wavelength, one.from.ps(), one.until.ps()))
        .collect();
    held.sort_unstable();
    assert!(held.len() > 10_000, "{text}");
    for pair in held.windows(2) {
        let same = (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
        assert!(!same || pair[0].3 <= pair[1].2, "{text}: {pair:?}");
    }
}
