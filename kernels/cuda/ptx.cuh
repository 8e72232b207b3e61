/*
 * Every PTX statement of these kernels, each as a small function: its comment names the instruction and, if that is
 * more than 7.5, the compute capability that it needs. Code for GPUs that lack it does not compile with it: kernels
 * that need it are empty there, and not launched. Addresses of shared memory are 32-bit ones, from smem_address.
 */
#ifndef KERNELS_CUDA_PTX_CUH
#define KERNELS_CUDA_PTX_CUH

#include <stdint.h>

#define DEVICE static __device__ __forceinline__

/* True when the SMs have an engine that copies in bulk. */
#if __CUDA_ARCH__ >= 900
#define HAS_BULK true
#else
#define HAS_BULK false
#endif

/* No instruction, but the compiler must have the value in a register here, and forgets what it was made of. */
DEVICE void pin(float &x)
{
    asm volatile("" : "+f"(x));
}

DEVICE void pin(double &x)
{
    asm volatile("" : "+d"(x));
}

DEVICE void pin(uint64_t &x)
{
    asm volatile("" : "+l"(x));
}

DEVICE void pin(int &x)
{
    asm volatile("" : "+r"(x));
}

DEVICE void pin(unsigned &x)
{
    asm volatile("" : "+r"(x));
}

/* Ends what the compiler knows of an address, so that it adds constant distances in the instruction. */
template <class T> DEVICE T *settled(T *address)
{
    asm volatile("" : "+l"(address));
    return address;
}

/* atom.add and st.shared: counts one more, and puts how many there were into shared memory, when that is known; here
 * alone the thread waits for it. */
DEVICE void count_into(unsigned *counter, unsigned *shared)
{
    asm volatile("{\n\t"
                 ".reg .u32 before;\n\t"
                 "atom.global.relaxed.gpu.add.u32 before, [%0], 1;\n\t"
                 "st.shared.u32 [%1], before;\n\t"
                 "}" ::"l"(counter),
                 "r"((unsigned)__cvta_generic_to_shared(shared))
                 : "memory");
}

/* Adds where a condition holds, in one operation under a predicate: the assembler makes that of a branch, where of
 * anything else it makes an addition and selections. */
DEVICE void add_where(bool condition, float *sum, float more)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @!p bra beyond; add.f32 %0, %1, %0; beyond: }"
                 : "+f"(*sum)
                 : "f"(more), "r"((int)condition));
}

DEVICE void add_where(bool condition, double *sum, double more)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @!p bra beyond; add.f64 %0, %1, %0; beyond: }"
                 : "+d"(*sum)
                 : "d"(more), "r"((int)condition));
}

/* max.NaN.f32 (8.0): a NaN if there is one. Of zeros either may come out. */
DEVICE float max_or_nan(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
#else
    return b > a || b != b ? b : a;
#endif
}

/* No instruction, but ways through the code that have different numbers here stay apart. */
template <int Number> DEVICE void keep_apart()
{
    asm volatile("" ::"n"(Number));
}

/* mov %laneid. Read anew wherever it is needed: kept in a register from the load to the store, it and what is made of
 * it would cost a resident thread block. */
DEVICE int lane_index()
{
    unsigned number;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(number));
    return (int)number;
}

/* mov %tid.x, likewise. */
DEVICE int thread_index()
{
    unsigned number;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
    return (int)number;
}

/* cvta.to.shared, by way of the compiler. */
DEVICE unsigned smem_address(const void *place)
{
    return (unsigned)__cvta_generic_to_shared(place);
}

/* shfl.sync.down.b32 with its predicate: whether the lane `distance` further on is none beyond `last`. */
DEVICE bool shuffle_down(unsigned value, unsigned *other, int distance, int last)
{
    unsigned there;
    asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, %3, %4, -1; selp.u32 %1, 1, 0, p; }"
                 : "=r"(*other), "=r"(there)
                 : "r"(value), "r"(distance), "r"(last));
    return there;
}

/* shfl.sync.up.b32 with its predicate: whether there is a lane `distance` further back. */
DEVICE bool shuffle_up(unsigned value, unsigned *other, int distance)
{
    unsigned there;
    asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %2, %3, 0, -1; selp.u32 %1, 1, 0, p; }"
                 : "=r"(*other), "=r"(there)
                 : "r"(value), "r"(distance));
    return there;
}

/* cvt.f32.f16 of both halves of a word. */
DEVICE void f32x2_of_f16x2(uint32_t word, float x[2])
{
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(x[0]), "=f"(x[1])
        : "r"(word));
}

/* cvt.f64.f16 of both halves of a word. */
DEVICE void f64x2_of_f16x2(uint32_t word, double x[2])
{
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f64.f16 %0, low; cvt.f64.f16 %1, high; }"
        : "=d"(x[0]), "=d"(x[1])
        : "r"(word));
}

