//! Tree with a rank at every vertex.
//!
//! Rank 0 is the root. Ranks are numbered level by level, so rank r > 0 is a child of rank (r - 1)
//! div `arity`, and all levels but the last are full. Cable r - 1 joins rank r to its parent. A
//! route leads up to the closest common ancestor of its ends, then down.

use std::sync::Arc;

use crate::fabric::options;
use crate::fabric::options::DefaultRule::Printed;
use crate::fabric::options::{Options, declare, machine_over_links};
use crate::fabric::wiring;
use crate::fabric::wiring::{MAX_RANKS, Wire};
use crate::fabric::{Fabric, FabricError, FamilyRecord};
use crate::network::{Network, Wiring};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};

/// Tree with a rank at every vertex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    ranks: u32,
    arity: u32,
    wire: Wire,
    wiring: Arc<Wiring>,
}

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "tree",
    summary: "Tree with a rank at every vertex, full except for the last level (a star if arity \
        is ranks - 1)",
    citation: "Leighton, Introduction to Parallel Algorithms and Architectures, 1992",
    example: "tree:ranks=15,arity=2",
    options: || options::list(&RECORD, declared),
    build: |spec| Tree::parse(spec).map(Fabric::new),
    presets: &[],
};

fn declared(options: &mut Options<'_, Tree>) -> Result<(u32, u32, Wire), FabricError> {
    let (ranks, wire) = wiring::ranks_and_wire(options, |tree| (tree.ranks, tree.wire))?;
    declare! { options of Tree;
        arity "arity" count(MAX_RANKS, Printed(2)) "maximum number of children of a rank";
    }
    Ok((ranks, arity, wire))
}

impl Tree {
    /// Builds the machine of a specification such as `tree:ranks=15,arity=2`.
    pub fn parse(spec: &Spec) -> Result<Tree, FabricError> {
        let (ranks, arity, wire) = options::read(spec, &RECORD, declared)?;
        let mut wiring = Wiring::new(wire.duplex);
        for rank in 1..ranks {
            interrupt::check();
            wiring.add(rank, (rank - 1) / arity, wire.link);
        }
        Ok(Tree {
            ranks,
            arity,
            wire,
            wiring: Arc::new(wiring),
        })
    }
}

machine_over_links!(Tree, RECORD, declared);

impl Network for Tree {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// Appends the links up to the closest common ancestor, then the links down. Of two ranks, the
    /// one with the greater number is no ancestor of the other.
    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let (mut up, mut down) = (source, destination);
        let mut links_down = Vec::new();
        while up != down {
            if up > down {
                links.push(self.wiring.forth(up - 1));
                up = (up - 1) / self.arity;
            } else {
                links_down.push(self.wiring.back(down - 1));
                down = (down - 1) / self.arity;
            }
        }
        links.extend(links_down.into_iter().rev());
    }
}
