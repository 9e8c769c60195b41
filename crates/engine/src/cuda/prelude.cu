// What generated kernels are made of: Philox, elementary functions, and the loops of products and reductions.
// `real` is float or double, THREADS the threads of a block; every step of the functions below is rounded as on the CPU, so they give the same bits. The compiler
// must not join products and sums by itself (--fmad=false): where that is wanted, `fma_` says so.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(16) Four { float x[4]; };
#define FN static __device__ __forceinline__

// ------------------------------------------------------------------------- what is said to the card (see emulator/)
#ifndef EMULATED
// A kernel is started while the one before it still runs, and waits here for its results.
FN void await_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
FN float about_reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
// Starts a copy into shared memory; zeros, if nothing is there.
template <int BYTES>
FN void copy(void* to, const void* from, bool there) {
  u32 target = (u32)__cvta_generic_to_shared(to);
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from), "r"(there ? 16 : 0));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(target), "l"(from), "r"(there ? BYTES : 0), "n"(BYTES));
}
// Copies started before this belong together; then waits for all but the last LEFT such groups of this thread.
FN void close_group() { asm volatile("cp.async.commit_group;"); }
template <int LEFT>
FN void await_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }
// C += A·B, 16 × 8 × 8, by a warp.
FN void mma(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif
#define BEGIN \
  extern __shared__ __align__(16) unsigned char memory[]; \
  real* shared = (real*)memory; \
  (void)shared; \
  await_kernel();

// ------------------------------------------------------------------------------------------------------- indices
// An index as an entry of a table. One outside is noted beside the clock (device.rs: BadIndex) and becomes 0: the program has
// failed, but reads no foreign memory.
FN int entry_(real x, int len, u32* clock) {
  if (x >= real(0) && x < real(2147483648.0) && (int)x < len) return (int)x;
  atomicMax((u64*)(clock + 2), (u64)len << 32 | __float_as_uint((float)x));
  return 0;
}

// ---------------------------------------------------------------------------------------------- random numbers
struct Words { u32 w[4]; };

FN Words philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll
  for (int i = 0; i < 10; i++) {
    u32 h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0, h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return Words{{c0, c1, c2, c3}};
}
FN u32 word(const Words& x, u32 w) { return w < 2 ? (w == 0 ? x.w[0] : x.w[1]) : (w == 2 ? x.w[2] : x.w[3]); }

FN u32 mix(u32 x) {
  x = (x ^ x >> 16) * 0x7FEB352Du;
  x = (x ^ x >> 15) * 0x846CA68Bu;
  return x ^ x >> 16;
}
// Element of a permutation: see random/shuffle.rs, of which this is a transcription.
FN u32 shuffled(bool epochs, u32 n, u32 rows, u32 row, u32 feature, u32 stream, u32 step, u32 k0, u32 k1) {
  u64 position = (u64)(epochs ? step : feature) * rows + row;
  u64 number = position / n;
  u32 i = (u32)(position % n), block = epochs ? 2 * feature : 0, last = epochs ? (u32)(number >> 32) : step;
  Words a = philox((u32)number, block, stream, last, k0, k1), b = philox((u32)number, block + 1, stream, last, k0, k1);
  u32 bits = 32 - __clz(n - 1);
  if (n == 1) bits = 0;
  if (bits < 8) bits = 8;
  u32 half = (bits + 1) / 2, mask = (1u << half) - 1, x = i;
  do {
    u32 left = x >> half, right = x & mask;
#pragma unroll
    for (int q = 0; q < 8; q++) {
      u32 next = left ^ (mix(right ^ (q < 4 ? a.w[q & 3] : b.w[q & 3])) & mask);
      left = right; right = next;
    }
    x = left << half | right;
  } while (x >= n);
  return x;
}

// ------------------------------------------------------------------------------------------ elementary functions
FN float mul(float a, float b) { return __fmul_rn(a, b); }
FN float add(float a, float b) { return __fadd_rn(a, b); }
FN float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
FN double fma_(double a, double b, double c) { return __fma_rn(a, b, c); }
// a/b for b within [2⁻¹⁰⁰, 2¹⁰⁰], correctly rounded: Newton's step for 1/b, then one for the quotient (Markstein).
FN float quotient(float a, float b) {
  float r = about_reciprocal(b);
  r = fma_(fma_(-b, r, 1.0f), r, r);
  float q = mul(a, r);
  return fma_(fma_(-q, b, a), r, q);
}
FN float at_least(float x, float low) { return x < low ? low : x; }
FN float at_most(float x, float high) { return x > high ? high : x; }
FN float power_of_two(int n) { return __int_as_float((n + 127) << 23); }
FN float nearest(float x, float scale, int& k) {
  const float magic = 12582912.0f;
  float shifted = fma_(x, scale, magic);
  k = (int)(__float_as_uint(shifted) - __float_as_uint(magic));
  return add(shifted, -magic);
}
FN float reduce_exp(float x, int& k) {
  float n = nearest(x, 1.44269504f, k);
  return fma_(n, 1.9046542e-9f, fma_(n, -0.693147182f, x));
}
FN float exp_within(float x) {
  int n;
  float r = reduce_exp(x, n), p = 0.0013818697f;
  p = fma_(p, r, 0.008368716f); p = fma_(p, r, 0.041668292f); p = fma_(p, r, 0.16666521f);
  p = fma_(p, r, 0.49999994f); p = fma_(p, r, 1.0f); p = fma_(p, r, 1.0f);
  int half = n >> 1;
  return mul(mul(p, power_of_two(half)), power_of_two(n - half));
}
FN float split(float x, int& k) {
  int bits = __float_as_int(x);
  k = (bits - 0x3f3504f3) >> 23;
  return __int_as_float(bits - (int)((u32)k << 23));
}
FN float ln_sum(float f, float k) {
  float p = -0.07638798f;
  p = fma_(p, f, 0.12764892f); p = fma_(p, f, -0.13159996f); p = fma_(p, f, 0.14201225f); p = fma_(p, f, -0.16623327f);
  p = fma_(p, f, 0.20001253f); p = fma_(p, f, -0.25000823f); p = fma_(p, f, 0.3333333f); p = fma_(p, f, -0.5f);
  return fma_(k, 0.693147182f, fma_(mul(f, f), p, f));
}
FN float ln_ends(float x, float y) {
  y = x < __int_as_float(0x7f800000) ? y : x;
  y = x < 0.0f ? __int_as_float(0x7fc00000) : y;
  return x == 0.0f ? __int_as_float(0xff800000) : y;
}
FN float exp_(float x) { return exp_within(at_most(at_least(x, -104.0f), 89.0f)); }
FN float expm1_(float x) {
  int n;
  float r = reduce_exp(at_most(at_least(x, -17.4f), 89.0f), n), p = 1.9764387e-4f;
  p = fma_(p, r, 1.393238e-3f); p = fma_(p, r, 8.333543e-3f); p = fma_(p, r, 4.1666493e-2f);
  p = fma_(p, r, 0.16666666f); p = fma_(p, r, 0.5f);
  p = fma_(mul(r, r), p, r);
  float half = power_of_two(n - 1), y = mul(fma_(half, p, add(half, -0.5f)), 2.0f);
  return fabsf(x) < power_of_two(-25) ? x : y;
}
FN float log_(float x) {
  bool subnormal = x < 1.17549435e-38f;
  int k;
  float m = split(subnormal ? mul(x, 8388608.0f) : x, k);
  return ln_ends(x, ln_sum(add(m, -1.0f), add((float)k, subnormal ? -23.0f : 0.0f)));
}
FN float log1p_(float x) {
  int k;
  float u = add(1.0f, x), m = split(u, k), scale = power_of_two(-k), f = fma_(x, scale, add(scale, -1.0f));
  f = x < 16777216.0f ? f : add(m, -1.0f);
  float y = ln_ends(u, ln_sum(f, (float)k));
  return fabsf(x) < power_of_two(-25) ? x : y;
}
FN float tanh_(float v) {
  float x = at_most(at_least(v, -8.369952f), 8.369952f), s = mul(x, x);
  float n = fma_(mul(x, s), fma_(0.00011433405f, s, 0.029777437f), x);
  float e = mul(s, fma_(fma_(1.2307363e-6f, s, 0.0012069318f), s, 0.113110736f));
  return quotient(fma_(n, e, n), add(fma_(e, add(e, 2.0f), mul(n, mul(n, 0.25f))), 1.0f));
}
FN float sigmoid_(float x) {
  float e = exp_within(at_least(-fabsf(x), -104.0f));
  return quotient(x < 0.0f ? e : 1.0f, add(1.0f, e));
}
FN float softplus_(float x) {
  float e = exp_within(at_least(-fabsf(x), -104.0f)), p = -0.00329053f;
  p = fma_(p, e, 0.020086423f); p = fma_(p, e, -0.057457425f); p = fma_(p, e, 0.10661137f);
  p = fma_(p, e, -0.15344882f); p = fma_(p, e, 0.19692102f); p = fma_(p, e, -0.24958019f);
  p = fma_(p, e, 0.33330464f); p = fma_(p, e, -0.4999993f);
  return add(at_least(x, 0.0f), fma_(mul(e, e), p, e));
}
FN void quarter(float f, float& sin, float& cos) {
  float s = mul(f, f);
  sin = mul(f, fma_(fma_(fma_(-0.004685639f, s, 0.079712465f), s, -0.64596665f), s, 1.5707964f));
  cos = fma_(fma_(fma_(fma_(0.0008944743f, s, -0.020855594f), s, 0.25366855f), s, -1.2337005f), s, 1.0f);
}
FN float turn_by(u32 n, float sin, float cos) {
  return __uint_as_float(__float_as_uint((n & 1) == 0 ? sin : cos) ^ ((n & 2) << 30));
}
FN float reduce_turn(float x, u32& quarters) {
  float scale = 1.0f, a = fabsf(x);
  double hi = 0.63661977236758138, lo = -3.935735335036497e-17;
  if (a >= power_of_two(50)) { scale = power_of_two(-27); hi = -0.5529460512772132; lo = 3.808591801500832e-17; }
  if (a >= power_of_two(77)) { scale = power_of_two(-54); hi = 1.2910009524680295; lo = -3.862804515881076e-17; }
  if (a >= power_of_two(104)) { scale = power_of_two(-81); hi = -1.3139050952781812; lo = 9.395526559852902e-17; }
  double m = (double)mul(x, scale), p = __dmul_rn(m, hi), rest = __fma_rn(m, lo, __fma_rn(m, hi, -p));
  const double whole = 6755399441055744.0, fours = 4.0 * whole;
  p = __dadd_rn(__dadd_rn(p, -__dadd_rn(__dadd_rn(p, fours), -fours)), rest);
  double n = __dadd_rn(p, whole);
  quarters = (u32)__double_as_longlong(n);
  return (float)__dadd_rn(p, -__dadd_rn(n, -whole));
}
FN float sin_(float x) {
  u32 n;
  float s, c;
  quarter(reduce_turn(x, n), s, c);
  float y = turn_by(n, s, c);
  return fabsf(x) < power_of_two(-12) ? x : y;
}
FN float cos_(float x) {
  u32 n;
  float s, c;
  quarter(reduce_turn(x, n), s, c);
  return turn_by(n + 1, s, c);
}
FN void sin_cos_turn(float u, float& sin, float& cos) {
  int k;
  float n = nearest(u, 4.0f, k), s, c;
  quarter(fma_(u, 4.0f, -n), s, c);
  sin = turn_by((u32)k, s, c);
  cos = turn_by((u32)k + 1, s, c);
}
FN float atan2_(float y, float x) {
  float ax = fabsf(x), ay = fabsf(y);
  bool steep = ay > ax;
  float num = steep ? ax : ay, den = steep ? ay : ax;
  float t = num == den ? (den > 0.0f ? 1.0f : 0.0f) : __fdiv_rn(num, den), s = mul(t, t), p = 0.0029193612f;
  p = fma_(p, s, -0.016363012f); p = fma_(p, s, 0.04320454f); p = fma_(p, s, -0.075516514f);
  p = fma_(p, s, 0.10665768f); p = fma_(p, s, -0.14211002f); p = fma_(p, s, 0.19993767f); p = fma_(p, s, -0.33333153f);
  float a = fma_(mul(t, s), p, t);
  a = steep ? add(1.57079637f, -a) : a;
  a = signbit(x) ? add(3.14159274f, -a) : a;
  return copysignf(a, y);
}
FN float sqrt_(float x) { return __fsqrt_rn(x); }
FN float rsqrt_(float x) {
  float y = rsqrtf(x), z = fma_(mul(0.5f, y), fma_(-mul(x, y), y, 1.0f), y); // one step of Newton's, where it is defined
  return x > 1e-36f && x < 1e36f ? z : y;
}
FN float div_(float a, float b) { return __fdiv_rn(a, b); }

FN double exp_(double x) { return exp(x); }
FN double expm1_(double x) { return expm1(x); }
FN double log_(double x) { return log(x); }
FN double log1p_(double x) { return log1p(x); }
FN double tanh_(double x) { return tanh(x); }
FN double sigmoid_(double x) { double e = exp(-fabs(x)); return (x < 0.0 ? e : 1.0) / (1.0 + e); }
FN double softplus_(double x) { return fmax(x, 0.0) + log1p(exp(-fabs(x))); }
FN double sin_(double x) { return sin(x); }
FN double cos_(double x) { return cos(x); }
FN double atan2_(double y, double x) { return atan2(y, x); }
FN double sqrt_(double x) { return sqrt(x); }
FN double rsqrt_(double x) { return 1.0 / sqrt(x); }
FN double div_(double a, double b) { return a / b; }
FN void sin_cos_turn(double u, double& sin, double& cos) {
  double n = rint(4.0 * u), s, c;
  if (fabs(4.0 * u - n) == 0.5) n = floor(4.0 * u) + 1.0; // ties go away from zero, as in the CPU's `round`
  sincos((4.0 * u - n) * 1.5707963267948966, &s, &c);
  switch ((int)n & 3) {
    case 0: sin = s; cos = c; break;
    case 1: sin = c; cos = -s; break;
    case 2: sin = -s; cos = -c; break;
    default: sin = -c; cos = s;
  }
}

// The number p/255 of a byte, correctly rounded: the quotient of an inverse that is known, and one step of Newton's.
FN float over_255(float p) {
  const float r = 0.003921569f, q = mul(p, r);
  return fma_(fma_(-q, 255.0f, p), r, q);
}
FN double over_255(double p) { return p / 255.0; }
// The number of a byte, and those of four, which start at a multiple of four.
FN real shade(u8 p) { return over_255((real)p); }
FN Four shades(const u8* p) {
  const uchar4 four = *(const uchar4*)p;
  return Four{{(float)shade(four.x), (float)shade(four.y), (float)shade(four.z), (float)shade(four.w)}};
}
FN real sign_(real x) { return x > 0 ? real(1) : x < 0 ? real(-1) : x; }
FN real min_(real a, real b) { return a < b || a != a ? a : b; }
FN real max_(real a, real b) { return a > b || a != a ? a : b; }

FN real uniform(u32 x) { return (real)mul(add((float)(int)(x >> 9), 0.5f), 1.1920929e-7f); }
FN real normal(u32 x1, u32 x2, bool second) {
  u32 k = min(x1 >> 1, 2147483520u);
  float u1 = mul(add((float)(int)k, 0.5f), 4.65661287e-10f);
  real r = sqrt_(real(-2) * log_((real)u1)), sin, cos;
  sin_cos_turn(uniform(x2), sin, cos);
  return r * (second ? sin : cos);
}
FN real rademacher(u32 x) { return x >> 31 ? real(-1) : real(1); }
FN real integer(u32 x, u32 n) { return (real)__umulhi(x, n); }

// The order of all numbers, −NaN < −∞ < … < −0 < 0 < … < ∞ < NaN, as integers.
FN i64 order(float x) { int b = __float_as_int(x); return b ^ ((b >> 31) & 0x7fffffff); }
FN i64 order(double x) { i64 b = __double_as_longlong(x); return b ^ ((b >> 63) & 0x7fffffffffffffffLL); }

// Their order as whole numbers from 0 on, and back.
constexpr int BITS = 8 * sizeof(real);
constexpr u64 SIGN = 1ull << (BITS - 1);
FN u64 rank_key(real x) { return ((u64)order(x) ^ SIGN) & (2 * SIGN - 1); }
FN real of_key(float, u64 key) {
  const int b = (int)(key ^ SIGN);
  return (real)__int_as_float(b ^ ((b >> 31) & 0x7fffffff));
}
FN real of_key(double, u64 key) {
  const i64 b = (i64)(key ^ SIGN);
  return (real)__longlong_as_double(b ^ ((b >> 63) & 0x7fffffffffffffffLL));
}

// --------------------------------------------------------------------------------------------------- reductions
FN real plus(real a, real b) { return a + b; }

// Sums `v` over the KL threads that share an output, in the order of a fixed tree; FAST: they are neighbours.
template <int KL, bool FAST, class Op>
FN real combine(real v, real* shared, Op op) {
  if (KL == 1) return v;
  const int t = threadIdx.x;
  const int lane = FAST ? t % KL : t / (THREADS / KL), out = FAST ? t / KL : t % (THREADS / KL);
  real* mine = shared + out * (KL + 1);
  mine[lane] = v;
  __syncthreads();
#pragma unroll
  for (int half = KL / 2; half > 0; half /= 2) {
    if (lane < half) mine[lane] = op(mine[lane], mine[lane + half]);
    __syncthreads();
  }
  return mine[0];
}

// The number of this rank (from 0) among LENGTH of them, found by all threads of a block: eight bits at a time from the top,
// those that agree so far are counted by their next bits. `bins` has room for THREADS counts.
template <int LENGTH, class Value>
FN real ranked(int rank, int* bins, Value value) {
  u64 found = 0, known = 0;
#pragma unroll 1
  for (int shift = BITS - 8; shift >= 0; shift -= 8) {
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < LENGTH; k += THREADS) {
      const u64 key = rank_key(value(k));
      if ((key & known) == found) atomicAdd(bins + ((key >> shift) & 255), 1);
    }
    __syncthreads();
    int digit = 0;
    for (; digit < 255 && bins[digit] <= rank; digit++) rank -= bins[digit];
    found |= (u64)digit << shift;
    known |= 255ull << shift;
    __syncthreads();
  }
  return of_key(real(0), found);
}

