// libtailrace_idle.so: marks the time in which a program waits in MPI (docs/in-situ.md).
//
// The library defines the blocking MPI calls, in C and Fortran. Each of them passes its arguments
// to the next definition in the process: another tool's, or MPI's. While the main thread is in it,
// IdleWaits::n_changes is odd. The library calls no other communication, and it waits for nothing.
//
// All arguments of these calls are integers or pointers, which the calling conventions of Linux
// pass in one machine word each. So the calls are declared with words, and one library serves Open
// MPI, MPICH and their Fortran bindings. Open MPI's Fortran bindings do not call the C functions
// that tools replace (MPI_Wait), but PMPI_Wait: therefore the Fortran names are defined, too.

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>

#include "exec/idle_waits.hpp"

#define TAILRACE_SHOWN __attribute__((visibility("default")))

extern "C" {
TAILRACE_SHOWN extern tailrace::IdleWaits TAILRACE_IDLE_WAITS;
tailrace::IdleWaits TAILRACE_IDLE_WAITS;
}

namespace {

using Word = void*;

/// Find a symbol of an MPI library that the program has loaded out of the global scope, as Python
/// loads modules.
void* find_in_loaded(const char* name) {
  struct Search {
    const char* name;
    void* found;
  } search{name, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        if (*info->dlpi_name == '\0') return 0;  // The program: it would lead back to this library.
        void* const library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) return 0;
        // A library of MPI also has the names of the profiling interface; this library does not.
        if (dlsym(library, "PMPI_Is_thread_main") != nullptr) {
          wanted.found = dlsym(library, wanted.name);
        }
        dlclose(library);
        return wanted.found != nullptr ? 1 : 0;
      },
      &search);
  return search.found;
}

void* find_next(const char* name) {
  void* const next = dlsym(RTLD_NEXT, name);
  return next != nullptr ? next : find_in_loaded(name);
}

/// Find the definition of a call that comes after this library's. A call that cannot be passed on
/// must not be ignored: the program ends.
void* find_call(const char* name) {
  void* const next = find_next(name);
  if (next != nullptr) return next;
  std::fprintf(stderr, "libtailrace_idle.so: no MPI library with %s is loaded\n", name);
  std::abort();
}

bool is_main_thread() {
  enum class Is : char { unknown, main, other };
  thread_local Is is = Is::unknown;
  if (is == Is::unknown) {
    using Ask = int(int*);
    static auto* const ask = reinterpret_cast<Ask*>(find_call("PMPI_Is_thread_main"));
    int answer = 0;
    if (ask(&answer) != 0) return false;
    is = answer != 0 ? Is::main : Is::other;
  }
  return is == Is::main;
}

