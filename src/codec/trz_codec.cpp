// trz: our own error-bounded codec (trz/src/trz) as a codec of the registry.
//
// One filter stage. Its client data equal those that the plug-in's set_local would write, so that
// any HDF5 with libh5trz.so reads and appends to our files. Chunk bytes equal those that HDF5's
// pipeline would write.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "codec/auto_book.hpp"
#include "codec/registry.hpp"
#include "core/codec_settings.hpp"
#include "core/filter_pipeline.hpp"
#include "trz/book/book_counter.hpp"
#include "trz/client_data.hpp"
#include "trz/predict/choose.hpp"
#include "trz/region_bound.hpp"
#include "trz/trz.hpp"

namespace tailrace {
namespace {

/// The workspaces of the process. A call takes one and returns it. The pool holds as many as the
/// maximum number of concurrent calls, for any number of codecs and of short-lived threads.
class WorkspacePool {
 public:
  std::unique_ptr<trz::Workspace> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<trz::Workspace> workspace = std::move(idle_.back());
        idle_.pop_back();
        return workspace;
      }
    }
    return std::make_unique<trz::Workspace>();
  }
  void give_back(std::unique_ptr<trz::Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(workspace));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<trz::Workspace>> idle_;
};

WorkspacePool& workspace_pool() {
  static auto* pool = new WorkspacePool;  // Never destroyed: threads may outlive static objects.
  return *pool;
}

/// A workspace for the duration of one call.
class BorrowedWorkspace {
 public:
  BorrowedWorkspace() : workspace_(workspace_pool().take()) {}
  BorrowedWorkspace(const BorrowedWorkspace&) = delete;
  BorrowedWorkspace& operator=(const BorrowedWorkspace&) = delete;
  ~BorrowedWorkspace() { workspace_pool().give_back(std::move(workspace_)); }

  trz::Workspace& operator*() { return *workspace_; }

 private:
  std::unique_ptr<trz::Workspace> workspace_;
};

FilterSpec trz_spec(const trz::FilterRequest& request, const trz::FilterChunk& chunk) {
  // Mandatory: a reader must have the filter.
  return {trz::filter_id, 0, trz::client_words(request), trz::client_words(request, chunk),
          trz::filter_name};
}

/// Reduce a failure to the two cases that callers distinguish: a chunk that cannot be encoded, and
/// lack of memory.
Status as_codec_failure(const Status& failure) {
  if (failure.code() == Code::out_of_memory) return failure;
  return Status(Code::codec_failed, failure.message());
}

/// Sample for the gain of preset max, which is about the same as on the complete chunk
/// (trz/DESIGN.md): a share of the chunk's values, and a minimum. For small chunks that would be
/// most values, so a mean gain is used.
constexpr double kFittedSampleShare = 0.03;
constexpr double kFittedSampleLeast = 32'000;
constexpr double kFittedChunkLeast = 100'000;
constexpr double kFittedShareMean = 0.95;
constexpr double kFittedShareLeast = 0.7;  ///< Smallest share ever seen.
constexpr double kFittedShareSpread = 0.05;

/// A box with about `n_values` values in the middle of `values`, its edges as equal as possible.
StridedValues middle_of(const StridedValues& values, double n_values) {
  const std::size_t n_dims = values.shape.size();
  std::vector<std::size_t> by_extent(n_dims);
  std::iota(by_extent.begin(), by_extent.end(), std::size_t{0});
  std::ranges::sort(by_extent, {}, [&](std::size_t d) { return values.shape[d]; });
  StridedValues middle = values;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < n_dims; ++i) {
    const std::size_t d = by_extent[i];
    const double edge = std::ceil(std::pow(n_values, 1 / static_cast<double>(n_dims - i)));
    if (edge < static_cast<double>(values.shape[d])) {
      middle.shape[d] = std::max<std::uint64_t>(static_cast<std::uint64_t>(edge), 1);
    }
    offset += (values.shape[d] - middle.shape[d]) / 2 * values.strides[d];
    n_values /= static_cast<double>(middle.shape[d]);
  }
  middle.data += offset * dtype_bytes(values.dtype);
  return middle;
}

/// The coarse views of nested chunks. They halve the axes that the predictor sees. These are at
/// most three: slower axes are merged, and a merged axis can be halved only along its fastest part,
/// if that divides evenly.
class TrzViews final : public CoarseViews {
 public:
  TrzViews(const trz::ChunkType& type, const trz::Settings& settings)
      : type_(type), settings_(settings) {}

