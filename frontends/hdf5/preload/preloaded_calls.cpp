// The preloaded library: it exports HDF5's functions under HDF5's names, and contains no HDF5 and
// no engine.
//
//  call --> find the caller's HDF5 --> served, once it has opened a file by MPI: Tailrace's call
//                                  +-> else: that HDF5's own call
//
// Symbol lookup visits a preloaded library's dependencies before private libraries that a program
// loads later. Python modules with HDF5s of their own are an example. So the serving library, which
// needs an HDF5, is loaded only when an HDF5 that it was compiled for creates or opens a file. It
// is loaded with RTLD_LOCAL (docs/adr/0020-one-hdf5-preloaded.md). A call belongs to the HDF5 that
// the caller would have reached without this library. That is the first HDF5 in the global search
// order, else the first one among the dependencies of the caller's own file.
//
// The parameter types are those of HDF5's functions. CMake writes their number, because C++ cannot
// define C functions from a list of types. Ifuncs cannot be used: libraries with immediate binding
// are bound before this one.

#include <dlfcn.h>
#include <hdf5.h>
#include <link.h>
#include <mpi.h>
#include <hdf5_served_calls.inc>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "hdf5/opening.hpp"
#include "hdf5/preload/unserved.hpp"
#include "hdf5/serving_library.hpp"
#include "report/loaded_files.hpp"