// ----------------------------------------------------------------------------------------------------- products

// Which part of an operand a thread copies at a time: sixteen bytes, one number, or one number that it computes.
enum { COMPUTED = 0, SINGLY = 1, BY_FOUR = 4 };

// x with 11 bits once what lies below is cut off, as tensor cores do. What is added is between a third and two thirds of a unit
// of the last bit, a half on average: numbers of 11 bits stay as they are, others are off by less than two thirds of a unit, in
// either direction, and a NaN stays one.
FN float rounded(float x) { return __fmaf_rn(x, 0x1.555554p-12f, x); }

// A block of an operand in shared memory, in the order in which it lies in memory: KFAST means that k is contiguous there.
// Rows are padded so that neither copies nor reads of fragments meet in a bank.
template <int BX, int BK, bool KFAST>
struct Block {
  static constexpr int PITCH = KFAST ? BK + 8 : BX + 4, SIZE = KFAST ? BX * PITCH : BK * PITCH;
  static __device__ __forceinline__ constexpr int at(int x, int k) { return KFAST ? x * PITCH + k : k * PITCH + x; }
};

// A thread's part in filling such blocks, one after another along k, with entries (x0.., k0..) below (xlen, klen) and zeros
// beyond. `load` gives an address, copied without waiting, and may say that nothing is there; or it gives a value.
template <int BX, int BK, bool KFAST, int HOW, class Load>
struct Filler {
  static constexpr int V = HOW == BY_FOUR ? 4 : 1, COUNT = BX * BK / V;
  const Load& load;
  const int x0, xlen;

