// Group sample: groups of codes like the encoder's, scattered over a chunk.
//
// The choice of a predictor (sampler.hpp) needs a rough cost of every candidate. The size of a
// chunk needs an accurate cost of one candidate. So this sample computes actual codes, in groups of
// 64, on every level of the pyramid in proportion to the level's weight. The group coder encodes
// them, and size_estimate.cpp prices the scaled streams as sections. Neighbours are rounded to
// their lattice points, which approximate the decoded values.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trz/kernels/group_kernels.hpp"
#include "trz/kernels/sample_kernels.hpp"
#include "trz/predict/choose.hpp"
#include "trz/predict/sampler.hpp"

namespace tailrace::trz {

/// Sampled groups of codes for one prediction. Source: Jin et al. 2022, III-B samples quantisation
/// codes in blocks. We sample scattered groups with their true neighbours instead.
template <class T>
class GroupSample {
 public:
  static constexpr std::size_t kGroupsMax = 256;

  /// @param chunk  with offset and step of the lattice that `prediction` uses.
  GroupSample(const SampledValues<T>& chunk, const Prediction& prediction, Isa isa);

  std::size_t n_groups() const { return n_groups_; }
  const std::int32_t* codes() const { return codes_.data(); }
  /// Number of the chunk's groups that the group at `index` represents.
  double weight(std::size_t index) const { return weight_[index]; }
  /// Probability that a value is special and the next is not, or the reverse.
  double change_share() const {
    return n_seen_ == 0 ? 0 : static_cast<double>(n_changes_) / static_cast<double>(n_seen_);
  }

 private:
  /// Points of one level that are predicted along the same axes.
  struct Set {
    unsigned axes = 0;  ///< Bit 0: x.
    double n_points = 0;
    std::array<double, 3> share{};
  };
  struct Level {
    int index = 0;
    std::size_t scale = 1;
    std::array<std::size_t, 3> extent{};  ///< x first.
    double divisor = 1;
    double coarser_divisor = 1;
  };

  void sample_lorenzo();
  void sample_interpolation();
  std::size_t sets_of(const Level& level, Set* sets) const;
  void sample_set(const Level& level, const Set& set, std::size_t n_groups);
  void lorenzo_group(std::size_t start, std::int32_t* codes);
  /// Start of a group in a set, in points of its level, and the number of codes per row.
  struct Place {
    std::array<std::size_t, 3> at{};
    std::size_t n = 0;
  };
  Place scatter(const Level& level, const Set& set);
  void prefetch(const Level& level, const Set& set, const Place& place) const;
  void interpolated_group(const Level& level, const Set& set, Place place, std::int32_t* codes);
  void load(std::size_t first, std::size_t n, std::size_t stride, double* u, bool counted);
  void load_row(const Level& level, std::size_t z, std::size_t y, std::ptrdiff_t x, std::size_t n,
                double* u, bool counted = false);

  SampledValues<T> chunk_;
  const Prediction& prediction_;
  const GroupSampleKernels& kernels_;
  Extents extents_;
  Scatter scatter_;
  std::size_t n_groups_ = 0;
  /// Flags of the row that was counted last.
  std::array<bool, kSourceRunMax> special_{};
  bool any_special_ = false;
  std::size_t n_changes_ = 0;
  std::size_t n_seen_ = 0;
  std::array<double, kGroupsMax> weight_;
  std::array<std::int32_t, kGroupsMax * kGroupCodes> codes_;
};

}  // namespace tailrace::trz
