//! Names that are one whatever their case and hyphens, and the nearest known name to a misspelt one.

/// Whether two spellings are one name: `one_stage`, `one-stage` and `One_Stage` are.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        let plain = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
        plain.flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// `; did you mean X?`, or `; known are X, Y, Z` where nothing is near.
pub(crate) fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
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
