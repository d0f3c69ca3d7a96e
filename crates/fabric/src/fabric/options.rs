//! Options of fabric families. Each family declares its options in one function. The declaration is
//! used to read a specification, to print the specification of a machine, and to list the options.

use std::fmt;
use std::str::FromStr;

use super::{FabricError, FamilyRecord};
use opticoll_base::spec::{OptionRecord, REQUIRED, Spec, SpecError};
use opticoll_base::units::Quantity;

/// Option of a family. A range or default that the record does not state comes from the type of the
/// option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricOption {
    /// Record of the option; its unit is the unit of the option's type.
    pub record: OptionRecord,
    /// Accepted values, in words.
    pub range: String,
    /// Default, in words; `None` if the option is required.
    pub default: Option<String>,
}

impl FabricOption {
    /// Creates an option from a record. `range` and `default` apply if the record states no range
    /// or no default, respectively.
    pub(crate) fn new(
        record: OptionRecord,
        range: &str,
        default: Option<&(impl fmt::Display + ?Sized)>,
    ) -> FabricOption {
        let option = FabricOption::from(record);
        FabricOption {
            range: match record.range {
                "" => range.to_owned(),
                _ => option.range,
            },
            default: match record.default {
                "" => default.map(|default| default.to_string()),
                _ => option.default,
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

/// Context in which a declaration reads, prints or lists the options of machine type `M`.
pub(crate) struct Options<'a, M> {
    source: ValueSource<'a, M>,
    family: &'static str,
    example: &'static str,
    declared: Vec<FabricOption>,
    printed: Spec,
}

enum ValueSource<'a, M> {
    Spec(&'a Spec),
    Machine(&'a M),
}

/// Rule for an option that is missing in the specification.
pub(crate) enum DefaultRule<T> {
    /// The option is required.
    Required,
    /// Default that the printed specification of a machine always states.
    Printed(T),
    /// Default that the printed specification of a machine omits.
    Silent(T),
}

/// Declares options, one per line:
///
/// ```text
/// declare! { options of Crossbar;
///     cables "cables" count(64, Printed(1)) Broken "cables per rank" source "...";
/// }
/// ```
///
/// `options` is the [`Options`] and `Crossbar` is the type of the machine. Each line consists of:
///
/// * the variable that receives the value, which is also the field of the machine;
/// * the name of the option;
/// * a method of [`Options`] with its arguments, except the first and the last;
/// * optionally a [`Role`](opticoll_base::spec::Role);
/// * the meaning of the option;
/// * setters of [`OptionRecord`], each with one argument.
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

/// Implements [`Machine`](crate::fabric::Machine) for a network that the record and the options of
/// its family describe completely. Example: `machine_over_links!(Crossbar, RECORD, declared);`.
macro_rules! machine_over_links {
    ($machine:ty, $record:ident, $declared:ident) => {
        impl crate::fabric::Machine for $machine {
            fn record(&self) -> &'static crate::fabric::FamilyRecord {
                &$record
            }

            fn spec(&self) -> opticoll_base::spec::Spec {
                crate::fabric::options::print(self, &$record, $declared)
            }

            fn network(&self) -> Option<&dyn crate::network::Network> {
                Some(self)
            }
        }
    };
}
pub(crate) use machine_over_links;

type Declaration<T, M> = fn(&mut Options<'_, M>) -> Result<T, FabricError>;

/// Lists the options of a family.
pub(crate) fn list<T, M>(record: &FamilyRecord, declared: Declaration<T, M>) -> Vec<FabricOption> {
    let Ok(example) = record.example.parse() else {
        return Vec::new();
    };
    let mut options = Options::new(record, ValueSource::Spec(&example));
    let _ = declared(&mut options);
    options.declared
}

/// Reads the options of a specification.
///
/// # Errors
/// An unknown option, a missing option, or a value that is not accepted.
pub(crate) fn read<T, M>(
    spec: &Spec,
    record: &FamilyRecord,
    declared: Declaration<T, M>,
) -> Result<T, FabricError> {
    let mut options = Options::new(record, ValueSource::Spec(spec));
    let value = declared(&mut options);
    // After an error, the declaration may not have declared all options.
    let declared_options = match value {
        Ok(_) => options.declared,
        Err(_) => (record.options)(),
    };
    let names: Vec<&str> = declared_options
        .iter()
        .map(|option| option.record.name)
        .collect();
    spec.only(&names)?;
    value
}

/// Returns the complete specification of a machine.
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

    /// Declares several options that together form one value. `read` parses the value from the
    /// specification, `print` adds the options to a specification, and `of` returns the value of a
    /// machine.
    pub(crate) fn several<T>(
        &mut self,
        records: impl IntoIterator<Item = impl Into<FabricOption>>,
        read: impl FnOnce(&Spec) -> Result<T, FabricError>,
        print: impl FnOnce(Spec, &T) -> Spec,
        of: impl FnOnce(&M) -> T,
    ) -> Result<T, FabricError> {
        self.declared.extend(records.into_iter().map(Into::into));
        self.value_from(read, print, of)
    }

    /// Returns the value of declared options. If the source is a specification, `read` parses the
    /// value. If the source is a machine, `of` returns the value, and `print` adds the value to the
    /// printed specification.
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

    /// Declares an option. `read` parses the value from the specification. `print` returns the text
    /// of a value, or `None` to omit the option. `of` returns the value of a machine.
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

    /// Declares an option whose type has a text form, such as a rate or a time. `otherwise` applies
    /// if the option is missing, and `of` returns the value of a machine.
    pub(crate) fn value<T>(
        &mut self,
        record: OptionRecord,
        otherwise: DefaultRule<T>,
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

    /// Declares an option whose value is a whole number from 1 to `most`. `otherwise` applies if
    /// the option is missing, and `of` returns the value of a machine.
    pub(crate) fn count(
        &mut self,
        record: OptionRecord,
        most: u32,
        otherwise: DefaultRule<u32>,
        of: impl FnOnce(&M) -> u32,
    ) -> Result<u32, FabricError> {
        let missing = self.missing(record.name);
        let default = otherwise.clone_value();
        let option = FabricOption::new(record, &range(most), default.as_ref());
        let read = |spec: &Spec| spec.count(record.name, 1, most)?.or(default).ok_or(missing);
        let print = |value: &u32| otherwise.prints(value).then(|| value.to_string());
        self.option(option, read, print, of)
    }

    /// Declares an option whose value is one of `words`. `words` contains pairs (word, value of the
    /// machine). `otherwise` applies if the option is missing, and `of` returns the value of a
    /// machine.
    pub(crate) fn word<T: Copy + PartialEq>(
        &mut self,
        record: OptionRecord,
        words: &[(&'static str, T)],
        otherwise: DefaultRule<T>,
        of: impl FnOnce(&M) -> T,
    ) -> Result<T, FabricError> {
        let missing = self.missing(record.name);
        let default = otherwise.clone_value();
        let mut named = words.iter();
        let word = named.find(|(_, meaning)| Some(*meaning) == default);
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let option = FabricOption::new(record, &names.join(", "), word.map(|(word, _)| word));
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

    /// Declares an option whose value is a maximum, from 1 to `most`. The maximum is `None` if the
    /// option is missing or has the value `unlimited`.
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

    /// Declares an option whose value is a list. The printed specification omits an empty list.
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

    /// Returns whether the values are read from a specification.
    pub(crate) fn are_read(&self) -> bool {
        matches!(self.source, ValueSource::Spec(_))
    }

    /// Returns the name of the family.
    pub(crate) fn family(&self) -> &'static str {
        self.family
    }

    /// Returns the error that the value of the option `key` is refused because of `problem`.
    pub(crate) fn refuse(&self, key: &str, problem: &str) -> FabricError {
        match self.source {
            ValueSource::Spec(spec) => spec.refuse(key, problem).into(),
            ValueSource::Machine(_) => self.printed.refuse(key, problem).into(),
        }
    }

    /// Returns the error for the missing option `key`.
    pub(crate) fn missing(&self, key: &'static str) -> FabricError {
        FabricError::Missing {
            family: self.family,
            key,
            example: self.example,
        }
    }
}

impl<T: Clone + PartialEq> DefaultRule<T> {
    fn clone_value(&self) -> Option<T> {
        match self {
            DefaultRule::Required => None,
            DefaultRule::Printed(value) | DefaultRule::Silent(value) => Some(value.clone()),
        }
    }

    fn prints(&self, value: &T) -> bool {
        !matches!(self, DefaultRule::Silent(default) if default == value)
    }
}

fn range(most: u32) -> String {
    format!("1 to {most}")
}

/// Returns a message such as "must be `xor`, `cyclic` or `edge_colouring`".
fn must_be<T>(words: &[(&str, T)]) -> String {
    let quoted: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("must be {} or {last}", others.join(", "))
        }
        _ => format!("must be {}", quoted.concat()),
    }
}
