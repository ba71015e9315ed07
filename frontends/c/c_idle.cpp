// The application's idle time, in the C API: marks of the lanes, and the calls that lend its
// thread.
//
// None of these can fail: what goes wrong is kept by the writer for its next collective call.

#include <functional>
#include <limits>

#include "c_handle.hpp"

namespace tailrace {
namespace {

/// Run `action` on the writer; a failure becomes the file's next one, on every rank.
template <class Action>
void lend(tailrace_file* file, Action&& action) noexcept {
  if (file == nullptr) return;
  (void)recorded_on(file, [&] {
    std::forward<Action>(action)(*file->writer);
    return Status();
  });
}

void mark(tailrace_file* file, Lane lane, bool begins) noexcept {
  lend(file, [&](Writer& writer) { writer.mark(lane, begins); });
}

}  // namespace
}  // namespace tailrace

extern "C" {

void tailrace_file_compute_begin(tailrace_file* file) {
  tailrace::mark(file, tailrace::Lane::main, true);
}

void tailrace_file_compute_end(tailrace_file* file) {
  tailrace::mark(file, tailrace::Lane::main, false);
}

void tailrace_file_background_begin(tailrace_file* file) {
  tailrace::mark(file, tailrace::Lane::io, true);
}

void tailrace_file_background_end(tailrace_file* file) {
  tailrace::mark(file, tailrace::Lane::io, false);
}

void tailrace_file_idle(tailrace_file* file, double seconds) {
  tailrace::lend(file, [&](tailrace::Writer& writer) { writer.idle(seconds, {}); });
}

void tailrace_file_idle_until(tailrace_file* file, tailrace_done_callback done, void* user) {
  if (done == nullptr) return;
  tailrace::lend(file, [&](tailrace::Writer& writer) {
    writer.idle(std::numeric_limits<double>::infinity(), [&] { return done(user) != 0; });
  });
}

}  // extern "C"
