//! The table of `docs/algorithms.md` agrees with the records.

use std::fs;
use std::path::Path;

use opticoll::algorithms::{Algorithm, records};
use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::families::FAMILIES;
use opticoll::planner::{PLANNERS, Planner};

const BEGIN: &str =
    "<!-- made from the records; `OPTICOLL_WRITE_DOCS=1 make test` writes it anew -->\n";
const END: &str = "<!-- end -->\n";

/// Writes a table of the planners, and a table of the algorithms of each collective.
fn tables() -> String {
    let mut text = "\n## Planners\n\nA planner builds plans for the fabric and the size, and \
                    `auto` chooses among \
        its plans and the algorithms below. `opticoll list NAME` prints its options and its \
        source.\n\n\
        | name | what it does | collectives | fabrics |\n|---|---|---|---|\n"
        .to_string();
    for planner in PLANNERS {
        let names = planner.collectives.iter().map(ToString::to_string);
        let collectives = match planner.collectives.len() {
            all if all == CollectiveKind::ALL.len() => "all".into(),
            _ => names.collect::<Vec<_>>().join(", "),
        };
        let (name, what, fabrics) = (planner.name, sentence(planner.summary), fabrics(planner));
        text += &format!("| `{name}` | {what} | {collectives} | {fabrics} |\n");
    }
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

/// Lists the families for which a planner makes plans: it applies to their example, or to a WDM
/// ring with a cut and light trees.
fn fabrics(planner: &Planner) -> String {
    let ring = "wdm_ring:ranks=16,wavelengths=4,broken=3-4,multicast=drop_and_continue";
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for record in FAMILIES {
        let Ok(example) = Fabric::parse(record.example) else {
            continue; // A cost model of messages.
        };
        let special = Fabric::parse(ring).unwrap();
        let applies =
            planner.applies(&example) || record.name == "wdm_ring" && planner.applies(&special);
        let names = if applies { &mut own } else { &mut others };
        names.push(format!("`{}`", record.name));
    }
    match others.len() {
        0 => "all".into(),
        few if few < own.len() => format!("all but {}", others.join(", ")),
        _ => own.join(", "),
    }
}

fn row(record: &Algorithm) -> String {
    let place = match record.families {
        [] => String::new(),
        families => {
            let work = match (record.in_network.adds(), record.in_network.multicasts()) {
                (false, false) => "",
                (true, false) => " with switches that add",
                (false, true) => " with switches that multicast",
                (true, true) => " with switches that add and multicast",
            };
            format!(" On {}{work}.", families.join(", "))
        }
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
    format!(
        "| `{}` | {}{place}{options} | {} | {} | {} | {} |\n",
        record.name,
        sentence(&record.description()),
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
