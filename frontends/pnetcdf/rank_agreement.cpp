// See rank_agreement.hpp.

#include "pnetcdf/rank_agreement.hpp"

#include <algorithm>

#include "core/byte_stream.hpp"

namespace tailrace::pnetcdf {
namespace {

/// FNV-1a: equal on all ranks of one job is all that is asked of it.
std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = 14695981039346656037U;
  for (const char byte : text) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  }
  return digest;
}

/// The root group's attributes, then each variable's, in order.
template <class Visit>
void for_each_list(NetcdfModel& model, Visit&& visit) {
  visit(model.groups[0].attributes);
  for (ModelVariable& variable : model.variables) visit(variable.attributes);
}

Bytes packed_attributes(NetcdfModel& model) {
  ByteWriter writer;
  writer.add(static_cast<std::uint64_t>(model.variables.size()));
  for_each_list(model, [&](const std::vector<ModelAttribute>& attributes) {
    writer.add(static_cast<std::uint64_t>(attributes.size()));
    for (const ModelAttribute& attribute : attributes) {
      writer.add_text(attribute.name);
      writer.add(attribute.type);
      writer.add(attribute.n_values);
      const auto* values = reinterpret_cast<const char*>(attribute.values.data());
      writer.add_text({values, attribute.values.size()});
      writer.add(static_cast<std::uint64_t>(attribute.texts.size()));
      for (const std::string& text : attribute.texts) writer.add_text(text);
    }
  });
  return writer.take();
}

void unpack_attributes(const Bytes& bytes, NetcdfModel& model) {
  ByteReader reader(bytes);
  // Other variables than rank 0: change_model() says so.
  if (reader.take<std::uint64_t>() != model.variables.size()) return;
  for_each_list(model, [&](std::vector<ModelAttribute>& attributes) {
    attributes.resize(reader.take<std::uint64_t>());
    for (ModelAttribute& attribute : attributes) {
      attribute.name = reader.take_text();
      attribute.type = reader.take<ModelType>();
      attribute.n_values = reader.take<std::uint64_t>();
      const std::string values = reader.take_text();
      const auto* first = reinterpret_cast<const std::byte*>(values.data());
      attribute.values.assign(first, first + values.size());
      attribute.texts.resize(reader.take<std::uint64_t>());
      for (std::string& text : attribute.texts) text = reader.take_text();
    }
  });
}

}  // namespace

Argument::Argument(int its_code, std::string_view text) : code(its_code), digest(digest_of(text)) {}

int agree_on_call(OpenFile& file, int status, std::initializer_list<Argument> arguments) {
  if (!file.safe_mode) return status;
  // Digests are alike exactly if the largest of them is the smallest: the inverse of the largest
  // inverse.
  std::vector<std::uint64_t> largest{
      static_cast<std::uint64_t>(-static_cast<std::int64_t>(status))};
  for (const Argument& argument : arguments) {
    largest.push_back(argument.digest);
    largest.push_back(~argument.digest);
  }
  file.array->comm().allreduce(std::span<std::uint64_t>(largest), Reduction::max);
  if (largest[0] != 0) return -static_cast<int>(largest[0]);
  std::size_t at = 1;
  for (const Argument& argument : arguments) {
    if (largest[at] != ~largest[at + 1]) return argument.code;
    at += 2;
  }
  return NC_NOERR;
}

void take_attributes_of_root(OpenFile& file) {
  Comm& comm = file.array->comm();
  if (comm.n_ranks() == 1) return;
  Bytes bytes = packed_attributes(file.next);
  const std::uint64_t digest =
      digest_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::uint64_t largest[2] = {digest, ~digest};
  comm.allreduce(std::span<std::uint64_t>(largest), Reduction::max);
  if (largest[0] == ~largest[1]) return;
  comm.broadcast(bytes, 0);
  if (!comm.is_root()) unpack_attributes(bytes, file.next);
}

}  // namespace tailrace::pnetcdf
