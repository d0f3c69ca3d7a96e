//! Execution of a program with real bytes, one instruction after another, in an order that the
//! program allows.
//!
//! Ranks exchange data by messages and by one-sided access to the memory of another rank.

use rustc_hash::FxHashMap;

use super::element::{ElementType, ReduceOperator};
use super::execution_order::{OrderedInstruction, execution_order};
use super::{ChunkBuffer, CollectiveProgram, Operand, Operation, ProgramError};
use opticoll_base::{interrupt, memory};

/// Settings of an execution.
#[derive(Debug, Clone, Copy)]
pub struct RunSettings {
    /// Type of the elements in all buffers.
    pub element: ElementType,
    /// Operator of reductions.
    pub operator: ReduceOperator,
    /// Number of elements of each chunk.
    pub elements: usize,
    /// True if input and output share memory.
    pub in_place: bool,
}

struct Machine<'a> {
    program: &'a CollectiveProgram,
    settings: RunSettings,
    chunk_bytes: usize,
    /// Memories of each rank, indexed by rank.
    memories: Vec<FxHashMap<ChunkBuffer, Vec<u8>>>,
}

impl CollectiveProgram {
    /// Returns the number of bytes of the input and of the output of `rank`.
    pub fn buffer_bytes(&self, rank: u32, settings: &RunSettings) -> (usize, usize) {
        let chunk = settings.elements * settings.element.bytes();
        let (input, output) = (self.input_chunks(rank), self.output_chunks(rank));
        (input as usize * chunk, output as usize * chunk)
    }

    /// Executes the program. `inputs` has the input of each rank; returns the output of each rank.
    /// Both are indexed by rank. Fails if an input has the wrong length, if an operand exceeds its
    /// buffer, or if the program deadlocks.
    pub fn run(
        &self,
        settings: RunSettings,
        inputs: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, ProgramError> {
        let mut machine = Machine::new(self, settings, inputs)?;
        // Messages in flight, indexed by the position of their send in the order of execution.
        let mut messages: FxHashMap<u32, Vec<u8>> = FxHashMap::default();
        for (place, current) in (0u32..).zip(execution_order(self)?) {
            interrupt::check();
            let arrived = current.message.and_then(|sent| messages.remove(&sent));
            if let Some(sent_bytes) = machine.execute(&current, arrived.unwrap_or_default())? {
                messages.insert(place, sent_bytes);
            }
        }
        Ok((0..self.ranks.len())
            .map(|rank| machine.output(rank))
            .collect())
    }
}

impl<'a> Machine<'a> {
    fn new(
        program: &'a CollectiveProgram,
        settings: RunSettings,
        inputs: &[Vec<u8>],
    ) -> Result<Machine<'a>, ProgramError> {
        let chunk_bytes = settings.elements * settings.element.bytes();
        let buffers = [
            ChunkBuffer::Input,
            ChunkBuffer::Output,
            ChunkBuffer::Scratch,
        ];
        let bytes =
            |rank: usize, buffer| program.buffer_chunks(rank as u32, buffer) as usize * chunk_bytes;
        let ranks = 0..program.ranks.len();
        let total: usize = ranks
            .flat_map(|rank| buffers.map(|buffer| bytes(rank, buffer)))
            .sum();
        memory::check_forecast(
            "the buffers of all ranks, and messages between them",
            2 * total as u64,
        );
        let mut memories = Vec::new();
        for rank in 0..program.ranks.len() {
            let (input, _) = program.buffer_bytes(rank as u32, &settings);
            let own_input = inputs.get(rank).map_or(&[][..], |own_input| own_input);
            if own_input.len() != input {
                let problem = format!(
                    "input of {} bytes, but {input} bytes are needed",
                    own_input.len()
                );
                return Err(ProgramError::rank(rank as u32, problem));
            }
            let mut parts = FxHashMap::default();
            let place = |buffer| {
                let (place, first) = program.address(rank as u32, buffer, settings.in_place);
                (place, first as usize * chunk_bytes)
            };
            for buffer in buffers {
                let (memory, start) = place(buffer);
                let whole: &mut Vec<u8> = parts.entry(memory).or_default();
                whole.resize(whole.len().max(start + bytes(rank, buffer)), 0);
            }
            let (memory, start) = place(ChunkBuffer::Input);
            if let Some(whole) = parts.get_mut(&memory) {
                whole[start..start + input].copy_from_slice(own_input);
            }
            memories.push(parts);
        }
        Ok(Machine {
            program,
            settings,
            chunk_bytes,
            memories,
        })
    }

    /// Executes an instruction that received the bytes `value`, and returns the bytes that it
    /// sends.
    fn execute(
        &mut self,
        current: &OrderedInstruction,
        mut value: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, ProgramError> {
        let rank = current.rank as usize;
        let block = &self.program.ranks[rank].thread_blocks[current.thread_block as usize];
        let instruction = block.instructions[current.step as usize];
        let wrong =
            |what| ProgramError::rank(current.rank, format!("step {} {what}", current.step));
        let bytes = instruction.count as usize * self.chunk_bytes;
        if instruction.operation == Operation::Nop {
            return Ok(None);
        }
        if instruction.operation.receives() && value.len() != bytes {
            return Err(wrong("receives a message of another length"));
        }
        let place = |operand: Operand| {
            let owner = operand.rank.unwrap_or(current.rank);
            let (buffer, first) =
                self.program
                    .address(owner, operand.buffer, self.settings.in_place);
            let start = usize::try_from(first + i64::from(operand.offset)).ok();
            (
                owner as usize,
                buffer,
                start.map(|start| start * self.chunk_bytes),
            )
        };
        let read = |memories: &[FxHashMap<ChunkBuffer, Vec<u8>>], operand: Operand| {
            let (owner, buffer, start) = place(operand);
            let whole = memories.get(owner)?.get(&buffer)?;
            whole.get(start?..start? + bytes).map(<[u8]>::to_vec)
        };
        let outside = "is outside of its buffer";
        if instruction.operation.reads_source() {
            let Some(source) = read(&self.memories, instruction.source) else {
                return Err(wrong(outside));
            };
            if instruction.operation == Operation::Reduce {
                let Some(present) = read(&self.memories, instruction.destination) else {
                    return Err(wrong(outside));
                };
                value = present;
            }
            if matches!(instruction.operation, Operation::Send | Operation::Copy) {
                value = source;
            } else {
                let RunSettings {
                    element, operator, ..
                } = self.settings;
                element.reduce(operator, &mut value, &source);
            }
        }
        if instruction.operation.writes_destination() {
            let (owner, buffer, start) = place(instruction.destination);
            let memory = self.memories.get_mut(owner);
            let target = memory
                .and_then(|memory| memory.get_mut(&buffer))
                .and_then(|whole| {
                    let start = start?;
                    whole.get_mut(start..start + bytes)
                });
            let Some(target) = target else {
                return Err(wrong(outside));
            };
            target.copy_from_slice(&value);
        }
        Ok(instruction.operation.sends().then_some(value))
    }

    fn output(&self, rank: usize) -> Vec<u8> {
        let (_, bytes) = self.program.buffer_bytes(rank as u32, &self.settings);
        let (buffer, first) =
            self.program
                .address(rank as u32, ChunkBuffer::Output, self.settings.in_place);
        let start = first as usize * self.chunk_bytes;
        self.memories[rank]
            .get(&buffer)
            .map_or_else(Vec::new, |whole| whole[start..start + bytes].to_vec())
    }
}
