// StepRecord: what the application has said since the last step: fields, puts, attributes.
//
// Recording is not collective and touches no file. The first bad call of this rank is kept, so that
// the next end_step returns it on every rank.

#pragma once

#include <string>
#include <vector>

#include "write.hpp"
#include "write_fields.hpp"
#include "write_publish.hpp"

namespace tailrace {

class StepRecord {
 public:
  /// As the Writer's calls of the same names.
  Result<std::size_t> define_field(const FieldDefinition& definition);
  Status set_attribute(const std::string& object_path, const std::string& name,
                       AttributeValue value);
  Status put(std::size_t field_index, const Box& box, const void* values, bool copy);
  Status put_source(std::size_t field_index, const Box& box, BoxSource& source);
  /// Keep the first failure of this rank's calls, for end_step to share. @returns `failure`.
  Status note(const Status& failure);

  /// Whether this rank has said anything that a step would have to write.
  bool anything() const;
  /// A text that is equal on two ranks exactly if they define the same fields and attributes.
  std::string definitions_text() const;
  /// Forget what was put. After a failure also forget attributes and the fields that are not in the
  /// file: their paths are free again.
  void forget_step(bool failed);

  std::vector<FieldState> fields;
  std::vector<PendingAttribute> attributes;
  Status put_status;  ///< The first bad call since the last step, on this rank.

 private:
  Result<PutRecord> check_put(std::size_t field_index, const Box& box);
};

}  // namespace tailrace
