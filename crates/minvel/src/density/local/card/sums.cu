// --------------------------------------------------------------------------------------------------------- lists
// Balls around `count` runs of centres: M numbers of the middle, the radius, and BOUNDS promises a + b d², each `count` apart.
struct Balls {
  const double* at;
  u64 count;
};
// A list of centres, as card.rs lays it out.
struct List {
  u64 members, blocks, placed;
  Balls groups, parts;
  const double *centres, *weights, *numbers;
  const u64* words;
};
FN List list_of(const double* data, const u64* plan, u64 k) {
  const u64* w = plan + HEAD * k;
  return {w[0], w[2], w[3], {data + w[4], w[1]}, {data + w[5], w[2]}, data + w[6], data + w[7], data + w[8], plan + w[9]};
}
// A member: log of the peak, what the square is multiplied with, the promise of all its kernels; what it is, and where its lists are.
enum { PEAK, RATE, HIGH, SLOPE };
enum { KIND, FAMILY, FACTORS, LOGS, HIGHS, SLOPES };
enum { ROUND, NATURAL, LOCAL, COMPONENT };

// The rows of a warp: a ball around them.
struct Tile {
  double centre[M], radius;
};
FN Tile tile_of(const double (&x)[M]) {
  Tile tile;
  double mean[M], square = 0.0;
  EACH for (int j = 0; j < M; j++) {
    mean[j] = total(x[j]) / 32.0;
    square = fma(x[j] - mean[j], x[j] - mean[j], square);
  }
  const int middle = __ffs(__ballot_sync(ALL, square == lowest(square))) - 1;
  EACH for (int j = 0; j < M; j++) tile.centre[j] = __shfl_sync(ALL, x[j], middle);
  // Rounded up, so that rounding leaves no row outside.
  tile.radius = -lowest(-sqrt(chord(tile.centre, 1, x))) * (1.0 + 1e-12);
  return tile;
}

// Distance of the middle of ball i.
FN double distance(const Balls& balls, u64 i, const double (&x)[M]) { return sqrt(chord(balls.at + i, balls.count, x)); }

// Whether the kernels of ball i promise more than `bar` at some row of the tile.
FN bool promises(const Balls& balls, u64 i, const Tile& tile, double bar) {
  const double* own = balls.at + i + M * balls.count;
  const double d = fmax(distance(balls, i, tile.centre) - own[0] - tile.radius, 0.0), square = d * d;
  bool more = false;
  EACH for (int p = 0; p < BOUNDS; p++) {
    own += balls.count;
    const double high = own[0];
    own += balls.count;
    more |= fma(own[0], square, high) > bar;
  }
  return more;
}

// ---------------------------------------------------------------------------------------------------------- rows
struct Row {
  double x[M];
  // Kernels at most e^least are left out; sums are in units of e^unit, in which that is the threshold.
  double least, unit, threshold, sum;
};

// The point about centre k of a block: what all members need of it.
struct Placed {
  const double* c;
  double v[N], square, factor, quadratic;
  u64 shaped;
};
FN Placed placed(const List& list, u64 block, int k, const double (&x)[M]) {
  Placed at;
  at.c = list.centres + block * (32 * WIDTH) + k;
  at.factor = 1.0;
  at.square = 0.0;
  at.shaped = ~0ull;
  if (!list.placed) return at;
  place(at.c, x, at.v, at.factor);
  EACH for (int j = 0; j < N; j++) at.square = fma(at.v[j], at.v[j], at.square);
  return at;
}
// The exponent of member s there, and the factor that goes with it.
FN double exponent(const double* data, const List& list, u64 s, u64 block, int k, const double (&x)[M], Placed& at, double& factor) {
  const u64* words = list.words + WORDS * s;
  const double* numbers = list.numbers + NUMBERS * s;
  const u64 kind = words[KIND];
  factor = kind == NATURAL || kind == COMPONENT ? 1.0 : at.factor;
  if (kind == ROUND) return fma(numbers[RATE], at.square, numbers[PEAK]);
  if (kind == NATURAL) return fma(numbers[RATE], statistic(at.c, x, data), numbers[PEAK]);
  if (kind == COMPONENT) {
    const double* kappas = data + words[FACTORS] + block * (32 * (N * (N + 1) / 2)) + k;
    return weighed(at.c, x, data, kappas) + numbers[PEAK] + data[words[LOGS] + block * 32 + k];
  }
  if (at.shaped != words[FACTORS]) {
    const double* entry = data + words[FACTORS] + block * (32 * (N * (N + 1) / 2)) + k;
    double y[N];
    at.quadratic = 0.0;
    EACH for (int a = 0; a < N; a++) {
      y[a] = at.v[a];
      EACH for (int b = 0; b < a; b++) {
        y[a] = fma(-entry[0], y[b], y[a]);
        entry += 32;
      }
      y[a] *= entry[0];
      entry += 32;
      at.quadratic = fma(y[a], y[a], at.quadratic);
    }
    at.shaped = words[FACTORS];
  }
  return fma(numbers[RATE], at.quadratic, numbers[PEAK] + data[words[LOGS] + block * 32 + k]);
}

