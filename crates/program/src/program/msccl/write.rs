//! Writer of MSCCL XML, with all attributes that runtimes require.

use std::fmt::Write;

use super::super::{ChunkBuffer, CollectiveProgram, Operand, Operation, ProgramError};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum number of instructions of a thread block.
const MAX_STEPS: usize = 256;
/// Maximum number of channels.
const MAX_CHANNELS: u32 = 32;
/// Maximum number of thread blocks of a rank on one channel.
const MAX_BLOCKS_PER_CHANNEL: usize = 32;
/// Maximum number of thread blocks of a rank: two for each of the 108 multiprocessors of a GPU.
const MAX_BLOCKS: usize = 216;
/// Maximum number of XML elements of a rank.
const MAX_ELEMENTS: usize = 4096;
/// Maximum chunk offset: the greatest signed integer of 16 bits.
const MAX_OFFSET: u32 = 32767;
/// Maximum number of bytes of the program's name.
const MAX_NAME_BYTES: usize = 255;

pub(in super::super) fn write(program: &CollectiveProgram) -> Result<String, ProgramError> {
    check_limits(program)?;
    let collective = &program.collective;
    let channels = program
        .ranks
        .iter()
        .flat_map(|rank| &rank.thread_blocks)
        .map(|block| block.channel + 1);
    let mut text = String::new();
    let root = match collective.kind() {
        CollectiveKind::Broadcast
        | CollectiveKind::Reduce
        | CollectiveKind::Gather
        | CollectiveKind::Scatter => format!(" root=\"{}\"", collective.root()),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" \
         coll=\"{}\" inplace=\"{}\" outofplace=\"{}\" minBytes=\"0\" maxBytes=\"0\"{root}>",
        escaped(&program.name),
        escaped(&program.protocol),
        channels.max().unwrap_or(1),
        chunks_per_loop(collective),
        collective.ranks(),
        collective.kind().name().replace('_', ""),
        u8::from(program.in_place),
        u8::from(program.out_of_place),
    );
    for (rank, rank_program) in program.ranks.iter().enumerate() {
        let (input, output) = (
            program.buffer_chunks(rank as u32, ChunkBuffer::Input),
            program.buffer_chunks(rank as u32, ChunkBuffer::Output),
        );
        let _ = writeln!(
            text,
            "  <gpu id=\"{rank}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{}\">",
            rank_program.scratch
        );
        for (id, block) in rank_program.thread_blocks.iter().enumerate() {
            let peer = |peer: Option<u32>| peer.map_or(-1, i64::from);
            let _ = writeln!(
                text,
                "    <tb id=\"{id}\" send=\"{}\" recv=\"{}\" chan=\"{}\">",
                peer(block.sends_to),
                peer(block.receives_from),
                block.channel
            );
            for (step, instruction) in block.instructions.iter().enumerate() {
                let (_, name) = Operation::ALL[instruction.operation as usize];
                let (block, awaited) = instruction.waits_for.map_or((-1, -1), |on| {
                    (i64::from(on.thread_block), i64::from(on.step))
                });
                let _ = writeln!(
                    text,
                    "      <step s=\"{step}\" type=\"{name}\" {} {} cnt=\"{}\" depid=\"{block}\" \
                     deps=\"{awaited}\" hasdep=\"{}\"{}/>",
                    operand_attributes("src", instruction.source),
                    operand_attributes("dst", instruction.destination),
                    instruction.count,
                    u8::from(instruction.signals),
                    instruction
                        .sent_in
                        .map_or(String::new(), |step| format!(" round=\"{step}\""))
                );
            }
            text.push_str("    </tb>\n");
        }
        text.push_str("  </gpu>\n");
    }
    text.push_str("</algo>\n");
    Ok(text)
}

fn chunks_per_loop(collective: &Collective) -> u32 {
    match collective.kind() {
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => {
            collective.pieces()
        }
        _ => collective.pieces() * collective.ranks(),
    }
}

fn operand_attributes(which: &str, operand: Operand) -> String {
    let buffer = match operand.buffer {
        ChunkBuffer::Input => 'i',
        ChunkBuffer::Output => 'o',
        ChunkBuffer::Scratch => 's',
    };
    format!(
        "{which}buf=\"{buffer}\" {which}off=\"{offset}\"",
        offset = operand.offset
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// Checks the limits of the MSCCL runtimes. The error states the limit that is exceeded.
fn check_limits(program: &CollectiveProgram) -> Result<(), ProgramError> {
    let within = |what: &str, number: u64, max: u64| match number <= max {
        true => Ok(()),
        false => Err(ProgramError::Refused(format!(
            "MSCCL runtimes accept at most {max} {what}; this program has {number}"
        ))),
    };
    within(
        "bytes of the name",
        program.name.len() as u64,
        MAX_NAME_BYTES as u64,
    )?;
    for (rank, rank_program) in program.ranks.iter().enumerate() {
        let blocks = &rank_program.thread_blocks;
        let quantity = |what: &str| format!("{what} of rank {rank}");
        within(
            &quantity("thread blocks"),
            blocks.len() as u64,
            MAX_BLOCKS as u64,
        )?;
        let steps: usize = blocks.iter().map(|block| block.instructions.len()).sum();
        let elements = 1 + blocks.len() + steps;
        within(
            &quantity("XML elements"),
            elements as u64,
            MAX_ELEMENTS as u64,
        )?;
        for block in blocks {
            let length = block.instructions.len();
            within(
                &quantity("steps of a thread block"),
                length as u64,
                MAX_STEPS as u64,
            )?;
            within(
                &quantity("channels"),
                u64::from(block.channel) + 1,
                MAX_CHANNELS.into(),
            )?;
            let on_channel = blocks.iter().filter(|other| other.channel == block.channel);
            within(
                &quantity("thread blocks on one channel"),
                on_channel.count() as u64,
                MAX_BLOCKS_PER_CHANNEL as u64,
            )?;
        }
        let chunks = program
            .input_chunks(rank as u32)
            .max(program.output_chunks(rank as u32))
            .max(rank_program.scratch);
        within(
            &quantity("chunks of a buffer"),
            chunks.into(),
            u64::from(MAX_OFFSET) + 1,
        )?;
    }
    Ok(())
}
