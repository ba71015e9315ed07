// Group sample: groups of codes as the encoder would make them, scattered over a chunk.
//
// The choice of a predictor (sampler.hpp) asks what all candidates would cost, roughly; the size of
// a chunk is asked of one alone, and closely. So its codes are made, 64 in a row as the groups hold
// them, on every level of the pyramid in proportion to what the level weighs, and go to the group
// coder; the streams that come out, scaled up, are priced like sections (size_estimate.cpp).
// Neighbours are on their lattice points, which stand in for what the decoder would have there.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trz/kernels/group_kernels.hpp"
#include "trz/kernels/sample_kernels.hpp"
#include "trz/predict/choose.hpp"
#include "trz/predict/sampler.hpp"

namespace tailrace::trz {

/// Source: Jin et al. 2022, III-B samples the quantisation codes; scattered groups with their true
/// neighbours instead of blocks are ours.
template <class T>
class GroupSample {
 public:
  static constexpr std::size_t kGroupsMax = 256;

  /// `chunk` with offset and step of the lattice that `prediction` is to use.
  GroupSample(const SampledValues<T>& chunk, const Prediction& prediction, Isa isa);

  std::size_t n_groups() const { return n_groups_; }
  const std::int32_t* codes() const { return codes_.data(); }
  /// How many of the chunk's groups the group at `index` stands for.
  double weight(std::size_t index) const { return weight_[index]; }
  /// How often, for a value of the chunk, a special one follows another or the other way round.
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
  /// Where a group of a set begins, in points of its level; and so many of its codes come from one
  /// row.
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
  /// Of the row counted last.
  std::array<bool, kSourceRunMax> special_{};
  bool any_special_ = false;
  std::size_t n_changes_ = 0;
  std::size_t n_seen_ = 0;
  std::array<double, kGroupsMax> weight_;
  std::array<std::int32_t, kGroupsMax * kGroupCodes> codes_;
};

}  // namespace tailrace::trz
