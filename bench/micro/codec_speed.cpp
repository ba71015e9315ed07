// codec_speed: encode and decode speed, ratio and largest error of codecs on one real dataset.
//
//   codec_speed FILE.h5 DATASET BOUND CODEC[,KEY=VALUE...] ...      BOUND: rel=1e-3, abs=0.1, none
//
// One thread, one chunk (the whole dataset, or its first entry where it is larger than 64 MB).
// The answer is checked before anything is timed. Codecs run in turn (A B A B) for seven rounds;
// printed are medians and the spread (max - min over median) of thread CPU time, in MB (10^6) of
// uncompressed bytes a second. Plug-ins are looked for where HDF5_PLUGIN_PATH says.
// Built by hand; docs/codecs.md has the command and the results.

#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "codec/registry.hpp"
#include "codec/verify.hpp"
#include "container/filter_plugins.hpp"
#include "core/options.hpp"

namespace {

using namespace tailrace;

constexpr int kRounds = 7;
constexpr std::uint64_t kChunkBytesMax = 64U << 20;

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "codec_speed: %s\n", message.c_str());
  std::exit(2);
}

struct Field {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
};

Field read_field(const char* path, const char* dataset_path) {
  const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = file < 0 ? -1 : H5Dopen2(file, dataset_path, H5P_DEFAULT);
  if (dataset < 0) give_up(std::string(path) + ": cannot open " + dataset_path);
  const hid_t type = H5Dget_type(dataset);
  const hid_t space = H5Dget_space(dataset);
  if (H5Tget_class(type) != H5T_FLOAT) give_up("the dataset does not hold real numbers");
  Field field;
  field.dtype = H5Tget_size(type) == 4 ? DType::f32 : DType::f64;
  std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  field.shape.assign(extents.begin(), extents.end());
  const std::size_t element_bytes = dtype_bytes(field.dtype);
  if (n_elements(field.shape) * element_bytes > kChunkBytesMax) field.shape[0] = 1;
  const std::vector<hsize_t> count(field.shape.begin(), field.shape.end());
  const std::vector<hsize_t> start(count.size(), 0);
  const hid_t memory = H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  field.bytes.resize(n_elements(field.shape) * element_bytes);
  const hid_t native = field.dtype == DType::f32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  if (H5Dread(dataset, native, memory, space, H5P_DEFAULT, field.bytes.data()) < 0) {
    give_up("cannot read the dataset");
  }
  return field;
}

struct Row {
  std::string text;
  std::unique_ptr<Codec> codec;
  std::size_t encoded_bytes = 0;
  double error_over_bound = 0;
  bool exact = false;
  std::vector<double> encode_s;
  std::vector<double> decode_s;
};

std::unique_ptr<Codec> make_codec(const std::string& text, const Field& field, double bound) {
  CodecRequest request;
  request.name = text.substr(0, text.find(','));
  if (text.size() > request.name.size()) {
    Result<std::vector<KeyValue>> pairs = split_key_values(text.substr(request.name.size() + 1));
    if (!pairs.ok()) give_up(pairs.status().message());
    request.settings = *pairs;
  }
  request.dtype = field.dtype;
  request.chunk_shape = field.shape;
  request.absolute_bound = bound;
  Result<std::unique_ptr<Codec>> codec =
      is_plugin_codec(request.name) ? make_plugin_codec(request, "") : make_builtin_codec(request);
  if (!codec.ok()) give_up(codec.status().message());
  return std::move(*codec);
}

void run_once(const Field& field, double bound, Row& row) {
  Buffer values = Buffer::copy_of(field.bytes);
  const double start = thread_cpu_s();
  Result<EncodedBytes> encoded = row.codec->encode(std::move(values));
  const double middle = thread_cpu_s();
  if (!encoded.ok()) give_up(encoded.status().message());
  row.encoded_bytes = encoded->buffer.n_bytes();
  const double decode_start = thread_cpu_s();
  Result<Buffer> decoded = row.codec->decode(std::move(*encoded));
  const double end = thread_cpu_s();
  if (!decoded.ok()) give_up(decoded.status().message());
  const ChunkComparison found =
      compare_values(field.dtype, field.bytes, std::as_const(*decoded).bytes(), bound);
  if (!found.within_bound()) std::printf("%s BREAKS THE BOUND\n", row.text.c_str());
  row.exact = found.largest_error == 0;
  row.error_over_bound = bound > 0 ? found.largest_error / bound : 0;
  row.encode_s.push_back(middle - start);
  row.decode_s.push_back(end - decode_start);
}

/// Median throughput in MB/s, and (max - min) / median of the times in percent.
std::string throughput(std::vector<double> seconds, std::size_t n_bytes) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  char text[64];
  std::snprintf(text, sizeof text, "%7.0f (%2.0f %%)", static_cast<double>(n_bytes) / 1e6 / median,
                100 * (seconds.back() - seconds.front()) / median);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) give_up("usage: codec_speed FILE.h5 DATASET BOUND CODEC[,KEY=VALUE...] ...");
  const Field field = read_field(argv[1], argv[2]);
  Result<ErrorBound> asked = parse_error_bound(argv[3]);
  if (!asked.ok()) give_up(asked.status().message());
  if (asked->mode == BoundMode::pw_rel) give_up("BOUND must come to an absolute one");
  const ValueRange range = value_range(field.dtype, field.bytes);
  const double bound = absolute_bound(*asked, range.least, range.greatest);

  std::vector<Row> rows;
  for (int i = 4; i < argc; ++i) {
    rows.push_back({argv[i], make_codec(argv[i], field, bound), 0, 0, false, {}, {}});
    run_once(field, bound, rows.back());  // Checked and warmed up, not counted.
    rows.back().encode_s.clear();
    rows.back().decode_s.clear();
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Row& row : rows) run_once(field, bound, row);
  }
  std::printf("%s %s, %s %s, bound %g\n", argv[1], argv[2],
              std::string(dtype_name(field.dtype)).c_str(), shape_text(field.shape).c_str(), bound);
  std::printf("%-34s %7s %17s %17s %10s\n", "codec", "ratio", "encode MB/s", "decode MB/s",
              "error/bound");
  for (const Row& row : rows) {
    const auto n_bytes = static_cast<double>(field.bytes.size());
    std::printf("%-34s %7.2f %17s %17s %10s\n", row.text.c_str(),
                n_bytes / static_cast<double>(row.encoded_bytes),
                throughput(row.encode_s, field.bytes.size()).c_str(),
                throughput(row.decode_s, field.bytes.size()).c_str(),
                row.exact ? "exact" : std::to_string(row.error_over_bound).substr(0, 6).c_str());
  }
  return 0;
}
