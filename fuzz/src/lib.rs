//! What must hold of whatever a reader is given: it is read or refused, in one line that says
//! something; and what is read can be used. The fuzz targets look for bytes of which this is not
//! so; the crate's own tests try the seeds and a few thousand changes of them.

use opticoll::families::Medium;
use opticoll::plan::{Plan, text};
use opticoll::program::element::{ElementType, ReduceOperator};
use opticoll::program::{CollectiveProgram, RunSettings};
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate::burst::BurstNetwork;
use opticoll::units::Bytes;
use opticoll::verify::program::{ProgramProof, verify_program};
use opticoll::verify::verify;
use opticoll::workload::cost::Zero;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::plan_messages::PlanMessages;
use opticoll::workload::program::Program;
use opticoll::workload::replay::{ReplaySettings, replay};
use opticoll::workload::trace::Trace;
use opticoll::workload::{csv, goal_plan, goal_text, time_independent};

/// A reader: its name, which is also that of its target and of the folder of its seeds, and its
/// check, which returns what was said where the bytes were refused.
///
/// # Panics
/// The check, where something does not hold.
pub type Reader = (&'static str, fn(&[u8]) -> Result<(), String>);

/// All readers.
pub const READERS: &[Reader] = &[
    ("event_table", |bytes| {
        trace(csv::read(string(bytes)?).map_err(said)?)
    }),
    ("time_independent", |bytes| {
        trace(time_independent::read(string(bytes)?, 1_000_000_000).map_err(said)?)
    }),
    ("goal_text", |bytes| {
        program(goal_text::read(string(bytes)?).map_err(said)?)
    }),
    ("goal_plan", |bytes| {
        schedule(goal_plan::read(string(bytes)?).map_err(said)?)
    }),
    ("plan_text", |bytes| plan(string(bytes)?)),
    ("msccl", |bytes| {
        instructions(CollectiveProgram::from_msccl(string(bytes)?).map_err(said)?)
    }),
    ("chakra", |bytes| {
        let traces: Vec<&[u8]> = traces(bytes).collect();
        instructions(CollectiveProgram::from_chakra(&traces).map_err(said)?)
    }),
    ("fabric", |bytes| fabric(string(bytes)?)),
];

/// Bytes of a message, which repeats a long word in part.
const MOST_SAID: usize = 1200;

/// Larger ones take so long that little else would be tried.
const MOST_RANKS: u32 = 64;
const MOST_TRANSFERS: u64 = 1 << 12;
const MOST_CHUNKS: u32 = 1 << 12;

/// What stands between the traces of two ranks.
const NEXT_RANK: &[u8] = b"\nnext rank\n";

/// The traces of ranks within one file.
fn traces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let whole = rest?;
        let end = whole
            .windows(NEXT_RANK.len())
            .position(|window| window == NEXT_RANK);
        rest = end.map(|end| &whole[end + NEXT_RANK.len()..]);
        Some(&whole[..end.unwrap_or(whole.len())])
    })
}

/// The check of the reader of a name.
pub fn check(name: &str, bytes: &[u8]) -> Result<(), String> {
    let reader = READERS.iter().find(|(known, _)| *known == name);
    reader.expect("a reader of that name").1(bytes)
}

fn string(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(said)
}

fn said(error: impl ToString) -> String {
    let text = error.to_string();
    assert!((1..=MOST_SAID).contains(&text.len()), "{text}");
    let plain = text.replace(['"', '\'', '\\'], "");
    assert_eq!(plain.escape_debug().to_string(), plain, "all of it prints");
    text
}

/// A trace that is read runs to its end on a free network, or is refused.
fn trace(trace: Trace) -> Result<(), String> {
    if trace.ranks.len() > MOST_RANKS as usize {
        return Ok(());
    }
    program(expand(&trace, &Algorithms::default()).map_err(said)?)
}

/// Every message of a program that ends was sent.
fn program(program: Program) -> Result<(), String> {
    if program.ranks() > MOST_RANKS {
        return Ok(());
    }
    let replayed = replay(&program, &mut Zero, ReplaySettings::default()).map_err(said)?;
    let (messages, bytes) = program.messages();
    assert_eq!(
        (replayed.messages, u128::from(replayed.bytes)),
        (messages, bytes)
    );
    Ok(())
}

