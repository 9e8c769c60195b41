// Sums over kernels on a GPU. A warp has 32 rows, one for each of its threads, and looks together for what may count at some of
// them: its threads test 32 groups, blocks or centres at once. Then each adds, for its own row, the kernels that were found, in the
// order of their lists. What a row adds depends on the row alone.
//
// Before this comes (see source.rs): M numbers of a point, N dimensions, WIDTH numbers kept of a centre, FAMILIES (0: only their sum
// is asked for), BOUNDS of a ball, GROUP blocks of a group, HEAD words of a list, WORDS and NUMBERS of a member; and after the
// geometry what is made of the spaces: place, chord and statistic.
typedef unsigned int u32;
typedef unsigned long long u64;
#define FN static __device__ __forceinline__
#define ALL 0xffffffffu
#define THREADS 256
#define NEVER (-1e300)
#define EACH _Pragma("unroll")

// ------------------------------------------------------------------------------------------------------- numbers
// Series by their terms, as functions of the number of a term.
struct Exponential {
  static __device__ constexpr double term(int k) {
    double a = 1.0;
    for (int i = 2; i <= k; i++) a /= i;
    return a;
  }
};
struct Whole { // asin(√t)/√(t(1−t))
  static __device__ constexpr double term(int k) {
    double a = 1.0;
    for (int i = 1; i <= k; i++) a *= 2.0 * i / (2.0 * i + 1.0);
    return a;
  }
};
struct Arc { // asin(√t)/√t
  static __device__ constexpr double term(int k) {
    double a = 1.0;
    for (int i = 1; i <= k; i++) a *= (2.0 * i - 1.0) * (2.0 * i - 1.0) / (2.0 * i * (2.0 * i + 1.0));
    return a;
  }
};
struct Artanh { // artanh(√t)/√t
  static __device__ constexpr double term(int k) { return 1.0 / (2.0 * k + 1.0); }
};
template <class Series, int END, int K = 0>
FN double series(double t) {
  constexpr double own = Series::term(K);
  if constexpr (K + 1 == END) return own;
  else return fma(series<Series, END, K + 1>(t), t, own);
}

// e^x for x up to 700; 0 below −700.
FN double exp_(double x) {
  const double round = 6755399441055744.0; // adding it leaves the nearest whole number in the low bits
  const double near = fmax(x, -700.0), shifted = fma(near, 1.4426950408889634, round), whole = shifted - round;
  const double scale = __longlong_as_double((__double_as_longlong(shifted) << 52) + (1023ll << 52));
  const double rest = fma(-whole, 1.9082149292705877e-10, fma(-whole, 0.6931471803691238, near));
  return x < -700.0 ? 0.0 : series<Exponential, 13>(rest) * scale;
}
FN double wrap(double angle) { return fma(-6.283185307179586, floor(fma(angle, 0.15915494309189535, 0.5)), angle); }

// Of all threads of the warp.
FN double lowest(double x) {
  EACH for (int step = 16; step > 0; step /= 2) x = fmin(x, __shfl_xor_sync(ALL, x, step));
  return x;
}
FN double total(double x) {
  EACH for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
  return x;
}

