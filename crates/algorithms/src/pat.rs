//! PAT, parallel aggregated trees: the all_gather and the reduce_scatter of NCCL for large numbers
//! of ranks.
//!
//! Block b reaches rank b + o along the binary digits of the offset o, the most significant digit
//! first: rank r receives the blocks with offset o from rank r - 2^i, where 2^i is the lowest digit
//! of o that is set. Long distances therefore have small messages. A message has at most A blocks
//! (option `aggregation`), a power of two: NCCL's buffers limit A. Let N be a power of two. The
//! offsets with log2 A digits follow one another in log2 A steps, with 1, 2, ..., A / 2 blocks
//! each. Each other step x brings the offsets whose remaining digits are x, for x = 1, 2, ...,
//! N / A - 1: A blocks in one message, from the ranks that received them in an earlier step.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, all_pairs, make_room};
use opticoll_base::interrupt;
use opticoll_base::spec::OptionRecord;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Send blocks to the rank ..., 4, 2, 1 positions after the sender, with a maximum \
        number of blocks in a message",
    citation: "Jeaugey, PAT: A New Algorithm for All-gather and Reduce-scatter Operations at \
        Scale, arXiv 2506.20252",
    options: &[OptionRecord::new(
        "aggregation",
        "maximum number of blocks in a message, a power of two",
    )
    .range("1 to half of the ranks, rounded up to a power of two")
    .default("no limit")
    .tries(&["1", "2", "4", "8"])],
    families: &["gpu_servers", "fat_tree"],
    costs: CostFormulas::new("ceil(log2 N)", "N - 1", "N - 1"),
    transfers: all_pairs,
    ..Algorithm::new("pat", "PAT", CollectiveKind::AllGather, all_gather)
}];

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let digits = ranks.next_power_of_two().ilog2();
    let most = 1 << digits.saturating_sub(1);
    let aggregation = request.spec.count("aggregation", 1, most)?.unwrap_or(most);
    if !aggregation.is_power_of_two() {
        let rule = "must be a power of two, such as 4";
        return Err(request.spec.refuse("aggregation", rule).into());
    }
    let mut schedule = Schedule::new(request.collective);
    make_room(&mut schedule, ranks)?;
    // Digits of the offsets that arrive one per message, after the first log2 A steps.
    let single = digits - aggregation.ilog2();
    let first = (single..digits).rev().map(|digit| (1 << digit, 2 << digit));
    let others = (1..ranks.min(1 << single)).map(|low| (low, 1 << single));
    for (low, spacing) in first.chain(others) {
        interrupt::check();
        schedule.begin_step();
        let distance = 1 << low.trailing_zeros();
        for source in 0..ranks {
            for offset in (low..ranks).step_by(spacing) {
                let block = (source + ranks - (offset - distance)) % ranks;
                let destination = (source + distance) % ranks;
                schedule.push(Transfer::copy(block, source, destination));
            }
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
