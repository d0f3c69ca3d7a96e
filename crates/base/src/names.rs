//! Names that are one whatever their case and hyphens, the nearest known name to a misspelt one, and
//! how a word of somebody else is shown in a message.

/// Declares enums whose variants have names: `ALL` has the variants in their order, `WORDS` with their names, `name` and
/// `Display` give the name of one.
///
/// ```
/// opticoll_base::named_enum! {
///     /// A colour.
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub enum Colour {
///         /// That of the sky.
///         Blue = "blue",
///         /// That of grass.
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
            /// All of them, in their order.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// All of them with their names.
            pub const WORDS: [(&'static str, $name); [$($word),+].len()] = [$(($word, $name::$variant)),+];

            /// Returns the name, as typed and printed.
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

/// `1 slot`, `2 slots`.
pub fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}

/// The characters of a foreign word that a message repeats.
const MOST_SHOWN: usize = 100;

/// Longer names are near no known one.
const MOST_NAME: usize = 100;

/// A word of a file or a command line as a message repeats it: long ones cut, and characters that do not
/// print escaped, since a terminal would obey them or show the rest in another order.
pub fn shown(word: &str) -> String {
    let mut text = String::new();
    for letter in word.chars().take(MOST_SHOWN) {
        if prints(letter) {
            text.push(letter);
        } else {
            let units = letter.encode_utf16(&mut [0; 2]).to_vec();
            text.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    match word.chars().count() {
        length if length > MOST_SHOWN => format!("{text}... ({length} characters)"),
        _ => text,
    }
}

/// Whether a character is seen where it stands: no control character, no mark that turns the direction
/// of writing, no line separator.
pub fn prints(letter: char) -> bool {
    if letter.is_ascii() {
        return matches!(letter, ' '..='~');
    }
    // An accent that combines prints after a letter; alone the standard library escapes it.
    let after_letter: String = ['x', letter].into_iter().collect();
    after_letter.escape_debug().count() == 2
}

/// Whether two texts are one name: `one_stage`, `one-stage` and `One_Stage` are.
pub fn same_name(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        let plain = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
        plain.flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// `; did you mean X?`, or `; known are X, Y, Z` where nothing is near.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if name.len() > MOST_NAME {
        return format!("; known are {}", known.join(", "));
    }
    let begun = known
        .iter()
        .find(|other| name.len() > 2 && other.starts_with(name));
    let nearest = known.iter().map(|other| (distance(name, other), other));
    let near = nearest
        .min()
        .filter(|(edits, other)| *edits <= 1 + name.len().max(other.len()) / 3)
        .map(|(_, other)| other);
    match begun.or(near) {
        Some(other) => format!("; did you mean `{other}`?"),
        None => format!("; known are {}", known.join(", ")),
    }
}

/// Levenshtein's edit distance.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
