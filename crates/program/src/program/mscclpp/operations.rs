//! Operations of a thread block as instructions that copy, add and wait.
//!
//! An operation that adds several chunks, or reads and writes chunks of all ranks of a switch, adds
//! them in temporary scratch of its thread block, and copies the sum to all destinations.

use super::super::{
    ChunkBuffer, CollectiveProgram, Dependency, Instruction, Operand, Operation, ProgramError,
    ThreadBlock,
};
use super::json::Value;
use super::pairing::{Channel, Pairing, Point};
use super::threads::{Access, Threads};
use super::{
    CHANNEL_TYPES, Gpu, MAX_BUFFERS_PER_OPERATION, MAX_CHANNELS, MAX_CHANNELS_PER_OPERATION,
    MAX_NUMBER, MAX_OPERATIONS, MAX_SEMAPHORES, Pieces, buffer_of, channel_type, within,
};
use opticoll_base::interrupt;

/// Chunks that an operation accesses.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    rank: u32,
    buffer: ChunkBuffer,
    /// First piece and number of pieces.
    start: u64,
    count: u64,
    /// True if the chunks are packets, whose readers wait for them.
    packets: bool,
}

pub(super) struct BlockReader<'a> {
    program: &'a CollectiveProgram,
    gpu: &'a Gpu<'a>,
    rank: u32,
    pieces: Pieces,
    value: &'a Value,
    /// Channels and remote buffers of the thread block, by type: indices in those of the GPU.
    channels: [Vec<usize>; 2],
    remote: [Vec<usize>; 2],
    groups: Vec<usize>,
    /// Number of pieces of temporary scratch that the thread block needs.
    pub(super) temporary: u32,
    members: Vec<usize>,
    block: usize,
    threads: Threads,
    /// Number of the current sequence of acquires.
    acquire_run: usize,
}

/// Returns a thread block that sends and receives no messages.
pub(super) fn without_peers() -> ThreadBlock {
    ThreadBlock {
        sends_to: None,
        receives_from: None,
        channel: 0,
        instructions: Vec::new(),
    }
}