// ------------------------------------------------------------------------------------------------------ geometry
// Normal coordinates of x about a centre, whose numbers are 32 apart, in one space: from number AT of the points and
// FROM of the coordinates on. `factor` gains |dv/dvol|, or is 0 where kernels have ended.
template <int AT, int FROM, int DIM>
FN void place_flat(const double* c, const double (&x)[M], double (&v)[N]) {
  EACH for (int j = 0; j < DIM; j++) v[FROM + j] = x[AT + j] - c[32 * (AT + j)];
}
template <int AT, int FROM, int DIM>
FN void place_torus(const double* c, const double (&x)[M], double (&v)[N]) {
  EACH for (int j = 0; j < DIM; j++) v[FROM + j] = wrap(x[AT + j] - c[32 * (AT + j)]);
}
// θ/sin θ of t = sin²(θ/2) up to `last`; far points take two halvings of the angle before.
FN double stretch(double t, double last) {
  if (t < 1.0 / 256.0) return series<Whole, 7>(t);
  if (t < 1.0 / 16.0) return series<Whole, 14>(t);
  t = fmin(t, last);
  const double a = sqrt(1.0 - t), half = t / (2.0 * (1.0 + a)), b = sqrt(1.0 - half), quarter = half / (2.0 * (1.0 + b));
  return 2.0 * series<Arc, 18>(quarter) / (a * sqrt((1.0 + a) * (1.0 + b)));
}
// Sⁿ; with SIDES two points are one; UNIT is 2 for rotations. `over` is 1/(1 + |last number of the centre|).
template <int AT, int FROM, int DIM, bool SIDES, int UNIT>
FN void place_sphere(const double* c, const double (&x)[M], double (&v)[N], double& factor, double over, double last) {
  double dot = 0.0, t = 0.0;
  EACH for (int j = 0; j <= DIM; j++) dot = fma(c[32 * (AT + j)], x[AT + j], dot);
  const double side = SIDES && dot < 0.0 ? -1.0 : 1.0;
  EACH for (int j = 0; j <= DIM; j++) {
    const double d = fma(side, x[AT + j], -c[32 * (AT + j)]);
    t = fma(0.25 * d, d, t);
  }
  const double along = (c[32 * (AT + DIM)] < 0.0 ? dot - x[AT + DIM] : dot + x[AT + DIM]) * over;
  const double scale = stretch(t, last), unit = side * UNIT * scale;
  EACH for (int j = 0; j < DIM; j++) v[FROM + j] = unit * fma(-c[32 * (AT + j)], along, x[AT + j]);
  factor = t <= last ? factor : 0.0;
  EACH for (int j = 1; j < DIM; j++) factor *= scale;
}
template <int AT, int FROM, int DIM>
FN void place_ball(const double* c, const double (&x)[M], double (&v)[N], double& factor) {
  double dot = 0.0, c2 = 0.0, x2 = 0.0, r2 = 0.0;
  EACH for (int j = 0; j < DIM; j++) {
    const double own = c[32 * (AT + j)];
    dot = fma(-own, x[AT + j], dot);
    c2 = fma(own, own, c2);
    x2 = fma(x[AT + j], x[AT + j], x2);
  }
  const double below = fma(c2, x2, fma(2.0, dot, 1.0)), along = fma(2.0, dot, 1.0) + x2;
  EACH for (int j = 0; j < DIM; j++) {
    v[FROM + j] = fma(1.0 - c2, x[AT + j], -along * c[32 * (AT + j)]) / below;
    r2 = fma(v[FROM + j], v[FROM + j], r2);
  }
  const double g = r2 < 1.0 / 16.0 ? series<Artanh, 14>(r2) : atanh(sqrt(r2)) / sqrt(r2);
  EACH for (int j = 0; j < DIM; j++) v[FROM + j] *= 2.0 * g;
  EACH for (int j = 1; j < DIM; j++) factor *= g * (1.0 - r2);
}

// Squares at most those of distances; numbers of the centre are `step` apart.
template <int AT, int DIM>
FN double chord_flat(const double* c, u64 step, const double (&x)[M], double side = 1.0) {
  double sum = 0.0;
  EACH for (int j = 0; j < DIM; j++) {
    const double d = fma(side, x[AT + j], -c[step * (AT + j)]);
    sum = fma(d, d, sum);
  }
  return sum;
}
template <int AT, int DIM>
FN double chord_torus(const double* c, u64 step, const double (&x)[M]) {
  double sum = 0.0;
  EACH for (int j = 0; j < DIM; j++) {
    const double d = wrap(x[AT + j] - c[step * (AT + j)]);
    sum = fma(d, d, sum);
  }
  return sum;
}
template <int AT, int DIM>
FN double chord_sides(const double* c, u64 step, const double (&x)[M]) {
  double dot = 0.0;
  EACH for (int j = 0; j < DIM; j++) dot = fma(c[step * (AT + j)], x[AT + j], dot);
  return chord_flat<AT, DIM>(c, step, x, dot < 0.0 ? -1.0 : 1.0);
}
// |x − c|²/((1−|c|²)(1−|x|²)).
template <int AT, int DIM>
FN double depth(const double* c, u64 step, const double (&x)[M]) {
  double c2 = 0.0, x2 = 0.0;
  EACH for (int j = 0; j < DIM; j++) {
    const double own = c[step * (AT + j)];
    c2 = fma(own, own, c2);
    x2 = fma(x[AT + j], x[AT + j], x2);
  }
  return chord_flat<AT, DIM>(c, step, x) / ((1.0 - c2) * (1.0 - x2));
}
template <int AT, int DIM>
FN double chord_ball(const double* c, u64 step, const double (&x)[M]) {
  const double d = 2.0 * asinh(sqrt(depth<AT, DIM>(c, step, x)));
  return d * d;
}

// The statistic t of natural kernels.
template <int AT, int DIM>
FN double bump_flat(const double* c, const double (&x)[M]) { return -0.5 * chord_flat<AT, DIM>(c, 32, x); }
template <int AT>
FN double bump_angle(const double* c, const double (&x)[M]) {
  const double s = sin(0.5 * (x[AT] - c[32 * AT]));
  return -2.0 * s * s;
}
template <int AT, int DIM>
FN double bump_sides(const double* c, const double (&x)[M]) {
  return -0.25 * chord_flat<AT, DIM>(c, 32, x) * chord_flat<AT, DIM>(c, 32, x, -1.0);
}
template <int AT, int DIM>
FN double bump_ball(const double* c, const double (&x)[M]) { return -2.0 * depth<AT, DIM>(c, 32, x); }
