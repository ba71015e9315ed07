// See access.hpp; and nonblocking access: wait, cancel, attached buffers.
//
// A request holds a prepared Transfer until a wait stages its values or reads them. The gets of one
// wait_all become one collective read. Puts run before gets, as in the real library.

#include "pnetcdf/access.hpp"

#include <algorithm>

namespace tailrace::pnetcdf {
namespace {

int first_of(int a, int b) { return a != NC_NOERR ? a : b; }

int run_alone(OpenFile& file, bool put, const std::vector<Transfer*>& transfers) {
  int status = NC_NOERR;
  for (Transfer* transfer : transfers) {
    const int one = prepare_safely([&] { return put ? transfer->put(file) : transfer->get(file); });
    if (status == NC_NOERR) status = one;
  }
  return status;
}

int get_together(OpenFile& file, const std::vector<Transfer*>& transfers) {
  std::vector<ReadRequest> requests;
  const int added = prepare_safely([&] {
    for (Transfer* transfer : transfers) transfer->add_requests(requests);
    return NC_NOERR;
  });
  if (added != NC_NOERR) requests.clear();
  int status = first_of(added, report_failure(file.array->get_all(requests), file.array->comm()));
  if (status != NC_NOERR) return status;
  for (Transfer* transfer : transfers) {
    const int one = transfer->finish(file);
    if (status == NC_NOERR) status = one;
  }
  return status;
}

int next_request_number(const OpenFile& file, bool put) {
  int number = put ? 0 : 1;  // PnetCDF's: puts are even
  for (const PendingRequest& request : file.requests) {
    if (request.put == put) number = std::max(number, request.id + 2);
  }
  return number;
}

}  // namespace

int run(OpenFile& file, Direction direction, int status, std::vector<Transfer*> transfers) {
  const bool ready = status == NC_NOERR || status == NC_ERANGE;
  if (direction.collective && file.safe_mode) {
    std::uint64_t worst = ready ? 0 : static_cast<std::uint64_t>(-status);
    file.array->comm().allreduce({&worst, 1}, Reduction::max);
    if (worst != 0) return -static_cast<int>(worst);
  }
  if (!ready && (!direction.collective || is_fatal(status))) return status;
  if (!ready) transfers.clear();
  if (!direction.collective) return first_of(status, run_alone(file, direction.put, transfers));
  if (!direction.put) return first_of(status, get_together(file, transfers));
  const int put = run_alone(file, true, transfers);
  const int ended = report_failure(file.array->end_collective_put(), file.array->comm());
  return first_of(status, first_of(put, ended));
}

int take_request(OpenFile& file, bool put, bool buffered, int status, Transfer transfer,
                 int* request) {
  if ((status != NC_NOERR && status != NC_ERANGE) || transfer.empty()) return status;
  if (buffered) {
    if (*file.attached_bytes - file.attached_used < transfer.n_bytes()) return NC_EINSUFFBUF;
    transfer.keep_values();
    file.attached_used += transfer.n_bytes();
  }
  if (!put) transfer.keep_datatype();
  const int number = next_request_number(file, put);
  file.requests.push_back({number, put, buffered, std::move(transfer)});
  if (request != nullptr) *request = number;
  return status;
}

Place ManyPlaces::of(int i) const {
  const auto at = [i](MPI_Offset* const* list) { return list == nullptr ? nullptr : list[i]; };
  return {kind, at(starts), at(counts), at(strides), at(element_maps)};
}

CallerMemory ManyMemory::at(int i) const {
  return typed ? CallerMemory::of(values[i], type)
               : CallerMemory::flexible(values[i], counts[i], datatypes[i]);
}

int access_many(OpenFile& file, Direction direction, int n, const int* varids,
                const ManyPlaces& places, const ManyMemory& memory) {
  std::vector<Transfer> transfers;
  std::vector<Transfer*> ready;
  const int status = prepare_safely([&] {
    transfers.resize(static_cast<std::size_t>(std::max(0, n)));
    int first = NC_NOERR;
    for (int i = 0; i < n; ++i) {
      Transfer& transfer = transfers[static_cast<std::size_t>(i)];
      const int one = transfer.prepare(file, direction, varids[i], places.of(i), memory.at(i));
      first = first_of(first, one);
      if (one != NC_NOERR && one != NC_ERANGE) return one;
      ready.push_back(&transfer);
    }
    return first;
  });
  return run(file, direction, status, std::move(ready));
}

namespace {

using Requests = std::list<PendingRequest>;

void release(OpenFile& file, const PendingRequest& request) {
  if (request.buffered) file.attached_used -= request.transfer.n_bytes();
}

/// True if the call has as many numbers as there are requests, all of one kind or without statuses.
/// Then the real library's waits complete all requests, whatever the numbers. Its Fortran functions
/// rely on that: they do not return the number of a put that returned NC_ERANGE.
bool means_all(const OpenFile& file, int n, const int* statuses) {
  const auto n_puts = std::ranges::count_if(file.requests, &PendingRequest::put);
  const auto n_all = static_cast<std::ptrdiff_t>(file.requests.size());
  return n == n_all && (n_puts == 0 || n_puts == n_all || statuses == nullptr);
}

/// Move the requests that a wait or cancel names from the list to `taken`. An unknown number sets
/// its status and is the result. With `all`, it is instead paired with a request that no number
/// names.
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
    const auto found = std::ranges::find(file.requests, ids[i], &PendingRequest::id);
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

/// True if any rank has gets; otherwise the flush is skipped. Collective: one allreduce.
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
    if (request.put) {
      note(prepare_safely([&] { return request.transfer.put(file); }), *place, first);
    }
    release(file, request);
    if (request.put) request.transfer = Transfer();  // Releases its memory: there may be very many.
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
    const int ended = report_failure(file.array->end_collective_put(), file.array->comm());
    if (first == NC_NOERR) first = ended;
  }
  if (!any_gets(file, taken)) return first;
  std::vector<ReadRequest> slabs;
  const int added = prepare_safely([&] {
    for (PendingRequest& request : taken) {
      if (!request.put) request.transfer.add_requests(slabs);
    }
    return NC_NOERR;
  });
  if (added != NC_NOERR) slabs.clear();
  const int read = first_of(added, report_failure(file.array->get_all(slabs), file.array->comm()));
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
  const bool pending = std::ranges::any_of(file.requests, &PendingRequest::buffered);
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

extern "C" {

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
