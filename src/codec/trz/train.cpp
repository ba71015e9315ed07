// Training of shared books.

#include "codec/trz/train.hpp"

#include <cmath>

#include "codec/trz/choose.hpp"
#include "codec/trz/chunk_header.hpp"
#include "codec/trz/float_environment.hpp"
#include "codec/trz/lattice_coding.hpp"

namespace tailrace::trz {
namespace {

template <class T>
Status count_floats(const ChunkType& type, const Settings& settings, const T* values,
                    BookHistograms& histograms, Workspace& workspace) {
  T fill_value{};
  const T* fill = nullptr;
  if (type.fill_value && !std::isnan(*type.fill_value)) {
    fill_value = static_cast<T>(*type.fill_value);
    fill = &fill_value;
  }
  LatticeJob<T> job;
  job.values = values;
  job.extents = extents_of(type.shape, settings.dimensions);
  job.fill = fill;
  const Sampled sampled =
      sample_chunk<T>(values, job.extents, fill, type.bound, settings, workspace.isa());
  const std::optional<Lattice<T>> lattice = make_lattice<T>(type.bound, sampled.offset);
  if (!lattice || sampled.all_equal || settings.preset == Preset::fast) return {};
  job.lattice = *lattice;
  job.prediction = sampled.best();

  const std::size_t n = values_in(job.extents);
  const Status memory_out(Code::out_of_memory, "trz: no memory to count a chunk's codes");
  auto* bits = workspace.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n));
  OutgoingCodes codes;
  if (bits == nullptr || !codes.prepare(n, job.form, workspace)) return memory_out;
  PatchMap patches(bits, n);
  if (!predict_all(job, codes, patches, workspace)) return memory_out;
  static_cast<void>(codes.finish());
  codes.count(histograms);
  return {};
}

}  // namespace

Status count_for_book(const ChunkType& type, const Settings& settings,
                      std::span<const std::byte> values, BookHistograms& histograms,
                      Workspace& workspace) {
  const std::uint64_t n = n_elements(type.shape);
  if (!is_floating(type.dtype) || type.kind != BoundKind::absolute || !(type.bound > 0)) {
    return {Code::invalid_argument, "trz: a shared book needs f32 or f64 and an absolute bound"};
  }
  if (n > values.size() || values.size() != n * dtype_bytes(type.dtype)) {
    return {Code::invalid_argument, "trz: the values do not fill a chunk of this shape"};
  }
  if (n < 2) return {};
  const FloatEnvironment environment;
  if (type.dtype == DType::f32) {
    return count_floats(type, settings, reinterpret_cast<const float*>(values.data()), histograms,
                        workspace);
  }
  return count_floats(type, settings, reinterpret_cast<const double*>(values.data()), histograms,
                      workspace);
}

}  // namespace tailrace::trz
