//! Specifications of the form `name:key=value,key=value`. A specification names a fabric, an
//! algorithm or a wavelength assignment on the command line, in scenario files and in plan files.
//! Keys ignore case and may have hyphens instead of underscores: `Group-Size=3` means
//! `group_size=3`. A key without a value has the value `yes`.
//!
//! ```
//! use opticoll_base::spec::Spec;
//! let spec: Spec = "optree:radices=4x4".parse()?;
//! assert_eq!(spec.name(), "optree");
//! assert_eq!(spec.option("radices"), Some("4x4"));
//! assert_eq!(spec.to_string(), "optree:radices=4x4");
//! assert_eq!("optree:Radices=4x4".parse::<Spec>()?, spec);
//! assert_eq!("ocs_torus:twisted".parse::<Spec>()?.option("twisted"), Some("yes"));
//! # Ok::<(), opticoll_base::spec::SpecError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::names::{is_printable, suggest, terminal_text};
use crate::units::Bytes;

/// Reason why a specification was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A text that is not of the form `name:key=value,key=value`.
    #[error(
        "`{}` is not of the form name:key=value,key=value: {problem}",
        terminal_text(text)
    )]
    Syntax {
        /// The text as given.
        text: String,
        /// Description of the mistake.
        problem: String,
    },
    /// A name that no fabric, algorithm or assignment has.
    #[error("unknown {what} `{}`{hint}", terminal_text(name))]
    Unknown {
        /// Kind of the named thing, such as `algorithm`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// Similar known name, or all known names.
        hint: String,
    },
    /// An option that the named fabric, algorithm or assignment does not have.
    #[error(
        "`{}` has no option `{}`{hint}",
        terminal_text(name),
        terminal_text(key)
    )]
    UnknownOption {
        /// Name of the fabric, algorithm or assignment.
        name: String,
        /// The option as given.
        key: String,
        /// Similar known option, or all known options.
        hint: String,
    },
    /// An option with a value that is not accepted.
    #[error(
        "`{}`: {}={}: {problem}",
        terminal_text(name),
        terminal_text(key),
        terminal_text(value)
    )]
    Value {
        /// Name of the fabric, algorithm or assignment.
        name: String,
        /// Name of the option.
        key: String,
        /// The value as given.
        value: String,
        /// Description of the mistake.
        problem: String,
    },
}

/// Declaration of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionRecord {
    /// Name, as typed.
    pub name: &'static str,
    /// Meaning of the values.
    pub meaning: &'static str,
    /// Unit of the values; empty if the values have no unit.
    pub unit: &'static str,
    /// Accepted values, in words; empty if the option's type or `meaning` states these values.
    pub range: &'static str,
    /// Default value, in words; empty if the option's type or `meaning` states the default value.
    pub default: &'static str,
    /// Publication that defines the option's model and default value. Empty if the source of the
    /// option's fabric or algorithm applies.
    pub source: &'static str,
    /// Role of the option. Code finds an option by its role, for example the option for the number
    /// of pieces.
    pub role: Role,
    /// Values that `auto` tries in addition to the default value.
    pub tries: &'static [&'static str],
}

/// Value of the field [`OptionRecord::default`] for an option that the user must set.
pub const REQUIRED: &str = "required";

/// Quantity that an option sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A quantity that only the option's own fabric or algorithm uses.
    Own,
    /// Number of pieces into which a vector is cut.
    Pieces,
    /// Number of parallel rings or trees through groups of ranks.
    Channels,
    /// Number of exchanges that each halve the vector.
    Halvings,
    /// Time to change circuits.
    Reconfiguration,
    /// Time that control messages need.
    Control,
    /// Broken or degraded links or devices.
    Broken,
    /// Ranks that take part; the other ranks only forward data.
    Members,
}

impl OptionRecord {
    /// Returns a record whose unit, range, default and source are empty and whose role is
    /// [`Role::Own`]. `auto` tries only the default value.
    pub const fn new(name: &'static str, meaning: &'static str) -> OptionRecord {
        OptionRecord {
            name,
            meaning,
            unit: "",
            range: "",
            default: "",
            source: "",
            role: Role::Own,
            tries: &[],
        }
    }

    /// Sets the unit.
    pub const fn unit(self, unit: &'static str) -> OptionRecord {
        OptionRecord { unit, ..self }
    }

    /// Sets the accepted values, in words.
    pub const fn range(self, range: &'static str) -> OptionRecord {
        OptionRecord { range, ..self }
    }

