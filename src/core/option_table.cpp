// The table of options, and functions derived from it. Each kind of value has a parser; options
// with special values have their own.

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

constexpr unsigned kBySteps = bits_of({Door::steps});
constexpr unsigned kByRepack = bits_of({Door::repack});
constexpr unsigned kByVariables = bits_of({Door::python, Door::pnetcdf});
constexpr unsigned kBySerial = bits_of({Door::serial});
/// Doors that write a complete file by the engine, field by field.
constexpr unsigned kByEngine =
    bits_of({Door::steps, Door::python, Door::pnetcdf, Door::hdf5, Door::repack});
/// Doors that know values before they create datasets.
constexpr unsigned kByValues = bits_of({Door::steps, Door::python, Door::pnetcdf, Door::repack});
constexpr unsigned kByModes = bits_of({Door::steps, Door::pnetcdf, Door::hdf5});
/// Doors that set fill values by this option; variables and datasets of other doors have their own.
constexpr unsigned kByFill = kBySteps | kByRepack;
/// Doors that decide by the role of a dataset, and have no flag of their own for it.
constexpr unsigned kByRoles = bits_of({Door::python, Door::pnetcdf, Door::hdf5, Door::serial});
/// Doors that know the levels of plotfiles.
constexpr unsigned kByLevels = bits_of({Door::hdf5, Door::repack});
constexpr unsigned kByCodecs = kByEngine | kBySerial;
constexpr unsigned kByAll = kByEngine | bits_of({Door::concat});

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

/// Store a text without checking it; the code that uses the named object checks it.
template <auto member>
Status assign_text(const KeyValue& entry, OptionsWith<member>& options) {
  options.*member = entry.second;
  return Status();
}

/// Parse a number in [least, greatest]; `wanted` describes the range.
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

/// One of several named values.
template <class Value>
struct Word {
  std::string_view name;
  Value value;
};
constexpr std::array<Word<StepMode>, 3> kModeWords = {
    {{"sync", StepMode::sync}, {"async", StepMode::async}, {"in_situ", StepMode::in_situ}}};
constexpr std::array<Word<Notes>, 3> kNotesWords = {
    {{"off", Notes::off}, {"one", Notes::one}, {"all", Notes::all}}};
constexpr std::array<Word<Compatibility>, 3> kCompatibilityWords = {
    {{"auto", Compatibility::automatic},
     {"everyone", Compatibility::everyone},
     {"v110", Compatibility::v110}}};
constexpr std::array<Word<bool>, 2> kHoldWords = {{{"copy", false}, {"promise", true}}};
constexpr std::array<Word<bool>, 2> kCoveredWords = {{{"keep", false}, {"drop", true}}};
constexpr std::array<Word<Objective>, 3> kObjectiveWords = {
    {{"speed", Objective::speed}, {"size", Objective::size}, {"balanced", Objective::balanced}}};

template <auto member, const auto& words>
Status assign_word(const KeyValue& entry, OptionsWith<member>& options) {
  std::array<std::string_view, words.size()> names;
  for (std::size_t i = 0; i < words.size(); ++i) {
    names[i] = words[i].name;
    if (names[i] != entry.second) continue;
    options.*member = words[i].value;
    return Status();
  }
  return bad_option_word(entry.first, entry.second, names);
}

template <auto member, const auto& words>
std::string word_text(const OptionsWith<member>& options) {
  for (const auto& word : words) {
    if (word.value == options.*member) return std::string(word.name);
  }
  return "";
}

// --- options with their own kind of value

