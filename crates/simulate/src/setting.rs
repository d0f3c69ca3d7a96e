//! Settings of simulators: each is declared once, with its name, its values, its default and its effect.

use std::fmt::Display;
use std::str::FromStr;

use super::PolicyRecord;
use opticoll_base::names::{same_name, shown, suggest};

/// The declaration of a setting that changes a `T`.
pub struct SettingDeclaration<T: 'static> {
    /// What is said of it.
    pub record: SettingRecord,
    pub(super) apply: fn(&mut T, &str) -> Result<(), String>,
    /// Whether a `T` has another value than its default.
    pub(super) differs: fn(&T) -> bool,
}

/// What is said of a setting.
#[derive(Clone, Copy)]
pub struct SettingRecord {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What it takes.
    pub values: SettingValues,
    /// What holds where it is not given.
    pub default: &'static str,
    /// Whether short help shows it.
    pub level: HelpLevel,
    /// The simulators that know it.
    pub simulators: &'static [&'static str],
}

/// Whether short help shows a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpLevel {
    /// It does.
    Usual,
    /// Only help on everything does.
    All,
}

/// What a setting takes.
#[derive(Clone, Copy)]
pub enum SettingValues {
    /// One of some words.
    Words(fn() -> Vec<&'static str>),
    /// A time with its unit.
    Time,
    /// A number of bytes with its unit.
    Bytes,
    /// A whole number within limits, both included.
    Whole(u64, u64),
    /// A number greater than 0.
    Positive,
    /// A text of a form that is said here.
    Text(&'static str),
}

impl SettingValues {
    /// The unit of a quantity; empty where it has none.
    pub fn unit(self) -> &'static str {
        match self {
            SettingValues::Time => "time",
            SettingValues::Bytes => "bytes",
            _ => "",
        }
    }

    /// The values in words.
    pub fn range(self) -> String {
        match self {
            SettingValues::Words(words) => words().join(", "),
            SettingValues::Time => "a time, such as 10us".into(),
            SettingValues::Bytes => "a number of bytes, such as 4KiB".into(),
            SettingValues::Whole(least, u64::MAX) => format!("a whole number from {least}"),
            SettingValues::Whole(least, most) => format!("a whole number from {least} to {most}"),
            SettingValues::Positive => "a number greater than 0".into(),
            SettingValues::Text(form) => form.into(),
        }
    }
}

impl<T> SettingDeclaration<T> {
    /// Changes what the setting is of, as a text says.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn apply(&self, to: &mut T, text: &str) -> Result<(), String> {
        (self.apply)(to, text.trim())
    }
}

/// The setting with a name.
pub(super) fn find<'a, T>(
    settings: &'a [SettingDeclaration<T>],
    name: &str,
) -> Option<&'a SettingDeclaration<T>> {
    settings.iter().find(|setting| setting.record.name == name)
}

/// Names of settings.
pub(super) fn names<T>(
    settings: &[SettingDeclaration<T>],
) -> impl Iterator<Item = &'static str> + Clone {
    settings.iter().map(|setting| setting.record.name)
}

/// The words of a table of words and what they stand for.
pub(super) fn words<V>(table: &[(&'static str, V)]) -> Vec<&'static str> {
    table.iter().map(|(word, _)| *word).collect()
}

/// Declares settings: each with its name, the simulators that know it where these are not those of all, its field, one
/// sentence, what it takes and what holds where it is not given.
macro_rules! settings {
    ($of:ty, $level:expr, $simulators:expr; $($name:literal $([$($simulator:literal),+])? $(.$field:ident)+: $words:literal, $kind:ident
        $(($($about:expr),+))? $($some:ident)?, $default:literal $(=> $own:expr)?;)+) => {
        &[$(SettingDeclaration {
            record: SettingRecord {
                name: $name,
                summary: $words,
                values: settings!(@values $kind $($($about),+)?),
                default: $default,
                level: settings!(@level $level $(, $own)?),
                simulators: settings!(@simulators $simulators $(, [$($simulator),+])?),
            },
            apply: |of: &mut $of, text| {
                of$(.$field)+ = settings!(@read text, $kind $($($about),+)?)$(.map($some))??;
                Ok(())
            },
            differs: |of: &$of| of$(.$field)+ != <$of>::default()$(.$field)+,
        },)+]
    };
    (@simulators $simulators:expr) => { $simulators };
    (@simulators $simulators:expr, [$($simulator:literal),+]) => { &[$($simulator),+] };
    (@level $level:expr) => { $level };
    (@level $level:expr, $own:expr) => { $own };
    (@values words $table:expr) => { SettingValues::Words(|| words($table)) };
    (@values whole $least:expr, $most:expr) => { SettingValues::Whole($least, $most) };
    (@values records $table:expr) => { SettingValues::Words(|| $table.iter().map(|one| one.name).collect()) };
    (@values named $table:expr) => { SettingValues::Words(|| $table.iter().map(|one| one.name).collect()) };
    (@values text $form:expr, $read:expr) => { SettingValues::Text($form) };
    (@values time) => { SettingValues::Time };
    (@values bytes) => { SettingValues::Bytes };
    (@values positive) => { SettingValues::Positive };
    (@read $text:ident, words $table:expr) => { one_of($text, $table) };
    (@read $text:ident, records $table:expr) => { named_by($text, $table) };
    (@read $text:ident, named $table:expr) => { said($text.parse()) };
    (@read $text:ident, whole $least:expr, $most:expr) => { whole($text, $least, $most) };
    (@read $text:ident, text $form:expr, $read:expr) => { $read($text) };
    (@read $text:ident, positive) => { positive($text) };
    (@read $text:ident, $quantity:ident) => { parsed($text) };
}
pub(super) use settings;

/// What was read, or in words why it was not.
pub(super) fn said<V, E: Display>(read: Result<V, E>) -> Result<V, String> {
    read.map_err(|problem| problem.to_string())
}

/// A value that its own type reads.
pub(super) fn parsed<V: FromStr>(text: &str) -> Result<V, String>
where
    V::Err: Display,
{
    text.parse()
        .map_err(|problem: V::Err| format!("`{}`: {problem}", shown(text)))
}

/// What a word of a table stands for.
pub(super) fn one_of<V: Copy>(text: &str, known: &[(&str, V)]) -> Result<V, String> {
    let found = known.iter().find(|(name, _)| same_name(name, text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let hint = suggest(text, known.iter().map(|(name, _)| *name));
        format!("unknown value `{}`{hint}", shown(text))
    })
}

/// What a name of a record stands for.
pub(super) fn named_by<V: Copy>(text: &str, known: &[PolicyRecord<V>]) -> Result<V, String> {
    let known: Vec<(&str, V)> = known.iter().map(|one| (one.name, one.policy)).collect();
    one_of(text, &known)
}

/// A number greater than 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!("`{}` is no number greater than 0", shown(text))),
    }
}

/// A whole number, also as `1e7`.
pub(super) fn whole<N: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Result<N, String> {
    let number = text.parse::<u64>().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0 && (0.0..=2f64.powi(53)).contains(&number)).then_some(number as u64)
    });
    let number = number.filter(|number| (least..=most).contains(number));
    number
        .and_then(|number| N::try_from(number).ok())
        .ok_or_else(|| {
            format!(
                "`{}` is no whole number from {least} to {most}, such as 1000 or 1e3",
                shown(text)
            )
        })
}
