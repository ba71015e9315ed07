// H5Dwrite and H5Dread of a session's datasets: selections, conversion, staging.
//
//  write   memory -> gathered -> converted to the file's type -> staged
//  read    last flush, overlaid with own staged values -> converted -> scattered into memory

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/live_datasets.hpp"
#include "hdf5/real_hdf5.hpp"
#include "hdf5/selections.hpp"
#include "hdf5/sessions.hpp"
#include "trz/base/printable.hpp"

namespace tailrace::hdf5_programs {
namespace {

/// Transfer that a call requests, after checks.
struct Transfer {
  hid_t type = -1;  ///< File type; owned by the session.
  FileSelection selection;
  std::uint64_t n = 0;
  std::size_t file_bytes = 1;  ///< Size of one element in the file.
  std::size_t memory_bytes = 1;
  bool same = false;         ///< The memory type equals the file type.
  bool by_members = false;   ///< Compounds: conversion needs a background buffer.
  bool whole_memory = true;  ///< Elements are contiguous in memory.
  std::uint64_t first = 0;   ///< First element in memory, if contiguous.
  hid_t memory_space = -1;   ///< Selection in memory, if not contiguous.
};

Status bad_call(const std::string& why) { return hdf5_failure(Code::invalid_argument, why); }

bool is_collective([[maybe_unused]] hid_t list) {
  if (list == H5P_DEFAULT) return false;
  H5FD_mpio_xfer_t mode = H5FD_MPIO_INDEPENDENT;
  return H5Pget_dxpl_mpio(list, &mode) >= 0 && mode == H5FD_MPIO_COLLECTIVE;
}

/// Copy the type of a dataset's elements. A named type of the file itself would keep the file open.
Result<hid_t> type_of(const Target& target, hid_t dataset) {
  Hdf5Id& type = target.session->types[target.dataset];
  if (!type.valid()) {
    const Hdf5Id stored(H5Dget_type(dataset));
    if (stored.valid()) type = Hdf5Id(H5Tcopy(stored.get()));
  }
  if (!type.valid()) return bad_call("the dataset's type cannot be read");
  return type.get();
}

/// True if compound `memory` lacks members of `file`, at any depth.
bool lacks_members(hid_t file, hid_t memory) {
  if (H5Tget_class(file) == H5T_ARRAY && H5Tget_class(memory) == H5T_ARRAY) {
    const Hdf5Id inner(H5Tget_super(file));
    const Hdf5Id other(H5Tget_super(memory));
    return lacks_members(inner.get(), other.get());
  }
  if (H5Tget_class(file) != H5T_COMPOUND || H5Tget_class(memory) != H5T_COMPOUND) return false;
  const int n_members = H5Tget_nmembers(file);
  for (int i = 0; i < n_members; ++i) {
    char* name = H5Tget_member_name(file, unsigned(i));
    const int there = name != nullptr ? H5Tget_member_index(memory, name) : -1;
    H5free_memory(name);
    if (there < 0) return true;
    const Hdf5Id inner(H5Tget_member_type(file, unsigned(i)));
    const Hdf5Id other(H5Tget_member_type(memory, unsigned(there)));
    if (lacks_members(inner.get(), other.get())) return true;
  }
  return false;
}

/// True if conversion reads the target's old contents: compounds, at any depth of arrays.
bool holds_compound(hid_t type) { return H5Tdetect_class(type, H5T_COMPOUND) > 0; }

Status select_memory(const TransferCall& call, Transfer& transfer) {
  hid_t space = call.memory_space;
  // HDF5's rule: H5S_ALL for memory means an array like the dataset, with the file's selection.
  if (space == H5S_ALL) space = call.file_space;
#if H5_VERSION_GE(1, 14, 0)
  if (space == H5S_BLOCK) return Status();  // One run with the file's number of elements.
#endif
  if (space == H5S_ALL) return Status();
  const hssize_t n = H5Sget_select_npoints(space);
  if (n < 0) return bad_call("the memory dataspace is not valid");
  if (static_cast<std::uint64_t>(n) != transfer.n) {
    return Status(Code::invalid_argument,
                  std::to_string(n) + " elements are selected in the memory dataspace, but " +
                      std::to_string(transfer.n) + " in the file dataspace");
  }
  if (n == 0) return Status();
  if (H5Sselect_valid(space) <= 0)
    return bad_call("the selection in the memory dataspace exceeds its extents");
  const std::optional<std::uint64_t> first = run_of(space);
  transfer.whole_memory = first.has_value();
  transfer.first = first.value_or(0);
  transfer.memory_space = space;
  return Status();
}

Result<Transfer> understand(const Target& target, hid_t dataset, const TransferCall& call) {
  Transfer transfer;
  TAILRACE_TAKE(const DatasetArray::Facts facts, target.session->array->facts(target.dataset));
  TAILRACE_TAKE(transfer.selection, selection_of(call.file_space, *facts.shape));
  transfer.n = transfer.selection.n_elements();
  const ElementRuns& runs = transfer.selection.runs;
  target.session->n_in_runs += runs.empty() ? 0 : transfer.n;
  target.session->n_runs += runs.size();
  TAILRACE_TRY(select_memory(call, transfer));
  if (transfer.n > 0 && !facts.by_value && facts.addresses) {
    return Status(Code::unsupported,
                  "only rank 0 can write and read elements of variable length and references; "
                  "TAILRACE_HDF5=off leaves the file to HDF5");
  }
  if (transfer.n > 0 && !facts.by_value) {
    return Status(Code::unsupported,
                  "elements of variable length, references and virtual datasets are not supported "
                  "here; TAILRACE_HDF5=off leaves the file to HDF5");
  }
  TAILRACE_TAKE(transfer.type, type_of(target, dataset));
  transfer.file_bytes = facts.element_bytes;
  transfer.memory_bytes = H5Tget_size(call.memory_type);
  if (transfer.memory_bytes == 0) return bad_call("the memory type is not valid");
  transfer.same = H5Tequal(call.memory_type, transfer.type) > 0;
  transfer.by_members = !transfer.same && holds_compound(transfer.type);
  if (!transfer.same && H5Tcompiler_conv(call.memory_type, transfer.type) < 0) {
    return bad_call("the memory type cannot be converted to the type of the dataset");
  }
  if (call.transfer_list != H5P_DEFAULT &&
      H5Pisa_class(call.transfer_list, H5P_DATASET_XFER) <= 0) {
    return bad_call("the transfer property list is not valid");
  }
  if (call.transfer_list != H5P_DEFAULT &&
      H5Pget_data_transform(call.transfer_list, nullptr, 0) > 0) {
    return Status(Code::unsupported,
                  "data transforms (H5Pset_data_transform) are not supported; TAILRACE_HDF5=off "
                  "leaves the file to HDF5");
  }
  return transfer;
}

struct Given {
  const void* bytes;
  std::size_t n_bytes;
};

/// Scatter callback: returns all elements in one call.
herr_t give_all(const void** bytes, std::size_t* n_bytes, void* data) {
  const auto* given = static_cast<const Given*>(data);
  *bytes = given->bytes;
  *n_bytes = given->n_bytes;
  return 0;
}

/// Read the file's elements, in the order of the selection. Not collective.
Status get_elements(const Target& target, const Transfer& transfer, std::byte* to) {
  DatasetArray& array = *target.session->array;
  const auto& [slab, runs] = transfer.selection;
  const std::span<std::byte> values(to, transfer.n * transfer.file_bytes);
  return slab ? array.get(target.dataset, *slab, values)
              : array.get_runs(target.dataset, runs, values);
}

/// Stage dense elements in the order of the selection. Not collective.
Status put_elements(DatasetArray& array, std::size_t dataset, const FileSelection& selection,
                    std::size_t element_bytes, const std::byte* from) {
  const std::span<const std::byte> values(from, selection.n_elements() * element_bytes);
  return selection.slab ? array.put(dataset, *selection.slab, values)
                        : array.put_runs(dataset, selection.runs, values);
}

/// Return the elements in memory as one run, gathered into `room` if necessary.
Result<const std::byte*> gathered(const TransferCall& call, const Transfer& transfer,
                                  const void* values, std::vector<std::byte>& room) {
  const auto* from = static_cast<const std::byte*>(values);
  if (transfer.whole_memory) return from + transfer.first * transfer.memory_bytes;
  room.resize(transfer.n * transfer.memory_bytes);
  if (H5Dgather(transfer.memory_space, values, call.memory_type, room.size(), room.data(), nullptr,
                nullptr) < 0) {
    return bad_call("the elements in memory cannot be gathered");
  }
  return room.data();
}

/// Stage some members of a compound on several ranks. Each member is staged separately, since other
/// ranks may write the other members at the same time.
Status stage_members(const Target& target, const TransferCall& call, const Transfer& transfer,
                     const std::byte* from) {
  struct Staged {
    std::size_t number;
    Hdf5Id type;  ///< Compound of this member only, in the file's type.
  };
  DatasetArray& array = *target.session->array;
  std::vector<Staged> members;
  const auto refused = [] {
    return Status(
        Code::unsupported,
        "cannot write only some members of a nested compound, or of one in an opened file, "
        "since other ranks may write the others; write all members, or set "
        "TAILRACE_HDF5=off");
  };
  const bool compounds =
      H5Tget_class(transfer.type) == H5T_COMPOUND && H5Tget_class(call.memory_type) == H5T_COMPOUND;
  if (!compounds) return refused();
  const int n_members = H5Tget_nmembers(transfer.type);
  for (int i = 0; i < n_members; ++i) {
    char* const of_hdf5 = H5Tget_member_name(transfer.type, unsigned(i));
    const std::string name = of_hdf5 != nullptr ? of_hdf5 : "";
    H5free_memory(of_hdf5);
    const int there = H5Tget_member_index(call.memory_type, name.c_str());
    if (there < 0) continue;
    const Hdf5Id member(H5Tget_member_type(transfer.type, unsigned(i)));
    const Hdf5Id given(H5Tget_member_type(call.memory_type, unsigned(there)));
    const std::optional<std::size_t> number = array.member_of(target.dataset, name);
    if (!number || lacks_members(member.get(), given.get())) return refused();
    Hdf5Id alone(H5Tcreate(H5T_COMPOUND, H5Tget_size(member.get())));
    if (!alone.valid() || H5Tinsert(alone.get(), name.c_str(), 0, member.get()) < 0) {
      return bad_call("the type of member \"" + name + "\" cannot be created");
    }
    members.push_back({*number, std::move(alone)});
  }
  array.begin_write();
  TAILRACE_TAKE(const DatasetArray::Facts facts, array.facts(target.dataset));
  for (const Staged& member : members) {
    const std::size_t bytes = H5Tget_size(member.type.get());
    std::vector<std::byte> values(transfer.n * std::max(bytes, transfer.memory_bytes));
    std::vector<std::byte> background(transfer.n * bytes);
    std::memcpy(values.data(), from, transfer.n * transfer.memory_bytes);
    if (H5Tconvert(call.memory_type, member.type.get(), transfer.n, values.data(),
                   background.data(), call.transfer_list) < 0) {
      return bad_call("the values cannot be converted to the type of the dataset");
    }
    if (facts.by_root) target.session->root_bytes += transfer.n * bytes;
    TAILRACE_TRY(put_elements(array, member.number, transfer.selection, bytes, values.data()));
  }
  return Status();
}

Status stage(const Target& target, hid_t dataset, const TransferCall& call, const void* values) {
  DatasetArray& array = *target.session->array;
  TAILRACE_TAKE(const Transfer transfer, understand(target, dataset, call));
  if (transfer.n == 0) return Status();
  if (values == nullptr) return Status(Code::invalid_argument, "the buffer of values is NULL");
  if (target.session->by_rank.contains(target.dataset)) {
    const Hdf5Id list = list_without_mpi(call.transfer_list);
    if (H5Dwrite(dataset, call.memory_type, call.memory_space, call.file_space,
                 list.valid() ? list.get() : H5P_DEFAULT, values) < 0) {
      return hdf5_failure(Code::io_error, "its values cannot be written");
    }
    // Commits flush the session's id of the file only, not objects opened by the program's ids.
    return flush_elements(dataset);
  }
  std::vector<std::byte> room;
  TAILRACE_TAKE(const std::byte* from, gathered(call, transfer, values, room));
  std::vector<std::byte> converted;
  if (!transfer.same) {
    std::vector<std::byte> background;
    if (transfer.by_members) {
      background.resize(transfer.n * transfer.file_bytes);
      if (lacks_members(transfer.type, call.memory_type)) {
        if (array.comm().n_ranks() > 1) return stage_members(target, call, transfer, from);
        TAILRACE_TRY(get_elements(target, transfer, background.data()));
      }
    }
    converted.resize(transfer.n * std::max(transfer.file_bytes, transfer.memory_bytes));
    std::memcpy(converted.data(), from, transfer.n * transfer.memory_bytes);
    if (H5Tconvert(call.memory_type, transfer.type, transfer.n, converted.data(),
                   background.empty() ? nullptr : background.data(), call.transfer_list) < 0) {
      return bad_call("the values cannot be converted to the type of the dataset");
    }
    from = converted.data();
  }
  array.begin_write();
  TAILRACE_TAKE(const DatasetArray::Facts facts, array.facts(target.dataset));
  if (facts.by_root) target.session->root_bytes += transfer.n * transfer.file_bytes;
  return put_elements(array, target.dataset, transfer.selection, transfer.file_bytes, from);
}

Status fetch(const Target& target, hid_t dataset, const TransferCall& call, void* values) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(const Transfer transfer, understand(target, dataset, call));
  if (transfer.n == 0) return Status();
  if (values == nullptr) return Status(Code::invalid_argument, "the buffer for the values is NULL");
  if (target.session->by_rank.contains(target.dataset)) {
    const Hdf5Id list = list_without_mpi(call.transfer_list);
    return H5Dread(dataset, call.memory_type, call.memory_space, call.file_space,
                   list.valid() ? list.get() : H5P_DEFAULT, values) >= 0
               ? Status()
               : hdf5_failure(Code::io_error, "its values cannot be read");
  }
  auto* to = static_cast<std::byte*>(values);
  if (transfer.same && transfer.whole_memory) {
    return get_elements(target, transfer, to + transfer.first * transfer.memory_bytes);
  }
  std::vector<std::byte> room(transfer.n * std::max(transfer.file_bytes, transfer.memory_bytes));
  TAILRACE_TRY(get_elements(target, transfer, room.data()));
  if (!transfer.same) {
    std::vector<std::byte> background;
    if (transfer.by_members) {
      // Members that the file lacks stay unchanged in memory.
      std::vector<std::byte> gathered_room;
      TAILRACE_TAKE(const std::byte* const held, gathered(call, transfer, values, gathered_room));
      background.assign(held, held + transfer.n * transfer.memory_bytes);
    }
    if (H5Tconvert(transfer.type, call.memory_type, transfer.n, room.data(),
                   background.empty() ? nullptr : background.data(), call.transfer_list) < 0) {
      return bad_call("the values cannot be converted to the memory type");
    }
  }
  const Given given{room.data(), transfer.n * transfer.memory_bytes};
  if (transfer.whole_memory) {
    std::memcpy(to + transfer.first * transfer.memory_bytes, given.bytes, given.n_bytes);
    return Status();
  }
  if (H5Dscatter(give_all, const_cast<Given*>(&given), call.memory_type, transfer.memory_space,
                 values) < 0) {
    return bad_call("the elements cannot be scattered in memory");
  }
  return Status();
}

// --- chunks

/// In-memory file with a dataset of one chunk, stored as the program requested. So HDF5 itself runs
/// the filters, whatever they are.
struct OneChunk {
  Hdf5Id file;
  Hdf5Id dataset;
  hid_t type = -1;
  Slab slab;      ///< Chunk in the program's dataset, clipped at its edge.
  Hdf5Id part;    ///< Selection of the slab in the chunk.
  Hdf5Id memory;  ///< Dense space of the slab in memory.
  std::vector<std::byte> elements;
};

Result<OneChunk> one_chunk(const Target& target, hid_t dataset, const hsize_t* offset) {
  OneChunk one;
  Session& session = *target.session;
  TAILRACE_TAKE(const DatasetArray::Facts facts, session.array->facts(target.dataset));
  if (!facts.by_value || facts.addresses || session.by_rank.contains(target.dataset)) {
    return Status(Code::unsupported,
                  "chunk access supports only elements of fixed size that are stored in the file");
  }
  const auto requested = session.creation_lists.find(target.dataset);
  const Hdf5Id list(requested != session.creation_lists.end() ? H5Pcopy(requested->second->get())
                                                              : H5Dget_create_plist(dataset));
  if (!list.valid() || H5Pget_layout(list.get()) != H5D_CHUNKED)
    return bad_call("it is not chunked");
  std::vector<hsize_t> extents(facts.shape->size());
  const auto rank = static_cast<int>(extents.size());
  if (offset == nullptr || H5Pget_chunk(list.get(), rank, extents.data()) != rank) {
    return bad_call("the chunk offset is NULL, or the chunk shape cannot be read");
  }
  std::vector<hsize_t> count = extents;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (offset[d] % extents[d] != 0 || offset[d] >= (*facts.shape)[d]) {
      return Status(Code::invalid_argument, "chunk offset " +
                                                shape_text(Shape(offset, offset + extents.size())) +
                                                " must be a multiple of chunk shape " +
                                                shape_text(Shape(extents.begin(), extents.end())) +
                                                " within extents " + shape_text(*facts.shape));
    }
    count[d] = std::min<hsize_t>(count[d], (*facts.shape)[d] - offset[d]);
  }
  unsigned options = 0;
  if (count != extents && H5Pget_chunk_opts(list.get(), &options) >= 0 &&
      (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0) {
    H5Premove_filter(list.get(), H5Z_FILTER_ALL);
  }
  one.slab.start.assign(offset, offset + extents.size());
  one.slab.count.assign(count.begin(), count.end());
  TAILRACE_TAKE(one.type, type_of(target, dataset));
  one.elements.resize(one.slab.n_elements() * facts.element_bytes);
  const Hdf5Id access = new_access_list();
  const Hdf5Id space(H5Screate_simple(rank, extents.data(), nullptr));
  H5Pset_fapl_core(access.get(), 1U << 16, 0);
  one.file = Hdf5Id(H5Fcreate("(one chunk)", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  one.dataset = Hdf5Id(H5Dcreate2(one.file.get(), "chunk", one.type, space.get(), H5P_DEFAULT,
                                  list.get(), H5P_DEFAULT));
  const std::vector<hsize_t> first(extents.size());
  one.part = Hdf5Id(H5Scopy(space.get()));
  one.memory = Hdf5Id(H5Screate_simple(rank, count.data(), nullptr));
  if (!one.dataset.valid() || !one.memory.valid() ||
      H5Sselect_hyperslab(one.part.get(), H5S_SELECT_SET, first.data(), nullptr, count.data(),
                          nullptr) < 0) {
    return bad_call("a copy of the chunk in memory cannot be created");
  }
  return one;
}

/// Let H5Pget_mpio_actual_io_mode report a collective transfer, by the properties that HDF5 itself
/// would set in the program's list. The mode follows the layout that the program has chosen.
Status set_collective_mode(const TransferPart& part) {
  Session& session = *part.target.session;
  const auto [chunked, is_new] = session.chunked.try_emplace(part.target.dataset, false);
  if (is_new) {
    const auto requested = session.creation_lists.find(part.target.dataset);
    const Hdf5Id list(requested != session.creation_lists.end()
                          ? H5Pcopy(requested->second->get())
                          : H5Dget_create_plist(part.dataset));
    chunked->second = list.valid() && H5Pget_layout(list.get()) == H5D_CHUNKED;
  }
  auto mode = chunked->second ? H5D_MPIO_CHUNK_COLLECTIVE : H5D_MPIO_CONTIGUOUS_COLLECTIVE;
  auto chunk_mode = chunked->second ? H5D_MPIO_LINK_CHUNK : H5D_MPIO_NO_CHUNK_OPTIMIZATION;
  const auto set = [&](const char* name, void* value) {
    if (H5Pexist(part.call.transfer_list, name) > 0) {
      H5Pset(part.call.transfer_list, name, value);
    }
  };
  set("actual_io_mode", &mode);
  set("actual_chunk_opt_mode", &chunk_mode);
  return Status();
}

/// Call set_collective_mode(), unless memory is missing: the ranks are about to meet.
void note_collective(const TransferPart& part) {
  static_cast<void>(local_part([&] { return set_collective_mode(part); }));
}

}  // namespace

Hdf5Id list_without_mpi(hid_t transfer_list) {
  if (transfer_list == H5P_DEFAULT) return Hdf5Id();
  Hdf5Id list(H5Pcopy(transfer_list));
  if (list.valid()) H5Pset_dxpl_mpio(list.get(), H5FD_MPIO_INDEPENDENT);
  return list;
}

Status write_chunk_of(const Target& target, hid_t dataset, const hsize_t* offset,
                      std::uint32_t filter_mask, std::span<const std::byte> bytes) {
  const Hdf5Scope scope;
  DatasetArray& array = *target.session->array;
  TAILRACE_TAKE(OneChunk one, one_chunk(target, dataset, offset));
  const std::vector<hsize_t> first(one.slab.rank());
  // HDF5 itself would read beyond the end of a short chunk.
  const Hdf5Id list(H5Dget_create_plist(one.dataset.get()));
  const Hdf5Id space(H5Dget_space(one.dataset.get()));
  const int n_filters = H5Pget_nfilters(list.get());
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << std::max(n_filters, 0)) - 1);
  const auto n = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
  if ((filter_mask & all) == all && bytes.size() != n * H5Tget_size(one.type)) {
    return Status(Code::invalid_argument, "the chunk has " + std::to_string(bytes.size()) +
                                              " bytes, expected " +
                                              std::to_string(n * H5Tget_size(one.type)));
  }
  if (H5Dwrite_chunk(one.dataset.get(), H5P_DEFAULT, filter_mask, first.data(), bytes.size(),
                     bytes.data()) < 0) {
    return bad_call("the chunk's bytes cannot be copied");
  }
  // Reopen: 1.10.8 remembers a filter mask of 0 for a chunk that was just written.
  one.dataset = Hdf5Id();
  one.dataset = Hdf5Id(H5Dopen2(one.file.get(), "chunk", H5P_DEFAULT));
  if (H5Dread(one.dataset.get(), one.type, one.memory.get(), one.part.get(), H5P_DEFAULT,
              one.elements.data()) < 0) {
    return bad_call("the chunk cannot be decoded");
  }
  array.begin_write();
  TAILRACE_TAKE(const DatasetArray::Facts facts, array.facts(target.dataset));
  if (facts.by_root) target.session->root_bytes += one.elements.size();
  return array.put(target.dataset, one.slab, one.elements);
}