  __device__ __forceinline__ Filler(const Load& load, int x0, int xlen, int) : load(load), x0(x0), xlen(xlen) {}
  __device__ __forceinline__ void fill(real* to, int k0, int klen) {
#pragma unroll
    for (int turn = 0; turn < (COUNT + THREADS - 1) / THREADS; turn++) {
      const int e = turn * THREADS + threadIdx.x;
      if (COUNT % THREADS != 0 && e >= COUNT) break;
      const int x = KFAST ? e / (BK / V) : e % (BX / V) * V, k = KFAST ? e % (BK / V) * V : e / (BX / V);
      bool inside = k0 + k < klen && x0 + x < xlen;
      real* own = to + Block<BX, BK, KFAST>::at(x, k);
      if constexpr (HOW == COMPUTED) {
        *own = inside ? load(x0 + x, k0 + k) : real(0);
      } else {
        const void* source = load(inside ? x0 + x : 0, inside ? k0 + k : 0, inside);
        copy<V * sizeof(real)>(own, source, inside);
      }
    }
  }
};

// An operand whose entry (x, k) lies at from[x·X + k·K]; WHOLE_X, WHOLE_K: no block reaches beyond its end. Addresses are
// computed once and move on with the blocks. The threads must make whole lines of a block.
template <i64 X, i64 K, bool WHOLE_X, bool WHOLE_K>
struct Strided { const real* from; };
template <int BX, int BK, bool KFAST, int HOW, i64 X, i64 K, bool WHOLE_X, bool WHOLE_K>
struct Filler<BX, BK, KFAST, HOW, Strided<X, K, WHOLE_X, WHOLE_K>> {
  static constexpr int V = HOW == BY_FOUR ? 4 : 1, COUNT = BX * BK / V, LINE = (KFAST ? BK : BX) / V, LINES = THREADS / LINE;
  static_assert(LINES * LINE == THREADS, "threads make whole lines");
  const int x, k, xlen;
  const real* from;

