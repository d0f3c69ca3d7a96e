//! Loss and noise of light on a graph of fibres.
//!
//! **Loss.** A lightpath over h links loses `fixed_loss` once, `link_loss` on each link,
//! `fibre_loss` on each kilometre of fibre, `through_loss` at each of the h - 1 vertices between
//! its ends, and `drop_loss` at its receiver. Where a light tree goes on over k links, or k - 1
//! links and a receiver, light passes ceil(log2 k) splitters of two outputs, each with the loss
//! `split_loss`. The losses of all kilometres are added and rounded up to a millionth of a decibel.
//!
//! **Noise.** With `noise_figure`, amplifiers restore the launch power. A link has spans of equal
//! length, at most `span` each, with an amplifier after each span; an amplifier also follows each
//! vertex and each splitter that light passes. Then power is lost only at the ends (`fixed_loss`,
//! `drop_loss`), and noise limits the length of lightpaths. With `crosstalk`, each vertex that
//! light passes adds light of other channels. The ratio of signal to noise adds up as stated in
//! [`noise`](crate::fabric::noise); it must be at least `osnr`.

use super::WdmGraph;
use crate::fabric::FabricError;
use crate::fabric::loss::{
    Decibels, FIXED, LossBudget, LossOption, LossOptions, PassedLoss, Place, with_unit,
};
use crate::fabric::noise::Noise;
use crate::fabric::options::Options;
use crate::network::Network;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Length;
use rustc_hash::{FxHashMap, FxHashSet};

/// Sources of noise, and the ratio of signal to noise that receivers need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseBudget {
    /// Noise figure of amplifiers in dB; `None` if there are no amplifiers.
    pub noise_figure: Option<Decibels>,
    /// Maximum length of fibre between amplifiers, in metres.
    pub span: u64,
    /// Crosstalk at each vertex that light passes, relative to the signal in dB; `None` if there is
    /// none.
    pub crosstalk: Option<Decibels>,
    /// Minimum ratio of signal to noise in a band of 0.1 nm, in dB; `None` for any.
    pub osnr: Option<Decibels>,
}

/// Default of the option `span`, in metres, the length of the spans of GNPy's examples.
const SPAN: u64 = 80_000;

const fn loss(place: Place, name: &'static str, meaning: &'static str) -> LossOption {
    LossOption {
        place,
        name,
        meaning,
        is_required: false,
    }
}

const fn ratio(name: &'static str, meaning: &'static str) -> OptionRecord {
    let record = OptionRecord::new(name, meaning).unit("dB");
    record.default("none")
}

const OPTIONS: LossOptions = LossOptions {
    example: "launch_power=5dBm,sensitivity=-20dBm,link_loss=2dB",
    launch_power: "power of a wavelength; with sensitivity and losses it limits the reach",
    losses: &[
        loss(
            Place::Link,
            "link_loss",
            "loss of each link: connectors, splices",
        ),
        loss(
            Place::Fibre,
            "fibre_loss",
            "loss of fibres; all links need a length",
        ),
        loss(
            Place::Through,
            "through_loss",
            "loss at each rank or switch that light passes",
        ),
        loss(Place::Drop, "drop_loss", "loss where light is received"),
        loss(
            Place::Split,
            "split_loss",
            "loss at each division of a light tree into two",
        ),
        FIXED,
    ],
    others: &[
        ratio(
            "noise_figure",
            "noise figure of amplifiers, which restore the launch power after each span, vertex \
             and splitter",
        )
        .range("0dB or more"),
        OptionRecord::new("span", "maximum length of fibre between amplifiers")
            .unit("m")
            .range("1m or more")
            .default("80km"),
        ratio(
            "crosstalk",
            "crosstalk at each rank or switch that light passes, relative to the signal",
        )
        .range("0dB or less, such as -40dB"),
        ratio(
            "osnr",
            "minimum ratio of signal to noise at a receiver, in a band of 0.1 nm",
        )
        .range("0dB or more"),
    ],
};

type Budgets = (Option<LossBudget>, Option<NoiseBudget>);

/// Declares the options of loss and noise. `links` is the network of fibres.
pub(super) fn declared(
    options: &mut Options<'_, WdmGraph>,
    links: Option<&dyn Network>,
) -> Result<Budgets, FabricError> {
    OPTIONS.declared(
        options,
        |spec, budget| {
            let noise = read_noise(spec)?;
            let Some(budget) = budget else {
                return Ok(noise);
            };
            let per_km = budget.losses[Place::Fibre as usize];
            let lengths = || links.into_iter().flat_map(lengths);
            if per_km > Decibels::ZERO && lengths().any(|length| length.is_none()) {
                let problem = "needs the length of every link, such as links=0-1@80km";
                return Err(spec.refuse("fibre_loss", problem).into());
            }
            match links.and_then(|links| dark(budget, noise.as_ref(), links)) {
                Some(Weak { option, reason, .. }) => Err(spec.refuse(option, reason).into()),
                None => Ok(noise),
            }
        },
        |spec, noise| match noise {
            Some(noise) => print_noise(spec, noise),
            None => spec,
        },
        |graph| (graph.budget, graph.noise),
    )
}

