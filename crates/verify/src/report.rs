//! Report of violations. A plan of millions of transfers may break a rule millions of times. After
//! the first [`MAX_LISTED`] violations of a kind, further ones are only counted.

use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Light;
use opticoll_plan::plan::Plan;

/// Maximum number of violations of one kind in the list.
const MAX_LISTED: u64 = 100_000;

/// Violations found so far, and the number of violations of each kind.
pub(super) struct Report {
    listed: Vec<Violation>,
    counts: [u64; ViolationKind::ALL.len()],
}

impl Default for Report {
    fn default() -> Report {
        Report {
            listed: Vec::new(),
            counts: [0; ViolationKind::ALL.len()],
        }
    }
}

impl Report {
    /// Counts a violation of `kind`. Builds and lists it unless the list of this kind is full.
    pub(super) fn add(&mut self, kind: ViolationKind, build: impl FnOnce() -> Violation) {
        if !self.is_full(kind) {
            self.listed.push(build());
        }
        self.count(kind, 1);
    }

    /// Reports that the verifier has no rules for the circuits of `family`.
    pub(super) fn unchecked(&mut self, family: &str) {
        self.add(ViolationKind::Unchecked, || {
            let sentence = format!("the verifier has no rules for circuits on {family}");
            Violation::new(ViolationKind::Unchecked, sentence)
        });
    }

    /// Counts `more` violations of `kind` without listing them.
    pub(super) fn count(&mut self, kind: ViolationKind, more: u64) {
        let counts = &mut self.counts[kind as usize];
        *counts = counts.saturating_add(more);
    }

    /// Returns the number of violations of each kind, indexed by kind.
    pub(super) fn counts(&self) -> [u64; ViolationKind::ALL.len()] {
        self.counts
    }

    /// Returns the kinds with more violations than in `before`, each with its number of new
    /// violations.
    pub(super) fn since(&self, before: &[u64]) -> Vec<(ViolationKind, u64)> {
        let more = |kind: ViolationKind| self.counts[kind as usize] - before[kind as usize];
        let kinds = ViolationKind::ALL.into_iter();
        kinds
            .map(|kind| (kind, more(kind)))
            .filter(|(_, more)| *more > 0)
            .collect()
    }

    /// Returns whether further violations of `kind` are only counted.
    pub(super) fn is_full(&self, kind: ViolationKind) -> bool {
        self.counts[kind as usize] >= MAX_LISTED
    }

    /// Returns all listed violations, and one more for each kind with unlisted violations.
    pub(super) fn finish(mut self) -> Vec<Violation> {
        for kind in ViolationKind::ALL {
            let counts = self.counts[kind as usize];
            if counts > MAX_LISTED {
                let more = counts - MAX_LISTED;
                let sentence = format!("and at least {more} more violations of the kind {kind}");
                self.listed.push(Violation::new(kind, sentence));
            }
        }
        self.listed
    }
}

/// Rule that is broken, and the end of the sentence about it.
pub(super) type Fault = (ViolationKind, String);

/// Function that checks each entry of a list of lights. It returns the indices of wrong lights, in
/// ascending order, with their faults.
pub(super) type WrongLight<'a> = Box<dyn Fn(&[Light]) -> Vec<(usize, Vec<Fault>)> + 'a>;

/// Number of lights between two checks for an interrupt.
const LIGHTS_PER_CHECK: usize = 1 << 12;

/// Returns a [`WrongLight`] that applies `wrong` to each light.
pub(super) fn each<'a>(wrong: impl Fn(Light) -> Vec<Fault> + 'a) -> WrongLight<'a> {
    Box::new(move |lights| {
        let mut wrong_lights = Vec::new();
        for (block, lights) in lights.chunks(LIGHTS_PER_CHECK).enumerate() {
            interrupt::check();
            for (index, &light) in lights.iter().enumerate() {
                let faults = wrong(light);
                if !faults.is_empty() {
                    wrong_lights.push((block * LIGHTS_PER_CHECK + index, faults));
                }
            }
        }
        wrong_lights
    })
}

