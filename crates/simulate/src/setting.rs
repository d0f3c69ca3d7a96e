//! Settings of simulators. The macro `settings!` declares each setting once, with its name,
//! values, default and field.

use std::fmt::Display;
use std::str::FromStr;

use super::PolicyRecord;
use opticoll_base::names::{same_name, suggest, terminal_text};

/// Declaration of a setting whose value is stored in a field of `T`.
pub struct SettingDeclaration<T: 'static> {
    /// Name, summary, values and default of the setting.
    pub record: SettingRecord,
    /// Function that parses a text and stores the value in the field.
    pub(super) apply: fn(&mut T, &str) -> Result<(), String>,
    /// Function that returns whether the field's value differs from the value in `T::default()`.
    pub(super) differs: fn(&T) -> bool,
}

/// Name, summary, values and default of a setting, as help and documentation print them.
#[derive(Clone, Copy)]
pub struct SettingRecord {
    /// Name, as typed by users.
    pub name: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Values that the setting accepts.
    pub values: SettingValues,
    /// Default value, as users would type it.
    pub default: &'static str,
    /// Level of help at which the setting is listed.
    pub level: HelpLevel,
    /// Simulators that know the setting.
    pub simulators: &'static [&'static str],
}

/// Level of help that lists a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpLevel {
    /// Listed in the short help and in the full help.
    Usual,
    /// Listed only in the full help.
    All,
}

/// Values that a setting accepts.
#[derive(Clone, Copy)]
pub enum SettingValues {
    /// One of the words that the function returns.
    Words(fn() -> Vec<&'static str>),
    /// A time with a unit.
    Time,
    /// A number of bytes with a unit.
    Bytes,
    /// A whole number between a minimum and a maximum, both included.
    Whole(u64, u64),
    /// A number greater than 0.
    Positive,
    /// A text in the form that the string describes.
    Text(&'static str),
}

impl SettingValues {
    /// Returns `time` or `bytes` if the values are quantities with a unit, otherwise an empty
    /// string.
    pub fn unit(self) -> &'static str {
        match self {
            SettingValues::Time => "time",
            SettingValues::Bytes => "bytes",
            _ => "",
        }
    }

    /// Describes the accepted values in words.
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
    /// Parses `text` and stores the value in the setting's field of `to`.
    ///
    /// # Errors
    /// Returns the reason why `text` is not a valid value.
    pub fn apply(&self, to: &mut T, text: &str) -> Result<(), String> {
        (self.apply)(to, text.trim())
    }
}

pub(super) fn find<'a, T>(
    settings: &'a [SettingDeclaration<T>],
    name: &str,
) -> Option<&'a SettingDeclaration<T>> {
    settings.iter().find(|setting| setting.record.name == name)
}

pub(super) fn names<T>(
    settings: &[SettingDeclaration<T>],
) -> impl Iterator<Item = &'static str> + Clone {
    settings.iter().map(|setting| setting.record.name)
}

