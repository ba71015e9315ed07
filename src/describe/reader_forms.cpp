#include "describe/reader_forms.hpp"

#include <hdf5.h>

#include <algorithm>

#include "describe/file_properties.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/hdf5_walk.hpp"
#include "hdf5/readers_need.hpp"

namespace tailrace {

namespace {

void count(NewerForm& form, const std::string& path) {
  if (form.n_objects++ == 0) form.first = path;
}

class FormsVisitor final : public Hdf5Visitor {
 public:
  explicit FormsVisitor(ReaderForms& forms) : forms_(forms) {}

  Status group(hid_t group, const std::string& path) override {
    return look_at_header(Hdf5Id(H5Gget_create_plist(group)), path);
  }
  Status other_object(hid_t object, const std::string& path) override {
    if (H5Iget_type(object) != H5I_DATATYPE) return Status();
    return look_at_header(Hdf5Id(H5Tget_create_plist(object)), path);
  }
  Status dataset(hid_t dataset, const std::string& path) override {
    const Hdf5Id creation(H5Dget_create_plist(dataset));
    TAILRACE_TRY(look_at_header(creation, path));
    const std::optional<std::vector<FilterSpec>> filters = stored_filters(creation.get());
    if (!filters)
      return hdf5_failure(Code::corrupt, "dataset \"" + path + "\": the filters cannot be read");
    for (const FilterSpec& filter : *filters) {
      if (comes_with_hdf5(filter)) continue;
      const std::string name = name_for_readers(filter);
      if (std::ranges::find(forms_.filters, name) == forms_.filters.end()) {
        forms_.filters.push_back(name);
      }
    }
    if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return Status();
    const Result<bool> old = has_old_chunk_index(dataset);
    if (!old.ok()) return old.status().within("dataset \"" + path + "\"");
    if (!*old) count(forms_.indexes, path);
    return Status();
  }
  Status unreadable(const std::string&, const Status&) override { return Status(); }

 private:
  Status look_at_header(const Hdf5Id& creation, const std::string& path) {
    if (!creation.valid()) {
      return hdf5_failure(Code::corrupt,
                          "object \"" + path + "\": the creation property list cannot be read");
    }
    if (!has_usual_attribute_numbers(creation.get())) count(forms_.attribute_numbers, path);
    return Status();
  }

  ReaderForms& forms_;
};

}  // namespace

Result<ReaderForms> reader_forms_of(const std::string& path) {
  const Hdf5Scope scope;
  ReaderForms forms;
  TAILRACE_TAKE(const Hdf5Id file, open_plain_hdf5(path));
  FormsVisitor visitor(forms);
  TAILRACE_TRY(walk_hdf5(file.get(), visitor));
  return forms;
}

}  // namespace tailrace
