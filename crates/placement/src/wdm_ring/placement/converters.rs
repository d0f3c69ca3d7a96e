//! Placement on a ring with wavelength converters at every rank. A fibre can carry another
//! lightpath if, on each link of the lightpath, the fibre has more wavelengths than lightpaths.

use crate::wdm_ring::route::Arc;
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// Number of lightpaths on each link and at each rank, for each slot of a step.
struct Loads {
    ranks: usize,
    fibres: usize,
    /// Number of lightpaths, `[slot][direction][fibre][link]`.
    load: Vec<u32>,
    /// Number of lightpaths that each rank sends, `[slot][rank]`.
    sent: Vec<u32>,
    received: Vec<u32>,
    slots: usize,
    /// First slot in which some fibre of a link may have a free wavelength, `[direction][link]`.
    full_before: [Vec<usize>; 2],
}

/// Places the arcs of a step in the given order, each in the earliest slot and on the lowest fibre
/// that can carry the arc. Calls `put(index of the arc, slot, channel)` for each arc, where
/// `channel` is the first channel of the fibre. Returns the number of slots.
pub(super) fn place(
    ring: &WdmRing,
    arcs: &[Arc],
    order: &[usize],
    ends: impl Fn(usize) -> (u32, u32),
    mut put: impl FnMut(usize, u32, u32),
) -> u32 {
    let mut loads = Loads {
        ranks: ring.ranks as usize,
        fibres: ring.fibres as usize,
        load: Vec::new(),
        sent: Vec::new(),
        received: Vec::new(),
        slots: 0,
        full_before: [vec![0; ring.ranks as usize], vec![0; ring.ranks as usize]],
    };
    let wavelengths: Vec<u32> = (0..ring.fibres)
        .map(|fibre| ring.wavelengths_of(fibre))
        .collect();
    let mut previous = None;
    for &offset in order {
        interrupt::check();
        let (arc, ends) = (arcs[offset], ends(offset));
        // An arc equal to the previous arc cannot be placed in an earlier slot.
        let mut slot = match previous {
            Some((before, slot)) if before == (arc, ends) => slot,
            _ => loads.first_open(arc, &wavelengths),
        };
        let fibre = loop {
            loads.open(slot);
            match loads.fibre(slot, arc, &wavelengths) {
                Some(fibre) if loads.ports_free(slot, ends, ring.ports) => break fibre,
                _ => slot += 1,
            }
        };
        loads.take(slot, fibre, arc, ends);
        previous = Some(((arc, ends), slot));
        put(offset, slot as u32, wavelengths[..fibre].iter().sum());
    }
    loads.slots as u32
}

impl Loads {
    fn open(&mut self, slot: usize) {
        if slot >= self.slots {
            self.slots = slot + 1;
            self.load
                .resize(self.slots * 2 * self.fibres * self.ranks, 0);
            self.sent.resize(self.slots * self.ranks, 0);
            self.received.resize(self.slots * self.ranks, 0);
        }
    }

    /// Returns the indices in `load` that belong to the links of `arc`, on the given fibre in the
    /// given slot.
    fn links(&self, slot: usize, fibre: usize, arc: Arc) -> impl Iterator<Item = usize> + use<> {
        let row = ((slot * 2 + arc.direction as usize) * self.fibres + fibre) * self.ranks;
        let ranks = self.ranks;
        (arc.first..arc.first + arc.hops).map(move |link| row + link as usize % ranks)
    }

    /// Returns a slot such that `arc` cannot be placed in an earlier slot. The slot is determined
    /// from a sample of the links of `arc`.
    fn first_open(&mut self, arc: Arc, wavelengths: &[u32]) -> usize {
        const SAMPLES: u32 = 8;
        let mut first = 0;
        for sample in 0..=SAMPLES {
            let link = (arc.first + (arc.hops - 1) * sample / SAMPLES) % self.ranks as u32;
            let single_link = Arc {
                first: link,
                hops: 1,
                ..arc
            };
            let mut slot = self.full_before[arc.direction as usize][link as usize];
            while slot < self.slots && self.fibre(slot, single_link, wavelengths).is_none() {
                interrupt::check();
                slot += 1;
            }
            self.full_before[arc.direction as usize][link as usize] = slot;
            first = first.max(slot);
        }
        first
    }

    /// Returns the lowest fibre with a free wavelength on every link of `arc`. `wavelengths` is the
    /// number of wavelengths of each fibre, indexed by fibre.
    fn fibre(&self, slot: usize, arc: Arc, wavelengths: &[u32]) -> Option<usize> {
        (0..self.fibres).find(|&fibre| {
            self.links(slot, fibre, arc)
                .all(|link| self.load[link] < wavelengths[fibre])
        })
    }

    fn ports_free(&self, slot: usize, ends: (u32, u32), ports: Option<u32>) -> bool {
        let Some(ports) = ports else { return true };
        let row = slot * self.ranks;
        self.sent[row + ends.0 as usize] < ports && self.received[row + ends.1 as usize] < ports
    }

    fn take(&mut self, slot: usize, fibre: usize, arc: Arc, ends: (u32, u32)) {
        for link in self.links(slot, fibre, arc) {
            self.load[link] += 1;
        }
        self.sent[slot * self.ranks + ends.0 as usize] += 1;
        self.received[slot * self.ranks + ends.1 as usize] += 1;
    }
}
