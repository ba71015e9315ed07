// SurveyDifferences: what later inputs of a concatenation have that the output, which follows the
// first input, does not have or has otherwise: attributes, scalars, groups, named types, links.
//
// Each rank compares its inputs with the first one's survey. It keeps one entry per name, and at
// most kNamesMax per kind, whatever the number of inputs. The kept names are the first in order, so
// that the ranks' counts of them are exact when they are merged.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/comm.hpp"
#include "describe/dimension_survey.hpp"

namespace tailrace {

class SurveyDifferences {
 public:
  /// Names kept of each kind.
  static constexpr std::size_t kNamesMax = 50;
  /// Source number of an output that is appended to.
  static constexpr std::uint64_t kOlderSource = UINT64_MAX;

  struct Rules {
    bool keep_first = false;  ///< No difference is an error.
    bool tiles = false;       ///< Ignore attributes that refer to one tile.
  };
  /// Names in remarks.
  struct Names {
    const char* reference = "the first input";  ///< The file that the output follows.
    std::function<std::string(std::uint64_t source)> of_source;
  };

  /// Compare an input with the first one, and hold the differences until accept(). A dataset that
  /// one of the two lacks is a conflict of schemas, which is not looked for here.
  /// @returns the differences that are errors, a line each: other dimensions, values of fixed
  /// datasets, attributes that give values their meaning.
  std::vector<std::string> compare(const DimensionSurvey& first, const DimensionSurvey& other,
                                   std::uint64_t source, Rules rules);
  /// Add the differences of the last compare(): the input is accepted.
  void accept();
  /// Gather all ranks' differences on rank 0. Collective: one gather.
  void merge(Comm& comm);
  /// One remark per name, and one for all attributes on a file's history. Rank 0, after merge().
  /// @param first  the first input's survey.
  std::vector<std::string> remarks(const DimensionSurvey& first, const Names& names) const;

 private:
  enum Kind : std::uint8_t { values, objects, attributes, history };
  static constexpr std::size_t kKinds = 4;
  /// Path, and name of the attribute; empty: the object.
  using Name = std::pair<std::string, std::string>;
  struct Difference {
    SurveyedKind object = SurveyedKind::group;
    std::uint64_t first_source = kOlderSource;
    std::uint64_t n_inputs = 0;  ///< Without the output that is appended to.
    std::uint64_t n_older = 0;   ///< 1: that output differs from the first input.
  };
  struct Found {
    Kind kind = values;
    Name name;
    SurveyedKind object = SurveyedKind::group;
  };
  struct OfKind {
    std::map<Name, Difference> kept;
    bool more = false;  ///< More names than kNamesMax.
  };

  void add(Kind kind, Name name, const Difference& difference);

  std::uint64_t source_ = 0;
  std::vector<Found> found_;
  std::array<OfKind, kKinds> kinds_;
};

}  // namespace tailrace