namespace tailrace::hdf5_programs {
namespace {

#define TAILRACE_HDF5_INDEX(name, version) index_of_##name,
enum CallIndex : std::size_t { TAILRACE_HDF5_CALLS(TAILRACE_HDF5_INDEX) n_calls };
#undef TAILRACE_HDF5_INDEX
#define TAILRACE_HDF5_NAME(name, version) #name,
constexpr std::array<const char*, n_calls> kCallNames{TAILRACE_HDF5_CALLS(TAILRACE_HDF5_NAME)};
#undef TAILRACE_HDF5_NAME

#define TAILRACE_HDF5_VERSION(name, version) version,
[[maybe_unused]] constexpr const char* first_version =
    std::array<const char*, n_calls>{TAILRACE_HDF5_CALLS(TAILRACE_HDF5_VERSION)}[0];
#undef TAILRACE_HDF5_VERSION

// Versioned calls can target only the parallel HDF5; calls without a version reach the first of
// all.
#ifdef TAILRACE_HDF5_HAS_VERSIONS
constexpr const char* kKnownFunction = "H5Pset_fapl_mpio";
#else
constexpr const char* kKnownFunction = "H5get_libversion";
#endif

using Library = void*;

/// Handle of the loaded file that contains an address.
Library library_of(const void* address) {
  Dl_info found{};
  if (address == nullptr || dladdr(address, &found) == 0) return nullptr;
  return dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/// Folder of this library. Evaluated when it is loaded, because its name may be relative to the
/// program's initial folder.
std::string own_folder() {
  static const std::string folder = [] {
    Dl_info here{};
    if (dladdr(reinterpret_cast<void*>(&own_folder), &here) == 0) return std::string();
    char* const path = realpath(here.dli_fname, nullptr);
    const std::string file = path != nullptr ? path : here.dli_fname;
    std::free(path);
    return file.substr(0, file.rfind('/') + 1);
  }();
  return folder;
}
[[maybe_unused]] const bool folder_is_known = !own_folder().empty();

/// True while MPI is initialized and not finalized; otherwise files are not opened by MPI.
bool mpi_runs() {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return initialised != 0 && finalised == 0;
}

std::string version_text(unsigned major, unsigned minor, unsigned release) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

std::atomic<std::uint64_t> n_openings = 0;
std::atomic<bool> opened_by_mpi = false;

/// Report at the end of a process that nothing was served. No call of MPI or HDF5 need reach this
/// library: MPI_Finalize of Fortran does not, nor does an HDF5 that is linked statically.
__attribute__((destructor)) void report_at_exit() {
  if (!opened_by_mpi) report_nothing(n_openings);
}

/// One HDF5 of the process; never destroyed.
class Hdf5 {
 public:
  explicit Hdf5(Library library) : library_(library) {}

  /// HDF5's own function; null if it has none.
  Hdf5Call own(std::size_t index) {
    Hdf5Call call = own_[index].load(std::memory_order_acquire);
    if (call == nullptr && library_ != nullptr) {
      call = reinterpret_cast<Hdf5Call>(dlsym(library_, kCallNames[index]));
      own_[index].store(call, std::memory_order_release);
    }
    return call;
  }
  /// Table of the serving calls; null if this HDF5 is not served.
  const Hdf5Call* serving() const { return serving_.load(std::memory_order_acquire); }
  /// Test whether this HDF5 can be served when a file is opened by this access list, the first time
  /// that MPI runs. If it cannot, all ranks that open the file agree, over the list's communicator.
  /// @returns false if the call must fail, on all ranks
  bool begin_serving(hid_t access_list) {
    ++n_openings;
    if (library_ == nullptr || !mpi_runs()) return true;
    if (!opened_by_mpi && uses_mpi(access_list)) opened_by_mpi = true;
    if (serving() != nullptr) return true;
    Vote vote;
    if (wanted_off()) {
      // Read each time: a program may set it for some files, and each opening checks it again.
      vote.cast(Opening::by_hdf5, kOffSetting, true);
    } else {
      const std::lock_guard lock(test_mutex_);
      if (!tested_) test_hdf5();
      tested_ = true;
      vote = vote_;
    }
    return serving() != nullptr || leave_to_hdf5(access_list, vote);
  }

 private:
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }

  void test_hdf5() {
    if (function<hid_t (*)()>("H5Pset_fapl_mpio") == nullptr) return;
    try {
      if (is_ours()) load();
    } catch (const std::bad_alloc&) {
      vote_.cast(Opening::by_hdf5, "not enough memory to load " TAILRACE_SERVING_LIBRARY);
    }
  }

  bool is_ours() {
    const auto version = function<herr_t (*)(unsigned*, unsigned*, unsigned*)>("H5get_libversion");
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    if (version == nullptr) return false;
    version(&major, &minor, &release);
    if (major == H5_VERS_MAJOR && minor == H5_VERS_MINOR) return true;
    Dl_info found{};
    dladdr(reinterpret_cast<void*>(version), &found);
    vote_.cast(Opening::by_hdf5,
               "this libtailrace_hdf5 serves parallel HDF5 " +
                   version_text(H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE) +
                   ", but the program's calls reach HDF5 " + version_text(major, minor, release) +
                   " in " + (found.dli_fname != nullptr ? found.dli_fname : "an unknown file") +
                   " (docs/hdf5.md)");
    return false;
  }

  /// Load the serving library from this library's folder.
  void load() {
    const std::string path = own_folder() + TAILRACE_SERVING_LIBRARY;
    void* const loaded = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    const auto serving = reinterpret_cast<decltype(&tailrace_hdf5_serving)>(
        loaded != nullptr ? dlsym(loaded, "tailrace_hdf5_serving") : nullptr);
    if (serving == nullptr) {
      const char* const why = dlerror();
      vote_.cast(Opening::by_hdf5,
                 why != nullptr ? std::string_view(why) : path + " cannot be loaded");
    } else if (library_of(serving()->hdf5) != library_) {
      vote_.cast(Opening::by_hdf5, path + " calls another HDF5 than the program (docs/hdf5.md)");
    } else {
      serving_.store(serving()->calls, std::memory_order_release);
    }
  }

  /// Agree with the other ranks, which may have what this one lacks, and would wait for it. Uses
  /// only functions of that HDF5 that are the same in all versions. Obtaining the communicator is
  /// collective, so all ranks do so.
  bool leave_to_hdf5(hid_t access_list, Vote& vote) const {
    const auto mpi_of = function<herr_t (*)(hid_t, MPI_Comm*, MPI_Info*)>("H5Pget_fapl_mpio");
    if (mpi_of == nullptr || !uses_mpi(access_list)) return true;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info info = MPI_INFO_NULL;
    if (mpi_of(access_list, &comm, &info) < 0 || comm == MPI_COMM_NULL) return true;
    agree_on_opening(comm, vote);
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    if (vote.opening == Opening::by_hdf5) return true;
    // Printed, because this library has no HDF5 whose error stack could hold the error.
    std::fprintf(stderr, "tailrace: cannot open a file: %s\n", vote.why);
    return false;
  }

  /// True if a file access list has HDF5's driver of MPI-IO.
  bool uses_mpi(hid_t access_list) const {
    const auto driver_of = function<hid_t (*)(hid_t)>("H5Pget_driver");
    const auto mpi_driver = function<hid_t (*)()>("H5FD_mpio_init");
    // Variable of HDF5 2; a program that uses such a variable has its own copy of it.
    const auto* mpi_driver_there = static_cast<const hid_t*>(dlsym(RTLD_DEFAULT, "H5FD_MPIO_id_g"));
    if (mpi_driver_there == nullptr) {
      mpi_driver_there = function<const hid_t*>("H5FD_MPIO_id_g");
    }
    if (access_list == H5P_DEFAULT || driver_of == nullptr) return false;
    if (mpi_driver == nullptr && mpi_driver_there == nullptr) return false;
    const hid_t wanted = mpi_driver != nullptr ? mpi_driver() : *mpi_driver_there;
    // HDF5 1.8 has 32-bit ids.
    return static_cast<std::int32_t>(driver_of(access_list)) == static_cast<std::int32_t>(wanted);
  }

  Library library_;
  std::array<std::atomic<Hdf5Call>, n_calls> own_{};
  std::atomic<const Hdf5Call*> serving_ = nullptr;
  std::mutex test_mutex_;
  /// Guarded by test_mutex_; once true, the members below do not change.
  bool tested_ = false;
  Vote vote_;  ///< Vote if this HDF5 is not served.
};

/// Calling file of the process: its code's address range, and its HDF5.
struct Caller {
  std::uintptr_t begin = 0;
  std::uintptr_t end = UINTPTR_MAX;
  Hdf5* hdf5 = nullptr;
};

/// All known callers. Entries are added under a lock and never change, so readers need no lock.
class Callers {
 public:
  Hdf5& hdf5_of(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (const Caller* known = find(at)) return *known->hdf5;
    // Look up before locking: the dynamic linker has a lock of its own.
    Caller caller = place_of(at);
    const void* function = dlsym(RTLD_NEXT, kKnownFunction);
    if (function == nullptr) {
      const Library file = library_of(address);
      if (file != nullptr) function = dlsym(file, kKnownFunction);
    }
    // A function that ends in a tail call leaves its caller's address, and that file need not use
    // HDF5. Then the result is not stored, and the next call decides again.
    const bool certain = function != nullptr;
    const Library library = library_of(certain ? function : function_of_any());
    static_cast<void>(dlerror());  // A failed lookup must not be visible to the program.
    const std::lock_guard lock(adding_);
    caller.hdf5 = &known_hdf5(library);
    const std::size_t n = n_.load(std::memory_order_relaxed);
    if (certain && n < callers_.size() && find(at) == nullptr) {
      callers_[n] = caller;
      n_.store(n + 1, std::memory_order_release);
    }
    return *caller.hdf5;
  }

