// The storage rules, in the order in which they apply.

#include "policy/storage_decision.hpp"

#include <array>
#include <bit>

#include "core/codec_registry.hpp"
#include "core/option_table.hpp"
#include "policy/one_piece.hpp"

namespace tailrace {
namespace {

constexpr DoorTraits kOfVariables = {.small_in_one_piece = true, .rewrites_parts = true};
/// Traits of the doors, in the order of Door.
constexpr std::array<DoorTraits, kAllDoors.size()> traits_table = {{
    {},
    kOfVariables,
    kOfVariables,
    {.knows_values = false, .left_to_hdf5_below = kChunkedBytesMin, .rewrites_parts = true},
    {.knows_values = false, .left_to_hdf5_below = kChunkedBytesMin, .any_codec_with_values = true},
    {.small_in_one_piece = true},
    {},
}};

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

/// Return the least size of a dataset: a growing dimension counts as one of its chunks.
std::uint64_t least_bytes(const DatasetFacts& facts) {
  std::uint64_t n = facts.element_bytes;
  for (std::size_t d = 0; d < facts.shape.size(); ++d) {
    const bool by_chunk = facts.grows_along(d) && !facts.own_chunks.empty();
    n *= by_chunk ? facts.own_chunks[d] : facts.shape[d];
  }
  return n;
}

/// True if no option determines the storage of a variable of fixed shape.
bool is_ours_to_store(const DatasetFacts& facts, const FieldOptions& options) {
  return !options.codec_given && !options.chunk_shape && options.layout == "claimed" &&
         options.earlier_loss.empty() && !facts.grows();
}

/// Choose the codec if none is named, for doors that do not know the values: exact without a bound,
/// else the yardstick.
void name_codec_unseen(FieldOptions& options) {
  const bool lossless = options.bound.lossless();
  if (options.codec != kAutoCodec && (options.codec_given || lossless)) return;
  options.codec = lossless ? kExactCodec : kYardstickCodec;
  options.codec_settings.clear();
}

/// Choose the codec of a dataset whose values are unknown when it is created.
Status decide_codec_unseen(const DatasetFacts& facts, Door door, StorageDecision& decision) {
  FieldOptions& options = decision.options;
  name_codec_unseen(options);
  const bool lossless = options.bound.lossless();
  const CodecEntry& codec = codec_entry(options.codec);
  if (!facts.floating() && (!lossless || codec.loss == Loss::by_purpose)) {
    return Status(Code::unsupported,
                  "its values are not f32 or f64 in this machine's byte order and can only be "
                  "stored exactly; use a lossless codec without bound=");
  }
  const bool by_meaning = codec.loss != Loss::never || codec.reals_only;
  if (!facts.number && by_meaning && !options.codec_given_for_field) {
    // The codec is for numbers; these are bytes in another order, or have another meaning.
    options.codec = kExactCodec;
    options.codec_settings.clear();
  }
  if (!facts.number && !has_codec_type(facts.element_bytes) && options.codec != kExactCodec &&
      !codec.stores_plainly) {
    if (options.codec_given_for_field) {
      return Status(Code::unsupported, "its elements of " + std::to_string(facts.element_bytes) +
                                           " bytes are not numbers; use codec " +
                                           std::string(kExactCodec) + " or " +
                                           std::string(plain_codec) + ", not " + options.codec);
    }
    options.codec = kExactCodec;
    options.codec_settings.clear();
  }
  decision.bound_with_values = options.bound.needs_range();
  const bool any_codec = traits_of(door).any_codec_with_values;
  if (decision.bound_with_values && !any_codec && options.codec != kYardstickCodec) {
    return Status(Code::unsupported,
                  "a bound of mode " + std::string(bound_mode_name(options.bound.mode)) +
                      " needs the values when the dataset is created; only codec " +
                      std::string(kYardstickCodec) + " works without them, codec " + options.codec +
                      " needs bound=abs= or pw_rel=");
  }
  return Status();
}

}  // namespace

const DoorTraits& traits_of(Door door) {
  return traits_table[std::size_t(std::countr_zero(bit_of(door)))];
}

std::string reason_to_leave(const DatasetFacts& facts, const StorageRequest& request, Door door) {
  if (!facts.only_hdf5.empty()) return facts.only_hdf5;
  const DoorTraits& traits = traits_of(door);
  if (traits.left_to_hdf5_below == 0) return "";
  if (door == Door::serial) {
    // A growing dataset of several dimensions is expected to become large.
    const bool small = least_bytes(facts) < traits.left_to_hdf5_below &&
                       (!facts.grows() || facts.shape.size() == 1);
    return small && !request.named ? "small" : "";
  }
  const bool own_chunks = !facts.own_chunks.empty();
  if (facts.shape.empty() || (!own_chunks && facts.n_bytes() < traits.left_to_hdf5_below)) {
    return "small";
  }
  const std::uint64_t most = request.memory_bytes / kKeptChunksPerMemory;
  // Completing a chunk of single bytes takes nine times its size, others six to seven times.
  const std::uint64_t element = std::max<std::uint64_t>(facts.element_bytes, 2);
  if (own_chunks && n_elements(facts.own_chunks) > most / element) {
    return "chunks of more than a sixteenth of memory=";
  }
  if (facts.element_bytes > most) return "elements of more than a sixteenth of memory=";
  return "";
}

bool has_codec_type(std::uint64_t element_bytes) {
  return element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
}

bool has_nothing_to_compress(const DatasetFacts& facts) {
  return !facts.in_header && !facts.grows() &&
         (facts.shape.empty() || n_elements(facts.shape) == 0);
}

CodecWish codec_wish(const DatasetFacts& facts, const FieldOptions& options) {
  CodecWish wish{options.codec, options.codec_settings};
  const bool spared = !facts.floating() && !options.codec_given_for_field;
  wish.keeps_bound = !spared;
  if (has_nothing_to_compress(facts)) {
    wish.name = plain_codec;
    wish.settings.clear();
  } else if (spared && codec_entry(wish.name).loss == Loss::by_purpose) {
    become_exact(wish.name, wish.settings);
  }
  return wish;
}

void become_exact(std::string& codec, std::vector<KeyValue>& settings) {
  codec = kExactCodec;
  std::erase_if(settings, [](const KeyValue& setting) { return setting.first != "checksum"; });
}

FieldOptions defaults_of_coordinate(FieldOptions file_defaults) {
  const FieldOptions exact;
  file_defaults.codec = exact.codec;
  file_defaults.codec_settings.clear();
  file_defaults.codec_given = file_defaults.codec_given_for_field = false;
  file_defaults.bound = exact.bound;
  file_defaults.bound_given = true;  // A target then has no effect.
  file_defaults.guards = exact.guards;
  file_defaults.earlier_loss.clear();
  return file_defaults;
}

Result<StorageDecision> decide(const DatasetFacts& facts, const StorageRequest& request,
                               Door door) {
  StorageDecision decision;
  decision.options = request.options;
  FieldOptions& options = decision.options;
  decision.why = reason_to_leave(facts, request, door);
  if (!decision.why.empty()) {
    decision.form = StorageForm::by_hdf5;
    return decision;
  }
  const DoorTraits& traits = traits_of(door);
  if (traits.rewrites_parts) {
    options.chunk_bytes = std::min(
        options.chunk_bytes,
        std::max(request.memory_bytes / kRewrittenChunksPerMemory, kSmallestOwnChunkBytes));
  }
  if (!traits.knows_values) {
    TAILRACE_TRY(decide_codec_unseen(facts, door, decision));
    // Without a request, the program's own filters stay.
    decision.keeps_filters =
        facts.own_filters && !request.options.codec_given && options.bound.lossless();
    return decision;
  }
  if (facts.grows() && options.layout == "contiguous" && traits.rewrites_parts) {
    options.layout = "claimed";
  }
  if (traits.small_in_one_piece && is_ours_to_store(facts, options) &&
      is_smaller_in_one_piece(facts.shape, facts.n_bytes(), request.compatibility)) {
    decision.why = "small";
    store_in_one_piece(options);
  } else if (has_nothing_to_compress(facts)) {
    decision.why = "nothing to compress";
  } else if (options.layout == "contiguous") {
    decision.why = "as asked";
  }
  if (!decision.why.empty()) decision.form = StorageForm::one_piece;
  return decision;
}

Shape choose_chunks(const DatasetFacts& facts, const FieldOptions& options,
                    const Shape& chunk_limits, const DecompositionFacts& decomposition, Door door) {
  const bool rewrites = traits_of(door).rewrites_parts;
  Shape shape = facts.shape;
  if (rewrites) {
    for (std::uint64_t& extent : shape) extent = std::max<std::uint64_t>(extent, 1);
  }
  if (has_nothing_to_compress(facts) || options.layout == "contiguous") {
    if (rewrites) return shape;
    return slab_shape_for(shape, facts.element_bytes, options.chunk_bytes, decomposition.cut_gcd);
  }
  if (options.chunk_shape) {
    Shape chunk = *options.chunk_shape;
    for (std::size_t d = 0; d < chunk.size() && d < chunk_limits.size(); ++d) {
      chunk[d] = std::min(chunk[d], std::max<std::uint64_t>(chunk_limits[d], 1));
    }
    return chunk;
  }
  Shape chunk = chunk_shape_for(shape, facts.element_bytes, options.chunk_bytes, decomposition);
  for (std::size_t d = 0; rewrites && d < chunk.size(); ++d) {
    if (!facts.grows_along(d)) continue;
    const std::uint64_t row_bytes =
        std::max<std::uint64_t>(n_elements(chunk) / chunk[d] * facts.element_bytes, 1);
    // Later rows may come one by one, each of which rewrites the chunk that it is in.
    chunk[d] = std::min(chunk[d], (kGrowingChunkBytesMost - 1) / row_bytes + 1);
    chunk[d] = std::max(chunk[d], kGrowingChunkBytesMin / row_bytes);
  }
  return chunk;
}

Shape choose_chunks_unseen(const DatasetFacts& facts, const FieldOptions& options,
                           std::uint64_t n_ranks) {
  Shape chunk = options.chunk_shape ? *options.chunk_shape
                                    : chunk_shape_by_rows(facts.shape, facts.element_bytes,
                                                          options.chunk_bytes, n_ranks);
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    chunk[d] = std::clamp<std::uint64_t>(chunk[d], 1, std::max<std::uint64_t>(facts.shape[d], 1));
  }
  return chunk;
}

