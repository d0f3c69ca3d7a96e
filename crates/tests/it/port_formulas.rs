//! The formulas of Matsuoka, Takizawa, Nakada, Koga and Takada (MPI Collective Communication over
//! OBS Grid) for ports of lightpaths, with sums and roundings corrected, in picoseconds.

use opticoll::collective::CollectiveKind;

/// 100 us, 8 ns a byte, 10 ms in all.
pub(crate) const A: u64 = 100_000_000;
pub(crate) const B: u64 = 8_000;
pub(crate) const G: u64 = 10_000_000_000;

fn log2_up(ranks: u64) -> u64 {
    (0..).find(|&bit| 1 << bit >= ranks).unwrap()
}

/// Returns the time of the transfers (ps) and the number of setups among `p` ranks with `k` ports,
/// for `n` bytes in all.
pub(crate) fn formula(kind: CollectiveKind, algorithm: &str, p: u64, k: u64, n: u64) -> (u64, u64) {
    let l = log2_up(p);
    let power = p.is_power_of_two();
    // Ranks in excess of a power of two, and the rounds of recursive doubling: two more for them.
    let core = if power { p } else { 1 << (l - 1) };
    let extra = p - core;
    let rounds = log2_up(core) + if power { 0 } else { 2 };
    // A rank that stands for another has that one and log2 P partners, the other one twice.
    let doubling = match power {
        false if k > log2_up(core) => 1,
        _ => rounds.div_ceil(k),
    };
    match (kind, algorithm) {
        (_, "linear") => ((p - 1) * (A + n * B), (p - 1).div_ceil(k)),
        (_, "binomial") => (l * (A + n * B), l.div_ceil(k)),
        (_, "ring") => {
            let once = (p - 1) * (A + n / p * B);
            let parts = match p {
                2 => 1,
                _ => 2 + p % 2,
            };
            match (k, p) {
                (1, 3..) => (parts * once, parts * (p - 1)),
                _ => (once, 1),
            }
        }
        (CollectiveKind::AllGather, "recursive_doubling") if power => {
            (l * A + (p - 1) * (n / p) * B, doubling)
        }
        (CollectiveKind::AllGather, "recursive_doubling") => {
            let exchanged: u64 = (0..log2_up(core))
                .map(|bit| (1 << bit) + extra.min(1 << bit))
                .sum();
            let blocks = 1 + exchanged + (p - 1);
            (rounds * A + blocks * (n / p) * B, doubling)
        }
        (CollectiveKind::Barrier, _) => (rounds * A, doubling),
        (_, "recursive_doubling") => (rounds * (A + n * B), doubling),
        other => panic!("{other:?} has no formula"),
    }
}
