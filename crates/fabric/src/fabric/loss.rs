//! Loss budget: the power of light that arrives at a receiver, compared with the least power that
//! the receiver detects.
//!
//! Light starts with the power `launch_power` (dBm). It loses power (dB) once on every lightpath
//! (`fixed_loss`), on each link, at each element that it passes, where a receiver drops it, and at
//! each split of a light tree. The **margin** is what remains:
//!
//! ```text
//! margin = launch_power - fixed - links * link - passed * through - drop - splits * split
//!          - sensitivity
//! ```
//!
//! Light is received if its margin is not negative. A family states which of these losses its light
//! has, and what the elements are: the ring resonators of a ring, the vertices of a graph, the
//! switch of a circuit switch. Numbers are stored in millionths of a decibel, so sums are exact.

use super::options::Options;
use crate::components::{COMPONENTS, component};
use crate::fabric::FabricError;
pub use opticoll_base::decibels::Decibels;
use opticoll_base::decibels::{MAX_DECIBELS, MILLION};
use opticoll_base::names::suggest;
use opticoll_base::spec::{OptionRecord, Spec, whole_number};

opticoll_base::named_enum! {
    /// Place at which light loses power.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Place {
        /// Everything that each lightpath passes once, such as connectors and multiplexers.
        Fixed = "fixed",
        /// A link.
        Link = "link",
        /// A kilometre of fibre.
        Fibre = "fibre",
        /// An element that light passes, such as a ring resonator or a switch.
        Through = "through",
        /// The receiver.
        Drop = "drop",
        /// A split of a light tree.
        Split = "split",
    }
}

/// Powers and losses of light.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossBudget {
    /// Power of one wavelength at its source, in dBm.
    pub launch_power: Decibels,
    /// Minimum power that a receiver detects, in dBm.
    pub sensitivity: Decibels,
    /// Loss at each [`Place`], in dB, indexed by place; of [`Place::Fibre`] in dB per km.
    pub losses: [Decibels; Place::ALL.len()],
}

/// Part of the loss of a lightpath.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedLoss {
    /// Device or other thing that light passes, such as `ring resonator`.
    pub what: &'static str,
    /// Number of times that light passes it.
    pub count: u64,
    /// Loss each time, in dB.
    pub loss: Decibels,
}

/// Option of a loss.
pub(crate) struct LossOption {
    /// Place whose loss the option states.
    pub(crate) place: Place,
    /// Name of the option.
    pub(crate) name: &'static str,
    /// Meaning of the option.
    pub(crate) meaning: &'static str,
    /// True if a loss budget must state the loss.
    pub(crate) is_required: bool,
}

impl LossOption {
    fn unit(&self) -> &'static str {
        match self.place {
            Place::Fibre => "dB/km",
            _ => "dB",
        }
    }
}

/// Option for the loss that each lightpath has once.
pub(crate) const FIXED: LossOption = LossOption {
    place: Place::Fixed,
    name: "fixed_loss",
    meaning: "loss of everything that each lightpath passes once, such as connectors",
    is_required: false,
};

/// Option for the loss at the switch that each lightpath passes.
pub(crate) const SWITCH: LossOption = LossOption {
    place: Place::Through,
    name: "switch_loss",
    meaning: "loss at the switch that light passes",
    is_required: false,
};

/// Options of the loss budget of a family.
pub(crate) struct LossOptions {
    /// Options that suffice for a budget, for the error message.
    pub(crate) example: &'static str,
    /// Meaning of the option `launch_power`.
    pub(crate) launch_power: &'static str,
    /// Options of losses.
    pub(crate) losses: &'static [LossOption],
    /// Options that only a budget may have.
    pub(crate) others: &'static [OptionRecord],
}

const LEVELS: &str = "whole millionths of a decibel";

impl LossOptions {
    /// Returns the records of all options of the budget.
    fn records(&self) -> Vec<OptionRecord> {
        let power = |name, meaning| {
            let record = OptionRecord::new(name, meaning).unit("dBm");
            record.range(LEVELS).default("none")
        };
        let losses = self.losses.iter().map(|option| {
            let record = OptionRecord::new(option.name, option.meaning).unit(option.unit());
            let (range, default) = match option.place {
                Place::Fibre => ("0dB/km or more, or a fibre such as fibre_1550", "0dB/km"),
                _ => (
                    "0dB or more, or components such as 2*connector+0.5dB",
                    "0dB",
                ),
            };
            let record = record.range(range);
            record.default(if option.is_required { "none" } else { default })
        });
        [
            power("launch_power", self.launch_power),
            power("sensitivity", "minimum power at a receiver"),
        ]
        .into_iter()
        .chain(losses)
        .chain(self.others.iter().copied())
        .collect()
    }

