//! Plans relay trees for `N,w` pairs given and prints slots beside the bound.
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::{bound, planner, verify};
use std::time::Instant;
fn main() {
    for pair in std::env::args().skip(1) {
        let parts: Vec<&str> = pair.split(',').collect();
        let (n, w) = (parts[0], parts[1]);
        let pieces: u32 = parts.get(2).map_or(1, |p| p.parse().unwrap());
        let fabric = Fabric::parse(&format!("wdm_ring:ranks={n},wavelengths={w}")).unwrap();
        let Fabric::WdmRing(ring) = &fabric;
        let c = Collective::new(CollectiveKind::AllGather, ring.ranks)
            .unwrap()
            .with_pieces(pieces)
            .unwrap();
        let t = Instant::now();
        let b = bound::best(ring, &c);
        let tb = t.elapsed();
        let t = Instant::now();
        let p = planner::relay_tree(&fabric, c).unwrap();
        let tp = t.elapsed();
        let t = Instant::now();
        let v = verify::verify(&p);
        println!(
            "{n} {w} bound {} {} {:?} ours {} {} plan {:?} verify {:?} {:?}",
            b.steps,
            b.name,
            tb,
            p.slots(),
            p.algorithm,
            tp,
            t.elapsed(),
            v.first().map(|v| v.sentence.clone())
        );
    }
}