/* cvt.rn.f16x2.f32: 8.0. */
DEVICE uint32_t f16x2_of_f32x2(const float x[2])
{
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(x[1]), "f"(x[0]));
    return word;
}

/* cvt.rn.bf16x2.f32: 8.0. */
DEVICE uint32_t bf16x2_of_f32x2(const float x[2])
{
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(x[1]), "f"(x[0]));
    return word;
}

/* bar.sync: until `threads` threads of the thread block have come to barrier `number`. */
DEVICE void named_barrier_sync(int number, int threads)
{
    asm volatile("bar.sync %0, %1;" : : "r"(number), "r"(threads) : "memory");
}

/* ld.shared.v4. */
DEVICE void load_shared_v4(uint32_t address, uint32_t words[4])
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}

/* st.shared.v4. */
DEVICE void store_shared_v4(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(address), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

/* ld.relaxed.gpu. */
DEVICE unsigned long long load_relaxed(const unsigned long long *address)
{
    unsigned long long word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(address) : "memory");
    return word;
}

/* ld.relaxed.gpu of two words that are aligned to 16 bytes. */
DEVICE void load_relaxed_v2(const unsigned long long *address, unsigned long long words[2])
{
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(words[0]), "=l"(words[1])
                 : "l"(address)
                 : "memory");
}

/* ld.relaxed.gpu by those threads whose word is below `Least`. */
template <unsigned long long Least>
DEVICE void load_relaxed_below(const unsigned long long *address, unsigned long long *word)
{
    asm volatile("{ .reg .pred p; setp.lt.u64 p, %0, %2; @p ld.relaxed.gpu.global.u64 %0, [%1]; }"
                 : "+l"(*word)
                 : "l"(address), "n"(Least)
                 : "memory");
}

/* st.relaxed.gpu. */
DEVICE void store_relaxed(unsigned long long *address, unsigned long long word)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(address), "l"(word) : "memory");
}

/* st.relaxed.gpu of two words that are aligned to 16 bytes. */
DEVICE void store_relaxed_v2(unsigned long long *address, unsigned long long a, unsigned long long b)
{
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" : : "l"(address), "l"(a), "l"(b) : "memory");
}

/* cp.async of the first `size` of 16 bytes to shared memory, past the L1 cache; the others become zeros: 8.0. */
DEVICE void cp_async_16_zfill(unsigned target, const void *source, int size)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(target), "l"(source), "r"(size) : "memory");
}

/* cp.async.bulk from device memory to shared memory, both aligned to 16 bytes; an mbarrier counts the bytes: 9.0. */
DEVICE void bulk_load(unsigned target, const void *source, int bytes, unsigned mbarrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :
                 : "r"(target), "l"(source), "r"(bytes), "r"(mbarrier)
                 : "memory");
}

/* cp.async.bulk from shared memory to device memory, both aligned to 16 bytes: 9.0. */
DEVICE void bulk_store(void *target, unsigned source, int bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :
                 : "l"(target), "r"(source), "r"(bytes)
                 : "memory");
}

/* cp.async.bulk.commit_group: what this thread has stored in bulk is a group: 9.0. */
DEVICE void bulk_commit()
{
    asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}

/* cp.async.bulk.wait_group: until all groups of this thread are written: 9.0. */
DEVICE void bulk_wait_written()
{
    asm volatile("cp.async.bulk.wait_group 0;" : : : "memory");
}

/* cp.async.bulk.wait_group.read: until shared memory has been read for all of them: 9.0. */
DEVICE void bulk_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" : : : "memory");
}

/* fence.proxy.async: what this thread has written becomes visible to bulk copies: 9.0. */
DEVICE void fence_proxy_async()
{
    asm volatile("fence.proxy.async;" : : : "memory");
}

/* fence.proxy.async of shared memory alone: 9.0. */
DEVICE void fence_proxy_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}

/* createpolicy.fractional: the L2 cache gives up first what is moved with this policy: 9.0. */
DEVICE uint64_t policy_evict_first()
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* cp.async.bulk.tensor: the copy engine (TMA) brings the tile of a tensor that begins at {x, y}, and counts its bytes
 * at an mbarrier. `map` is a CUtensorMap among the kernel's parameters. 9.0. */
DEVICE void tma_load_2d(unsigned target, const void *map, int x, int y, unsigned mbarrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
                 "[%4];"
                 :
                 : "r"(target), "l"(map), "r"(x), "r"(y), "r"(mbarrier)
                 : "memory");
}

