// Facts of one rank, related to those of all ranks.

#include "field/range_evidence.hpp"

#include <algorithm>
#include <cmath>

#include "core/codec_registry.hpp"
#include "field/field_state.hpp"

namespace tailrace {
namespace {

BoundSubject subject_of(const FieldState& field, const OptionSyntax& syntax) {
  const FieldDefinition& definition = field.definition;
  return {definition.path,
          definition.name(),
          definition.dtype,
          definition.options.bound,
          field.resolved.absolute_bound,
          syntax};
}

/// False for a field that was refused before it got a codec.
bool is_refused(const FieldState& field) {
  return field.resolved.codec != nullptr && field.resolved.codec->lossy() &&
         field.resolved.width.refused(field.definition.options.allow_wide_bound);
}

}  // namespace

void RangeEvidence::add(DType dtype, std::span<const std::byte> values,
                        std::optional<double> fill_value) {
  range.merge(value_range(dtype, values, fill_value));
  sample.add(dtype, values, fill_value);
}

ValueFacts RangeEvidence::facts(double least, double greatest, double absolute_bound) const {
  ValueFacts facts;
  facts.least = least;
  facts.greatest = greatest;
  facts.n_values = range.n_finite;
  const bool has_least = range.least == least;
  const bool has_greatest = range.greatest == greatest;
  facts.n_least = has_least ? range.n_least : 0;
  facts.next_least = has_least ? range.next_least : range.least;
  facts.n_greatest = has_greatest ? range.n_greatest : 0;
  facts.next_greatest = has_greatest ? range.next_greatest : range.greatest;
  facts.n_nonzero = sample.n_nonzero();
  facts.n_below = sample.n_below(absolute_bound);
  facts.lower_quartile = sample.lower_quartile();
  return facts;
}

ValueFacts facts_of(const ValueRange& range, const MagnitudeCount& magnitudes) {
  return {range.least,         range.greatest,
          range.n_finite,      range.n_least,
          range.n_greatest,    range.next_least,
          range.next_greatest, magnitudes.n_nonzero,
          magnitudes.n_below,  0};
}

BoundVerdicts::BoundVerdicts(const std::vector<FieldState>& fields) {
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const FieldState& field = fields[f];
    const ResolvedField& resolved = field.resolved;
    if (field.evidence == nullptr || !field.makes_dataset()) continue;
    if (!field.definition.options.bound.needs_range()) continue;
    Entry& entry = entries_.emplace_back();
    entry.field = f;
    entry.facts = field.evidence->facts(resolved.value_least, resolved.value_greatest,
                                        resolved.absolute_bound);
    entry.greatest_negated = -entry.facts.next_greatest;
  }
}

RankNumbers BoundVerdicts::numbers() {
  RankNumbers numbers;
  for (Entry& entry : entries_) {
    ValueFacts& facts = entry.facts;
    numbers.add(Reduction::sum, facts.n_values, facts.n_least, facts.n_greatest, facts.n_nonzero,
                facts.n_below);
    numbers.add(Reduction::min, facts.next_least, entry.greatest_negated, facts.lower_quartile);
  }
  return numbers;
}

void BoundVerdicts::note(std::vector<FieldState>& fields) const {
  for (const Entry& entry : entries_) {
    FieldState& field = fields[entry.field];
    ValueFacts facts = entry.facts;
    facts.next_greatest = -entry.greatest_negated;
    field.resolved.width =
        judge_bound(field.definition.options.bound, field.resolved.absolute_bound, facts);
    field.evidence.reset();
  }
}

Result<std::string> store_refused_exactly(Comm& comm, FieldState& field,
                                          const std::string& plugin_path,
                                          const OptionSyntax& syntax) {
  if (!field.is_new() || !is_refused(field)) return std::string();
  std::string refusal = refusal_text(subject_of(field, syntax), field.resolved.width);
  FieldOptions& options = field.definition.options;
  options.bound = ErrorBound();
  options.guards = Guards();
  field.resolved.absolute_bound = field.resolved.pointwise_bound = 0;
  field.resolved.width = BoundVerdict();
  std::vector<FieldState> one;
  one.push_back(std::move(field));
  Status prepared = prepare_codecs(comm, one, plugin_path, nullptr);
  if (!prepared.ok() || one.front().resolved.codec->lossy()) {
    one.front().definition.options.codec = kExactCodec;
    one.front().definition.options.codec_settings.clear();
    prepared = prepare_codecs(comm, one, plugin_path, nullptr);
  }
  field = std::move(one.front());
  TAILRACE_TRY(prepared);
  return refusal;
}

Status check_bound_width(const FieldState& field, const OptionSyntax& syntax) {
  if (!is_refused(field)) return Status();
  return Status(Code::invalid_argument,
                refusal_text(subject_of(field, syntax), field.resolved.width));
}

Status check_bound_widths(const std::vector<FieldState>& fields, const OptionSyntax& syntax) {
  std::string text;
  std::string others;
  for (const FieldState& field : fields) {
    if (!field.is_new() || !is_refused(field)) continue;
    if (text.empty()) {
      text = refusal_text(subject_of(field, syntax), field.resolved.width);
    } else {
      others += (others.empty() ? ". Likewise " : ", ") + field.definition.name() + " (" +
                value_text(field.resolved.width.extreme, field.definition.dtype) + ")";
    }
  }
  return text.empty() ? Status() : Status(Code::invalid_argument, text + others);
}

std::string unused_bound_remark(const FieldState& field) {
  const FieldOptions& options = field.definition.options;
  const bool chosen = !options.codec_given || options.codec == kAutoCodec;
  const DType dtype = field.definition.dtype;
  const bool real = dtype == DType::f32 || dtype == DType::f64;
  if (chosen || !real || options.bound.lossless()) return "";
  const CodecEntry* const codec = find_codec(options.codec);
  if (codec == nullptr || codec->loss != Loss::never) return "";
  return field.definition.name() + ": " + unused_bound_text(options.codec, options.bound);
}

std::string bound_width_remark(const FieldState& field, const OptionSyntax& syntax) {
  if (!field.resolved.codec->lossy()) return unused_bound_remark(field);
  return remark_text(subject_of(field, syntax), field.resolved.width);
}

}  // namespace tailrace