pub(super) fn word_list<V>(table: &[(&'static str, V)]) -> Vec<&'static str> {
    table.iter().map(|(word, _)| *word).collect()
}

/// Declares a list of settings of one type.
///
/// ```text
/// settings! {
///     BurstSettings, HelpLevel::All, &["burst"];          // type, level of help, simulators
///     "length" .length: "Distribution of lengths",        // name, field, summary
///         words(&Length::WORDS), "constant";              // values, default
///     "gap" ["burst", "packet"] .options.gap:             // other simulators than above
///         "Time between two bursts", time, "none" => HelpLevel::Usual;   // another level of help
///     "warmup" .warmup: "Number of bursts before measuring",
///         whole(0, 1 << 50) Some, "1000 for each host";   // `Some` wraps the value
/// }
/// ```
///
/// The kind of a setting is one of the following:
/// - `words(TABLE)`: a word of a table of pairs of word and value.
/// - `records(TABLE)`: a name of a table of [`PolicyRecord`]s.
/// - `named(TABLE)`: like `records`, but parsed with `FromStr` of the value's type.
/// - `whole(MIN, MAX)`, `positive`, `time`, `bytes`: numbers and quantities.
/// - `text(FORM, PARSE)`: a text of the form FORM, parsed with the function PARSE.
macro_rules! settings {
    ($of:ty, $level:expr, $simulators:expr;
     $($name:literal $([$($simulator:literal),+])? $(.$field:ident)+: $summary:literal,
        $kind:ident $(($($argument:expr),+))? $($wrapper:ident)?,
        $default:literal $(=> $other_level:expr)?;)+) => {
        &[$($crate::setting::SettingDeclaration {
            record: $crate::setting::SettingRecord {
                name: $name,
                summary: $summary,
                values: $crate::setting::settings!(@values $kind $($($argument),+)?),
                default: $default,
                level: $crate::setting::settings!(@first $($other_level,)? $level),
                simulators: $crate::setting::settings!(@first $(&[$($simulator),+],)? $simulators),
            },
            apply: |of: &mut $of, text| {
                let value = $crate::setting::settings!(@read text, $kind $($($argument),+)?);
                of$(.$field)+ = value$(.map($wrapper))??;
                Ok(())
            },
            differs: |of: &$of| of$(.$field)+ != <$of>::default()$(.$field)+,
        },)+]
    };
    (@first $first:expr $(, $second:expr)?) => { $first };
    (@values words $table:expr) => {
        $crate::setting::SettingValues::Words(|| $crate::setting::word_list($table))
    };
    (@values whole $min:expr, $max:expr) => { $crate::setting::SettingValues::Whole($min, $max) };
    (@values records $table:expr) => { $crate::setting::settings!(@values named $table) };
    (@values named $table:expr) => {
        $crate::setting::SettingValues::Words(|| $table.iter().map(|record| record.name).collect())
    };
    (@values text $form:expr, $read:expr) => { $crate::setting::SettingValues::Text($form) };
    (@values time) => { $crate::setting::SettingValues::Time };
    (@values bytes) => { $crate::setting::SettingValues::Bytes };
    (@values positive) => { $crate::setting::SettingValues::Positive };
    (@read $text:ident, words $table:expr) => { $crate::setting::parse_word($text, $table) };
    (@read $text:ident, records $table:expr) => { $crate::setting::parse_name($text, $table) };
    (@read $text:ident, named $table:expr) => { $crate::setting::with_message($text.parse()) };
    (@read $text:ident, whole $min:expr, $max:expr) => {
        $crate::setting::parse_whole($text, $min, $max)
    };
    (@read $text:ident, text $form:expr, $read:expr) => { $read($text) };
    (@read $text:ident, positive) => { $crate::setting::parse_positive($text) };
    (@read $text:ident, $quantity:ident) => { $crate::setting::parse_value($text) };
}
pub(super) use settings;

pub(super) fn with_message<V, E: Display>(read: Result<V, E>) -> Result<V, String> {
    read.map_err(|problem| problem.to_string())
}

/// Parses a value with `FromStr`; the error quotes `text`.
pub(super) fn parse_value<V: FromStr>(text: &str) -> Result<V, String>
where
    V::Err: Display,
{
    text.parse()
        .map_err(|problem: V::Err| format!("`{}`: {problem}", terminal_text(text)))
}

/// Returns the value that the word `text` stands for, given pairs of word and value.
pub(super) fn parse_word<V: Copy>(text: &str, words: &[(&str, V)]) -> Result<V, String> {
    let entry = words.iter().find(|(word, _)| same_name(word, text));
    entry.map(|(_, value)| *value).ok_or_else(|| {
        let hint = suggest(text, words.iter().map(|(word, _)| *word));
        format!("unknown value `{}`{hint}", terminal_text(text))
    })
}

/// Returns the value of the record whose name is `text`.
pub(super) fn parse_name<V: Copy>(text: &str, records: &[PolicyRecord<V>]) -> Result<V, String> {
    let words: Vec<(&str, V)> = records
        .iter()
        .map(|record| (record.name, record.policy))
        .collect();
    parse_word(text, &words)
}

pub(super) fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!(
            "`{}` is not a number greater than 0",
            terminal_text(text)
        )),
    }
}

/// Parses a whole number from `min` to `max`; `1e7` is also accepted.
pub(super) fn parse_whole<N: TryFrom<u64>>(text: &str, min: u64, max: u64) -> Result<N, String> {
    let number = text.parse::<u64>().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0 && (0.0..=2f64.powi(53)).contains(&number)).then_some(number as u64)
    });
    let number = number.filter(|number| (min..=max).contains(number));
    number
        .and_then(|number| N::try_from(number).ok())
        .ok_or_else(|| {
            format!(
                "`{}` is not a whole number from {min} to {max}, such as 1000 or 1e3",
                terminal_text(text)
            )
        })
}