    /// Declares the options of the budget. `read_more` reads the values of [`LossOptions::others`],
    /// and checks the budget; `print_more` prints these values. Both have the machine's other value
    /// of type `T`.
    pub(crate) fn declared<M, T>(
        &self,
        options: &mut Options<'_, M>,
        read_more: impl FnOnce(&Spec, Option<&LossBudget>) -> Result<T, FabricError>,
        print_more: impl FnOnce(Spec, &T) -> Spec,
        of: impl FnOnce(&M) -> (Option<LossBudget>, T),
    ) -> Result<(Option<LossBudget>, T), FabricError> {
        let family = options.family();
        options.several(
            self.records(),
            |spec| {
                let budget = self.read(spec, family)?;
                let more = read_more(spec, budget.as_ref())?;
                Ok((budget, more))
            },
            |spec, (budget, more)| match budget {
                Some(budget) => print_more(self.print(budget, spec), more),
                None => spec,
            },
            of,
        )
    }

    /// Declares the options of a budget that is the same for all lightpaths. `passed` lists what
    /// light passes.
    ///
    /// # Errors
    /// The light is too weak.
    pub(crate) fn uniform<M>(
        &self,
        options: &mut Options<'_, M>,
        passed: impl FnOnce(&LossBudget) -> Vec<PassedLoss>,
        of: impl FnOnce(&M) -> Option<LossBudget>,
    ) -> Result<Option<LossBudget>, FabricError> {
        let check = |spec: &Spec, budget: Option<&LossBudget>| match budget {
            Some(budget) => budget.check(spec, &passed(budget)),
            None => Ok(()),
        };
        let (budget, ()) = self.declared(options, check, |spec, ()| spec, |one| (of(one), ()))?;
        Ok(budget)
    }

    /// Parses the budget. Returns `None` if none of its options is given.
    fn read(&self, spec: &Spec, family: &'static str) -> Result<Option<LossBudget>, FabricError> {
        let records = self.records();
        if records.iter().all(|one| spec.option(one.name).is_none()) {
            return Ok(None);
        }
        let missing = |key| FabricError::Missing {
            family,
            key,
            example: self.example,
        };
        let power = |key: &'static str| match spec.option(key) {
            None => Err(missing(key)),
            Some(text) => Ok(with_unit(text, "dBm").map_err(|problem| spec.refuse(key, problem))?),
        };
        let mut budget = LossBudget {
            launch_power: power("launch_power")?,
            sensitivity: power("sensitivity")?,
            losses: Default::default(),
        };
        for option in self.losses {
            budget.losses[option.place as usize] = match spec.option(option.name) {
                None if option.is_required => return Err(missing(option.name)),
                None => Decibels::ZERO,
                Some(text) => match option.place {
                    Place::Fibre => read_loss_per_km(text),
                    _ => read_loss(text),
                }
                .map_err(|problem| spec.refuse(option.name, problem))?,
            };
        }
        Ok(Some(budget))
    }

    /// Adds the options of the budget to a specification.
    fn print(&self, budget: &LossBudget, spec: Spec) -> Spec {
        let spec = spec
            .with("launch_power", format!("{}dBm", budget.launch_power))
            .with("sensitivity", format!("{}dBm", budget.sensitivity));
        let losses = self.losses.iter();
        let losses = losses.map(|option| (option, budget.losses[option.place as usize]));
        let printed = losses.filter(|(option, loss)| option.is_required || *loss != Decibels::ZERO);
        printed.fold(spec, |spec, (option, loss)| {
            spec.with(option.name, format!("{loss}{}", option.unit()))
        })
    }
}

/// Parses the loss of a fibre, such as `0.2dB/km` or `fibre_1550`.
fn read_loss_per_km(text: &str) -> Result<Decibels, String> {
    let fibre = component(text).filter(|component| component.is_fibre());
    if let Some(loss) = fibre.and_then(|fibre| fibre.greatest_loss()) {
        return Ok(loss);
    }
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        let fibres = COMPONENTS.iter().filter(|component| component.is_fibre());
        let names = fibres.map(|fibre| fibre.name);
        return Err(format!(
            "no fibre is called `{text}`{}",
            suggest(text, names)
        ));
    }
    match with_unit(text, "dB/km")? {
        loss if loss < Decibels::ZERO => Err("is a loss and must not be negative".into()),
        loss => Ok(loss),
    }
}

/// Parses a power or a ratio with its unit, such as `-3dBm`.
pub(crate) fn with_unit(text: &str, unit: &str) -> Result<Decibels, String> {
    let number = text.strip_suffix(unit);
    let number = number.ok_or_else(|| format!("needs its unit, such as {text}{unit}"))?;
    number.trim().parse()
}

/// Parses a loss: terms joined by `+`. A term is a loss such as `0.5dB`, the name of a component,
/// or either of these after a factor, such as `2*connector`. The factor of a fibre is a length,
/// such as `80km*fibre_1550`.
///
/// ```
/// use opticoll_fabric::fabric::loss::read_loss;
/// assert_eq!(read_loss("3*0.5dB+1dB").unwrap().to_string(), "2.5");
/// // The greatest listed losses: 0.2 dB/km and 0.75 dB.
/// assert_eq!(read_loss("80km*fibre_1550+2*connector").unwrap().to_string(), "17.5");
/// ```
///
/// # Errors
/// A term is no loss, or the sum is too large.
pub fn read_loss(text: &str) -> Result<Decibels, String> {
    let mut sum = 0i128;
    for term in text.split('+') {
        sum += term_loss(term.trim())?;
    }
    match i64::try_from(sum) {
        Ok(sum) if sum < MAX_DECIBELS * MILLION => Ok(Decibels::from_millionths(sum)),
        _ => Err(format!("must be below {MAX_DECIBELS}dB")),
    }
}

