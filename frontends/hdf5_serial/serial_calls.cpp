// The calls of serial HDF5 that libtailrace_hdf5_serial.so intercepts when it is preloaded.
//
//  H5Dwrite, H5Dread --> intercepted_datasets.hpp --> else HDF5's own.
//  H5Fcreate, H5Fopen, H5Dcreate --> requests of options (requested_datasets.hpp) --> HDF5's own.
//  calls that read or change chunks, or close an id --> flush --> HDF5's own
//
// Each call acquires Tailrace's lock and then HDF5's. Calls that call the program back acquire it,
// too, so that no two threads wait for each other. Calls are bound by HDF5's version nodes, which
// CMake writes, so calls to another HDF5 in the process are not intercepted.

#include <hdf5.h>
#include <pthread.h>
#include <serial_call_nodes.inc>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/environment.hpp"
#include "filters/own_filters.hpp"
#include "hdf5_serial/intercepted_datasets.hpp"
#include "hdf5_serial/requested_datasets.hpp"
#include "hdf5_serial/serial_hdf5.hpp"
#include "report/loaded_files.hpp"
#include "report/remark.hpp"

namespace tailrace::hdf5_serial {
namespace {

std::uint64_t wanted_threads() {
  const char* const setting = environment_variable("TAILRACE_THREADS");
  char* end = nullptr;
  const long wanted = setting != nullptr ? std::strtol(setting, &end, 10) : 0;
  constexpr long most = 1024;
  if (wanted > 0 && wanted <= most && *end == '\0') return std::uint64_t(wanted);
  if (setting != nullptr && *setting != '\0') {
    report::print_remark({"TAILRACE_THREADS=", setting, ": expected 1 to ", std::to_string(most),
                          "; using all cores"});
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

/// All state, never destroyed: HDF5 is also called while the program ends.
struct State {
  std::recursive_mutex mutex;
  /// Nesting depth of intercepted calls; HDF5 may call back from within one.
  int depth = 0;
  bool begun = false;
  InterceptedDatasets* datasets = nullptr;  ///< Null if nothing is served.
};

State& state() {
  alignas(State) static std::byte room[sizeof(State)];
  static auto* const all = new (room) State;
  return *all;
}

/// Report a failure on stderr and on HDF5's error stack, since few programs print that stack.
void report_failure(const char* call, const char* message) {
  std::fprintf(stderr, "tailrace: %s: %s\n", call, message);
  const SerialHdf5& hdf5 = *serial_hdf5();
  hdf5.H5Eclear2(H5E_DEFAULT);
  hdf5.H5Epush2(H5E_DEFAULT, "tailrace", call, 0, *hdf5.H5E_ERR_CLS_g, *hdf5.H5E_ARGS_g,
                *hdf5.H5E_BADVALUE_g, "%s", message);
}
void report_failure(const char* call, const Status& status) {
  report_failure(call, status.message().c_str());
}

/// Run Tailrace's part of a call. No exception (out of memory) may leave it, since the program is
/// C. @returns `failed` after an exception
template <class Work>
auto guarded(const char* call, const Work& work, decltype(work()) failed) noexcept
    -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception&) {
    report_failure(call, "not enough memory");
    return failed;
  }
}

bool has_served() {
  const State& all = state();
  if (all.datasets == nullptr) return false;
  const SerialReport& report = all.datasets->report();
  return report.n_encoded + report.n_decoded + report.n_left_to_hdf5 > 0;
}

void print_report(const InterceptedDatasets& datasets) {
  const SerialReport& report = datasets.report();
  std::fprintf(stderr,
               "tailrace: serial HDF5: %llu chunks encoded (%llu bytes to %llu), %llu completed, "
               "%llu left to HDF5; %llu decoded; %llu encoded within bounds\n",
               static_cast<unsigned long long>(report.n_encoded),
               static_cast<unsigned long long>(report.value_bytes),
               static_cast<unsigned long long>(report.stored_bytes),
               static_cast<unsigned long long>(report.n_completed),
               static_cast<unsigned long long>(report.n_left_to_hdf5),
               static_cast<unsigned long long>(report.n_decoded),
               static_cast<unsigned long long>(report.n_lossy));
}

/// Handle the end of a file id, or of all ids (H5I_INVALID_HID). Only remarks can fail.
void leave(InterceptedDatasets& datasets, hid_t file) {
  const QuietHdf5 quiet(*serial_hdf5());
  const auto work = [&] {
    datasets.requested_files().leave(file);
    return true;
  };
  static_cast<void>(guarded("H5Fclose", work, false));
}

void at_exit() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.datasets == nullptr) return;
  ++all.depth;
  const bool flushed = guarded(
      "exit", [&] { return all.datasets->flush(); }, false);
  if (!all.datasets->describe() || !flushed) {
    std::fprintf(stderr, "tailrace: some values that the program wrote could not be stored\n");
  }
  leave(*all.datasets, H5I_INVALID_HID);
  --all.depth;
  if (environment_is("TAILRACE_REPORT", "1") && has_served()) print_report(*all.datasets);
}

