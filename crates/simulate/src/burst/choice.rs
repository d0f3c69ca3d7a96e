//! Wavelength assignment by the rules of [`WavelengthChoice`].

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::channels::{ChannelGroups, Span};
use super::settings::WavelengthChoice;

/// Assignment of wavelengths by a rule, and the success rates that the rule `pwa` learns.
pub(super) struct Chooser {
    assignment: WavelengthChoice,
    wavelengths: u32,
    nodes: u32,
    /// Number of successes and number of tries, indexed by `wavelengths * pair + wavelength`. The
    /// list is empty unless the rule is `pwa`.
    scores: Vec<Score>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Score {
    successes: u32,
    tries: u32,
}

impl Score {
    /// Returns whether (successes + 1) / (tries + 2) is greater for this score than for `other`.
    fn beats(self, other: Score) -> bool {
        let product = |score: Score, other: Score| {
            (u64::from(score.successes) + 1) * (u64::from(other.tries) + 2)
        };
        product(self, other) > product(other, self)
    }

    fn add(&mut self, success: bool) {
        if self.tries == u32::MAX {
            self.successes /= 2;
            self.tries /= 2;
        }
        self.tries += 1;
        self.successes += u32::from(success);
    }
}

impl Chooser {
    pub(super) fn new(assignment: WavelengthChoice, wavelengths: u32, nodes: u32) -> Chooser {
        let scores = match assignment {
            WavelengthChoice::Pwa => (nodes * nodes) as usize * wavelengths as usize,
            _ => 0,
        };
        Chooser {
            assignment,
            wavelengths,
            nodes,
            scores: vec![Score::default(); scores],
            free: Vec::new(),
        }
    }

    /// Returns the wavelength for a burst from one node to another, or `None` if no wavelength is
    /// free in all `spans`. `pair` is source * nodes + destination.
    #[inline]
    pub(super) fn choose(
        &mut self,
        channels: &ChannelGroups,
        spans: &[Span],
        pair: u32,
        random: &mut Pcg64Mcg,
    ) -> Option<u32> {
        let free = |wavelength: u32| spans.iter().all(|span| channels.is_free(span, wavelength));
        match self.assignment {
            WavelengthChoice::FirstFit => {
                (0..self.wavelengths).find(|wavelength| free(*wavelength))
            }
            WavelengthChoice::SourceOffset => {
                let first = self.wavelengths * (pair / self.nodes) / self.nodes;
                (first..self.wavelengths)
                    .chain(0..first)
                    .find(|wavelength| free(*wavelength))
            }
            WavelengthChoice::Random => {
                self.free.clear();
                let candidates = (0..self.wavelengths).filter(|wavelength| free(*wavelength));
                self.free.extend(candidates);
                match self.free.len() {
                    0 => None,
                    count => Some(self.free[random.random_range(0..count)]),
                }
            }
            WavelengthChoice::Horizon => latest(self.wavelengths, |wavelength| {
                let ends = spans
                    .iter()
                    .map(|span| (span, channels.horizon(span.group, wavelength)));
                let mut sum = 0;
                for (span, end) in ends {
                    if end > span.from {
                        return None;
                    }
                    sum += u128::from(end);
                }
                Some(sum)
            }),
            WavelengthChoice::LaucVf => latest(self.wavelengths, |wavelength| {
                let end = |span| u128::from(channels.end_before(span, wavelength));
                free(wavelength).then(|| spans.iter().map(end).sum())
            }),
            WavelengthChoice::Pwa => {
                let scores = &self.scores[self.wavelengths as usize * pair as usize..];
                let mut best: Option<u32> = None;
                for wavelength in (0..self.wavelengths).filter(|wavelength| free(*wavelength)) {
                    let score = scores[wavelength as usize];
                    if best.is_none_or(|best| score.beats(scores[best as usize])) {
                        best = Some(wavelength);
                    }
                }
                best
            }
        }
    }

    /// Records whether a burst of a pair of nodes succeeded on the wavelength.
    #[inline]
    pub(super) fn learn(&mut self, pair: u32, wavelength: u32, success: bool) {
        if self.assignment == WavelengthChoice::Pwa {
            self.scores[(self.wavelengths * pair + wavelength) as usize].add(success);
        }
    }

    /// Records a setup over the whole route: `chosen` succeeded, and all wavelengths that the rule
    /// prefers to `chosen` failed. If `chosen` is `None`, all wavelengths failed.
    #[inline]
    pub(super) fn learn_route(&mut self, pair: u32, chosen: Option<u32>) {
        if self.assignment != WavelengthChoice::Pwa {
            return;
        }
        let first = (self.wavelengths * pair) as usize;
        let scores = &mut self.scores[first..first + self.wavelengths as usize];
        let taken = chosen.map(|wavelength| (wavelength, scores[wavelength as usize]));
        for (wavelength, score) in (0..).zip(scores.iter_mut()) {
            let tried = taken.is_none_or(|(chosen, taken)| {
                score.beats(taken) || (wavelength < chosen && !taken.beats(*score))
            });
            if tried {
                score.add(false);
            }
        }
        if let Some((wavelength, _)) = taken {
            scores[wavelength as usize].add(true);
        }
    }
}

/// Returns the wavelength with the latest `instant`; among equals, the lowest. Ignores wavelengths
/// whose `instant` is `None`.
fn latest(wavelengths: u32, instant: impl Fn(u32) -> Option<u128>) -> Option<u32> {
    let mut best: Option<(u128, u32)> = None;
    for wavelength in 0..wavelengths {
        if let Some(instant) = instant(wavelength) {
            if best.is_none_or(|(latest, _)| instant > latest) {
                best = Some((instant, wavelength));
            }
        }
    }
    best.map(|(_, wavelength)| wavelength)
}