// Adds a kernel.
FN void add(Row& row, double* sums, u64 family, double weight, double term, double factor) {
  double over = term - row.unit;
  if (over > 600.0 && factor > 0.0) { // other units
    const double scale = exp_(fmax(row.unit - term, -1e4));
    row.unit = term;
    row.threshold *= scale;
    row.sum *= scale;
    for (int f = 0; f < FAMILIES; f++) sums[f * THREADS] *= scale;
    over = 0.0;
  }
  const double value = exp_(fmin(over, 600.0)) * factor;
  if (value > row.threshold) {
    if (FAMILIES == 0) row.sum = fma(weight, value, row.sum);
    else sums[family * THREADS] = fma(weight, value, sums[family * THREADS]);
  }
}

// log of the sum over the kernels of one block, from below.
FN double first_sum(const double* data, const List& list, u64 block, const double (&x)[M]) {
  double top = NEVER;
  float sum = 0.0f;
  for (int k = 0; k < 32; k++) {
    const float weight = (float)list.weights[block * 32 + k];
    if (weight == 0.0f) break;
    Placed at = placed(list, block, k, x);
    for (u64 s = 0; s < list.members; s++) {
      double factor;
      const double term = exponent(data, list, s, block, k, x, at, factor);
      if (factor == 0.0) continue;
      const float share = weight * (float)factor;
      if (term > top) {
        sum = fmaf(sum, expf((float)(top - term)), share);
        top = term;
      } else sum = fmaf(share, expf((float)(term - top)), sum);
    }
  }
  return sum > 0.0f ? top + log((double)sum * 0.999) : NEVER;
}

// The block whose middle is nearest to the row.
struct Nearest {
  double square;
  u64 block;
};
// Looks at the blocks of a group; `best` is the distance from the tile's centre to the nearest middle so far.
FN void look(const List& list, u64 group, const Tile& tile, const double (&x)[M], Nearest& nearest, double& best) {
  const int lane = threadIdx.x % 32;
  for (u64 from = group * GROUP; from < (group + 1) * GROUP && from < list.blocks; from += 32) {
    const u64 own = from + lane;
    const double d = own < list.blocks ? distance(list.parts, own, tile.centre) : 1e300;
    best = fmin(best, lowest(d));
    u32 left = __ballot_sync(ALL, d <= (best + 2.0 * tile.radius) * (1.0 + 1e-9));
    for (; left != 0; left &= left - 1) {
      const u64 block = from + __ffs(left) - 1;
      const double square = chord(list.parts.at + block, list.blocks, x);
      if (square < nearest.square || (square == nearest.square && block < nearest.block)) nearest = {square, block};
    }
  }
}
FN u64 nearest_of(const List& list, const Tile& tile, const double (&x)[M]) {
  const int lane = threadIdx.x % 32;
  Nearest nearest = {1e300, 0};
  double best = 1e300, first = 1e300;
  u64 begin = 0;
  for (u64 from = 0; from < list.groups.count; from += 32) {
    const u64 own = from + lane;
    const double d = own < list.groups.count ? distance(list.groups, own, tile.centre) : 1e300, least = lowest(d);
    if (least < first) {
      first = least;
      begin = from + __ffs(__ballot_sync(ALL, d == least)) - 1;
    }
  }
  look(list, begin, tile, x, nearest, best);
  for (u64 from = 0; from < list.groups.count; from += 32) {
    const u64 own = from + lane;
    bool near = own < list.groups.count && own != begin;
    if (near) {
      const double d = distance(list.groups, own, tile.centre) - list.groups.at[M * list.groups.count + own];
      near = d <= (best + 2.0 * tile.radius) * (1.0 + 1e-9);
    }
    for (u32 left = __ballot_sync(ALL, near); left != 0; left &= left - 1)
      look(list, from + __ffs(left) - 1, tile, x, nearest, best);
  }
  return nearest.block;
}

