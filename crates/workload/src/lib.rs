//! Workloads with collectives: traces of MPI programs, replays over network models, and training.
//!
//! Readers turn text ([`csv`], [`time_independent`]) or graphs of calls ([`chakra`]) into traces.
//! [`expand`] replaces each collective of a trace with the messages of a named algorithm. The
//! resulting [`program`], or a program in GOAL ([`goal_text`]), is replayed ([`replay`]) over a
//! cost model of messages ([`cost`]) or together with a network simulator ([`network`],
//! [`bursts`]); [`network`] combines these parts. In the other direction, [`plan_messages`] and
//! [`goal_plan`] write plans as messages for other programs. [`training`] computes the time of an
//! iteration of training. Errors in a trace are reported before the replay starts, with rank, event
//! and line ([`error`]). Deadlocks are found during the replay.
//!
//! ```
//! use opticoll_workload::cost::Zero;
//! use opticoll_workload::expand::{Algorithms, expand};
//! use opticoll_workload::{csv, replay};
//! let text = "\
//! ## app=example ranks=2
//! rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns
//! 0,Send,1,8,0,7,0,,100
//! 1,Recv,0,0,8,7,0,,40
//! 1,Allreduce,,8,8,,0,,10
//! 0,Allreduce,,8,8,,0,,25
//! ";
//! let program = expand(&csv::read(&text)?, &Algorithms::default())?;
//! let replayed = replay::replay(&program, &mut Zero, replay::ReplaySettings::default())?;
//! assert_eq!((replayed.time.ps(), replayed.messages), (125_000, 3));
//! # Ok::<(), opticoll_workload::error::TraceError>(())
//! ```

pub mod bursts;
pub mod chakra;
pub mod cost;
pub mod csv;
pub mod error;
pub mod event_table;
pub mod expand;
pub mod goal_plan;
pub mod goal_text;
pub mod network;
pub mod plan_messages;
pub mod program;
pub mod replay;
pub mod time_independent;
pub mod trace;
pub mod training;
