// See transfer.hpp. The order of the checks is the real library's, since programs test for codes.

#include "pnetcdf/transfer.hpp"

#include <algorithm>
#include <array>

#include "pnetcdf/filetype_slabs.hpp"
#include "pnetcdf/open_file.hpp"

namespace tailrace::pnetcdf {
namespace {

std::uint64_t unsigned_of(MPI_Offset value) { return static_cast<std::uint64_t>(value); }

int check_start(bool strict, MPI_Offset start, MPI_Offset count, MPI_Offset length) {
  if (start < 0 || start > length) return NC_EINVALCOORDS;
  if (start == length && (strict || count > 0)) return NC_EINVALCOORDS;
  return NC_NOERR;
}

int check_count(MPI_Offset start, MPI_Offset count, const MPI_Offset* stride, MPI_Offset length) {
  if (count < 0) return NC_ENEGATIVECNT;
  if (count > length || start > length - count) return NC_EEDGE;
  if (stride == nullptr || count == 0 || *stride <= 0) return NC_NOERR;
  // (count - 1) * stride < length - start, without overflow.
  return count - 1 > (length - start - 1) / *stride ? NC_EEDGE : NC_NOERR;
}

/// Check start, count and stride. `shape` holds the current extents; `growing` is true for a put to
/// a record variable, whose first dimension is unbounded.
int check_part(bool strict, const Shape& shape, bool growing, bool record, const Place& place) {
  if (place.start == nullptr || place.start[0] < 0) return NC_EINVALCOORDS;
  for (std::size_t d = growing ? 1 : 0; d < shape.size(); ++d) {
    const MPI_Offset count = place.count == nullptr ? 1 : place.count[d];
    const auto length = static_cast<MPI_Offset>(shape[d]);
    if (d == 0 && record && length == 0 && count > 0) return NC_EINVALCOORDS;
    const int status = check_start(strict, place.start[d], count, length);
    if (status != NC_NOERR) return status;
  }
  if (place.kind == Place::Kind::one) return NC_NOERR;
  if (place.count == nullptr) return NC_EEDGE;
  if (growing && place.count[0] < 0) return NC_ENEGATIVECNT;
  for (std::size_t d = growing ? 1 : 0; d < shape.size(); ++d) {
    const int status = check_count(place.start[d], place.count[d],
                                   place.stride == nullptr ? nullptr : place.stride + d,
                                   static_cast<MPI_Offset>(shape[d]));
    if (status != NC_NOERR) return status;
  }
  for (std::size_t d = 0; place.stride != nullptr && d < shape.size(); ++d) {
    if (place.stride[d] <= 0) return NC_ESTRIDE;
  }
  return NC_NOERR;
}

}  // namespace

/// Check a call and store its arguments.
int Transfer::begin(OpenFile& file, Direction direction, int varid, const CallerMemory& memory) {
  if (direction.put && file.read_only) return NC_EPERM;
  if (direction.blocking) {
    if (file.defining) return NC_EINDEFINE;
    if (direction.collective && file.independent) return NC_EINDEP;
    if (!direction.collective && !file.independent) return NC_ENOTINDEP;
  }
  if (varid == NC_GLOBAL) return NC_EGLOBAL;
  if (!file.has_variable(varid)) return NC_ENOTVAR;
  const ModelType type = file.variable(varid).type;
  if (model_type_bytes(type) == 0) return NC_EBADTYPE;  // strings, compounds: PnetCDF has none
  const bool text = memory.type == ModelType::text_char;
  if (memory.typed && text != (type == ModelType::text_char)) return NC_ECHAR;
  if (direction.buffered && !file.attached_bytes) return NC_ENULLABUF;
  varid_ = varid;
  variable_ = file.variables[static_cast<std::size_t>(varid)];
  type_ = type;
  memory_ = memory;
  return NC_NOERR;
}

int Transfer::add_slab(OpenFile& file, bool put, const Place& place) {
  const Shape shape = file.shape_of(varid_);
  Slab slab;
  if (shape.empty() || place.kind == Place::Kind::whole) {
    slab = Slab::of(whole_box(shape));
  } else {
    const bool record = file.is_record_variable(varid_);
    const int status = check_part(file.strict_bounds, shape, record && put, record, place);
    if (status != NC_NOERR) return status;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      slab.start.push_back(unsigned_of(place.start[d]));
      slab.count.push_back(place.kind == Place::Kind::one ? 1 : unsigned_of(place.count[d]));
      if (place.stride != nullptr) slab.stride.push_back(unsigned_of(place.stride[d]));
    }
  }
  n_elements_ += slab.n_elements();
  slabs_.push_back(std::move(slab));
  return NC_NOERR;
}

