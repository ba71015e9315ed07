// Codecs for the chunks of stored datasets: our own by what headers say, built-in pipelines on
// spans with the threads' own scratch memory, the others behind the same interface.

#include "read/stored_codec.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/deflate.hpp"
#include "codec/registry.hpp"
#include "codec/trz/client_data.hpp"
#include "codec/trz/trz.hpp"
#include "codec/trz/workspace.hpp"
#include "core/byte_shuffle.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_chunk_codec.hpp"

namespace tailrace {

namespace {

/// Encodes as the header says. By trz's own promise every finite value decodes within its bound.
class ContinuedTrz final : public Codec {
 public:
  ContinuedTrz(FilterSpec filter, const trz::ClientData& data, std::unique_ptr<TrzDecoder> decoder)
      : filters_{std::move(filter)},
        settings_(data.request.settings),
        decoder_(std::move(decoder)) {
    type_.dtype = data.chunk->dtype;
    type_.shape = data.chunk->shape;
    type_.kind = data.request.kind;
    type_.bound = data.request.bound;
    type_.fill_value = data.chunk->fill_value;
    type_.book = decoder_->book.get();
  }

  std::string_view name() const override { return "trz"; }
  std::string version() const override { return "as stored"; }
  const std::vector<FilterSpec>& filters() const override { return filters_; }
  bool lossy() const override { return type_.kind != trz::BoundKind::exact; }
  bool keeps_bound_by_construction() const override { return true; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return trz::encoded_bytes_max(n_bytes);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return trz::encoded_bytes_max(n_bytes) + trz::working_bytes_max(n_bytes, type_.kind);
  }

  Result<EncodedBytes> encode(Buffer values) const override {
    thread_local trz::Workspace workspace;
    EncodedBytes encoded{Buffer(trz::encoded_bytes_max(values.n_bytes()))};
    if (!encoded.buffer.allocated()) return no_memory(values.n_bytes());
    const Result<std::size_t> n_bytes = trz::encode(type_, settings_, std::as_const(values).bytes(),
                                                    encoded.buffer.bytes(), workspace);
    if (n_bytes.ok()) {
      encoded.buffer.set_n_bytes(*n_bytes);
      return encoded;
    }
    if (n_bytes.status().code() == Code::out_of_memory) return n_bytes.status();
    return Status(Code::codec_failed, n_bytes.status().message());
  }
  Result<Buffer> decode(EncodedBytes encoded) const override {
    Buffer values(decoder_->n_bytes);
    if (!values.allocated()) return no_memory(decoder_->n_bytes);
    TAILRACE_TRY(decoder_->decode(std::as_const(encoded.buffer).bytes(), values.bytes()));
    return values;
  }

 private:
  static Status no_memory(std::uint64_t n_bytes) {
    return Status(Code::out_of_memory, "trz: no memory for " + std::to_string(n_bytes) + " bytes");
  }