// --- Datasets of other files.

std::string reason_to_be_named(const DatasetFacts& facts, bool coordinate, Role role) {
  if (!facts.floating()) return "integers";
  if (coordinate) return "coordinate";
  return role == Role::value ? "" : std::string(role_name(role));
}

std::string reason_to_stay_exact(const DatasetFacts& facts, bool coordinate, Role role) {
  const bool small = facts.floating() && !coordinate && facts.n_bytes() < kBoundedBytesMin;
  return small ? "small" : reason_to_be_named(facts, coordinate, role);
}

std::string lossy_role_text(std::string_view path, std::string_view why, std::string_view by) {
  return std::string(path) + " (" + std::string(why) + ") becomes lossy, because " +
         std::string(by) + " names it without wildcards; bound=none keeps it exact";
}

KeptChunks keep_chunks(const DatasetFacts& facts, bool loses, std::uint64_t memory_bytes) {
  const std::uint64_t n_bytes = n_elements(facts.own_chunks) * facts.element_bytes;
  if (n_bytes > memory_bytes / kKeptChunksPerMemory) {
    return {false, "chunks are smaller than the input's, which need more than a 16th of --memory"};
  }
  const std::uint64_t least = facts.grows() ? kBoundedChunkBytesMin : kBoundedFixedChunkBytesMin;
  if (loses && n_bytes < least && facts.written_fraction >= kWrittenFractionMin) {
    return {false,
            "chunks are larger than the input's, because a bound saves less on small chunks "
            "(choose with --chunk)"};
  }
  return {};
}

