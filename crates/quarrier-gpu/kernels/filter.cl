/* Selects rows of packed columns by conditions: by many conditions at once, over columns in the
 * device's memory. A work item handles 32 rows at a time, as the bits of a word. The conditions form
 * one graph of nodes, operands first; each node yields a word, and each condition is a node.
 *
 * `data` holds lanes (differences of values to the least one of their segment) and validity (a bit
 * per row) of all columns of all segments. A segment has SEGMENT_WORDS words, the last of which may
 * have no rows. Data that differ by segment are laid out segment by segment.
 */

#define NOWHERE 0xFFFFFFFFu
/* Kinds of lanes. From bytes on, 32 lanes take 1 << (kind - 1) vectors. */
#define LANES_NONE 0u
#define LANES_BITS 1u
#define LANES_8 2u
#define LANES_16 3u
#define LANES_32 4u
/* Flags of a test besides its ranges. */
#define TAKES_NULLS 1u
#define TAKES_OTHERS 2u
#define NODE_NOTHING 0u
#define NODE_ALL 1u
#define NODE_TEST 2u
#define NODE_AND 3u
#define NODE_OR 4u
/* Up to this many ranges, each is compared with every lane; more are searched by bisection. */
#define RANGES_COMPARED 8u

/* `span`: the difference between the last value of a range and the first, `low`. */
#define IN(lane, at) ((u32)((lane) - low <= span) << (at))
#define BYTES(word, at)                                                                           \
    (IN((word) & 255u, at) | IN((word) >> 8 & 255u, (at) + 1u) | IN((word) >> 16 & 255u, (at) + 2u)\
     | IN((word) >> 24, (at) + 3u))
#define SHORTS(word, at) (IN((word) & 65535u, at) | IN((word) >> 16, (at) + 1u))

/* The lanes of 32 rows, from `at` on, that are in a range. */
FN u32 in_range(GLOBAL const u32x4 *data, u32 at, u32 kind, u32x4 range)
{
    const u32 low = range.x, span = range.z - range.x;
    u32 is = 0;
    if (kind == LANES_8) {
        for (u32 i = 0; i < 2u; i++) {
            const u32x4 v = data[at + i];
            is |= (BYTES(v.x, 0u) | BYTES(v.y, 4u) | BYTES(v.z, 8u) | BYTES(v.w, 12u)) << (16u * i);
        }
    } else if (kind == LANES_16) {
        for (u32 i = 0; i < 4u; i++) {
            const u32x4 v = data[at + i];
            is |= (SHORTS(v.x, 0u) | SHORTS(v.y, 2u) | SHORTS(v.z, 4u) | SHORTS(v.w, 6u)) << (8u * i);
        }
    } else if (kind == LANES_32) {
        for (u32 i = 0; i < 8u; i++) {
            const u32x4 v = data[at + i];
            is |= (IN(v.x, 0u) | IN(v.y, 1u) | IN(v.z, 2u) | IN(v.w, 3u)) << (4u * i);
        }
    } else {
        const u64 low = (u64)range.y << 32 | range.x;
        const u64 span = ((u64)range.w << 32 | range.z) - low;
        for (u32 i = 0; i < 16u; i++) {
            const u32x4 v = data[at + i];
            const u64 first = (u64)v.y << 32 | v.x, second = (u64)v.w << 32 | v.z;
            is |= (IN(first, 0u) | IN(second, 1u)) << (2u * i);
        }
    }
    return is;
}

/* One lane of the 32 from `at` on. */
FN u64 lane_of(GLOBAL const u32x4 *data, u32 at, u32 kind, u32 row)
{
    GLOBAL const u32 *words = (GLOBAL const u32 *)(data + at);
    if (kind == LANES_8) {
        return words[row >> 2] >> (8u * (row & 3u)) & 255u;
    }
    if (kind == LANES_16) {
        return words[row >> 1] >> (16u * (row & 1u)) & 65535u;
    }
    if (kind == LANES_32) {
        return words[row];
    }
    return (u64)words[2u * row + 1u] << 32 | words[2u * row];
}

