//! Carries a program out with real bytes, on a few threads.
//!
//! Thread blocks are tasks: a worker carries one out until it has to wait for a message or for another thread
//! block, and goes on with another. So thousands of ranks need no more threads than there are cores, and a
//! program that stands still is noticed at once: no task is left that can go on. Memory is a rank's own; ranks
//! share nothing but messages.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::element::{ElementType, ReduceOperator};
use super::{ChunkBuffer, CollectiveProgram, Operand, Operation, ProgramError};
use opticoll_base::{interrupt, memory};

/// How often a worker without work looks whether it is to stop.
const PERIOD: Duration = Duration::from_millis(50);

/// What a run is to do.
#[derive(Debug, Clone, Copy)]
pub struct RunSettings {
    /// The type of the elements.
    pub element: ElementType,
    /// How reductions combine two elements.
    pub operator: ReduceOperator,
    /// Elements of a chunk.
    pub elements: usize,
    /// Whether input and output share memory.
    pub in_place: bool,
    /// Workers.
    pub threads: usize,
}

/// What a rank sends to another on a channel.
#[derive(Default)]
struct Mailbox {
    messages: VecDeque<Vec<u8>>,
    waiting: Option<usize>,
}

/// A thread block.
struct Task {
    rank: usize,
    thread_block: usize,
    sends: Option<usize>,
    receives: Option<usize>,
    /// Instructions that are complete.
    complete: AtomicU32,
    waiting: Mutex<Vec<usize>>,
}

/// Tasks that can go on.
struct Ready {
    tasks: Vec<usize>,
    idle: usize,
    over: bool,
}

