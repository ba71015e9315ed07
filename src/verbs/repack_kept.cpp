#include "verbs/repack_kept.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codec/deflate.hpp"
#include "core/utf8.hpp"

namespace tailrace::verbs {
namespace {

constexpr std::size_t names_in_sentence = 4;

/// True if the output's chunks get a checksum.
bool gets_checksum(const FieldDefinition& definition) {
  if (definition.as_stored != nullptr) return true;
  return std::ranges::any_of(definition.options.codec_settings, [](const KeyValue& setting) {
    return setting.first == "checksum" && setting.second == "on";
  });
}

}  // namespace

bool has_checksum(const StoredDataset& field) {
  return std::ranges::any_of(field.storage.filters, [](const FilterSpec& filter) {
    return filter.filter_id == fletcher32_filter_id;
  });
}

std::vector<std::string> what_is_not_kept(std::span<const StoredDataset> fields,
                                          std::span<const PlannedField> plan) {
  std::vector<std::string> sentences;
  const auto tell = [&](std::string_view what, const auto& concerns) {
    std::vector<std::string> names;
    for (const PlannedField& planned : plan) {
      if (concerns(fields[planned.input_index], planned.definition)) {
        names.push_back(planned.definition.path);
      }
    }
    if (names.empty()) return;
    sentences.push_back(fmt::format("{}: {}", what, first_names_text(names, names_in_sentence)));
  };
  tell("Fletcher's checksums are not kept (codecs deflate and portable have them)",
       [](const StoredDataset& field, const FieldDefinition& definition) {
         return has_checksum(field) && !gets_checksum(definition);
       });
  tell("numbers are stored in this machine's byte order, not in the input's",
       [](const StoredDataset& field, const FieldDefinition&) { return field.swapped; });
  tell("types that are objects of the input become types of their datasets alone",
       [](const StoredDataset& field, const FieldDefinition&) { return field.named_type; });
  tell("datasets that lie in their headers (compact) get a place of their own",
       [](const StoredDataset& field, const FieldDefinition&) {
         return field.storage.kind == StoredForm::Kind::compact;
       });
  return sentences;
}

}  // namespace tailrace::verbs
