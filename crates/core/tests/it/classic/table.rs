//! The table of `docs/algorithms.md` is what the records say.

use std::fs;
use std::path::Path;

use opticoll::algorithm::{Algorithm, records};
use opticoll::collective::CollectiveKind;

const BEGIN: &str =
    "<!-- made from the records; `OPTICOLL_WRITE_DOCS=1 make test` writes it anew -->\n";
const END: &str = "<!-- end -->\n";

/// One table for each collective.
fn tables() -> String {
    let mut text = String::new();
    for kind in CollectiveKind::ALL {
        text += &format!(
            "\n## {kind}\n\n| name | what it does | steps | sent | received | source |\n\
             |---|---|---|---|---|---|\n"
        );
        for record in records().iter().filter(|record| record.collective == kind) {
            text += &row(record);
        }
    }
    text + "\n"
}

fn row(record: &Algorithm) -> String {
    let place = match record.families {
        [] => String::new(),
        families => format!(" On {}.", families.join(", ")),
    };
    let formula = |formula: Option<&str>| match formula {
        Some(formula) => formula.replace("<=", "≤"),
        None => "depends on its options".into(),
    };
    let options: String = record
        .options
        .iter()
        .map(|option| {
            let (name, meaning) = (option.name, option.meaning);
            format!(
                " `{name}`: {meaning} ({}; default {}).",
                option.range, option.default
            )
        })
        .collect();
    let backwards = record.reversed_from.map_or(String::new(), |forward| {
        format!(" Run as {forward} backwards.")
    });
    format!(
        "| `{}` | {}{place}{backwards}{options} | {} | {} | {} | {} |\n",
        record.name,
        sentence(record.summary),
        formula(record.costs.steps),
        formula(record.costs.sent),
        formula(record.costs.received),
        record.citation
    )
}

fn sentence(text: &str) -> String {
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{text}{end}")
}

#[test]
fn the_table_of_algorithms_is_made_from_the_records() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/algorithms.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the table begins");
    let (_, after) = rest.split_once(END).expect("the table ends");
    let made = format!("{before}{BEGIN}{}{END}{after}", tables());
    if std::env::var_os("OPTICOLL_WRITE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    assert!(
        written == made,
        "run the test with OPTICOLL_WRITE_DOCS=1 and look at the change"
    );
}
