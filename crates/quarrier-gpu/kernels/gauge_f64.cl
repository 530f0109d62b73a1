/* Like multiply_f32, with 64 bits. */
KERNEL(multiply_f64)
{
    double a = (double)(LID + 1u), b = a + 0.1, c = b + 0.1, d = c + 0.1;
    double e = d + 0.1, f = e + 0.1, g = f + 0.1, h = g + 0.1;
    for (u32 round = 0; round < rounds; round++) {
        for (u32 i = 0; i < 8u; i++) {
            a = FMA(a, 0.999, 0.001);
            b = FMA(b, 0.999, 0.001);
            c = FMA(c, 0.999, 0.001);
            d = FMA(d, 0.999, 0.001);
            e = FMA(e, 0.999, 0.001);
            f = FMA(f, 0.999, 0.001);
            g = FMA(g, 0.999, 0.001);
            h = FMA(h, 0.999, 0.001);
        }
    }
    out[GID * LSZ + LID] = ((a + b) + (c + d)) + ((e + f) + (g + h)) > 0.0 ? 1u : 0u;
}