  __device__ __forceinline__ Filler(const Strided<X, K, WHOLE_X, WHOLE_K>& load, int x0, int xlen, int k0)
      : x(x0 + (KFAST ? threadIdx.x / LINE : threadIdx.x % LINE * V)), k(KFAST ? threadIdx.x % LINE * V : threadIdx.x / LINE),
        xlen(xlen), from(load.from + x * X + (k0 + k) * K) {}
  __device__ __forceinline__ void fill(real* to, int k0, int klen) {
    using Own = Block<BX, BK, KFAST>;
    real* own = to + (KFAST ? Own::at(threadIdx.x / LINE, k) : Own::at(threadIdx.x % LINE * V, k));
#pragma unroll
    for (int turn = 0; turn < (COUNT + THREADS - 1) / THREADS; turn++) {
      if (COUNT % THREADS != 0 && turn * THREADS + (int)threadIdx.x >= COUNT) break;
      const int dx = KFAST ? turn * LINES : 0, dk = KFAST ? 0 : turn * LINES;
      const bool inside = (WHOLE_K || k0 + k + dk < klen) && (WHOLE_X || x + dx < xlen);
      copy<V * sizeof(real)>(own + Own::at(dx, dk), from + dx * X + dk * K, inside);
    }
    from += BK * K;
  }
};