  std::vector<FilterSpec> filters_;
  trz::Settings settings_;
  trz::ChunkType type_;
  std::unique_ptr<TrzDecoder> decoder_;
};

}  // namespace

Status TrzDecoder::decode(std::span<const std::byte> encoded, std::span<std::byte> values) const {
  thread_local trz::Workspace workspace;
  const Status done = trz::decode(encoded, values, book.get(), workspace);
  if (done.ok() || done.code() == Code::out_of_memory) return done;
  return Status(Code::codec_failed, done.message());
}

std::unique_ptr<TrzDecoder> trz_decoder(const FilterSpec& filter, bool& lossless) {
  if (filter.filter_id != trz::filter_id) return nullptr;
  Result<trz::ClientData> data = trz::read_client_words(filter.final_client_data);
  if (!data.ok() || !data->chunk) return nullptr;
  auto decoder = std::make_unique<TrzDecoder>();
  decoder->n_bytes = data->chunk->n_bytes();
  lossless = data->request.kind == trz::BoundKind::exact;
  if (data->request.book_bytes.empty()) return decoder;
  Result<trz::Book> book = trz::Book::parse(data->request.book_bytes);
  if (!book.ok()) return nullptr;
  decoder->book = std::make_unique<trz::Book>(*book);
  return decoder;
}

std::unique_ptr<Codec> continued_trz_codec(const std::vector<FilterSpec>& filters, DType dtype,
                                           const Shape& chunk_shape) {
  if (filters.size() != 1) return nullptr;
  bool lossless = false;
  std::unique_ptr<TrzDecoder> decoder = trz_decoder(filters[0], lossless);
  if (decoder == nullptr) return nullptr;
  const Result<trz::ClientData> data = trz::read_client_words(filters[0].final_client_data);
  if (data->chunk->dtype != dtype || data->chunk->shape != chunk_shape) return nullptr;
  return std::make_unique<ContinuedTrz>(filters[0], *data, std::move(decoder));
}

// --- Built-in pipelines on spans, with the threads' own scratch memory; the others behind the same
// interface.
//
// Invariant 1: what encode() returns decodes to the very values it was given. Where nobody promises
// that of a filter (szip and friends in HDF5, plug-ins that are not known to be lossless), encode()
// decodes its result and compares: a concatenation must not lose what the inputs hold, and to
// encode values again that a lossy filter has decoded would.
// Invariant 2: decode_into() of a pipeline of ours allocates only when a thread's scratch memory
// has to grow.

namespace {

using ConstBytes = std::span<const std::byte>;

constexpr std::uint32_t optional_flag = 1;  // H5Z_FLAG_OPTIONAL.
constexpr std::uint32_t szip_filter_id = 4;
constexpr std::uint32_t scale_offset_filter_id = 6;
/// libdeflate's levels stand for zlib's: at 6 the sizes are within 6 % of zlib's on the worst
/// column tried and 4 % below on real ones (docs/concat.md), in a fifth to a half of the time.
constexpr std::uint32_t level_max = 9;

/// One of two blocks of memory that a thread keeps; `which` is 0 or 1. Their content is lost with
/// the next call for the same one. Empty if memory is short.
std::span<std::byte> scratch(std::size_t which, std::uint64_t n_bytes) {
  thread_local std::array<Buffer, 2> blocks;
  Buffer& block = blocks[which];
  if (block.capacity() < n_bytes) {
    block = Buffer();
    block = Buffer(n_bytes + n_bytes / 8);
  }
  return block.allocated() ? std::span(block.data(), n_bytes) : std::span<std::byte>();
}

Status no_memory(std::uint64_t n_bytes) {
  return Status(Code::out_of_memory, "no memory for " + std::to_string(n_bytes) + " bytes");
}

/// The longest stream that HDF5's own deflate filter stores for `n_bytes` (H5Zdeflate.c refuses
/// more), and what any encoder that must succeed needs.
std::uint64_t deflated_bytes_max(std::uint64_t n_bytes) {
  return std::max(deflate_bytes_max(n_bytes), n_bytes + n_bytes / 999 + 16);
}

/// One filter of a pipeline of ours.
struct Step {
  enum class Kind : std::uint8_t { shuffle, deflate, fletcher32, plugin };
  Kind kind = Kind::shuffle;
  bool optional = false;
  std::size_t element_bytes = 1;                 ///< Kind shuffle.
  int level = 0;                                 ///< Kind deflate.
  std::unique_ptr<FilterStage> stage = nullptr;  ///< Kind plugin.
  /// Kind plugin, where it is our own codec. `stage` may be missing then, for encoding.
  std::unique_ptr<TrzDecoder> trz = nullptr;

  /// Upper limit of what comes out for at most `n_bytes`.
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const {
    switch (kind) {
      case Kind::shuffle: return n_bytes;
      case Kind::deflate: return deflated_bytes_max(n_bytes);
      case Kind::fletcher32: return n_bytes + fletcher32_bytes;
      case Kind::plugin:
        return stage ? stage->encoded_bytes_max(n_bytes) : trz::encoded_bytes_max(n_bytes);
    }
    return n_bytes;
  }
};

/// Bytes on their way through a pipeline: they lie with the caller or in one of the scratch blocks.
struct Passing {
  ConstBytes bytes;
  std::size_t free_block = 0;  ///< The scratch block that they do not lie in.

  void moved_to(std::span<const std::byte> there) {
    bytes = there;
    free_block = 1 - free_block;
  }
};

class StoredPipeline final : public StoredCodec {
 public:
  StoredPipeline(std::vector<Step> steps, std::vector<FilterSpec> filters,
                 std::uint64_t chunk_bytes, std::string version)
      : steps_(std::move(steps)),
        filters_(std::move(filters)),
        chunk_bytes_(chunk_bytes),
        version_(std::move(version)) {}

