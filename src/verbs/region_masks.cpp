#include "verbs/region_masks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "trz/base/buffer.hpp"

namespace tailrace::verbs {
namespace {

class FileMask final : public RegionMask {
 public:
  FileMask(InputFile& file, std::size_t field_index, bool of_every_entry, std::mutex* one_at_a_time)
      : file_(&file),
        field_index_(field_index),
        of_every_entry_(of_every_entry),
        one_at_a_time_(one_at_a_time) {}

  Status read(const Box& box, std::span<std::uint8_t> inside) const override {
    const StoredDataset& mask = file_->fields()[field_index_];
    Box own = box;
    if (of_every_entry_) {
      own.start.erase(own.start.begin());
      own.count.erase(own.count.begin());
    }
    const std::uint64_t n_own = own.n_elements();
    Buffer values(n_own * mask.value_bytes());
    if (!values.allocated())
      return Status(Code::out_of_memory, "mask \"" + mask.path + "\": not enough memory for " +
                                             std::to_string(n_own * mask.value_bytes()) + " bytes");
    TAILRACE_TRY(read_values(own, values.bytes()).within("mask \"" + mask.path + "\""));
    visit_dtype(*mask.dtype, [&]<class T>() {
      const auto* numbers = reinterpret_cast<const T*>(values.data());
      for (std::uint64_t i = 0; i < n_own; ++i) inside[i] = numbers[i] != 0 ? 1 : 0;
    });
    for (std::uint64_t done = n_own; n_own > 0 && done < inside.size(); done += n_own) {
      std::ranges::copy(inside.first(n_own), inside.begin() + static_cast<std::ptrdiff_t>(done));
    }
    return Status();
  }

 private:
  Status read_values(const Box& box, std::span<std::byte> values) const {
    std::unique_lock<std::mutex> alone;
    if (one_at_a_time_ != nullptr) alone = std::unique_lock(*one_at_a_time_);
    return file_->read(field_index_, box, values);
  }

  InputFile* file_;
  std::size_t field_index_;
  bool of_every_entry_;
  std::mutex* one_at_a_time_;
};

}  // namespace

Result<RegionMasks> find_masks(InputFile& file, std::span<const RegionGuard> regions,
                               const Shape& shape, std::mutex* one_at_a_time) {
  RegionMasks masks;
  if (!has_masks(regions)) return masks;
  Shape of_entry = shape;
  if (!of_entry.empty()) of_entry.erase(of_entry.begin());
  for (const RegionGuard& region : regions) {
    masks.push_back(nullptr);
    if (region.mask.empty()) continue;
    const std::string what = "guard=region=" + region_text(region);
    const auto& fields = file.fields();
    const auto mask = std::ranges::find(fields, region.mask, &StoredDataset::path);
    if (mask == fields.end()) {
      return Status(Code::not_found,
                    fmt::format("{}: dataset of numbers \"{}\" does not exist", what, region.mask));
    }
    if (is_floating(*mask->dtype)) {
      return Status(Code::invalid_argument, fmt::format("{}: a mask must have integers, found {}",
                                                        what, dtype_name(*mask->dtype)));
    }
    const bool of_every_entry = !of_entry.empty() && mask->shape == of_entry;
    if (!of_every_entry && mask->shape != shape) {
      return Status(Code::invalid_argument,
                    fmt::format("{}: the mask has shape {}, the field {}; the shapes must be "
                                "equal, or the mask must lack the first axis of the field",
                                what, shape_text(mask->shape), shape_text(shape)));
    }
    masks.back() = std::make_shared<const FileMask>(
        file, static_cast<std::size_t>(mask - fields.begin()), of_every_entry, one_at_a_time);
  }
  return masks;
}

}  // namespace tailrace::verbs
