// Look-ups in a profile, the built-in profile, and conversion to and from JSON.

#include "model/machine_profile.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "core/codec_registry.hpp"
#include "core/version.hpp"

namespace tailrace {
namespace {

// --- the built-in profile
// -------------------------------------------------------------------------

constexpr double kMB = 1e6;

// The file system is unknown. Parallel file systems give a rank of a full node 4 to 100 MB/s (Jin
// et al. 2022, figure 7; Liang et al. 2019, section VI: 115 GB/s for 32,768 ranks of Theta). We
// assume the upper end, and Theta's total as the ceiling: the bandwidth per rank is constant up to
// 1,024 ranks.
constexpr double kTypicalWriteBytesPerSPerRank = 100 * kMB;
constexpr std::uint64_t kTypicalSaturatingRanks = 1024;
constexpr double kTypicalClaimLatencyS = 1e-6;
constexpr double kTypicalSyncLatencyS = 5e-3;
constexpr double kTypicalCommitS = 20e-3;

// Messages: L, o and G of Alps (CSCS, HPE Slingshot 11 at 200 Gbit/s, 2,688 nodes), as used by
// ATLAHS (Shen et al. 2025; github.com/spcl/atlahs, demo/ai_nccl/README.md).
constexpr MessageCosts kPublishedMessages = {3.7e-6, 0.2e-6, 0.04e-9, 50e-6};

ThroughputCurve curve_of(const SpeedFit& fit) {
  ThroughputCurve curve;
  curve.least_bytes_per_s = fit[0] * kMB;
  curve.greatest_bytes_per_s = fit[1] * kMB;
  curve.exponent = fit[2];
  curve.pivot_bit_rate = fit[3];
  return curve;
}

BandwidthModel typical_bandwidth() {
  Roofline roofline;
  roofline.n_ranks = kTypicalSaturatingRanks;
  roofline.ceiling = kTypicalWriteBytesPerSPerRank * double{kTypicalSaturatingRanks};
  roofline.intercept = roofline.ceiling;
  return BandwidthModel::of({roofline});
}

// --- staleness
// ------------------------------------------------------------------------------------

/// Remove digits, since nodes of one machine differ only in numbers: "nid00123" and "nid00456".
std::string without_digits(std::string_view host) {
  std::string letters;
  for (const char c : host) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) letters.push_back(c);
  }
  return letters;
}

void compare(std::vector<std::string>& sentences, std::string_view what, std::string_view measured,
             std::string_view here) {
  if (measured == here) return;
  sentences.push_back(fmt::format("{} was \"{}\" when the profile was measured, but is \"{}\" here",
                                  what, measured, here));
}

}  // namespace

StepConstants typical_step_constants() {
  return {kPublishedMessages, 5e9, 7e-9, 0.1e-6, 0.8e-6, 40e-6, 20e-3};
}

const CodecProfile* MachineProfile::find(std::string_view codec) const {
  for (;;) {
    const auto found = std::ranges::find(codecs, codec, &CodecProfile::codec);
    if (found != codecs.end()) return &*found;
    const std::size_t last_setting = codec.rfind(',');
    if (last_setting == std::string_view::npos) return nullptr;
    codec = codec.substr(0, last_setting);
  }
}

std::uint64_t MachineProfile::alignment_bytes() const {
  if (stripe_bytes > 0) return stripe_bytes;
  constexpr std::string_view parallel[] = {"lustre", "gpfs",      "beegfs",   "panfs", "ceph",
                                           "wekafs", "glusterfs", "orangefs", "pvfs2", "fhgfs"};
  const bool is_parallel =
      std::find(std::begin(parallel), std::end(parallel), file_system) != std::end(parallel);
  return is_parallel ? 64U << 10 : 1;
}

