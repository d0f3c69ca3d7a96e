//! The nearest known name to a misspelt one, for hints in error messages.

/// `; did you mean X?`, or `; known are X, Y, Z` where nothing is near.
pub(crate) fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known
        .iter()
        .map(|other| (distance(name, other), *other))
        .min();
    match nearest {
        Some((edits, other)) if edits <= 1 + name.len().max(other.len()) / 3 => {
            format!("; did you mean `{other}`?")
        }
        _ => format!("; known are {}", known.join(", ")),
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
