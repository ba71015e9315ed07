// Lineages: what the fields of one step teach the fields of the next.
//
// Many applications write a NEW dataset for each output: /step_0010/density, then
// /step_0011/density. To the file these have nothing to do with each other; here they are one
// lineage, and the younger begins with what the older has shown: chunk sizes and encode times
// (model/size_history.hpp), the space that its chunks took of the file's end, the codec that
// codec=auto chose, the shared book (field_book.hpp). Fields over time need none of this: what they
// have learned is theirs (LearnedField).
//
// Invariant 1: only a step that was committed changes the table. Invariant 2: key, codec and book
// are the same on every rank; sizes are each rank's own. Invariant 3: a lineage that no step has
// used for long is forgotten, so the table does not grow with the number of steps.

#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "field/field_book.hpp"
#include "model/size_history.hpp"

namespace tailrace {

struct FieldState;
struct StepReport;

/// What a field has taken from its lineage, besides its history and its book.
struct Inheritance {
  std::uint64_t lineage = 0;  ///< Its number; 0: none (a field over time, or without chunks).
  std::string key;
  std::uint64_t age = 0;         ///< Steps that the lineage has seen.
  std::string codec;             ///< That codec=auto chose in an earlier step; empty: choose.
  std::uint64_t boxes_hash = 0;  ///< Of what this rank puts.
};

/// The path with every run of digits replaced by "#": "/step_#/density".
std::string normalised_path(const std::string& path);

/// What this rank put of a field in its last step, and what its chunks took of the file.
struct ClaimedSpace {
  std::uint64_t put_bytes = 0;
  std::uint64_t encoded_bytes = 0;
};

class LineageTable {
 public:
  /// Steps after which codec=auto chooses anew, and the factor between the encoded share of the
  /// step that chose and of a later one beyond which it does at once: then the forecasts that
  /// decided do not hold any more.
  static constexpr std::uint64_t choose_every = 16;
  static constexpr double share_drift = 1.25;
  /// Steps without a field of it after which a lineage is forgotten.
  static constexpr std::uint64_t forget_after = 64;

  /// Give new fields what their lineages know. Fields of one lineage have the same path but
  /// for digits, type, shapes, bound, fill value and codec as asked; of several in one step
  /// (/level_0/u, /level_1/u) each takes the one whose path differs in the fewest numbers.
  /// After choose_chunk_shapes, before resolve_bounds and the choice of codecs.
  /// Not collective, but alike on every rank. Cost: O(new fields * fields of the same key).
  void inherit(std::vector<FieldState>& fields);

  /// Learn from a step that was committed. `report` lists `active` in its order.
  /// Not collective, but alike on every rank.
  void keep(std::span<FieldState* const> active, const StepReport& report);

  std::size_t n_lineages() const { return lineages_.size(); }

 private:
  struct Lineage {
    std::string key;
    std::vector<std::string> numbers;  ///< The digit runs of the path last seen.
    std::uint64_t last_step = 0;
    std::uint64_t age = 0;
    SizeHistory history;
    double encode_correction = 1;
    ClaimedSpace claimed;
    std::uint64_t boxes_hash = 0;
    std::string codec;            ///< By codec=auto; empty: the user named one.
    std::uint64_t codec_age = 0;  ///< Steps since the choice.
    double codec_share = 0;       ///< Encoded over raw bytes in the step that chose.
    BookState book;
  };
  std::uint64_t match(const std::string& key, const std::vector<std::string>& numbers,
                      const std::vector<std::uint64_t>& taken) const;
  static void keep_codec(Lineage& lineage, const std::string& inherited,
                         const struct FieldReport& seen);
  void forget_idle();

  std::map<std::uint64_t, Lineage> lineages_;  ///< By number.
  std::map<std::string, std::vector<std::uint64_t>> by_key_;
  std::uint64_t last_number_ = 0;
  std::uint64_t n_steps_ = 0;
};

}  // namespace tailrace
