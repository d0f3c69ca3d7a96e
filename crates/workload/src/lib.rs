//! What runs around collectives: traces of MPI programs, replayed over a model of the network.
//!
//! A trace of calls is read from text ([`csv`], [`time_independent`]), and its collectives become messages of
//! named algorithms ([`expand`]); so does a trace whose calls are a graph ([`chakra`]). The program that results ([`program`]), or one read from GOAL
//! ([`goal_text`]), is replayed ([`replay`]) over a model of what messages cost ([`cost`]), or
//! together with a simulator of the network ([`network`], [`bursts`]); [`network`] puts these together. The other way
//! round, plans become messages for other programs ([`plan_messages`], [`goal_plan`]).
//! Beside them stands training by data parallelism, whose gradients are all_reduced ([`training`]). What is
//! wrong with a trace is found before anything runs, with rank, event and line ([`error`]); a deadlock is found
//! by replaying.
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