/* cp.async.bulk.tensor of three axes: 9.0. */
DEVICE void tma_load_3d(unsigned target, const void *map, int x, int y, int z, unsigned mbarrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                 "%4}], [%5];"
                 :
                 : "r"(target), "l"(map), "r"(x), "r"(y), "r"(z), "r"(mbarrier)
                 : "memory");
}

/* The other way, of a tile in shared memory: 9.0. */
DEVICE void tma_store_3d(const void *map, int x, int y, int z, unsigned source)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];"
                 :
                 : "l"(map), "r"(x), "r"(y), "r"(z), "r"(source)
                 : "memory");
}

/* cp.async.bulk.tensor of four axes: 9.0. */
DEVICE void tma_load_4d(unsigned target, const void *map, int x, int y, int z, int w, unsigned mbarrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                 "%4, %5}], [%6];"
                 :
                 : "r"(target), "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(mbarrier)
                 : "memory");
}

/* cp.async.bulk.tensor of four axes, with a policy for the L2 cache: 9.0. */
DEVICE void tma_load_4d(unsigned target, const void *map, int x, int y, int z, int w, unsigned mbarrier,
                        uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
                 "[%1, {%2, %3, %4, %5}], [%6], %7;"
                 :
                 : "r"(target), "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(mbarrier), "l"(policy)
                 : "memory");
}

/* cp.async.bulk.tensor the other way, of a tile in shared memory: 9.0. */
DEVICE void tma_store_4d(const void *map, int x, int y, int z, int w, unsigned source)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :
                 : "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(source)
                 : "memory");
}

/* The store by cp.async.bulk.tensor with a policy for the L2 cache: 9.0. */
DEVICE void tma_store_4d(const void *map, int x, int y, int z, int w, unsigned source, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2, %3, %4}], "
                 "[%5], %6;"
                 :
                 : "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(source), "l"(policy)
                 : "memory");
}

/* mbarrier.init: it completes a phase whenever so many threads have arrived: 8.0. */
DEVICE void mbarrier_init(unsigned mbarrier, int threads)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(mbarrier), "r"(threads) : "memory");
}

/* mbarrier.arrive: 8.0. */
DEVICE void mbarrier_arrive(unsigned mbarrier)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" : : "r"(mbarrier) : "memory");
}

/* mbarrier.arrive.expect_tx: the phase also takes so many bytes of copies or of st.async: 9.0. */
DEVICE void mbarrier_arrive_expect(unsigned mbarrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(mbarrier), "r"(bytes) : "memory");
}

/* mbarrier.try_wait: whether the phase of a parity is complete; may wait for a while: 9.0. */
DEVICE bool mbarrier_try_wait(unsigned mbarrier, int parity)
{
    unsigned complete;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(complete)
                 : "r"(mbarrier), "r"(parity)
                 : "memory");
    return complete;
}

/* mbarrier.try_wait where other thread blocks of the cluster have written: 9.0. */
DEVICE bool mbarrier_try_wait_cluster(unsigned mbarrier, int parity)
{
    unsigned complete;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(complete)
                 : "r"(mbarrier), "r"(parity)
                 : "memory");
    return complete;
}

/* fence.mbarrier_init: mbarriers that this thread has made are known to the cluster: 9.0. */
DEVICE void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}

/* mov %cluster_ctarank: the rank of this thread block in its cluster: 9.0. */
DEVICE int cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}

/* mov %cluster_nctarank: thread blocks of a cluster: 9.0. */
DEVICE int cluster_size()
{
    unsigned size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return (int)size;
}

/* barrier.cluster: until all threads of the cluster are here: 9.0. */
DEVICE void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

/* mapa: where the thread block of a rank has what this one has at `address`: 9.0. */
DEVICE unsigned cluster_address(unsigned address, int rank)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

/* st.async: stores 4 or 8 bytes in the shared memory of any thread block of the cluster, and counts them at an mbarrier
 * there: 9.0. */
DEVICE void cluster_store(unsigned address, uint32_t word, unsigned mbarrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                 :
                 : "r"(address), "r"(word), "r"(mbarrier)
                 : "memory");
}

DEVICE void cluster_store(unsigned address, uint64_t word, unsigned mbarrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
                 :
                 : "r"(address), "l"(word), "r"(mbarrier)
                 : "memory");
}

/* The same of two words that are aligned to 16 bytes. */
DEVICE void cluster_store_v2(unsigned address, uint64_t a, uint64_t b, unsigned mbarrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];"
                 :
                 : "r"(address), "l"(a), "l"(b), "r"(mbarrier)
                 : "memory");
}

/* griddepcontrol.launch_dependents: the launch that follows may begin as soon as there is room for it: 9.0; nothing
 * elsewhere. */
DEVICE void grid_let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* griddepcontrol.wait: until the launch before has ended: 9.0; nothing elsewhere. */
DEVICE void grid_wait_for_last()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

#endif
