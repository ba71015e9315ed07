// Helpers of the tests of netCDF-4's model: a file with the layout of a model, and short models.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "container_support.hpp"
#include "hdf5/hdf5_file.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "netcdf/netcdf_model.hpp"

namespace tailrace::test {

inline ModelAttribute text_attribute(const std::string& name, const std::string& text) {
  ModelAttribute attribute{name, ModelType::text_char, text.size(), {}, {}};
  for (const char c : text) attribute.values.push_back(static_cast<std::byte>(c));
  return attribute;
}

template <class T>
ModelAttribute number_attribute(const std::string& name, ModelType type,
                                const std::vector<T>& numbers) {
  ModelAttribute attribute{name, type, numbers.size(), {}, {}};
  const auto bytes = std::as_bytes(std::span(numbers));
  attribute.values.assign(bytes.begin(), bytes.end());
  return attribute;
}

inline ModelAttribute texts_attribute(const std::string& name, std::vector<std::string> texts) {
  return {name, ModelType::text, texts.size(), {}, std::move(texts)};
}

inline ModelVariable variable_of(const std::string& name, ModelType type,
                                 std::vector<std::size_t> dimensions, std::size_t group = 0) {
  ModelVariable variable;
  variable.name = name;
  variable.group = group;
  variable.type = type;
  variable.dimensions = std::move(dimensions);
  return variable;
}

/// The model of a file, read with HDF5's own driver.
inline NetcdfModel model_of(const std::string& path) {
  const Hdf5Scope scope;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  Result<NetcdfModel> model = read_netcdf_model(file.get());
  return model.ok() ? *model : NetcdfModel{{}, {}, {}, false, {}};
}

/// A file on disk, its metadata writer and the layout of its model.
class LaidOutFile {
 public:
  /// Creates the file, or opens it with its existing model.
  LaidOutFile(std::string path, bool create) : path_(std::move(path)), storage_(path_, true) {
    std::uint64_t end = 0;
    Result<std::unique_ptr<Hdf5File>> made =
        create ? Hdf5File::create(storage_, tail_.allocate(), {})
               : Hdf5File::open(storage_, tail_.allocate(), {}, end);
    if (failed(made.status())) return;
    if (!create) tail_.reset(end);
    file_ = std::move(*made);
    if (create) {
      take(NetcdfLayout::create(*file_));
      return;
    }
    const Result<NetcdfModel> model = read_netcdf_model(file_->hdf5_id());
    if (!failed(model.status())) take(NetcdfLayout::open(*file_, *model));
  }

  const Status& status() const { return status_; }
  NetcdfLayout& layout() { return *layout_; }
  Hdf5File& file() { return *file_; }
  const std::string& path() const { return path_; }
  /// Creates every missing dataset, contiguous or with chunks that the layout chooses.
  Status create_all() {
    for (std::size_t v = 0; v < layout_->model().variables.size(); ++v) {
      if (!layout_->has_dataset(v)) TAILRACE_TRY(layout_->create_variable(v, {}));
    }
    return Status();
  }
  Status prepare_and_commit() {
    TAILRACE_TRY(layout_->prepare_commit());
    return file_->commit();
  }

 private:
  bool failed(const Status& status) {
    status_ = status;
    return !status.ok();
  }
  void take(Result<std::unique_ptr<NetcdfLayout>> layout) {
    if (!failed(layout.status())) layout_ = std::move(*layout);
  }

  std::string path_;
  Status status_;
  RecordingStorage storage_;
  ScatteringTail tail_;
  std::unique_ptr<Hdf5File> file_;
  std::unique_ptr<NetcdfLayout> layout_;
};

}  // namespace tailrace::test