MachineProfile built_in_profile() {
  MachineProfile profile;
  profile.tailrace_version = version_text;
  profile.built_in = true;
  for (const CodecVariant* typical : codec_variants()) {
    if (typical->encode == SpeedFit()) continue;
    CodecProfile codec;
    codec.codec = typical->codec;
    codec.encode = curve_of(typical->encode);
    codec.decode = curve_of(typical->decode);
    profile.codecs.push_back(std::move(codec));
  }
  profile.write = typical_bandwidth();
  profile.read = typical_bandwidth();
  profile.claim_latency_s = kTypicalClaimLatencyS;
  profile.sync_latency_s = kTypicalSyncLatencyS;
  profile.commit_s = kTypicalCommitS;
  return profile;
}

std::vector<std::string> staleness(const MachineProfile& profile, const MachineIdentity& here) {
  std::vector<std::string> sentences;
  if (profile.built_in) return sentences;
  compare(sentences, "Tailrace", profile.tailrace_version, here.tailrace_version);
  if (without_digits(profile.host) != without_digits(here.host)) {
    compare(sentences, "the host", profile.host, here.host);
  }
  compare(sentences, "the processor", profile.processor, here.processor);
  compare(sentences, "the number of cores", std::to_string(profile.n_cores),
          std::to_string(here.n_cores));
  compare(sentences, "the file system", profile.file_system, here.file_system);
  return sentences;
}

// --- Conversion of a profile to and from JSON. The same functions walk a table of entries in both
// directions, so that written and read entries agree.
//
// A Field visitor either stores a number into the document or reads and checks it. Curves and
// rooflines must be positive and finite, since times are computed by dividing by them.

namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::size_t kLineColumns = 96;

// --- readable JSON
// ------------------------------------------------------------------------