fn read_noise(spec: &Spec) -> Result<Option<NoiseBudget>, FabricError> {
    let names = OPTIONS.others.iter().map(|option| option.name);
    if names.clone().all(|name| spec.option(name).is_none()) {
        return Ok(None);
    }
    let ratio = |key: &'static str, is_negative: bool| match spec.option(key) {
        None => Ok(None),
        Some(text) => match with_unit(text, "dB") {
            Ok(ratio) if is_negative && ratio > Decibels::ZERO => {
                Err(spec.refuse(key, "must be 0dB or less, such as -40dB"))
            }
            Ok(ratio) if !is_negative && ratio < Decibels::ZERO => {
                Err(spec.refuse(key, "must not be negative"))
            }
            Ok(ratio) => Ok(Some(ratio)),
            Err(problem) => Err(spec.refuse(key, problem)),
        },
    };
    let noise = NoiseBudget {
        noise_figure: ratio("noise_figure", false)?,
        span: spec
            .value::<Length>("span")?
            .map_or(SPAN, |span| span.metres()),
        crosstalk: ratio("crosstalk", true)?,
        osnr: ratio("osnr", false)?,
    };
    if noise.span == 0 {
        return Err(spec.refuse("span", "must be at least 1m").into());
    }
    if noise.osnr.is_some() && noise.noise_figure.is_none() && noise.crosstalk.is_none() {
        let problem = "has no effect without noise: give noise_figure or crosstalk, too";
        return Err(spec.refuse("osnr", problem).into());
    }
    if noise.noise_figure.is_none() && spec.option("span").is_some() {
        return Err(spec.refuse("span", "needs noise_figure=...").into());
    }
    Ok(Some(noise))
}

fn print_noise(spec: Spec, noise: &NoiseBudget) -> Spec {
    let ratio = |spec: Spec, key: &str, ratio: Option<Decibels>| match ratio {
        Some(ratio) => spec.with(key, format!("{ratio}dB")),
        None => spec,
    };
    let spec = ratio(spec, "noise_figure", noise.noise_figure);
    let spec = match noise.span {
        SPAN => spec,
        span if span % 1000 == 0 => spec.with("span", format!("{}km", span / 1000)),
        span => spec.with("span", format!("{span}m")),
    };
    let spec = ratio(spec, "crosstalk", noise.crosstalk);
    ratio(spec, "osnr", noise.osnr)
}

/// Returns the length of each link in metres, if it is known.
pub(super) fn lengths(links: &dyn Network) -> impl Iterator<Item = Option<u64>> {
    let count = links.links().len() as u32;
    (0..count).map(|link| links.length(link).map(|length| length.metres()))
}

/// Links, length in metres, and splitters between a sender and a receiver.
#[derive(Debug, Clone, Copy)]
struct Passed {
    links: u64,
    metres: u64,
    splits: u32,
}

/// Light that is not received.
struct Weak {
    /// Power or signal-to-noise ratio that is lacking.
    lacking: Decibels,
    /// Option that demands it.
    option: &'static str,
    /// End of a sentence about the light.
    reason: String,
}

impl Weak {
    /// Returns why light with these losses and this noise is not received; `None` if it is.
    fn of(
        budget: &LossBudget,
        noise: Option<&NoiseBudget>,
        passed: Passed,
        on_route: impl FnOnce(&NoiseBudget) -> Noise,
    ) -> Option<Weak> {
        let margin = budget.margin(&losses(budget, noise, passed));
        if margin < 0 {
            let lacking = Decibels::from_millionths(-margin);
            return Some(Weak {
                lacking,
                option: "sensitivity",
                reason: format!("arrives {lacking}dB below the sensitivity"),
            });
        }
        let noise = noise?;
        let least = noise.osnr?;
        let osnr = on_route(noise).osnr()?;
        (osnr < least).then(|| Weak {
            lacking: Decibels::from_millionths(least.millionths() - osnr.millionths()),
            option: "osnr",
            reason: format!("has an OSNR of {osnr}dB, but {least}dB are needed"),
        })
    }
}

