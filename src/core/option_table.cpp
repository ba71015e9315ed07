// The table of options, and what is made of it. The value of each is parsed by a function of its
// kind; what is peculiar to one option has a function of its own.

#include "core/option_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/codec_registry.hpp"
#include "core/utf8.hpp"

namespace tailrace {
namespace {

constexpr unsigned by_write = static_cast<unsigned>(Engine::write);
constexpr unsigned by_array = static_cast<unsigned>(Engine::array);
constexpr unsigned by_concat = static_cast<unsigned>(Engine::concat);
constexpr unsigned by_serial = static_cast<unsigned>(Engine::serial);
constexpr unsigned by_steps_and_arrays = by_write | by_array;
constexpr unsigned by_all_but_concat = by_steps_and_arrays | by_serial;
constexpr unsigned by_all = by_write | by_array | by_concat;

// --- values of each kind, by pointers to members

template <class Pointer>
struct Member;
template <class OptionsOf, class ValueOf>
struct Member<ValueOf OptionsOf::*> {
  using Options = OptionsOf;
  using Value = ValueOf;
};
template <auto member>
using OptionsWith = typename Member<decltype(member)>::Options;

template <auto member>
Status assign_switch(const KeyValue& entry, OptionsWith<member>& options) {
  TAILRACE_TAKE(options.*member, parse_switch(entry.first, entry.second));
  return Status();
}

Status parse_bytes_into(const KeyValue& entry, std::uint64_t least, std::uint64_t& target) {
  TAILRACE_TAKE(std::uint64_t parsed, parse_bytes(entry.second).within("option " + entry.first));
  if (parsed < least) {
    return bad_option_value(entry.first, entry.second,
                            "at least " + std::to_string(least) + " bytes");
  }
  target = parsed;
  return Status();
}

template <auto member, std::uint64_t least>
Status assign_bytes(const KeyValue& entry, OptionsWith<member>& options) {
  return parse_bytes_into(entry, least, options.*member);
}

/// A text that is checked where what it names is known.
template <auto member>
Status assign_text(const KeyValue& entry, OptionsWith<member>& options) {
  options.*member = entry.second;
  return Status();
}

/// A number in [least, greatest]; `wanted` says so.
Status parse_number_into(const KeyValue& entry, double least, double greatest,
                         std::string_view wanted, double& target) {
  std::string_view rest;
  const std::optional<double> number = leading_number(entry.second, rest);
  if (!number || !rest.empty() || !(*number >= least) || !(*number <= greatest)) {
    return bad_option_value(entry.first, entry.second, wanted);
  }
  target = *number;
  return Status();
}

template <auto member>
std::string value_text(const OptionsWith<member>& options) {
  using Value = typename Member<decltype(member)>::Value;
  if constexpr (std::is_same_v<Value, bool>) {
    return options.*member ? "on" : "off";
  } else if constexpr (std::is_same_v<Value, double>) {
    return number_text(options.*member);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return options.*member;
  } else {
    return std::to_string(options.*member);
  }
}

/// One of several words.
template <class Value>
struct Word {
  std::string_view name;
  Value value;
};
constexpr std::array<Word<StepMode>, 3> mode_words = {
    {{"sync", StepMode::sync}, {"async", StepMode::async}, {"in_situ", StepMode::in_situ}}};
constexpr std::array<Word<Notes>, 3> notes_words = {
    {{"off", Notes::off}, {"one", Notes::one}, {"all", Notes::all}}};
constexpr std::array<Word<Compatibility>, 3> compatibility_words = {
    {{"auto", Compatibility::automatic},
     {"everyone", Compatibility::everyone},
     {"v110", Compatibility::v110}}};
constexpr std::array<Word<bool>, 2> writers_words = {{{"each", false}, {"node", true}}};
constexpr std::array<Word<bool>, 2> hold_words = {{{"copy", false}, {"promise", true}}};
constexpr std::array<Word<bool>, 2> covered_words = {{{"keep", false}, {"drop", true}}};
constexpr std::array<Word<Objective>, 3> objective_words = {
    {{"speed", Objective::speed}, {"size", Objective::size}, {"balanced", Objective::balanced}}};

template <auto member, const auto& words>
Status assign_word(const KeyValue& entry, OptionsWith<member>& options) {
  std::string wanted;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].name == entry.second) {
      options.*member = words[i].value;
      return Status();
    }
    wanted += i == 0 ? "" : i + 1 < words.size() ? ", " : " or ";
    wanted += words[i].name;
  }
  return bad_option_value(entry.first, entry.second, wanted);
}

