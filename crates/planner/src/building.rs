//! Tools with which planners build plans.

pub(crate) mod assembly;
pub(crate) mod striping;
pub(crate) mod time_reversal;