struct Machine<'a> {
    program: &'a CollectiveProgram,
    settings: RunSettings,
    chunk_bytes: usize,
    memories: Vec<Mutex<FxHashMap<ChunkBuffer, Vec<u8>>>>,
    mailboxes: Vec<Mutex<Mailbox>>,
    tasks: Vec<Task>,
    first_task: Vec<usize>,
    ready: Mutex<Ready>,
    woken: Condvar,
    workers: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CollectiveProgram {
    /// The bytes that the input and the output of a rank have.
    pub fn buffer_bytes(&self, rank: u32, settings: &RunSettings) -> (usize, usize) {
        let chunk = settings.elements * settings.element.bytes();
        let (input, output) = (self.input_chunks(rank), self.output_chunks(rank));
        (input as usize * chunk, output as usize * chunk)
    }

    /// Carries the program out: by rank, the bytes of the output, from those of the input.
    ///
    /// # Errors
    /// An input of another length, an operand outside its buffer, or a program that stands still.
    pub fn run(
        &self,
        settings: RunSettings,
        inputs: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, ProgramError> {
        let machine = Machine::new(self, settings, inputs)?;
        let workers: Vec<usize> = (0..machine.workers).collect();
        let ended = interrupt::side_by_side(workers, |_| machine.work());
        ended.into_iter().collect::<Result<Vec<()>, _>>()?;
        machine.stands_still()?;
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
            .flat_map(|rank| buffers.map(|one| bytes(rank, one)))
            .sum();
        memory::take(
            "the buffers of all ranks, and messages between them",
            2 * total as u64,
        );
        let mut memories = Vec::new();
        for rank in 0..program.ranks.len() {
            let (input, _) = program.buffer_bytes(rank as u32, &settings);
            let given = inputs.get(rank).map_or(&[][..], |given| given);
            if given.len() != input {
                let problem = format!("input of {} bytes, which must have {input}", given.len());
                return Err(ProgramError::Run {
                    rank: rank as u32,
                    problem,
                });
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
                whole[start..start + input].copy_from_slice(given);
            }
            memories.push(Mutex::new(parts));
        }
        let mut mailboxes: FxHashMap<(usize, usize, u32), usize> = FxHashMap::default();
        let (mut tasks, mut first_task) = (Vec::new(), Vec::new());
        for (rank, own) in program.ranks.iter().enumerate() {
            first_task.push(tasks.len());
            for (thread_block, block) in own.thread_blocks.iter().enumerate() {
                let mut mailbox = |from, to| {
                    let next = mailboxes.len();
                    *mailboxes.entry((from, to, block.channel)).or_insert(next)
                };
                tasks.push(Task {
                    rank,
                    thread_block,
                    sends: block.sends_to.map(|to| mailbox(rank, to as usize)),
                    receives: block.receives_from.map(|from| mailbox(from as usize, rank)),
                    complete: AtomicU32::new(0),
                    waiting: Mutex::default(),
                });
            }
        }
        let all = (0..tasks.len()).rev().collect();
        Ok(Machine {
            program,
            settings,
            chunk_bytes,
            memories,
            mailboxes: (0..mailboxes.len()).map(|_| Mutex::default()).collect(),
            tasks,
            first_task,
            ready: Mutex::new(Ready {
                tasks: all,
                idle: 0,
                over: false,
            }),
            woken: Condvar::new(),
            workers: settings.threads.max(1),
        })
    }

    /// Carries tasks out until none can go on.
    fn work(&self) -> Result<(), ProgramError> {
        loop {
            let task = {
                let mut ready = lock(&self.ready);
                loop {
                    if ready.over {
                        return Ok(());
                    }
                    if let Some(task) = ready.tasks.pop() {
                        break task;
                    }
                    ready.idle += 1;
                    if ready.idle == self.workers {
                        ready.over = true;
                        self.woken.notify_all();
                        return Ok(());
                    }
                    // From time to time, to see whether all work is to stop.
                    let waited = self.woken.wait_timeout(ready, PERIOD);
                    (ready, _) = waited.unwrap_or_else(PoisonError::into_inner);
                    interrupt::check();
                    ready.idle -= usize::from(!ready.over);
                }
            };
            let ended = self.carry_out(task);
            if ended.is_err() {
                self.stop();
                return ended;
            }
        }
    }

    fn stop(&self) {
        lock(&self.ready).over = true;
        self.woken.notify_all();
    }

    fn wake(&self, tasks: impl IntoIterator<Item = usize>) {
        let mut ready = lock(&self.ready);
        for task in tasks {
            ready.tasks.push(task);
            self.woken.notify_one();
        }
    }

    /// Carries a thread block out until it has to wait.
    fn carry_out(&self, task: usize) -> Result<(), ProgramError> {
        let own = &self.tasks[task];
        let block = &self.program.ranks[own.rank].thread_blocks[own.thread_block];
        loop {
            interrupt::check();
            let step = own.complete.load(Ordering::Acquire);
            let Some(one) = block.instructions.get(step as usize) else {
                return Ok(());
            };
            if let Some(on) = one.waits_for {
                let place = self.first_task[own.rank] + on.thread_block as usize;
                let Some(other) = self.tasks.get(place) else {
                    return self.wrong(
                        own.rank,
                        step,
                        "waits for a thread block that is not there",
                    );
                };
                let mut waiting = lock(&other.waiting);
                if other.complete.load(Ordering::Acquire) <= on.step {
                    waiting.push(task);
                    return Ok(());
                }
            }
            let mut arrived = Vec::new();
            if one.operation.receives() {
                let Some(mailbox) = own.receives else {
                    return self.wrong(own.rank, step, "receives from no rank");
                };
                let mut mailbox = lock(&self.mailboxes[mailbox]);
                match mailbox.messages.pop_front() {
                    Some(message) => arrived = message,
                    None => {
                        mailbox.waiting = Some(task);
                        return Ok(());
                    }
                }
            }
            let leaving = self.execute(own, step, arrived)?;
            if one.operation.sends() {
                let Some(mailbox) = own.sends else {
                    return self.wrong(own.rank, step, "sends to no rank");
                };
                let mut mailbox = lock(&self.mailboxes[mailbox]);
                mailbox.messages.push_back(leaving);
                let waiting = mailbox.waiting.take();
                drop(mailbox);
                self.wake(waiting);
            }
            own.complete.store(step + 1, Ordering::Release);
            let waiting = std::mem::take(&mut *lock(&own.waiting));
            if !waiting.is_empty() {
                self.wake(waiting);
            }
        }
    }

    fn wrong<T>(&self, rank: usize, step: u32, what: &str) -> Result<T, ProgramError> {
        Err(ProgramError::Run {
            rank: rank as u32,
            problem: format!("step {step} {what}"),
        })
    }

    /// Moves the bytes of an instruction; what it sends.
    fn execute(&self, task: &Task, step: u32, mut value: Vec<u8>) -> Result<Vec<u8>, ProgramError> {
        let block = &self.program.ranks[task.rank].thread_blocks[task.thread_block];
        let one = block.instructions[step as usize];
        let bytes = one.count as usize * self.chunk_bytes;
        if one.operation == Operation::Nop {
            return Ok(value);
        }
        if one.operation.receives() && value.len() != bytes {
            return self.wrong(task.rank, step, "receives a message of another length");
        }
        let mut memory = lock(&self.memories[task.rank]);
        let place = |operand: Operand| {
            let rank = task.rank as u32;
            let (buffer, first) =
                self.program
                    .address(rank, operand.buffer, self.settings.in_place);
            let start = usize::try_from(first + i64::from(operand.offset)).ok();
            (buffer, start.map(|start| start * self.chunk_bytes))
        };
        let read = |memory: &FxHashMap<ChunkBuffer, Vec<u8>>, operand: Operand| {
            let (buffer, start) = place(operand);
            let whole = memory.get(&buffer)?;
            whole.get(start?..start? + bytes).map(<[u8]>::to_vec)
        };
        let outside = "is outside of its buffer";
        let reduces = !matches!(
            one.operation,
            Operation::Send | Operation::Copy | Operation::Receive | Operation::ReceiveCopySend
        );
        if !matches!(
            one.operation,
            Operation::Receive | Operation::ReceiveCopySend
        ) {
            let Some(source) = read(&memory, one.source) else {
                return self.wrong(task.rank, step, outside);
            };
            if one.operation == Operation::Reduce {
                let Some(there) = read(&memory, one.destination) else {
                    return self.wrong(task.rank, step, outside);
                };
                value = there;
            }
            if reduces {
                let RunSettings {
                    element, operator, ..
                } = self.settings;
                element.reduce(operator, &mut value, &source);
            } else {
                value = source;
            }
        }
        if !matches!(
            one.operation,
            Operation::Send | Operation::ReceiveReduceSend
        ) {
            let (buffer, start) = place(one.destination);
            let target = memory.get_mut(&buffer).and_then(|whole| {
                let start = start?;
                whole.get_mut(start..start + bytes)
            });
            let Some(target) = target else {
                return self.wrong(task.rank, step, outside);
            };
            target.copy_from_slice(&value);
        }
        Ok(value)
    }

    /// Refuses the first thread block that is not through.
    fn stands_still(&self) -> Result<(), ProgramError> {
        for task in &self.tasks {
            let block = &self.program.ranks[task.rank].thread_blocks[task.thread_block];
            let step = task.complete.load(Ordering::Acquire);
            let Some(one) = block.instructions.get(step as usize) else {
                continue;
            };
            let what = match (one.waits_for, block.receives_from) {
                (Some(on), _)
                    if self.tasks[self.first_task[task.rank] + on.thread_block as usize]
                        .complete
                        .load(Ordering::Acquire)
                        <= on.step =>
                {
                    format!("thread block {}, step {}", on.thread_block, on.step)
                }
                (_, Some(from)) => format!("a message from rank {from}"),
                _ => "nothing".to_owned(),
            };
            let problem = format!(
                "thread block {}, step {step} waits for {what}, which never comes",
                task.thread_block
            );
            let rank = task.rank as u32;
            return Err(ProgramError::Run { rank, problem });
        }
        Ok(())
    }

    fn output(&self, rank: usize) -> Vec<u8> {
        let (_, bytes) = self.program.buffer_bytes(rank as u32, &self.settings);
        let (buffer, first) =
            self.program
                .address(rank as u32, ChunkBuffer::Output, self.settings.in_place);
        let start = first as usize * self.chunk_bytes;
        let memory = lock(&self.memories[rank]);
        memory
            .get(&buffer)
            .map_or_else(Vec::new, |whole| whole[start..start + bytes].to_vec())
    }
}
