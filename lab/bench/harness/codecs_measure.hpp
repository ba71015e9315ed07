// Codecs in turn on the chunks of one field: the answer checked first, then the clock.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codec/verify.hpp"
#include "codecs_options.hpp"
#include "describe/input_file.hpp"

namespace tailrace::bench {

/// A field as it was measured.
struct CodecsField {
  std::string file;
  std::string path;
  DType dtype = DType::f32;
  ChunkGrid grid;
  std::optional<double> fill_value;
  ValueRange range;                   ///< Of the whole field.
  std::vector<std::uint64_t> chunks;  ///< Those measured.
  std::uint64_t raw_bytes = 0;        ///< Of those, without what pads edge chunks.
  std::uint64_t checksum = 0;         ///< FNV-1a over 8-byte words of their values.
};

/// One codec at one bound on one field.
struct CodecsRow {
  std::size_t field = 0;  ///< Index into the fields measured.
  ErrorBound bound;       ///< none for codecs without loss.
  double absolute_bound = 0;
  std::string codec;    ///< CodecChoice::label.
  std::string version;  ///< "built in", or the plug-in's file and version.
  bool ours = false;    ///< Keeps its bound by construction.
  std::string refused;  ///< Why there are no figures; empty: there are.
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  ChunkComparison found;         ///< Of the checked run.
  double psnr = 0;               ///< In dB over the field's range; infinite without loss.
  std::vector<double> encode_s;  ///< Thread CPU time of each round, all chunks together.
  std::vector<double> decode_s;

  double ratio() const {
    return static_cast<double>(raw_bytes) / static_cast<double>(encoded_bytes);
  }
  double error_over_bound() const;
  std::uint64_t n_bad() const { return found.n_beyond_bound + found.n_special_changed; }
};

double median(std::vector<double> values);
/// (largest - smallest) / median.
double spread(const std::vector<double>& values);

/// Take the plug-ins that are not installed out of options.codecs. Main thread only (HDF5).
/// @returns a remark for each. @error invalid_argument, not_found  an unknown codec or setting.
Result<std::vector<std::string>> drop_missing_codecs(CodecsOptions& options);

/// Describe a field and scan its values. Reads all of it, chunk by chunk.
/// @error io_error, corrupt, out_of_memory
Result<CodecsField> scan_field(InputFile& input, std::size_t index, const std::string& file,
                               const CodecsOptions& options);

/// Every codec at every bound, in turn on each chunk. Main thread only (HDF5).
/// @param progress  called with the uncompressed bytes of each chunk that is done.
/// @error io_error, corrupt, out_of_memory; what a codec refuses is in its row.
Result<std::vector<CodecsRow>> measure_field(InputFile& input, std::size_t index,
                                             const CodecsField& field, const CodecsOptions& options,
                                             const std::function<void(std::uint64_t)>& progress);

}  // namespace tailrace::bench
