//! Settings of simulators. The macro `settings!` declares each setting once, with its name,
//! values, default and field.

use std::fmt::Display;
use std::str::FromStr;

use super::PolicyRecord;
use opticoll_base::names::{same_name, suggest, terminal_text};

/// Declaration of a setting that is stored in a field of `T`.
pub struct SettingDeclaration<T: 'static> {
    /// Name, summary, values and default of the setting.
    pub record: SettingRecord,
    /// Parses a text and stores its value.
    pub(super) apply: fn(&mut T, &str) -> Result<(), String>,
    /// Returns whether the field has another value than in `T::default()`.
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
    /// Value that applies if the setting is not given.
    pub default: &'static str,
    /// Level of help that lists the setting.
    pub level: HelpLevel,
    /// Simulators that know the setting.
    pub simulators: &'static [&'static str],
}

/// Level of help that lists a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpLevel {
    /// Short help and full help list the setting.
    Usual,
    /// Only full help lists the setting.
    All,
}

/// Values that a setting accepts.
#[derive(Clone, Copy)]
pub enum SettingValues {
    /// Word of a list.
    Words(fn() -> Vec<&'static str>),
    /// A time with its unit.
    Time,
    /// A number of bytes with its unit.
    Bytes,
    /// A whole number between a minimum and a maximum, both included.
    Whole(u64, u64),
    /// A number greater than 0.
    Positive,
    /// A text of the given form.
    Text(&'static str),
}

impl SettingValues {
    /// Returns the quantity of the values, `time` or `bytes`, or an empty string for other values.
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
    /// Parses `text` and stores the value in the field of `to`.
    ///
    /// # Errors
    /// The problem of the text.
    pub fn apply(&self, to: &mut T, text: &str) -> Result<(), String> {
        (self.apply)(to, text.trim())
    }
}

/// Returns the declaration of the setting `name`.
pub(super) fn find<'a, T>(
    settings: &'a [SettingDeclaration<T>],
    name: &str,
) -> Option<&'a SettingDeclaration<T>> {
    settings.iter().find(|setting| setting.record.name == name)
}

/// Returns the names of all settings of a list.
pub(super) fn names<T>(
    settings: &[SettingDeclaration<T>],
) -> impl Iterator<Item = &'static str> + Clone {
    settings.iter().map(|setting| setting.record.name)
}

/// Returns the words of a table of words and values.
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
/// The kinds of values are `words(TABLE)` for a table of words and values, `records(TABLE)` and
/// `named(TABLE)` for a table of [`PolicyRecord`]s (`named` parses with the type's `FromStr`),
/// `whole(MIN, MAX)`, `positive`, `time`, `bytes`, and `text(FORM, PARSE)` for a text with a parser
/// of its own.
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

/// Replaces an error by its message.
pub(super) fn with_message<V, E: Display>(read: Result<V, E>) -> Result<V, String> {
    read.map_err(|problem| problem.to_string())
}

/// Parses a value by its type; the error quotes the text.
pub(super) fn parse_value<V: FromStr>(text: &str) -> Result<V, String>
where
    V::Err: Display,
{
    text.parse()
        .map_err(|problem: V::Err| format!("`{}`: {problem}", terminal_text(text)))
}

/// Returns the value that a word of a table stands for.
pub(super) fn parse_word<V: Copy>(text: &str, known: &[(&str, V)]) -> Result<V, String> {
    let found = known.iter().find(|(name, _)| same_name(name, text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let hint = suggest(text, known.iter().map(|(name, _)| *name));
        format!("unknown value `{}`{hint}", terminal_text(text))
    })
}

/// Returns the value that the name of a record stands for.
pub(super) fn parse_name<V: Copy>(text: &str, records: &[PolicyRecord<V>]) -> Result<V, String> {
    let known: Vec<(&str, V)> = records
        .iter()
        .map(|record| (record.name, record.policy))
        .collect();
    parse_word(text, &known)
}

/// Parses a finite number greater than 0.
pub(super) fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!(
            "`{}` is not a number greater than 0",
            terminal_text(text)
        )),
    }
}

/// Parses a whole number from `min` to `max`, also in the form `1e7`.
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
