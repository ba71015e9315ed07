// See filetype_slabs.hpp.

#include "pnetcdf/filetype_slabs.hpp"

#include <pnetcdf.h>

#include <algorithm>

namespace tailrace::pnetcdf {

DatatypeContents::DatatypeContents(MPI_Datatype datatype) {
  int n_integers = 0;
  int n_addresses = 0;
  int n_datatypes = 0;
  MPI_Type_get_envelope(datatype, &n_integers, &n_addresses, &n_datatypes, &combiner);
  if (combiner == MPI_COMBINER_NAMED) return;
  // An empty vector's null address is invalid in some MPI libraries, so allocate one more.
  integers.resize(static_cast<std::size_t>(n_integers) + 1);
  addresses.resize(static_cast<std::size_t>(n_addresses) + 1);
  datatypes.resize(static_cast<std::size_t>(n_datatypes) + 1);
  MPI_Type_get_contents(datatype, n_integers, n_addresses, n_datatypes, integers.data(),
                        addresses.data(), datatypes.data());
  datatypes.pop_back();
}

DatatypeContents::~DatatypeContents() {
  for (MPI_Datatype& part : datatypes) {
    int n_integers = 0;
    int n_addresses = 0;
    int n_datatypes = 0;
    int part_combiner = 0;
    MPI_Type_get_envelope(part, &n_integers, &n_addresses, &n_datatypes, &part_combiner);
    if (part_combiner != MPI_COMBINER_NAMED) MPI_Type_free(&part);
  }
}

namespace {

/// Contiguous bytes from `start` on.
struct Run {
  std::int64_t start = 0;
  std::int64_t n_bytes = 0;
};
using Runs = std::vector<Run>;

void append(Runs& runs, Run run) {
  if (run.n_bytes == 0) return;
  if (!runs.empty() && runs.back().start + runs.back().n_bytes == run.start)
    runs.back().n_bytes += run.n_bytes;
  else
    runs.push_back(run);
}

/// Runs of a datatype, and the distance between its copies.
struct Parts {
  Runs runs;
  std::int64_t extent = 0;
};

/// Append the runs of `n` copies, starting at `at`.
void append_block(Runs& runs, const Parts& part, std::int64_t at, std::int64_t n) {
  // If one run fills the extent, as for elements, the block is one run, too.
  if (part.runs.size() == 1 && part.runs[0].n_bytes == part.extent) {
    append(runs, {at + part.runs[0].start, n * part.extent});
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (const Run& run : part.runs) {
      append(runs, {at + i * part.extent + run.start, run.n_bytes});
    }
  }
}

/// Append the box `starts`, `counts` of an array of copies; `order` as in MPI_Type_create_subarray.
void append_subarray(Runs& runs, const Parts& part, const std::vector<int>& integers) {
  const auto n = static_cast<std::size_t>(integers[0]);
  const int order = integers[3 * n + 1];
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> starts;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t d = order == MPI_ORDER_C ? i : n - 1 - i;
    sizes.push_back(integers[1 + d]);
    counts.push_back(integers[1 + n + d]);
    starts.push_back(integers[1 + 2 * n + d]);
  }
  if (n == 0 || std::find(counts.begin(), counts.end(), 0) != counts.end()) return;
  std::vector<std::int64_t> at(n, 0);
  for (;;) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < n; ++d) index = index * sizes[d] + starts[d] + at[d];
    append_block(runs, part, index * part.extent, counts[n - 1]);
    std::size_t d = n - 1;  // the last dimension was appended as one block
    while (d > 0 && ++at[d - 1] == counts[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

int take_apart(MPI_Datatype datatype, Parts& parts);

/// Build the runs of a derived datatype from those of its component datatypes.
int combine(const DatatypeContents& of, const std::vector<Parts>& parts, Runs& runs) {
  const std::vector<int>& n = of.integers;
  const std::vector<MPI_Aint>& at = of.addresses;
  const auto count = n.empty() ? 0 : static_cast<std::size_t>(n[0]);
  switch (of.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: append_block(runs, parts[0], 0, 1); return NC_NOERR;
    case MPI_COMBINER_CONTIGUOUS: append_block(runs, parts[0], 0, n[0]); return NC_NOERR;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR: {
      const bool bytes = of.combiner == MPI_COMBINER_HVECTOR;
      const std::int64_t step = bytes ? at[0] : n[2] * parts[0].extent;
      for (std::size_t i = 0; i < count; ++i) {
        append_block(runs, parts[0], static_cast<std::int64_t>(i) * step, n[1]);
      }
      return NC_NOERR;
    }
    case MPI_COMBINER_INDEXED:
      for (std::size_t i = 0; i < count; ++i) {
        append_block(runs, parts[0], n[1 + count + i] * parts[0].extent, n[1 + i]);
      }
      return NC_NOERR;
    case MPI_COMBINER_HINDEXED:
      for (std::size_t i = 0; i < count; ++i) append_block(runs, parts[0], at[i], n[1 + i]);
      return NC_NOERR;
    case MPI_COMBINER_INDEXED_BLOCK:
      for (std::size_t i = 0; i < count; ++i) {
        append_block(runs, parts[0], n[2 + i] * parts[0].extent, n[1]);
      }
      return NC_NOERR;
    case MPI_COMBINER_HINDEXED_BLOCK:
      for (std::size_t i = 0; i < count; ++i) append_block(runs, parts[0], at[i], n[1]);
      return NC_NOERR;
    case MPI_COMBINER_STRUCT:
      for (std::size_t i = 0; i < count; ++i) append_block(runs, parts[i], at[i], n[1 + i]);
      return NC_NOERR;
    case MPI_COMBINER_SUBARRAY: append_subarray(runs, parts[0], n); return NC_NOERR;
    default: return NC_ENOTSUPPORT;
  }
}

int take_apart(MPI_Datatype datatype, Parts& parts) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(datatype, &lower, &extent);
  parts.extent = extent;
  const DatatypeContents contents(datatype);
  if (contents.combiner == MPI_COMBINER_NAMED) {
    int n_bytes = 0;
    MPI_Type_size(datatype, &n_bytes);
    append(parts.runs, {0, n_bytes});
    return NC_NOERR;
  }
  std::vector<Parts> inner(contents.datatypes.size());
  for (std::size_t i = 0; i < inner.size(); ++i) {
    const int status = take_apart(contents.datatypes[i], inner[i]);
    if (status != NC_NOERR) return status;
  }
  return combine(contents, inner, parts.runs);
}

/// Append `next` to `slab` if it continues `slab` in one dimension, so that both form one slab in
/// row-major order. @returns true if merged
bool join(Slab& slab, const Slab& next) {
  std::size_t along = 0;
  while (along < slab.rank() && slab.count[along] == 1 && next.count[along] == 1 &&
         slab.start[along] == next.start[along]) {
    ++along;
  }
  if (along == slab.rank()) return false;
  if (next.start[along] != slab.start[along] + slab.count[along]) return false;
  for (std::size_t d = along + 1; d < slab.rank(); ++d) {
    if (slab.start[d] != next.start[d] || slab.count[d] != next.count[d]) return false;
  }
  slab.count[along] += next.count[along];
  return true;
}

void append_slab(std::vector<Slab>& slabs, std::size_t first, Slab slab) {
  slabs.push_back(std::move(slab));
  while (slabs.size() >= first + 2 && join(slabs[slabs.size() - 2], slabs.back())) {
    slabs.pop_back();
  }
}

/// Append elements `from` to `from + n` of the array, row-major, as slabs that are as large as
/// possible: complete rows, planes and so on.
void append_elements(std::vector<Slab>& slabs, std::size_t first, const Shape& shape,
                     std::uint64_t from, std::uint64_t n) {
  const std::size_t rank = shape.size();
  while (n > 0) {
    Slab slab;
    slab.start.assign(rank, 0);
    slab.count.assign(rank, 1);
    std::uint64_t rest = from;
    for (std::size_t d = rank; d-- > 1;) {
      slab.start[d] = rest % shape[d];
      rest /= shape[d];
    }
    if (rank > 0) slab.start[0] = rest;
    // Take complete dimensions, from the last one on, as long as they begin here and are filled.
    // Then take part of one dimension.
    std::uint64_t inner = 1;
    std::size_t d = rank;
    while (d > 1 && slab.start[d - 1] == 0 && n >= inner * shape[d - 1]) {
      slab.count[d - 1] = shape[d - 1];
      inner *= shape[--d];
    }
    if (d > 0) {
      const std::uint64_t left = d == 1 ? n / inner : shape[d - 1] - slab.start[d - 1];
      slab.count[d - 1] = std::min(left, n / inner);
      inner *= slab.count[d - 1];
    }
    append_slab(slabs, first, std::move(slab));
    from += inner;
    n -= inner;
  }
}

/// Append the elements of one run of bytes. Sizes are bounded by the checks, so nothing overflows.
int append_run(std::vector<Slab>& slabs, std::size_t first, const VariableBytes& variable,
               const Run& run) {
  if (run.start < 0) return NC_EEDGE;
  Shape one = variable.shape;
  if (variable.record) one[0] = 1;
  const std::uint64_t part_elements = n_elements(one);  // elements of one record, or of all
  const std::uint64_t part_bytes = part_elements * variable.element_bytes;
  auto start = static_cast<std::uint64_t>(run.start);
  auto left = static_cast<std::uint64_t>(run.n_bytes);
  const std::uint64_t step = variable.record ? variable.record_step : part_bytes;
  while (left > 0) {
    const std::uint64_t record = step == 0 ? 0 : start / step;
    const std::uint64_t within = step == 0 ? start : start % step;
    if (!variable.record && record > 0) return NC_EEDGE;
    if (within >= part_bytes) return NC_EEDGE;
    // A run may continue in the next record only if records lie without gaps.
    const std::uint64_t n_bytes = std::min(left, part_bytes - within);
    if (n_bytes < left && (!variable.record || part_bytes != step)) return NC_EEDGE;
    if (within % variable.element_bytes != 0 || n_bytes % variable.element_bytes != 0) {
      return NC_ENOTSUPPORT;
    }
    const bool there = !variable.record || variable.growing || record < variable.shape[0];
    if (!there) return NC_EEDGE;
    append_elements(slabs, first, variable.shape,
                    record * part_elements + within / variable.element_bytes,
                    n_bytes / variable.element_bytes);
    start += n_bytes;
    left -= n_bytes;
  }
  return NC_NOERR;
}

}  // namespace

int slabs_of_filetype(MPI_Datatype filetype, const VariableBytes& variable,
                      std::vector<Slab>& slabs) {
  Parts parts;
  if (const int status = take_apart(filetype, parts); status != NC_NOERR) return status;
  const std::size_t first = slabs.size();
  for (const Run& run : parts.runs) {
    const int one = append_run(slabs, first, variable, run);
    if (one != NC_NOERR) return one;
  }
  return NC_NOERR;
}

}  // namespace tailrace::pnetcdf
