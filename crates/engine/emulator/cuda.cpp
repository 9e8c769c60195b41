// The CUDA driver, played by the processor: as much of it as the engine calls, one kernel at a time. After each piece of memory
// comes a page that nobody may touch.
//
// Work given to a stream is done as late as a card may do it: when somebody waits for the stream, or frees what the work may use. A
// copy from memory that was freed or changed meanwhile shows. EMULATOR_MEMORY is the card's memory in bytes; for other trouble
// see faults.h.
#include "faults.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

struct Module {
  void* library;
  int (*arguments)();
  size_t (*stacks)();
  void (*run)(unsigned, unsigned, void**, char*);
};
struct Launch {
  Module* kernel;
  unsigned blocks, shared;
  std::vector<uint64_t> arguments;
};
struct Graph {
  std::vector<Launch> launches;
};
struct Stream {
  Graph* recording = nullptr;
  std::vector<std::function<void()>> work;
};
// As in the driver's header.
struct Config {
  unsigned grid[3], block[3], shared;
  Stream* stream;
  void* attributes;
  unsigned count;
};

struct Mapping {
  void* start;
  size_t bytes, asked;
};

// What a driver says: a kernel touched what it must not, out of memory, no such call while a graph is recorded.
enum { ILLEGAL_ADDRESS = 700, OUT_OF_MEMORY = 2, CAPTURING = 900 };
#define CALL \
  if (const int status = faults::of(__func__, ILLEGAL_ADDRESS)) return status;

static std::recursive_mutex card;
using Lock = std::lock_guard<std::recursive_mutex>;
static std::map<uint64_t, Mapping> mappings;
static std::set<Stream*> streams;
static size_t used = 0;
static Stream own;
static Stream* of(Stream* stream) { return stream == nullptr ? &own : stream; }

static size_t memory() {
  const char* text = getenv("EMULATOR_MEMORY");
  return text == nullptr ? size_t(4) << 30 : strtoull(text, nullptr, 10);
}

// EMULATOR_CARDS=2: so many cards, which are all the same processor and have one memory.
static int cards() {
  const char* text = getenv("EMULATOR_CARDS");
  return text == nullptr ? 1 : atoi(text);
}

static void run(Launch& launch) {
  static std::vector<char> stacks;
  if (faults::of("kernel", ILLEGAL_ADDRESS)) return;
  if (stacks.empty()) stacks.resize(launch.kernel->stacks() + 64);
  char* aligned = (char*)(((uintptr_t)stacks.data() + 63) / 64 * 64);
  std::vector<void*> pointers;
  for (uint64_t& argument : launch.arguments) pointers.push_back(&argument);
  launch.kernel->run(launch.blocks, launch.shared, pointers.data(), aligned);
}

// Does what a stream was given. A lost card does nothing.
static int finish(Stream* stream) {
  Lock lock(card);
  for (auto& work : stream->work)
    if (faults::lost == 0) work();
  stream->work.clear();
  return faults::lost;
}
static void finish_all() {
  Lock lock(card);
  finish(&own);
  for (Stream* stream : streams) finish(stream);
}
// Work for later; a stream that records takes launches alone.
static int later(Stream* stream, std::function<void()> work) {
  Lock lock(card);
  if (of(stream)->recording != nullptr) return CAPTURING;
  of(stream)->work.push_back(work);
  return 0;
}