  /// True if chunks of this type and these settings may have views.
  bool possible() const {
    const bool interpolates =
        settings_.predictor == trz::Predictor::interpolation ||
        (settings_.predictor == trz::Predictor::automatic && settings_.preset != trz::Preset::fast);
    return settings_.coarse_views > 0 && interpolates && is_floating(type_.dtype) &&
           type_.kind == trz::BoundKind::absolute && type_.bound > 0;
  }

  Shape view_shape(int level) const override {
    if (level > trz::coarse_views_of(type_, settings_)) return {};
    const std::uint64_t step = std::uint64_t{1} << level;
    int n_axes_left = settings_.dimensions == 0 ? 3 : std::min(settings_.dimensions, 3);
    std::uint64_t slowest = 1;
    Shape shape = type_.shape;
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent) {
      if (*extent == 1) continue;
      if (n_axes_left == 0) return slowest % step == 0 ? shape : Shape();
      --n_axes_left;
      slowest = *extent;
      *extent = (*extent + step - 1) / step;
    }
    return shape;
  }

  std::uint64_t head_bytes() const override { return trz::kViewHeadBytes; }

  std::optional<std::pair<std::uint64_t, std::uint64_t>> find(std::span<const std::byte> beginning,
                                                              int level) const override {
    const auto view = trz::coarse_view(type_, settings_, beginning, level);
    if (!view) return std::nullopt;
    return std::pair<std::uint64_t, std::uint64_t>{view->begin, view->n_bytes};
  }

  Status decode(std::span<const std::byte> view, std::span<std::byte> values) const override {
    BorrowedWorkspace workspace;
    const Status done = trz::decode(view, values, type_.book, *workspace);
    return done.ok() ? done : as_codec_failure(done);
  }

 private:
  const trz::ChunkType& type_;
  const trz::Settings& settings_;
};

/// The prefixes of refined chunks.
class TrzPrefixes final : public BoundPrefixes {
 public:
  TrzPrefixes(const trz::ChunkType& type, const trz::Settings& settings)
      : type_(type), settings_(settings) {}

  /// True if chunks of this type and these settings may be refined.
  bool possible() const {
    return settings_.bit_planes > 0 && is_floating(type_.dtype) &&
           type_.kind == trz::BoundKind::absolute && type_.bound > 0;
  }

  std::uint64_t head_bytes() const override { return trz::kPrefixHeadBytes; }
  /// A chunk with a region's tighter bound is read completely.
  double least_bound() const override { return 2 * type_.bound; }

  std::optional<std::uint64_t> find(std::span<const std::byte> beginning,
                                    double bound) const override {
    return trz::bound_prefix(beginning, bound);
  }

  Status decode(std::span<const std::byte> prefix, std::span<std::byte> values) const override {
    BorrowedWorkspace workspace;
    const Status done = trz::decode_prefix(prefix, values, type_.book, *workspace);
    return done.ok() ? done : as_codec_failure(done);
  }

 private:
  const trz::ChunkType& type_;
  const trz::Settings& settings_;
};

class TrzStage final : public OwnStage {
 public:
  /// `book` is the parsed form of request.book_bytes. `counter` may be null.
  TrzStage(FilterSpec spec, const trz::FilterRequest& request, const trz::FilterChunk& chunk,
           std::unique_ptr<trz::Book> book, std::shared_ptr<trz::BookCounter> counter,
           ValueGuards guards)
      : OwnStage(std::move(spec)),
        guards_(std::move(guards)),
        settings_(request.settings),
        book_(std::move(book)),
        counter_(std::move(counter)),
        chunk_bytes_(chunk.n_bytes()) {
    type_.dtype = chunk.dtype;
    type_.shape = chunk.shape;
    type_.kind = request.kind;
    type_.bound = request.bound;
    type_.fill_value = chunk.fill_value;
    type_.book = book_.get();
    if (type_.kind == trz::BoundKind::absolute) {
      const auto [chosen, least] = trz::bound_for_regions(
          guards_.tighter, type_.bound, dtype_bytes(type_.dtype), settings_.coarse_views > 0);
      type_.bound = chosen;
      if (!guards_.tighter.empty()) set_without_patches(least);
    }
    if (!guards_.empty()) type_.guards = &guards_;
  }

