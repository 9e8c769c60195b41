// Trouble on request, for tests of what happens when a card fails.
//
//   EMULATOR_FAIL=NAME:NUMBER          call number NUMBER (from 1) of NAME fails, and every call after it: the card is lost
//   EMULATOR_FAIL=NAME:NUMBER:STATUS   that call alone fails, with this status (2: out of memory)
//
// NAME is a function, `any` for all of them together, or `kernel` for a kernel that fails while it runs, which is told when
// somebody waits for it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace faults {
struct Plan {
  char name[64] = "";
  long number = 0;
  int status = 0; // of one call alone
};
static Plan plan() {
  Plan plan;
  const char* text = getenv("EMULATOR_FAIL");
  if (text != nullptr && sscanf(text, "%63[^:]:%ld:%d", plan.name, &plan.number, &plan.status) < 2) {
    fprintf(stderr, "emulator: EMULATOR_FAIL is NAME:NUMBER or NAME:NUMBER:STATUS, not %s\n", text);
    abort();
  }
  return plan;
}
static std::mutex counting;
static int lost = 0;

// The status of a call: 0, or what was asked for. `status` is that of a card which is lost.
static int of(const char* name, int status) {
  static const Plan asked = plan();
  static long count = 0;
  std::lock_guard<std::mutex> lock(counting);
  if (lost != 0) return lost;
  const bool meant = strcmp(asked.name, name) == 0 || (strcmp(asked.name, "any") == 0 && strcmp(name, "kernel") != 0);
  if (!meant || ++count != asked.number) return 0;
  if (asked.status != 0) return asked.status;
  return lost = status;
}
} // namespace faults