template <auto member, const auto& words>
std::string word_text(const OptionsWith<member>& options) {
  for (const auto& word : words) {
    if (word.value == options.*member) return std::string(word.name);
  }
  return "";
}

// --- options with values of their own kind

Status assign_why(const KeyValue& entry, FileOptions& options) {
  if (entry.second == "measured" || entry.second == "predicted") {
    options.why = entry.second == "measured" ? Why::measured : Why::predicted;
    return Status();
  }
  Result<bool> on = parse_switch(entry.first, entry.second);
  if (!on.ok()) {
    return bad_option_value(entry.first, entry.second, "on, off, predicted or measured");
  }
  options.why = *on ? Why::predicted : Why::off;
  return Status();
}
std::string why_text(const FileOptions& options) {
  return options.why == Why::off ? "off" : options.why == Why::measured ? "measured" : "predicted";
}

Status assign_threads(const KeyValue& entry, FileOptions& options) {
  TAILRACE_TAKE(options.n_threads, parse_count(entry.first, entry.second, 0));
  return Status();
}

Status assign_alignment(const KeyValue& entry, FileOptions& options) {
  if (entry.second != "auto") return parse_bytes_into(entry, 1, options.alignment_bytes);
  options.alignment_bytes = 0;
  return Status();
}

Status assign_trace_path(const KeyValue& entry, FileOptions& options) {
  if (entry.second.empty()) return bad_option_value(entry.first, entry.second, "a file's name");
  options.trace_path = entry.second;
  options.trace = true;
  return Status();
}

Status assign_target_psnr(const KeyValue& entry, FileOptions& options) {
  return parse_number_into(entry, 1, 400, "decibels, such as 80", options.target_psnr_db);
}

Status assign_codec(const KeyValue& entry, FieldOptions& options) {
  if (entry.second.empty()) return bad_option_value(entry.first, entry.second, "a codec's name");
  options.codec = entry.second;
  options.codec_given = true;
  options.codec_given_for_field = true;
  options.codec_settings.clear();
  return Status();
}
std::string codec_text(const FieldOptions& options) {
  std::string text = options.codec;
  for (const auto& [key, value] : options.codec_settings) text += "," + key + "=" + value;
  if (!options.codec_given) return text + " (default)";
  return text + (options.codec_given_for_field ? "" : " (of the file)");
}

Status assign_bound(const KeyValue& entry, FieldOptions& options) {
  TAILRACE_TAKE(options.bound, parse_error_bound(entry.second));
  options.bound_given = true;
  return Status();
}
std::string bound_text(const FieldOptions& options) {
  return error_bound_text(options.bound) + (options.bound_given ? "" : " (default)");
}

Status assign_guard(const KeyValue& entry, FieldOptions& options) {
  TAILRACE_TAKE(options.guards, parse_guards(entry.second));
  return Status();
}
std::string guard_text(const FieldOptions& options) { return guards_text(options.guards); }

Status assign_earlier_loss(const KeyValue& entry, FieldOptions& options) {
  options.earlier_loss.clear();
  if (entry.second == "none") return Status();
  TAILRACE_TAKE(options.earlier_loss, parse_losses(entry.second).within("option earlier-loss"));
  return Status();
}
std::string earlier_loss_text(const FieldOptions& options) {
  return options.earlier_loss.empty() ? "none" : losses_text(options.earlier_loss);
}

Status assign_chunk(const KeyValue& entry, FieldOptions& options) {
  const std::string& text = entry.second;
  options.chunk_shape.reset();
  if (text.find('x') == std::string::npos) {
    return parse_bytes_into(entry, 1, options.chunk_bytes);
  }
  // "1000x" is a shape of one dimension, which "1000" (bytes) could not say.
  const bool single = text.back() == 'x';
  const std::string_view extents = std::string_view(text).substr(0, text.size() - single);
  TAILRACE_TAKE(Shape shape, parse_shape(extents).within("option chunk"));
  if (n_elements(shape) == 0) return bad_option_value(entry.first, text, "extents >= 1");
  options.chunk_shape = shape;
  return Status();
}
std::string chunk_text(const FieldOptions& options) {
  return options.chunk_shape ? shape_text(*options.chunk_shape)
                             : std::to_string(options.chunk_bytes);
}