/// A schedule that is read is written and read back as the same, if all its messages have bytes.
fn schedule(schedule: Schedule) -> Result<(), String> {
    let ranks = schedule.collective.ranks();
    if ranks > MOST_RANKS || schedule.len() as u64 > MOST_TRANSFERS {
        return Ok(());
    }
    let sent = |schedule: &Schedule| -> Vec<Vec<Transfer>> {
        let each = (0..schedule.steps()).map(|step| {
            let mut sent: Vec<Transfer> = schedule.columns(step).transfers().collect();
            sent.sort();
            sent
        });
        each.collect()
    };
    let expected = sent(&schedule);
    let medium = Medium::parse(&format!("fully_connected:ranks={ranks}")).map_err(said)?;
    let fabric = medium.fabric().map_err(said)?;
    let plan = Plan::without_light(&fabric, schedule, String::new());
    let messages = PlanMessages::of(&plan, Bytes::new(1 << 40)).map_err(said)?;
    messages.each_has_bytes("GOAL").map_err(said)?;
    let mut text = Vec::new();
    goal_plan::write_text(&messages, &mut text).map_err(said)?;
    let again = goal_plan::read(string(&text)?).expect("it was written");
    assert_eq!(sent(&again), expected);
    Ok(())
}

/// A plan that is read is written and read back as the same, and the verifier says what it thinks
/// of it.
fn plan(file: &str) -> Result<(), String> {
    let plan = text::read_any(file).map_err(said)?;
    let size = plan.transfers();
    if size > MOST_TRANSFERS || plan.fabric.ranks() > MOST_RANKS {
        return Ok(());
    }
    let written = text::write(&plan);
    let again = text::read_any(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(text::write(&again), written, "writing is canonical");
    for violation in verify(&plan) {
        said(violation);
    }
    Ok(())
}

/// A program of ranks that is read is written and read back as one with the same proof, and what is
/// proved runs to its end, with the result of another order of execution.
fn instructions(program: CollectiveProgram) -> Result<(), String> {
    let collective = program.collective;
    if collective.chunks() > MOST_CHUNKS || program.instructions() > MOST_CHUNKS as usize {
        return Ok(());
    }
    let again = program.to_msccl().map_err(said);
    let again = again.map(|text| CollectiveProgram::from_msccl(&text).expect("it was written"));
    let modes = [(true, program.in_place), (false, program.out_of_place)];
    for (in_place, _) in modes.into_iter().filter(|(_, used)| *used) {
        let proof = verify_program(&program, in_place, None);
        for one in proof.violations.iter().chain(&proof.remarks) {
            said(&one.sentence);
        }
        if let Ok(again) = &again {
            let kinds =
                |proof: &ProgramProof| proof.violations.iter().map(|one| one.kind).collect();
            let kinds: [Vec<_>; 2] = [kinds(&proof), kinds(&verify_program(again, in_place, None))];
            assert_eq!(kinds[0], kinds[1]);
        }
        if proof.violations.is_empty() {
            carried_out(&program, in_place);
            if let Err(error) = program.schedule(in_place) {
                said(error);
            }
        }
    }
    again.map(drop)
}

/// Carries a proved program out with one byte a chunk.
fn carried_out(program: &CollectiveProgram, in_place: bool) {
    let settings = RunSettings {
        element: ElementType::Uint8,
        operator: ReduceOperator::Sum,
        elements: 1,
        in_place,
    };
    let ranks = 0..program.collective.ranks();
    let input = |rank| vec![rank as u8 + 1; program.buffer_bytes(rank, &settings).0];
    let inputs: Vec<Vec<u8>> = ranks.map(input).collect();
    program.run(settings, &inputs).expect("it is proved");
}

/// A fabric is spelled as it is read, and has a route between any two ranks; so has a network of
/// bursts.
fn fabric(spelling: &str) -> Result<(), String> {
    // Counts, and not rates or times: those have units.
    let words = spelling.split(|c: char| !c.is_ascii_alphanumeric());
    let counts = words.filter(|word| word.chars().all(|c| c.is_ascii_digit() || c == 'x'));
    if counts
        .flat_map(|word| word.split('x'))
        .any(|count| count.len() > 2)
    {
        return Err("so large a fabric is not looked for here".into());
    }
    let medium = Medium::parse(spelling).map_err(said)?;
    assert_eq!(Medium::parse(&medium.to_string()).as_ref(), Ok(&medium));
    if let Err(error) = BurstNetwork::of(&medium) {
        said(error);
    }
    let fabric = medium.fabric().map_err(said)?;
    let Some(network) = fabric.network().filter(|_| fabric.ranks() <= MOST_RANKS) else {
        return Ok(());
    };
    for source in 0..fabric.ranks() {
        for destination in (0..fabric.ranks()).filter(|&rank| rank != source) {
            let mut route = Vec::new();
            network.route(source, destination, &mut route);
            assert!(!route.is_empty(), "{source} to {destination}");
            for link in route {
                assert!(
                    network.links().len() > link as usize && !network.link_name(link).is_empty()
                );
            }
        }
    }
    Ok(())
}