/// Marks a wait of the main thread. A call within another call of MPI is a part of that one.
class Wait {
 public:
  Wait() {
    if (inside || !is_main_thread()) return;
    inside = marks_ = true;
    change();
    if (TAILRACE_IDLE_WAITS.n_workers.load(std::memory_order_relaxed) == 0) return;
    // Open MPI polls while it waits, and so takes half of the core from the thread that works
    // there. With this setting it offers the core to others after each poll.
    if (set_yield() == nullptr) return;
    yielded_ = set_yield()(true);
    sets_yield_ = true;
  }
  ~Wait() {
    if (!marks_) return;
    if (sets_yield_) set_yield()(yielded_);
    change();
    inside = false;
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

 private:
  using SetYield = bool(bool);
  static SetYield* set_yield() {
    static auto* const found =
        reinterpret_cast<SetYield*>(dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle"));
    return found;
  }
  static void change() {
    auto& n_changes = TAILRACE_IDLE_WAITS.n_changes;
    n_changes.store(n_changes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  static thread_local bool inside;
  bool marks_ = false;
  bool sets_yield_ = false;
  bool yielded_ = false;
};
thread_local bool Wait::inside = false;

}  // namespace

#define TAKE_1 Word a
#define TAKE_2 TAKE_1, Word b
#define TAKE_3 TAKE_2, Word c
#define TAKE_4 TAKE_3, Word d
#define TAKE_5 TAKE_4, Word e
#define TAKE_6 TAKE_5, Word f
#define TAKE_7 TAKE_6, Word g
#define TAKE_8 TAKE_7, Word h
#define TAKE_9 TAKE_8, Word i
#define TAKE_10 TAKE_9, Word j
#define TAKE_11 TAKE_10, Word k
#define TAKE_12 TAKE_11, Word l
#define TAKE_13 TAKE_12, Word m
#define PASS_1 a
#define PASS_2 PASS_1, b
#define PASS_3 PASS_2, c
#define PASS_4 PASS_3, d
#define PASS_5 PASS_4, e
#define PASS_6 PASS_5, f
#define PASS_7 PASS_6, g
#define PASS_8 PASS_7, h
#define PASS_9 PASS_8, i
#define PASS_10 PASS_9, j
#define PASS_11 PASS_10, k
#define PASS_12 PASS_11, l
#define PASS_13 PASS_12, m

#define DEFINE(result, name, n)                                          \
  extern "C" TAILRACE_SHOWN result name(TAKE_##n);                       \
  extern "C" result name(TAKE_##n) {                                     \
    using Call = result(TAKE_##n);                                       \
    static auto* const next = reinterpret_cast<Call*>(find_call(#name)); \
    const Wait wait;                                                     \
    return next(PASS_##n);                                               \
  }

/// A call in C with its number of arguments, and in Fortran, which has ierror in addition: for
/// mpif.h and `use mpi`, and for mpi_f08 of Open MPI and of MPICH (with descriptors: f08ts).
#define BLOCKING(c_name, fortran_name, n_c, n_fortran) \
  DEFINE(int, MPI_##c_name, n_c)                       \
  DEFINE(void, mpi_##fortran_name##_, n_fortran)       \
  DEFINE(void, mpi_##fortran_name##_f08_, n_fortran)   \
  DEFINE(void, mpi_##fortran_name##_f08ts_, n_fortran)

BLOCKING(Wait, wait, 2, 3)
BLOCKING(Waitall, waitall, 3, 4)
BLOCKING(Waitany, waitany, 4, 5)
BLOCKING(Waitsome, waitsome, 5, 6)
BLOCKING(Probe, probe, 4, 5)
BLOCKING(Mprobe, mprobe, 5, 6)
BLOCKING(Recv, recv, 7, 8)
BLOCKING(Mrecv, mrecv, 5, 6)
BLOCKING(Send, send, 6, 7)
BLOCKING(Ssend, ssend, 6, 7)
BLOCKING(Sendrecv, sendrecv, 12, 13)
BLOCKING(Sendrecv_replace, sendrecv_replace, 9, 10)
BLOCKING(Barrier, barrier, 1, 2)
BLOCKING(Bcast, bcast, 5, 6)
BLOCKING(Reduce, reduce, 7, 8)
BLOCKING(Allreduce, allreduce, 6, 7)
BLOCKING(Reduce_scatter, reduce_scatter, 6, 7)
BLOCKING(Reduce_scatter_block, reduce_scatter_block, 6, 7)
BLOCKING(Scan, scan, 6, 7)
BLOCKING(Exscan, exscan, 6, 7)
BLOCKING(Gather, gather, 8, 9)
BLOCKING(Gatherv, gatherv, 9, 10)
BLOCKING(Scatter, scatter, 8, 9)
BLOCKING(Scatterv, scatterv, 9, 10)
BLOCKING(Allgather, allgather, 7, 8)
BLOCKING(Allgatherv, allgatherv, 8, 9)
BLOCKING(Alltoall, alltoall, 7, 8)
BLOCKING(Alltoallv, alltoallv, 9, 10)
BLOCKING(Alltoallw, alltoallw, 9, 10)
BLOCKING(Neighbor_allgather, neighbor_allgather, 7, 8)
BLOCKING(Neighbor_allgatherv, neighbor_allgatherv, 8, 9)
BLOCKING(Neighbor_alltoall, neighbor_alltoall, 7, 8)
BLOCKING(Neighbor_alltoallv, neighbor_alltoallv, 9, 10)
BLOCKING(Neighbor_alltoallw, neighbor_alltoallw, 9, 10)
BLOCKING(Win_fence, win_fence, 2, 3)
BLOCKING(Win_complete, win_complete, 1, 2)
BLOCKING(Win_wait, win_wait, 1, 2)
