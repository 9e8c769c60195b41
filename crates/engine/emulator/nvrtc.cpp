// NVIDIA's run-time compiler, played by the processor's: a kernel becomes a shared library.
#include "faults.h"
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

struct Program {
  std::string source, code, log;
};

static std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

extern "C" {
int nvrtcVersion(int* major, int* minor) {
  if (const int status = faults::of(__func__, 11)) return status;
  *major = 0;
  *minor = 1;
  return 0;
}
int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*, const char* const*) {
  if (const int status = faults::of(__func__, 1)) return status;
  *program = new Program{source, "", ""};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  if (const int status = faults::of(__func__, 6)) return program->log = "refused on request", status;
  char folder[] = "/tmp/minvel-emulator-XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const std::string base = std::string(folder) + "/kernel";
  std::ofstream(base + ".cpp") << "#include \"device.h\"\n" << program->source << "\n#include \"entry.h\"\n";
  const std::string command = "c++ -O3 -march=native -ffp-contract=off -std=c++17 -w -shared -fPIC -fvisibility=hidden -I '" EMULATOR "' -o " + base + ".so " +
                              base + ".cpp > " + base + ".log 2>&1";
  const int status = std::system(command.c_str());
  program->code = contents(base + ".so");
  program->log = contents(base + ".log");
  for (const char* ending : {".cpp", ".so", ".log"}) unlink((base + ending).c_str());
  rmdir(folder);
  return status == 0 ? 0 : 6;
}
int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->code.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* to) {
  memcpy(to, program->code.data(), program->code.size());
  return 0;
}
int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* to) {
  memcpy(to, program->log.c_str(), program->log.size() + 1);
  return 0;
}
}
