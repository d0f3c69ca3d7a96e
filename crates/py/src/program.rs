//! The Python class `Program`.

use opticoll::program;
use opticoll::program::{CollectiveProgram, ProgramError, RunSettings};
use opticoll::units::Bytes;
use opticoll::verify::program as verify;
use opticoll::verify::program::LinkGraph;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::collective::Collective;
use crate::error::OrRaise;
use crate::fabric::Fabric;
use crate::interrupt;
use crate::plan::Plan;
use crate::schedule::Schedule;

/// A collective as instructions of its ranks.
///
/// The thread blocks of a rank send, receive, copy and reduce chunks of buffers.
///
/// Runtimes such as MSCCL execute programs. `opticoll.read_program` reads programs from files.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> program = opticoll.Program.from_msccl('''
/// ... <algo name="pair" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1">
/// ...   <gpu id="0"><tb id="0" send="1" recv="1" chan="0">
/// ...     <step s="0" type="s" srcbuf="o" srcoff="0" cnt="1"/>
/// ...     <step s="1" type="r" dstbuf="o" dstoff="1" cnt="1"/></tb></gpu>
/// ...   <gpu id="1"><tb id="0" send="0" recv="0" chan="0">
/// ...     <step s="0" type="s" srcbuf="o" srcoff="0" cnt="1"/>
/// ...     <step s="1" type="r" dstbuf="o" dstoff="0" cnt="1"/></tb></gpu></algo>''')
/// >>> program
/// <Program pair of all_gather: 2 ranks, 2 thread blocks, 4 instructions>
/// >>> program.name, program.collective.ranks, program.thread_blocks
/// ('pair', 2, 2)
/// >>> program.in_place, program.out_of_place, program.in_network
/// (True, False, False)
/// >>> for violation in program.verify(in_place=True).violations:
/// ...     place = (violation.rank, violation.thread_block, violation.step, violation.line)
/// ...     print(violation.kind, *place)
/// ...     print(violation.sentence.split("; ")[0])
/// not_written 1 0 0 7
/// rank 1, thread block 0, step 0: reads chunk 0 of output, which has not been written
/// wrong_result 0 0 1 5
/// rank 0: output chunk 1 holds nothing at the end, not chunk 0 of rank 1
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Program {
    pub(crate) program: CollectiveProgram,
}

#[pymethods]
impl Program {
    /// Reads the text of an MSCCL XML file.
    ///
    /// Parameters
    /// ----------
    /// text : str
    ///     The complete text.
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     The text is malformed; the message names the line.
    /// CollectiveError
    ///     The collective is invalid.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> head = '<algo nchunksperloop="1" ngpus="1" coll="allreduce" inplace="1">'
    /// >>> opticoll.Program.from_msccl(head + '<gpu id="0"/></algo>')
    /// <Program  of all_reduce: 1 ranks, 0 thread blocks, 0 instructions>
    #[staticmethod]
    fn from_msccl(py: Python<'_>, text: &str) -> PyResult<Program> {
        let program = interrupt::attempt(py, || CollectiveProgram::from_msccl(text))?;
        Ok(Program { program })
    }

    /// Reads Chakra traces whose nodes send and receive the chunks of a collective, such as a
    /// custom collective of ASTRA-sim.
    ///
    /// Parameters
    /// ----------
    /// traces : list of bytes
    ///     The content of each rank's file, in the order of ranks.
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     A trace is malformed, or does not state which chunks it moves; the message names rank
    ///     and byte.
    /// CollectiveError
    ///     The collective is invalid.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    /// >>> opticoll.Program.from_chakra(opticoll.Program.from_plan(plan).to_chakra(1024))
    /// <Program ring of all_gather: 4 ranks, 4 thread blocks, 24 instructions>
    #[staticmethod]
    #[pyo3(signature = (traces: "list[bytes]"))]
    fn from_chakra(py: Python<'_>, traces: Vec<PyBackedBytes>) -> PyResult<Program> {
        let program = interrupt::attempt(py, || {
            let traces: Vec<&[u8]> = traces.iter().map(|trace| &trace[..]).collect();
            CollectiveProgram::from_chakra(&traces)
        })?;
        Ok(Program { program })
    }