  const trz::ChunkType& type() const { return type_; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return trz::encoded_bytes_max(n_bytes);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    // Guards are checked on decoded values.
    return trz::encoded_bytes_max(n_bytes) + (type_.guards != nullptr ? n_bytes : 0) +
           trz::working_bytes_max(n_bytes, type_, settings_);
  }
  bool lossy() const override { return type_.kind != trz::BoundKind::exact; }
  bool keeps_value(double value) const override {
    return std::isnan(value) ||
           (type_.fill_value &&
            std::bit_cast<std::uint64_t>(*type_.fill_value) == std::bit_cast<std::uint64_t>(value));
  }
  const CoarseViews* coarse_views() const override { return views_.possible() ? &views_ : nullptr; }
  const BoundPrefixes* bound_prefixes() const override {
    return prefixes_.possible() ? &prefixes_ : nullptr;
  }

  Result<std::size_t> encode_into(std::span<const std::byte> values,
                                  std::span<std::byte> to) const override {
    if (values.size() != chunk_bytes_) return wrong_chunk();
    BorrowedWorkspace workspace;
    Result<std::size_t> n_bytes = encode_counted(values, to, *workspace);
    if (!n_bytes.ok()) return as_codec_failure(n_bytes.status());
    if (!without_patches_) return n_bytes;
    Buffer other(trz::encoded_bytes_max(values.size()));
    if (!other.allocated()) return no_memory(values.size());
    const Result<std::size_t> n_other =
        trz::encode(*without_patches_, settings_, values, other.bytes(), *workspace);
    if (!n_other.ok()) return as_codec_failure(n_other.status());
    if (*n_other >= *n_bytes) return n_bytes;
    std::memcpy(to.data(), other.data(), *n_other);
    return n_other;
  }

  Result<std::size_t> decode_into(std::span<const std::byte> encoded,
                                  std::span<std::byte> to) const override {
    if (to.size() < chunk_bytes_) return wrong_chunk();
    BorrowedWorkspace workspace;
    const Status done = trz::decode(encoded, to.first(chunk_bytes_), type_.book, *workspace);
    if (!done.ok()) return as_codec_failure(done);
    return chunk_bytes_;
  }

  std::optional<Estimate> estimate(const StridedValues& values) const override {
    BorrowedWorkspace workspace;
    Estimate estimate = trz::estimate_chunk(type_, settings_, values, *workspace);
    if (!may_be_fitted()) return estimate;
    estimate.encoded_bytes *= fitted_share(values, *workspace);
    estimate.spread = std::hypot(estimate.spread, kFittedShareSpread);
    return estimate;
  }

