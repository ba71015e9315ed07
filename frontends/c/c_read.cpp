// Readers of the C API. Only translates; tailrace::Reader defines validity and meaning.
//
// The ranks agree on their arguments before a collective call accesses the file. If one rank's
// arguments are invalid, every rank gets the error.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "c_handle.hpp"
#include "read/read.hpp"
#include "tailrace/reader.h"

namespace tailrace {

/// Texts of an attribute in the form of the C API.
struct HeldTexts {
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
};

}  // namespace tailrace

struct tailrace_reader {
  std::unique_ptr<tailrace::Reader> reader;  ///< Null: closed.
  /// Texts that were asked for, until refresh or close.
  mutable std::map<const tailrace::ModelAttribute*, tailrace::HeldTexts> texts = {};
};

namespace tailrace {
namespace {

Status null_argument(const char* what) {
  return Status(Code::invalid_argument, std::string(what) + " must not be NULL");
}

/// Form of guarded_on() for an action on a reader.
template <class Action>
tailrace_error guarded_reader(const tailrace_reader* reader, Action&& action) noexcept {
  if (reader == nullptr || reader->reader == nullptr) {
    return remember(nullptr, Code::invalid_argument,
                    reader == nullptr ? "the reader is NULL" : "the reader is closed");
  }
  return guarded(nullptr, std::forward<Action>(action));
}

Status open_reader(const char* path, const void* mpi_comm, std::size_t mpi_comm_bytes,
                   const char* options_text, tailrace_reader** reader) {
  TAILRACE_TAKE(std::unique_ptr<Comm> comm, given_comm(mpi_comm, mpi_comm_bytes));
  ReadOptions options;
  Status mine;
  if (reader == nullptr) mine = null_argument("output argument `reader`");
  if (mine.ok() && (path == nullptr || *path == '\0')) {
    mine = Status(Code::invalid_argument, "the file's path is NULL or empty");
  }
  if (mine.ok()) mine = apply_read_options(options_text == nullptr ? "" : options_text, options);
  TAILRACE_TRY(comm->agree(mine));
  TAILRACE_TAKE(std::unique_ptr<Reader> opened, Reader::open(std::move(comm), path, options));
  *reader = new_handle<tailrace_reader>({.reader = std::move(opened)});
  return Status();
}

Status check_dataset(const Reader& reader, std::size_t dataset) {
  const std::size_t n = reader.datasets().size();
  if (dataset < n) return Status();
  return Status(Code::invalid_argument, "dataset number " + std::to_string(dataset) +
                                            " does not exist; the file has " + std::to_string(n) +
                                            " datasets, counted from 0");
}

/// Make a slab from C arrays with the dataset's number of dimensions.
Result<Slab> make_slab(const Reader& reader, std::size_t dataset, const std::uint64_t* start,
                       const std::uint64_t* count, const std::uint64_t* stride) {
  TAILRACE_TRY(check_dataset(reader, dataset));
  const std::size_t rank = reader.datasets()[dataset].shape.size();
  Slab slab;
  if (rank == 0) return slab;
  if (start == nullptr || count == nullptr)
    return null_argument("argument `start` or `count` of the slab");
  slab.start.assign(start, start + rank);
  slab.count.assign(count, count + rank);
  if (stride != nullptr) slab.stride.assign(stride, stride + rank);
  return slab;
}

Status make_request(const Reader& reader, const tailrace_read_request& from, ReadRequest& to) {
  TAILRACE_TAKE(Slab slab, make_slab(reader, from.dataset, from.start, from.count, from.stride));
  const StoredDataset& dataset = reader.datasets()[from.dataset];
  TAILRACE_TRY(check_slab(slab, dataset.shape).within("dataset \"" + dataset.path + "\""));
  const std::uint64_t n_bytes = slab.n_elements() * dataset.value_bytes();
  if (n_bytes != from.n_bytes) {
    return Status(Code::invalid_argument, "dataset \"" + dataset.path + "\": slab " +
                                              slab_text(slab) + " has " + std::to_string(n_bytes) +
                                              " bytes, the buffer has " +
                                              std::to_string(from.n_bytes));
  }
  to = {from.dataset, std::move(slab), static_cast<std::byte*>(from.values)};
  return Status();
}

/// Dense copy of a slab that the caller wants elsewhere: element by element, with strides.
class StridedRead {
 public:
  /// @param strides  bytes per dimension.
  StridedRead(const Shape& count, std::size_t n_bytes, const std::int64_t* strides, std::byte* to)
      : count_(count), strides_(strides, strides + count.size()), to_(to), dense_(n_bytes) {}
  std::span<std::byte> dense() { return dense_; }

