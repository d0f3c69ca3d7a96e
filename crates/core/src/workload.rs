//! What runs around collectives: traces of MPI programs, replayed over a model of the network.
//!
//! A trace is read from text or bytes ([`csv`]), its collectives become messages of named algorithms
//! ([`expand`]), and the program that results ([`program`]) is replayed ([`replay`]) over a model of what
//! messages cost ([`cost`]). What is wrong with a trace is found before anything runs, with rank, event
//! and line ([`error`]); a deadlock is found by replaying.
//!
//! ```
//! use opticoll::workload::cost::Zero;
//! use opticoll::workload::expand::{Algorithms, expand};
//! use opticoll::workload::{csv, replay};
//! let text = "\
//! ## app=example ranks=2
//! rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns
//! 0,Send,1,8,0,7,0,,100
//! 1,Recv,0,0,8,7,0,,40
//! 1,Allreduce,,8,8,,0,,10
//! 0,Allreduce,,8,8,,0,,25
//! ".replace("##", "#");
//! let program = expand(&csv::read(&text)?, &Algorithms::default())?;
//! let replayed = replay::replay(&program, &mut Zero, replay::Settings::default())?;
//! assert_eq!((replayed.time.ps(), replayed.messages), (125_000, 3));
//! # Ok::<(), opticoll::workload::error::TraceError>(())
//! ```

pub mod cost;
pub mod csv;
pub mod error;
pub mod expand;
pub mod program;
pub mod replay;
pub mod trace;