// Adds the kernels of a block that promise more than `bar` at some row of the tile.
FN void add_block(const double* data, const List& list, u64 block, const Tile& tile, double bar, Row& row, double* sums) {
  const u64 own = block * 32 + threadIdx.x % 32;
  const double d = sqrt(chord(list.centres + block * (32 * WIDTH) + threadIdx.x % 32, 32, tile.centre)) - tile.radius;
  const double square = d > 0.0 ? d * d : 0.0;
  u64 mine = 0; // members that count about the centre of this thread
  if (list.weights[own] > 0.0)
    for (u64 s = 0; s < list.members; s++) {
      const u64* words = list.words + WORDS * s;
      const double* numbers = list.numbers + NUMBERS * s;
      const bool local = words[KIND] == LOCAL || words[KIND] == COMPONENT;
      const double high = local ? data[words[HIGHS] + own] : numbers[HIGH];
      const double slope = local ? data[words[SLOPES] + own] : numbers[SLOPE];
      mine |= (u64)(fma(slope, square, high) > bar) << s;
    }
  for (u32 left = __ballot_sync(ALL, mine != 0); left != 0; left &= left - 1) {
    const int k = __ffs(left) - 1;
    u64 members = __shfl_sync(ALL, mine, k);
    const double weight = list.weights[block * 32 + k];
    Placed at = placed(list, block, k, row.x);
    for (; members != 0; members &= members - 1) {
      const u64 s = __ffsll(members) - 1;
      double factor;
      const double term = exponent(data, list, s, block, k, row.x, at, factor);
      add(row, sums, list.words[WORDS * s + FAMILY], weight, term, factor);
    }
  }
}

FN void add_list(const double* data, const List& list, const Tile& tile, double bar, Row& row, double* sums) {
  const int lane = threadIdx.x % 32;
  for (u64 first = 0; first < list.groups.count; first += 32) {
    bool near = first + lane < list.groups.count && promises(list.groups, first + lane, tile, bar);
    for (u32 groups = __ballot_sync(ALL, near); groups != 0; groups &= groups - 1) {
      const u64 begin = (first + __ffs(groups) - 1) * GROUP;
      for (u64 from = begin; from < begin + GROUP && from < list.blocks; from += 32) {
        near = from + lane < list.blocks && promises(list.parts, from + lane, tile, bar);
        for (u32 blocks = __ballot_sync(ALL, near); blocks != 0; blocks &= blocks - 1)
          add_block(data, list, from + __ffs(blocks) - 1, tile, bar, row, sums);
      }
    }
  }
}

// `rows` is [number, row] and `out` [family, row], or [row]. `tolerance` is log(ε/F), NEVER or less where all is added; `uniform` is
// log of the share of the uniform law over the volume.
extern "C" __global__ void __launch_bounds__(THREADS) step_kernel(const double* __restrict__ data, const u64* __restrict__ plan,
    const double* __restrict__ rows, double* __restrict__ out, u64 count, u64 lists, u64 heaviest, double tolerance, double uniform) {
  extern __shared__ __align__(16) unsigned char memory[];
  double* sums = (double*)memory + threadIdx.x;
  const u64 own = (u64)blockIdx.x * THREADS + threadIdx.x;
  if (own - threadIdx.x % 32 >= count) return;
  Row row;
  EACH for (int j = 0; j < M; j++) row.x[j] = rows[j * count + (own < count ? own : count - 1)];
  for (int f = 0; f < FAMILIES; f++) sums[f * THREADS] = 0.0;
  row.sum = 0.0;
  const Tile tile = tile_of(row.x);
  const List most = list_of(data, plan, heaviest);
  const double log_p = most.members > 0 ? first_sum(data, most, nearest_of(most, tile, row.x), row.x) : NEVER;
  row.least = tolerance > NEVER ? fmax(log_p, uniform) + tolerance : NEVER;
  if (row.least < 0.5 * NEVER) row.least = NEVER;
  row.unit = row.least > NEVER ? row.least : log_p;
  row.threshold = row.least > NEVER ? 1.0 : 0.0;
  const double bar = row.least > NEVER ? row.least - 1e-6 : NEVER, lowest_bar = lowest(bar);
  for (u64 k = 0; k < lists; k++) add_list(data, list_of(data, plan, k), tile, lowest_bar, row, sums);
  if (own >= count) return;
  for (int f = 0; f < FAMILIES; f++) {
    const double sum = sums[f * THREADS];
    out[f * count + own] = sum > 0.0 ? row.unit + log(sum) : -1.7976931348623157e308;
  }
  if (FAMILIES > 0) return;
  const double log_sum = row.sum > 0.0 ? row.unit + log(row.sum) : -1.7976931348623157e308;
  const double high = fmax(log_sum, uniform), low = fmin(log_sum, uniform);
  out[own] = high > NEVER ? high + log1p(exp_(fmax(low - high, -1e4))) : high;
}