/// Returns why light reaches the end of no link, for the link that lacks least.
fn dark(budget: &LossBudget, noise: Option<&NoiseBudget>, links: &dyn Network) -> Option<Weak> {
    let mut best: Option<(u32, Weak)> = None;
    for (link, metres) in (0..).zip(lengths(links)) {
        let passed = Passed {
            links: 1,
            metres: metres.unwrap_or(0),
            splits: 0,
        };
        let on_link = |noise: &NoiseBudget| noise.link_noise(budget, passed.metres);
        let weak = Weak::of(budget, noise, passed, on_link)?;
        if best
            .as_ref()
            .is_none_or(|(_, least)| weak.lacking < least.lacking)
        {
            best = Some((link, weak));
        }
    }
    let (link, weak) = best?;
    let length = links.length(link).map(|length| format!(", {length}"));
    let name = format!("{}{}", links.link_name(link), length.unwrap_or_default());
    let reason = format!(
        "light reaches the end of no link: on the best, {name}, it {}",
        weak.reason
    );
    // Only power can be restored.
    let help = match weak.option {
        "sensitivity" => "; amplifiers (noise_figure) restore the launch power",
        _ => "",
    };
    Some(Weak {
        reason: reason + help,
        ..weak
    })
}

/// Returns the losses of light on its way.
fn losses(budget: &LossBudget, noise: Option<&NoiseBudget>, passed: Passed) -> Vec<PassedLoss> {
    let mut losses = ends(budget);
    if noise.is_some_and(|noise| noise.noise_figure.is_some()) {
        return losses;
    }
    let per_km = i128::from(budget.losses[Place::Fibre as usize].millionths());
    let fibre = (per_km * i128::from(passed.metres) + 999) / 1000;
    let between = [
        budget.at(Place::Link, "link", passed.links),
        PassedLoss {
            what: "fibre",
            count: 1,
            loss: Decibels::from_millionths(i64::try_from(fibre).unwrap_or(i64::MAX)),
        },
        budget.at(
            Place::Through,
            "vertex passed",
            passed.links.saturating_sub(1),
        ),
        budget.at(Place::Split, "split", passed.splits.into()),
    ];
    losses.splice(1..1, between);
    losses
}

/// Returns an upper bound on the number of links of a lightpath that is received. The bound is
/// exact, except for rounding, if all links have the same length.
pub(super) fn farthest(
    budget: &LossBudget,
    noise: Option<&NoiseBudget>,
    lengths: impl Iterator<Item = Option<u64>>,
) -> u32 {
    let lengths: Vec<u64> = lengths.map(|length| length.unwrap_or(0)).collect();
    let nearest = lengths.iter().copied().min().unwrap_or(0);
    let per_km = budget.losses[Place::Fibre as usize].millionths();
    let through = budget.losses[Place::Through as usize].millionths();
    let by_power = match noise.and_then(|noise| noise.noise_figure) {
        Some(_) => match budget.margin(&ends(budget)) {
            ..0 => 0,
            _ => u32::MAX,
        },
        None => {
            let fibre = i128::from(per_km) * i128::from(nearest) / 1000;
            budget.farthest(i64::try_from(fibre).unwrap_or(i64::MAX / 4), through)
        }
    };
    let Some((noise, osnr)) = noise.and_then(|noise| Some((noise, noise.osnr?))) else {
        return by_power;
    };
    let most = Noise::from_osnr(osnr.as_f64()).to_signal();
    // A longer link may have less noise, because more amplifiers divide its loss.
    let noise_of = |metres: u64| noise.link_noise(budget, metres).to_signal();
    let of_links = lengths.into_iter().map(noise_of);
    let link = of_links.fold(noise_of(nearest), f64::min);
    let vertex = noise.vertex_noise(budget).to_signal();
    // h * link + (h - 1) * vertex <= most, with room for rounding.
    let by_noise = (most * (1.0 + 1e-6) + vertex) / (link + vertex);
    match by_noise < f64::from(u32::MAX) {
        true => by_power.min(by_noise as u32),
        false => by_power,
    }
}

/// Returns the losses at the ends of a lightpath.
fn ends(budget: &LossBudget) -> Vec<PassedLoss> {
    vec![budget.fixed(), budget.at(Place::Drop, "drop", 1)]
}

impl NoiseBudget {
    fn amplifier(&self, budget: &LossBudget, loss: f64) -> Noise {
        match self.noise_figure {
            Some(noise_figure) => {
                let input = budget.launch_power.as_f64() - loss;
                Noise::from_amplifier(input, noise_figure.as_f64())
            }
            None => Noise::NONE,
        }
    }

