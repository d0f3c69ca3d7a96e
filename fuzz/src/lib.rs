//! Properties that hold for every input of a reader: the reader accepts the input, or refuses it in
//! one line that gives a reason; and an accepted input can be used. The fuzz targets search for
//! bytes that violate these properties; the crate's own tests try the seeds and a few thousand
//! mutations of them.

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
    ("mscclpp", |bytes| {
        instructions(CollectiveProgram::from_mscclpp(string(bytes)?).map_err(said)?)
    }),
    ("chakra", |bytes| {
        let traces: Vec<&[u8]> = traces(bytes).collect();
        instructions(CollectiveProgram::from_chakra(&traces).map_err(said)?)
    }),
    ("fabric", |bytes| fabric(string(bytes)?)),
];

/// Maximum length of a message. A message repeats only a part of a long word.
const MAX_MESSAGE_BYTES: usize = 1200;

/// Larger inputs take so long that the search would try little else.
const MAX_RANKS: u32 = 64;
const MAX_TRANSFERS: u64 = 1 << 12;
const MAX_CHUNKS: u32 = 1 << 12;

/// The separator between the traces of two ranks.
const NEXT_RANK: &[u8] = b"\nnext rank\n";

/// Splits a file into the traces of its ranks.
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

/// Checks an input of the reader with this name.
pub fn check(name: &str, bytes: &[u8]) -> Result<(), String> {
    let reader = READERS.iter().find(|(known, _)| *known == name);
    reader.expect("a reader of that name").1(bytes)
}

fn string(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(said)
}

fn said(error: impl ToString) -> String {
    let text = error.to_string();
    assert!((1..=MAX_MESSAGE_BYTES).contains(&text.len()), "{text}");
    let plain = text.replace(['"', '\'', '\\'], "");
    assert_eq!(plain.escape_debug().to_string(), plain, "all of it prints");
    text
}

/// Checks that a trace runs to its end on a network without costs, or is refused.
fn trace(trace: Trace) -> Result<(), String> {
    if trace.ranks.len() > MAX_RANKS as usize {
        return Ok(());
    }
    program(expand(&trace, &Algorithms::default()).map_err(said)?)
}

/// Checks that a program that ends has delivered every message.
fn program(program: Program) -> Result<(), String> {
    if program.ranks() > MAX_RANKS {
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

/// Checks that a schedule is written and read back as the same schedule, if all of its messages
/// have bytes.
fn schedule(schedule: Schedule) -> Result<(), String> {
    let ranks = schedule.collective.ranks();
    if ranks > MAX_RANKS || schedule.len() as u64 > MAX_TRANSFERS {
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

/// Checks that a plan is written and read back as the same plan, and that the verifier judges it.
fn plan(file: &str) -> Result<(), String> {
    let plan = text::read_any(file).map_err(said)?;
    let size = plan.transfers();
    if size > MAX_TRANSFERS || plan.fabric.ranks() > MAX_RANKS {
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

/// Checks that a program of ranks is written and read back as a program with the same proof, and
/// that a proved program runs to its end, with the same result in another order of execution.
fn instructions(program: CollectiveProgram) -> Result<(), String> {
    let collective = program.collective;
    if collective.chunks() > MAX_CHUNKS || program.instructions() > MAX_CHUNKS as usize {
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
    if program.is_one_sided() {
        return Ok(());
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

/// Checks that a fabric prints the specification that was read, and has a route between any two
/// ranks; the same for a network of bursts.
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
    let Some(network) = fabric.network().filter(|_| fabric.ranks() <= MAX_RANKS) else {
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
