// The registry of codecs, and functions derived from it.

#include "core/codec_registry.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/byte_order.hpp"
#include "trz/base/near_names.hpp"

namespace tailrace {
namespace {

struct Entered {
  std::vector<const CodecEntry*> codecs;   ///< Plug-ins last.
  std::vector<const CodecEntry*> filters;  ///< Sorted by number; equals with a name first.
};

Entered& entered() {
  static auto* all = new Entered;  // Never destroyed: threads may outlive static objects.
  return *all;
}

}  // namespace

bool enter_codec(const CodecEntry& entry) {
  auto& [codecs, filters] = entered();
  const auto is_plugin = [](const CodecEntry* other) { return other->plugin; };
  if (!entry.name.empty()) {
    codecs.insert(entry.plugin ? codecs.end() : std::ranges::find_if(codecs, is_plugin), &entry);
  }
  if (entry.filter_id > 0) {
    filters.insert(entry.name.empty() ? filters.end() : filters.begin(), &entry);
  }
  return true;
}

void withdraw_codec(const CodecEntry& entry) {
  std::erase(entered().codecs, &entry);
  std::erase(entered().filters, &entry);
}

std::span<const CodecEntry* const> codec_registry() { return entered().codecs; }

const CodecEntry* find_codec(std::string_view name) {
  name = name.starts_with("id=") ? "id" : name.substr(0, name.find(','));
  for (const CodecEntry* entry : codec_registry()) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

const CodecEntry& codec_entry(std::string_view name) {
  static const CodecEntry unknown{.name = "", .summary = ""};
  const CodecEntry* entry = find_codec(name);
  return entry == nullptr ? unknown : *entry;
}

const CodecEntry* find_filter(std::uint32_t filter_id) {
  for (const CodecEntry* entry : entered().filters) {
    if (entry->filter_id == filter_id) return entry;
  }
  return nullptr;
}

Result<std::unique_ptr<FilterStage>> make_own_stage(const FilterSpec& filter,
                                                    std::uint64_t element_bytes,
                                                    std::uint64_t chunk_bytes) {
  const CodecEntry* const entry = find_filter(filter.filter_id);
  if (entry == nullptr || entry->stage == nullptr) return std::unique_ptr<FilterStage>();
  return entry->stage(filter, element_bytes, chunk_bytes);
}

std::unique_ptr<Codec> make_own_stored_codec(const std::vector<FilterSpec>& filters,
                                             std::uint64_t element_bytes,
                                             std::uint64_t chunk_bytes) {
  std::vector<std::unique_ptr<FilterStage>> stages;
  bool lossy = false;
  for (const FilterSpec& filter : filters) {
    auto stage = make_own_stage(filter, element_bytes, chunk_bytes);
    if (!stage.ok() || *stage == nullptr) return nullptr;
    lossy = lossy || (*stage)->lossy();
    stages.push_back(std::move(*stage));
  }
  return make_pipeline_codec({.name = std::string(kStoredCodecName), .lossy = lossy}, chunk_bytes,
                             std::move(stages));
}

namespace {

/// Names that codec= takes, except those by a filter's number.
std::vector<std::string_view> names_to_choose() {
  std::vector<std::string_view> names = {kAutoCodec};
  for (const CodecEntry* entry : codec_registry()) {
    if (entry->loss != Loss::unknown) names.push_back(entry->name);
  }
  return names;
}

}  // namespace

std::string codec_names() {
  std::string names;
  for (const std::string_view name : names_to_choose()) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

std::vector<const CodecVariant*> codec_variants() {
  std::vector<const CodecVariant*> variants;
  for (const CodecEntry* entry : codec_registry()) {
    for (const CodecVariant& variant : entry->variants) variants.push_back(&variant);
  }
  std::stable_sort(variants.begin(), variants.end(),
                   [](const auto* a, const auto* b) { return a->order < b->order; });
  return variants;
}

std::string codec_variants_text() {
  std::string text;
  for (const CodecVariant* variant : codec_variants()) {
    text += (text.empty() ? "" : ",") + std::string(variant->codec);
  }
  return text;
}

namespace {

/// Hint for an unknown codec. The name of another library's lossless codec suggests deflate, or
/// nothing, but never a codec that changes values.
std::string codec_hint(std::string_view name) {
  constexpr std::array<std::string_view, 3> deflates = {"gzip", "zlib", "zip"};
  constexpr std::array<std::string_view, 10> lossless = {
      "szip", "szlib", "aec", "lzf", "lzma", "xz", "brotli", "snappy", "lzo", "zlib-ng"};
  const auto is = [&](std::string_view other) { return edit_distance(name, other) == 0; };
  if (std::ranges::any_of(deflates, is)) return "; did you mean \"deflate\"?";
  if (std::ranges::any_of(lossless, is)) return "; without loss: \"deflate\", \"zstd\"";
  return did_you_mean(name, names_to_choose());
}

/// Check that a codec that changes values keeps the requested guards. Lossless codecs keep all.
Status check_guards(const CodecEntry& entry, const CodecRequest& request) {
  const Guards& guards = request.guards;
  if (guards.of_values() && !entry.keeps_guards) {
    std::string keepers;
    for (const CodecEntry* other : codec_registry()) {
      if (!other->keeps_guards) continue;
      keepers += (keepers.empty() ? "" : ", ") + std::string(other->name);
    }
    return Status(Code::unsupported, "codec " + request.name + ": it cannot keep guard=" +
                                         guards_text(guards) + "; these codecs can: " + keepers);
  }
  if (guards.of_bound() && !(request.absolute_bound > 0)) {
    return Status(Code::unsupported, "codec " + request.name + ": guard=" + guards_text(guards) +
                                         " needs a bound of mode abs, rel or psnr");
  }
  return Status();
}

}  // namespace

Status check_codec_name(std::string_view name) {
  if (find_codec(name) != nullptr) return Status();
  return Status(Code::invalid_argument,
                "codec \"" + std::string(name) + "\" is unknown; choose one of: " + codec_names() +
                    ", or id=NUMBER for any filter plug-in" + codec_hint(name));
}

Result<std::unique_ptr<Codec>> make_codec(const CodecRequest& request,
                                          const std::string& plugin_path) {
  TAILRACE_TRY(check_codec_name(request.name));
  const CodecEntry* entry = find_codec(request.name);
  if (entry->reals_only && !is_floating(request.dtype)) {
    return Status(Code::unsupported, "codec " + request.name + ": cannot bound the errors of " +
                                         std::string(dtype_name(request.dtype)) +
                                         " values; it takes f32 and f64");
  }
  Result<std::unique_ptr<Codec>> codec = entry->make(request, plugin_path);
  if (codec.ok() && (*codec)->lossy()) TAILRACE_TRY(check_guards(*entry, request));
  // A codec that rounds before its filters needs numbers in native byte order: do not wrap it.
  if (codec.ok() && request.swapped && entry->any_byte_order && !entry->rounds_before) {
    return std::unique_ptr<Codec>(
        std::make_unique<SwappingCodec>(std::move(*codec), dtype_bytes(request.dtype)));
  }
  return codec;
}

}  // namespace tailrace