  std::string_view name() const override { return "stored"; }
  std::string version() const override { return version_; }
  const std::vector<FilterSpec>& filters() const override { return filters_; }
  bool lossy() const override { return false; }
  bool keeps_bound_by_construction() const override { return true; }

  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    for (const Step& step : steps_) n_bytes = std::max(n_bytes, step.encoded_bytes_max(n_bytes));
    return n_bytes;
  }
  /// Both scratch blocks, a compressor, and what plug-ins take.
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    constexpr std::uint64_t compressor_bytes = 1U << 20;  // libdeflate 1.14 below level 10.
    std::uint64_t most = encoded_bytes_max(n_bytes) * 9 / 4 + compressor_bytes;
    for (const Step& step : steps_) {
      if (step.stage) most += step.stage->working_bytes(n_bytes);
    }
    return most;
  }

  Result<EncodedBytes> encode(Buffer values) const override {
    if (values.n_bytes() != chunk_bytes_) return wrong_length("encode", values.n_bytes());
    EncodedBytes encoded;
    Passing passing{std::as_const(values).bytes()};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Status done = encode_step(steps_[i], passing);
      if (done.ok()) continue;
      // A plug-in that fails leaves its input, as HDF5's contract has it: see encode_plugin().
      if (!steps_[i].optional || done.code() != Code::codec_failed) {
        return done.within("filter " + std::to_string(filters_[i].filter_id));
      }
      encoded.filter_mask |= 1U << i;
    }
    if (passing.bytes.data() == values.data()) {
      encoded.buffer = std::move(values);
    } else {
      encoded.buffer = Buffer::copy_of(passing.bytes);
      if (!encoded.buffer.allocated()) return no_memory(passing.bytes.size());
    }
    return encoded;
  }

  Result<Buffer> decode(EncodedBytes encoded) const override {
    Buffer values(chunk_bytes_);
    if (!values.allocated()) return no_memory(chunk_bytes_);
    TAILRACE_TRY(
        decode_into(std::as_const(encoded.buffer).bytes(), encoded.filter_mask, values.bytes()));
    return values;
  }

  Status decode_into(ConstBytes encoded, std::uint32_t filter_mask,
                     std::span<std::byte> values) const override {
    if (values.size() != chunk_bytes_) return wrong_length("decode", values.size());
    // How long each filter's input can have been: exact as long as only lengths that are known
    // come before.
    std::array<std::uint64_t, max_filters> limits{};
    std::uint64_t limit = chunk_bytes_;
    std::size_t first_active = steps_.size();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      limits[i] = limit;
      if ((filter_mask >> i & 1U) != 0) continue;
      limit = steps_[i].encoded_bytes_max(limit);
      first_active = std::min(first_active, i);
    }
    Passing passing{encoded};
    for (std::size_t i = steps_.size(); i-- > 0;) {
      if ((filter_mask >> i & 1U) != 0) continue;
      const std::span<std::byte> target = i == first_active ? values : std::span<std::byte>();
      const Status done = decode_step(steps_[i], limits[i], target, passing);
      if (!done.ok()) return done.within("filter " + std::to_string(filters_[i].filter_id));
    }
    if (passing.bytes.size() != chunk_bytes_) return wrong_length("decode", passing.bytes.size());
    if (passing.bytes.data() != values.data()) {
      std::memcpy(values.data(), passing.bytes.data(), chunk_bytes_);
    }
    return Status();
  }

  /// HDF5's limit on filters (H5Z_MAX_NFILTERS): one bit of the mask each.
  static constexpr std::size_t max_filters = 32;

 private:
  static Status encode_step(const Step& step, Passing& passing) {
    const std::size_t n_given = passing.bytes.size();
    // Deflate that saves nothing is left out, as its flag permits; HDF5 marks it in the mask.
    const bool may_give_up = step.kind == Step::Kind::deflate && step.optional;
    const std::uint64_t n_room = may_give_up ? n_given : step.encoded_bytes_max(n_given);
    if (step.kind == Step::Kind::plugin) return encode_plugin(step, passing);
    const std::span<std::byte> to = scratch(passing.free_block, n_room);
    if (to.data() == nullptr) return no_memory(n_room);
    std::size_t n_made = n_given;
    switch (step.kind) {
      case Step::Kind::shuffle: shuffle_bytes(step.element_bytes, passing.bytes, to); break;
      case Step::Kind::deflate:
        n_made = deflate_bytes(step.level, passing.bytes, to);
        if (n_made == 0) return Status(Code::codec_failed, "deflate: does not shrink these bytes");
        break;
      case Step::Kind::fletcher32:
        std::memcpy(to.data(), passing.bytes.data(), n_given);
        store_fletcher32(fletcher32(passing.bytes), to.data() + n_given);
        n_made = n_given + fletcher32_bytes;
        break;
      case Step::Kind::plugin: break;
    }
    passing.moved_to(to.first(n_made));
    return Status();
  }

  static Status encode_plugin(const Step& step, Passing& passing) {
    if (!step.stage) return Status(Code::plugin_missing, "trz: encoding takes its plug-in");
    Buffer bytes = Buffer::copy_of(passing.bytes);
    if (!bytes.allocated()) return no_memory(passing.bytes.size());
    TAILRACE_TRY(step.stage->encode(bytes));
    return keep(bytes, passing);
  }

  /// Copy what a plug-in has returned to the thread's memory.
  static Status keep(const Buffer& bytes, Passing& passing) {
    const std::span<std::byte> to = scratch(passing.free_block, bytes.n_bytes());
    if (to.data() == nullptr) return no_memory(bytes.n_bytes());
    if (!to.empty()) std::memcpy(to.data(), bytes.data(), to.size());
    passing.moved_to(to);
    return Status();
  }

  static Status decode_trz(const TrzDecoder& trz, std::uint64_t limit, std::span<std::byte> target,
                           Passing& passing) {
    if (trz.n_bytes > limit) {
      return Status(Code::codec_failed, "trz: its client data say chunks of " +
                                            std::to_string(trz.n_bytes) + " bytes, expected " +
                                            std::to_string(limit));
    }
    const bool in_place = target.size() == trz.n_bytes;
    const std::span<std::byte> to = in_place ? target : scratch(passing.free_block, trz.n_bytes);
    if (to.data() == nullptr) return no_memory(trz.n_bytes);
    TAILRACE_TRY(trz.decode(passing.bytes, to));
    passing.moved_to(to);
    return Status();
  }

  /// Undo one filter whose input had at most `limit` bytes; `target`: where its values belong, or
  /// empty.
  static Status decode_step(const Step& step, std::uint64_t limit, std::span<std::byte> target,
                            Passing& passing) {
    const ConstBytes given = passing.bytes;
    if (step.kind == Step::Kind::fletcher32) {
      if (!ends_in_fletcher32(given)) {
        return Status(Code::codec_failed, "the checksum is not that of the chunk's bytes");
      }
      passing.bytes = given.first(given.size() - fletcher32_bytes);
      return Status();
    }
    if (step.trz) return decode_trz(*step.trz, limit, target, passing);
    if (step.kind == Step::Kind::plugin) {
      Buffer bytes = Buffer::copy_of(given);
      if (!bytes.allocated()) return no_memory(given.size());
      TAILRACE_TRY(step.stage->decode(bytes, unknown_length));
      if (target.empty() || bytes.n_bytes() != target.size()) return keep(bytes, passing);
      std::memcpy(target.data(), bytes.data(), target.size());
      passing.moved_to(target);
      return Status();
    }
    const std::uint64_t n_room = step.kind == Step::Kind::shuffle ? given.size() : limit;
    const bool in_place = target.size() == n_room;
    const std::span<std::byte> to = in_place ? target : scratch(passing.free_block, n_room);
    if (to.data() == nullptr) return no_memory(n_room);
    std::size_t n_made = given.size();
    if (step.kind == Step::Kind::shuffle) {
      unshuffle_bytes(step.element_bytes, given, to);
    } else {
      const std::optional<std::size_t> n_plain = inflate_bytes(given, to);
      if (!n_plain) {
        return Status(Code::codec_failed, "the stream is damaged, or holds more than " +
                                              std::to_string(limit) + " bytes");
      }
      n_made = *n_plain;
    }
    passing.moved_to(to.first(n_made));
    return Status();
  }

  Status wrong_length(const char* verb, std::size_t n_bytes) const {
    return Status(Code::codec_failed, std::string(verb) + ": a chunk has " +
                                          std::to_string(chunk_bytes_) + " bytes, got " +
                                          std::to_string(n_bytes));
  }

  std::vector<Step> steps_;
  std::vector<FilterSpec> filters_;
  std::uint64_t chunk_bytes_;
  std::string version_;
};