  /// Move the values to their places.
  void scatter() const {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : count_) n *= extent;
    if (n == 0) return;
    const std::size_t element_bytes = dense_.size() / n;
    Shape at(count_.size(), 0);
    std::byte* to = to_;
    for (const std::byte* from = dense_.data();; from += element_bytes) {
      std::memcpy(to, from, element_bytes);
      std::size_t d = count_.size();
      while (d > 0) {
        --d;
        to += strides_[d];
        if (++at[d] < count_[d]) break;
        to -= static_cast<std::int64_t>(count_[d]) * strides_[d];
        at[d] = 0;
        if (d == 0) return;
      }
      if (count_.empty()) return;
    }
  }

 private:
  Shape count_;
  std::vector<std::int64_t> strides_;
  std::byte* to_;
  Bytes dense_;
};

/// @param strides  null: all requests are dense.
Status read_all(Reader& reader, std::size_t n_requests, const tailrace_read_request* requests,
                const std::int64_t* const* strides) {
  std::vector<ReadRequest> translated;
  std::vector<StridedRead> strided;
  const Status mine = local_part([&] {
    if (n_requests > 0 && requests == nullptr) return null_argument("argument `requests`");
    translated.resize(n_requests);
    if (strides != nullptr) strided.reserve(n_requests);
    for (std::size_t i = 0; i < n_requests; ++i) {
      ReadRequest& request = translated[i];
      TAILRACE_TRY(make_request(reader, requests[i], request));
      if (strides == nullptr || strides[i] == nullptr) continue;
      strided.emplace_back(request.slab.count, requests[i].n_bytes, strides[i], request.values);
      request.values = strided.back().dense().data();
    }
    return Status();
  });
  TAILRACE_TRY(reader.comm().agree(mine));
  TAILRACE_TRY(reader.read_all(translated));
  for (const StridedRead& read : strided) read.scatter();
  return Status();
}

Status read(Reader& reader, std::size_t dataset, const Result<Slab>& slab,
            std::span<std::byte> values, const std::int64_t* strides) {
  if (!slab.ok()) return slab.status();
  if (values.data() == nullptr && !values.empty()) return null_argument("argument `values`");
  if (strides == nullptr) return reader.read(dataset, *slab, values);
  StridedRead strided(slab->count, values.size(), strides, values.data());
  TAILRACE_TRY(reader.read(dataset, *slab, strided.dense()));
  strided.scatter();
  return Status();
}

/// Describe an attribute; `reader` holds its texts.
Status describe(const tailrace_reader& reader, const ModelAttribute& attribute,
                tailrace_attribute_info* info) {
  if (info == nullptr) return null_argument("output argument `info`");
  const std::optional<DType> dtype = model_dtype(attribute.type);
  const bool is_text = attribute.type == ModelType::text_char || attribute.type == ModelType::text;
  *info = {};
  info->name = attribute.name.c_str();
  info->type_text = dtype ? dtype_name(*dtype).data() : is_text ? "text" : "other";
  if (dtype) {
    info->is_number = 1;
    info->dtype = c_dtype(*dtype);
    info->n_values = attribute.n_values;
    info->values = attribute.values.data();
  } else if (is_text) {
    HeldTexts& held = reader.texts[&attribute];
    if (held.pointers.empty()) {
      held.texts = attribute.texts;
      if (attribute.type == ModelType::text_char) {
        held.texts.emplace_back(reinterpret_cast<const char*>(attribute.values.data()),
                                attribute.values.size());
      }
      for (const std::string& text : held.texts) held.pointers.push_back(text.c_str());
    }
    info->n_values = held.pointers.size();
    info->texts = held.pointers.data();
  }
  return Status();
}

/// Convert a number exactly, or round it from one floating-point type to another. @returns false if
/// `To` cannot hold it.
template <class To, class From>
bool convert_number(From from, To& to) {
  if constexpr (std::is_floating_point_v<To>) {
    to = static_cast<To>(from);
    return std::is_floating_point_v<From> ||
           static_cast<long double>(to) == static_cast<long double>(from);
  } else if constexpr (std::is_floating_point_v<From>) {
    constexpr double kEnd = std::is_signed_v<To> ? 0x1p63 : 0x1p64;
    if (!(from >= (std::is_signed_v<To> ? -kEnd : 0)) || !(from < kEnd)) return false;
    to = static_cast<To>(from);
    return static_cast<From>(to) == from;
  } else {
    if (!std::in_range<To>(from)) return false;
    to = static_cast<To>(from);  // NOLINT(bugprone-signed-char-misuse): a number, not a character.
    return true;
  }
}

template <class Number>
Status get_numbers(const Reader& reader, const char* object_path, const char* name,
                   std::size_t n_values, Number* values) {
  if (object_path == nullptr || name == nullptr || values == nullptr) {
    return null_argument("arguments `object_path`, `name` and `values`");
  }
  TAILRACE_TAKE(const ModelAttribute* attribute, reader.attribute(object_path, name));
  const auto refused = [&](const std::string& why) {
    return Status(Code::invalid_argument,
                  "attribute \"" + std::string(name) + "\" of \"" + object_path + "\": " + why);
  };
  const std::optional<DType> dtype = model_dtype(attribute->type);
  if (!dtype) return refused("not a number");
  if (attribute->n_values != n_values) {
    return refused("it has " + std::to_string(attribute->n_values) + " values, " +
                   std::to_string(n_values) + " were asked for");
  }
  return visit_dtype(*dtype, [&]<class Stored>() {
    for (std::size_t i = 0; i < n_values; ++i) {
      Stored stored;
      std::memcpy(&stored, attribute->values.data() + i * sizeof stored, sizeof stored);
      if (convert_number(stored, values[i])) continue;
      return refused("value " + std::to_string(i) + " is " + std::to_string(stored) +
                     ", which the type asked for cannot hold");
    }
    return Status();
  });
}

Status read_step(Reader& reader, const char* path, std::uint64_t step, const std::uint64_t* start,
                 const std::uint64_t* count, void* values, std::size_t n_bytes,
                 const std::int64_t* strides) {
  ReadRequest request;
  std::optional<StridedRead> strided;
  const Status mine = local_part([&]() -> Status {
    if (path == nullptr) return null_argument("argument `path`");
    if (values == nullptr && n_bytes > 0) return null_argument("argument `values`");
    TAILRACE_TAKE(request, reader.step_request(path, step, start, count,
                                               {static_cast<std::byte*>(values), n_bytes}));
    if (strides == nullptr) return Status();
    Shape of_box = request.slab.count;
    of_box.erase(of_box.begin());  // time
    strided.emplace(of_box, n_bytes, strides, request.values);
    request.values = strided->dense().data();
    return Status();
  });
  TAILRACE_TRY(reader.comm().agree(mine));
  TAILRACE_TRY(reader.read_all({&request, 1}));
  if (strided) strided->scatter();
  return Status();
}

/// Make read_all() fail on all ranks, by joining its agreement with an error.
Status fail_read_all(Reader& reader, tailrace_error error, const char* text) {
  const bool known = error > TAILRACE_OK && error <= static_cast<int>(Code::internal);
  const Code code = known ? static_cast<Code>(error) : Code::invalid_argument;
  return reader.comm().agree(Status(
      code,
      text == nullptr ? "the program reported a failure (tailrace_reader_fail_read_all)" : text));
}

}  // namespace
}  // namespace tailrace

