// The CUDA driver, played by the processor: as much of it as the engine calls. Work is done when it is asked for, one kernel at
// a time. After each piece of memory comes a page that nobody may touch.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <map>
#include <mutex>
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
  size_t bytes;
};

static std::mutex card;
static std::map<uint64_t, Mapping> mappings;
static Stream own;
static Stream* of(Stream* stream) { return stream == nullptr ? &own : stream; }

static void run(Launch& launch) {
  static std::vector<char> stacks;
  std::lock_guard<std::mutex> lock(card);
  if (stacks.empty()) stacks.resize(launch.kernel->stacks() + 64);
  char* aligned = (char*)(((uintptr_t)stacks.data() + 63) / 64 * 64);
  std::vector<void*> pointers;
  for (uint64_t& argument : launch.arguments) pointers.push_back(&argument);
  launch.kernel->run(launch.blocks, launch.shared, pointers.data(), aligned);
}

extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDeviceGetName(char* name, int length, int) { return snprintf(name, length, "emulated card"), 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = size_t(4) << 30, 0; }
int cuDeviceGetAttribute(int* value, int which, int) { return *value = which == 75 ? 9 : 0, 0; } // capability 9.0
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &own, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuGetErrorString(int, const char** text) { return *text = "the emulated card refused", 0; }

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  const size_t page = sysconf(_SC_PAGESIZE), own = (bytes + 15) / 16 * 16, whole = (own + page - 1) / page * page + page;
  void* start = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED || mprotect((char*)start + whole - page, page, PROT_NONE) != 0) return 2;
  *address = (uint64_t)start + whole - page - own;
  std::lock_guard<std::mutex> lock(card);
  mappings[*address] = {start, whole};
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  std::lock_guard<std::mutex> lock(card);
  const Mapping mapping = mappings.at(address);
  mappings.erase(address);
  return munmap(mapping.start, mapping.bytes);
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) { return memset((void*)to, value, count), 0; }
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void*) {
  for (size_t i = 0; i < count; i++) ((unsigned*)to)[i] = value;
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) { return memcpy((void*)to, from, bytes), 0; }
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) { return memcpy(to, (void*)from, bytes), 0; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void*) {
  return memmove((void*)to, (void*)from, bytes), 0;
}

int cuStreamCreate(Stream** stream, unsigned) { return *stream = new Stream, 0; }
int cuStreamDestroy_v2(Stream* stream) { return delete stream, 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuStreamBeginCapture_v2(Stream* stream, int) { return of(stream)->recording = new Graph, 0; }
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  *graph = of(stream)->recording;
  of(stream)->recording = nullptr;
  return 0;
}
int cuGraphInstantiateWithFlags(Graph** ready, Graph* graph, unsigned long long) { return *ready = new Graph(*graph), 0; }
int cuGraphDestroy(Graph* graph) { return delete graph, 0; }
int cuGraphExecDestroy(Graph* graph) { return delete graph, 0; }
int cuGraphLaunch(Graph* graph, void*) {
  for (Launch& launch : graph->launches) run(launch);
  return 0;
}

int cuModuleLoadData(Module** module, const void* image) {
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
  dlclose(module->library);
  delete module;
  return 0;
}
int cuModuleGetFunction(Module** function, Module* module, const char*) { return *function = module, 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuLaunchKernelEx(const Config* config, Module* kernel, void** arguments, void**) {
  Launch launch{kernel, config->grid[0], config->shared, {}};
  for (int i = 0; i < kernel->arguments(); i++) {
    // Those of four bytes are the low half of a number of eight.
    uint64_t value;
    memcpy(&value, arguments[i], 8);
    launch.arguments.push_back(value);
  }
  if (Graph* graph = of(config->stream)->recording) graph->launches.push_back(launch);
  else run(launch);
  return 0;
}
}