/// Makes Invariant 1 true of a codec that does not promise it.
class CheckedCodec final : public StoredCodec {
 public:
  /// @param survives_all  encode() may be tried with any values.
  CheckedCodec(std::unique_ptr<Codec> inner, bool survives_all)
      : inner_(std::move(inner)), survives_all_(survives_all) {}

  std::string_view name() const override { return "stored"; }
  std::string version() const override { return inner_->version(); }
  const std::vector<FilterSpec>& filters() const override { return inner_->filters(); }
  bool lossy() const override { return true; }
  bool keeps_bound_by_construction() const override { return true; }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return inner_->encoded_bytes_max(n_bytes);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return inner_->working_bytes(n_bytes) + inner_->encoded_bytes_max(n_bytes) + 2 * n_bytes;
  }
  Result<Buffer> decode(EncodedBytes encoded) const override {
    return inner_->decode(std::move(encoded));
  }
  Status decode_into(ConstBytes encoded, std::uint32_t filter_mask,
                     std::span<std::byte> values) const override {
    const auto* stored = dynamic_cast<const StoredCodec*>(inner_.get());
    if (stored != nullptr) return stored->decode_into(encoded, filter_mask, values);
    return StoredCodec::decode_into(encoded, filter_mask, values);
  }

  Result<EncodedBytes> encode(Buffer values) const override {
    const Buffer original = Buffer::copy_of(std::as_const(values).bytes());
    if (!original.allocated()) return no_memory(values.n_bytes());
    if (!survives_all_) return would_lose();
    Result<EncodedBytes> encoded = inner_->encode(std::move(values));
    if (!encoded.ok()) return encoded;
    EncodedBytes again{Buffer::copy_of(std::as_const(encoded->buffer).bytes()),
                       encoded->filter_mask};
    if (!again.buffer.allocated()) return no_memory(encoded->buffer.n_bytes());
    Result<Buffer> decoded = inner_->decode(std::move(again));
    if (!decoded.ok()) return decoded.status();
    const bool same = decoded->n_bytes() == original.n_bytes() &&
                      std::memcmp(decoded->data(), original.data(), original.n_bytes()) == 0;
    if (!same) return would_lose();
    return encoded;
  }

 private:
  Status would_lose() const {
    return Status(Code::codec_failed,
                  "filter " + std::to_string(inner_->filters().back().filter_id) + " (" +
                      inner_->filters().back().name +
                      ") loses digits: encoding its decoded values again would change them; choose "
                      "another codec for the output");
  }

  std::unique_ptr<Codec> inner_;
  bool survives_all_;
};