impl<'a> BlockReader<'a> {
    pub(super) fn new(
        program: &'a CollectiveProgram,
        gpu: &'a Gpu<'a>,
        rank: u32,
        pieces: Pieces,
        value: &'a Value,
    ) -> Result<BlockReader<'a>, ProgramError> {
        let indices = |what: &str, list: &Value, count: usize, into: &mut Vec<usize>| {
            for index in list.list()? {
                let number = index.number(MAX_NUMBER)? as usize;
                if number >= count {
                    return Err(index.error(&format!("{number} does not exist: there are {count}")));
                }
                into.push(number);
            }
            within(list, what, into.len(), MAX_CHANNELS)
        };
        let mut channels = [Vec::new(), Vec::new()];
        let mut groups = Vec::new();
        for own in value.list_of("channels")? {
            let (name, ids) = (own.required("channel_type")?, own.required("channel_ids")?);
            let what = "channels of a thread block";
            match name.text()? == "switch" {
                true => indices(what, ids, gpu.groups.len(), &mut groups)?,
                false => {
                    let kind = channel_type(name)?;
                    indices(what, ids, gpu.channels[kind].len(), &mut channels[kind])?;
                }
            }
        }
        let mut remote = [Vec::new(), Vec::new()];
        for own in value.list_of("remote_buffer_refs")? {
            let kind = channel_type(own.required("access_channel_type")?)?;
            indices(
                "remote buffers of a thread block",
                own.required("remote_buffer_ids")?,
                gpu.remote.len(),
                &mut remote[kind],
            )?;
        }
        Ok(BlockReader {
            program,
            gpu,
            rank,
            pieces,
            value,
            channels,
            remote,
            groups,
            temporary: 0,
            members: Vec::new(),
            block: 0,
            threads: Threads::default(),
            acquire_run: 0,
        })
    }

    /// Reads all operations. Returns the indices of their instructions.
    pub(super) fn read(
        &mut self,
        pairing: &mut Pairing,
        block: usize,
    ) -> Result<Vec<usize>, ProgramError> {
        self.block = block;
        let operations = self.value.list_of("ops")?;
        let mut count = operations.len();
        for operation in operations {
            count += operation.list_of("ops")?.len();
        }
        within(
            self.value,
            "operations of a thread block",
            count,
            MAX_OPERATIONS,
        )?;
        for operation in operations {
            if operation.required("name")?.text()? != "pipeline" {
                self.operation(pairing, operation, None)?;
                continue;
            }
            let context = operation.required("iter_context")?;
            let chunks = context.number_of("num_chunks", MAX_NUMBER)?;
            let repetitions = chunks * self.pieces.per_chunk / self.pieces.per_repetition;
            for repetition in 0..repetitions {
                interrupt::check();
                for inner in operation.list_of("ops")? {
                    self.operation(pairing, inner, Some((repetition, repetitions)))?;
                }
            }
        }
        Ok(std::mem::take(&mut self.members))
    }

    fn operation(
        &mut self,
        pairing: &mut Pairing,
        operation: &Value,
        repetition: Option<(u64, u64)>,
    ) -> Result<(), ProgramError> {
        if pairing.instructions() as u64 > MAX_NUMBER {
            let problem = format!("the plan has more than {MAX_NUMBER} instructions");
            return Err(operation.error(&problem));
        }
        let name = operation.required("name")?;
        let channel_ids = operation.list_of("channel_ids")?.len();
        within(
            operation,
            "channels of an operation",
            channel_ids,
            MAX_CHANNELS_PER_OPERATION,
        )?;
        if !matches!(name.text()?, "nop" | "sem_acquire") {
            self.acquire_run += 1;
        }
        let name = match name.text()? {
            "nop" => {
                self.threads.meet();
                return Ok(());
            }
            "barrier" => return self.barrier(pairing, operation),
            "flush" => return Ok(()),
            "signal" | "rlxsignal" => {
                self.demand_meeting(operation)?;
                let at = self.add_nop(pairing, operation.line);
                return self.signal(pairing, operation, at);
            }
            "wait" | "rlxwait" => {
                let at = self.add_nop(pairing, operation.line);
                for (channel, _) in self.channels_of(operation, false)? {
                    pairing.waits.entry(channel).or_default().push(at);
                }
                self.threads.wait(operation.line);
                return Ok(());
            }
            "sem_release" | "sem_acquire" => return self.semaphores(pairing, operation),
            _ => name,
        };
        let places = |key: &str, packets: &dyn Fn(usize) -> bool| {
            let list = operation.required(key)?;
            let buffers = list.list()?;
            let what = "buffers of an operation";
            within(list, what, buffers.len(), MAX_BUFFERS_PER_OPERATION)?;
            if buffers.is_empty() {
                return Err(list.error("an operation needs a buffer here"));
            }
            let mut places: Vec<Vec<Place>> = Vec::new();
            for (index, buffer) in buffers.iter().enumerate() {
                places.push(self.places(operation, buffer, packets(index), repetition)?);
            }
            let count = places[0][0].count;
            match places.iter().flatten().all(|place| place.count == count) {
                true => Ok(places),
                false => Err(list.error("buffers of different sizes")),
            }
        };
        // Which sources and destinations are packets.
        type Packed = fn(usize) -> bool;
        let (from, to): (Packed, Packed) = match name.text()? {
            "ppkt" if operation.get("channel_type").map(Value::text) == Some(Ok("port")) => {
                (|_| true, |_| true)
            }
            "ppkt" | "cpkt" => (|_| false, |_| true),
            "rppkt" | "gstorepkt" => (|_| true, |_| true),
            "upkt" => (|_| true, |_| false),
            "repkt" | "respkt" | "recpkt" | "recspkt" => (|source| source > 0, |to| to > 0),
            "put" | "pws" | "pwsf" | "get" | "copy" | "gstore" | "re" | "res" | "rre" | "rres"
            | "glres" => (|_| false, |_| false),
            other => {
                let problem = format!("operation `{other}` is not one of MSCCL++");
                return Err(name.error(&problem));
            }
        };
        let sources = places("src_buff", &from)?;
        let destinations = places("dst_buff", &to)?;
        let text = name.text()?;
        let are = |sources_are: usize, destinations_are: usize| {
            let found = (sources.len(), destinations.len());
            match found.0 >= sources_are && found.1 >= destinations_are {
                true => Ok(()),
                false => Err(operation.error(&format!("`{text}` has too few buffers"))),
            }
        };
        match text {
            "put" | "pws" | "pwsf" | "ppkt" | "get" => {
                if sources.len() != destinations.len() {
                    return Err(operation.error("numbers of sources and destinations differ"));
                }
                let other_type = sources
                    .iter()
                    .any(|from| from[0].buffer != sources[0][0].buffer);
                if text != "get" && other_type {
                    return Err(operation.error("the runtime reads all sources from one buffer"));
                }
                for (from, to) in sources.iter().zip(&destinations) {
                    if text == "get" && from[0].start != to[0].start {
                        let problem = "MSCCL++ (commit 1f5f065d) gets a chunk only from the index \
                                       to which it writes the chunk";
                        return Err(operation.error(problem));
                    }
                    self.combine(pairing, operation, from, to)?;
                }
                if matches!(text, "pws" | "pwsf") {
                    if let Some(line) = self.threads.unfinished_writes() {
                        return Err(without_nop(operation, line));
                    }
                    let at = self.add_nop(pairing, operation.line);
                    self.signal(pairing, operation, at)?;
                }
                Ok(())
            }
            "rppkt" | "gstorepkt" | "gstore" | "copy" | "cpkt" | "upkt" => {
                let all: Vec<Place> = destinations.concat();
                self.combine(pairing, operation, &sources[0], &all)
            }
            _ => {
                let min_destinations = 1 + usize::from(text.starts_with("rec"));
                are(1, min_destinations)?;
                let added = operation.get("reduce_op");
                if let Some(other) = added.filter(|added| added.text() != Ok("sum")) {
                    return Err(other.error("MSCCL++ only adds, whatever `reduce_op` says"));
                }
                self.combine(
                    pairing,
                    operation,
                    &sources.concat(),
                    &destinations.concat(),
                )
            }
        }
    }

    /// Returns the places that a buffer of an operation names; several for a switch.
    fn places(
        &self,
        operation: &Value,
        buffer: &Value,
        packets: bool,
        repetition: Option<(u64, u64)>,
    ) -> Result<Vec<Place>, ProgramError> {
        let mut start = buffer.number_of("index", MAX_NUMBER)? * self.pieces.per_chunk;
        let mut count = buffer.number_of("size", MAX_NUMBER)? * self.pieces.per_chunk;
        if count == 0 {
            return Err(buffer.error("the operation moves no chunks"));
        }
        if let Some(group) = operation.get("tbg_info") {
            let parts = group.number_of("tbg_size", MAX_NUMBER)?.max(1);
            let part = group.number_of("tb_id", parts - 1)?;
            count /= parts;
            start += part * count;
        }
        let mut shift = 0;
        if let Some((repetition, repetitions)) = repetition {
            let moved = self.pieces.per_repetition;
            if count < repetitions * moved {
                let problem = "a pipeline moves more chunks than its operation has: the runtime's \
                               size would be negative";
                return Err(buffer.error(problem));
            }
            count = moved;
            shift = repetition * moved;
        }
        let place = |rank: u32, buffer: ChunkBuffer| {
            let shift = match (buffer, self.pieces.slots) {
                (ChunkBuffer::Scratch, Some(slots)) => shift % (slots * self.pieces.per_repetition),
                _ => shift,
            };
            Place {
                rank,
                buffer,
                start: start + shift,
                count,
                packets,
            }
        };
        let places = if let Some(kind) = buffer.get("type") {
            vec![place(self.rank, buffer_of(kind)?)]
        } else if let Some(id) = buffer.get("switch_channel_id") {
            let group = self.groups.get(id.number(MAX_NUMBER)? as usize);
            let group = group.ok_or_else(|| id.error("this switch channel does not exist"))?;
            let group = &self.gpu.groups[*group];
            group
                .ranks
                .iter()
                .map(|&rank| place(rank, group.buffer))
                .collect()
        } else {
            let kind = channel_type(operation.required("channel_type")?)?;
            let id = buffer.required("buffer_id")?;
            let index = self.remote[kind].get(id.number(MAX_NUMBER)? as usize);
            let index = index.ok_or_else(|| {
                let kind = CHANNEL_TYPES[kind];
                id.error(&format!(
                    "the thread block has no such remote buffer by {kind} channels"
                ))
            })?;
            let (rank, buffer) = self.gpu.remote[*index];
            vec![place(rank, buffer)]
        };
        let is_scratch = |place: &Place| place.buffer == ChunkBuffer::Scratch;
        let is_packed = self.program.protocol == "LL";
        if places
            .iter()
            .any(|place| is_scratch(place) != packets && (packets || is_packed))
        {
            let problem = match packets {
                true => "packets are in scratch only",
                false => "scratch of protocol LL holds packets, which this operation does not use",
            };
            return Err(buffer.error(problem));
        }
        if packets && !is_packed {
            return Err(operation.error("packets need protocol LL"));
        }
        Ok(places)
    }

    /// Adds instructions that write the sum of `sources` to all `destinations`.
    fn combine(
        &mut self,
        pairing: &mut Pairing,
        operation: &Value,
        sources: &[Place],
        destinations: &[Place],
    ) -> Result<(), ProgramError> {
        if sources[0].count != destinations[0].count {
            return Err(operation.error("sizes of source and destination differ"));
        }
        let by_port = operation.get("channel_type").map(Value::text) == Some(Ok("port"));
        if sources.len() > 1 && sources[1..].iter().any(|place| place.rank != self.rank) && by_port
        {
            return Err(operation.error("port channels cannot read remote buffers"));
        }
        let places = [sources, destinations].concat();
        let as_packets = !by_port && places.iter().any(|place| place.packets);
        let plain = |places: &[Place], writes: bool| {
            let places = places.iter().filter(|place| !place.packets);
            let accesses = places.map(move |place| (*place, writes));
            accesses.collect::<Vec<_>>()
        };
        let all = [plain(sources, false), plain(destinations, true)].concat();
        let is_own = |place: &&Place| place.packets && place.rank == self.rank;
        let written = destinations.iter().find(is_own).filter(|_| as_packets);
        let written = written.map(|place| place.start as i64);
        let new: Vec<Access> = all
            .into_iter()
            .map(|(place, writes)| {
                let (program, rank) = (self.program, place.rank);
                let (memory, first) = program.address(rank, place.buffer, program.in_place);
                let first = first + place.start as i64;
                Access {
                    line: operation.line,
                    rank,
                    memory: (memory, first, first + place.count as i64),
                    writes,
                    by_port,
                    as_packets,
                    begin: first,
                    packets: written,
                }
            })
            .collect();
        for place in sources.iter().filter(is_own).filter(|_| as_packets) {
            let start = place.start as i64;
            self.threads.read_packets(start, start + place.count as i64);
        }
        if let Some(line) = self.threads.access(new) {
            return Err(without_nop(operation, line));
        }
        let direct = sources.len() == 1;
        let temporary = Place {
            rank: self.rank,
            buffer: ChunkBuffer::Scratch,
            start: u64::from(self.program.ranks[self.rank as usize].scratch),
            count: sources[0].count,
            packets: false,
        };
        let adds_in_place = destinations == &sources[..1];
        let sum = match (direct, adds_in_place) {
            (true, _) | (_, true) => sources[0],
            _ => {
                self.temporary = self.temporary.max(temporary.count as u32);
                self.transfer(pairing, operation, Operation::Copy, sources[0], temporary)?;
                temporary
            }
        };
        for &source in &sources[1..] {
            self.transfer(pairing, operation, Operation::Reduce, source, sum)?;
        }
        if !direct && adds_in_place {
            return Ok(());
        }
        // Packets that are stored where they came from stay as they are.
        for &destination in destinations
            .iter()
            .filter(|place| !place.packets || **place != sum)
        {
            self.transfer(pairing, operation, Operation::Copy, sum, destination)?;
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        pairing: &mut Pairing,
        operation: &Value,
        kind: Operation,
        source: Place,
        destination: Place,
    ) -> Result<(), ProgramError> {
        let operand = |place: Place| Operand {
            rank: Some(place.rank).filter(|rank| *rank != self.rank),
            buffer: place.buffer,
            offset: i32::try_from(place.start).unwrap_or(i32::MAX),
        };
        let index = pairing.add(
            self.rank,
            self.block,
            Instruction {
                operation: kind,
                source: operand(source),
                destination: operand(destination),
                count: source.count as u32,
                waits_for: None,
                signals: false,
                sent_in: None,
                line: operation.line,
            },
        );
        self.members.push(index);
        let at = self.point(index, operation.line);
        let pieces = |place: Place| (place.start, place.start + place.count);
        if source.packets {
            pairing.read_packets(at, source.rank, pieces(source));
        }
        if destination.packets {
            pairing.write_packets(at, destination.rank, pieces(destination))?;
        }
        Ok(())
    }

    fn point(&self, index: usize, line: u32) -> Point {
        Point {
            index,
            block: self.block,
            line,
        }
    }

    /// Adds an instruction that does nothing, for which others may wait.
    fn add_nop(&mut self, pairing: &mut Pairing, line: u32) -> Point {
        let nowhere = Operand {
            rank: None,
            buffer: ChunkBuffer::Input,
            offset: 0,
        };
        let index = pairing.add(
            self.rank,
            self.block,
            Instruction {
                operation: Operation::Nop,
                source: nowhere,
                destination: nowhere,
                count: 0,
                waits_for: None::<Dependency>,
                signals: false,
                sent_in: None,
                line,
            },
        );
        self.members.push(index);
        self.point(index, line)
    }

    /// Fails if an operation that tells others of earlier operations may be ahead of them.
    fn demand_meeting(&mut self, operation: &Value) -> Result<(), ProgramError> {
        match self.threads.unfinished() {
            Some(line) => Err(without_nop(operation, line)),
            None => Ok(()),
        }
    }

    /// Returns the channels of an operation, and the peer of each.
    fn channels_of(
        &self,
        operation: &Value,
        sends: bool,
    ) -> Result<Vec<(Channel, u32)>, ProgramError> {
        let kind = channel_type(operation.required("channel_type")?)?;
        let ids = operation.required("channel_ids")?.list()?;
        let channel = |id: &Value| {
            let index = self.channels[kind].get(id.number(MAX_NUMBER)? as usize);
            let index = *index.ok_or_else(|| {
                let kind = CHANNEL_TYPES[kind];
                id.error(&format!("the thread block has no such {kind} channel"))
            })?;
            let peers = &self.gpu.channels[kind];
            let peer = peers[index];
            let before = peers[..index]
                .iter()
                .filter(|other| **other == peer)
                .count();
            let (from, to) = if sends {
                (self.rank, peer)
            } else {
                (peer, self.rank)
            };
            Ok(((from, to, kind, before), peer))
        };
        ids.iter().map(channel).collect()
    }

    fn signal(
        &mut self,
        pairing: &mut Pairing,
        operation: &Value,
        at: Point,
    ) -> Result<(), ProgramError> {
        for (channel, _) in self.channels_of(operation, true)? {
            pairing.signals.entry(channel).or_default().push(at);
        }
        Ok(())
    }

    fn semaphores(&mut self, pairing: &mut Pairing, operation: &Value) -> Result<(), ProgramError> {
        let releases = operation.required("name")?.text()? == "sem_release";
        if releases {
            self.demand_meeting(operation)?;
        }
        let ids = operation.required("semaphore_ids")?.list()?;
        within(
            operation,
            "semaphores of an operation",
            ids.len(),
            MAX_SEMAPHORES,
        )?;
        for id in ids {
            let semaphore = id.number(MAX_NUMBER)? as usize;
            if semaphore >= self.gpu.semaphores.len() {
                return Err(id.error(&format!("semaphore {semaphore} does not exist")));
            }
            let at = self.add_nop(pairing, operation.line);
            let key = (self.rank, semaphore);
            match releases {
                true => pairing.releases.entry(key).or_default().push(at),
                false => {
                    let acquire = (self.acquire_run, at);
                    pairing.acquires.entry(key).or_default().push(acquire);
                }
            }
        }
        if !releases {
            self.threads.wait(operation.line);
        }
        Ok(())
    }

    fn barrier(&mut self, pairing: &mut Pairing, operation: &Value) -> Result<(), ProgramError> {
        let id = operation.number_of("barrier_id", MAX_NUMBER)? as usize;
        within(operation, "barriers of a GPU", id + 1, MAX_SEMAPHORES)?;
        let meeting = operation.number_of("num_threadblocks", MAX_NUMBER)?;
        let at = self.add_nop(pairing, operation.line);
        self.add_nop(pairing, operation.line);
        pairing
            .barriers
            .entry((self.rank, id))
            .or_default()
            .push((meeting, at));
        self.threads.meet();
        Ok(())
    }
}

fn without_nop(operation: &Value, line: u32) -> ProgramError {
    let problem = format!("a `nop` is missing: some threads may not be past line {line} yet");
    operation.error(&problem)
}
