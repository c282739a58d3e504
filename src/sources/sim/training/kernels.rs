//! The kernels of the training, as a compiler would name them.

use super::super::code::{KernelSource, SimCode};
use super::programs::*;

const fn kernel(
    name: &'static str,
    demangled: &'static str,
    workgroup: [u32; 3],
    [registers, local_memory, private_memory]: [u32; 3],
    [resident, group_time]: [u64; 2],
    code: &'static SimCode,
) -> KernelSource {
    KernelSource {
        name,
        demangled,
        workgroup,
        registers,
        local_memory,
        private_memory,
        resident,
        group_time,
        code,
        child: None,
    }
}

/// `kernel`, each workgroup of which launches `child`.
const fn launching(kernel: KernelSource, child: &'static str) -> KernelSource {
    KernelSource {
        child: Some(child),
        ..kernel
    }
}

/// Name, demangled name, workgroup, registers, local and private memory, workgroups per compute unit and their time in
/// nanoseconds, and code.
#[rustfmt::skip]
pub(super) static KERNELS: &[KernelSource] = &[
    kernel("_ZN4data7augmentIh4halfEEvPKT_PT0_mii",
        "void data::augment<unsigned char, half>(unsigned char const*, half*, unsigned long, int, int)",
        [32, 8, 1], [38, 4_096, 0], [8, 9_000], &AUGMENT),
    kernel("_ZN2nn19patch_embed_forwardI4halfLi16EEEvPKT_S4_PS2_ii",
        "void nn::patch_embed_forward<half, 16>(half const*, half const*, half*, int, int)",
        [256, 1, 1], [96, 32_768, 0], [2, 15_000], &EMBED),
    kernel("_ZN2nn20patch_embed_backwardI4halfLi16EEEvPKT_S4_PS2_ii",
        "void nn::patch_embed_backward<half, 16>(half const*, half const*, half*, int, int)",
        [256, 1, 1], [112, 32_768, 0], [2, 21_000], &EMBED),
    kernel("_ZN2nn18layer_norm_forwardI4halfLi256EEEvPKT_S4_S4_PS2_Pfi",
        "void nn::layer_norm_forward<half, 256>(half const*, half const*, half const*, half*, float*, int)",
        [256, 1, 1], [32, 2_048, 0], [8, 12_000], &NORM),
    kernel("_ZN2nn19layer_norm_backwardI4halfLi256EEEvPKT_S4_PKfPS2_S7_i",
        "void nn::layer_norm_backward<half, 256>(half const*, half const*, float const*, half*, half*, int)",
        [256, 1, 1], [48, 4_096, 0], [8, 21_000], &NORM),
    kernel("gemm_f16_tn_128x256x32", "gemm_f16_tn_128x256x32",
        [256, 1, 1], [232, 0, 0], [1, 17_000], &GEMM),
    kernel("gemm_f16_nn_128x256x32", "gemm_f16_nn_128x256x32",
        [256, 1, 1], [230, 0, 0], [1, 17_400], &GEMM),
    kernel("gemm_f16_nt_128x256x32_splitk", "gemm_f16_nt_128x256x32_splitk",
        [256, 1, 1], [244, 0, 16], [1, 18_600], &GEMM),
    kernel("_ZN2nn23flash_attention_forwardILi64ELi128ELb1EEEvNS_16attention_paramsE",
        "void nn::flash_attention_forward<64, 128, true>(nn::attention_params)",
        [128, 1, 1], [168, 49_152, 0], [2, 14_000], &ATTENTION),
    kernel("_ZN2nn24flash_attention_backwardILi64ELi128ELb1EEEvNS_16attention_paramsE",
        "void nn::flash_attention_backward<64, 128, true>(nn::attention_params)",
        [128, 1, 1], [252, 81_920, 48], [1, 16_500], &ATTENTION),
    kernel("_ZN2nn17bias_gelu_forwardI4halfLi8EEEvPKT_S4_PS2_l",
        "void nn::bias_gelu_forward<half, 8>(half const*, half const*, half*, long)",
        [256, 1, 1], [24, 0, 0], [8, 2_200], &GELU),
    kernel("_ZN2nn18bias_gelu_backwardI4halfLi8EEEvPKT_S4_PS2_l",
        "void nn::bias_gelu_backward<half, 8>(half const*, half const*, half*, long)",
        [256, 1, 1], [30, 0, 0], [8, 3_100], &GELU),
    kernel("_ZN2nn11dropout_addI4halfLi8EEEvPKT_S4_PS2_mfl",
        "void nn::dropout_add<half, 8>(half const*, half const*, half*, unsigned long, float, long)",
        [256, 1, 1], [28, 0, 0], [8, 2_900], &ELEMENTWISE),
    kernel("_ZN2nn21softmax_cross_entropyI4halffEEvPKT_PKiPS2_PT0_i",
        "void nn::softmax_cross_entropy<half, float>(half const*, int const*, half*, float*, int)",
        [256, 1, 1], [40, 1_024, 0], [8, 26_000], &NORM),
    kernel("_ZN2nn8accuracyIfEEvPKT_PS1_i",
        "void nn::accuracy<float>(float const*, float*, int)",
        [128, 1, 1], [18, 512, 0], [16, 24_000], &REDUCE),
    kernel("_ZN4comm10reduce_addI4halfLi8EEEvPKT_PS2_l",
        "void comm::reduce_add<half, 8>(half const*, half*, long)",
        [512, 1, 1], [26, 0, 0], [8, 5_600], &ELEMENTWISE),
    kernel("_ZN5optim13gradient_normI4halfLi512EEEvPPT_Pfi",
        "void optim::gradient_norm<half, 512>(half**, float*, int)",
        [512, 1, 1], [22, 4_096, 0], [4, 11_000], &REDUCE),
    kernel("_ZN5optim9adam_stepI4halffLi4EEEvPPT_PPT0_S7_S7_fffi",
        "void optim::adam_step<half, float, 4>(half**, float**, float**, float**, float, float, float, int)",
        [512, 1, 1], [56, 0, 0], [4, 18_000], &ADAM),
    launching(kernel("_ZN4data9partitionEPii",
        "void data::partition(int*, int)",
        [256, 1, 1], [24, 1_024, 0], [8, 30_000], &PARTITION), "data::sort_part"),
    kernel("_ZN4data9sort_partEPii",
        "void data::sort_part(int*, int)",
        [256, 1, 1], [30, 2_048, 0], [8, 14_000], &REDUCE),
];
