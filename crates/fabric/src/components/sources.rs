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

/// Returns the source of properties that follow from the kind of a component.
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
pub(super) const COHERENT: Source = secondary(
    "achoenix/optical_io, docs/transceiver.md, which cites the module FTCE4517E1PXA of Coherent",
);
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
pub(super) const NETWORK_EVAL: Source =
    secondary("minyee/reconf_network_eval, power_consumption_analysis/power_analysis.py");
pub(super) const OPELINK_OCS: Source =
    secondary("Opelink, optical and electrical switches, opelink.com, 15 May 2026");
pub(super) const TEJAS: Source =
    data_sheet("Tejas Networks TJ1600, documentation of release 5.5.3");
pub(super) const MCP7Y70: Source = data_sheet("NVIDIA MCP7Y70, specifications, docs.nvidia.com");
pub(super) const MEFIBER: Source =
    secondary("text on passive and active copper cables, mefibermodule.com");
pub(super) const ASTERAIX: Source = secondary("AOC vs DAC vs AEC, asteraix.com");
pub(super) const NVIDIA_800G: Source =
    data_sheet("NVIDIA MMS4X00-NS, specifications, docs.nvidia.com, 4 March 2025");
pub(super) const NVIDIA_800G_SR: Source =
    data_sheet("NVIDIA MMA4Z00-NS-T, specifications, docs.nvidia.com");
pub(super) const NVIDIA_400G: Source =
    data_sheet("NVIDIA MMS4X00-NS400, specifications, docs.nvidia.com");
pub(super) const NVIDIA_400G_SR: Source =
    data_sheet("NVIDIA MMA4Z00-NS400-T and MMA1Z00-NS400-T, specifications, docs.nvidia.com");
pub(super) const SINO_TELECOM: Source =
    data_sheet("Sino-Telecom 100G QSFP28 CWDM4, sino-telecom.com");
pub(super) const HUAHANDA: Source = data_sheet("100G QSFP28 LR4, huahanda.com");
pub(super) const LUXOPTX_PRICE: Source = secondary("From 100G to 400G/800G, luxoptx.com");
pub(super) const LUXOPTX_LIFE: Source =
    secondary("text on the reliability of 800G modules, luxoptx.com");
pub(super) const GITEA_SR8: Source = secondary("transceiver-db, blog-018");
pub(super) const GTC_PRICE: Source =
    secondary("achoenix/optical_io, docs/nvidia_system.md, on NVIDIA's keynote at GTC, 2025");
pub(super) const AVAYA: Source =
    data_sheet("Avaya Virtual Services Platform 8800, installation manual, August 2013");
pub(super) const AVAGO: Source = data_sheet("Avago AFCT-5725PZ, reliability data sheet");
pub(super) const INTEGRA: Source = data_sheet("Integra Optics, integraoptics.com");
pub(super) const F_TONE: Source = data_sheet("F-tone 400G QSFP-DD ZR+, f-tone.com");
pub(super) const LUMENTUM: Source =
    data_sheet("Lumentum JST, tunable SFP+ transceiver, read in a copy at scribd.com");
pub(super) const EMCORE: Source = data_sheet("EMCORE TTX1994, November 2009");
pub(super) const GLHC: Source = data_sheet("GLHC Optical, EDFA module, glhcoptical.com");
pub(super) const EDFA_CARD: Source = data_sheet("EDFA card, industrialnetworkswitch.com");
pub(super) const IP_INFUSION: Source =
    secondary("IP Infusion, switches with Tomahawk 5, ipinfusion.com");
pub(super) const SN5600: Source = secondary(
    "specifications of the NVIDIA SN5600, as quoted in a public repository whose \
     name is not known",
);
pub(super) const TECHINSIGHTS: Source = secondary("TechInsights, Tomahawk 5 switches at 51.2 Tb/s");
pub(super) const CHIPCRAFT: Source = secondary("Tomahawk 5, chipcraft.tech, 16 January 2025");
pub(super) const DPS: Source =
    secondary("NVIDIA, Domain Power Service, docs.nvidia.com/datacenter/dps, as quoted by others");
pub(super) const WIKICHIP: Source = secondary("NVSwitch, en.wikichip.org, 2018");
pub(super) const CONNECTX_7: Source = secondary(
    "NVIDIA ConnectX-7 user manual, as quoted in public repositories whose names are \
     not known",
);
pub(super) const CONNECTX_5: Source =
    data_sheet("NVIDIA ConnectX-5 for OCP 2.0, specifications, docs.nvidia.com");
pub(super) const LLAMA: Source =
    paper("The Llama 3 herd of models, arXiv 2407.21783, section 3.3.4 and table 5");
pub(super) const CONTINUUM: Source = secondary("NVIDIA GB200 NVL72, training.continuumlabs.ai");