    /// Sets the default value, in words.
    pub const fn default(self, default: &'static str) -> OptionRecord {
        OptionRecord { default, ..self }
    }

    /// Sets the source.
    pub const fn source(self, source: &'static str) -> OptionRecord {
        OptionRecord { source, ..self }
    }

    /// Sets the role.
    pub const fn role(self, role: Role) -> OptionRecord {
        OptionRecord { role, ..self }
    }

    /// Sets the values that `auto` tries in addition to the default value.
    pub const fn tries(self, tries: &'static [&'static str]) -> OptionRecord {
        OptionRecord { tries, ..self }
    }
}

/// Specification of a fabric, an algorithm or a wavelength assignment: a name, and options in the
/// order in which they were written. A specification may apply only to sizes below a threshold;
/// then a second specification follows for sizes from the threshold on.
///
/// ```
/// # use opticoll_base::{spec::Spec, units::Bytes};
/// let rule: Spec = "bruck<80KiB,recursive_doubling<512KiB,ring:stripes=2".parse()?;
/// assert_eq!(rule.at(Bytes::new(80 * 1024 - 1)).name(), "bruck");
/// assert_eq!(rule.at(Bytes::new(80 * 1024)).name(), "recursive_doubling");
/// assert_eq!(rule.at(Bytes::new(1 << 20)).to_string(), "ring:stripes=2");
/// # Ok::<(), opticoll_base::spec::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    name: String,
    options: Vec<(String, String)>,
    from: Option<(Bytes, Box<Spec>)>,
}

impl Spec {
    /// Returns a specification with a name and no options.
    pub fn new(name: &str) -> Spec {
        Spec {
            name: name.into(),
            options: Vec::new(),
            from: None,
        }
    }

    /// Returns the specification that applies to `size`. The result has no thresholds: it applies
    /// to all sizes.
    pub fn at(&self, size: Bytes) -> Spec {
        match &self.from {
            Some((least, larger)) if size >= *least => larger.at(size),
            _ => Spec {
                from: None,
                ..self.clone()
            },
        }
    }

    /// Returns whether different specifications apply to sizes below and above a threshold.
    pub fn depends_on_size(&self) -> bool {
        self.from.is_some()
    }

    /// Adds the option `key` with the given value.
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Spec {
        self.options.push((key.into(), value.to_string()));
        self
    }

    /// Returns the specification without the option `key`.
    pub fn without(&self, key: &str) -> Spec {
        let others = self.options.iter().filter(|(other, _)| other != key);
        Spec {
            name: self.name.clone(),
            options: others.cloned().collect(),
            from: self.from.clone(),
        }
    }

    /// Returns the name, which is the part before the colon.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns pairs of key and value, in the order in which the options were written.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the value of the option `key`, or `None` if the option is not set.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options()
            .find(|(other, _)| *other == key)
            .map(|(_, value)| value)
    }

    /// Returns an error if the specification sets an option that is not listed in `known`.
    pub fn only(&self, known: &[&str]) -> Result<(), SpecError> {
        match self.options().find(|(key, _)| !known.contains(key)) {
            None => Ok(()),
            Some((key, _)) => Err(SpecError::UnknownOption {
                name: self.name.clone(),
                key: key.into(),
                hint: if known.is_empty() {
                    "; it has none".into()
                } else {
                    suggest(key, known.iter().copied())
                },
            }),
        }
    }

    /// Returns an error if the specification sets an option that has no record in `options`.
    pub fn only_declared(&self, options: &[OptionRecord]) -> Result<(), SpecError> {
        let names: Vec<&str> = options.iter().map(|option| option.name).collect();
        self.only(&names)
    }

    /// Creates the error for the option `key`, whose value is not accepted. `problem` says why.
    pub fn refuse(&self, key: &str, problem: impl fmt::Display) -> SpecError {
        SpecError::Value {
            name: self.name.clone(),
            key: key.into(),
            value: self.option(key).unwrap_or("").into(),
            problem: problem.to_string(),
        }
    }

    /// Parses the value of the option `key`. Returns `None` if the option is not set.
    ///
    /// # Errors
    /// The text does not parse as `T`.
    pub fn value<T: FromStr>(&self, key: &str) -> Result<Option<T>, SpecError>
    where
        T::Err: fmt::Display,
    {
        let text = self.option(key);
        text.map(|text| text.parse().map_err(|problem| self.refuse(key, problem)))
            .transpose()
    }

    /// Parses the option `key` as a whole number from `least` to `most`; `None` if it is not set.
    pub fn count(&self, key: &str, least: u32, most: u32) -> Result<Option<u32>, SpecError> {
        let Some(value) = self.option(key) else {
            return Ok(None);
        };
        match whole_number(value) {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            Some(_) => Err(self.refuse(key, format!("must be from {least} to {most}"))),
            None => Err(self.refuse(
                key,
                format!("must be a whole number from {least} to {most}"),
            )),
        }
    }
}

