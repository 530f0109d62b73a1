/* The kernels of the gauge. They write their results to memory, so that no compiler removes the
 * work. */

KERNEL(nothing)
{
    if (LID == LSZ) {
        out[0] = 1u;
    }
}

/* 64 multiplications with an addition per round, in 8 independent chains. */
#define CHAINS(type, one, two, step)                                                              \
    type a = (type)(LID + 1u), b = a + two, c = b + two, d = c + two;                             \
    type e = d + two, f = e + two, g = f + two, h = g + two;                                      \
    for (u32 round = 0; round < rounds; round++) {                                                \
        for (u32 i = 0; i < 8u; i++) {                                                            \
            a = step(a, one, two);                                                                \
            b = step(b, one, two);                                                                \
            c = step(c, one, two);                                                                \
            d = step(d, one, two);                                                                \
            e = step(e, one, two);                                                                \
            f = step(f, one, two);                                                                \
            g = step(g, one, two);                                                                \
            h = step(h, one, two);                                                                \
        }                                                                                         \
    }                                                                                             \
    type sum = ((a + b) + (c + d)) + ((e + f) + (g + h))

#define STEP_FLOAT(x, y, z) FMA(x, y, z)
#define STEP_INTEGER(x, y, z) ((x) * (y) + (z))

KERNEL(multiply_f32)
{
    CHAINS(float, 0.999f, 0.001f, STEP_FLOAT);
    out[GID * LSZ + LID] = sum > 0.0f ? 1u : 0u;
}

KERNEL(multiply_i32)
{
    CHAINS(u32, 1664525u, 1013904223u, STEP_INTEGER);
    out[GID * LSZ + LID] = sum;
}

/* Each group has a contiguous stretch: neighbouring items read neighbouring vectors, and a CPU reads
 * sequentially. */
#define STRETCH                                                                                   \
    const u32 share = (vectors + GSZ - 1u) / GSZ;                                                 \
    const u32 begin = GID * share < vectors ? GID * share : vectors;                              \
    const u32 end = begin + share < vectors ? begin + share : vectors

KERNEL(read_memory)
{
    STRETCH;
    u32 x = 0, y = 0, z = 0, w = 0;
    for (u32 i = begin + LID; i < end; i += LSZ) {
        const u32x4 v = from[i];
        x ^= v.x;
        y ^= v.y;
        z ^= v.z;
        w ^= v.w;
    }
    out[GID * LSZ + LID] = x ^ y ^ z ^ w;
}

KERNEL(write_memory)
{
    STRETCH;
    u32x4 v;
    v.x = v.y = v.z = v.w = GID + 1u;
    for (u32 i = begin + LID; i < end; i += LSZ) {
        to[i] = v;
    }
}

KERNEL(copy_memory)
{
    STRETCH;
    for (u32 i = begin + LID; i < end; i += LSZ) {
        to[i] = from[i];
    }
}
