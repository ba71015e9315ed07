// Reads of netCDF-4 variables that may be longer than their datasets: an unlimited dimension is as
// long as the longest of its variables. Elements beyond the dataset read as the fill value.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/slab.hpp"
#include "read/read.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Read a slab that the caller has checked against the variable's shape. Not collective.
/// @param fill  one element in native byte order.
/// @param abs_bound  same as in Reader::read().
/// @error same as Reader::read()
Status read_padded(Reader& reader, std::size_t dataset, const Slab& slab,
                   std::span<const std::byte> fill, std::span<std::byte> values,
                   double abs_bound = 0);

/// Read texts of a slab; those beyond the dataset are empty. Not collective.
Result<std::vector<std::string>> read_texts_padded(Reader& reader, std::size_t dataset,
                                                   const Slab& slab);

/// Collects the requests of a collective read of padded variables.
class PaddedReads {
 public:
  /// Add a slab that the caller has checked against the variable's shape, and fill its elements
  /// beyond the dataset. Not collective.
  void add(const Reader& reader, const ReadRequest& request, std::span<const std::byte> fill);
  /// Read all added slabs. Collective, like Reader::read_all().
  Status read_all(Reader& reader);

 private:
  struct Part {
    ReadRequest request;
    SlabPart part;
    std::size_t element_bytes = 0;
    std::vector<std::byte> values;
  };
  std::vector<ReadRequest> requests_;
  std::vector<Part> parts_;
};

}  // namespace tailrace
