//! Names: enums with names, comparison that ignores case and hyphens, suggestions for misspelt
//! names, and safe printing of words from users and files.

/// Declares enums whose variants have names. `ALL` lists the variants in declaration order, `WORDS`
/// lists them with their names, and `name` and `Display` return the name of a variant.
///
/// ```
/// opticoll_base::named_enum! {
///     /// A colour.
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub enum Colour {
///         /// The colour of the sky.
///         Blue = "blue",
///         /// The colour of grass.
///         Green = "green",
///     }
/// }
/// assert_eq!(Colour::ALL.map(Colour::name), ["blue", "green"]);
/// ```
#[macro_export]
macro_rules! named_enum {
    ($($(#[$about:meta])* pub enum $name:ident {
        $($(#[$meaning:meta])* $variant:ident = $word:literal,)+
    })+) => {$(
        $(#[$about])*
        pub enum $name {
            $($(#[$meaning])* $variant,)+
        }

        impl $name {
            /// All variants, in the order of their declaration.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// All variants with their names.
            pub const WORDS: [(&'static str, $name); [$($word),+].len()] =
                [$(($word, $name::$variant)),+];

            /// Returns the variant's name, as users type it and as opticoll prints it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    )+};
}

/// Returns `count` with the noun `word` in the singular or plural, such as `1 slot` or `2 slots`.
pub fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}

/// Maximum number of characters of a user's word that a message quotes.
const MAX_SHOWN_CHARACTERS: usize = 100;

/// Maximum length in bytes of a misspelt name for which [`suggest`] searches similar names. The
/// search takes a time proportional to this length.
const MAX_NAME_BYTES: usize = 100;

/// Returns `word`, which comes from a file or a command line, in a form that is safe to print: long
/// words are cut, and unprintable characters, which a terminal could interpret, are escaped.
pub fn terminal_text(word: &str) -> String {
    let mut text = String::new();
    for letter in word.chars().take(MAX_SHOWN_CHARACTERS) {
        if is_printable(letter) {
            text.push(letter);
        } else {
            let units = letter.encode_utf16(&mut [0; 2]).to_vec();
            text.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    match word.chars().count() {
        length if length > MAX_SHOWN_CHARACTERS => format!("{text}... ({length} characters)"),
        _ => text,
    }
}

/// Returns whether `letter` can be printed as it is. Control characters, line separators and marks
/// that change the direction of writing cannot.
pub fn is_printable(letter: char) -> bool {
    if letter.is_ascii() {
        return matches!(letter, ' '..='~');
    }
    // A combining accent is printable after a letter; the standard library escapes a lone accent.
    let after_letter: String = ['x', letter].into_iter().collect();
    after_letter.escape_debug().count() == 2
}

/// Returns whether two names are equal apart from case, hyphens and underscores. For example,
/// `one_stage`, `one-stage` and `OneStage` are the same name.
pub fn same_name(first: &str, second: &str) -> bool {
    let letters = |name: &str| -> String {
        let plain = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
        plain.flat_map(char::to_lowercase).collect()
    };
    letters(first) == letters(second)
}

/// Returns the last part of an error message about the unknown name `name`: `; did you mean X?` if
/// one of the `known` names is similar, otherwise `; known are X, Y, Z`.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if name.len() > MAX_NAME_BYTES {
        return format!("; known are {}", known.join(", "));
    }
    let completion = known
        .iter()
        .find(|candidate| name.len() > 2 && candidate.starts_with(name));
    let nearest = known
        .iter()
        .map(|candidate| (distance(name, candidate), candidate));
    let similar = nearest
        .min()
        .filter(|(edits, candidate)| *edits <= 1 + name.len().max(candidate.len()) / 3)
        .map(|(_, candidate)| candidate);
    match completion.or(similar) {
        Some(candidate) => format!("; did you mean `{candidate}`?"),
        None => format!("; known are {}", known.join(", ")),
    }
}

/// Returns the Levenshtein distance of two names: the minimum number of insertions, deletions and
/// substitutions of characters that turn one name into the other.
fn distance(first: &str, second: &str) -> usize {
    let second: Vec<char> = second.chars().collect();
    let mut row: Vec<usize> = (0..=second.len()).collect();
    for (i, a) in first.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in second.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[second.len()]
}
