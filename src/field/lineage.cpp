// Finding a field's lineage, and passing on experience.

#include "field/lineage.hpp"

#include <algorithm>
#include <utility>

#include "core/options.hpp"
#include "field/field.hpp"
#include "field/field_state.hpp"

namespace tailrace {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::vector<std::string> numbers_of(const std::string& path) {
  std::vector<std::string> numbers;
  for (std::size_t at = 0; at < path.size(); ++at) {
    if (!is_digit(path[at])) continue;
    if (at == 0 || !is_digit(path[at - 1])) numbers.emplace_back();
    numbers.back() += path[at];
  }
  return numbers;
}

/// True unless the field keeps its own state (over time) or has no chunks to learn from.
bool has_lineage(const FieldState& field) {
  return field.makes_dataset() && !field.definition.options.over_time &&
         !stored_plainly(field.definition);
}

/// Fields with this text in common are alike to codecs and forecasts.
std::string key_of(const FieldDefinition& definition, const Shape& chunk_shape) {
  const FieldOptions& options = definition.options;
  std::string key = normalised_path(definition.path) + " " +
                    std::string(dtype_name(definition.dtype)) + " " + shape_text(definition.shape) +
                    " " + shape_text(chunk_shape) + " " + error_bound_text(options.bound) + " " +
                    options.codec;
  for (const auto& [name, value] : options.codec_settings) key += "," + name + "=" + value;
  if (options.fill_value) key += " fill=" + std::to_string(*options.fill_value);
  return key;
}

std::uint64_t hash_of_boxes(std::span<const PutRecord> puts) {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a, over whole numbers
  const auto fold = [&hash](const Shape& numbers) {
    for (const std::uint64_t number : numbers) hash = (hash ^ number) * 0x100000001B3U;
  };
  for (const PutRecord& put : puts) {
    fold(put.box.start);
    fold(put.box.count);
  }
  return hash;
}

}  // namespace

std::string normalised_path(const std::string& path) {
  std::string text;
  for (std::size_t at = 0; at < path.size(); ++at) {
    if (!is_digit(path[at])) {
      text += path[at];
    } else if (at == 0 || !is_digit(path[at - 1])) {
      text += '#';
    }
  }
  return text;
}

/// The lineage with this key, not in `taken`, that has the most numbers in common; the first of
/// equals. 0: none.
std::uint64_t LineageTable::match(const std::string& key, const std::vector<std::string>& numbers,
                                  const std::vector<std::uint64_t>& taken) const {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return 0;
  std::uint64_t best = 0;
  std::size_t most_equal = 0;
  for (const std::uint64_t number : known->second) {
    if (std::find(taken.begin(), taken.end(), number) != taken.end()) continue;
    const std::vector<std::string>& others = lineages_.at(number).numbers;
    std::size_t n_equal = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) n_equal += numbers[i] == others[i] ? 1 : 0;
    if (best != 0 && n_equal <= most_equal) continue;
    best = number;
    most_equal = n_equal;
    if (n_equal + 1 >= numbers.size()) break;  // Usually one number is the step count.
  }
  return best;
}

void LineageTable::inherit(std::vector<FieldState>& fields) {
  std::map<std::string, std::vector<std::uint64_t>> taken;  // Keyed by lineage key, for this step.
  for (FieldState& field : fields) {
    if (!has_lineage(field)) continue;
    LearnedField& learned = field.learned;
    Inheritance& own = learned.inherited;
    own = Inheritance();
    own.key = key_of(field.definition, field.resolved.chunk_shape);
    own.boxes_hash = hash_of_boxes(field.puts);
    std::vector<std::uint64_t>& taken_of_key = taken[own.key];
    own.lineage = match(own.key, numbers_of(field.definition.path), taken_of_key);
    if (own.lineage == 0) {
      own.lineage = ++last_number_;
      continue;
    }
    taken_of_key.push_back(own.lineage);
    const Lineage& lineage = lineages_.at(own.lineage);
    own.age = lineage.age;
    const bool choose = lineage.codec_age >= kChooseEvery;
    own.codec = choose ? "" : lineage.codec;
    learned.history = lineage.history;
    learned.encode_correction = lineage.encode_correction;
    learned.claimed = lineage.claimed;
    if (own.boxes_hash != lineage.boxes_hash) learned.history.forget_chunks();
    learned.book = lineage.book;
  }
}

void LineageTable::keep_codec(Lineage& lineage, const std::string& inherited,
                              const FieldReport& seen) {
  const double share = seen.raw_bytes > 0 ? static_cast<double>(seen.encoded_bytes) /
                                                static_cast<double>(seen.raw_bytes)
                                          : 0;
  if (!seen.candidates.empty()) {
    lineage.codec = seen.candidates[seen.chosen_candidate].codec;
    lineage.codec_share = share;
    lineage.codec_age = 1;
    return;
  }
  lineage.codec = inherited;
  ++lineage.codec_age;
  const double drift = lineage.codec_share > 0 && share > 0 ? share / lineage.codec_share : 1;
  if (drift > kShareDrift || drift < 1 / kShareDrift) lineage.codec.clear();
}

void LineageTable::keep(std::span<FieldState* const> active, const StepReport& report) {
  ++n_steps_;
  for (std::size_t p = 0; p < active.size(); ++p) {
    const FieldDefinition& definition = active[p]->definition;
    LearnedField& learned = active[p]->learned;
    const Inheritance& own = learned.inherited;
    if (own.lineage == 0 || definition.options.over_time) continue;
    const auto [at, is_new] = lineages_.try_emplace(own.lineage);
    Lineage& lineage = at->second;
    if (is_new) by_key_[own.key].push_back(own.lineage);
    lineage.key = own.key;
    lineage.numbers = numbers_of(definition.path);
    lineage.last_step = n_steps_;
    ++lineage.age;
    lineage.boxes_hash = own.boxes_hash;
    lineage.history = std::exchange(learned.history, {});  // This dataset is complete.
    lineage.encode_correction = learned.encode_correction;
    lineage.claimed = learned.claimed;
    keep_codec(lineage, own.codec, report.fields[p]);
    lineage.book = inheritable(std::exchange(learned.book, {}));
  }
  forget_idle();
}

void LineageTable::forget_idle() {
  std::erase_if(lineages_, [this](const auto& entry) {
    const auto& [number, lineage] = entry;
    if (lineage.last_step + kForgetAfter > n_steps_) return false;
    const auto known = by_key_.find(lineage.key);
    std::erase(known->second, number);
    if (known->second.empty()) by_key_.erase(known);
    return true;
  });
}

}  // namespace tailrace