/// "performance", "balanced", "storage", a weight "0.8:0.2" (performance:storage), or a ratio
/// "1.25".
Status assign_space(const KeyValue& entry, FieldOptions& options) {
  const auto& [key, text] = entry;
  SpaceGoal& space = options.space;
  constexpr std::string_view wanted =
      "performance, balanced, storage, weights such as 0.8:0.2, or a ratio >= 1 such as 1.25";
  if (text == "performance" || text == "balanced" || text == "storage") {
    space = {0, text == "performance" ? 1.0 : text == "balanced" ? 0.5 : 0.0};
    return Status();
  }
  std::string_view rest;
  const std::optional<double> first = leading_number(text, rest);
  if (first && rest.empty() && *first >= 1 && *first <= 100) {
    space = {*first, 0.5};
    return Status();
  }
  if (!first || *first < 0 || rest.empty() || rest.front() != ':') {
    return bad_option_value(key, text, wanted);
  }
  const std::optional<double> second = leading_number(rest.substr(1), rest);
  const double sum = second ? *first + *second : 0;
  if (!second || !rest.empty() || *second < 0 || !(sum > 0)) {
    return bad_option_value(key, text, wanted);
  }
  space = {0, *first / sum};
  return Status();
}
std::string space_text(const FieldOptions& options) {
  return number_text(options.space.ratio) + ":" + number_text(options.space.performance_weight);
}

Status assign_expected_ratio(const KeyValue& entry, FieldOptions& options) {
  return parse_number_into(entry, 1, 1e6, "a ratio >= 1", options.expected_ratio);
}
Status assign_expected_error(const KeyValue& entry, FieldOptions& options) {
  return parse_number_into(entry, 0, 10, "a fraction such as 0.1", options.expected_error);
}

Status assign_verify(const KeyValue& entry, FieldOptions& options) {
  if (entry.second == "auto") {
    options.verify = Verify::automatic;
    return Status();
  }
  TAILRACE_TAKE(bool on, parse_switch(entry.first, entry.second));
  options.verify = on ? Verify::on : Verify::off;
  return Status();
}
std::string verify_text(const FieldOptions& options) {
  return options.verify == Verify::automatic ? "auto" : options.verify == Verify::on ? "on" : "off";
}

/// True unless the text is an integer and the number another one: an f64 holds all integers up to
/// 2^53, and fewer beyond.
bool holds_integer(double number, std::string_view text) {
  std::string digits(text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0));
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return true;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  std::array<char, 400> held{};
  char* const first = held.data();
  const auto [end, failed] =
      std::to_chars(first, first + held.size(), std::fabs(number), std::chars_format::fixed, 0);
  return failed == std::errc() && digits == std::string_view(first, std::size_t(end - first));
}

Status assign_fill(const KeyValue& entry, FieldOptions& options) {
  std::string_view rest;
  const std::optional<double> number = leading_number(entry.second, rest);
  if (!number || !rest.empty()) return bad_option_value(entry.first, entry.second, "a number");
  if (!holds_integer(*number, entry.second)) {
    return bad_option_value(entry.first, entry.second, "a number that an f64 holds exactly");
  }
  options.fill_value = *number;
  return Status();
}
std::string fill_text(const FieldOptions& options) {
  return options.fill_value ? number_text(*options.fill_value) : "none";
}

// --- the table

constexpr auto alike = Agreement::alike;
using File = OptionEntry<FileOptions>;
using Field = OptionEntry<FieldOptions>;

template <auto member>
constexpr OptionEntry<OptionsWith<member>> switch_option(std::string_view name, unsigned engines,
                                                         std::string_view meaning) {
  return {name, "on, off", meaning, alike, engines, assign_switch<member>, value_text<member>};
}
template <auto member>
constexpr OptionEntry<OptionsWith<member>> text_option(std::string_view name,
                                                       std::string_view values, Agreement agreement,
                                                       unsigned engines, std::string_view meaning) {
  return {name, values, meaning, agreement, engines, assign_text<member>, value_text<member>};
}
template <auto member, std::uint64_t least>
constexpr OptionEntry<OptionsWith<member>> bytes_option(std::string_view name, unsigned engines,
                                                        std::string_view meaning) {
  return {name, "BYTES", meaning, alike, engines, assign_bytes<member, least>, value_text<member>};
}