/// Print why this library served no chunk.
void print_reason_for_nothing() {
  const State& all = state();
  if (report::any_library_served()) return;
  if (all.datasets != nullptr) {
    return report::print_nothing_served("chunk", all.datasets->reasons_for_nothing());
  }
  const std::vector<std::string> loaded = report::loaded_hdf5s();
  if (all.begun) {
    return report::print_nothing_served(
        "chunk", report::with_loaded("the program's HDF5 is not the version that this library "
                                     "serves, 1.10, or lacks functions",
                                     loaded, "HDF5"));
  }
  constexpr const char* kServes = "which serves programs on " TAILRACE_SERIAL_HDF5;
  if (!loaded.empty()) {
    return report::print_nothing_served(
        "chunk",
        report::with_loaded(std::string("no call of HDF5 reached this library, ") + kServes +
                                "; libtailrace_hdf5 serves programs on parallel HDF5",
                            loaded, "HDF5"));
  }
  const std::string version = FileBytes("/proc/self/exe").number_after(kHdf5VersionText);
  if (version.empty()) return;  // A launcher, a shell: not a program on HDF5.
  report::print_nothing_served("chunk", "the program has HDF5 " + version +
                                            " linked statically; link it to the shared library, " +
                                            TAILRACE_SERIAL_HDF5);
}

/// Report at the end of a process that nothing was served; at_exit() has run.
__attribute__((destructor)) void report_at_exit() {
  if (has_served() || environment_is("TAILRACE_HDF5", "off") || !report::reports_at_exit()) return;
  try {
    print_reason_for_nothing();
  } catch (const std::exception&) {
    return;  // Without memory, the process ends silently.
  }
}

// Flush before fork(), so that parent and child do not both write the staged values.
void before_fork() {
  State& all = state();
  all.mutex.lock();
  if (all.datasets == nullptr || all.depth > 0) return;
  ++all.depth;
  static_cast<void>(guarded(
      "fork", [&] { return all.datasets->flush(); }, false));
  --all.depth;
}
void after_fork() { state().mutex.unlock(); }
// A thread of the parent owns the lock, so the child cannot release it.
void after_fork_in_child() { new (&state().mutex) std::recursive_mutex; }

