/* One work item per group; the group's number and count belong to the thread. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { u32 x, y, z, w; } u32x4;
_Thread_local u32 quarrier_group, quarrier_groups;
#define KERNEL(name) void name(PARAMETERS_##name)
#define GLOBAL
#define LOCAL static _Thread_local
#define FN static inline
#define LID 0u
#define LSZ 1u
#define GID quarrier_group
#define GSZ quarrier_groups
#define BARRIER
#define ATOMIC_ADD(place, more) __atomic_fetch_add(place, more, __ATOMIC_RELAXED)
#define CTZ(x) ((u32)__builtin_ctz(x))
#define POPC(x) ((u32)__builtin_popcount(x))
#define FMA(a, b, c) ((a) * (b) + (c))