// A tile of a product, C[m][n] += Σ_k A(m, k)·B(k, n), by scalars: a thread has 4 × 4 entries of a slice of k.
template <int BM, int BN, int BK>
struct Scalars {
  static constexpr int M = BM, N = BN, K = BK, TM = 4, TN = 4, PLACES = (BM / TM) * (BN / TN), SLICES = THREADS / PLACES;
  real c[TM][TN];

  __device__ __forceinline__ void scale(real f) {
    for (int i = 0; i < TM; i++)
      for (int j = 0; j < TN; j++) c[i][j] *= f;
  }
  template <bool KA, bool KB>
  __device__ __forceinline__ void multiply(const real* sa, const real* sb) {
    const int slice = threadIdx.x / PLACES, place = threadIdx.x % PLACES;
    const int m = place / (BN / TN) * TM, n = place % (BN / TN) * TN;
#pragma unroll 2
    for (int k = slice; k < BK; k += SLICES)
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
          c[i][j] = fma_(sa[Block<BM, BK, KA>::at(m + i, k)], sb[Block<BN, BK, KB>::at(n + j, k)], c[i][j]);
  }
  // The tiles of all slices in shared memory.
  __device__ __forceinline__ void stage(real* shared) {
    const int slice = threadIdx.x / PLACES, place = threadIdx.x % PLACES;
    const int m = place / (BN / TN) * TM, n = place % (BN / TN) * TN;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j++) shared[slice * BM * BN + (m + i) * BN + n + j] = c[i][j];
    __syncthreads();
  }
  // Entry e of the staged tile, summed over slices in order.
  static __device__ __forceinline__ real entry(const real* shared, int e) {
    real v = shared[e];
#pragma unroll
    for (int s = 1; s < SLICES; s++) v += shared[s * BM * BN + e];
    return v;
  }
};