constexpr std::array<File, 25> file_table = {{
    {"mode", "sync, async, in_situ",
     "When the work of a step is done: within end_step, on threads of ours while the program "
     "computes, or in the idle time that it marks. Of arrays HDF5 programs' alone: sync, async.",
     alike, by_steps_and_arrays, assign_word<&FileOptions::mode, mode_words>,
     word_text<&FileOptions::mode, mode_words>},
    {"hold", "copy, promise",
     "Modes async and in_situ: values are copied, or kept by the caller until the step is done.",
     alike, by_write, assign_word<&FileOptions::hold_promise, hold_words>,
     word_text<&FileOptions::hold_promise, hold_words>},
    text_option<&FileOptions::balance>(
        "balance", "best, paper, off", alike, by_write,
        "Mode in_situ: by which rule ranks of a node write for each other."),
    {"writers", "each, node",
     "Who writes chunks into the file: each rank its own, or one rank of each node those of all of "
     "its ranks.",
     alike, by_write, assign_word<&FileOptions::node_writes, writers_words>,
     word_text<&FileOptions::node_writes, writers_words>},
    text_option<&FileOptions::record_path>(
        "record", "FILE", alike, by_write,
        "Mode in_situ: what the iterations were like, for `tailrace simulate`."),
    text_option<&FileOptions::scheduler>("scheduler", "search, ...", alike, by_write,
                                         "Mode in_situ: how the plan is made."),
    {"threads", "N", "Encode threads of a rank; 0: the node's cores over its ranks.",
     Agreement::own, by_all, assign_threads, value_text<&FileOptions::n_threads>},
    {"memory", "BYTES", "Most that a step allocates on a rank.", Agreement::own, by_all,
     assign_bytes<&FileOptions::memory_bytes, 1U << 20>, value_text<&FileOptions::memory_bytes>},
    bytes_option<&FileOptions::write_buffer_bytes, 1>("buffer", by_all, "Largest single write."),
    {"align", "auto, BYTES",
     "Writes start at multiples of this; auto: as the machine profile says, 1 without one.", alike,
     by_steps_and_arrays, assign_alignment, value_text<&FileOptions::alignment_bytes>},
    switch_option<&FileOptions::direct_io>("direct", by_all, "Past the system's page cache."),
    switch_option<&FileOptions::sync>("fsync", by_all, "What is committed is on stable storage."),
    switch_option<&FileOptions::journal>("journal", by_all,
                                         "A redo journal against torn writes of metadata."),
    switch_option<&FileOptions::replace>("replace", by_all, "An existing file may be replaced."),
    {"compatibility", "auto, everyone, v110",
     "Whose HDF5 the file is for. everyone: forms of HDF5 1.8, which Java, JavaScript and other "
     "implementations read; v110: smaller chunk indexes, HDF5 1.10 or newer; auto: everyone, but "
     "for fields that grow over time.",
     alike, by_all, assign_word<&FileOptions::compatibility, compatibility_words>,
     word_text<&FileOptions::compatibility, compatibility_words>},
    {"attributes", "off, one, all",
     "Which say how values were encoded: none, those of lossy datasets and one of the file, or "
     "every dataset's. A file of others has every new dataset's under one, too.",
     alike, by_all_but_concat, assign_word<&FileOptions::notes, notes_words>,
     word_text<&FileOptions::notes, notes_words>},
    {"trace-file", "FILE", "Write that there when the file is closed.", alike, by_write,
     assign_trace_path, value_text<&FileOptions::trace_path>},
    switch_option<&FileOptions::trace>("trace", by_write, "Keep what each lane did when."),
    {"for", "speed, size, balanced", "What codec auto makes small.", alike, by_steps_and_arrays,
     assign_word<&FileOptions::objective, objective_words>,
     word_text<&FileOptions::objective, objective_words>},
    {"why", "on, off, predicted, measured",
     "How codec auto is explained; measured: it also encodes its sample with each candidate.",
     alike, by_steps_and_arrays, assign_why, why_text},
    bytes_option<&FileOptions::target_bytes, 1>("target-size", by_steps_and_arrays,
                                                "The tightest bounds that make about this size."),
    text_option<&FileOptions::profile_path>(
        "profile", "FILE", Agreement::root, by_steps_and_arrays,
        "Machine profile, or built-in; else the environment's TAILRACE_PROFILE, the user's own, "
        "typical values."),
    {"target-psnr", "DECIBELS", "Bounds that make about this PSNR.", alike, by_steps_and_arrays,
     assign_target_psnr, value_text<&FileOptions::target_psnr_db>},
    text_option<&FileOptions::order>(
        "order", "given, largest-first, smallest-first, insertion, johnson", alike, by_write,
        "In which order each rank encodes its chunks."),
    text_option<&FileOptions::plugin_path>("plugin-path", "FOLDER", Agreement::own, by_all,
                                           "Searched for filter plug-ins before HDF5_PLUGIN_PATH."),
}};

