//! List of all components.

use super::sources::{
    APOLLO, ASTERAIX, AVAGO, AVAYA, AXIOM, CABLE, CANARY, CHIPCRAFT, COHERENT, CONNECTX_5,
    CONNECTX_7, CONTINUUM, CORNING, DPS, EDFA_CARD, EMCORE, F_TONE, FILTERS, FOA, GITEA, GITEA_SR8,
    GLHC, GPUS, GTC, GTC_PRICE, HUAHANDA, INTEGRA, IP_INFUSION, LAMBDA, LLAMA, LUMENTUM,
    LUXOPTX_LIFE, LUXOPTX_PRICE, MAPYOURTECH, MCP7Y70, MEFIBER, NETWORK_EVAL, NOTE, NVIDIA_400G,
    NVIDIA_400G_SR, NVIDIA_800G, NVIDIA_800G_SR, OPELINK, OPELINK_OCS, PHOENIX, POWER_MODEL,
    QUOTED, REACH, RINGS, SHORELINE, SINO_TELECOM, SN5600, TECHINSIGHTS, TEJAS, TWO_FLEX, WEDOANY,
    WIKICHIP, secondary,
};
use super::{
    Component, PASSIVE, Property, electrical, failures, loss, per_bit, per_km, per_port, price,
    stated, watts,
};