/// Returns the range of the numbers below `count` in words, such as `0 to 7`.
pub(super) fn up_to(count: u32) -> String {
    match count {
        0 => "none".into(),
        1 => "only 0".into(),
        _ => format!("0 to {}", count - 1),
    }
}

/// Returns the name of a transfer in sentences, such as `17 (rank 0 to 4)`. On a graph of fibres
/// whose sites have names, the name is `17 (rank 0 to 4, Bern to Wien)`.
pub(super) fn named(plan: &Plan, transfer: usize) -> String {
    let (source, destination) = plan.schedule.ends(transfer);
    let fibres = plan.fabric.circuits();
    let fibres = fibres.and_then(|circuits| circuits.fibre_links());
    let fibres = fibres.filter(|network| source.max(destination) < network.ranks());
    let sites = fibres.map(|network| [source, destination].map(|rank| network.vertex_name(rank)));
    let sites = sites.filter(|sites| !sites[0].starts_with("rank "));
    let sites = sites.map_or(String::new(), |sites| format!(", {}", sites.join(" to ")));
    format!("{transfer} (rank {source} to {destination}{sites})")
}

/// Returns a violation by one transfer. The sentence is the slot, the name of the transfer and
/// `problem`.
pub(super) fn transfer_violation(
    plan: &Plan,
    kind: ViolationKind,
    slot: u32,
    transfer: usize,
    problem: &str,
) -> Violation {
    let sentence = format!("slot {slot}: transfer {} {problem}", named(plan, transfer));
    Violation {
        transfers: vec![transfer],
        slot: Some(slot),
        ..Violation::new(kind, sentence)
    }
}

/// Returns a violation by two transfers. The sentence is the slot, the names of the transfers and
/// `problem`.
pub(super) fn pair_violation(
    plan: &Plan,
    kind: ViolationKind,
    slot: u32,
    [first, second]: [usize; 2],
    problem: &str,
) -> Violation {
    let names = [first, second].map(|transfer| named(plan, transfer));
    let sentence = format!("slot {slot}: transfers {} {problem}", names.join(" and "));
    Violation {
        transfers: vec![first, second],
        slot: Some(slot),
        ..Violation::new(kind, sentence)
    }
}

/// Returns `sentence` with new numbers: `transfer` converts numbers of transfers (as [`named`]
/// writes them), `chunk` converts numbers of chunks, and `rank` converts numbers of ranks.
pub(super) fn renumbered(
    sentence: &str,
    transfer: impl Fn(usize) -> String,
    chunk: impl Fn(u32) -> u64,
    rank: impl Fn(u32) -> u32,
) -> String {
    let words: Vec<&str> = sentence.split(' ').collect();
    let number = |(index, word): (usize, &str)| {
        let before = index.checked_sub(1).map(|before| words[before]);
        let after = words.get(index + 1).copied();
        let digits = word.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        let punctuation = &word[digits.len()..];
        if after == Some("(rank") {
            return word.parse().map_or_else(|_| word.into(), &transfer);
        }
        // The second rank of `17 (rank 0 to 4)`.
        let is_second = before == Some("to") && index >= 3 && words[index - 3] == "(rank";
        match (before, digits.parse()) {
            (Some("chunk"), Ok(number)) => format!("{}{punctuation}", chunk(number)),
            (Some("rank" | "(rank"), Ok(number)) => format!("{}{punctuation}", rank(number)),
            (_, Ok(number)) if is_second => format!("{}{punctuation}", rank(number)),
            _ => word.into(),
        }
    };
    let numbered: Vec<String> = words.iter().copied().enumerate().map(number).collect();
    numbered.join(" ")
}

/// Returns a number with its noun, such as `1 thing` or `2 things`.
pub(super) fn counted(count: u64, thing: &str) -> String {
    if count == 1 {
        format!("1 {thing}")
    } else {
        format!("{count} {thing}s")
    }
}