// x rounded to 11 bits; what is added may carry into the sign of a NaN, which `low_part` then keeps.
FN u32 high_part(float x) { return (__float_as_uint(x) + 0x1000u) & 0xffffe000u; }
FN u32 low_part(float x, u32 high) { return __float_as_uint(x - __uint_as_float(high)); } // tensor cores read 11 bits of it
// Numbers that a thread reads or writes at once.
template <int W>
struct alignas(4 * W) Pack { float x[W]; };

// The same by tensor cores, for float. Numbers are split into two of 11 bits; with PRODUCTS = 3 of the four products of
// parts are summed, which leaves an error of about 2⁻²¹ of a product: within the bound of f32 sums. PRODUCTS = 1 is TF32.
// Warps are WM × WN places and slices of k. Fragments take k in the order 0, 2, 4, 6 | 1, 3, 5, 7, so that pairs lie together.
// ALONG_M, ALONG_N: not k but the rows of A (columns of B) lie together in shared memory; the fragments of a thread then take
// neighbours, so that it reads them at once.
// Tensor cores cut off the bits that their sums have no room for, so that long sums shrink by about 2⁻²⁵ with every addition:
// FRESH starts anew with each block of k, and rounds when it adds blocks.
template <int BM, int BN, int BK, int WM, int WN, int PRODUCTS, bool FRESH, bool ALONG_M, bool ALONG_N>
struct Tensors {
  static constexpr int M = BM, N = BN, K = BK, SLICES = THREADS / 32 / (WM * WN), TM = BM / WM / 16, TN = BN / WN / 8;
  // How many rows (columns) of a thread lie together; and the pitch of the staged tile, whose rows begin in other banks.
  static constexpr int WA = !ALONG_M ? 1 : TM % 2 == 0 ? 4 : 2, WB = !ALONG_N ? 1 : TN % 4 == 0 ? 4 : TN % 2 == 0 ? 2 : 1;
  static constexpr int PITCH = BN + 4;
  float c[TM][TN][4];

