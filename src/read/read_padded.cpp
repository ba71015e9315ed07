// Splitting slabs at the end of a dataset.

#include "read/read_padded.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/fill_values.hpp"
#include "trz/base/box.hpp"

namespace tailrace {
namespace {

/// The place of a part among the elements of its slab.
Box box_of(const SlabPart& part) { return {part.first, part.slab.count}; }

void copy_part(const SlabPart& part, const std::vector<std::byte>& from, const Slab& slab,
               std::byte* to, std::size_t element_bytes) {
  copy_box(box_of(part), box_of(part), from.data(), whole_box(slab.count), to, element_bytes);
}

SlabPart part_of_dataset(const Reader& reader, std::size_t dataset, const Slab& slab) {
  return part_within(slab, whole_box(reader.datasets()[dataset].shape));
}

}  // namespace

Status read_padded(Reader& reader, std::size_t dataset, const Slab& slab,
                   std::span<const std::byte> fill, std::span<std::byte> values, double abs_bound) {
  const SlabPart part = part_of_dataset(reader, dataset, slab);
  if (part.slab == slab) return reader.read(dataset, slab, values, abs_bound);
  fill_values(values, fill);
  if (part.slab.empty()) return Status();
  std::vector<std::byte> there(part.slab.n_elements() * fill.size());
  TAILRACE_TRY(reader.read(dataset, part.slab, there, abs_bound));
  copy_part(part, there, slab, values.data(), fill.size());
  return Status();
}

Result<std::vector<std::string>> read_texts_padded(Reader& reader, std::size_t dataset,
                                                   const Slab& slab) {
  const SlabPart part = part_of_dataset(reader, dataset, slab);
  if (part.slab == slab) return reader.read_texts(dataset, slab);
  std::vector<std::string> texts(slab.n_elements());
  if (part.slab.empty()) return texts;
  TAILRACE_TAKE(std::vector<std::string> there, reader.read_texts(dataset, part.slab));
  auto next = there.begin();
  for_each_position(box_of(part), [&](const Shape& at) {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < at.size(); ++d) index = index * slab.count[d] + at[d];
    texts[index] = std::move(*next++);
  });
  return texts;
}

void PaddedReads::add(const Reader& reader, const ReadRequest& request,
                      std::span<const std::byte> fill) {
  SlabPart part = part_of_dataset(reader, request.dataset, request.slab);
  if (part.slab == request.slab) {
    requests_.push_back(request);
    return;
  }
  fill_values({request.values, request.slab.n_elements() * fill.size()}, fill);
  if (part.slab.empty()) return;
  Part& added = parts_.emplace_back();
  added.request = request;
  added.element_bytes = fill.size();
  added.values.resize(part.slab.n_elements() * fill.size());
  requests_.push_back({request.dataset, part.slab, added.values.data()});
  added.part = std::move(part);
}

Status PaddedReads::read_all(Reader& reader) {
  TAILRACE_TRY(reader.read_all(requests_));
  for (const Part& it : parts_) {
    copy_part(it.part, it.values, it.request.slab, it.request.values, it.element_bytes);
  }
  return Status();
}

}  // namespace tailrace