std::string leaf_text(const Json& leaf) {
  return leaf.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Append the parts of `node`, separated by `comma` and prefixed by `margin`.
template <class PrintPart>
void print_parts(const Json& node, const char* comma, const std::string& margin, std::string& text,
                 PrintPart&& print_part) {
  bool first = true;
  for (const auto& [key, value] : node.items()) {
    text += (first ? "" : comma) + margin;
    first = false;
    if (node.is_object()) text += leaf_text(Json(key)) + ": ";
    print_part(value);
  }
}

std::string line_text(const Json& node) {
  if (!node.is_structured()) return leaf_text(node);
  std::string text = node.is_object() ? "{" : "[";
  print_parts(node, ", ", "", text, [&](const Json& part) { text += line_text(part); });
  return text + (node.is_object() ? "}" : "]");
}

/// Print a node on one line if it fits; otherwise its parts, indented by two spaces per level.
void print(const Json& node, std::size_t indent, std::string& text) {
  const std::string line = line_text(node);
  if (!node.is_structured() || indent + line.size() <= kLineColumns) {
    text += line;
    return;
  }
  text += node.is_object() ? "{\n" : "[\n";
  print_parts(node, ",\n", std::string(indent + 2, ' '), text,
              [&](const Json& part) { print(part, indent + 2, text); });
  text += "\n" + std::string(indent, ' ') + (node.is_object() ? "}" : "]");
}

/// Convert a number: integers without ".0", others to six digits, the precision of a clock.
Json number_json(double value) {
  const bool whole = std::abs(value) < 1e15 && std::trunc(value) == value;
  if (!whole) value = std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
  if (std::abs(value) < 1e15 && std::trunc(value) == value) return static_cast<std::int64_t>(value);
  return value;
}

// --- both directions
// ------------------------------------------------------------------------------

enum class Kind : unsigned char { any, not_negative, positive };

/// Writer or reader of one JSON object. `problem` receives the first error.
class Entries {
 public:
  /// Writing: adds entries to `object`.
  explicit Entries(Json& object) : out_(&object) {}
  /// Reading: takes entries from `object`, which messages call `place`.
  Entries(const Json& object, std::string place, Status& problem)
      : in_(&object), place_(std::move(place)), problem_(&problem) {
    if (!object.is_object()) complain(place_ + ": must be an object");
  }

  void number(const char* key, double& value, Kind kind) {
    const Json* found = leaf(key, number_json(value), &Json::is_number, "must be a number");
    if (found == nullptr) return;
    value = found->get<double>();
    const bool fine = std::isfinite(value) && (kind == Kind::any || value > 0 ||
                                               (kind == Kind::not_negative && value == 0));
    if (!fine) wrong(key, kind == Kind::positive ? "must be > 0" : "must be >= 0", *found);
  }
  void count(const char* key, std::uint64_t& value) {
    const Json* found = leaf(key, value, &Json::is_number_unsigned, "must be a whole number >= 0");
    if (found != nullptr) value = found->get<std::uint64_t>();
  }
  void text(const char* key, std::string& value) {
    const Json* found = leaf(key, value, &Json::is_string, "must be a string");
    if (found != nullptr) value = found->get<std::string>();
  }
  void flag(const char* key, bool& value) {
    const Json* found = leaf(key, value, &Json::is_boolean, "must be true or false");
    if (found != nullptr) value = found->get<bool>();
  }
  /// Nested object; `walk` receives its Entries.
  template <class Walk>
  void object(const char* key, Walk&& walk) {
    if (out_ != nullptr) {
      Entries inner((*out_)[key] = Json::object());
      walk(inner);
      return;
    }
    const Json* found = entry(key);
    if (found == nullptr) return;
    Entries inner(*found, place_ + "." + key, *problem_);
    walk(inner);
  }
  /// Nested object that older versions did not write; `known` is true if it exists.
  template <class Walk>
  void optional_object(const char* key, bool& known, Walk&& walk) {
    if (out_ == nullptr) known = in_->is_object() && in_->contains(key);
    if (known) object(key, walk);
  }
  /// List of objects; `walk` receives the Entries and the item.
  template <class Item, class Walk>
  void list(const char* key, std::vector<Item>& items, Walk&& walk) {
    if (out_ != nullptr) {
      Json& array = (*out_)[key] = Json::array();
      for (Item& item : items) {
        Json object = Json::object();
        Entries inner(object);
        walk(inner, item);
        array.push_back(std::move(object));
      }
      return;
    }
    const Json* found = entry(key);
    if (found == nullptr) return;
    if (!found->is_array()) return wrong(key, "must be a list", *found);
    for (std::size_t i = 0; i < found->size() && problem_->ok(); ++i) {
      Entries inner((*found)[i], fmt::format("{}.{}[{}]", place_, key, i), *problem_);
      walk(inner, items.emplace_back());
    }
  }
  /// Reading: report an entry of the right type that has an invalid value.
  void refuse(const char* key, const char* expected) {
    if (out_ == nullptr && problem_->ok()) wrong(key, expected, (*in_)[key]);
  }

 private:
  /// Writing: store `value`. Reading: return the entry if it has the expected type.
  const Json* leaf(const char* key, const Json& value, bool (Json::*fits)() const noexcept,
                   const char* expected) {
    if (out_ != nullptr) {
      (*out_)[key] = value;
      return nullptr;
    }
    const Json* found = entry(key);
    if (found == nullptr || (found->*fits)()) return found;
    wrong(key, expected, *found);
    return nullptr;
  }
  const Json* entry(const char* key) {
    if (!problem_->ok()) return nullptr;
    const auto found = in_->find(key);
    if (found != in_->end()) return &*found;
    complain(fmt::format("{}: \"{}\" is missing", place_, key));
    return nullptr;
  }
  void wrong(const char* key, const char* expected, const Json& came) {
    complain(
        fmt::format("{}: \"{}\" {}, is {}", place_, key, expected, leaf_text(came).substr(0, 40)));
  }
  void complain(const std::string& text) {
    if (problem_->ok()) *problem_ = Status(Code::corrupt, text);
  }

  Json* out_ = nullptr;
  const Json* in_ = nullptr;
  std::string place_;
  Status* problem_ = nullptr;
};

void walk_curve(Entries& entries, const char* key, ThroughputCurve& curve,
                std::vector<ThroughputPoint>& points) {
  entries.object(key, [&](Entries& e) {
    e.number("least_bytes_per_s", curve.least_bytes_per_s, Kind::positive);
    e.number("greatest_bytes_per_s", curve.greatest_bytes_per_s, Kind::positive);
    e.number("exponent", curve.exponent, Kind::any);
    e.number("pivot_bit_rate", curve.pivot_bit_rate, Kind::positive);
    e.number("relative_residual", curve.relative_residual, Kind::not_negative);
    e.list("points", points, [](Entries& p, ThroughputPoint& point) {
      p.number("bit_rate", point.bit_rate, Kind::positive);
      p.number("bytes_per_s", point.bytes_per_s, Kind::positive);
    });
  });
}

void walk_bandwidth(Entries& entries, const char* key, BandwidthModel& model,
                    std::vector<BandwidthPoint>& points) {
  std::vector<Roofline> rooflines = model.rooflines();
  entries.object(key, [&](Entries& e) {
    e.list("rooflines", rooflines, [](Entries& r, Roofline& roofline) {
      r.count("ranks", roofline.n_ranks);
      r.number("slope", roofline.slope, Kind::not_negative);
      r.number("intercept", roofline.intercept, Kind::any);
      r.number("ceiling_bytes_per_s", roofline.ceiling, Kind::positive);
      r.number("turning_log2_bytes", roofline.turning_x, Kind::any);
      r.number("least_log2_bytes", roofline.least_x, Kind::any);
      r.number("relative_residual", roofline.relative_residual, Kind::not_negative);
      r.flag("repaired", roofline.repaired);
    });
    e.list("points", points, [](Entries& p, BandwidthPoint& point) {
      p.count("ranks", point.n_ranks);
      p.number("bytes_per_rank", point.bytes_per_rank, Kind::positive);
      p.number("bytes_per_s", point.bytes_per_s, Kind::positive);
    });
  });
  model = BandwidthModel::of(std::move(rooflines));
}

constexpr const char* kMessageKinds[] = {"message", "allreduce", "gather"};

void walk_message(Entries& e, MessagePoint& point) {
  std::string kind = kMessageKinds[static_cast<std::size_t>(point.kind)];
  e.text("kind", kind);
  const auto* found = std::ranges::find(kMessageKinds, kind);
  if (found == std::end(kMessageKinds)) {
    e.refuse("kind", "must be message, allreduce or gather");
  } else {
    point.kind = static_cast<MessagePoint::Kind>(found - std::begin(kMessageKinds));
  }
  e.count("ranks", point.n_ranks);
  e.number("bytes", point.n_bytes, Kind::not_negative);
  e.number("seconds", point.seconds, Kind::positive);
}

void walk_step(Entries& e, MachineProfile& profile) {
  StepConstants& step = profile.step;
  bool has_messages = !profile.message_points.empty();
  e.optional_object("messages", has_messages, [&](Entries& m) {
    m.number("latency_s", step.messages.latency_s, Kind::not_negative);
    m.number("overhead_s", step.messages.overhead_s, Kind::not_negative);
    m.number("byte_s", step.messages.byte_s, Kind::not_negative);
    m.number("wait_s", step.messages.wait_s, Kind::not_negative);
    m.list("points", profile.message_points, walk_message);
  });
  e.number("copy_bytes_per_s", step.copy_bytes_per_s, Kind::positive);
  e.number("number_s", step.number_s, Kind::not_negative);
  e.number("record_s", step.record_s, Kind::not_negative);
  e.number("index_s", step.index_s, Kind::not_negative);
  e.number("dataset_s", step.dataset_s, Kind::not_negative);
  e.number("commit_s", step.commit_s, Kind::not_negative);
}

void walk_profile(Entries& e, MachineProfile& profile) {
  e.text("tailrace_version", profile.tailrace_version);
  e.text("date", profile.date);
  e.flag("built_in", profile.built_in);
  e.object("machine", [&](Entries& m) {
    m.text("host", profile.host);
    m.text("processor", profile.processor);
    m.count("cores", profile.n_cores);
    m.text("file_system", profile.file_system);
    m.text("folder", profile.folder);
    m.count("block_bytes", profile.block_bytes);
    m.count("stripe_bytes", profile.stripe_bytes);
  });
  e.count("ranks", profile.n_ranks);
  e.object("latency", [&](Entries& l) {
    l.number("claim_s", profile.claim_latency_s, Kind::not_negative);
    l.number("sync_s", profile.sync_latency_s, Kind::not_negative);
    l.number("sync_bytes_per_s", profile.sync_bytes_per_s, Kind::not_negative);
    l.number("commit_s", profile.commit_s, Kind::not_negative);
  });
  e.optional_object("step", profile.step_measured, [&](Entries& s) { walk_step(s, profile); });
  e.list("codecs", profile.codecs, [](Entries& c, CodecProfile& codec) {
    c.text("codec", codec.codec);
    walk_curve(c, "encode", codec.encode, codec.encode_points);
    walk_curve(c, "decode", codec.decode, codec.decode_points);
  });
  walk_bandwidth(e, "write", profile.write, profile.write_points);
  walk_bandwidth(e, "read", profile.read, profile.read_points);
}

/// Check relations between numbers: counts that divide, lines that must stay above zero.
Status check(const MachineProfile& profile) {
  if (profile.n_ranks == 0) return Status(Code::corrupt, "profile: \"ranks\" is 0, must be > 0");
  for (const CodecProfile& codec : profile.codecs) {
    for (const ThroughputCurve* curve : {&codec.encode, &codec.decode}) {
      if (curve->least_bytes_per_s > curve->greatest_bytes_per_s || curve->exponent > 0) {
        return Status(Code::corrupt,
                      fmt::format("profile: codec {}: throughput from {} to {} bytes/s with "
                                  "exponent {}: must fall with the bit rate",
                                  codec.codec, curve->greatest_bytes_per_s,
                                  curve->least_bytes_per_s, curve->exponent));
      }
    }
  }
  for (const BandwidthModel* model : {&profile.write, &profile.read}) {
    std::uint64_t before = 0;
    for (const Roofline& roofline : model->rooflines()) {
      const double least = roofline.bytes_per_s(std::exp2(roofline.least_x));
      if (roofline.n_ranks == before || !(least > 0)) {
        return Status(
            Code::corrupt,
            fmt::format("profile: roofline of {} ranks: must occur once, with a bandwidth > 0 "
                        "from its least size on",
                        roofline.n_ranks));
      }
      before = roofline.n_ranks;
    }
  }
  return Status();
}

}  // namespace

std::string profile_text(const MachineProfile& profile) {
  Json document = Json::object();
  document["tailrace_profile"] = kFormat;
  MachineProfile copy = profile;  // Mutable, since walk_profile() also reads.
  Entries entries(document);
  walk_profile(entries, copy);
  std::string text;
  print(document, 0, text);
  return text + "\n";
}

Result<MachineProfile> parse_profile(std::string_view text) {
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return Status(Code::corrupt, "profile: not JSON");
  const auto format = document.is_object() ? document.find("tailrace_profile") : document.end();
  if (format == document.end()) {
    return Status(
        Code::corrupt,
        "profile: \"tailrace_profile\" is missing; expected a file that `tailrace profile` wrote");
  }
  if (*format != kFormat) {
    return Status(Code::corrupt,
                  fmt::format("profile: format {}, expected {}; run `tailrace profile` again",
                              format->dump(), kFormat));
  }
  MachineProfile profile;
  Status problem;
  Entries entries(document, "profile", problem);
  walk_profile(entries, profile);
  TAILRACE_TRY(problem);
  TAILRACE_TRY(check(profile));
  return profile;
}

}  // namespace tailrace
