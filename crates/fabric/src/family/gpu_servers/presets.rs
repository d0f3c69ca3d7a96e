//! Presets of GPU servers.

use crate::fabric::PresetRecord;

/// Presets, one for each model.
pub(super) const PRESETS: &[PresetRecord] = &[
    PresetRecord {
        name: "dgx_a100",
        summary: "DGX A100: 8 GPUs around an NVSwitch, 300 GB/s each; between servers 25 GB/s \
            each; 1.1 us within, 2.7 us between",
        citation: "NVIDIA DGX A100 data sheet; as a graph in ForestColl, arXiv 2402.06787; \
            latency in a server: NCCL's all_gather of 512 B, ai-dynamo/aiconfigurator, commit \
            095f58a5",
        spec: "gpu_servers:model=dgx_a100",
        unconfirmed: "2.7 us between servers is a constant of NCCL's model (hwLat of tuning.cc), \
            not measured on this machine",
    },
    PresetRecord {
        name: "dgx_h100",
        summary: "DGX H100: 8 GPUs around an NVSwitch, 450 GB/s each; between servers 50 GB/s \
            each; 0.8 us within, 2.7 us between",
        citation: "NVIDIA DGX H100 data sheet; as a graph in ForestColl, arXiv 2402.06787; \
            latency in a server: NCCL's all_gather of 512 B, ai-dynamo/aiconfigurator, commit \
            095f58a5",
        spec: "gpu_servers:model=dgx_h100",
        unconfirmed: "2.7 us between servers is a constant of NCCL's model (hwLat of tuning.cc), \
            not measured on this machine",
    },
    PresetRecord {
        name: "dgx1",
        summary: "DGX-1 with 8 V100: a hybrid cube mesh of NVLinks of 25 GB/s, single and double; \
            0.3 us over a link",
        citation: "Cai et al., Synthesizing Optimal Collective Algorithms (SCCL), PPoPP 2021",
        spec: "gpu_servers:model=dgx1",
        unconfirmed: "0.3 us is that of TACCL's profile of an NDv2",
    },
    PresetRecord {
        name: "ndv2",
        summary: "Azure NDv2: two DGX-1 joined by 12.5 GB/s from GPU 0 to GPU 1; 0.3 us within, \
            2.6 us between",
        citation: "Liu et al., Rethinking Machine Learning Collective Communication (TE-CCL), \
            SIGCOMM 2024",
        spec: "gpu_servers:model=ndv2,boxes=2",
        unconfirmed: "latencies are those of TACCL's profile (microsoft/taccl, topo-ndv2-1MB.json)",
    },
    PresetRecord {
        name: "dgx2",
        summary: "DGX-2: 16 V100 around a switch, 125 GB/s each; between two servers 12.5 GB/s per \
            pair; 0.3 us within, 2.6 us between",
        citation: "Liu et al., Rethinking Machine Learning Collective Communication (TE-CCL), \
            SIGCOMM 2024",
        spec: "gpu_servers:model=dgx2,boxes=2",
        unconfirmed: "latencies are those of TACCL's profile (microsoft/taccl, topo-dgx2-1MB.json)",
    },
    PresetRecord {
        name: "mi250",
        summary: "8 AMD MI250: 16 dies with links of 50 GB/s; between servers 16 GB/s each; 0.6 us \
            over a link, 2.7 us between",
        citation: "AMD Instinct MI250 system topology; as a graph in ForestColl, arXiv 2402.06787",
        spec: "gpu_servers:model=mi250",
        unconfirmed: "latencies are constants of NCCL's model for NVLink and networks (hwLat of \
            tuning.cc), not measured on this machine",
    },
    PresetRecord {
        name: "nvl72",
        summary: "GB200 NVL72: 72 GPUs, 900 GB/s each to one switch; between racks 50 GB/s each; \
            1.15 us within, 2.7 us between",
        citation: "NVIDIA GB200 NVL72 data sheet; latency in a rack: NCCL's all_gather of 512 B, \
            ai-dynamo/aiconfigurator, commit 095f58a5",
        spec: "gpu_servers:model=nvl72",
        unconfirmed: "2.7 us between racks is a constant of NCCL's model (hwLat of tuning.cc), \
            not measured on this machine",
    },
    PresetRecord {
        name: "dgx_b200",
        summary: "DGX B200: 8 GPUs around an NVSwitch, 900 GB/s each; between servers 50 GB/s \
            each; 1.2 us within, 2.7 us between",
        citation: "NVIDIA DGX B200 data sheet; latency in a server: NCCL's all_gather of 512 B, \
            ai-dynamo/aiconfigurator, commit 095f58a5",
        spec: "gpu_servers:model=dgx_b200",
        unconfirmed: "2.7 us between servers is a constant of NCCL's model (hwLat of tuning.cc), \
            not measured on this machine",
    },
    PresetRecord {
        name: "l40s",
        summary: "8 L40S of 32 GB/s each on PCIe around a host bridge; 1 us",
        citation: "NVIDIA L40S data sheet: PCIe of generation 4 with 16 lanes",
        spec: "gpu_servers:model=l40s",
        unconfirmed: "1 us is a constant of NCCL's model (hwLat of tuning.cc, PCIe); hosts differ \
            in how GPUs share the bridge",
    },
];
