//! Direct: each chunk goes straight from where it is to where it must be, all in one step.

use super::{AlgorithmError, Record, Request, any_ranks, make_room};
use crate::collective::{CollectiveKind, Holders};
use crate::schedule::{Claims, Schedule, Transfer};

const fn record(collective: CollectiveKind, summary: &'static str) -> Record {
    Record {
        name: "direct",
        label: "Direct",
        collective,
        summary,
        citation: "Folklore; linear algorithms of MPI",
        options: &[],
        accepts: any_ranks,
        build,
        reversed_from: None,
    }
}

/// The records of this file.
pub const RECORDS: &[Record] = &[
    record(
        CollectiveKind::Broadcast,
        "The root sends its vector straight to every rank",
    ),
    record(
        CollectiveKind::Scatter,
        "The root sends every rank its block straight",
    ),
    record(
        CollectiveKind::AllToAll,
        "Every rank sends every other its block straight",
    ),
];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let collective = request.collective;
    let mut schedule = Schedule::new(collective);
    if collective.kind() == CollectiveKind::AllToAll {
        make_room(&mut schedule, collective.ranks())?;
    }
    if collective.ranks() > 1 {
        schedule.begin_step();
    }
    for chunk in 0..collective.chunks() {
        let Holders::One(source) = collective.before(chunk) else {
            continue;
        };
        let destinations = match collective.after(chunk) {
            Holders::One(rank) => rank..rank + 1,
            Holders::All => 0..collective.ranks(),
        };
        for destination in destinations.filter(|&destination| destination != source) {
            schedule.push(Transfer::copy(chunk, source, destination));
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(u32::from(collective.ranks() > 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
