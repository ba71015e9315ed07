// Nonblocking access: ncmpi_{iput,iget,bput}_var{,1,a,s,m}{,_TYPE}, wait, cancel, attached buffers.
//
// A request keeps a prepared Transfer until a wait stages its values or reads them. Those of one
// wait_all become one collective read; puts go before gets, as in the real library.

#include <algorithm>

#include "pnetcdf/access.hpp"

namespace tailrace::pnetcdf {
namespace {

using Requests = std::list<PendingRequest>;

void release(OpenFile& file, const PendingRequest& request) {
  if (request.buffered) file.attached_used -= request.transfer.n_bytes();
}

/// As many numbers as there are requests, of one kind or without statuses: the real library's waits
/// take all of them, whatever the numbers. Its Fortran functions count on that: they do not return
/// the number of a put that answered NC_ERANGE.
bool means_all(const OpenFile& file, int n, const int* statuses) {
  const auto n_puts = std::count_if(file.requests.begin(), file.requests.end(),
                                    [](const PendingRequest& r) { return r.put; });
  const auto n_all = static_cast<std::ptrdiff_t>(file.requests.size());
  return n == n_all && (n_puts == 0 || n_puts == n_all || statuses == nullptr);
}

/// Move the requests that a wait or cancel means out of the list. An unknown number sets its status
/// and is the answer, unless `all` are meant: then it stands for one that no number means.
int take_requests(OpenFile& file, int n, int* ids, int* statuses, bool all, Requests& taken,
                  std::vector<int*>& status_places) {
  if (n < 0) {
    for (auto at = file.requests.begin(); at != file.requests.end();) {
      const auto next = std::next(at);
      const bool meant = n == NC_REQ_ALL || (n == NC_PUT_REQ_ALL) == at->put;
      if (meant) taken.splice(taken.end(), file.requests, at);
      at = next;
    }
    status_places.assign(taken.size(), nullptr);
    return NC_NOERR;
  }
  int status = NC_NOERR;
  std::vector<int*> unknown;
  for (int i = 0; i < n; ++i) {
    int* place = statuses == nullptr ? nullptr : statuses + i;
    if (place != nullptr) *place = NC_NOERR;
    if (ids[i] == NC_REQ_NULL && !all) continue;
    const auto found = std::find_if(file.requests.begin(), file.requests.end(),
                                    [&](const PendingRequest& r) { return r.id == ids[i]; });
    if (found == file.requests.end()) {
      unknown.push_back(place);
      if (all) {
        ids[i] = NC_REQ_NULL;
      } else {
        if (place != nullptr) *place = NC_EINVAL_REQUEST;
        status = NC_EINVAL_REQUEST;
      }
      continue;
    }
    ids[i] = NC_REQ_NULL;
    taken.splice(taken.end(), file.requests, found);
    status_places.push_back(place);
  }
  if (all) {
    taken.splice(taken.end(), file.requests);
    status_places.insert(status_places.end(), unknown.begin(), unknown.end());
  }
  return status;
}

void note(int status, int* place, int& first) {
  if (place != nullptr && *place == NC_NOERR) *place = status;
  if (first == NC_NOERR) first = status;
}

/// Whether any rank has gets to do; without them nobody flushes. Collective: one allreduce.
bool any_gets(OpenFile& file, const Requests& requests) {
  std::uint64_t n = 0;
  for (const PendingRequest& request : requests) n += request.put ? 0 : 1;
  file.array->comm().allreduce({&n, 1}, Reduction::sum);
  return n > 0;
}

int wait_for(OpenFile& file, bool collective, int n, int* ids, int* statuses) {
  if (file.defining) return NC_EINDEFINE;
  if (collective && file.independent) return NC_EINDEP;
  if (!collective && !file.independent) return NC_ENOTINDEP;
  if (n < NC_PUT_REQ_ALL) return NC_EINVAL;
  Requests taken;
  std::vector<int*> places;
  const bool all = n > 0 && means_all(file, n, statuses);
  int first = take_requests(file, n, ids, statuses, all, taken, places);
  auto place = places.begin();
  for (PendingRequest& request : taken) {
    if (request.put) note(request.transfer.put(file), *place, first);
    release(file, request);
    ++place;
  }
  if (!collective) {
    place = places.begin();
    for (PendingRequest& request : taken) {
      if (!request.put) note(request.transfer.get(file), *place, first);
      ++place;
    }
    return first;
  }
  if (!file.read_only) {
    const int settled = report_failure(file.array->settle(), file.array->comm());
    if (first == NC_NOERR) first = settled;
  }
  if (!any_gets(file, taken)) return first;
  std::vector<ReadRequest> slabs;
  for (PendingRequest& request : taken) {
    if (!request.put) request.transfer.add_requests(slabs);
  }
  const int read = report_failure(file.array->get_all(slabs), file.array->comm());
  place = places.begin();
  for (PendingRequest& request : taken) {
    if (!request.put) {
      note(read != NC_NOERR ? read : request.transfer.finish(file), *place, first);
    }
    ++place;
  }
  return first;
}

int cancel(OpenFile& file, int n, int* ids, int* statuses) {
  if (n == 0) return NC_NOERR;
  if (n < NC_PUT_REQ_ALL) return NC_EINVAL;
  Requests taken;
  std::vector<int*> places;
  const int status = take_requests(file, n, ids, statuses, false, taken, places);
  for (const PendingRequest& request : taken) release(file, request);
  return status;
}

int attach_buffer(OpenFile& file, MPI_Offset n_bytes) {
  if (n_bytes <= 0) return NC_ENULLBUF;
  if (file.attached_bytes) return NC_EPREVATTACHBUF;
  file.attached_bytes = static_cast<std::uint64_t>(n_bytes);
  file.attached_used = 0;
  return NC_NOERR;
}

int detach_buffer(OpenFile& file) {
  if (!file.attached_bytes) return NC_ENULLABUF;
  const bool pending = std::any_of(file.requests.begin(), file.requests.end(),
                                   [](const PendingRequest& r) { return r.buffered; });
  if (pending) return NC_EPENDINGBPUT;
  file.attached_bytes.reset();
  return NC_NOERR;
}

int inquire_buffer(const OpenFile& file, std::uint64_t value, MPI_Offset* place) {
  if (!file.attached_bytes) return NC_ENULLABUF;
  if (place != nullptr) *place = static_cast<MPI_Offset>(value);
  return NC_NOERR;
}

int count_requests(const OpenFile& file, int* n) {
  if (n != nullptr) *n = static_cast<int>(file.requests.size());
  return NC_NOERR;
}

}  // namespace
}  // namespace tailrace::pnetcdf