extern "C" {
int cuInit(unsigned) { CALL return 0; }
int cuDriverGetVersion(int* version) { CALL return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { CALL return *count = cards(), 0; }
int cuDeviceGet(int* device, int index) { CALL return *device = index, 0; }
int cuDeviceGetName(char* name, int length, int) { CALL return snprintf(name, length, "emulated card"), 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int) { CALL return *bytes = memory(), 0; }
int cuDeviceGetAttribute(int* value, int which, int) { CALL return *value = which == 75 ? 9 : 0, 0; } // capability 9.0
int cuDevicePrimaryCtxRetain(void** context, int) { CALL return *context = &own, 0; }
int cuCtxSetCurrent(void*) { CALL return 0; }
int cuGetErrorString(int, const char** text) { return *text = "the emulated card refused", 0; }

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  CALL
  const size_t page = sysconf(_SC_PAGESIZE), own = (bytes + 15) / 16 * 16, whole = (own + page - 1) / page * page + page;
  Lock lock(card);
  if (bytes > memory() || used > memory() - bytes) return OUT_OF_MEMORY;
  void* start = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED || mprotect((char*)start + whole - page, page, PROT_NONE) != 0) return OUT_OF_MEMORY;
  *address = (uint64_t)start + whole - page - own;
  mappings[*address] = {start, whole, bytes};
  used += bytes;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  CALL
  Lock lock(card);
  finish_all();
  const Mapping mapping = mappings.at(address);
  mappings.erase(address);
  used -= mapping.asked;
  return munmap(mapping.start, mapping.bytes);
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) {
  CALL
  return later(&own, [=] { memset((void*)to, value, count); });
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, Stream* stream) {
  CALL
  return later(stream, [=] { for (size_t i = 0; i < count; i++) ((unsigned*)to)[i] = value; });
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
  CALL
  return later(stream, [=] { memcpy((void*)to, from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
  CALL
  return later(stream, [=] { memcpy(to, (void*)from, bytes); });
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
  CALL
  return later(stream, [=] { memmove((void*)to, (void*)from, bytes); });
}

int cuStreamCreate(Stream** stream, unsigned) {
  CALL
  Lock lock(card);
  streams.insert(*stream = new Stream);
  return 0;
}
int cuStreamDestroy_v2(Stream* stream) {
  CALL
  Lock lock(card);
  finish(stream);
  streams.erase(stream);
  return delete stream, 0;
}
int cuStreamSynchronize(Stream* stream) {
  CALL
  if (of(stream)->recording != nullptr) return CAPTURING;
  return finish(of(stream));
}
int cuStreamBeginCapture_v2(Stream* stream, int) {
  CALL
  Lock lock(card);
  return of(stream)->recording = new Graph, 0;
}
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  CALL
  Lock lock(card);
  *graph = of(stream)->recording;
  of(stream)->recording = nullptr;
  return 0;
}
int cuGraphInstantiateWithFlags(Graph** ready, Graph* graph, unsigned long long) { CALL return *ready = new Graph(*graph), 0; }
int cuGraphDestroy(Graph* graph) { CALL return delete graph, 0; }
int cuGraphExecDestroy(Graph* graph) {
  CALL
  finish_all();
  return delete graph, 0;
}
int cuGraphLaunch(Graph* graph, Stream* stream) {
  CALL
  return later(stream, [=] { for (Launch& launch : graph->launches) run(launch); });
}

int cuModuleLoadData(Module** module, const void* image) {
  CALL
  // A shared library ends with its table of sections.
  auto header = (const Elf64_Ehdr*)image;
  const size_t size = header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
  char path[] = "/tmp/minvel-emulator-XXXXXX";
  const int file = mkstemp(path);
  const bool written = file >= 0 && write(file, image, size) == (ssize_t)size;
  if (file >= 0) close(file);
  void* library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path);
  if (library == nullptr) return fprintf(stderr, "emulator: %s\n", dlerror()), 200;
  *module = new Module{library, (int (*)())dlsym(library, "emulated_arguments"),
                       (size_t (*)())dlsym(library, "emulated_stacks"),
                       (void (*)(unsigned, unsigned, void**, char*))dlsym(library, "emulated_run")};
  return 0;
}
int cuModuleUnload(Module* module) {
  CALL
  finish_all();
  dlclose(module->library);
  delete module;
  return 0;
}
int cuModuleGetFunction(Module** function, Module* module, const char*) { CALL return *function = module, 0; }
int cuFuncSetAttribute(void*, int, int) { CALL return 0; }
int cuLaunchKernelEx(const Config* config, Module* kernel, void** arguments, void**) {
  CALL
  Launch launch{kernel, config->grid[0], config->shared, {}};
  for (int i = 0; i < kernel->arguments(); i++) {
    // Those of four bytes are the low half of a number of eight.
    uint64_t value;
    memcpy(&value, arguments[i], 8);
    launch.arguments.push_back(value);
  }
  if (Graph* graph = of(config->stream)->recording) return graph->launches.push_back(launch), 0;
  return later(config->stream, [=]() mutable { run(launch); });
}
}
