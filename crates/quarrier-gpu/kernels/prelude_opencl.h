typedef uchar u8;
typedef uint u32;
typedef ulong u64;
typedef uint4 u32x4;
#define KERNEL(name) __kernel void name(PARAMETERS_##name)
#define GLOBAL __global
#define LOCAL __local
#define FN static
#define LID ((u32)get_local_id(0))
#define LSZ ((u32)get_local_size(0))
#define GID ((u32)get_group_id(0))
#define GSZ ((u32)get_num_groups(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define ATOMIC_ADD(place, more) atomic_add(place, more)
#define CTZ(x) (31u - clz((x) & (0u - (x))))
#define POPC(x) popcount(x)
#define FMA(a, b, c) fma(a, b, c)
#ifdef WANTS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
