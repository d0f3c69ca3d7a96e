//! List of devices: peaks from their data sheets, and constants that are fitted to measured times.

use super::{Fitted, GIGA, TERA};

/// Declaration of a device.
pub struct DeviceRecord {
    /// Name in specifications.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source of the peaks.
    pub citation: &'static str,
    /// Peak rate of dense matrix products in 16-bit floats, in operations per second.
    pub peak: u64,
    /// Peak rate of dense matrix products of 8-bit floats; 0 if the device has no such products.
    pub narrow_peak: u64,
    /// Peak bandwidth of the memory, in bytes per second.
    pub bandwidth: u64,
    /// Bytes of memory. If a device has several versions, the largest memory.
    pub memory: u64,
    /// Constants that are fitted to measured times.
    pub fitted: Fitted,
}

/// Fit by `opticoll calibrate` to products, blocks, output layers and image networks, each measured
/// on an H100 with PyTorch 2.11. The constants of 8-bit products are fitted to ten products that
/// DeepSeek measured on an H800 (first README of DeepGEMM, February 2025): six products of 4,096
/// rows, and the four grouped products of the contiguous layout. Nine rows are within 4.2 %, and
/// the product with 2,112 columns, which do not fill the tiles of its kernel, is 16 % too fast.
const H100: Fitted = Fitted {
    products: 0.728,
    depth: 164.0,
    odd_output: 0.139,
    odd_input: 0.197,
    channels: 46.6,
    attention: 0.826,
    head: 86.0,
    keys: 2060.0,
    memory: 0.934,
    launch: 4.99,
    host: 0.0,
    fp8_products: 0.708,
    fp8_depth: 640.0,
};

/// Fit of five constants (these four, and `host` of Megatron-DeepSpeed at 66 microseconds) to 720
/// iterations of GPT on 2 to 8 A100 by vTrain (MICRO 2024); see `validation/training_times.py`. Its
/// kernels are less fused than those of the H100, so that `memory` is lower.
const A100: Fitted = Fitted {
    products: 0.8,
    depth: 134.0,
    memory: 0.68,
    launch: 7.5,
    ..H100
};

/// `depth` and `launch` are fitted to 622 products, and the constants of attention to 32 kernels
/// with 65,536 queries in all heads or more, that SimuMax measured on B200 alone
/// (`configs/system/b200_bf16_ceperm.json` at commit 4dcaae5). Heads wider than 128 are no faster
/// there, so `head` is 0. `products` is fitted to 12 iterations of Llama 3 on 8 B200 by SimuMax;
/// the products alone reach 0.506. `memory` is an earlier fit to these iterations.
const B200: Fitted = Fitted {
    products: 0.473,
    depth: 86.0,
    attention: 0.415,
    head: 0.0,
    keys: 563.0,
    memory: 0.76,
    launch: 5.67,
    ..H100
};

/// All devices; the first is the default, which is fitted to layers measured one by one.
pub const DEVICES: &[DeviceRecord] = &[
    DeviceRecord {
        name: "h100",
        summary: "989 TFLOP/s in 16-bit floats, without sparsity",
        citation: "NVIDIA H100 datasheet, SXM",
        peak: 989 * TERA,
        narrow_peak: 1979 * TERA,
        bandwidth: 3350 * GIGA,
        memory: 80 * GIGA,
        fitted: H100,
    },
    DeviceRecord {
        name: "ascend_910",
        summary: "256 TFLOP/s in 16-bit floats, as in the prototype of the ODDL paper",
        citation: "Huawei, launch of the Ascend 910, August 2019 (rate); Linley Newsletter, \
            October 2019 (memory); the bandwidth is not confirmed",
        peak: 256 * TERA,
        narrow_peak: 0,
        bandwidth: 1200 * GIGA,
        memory: 32 * GIGA,
        fitted: H100,
    },
    DeviceRecord {
        name: "v100",
        summary: "125 TFLOP/s in 16-bit floats",
        citation: "NVIDIA V100 datasheet, SXM2",
        peak: 125 * TERA,
        narrow_peak: 0,
        bandwidth: 900 * GIGA,
        memory: 32 * GIGA,
        fitted: H100,
    },
    DeviceRecord {
        name: "a100",
        summary: "312 TFLOP/s in 16-bit floats, without sparsity",
        citation: "NVIDIA A100 datasheet, SXM 80 GB",
        peak: 312 * TERA,
        narrow_peak: 0,
        bandwidth: 2039 * GIGA,
        memory: 80 * GIGA,
        fitted: A100,
    },
    DeviceRecord {
        name: "h800",
        summary: "989 TFLOP/s in 16-bit floats, without sparsity; NVLink is slower than of an H100",
        citation: "peaks of the H100, not confirmed; 1,550 TFLOP/s of 8-bit products reached: \
            DeepSeek, README of DeepGEMM, 2025",
        peak: 989 * TERA,
        narrow_peak: 1979 * TERA,
        bandwidth: 3350 * GIGA,
        memory: 80 * GIGA,
        fitted: H100,
    },
    DeviceRecord {
        name: "h200",
        summary: "989 TFLOP/s in 16-bit floats, without sparsity",
        citation: "NVIDIA H200 datasheet, SXM",
        peak: 989 * TERA,
        narrow_peak: 1979 * TERA,
        bandwidth: 4800 * GIGA,
        memory: 141 * GIGA,
        fitted: H100,
    },
    DeviceRecord {
        name: "b200",
        summary: "2,250 TFLOP/s in 16-bit floats, without sparsity",
        citation: "NVIDIA HGX B200 datasheet",
        peak: 2250 * TERA,
        narrow_peak: 4500 * TERA,
        bandwidth: 8000 * GIGA,
        memory: 180 * GIGA,
        fitted: B200,
    },
    DeviceRecord {
        name: "tpu_v4",
        summary: "275 TFLOP/s in 16-bit floats",
        citation: "Google Cloud documentation, TPU v4 (cloud.google.com/tpu/docs/v4)",
        peak: 275 * TERA,
        narrow_peak: 0,
        bandwidth: 1200 * GIGA,
        memory: 32 * GIGA,
        fitted: H100,
    },
    DeviceRecord {
        name: "tpu_v5p",
        summary: "459 TFLOP/s in 16-bit floats",
        citation: "Google Cloud documentation, TPU v5p (cloud.google.com/tpu/docs/v5p)",
        peak: 459 * TERA,
        narrow_peak: 0,
        bandwidth: 2765 * GIGA,
        memory: 95 * GIGA,
        fitted: H100,
    },
];