    /// Reads the text of an execution plan of MSCCL++ (JSON).
    ///
    /// The operations of such a plan access buffers of other ranks.
    ///
    /// Parameters
    /// ----------
    /// text : str
    ///     The complete text.
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     The text is malformed, or MSCCL++ cannot execute the plan; the message names the line.
    /// CollectiveError
    ///     The collective is invalid.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> program = opticoll.Program.from_mscclpp('''
    /// ... {"name": "alone", "collective": "allreduce", "protocol": "Simple", "inplace": true,
    /// ...  "gpus": [{"id": 0, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 0,
    /// ...            "threadblocks": []}]}''')
    /// >>> program
    /// <Program alone of all_reduce: 1 ranks, 0 thread blocks, 0 instructions>
    /// >>> program.one_sided, program.ranks_per_server
    /// (False, None)
    #[staticmethod]
    fn from_mscclpp(py: Python<'_>, text: &str) -> PyResult<Program> {
        let program = interrupt::attempt(py, || CollectiveProgram::from_mscclpp(text))?;
        Ok(Program { program })
    }

    /// Returns a program that executes the schedule of a plan.
    ///
    /// Links and light are not part of a program. A multicast becomes one message to each receiver,
    /// and an aggregation one message from each sender. No file format expresses such a plan.
    ///
    /// Parameters
    /// ----------
    /// plan : Plan
    ///     The plan.
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     The collective is a barrier, which moves no chunks.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_reduce", "wdm_ring:ranks=8,wavelengths=1", "ring")
    /// >>> opticoll.Program.from_plan(plan)
    /// <Program ring of all_reduce: 8 ranks, 8 thread blocks, 120 instructions>
    #[staticmethod]
    fn from_plan(py: Python<'_>, plan: &Plan) -> PyResult<Program> {
        let program = interrupt::attempt(py, || {
            let plan = plan.rows().expanded();
            let program = CollectiveProgram::from_schedule(&plan.schedule, plan.algorithm.clone())?;
            Ok::<_, ProgramError>(CollectiveProgram {
                ranks_per_server: plan.fabric.group_size(),
                ..program
            })
        })?;
        Ok(Program { program })
    }

    /// Returns the program as the text of an MSCCL XML file, with all attributes that runtimes
    /// require.
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     The program exceeds a limit of the runtimes, such as 256 steps in a thread block.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    /// >>> program = opticoll.Program.from_plan(plan)
    /// >>> print(program.to_msccl().splitlines()[2].strip())
    /// <tb id="0" send="1" recv="3" chan="0">
    fn to_msccl(&self, py: Python<'_>) -> PyResult<String> {
        interrupt::attempt(py, || self.program.to_msccl())
    }

