typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef uint4 u32x4;
#define KERNEL(name) extern "C" __global__ void name(PARAMETERS_##name)
#define GLOBAL
#define LOCAL __shared__
#define FN static __device__ __forceinline__
#define LID ((u32)threadIdx.x)
#define LSZ ((u32)blockDim.x)
#define GID ((u32)blockIdx.x)
#define GSZ ((u32)gridDim.x)
#define BARRIER __syncthreads()
#define ATOMIC_ADD(place, more) atomicAdd(place, more)
#define CTZ(x) ((u32)__ffs((int)(x)) - 1u)
#define POPC(x) ((u32)__popc(x))
#define FMA(a, b, c) fma(a, b, c)