 private:
  const Caller* find(std::uintptr_t at) const {
    const std::size_t n = n_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < n; ++i) {
      if (at >= callers_[i].begin && at < callers_[i].end) return &callers_[i];
    }
    return nullptr;
  }

  static Caller place_of(std::uintptr_t at) {
    struct Search {
      std::uintptr_t at;
      Caller found;
    } search{at, {at, at + 1, nullptr}};
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* into) {
          auto& wanted = *static_cast<Search*>(into);
          for (int i = 0; i < object->dlpi_phnum; ++i) {
            const auto& part = object->dlpi_phdr[i];
            const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
            if (part.p_type != PT_LOAD || wanted.at < begin || wanted.at >= begin + part.p_memsz) {
              continue;
            }
            wanted.found = {begin, begin + part.p_memsz, nullptr};
            return 1;
          }
          return 0;
        },
        &search);
    return search.found;
  }

  /// Find the function in the first loaded file that is an HDF5 with these calls.
  static const void* function_of_any() {
    for (const std::string& file : report::loaded_files()) {
      const Library library =
          file.empty() ? nullptr : dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
      const void* const function = library != nullptr ? dlsym(library, kKnownFunction) : nullptr;
      if (function != nullptr && library_of(function) == library && has_node(library)) {
        return function;
      }
    }
    return nullptr;
  }

  static bool has_node([[maybe_unused]] Library library) {
#ifdef TAILRACE_HDF5_HAS_VERSIONS
    return dlvsym(library, kCallNames[0], first_version + 1) != nullptr;  // skip the leading "@"
#else
    return true;
#endif
  }

  Hdf5& known_hdf5(Library library) {
    for (std::size_t i = 0; i < n_libraries_; ++i) {
      if (libraries_[i] == library) return *hdf5s_[i];
    }
    auto* const added = new Hdf5(library);
    if (n_libraries_ < libraries_.size()) {
      libraries_[n_libraries_] = library;
      hdf5s_[n_libraries_++] = added;
    }
    return *added;
  }

  std::array<Caller, 256> callers_{};
  std::atomic<std::size_t> n_ = 0;
  std::array<Library, 32> libraries_{};
  std::array<Hdf5*, 32> hdf5s_{};
  std::size_t n_libraries_ = 0;
  std::mutex adding_;
};