namespace ours = tailrace::pnetcdf;
using ours::CallerMemory;
using tailrace::ModelType;

// Names of functions and lists of parameters cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define TAILRACE_POSTED(verb, put, buffered, name, SHAPE, T, type)                       \
  TAILRACE_SERVE(ncmpi_##verb##_##name,                                                  \
                 (int ncid, int varid, TAILRACE_##SHAPE##_DECLARED T* values, int* req), \
                 (ncid, varid, TAILRACE_##SHAPE##_PASSED values, req),                   \
                 ours::post(file, put, buffered, varid, TAILRACE_##SHAPE##_PLACE,        \
                            CallerMemory::of(values, ModelType::type), req))

#define TAILRACE_POSTED_FLEXIBLE(verb, put, buffered, name, SHAPE, T)                              \
  TAILRACE_SERVE(ncmpi_##verb##_##name,                                                            \
                 (int ncid, int varid, TAILRACE_##SHAPE##_DECLARED T* values, MPI_Offset bufcount, \
                  MPI_Datatype buftype, int* req),                                                 \
                 (ncid, varid, TAILRACE_##SHAPE##_PASSED values, bufcount, buftype, req),          \
                 ours::post(file, put, buffered, varid, TAILRACE_##SHAPE##_PLACE,                  \
                            CallerMemory::flexible(values, bufcount, buftype), req))

#define TAILRACE_POSTED_ALL(name, SHAPE, T, type)                \
  TAILRACE_POSTED(iput, true, false, name, SHAPE, const T, type) \
  TAILRACE_POSTED(iget, false, false, name, SHAPE, T, type)      \
  TAILRACE_POSTED(bput, true, true, name, SHAPE, const T, type)

#define TAILRACE_POSTED_FLEXIBLE_ALL(name, SHAPE)                      \
  TAILRACE_POSTED_FLEXIBLE(iput, true, false, name, SHAPE, const void) \
  TAILRACE_POSTED_FLEXIBLE(iget, false, false, name, SHAPE, void)      \
  TAILRACE_POSTED_FLEXIBLE(bput, true, true, name, SHAPE, const void)

#define TAILRACE_POSTED_SHAPES(suffix, T, type)    \
  TAILRACE_POSTED_ALL(var##suffix, VAR, T, type)   \
  TAILRACE_POSTED_ALL(var1##suffix, VAR1, T, type) \
  TAILRACE_POSTED_ALL(vara##suffix, VARA, T, type) \
  TAILRACE_POSTED_ALL(vars##suffix, VARS, T, type) \
  TAILRACE_POSTED_ALL(varm##suffix, VARM, T, type)

extern "C" {

TAILRACE_FOR_TYPES(TAILRACE_POSTED_SHAPES)

TAILRACE_POSTED_FLEXIBLE_ALL(var, VAR)
TAILRACE_POSTED_FLEXIBLE_ALL(var1, VAR1)
TAILRACE_POSTED_FLEXIBLE_ALL(vara, VARA)
TAILRACE_POSTED_FLEXIBLE_ALL(vars, VARS)
TAILRACE_POSTED_FLEXIBLE_ALL(varm, VARM)

TAILRACE_SERVE(ncmpi_wait, (int ncid, int count, int* requests, int* statuses),
               (ncid, count, requests, statuses),
               count == 0 ? NC_NOERR : ours::wait_for(file, false, count, requests, statuses))
TAILRACE_SERVE(ncmpi_wait_all, (int ncid, int count, int* requests, int* statuses),
               (ncid, count, requests, statuses),
               ours::wait_for(file, true, count, requests, statuses))
TAILRACE_SERVE(ncmpi_cancel, (int ncid, int num, int* reqs, int* statuses),
               (ncid, num, reqs, statuses), ours::cancel(file, num, reqs, statuses))
TAILRACE_SERVE(ncmpi_inq_nreqs, (int ncid, int* nreqs), (ncid, nreqs),
               ours::count_requests(file, nreqs))
TAILRACE_SERVE(ncmpi_buffer_attach, (int ncid, MPI_Offset bufsize), (ncid, bufsize),
               ours::attach_buffer(file, bufsize))
TAILRACE_SERVE(ncmpi_buffer_detach, (int ncid), (ncid), ours::detach_buffer(file))
TAILRACE_SERVE(ncmpi_inq_buffer_usage, (int ncid, MPI_Offset* usage), (ncid, usage),
               ours::inquire_buffer(file, file.attached_used, usage))
TAILRACE_SERVE(ncmpi_inq_buffer_size, (int ncid, MPI_Offset* buf_size), (ncid, buf_size),
               ours::inquire_buffer(file, file.attached_bytes.value_or(0), buf_size))

}  // extern "C"
// NOLINTEND(bugprone-macro-parentheses)
