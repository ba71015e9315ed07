// Content of a tailrace_file, and the single place that converts failures to numbers and texts.
//
// Every function of the C API runs its body through guarded(). A failed Status is stored (for the
// thread, and for the file if any) and returned as its pinned number. Standard library exceptions,
// of which only bad_alloc is expected, never cross into C. Only translates; tailrace::Writer
// defines validity and meaning.

#pragma once

#include <unistd.h>

#include <cfenv>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/comm_factory.hpp"
#include "tailrace/tailrace.h"
#include "write/write.hpp"

namespace tailrace {

/// A StepReport in the form of the C API: plain structs that point into the members here.
struct HeldReport {
  StepReport step;
  std::vector<std::string> bounds;
  std::vector<tailrace_field_report> fields;
  std::vector<const tailrace_field_report*> field_pointers;
  tailrace_step_report report{};
};

/// Store a failure's text for tailrace_thread_error and, unless `file` is NULL,
/// tailrace_file_error.
/// Not collective. Thread-safe for different files. Never throws.
tailrace_error remember(tailrace_file* file, Code code, const char* message) noexcept;

/// The C API numbers dtypes from 1, in the order of DType.
static_assert(static_cast<int>(DType::f32) + 1 == TAILRACE_F32 &&
              static_cast<int>(DType::i8) + 1 == TAILRACE_I8 &&
              static_cast<int>(DType::u8) + 1 == TAILRACE_U8 &&
              static_cast<int>(DType::u64) + 1 == TAILRACE_U64);
inline tailrace_dtype c_dtype(DType dtype) {
  return static_cast<tailrace_dtype>(static_cast<int>(dtype) + 1);
}
/// Convert a number to a DType; nothing if it is not a dtype.
inline std::optional<DType> dtype_of(tailrace_dtype dtype) {
  if (dtype < TAILRACE_F32 || dtype > TAILRACE_U64) return std::nullopt;
  return static_cast<DType>(dtype - 1);
}

/// Make the Comm for TAILRACE_MPI(...), or for only this process.
inline Result<std::unique_ptr<Comm>> given_comm(const void* mpi_comm, std::size_t mpi_comm_bytes) {
  return mpi_comm == nullptr ? make_self_comm() : make_mpi_comm(mpi_comm, mpi_comm_bytes);
}

/// Add to a failure that ranks cause each other if each writes the same file alone: the program has
/// several ranks, and has given no communicator.
inline Status with_communicator_hint(const Status& failure, bool alone) {
  const bool by_others = failure.message().find(" is being written by ") != std::string::npos ||
                         failure.message().find(" while this job wrote it") != std::string::npos;
  if (!alone || failure.ok()) return failure;
  if (failure.code() != Code::bad_coverage && failure.code() != Code::already_exists &&
      !(failure.code() == Code::io_error && by_others)) {
    return failure;
  }
  const int n_ranks = n_ranks_of_program();
  const int n_launched = n_ranks_launched();
  if (n_launched > 1) {
    return Status(failure.code(), failure.message() +
                                      "; this process opened the file for itself: MPI_Init has not "
                                      "been called yet on " +
                                      std::to_string(n_launched) +
                                      " ranks; call it first, and pass the communicator");
  }
  if (n_ranks == 1) return failure;
  return Status(failure.code(),
                failure.message() + "; this process opened the file for itself, but MPI has " +
                    std::to_string(n_ranks) +
                    " ranks: to share the file, pass the communicator (C: TAILRACE_MPI(comm), "
                    "C++: tailrace::mpi(comm), Fortran: comm=)");
}

}  // namespace tailrace