extern "C" {

tailrace_error tailrace_reader_open(const char* path, const void* mpi_comm, size_t mpi_comm_bytes,
                                    const char* options, tailrace_reader** reader) {
  if (reader != nullptr) *reader = nullptr;
  return tailrace::guarded(nullptr, [&] {
    return tailrace::open_reader(path, mpi_comm, mpi_comm_bytes, options, reader);
  });
}

tailrace_error tailrace_reader_close(tailrace_reader* reader) {
  return tailrace::guarded_reader(reader, [&] {
    reader->texts.clear();
    return std::exchange(reader->reader, nullptr)->close();
  });
}

void tailrace_reader_abandon(tailrace_reader* reader) {
  if (reader == nullptr) return;
  reader->texts.clear();
  reader->reader.reset();
}

size_t tailrace_reader_n_datasets(const tailrace_reader* reader) {
  return reader == nullptr || reader->reader == nullptr ? 0 : reader->reader->datasets().size();
}

tailrace_error tailrace_reader_dataset(const tailrace_reader* reader, size_t dataset,
                                       tailrace_dataset_info* info) {
  return tailrace::guarded_reader(reader, [&] {
    if (info == nullptr) return tailrace::null_argument("output argument `info`");
    TAILRACE_TRY(tailrace::check_dataset(*reader->reader, dataset));
    const tailrace::StoredDataset& stored = reader->reader->datasets()[dataset];
    const tailrace::Shape& chunk_shape = stored.storage.chunk_shape;
    *info = {};
    info->path = stored.path.c_str();
    info->type_text = stored.type_text.c_str();
    info->is_number = stored.dtype ? 1 : 0;
    if (stored.dtype) info->dtype = tailrace::c_dtype(*stored.dtype);
    info->element_bytes = stored.value_bytes();
    info->n_dims = stored.shape.size();
    info->shape = stored.shape.data();
    info->max_shape = stored.max_shape.data();
    info->chunk_shape = chunk_shape.empty() ? nullptr : chunk_shape.data();
    info->has_fill_value = stored.fill_number ? 1 : 0;
    info->fill_value = stored.fill_number.value_or(0);
    return tailrace::Status();
  });
}

tailrace_error tailrace_reader_find(const tailrace_reader* reader, const char* path,
                                    size_t* dataset) {
  return tailrace::guarded_reader(reader, [&] {
    if (path == nullptr) return tailrace::null_argument("argument `path`");
    if (dataset == nullptr) return tailrace::null_argument("output argument `dataset`");
    const tailrace::Result<std::size_t> found = reader->reader->find(path);
    if (found.ok()) *dataset = *found;
    return found.status();
  });
}

tailrace_error tailrace_reader_open_index(tailrace_reader* reader, size_t n_datasets,
                                          const size_t* datasets) {
  return tailrace::guarded_reader(reader, [&] {
    const bool missing = n_datasets > 0 && datasets == nullptr;
    TAILRACE_TRY(reader->reader->comm().agree(
        missing ? tailrace::null_argument("argument `datasets`") : tailrace::Status()));
    return reader->reader->open_index({datasets, n_datasets});
  });
}

tailrace_error tailrace_reader_read(tailrace_reader* reader, size_t dataset, const uint64_t* start,
                                    const uint64_t* count, const uint64_t* stride, void* values,
                                    size_t n_bytes) {
  return tailrace::guarded_reader(reader, [&] {
    return tailrace::read(*reader->reader, dataset,
                          tailrace::make_slab(*reader->reader, dataset, start, count, stride),
                          {static_cast<std::byte*>(values), n_bytes}, nullptr);
  });
}

tailrace_error tailrace_reader_read_strided(tailrace_reader* reader, size_t dataset,
                                            const uint64_t* start, const uint64_t* count,
                                            const uint64_t* stride, void* values, size_t n_bytes,
                                            const int64_t* byte_strides) {
  return tailrace::guarded_reader(reader, [&] {
    return tailrace::read(*reader->reader, dataset,
                          tailrace::make_slab(*reader->reader, dataset, start, count, stride),
                          {static_cast<std::byte*>(values), n_bytes}, byte_strides);
  });
}

tailrace_error tailrace_reader_read_all(tailrace_reader* reader, size_t n_requests,
                                        const tailrace_read_request* requests) {
  return tailrace::guarded_reader(
      reader, [&] { return tailrace::read_all(*reader->reader, n_requests, requests, nullptr); });
}

tailrace_error tailrace_reader_read_all_strided(tailrace_reader* reader, size_t n_requests,
                                                const tailrace_read_request* requests,
                                                const int64_t* const* byte_strides) {
  return tailrace::guarded_reader(reader, [&] {
    return tailrace::read_all(*reader->reader, n_requests, requests, byte_strides);
  });
}

tailrace_error tailrace_reader_fail_read_all(tailrace_reader* reader, tailrace_error error,
                                             const char* text) {
  return tailrace::guarded_reader(
      reader, [&] { return tailrace::fail_read_all(*reader->reader, error, text); });
}

tailrace_error tailrace_reader_n_attributes(const tailrace_reader* reader, const char* object_path,
                                            size_t* n_attributes) {
  return tailrace::guarded_reader(reader, [&]() -> tailrace::Status {
    if (object_path == nullptr || n_attributes == nullptr) {
      return tailrace::null_argument("arguments `object_path` and `n_attributes`");
    }
    TAILRACE_TAKE(const auto attributes, reader->reader->attributes(object_path));
    *n_attributes = attributes.size();
    return tailrace::Status();
  });
}

tailrace_error tailrace_reader_attribute(const tailrace_reader* reader, const char* object_path,
                                         size_t number, tailrace_attribute_info* info) {
  return tailrace::guarded_reader(reader, [&]() -> tailrace::Status {
    if (object_path == nullptr) return tailrace::null_argument("argument `object_path`");
    TAILRACE_TAKE(const auto attributes, reader->reader->attributes(object_path));
    if (number < attributes.size()) return tailrace::describe(*reader, attributes[number], info);
    return tailrace::Status(tailrace::Code::not_found,
                            "attribute number " + std::to_string(number) + " does not exist; \"" +
                                object_path + "\" has " + std::to_string(attributes.size()) +
                                ", counted from 0");
  });
}

tailrace_error tailrace_reader_find_attribute(const tailrace_reader* reader,
                                              const char* object_path, const char* name,
                                              tailrace_attribute_info* info) {
  return tailrace::guarded_reader(reader, [&]() -> tailrace::Status {
    if (object_path == nullptr || name == nullptr) {
      return tailrace::null_argument("arguments `object_path` and `name`");
    }
    TAILRACE_TAKE(const auto* attribute, reader->reader->attribute(object_path, name));
    return tailrace::describe(*reader, *attribute, info);
  });
}

tailrace_error tailrace_attribute_get_f64(const tailrace_reader* reader, const char* object_path,
                                          const char* name, size_t n_values, double* values) {
  return tailrace::guarded_reader(reader, [&] {
    return tailrace::get_numbers(*reader->reader, object_path, name, n_values, values);
  });
}

tailrace_error tailrace_attribute_get_i64(const tailrace_reader* reader, const char* object_path,
                                          const char* name, size_t n_values, int64_t* values) {
  return tailrace::guarded_reader(reader, [&] {
    return tailrace::get_numbers(*reader->reader, object_path, name, n_values, values);
  });
}

tailrace_error tailrace_attribute_get_u64(const tailrace_reader* reader, const char* object_path,
                                          const char* name, size_t n_values, uint64_t* values) {
  return tailrace::guarded_reader(reader, [&] {
    return tailrace::get_numbers(*reader->reader, object_path, name, n_values, values);
  });
}

tailrace_error tailrace_reader_n_steps(const tailrace_reader* reader, const char* path,
                                       uint64_t* n_steps) {
  return tailrace::guarded_reader(reader, [&]() -> tailrace::Status {
    if (n_steps == nullptr) return tailrace::null_argument("output argument `n_steps`");
    *n_steps = reader->reader->n_steps();
    if (path != nullptr) {
      TAILRACE_TAKE(*n_steps, reader->reader->n_steps(path));
    }
    return tailrace::Status();
  });
}

int64_t tailrace_reader_last_step(const tailrace_reader* reader) {
  if (reader == nullptr || reader->reader == nullptr) return -1;
  return static_cast<int64_t>(reader->reader->n_steps()) - 1;
}

tailrace_error tailrace_reader_read_step(tailrace_reader* reader, const char* path, uint64_t step,
                                         const uint64_t* start, const uint64_t* count, void* values,
                                         size_t n_bytes) {
  return tailrace::guarded_reader(reader, [&] {
    return tailrace::read_step(*reader->reader, path, step, start, count, values, n_bytes, nullptr);
  });
}

tailrace_error tailrace_reader_read_step_strided(tailrace_reader* reader, const char* path,
                                                 uint64_t step, const uint64_t* start,
                                                 const uint64_t* count, void* values,
                                                 size_t n_bytes, const int64_t* byte_strides) {
  return tailrace::guarded_reader(reader, [&] {
    return tailrace::read_step(*reader->reader, path, step, start, count, values, n_bytes,
                               byte_strides);
  });
}

tailrace_error tailrace_reader_refresh(tailrace_reader* reader) {
  return tailrace::guarded_reader(reader, [&] {
    reader->texts.clear();
    return reader->reader->refresh();
  });
}

tailrace_error tailrace_reader_report(const tailrace_reader* reader, tailrace_read_report* report) {
  return tailrace::guarded_reader(reader, [&] {
    if (report == nullptr) return tailrace::null_argument("output argument `report`");
    const tailrace::ReadReport& done = reader->reader->report();
#define TAILRACE_COPY(type, name, known) report->name = done.name;
    TAILRACE_READ_REPORT_LIST(TAILRACE_COPY)
#undef TAILRACE_COPY
    return tailrace::Status();
  });
}

}  // extern "C"
