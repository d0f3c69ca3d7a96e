//! The options of a fabric family, declared once: one function of the family reads them from a specification,
//! prints those of a machine, and lists them.

use std::fmt;
use std::str::FromStr;

use super::{FabricError, FamilyRecord};
use opticoll_base::spec::{OptionRecord, REQUIRED, Spec, SpecError};
use opticoll_base::units::Quantity;

/// An option as its family declares it: what its record leaves to its kind is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricOption {
    /// Its record, with the unit of its kind.
    pub record: OptionRecord,
    /// The values that it takes, in words.
    pub range: String,
    /// What holds where it is not given; `None`: it must be given.
    pub default: Option<String>,
}

impl FabricOption {
    /// With the range and the default that its kind says, where its record says nothing else.
    pub(crate) fn new(
        record: OptionRecord,
        range: &str,
        default: Option<&(impl fmt::Display + ?Sized)>,
    ) -> FabricOption {
        let own = FabricOption::from(record);
        FabricOption {
            range: match record.range {
                "" => range.to_owned(),
                _ => own.range,
            },
            default: match record.default {
                "" => default.map(|default| default.to_string()),
                _ => own.default,
            },
            record,
        }
    }
}

impl From<OptionRecord> for FabricOption {
    fn from(record: OptionRecord) -> FabricOption {
        FabricOption {
            record,
            range: record.range.to_owned(),
            default: (record.default != REQUIRED).then(|| record.default.to_owned()),
        }
    }
}

/// What happens with options while they are declared.
pub(crate) struct Options<'a, M> {
    source: ValueSource<'a, M>,
    family: &'static str,
    example: &'static str,
    declared: Vec<FabricOption>,
    printed: Spec,
}

/// Where values come from.
enum ValueSource<'a, M> {
    Spec(&'a Spec),
    Machine(&'a M),
}

/// What holds for an option that is not given.
pub(crate) enum Otherwise<T> {
    /// It must be given.
    Required,
    /// A default that is printed like any other value.
    Printed(T),
    /// A default that is left out where a machine is printed.
    Silent(T),
}

/// Declares options, each in a line: the variable and the field of the machine that it fills, its name, the
/// method of [`Options`] with what it needs to know, its meaning, and what more its record says.
macro_rules! declare {
    ($options:ident of $machine:ty;
     $($field:ident $key:literal $kind:ident($($argument:expr),*) $($role:ident)? $meaning:literal
       $($more:ident $text:tt)*;)*) => {
        $(
            let record = OptionRecord::new($key, $meaning)$(.role(Role::$role))?$(.$more($text))*;
            let of = |machine: &$machine| Clone::clone(&machine.$field);
            let $field = $options.$kind(record, $($argument,)* of)?;
        )*
    };
}
pub(crate) use declare;

/// Makes a network a machine of the family of its module, of which `RECORD` and the options that are `declared` say all.
macro_rules! machine_over_links {
    ($machine:ty) => {
        impl crate::fabric::Machine for $machine {
            fn record(&self) -> &'static crate::fabric::FamilyRecord {
                &RECORD
            }

            fn spec(&self) -> Spec {
                crate::fabric::options::print(self, &RECORD, declared)
            }

            fn network(&self) -> Option<&dyn Network> {
                Some(self)
            }
        }
    };
}
pub(crate) use machine_over_links;

