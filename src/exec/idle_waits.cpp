// Lookup of libtailrace_idle.so in the process.

#include "exec/idle_waits.hpp"

#include <dlfcn.h>

#define TAILRACE_NAME_OF(symbol) #symbol
#define TAILRACE_TEXT_OF(symbol) TAILRACE_NAME_OF(symbol)

namespace tailrace {

IdleWaits* find_idle_waits() {
  return static_cast<IdleWaits*>(dlsym(RTLD_DEFAULT, TAILRACE_TEXT_OF(TAILRACE_IDLE_WAITS)));
}

}  // namespace tailrace