/// A pipeline of ours as far as it goes.
struct StepList {
  std::vector<Step> steps;
  bool lossless = true;
  bool survives_all = true;
  bool needs_hdf5 = false;
  std::string version = "built in";
};

/// Element size of a stored shuffle: its set_local leaves it in the client data.
std::size_t shuffled_bytes(const FilterSpec& filter, std::uint64_t element_bytes) {
  return filter.final_client_data.empty() ? element_bytes : filter.final_client_data.front();
}

Status add_step(const FilterSpec& filter, std::uint64_t element_bytes, std::uint64_t chunk_bytes,
                const std::string& plugin_path, StepList& list) {
  Step step;
  step.optional = (filter.flags & optional_flag) != 0;
  if (filter.filter_id == shuffle_filter_id) {
    step.kind = Step::Kind::shuffle;
    step.element_bytes = shuffled_bytes(filter, element_bytes);
    if (step.element_bytes == 0) return Status(Code::corrupt, "shuffle of elements of 0 bytes");
  } else if (filter.filter_id == deflate_filter_id) {
    step.kind = Step::Kind::deflate;
    const std::uint32_t level =
        filter.final_client_data.empty() ? 6 : filter.final_client_data.front();
    step.level = static_cast<int>(std::min(level, level_max));
  } else if (filter.filter_id == fletcher32_filter_id) {
    step.kind = Step::Kind::fletcher32;
  } else if (filter.filter_id >= szip_filter_id && filter.filter_id <= scale_offset_filter_id) {
    list.needs_hdf5 = true;
    return Status();
  } else if (std::unique_ptr<FilterStage> own = make_own_stage(filter, chunk_bytes)) {
    step.kind = Step::Kind::plugin;
    step.stage = std::move(own);
  } else {
    Result<StoredPlugin> plugin = find_stored_plugin(filter, plugin_path);
    bool lossless = false;
    step.trz = trz_decoder(filter, lossless);
    if (!plugin.ok() && step.trz) {
      step.kind = Step::Kind::plugin;
      list.lossless = list.lossless && lossless;
      list.steps.push_back(std::move(step));
      return Status();
    }
    if (!plugin.ok()) {
      // Not a file, but perhaps a class that this program has registered.
      list.needs_hdf5 = hdf5_has_filter(filter.filter_id);
      return list.needs_hdf5 ? Status() : plugin.status();
    }
    step.kind = Step::Kind::plugin;
    step.stage = std::move(plugin->stage);
    list.lossless = list.lossless && plugin->lossless;
    list.survives_all = list.survives_all && !plugin->guarded;
    list.version = plugin->version;
  }
  list.steps.push_back(std::move(step));
  return Status();
}

}  // namespace