 private:
  /// True if chunks may have a form that trz's model does not cover.
  bool may_be_fitted() const {
    const auto n_long = std::ranges::count_if(type_.shape, [](std::uint64_t n) { return n > 1; });
    return settings_.preset == trz::Preset::max &&
           settings_.predictor == trz::Predictor::automatic && n_long > 1 &&
           is_floating(type_.dtype) && type_.kind == trz::BoundKind::absolute && type_.bound > 0;
  }
  /// Bytes with preset max as a share of the default preset's, from some of the chunk's values.
  double fitted_share(const StridedValues& values, trz::Workspace& workspace) const {
    const auto n_values = static_cast<double>(values.n_values());
    if (n_values < kFittedChunkLeast) return kFittedShareMean;
    const StridedValues some =
        middle_of(values, std::max(kFittedSampleShare * n_values, kFittedSampleLeast));
    Buffer gathered(some.n_bytes());
    Buffer encoded(trz::encoded_bytes_max(some.n_bytes()));
    if (!gathered.allocated() || !encoded.allocated()) return 1;
    gather(some, gathered.data());
    trz::ChunkType type = type_;
    type.shape = some.shape;
    type.book = nullptr;
    type.guards = nullptr;
    trz::Settings plain = settings_;
    plain.preset = trz::Preset::standard;
    const auto bytes_with = [&](const trz::Settings& settings) {
      return trz::encode(type, settings, gathered.bytes(), encoded.bytes(), workspace);
    };
    const Result<std::size_t> without = bytes_with(plain);
    const Result<std::size_t> with = bytes_with(settings_);
    if (!without.ok() || !with.ok() || *without == 0) return 1;
    return std::clamp(static_cast<double>(*with) / static_cast<double>(*without), kFittedShareLeast,
                      1.0);
  }
  /// Prepare the encoding with a bound for which the regions' values need no patches.
  void set_without_patches(double bound) {
    other_guards_ = guards_;
    other_guards_.tighter = RegionLevels();
    without_patches_ = type_;
    without_patches_->bound = bound;
    if (!other_guards_.empty()) without_patches_->guards = &other_guards_;
  }
  /// Encode, and count the chunk if the counter asks for it.
  Result<std::size_t> encode_counted(std::span<const std::byte> values, std::span<std::byte> out,
                                     trz::Workspace& workspace) const {
    const trz::BookCounter::Task task =
        counter_ == nullptr ? trz::BookCounter::Task() : counter_->next();
    if (task.twin && book_ != nullptr) return encode_both_ways(values, out, workspace);
    if (!task.count) return trz::encode(type_, settings_, values, out, workspace);
    trz::BookHistograms counted;
    Result<std::size_t> n_encoded = trz::encode(type_, settings_, values, out, workspace, &counted);
    if (n_encoded.ok()) counter_->add_counts(counted, type_.book, *n_encoded);
    return n_encoded;
  }
  /// Encode first with own codes, then with the book: both use the same buffer, and the last result
  /// stays.
  Result<std::size_t> encode_both_ways(std::span<const std::byte> values, std::span<std::byte> out,
                                       trz::Workspace& workspace) const {
    trz::ChunkType own = type_;
    own.book = nullptr;
    const double start_s = counter_->now_s();
    TAILRACE_TRY(trz::encode(own, settings_, values, out, workspace).status());
    const double middle_s = counter_->now_s();
    Result<std::size_t> n_encoded = trz::encode(type_, settings_, values, out, workspace);
    counter_->add_twin(counter_->now_s() - middle_s, middle_s - start_s);
    return n_encoded;
  }
  Status wrong_chunk() const {
    return failed("its client data describe chunks of " + std::to_string(chunk_bytes_) + " bytes");
  }

  ValueGuards guards_;
  trz::ChunkType type_;
  ValueGuards other_guards_;                       ///< Guards for without_patches_.
  std::optional<trz::ChunkType> without_patches_;  ///< Alternative encoding for regions' bounds.
  trz::Settings settings_;
  TrzViews views_{type_, settings_};
  TrzPrefixes prefixes_{type_, settings_};
  std::unique_ptr<trz::Book> book_;  ///< Null: every chunk has own codes.
  std::shared_ptr<trz::BookCounter> counter_;
  std::uint64_t chunk_bytes_;
};

/// The book of a request; null: none.
Result<std::unique_ptr<trz::Book>> book_of(const trz::FilterRequest& request) {
  std::unique_ptr<trz::Book> book;
  if (request.book_bytes.empty()) return book;
  TAILRACE_TAKE(trz::Book parsed, trz::Book::parse(request.book_bytes));
  book = std::make_unique<trz::Book>(parsed);
  return book;
}

/// The stage of a filter in a header; null if its client data cannot be read.
std::unique_ptr<TrzStage> trz_stage_of(const FilterSpec& stored, const ValueGuards& guards = {}) {
  if (stored.filter_id != trz::filter_id) return nullptr;
  const Result<trz::ClientData> data = trz::read_client_words(stored.final_client_data);
  if (!data.ok() || !data->chunk) return nullptr;
  Result<std::unique_ptr<trz::Book>> book = book_of(data->request);
  if (!book.ok()) return nullptr;
  return std::make_unique<TrzStage>(stored, data->request, *data->chunk, std::move(*book), nullptr,
                                    guards);
}

