// The boxes of a plotfile level's dataset that a program creates, and the cells that the next finer
// level covers (describe/plotfile.hpp).
//
// Only rank 0 has written the values of the boxes, usually just before the dataset is created, so
// rank 0 broadcasts what it finds. The finer level's boxes are written later, so they are looked up
// when this level's values are flushed.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/byte_stream.hpp"
#include "describe/plotfile.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/real_hdf5.hpp"
#include "hdf5/sessions.hpp"

namespace tailrace::hdf5_programs {
namespace {

/// Maximum size of a list of boxes; reading one needs three times this memory.
constexpr std::uint64_t most_bytes = 256U << 20;

/// Read all elements of a one-dimensional dataset, from this rank's staged values or the last
/// flush, as `n_numbers` of type `memory_type` each. Empty if no suitable dataset exists.
std::optional<std::vector<std::int64_t>> elements_of(Session& session, hid_t location,
                                                     const std::string& path, hid_t memory_type,
                                                     std::size_t n_numbers) {
  if (H5Lexists(location, path.c_str(), H5P_DEFAULT) <= 0) return std::nullopt;
  const Hdf5Id dataset(H5Dopen2(location, path.c_str(), H5P_DEFAULT));
  const Hdf5Id type(dataset.valid() ? H5Dget_type(dataset.get()) : -1);
  bool known = false;
  const std::optional<Target> target =
      type.valid() ? target_of(dataset.get(), known) : std::nullopt;
  if (!target || !known || target->session != &session) return std::nullopt;
  const Result<DatasetArray::Facts> facts = session.array->facts(target->dataset);
  if (!facts.ok() || !facts->by_value || facts->shape->size() != 1) return std::nullopt;
  if (H5Tget_size(type.get()) != facts->element_bytes) return std::nullopt;
  if (H5Tget_class(type.get()) != H5Tget_class(memory_type)) return std::nullopt;
  const std::uint64_t n = facts->shape->front();
  if (n == 0 || n > most_boxes + 1) return std::nullopt;
  const std::size_t wide = std::max(facts->element_bytes, n_numbers * sizeof(std::int64_t));
  if (wide > most_bytes / n) return std::nullopt;
  std::vector<std::byte> room(n * wide);
  if (!session.array
           ->get(target->dataset, {{0}, {n}, {}}, std::span(room).first(n * facts->element_bytes))
           .ok()) {
    return std::nullopt;
  }
  std::vector<std::byte> background(room.size());
  if (H5Tconvert(type.get(), memory_type, n, room.data(), background.data(), H5P_DEFAULT) < 0) {
    return std::nullopt;
  }
  std::vector<std::int64_t> numbers(n * n_numbers);
  std::memcpy(numbers.data(), room.data(), numbers.size() * sizeof(std::int64_t));
  return numbers;
}

/// Find the boxes on this rank; without runs if nothing fits.
BoxSeries find_boxes(Session& session, const CreateCall& call) {
  hsize_t n_elements = 0;
  if (H5Sget_simple_extent_ndims(call.space) != 1 ||
      H5Sget_simple_extent_dims(call.space, &n_elements, nullptr) < 0) {
    return BoxSeries();
  }
  return find_level_boxes(
      session.file(), call.location, call.name, n_elements,
      [&](const std::string& list, std::int64_t memory_type, std::size_t n_numbers) {
        return elements_of(session, call.location, list, memory_type, n_numbers);
      });
}

}  // namespace

bool names_level_data(const char* path) {
  return path != nullptr && !level_data_name(path).empty();
}

LevelCover find_cover(Session& session, const std::string& path,
                      const std::shared_ptr<const BoxSeries>& boxes) {
  const Hdf5Scope scope;
  return find_level_cover(
      session.file(), path, boxes,
      [&](const std::string& list, std::int64_t memory_type, std::size_t n_numbers) {
        return elements_of(session, session.file(), list, memory_type, n_numbers);
      });
}

Result<std::shared_ptr<const BoxSeries>> receive_boxes(Session& session, const CreateCall& call) {
  // Decide by the name, which is the same on all ranks, whatever other data a rank lacks.
  if (!names_level_data(call.name)) return std::shared_ptr<const BoxSeries>();
  // Another rank may have called something else, which is detected here.
  TAILRACE_TRY(session.array->meet());
  const Result<Bytes> received =
      broadcast_from_root(session.array->comm(), [&](ByteWriter& message) {
        const Hdf5Scope scope;
        BoxSeries boxes;
        // Without memory for this, the dataset is stored like others.
        const Status found = local_part([&] {
          boxes = find_boxes(session, call);
          return Status();
        });
        if (!found.ok()) boxes = BoxSeries();
        message.add(static_cast<std::uint64_t>(boxes.components.size()));
        for (const std::string& component : boxes.components) message.add_text(component);
        for (const BoxSeries::Run& run : boxes.runs) {
          message.add(run.n_boxes);
          message.add(run.cells);
        }
        return Status();
      });
  TAILRACE_TRY(received.status());
  std::shared_ptr<const BoxSeries> taken;
  const Status took = local_part([&] {
    auto boxes = std::make_shared<BoxSeries>();
    ByteReader reader(*received);
    const auto n_components = reader.take<std::uint64_t>();
    if (n_components == 0) return Status();
    while (boxes->components.size() < n_components) boxes->components.push_back(reader.take_text());
    while (!reader.at_end()) {
      BoxSeries::Run& run = boxes->runs.emplace_back();
      run.n_boxes = reader.take<std::uint64_t>();
      run.cells = reader.take_shape();
    }
    taken = std::move(boxes);
    return Status();
  });
  if (took.ok()) return taken;
  session.array->lose(took);  // Other ranks store the dataset in other chunks than this one.
  return took;
}

}  // namespace tailrace::hdf5_programs