Callers& callers() {
  static auto* const all = new Callers;
  return *all;
}

/// Index of the access list among the parameters of a call that opens a file; -1 for other calls.
/// The asynchronous calls have three additional parameters at the front.
constexpr int access_list_at(std::string_view name) {
  if (name == "H5Fcreate") return 3;
  if (name == "H5Fcreate_async") return 6;
  if (name == "H5Fopen") return 2;
  return name == "H5Fopen_async" ? 5 : -1;
}

template <class Function, std::size_t index>
struct Preloaded;
template <class Returned, class... Given, std::size_t index>
struct Preloaded<Returned(Given...), index> {
  using Parameters = std::tuple<Given...>;

  static Returned call(const void* caller, Given... given) {
    Hdf5& hdf5 = callers().hdf5_of(caller);
    constexpr int at = access_list_at(kCallNames[index]);
    if constexpr (at >= 0) {
      if (!hdf5.begin_serving(std::get<at>(std::tie(given...)))) return static_cast<Returned>(-1);
    }
    const Hdf5Call* const serving = hdf5.serving();
    const Hdf5Call found = serving != nullptr ? serving[index] : hdf5.own(index);
    if (found == nullptr) {
      std::fprintf(stderr, "tailrace: the HDF5 of this program does not have %s\n",
                   kCallNames[index]);
      return static_cast<Returned>(-1);
    }
    return reinterpret_cast<Returned (*)(Given...)>(found)(given...);
  }
};

}  // namespace
}  // namespace tailrace::hdf5_programs

#define TAILRACE_PRELOADED(name) \
  tailrace::hdf5_programs::Preloaded<decltype(::name), tailrace::hdf5_programs::index_of_##name>
#define TAILRACE_PARAMETER(name, i) \
  std::tuple_element_t<i, TAILRACE_PRELOADED(name)::Parameters> given_##i
#define TAILRACE_BEHIND(...) __VA_OPT__(, ) __VA_ARGS__

// Export with that library's version node, so that calls for another HDF5 do not come here. For an
// HDF5 without versions, export with the first node here: only unversioned calls reach it.
#define TAILRACE_HDF5_BIND(name, version)                                               \
  extern "C" __attribute__((visibility("default"), used)) auto tailrace_##name(         \
      TAILRACE_PARAMETERS_##name) {                                                     \
    return TAILRACE_PRELOADED(name)::call(__builtin_return_address(0)                   \
                                              TAILRACE_BEHIND(TAILRACE_VALUES_##name)); \
  }                                                                                     \
  __asm__(".symver tailrace_" #name "," #name version);
TAILRACE_HDF5_CALLS(TAILRACE_HDF5_BIND)

/// Unprefixed symbol by which a caller can test whether this library is loaded.
/// @returns 2 once a call has opened a file by MPI-IO, else 1
extern "C" __attribute__((visibility("default"), used)) int tailrace_hdf5_loaded(void) {
  return tailrace::hdf5_programs::opened_by_mpi ? 2 : 1;
}
