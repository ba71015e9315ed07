// Text about the flushes of a file of an unchanged program, for TAILRACE_REPORT=1.

#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "array/array_options.hpp"
#include "core/options.hpp"
#include "exec/idle_waits.hpp"

namespace tailrace::report {

/// Describe the flushes of a DatasetArray or ArrayFile: "NAME: 8 MiB written, in chunks ...".
template <class Array>
std::string flush_text(const std::string& name, const Array& array) {
  const ArrayFileReport& done = array.report();
  std::string line = name + ": " + bytes_text(done.staged_bytes) + " written, in chunks " +
                     bytes_text(done.raw_bytes) + " as " + bytes_text(done.encoded_bytes);
  char number[64];
  if (done.encoded_bytes > 0) {
    std::snprintf(number, sizeof(number), " (%.2fx)",
                  static_cast<double>(done.raw_bytes) / static_cast<double>(done.encoded_bytes));
    line += number;
  }
  std::snprintf(number, sizeof(number), " in %.3f s", done.flush_s);
  line += ", " + std::to_string(done.n_flushes) + " flushes" + number;
  if (array.flushes_concurrently()) {
    std::snprintf(number, sizeof(number), " and %.3f s concurrently with the program",
                  done.hidden_s);
    line += number;
  }
  const std::string of_chunks = " of " + std::to_string(done.n_chunks) + " chunks ";
  if (array.uses_idle_time()) {
    line += "; " + std::to_string(done.n_chunks_in_waits) + of_chunks +
            "encoded while the program waited in MPI";
    if (find_idle_waits() == nullptr) line += " (libtailrace_idle.so is not loaded)";
  }
  if (done.n_raw_chunks > 0) {
    line += "; " + std::to_string(done.n_raw_chunks) + of_chunks + "stored as they are";
  }
  return line;
}

}  // namespace tailrace::report