    /// Returns the program as Chakra traces, one per rank, in the form that ASTRA-sim reads for
    /// custom collectives.
    ///
    /// Parameters
    /// ----------
    /// size_bytes : int
    ///     Size of the collective in bytes, which must be divisible into equal chunks.
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     The size is not divisible into equal chunks of whole bytes.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    /// >>> program = opticoll.Program.from_plan(plan)
    /// >>> len(program.to_chakra(1024))
    /// 4
    fn to_chakra<'py>(
        &self,
        py: Python<'py>,
        size_bytes: u64,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let traces = interrupt::attempt(py, || self.program.to_chakra(Bytes::new(size_bytes)))?;
        Ok(traces.iter().map(|trace| PyBytes::new(py, trace)).collect())
    }

    /// Returns the program as the text of an execution plan of MSCCL++ (JSON).
    ///
    /// The plan is for calls in place if PyTorch calls the collective in place: all_reduce, reduce
    /// and broadcast. If switches add or multicast in the plan of the program, they do so in
    /// MSCCL++.
    ///
    /// Parameters
    /// ----------
    /// size_bytes : int
    ///     Size of the collective in bytes, which must be divisible into equal chunks of multiples
    ///     of 16 bytes.
    /// protocol : str, optional
    ///     `LL` for messages that are packets with flags, or `Simple` (default: `LL` up to 64 KiB
    ///     if the program allows it).
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     The size is not divisible, the protocol does not fit, or the program exceeds a limit of
    ///     MSCCL++.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    /// >>> text = opticoll.Program.from_plan(plan).to_mscclpp(1 << 20)
    /// >>> opticoll.Program.from_mscclpp(text).one_sided
    /// True
    #[pyo3(signature = (size_bytes, protocol = None))]
    fn to_mscclpp(
        &self,
        py: Python<'_>,
        size_bytes: u64,
        protocol: Option<&str>,
    ) -> PyResult<String> {
        interrupt::attempt(py, || {
            let protocol = protocol.map(str::parse).transpose()?;
            self.program.to_mscclpp(Bytes::new(size_bytes), protocol)
        })
    }

    /// Executes the program with real bytes in this process.
    ///
    /// Parameters
    /// ----------
    /// inputs : list of bytes
    ///     The input buffer of each rank.
    /// elements : int
    ///     Number of elements per chunk.
    /// element_type : str
    ///     Type of the elements: `int8`, `uint8`, `int32`, `uint32`, `int64`, `uint64`, `float32`
    ///     or `float64`.
    /// operator : str
    ///     Operator that reductions apply: `sum`, `prod`, `min` or `max`.
    /// in_place : bool
    ///     True if input and output share memory.
    ///
    /// Returns
    /// -------
    /// list of bytes
    ///     The output buffer of each rank.
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     The program deadlocks or accesses chunks outside of its buffers; the message names rank
    ///     and step.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_reduce", "crossbar:ranks=3", "ring")
    /// >>> program = opticoll.Program.from_plan(plan)
    /// >>> inputs = [bytes([1, 2, 3]), bytes([10, 20, 30]), bytes([100, 0, 0])]
    /// >>> program.run(inputs, elements=1, element_type="uint8")[2]
    /// b'o\x16!'
    #[pyo3(signature = (
        inputs, *, elements, element_type = "int32", operator = "sum", in_place = false
    ))]
    #[allow(clippy::too_many_arguments)]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyBytes>>,
        elements: usize,
        element_type: &str,
        operator: &str,
        in_place: bool,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let inputs: Vec<Vec<u8>> = inputs
            .iter()
            .map(|input| input.as_bytes().to_vec())
            .collect();
        let outputs = interrupt::attempt(py, || {
            let settings = RunSettings {
                element: element_type.parse()?,
                operator: operator.parse()?,
                elements,
                in_place,
            };
            self.program.run(settings, &inputs)
        })?;
        Ok(outputs
            .iter()
            .map(|output| PyBytes::new(py, output))
            .collect())
    }

    /// Returns the thread blocks of a rank, as a list of (rank to send to, rank to receive from,
    /// channel, instructions).
    ///
    /// A rank of -1 means no rank.
    ///
    /// An instruction is (operation, source buffer, source chunk, destination buffer, destination
    /// chunk, number of chunks, thread block to wait for, step to wait for). Operations have the
    /// names in MSCCL files. Buffers are 0 for input, 1 for output and 2 for scratch. Thread block
    /// and step are -1 if the instruction waits for no other.
    ///
    /// Parameters
    /// ----------
    /// rank : int
    ///     The rank.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     The rank does not exist.
    /// ProgramError
    ///     Instructions access buffers of other ranks.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("broadcast", "crossbar:ranks=2", "linear")
    /// >>> program = opticoll.Program.from_plan(plan)
    /// >>> program.thread_blocks_of(1)
    /// [(-1, 0, 0, [('r', 1, 0, 1, 0, 1, -1, -1)])]
    #[allow(clippy::type_complexity)]
    fn thread_blocks_of(
        &self,
        rank: usize,
    ) -> PyResult<
        Vec<(
            i64,
            i64,
            u32,
            Vec<(&'static str, u8, i32, u8, i32, u32, i64, i64)>,
        )>,
    > {
        let Some(rank_program) = self.program.ranks.get(rank) else {
            return Err(PyIndexError::new_err(format!("there is no rank {rank}")));
        };
        if self.program.is_one_sided() {
            let problem = "its instructions access buffers of other ranks, which have no messages";
            return Err(ProgramError::Refused(problem.into())).or_raise();
        }
        let peer = |peer: Option<u32>| peer.map_or(-1, i64::from);
        let blocks = rank_program.thread_blocks.iter().map(|block| {
            let instructions = block.instructions.iter().map(|instruction| {
                let (_, name) = program::Operation::ALL[instruction.operation as usize];
                let (from, to) = (instruction.source, instruction.destination);
                let on = instruction.waits_for.map_or((-1, -1), |on| {
                    (i64::from(on.thread_block), i64::from(on.step))
                });
                (
                    name,
                    from.buffer as u8,
                    from.offset,
                    to.buffer as u8,
                    to.offset,
                    instruction.count,
                    on.0,
                    on.1,
                )
            });
            (
                peer(block.sends_to),
                peer(block.receives_from),
                block.channel,
                instructions.collect(),
            )
        });
        Ok(blocks.collect())
    }

    /// Returns the number of chunks of a rank's scratch buffer.
    ///
    /// Parameters
    /// ----------
    /// rank : int
    ///     The rank.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     The rank does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("broadcast", "crossbar:ranks=2", "linear")
    /// >>> opticoll.Program.from_plan(plan).scratch(1)
    /// 0
    fn scratch(&self, rank: usize) -> PyResult<u32> {
        let rank_program = self.program.ranks.get(rank);
        rank_program
            .map(|rank_program| rank_program.scratch)
            .ok_or_else(|| PyIndexError::new_err(format!("there is no rank {rank}")))
    }

    /// Verifies the program, in place or with separate buffers, and returns all violations.
    ///
    /// Parameters
    /// ----------
    /// in_place : bool
    ///     True if input and output share memory.
    /// fabric : Fabric, optional
    ///     A fabric that must have a link for every message (default: any rank may send to any
    ///     other rank).
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    /// >>> program = opticoll.Program.from_plan(plan)
    /// >>> proof = program.verify(in_place=True)
    /// >>> proof.violations, proof.remarks, proof.messages, proof.chunks_sent
    /// ([], [], 12, 12)
    #[pyo3(signature = (*, in_place, fabric = None))]
    fn verify(
        &self,
        py: Python<'_>,
        in_place: bool,
        fabric: Option<Fabric>,
    ) -> PyResult<ProgramProof> {
        let proof = interrupt::run(py, || {
            let links = fabric.and_then(|fabric| link_graph(&fabric));
            verify::verify_program(&self.program, in_place, links.as_ref())
        })?;
        Ok(ProgramProof { proof })
    }

    /// Returns the schedule of a proved program, with steps that follow from the order of messages.
    ///
    /// Parameters
    /// ----------
    /// in_place : bool
    ///     True if input and output share memory.
    ///
    /// Returns
    /// -------
    /// tuple of Schedule and int
    ///     The schedule, and the number of chunks that the schedule leaves out because the
    ///     receiving rank already has them.
    ///
    /// Raises
    /// ------
    /// ProgramError
    ///     A rank has several partial sums of one chunk.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    /// >>> program = opticoll.Program.from_plan(plan)
    /// >>> program.schedule(in_place=True)
    /// (<Schedule of all_gather: 3 steps, 12 transfers>, 0)
    #[pyo3(signature = (*, in_place))]
    fn schedule(&self, py: Python<'_>, in_place: bool) -> PyResult<(Schedule, u64)> {
        let result = interrupt::run(py, || self.program.schedule(in_place))?;
        let (schedule, redundant) = result.or_raise()?;
        Ok((Schedule::from_core(schedule), redundant))
    }

    fn __len__(&self) -> usize {
        self.program.instructions()
    }

    fn __repr__(&self) -> String {
        let program = &self.program;
        format!(
            "<Program {} of {}: {} ranks, {} thread blocks, {} instructions>",
            program.name,
            program.collective.kind(),
            program.ranks.len(),
            program.thread_blocks(),
            program.instructions()
        )
    }
}

