//! The code of the training's kernels: invented sources, and a plausible disassembly.
//!
//! The line numbers before instructions refer to the kernel's own source, from 1. Loading a module
//! concatenates the sources.

use super::super::code::SimCode;

pub(super) static ELEMENTWISE: SimCode = SimCode {
    source: "\
// One value of two arrays after the other: as fast as memory.
void add(global const half8 *a, global half8 *b, long n)
{
    for (long i = get_global_id(0); i < n; i += get_global_size(0))
        b[i] = b[i] + a[i];
}

",
    text: "
        2 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        v_lshlrev_b32 v0, 4, v0
        s_branch test
        again:
        5 global_load_dwordx4 v[4:7], v[0:1], s[0:1]
        global_load_dwordx4 v[8:11], v[0:1], s[2:3]
        s_waitcnt vmcnt(0)
        v_pk_add_f16 v4, v4, v8
        v_pk_add_f16 v5, v5, v9
        v_pk_add_f16 v6, v6, v10
        v_pk_add_f16 v7, v7, v11
        global_store_dwordx4 v[0:1], v[4:7], s[2:3]
        v_add_u32 v0, v0, v12
        test:
        4 s_cmp_lt_u32 s6, s7
        s_cbranch_scc1 again ;x2
        6 s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
        s_endpgm",
};

pub(super) static GELU: SimCode = SimCode {
    source: "\
// The tanh form, of which the exponential takes most of the time.
float gelu(float x)
{
    float t = exp(-1.5957691f * x * (1.0f + 0.044715f * x * x));
    return x / (1.0f + t);
}
void bias_gelu(global const half8 *in, global const half8 *bias, global half8 *out, long n)
{
    for (long i = get_global_id(0); i < n; i += get_global_size(0)) {
        half8 x = in[i] + bias[i % BIAS];
        out[i] = each(gelu, x);
    }
}

",
    text: "
        7 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        global_load_dwordx4 v[8:11], v[2:3], s[2:3]
        again:
        10 global_load_dword v4, v[0:1], s[0:1]
        s_waitcnt vmcnt(0)
        v_add_f32 v5, v4, v8
        4 v_dual_mul_f32 v6, v5, v5
        v_dual_fmac_f32 v6, v6, v12
        v_dual_mul_f32 v6, v6, v5
        v_exp_f32 v7, v6
        5 v_add_f32 v7, v7, v14
        v_rcp_f32 v7, v7
        v_mul_f32 v15, v7, v5
        4 v_mul_f32 v16, v9, v9
        v_fma_f32 v16, v16, v12, v13
        v_mul_f32 v16, v16, v9
        v_exp_f32 v17, v16
        5 v_add_f32 v17, v17, v14
        v_rcp_f32 v17, v17
        v_mul_f32 v18, v17, v9
        11 v_cvt_pkrtz_f16_f32 v19, v15, v18
        global_store_dword v[0:1], v19, s[0:1]
        9 s_cmp_lt_u32 s6, s7
        s_cbranch_scc1 again ;x2
        13 s_endpgm",
};

pub(super) static ADAM: SimCode = SimCode {
    source: "\
// Parameters, gradients and both moments come and go.
void adam_step(global float4 **p, global half4 **g, global float4 **m, global float4 **v, float rate)
{
    long i = get_global_id(0);
    float4 gradient = convert_float4(g[0][i]);
    float4 first = m[0][i] = 0.9f * m[0][i] + 0.1f * gradient;
    float4 second = v[0][i] = 0.999f * v[0][i] + 0.001f * gradient * gradient;
    p[0][i] -= rate * first / (sqrt(second) + 1e-8f);
}

",
    text: "
        4 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_load_dwordx4 s[8:11], s[4:5], 0x10
        s_waitcnt lgkmcnt(0)
        again:
        5 global_load_dwordx2 v[4:5], v[0:1], s[2:3]
        6 global_load_dwordx4 v[8:11], v[0:1], s[8:9]
        7 global_load_dwordx4 v[12:15], v[0:1], s[10:11]
        8 global_load_dwordx4 v[16:19], v[0:1], s[0:1]
        5 s_waitcnt vmcnt(3)
        v_cvt_f32_f16 v6, v4
        6 s_waitcnt vmcnt(2)
        v_fma_f32 v8, v8, v20, v6
        global_store_dwordx4 v[0:1], v[8:11], s[8:9]
        7 s_waitcnt vmcnt(1)
        v_mul_f32 v7, v6, v6
        v_fma_f32 v12, v12, v21, v7
        global_store_dwordx4 v[0:1], v[12:15], s[10:11]
        8 v_sqrt_f32 v22, v12
        v_add_f32 v22, v22, v23
        v_rcp_f32 v22, v22
        v_mul_f32 v22, v22, v8
        s_waitcnt vmcnt(0)
        v_fma_f32 v16, v22, v24, v16
        global_store_dwordx4 v[0:1], v[16:19], s[0:1]
        4 s_cmp_lt_u32 s6, s7
        s_cbranch_scc1 again ;x6
        9 s_endpgm",
};

