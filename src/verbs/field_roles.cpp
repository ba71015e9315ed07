#include "verbs/field_roles.hpp"

#include <fmt/format.h>

#include <map>

#include "core/utf8.hpp"
#include "policy/storage_decision.hpp"

namespace tailrace::verbs {
namespace {

constexpr std::size_t kFieldsInSentence = 4;

}  // namespace

Result<std::vector<RoleVerdict>> find_roles(InputFile& input) {
  RoleFacts facts;
  const auto object = [&](const std::string& path) -> Result<StatedObject> {
    StatedObject found;
    found.path = path;
    TAILRACE_TAKE(found.attributes,
                  input.attributes_of(path, states_role)
                      .within("cannot find the role of a field (--roles off skips this)"));
    return found;
  };
  bool has_root = false;
  for (const auto& [path, kind] : input.objects()) {
    if (kind == "dataset") facts.others.push_back(path);
    if (kind != "group") continue;
    has_root = has_root || path == "/";
    TAILRACE_TAKE(StatedObject group, object(path));
    facts.groups.push_back(std::move(group));
  }
  if (!has_root) {
    TAILRACE_TAKE(StatedObject root, object("/"));
    facts.groups.push_back(std::move(root));
  }
  for (const StoredDataset& field : input.fields()) {
    TAILRACE_TAKE(StatedObject dataset, object(field.path));
    dataset.shape = field.shape;
    dataset.floating = is_floating(*field.dtype);
    dataset.coordinate = field.coordinate;
    facts.datasets.push_back(std::move(dataset));
  }
  return decide_roles(facts);
}

std::vector<std::string> role_remarks(std::span<const PlannedField> plan, const FileOptions& file) {
  std::map<std::string, std::vector<std::string>> unguarded;
  std::map<std::string, std::vector<std::string>> extremes;
  for (const PlannedField& planned : plan) {
    if (!may_lose(planned, file)) continue;
    const std::string& path = planned.definition.path;
    if (!planned.limits_unkept.empty()) unguarded[planned.limits_unkept].push_back(path);
    if (!planned.verdict.extremes_stated.empty() && !planned.definition.options.guards.minmax) {
      extremes[planned.verdict.extremes_stated].push_back(path);
    }
  }
  std::vector<std::string> sentences;
  for (const PlannedField& planned : plan) {
    if (planned.lossy_role.empty() || !may_lose(planned, file)) continue;
    sentences.push_back(
        lossy_role_text(planned.definition.path, planned.lossy_role, "a --field entry"));
  }
  for (const auto& [why, names] : unguarded) {
    sentences.push_back(
        fmt::format("values may exceed their stated limits by up to the bound ({}): {}", why,
                    first_names_text(names, kFieldsInSentence)));
  }
  for (const auto& [attributes, names] : extremes) {
    sentences.push_back(
        fmt::format("attributes {} state the extremes of the input, which output values may exceed "
                    "by up to the bound (guard=minmax prevents this): {}",
                    attributes, first_names_text(names, kFieldsInSentence)));
  }
  return sentences;
}

}  // namespace tailrace::verbs