getters! { Program |self|
    /// The name of the program.
    name: &str = &self.program.name;
    /// The collective that the program executes.
    collective: Collective = Collective {
        collective: self.program.collective,
    };
    /// True if the program supports calls whose input and output share memory.
    in_place: bool = self.program.in_place;
    /// True if the program supports calls with separate buffers.
    out_of_place: bool = self.program.out_of_place;
    /// True if switches add or multicast in the plan that the program executes.
    in_network: bool = !self.program.switched.is_empty();
    /// The number of consecutive ranks that form a server, or None if all ranks share memory.
    ranks_per_server: Option<u32> = self.program.ranks_per_server;
    /// True if instructions access buffers of other ranks.
    one_sided: bool = self.program.is_one_sided();
    /// The number of thread blocks of all ranks.
    thread_blocks: usize = self.program.thread_blocks();
}

/// Returns the links of an electrical fabric; None on a fabric that connects all pairs of ranks by
/// light.
fn link_graph(fabric: &Fabric) -> Option<LinkGraph> {
    let network = fabric.fabric.network()?;
    let mut links = Vec::new();
    for link in 0..network.links().len() as u32 {
        let (from, to) = network.ends(link)?;
        links.push((from, to));
        if network.leads_both_ways(link) {
            links.push((to, from));
        }
    }
    Some(LinkGraph {
        name: fabric.fabric.family().to_owned(),
        links,
    })
}