constexpr std::array<Field, 16> field_table = {{
    {"codec", "auto, none, deflate, portable, trz, xor, sz3, ..., id=NUMBER",
     "What chunks are encoded with; deflate, or auto where a bound is given. Its own settings "
     "follow as key=value.",
     alike, by_all_but_concat, assign_codec, codec_text},
    {"bound", "none, abs=X, rel=X, pw_rel=X, psnr=X", "The largest error of any value.", alike,
     by_all_but_concat, assign_bound, bound_text},
    {"guard",
     "none, sign, zero, threshold=X, minmax, gradient=X, laplacian=X, log=X, power=P:X, sum, "
     "monotone=AXIS, region=WHERE:X",
     "What decoded values keep besides the bound, exactly; several are joined by +.", alike,
     by_all_but_concat, assign_guard, guard_text},
    {"earlier-loss", "none, LOSS, LOSS then LOSS ...",
     "Losses that the values have before they are put, each abs=X, pw_rel=X or unknown: the "
     "recorded bound is the total of these and the new one.",
     alike, by_steps_and_arrays, assign_earlier_loss, earlier_loss_text},
    {"chunk", "BYTES, SHAPE",
     "About this size for chunks, or exactly this shape (1000x: of one "
     "dimension). Of a field over time, with one extent more in front: so many steps in a chunk.",
     alike, by_all_but_concat, assign_chunk, chunk_text},
    text_option<&FieldOptions::layout>(
        "layout", "claimed, dense, arena, predictive, hybrid, sparse, contiguous, front", alike,
        by_all, "Where chunks go in the file."),
    {"space", "performance, balanced, storage, W:W, RATIO",
     "Layouts arena and predictive: what is reserved beyond predicted sizes.", alike,
     by_steps_and_arrays, assign_space, space_text},
    {"expected-ratio", "RATIO", "Layout hybrid: raw over encoded bytes.", alike,
     by_steps_and_arrays, assign_expected_ratio, value_text<&FieldOptions::expected_ratio>},
    {"verify", "auto, on, off",
     "Decode every chunk after encoding; auto: for lossy codecs that are not Tailrace's own.",
     alike, by_steps_and_arrays, assign_verify, verify_text},
    {"fill", "NUMBER", "The fill value, kept exactly and left out of the value range.", alike,
     by_steps_and_arrays, assign_fill, fill_text},
    switch_option<&FieldOptions::allow_wide_bound>(
        "allow-wide-bound", by_all_but_concat,
        "A rel or psnr bound is kept to, where else it would be refused since an undeclared fill "
        "value widens it."),
    switch_option<&FieldOptions::fall_back_to_raw>(
        "raw-fallback", by_steps_and_arrays,
        "A chunk that its codec cannot keep within the bound is stored raw, or is an error."),
    switch_option<&FieldOptions::allow_holes>("holes", by_steps_and_arrays,
                                              "Elements that no rank puts get the fill value."),
    switch_option<&FieldOptions::over_time>(
        "over-time", by_steps_and_arrays,
        "One entry more of an unlimited first dimension in every step."),
    {"covered", "keep, drop",
     "Values of a plotfile's level in cells that boxes of the next finer level cover: drop, they "
     "need not be kept. HDF5 programs and repack.",
     alike, by_steps_and_arrays, assign_word<&FieldOptions::drop_covered, covered_words>,
     word_text<&FieldOptions::drop_covered, covered_words>},
    {"expected-error", "FRACTION", "Layout hybrid: by which fraction the ratio may be off.", alike,
     by_steps_and_arrays, assign_expected_error, value_text<&FieldOptions::expected_error>},
}};

template <class Entries>
std::string names_of(const Entries& entries) {
  std::string text;
  for (const auto& entry : entries) text += (text.empty() ? "" : ", ") + std::string(entry.name);
  return text;
}

template <class Entries>
auto find_entry(const Entries& entries, std::string_view name) {
  return std::ranges::find_if(entries, [&](const auto& entry) { return entry.name == name; });
}

}  // namespace

