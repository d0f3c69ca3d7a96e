//! Sources of the values of components.

use super::SourceKind;

/// Publication that states values.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) kind: SourceKind,
    pub(super) text: &'static str,
}

pub(super) const fn data_sheet(text: &'static str) -> Source {
    Source {
        kind: SourceKind::DataSheet,
        text,
    }
}

pub(super) const fn paper(text: &'static str) -> Source {
    Source {
        kind: SourceKind::Paper,
        text,
    }
}

pub(super) const fn secondary(text: &'static str) -> Source {
    Source {
        kind: SourceKind::Secondary,
        text,
    }
}

/// Source of properties that follow from what a component is.
pub(super) const fn definition(text: &'static str) -> Source {
    Source {
        kind: SourceKind::Definition,
        text,
    }
}

pub(super) const FOA: Source =
    secondary("Fiber Optic Association, loss budget calculator, thefoa.org");
pub(super) const CORNING: Source =
    data_sheet("Corning SMF-28 ULL, product information PI1470, July 2014");
pub(super) const CABLE: Source = data_sheet("single-mode indoor cable of 6 cores, machineu.com");
pub(super) const QUOTED: Source =
    secondary("texts on loss budgets of fibre links; the standard itself was not read");
pub(super) const REACH: Source = data_sheet("Reach Optics, CWDM multiplexers, reachoptics.com");
pub(super) const CANARY: Source =
    data_sheet("Canary Communications CCM-1202, table I-2 (CM-4MD6 and CM-8MD6)");
pub(super) const OPELINK: Source =
    secondary("Opelink, optical switch specifications guide, opelink.com, 21 May 2026");
pub(super) const PHOENIX: Source =
    secondary("PhoenixSim, parameters of Hendry's simulations, sstsimulator/sst-elements");
pub(super) const SHORELINE: Source =
    data_sheet("Shoreline SH-PLC, balanced splitter with connectors");
pub(super) const TWO_FLEX: Source = data_sheet("2Flex, balanced splitter without connectors");
pub(super) const COHERENT: Source =
    secondary("achoenix/optical_io, docs/ocs.md, which cites the module FTCE4517E1PXA of Coherent");
pub(super) const GTC: Source =
    secondary("achoenix/optical_io, docs/cpo.md, on NVIDIA's talks at GTC, 2025");
pub(super) const AXIOM: Source = secondary("800G LPO vs DSP, axiomupgrades.com");
pub(super) const MAPYOURTECH: Source =
    secondary("text on co-packaged optics of Broadcom, mapyourtech.com");
pub(super) const WEDOANY: Source = secondary("wedoany 193917, which quotes Lambda");
pub(super) const LAMBDA: Source = secondary("table of Lambda on Quantum-X Q3450-LD, 2026");
pub(super) const POWER_MODEL: Source =
    secondary("power model in public code; its repository is not known");
pub(super) const NOTE: Source = secondary("note on texts about TPU v4; the texts were not kept");
pub(super) const CALIENT: Source = secondary("comment in public code; its repository is not known");
pub(super) const GITEA: Source = secondary("transceiver-db, blog-038; ico-optics.org");
pub(super) const GPUS: Source = secondary(
    "achoenix/optical_io, docs/nvidia_system.md, or Lambda; the list of values does not say which",
);
pub(super) const APOLLO: Source = secondary(
    "emergentmind.com on Urata et al., Mission Apollo, arXiv 2208.10041; the paper \
     itself was not read",
);
pub(super) const RINGS: Source = paper(
    "Compact wavelength selective crossbar switch with cascaded first order micro-ring \
     resonators, Photonics 9(2), 60, 2022",
);
pub(super) const FILTERS: Source = paper(
    "Design and demonstration of compact, wide bandwidth coupled-resonator filters on a \
     silicon-on-insulator platform, Optics Express 17, 2247, 2009",
);