Result<EncodedChunk> read_chunk_of(const Target& target, hid_t dataset, const hsize_t* offset) {
  const Hdf5Scope scope;
  TAILRACE_TAKE(OneChunk one, one_chunk(target, dataset, offset));
  TAILRACE_TRY(target.session->array->get(target.dataset, one.slab, one.elements));
  const std::vector<hsize_t> first(one.slab.rank());
  EncodedChunk chunk;
  hsize_t n_bytes = 0;
  if (H5Dwrite(one.dataset.get(), one.type, one.memory.get(), one.part.get(), H5P_DEFAULT,
               one.elements.data()) < 0 ||
      H5Dflush(one.dataset.get()) < 0 ||
      H5Dget_chunk_storage_size(one.dataset.get(), first.data(), &n_bytes) < 0) {
    return bad_call("the chunk cannot be encoded");
  }
  chunk.bytes.resize(n_bytes);
#ifdef TAILRACE_WITH_H5Dread_chunk
  if (H5Dread_chunk(one.dataset.get(), H5P_DEFAULT, first.data(), &chunk.filter_mask,
                    chunk.bytes.data()) < 0) {
    return bad_call("the chunk cannot be encoded");
  }
#endif
  return chunk;
}

Status write_elements_of(std::span<const TransferPart> parts, const void* const* values) {
  DatasetArray& array = *parts.front().target.session->array;
  bool collective = false;
  Status staged;
  {
    const Hdf5Scope scope;  // Released before ranks meet: threads may need HDF5.
    collective = is_collective(parts.front().call.transfer_list);
    if (collective) {
      note_collective(parts.front());
      array.begin_collective_put();
    }
    for (std::size_t i = 0; i < parts.size() && staged.ok(); ++i) {
      const TransferPart& part = parts[i];
      staged = local_part([&] {
        const Status one = stage(part.target, part.dataset, part.call, values[i]);
        const std::string name =
            printable("dataset \"" + array.path_of(part.target.dataset) + "\"");
        return one.ok() || one.message().starts_with(name) ? one : one.within(name);
      });
    }
  }
  if (!collective) return staged;
  // Meet the other ranks, which wait for this one, whatever happened to its part.
  if (!staged.ok()) {
    const Status noted = local_part([&] { return array.fail(staged), Status(); });
    if (!noted.ok()) array.fail(noted);  // A short message needs no memory.
  }
  const Status ended = array.end_collective_put();
  return ended.ok() ? staged : ended;  // The failure common to all ranks.
}

Status prepare_to_read(std::span<const TransferPart> parts) {
  {
    const Hdf5Scope scope;
    if (!is_collective(parts.front().call.transfer_list)) return Status();
    note_collective(parts.front());
  }
  return parts.front().target.session->array->sync_to_read();
}

Status read_elements_of(const TransferPart& part, void* values) {
  return fetch(part.target, part.dataset, part.call, values)
      .within("dataset \"" + part.target.session->array->path_of(part.target.dataset) + "\"");
}

}  // namespace tailrace::hdf5_programs
