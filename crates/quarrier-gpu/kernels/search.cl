/* Finds needles in a chunk. The window of four bytes (or three, or two: a class each) at every
 * position is hashed and looked up in a bitmap that the group keeps in local memory. Windows that
 * pass are looked up in a table of anchors and compared, value under mask. Findings are appended in
 * any order; beyond `capacity` they are only counted, and beyond FLOOD not even that.
 *
 * A work item handles 16 bytes at a time. Windows may include bytes after the text, of which 64 are
 * readable, but no finding extends into them.
 */

#define HASH 0x9E3779B1u
/* Its top bits choose the second bit of a word. They depend on the whole window; lower bits of the
 * first product would not. */
#define HASH_SECOND 0x85EBCA6Bu
#define NOWHERE 0xFFFFFFFFu

/* Whether both bits of `key` are set in `words`, a bitmap of 2^bits words. */
#define HOLDS(words, bits, key, hash)                                                             \
    (((words)[(hash) >> (32u - (bits))] >> (((hash) >> (27u - (bits))) & 31u))                    \
     & ((words)[(hash) >> (32u - (bits))] >> (((key) * HASH_SECOND) >> 27)) & 1u)

/* Four bytes from any offset on. */
FN u32 bytes_at(GLOBAL const u32 *words, u32 at)
{
    u32 shift = (at & 3u) * 8u;
    u32 low = words[at >> 2] >> shift;
    return shift ? low | (words[(at >> 2) + 1u] << (32u - shift)) : low;
}

/* Whether the needle whose bytes begin at `value_at` is at `start`. */
FN u32 stands(GLOBAL const u8 *text, GLOBAL const u8 *values, GLOBAL const u8 *masks, u32 start,
              u32 value_at, u32 length)
{
    for (u32 i = 0; i < length; i++) {
        if ((text[start + i] & masks[value_at + i]) != values[value_at + i]) {
            return 0;
        }
    }
    return 1;
}

KERNEL(search)
{
    LOCAL u32 near[1u << BITMAP_BITS];
    for (u32 i = LID; i < (1u << BITMAP_BITS); i += LSZ) {
        near[i] = bitmap[i];
    }
    BARRIER;
    GLOBAL const u32 *words = (GLOBAL const u32 *)text;
    const u32 last = (to + 15u) >> 4;
    u32 is_flooded = 0;
    for (u32 tile = (from >> 4) + GID * tile_blocks; tile < last; tile += GSZ * tile_blocks) {
        const u32 end = tile + tile_blocks < last ? tile + tile_blocks : last;
        for (u32 block = tile + LID; block < end && !is_flooded; block += LSZ) {
            const u32x4 here = text[block];
            const u32 w[5] = {here.x, here.y, here.z, here.w, words[4u * block + 4u]};
            for (u32 set = 0; set < classes; set++) {
                const u32 mask = set == 0 ? mask0 : set == 1 ? mask1 : mask2;
                u32 passed = 0;
                for (u32 j = 0; j < 16; j++) {
                    const u32 shift = (j & 3u) * 8u;
                    const u32 low = w[j >> 2] >> shift;
                    const u32 window = shift ? low | (w[(j >> 2) + 1u] << (32u - shift)) : low;
                    const u32 key = (window & mask) ^ set;
                    const u32 hash = key * HASH;
                    passed |= HOLDS(near, BITMAP_BITS, key, hash) << j;
                }
                while (passed) {
                    const u32 position = 16u * block + CTZ(passed);
                    passed &= passed - 1u;
                    if (position < from || position >= to) {
                        continue;
                    }
                    const u32 low = bytes_at(words, position);
                    const u32 high = bytes_at(words, position + 4u);
                    const u32 key = (low & mask) ^ set;
                    const u32 hash = key * HASH;
                    if (filter_bits && !HOLDS(filter, filter_bits, key, hash)) {
                        continue;
                    }
                    const u32 bucket = hash >> table_shift;
                    const u32 bucket_end = heads[bucket + 1u];
                    for (u32 entry = heads[bucket]; entry < bucket_end; entry++) {
                        const u32x4 bytes = entries[2u * entry];
                        if ((low & bytes.y) != bytes.x || (high & bytes.w) != bytes.z) {
                            continue;
                        }
                        /* needle, anchor's offset in it, length, place of its bytes */
                        const u32x4 needle = entries[2u * entry + 1u];
                        const u32 start = position - needle.y;
                        if (position < needle.y || start < own_start || start >= own_end
                            || needle.z > text_bytes - start) {
                            continue;
                        }
                        if (needle.w != NOWHERE
                            && !stands((GLOBAL const u8 *)text, values, masks, start, needle.w,
                                       needle.z)) {
                            continue;
                        }
                        const u32 place = ATOMIC_ADD(counter, 1u);
                        if (place < capacity) {
                            found[2u * place] = start;
                            found[2u * place + 1u] = needle.x;
                        } else if (place >= FLOOD) {
                            is_flooded = 1;
                            break;
                        }
                    }
                }
            }
        }
    }
}