/// Add a put of many pieces as element runs, if each piece is one run: 12 bytes each.
/// @returns false, without adding anything, if a piece is not one run, or is invalid
bool Transfer::add_runs(OpenFile& file, const PlaceList& parts) {
  constexpr int least = 16;
  const Shape shape = file.shape_of(varid_);
  if (parts.n < least || shape.empty() || file.grows_within(varid_)) return false;
  const bool record = file.is_record_variable(varid_);
  const std::size_t rank = shape.size();
  // Positions are element numbers, which must not overflow if the first dimension grows.
  std::uint64_t most_records = std::uint64_t{1} << 48;
  for (std::size_t d = 1; d < rank; ++d) most_records /= std::max<std::uint64_t>(shape[d], 1);
  ElementRuns runs;
  runs.firsts.reserve(static_cast<std::size_t>(parts.n));
  runs.counts.reserve(static_cast<std::size_t>(parts.n));
  for (int i = 0; i < parts.n; ++i) {
    const MPI_Offset* start = parts.starts[i];
    const MPI_Offset* count = parts.counts == nullptr ? nullptr : parts.counts[i];
    if (start == nullptr) return false;
    const Place place = count == nullptr ? Place::one(start) : Place::part(start, count);
    if (check_part(file.strict_bounds, shape, record, record, place) != NC_NOERR) return false;
    const std::uint64_t n_records = count == nullptr ? 1 : unsigned_of(count[0]);
    if (n_records > most_records || unsigned_of(start[0]) > most_records - n_records) return false;
    std::uint64_t first = 0;
    std::uint64_t n = 1;
    bool inner_whole = true;  // True if all inner dimensions are complete.
    for (std::size_t d = rank; d-- > 0;) {
      const std::uint64_t here = count == nullptr ? 1 : unsigned_of(count[d]);
      if (here != 1 && !inner_whole) return false;
      n *= here;
      inner_whole = inner_whole && here == shape[d];
    }
    for (std::size_t d = 0; d < rank; ++d) {
      first = (d == 0 ? 0 : first * shape[d]) + unsigned_of(start[d]);
    }
    if (n > 0) runs.add(first, n);
  }
  n_elements_ = runs.n_elements();
  runs_ = std::move(runs);
  return true;
}

int Transfer::prepare_memory(OpenFile& file, bool put) {
  if (slabs_.size() == 1)
    count_ = slabs_[0].count;
  else
    count_ = {n_elements_};
  int status = resolve_memory(memory_, type_, n_elements_);
  if (status != NC_NOERR || n_elements_ == 0) return status;
  if ((memory_.type == ModelType::text_char) != (type_ == ModelType::text_char)) return NC_ECHAR;
  plain_ = is_plain(memory_, type_, count_);
  if (plain_) return NC_NOERR;
  if (!put) {
    values_.resize(n_bytes());
    return NC_NOERR;
  }
  std::array<std::byte, 8> fill{};
  file.fill_value_of(varid_, fill.data());
  return gather_memory(memory_, count_, type_, fill.data(), file.loose_bytes(), values_);
}

int Transfer::prepare(OpenFile& file, Direction direction, int varid, const Place& place,
                      const CallerMemory& memory) {
  int status = begin(file, direction, varid, memory);
  if (status != NC_NOERR) return status;
  status = add_slab(file, direction.put, place);
  if (status == NC_NOERR && place.element_map != nullptr) {
    memory_.element_map.assign(place.element_map, place.element_map + slabs_[0].rank());
  }
  // A count of 0 datatypes transfers nothing.
  const bool nothing = !memory.typed && memory.datatype != MPI_DATATYPE_NULL && memory.count == 0 &&
                       (!direction.collective || n_elements_ == 0);
  if (status == NC_NOERR && !nothing) status = prepare_memory(file, direction.put);
  if (nothing) n_elements_ = 0;
  if (status != NC_NOERR && status != NC_ERANGE) n_elements_ = 0;
  return status;
}

int Transfer::prepare(OpenFile& file, Direction direction, int varid, const PlaceList& parts,
                      const CallerMemory& memory) {
  const auto& [n_places, starts, counts] = parts;
  int status = begin(file, direction, varid, memory);
  if (status != NC_NOERR || n_places == 0) return status;
  if (file.shape_of(varid).empty()) {
    status = n_places == 1 ? add_slab(file, direction.put, Place::whole()) : NC_EINVAL;
  } else if (starts == nullptr) {
    status = NC_ENULLSTART;
  }
  const bool added =
      !slabs_.empty() || (status == NC_NOERR && direction.put && add_runs(file, parts));
  for (int i = 0; status == NC_NOERR && !added && i < n_places; ++i) {
    const MPI_Offset* count = counts == nullptr ? nullptr : counts[i];
    status = starts[i] == nullptr ? NC_ENULLSTART
             : count == nullptr   ? add_slab(file, direction.put, Place::one(starts[i]))
                                  : add_slab(file, direction.put, Place::part(starts[i], count));
  }
  if (status == NC_NOERR) status = prepare_memory(file, direction.put);
  if (status != NC_NOERR && status != NC_ERANGE) n_elements_ = 0;
  return status;
}

