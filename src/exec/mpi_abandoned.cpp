// Agreement on the parts that all ranks have given up, and their release.

#include <array>
#include <cstddef>

#include "exec/mpi_parts.hpp"

namespace tailrace {
namespace {

/// Receive and drop messages that no rank will request. @returns how many were posts.
std::int64_t drop_messages(MPI_Comm comm) {
  std::int64_t n_posts = 0;
  while (true) {
    int found = 0;
    int n_bytes = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &status);
    if (found == 0) return n_posts;
    MPI_Get_count(&status, MPI_BYTE, &n_bytes);
    Bytes dropped(static_cast<std::size_t>(n_bytes));
    MPI_Recv(dropped.data(), n_bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm,
             MPI_STATUS_IGNORE);
    if (status.MPI_TAG == kPostTag) ++n_posts;
  }
}

bool is_complete(MPI_Request& request) {
  int complete = 0;
  MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
  return complete != 0;
}

/// True if this rank has nothing in flight except posts that were not received.
bool is_quiet(MpiParts& parts) {
  if (parts.n_calls > 0) return false;
  const Status dropped = local_part([&parts] {
    parts.n_received += drop_messages(parts.comm);
    for (const MpiParts::Window& window : parts.windows) {
      if (window.leaders != MPI_COMM_NULL) drop_messages(window.leaders);
    }
    return Status();
  });
  bool quiet = dropped.ok();
  for (MpiParts::Post& post : parts.posts) quiet = is_complete(post.request) && quiet;
  for (auto& [letter, request] : parts.letters) quiet = is_complete(request) && quiet;
  return quiet;
}

/// Signature that is equal on two ranks with the same windows.
std::uint64_t windows_signature(const MpiParts& parts) {
  std::uint64_t signature = parts.n_windows_made;
  for (const MpiParts::Window& window : parts.windows) {
    signature = 31 * signature + 2 * window.number + (window.window == MPI_WIN_NULL ? 1 : 0);
  }
  return signature;
}

}  // namespace

void MpiParts::free_window(std::list<Window>::iterator window) {
  if (window->leaders != MPI_COMM_NULL) MPI_Comm_free(&window->leaders);
  if (window->window != MPI_WIN_NULL) {
    MPI_Win_unlock_all(window->window);
    MPI_Win_free(&window->window);
  }
  windows.erase(window);
}

void free_parts(MpiParts& parts) {
  MPI_Op_free(&parts.merge_numbers);
  MPI_Type_free(&parts.mixed_number);
  MPI_Comm_free(&parts.node_comm);
  MPI_Comm_free(&parts.comm);
}

std::shared_ptr<AbandonedParts> abandoned_parts_of(MPI_Comm parent) {
  using Held = std::shared_ptr<AbandonedParts>;
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    const auto on_delete = [](MPI_Comm, int, void* held, void*) {
      delete static_cast<Held*>(held);
      return MPI_SUCCESS;
    };
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &made, nullptr);
    return made;
  }();
  void* held = nullptr;
  int found = 0;
  MPI_Comm_get_attr(parent, key, &held, &found);
  if (found != 0) return *static_cast<Held*>(held);
  auto made = std::make_unique<Held>(std::make_shared<AbandonedParts>());
  Held shared = *made;
  MPI_Comm_set_attr(parent, key, made.release());
  return shared;
}

void free_abandoned(AbandonedParts& abandoned, std::span<const std::uint64_t> numbers,
                    MPI_Comm comm) {
  if (numbers.empty()) return;
  std::array<std::int64_t, 2 * kAbandonedMax> sums{};  // Ranks not quiet, posts not received.
  std::array<std::uint64_t, 2 * kAbandonedMax> same{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto found = abandoned.parts.find(numbers[i]);
    const bool here = found != abandoned.parts.end();
    sums[2 * i] = here && is_quiet(*found->second) ? 0 : 1;
    if (here) sums[2 * i + 1] = found->second->n_posted - found->second->n_received;
    same[2 * i] = here ? windows_signature(*found->second) : 0;
    same[2 * i + 1] = ~same[2 * i];
  }
  const int n = static_cast<int>(2 * numbers.size());
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), n, MPI_INT64_T, MPI_SUM, comm);
  MPI_Allreduce(MPI_IN_PLACE, same.data(), n, MPI_UINT64_T, MPI_BAND, comm);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // Bits on which all ranks agree, set or not, are set in one of the two.
    const bool alike = (same[2 * i] | same[2 * i + 1]) == ~std::uint64_t{0};
    if (sums[2 * i] != 0 || sums[2 * i + 1] != 0 || !alike) continue;
    const auto found = abandoned.parts.find(numbers[i]);
    MpiParts& parts = *found->second;
    while (!parts.windows.empty()) parts.free_window(parts.windows.begin());
    free_parts(parts);
    abandoned.parts.erase(found);
  }
}

}  // namespace tailrace
