#include "verbs/repack_kept.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codec/deflate.hpp"
#include "core/codec_registry.hpp"
#include "core/utf8.hpp"

namespace tailrace::verbs {
namespace {

constexpr std::size_t kNamesInSentence = 50;

/// A field of the input with its dataset in the output.
struct CopiedField {
  const StoredDataset& before;
  const FieldDefinition& definition;
  const FieldReport& written;
  bool contiguous() const { return written.layout == "contiguous"; }
  bool in_chunks() const { return !contiguous() && !definition.in_header; }
};

bool loses_checksum(const CopiedField& copy) {
  if (!has_checksum(copy.before) || copy.definition.as_stored != nullptr) return false;
  return std::ranges::none_of(copy.definition.options.codec_settings, [](const KeyValue& setting) {
    return setting.first == "checksum" && setting.second == "on";
  });
}

bool loses_byte_order(const CopiedField& copy) {
  const bool kept =
      copy.definition.as_stored != nullptr || codec_entry(copy.written.codec).any_byte_order;
  return copy.before.swapped && !kept;
}

bool loses_named_type(const CopiedField& copy) {
  return copy.before.named_type && (copy.before.type_path.empty() || loses_byte_order(copy));
}

bool leaves_header(const CopiedField& copy) {
  return copy.before.storage.kind == StoredForm::Kind::compact && !copy.definition.in_header;
}

bool loses_limits(const CopiedField& copy) {
  const Shape& limits = copy.before.max_shape;
  return !limits.empty() && copy.definition.like->max_shape != limits;
}

bool loses_plain_edges(const CopiedField& copy) {
  return copy.before.plain_edges && copy.in_chunks();
}

/// The output allocates chunks when they are written.
bool loses_allocation(const CopiedField& copy) {
  constexpr std::uint8_t as_written = 3;  // H5D_ALLOC_TIME_INCR
  return copy.before.chunked() && copy.in_chunks() && copy.before.times.allocation != as_written;
}

bool loses_chunks(const CopiedField& copy) {
  return copy.before.chunked() && copy.contiguous() &&
         copy.definition.options.layout != "contiguous";
}

bool gets_space(const CopiedField& copy) {
  const StoredDataset& before = copy.before;
  return before.storage.kind == StoredForm::Kind::contiguous && before.stored_bytes == 0 &&
         copy.contiguous() && copy.definition.raw_bytes() > 0;
}

bool loses_attribute_form(const CopiedField& copy) { return copy.before.own_attribute_form; }

}  // namespace

bool has_checksum(const StoredDataset& field) {
  return std::ranges::any_of(field.storage.filters, [](const FilterSpec& filter) {
    return filter.filter_id == kFletcher32FilterId;
  });
}

std::vector<std::string> what_is_not_kept(std::span<const StoredDataset> fields,
                                          std::span<const PlannedField> plan,
                                          std::span<const FieldReport> written) {
  std::vector<std::string> sentences;
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    sentences.push_back(fmt::format("{}: {}", what, first_names_text(names, kNamesInSentence)));
  };
  const auto report = [&](std::string_view what, bool (*concerns)(const CopiedField&)) {
    std::vector<std::string> names;
    for (std::size_t f = 0; f < plan.size(); ++f) {
      const PlannedField& planned = plan[f];
      if (concerns({fields[planned.input_index], planned.definition, written[f]})) {
        names.push_back(planned.definition.path);
      }
    }
    if (!names.empty()) add(what, names);
  };
  report("Fletcher32 checksums are not kept (codecs deflate and portable have them)",
         loses_checksum);
  report("numbers are stored in this machine's byte order, not in the input's", loses_byte_order);
  report("named types become plain types of their datasets", loses_named_type);
  report("compact datasets (values in the object header) become contiguous or chunked",
         leaves_header);
  report("dimensions with a maximum extent become fixed", loses_limits);
  report("chunks are not allocated before they are written", loses_allocation);
  report("partial edge chunks are filtered like all others", loses_plain_edges);
  report("datasets that were never written are stored with fill values", gets_space);
  report("datasets without values are stored without chunks", loses_chunks);
  report("limits for attributes in a header are not kept", loses_attribute_form);
  std::map<std::string_view, std::vector<std::string>> other_chunks;
  for (const PlannedField& planned : plan) {
    if (planned.other_chunks_reason.empty()) continue;
    other_chunks[planned.other_chunks_reason].push_back(planned.definition.path);
  }
  for (const auto& [reason, names] : other_chunks) add(reason, names);
  return sentences;
}

}  // namespace tailrace::verbs
