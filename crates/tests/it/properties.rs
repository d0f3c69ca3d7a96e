//! Properties that hold for any number of ranks and wavelengths, and for any tree.

use opticoll::collective::CollectiveKind;
use opticoll::simulate::{Policy, simulate};
use opticoll::units::{Bytes, Time};
use proptest::prelude::*;

use crate::{verified, verified_with};

/// Radices, the last one so large that the product reaches any number of ranks up to 64.
fn radices() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(2u32..9, 1..6)
}

proptest! {
    #![proptest_config(crate::unsaved(96))]

    #[test]
    fn every_algorithm_is_correct_on_any_ring(ranks in 1u32..65, wavelengths in 1u32..10) {
        for record in crate::general_algorithms() {
            let is_small = record.collective != CollectiveKind::AllToAll || ranks < 33;
            if (record.accepts)(ranks).is_ok() && is_small {
                verified(record.collective, record.name, ranks, wavelengths);
            }
        }
    }

    #[test]
    fn every_tree_is_correct(ranks in 2u32..65, wavelengths in 1u32..10, radices in radices()) {
        // Cut or extend the list until it just reaches the number of ranks.
        let mut leaves = 1;
        let mut list = Vec::new();
        for radix in radices.into_iter().chain(std::iter::repeat(2)) {
            if leaves >= ranks {
                break;
            }
            leaves *= radix;
            list.push(radix.to_string());
        }
        let tree = format!("optree:radices={}", list.join("x"));
        verified(CollectiveKind::AllGather, &tree, ranks, wavelengths);
    }

    #[test]
    fn wrht_is_correct_for_any_group_size(
        ranks in 1u32..65, wavelengths in 1u32..10, group_size in 2u32..20, striping: bool
    ) {
        let options = format!("group_size={group_size}");
        verified(CollectiveKind::AllGather, &format!("wrht:{options}"), ranks, wavelengths);
        let striped = format!("wrht:{options},striping={striping}");
        verified(CollectiveKind::AllReduce, &striped, ranks, wavelengths);
    }

    #[test]
    fn policies_are_ordered_and_larger_sizes_take_longer(
        ranks in 2u32..33, wavelengths in 1u32..6, bytes in 1u64..100_000
    ) {
        for (kind, name) in [
            (CollectiveKind::AllGather, "optree"),
            (CollectiveKind::AllGather, "ring_bidirectional"),
            (CollectiveKind::AllReduce, "ring"),
            (CollectiveKind::AllReduce, "recursive_doubling"),
        ] {
            let fabric = format!(
                "wdm_ring:ranks={ranks},wavelengths={wavelengths},conversion=10ns,propagation=5ns"
            );
            let plan = verified_with(kind, name, &fabric, "auto");
            let time = |bytes: u64, policy| {
                simulate(&plan, Bytes::new(bytes), policy, "circuit").unwrap().time
            };
            let free = time(bytes, Policy::Free);
            let on_change = time(bytes, Policy::OnChange);
            let every_step = time(bytes, Policy::EveryStep);
            prop_assert!(free <= on_change && on_change <= every_step, "{name}");
            // Without barriers nothing waits longer than with one at every slot.
            prop_assert!(time(bytes, Policy::PerPort) <= every_step, "{name}");
            for policy in Policy::ALL {
                prop_assert!(time(bytes, policy) <= time(2 * bytes, policy), "{name}");
                prop_assert!(time(bytes, policy) > Time::ZERO, "{name}");
            }
        }
    }
}