/// The result of `Program.verify`.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct ProgramProof {
    proof: verify::ProgramProof,
}

getters! { ProgramProof |self|
    /// All violations, as a list; empty if the program is valid.
    violations: Vec<ProgramViolation> = listed(&self.proof.violations);
    /// Remarks on correct but unusual parts of the program, as a list.
    remarks: Vec<ProgramViolation> = listed(&self.proof.remarks);
    /// The number of messages between ranks.
    messages: u64 = self.proof.messages;
    /// The number of chunks that the messages carry.
    chunks_sent: u64 = self.proof.chunks_sent;
}

fn listed(violations: &[verify::ProgramViolation]) -> Vec<ProgramViolation> {
    let each = violations.iter().cloned();
    each.map(|violation| ProgramViolation { violation })
        .collect()
}

/// A rule that a program violates at one place, or a remark on an unusual part.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct ProgramViolation {
    violation: verify::ProgramViolation,
}

#[pymethods]
impl ProgramViolation {
    fn __repr__(&self) -> String {
        format!(
            "<ProgramViolation {}: {}>",
            self.violation.kind.name(),
            self.violation.sentence
        )
    }
}

getters! { ProgramViolation |self|
    /// The name of the violated rule, such as `race` or `wrong_result`.
    kind: &'static str = self.violation.kind.name();
    /// The rank, or None.
    rank: Option<u32> = self.violation.rank;
    /// The index of the thread block at its rank, or None.
    thread_block: Option<u32> = self.violation.thread_block;
    /// The index of the instruction in its thread block, or None.
    step: Option<u32> = self.violation.step;
    /// The line of the file, or None; for a Chakra trace, the position of the node in its rank's
    /// file, counted from 1.
    line: Option<u32> = Some(self.violation.line).filter(|line| *line > 0);
    /// The violation or remark, in one sentence.
    sentence: &str = &self.violation.sentence;
}
