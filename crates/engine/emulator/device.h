// What kernels are compiled with on a processor: the words of CUDA that they use, and a scheduler that runs the threads of a
// block one after another, each until it waits for others. Blocks run one after another too.
//
// Stricter than a card: shared memory starts as NaN and ends where the kernel said, copies arrive when they are waited for and not
// before, threads that wait for each other in different places end the program, and every other block runs its threads from the
// last to the first, so that who relies on an order finds another one.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define EMULATED
#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline
#define __align__(n)
#define __launch_bounds__(...)
using std::signbit;

struct Place { unsigned x; };
struct uchar4 { unsigned char x, y, z, w; };
static Place blockIdx, threadIdx;
alignas(16) unsigned char memory[228 << 10];

// ----------------------------------------------------------------------------------------------------- the scheduler
namespace emulated {
enum State { READY, AT_BLOCK, AT_WARP, DONE };
constexpr int THREADS_OF_BLOCK = 256, WARP = 32, WARPS = THREADS_OF_BLOCK / WARP, STACK = 128 << 10;

// Saves what a function must keep and the stack; goes on where another was left.
#if !defined(__x86_64__)
#error "the emulator knows how to switch threads on x86-64 only"
#endif
asm(R"(
.text
.local emulated_switch
.type emulated_switch, @function
emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
extern "C" void emulated_switch(void** from, void* to);

struct Copy { void* to; const void* from; int bytes; bool there; int group; };
struct Thread {
  void* stack;
  State state;
  int copies, group, turn;
  Copy copy[1024];
};
static Thread threads[THREADS_OF_BLOCK];
static void* scheduler;
static void (*body)();

static Thread& self() { return threads[threadIdx.x]; }
static void wait(State state) {
  Thread& me = self();
  me.state = state;
  emulated_switch(&me.stack, scheduler);
}
static void thread_main() {
  body();
  wait(DONE);
}

static void begin(Thread& thread, char* stack) {
  void** top = (void**)(stack + STACK) - 1; // where the function that is never left would return to
  *top = nullptr;
  *--top = (void*)thread_main;
  for (int i = 0; i < 6; i++) *--top = nullptr;
  thread.stack = top;
  thread.state = READY;
  thread.copies = thread.group = thread.turn = 0;
}

// The product that a warp is at, and the one before: threads may still read it.
struct Product { float left[16][8], right[8][8], result[16][8]; };
static Product products[WARPS][2];

static void multiply(Product& p) {
  memset(p.result, 0, sizeof p.result);
  for (int m = 0; m < 16; m++)
    for (int k = 0; k < 8; k++)
      for (int n = 0; n < 8; n++) p.result[m][n] += p.left[m][k] * p.right[k][n];
}

// What the threads of a warp tell each other, now and the time before, which some may still read; and whether it is a product.
static unsigned long long told[WARPS][2][WARP];
static bool multiplies[WARPS];

// Runs a warp until its threads wait for the block or are done.
static void run_warp(int warp, bool backwards) {
  for (;;) {
    int waiting = 0, left = 0;
    for (int lane = 0; lane < WARP; lane++) {
      const int i = warp * WARP + (backwards ? WARP - 1 - lane : lane);
      if (threads[i].state == READY) {
        threadIdx.x = i;
        emulated_switch(&scheduler, threads[i].stack);
      }
      left += threads[i].state != DONE;
      waiting += threads[i].state == AT_WARP;
    }
    if (waiting == 0) return;
    if (waiting < left) {
      fprintf(stderr, "emulator: %d threads of a warp wait for the others, which are elsewhere\n", waiting);
      abort();
    }
    if (multiplies[warp]) multiply(products[warp][threads[warp * WARP].turn]);
    multiplies[warp] = false;
    for (int i = warp * WARP; i < (warp + 1) * WARP; i++)
      if (threads[i].state == AT_WARP) threads[i].state = READY;
  }
}

static void run_block(char* stacks, bool backwards) {
  for (int i = 0; i < THREADS_OF_BLOCK; i++) begin(threads[i], stacks + (size_t)i * STACK);
  for (bool left = true; left;) {
    for (int warp = 0; warp < WARPS; warp++) run_warp(backwards ? WARPS - 1 - warp : warp, backwards);
    left = false;
    for (Thread& thread : threads) {
      left |= thread.state == AT_BLOCK;
      if (thread.state == AT_BLOCK) thread.state = READY;
    }
  }
}

template <class To, class From>
static To same_bits(From from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
// Tells the other threads of the warp a word; gives what each told.
static unsigned long long* tell(unsigned long long word) {
  const int warp = threadIdx.x / WARP, turn = self().turn ^= 1;
  told[warp][turn][threadIdx.x % WARP] = word;
  wait(AT_WARP);
  return told[warp][turn];
}
} // namespace emulated

static inline void __syncthreads() { emulated::wait(emulated::AT_BLOCK); }

// --------------------------------------------------------------------------------------------- what is said to the card
static inline void await_kernel() {}
static inline float about_reciprocal(float x) { return 1.0f / x; }
template <int BYTES>
static inline void copy(void* to, const void* from, bool there) {
  emulated::Thread& me = emulated::self();
  if (me.copies == 1024) abort();
  me.copy[me.copies++] = {to, from, BYTES, there, me.group};
}
static inline void close_group() { emulated::self().group++; }
template <int LEFT>
static inline void await_groups() {
  emulated::Thread& me = emulated::self();
  int kept = 0;
  for (int i = 0; i < me.copies; i++) {
    const emulated::Copy c = me.copy[i];
    if (c.group >= me.group - LEFT) me.copy[kept++] = c;
    else if (c.there) memcpy(c.to, c.from, c.bytes);
    else memset(c.to, 0, c.bytes);
  }
  me.copies = kept;
}
static inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  using namespace emulated;
  const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
  Product& p = products[threadIdx.x / WARP][self().turn ^= 1];
  for (int q = 0; q < 4; q++) p.left[g + 8 * (q % 2)][t + 4 * (q / 2)] = same_bits<float>(a[q] & 0xffffe000u);
  for (int q = 0; q < 2; q++) p.right[t + 4 * q][g] = same_bits<float>(b[q] & 0xffffe000u);
  multiplies[threadIdx.x / WARP] = true;
  wait(AT_WARP);
  for (int q = 0; q < 4; q++) c[q] += p.result[g + 8 * (q / 2)][2 * t + q % 2];
}

// ------------------------------------------------------------------------------------------------------ words of CUDA
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float rsqrtf(float a) { return 1.0f / sqrtf(a); }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline int __float_as_int(float a) { return emulated::same_bits<int>(a); }
static inline unsigned __float_as_uint(float a) { return emulated::same_bits<unsigned>(a); }
static inline float __int_as_float(int a) { return emulated::same_bits<float>(a); }
static inline float __uint_as_float(unsigned a) { return emulated::same_bits<float>(a); }
static inline long long __double_as_longlong(double a) { return emulated::same_bits<long long>(a); }
static inline double __longlong_as_double(long long a) { return emulated::same_bits<double>(a); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline int __clz(unsigned a) { return a == 0 ? 32 : __builtin_clz(a); }
static inline int __ffs(unsigned a) { return __builtin_ffs(a); }
static inline int __ffsll(unsigned long long a) { return __builtin_ffsll(a); }
// All threads of the warp together.
static inline unsigned __ballot_sync(unsigned, bool vote) {
  const unsigned long long* votes = emulated::tell(vote);
  unsigned all = 0;
  for (int lane = 0; lane < emulated::WARP; lane++) all |= (unsigned)votes[lane] << lane;
  return all;
}
template <class T> static inline T __shfl_sync(unsigned, T value, int lane) {
  static_assert(sizeof(T) == 8, "of eight bytes");
  return emulated::same_bits<T>(emulated::tell(emulated::same_bits<unsigned long long>(value))[lane]);
}
template <class T> static inline T __shfl_xor_sync(unsigned all, T value, int mask) {
  return __shfl_sync(all, value, threadIdx.x % emulated::WARP ^ mask);
}
static inline unsigned long long atomicMax(unsigned long long* at, unsigned long long other) {
  unsigned long long before = *at;
  *at = before > other ? before : other;
  return before;
}
static inline int atomicAdd(int* at, int more) { int before = *at; *at += more; return before; }
template <class A, class B> static inline auto min(A a, B b) { return a < b ? a : b; }
template <class A, class B> static inline auto max(A a, B b) { return a > b ? a : b; }
