// What follows a kernel: how the emulated card runs it.
namespace emulated {
static void** given;
template <class... A>
constexpr int count(void (*)(A...)) { return sizeof...(A); }
template <int... I> struct Indices {};
template <int N, int... I> struct Upto : Upto<N - 1, N - 1, I...> {};
template <int... I> struct Upto<0, I...> { using All = Indices<I...>; };
template <class... A, int... I>
static void call(void (*kernel)(A...), Indices<I...>) { kernel(*(A*)given[I]...); }
static void run_kernel() { call(step_kernel, typename Upto<count(step_kernel)>::All()); }
} // namespace emulated

extern "C" __attribute__((visibility("default"))) int emulated_arguments() { return emulated::count(step_kernel); }
extern "C" __attribute__((visibility("default"))) size_t emulated_stacks() { return (size_t)emulated::THREADS_OF_BLOCK * emulated::STACK; }
extern "C" __attribute__((visibility("default"))) void emulated_run(unsigned blocks, unsigned shared, void** arguments, char* stacks) {
  emulated::given = arguments;
  emulated::body = emulated::run_kernel;
  memset(memory, 0xff, sizeof memory);
  // The last block first: what a kernel computes must not depend on what it computes elsewhere.
  for (unsigned left = blocks; left > 0; left--) {
    blockIdx.x = left - 1;
    memset(memory, 0xff, shared);
    emulated::run_block(stacks, blockIdx.x % 2 == 1);
  }
  for (size_t i = shared; i < sizeof memory; i++)
    if (memory[i] != 0xff) {
      fprintf(stderr, "emulator: shared memory was written at %zu, beyond its %u bytes\n", i, shared);
      abort();
    }
}