bool keeps_chunks_joined(const JoinRequest& request) {
  return (request.chunk_rows > 0 || request.chunk_bytes > 0) && request.keeps_codec &&
         !request.fits_any_chunk;
}

bool joins_in_one_piece(const DatasetFacts& facts, std::uint64_t n_rows,
                        const JoinRequest& request) {
  std::uint64_t row_bytes = facts.element_bytes;
  for (std::size_t d = 1; d < facts.shape.size(); ++d) row_bytes *= facts.shape[d];
  const bool small = n_rows > 0 && n_rows * row_bytes < request.one_piece_below;
  // Rows stay in one piece if the inputs have no chunks and none are requested.
  const bool stays = facts.own_chunks.empty() && !facts.grows_along(0) &&
                     (request.keeps_codec || request.plain_codec) && request.chunk_rows == 0 &&
                     request.chunk_bytes == 0;
  return request.by_value && (small || stays);
}

Shape join_chunks(const DatasetFacts& facts, std::uint64_t n_rows, const JoinRequest& request) {
  const bool chunked = !facts.own_chunks.empty();
  Shape chunk = chunked ? facts.own_chunks : facts.shape;
  if (!chunked) chunk[0] = 1;
  for (std::uint64_t& extent : chunk) extent = std::max<std::uint64_t>(extent, 1);
  if (keeps_chunks_joined(request)) return chunk;
  const std::uint64_t n_bytes = n_elements(chunk) * facts.element_bytes;
  const std::uint64_t row_bytes = std::max<std::uint64_t>(n_bytes / chunk[0], 1);
  const std::uint64_t input_rows = chunk[0];
  if (request.chunk_rows > 0) {
    chunk[0] = request.chunk_rows;
  } else if (request.chunk_bytes > 0) {
    chunk[0] = std::max<std::uint64_t>(request.chunk_bytes / row_bytes, 1);
  } else if (!chunked || (n_bytes < kJoinedChunkBytesMin && request.fits_any_chunk)) {
    // Use a multiple of the inputs' chunks, so that few straddle a border.
    chunk[0] *= ceil_div(kJoinedChunkBytes, chunk[0] * row_bytes);
  } else {
    return chunk;
  }
  // Limit the chunk to the existing rows, because rows after the last would be padding. A chunk has
  // at least the rows of the inputs' chunks, because rows may be appended later. Datasets without
  // rows need no limit.
  if (n_rows > 0) chunk[0] = std::min(chunk[0], ceil_div(n_rows, input_rows) * input_rows);
  return chunk;
}

}  // namespace tailrace