std::span<const File> file_option_table() { return file_table; }
std::span<const Field> field_option_table() { return field_table; }

// --- parsing

Status apply_field_option(const KeyValue& entry, FieldOptions& options) {
  const auto known = find_entry(field_table, entry.first);
  if (known != field_table.end()) return known->assign(entry, options);
  TAILRACE_TRY(check_codec_setting(entry.first, options.codec_given ? options.codec : ""));
  options.codec_settings.push_back(entry);
  return Status();
}

Status apply_field_options(std::string_view text, FieldOptions& options) {
  TAILRACE_TAKE(std::vector<KeyValue> entries, split_key_values(text));
  for (const KeyValue& entry : entries) TAILRACE_TRY(apply_field_option(entry, options));
  return Status();
}

Status apply_file_option(const KeyValue& entry, FileOptions& options) {
  const auto known = find_entry(file_table, entry.first);
  if (known != file_table.end()) return known->assign(entry, options);
  TAILRACE_TRY(apply_field_option(entry, options.field_defaults));
  options.field_defaults.codec_given_for_field = false;
  return Status();
}

Status apply_file_options(std::string_view text, FileOptions& options) {
  TAILRACE_TAKE(std::vector<KeyValue> entries, split_key_values(text));
  for (const KeyValue& entry : entries) TAILRACE_TRY(apply_file_option(entry, options));
  return Status();
}

// --- agreeing and refusing

namespace {

template <class Entries, class Options>
std::string lines_of(const Entries& entries, const Options& options, unsigned engines) {
  std::string text;
  for (const auto& entry : entries) {
    if (entry.agreement != Agreement::alike || (entry.engines & engines) == 0) continue;
    text += std::string(entry.name) + "=" + entry.text(options) + "\n";
  }
  return text;
}

std::string_view writer_text(Engine engine) {
  constexpr std::array<std::string_view, 4> writers = {
      "a file that is written step by step", "a file whose variables are put in any order",
      "a concatenation", "a serial program's own HDF5"};
  return writers[std::size_t(std::countr_zero(static_cast<unsigned>(engine)))];
}

template <class Entries, class Options>
Status check_table(const Entries& entries, const Options& options, Engine engine) {
  const auto bit = static_cast<unsigned>(engine);
  const Options defaults{};
  for (const auto& entry : entries) {
    if ((entry.engines & bit) != 0 || entry.text(options) == entry.text(defaults)) continue;
    std::string served;
    for (const auto& other : entries) {
      if ((other.engines & bit) == 0) continue;
      served += (served.empty() ? "" : ", ") + std::string(other.name);
    }
    return Status(Code::invalid_argument, "option " + std::string(entry.name) + "=" +
                                              entry.text(options) + ": not served by " +
                                              std::string(writer_text(engine)) + "; it serves " +
                                              served);
  }
  return Status();
}

}  // namespace

std::string agreed_text(const FileOptions& options, Engine engine) {
  const auto bit = static_cast<unsigned>(engine);
  return lines_of(file_table, options, bit) + lines_of(field_table, options.field_defaults, bit);
}

std::string agreed_text(const FieldOptions& options) { return lines_of(field_table, options, ~0U); }

Status check_served(const FileOptions& options, Engine engine) {
  TAILRACE_TRY(check_table(file_table, options, engine));
  if (engine != Engine::write && options.field_defaults.layout == front_layout) {
    return Status(Code::invalid_argument,
                  "option layout=front: not served by " + std::string(writer_text(engine)) +
                      "; it is for new files of one step (repack, tailrace.h)");
  }
  if (options.compatibility == Compatibility::v110 &&
      options.field_defaults.layout == front_layout) {
    return Status(Code::invalid_argument,
                  "options layout=front and compatibility=v110 exclude each other: metadata in "
                  "front have the forms that everyone reads");
  }
  return check_served(options.field_defaults, engine);
}

Status check_served(const FieldOptions& options, Engine engine) {
  return check_table(field_table, options, engine);
}

// --- documentation

std::string served_by_text(unsigned engines) {
  std::string by;
  if ((engines & by_write) != 0) by += "steps";
  if ((engines & by_array) != 0) by += by.empty() ? "arrays" : ", arrays";
  if ((engines & by_concat) != 0) by += by.empty() ? "concat" : ", concat";
  if ((engines & by_serial) != 0) by += by.empty() ? "serial" : ", serial";
  return by;
}