/* Whether a lane is in one of `count` ascending ranges. */
FN u32 in_one_of(GLOBAL const u32x4 *ranges, u32 count, u64 lane)
{
    u32 from = 0, to = count;
    while (from < to) {
        const u32 middle = (from + to) >> 1;
        const u32x4 range = ranges[middle];
        if (((u64)range.w << 32 | range.z) < lane) {
            from = middle + 1u;
        } else {
            to = middle;
        }
    }
    if (from == count) {
        return 0;
    }
    const u32x4 range = ranges[from];
    return ((u64)range.y << 32 | range.x) <= lane;
}

/* The rows whose value passes a test. test: first range, ranges, flags; place: lanes, kind. */
FN u32 taken(GLOBAL const u32x4 *data, GLOBAL const u32x4 *ranges, u32x4 test, u32x4 place, u32 word)
{
    u32 is = 0;
    if (test.y != 0 && place.y == LANES_BITS) {
        const u32 bits = ((GLOBAL const u32 *)(data + place.x))[word];
        is = ranges[test.x].x ? bits : ~bits;
    } else if (test.y != 0 && place.y != LANES_NONE) {
        const u32 at = place.x + (word << (place.y - 1u));
        if (test.y <= RANGES_COMPARED) {
            for (u32 i = 0; i < test.y; i++) {
                is |= in_range(data, at, place.y, ranges[test.x + i]);
            }
        } else {
            for (u32 row = 0; row < 32u; row++) {
                const u64 lane = lane_of(data, at, place.y, row);
                is |= in_one_of(ranges + test.x, test.y, lane) << row;
            }
        }
    }
    return test.z & TAKES_OTHERS ? ~is : is;
}

KERNEL(filter)
{
    LOCAL u32 sums[ROOTS_MAX];
    for (u32 root = LID; root < root_count; root += LSZ) {
        sums[root] = 0;
    }
    BARRIER;
    u32 counted[ROOTS_MAX];
    u32 is[NODES_MAX];
    for (u32 root = 0; root < root_count; root++) {
        counted[root] = 0;
    }
    const u32 last = segment_count * SEGMENT_WORDS;
    for (u32 tile = GID * tile_words; tile < last; tile += GSZ * tile_words) {
        const u32 end = tile + tile_words < last ? tile + tile_words : last;
        for (u32 at = tile + LID; at < end; at += LSZ) {
            const u32 segment = at / SEGMENT_WORDS, word = at % SEGMENT_WORDS;
            const u32 rows = segment_rows[segment];
            if (32u * word >= rows) {
                continue;
            }
            const u32 left = rows - 32u * word;
            const u32 all = left < 32u ? (1u << left) - 1u : 0xFFFFFFFFu;
            for (u32 i = 0; i < node_count; i++) {
                /* kind; its test, or its first operand and their number */
                const u32x4 node = nodes[i];
                u32 here = node.x == NODE_ALL || node.x == NODE_AND ? all : 0u;
                if (node.x == NODE_TEST) {
                    const u32x4 test = tests[segment * test_count + node.y];
                    const u32x4 place = places[segment * column_count + test.w];
                    here = taken(data, ranges, test, place, word);
                    if (place.z != NOWHERE) {
                        const u32 valid = ((GLOBAL const u32 *)(data + place.z))[word];
                        here = (here & valid) | (test.z & TAKES_NULLS ? ~valid : 0u);
                    }
                    here &= all;
                } else if (node.x == NODE_AND) {
                    for (u32 k = 0; k < node.z; k++) {
                        here &= is[operands[node.y + k]];
                    }
                } else if (node.x == NODE_OR) {
                    for (u32 k = 0; k < node.z; k++) {
                        here |= is[operands[node.y + k]];
                    }
                } else if (node.x != NODE_NOTHING && node.x != NODE_ALL) {
                    here = all & ~is[node.y];
                }
                is[i] = here;
            }
            for (u32 root = 0; root < root_count; root++) {
                const u32 here = is[roots[root]];
                counted[root] += POPC(here);
                if (wants_rows) {
                    selected[root * last + at] = here;
                }
            }
        }
    }
    for (u32 root = 0; root < root_count; root++) {
        if (counted[root]) {
            ATOMIC_ADD(sums + root, counted[root]);
        }
    }
    BARRIER;
    for (u32 root = LID; root < root_count; root += LSZ) {
        if (sums[root]) {
            ATOMIC_ADD(counts + root, sums[root]);
        }
    }
}
