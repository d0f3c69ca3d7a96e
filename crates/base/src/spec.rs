//! The specification `name:key=value,key=value` by which fabrics, algorithms and wavelength
//! assignments are named on the command line, in scenario files and in plan files. Keys may be
//! written in any case and with hyphens: `Group-Size=3` is `group_size=3`. A key alone has the value `yes`.
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

use crate::names::{prints, shown, suggest};
use crate::units::Bytes;

/// Why a spec was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// Not of the form `name:key=value,key=value`.
    #[error(
        "`{}` is not of the form name:key=value,key=value: {problem}",
        shown(text)
    )]
    Syntax {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nothing of the kind has this name.
    #[error("unknown {what} `{}`{hint}", shown(name))]
    Unknown {
        /// The kind.
        what: &'static str,
        /// The name given.
        name: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// An option that the named thing does not have.
    #[error("`{}` has no option `{}`{hint}", shown(name), shown(key))]
    UnknownOption {
        /// The fabric, algorithm or assignment.
        name: String,
        /// The option given.
        key: String,
        /// The nearest known option, or all of them.
        hint: String,
    },
    /// An option whose value does not fit.
    #[error("`{}`: {}={}: {problem}", shown(name), shown(key), shown(value))]
    Value {
        /// The fabric, algorithm or assignment.
        name: String,
        /// The option.
        key: String,
        /// The value given.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// The declaration of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionRecord {
    /// As typed.
    pub name: &'static str,
    /// What its values mean.
    pub meaning: &'static str,
    /// The unit of its values; empty: they have none.
    pub unit: &'static str,
    /// The values that it takes, in words; empty: its kind says them, or its meaning.
    pub range: &'static str,
    /// What holds where it is not given, in words; empty: its kind says it, or its meaning.
    pub default: &'static str,
    /// Where model and default come from; empty: from the source of what has the option.
    pub source: &'static str,
    /// What it decides, where other code asks for it.
    pub role: Role,
    /// The values that the planner tries beside the default.
    pub tries: &'static [&'static str],
}

/// The default of an option that must be given.
pub const REQUIRED: &str = "required";

/// What an option decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Something that only its owner asks for.
    Own,
    /// Into how many pieces a vector is cut.
    Pieces,
    /// How many rings or trees run side by side through groups of ranks.
    Channels,
    /// How many exchanges halve the vector.
    Halvings,
    /// How long circuits take to change.
    Reconfiguration,
    /// How long control messages take.
    Control,
    /// What is broken.
    Broken,
    /// Who is left to take part.
    Left,
}

impl OptionRecord {
    /// An option of which the planner takes the default.
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

    /// The same with a unit.
    pub const fn unit(self, unit: &'static str) -> OptionRecord {
        OptionRecord { unit, ..self }
    }

    /// The same with the values that it takes.
    pub const fn range(self, range: &'static str) -> OptionRecord {
        OptionRecord { range, ..self }
    }

    /// The same with what holds where it is not given.
    pub const fn default(self, default: &'static str) -> OptionRecord {
        OptionRecord { default, ..self }
    }

    /// The same with a source of its own.
    pub const fn source(self, source: &'static str) -> OptionRecord {
        OptionRecord { source, ..self }
    }

    /// The same with a role.
    pub const fn role(self, role: Role) -> OptionRecord {
        OptionRecord { role, ..self }
    }

    /// The same with values that the planner tries.
    pub const fn tries(self, tries: &'static [&'static str]) -> OptionRecord {
        OptionRecord { tries, ..self }
    }
}

/// A name with options, in the order given; and where it holds for small sizes only, what holds from a size on.
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
    /// A name without options.
    pub fn new(name: &str) -> Spec {
        Spec {
            name: name.into(),
            options: Vec::new(),
            from: None,
        }
    }

    /// What holds for a size.
    pub fn at(&self, size: Bytes) -> Spec {
        match &self.from {
            Some((least, larger)) if size >= *least => larger.at(size),
            _ => Spec {
                from: None,
                ..self.clone()
            },
        }
    }

    /// Whether something else holds from a size on.
    pub fn is_rule(&self) -> bool {
        self.from.is_some()
    }

    /// The same with one more option.
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Spec {
        self.options.push((key.into(), value.to_string()));
        self
    }

    /// The same without an option.
    pub fn without(&self, key: &str) -> Spec {
        let others = self.options.iter().filter(|(other, _)| other != key);
        Spec {
            name: self.name.clone(),
            options: others.cloned().collect(),
            from: self.from.clone(),
        }
    }

    /// What comes before the colon.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options as given.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The value of an option, if it was given.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options()
            .find(|(other, _)| *other == key)
            .map(|(_, value)| value)
    }

    /// Refuses options that are not among `known`.
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

    /// Refuses options that have no record.
    pub fn only_declared(&self, options: &[OptionRecord]) -> Result<(), SpecError> {
        let names: Vec<&str> = options.iter().map(|option| option.name).collect();
        self.only(&names)
    }

    /// The error for an option whose value does not fit.
    pub fn refuse(&self, key: &str, problem: impl fmt::Display) -> SpecError {
        SpecError::Value {
            name: self.name.clone(),
            key: key.into(),
            value: self.option(key).unwrap_or("").into(),
            problem: problem.to_string(),
        }
    }

    /// The value of an option, if it was given.
    ///
    /// # Errors
    /// A text that is no such value.
    pub fn value<T: FromStr>(&self, key: &str) -> Result<Option<T>, SpecError>
    where
        T::Err: fmt::Display,
    {
        let text = self.option(key);
        text.map(|text| text.parse().map_err(|problem| self.refuse(key, problem)))
            .transpose()
    }

    /// The whole number given for an option, within `least..=most`; `None` where it was not given.
    pub fn count(&self, key: &str, least: u32, most: u32) -> Result<Option<u32>, SpecError> {
        let Some(value) = self.option(key) else {
            return Ok(None);
        };
        match whole(value) {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            Some(_) => Err(self.refuse(key, format!("must be from {least} to {most}"))),
            None => Err(self.refuse(
                key,
                format!("must be a whole number from {least} to {most}"),
            )),
        }
    }
}

/// A whole number in digits alone, without the sign that the parser of integers takes.
pub fn whole(text: &str) -> Option<u32> {
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
        if text.chars().any(|c| !prints(c) && !c.is_whitespace()) {
            return Err(SpecError::Syntax {
                text: text.into(),
                problem: "it holds characters that do not print".into(),
            });
        }
        // What is said of it later stands in one line.
        let text = &text.replace(|c| !prints(c), " ");
        let syntax = |problem: String| SpecError::Syntax {
            text: text.into(),
            problem,
        };
        // `<->` joins the ends of a link.
        let rule = text.split_once('<');
        if let Some((small, rest)) = rule.filter(|(_, rest)| !rest.starts_with('-')) {
            let (size, larger) = rest
                .split_once(',')
                .ok_or_else(|| syntax("what holds from the size on is missing".into()))?;
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
            return Err(syntax(format!("`{}` is no name", shown(name))));
        }
        let mut spec = Spec::new(name);
        for part in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (key, value) = part.split_once('=').unwrap_or((part, "yes"));
            let key = key.trim().to_ascii_lowercase().replace('-', "_");
            let (key, value) = (key.as_str(), value.trim());
            if key.is_empty() || value.is_empty() {
                return Err(syntax(format!(
                    "`{}` lacks its key or its value",
                    shown(part)
                )));
            }
            if spec.option(key).is_some() {
                return Err(syntax(format!("`{}` is given twice", shown(key))));
            }
            spec = spec.with(key, value);
        }
        Ok(spec)
    }
}