std::string_view agreement_text(Agreement agreement) {
  return agreement == Agreement::alike  ? "all ranks"
         : agreement == Agreement::root ? "rank 0's"
                                        : "each rank's";
}

namespace {

template <class Entries>
std::string rows_of(const Entries& entries) {
  std::string text = "| option | values | meaning | alike | served by |\n|---|---|---|---|---|\n";
  for (const auto& entry : entries) {
    text += "| `" + std::string(entry.name) + "=` | " + std::string(entry.values) + " | " +
            std::string(entry.meaning) + " | " + std::string(agreement_text(entry.agreement)) +
            " | " + served_by_text(entry.engines) + " |\n";
  }
  return text;
}

std::string codec_rows() {
  std::string text = "| codec | settings | bound | types |\n|---|---|---|---|\n";
  for (const CodecEntry* entry : codec_registry()) {
    std::string settings;
    for (const std::string_view key : entry->settings) {
      settings += (settings.empty() ? "`" : ", `") + std::string(key) + "=`";
    }
    const std::string modes = entry->keeps_pw_rel ? "abs, pw_rel" : "abs";
    text += "| `" + std::string(entry->name) + "` | " + settings + " | " +
            (entry->loss == Loss::never ? "exact" : modes) +
            (entry->loss == Loss::in_bound ? "; without one exact" : "") +
            (entry->loss == Loss::never || entry->proves_bound ? "" : ", verified") + " | " +
            (entry->reals_only ? "f32, f64" : "") + " |\n";
  }
  return text;
}

}  // namespace

std::string option_table_markdown() {
  std::string text =
      "# Options\n\nMade from the table in `src/core/option_table.cpp` (a test holds this page to "
      "it). All keys may\nstand in a file's options; those of fields are then the defaults of all "
      "its fields. *Alike*: given\ndifferently on two ranks, an option of all ranks is an error "
      "that names it; rank 0's counts alone; each\nrank's own costs that rank time or memory and "
      "decides nothing. *Served by*: what is written step by\nstep (`tailrace.h`, repack), "
      "variables that are put in any order (PnetCDF, Python), concatenation, what serial programs "
      "write\n([serial tools](serial-tools.md)); what is not served is refused.\n\n## Of a "
      "file\n\n";
  return text + rows_of(file_table) + "\n## Of a field\n\n" + rows_of(field_table) +
         "\n## Of a codec\n\nKeys that none but the field's codec reads (`codecs.md`); `id=NUMBER` "
         "is "
         "any filter plug-in.\n\n" +
         codec_rows();
}

// --- names

namespace {

void append(std::span<const std::string_view> names, std::vector<std::string_view>& to) {
  for (const std::string_view name : names) {
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
  }
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

Status check_codec_setting(std::string_view key, std::string_view codec) {
  const std::string quoted = "\"" + std::string(key) + "\"";
  const CodecEntry* const own = find_codec(codec);
  std::vector<std::string_view> settings;
  for (const CodecEntry* each : codec_registry()) append(each->settings, settings);
  const bool of_some = std::find(settings.begin(), settings.end(), key) != settings.end();
  if (own == nullptr && of_some) return Status();
  if (own != nullptr) {
    if (std::ranges::find(own->settings, key) != own->settings.end()) return Status();
    if (of_some) {
      return Status(
          Code::invalid_argument,
          "codec " + std::string(codec) + ": unknown setting " + quoted + "; " +
              (own->settings.empty() ? "it has none" : "it knows: " + listed(own->settings)));
    }
  }
  if (find_entry(file_table, key) != file_table.end()) {
    return Status(Code::invalid_argument,
                  "option " + quoted + " is of the whole file, not of a single field");
  }
  std::vector<std::string_view> all;
  all.reserve(field_table.size() + file_table.size() + settings.size());
  for (const Field& each : field_table) all.push_back(each.name);
  for (const File& each : file_table) all.push_back(each.name);
  append(settings, all);
  const std::string meant = did_you_mean(key, all);
  const std::string nearest = meant.empty() ? "." : meant;
  const std::string of_codec =
      own == nullptr || own->settings.empty()
          ? ""
          : "; of codec " + std::string(codec) + ": " + listed(own->settings);
  return Status(Code::invalid_argument, "unknown option " + quoted + nearest +
                                            " There are: of fields: " + names_of(field_table) +
                                            of_codec + "; of the file: " + names_of(file_table));
}

}  // namespace tailrace