Status StoredCodec::decode_into(std::span<const std::byte> encoded, std::uint32_t filter_mask,
                                std::span<std::byte> values) const {
  EncodedBytes copy{Buffer::copy_of(encoded), filter_mask};
  if (!copy.buffer.allocated()) return no_memory(encoded.size());
  Result<Buffer> decoded = decode(std::move(copy));
  if (!decoded.ok()) return decoded.status();
  if (decoded->n_bytes() != values.size()) {
    return Status(Code::codec_failed, "decode: a chunk has " + std::to_string(values.size()) +
                                          " bytes, got " + std::to_string(decoded->n_bytes()));
  }
  if (!values.empty()) std::memcpy(values.data(), decoded->data(), values.size());
  return Status();
}

Result<std::unique_ptr<StoredCodec>> make_stored_codec(const StoredDataset& dataset,
                                                       const StoredForm& storage,
                                                       const std::string& plugin_path) {
  const std::string who = "dataset \"" + dataset.path + "\"";
  if (!dataset.by_value) {
    return Status(Code::unsupported, who + ": elements of type " + dataset.type_text +
                                         " point elsewhere; only HDF5 can move them");
  }
  if (storage.filters.size() > StoredPipeline::max_filters) {
    return Status(Code::corrupt, who + ": " + std::to_string(storage.filters.size()) +
                                     " filters, HDF5 has at most 32");
  }
  const std::uint64_t chunk_bytes = n_elements(storage.chunk_shape) * dataset.element_bytes;
  StepList list;
  for (const FilterSpec& filter : storage.filters) {
    const Status added = add_step(filter, dataset.element_bytes, chunk_bytes, plugin_path, list);
    if (!added.ok()) return added.within(who);
  }
  if (list.needs_hdf5) {
    Result<std::unique_ptr<Codec>> codec =
        make_hdf5_chunk_codec({dataset.type, dataset.element_bytes, storage.chunk_shape,
                               storage.filters, dataset.fill_value},
                              plugin_path);
    if (!codec.ok()) return codec.status().within(who);
    return std::unique_ptr<StoredCodec>(
        std::make_unique<CheckedCodec>(std::move(*codec), list.survives_all));
  }
  auto pipeline = std::make_unique<StoredPipeline>(std::move(list.steps), storage.filters,
                                                   chunk_bytes, list.version);
  if (list.lossless) return std::unique_ptr<StoredCodec>(std::move(pipeline));
  return std::unique_ptr<StoredCodec>(
      std::make_unique<CheckedCodec>(std::move(pipeline), list.survives_all));
}

std::vector<FilterSpec> deflate_filters(std::uint32_t level, bool shuffle,
                                        std::uint64_t element_bytes) {
  std::vector<FilterSpec> filters;
  if (shuffle && element_bytes > 1) {
    const auto words = std::vector<std::uint32_t>{static_cast<std::uint32_t>(element_bytes)};
    filters.push_back({shuffle_filter_id, optional_flag, {}, words, "shuffle"});
  }
  const std::vector<std::uint32_t> words = {std::min(level, level_max)};
  filters.push_back({deflate_filter_id, optional_flag, words, words, "deflate"});
  return filters;
}

}  // namespace tailrace