/// Returns the loss of a term in millionths of a decibel, rounded up.
fn term_loss(term: &str) -> Result<i128, String> {
    let (factor, item) = match term.split_once('*') {
        Some((factor, item)) => (Some(factor.trim()), item.trim()),
        None => (None, term),
    };
    let starts_with_letter = item.starts_with(|first: char| first.is_ascii_alphabetic());
    let (loss, is_fibre) = match starts_with_letter {
        true => {
            let named = component(item).and_then(|part| Some((part, part.greatest_loss()?)));
            let (part, loss) = named.ok_or_else(|| {
                let lossy = COMPONENTS
                    .iter()
                    .filter(|part| part.greatest_loss().is_some());
                let names = lossy.map(|component| component.name);
                format!(
                    "no component with a loss is called `{item}`{}",
                    suggest(item, names)
                )
            })?;
            (loss, part.is_fibre())
        }
        false => (with_unit(item, "dB")?, false),
    };
    if loss < Decibels::ZERO {
        return Err("is a loss and must not be negative".into());
    }
    if is_fibre {
        let length = factor.and_then(|factor| factor.strip_suffix("km")?.trim().parse().ok());
        let length: Decibels = length
            .filter(|length| *length >= Decibels::ZERO)
            .ok_or_else(|| format!("needs a length, such as 2.5km*{item}"))?;
        // The length has the same number of digits as a loss.
        let product = i128::from(length.millionths()) * i128::from(loss.millionths());
        return Ok(
            product.div_euclid(MILLION.into()) + i128::from(product % i128::from(MILLION) != 0)
        );
    }
    let count = factor.map_or(Some(1), whole_number);
    let count = count.ok_or_else(|| format!("needs a whole number, such as 2*{item}"))?;
    Ok(i128::from(count) * i128::from(loss.millionths()))
}

impl LossBudget {
    /// Returns the loss at `place`, for light that passes `what` there `count` times.
    pub fn at(&self, place: Place, what: &'static str, count: u64) -> PassedLoss {
        PassedLoss {
            what,
            count,
            loss: self.losses[place as usize],
        }
    }

    /// Returns the loss that each lightpath has once.
    pub fn fixed(&self) -> PassedLoss {
        self.at(Place::Fixed, "fixed loss", 1)
    }

    /// Returns the margin of light with the losses `passed`, in millionths of a decibel.
    pub fn margin(&self, passed: &[PassedLoss]) -> i64 {
        let lost = passed.iter();
        let lost = lost.map(|part| i128::from(part.count) * i128::from(part.loss.millionths()));
        let spare = i128::from(self.launch_power.millionths() - self.sensitivity.millionths());
        i64::try_from(spare - lost.sum::<i128>()).unwrap_or(i64::MIN + 1)
    }

    /// Refuses a specification whose light is too weak after the losses `passed`.
    fn check(&self, spec: &Spec, passed: &[PassedLoss]) -> Result<(), FabricError> {
        let margin = self.margin(passed);
        if margin >= 0 {
            return Ok(());
        }
        let lossy = passed.iter().filter(|part| part.loss != Decibels::ZERO);
        let parts: Vec<String> = lossy
            .map(|part| format!("{} {}dB", part.what, part.loss))
            .collect();
        let problem = format!(
            "light arrives {}dB too weak: launch power {}dBm, losses {}",
            Decibels::from_millionths(-margin),
            self.launch_power,
            match parts.is_empty() {
                true => "none".to_owned(),
                false => parts.join(", "),
            }
        );
        Err(spec.refuse("sensitivity", problem).into())
    }

    /// Returns the maximum number of links over which light can be received. On each link, light
    /// loses `fibre` millionths of a decibel in addition to the loss of a link, and at each vertex
    /// between links `per_vertex` millionths. Returns 0 if the light is too weak after one link.
    pub fn farthest(&self, fibre: i64, per_vertex: i64) -> u32 {
        let loss = |place: Place| self.losses[place as usize].millionths();
        let spare =
            self.launch_power.millionths() - self.sensitivity.millionths() - loss(Place::Fixed);
        let spare = spare - loss(Place::Drop);
        let per_link = loss(Place::Link) + fibre;
        // h links and h - 1 vertices: h * per_link + (h - 1) * per_vertex <= spare.
        match (spare < 0, per_link + per_vertex) {
            (true, _) => 0,
            (false, 0) => u32::MAX,
            (false, each) => u32::try_from((spare + per_vertex) / each).unwrap_or(u32::MAX),
        }
    }
}
