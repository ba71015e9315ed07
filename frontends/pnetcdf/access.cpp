// See access.hpp.

#include "pnetcdf/access.hpp"

#include <algorithm>

namespace tailrace::pnetcdf {
namespace {

int run_alone(OpenFile& file, bool put, const std::vector<Transfer*>& transfers) {
  int status = NC_NOERR;
  for (Transfer* transfer : transfers) {
    const int one = put ? transfer->put(file) : transfer->get(file);
    if (status == NC_NOERR) status = one;
  }
  return status;
}

int get_together(OpenFile& file, const std::vector<Transfer*>& transfers) {
  std::vector<ReadRequest> requests;
  for (Transfer* transfer : transfers) transfer->add_requests(requests);
  int status = report_failure(file.array->get_all(requests), file.array->comm());
  if (status != NC_NOERR) return status;
  for (Transfer* transfer : transfers) {
    const int one = transfer->finish(file);
    if (status == NC_NOERR) status = one;
  }
  return status;
}

int first_of(int a, int b) { return a != NC_NOERR ? a : b; }

template <class Prepare>
int prepare_safely(Prepare&& prepare) {
  // A rank that is short of memory still takes part in what follows.
  try {
    return prepare();
  } catch (const std::bad_alloc&) {
    return NC_ENOMEM;
  }
}

int next_request_number(const OpenFile& file, bool put) {
  int number = put ? 0 : 1;  // PnetCDF's: puts are even
  for (const PendingRequest& request : file.requests) {
    if (request.put == put) number = std::max(number, request.id + 2);
  }
  return number;
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
  const int settled = report_failure(file.array->settle(), file.array->comm());
  return first_of(status, first_of(put, settled));
}

int access(OpenFile& file, Direction direction, int varid, const Place& place,
           const CallerMemory& memory) {
  Transfer transfer;
  const int status =
      prepare_safely([&] { return transfer.prepare(file, direction, varid, place, memory); });
  return run(file, direction, status, {&transfer});
}

int access_parts(OpenFile& file, Direction direction, int varid, int n_places,
                 MPI_Offset* const* starts, MPI_Offset* const* counts, const CallerMemory& memory) {
  Transfer transfer;
  const int status = prepare_safely([&] {
    return transfer.prepare_many(file, direction, varid, n_places, starts, counts, memory);
  });
  return run(file, direction, status, {&transfer});
}

int access_filetype(OpenFile& file, Direction direction, int varid, MPI_Datatype filetype,
                    const CallerMemory& memory) {
  Transfer transfer;
  const int status = prepare_safely(
      [&] { return transfer.prepare_filetype(file, direction, varid, filetype, memory); });
  return run(file, direction, status, {&transfer});
}

Place ManyVariables::place_of(int i) const {
  const auto at = [i](MPI_Offset* const* list) { return list == nullptr ? nullptr : list[i]; };
  return {kind, at(starts), at(counts), at(strides), at(element_maps)};
}

CallerMemory ManyVariables::memory_of(int i) const {
  return typed ? CallerMemory::of(values[i], memory_type)
               : CallerMemory::flexible(values[i], type_counts[i], datatypes[i]);
}

int access_many(OpenFile& file, Direction direction, const ManyVariables& many) {
  std::vector<Transfer> transfers;
  std::vector<Transfer*> ready;
  const int status = prepare_safely([&] {
    transfers.resize(static_cast<std::size_t>(std::max(0, many.n)));
    int first = NC_NOERR;
    for (int i = 0; i < many.n; ++i) {
      Transfer& transfer = transfers[static_cast<std::size_t>(i)];
      const int one =
          transfer.prepare(file, direction, many.varids[i], many.place_of(i), many.memory_of(i));
      first = first_of(first, one);
      if (one != NC_NOERR && one != NC_ERANGE) return one;
      ready.push_back(&transfer);
    }
    return first;
  });
  return run(file, direction, status, std::move(ready));
}

int post(OpenFile& file, bool put, bool buffered, int varid, const Place& place,
         const CallerMemory& memory, int* request) {
  if (request != nullptr) *request = NC_REQ_NULL;
  Transfer transfer;
  const int status = transfer.prepare(file, {put, false, false, buffered}, varid, place, memory);
  return take_request(file, put, buffered, status, std::move(transfer), request);
}

int post_parts(OpenFile& file, bool put, bool buffered, int varid, int n_places,
               MPI_Offset* const* starts, MPI_Offset* const* counts, const CallerMemory& memory,
               int* request) {
  if (request != nullptr) *request = NC_REQ_NULL;
  Transfer transfer;
  const int status = transfer.prepare_many(file, {put, false, false, buffered}, varid, n_places,
                                           starts, counts, memory);
  return take_request(file, put, buffered, status, std::move(transfer), request);
}

}  // namespace tailrace::pnetcdf