Status assign_why(const KeyValue& entry, FileOptions& options) {
  if (entry.second == "measured" || entry.second == "predicted") {
    options.why = entry.second == "measured" ? Why::measured : Why::predicted;
    return Status();
  }
  Result<bool> on = parse_switch(entry.first, entry.second);
  if (!on.ok()) {
    constexpr std::array<std::string_view, 4> names = {"on", "off", "predicted", "measured"};
    return bad_option_word(entry.first, entry.second, names);
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
  options.direct_io = entry.second == "direct";
  if (entry.second != "auto" && !options.direct_io) {
    return parse_bytes_into(entry, 1, options.alignment_bytes);
  }
  options.alignment_bytes = 0;
  return Status();
}
std::string alignment_text(const FileOptions& options) {
  if (options.direct_io) return "direct";
  return options.alignment_bytes == 0 ? "auto" : std::to_string(options.alignment_bytes);
}

/// Parse writers=; "balanced" equals "each" in modes without idle time.
Status assign_writers(const KeyValue& entry, FileOptions& options) {
  const std::string& text = entry.second;
  constexpr std::array<std::string_view, 3> names = {"balanced", "each", "node"};
  if (std::ranges::find(names, text) == names.end()) {
    return bad_option_word(entry.first, text, names);
  }
  options.node_writes = text == "node";
  options.balance = text == "each" ? "off" : "best";
  return Status();
}
/// Choose the rule by which writers=balanced moves writes.
Status assign_balance(const KeyValue& entry, FileOptions& options) {
  constexpr std::array<std::string_view, 2> names = {"best", "paper"};
  if (std::ranges::find(names, entry.second) == names.end()) {
    return bad_option_word(entry.first, entry.second, names);
  }
  options.balance = entry.second;
  return Status();
}
std::string writers_text(const FileOptions& options) {
  return options.node_writes ? "node" : options.balance == "off" ? "each" : "balanced";
}

Status assign_trace_path(const KeyValue& entry, FileOptions& options) {
  if (entry.second.empty()) return bad_option_value(entry.first, entry.second, "a file's name");
  options.trace_path = entry.second;
  options.trace = true;
  return Status();
}

/// Parse "none", "size=2GB" or "psnr=80".
Status assign_target(const KeyValue& entry, FileOptions& options) {
  const auto& [key, text] = entry;
  options.target_bytes = 0;
  options.target_psnr_db = 0;
  const std::size_t equals = text.find('=');
  const std::string_view kind = trimmed(std::string_view(text).substr(0, equals));
  if (equals == std::string::npos && kind == "none") return Status();
  if (equals != std::string::npos) {
    const std::string number(trimmed(std::string_view(text).substr(equals + 1)));
    if (kind == "size") return parse_bytes_into({key, number}, 1, options.target_bytes);
    if (kind == "psnr") {
      return parse_number_into({key, number}, 1, 400, "decibels, such as psnr=80",
                               options.target_psnr_db);
    }
  }
  constexpr std::array<std::string_view, 3> kinds = {"none", "size", "psnr"};
  return bad_option_value(key, text,
                          "none, size=BYTES or psnr=DECIBELS" + did_you_mean(kind, kinds));
}
std::string target_text(const FileOptions& options) {
  return options.target_bytes > 0     ? "size=" + std::to_string(options.target_bytes)
         : options.target_psnr_db > 0 ? "psnr=" + number_text(options.target_psnr_db)
                                      : "none";
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
  // "1000x" is a shape of one dimension; "1000" would be bytes.
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

/// Parse the space that layouts arena and predictive reserve: "performance", "balanced",
/// "storage", a weight "0.8:0.2" (performance:storage), or a ratio "1.25".
Status parse_space(std::string_view text, SpaceGoal& space) {
  constexpr std::string_view wanted =
      "after arena: or predictive: performance, balanced, storage, weights such as 0.8:0.2, or a "
      "ratio >= 1 such as 1.25";
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
    constexpr std::array<std::string_view, 3> names = {"performance", "balanced", "storage"};
    return bad_option_value("layout", text, std::string(wanted) + did_you_mean(text, names));
  }
  const std::optional<double> second = leading_number(rest.substr(1), rest);
  const double sum = second ? *first + *second : 0;
  if (!second || !rest.empty() || *second < 0 || !(sum > 0)) {
    return bad_option_value("layout", text, wanted);
  }
  space = {0, *first / sum};
  return Status();
}

/// Parse the expectation of layout hybrid: "RATIO" or "RATIO:ERROR".
Status parse_expectation(const std::string& text, FieldOptions& options) {
  const std::size_t colon = text.find(':');
  options.expected_error = 0;
  TAILRACE_TRY(parse_number_into({"layout", text.substr(0, colon)}, 1, 1e6,
                                 "after hybrid: a ratio >= 1, such as hybrid:3.5",
                                 options.expected_ratio));
  if (colon == std::string::npos) return Status();
  return parse_number_into({"layout", text.substr(colon + 1)}, 0, 10,
                           "after the ratio of hybrid: a fraction, such as hybrid:3.5:0.1",
                           options.expected_error);
}

Status assign_layout(const KeyValue& entry, FieldOptions& options) {
  const std::size_t colon = entry.second.find(':');
  options.layout = trimmed(std::string_view(entry.second).substr(0, colon));
  options.space = SpaceGoal();
  options.expected_ratio = options.expected_error = 0;
  if (colon == std::string::npos) return Status();
  const std::string argument(trimmed(std::string_view(entry.second).substr(colon + 1)));
  if (options.layout == "hybrid") return parse_expectation(argument, options);
  if (options.layout == "arena" || options.layout == "predictive") {
    return parse_space(argument, options.space);
  }
  return bad_option_value(entry.first, entry.second, "no argument after " + options.layout);
}
std::string layout_text(const FieldOptions& options) {
  std::string text = options.layout;
  const SpaceGoal usual;
  if (options.space.ratio != usual.ratio ||
      options.space.performance_weight != usual.performance_weight) {
    text += ":" + number_text(options.space.ratio) + ":" +
            number_text(options.space.performance_weight);
  }
  if (options.expected_ratio > 0) {
    text += ":" + number_text(options.expected_ratio) + ":" + number_text(options.expected_error);
  }
  return text;
}

Status assign_verify(const KeyValue& entry, FieldOptions& options) {
  options.fall_back_to_raw = entry.second != "strict";
  if (entry.second == "auto") {
    options.verify = Verify::automatic;
  } else if (entry.second == "strict") {
    options.verify = Verify::on;
  } else {
    const Result<bool> on = parse_switch(entry.first, entry.second);
    if (!on.ok()) {
      constexpr std::array<std::string_view, 4> names = {"auto", "on", "off", "strict"};
      return bad_option_word(entry.first, entry.second, names);
    }
    options.verify = *on ? Verify::on : Verify::off;
  }
  return Status();
}
std::string verify_text(const FieldOptions& options) {
  if (!options.fall_back_to_raw) return "strict";
  return options.verify == Verify::automatic ? "auto" : options.verify == Verify::on ? "on" : "off";
}

/// Return true unless the text is an integer that `number` does not equal. An f64 represents all
/// integers up to 2^53, and only some beyond.
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
constexpr OptionEntry<OptionsWith<member>> switch_option(std::string_view name, unsigned doors,
                                                         std::string_view meaning) {
  return {name, "on, off", meaning, alike, doors, assign_switch<member>, value_text<member>};
}
template <auto member>
constexpr OptionEntry<OptionsWith<member>> text_option(std::string_view name,
                                                       std::string_view values, Agreement agreement,
                                                       unsigned doors, std::string_view meaning) {
  return {name, values, meaning, agreement, doors, assign_text<member>, value_text<member>};
}
template <auto member, std::uint64_t least>
constexpr OptionEntry<OptionsWith<member>> bytes_option(std::string_view name, unsigned doors,
                                                        std::string_view meaning) {
  return {name, "BYTES", meaning, alike, doors, assign_bytes<member, least>, value_text<member>};
}

constexpr std::array<File, 22> kFileTable = {{
    {"mode", "sync, async, in_situ",
     "When a step is encoded and written: within end_step (sync, the default), by background "
     "threads while the program computes (async), or in idle time that the program marks or "
     "libtailrace_idle.so finds (in_situ). Use async if cores are free, in_situ if all cores are "
     "taken but wait for a device or for messages.",
     alike, kByModes, assign_word<&FileOptions::mode, kModeWords>,
     word_text<&FileOptions::mode, kModeWords>},
    {"hold", "copy, promise",
     "Modes async and in_situ: end_step copies the values (copy, the default), or the caller keeps "
     "them unchanged until the end_step of the next step, wait or close returns (promise). Use "
     "promise to save the copy.",
     alike, kBySteps, assign_word<&FileOptions::hold_promise, kHoldWords>,
     word_text<&FileOptions::hold_promise, kHoldWords>},
    {"writers", "balanced, each, node",
     "Which ranks write chunks. balanced (default): in mode in_situ the ranks of a node write for "
     "each other, in other modes each rank writes its own chunks; each: every rank writes its own; "
     "node: one rank of each node writes for all of its ranks. Use node if the file system slows "
     "down with many writers.",
     alike, kBySteps | kByRepack, assign_writers, writers_text},
    {"threads", "N",
     "Encode threads of a rank. Default 0: the node's cores divided by its ranks, and none in mode "
     "in_situ; set a number to leave cores to the program, or to use more.",
     Agreement::own, kByAll, assign_threads, value_text<&FileOptions::n_threads>},
    {"memory", "BYTES",
     "Largest amount of memory that Tailrace allocates on a rank (default 1 GiB). Raise it if an "
     "error asks for it, lower it if the program needs the memory.",
     Agreement::own, kByAll, assign_bytes<&FileOptions::memory_bytes, 1U << 20>,
     value_text<&FileOptions::memory_bytes>},
    bytes_option<&FileOptions::write_buffer_bytes, 1>(
        "buffer", kByAll, "Largest single write (default 16 MiB). Most users leave this alone."),
    {"align", "auto, BYTES, direct",
     "Alignment of writes in the file. auto (default): the alignment in the machine profile, 1 "
     "without a profile; direct: bypass the page cache (O_DIRECT), aligned to 4096 or more. Most "
     "users leave this alone.",
     alike, kByEngine, assign_alignment, alignment_text},
    switch_option<&FileOptions::sync>("fsync", kByAll,
                                      "Sync committed data to stable storage (default on). Turn it "
                                      "off only if the file may be lost in a power failure."),
    switch_option<&FileOptions::journal>(
        "journal", kByAll,
        "Write a redo journal, from which `tailrace recover` repairs metadata that a power failure "
        "has torn (default off). Turn it on if power failures are a concern; every commit then "
        "costs more syncs."),
    switch_option<&FileOptions::replace>(
        "replace", kByAll, "Replace an existing file (default off: an existing file is an error)."),
    {"compatibility", "auto, everyone, v110",
     "Oldest HDF5 that reads the file. everyone: HDF5 1.8, and implementations in Java, JavaScript "
     "and other languages; v110: HDF5 1.10, with smaller chunk indexes; auto (default): v110 for "
     "fields that grow over time, everyone for all others. Most users leave this alone.",
     alike, kByAll, assign_word<&FileOptions::compatibility, kCompatibilityWords>,
     word_text<&FileOptions::compatibility, kCompatibilityWords>},
    {"attributes", "off, one, all",
     "Attributes that record the encoding. off: none; one (default): those of lossy datasets, and "
     "with these one of the file for all others; all: those of every dataset, with versions. A "
     "file without losses has none under one.",
     alike, kByCodecs, assign_word<&FileOptions::notes, kNotesWords>,
     word_text<&FileOptions::notes, kNotesWords>},
    {"trace-file", "FILE",
     "Write a trace of what each rank did to FILE when the file is closed, for ui.perfetto.dev "
     "(default: no trace).",
     alike, kBySteps | kByRepack, assign_trace_path, value_text<&FileOptions::trace_path>},
    {"for", "speed, size, balanced",
     "What codec auto minimizes: the time of a step (speed, the default), the bytes (size), or the "
     "bytes within a somewhat longer time (balanced).",
     alike, kByValues, assign_word<&FileOptions::objective, kObjectiveWords>,
     word_text<&FileOptions::objective, kObjectiveWords>},
    {"why", "on, off, predicted, measured",
     "Explain the choices of codec auto (default off). on and predicted: by its forecasts; "
     "measured: it also encodes its sample with each candidate, which takes longer.",
     alike, kByValues, assign_why, why_text},
    {"target", "none, size=BYTES, psnr=DECIBELS",
     "Choose the tightest bounds that give a step about this size, or this PSNR (default none). "
     "Fields with a bound= of their own keep it.",
     alike, kByValues, assign_target, target_text},
    text_option<&FileOptions::profile_path>(
        "profile", "FILE", Agreement::root, kByValues,
        "Machine profile that codec auto uses: a file that `tailrace profile` wrote, or built-in. "
        "Default: the file named by TAILRACE_PROFILE, else ~/.config/tailrace/profile.json, else "
        "typical values."),
    text_option<&FileOptions::plugin_path>(
        "plugin-path", "FOLDER", Agreement::own, kByAll,
        "Folder that is searched for filter plug-ins before HDF5_PLUGIN_PATH (default none)."),
    text_option<&FileOptions::scheduler>("lab.scheduler", "search, ...", alike, kBySteps,
                                         "Mode in_situ: the algorithm that plans a step (default "
                                         "search). For experiments; most users leave this alone."),
    {"lab.balance", "best, paper",
     "Mode in_situ: the rule by which ranks of a node write for each other (default best). For "
     "experiments; most users leave this alone.",
     alike, kBySteps, assign_balance, value_text<&FileOptions::balance>},
    text_option<&FileOptions::record_path>(
        "lab.record", "FILE", alike, kBySteps,
        "Mode in_situ: record the iterations in FILE, for `tailrace-lab simulate` (default none)."),
    text_option<&FileOptions::order>(
        "lab.order", "given, largest-first, smallest-first, insertion, johnson", alike,
        kBySteps | kByRepack,
        "Order in which each rank encodes its chunks (default given: by field, then by chunk). For "
        "experiments; most users leave this alone."),
}};

constexpr std::array<Field, 13> kFieldTable = {{
    {"codec", "auto, none, deflate, portable, trz, xor, sz3, ..., id=NUMBER",
     "Codec of the chunks: by default deflate, or auto if a bound is given. Name one to fix the "
     "choice; its own settings follow as key=value.",
     alike, kByCodecs, assign_codec, codec_text},
    {"bound", "none, abs=X, rel=X, pw_rel=X, psnr=X",
     "Largest error of any value (default none: lossless): absolute (abs), relative to the range "
     "of the field (rel), relative to each value (pw_rel), or given by a PSNR in decibels (psnr). "
     "Set it to let codecs lose digits that the data do not need.",
     alike, kByCodecs, assign_bound, bound_text},
    {"guard",
     "none, sign, zero, threshold=X, minmax, gradient=X, laplacian=X, log=X, power=P:X, sum, "
     "monotone=AXIS, region=WHERE:X",
     "Properties that decoded values keep exactly, in addition to the bound (default none). Set it "
     "if an analysis depends on signs, thresholds, extremes or sums; several are joined by +.",
     alike, kByCodecs, assign_guard, guard_text},
    {"earlier-loss", "none, LOSS, LOSS then LOSS ...",
     "Losses that the values already have, each abs=X, pw_rel=X or unknown (default none). Set it "
     "for values that were compressed with loss before: the recorded bound is then the total of "
     "all losses.",
     alike, kByEngine, assign_earlier_loss, earlier_loss_text},
    {"chunk", "BYTES, SHAPE",
     "Approximate size of a chunk in bytes (default 8 MiB), or its exact shape (1000x: one "
     "dimension). For a field over time, an additional first extent is the number of steps in a "
     "chunk. Choose a shape if readers fetch slices of a known form.",
     alike, kByCodecs, assign_chunk, chunk_text},
    {"layout",
     "claimed, dense, arena, arena:SPACE, predictive, predictive:SPACE, hybrid:RATIO, "
     "hybrid:RATIO:ERROR, sparse, contiguous, front",
     "Where chunks go in the file. Most users leave this at claimed, which appends chunks as they "
     "are encoded. SPACE: space reserved beyond the predicted sizes (performance, balanced, "
     "storage, weights W:W, or a ratio); RATIO: expected compression ratio; ERROR: the fraction by "
     "which it may be wrong.",
     alike, kByAll, assign_layout, layout_text},
    {"verify", "auto, on, off, strict",
     "Decode every chunk after encoding and check its bound. auto (default): only for lossy codecs "
     "that are not Tailrace's own. A chunk beyond its bound is stored uncompressed; with strict it "
     "is an error.",
     alike, kByEngine, assign_verify, verify_text},
    {"fill", "NUMBER",
     "Fill value, which is stored exactly and left out of the value range (default none). Set it "
     "if the values contain one.",
     alike, kByFill, assign_fill, fill_text},
    switch_option<&FieldOptions::allow_wide_bound>(
        "allow-wide-bound", kByCodecs,
        "Accept a rel or psnr bound that an undeclared fill value widens (default off: an error). "
        "Prefer to declare the fill value."),
    switch_option<&FieldOptions::allow_holes>(
        "holes", kByEngine,
        "Allow elements that no rank puts; they get the fill value (default off: an error)."),
    switch_option<&FieldOptions::over_time>(
        "over-time", kBySteps,
        "Give the field an unlimited first dimension, to which every step adds one entry (default "
        "off: the field is written once)."),
    {"covered", "keep, drop",
     "Levels of plotfiles: keep (default) or drop the values of cells that the next finer level "
     "covers. Use drop to save space if no reader needs them.",
     alike, kByLevels, assign_word<&FieldOptions::drop_covered, kCoveredWords>,
     word_text<&FieldOptions::drop_covered, kCoveredWords>},
    switch_option<&FieldOptions::by_role>(
        "roles", kByRoles,
        "Apply a bound for all fields to values only (default on): coordinates, geometry, indexes, "
        "ids, times, weights, masks, connectivity and counts stay exact. Turn it off to bound "
        "these, too."),
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

std::span<const File> file_option_table() { return kFileTable; }
std::span<const Field> field_option_table() { return kFieldTable; }

// --- parsing

Status apply_field_option(const KeyValue& entry, FieldOptions& options) {
  const auto known = find_entry(kFieldTable, entry.first);
  if (known != kFieldTable.end()) return known->assign(entry, options);
  TAILRACE_TRY(
      check_codec_setting(entry.first, options.codec_given ? options.codec : "", entry.second));
  options.codec_settings.push_back(entry);
  return Status();
}

Status apply_field_options(std::string_view text, FieldOptions& options) {
  TAILRACE_TAKE(std::vector<KeyValue> entries, split_key_values(text));
  for (const KeyValue& entry : entries) TAILRACE_TRY(apply_field_option(entry, options));
  return Status();
}

Status apply_file_option(const KeyValue& entry, FileOptions& options) {
  const auto known = find_entry(kFileTable, entry.first);
  if (known != kFileTable.end()) return known->assign(entry, options);
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
std::string lines_of(const Entries& entries, const Options& options, unsigned doors) {
  std::string text;
  for (const auto& entry : entries) {
    if (entry.agreement != Agreement::alike || (entry.doors & doors) == 0) continue;
    text += std::string(entry.name) + "=" + entry.text(options) + "\n";
  }
  return text;
}

template <class Entries, class Options>
Status check_table(const Entries& entries, const Options& options, Door door) {
  const Options defaults{};
  for (const auto& entry : entries) {
    const bool served = (entry.doors & bit_of(door)) != 0;
    if (served || entry.text(options) == entry.text(defaults)) continue;
    std::string others;
    for (const auto& other : entries) {
      if ((other.doors & bit_of(door)) == 0) continue;
      others += (others.empty() ? "" : ", ") + std::string(other.name);
    }
    return Status(Code::invalid_argument, "option " + std::string(entry.name) + "=" +
                                              entry.text(options) + ": not served by " +
                                              std::string(door_text(door)) +
                                              (others.empty() ? "" : "; it serves " + others));
  }
  return Status();
}

}  // namespace

std::string_view door_name(Door door) {
  constexpr std::array<std::string_view, 7> names = {"steps",  "python", "pnetcdf", "hdf5",
                                                     "serial", "repack", "concat"};
  return names[std::size_t(std::countr_zero(bit_of(door)))];
}

std::string_view door_text(Door door) {
  constexpr std::array<std::string_view, 7> texts = {"the step interface",
                                                     "the Python interface",
                                                     "the PnetCDF interface",
                                                     "the parallel HDF5 interface",
                                                     "the serial HDF5 interface",
                                                     "repack",
                                                     "concat"};
  return texts[std::size_t(std::countr_zero(bit_of(door)))];
}

std::string agreed_text(const FileOptions& options, Door door) {
  return lines_of(kFileTable, options, bit_of(door)) +
         lines_of(kFieldTable, options.field_defaults, bit_of(door));
}

std::string agreed_text(const FieldOptions& options) { return lines_of(kFieldTable, options, ~0U); }

Status check_served(const FileOptions& options, Door door) {
  TAILRACE_TRY(check_table(kFileTable, options, door));
  return check_served(options.field_defaults, door);
}

Status check_served(const FieldOptions& options, Door door) {
  return check_table(kFieldTable, options, door);
}

// --- documentation

std::string served_by_text(unsigned doors) {
  std::string by;
  for (const Door door : kAllDoors) {
    if ((doors & bit_of(door)) != 0) by += (by.empty() ? "" : ", ") + std::string(door_name(door));
  }
  return by;
}

namespace {

template <class Options>
std::string text_of_default(const OptionEntry<Options>& entry) {
  std::string text = entry.text(Options{});
  text = text.substr(0, text.find(" (default)"));
  if (text.empty()) return "none";
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  return digits && entry.values.find("BYTES") != std::string_view::npos
             ? bytes_text(std::stoull(text))
             : text;
}

}  // namespace

std::string default_text(const File& entry) { return text_of_default(entry); }
std::string default_text(const Field& entry) { return text_of_default(entry); }

std::string_view agreement_text(Agreement agreement) {
  return agreement == Agreement::alike  ? "all ranks"
         : agreement == Agreement::root ? "rank 0's"
                                        : "each rank's";
}

namespace {

template <class Entries>
std::string rows_of(const Entries& entries) {
  std::string text = "| option | default | meaning |\n|---|---|---|\n";
  for (const auto& entry : entries) {
    const std::string whose = entry.agreement == Agreement::alike
                                  ? ""
                                  : " (*" + std::string(agreement_text(entry.agreement)) + "*)";
    text += "| `" + std::string(entry.name) + "=` " + std::string(entry.values) + " | " +
            default_text(entry) + " | " + std::string(entry.meaning) + whose + " |\n";
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
  std::string text = R"(# Options

Options are one text of keys and values, for every interface:

```sh
export TAILRACE_OPTIONS='codec=trz,bound=rel=1e-3,threads=2'   # of PnetCDF and HDF5 programs
tailrace repack run.h5 -o small.h5 --option fsync=off --field 'u*:bound=abs=1e-3'
```

C, C++, Fortran and Python take the text as an argument: [simulation](simulation.md#options),
[Python](python.md). `tailrace options` prints this page, `tailrace options NAME` one entry. Options
of a field in the text of a file are the defaults of all its fields. Every rank must give the same
values, else the call fails and names the option. Two kinds are marked: of *rank 0's*, only rank 0's
value counts; *each rank's* affect only the time or memory of that rank. An interface refuses
options that it does not [serve](#which-interface-serves-which-option).

<!-- Generated from src/core/option_table.cpp and src/policy/door_rules.cpp; a test compares. -->

## Of a file

)";
  return text + rows_of(kFileTable) + "\n## Of a field\n\n" + rows_of(kFieldTable) +
         "\n## Of a codec\n\nSettings that only the field's codec reads (`codecs.md`). `id=NUMBER` "
         "is any filter plug-in.\n\n" +
         codec_rows();
}

// --- names

namespace {

void append(std::span<const std::string_view> names, std::vector<std::string_view>& to) {
  for (const std::string_view name : names) {
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
  }
}

std::vector<std::string_view> codecs_with(std::string_view setting) {
  std::vector<std::string_view> names;
  for (const CodecEntry* each : codec_registry()) {
    if (std::ranges::find(each->settings, setting) != each->settings.end()) {
      names.push_back(each->name);
    }
  }
  return names;
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

Status check_codec_setting(std::string_view key, std::string_view codec, std::string_view value) {
  const std::string quoted = "\"" + std::string(key) + "\"";
  const CodecEntry* const own = find_codec(codec);
  std::vector<std::string_view> settings;
  for (const CodecEntry* each : codec_registry()) append(each->settings, settings);
  const bool of_some = std::find(settings.begin(), settings.end(), key) != settings.end();
  if (own == nullptr && of_some) return Status();
  if (own != nullptr) {
    if (std::ranges::find(own->settings, key) != own->settings.end()) return Status();
    if (of_some) {
      return Status(Code::invalid_argument,
                    "codec " + std::string(codec) + ": unknown setting " + quoted + "; " +
                        (own->settings.empty() ? "it has no settings"
                                               : "its settings: " + listed(own->settings)) +
                        "; " + quoted + " belongs to " + listed(codecs_with(key)));
    }
  }
  constexpr std::array<std::string_view, 4> kModes = {"abs", "rel", "pw_rel", "psnr"};
  if (std::ranges::find(kModes, key) != kModes.end()) {
    return Status(Code::invalid_argument, "unknown option " + quoted +
                                              "; did you mean bound=" + std::string(key) + "=" +
                                              (value.empty() ? "VALUE" : std::string(value)) + "?");
  }
  if (find_entry(kFileTable, key) != kFileTable.end()) {
    return Status(Code::invalid_argument,
                  "option " + quoted + " applies to the whole file, not to a single field");
  }
  std::vector<std::string_view> all;
  all.reserve(kFieldTable.size() + kFileTable.size() + settings.size());
  for (const Field& each : kFieldTable) all.push_back(each.name);
  for (const File& each : kFileTable) all.push_back(each.name);
  append(settings, all);
  const std::string meant = did_you_mean(key, all);
  const std::string nearest = meant.empty() ? "." : meant;
  const std::string of_codec =
      own == nullptr || own->settings.empty()
          ? ""
          : "; of codec " + std::string(codec) + ": " + listed(own->settings);
  return Status(Code::invalid_argument, "unknown option " + quoted + nearest +
                                            " Options of a field: " + names_of(kFieldTable) +
                                            of_codec + "; of the file: " + names_of(kFileTable));
}

}  // namespace tailrace
