// Lineages: experience that the fields of one step pass to the fields of the next.
//
// Many applications write a NEW dataset for each output: /step_0010/density, then
// /step_0011/density. To the file these are unrelated; here they form one lineage, and the newer
// one starts with the experience of the older: chunk sizes and encode times
// (model/size_history.hpp), the space that its chunks claimed at the file's end, the codec that
// codec=auto chose, the shared book (field_book.hpp). Fields over time need no lineage: they keep
// their own experience (LearnedField).
//
// Invariant 1: only a step that was committed changes the table. Invariant 2: key, codec and book
// are the same on every rank; sizes are those of each rank. Invariant 3: a lineage that no step has
// used for `kForgetAfter` steps is removed, so the table does not grow with the number of steps.
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

/// Data that a field inherits from its lineage, except its history and its book.
struct Inheritance {
  std::uint64_t lineage = 0;  ///< Number of the lineage; 0: none (a field over time, or without
                              ///< chunks).
  std::string key;
  std::uint64_t age = 0;         ///< Steps that the lineage has seen.
  std::string codec;             ///< Codec that codec=auto chose in an earlier step; empty: choose.
  std::uint64_t boxes_hash = 0;  ///< Hash of the boxes that this rank puts.
};

/// The path with every run of digits replaced by "#": "/step_#/density".
std::string normalised_path(const std::string& path);

/// Bytes that this rank put of a field in its last step, and bytes that its chunks took of the
/// file.
struct ClaimedSpace {
  std::uint64_t put_bytes = 0;
  std::uint64_t encoded_bytes = 0;
};

class LineageTable {
 public:
  /// Number of steps after which codec=auto chooses again.
  static constexpr std::uint64_t kChooseEvery = 16;
  /// Factor between the encoded share of the step that chose and of a later one. Beyond it
  /// codec=auto chooses again immediately, because the forecasts behind the choice are invalid.
  static constexpr double kShareDrift = 1.25;
  /// Number of steps without a field of the lineage after which the lineage is removed.
  static constexpr std::uint64_t kForgetAfter = 64;

  /// Copy the experience of their lineages to new fields. Fields of one lineage have the same path
  /// except for digits, and the same type, shapes, bound, fill value and requested codec. If a step
  /// has several such fields (/level_0/u, /level_1/u), each inherits from the lineage whose path
  /// differs in the fewest numbers. Call after choose_chunk_shapes, before resolve_bounds and the
  /// choice of codecs. Not collective, but the same on every rank. Cost: O(new fields * fields of
  /// the same key).
  void inherit(std::vector<FieldState>& fields);

  /// Learn from a committed step. `report` lists `active` in its order. Not collective, but the
  /// same on every rank.
  void keep(std::span<FieldState* const> active, const StepReport& report);

  std::size_t n_lineages() const { return lineages_.size(); }

 private:
  struct Lineage {
    std::string key;
    std::vector<std::string> numbers;  ///< The digit runs of the most recent path.
    std::uint64_t last_step = 0;
    std::uint64_t age = 0;
    SizeHistory history;
    double encode_correction = 1;
    ClaimedSpace claimed;
    std::uint64_t boxes_hash = 0;
    std::string codec;            ///< Chosen by codec=auto; empty: the user named one.
    std::uint64_t codec_age = 0;  ///< Steps since the choice.
    double codec_share = 0;       ///< Encoded over raw bytes in the step of the choice.
    BookState book;
  };
  std::uint64_t match(const std::string& key, const std::vector<std::string>& numbers,
                      const std::vector<std::uint64_t>& taken) const;
  static void keep_codec(Lineage& lineage, const std::string& inherited,
                         const struct FieldReport& seen);
  void forget_idle();

  std::map<std::uint64_t, Lineage> lineages_;  ///< Keyed by the lineage's number.
  std::map<std::string, std::vector<std::uint64_t>> by_key_;
  std::uint64_t last_number_ = 0;
  std::uint64_t n_steps_ = 0;
};

}  // namespace tailrace