/// One call from the program; it holds the lock until it returns.
class Turn {
 public:
  Turn() : state_(state()), lock_(state_.mutex) {
    ++state_.depth;
    if (!state_.begun) begin();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { --state_.depth; }

  /// Null if HDF5 serves the call, including calls that HDF5 or Tailrace makes internally.
  InterceptedDatasets* datasets() const { return state_.depth == 1 ? state_.datasets : nullptr; }
  bool flush(const char* call) const {
    return guarded(
        call, [&] { return datasets() == nullptr || datasets()->flush(); }, false);
  }

 private:
  void begin() {
    state_.begun = true;
    const SerialHdf5* const hdf5 = environment_is("TAILRACE_HDF5", "off") ? nullptr : serial_hdf5();
    if (hdf5 == nullptr || hdf5->H5open() < 0) return;
    const auto make_datasets = [&] { return new InterceptedDatasets(*hdf5, wanted_threads()); };
    state_.datasets = guarded("begin", make_datasets, nullptr);
    if (state_.datasets == nullptr) return;
    // HDF5 has been initialized, so its own exit handler runs after this one.
    std::atexit(at_exit);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
  }

  State& state_;
  std::lock_guard<std::recursive_mutex> lock_;
};

/// Register Tailrace's filters with HDF5, which then reads and writes such chunks without a
/// plug-in.
void register_filters() {
  for (const hdf5::FilterClass* filter : hdf5::own_filter_classes()) {
    static_cast<void>(serial_hdf5()->H5Zregister(filter));
  }
}

/// Create or open a file. @param open  HDF5's own call.
/// @param made_here  the file is new; otherwise `writes` tells if datasets may be created in it.
template <class Open>
hid_t open_file(const Turn& turn, const char* call, const char* name, bool made_here, bool writes,
                const Open& open) {
  InterceptedDatasets* const datasets = turn.datasets();
  if (datasets == nullptr) return open();
  register_filters();
  hid_t file = H5I_INVALID_HID;
  const auto work = [&] {
    if (!writes) {  // Options do not apply, but it may be the source of H5Ocopy.
      file = open();
      RequestedFiles::File source{name != nullptr ? name : "", {}, false, {}, {}};
      if (file >= 0) datasets->requested_files().enter(file, std::move(source), false);
      return true;
    }
    bool given = false;
    Result<GlobOptions> options = RequestedFiles::read_options(given);
    if (!options.ok()) {
      report_failure(call, options.status().within(name != nullptr ? name : "a file"));
      return true;
    }
    RequestedFiles::File requested{
        name != nullptr ? name : "", std::move(*options), made_here, {}, {}};
    file = open();
    if (file >= 0) datasets->requested_files().enter(file, std::move(requested), given);
    return true;
  };
  if (guarded(call, work, false) || file < 0) return file;
  serial_hdf5()->H5Fclose(file);
  return H5I_INVALID_HID;
}

/// Create a dataset as the options request. @param create  HDF5's own call with a given list.
template <class Create>
hid_t create_dataset(const Turn& turn, const RequestedFiles::Creation& creation,
                     const Create& create) {
  InterceptedDatasets* const datasets = turn.datasets();
  if (datasets == nullptr) return create(creation.list);
  RequestedFiles& files = datasets->requested_files();
  hid_t list = H5I_INVALID_HID;
  std::shared_ptr<RequestedDataset> requested;
  const auto plan = [&] {
    Status planned;
    {
      const QuietHdf5 quiet(*serial_hdf5());
      Result<std::shared_ptr<RequestedDataset>> made = files.plan(creation);
      planned = made.status();
      if (made.ok() && *made != nullptr) {
        requested = *made;
        const Result<hid_t> adapted = files.creation_list(creation, *requested);
        planned = adapted.status();
        if (adapted.ok()) list = files.close_later(*adapted);
      }
    }
    if (!planned.ok()) report_failure("H5Dcreate", planned);
    return planned.ok();
  };
  if (!guarded("H5Dcreate", plan, false)) return H5I_INVALID_HID;
  const hid_t dataset = create(requested != nullptr ? list : creation.list);
  if (dataset < 0) return dataset;
  const auto add = [&] {
    files.add(dataset, requested);
    return true;
  };
  if (guarded("H5Dcreate", add, false)) return dataset;
  serial_hdf5()->H5Dclose(dataset);
  return H5I_INVALID_HID;
}

bool leave_file(InterceptedDatasets& datasets, hid_t file) {
  const bool complete = datasets.forget_all();
  leave(datasets, file);
  return complete;
}

template <class Returned>
Returned failed(Returned result) {
  if constexpr (std::is_signed_v<Returned>) return Returned(-1);
  return result;
}

}  // namespace
}  // namespace tailrace::hdf5_serial