Result<trz::FilterRequest> filter_request(const CodecRequest& request) {
  CodecRequest of_filter = request;
  TAILRACE_TRY(trz::take_auto_book(of_filter.settings).status());
  CodecSettings keys(of_filter);
  trz::FilterRequest filter;
  filter.settings = trz::read_settings(keys);
  Result<std::vector<std::uint8_t>> book_bytes = trz::read_book_bytes(keys);
  TAILRACE_TRY(keys.finish());
  if (!book_bytes.ok()) return book_bytes.status().within("codec trz");
  filter.book_bytes = std::move(*book_bytes);
  if (!is_floating(request.dtype)) {
    if (!(request.pointwise_bound > 0)) return filter;  // Integers are encoded exactly.
    return Status(Code::unsupported, "codec trz: a pw_rel bound needs f32 or f64 values, not " +
                                         std::string(dtype_name(request.dtype)));
  }
  const bool pointwise = request.pointwise_bound > 0;
  filter.bound = pointwise ? request.pointwise_bound : request.absolute_bound;
  if (!(filter.bound > 0)) return filter;
  if (!std::isfinite(filter.bound)) {
    return Status(Code::invalid_argument,
                  "codec trz: the bound must be finite, is " + number_text(filter.bound));
  }
  const Guards& guards = request.guards;
  if (pointwise && (guards.of_bound() || guards.sum)) {
    return Status(Code::unsupported, "codec trz: guard=" + guards_text(guards) +
                                         " needs a bound of mode abs, rel or psnr, not pw_rel");
  }
  if (filter.settings.coarse_views > 0 && guards.of_chunks()) {
    return Status(Code::unsupported, "codec trz: guard=" + guards_text(guards) +
                                         " applies to whole chunks and excludes coarse=");
  }
  filter.kind = pointwise ? trz::BoundKind::pointwise : trz::BoundKind::absolute;
  return filter;
}

/// The guards of one chunk. Chunks that are made up to predict sizes may lack axes; the definition
/// of the array checks its axes.
ValueGuards guards_of(const CodecRequest& request) {
  ValueGuards guards(request.guards, request.value_least, request.value_greatest);
  guards.counted = request.counted;
  guards.tighter = request.tighter;
  const Shape& chunk = request.chunk_shape;
  std::erase_if(guards.orders,
                [&](const ValueGuards::Order& order) { return order.axis >= chunk.size(); });
  for (ValueGuards::Order& order : guards.orders) {
    order.alone = request.array_shape.size() == chunk.size() &&
                  request.array_shape[order.axis] <= chunk[order.axis];
  }
  return guards;
}

}  // namespace

StoredStage stored_trz_stage(const FilterSpec& stored, std::uint64_t, std::uint64_t) {
  return std::unique_ptr<FilterStage>(trz_stage_of(stored));
}

/// trz itself guarantees that every finite value decodes within its bound.
std::unique_ptr<Codec> continued_codec(const std::vector<FilterSpec>& filters, DType dtype,
                                       const Shape& chunk_shape, const ValueGuards& guards) {
  if (filters.size() != 1) return nullptr;
  std::unique_ptr<TrzStage> stage = trz_stage_of(filters[0], guards);
  if (stage == nullptr || stage->type().dtype != dtype || stage->type().shape != chunk_shape) {
    return nullptr;
  }
  const bool lossy = stage->lossy();
  std::vector<std::unique_ptr<FilterStage>> stages;
  stages.push_back(std::move(stage));
  return make_pipeline_codec({.name = "trz", .version = "as stored", .lossy = lossy},
                             n_elements(chunk_shape) * dtype_bytes(dtype), std::move(stages));
}

Result<std::unique_ptr<Codec>> make_trz_codec(const CodecRequest& request, const std::string&) {
  return trz::make_counting_codec(request, nullptr);
}

Result<std::unique_ptr<Codec>> trz::make_counting_codec(const CodecRequest& request,
                                                        std::shared_ptr<BookCounter> counter) {
  TAILRACE_TAKE(trz::FilterRequest filter, filter_request(request));
  filter.drop_idle_book();
  if (request.chunk_shape.empty()) {
    return Status(Code::unsupported, "codec trz: a scalar cannot be chunked; use codec none");
  }
  trz::FilterChunk chunk;
  chunk.dtype = request.dtype;
  chunk.shape = request.chunk_shape;
  chunk.fill_value = trz::recorded_fill(request.dtype, request.fill_value);
  TAILRACE_TAKE(std::unique_ptr<trz::Book> book, book_of(filter).within("codec trz"));
  std::vector<std::unique_ptr<FilterStage>> stages;
  stages.push_back(std::make_unique<TrzStage>(trz_spec(filter, chunk), filter, chunk,
                                              std::move(book), std::move(counter),
                                              guards_of(request)));
  return make_pipeline_codec({.name = "trz", .lossy = filter.kind != trz::BoundKind::exact},
                             request, std::move(stages));
}

}  // namespace tailrace