pub(super) static AUGMENT: SimCode = SimCode {
    source: "\
// A crop of the image, turned and scaled by the texture unit.
void augment(read_only image2d_t image, sampler_t sampler, global half4 *out, ulong seed)
{
    float2 at = turn(seed, get_global_id(0), get_global_id(1));
    float4 near = read_imagef(image, sampler, at);
    float4 far = read_imagef(image, sampler, at + 0.5f);
    out[get_global_id(0)] = convert_half4(mix(near, far, 0.5f));
}

",
    text: "
        4 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        again:
        v_sin_f32 v2, v0
        v_fma_f32 v3, v2, v1, v0
        5 image_sample v[4:7], v[2:3], s[8:15]
        6 v_add_f32 v12, v3, v13
        image_sample v[8:11], v[12:13], s[8:15]
        7 s_waitcnt vmcnt(0)
        v_add_f32 v4, v4, v8
        v_add_f32 v5, v5, v9
        v_cvt_pkrtz_f16_f32 v4, v4, v5
        global_store_dwordx2 v[14:15], v[4:5], s[0:1]
        exp mrt0, v4, v5
        s_cmp_lt_u32 s6, s7
        s_cbranch_scc1 again ;x8
        8 s_endpgm",
};

pub(super) static NORM: SimCode = SimCode {
    source: "\
// A row to a workgroup: its sums go through local memory, and all wait for them twice.
void layer_norm(global const half8 *in, global half8 *out, local float *sums, int width)
{
    float sum = 0, squares = 0;
    for (int i = get_local_id(0); i < width; i += get_local_size(0)) {
        float8 x = convert_float8(in[i]);
        sum += total(x), squares += total(x * x);
    }
    sums[get_local_id(0)] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_sub_group_id() == 0)
        sums[0] = rsqrt(sub_group_reduce_add(sums[get_sub_group_local_id()]) + 1e-5f);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_local_id(0)] = convert_half8(in[get_local_id(0)] * sums[0]);
}

",
    text: "
        2 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        row:
        6 global_load_dwordx4 v[4:7], v[0:1], s[0:1]
        s_waitcnt vmcnt(0)
        v_cvt_f32_f16 v8, v4
        v_cvt_f32_f16 v9, v5
        7 v_add_f32 v10, v10, v8
        v_fma_f32 v11, v8, v8, v11
        v_add_f32 v10, v10, v9
        v_fma_f32 v11, v9, v9, v11
        5 s_cmp_lt_u32 s6, s7
        s_cbranch_scc1 row ;x2
        9 ds_write_b32 v2, v10
        s_waitcnt lgkmcnt(0)
        10 s_barrier
        11 s_cbranch_execz others
        12 ds_read_b128 v[12:15], v3
        s_waitcnt lgkmcnt(0)
        v_add_f32 v12, v12, v13
        v_add_f32 v12, v12, v14
        v_add_f32 v12, v12, v15
        v_mov_b32_dpp v16, v12
        v_add_f32 v12, v12, v16
        v_rsq_f32 v12, v12
        ds_write_b32 v2, v12
        s_waitcnt lgkmcnt(0)
        others:
        13 s_barrier
        14 lds_direct_load v17
        s_waitcnt lgkmcnt(0)
        v_mul_f32 v8, v8, v17
        v_cvt_pkrtz_f16_f32 v4, v8, v9
        global_store_dwordx4 v[0:1], v[4:7], s[2:3]
        s_cmp_lt_u32 s8, s9
        s_cbranch_scc1 row ;x6
        15 s_endpgm",
};

pub(super) static REDUCE: SimCode = SimCode {
    source: "\
// Half of the waves stop at each level of the tree; at the end one is left.
void reduce(global const float *in, local float *sums, global float *out, int n)
{
    sums[get_local_id(0)] = in[get_global_id(0)];
    for (int left = get_local_size(0) / 2; left > 0; left /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < left)
            sums[get_local_id(0)] += sums[get_local_id(0) + left];
    }
    if (get_local_id(0) == 0)
        atomic_add(out, sums[0]);
}