namespace tailrace {

/// State of a file from create or open until close or abandon.
struct OpenedFile {
  std::unique_ptr<Writer> writer;
  FieldOptions field_defaults;
  std::vector<Shape> shapes;       ///< Shapes by field number, without the time dimension.
  std::vector<std::string> paths;  ///< Paths by field number.
  std::unordered_map<std::string, tailrace_field> field_of_path;
  std::set<std::string> times;          ///< Paths given to tailrace_time_set.
  std::set<std::string> times_of_step;  ///< Paths given to it since the last end_step.
  std::unique_ptr<HeldReport> last_report;
  std::string path;
  bool alone = false;  ///< Opened without a communicator.
  CopyFromDevice copy_from_device;
  LogCallback log;  ///< The writer's callback, also used if the file is abandoned.
  /// Set if a call has failed since the last good end_step: number of steps whose loss its text
  /// names, from the first one.
  std::optional<std::uint64_t> n_reported;
  pid_t pid = ::getpid();
};

/// All handles of one kind. They are never freed or reused, so that a program that uses the handle
/// of a closed file gets an error.
template <class Handle>
struct Handles {
  std::mutex mutex;
  std::deque<Handle> all;

  static Handles& instance() {
    static auto* handles = new Handles;
    return *handles;
  }
};

template <class Handle>
Handle* new_handle(Handle content) {
  auto& [mutex, all] = Handles<Handle>::instance();
  const std::lock_guard lock(mutex);
  return &all.emplace_back(std::move(content));
}

}  // namespace tailrace

struct tailrace_file {
  std::unique_ptr<tailrace::OpenedFile> opened;  ///< Null: closed.
  std::string error;
};

namespace tailrace {

/// Masks floating-point exceptions until the end of the scope. Then restores the program's traps
/// and flags. Codecs raise exceptions with denormal numbers, for example, and a program may trap
/// them (gfortran -ffpe-trap). Threads that start in the scope inherit the mask.
class MaskedFloats {
 public:
  MaskedFloats() { std::feholdexcept(&programs_); }
  ~MaskedFloats() { std::fesetenv(&programs_); }
  MaskedFloats(const MaskedFloats&) = delete;
  MaskedFloats& operator=(const MaskedFloats&) = delete;

 private:
  std::fenv_t programs_;
};

/// Run `action`, which returns a Status, and store its failure. Never throws.
template <class Action>
tailrace_error guarded(tailrace_file* file, Action&& action) noexcept {
  const MaskedFloats masked;
  try {
    const Status status = std::forward<Action>(action)();
    return status.ok() ? TAILRACE_OK : remember(file, status.code(), status.message().c_str());
  } catch (const std::bad_alloc&) {
    return remember(file, Code::out_of_memory, "out of memory");
  } catch (const std::exception& exception) {
    return remember(file, Code::internal, exception.what());
  } catch (...) {
    return remember(file, Code::internal, "unknown exception");
  }
}

/// Run `action` on a file, which must be open, and opened by this process; store its failure.
template <class Action>
tailrace_error guarded_on(tailrace_file* file, Action&& action) noexcept {
  const char* wrong = nullptr;
  if (file == nullptr) {
    wrong = "the file is not open: it is closed, or create or open has failed (NULL)";
  } else if (file->opened == nullptr) {
    wrong = "the file is closed";
  } else if (file->opened->pid != ::getpid()) {
    wrong = "the file was opened before fork(); only the parent process can write it";
  }
  if (wrong != nullptr) return remember(file, Code::invalid_argument, wrong);
  const bool alone = file->opened->alone;
  const tailrace_error error =
      guarded(file, [&] { return with_communicator_hint(std::forward<Action>(action)(), alone); });
  if (error != TAILRACE_OK && !file->opened->n_reported) file->opened->n_reported = 0;
  return error;
}

/// Run `action`, which only records, and report its failure to the writer, too. The next end_step
/// then fails on every rank, whichever rank failed.
template <class Action>
tailrace_error recorded_on(tailrace_file* file, Action&& action) noexcept {
  return guarded_on(file, [&] {
    const Status status = std::forward<Action>(action)();
    if (!status.ok()) file->opened->writer->note_failure(status);
    return status;
  });
}

}  // namespace tailrace
