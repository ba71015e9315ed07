#include "array/model_roles.hpp"

#include <iterator>
#include <sstream>

#include "core/stated_attribute.hpp"
#include "policy/storage_decision.hpp"

namespace tailrace {
namespace {

StatedAttribute stated(const ModelAttribute& attribute) {
  StatedAttribute found;
  found.name = attribute.name;
  if (attribute.type == ModelType::text) {
    if (attribute.texts.size() > kAttributeElementsMax) return found;
    for (const std::string& text : attribute.texts) {
      if (!add_stated_text(found, text)) found.texts.emplace_back();
    }
    return found;
  }
  if (attribute.type == ModelType::text_char) {
    const auto* const text = reinterpret_cast<const char*>(attribute.values.data());
    if (!add_stated_text(found, std::string(text, attribute.values.size())))
      found.texts.emplace_back();
    return found;
  }
  const std::optional<DType> type = model_dtype(attribute.type);
  if (type) set_stated_numbers(found, *type, attribute.n_values, attribute.values);
  return found;
}

std::vector<StatedAttribute> stated(const std::vector<ModelAttribute>& attributes) {
  std::vector<StatedAttribute> found;
  for (const ModelAttribute& attribute : attributes) {
    if (states_role(attribute.name)) found.push_back(stated(attribute));
  }
  return found;
}

/// Split a blank-separated list in an attribute.
std::vector<std::string> words_of(const ModelAttribute& attribute) {
  std::string text;
  if (attribute.type == ModelType::text_char) {
    text.assign(reinterpret_cast<const char*>(attribute.values.data()), attribute.values.size());
  } else if (attribute.type == ModelType::text && !attribute.texts.empty()) {
    text = attribute.texts.front();
  }
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

}  // namespace

ModelRoles::ModelRoles(const NetcdfModel& model) : model_(model) {
  for (const ModelVariable& variable : model.variables) {
    for (const char* const list : {"coordinates", "bounds"}) {
      const ModelAttribute* const attribute = variable.attribute(list);
      if (attribute == nullptr) continue;
      for (std::string& word : words_of(*attribute)) {
        listed_.emplace(variable.group, std::move(word));
      }
    }
  }
}

bool ModelRoles::is_coordinate(std::size_t variable) const {
  const ModelVariable& it = model_.variables[variable];
  return (it.dimensions.size() == 1 && model_.dimensions[it.dimensions[0]].name == it.name) ||
         listed_.contains({it.group, it.name});
}

std::string ModelRoles::reason_to_stay_exact(std::size_t variable) {
  if (!verdicts_) {
    RoleFacts facts;
    for (const ModelGroup& group : model_.groups) {
      StatedObject& object = facts.groups.emplace_back();
      object.path = group.path;
      object.attributes = stated(group.attributes);
    }
    for (std::size_t v = 0; v < model_.variables.size(); ++v) {
      const ModelVariable& it = model_.variables[v];
      StatedObject& object = facts.datasets.emplace_back();
      object.path = model_.path_of(it);
      object.attributes = stated(it.attributes);
      for (const std::size_t d : it.dimensions) {
        object.shape.push_back(model_.dimensions[d].length);
      }
      object.floating = it.type == ModelType::f32 || it.type == ModelType::f64;
      object.coordinate = is_coordinate(v);
    }
    verdicts_ = decide_roles(facts);
  }
  const RoleVerdict& verdict = (*verdicts_)[variable];
  if (verdict.role == Role::value) return "";
  return std::string(role_name(verdict.role)) + " by " + verdict.because;
}

std::string ModelRoles::lossy_remark(std::size_t variable, bool by_role) {
  std::string why = "coordinate";
  if (!is_coordinate(variable)) why = by_role ? reason_to_stay_exact(variable) : "";
  if (why.empty()) return why;
  return lossy_role_text(model_.path_of(model_.variables[variable]), why, "an option");
}

}  // namespace tailrace