",
    text: "
        4 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        global_load_dword v4, v[0:1], s[0:1]
        s_waitcnt vmcnt(0)
        ds_write_b32 v2, v4
        s_waitcnt lgkmcnt(0)
        level:
        6 s_barrier
        7 s_cbranch_execz idle
        8 ds_read_b32 v5, v2
        ds_read_b32 v6, v3
        s_waitcnt lgkmcnt(0)
        v_add_f32 v5, v5, v6 ;lanes 32
        ds_write_b32 v2, v5 ;lanes 32
        s_waitcnt lgkmcnt(0)
        idle:
        5 s_cmp_lt_u32 s6, s7
        s_cbranch_scc1 level ;x8
        10 s_cbranch_execz done
        11 global_atomic_add_f32 v[0:1], v5, s[2:3] ;lanes 1
        s_sleep 1
        done:
        12 s_endpgm",
};

pub(super) static GEMM: SimCode = SimCode {
    source: "\
// A tile of 128 x 256, in slices of 32: the next slice is on its way while this one is multiplied.
void gemm(global const half *a, global const half *b, global half *c, int k)
{
    float16 sums[4] = {0};
    half4 ahead = load_slice(a, b, 0);
    for (int slice = 0; slice < k; slice += 32) {
        store_slice(ahead);
        barrier(CLK_LOCAL_MEM_FENCE);
        ahead = load_slice(a, b, slice + 32);
        for (int step = 0; step < 32; step += 8)
            multiply_add(sums, read_slice(step));
    }
    store_tile(c, sums);
}

",
    text: "
        2 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        5 global_load_dwordx4 v[4:7], v[0:1], s[0:1]
        global_load_dwordx4 v[8:11], v[2:3], s[2:3]
        slice:
        7 s_waitcnt vmcnt(0)
        ds_write_b128 v12, v[4:7]
        ds_write_b128 v13, v[8:11]
        s_waitcnt lgkmcnt(0)
        8 s_barrier
        9 global_load_dwordx4 v[4:7], v[0:1], s[0:1]
        global_load_dwordx4 v[8:11], v[2:3], s[2:3]
        11 ds_read_b128 v[16:19], v14
        ds_read_b128 v[20:23], v15
        s_waitcnt lgkmcnt(0)
        v_mfma_f32_32x32x8_f16 a[0:15], v[16:17], v[20:21], a[0:15]
        v_mfma_f32_32x32x8_f16 a[16:31], v[18:19], v[20:21], a[16:31]
        v_mfma_f32_32x32x8_f16 a[32:47], v[16:17], v[22:23], a[32:47]
        v_mfma_f32_32x32x8_f16 a[48:63], v[18:19], v[22:23], a[48:63]
        ds_read_b128 v[24:27], v14
        ds_read_b128 v[28:31], v15
        s_waitcnt lgkmcnt(0)
        v_mfma_f32_32x32x8_f16 a[0:15], v[24:25], v[28:29], a[0:15]
        v_mfma_f32_32x32x8_f16 a[16:31], v[26:27], v[28:29], a[16:31]
        v_mfma_f32_32x32x8_f16 a[32:47], v[24:25], v[30:31], a[32:47]
        v_mfma_f32_32x32x8_f16 a[48:63], v[26:27], v[30:31], a[48:63]
        6 s_add_u32 s6, s6, s7
        s_cmp_lt_u32 s6, s8
        s_cbranch_scc1 slice ;x24
        13 s_nop 15
        v_accvgpr_read_b32 v4, a0
        v_accvgpr_read_b32 v5, a16
        v_cvt_pkrtz_f16_f32 v4, v4, v5
        global_store_dwordx4 v[0:1], v[4:7], s[2:3]
        14 s_endpgm",
};

