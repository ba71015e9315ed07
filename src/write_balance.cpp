// The loads of a node, brought together on each of its ranks.

#include "write_balance.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include "core/byte_stream.hpp"

namespace tailrace {
namespace {

/// This rank's jobs that may move, in the order in which they are to be written.
std::vector<std::size_t> movable_jobs(const Ownership& ownership, const StepPlan& plan) {
  std::vector<std::size_t> order = plan.write_order;
  if (order.empty()) {
    order.resize(ownership.jobs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  std::erase_if(order, [&](std::size_t job) {
    return plan.fields[ownership.jobs[job].field].layout->arena_goal() != nullptr;
  });
  return order;
}

}  // namespace

std::vector<int> balance_step(Comm& comm, const SharedWrites& shared, BalanceRule rule,
                              const Ownership& ownership, const StepPlan& plan) {
  const std::vector<std::size_t> jobs = movable_jobs(ownership, plan);
  std::vector<std::vector<double>> write_s(static_cast<std::size_t>(shared.n_ranks_on_node()));
  const auto here = static_cast<std::size_t>(shared.rank_on_node());
  ByteWriter writer;
  writer.add(static_cast<std::uint64_t>(jobs.size()));
  for (const std::size_t job : jobs) {
    write_s[here].push_back(plan.forecasts[job].write_s);
    writer.add(plan.forecasts[job].write_s);
  }
  const Bytes payload = writer.take();
  std::vector<Message> outgoing;
  std::map<int, std::size_t> node_rank_of;
  for (std::size_t r = 0; r < write_s.size(); ++r) {
    const int peer = shared.rank_in_comm(static_cast<int>(r));
    node_rank_of[peer] = r;
    if (r != here) outgoing.push_back({peer, payload});
  }
  for (const Message& message : comm.exchange(std::move(outgoing))) {
    ByteReader reader(message.payload);
    const auto n_jobs = reader.take<std::uint64_t>();
    std::vector<double>& loads = write_s[node_rank_of.at(message.peer)];
    for (std::uint64_t j = 0; j < n_jobs; ++j) loads.push_back(reader.take<double>());
  }
  std::vector<int> writers;
  for (const MovedWrite& move : balance_writes(write_s, rule)) {
    if (move.from_rank != here) continue;
    writers.resize(ownership.jobs.size(), -1);
    writers[jobs[move.position]] = static_cast<int>(move.to_rank);
  }
  return writers;
}

}  // namespace tailrace