    /// Returns the noise of the amplifiers of a link of `metres`.
    fn link_noise(&self, budget: &LossBudget, metres: u64) -> Noise {
        let loss = |place: Place| budget.losses[place as usize].as_f64();
        let lost = loss(Place::Link) + loss(Place::Fibre) * metres as f64 / 1000.0;
        let spans = self.spans(metres);
        self.amplifier(budget, lost / spans as f64).times(spans)
    }

    /// Returns the number of amplifiers of a fibre of `metres`. `is_passed` states whether light
    /// passes the vertex at the start of the fibre.
    pub(super) fn amplifiers(&self, budget: &LossBudget, metres: u64, is_passed: bool) -> u64 {
        if self.noise_figure.is_none() {
            return 0;
        }
        let vertex_has_loss = budget.losses[Place::Through as usize] != Decibels::ZERO;
        self.spans(metres) + u64::from(is_passed && vertex_has_loss)
    }

    fn spans(&self, metres: u64) -> u64 {
        metres.div_ceil(self.span).max(1)
    }

    /// Returns the noise of a vertex that light passes.
    fn vertex_noise(&self, budget: &LossBudget) -> Noise {
        let crosstalk = self.crosstalk.map(|crosstalk| crosstalk.as_f64());
        let crosstalk = crosstalk.map_or(Noise::NONE, Noise::from_crosstalk);
        self.noise_after(budget, Place::Through).plus(crosstalk)
    }

    /// Returns the noise of the amplifier after a device with the loss of `place`.
    fn noise_after(&self, budget: &LossBudget, place: Place) -> Noise {
        match budget.losses[place as usize] {
            Decibels::ZERO => Noise::NONE,
            loss => self.amplifier(budget, loss.as_f64()),
        }
    }
}

impl WdmGraph {
    /// Returns the losses of light over `route`, which is split `splits` times before its end.
    pub(super) fn losses_over(
        &self,
        budget: &LossBudget,
        route: &[u32],
        splits: u32,
    ) -> Vec<PassedLoss> {
        losses(budget, self.noise.as_ref(), self.passed_over(route, splits))
    }

    fn passed_over(&self, route: &[u32], splits: u32) -> Passed {
        Passed {
            links: route.len() as u64,
            metres: self.metres_of(route),
            splits,
        }
    }

    /// Returns the length of `route` in metres. Links of unknown length count as 0.
    fn metres_of(&self, route: &[u32]) -> u64 {
        let network = self.fibre_links();
        let lengths = route.iter().filter_map(|&link| network.length(link));
        lengths.fold(0u64, |sum, length| sum.saturating_add(length.metres()))
    }

    /// Returns the noise of light over `route`, which is split `splits` times before its end.
    pub(super) fn noise_over(&self, route: &[u32], splits: u32) -> Option<Noise> {
        let (budget, noise) = (self.budget.as_ref()?, self.noise.as_ref()?);
        let network = self.fibre_links();
        let links = route.iter().map(|&link| {
            let length = network.length(link).map_or(0, |length| length.metres());
            noise.link_noise(budget, length)
        });
        let vertices = (route.len() as u64).saturating_sub(1);
        let passed = noise.vertex_noise(budget).times(vertices);
        let split = noise.noise_after(budget, Place::Split).times(splits.into());
        Some(links.fold(passed.plus(split), Noise::plus))
    }

    /// Returns how often light is split before the end of each route of a light tree.
    pub fn splits_before(&self, routes: &[&[u32]]) -> Vec<u32> {
        // Links after each link of the tree; `None` for a receiver.
        let mut after: FxHashMap<u32, FxHashSet<Option<u32>>> = FxHashMap::default();
        for route in routes {
            for (place, &link) in route.iter().enumerate() {
                let next = route.get(place + 1).copied();
                after.entry(link).or_default().insert(next);
            }
        }
        let splits = |route: &&[u32]| {
            let passed = &route[..route.len().saturating_sub(1)];
            let outputs = passed.iter().map(|link| after[link].len() as u32);
            outputs
                .map(|outputs| outputs.next_power_of_two().ilog2())
                .sum()
        };
        routes.iter().map(splits).collect()
    }

    /// Returns the reason why light over `route`, which is split `splits` times, is not received;
    /// `None` if light is received.
    pub fn too_weak(&self, route: &[u32], splits: u32) -> Option<String> {
        let (budget, passed) = (self.budget.as_ref()?, self.passed_over(route, splits));
        let on_route = |_: &NoiseBudget| self.noise_over(route, splits).unwrap_or(Noise::NONE);
        Weak::of(budget, self.noise.as_ref(), passed, on_route).map(|weak| weak.reason)
    }
}