namespace serial = tailrace::hdf5_serial;

/// Symbol by which Tailrace's other libraries recognize this one.
/// @returns 2 once a chunk has been served, else 1
extern "C" __attribute__((visibility("default"), used)) int tailrace_hdf5_serial_loaded(void) {
  return serial::has_served() ? 2 : 1;
}

#define TAILRACE_SERIAL_CALL(returned, name, parameters)                    \
  extern "C" __attribute__((visibility("default"), used))                   \
  returned tailrace_serial_##name parameters;                               \
  __asm__(".symver tailrace_serial_" #name "," #name TAILRACE_NODE_##name); \
  returned tailrace_serial_##name parameters

// Define a call before which the file must hold everything written. `drop` is its additional
// action, which returns false on failure.
// NOLINTBEGIN(bugprone-macro-parentheses): a statement.
#define TAILRACE_SERIAL_FLUSHED(returned, name, parameters, arguments, drop)                   \
  TAILRACE_SERIAL_CALL(returned, name, parameters) {                                           \
    static const auto real = reinterpret_cast<decltype(&::name)>(serial::find_in_hdf5(#name)); \
    if (real == nullptr) return static_cast<returned>(-1);                                     \
    const serial::Turn turn;                                                                   \
    const bool flushed = turn.flush(#name);                                                    \
    bool complete = true;                                                                      \
    if (serial::InterceptedDatasets* const datasets = turn.datasets()) {                       \
      complete = serial::guarded(                                                              \
          #name, [&] { return static_cast<void>(datasets), drop; }, false);                    \
    }                                                                                          \
    const returned result = real arguments;                                                    \
    return flushed && complete ? result : serial::failed(result);                              \
  }
// NOLINTEND(bugprone-macro-parentheses)

// Define a call from which HDF5 calls the program back.
#define TAILRACE_SERIAL_LOCKED(returned, name, parameters, arguments)                          \
  TAILRACE_SERIAL_CALL(returned, name, parameters) {                                           \
    static const auto real = reinterpret_cast<decltype(&::name)>(serial::find_in_hdf5(#name)); \
    if (real == nullptr) return static_cast<returned>(-1);                                     \
    serial::State& all = serial::state();                                                      \
    const std::lock_guard lock(all.mutex);                                                     \
    return real arguments;                                                                     \
  }

TAILRACE_SERIAL_CALL(herr_t, H5Dwrite,
                     (hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t list,
                      const void* values)) {
  static const auto real =
      reinterpret_cast<decltype(&::H5Dwrite)>(serial::find_in_hdf5("H5Dwrite"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  if (serial::InterceptedDatasets* const datasets = turn.datasets()) {
    const auto work = [&] { return datasets->write({dataset, type, memory, file, list}, values); };
    const auto done = serial::guarded("H5Dwrite", work, herr_t{-1});
    if (done) return *done;
  }
  return real(dataset, type, memory, file, list, values);
}

TAILRACE_SERIAL_CALL(herr_t, H5Dread,
                     (hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t list,
                      void* values)) {
  static const auto real = reinterpret_cast<decltype(&::H5Dread)>(serial::find_in_hdf5("H5Dread"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  if (serial::InterceptedDatasets* const datasets = turn.datasets()) {
    const auto work = [&] { return datasets->read({dataset, type, memory, file, list}, values); };
    const auto done = serial::guarded("H5Dread", work, herr_t{-1});
    if (done) return *done;
  }
  return real(dataset, type, memory, file, list, values);
}

TAILRACE_SERIAL_CALL(herr_t, H5Dset_extent, (hid_t dataset, const hsize_t* extents)) {
  static const auto real =
      reinterpret_cast<decltype(&::H5Dset_extent)>(serial::find_in_hdf5("H5Dset_extent"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  serial::InterceptedDatasets* const datasets = turn.datasets();
  const auto work = [&] {
    return datasets == nullptr || datasets->change_extents(dataset, extents);
  };
  if (!serial::guarded("H5Dset_extent", work, false)) return -1;
  return real(dataset, extents);
}

// Calls that apply the options.
TAILRACE_SERIAL_CALL(hid_t, H5Fcreate,
                     (const char* name, unsigned flags, hid_t creation_list, hid_t access_list)) {
  static const auto real =
      reinterpret_cast<decltype(&::H5Fcreate)>(serial::find_in_hdf5("H5Fcreate"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  return serial::open_file(turn, "H5Fcreate", name, true, true,
                           [&] { return real(name, flags, creation_list, access_list); });
}
TAILRACE_SERIAL_CALL(hid_t, H5Fopen, (const char* name, unsigned flags, hid_t access_list)) {
  static const auto real = reinterpret_cast<decltype(&::H5Fopen)>(serial::find_in_hdf5("H5Fopen"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  const bool writes = (flags & serial::access_to_write) != 0;
  return serial::open_file(turn, "H5Fopen", name, false, writes,
                           [&] { return real(name, flags, access_list); });
}
TAILRACE_SERIAL_CALL(hid_t, H5Dcreate2,
                     (hid_t location, const char* name, hid_t type, hid_t space, hid_t link_list,
                      hid_t creation_list, hid_t access_list)) {
  static const auto real =
      reinterpret_cast<decltype(&::H5Dcreate2)>(serial::find_in_hdf5("H5Dcreate2"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  return serial::create_dataset(
      turn, {location, name, type, space, creation_list},
      [&](hid_t list) { return real(location, name, type, space, link_list, list, access_list); });
}
TAILRACE_SERIAL_CALL(hid_t, H5Dcreate1,
                     (hid_t location, const char* name, hid_t type, hid_t space,
                      hid_t creation_list)) {
  static const auto real =
      reinterpret_cast<decltype(&::H5Dcreate1)>(serial::find_in_hdf5("H5Dcreate1"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  return serial::create_dataset(
      turn, {location, name, type, space, creation_list},
      [&](hid_t list) { return real(location, name, type, space, list); });
}

TAILRACE_SERIAL_CALL(hid_t, H5Dcreate_anon,
                     (hid_t location, hid_t type, hid_t space, hid_t creation_list,
                      hid_t access_list)) {
  static const auto real =
      reinterpret_cast<decltype(&::H5Dcreate_anon)>(serial::find_in_hdf5("H5Dcreate_anon"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  const hid_t dataset = real(location, type, space, creation_list, access_list);
  serial::InterceptedDatasets* const datasets = turn.datasets();
  if (datasets == nullptr || dataset < 0) return dataset;
  const auto work = [&] { return datasets->requested_files().add_anonymous(dataset), true; };
  if (serial::guarded("H5Dcreate_anon", work, false)) return dataset;
  serial::serial_hdf5()->H5Dclose(dataset);
  return -1;
}
// Copies have their sources' chunks, so the attributes must be written before.
TAILRACE_SERIAL_CALL(herr_t, H5Ocopy,
                     (hid_t from, const char* from_name, hid_t to, const char* to_name,
                      hid_t copy_list, hid_t link_list)) {
  static const auto real = reinterpret_cast<decltype(&::H5Ocopy)>(serial::find_in_hdf5("H5Ocopy"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  serial::InterceptedDatasets* const datasets = turn.datasets();
  const auto describe = [&] { return datasets == nullptr || datasets->describe(); };
  const bool flushed = turn.flush("H5Ocopy") && serial::guarded("H5Ocopy", describe, false);
  const herr_t copied = real(from, from_name, to, to_name, copy_list, link_list);
  if (datasets == nullptr || copied < 0) return copied;
  const auto work = [&] {
    return datasets->requested_files().add_copy(from, from_name, to, to_name), true;
  };
  return serial::guarded("H5Ocopy", work, false) && flushed ? copied : -1;
}

// Calls that close ids.
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dclose, (hid_t id), (id), datasets->forget(id))
TAILRACE_SERIAL_FLUSHED(herr_t, H5Oclose, (hid_t id), (id), datasets->forget(id))
TAILRACE_SERIAL_FLUSHED(herr_t, H5Fclose, (hid_t id), (id), serial::leave_file(*datasets, id))
TAILRACE_SERIAL_FLUSHED(herr_t, H5close, (void), (), serial::leave_file(*datasets, H5I_INVALID_HID))
TAILRACE_SERIAL_CALL(int, H5Idec_ref, (hid_t id)) {
  static const auto real =
      reinterpret_cast<decltype(&::H5Idec_ref)>(serial::find_in_hdf5("H5Idec_ref"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  serial::InterceptedDatasets* const datasets = turn.datasets();
  if (datasets == nullptr) return real(id);
  const H5I_type_t kind = serial::serial_hdf5()->H5Iget_type(id);
  bool flushed = true;
  if (kind == H5I_DATASET || kind == H5I_FILE) {
    flushed = turn.flush("H5Idec_ref");
    const auto work = [&] {
      return kind == H5I_FILE ? serial::leave_file(*datasets, id) : datasets->forget(id);
    };
    flushed = serial::guarded("H5Idec_ref", work, false) && flushed;
  }
  const int n_left = real(id);
  return flushed ? n_left : -1;
}

// Calls that read chunks or depend on them.
TAILRACE_SERIAL_FLUSHED(herr_t, H5Fflush, (hid_t id, H5F_scope_t scope), (id, scope),
                        datasets->describe())
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dflush, (hid_t id), (id), datasets->describe())
TAILRACE_SERIAL_FLUSHED(herr_t, H5Oflush, (hid_t id), (id), datasets->describe())
TAILRACE_SERIAL_FLUSHED(hsize_t, H5Dget_storage_size, (hid_t id), (id), true)
TAILRACE_SERIAL_FLUSHED(haddr_t, H5Dget_offset, (hid_t id), (id), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dget_space_status, (hid_t id, H5D_space_status_t* status),
                        (id, status), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dget_chunk_storage_size,
                        (hid_t id, const hsize_t* start, hsize_t* n_bytes), (id, start, n_bytes),
                        true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dget_num_chunks, (hid_t id, hid_t space, hsize_t* n),
                        (id, space, n), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dget_chunk_info,
                        (hid_t id, hid_t space, hsize_t index, hsize_t* start, unsigned* mask,
                         haddr_t* address, hsize_t* n_bytes),
                        (id, space, index, start, mask, address, n_bytes), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dget_chunk_info_by_coord,
                        (hid_t id, const hsize_t* start, unsigned* mask, haddr_t* address,
                         hsize_t* n_bytes),
                        (id, start, mask, address, n_bytes), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dread_chunk,
                        (hid_t id, hid_t list, const hsize_t* start, uint32_t* mask, void* bytes),
                        (id, list, start, mask, bytes), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Oget_info1, (hid_t id, H5O_info_t* info), (id, info), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Oget_info2, (hid_t id, H5O_info_t* info, unsigned fields),
                        (id, info, fields), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Fget_filesize, (hid_t id, hsize_t* n_bytes), (id, n_bytes), true)
TAILRACE_SERIAL_FLUSHED(hssize_t, H5Fget_freespace, (hid_t id), (id), true)
TAILRACE_SERIAL_FLUSHED(ssize_t, H5Fget_file_image, (hid_t id, void* bytes, size_t n_bytes),
                        (id, bytes, n_bytes), true)
TAILRACE_SERIAL_FLUSHED(herr_t, H5Fget_vfd_handle, (hid_t id, hid_t list, void** handle),
                        (id, list, handle), true)

// Calls that change chunks, or how they are seen.
TAILRACE_SERIAL_CALL(herr_t, H5Dwrite_chunk,
                     (hid_t id, hid_t list, uint32_t mask, const hsize_t* start, size_t n_bytes,
                      const void* bytes)) {
  static const auto real =
      reinterpret_cast<decltype(&::H5Dwrite_chunk)>(serial::find_in_hdf5("H5Dwrite_chunk"));
  if (real == nullptr) return -1;
  const serial::Turn turn;
  serial::InterceptedDatasets* const datasets = turn.datasets();
  if (datasets != nullptr && datasets->requested_files().has_replaced_filters(id)) {
    serial::report_failure(
        "H5Dwrite_chunk",
        "the program encoded a chunk with filters that TAILRACE_OPTIONS replaces; exclude "
        "this dataset from TAILRACE_OPTIONS");
    return -1;
  }
  const auto work = [&] {
    return datasets == nullptr || datasets->make_way(id, mask, start, n_bytes);
  };
  if (!serial::guarded("H5Dwrite_chunk", work, false)) return -1;
  return real(id, list, mask, start, n_bytes, bytes);
}
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dextend, (hid_t id, const hsize_t* extents), (id, extents),
                        (datasets->drop_decoded(), true))
TAILRACE_SERIAL_FLUSHED(herr_t, H5Drefresh, (hid_t id), (id), datasets->forget(id))
TAILRACE_SERIAL_FLUSHED(herr_t, H5Orefresh, (hid_t id), (id), datasets->forget(id))
TAILRACE_SERIAL_FLUSHED(herr_t, H5Dformat_convert, (hid_t id), (id), datasets->forget(id))
TAILRACE_SERIAL_FLUSHED(herr_t, H5Fstart_swmr_write, (hid_t id), (id), datasets->forget_all())

// Calls that call the program back.
TAILRACE_SERIAL_LOCKED(herr_t, H5Literate,
                       (hid_t id, H5_index_t index, H5_iter_order_t order, hsize_t* at,
                        H5L_iterate_t call, void* data),
                       (id, index, order, at, call, data))
TAILRACE_SERIAL_LOCKED(herr_t, H5Literate_by_name,
                       (hid_t id, const char* name, H5_index_t index, H5_iter_order_t order,
                        hsize_t* at, H5L_iterate_t call, void* data, hid_t list),
                       (id, name, index, order, at, call, data, list))
TAILRACE_SERIAL_LOCKED(herr_t, H5Lvisit,
                       (hid_t id, H5_index_t index, H5_iter_order_t order, H5L_iterate_t call,
                        void* data),
                       (id, index, order, call, data))
TAILRACE_SERIAL_LOCKED(herr_t, H5Lvisit_by_name,
                       (hid_t id, const char* name, H5_index_t index, H5_iter_order_t order,
                        H5L_iterate_t call, void* data, hid_t list),
                       (id, name, index, order, call, data, list))
TAILRACE_SERIAL_LOCKED(herr_t, H5Aiterate2,
                       (hid_t id, H5_index_t index, H5_iter_order_t order, hsize_t* at,
                        H5A_operator2_t call, void* data),
                       (id, index, order, at, call, data))
TAILRACE_SERIAL_LOCKED(herr_t, H5Ovisit1,
                       (hid_t id, H5_index_t index, H5_iter_order_t order, H5O_iterate_t call,
                        void* data),
                       (id, index, order, call, data))
TAILRACE_SERIAL_LOCKED(herr_t, H5Ovisit2,
                       (hid_t id, H5_index_t index, H5_iter_order_t order, H5O_iterate_t call,
                        void* data, unsigned fields),
                       (id, index, order, call, data, fields))
TAILRACE_SERIAL_LOCKED(herr_t, H5Diterate,
                       (void* values, hid_t type, hid_t space, H5D_operator_t call, void* data),
                       (values, type, space, call, data))
TAILRACE_SERIAL_LOCKED(herr_t, H5Giterate,
                       (hid_t id, const char* name, int* at, H5G_iterate_t call, void* data),
                       (id, name, at, call, data))