  // A piece is eight rows (columns) of a warp, one for each g. Where row g of piece i stands among the warp's, if a thread has W
  // pieces beside each other.
  template <int W>
  static __device__ __forceinline__ constexpr int place(int g, int i) { return W * g + i % W + 8 * W * (i / W); }

  __device__ __forceinline__ void scale(float f) {
    for (int i = 0; i < TM; i++)
      for (int j = 0; j < TN; j++)
        for (int q = 0; q < 4; q++) c[i][j][q] *= f;
  }
  // COUNT pieces of an operand for a product of eight k, of which this thread has two; `from` is its first.
  template <class Block, int W, int COUNT>
  static __device__ __forceinline__ void read(const float* from, int k, float (&v)[COUNT][2]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += W)
#pragma unroll
      for (int q = 0; q < 2; q++) {
        const Pack<W> pack = *(const Pack<W>*)(from + Block::at(place<W>(0, i), k + q));
#pragma unroll
        for (int w = 0; w < W; w++) v[i + w][q] = pack.x[w];
      }
  }
  static __device__ __forceinline__ void parts(float v, u32& high, u32& low) {
    if (PRODUCTS > 1) {
      high = high_part(v);
      low = low_part(v, high);
    } else {
      high = __float_as_uint(rounded(v));
    }
  }
  template <bool KA, bool KB>
  __device__ __forceinline__ void multiply(const float* sa, const float* sb) {
    static_assert(!(KA && ALONG_M) && !(KB && ALONG_N), "what lies together is as it was said");
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, slice = warp / (WM * WN);
    using A = Block<BM, BK, KA>;
    using B = Block<BN, BK, KB>;
    sa += A::at(warp / WN % WM * (16 * TM) + place<WA>(g, 0), 8 * slice + 2 * t);
    sb += B::at(warp % WN * (8 * TN) + place<WB>(g, 0), 8 * slice + 2 * t);
    // Small tiles sum the small products apart: their chains of additions would be too long.
    constexpr bool APART = FRESH || (PRODUCTS > 1 && TM * TN < 4);
    float small[TM][TN][4] = {};
    constexpr int UNROLL = PRODUCTS * TM * TN > 24 ? 2 : 4; // longer text takes longer to compile
#pragma unroll UNROLL
    for (int step = 0; step < (BK / 8 + SLICES - 1) / SLICES; step++) {
      const int k = 8 * SLICES * step;
      if (BK / 8 % SLICES != 0 && k + 8 * slice >= BK) break;
      float va[2 * TM][2], vb[TN][2];
      read<A, WA>(sa, k, va);
      read<B, WB>(sb, k, vb);
      u32 ah[TM][4], al[TM][4], bh[TN][2], bl[TN][2];
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int q = 0; q < 4; q++) parts(va[2 * i + q % 2][q / 2], ah[i][q], al[i][q]);
#pragma unroll
      for (int j = 0; j < TN; j++)
#pragma unroll
        for (int q = 0; q < 2; q++) parts(vb[j][q], bh[j][q], bl[j][q]);
      // One kind of product after another, so that neighbouring instructions do not wait for each other.
#pragma unroll
      for (int kind = PRODUCTS > 1 ? 0 : 2; kind < 3; kind++)
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
          for (int j = 0; j < TN; j++)
            mma(FRESH || (APART && kind < 2) ? small[i][j] : c[i][j], kind == 0 ? al[i] : ah[i], kind == 1 ? bl[j] : bh[j]);
    }
    if (APART)
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
#pragma unroll
          for (int q = 0; q < 4; q++) c[i][j][q] += small[i][j][q];
  }
  __device__ __forceinline__ void stage(float* shared) {
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, slice = warp / (WM * WN);
    float* own = shared + (slice * BM + warp / WN % WM * (16 * TM)) * PITCH + warp % WN * (8 * TN);
#pragma unroll
    for (int i = 0; i < 2 * TM; i++)
#pragma unroll
      for (int j = 0; j < TN; j += WB)
#pragma unroll
        for (int q = 0; q < 2; q++) {
          Pack<WB> pack;
#pragma unroll
          for (int w = 0; w < WB; w++) pack.x[w] = c[i / 2][j + w][2 * (i % 2) + q];
          *(Pack<WB>*)(own + place<WA>(g, i) * PITCH + place<WB>(2 * t + q, j)) = pack;
        }
    __syncthreads();
  }
  // W neighbours from entry e of the staged tile on, summed over slices in order.
  template <int W>
  static __device__ __forceinline__ Pack<W> entries(const float* shared, int e) {
    const float* from = shared + e / BN * PITCH + e % BN;
    Pack<W> v = *(const Pack<W>*)from;
#pragma unroll
    for (int s = 1; s < SLICES; s++) {
      const Pack<W> more = *(const Pack<W>*)(from + s * BM * PITCH);
#pragma unroll
      for (int w = 0; w < W; w++) v.x[w] += more.x[w];
    }
    return v;
  }
  static __device__ __forceinline__ float entry(const float* shared, int e) { return entries<1>(shared, e).x[0]; }
};