/// All components.
pub const COMPONENTS: &[Component] = &[
    Component {
        name: "fibre_1310",
        summary: "Single-mode fibre at 1310 nm",
        values: &[
            per_km("0.31", "maximum", CORNING),
            per_km("0.35", "maximum", CABLE),
            per_km("0.4", "typical", FOA),
            PASSIVE,
        ],
    },
    Component {
        name: "fibre_1550",
        summary: "Single-mode fibre at 1550 nm",
        values: &[
            per_km("0.17", "maximum", CORNING),
            per_km("0.2", "maximum", CABLE),
            per_km("0.2", "typical", FOA),
            PASSIVE,
        ],
    },
    Component {
        name: "connector",
        summary: "Mated pair of single-mode connectors",
        values: &[
            loss("0.3", "most connectors", QUOTED),
            loss("0.5", "typical", FOA),
            loss("0.75", "maximum of TIA-568", QUOTED),
            PASSIVE,
        ],
    },
    Component {
        name: "splice",
        summary: "Splice of single-mode fibres",
        values: &[loss("0.15", "typical", FOA), PASSIVE],
    },
    Component {
        name: "mux_4",
        summary: "Multiplexer or demultiplexer of 4 coarse wavelengths",
        values: &[
            loss("1.6", "maximum", REACH),
            loss("2.4", "maximum; typical 1.2 dB", CANARY),
            PASSIVE,
        ],
    },
    Component {
        name: "mux_8",
        summary: "Multiplexer or demultiplexer of 8 coarse wavelengths",
        values: &[
            loss("2.5", "maximum", REACH),
            loss("3.4", "maximum; typical 2.4 dB", CANARY),
            PASSIVE,
        ],
    },
    Component {
        name: "mux_16",
        summary: "Multiplexer or demultiplexer of 16 coarse wavelengths",
        values: &[loss("4.5", "maximum", REACH), PASSIVE],
    },
    Component {
        name: "mems_1xn",
        summary: "Switch of one port to N ports with micro-mirrors (MEMS)",
        values: &[loss("2", "maximum, at 1550 nm", OPELINK)],
    },
    Component {
        name: "oxc_64",
        summary: "Optical cross-connect of 64 by 64 ports",
        values: &[
            loss("4", "maximum, at 1550 nm", OPELINK),
            per_port("0.5 to 2", "", OPELINK_OCS),
        ],
    },
    Component {
        name: "palomar",
        summary: "Palomar, the optical circuit switch of 136 by 136 ports of TPU v4",
        values: &[
            loss("2", "upper limit", APOLLO),
            watts("108", "unconfirmed", NOTE),
        ],
    },
    Component {
        name: "wss",
        summary: "Wavelength-selective switch",
        values: &[
            loss("5 to 8", "of each port", OPELINK),
            loss(
                "5.32",
                "median over the paths of a 4 by 4 switch of silicon micro-rings",
                RINGS,
            ),
            watts(
                "30",
                "maximum, ROADM card with a switch of 1 by 2 to 1 by 8",
                TEJAS,
            ),
        ],
    },
    Component {
        name: "splitter_2",
        summary: "Splitter with 2 outputs (10 log10 2 = 3.01 dB)",
        values: &[loss("4.3", "maximum", SHORELINE), PASSIVE],
    },
    Component {
        name: "splitter_4",
        summary: "Splitter with 4 outputs (10 log10 4 = 6.02 dB)",
        values: &[loss("7.4", "maximum", SHORELINE), PASSIVE],
    },
    Component {
        name: "splitter_8",
        summary: "Splitter with 8 outputs (10 log10 8 = 9.03 dB)",
        values: &[
            loss("10.7", "maximum", SHORELINE),
            loss("10.3", "", TWO_FLEX),
            PASSIVE,
        ],
    },
    Component {
        name: "splitter_16",
        summary: "Splitter with 16 outputs (10 log10 16 = 12.04 dB)",
        values: &[
            loss("13.9", "maximum", SHORELINE),
            loss("13.7", "", TWO_FLEX),
            PASSIVE,
        ],
    },
    Component {
        name: "splitter_32",
        summary: "Splitter with 32 outputs (10 log10 32 = 15.05 dB)",
        values: &[loss("17.2", "maximum", SHORELINE), PASSIVE],
    },
    Component {
        name: "splitter_64",
        summary: "Splitter with 64 outputs (10 log10 64 = 18.06 dB)",
        values: &[loss("21.5", "maximum", SHORELINE), PASSIVE],
    },
    Component {
        name: "ring_through",
        summary: "Ring resonator of another wavelength, which light passes",
        values: &[
            loss("0.005", "parameters called realistic", PHOENIX),
            loss("0", "parameters called aggressive", PHOENIX),
        ],
    },
    Component {
        name: "ring_drop",
        summary: "Ring resonator that drops light to a receiver",
        values: &[
            loss("0.5", "both sets of parameters", PHOENIX),
            loss("0.5", "upper limit, third-order filter of silicon", FILTERS),
        ],
    },
    Component {
        name: "fibre",
        summary: "Fibre between two neighbours, in one direction",
        values: &[PASSIVE],
    },
    Component {
        name: "fibre_cable",
        summary: "Cable of fibres between two transceivers, or a transceiver and a switch",
        values: &[PASSIVE],
    },
    Component {
        name: "copper_cable",
        summary: "Copper cable without electronics; its ports belong to the parts at both ends",
        values: &[
            PASSIVE,
            watts("0.1", "maximum, memory chip of the connectors", MCP7Y70),
            per_bit(
                "1.3",
                "of the ports at both ends, as of NVLink",
                POWER_MODEL,
            ),
        ],
    },
    Component {
        name: "active_copper_cable",
        summary: "Copper cable with electronics in its connectors",
        values: &[
            watts("0.5 to 1", "active direct-attach cable (DAC)", MEFIBER),
            failures(
                "10",
                "MTBF 100,000,000 h, with retimers (AEC), unconfirmed",
                ASTERAIX,
            ),
        ],
    },
    Component {
        name: "star_coupler",
        summary: "Passive star coupler, which divides light among all ranks",
        values: &[PASSIVE],
    },
    Component {
        name: "host_trace",
        summary: "Electrical path from a switch chip to an optical module",
        values: &[
            electrical("8 to 14", "pluggable module", GITEA),
            electrical("4", "co-packaged optics, about", GITEA),
        ],
    },
    Component {
        name: "transceiver",
        summary: "Pluggable optical module of any rate, with a digital signal processor (DSP)",
        values: &[
            per_bit("20", "16 W for 800 Gb/s, 2xDR4, typical", NVIDIA_800G),
            per_bit("22.5", "9 W for 400 Gb/s, DR4", NVIDIA_400G),
            per_bit("35", "3.5 W for 100 Gb/s, CWDM4, maximum", SINO_TELECOM),
            per_bit("20", "800 Gb/s", COHERENT),
            per_bit("18.75", "1.6 Tb/s", GTC),
            per_bit("20.6", "800 Gb/s, InfiniBand", POWER_MODEL),
            per_bit("17.5 to 20", "800 Gb/s", AXIOM),
            failures("1481", "MTBF 675,000 h, 10GBASE-ER in XFP", AVAYA),
            failures(
                "127.4",
                "1.25 Gb/s SFP at 40 C, predicted by Telcordia SR-332",
                AVAGO,
            ),
            failures("1111", "upper limit, MTBF above 900,000 h", INTEGRA),
            failures("1667", "MTBF 600,000 h, about", ASTERAIX),
        ],
    },
    Component {
        name: "transceiver_100g",
        summary: "Pluggable optical module of 100 Gb/s",
        values: &[
            watts("3.5", "CWDM4, maximum", SINO_TELECOM),
            watts("4", "LR4, maximum", HUAHANDA),
            price("500", "about, in large numbers", LUXOPTX_PRICE),
        ],
    },
    Component {
        name: "transceiver_400g",
        summary: "Pluggable optical module of 400 Gb/s with a DSP",
        values: &[
            watts("9", "DR4, typical and maximum", NVIDIA_400G),
            watts("8", "SR4, typical; maximum 9 W", NVIDIA_400G_SR),
        ],
    },
    Component {
        name: "transceiver_800g",
        summary: "Pluggable optical module of 800 Gb/s with a DSP",
        values: &[
            watts("16", "2xDR4, typical; maximum 17 W", NVIDIA_800G),
            watts("15", "2xSR4", NVIDIA_800G_SR),
            watts("16", "DR8 in OSFP", COHERENT),
            watts("16.5", "InfiniBand", POWER_MODEL),
            watts("14 to 16", "", AXIOM),
            watts("15 to 16", "", MAPYOURTECH),
            watts("9 to 11", "SR8", GITEA_SR8),
            price("1000", "about; the source assumes 800 Gb/s", GTC_PRICE),
            price(
                "799 to 999",
                "SR8, compatible with another maker's modules, 2026",
                GITEA_SR8,
            ),
        ],
    },
    Component {
        name: "transceiver_1600g",
        summary: "Pluggable optical module of 1.6 Tb/s with a DSP",
        values: &[
            watts("30", "", GTC),
            watts("25", "in a switch with 72 of them", WEDOANY),
        ],
    },
    Component {
        name: "lpo",
        summary: "Pluggable optical module without a DSP (linear pluggable optics, LPO)",
        values: &[per_bit("10 to 11.3", "800 Gb/s", AXIOM)],
    },
    Component {
        name: "lpo_800g",
        summary: "Pluggable optical module of 800 Gb/s without a DSP",
        values: &[watts("8 to 9", "", AXIOM)],
    },
    Component {
        name: "cpo_800g",
        summary: "Co-packaged optics (CPO) of 800 Gb/s with Mach-Zehnder modulators",
        values: &[
            watts("6", "upper limit, Broadcom", MAPYOURTECH),
            per_bit("7.5", "upper limit, Broadcom", MAPYOURTECH),
        ],
    },
    Component {
        name: "wdm_transceiver",
        summary: "Transmitter and receiver of one wavelength with ring modulators, beside the chip \
            (CPO)",
        values: &[
            per_bit("5.625", "1.6 Tb/s, with laser", GTC),
            per_bit("4.375", "1.6 Tb/s, without laser", GTC),
            per_bit(
                "5",
                "TeraPHY 3, about, unconfirmed",
                secondary("achoenix/optical_io, docs/ayar_cpo.md; gazettabyte 146250"),
            ),
        ],
    },
    Component {
        name: "wdm_transceiver_1600g",
        summary: "Co-packaged optical engine of 1.6 Tb/s with ring modulators",
        values: &[
            watts("9", "with laser", GTC),
            watts("7", "without laser", GTC),
        ],
    },
    Component {
        name: "laser",
        summary: "Laser outside the package that feeds ring modulators with constant light",
        values: &[
            per_bit(
                "1.25",
                "estimate: 2 W for 1.6 Tb/s, with 12 mW per channel, 5 dB for two couplings, 15 % \
             from plug to light at 55 C, 60 % of the driver",
                secondary("achoenix/optical_io, docs/cpo.md"),
            ),
            failures(
                "50 to 200",
                "DFB laser at 70 C junction temperature",
                LUXOPTX_LIFE,
            ),
        ],
    },
    Component {
        name: "wdm_transmitter",
        summary: "Transmitter of one wavelength without a receiver",
        values: &[],
    },
    Component {
        name: "wdm_receiver",
        summary: "Receiver of one wavelength without a transmitter",
        values: &[],
    },
    Component {
        name: "tunable_transceiver",
        summary: "Transmitter and receiver that are tuned to a wavelength",
        values: &[
            per_bit(
                "52.5",
                "21 W for 400 Gb/s, coherent 400ZR+, typical",
                F_TONE,
            ),
            per_bit("170", "1.7 W for 10 Gb/s, SFP+, maximum", LUMENTUM),
        ],
    },
    Component {
        name: "tunable_transceiver_10g",
        summary: "Pluggable module of 10 Gb/s that is tuned to a wavelength",
        values: &[watts("1.7", "SFP+, maximum", LUMENTUM)],
    },
    Component {
        name: "tunable_transceiver_400g",
        summary: "Coherent pluggable module of 400 Gb/s that is tuned to a wavelength",
        values: &[watts(
            "21",
            "400ZR+ in QSFP-DD, typical; maximum 22.5 W",
            F_TONE,
        )],
    },
    Component {
        name: "tunable_transmitter",
        summary: "Transmitter that is tuned to a wavelength, without a receiver",
        values: &[watts(
            "3.5",
            "tunable laser without its modulator, typical",
            EMCORE,
        )],
    },
    Component {
        name: "tunable_receiver",
        summary: "Receiver that is tuned to a wavelength, without a transmitter",
        values: &[],
    },
    Component {
        name: "amplifier",
        summary: "Amplifier of the light of one fibre",
        values: &[
            watts(
                "10",
                "maximum, module with erbium-doped fibre (EDFA), C band",
                GLHC,
            ),
            watts(
                "15",
                "maximum, card with erbium-doped fibre (EDFA)",
                EDFA_CARD,
            ),
            failures("10000", "upper limit, MTBF above 100,000 h", EDFA_CARD),
        ],
    },
    Component {
        name: "light_switch",
        summary: "Switch of light at a vertex of a graph of fibres, for all wavelengths",
        values: &[per_port(
            "30",
            "estimate: a ROADM card for each fibre; maximum",
            TEJAS,
        )],
    },
    Component {
        name: "ocs",
        summary: "Optical circuit switch (OCS) with micro-mirrors",
        values: &[
            per_port("0.8", "Palomar, 108 W for 136 ports, unconfirmed", NOTE),
            per_port(
                "0.14",
                "Calient S320, 45 W for 320 ports, typical",
                NETWORK_EVAL,
            ),
            per_port("0.26", "Polatis 7000, 100 W for 384 ports", NETWORK_EVAL),
            per_port("0.5 to 2", "", OPELINK_OCS),
        ],
    },
    Component {
        name: "calient_s320",
        summary: "Calient S320, an optical circuit switch of 320 ports",
        values: &[watts("45", "typical", NETWORK_EVAL)],
    },
    Component {
        name: "packet_switch",
        summary: "Packet switch without its optical modules",
        values: &[
            per_bit(
                "17.83",
                "913 W for 51.2 Tb/s, UfiSpace S9321-64E, typical",
                IP_INFUSION,
            ),
            per_bit(
                "18.36",
                "940 W for 51.2 Tb/s, NVIDIA SN5600, typical, unconfirmed",
                SN5600,
            ),
            per_bit(
                "9.77",
                "500 W for 51.2 Tb/s, chip only, Tomahawk 5, estimate",
                TECHINSIGHTS,
            ),
            per_bit(
                "8.79",
                "450 W for 51.2 Tb/s, chip only, Tomahawk 5, typical",
                CHIPCRAFT,
            ),
            per_bit(
                "10 to 500",
                "router, 1 to 50 W per 100 Gb/s",
                secondary("Cisco, blog xrdocs/8000"),
            ),
        ],
    },
    Component {
        name: "q3450_pluggable",
        summary: "Packet switch of 144 ports of 800 Gb/s with its pluggable optical modules",
        values: &[
            watts("7000", "the size of Quantum-X Q3450-LD", LAMBDA),
            stated(Property::Ports, "144", "", LAMBDA),
            stated(Property::PortRate, "800", "", LAMBDA),
            per_bit("60.8", "of switching", LAMBDA),
        ],
    },
    Component {
        name: "q3450_cpo",
        summary: "Quantum-X Q3450-LD, packet switch of 144 ports of 800 Gb/s with its co-packaged \
            optics",
        values: &[
            watts("3950", "", LAMBDA),
            stated(Property::Ports, "144", "", LAMBDA),
            stated(Property::PortRate, "800", "", LAMBDA),
            per_bit("34.3", "of switching", LAMBDA),
        ],
    },
    Component {
        name: "server_switch",
        summary: "Switch within a server, such as an NVSwitch",
        values: &[
            per_bit(
                "21.53",
                "11,160 W for 518.4 Tb/s, all switches of a GB200 NVL72, unconfirmed",
                DPS,
            ),
            per_bit("27.78", "100 W for 3.6 Tb/s, first NVSwitch", WIKICHIP),
        ],
    },
    Component {
        name: "nic",
        summary: "Network interface of a rank, without its optical module",
        values: &[
            per_bit(
                "62.25",
                "24.9 W for 400 Gb/s, ConnectX-7, typical, unconfirmed",
                CONNECTX_7,
            ),
            per_bit(
                "83.5",
                "16.7 W for 200 Gb/s, ConnectX-7, typical, unconfirmed",
                CONNECTX_7,
            ),
            per_bit(
                "259",
                "12.95 W for 50 Gb/s, ConnectX-5, typical",
                CONNECTX_5,
            ),
            failures(
                "330",
                "7 interruptions in 54 days of training with 16,384",
                LLAMA,
            ),
        ],
    },
    Component {
        name: "nic_200g",
        summary: "Network interface of 200 Gb/s, without its optical module",
        values: &[watts(
            "16.7",
            "ConnectX-7, typical, with passive cables, unconfirmed",
            CONNECTX_7,
        )],
    },
    Component {
        name: "nic_400g",
        summary: "Network interface of 400 Gb/s, without its optical module",
        values: &[
            watts(
                "24.9",
                "ConnectX-7, typical, with passive cables, unconfirmed",
                CONNECTX_7,
            ),
            watts(
                "25.9",
                "ConnectX-7 with encryption, typical, with passive cables, unconfirmed",
                CONNECTX_7,
            ),
            watts(
                "24.4",
                "ConnectX-7 for OCP, typical, with passive cables, unconfirmed",
                CONNECTX_7,
            ),
        ],
    },
    Component {
        name: "nvlink",
        summary: "Link of copper between GPUs of a rack",
        values: &[per_bit("1.3", "", POWER_MODEL)],
    },
    Component {
        name: "gpu",
        summary: "GPU or other accelerator of another model",
        values: &[],
    },
    Component {
        name: "gpu_h100",
        summary: "NVIDIA H100",
        values: &[
            watts(
                "700",
                "",
                secondary("aiconfigurator, systems/h100_sxm.yaml"),
            ),
            failures(
                "11585",
                "with memory: 246 (58.7 %) of 419 interruptions, 54 days of training with 16,384",
                LLAMA,
            ),
            failures(
                "12621",
                "with memory: 268 interruptions by the rows of table 5, in the same training",
                LLAMA,
            ),
        ],
    },
    Component {
        name: "gpu_b200",
        summary: "NVIDIA B200",
        values: &[watts("1000", "", GPUS)],
    },
    Component {
        name: "gpu_gb200",
        summary: "NVIDIA GPU of a GB200",
        values: &[watts("1200", "", GPUS)],
    },
    Component {
        name: "gpu_blackwell_ultra",
        summary: "NVIDIA Blackwell Ultra",
        values: &[watts("1400", "", GPUS)],
    },
    Component {
        name: "rack_nvl72",
        summary: "Rack of an NVL72, with everything in it",
        values: &[
            watts("120000", "about", GPUS),
            price("3000000", "about", CONTINUUM),
        ],
    },
];