pub(super) static ATTENTION: SimCode = SimCode {
    source: "\
// A tile of queries against one tile of keys after the other, without ever writing the scores.
void attention(global const half *q, global const half *k, global const half *v, global half *out, int keys)
{
    float16 sums = 0, scores;
    float most = -INFINITY, all = 0;
    for (int tile = 0; tile < keys; tile += 64) {
        stage(k, v, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        scores = multiply(q, staged_keys);
        most = max(most, largest(scores));
        scores = exp(scores - most);
        all += total(scores);
        sums = multiply_add(sums, scores, staged_values);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    store(out, sums / all);
}

",
    text: "
        2 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_load_dwordx4 s[8:11], s[4:5], 0x10
        s_waitcnt lgkmcnt(0)
        tile:
        7 global_load_dwordx4 v[4:7], v[0:1], s[2:3]
        global_load_dwordx4 v[8:11], v[0:1], s[8:9]
        s_waitcnt vmcnt(0)
        ds_write_b128 v12, v[4:7]
        ds_write_b128 v13, v[8:11]
        s_waitcnt lgkmcnt(0)
        8 s_barrier
        9 ds_read_b128 v[16:19], v14
        s_waitcnt lgkmcnt(0)
        v_mfma_f32_32x32x8_f16 a[0:15], v[16:17], v[20:21], a[0:15]
        v_mfma_f32_32x32x8_f16 a[0:15], v[18:19], v[22:23], a[0:15]
        10 v_accvgpr_read_b32 v24, a0
        v_accvgpr_read_b32 v25, a1
        v_max_f32 v26, v24, v25
        v_max_f32 v27, v27, v26
        11 v_sub_f32 v24, v24, v27
        v_exp_f32 v24, v24
        v_sub_f32 v25, v25, v27
        v_exp_f32 v25, v25
        12 v_add_f32 v28, v28, v24
        v_add_f32 v28, v28, v25
        13 ds_read_b128 v[32:35], v15
        v_cvt_pkrtz_f16_f32 v36, v24, v25
        s_waitcnt lgkmcnt(0)
        v_mfma_f32_32x32x8_f16 a[16:31], v[36:37], v[32:33], a[16:31]
        v_mfma_f32_32x32x8_f16 a[16:31], v[36:37], v[34:35], a[16:31]
        14 s_barrier
        6 s_add_u32 s6, s6, s7
        s_cmp_lt_u32 s6, s12
        s_cbranch_scc1 tile ;x4
        16 v_rcp_f32 v28, v28
        s_nop 15
        v_accvgpr_read_b32 v24, a16
        v_mul_f32 v24, v24, v28
        global_store_dwordx4 v[0:1], v[24:27], s[10:11]
        17 s_endpgm",
};

pub(super) static EMBED: SimCode = SimCode {
    source: "\
// Patches of an image become rows; the weights stay in local memory.
void patch_embed(global const half *image, global const half *weights, global half *out, int patches)
{
    copy_weights(weights);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = 0; y < 16; y++) {
        half8 row = load_row(image, y);
        sum = dot(sum, row, local_weights[y]);
    }
    out[get_global_id(0)] = sum;
}

",
    text: "
        2 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        4 global_load_dwordx4 v[4:7], v[0:1], s[2:3]
        s_waitcnt vmcnt(0)
        ds_write_b128 v2, v[4:7]
        s_waitcnt lgkmcnt(0)
        5 s_barrier
        y:
        7 global_load_dwordx4 v[8:11], v[0:1], s[0:1]
        8 ds_read_b128 v[12:15], v3
        s_waitcnt vmcnt(0) lgkmcnt(0)
        v_dot2_f32_f16 v16, v8, v12, v16
        v_dot2_f32_f16 v17, v9, v13, v17
        v_dot2_f32_f16 v16, v10, v14, v16
        v_dot2_f32_f16 v17, v11, v15, v17
        6 s_cmp_lt_u32 s6, s7
        s_cbranch_scc1 y ;x15
        10 v_add_f32 v16, v16, v17
        global_store_dword v[0:1], v16, s[0:1]
        11 s_endpgm",
};

pub(super) static PARTITION: SimCode = SimCode {
    source: "\
// Parts the indices of the images by size; each workgroup has its part sorted by a kernel of its own, and waits for that.
void partition(global int *indices, int count)
{
    for (int i = get_global_id(0); i < count; i += get_global_size(0))
        move(indices, i, size_of(indices[i]) < median(indices));
    enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, range, ^{ sort_part(indices, count); });
}

",
    text: "
        2 s_load_dwordx4 s[0:3], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        next:
        5 global_load_dword v4, v[0:1], s[0:1] ;stride 4
        s_waitcnt vmcnt(0)
        v_cmp_lt_u32 v5, v4, v6
        ds_write_b32 v2, v5 ;stride 8
        s_waitcnt lgkmcnt(0)
        global_store_dword v[0:1], v4, s[0:1]
        4 s_cmp_lt_u32 s6, s7
        s_cbranch_scc1 next ;x6
        6 s_sendmsg sendmsg(MSG_INTERRUPT)
        7 s_endpgm",
};