/// Converts a specification to the value of an option: `ring:order=natural,seed=1` becomes
/// `ring/order=natural/seed=1`. Slashes of the specification are doubled, except those of rates.
pub fn flat(spec: &str) -> String {
    let doubled = spec.replace('/', "//").replace([':', ','], "/");
    with_rates(&doubled, "//s", "/s")
}

/// Parses a specification that was the value of an option, as [`flat`] writes it.
///
/// ```
/// use opticoll_base::spec::{flat, nested};
/// let ring = nested("wdm_ring/rate=50GB/s/wavelengths=4")?;
/// assert_eq!(ring.to_string(), "wdm_ring:rate=50GB/s,wavelengths=4");
/// assert_eq!(flat(&ring.to_string()), "wdm_ring/rate=50GB/s/wavelengths=4");
/// # Ok::<(), opticoll_base::spec::SpecError>(())
/// ```
///
/// # Errors
/// The text is not a specification.
pub fn nested(text: &str) -> Result<Spec, SpecError> {
    let doubled = with_rates(text, "/s", "//s");
    let levels = doubled.split("//").map(|level| level.replace('/', ","));
    let spec: Vec<String> = levels.collect();
    spec.join("/").replacen(',', ":", 1).parse()
}

/// Replaces `unit`, the last letters of a rate such as `50GB/s`, by `other` wherever an option or
/// the text ends behind it.
fn with_rates(text: &str, unit: &str, other: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(unit) {
        let ends = after.is_empty() || after.starts_with(['/', '+', '@', 'x']);
        let is_rate = ends && before.ends_with(['b', 'B']);
        replaced += before;
        replaced += if is_rate { other } else { unit };
        rest = after;
    }
    replaced + rest
}

/// Parses a whole number that consists of digits only. Unlike `str::parse`, refuses a sign.
pub fn whole_number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

impl fmt::Display for Spec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        for (index, (key, value)) in self.options().enumerate() {
            let separator = if index == 0 { ':' } else { ',' };
            write!(formatter, "{separator}{key}={value}")?;
        }
        if let Some((size, larger)) = &self.from {
            write!(formatter, "<{size},{larger}")?;
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        if text.chars().any(|c| !is_printable(c) && !c.is_whitespace()) {
            return Err(SpecError::Syntax {
                text: text.into(),
                problem: "it holds characters that do not print".into(),
            });
        }
        // Error messages print the text on one line.
        let text = &text.replace(|c| !is_printable(c), " ");
        let syntax = |problem: String| SpecError::Syntax {
            text: text.into(),
            problem,
        };
        // `<->` joins the ends of a link and starts no threshold.
        let rule = text.split_once('<');
        if let Some((small, rest)) = rule.filter(|(_, rest)| !rest.starts_with('-')) {
            let (size, larger) = rest
                .split_once(',')
                .ok_or_else(|| syntax("the value from this size on is missing".into()))?;
            let size: Bytes = size
                .trim()
                .parse()
                .map_err(|error| syntax(format!("{error}")))?;
            let mut spec: Spec = small.parse()?;
            spec.from = Some((size, Box::new(larger.parse()?)));
            return Ok(spec);
        }
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name.trim(), Some(rest)),
            None => (text.trim(), None),
        };
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        {
            return Err(syntax(format!("`{}` is not a name", terminal_text(name))));
        }
        let mut spec = Spec::new(name);
        for part in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (key, value) = part.split_once('=').unwrap_or((part, "yes"));
            let key = key.trim().to_ascii_lowercase().replace('-', "_");
            let (key, value) = (key.as_str(), value.trim());
            if key.is_empty() || value.is_empty() {
                return Err(syntax(format!(
                    "`{}` lacks its key or its value",
                    terminal_text(part)
                )));
            }
            if spec.option(key).is_some() {
                return Err(syntax(format!("`{}` is given twice", terminal_text(key))));
            }
            spec = spec.with(key, value);
        }
        Ok(spec)
    }
}
