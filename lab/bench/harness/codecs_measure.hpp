// Codecs in turn on the chunks of one field: the result is checked first, then timed.

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

/// Measured field.
struct CodecsField {
  std::string file;
  std::string path;
  DType dtype = DType::f32;
  ChunkGrid grid;
  std::optional<double> fill_value;
  ValueRange range;                   ///< Range of the complete field.
  std::vector<std::uint64_t> chunks;  ///< Indices of the measured chunks.
  std::uint64_t raw_bytes = 0;        ///< Their bytes, without the padding of edge chunks.
  std::uint64_t checksum = 0;         ///< FNV-1a over 8-byte words of their values.
};

/// Results of one codec at one bound on one field.
struct CodecsRow {
  std::size_t field = 0;  ///< Index into the measured fields.
  ErrorBound bound;       ///< "none" for lossless codecs.
  double absolute_bound = 0;
  std::string codec;    ///< CodecChoice::label.
  std::string version;  ///< "built in", or the plug-in's file and version.
  bool ours = false;    ///< The codec enforces its bound by construction.
  std::string refused;  ///< Reason why the row has no figures; empty: it has.
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  ChunkComparison found;         ///< Comparison of the checked run.
  double psnr = 0;               ///< PSNR in dB over the field's range; infinite if lossless.
  std::vector<double> encode_s;  ///< Thread CPU time of each round, summed over the chunks.
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

/// Remove codecs whose plug-ins are not installed from options.codecs. Main thread only (HDF5).
/// @returns a remark for each. @error invalid_argument, not_found  an unknown codec or setting.
Result<std::vector<std::string>> drop_missing_codecs(CodecsOptions& options);

/// Describe a field and scan its values. Reads the complete field, chunk by chunk.
/// @error io_error, corrupt, out_of_memory
Result<CodecsField> scan_field(InputFile& input, std::size_t index, const std::string& file,
                               const CodecsOptions& options);

/// Measure every codec at every bound, in turn on each chunk. Main thread only (HDF5).
/// @param progress  called with the uncompressed bytes of each completed chunk.
/// @error io_error, corrupt, out_of_memory; a codec's refusal goes into its row.
Result<std::vector<CodecsRow>> measure_field(InputFile& input, std::size_t index,
                                             const CodecsField& field, const CodecsOptions& options,
                                             const std::function<void(std::uint64_t)>& progress);

}  // namespace tailrace::bench