// Both operands of a tile of a sum of products, from k0 on.
template <class Tile, int HA, bool KA, int HB, bool KB, class A, class B>
struct Operands {
  static constexpr int LEFT = Block<Tile::M, Tile::K, KA>::SIZE, SIZE = LEFT + Block<Tile::N, Tile::K, KB>::SIZE;
  Filler<Tile::M, Tile::K, KA, HA, A> a;
  Filler<Tile::N, Tile::K, KB, HB, B> b;

  __device__ __forceinline__ Operands(int m0, int M, int n0, int N, int k0, const A& a, const B& b)
      : a(a, m0, M, k0), b(b, n0, N, k0) {}
  // Starts copies of the next block, which begins at k0; `arrived` waits for those of this thread.
  __device__ __forceinline__ void fetch(real* to, int k0, int kto) {
    a.fill(to, k0, kto);
    b.fill(to + LEFT, k0, kto);
  }
};
FN void arrived() {
  close_group();
  await_groups<0>();
}

// A short sum over k: all of it is one block.
template <class Tile, int HA, bool KA, int HB, bool KB, class A, class B>
FN void fetch(real* to, int m0, int M, int n0, int N, int k0, int kto, const A& a, const B& b) {
  Operands<Tile, HA, KA, HB, KB, A, B>(m0, M, n0, N, k0, a, b).fetch(to, k0, kto);
}
template <bool KA, bool KB, class Tile>
FN void multiply(Tile& tile, const real* from) {
  tile.template multiply<KA, KB>(from, from + Block<Tile::M, Tile::K, KA>::SIZE);
}

// A long sum over k: STAGES blocks are on their way at a time.
template <int STAGES, int HA, bool KA, int HB, bool KB, class Tile, class A, class B>
FN void accumulate(Tile& tile, real* shared, int m0, int M, int n0, int N, int kfrom, int kto, const A& a, const B& b) {
  constexpr int AHEAD = STAGES - 1;
  using Both = Operands<Tile, HA, KA, HB, KB, A, B>;
  Both both(m0, M, n0, N, kfrom, a, b);
  int empty = 0, full = 0;
#pragma unroll 1
  for (int k0 = kfrom - AHEAD * Tile::K; k0 < kto; k0 += Tile::K) {
    if (k0 >= kfrom) {
      await_groups<AHEAD - 1>();
      __syncthreads(); // this block is there, and the one before it is read
    }
    if (k0 + AHEAD * Tile::K < kto) both.fetch(shared + empty * Both::SIZE, k0 + AHEAD * Tile::K, kto);
    close_group();
    if (k0 >= kfrom) {
      multiply<KA, KB>(tile, shared + full * Both::SIZE);
      full = full + 1 == STAGES ? 0 : full + 1;
    }
    empty = empty + 1 == STAGES ? 0 : empty + 1;
  }
  arrived();
  __syncthreads();
}
