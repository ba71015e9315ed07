// Comparison of two HDF5 files except the values of their fields, distributed over the ranks.

#include "verbs/verify_structure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/byte_stream.hpp"
#include "verbs/input_fields.hpp"

namespace tailrace::verbs {
namespace {

/// Serialize paths for other ranks, and back.
Bytes packed_paths(std::span<const std::string> paths) {
  ByteWriter writer;
  for (const std::string& path : paths) writer.add_text(path);
  return writer.take();
}

std::vector<std::string> unpacked_paths(const Bytes& bytes) {
  std::vector<std::string> paths;
  for (ByteReader reader(bytes); !reader.at_end();) paths.push_back(reader.take_text());
  return paths;
}

/// True if values of the field may differ from the original's.
bool may_differ(const VerifyTask& task) {
  return task.bound() > 0 || task.resolve_range || !task.component_bounds.empty() ||
         !task.losses.empty();
}

StructureRules structure_rules(const VerifyRequest& request, std::span<const VerifyTask> tasks) {
  StructureRules rules;
  rules.wanted = [&request](const std::string& path) { return request.selection.holds(path); };
  rules.ignored = [&request](const std::string& path) { return matches_any(path, request.ignore); };
  rules.ignored_attribute = [&request](const std::string& name) {
    return matches_any(name, request.ignore_attributes);
  };
  rules.follow_external = request.follow_external;
  for (const VerifyTask& task : tasks) {
    rules.fields.insert(task.path);
    if (may_differ(task)) rules.lossy.insert(task.path);
  }
  return rules;
}

/// Merge the findings of all ranks, on every rank. Collective.
StructureFindings share_structure(Comm& comm, const StructureFindings& mine) {
  StructureFindings at_root;
  for (const Bytes& bytes : comm.gather(pack_findings(mine), 0)) {
    at_root.merge(unpack_findings(bytes));
  }
  Bytes bytes = pack_findings(at_root);
  comm.broadcast(bytes, 0);
  return unpack_findings(bytes);
}

}  // namespace

Result<StructureFindings> compare_structure(const VerifyRequest& request, const VerbRanks& ranks,
                                            std::span<const VerifyTask> tasks) {
  Comm& comm = ranks.comm;
  StructureFindings mine;
  std::unique_ptr<StructureCheck> check;
  std::vector<std::string> datasets;
  const auto open = [&]() -> Status {
    TAILRACE_TAKE(check, StructureCheck::open(request.original, request.compressed,
                                              structure_rules(request, tasks)));
    return Status();
  };
  const auto at_root = [&]() -> Status {
    TAILRACE_TRY(open());
    TAILRACE_TAKE(datasets, check->compare(mine));
    return Status();
  };
  TAILRACE_TRY(ranks.agree(comm.is_root() ? at_root() : Status()));
  Bytes packed = packed_paths(datasets);
  comm.broadcast(packed, 0);
  datasets = unpacked_paths(packed);
  const auto first = static_cast<std::size_t>(comm.rank());
  const bool any = first < datasets.size();
  TAILRACE_TRY(comm.agree(any && check == nullptr ? open() : Status()));
  for (std::size_t i = first; i < datasets.size(); i += static_cast<std::size_t>(comm.n_ranks())) {
    check->compare_values(datasets[i], mine);
  }
  return share_structure(comm, mine);
}

bool is_compared(const VerifyRequest& request, const std::string& path) {
  return request.selection.holds(path) && !matches_any(path, request.ignore);
}

std::vector<std::string> VerifyReport::all_problems(std::size_t most_of_aspect) const {
  std::vector<std::string> all = problems;
  if (!structure) return all;
  std::map<std::string, std::vector<std::string>> by_aspect;
  for (const StructureDifference& difference : structure->differences) {
    if (difference.fails) by_aspect[difference.aspect].push_back(difference.text);
  }
  for (auto& [aspect, texts] : by_aspect) {
    const std::size_t n_shown = std::min(texts.size(), most_of_aspect);
    all.insert(all.end(), texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(n_shown));
    const std::uint64_t n_more = structure->counts.at(aspect).n_failing - n_shown;
    if (n_more > 0) all.push_back(fmt::format("{}: {} more", aspect, n_more));
  }
  return all;
}

}  // namespace tailrace::verbs