/// How a family declares its options.
type Declaration<T, M> = fn(&mut Options<'_, M>) -> Result<T, FabricError>;

/// The options of a family.
pub(crate) fn list<T, M>(record: &FamilyRecord, declared: Declaration<T, M>) -> Vec<FabricOption> {
    let Ok(example) = record.example.parse() else {
        return Vec::new();
    };
    let mut options = Options::new(record, ValueSource::Spec(&example));
    let _ = declared(&mut options);
    options.declared
}

/// What a specification of a family gives.
///
/// # Errors
/// An option that the family does not have, one that is missing, or a value that does not fit.
pub(crate) fn read<T, M>(
    spec: &Spec,
    record: &FamilyRecord,
    declared: Declaration<T, M>,
) -> Result<T, FabricError> {
    let mut options = Options::new(record, ValueSource::Spec(spec));
    let value = declared(&mut options);
    // What is wrong may have ended the declaration before all options were known.
    let known = match value {
        Ok(_) => options.declared,
        Err(_) => (record.options)(),
    };
    let names: Vec<&str> = known.iter().map(|option| option.record.name).collect();
    spec.only(&names)?;
    value
}

/// The complete specification of a machine.
pub(crate) fn print<T, M>(machine: &M, record: &FamilyRecord, declared: Declaration<T, M>) -> Spec {
    let mut options = Options::new(record, ValueSource::Machine(machine));
    let _ = declared(&mut options);
    options.printed
}

impl<'a, M> Options<'a, M> {
    fn new(record: &FamilyRecord, source: ValueSource<'a, M>) -> Options<'a, M> {
        Options {
            source,
            family: record.name,
            example: record.example,
            declared: Vec::new(),
            printed: Spec::new(record.name),
        }
    }

    /// The value of several options, by functions that read and print them.
    pub(crate) fn several<T>(
        &mut self,
        records: &[OptionRecord],
        read: impl FnOnce(&Spec) -> Result<T, FabricError>,
        print: impl FnOnce(Spec, &T) -> Spec,
        of: impl FnOnce(&M) -> T,
    ) -> Result<T, FabricError> {
        let records = records.iter().copied();
        self.declared.extend(records.map(FabricOption::from));
        self.value_from(read, print, of)
    }

    /// A value by functions that read and print it, of options that are declared.
    fn value_from<T>(
        &mut self,
        read: impl FnOnce(&Spec) -> Result<T, FabricError>,
        print: impl FnOnce(Spec, &T) -> Spec,
        of: impl FnOnce(&M) -> T,
    ) -> Result<T, FabricError> {
        match self.source {
            ValueSource::Spec(spec) => read(spec),
            ValueSource::Machine(machine) => {
                let value = of(machine);
                self.printed = print(self.printed.clone(), &value);
                Ok(value)
            }
        }
    }

    /// The value of an option, by functions that read it and print it where it is no default.
    pub(crate) fn option<T>(
        &mut self,
        option: impl Into<FabricOption>,
        read: impl FnOnce(&Spec) -> Result<T, FabricError>,
        print: impl FnOnce(&T) -> Option<String>,
        of: impl FnOnce(&M) -> T,
    ) -> Result<T, FabricError> {
        let option = option.into();
        let name = option.record.name;
        self.declared.push(option);
        let print = |spec: Spec, value: &T| match print(value) {
            Some(text) => spec.with(name, text),
            None => spec,
        };
        self.value_from(read, print, of)
    }

    /// A value with a text form.
    pub(crate) fn value<T>(
        &mut self,
        record: OptionRecord,
        otherwise: Otherwise<T>,
        of: impl FnOnce(&M) -> T,
    ) -> Result<T, FabricError>
    where
        T: FromStr + fmt::Display + PartialEq + Clone + Quantity,
        T::Err: fmt::Display,
    {
        let missing = self.missing(record.name);
        let default = otherwise.clone_value();
        let option = FabricOption::new(record.unit(T::UNIT), T::RANGE, default.as_ref());
        let read = |spec: &Spec| spec.value(record.name)?.or(default).ok_or(missing);
        let print = |value: &T| otherwise.prints(value).then(|| value.to_string());
        self.option(option, read, print, of)
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn count(
        &mut self,
        record: OptionRecord,
        most: u32,
        otherwise: Otherwise<u32>,
        of: impl FnOnce(&M) -> u32,
    ) -> Result<u32, FabricError> {
        let missing = self.missing(record.name);
        let default = otherwise.clone_value();
        let option = FabricOption::new(record, &range(most), default.as_ref());
        let read = |spec: &Spec| spec.count(record.name, 1, most)?.or(default).ok_or(missing);
        let print = |value: &u32| otherwise.prints(value).then(|| value.to_string());
        self.option(option, read, print, of)
    }

    /// One of a few words, by its meaning.
    pub(crate) fn word<T: Copy + PartialEq>(
        &mut self,
        record: OptionRecord,
        words: &[(&'static str, T)],
        otherwise: Otherwise<T>,
        of: impl FnOnce(&M) -> T,
    ) -> Result<T, FabricError> {
        let missing = self.missing(record.name);
        let default = otherwise.clone_value();
        let mut named = words.iter();
        let word = named.find(|(_, meaning)| Some(*meaning) == default);
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let option = FabricOption::new(record, &all.join(", "), word.map(|(word, _)| word));
        let read = |spec: &Spec| {
            let Some(word) = spec.option(record.name) else {
                return default.ok_or(missing);
            };
            let meant = words.iter().find(|(known, _)| *known == word);
            let meaning = meant.map(|(_, meaning)| *meaning);
            Ok(meaning.ok_or_else(|| spec.refuse(record.name, must_be(words)))?)
        };
        let print = |value: &T| {
            let mut words = words.iter();
            let (word, _) = words.find(|(_, meaning)| meaning == value)?;
            otherwise.prints(value).then(|| (*word).to_owned())
        };
        self.option(option, read, print, of)
    }

    /// A whole number from 1 to `most`; none where it is not given, or is that word.
    pub(crate) fn limit(
        &mut self,
        record: OptionRecord,
        unlimited: Option<&str>,
        most: u32,
        of: impl FnOnce(&M) -> Option<u32>,
    ) -> Result<Option<u32>, FabricError> {
        let values = match unlimited {
            Some(word) => format!("{}, {word}", range(most)),
            None => range(most),
        };
        let option = FabricOption::new(record, &values, unlimited.or(Some("none")));
        let read = |spec: &Spec| match spec.option(record.name) {
            word if word == unlimited => Ok(None),
            _ => Ok(spec.count(record.name, 1, most)?),
        };
        self.option(option, read, |limit| limit.map(|most| most.to_string()), of)
    }

    /// Some items, by functions that read and print them; what is none is not printed.
    pub(crate) fn list<T>(
        &mut self,
        record: OptionRecord,
        read: impl FnOnce(&Spec) -> Result<Vec<T>, SpecError>,
        print: impl FnOnce(&[T]) -> String,
        of: impl FnOnce(&M) -> Vec<T>,
    ) -> Result<Vec<T>, FabricError> {
        let print = |items: &Vec<T>| (!items.is_empty()).then(|| print(items));
        let record = record.default("none");
        self.option(record, |spec| Ok(read(spec)?), print, of)
    }

    /// Whether they come from a specification.
    pub(crate) fn are_read(&self) -> bool {
        matches!(self.source, ValueSource::Spec(_))
    }

    /// The name of the family.
    pub(crate) fn family(&self) -> &'static str {
        self.family
    }

    /// The error for an option that must be given.
    pub(crate) fn missing(&self, key: &'static str) -> FabricError {
        FabricError::Missing {
            family: self.family,
            key,
            example: self.example,
        }
    }
}

impl<T: Clone + PartialEq> Otherwise<T> {
    fn clone_value(&self) -> Option<T> {
        match self {
            Otherwise::Required => None,
            Otherwise::Printed(value) | Otherwise::Silent(value) => Some(value.clone()),
        }
    }

    fn prints(&self, value: &T) -> bool {
        !matches!(self, Otherwise::Silent(default) if default == value)
    }
}

/// What a whole number from 1 on may be.
fn range(most: u32) -> String {
    format!("1 to {most}")
}

/// "must be `xor`, `cyclic` or `edge_colouring`".
fn must_be<T>(words: &[(&str, T)]) -> String {
    let quoted: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("must be {} or {last}", others.join(", "))
        }
        _ => format!("must be {}", quoted.concat()),
    }
}