int Transfer::add_filetype(OpenFile& file, bool put, MPI_Datatype filetype) {
  ModelType type = type_;
  int status = type_of_datatype(filetype, type);
  if (status != NC_NOERR) return status;
  if (type != type_) return NC_ETYPE_MISMATCH;
  const bool record = file.is_record_variable(varid_);
  status = slabs_of_filetype(filetype,
                             {.shape = file.shape_of(varid_),
                              .element_bytes = model_type_bytes(type_),
                              .record = record,
                              .record_step = file.record_bytes(),
                              .growing = record && put},
                             slabs_);
  for (const Slab& slab : slabs_) n_elements_ += slab.n_elements();
  const std::string& name = file.variable(varid_).name;
  if (status == NC_EEDGE) {
    return report_failure(
        Status(Code::bad_coverage, "vard: the filetype exceeds variable \"" + name +
                                       "\"; a filetype over several variables is not supported"));
  }
  if (status == NC_ENOTSUPPORT) {
    return report_failure(
        Status(Code::unsupported,
               "vard: the filetype for variable \"" + name +
                   "\" must not be a darray, and its runs must begin at whole elements"));
  }
  return status;
}

int Transfer::prepare(OpenFile& file, Direction direction, int varid, Filetype filetype,
                      const CallerMemory& memory) {
  int status = begin(file, direction, varid, memory);
  if (status != NC_NOERR) return status;
  int filetype_bytes = 0;
  if (filetype.datatype != MPI_DATATYPE_NULL) MPI_Type_size(filetype.datatype, &filetype_bytes);
  if (filetype_bytes == 0) return NC_NOERR;
  status = add_filetype(file, direction.put, filetype.datatype);
  const bool nothing = memory.datatype != MPI_DATATYPE_NULL && memory.count == 0;
  if (status == NC_NOERR && !nothing) status = prepare_memory(file, direction.put);
  if (nothing || (status != NC_NOERR && status != NC_ERANGE)) n_elements_ = 0;
  return status;
}

std::uint64_t Transfer::n_bytes() const { return n_elements_ * model_type_bytes(type_); }

std::byte* Transfer::values() {
  return plain_ ? static_cast<std::byte*>(memory_.values) : values_.data();
}

void Transfer::keep_values() {
  if (!plain_ || empty()) return;
  const auto* from = static_cast<const std::byte*>(memory_.values);
  values_.assign(from, from + n_bytes());
  plain_ = false;
}

int Transfer::put(OpenFile& file) const {
  if (empty()) return NC_NOERR;
  const std::byte* from = plain_ ? static_cast<const std::byte*>(memory_.values) : values_.data();
  if (!runs_.empty()) {
    const Status status = file.array->put_runs(variable_, runs_, {from, n_bytes()});
    if (!status.ok()) return report_failure(status);
  }
  for (const Slab& slab : slabs_) {
    const std::size_t slab_bytes = slab.n_elements() * model_type_bytes(type_);
    if (slab_bytes == 0) continue;
    const Status status = file.array->put(variable_, slab, {from, slab_bytes});
    if (!status.ok()) return report_failure(status);
    from += slab_bytes;
  }
  file.put_bytes += n_bytes();
  return NC_NOERR;
}

void Transfer::add_requests(std::vector<ReadRequest>& requests) {
  if (empty()) return;
  std::byte* to = values();
  for (const Slab& slab : slabs_) {
    if (slab.empty()) continue;
    requests.push_back({variable_, slab, to});
    to += slab.n_elements() * model_type_bytes(type_);
  }
}

int Transfer::get(OpenFile& file) {
  std::vector<ReadRequest> requests;
  add_requests(requests);
  for (const ReadRequest& request : requests) {
    const std::size_t slab_bytes = request.slab.n_elements() * model_type_bytes(type_);
    const Status status =
        file.array->get(request.dataset, request.slab, {request.values, slab_bytes});
    if (!status.ok()) return report_failure(status);
  }
  return finish(file);
}

int Transfer::finish(OpenFile& file) {
  if (empty()) return NC_NOERR;
  file.got_bytes += n_bytes();
  if (plain_) return NC_NOERR;
  return scatter_memory(values_, type_, count_, file.loose_bytes(), memory_);
}

}  // namespace tailrace::pnetcdf
