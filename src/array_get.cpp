// Reading an ArrayFile: the file's values by a Reader, this rank's staged ones laid over them.
//
// A rank may read alone at any time, so it has a reader of its own for the last flush; where all
// ranks read together (get_all, a file opened for reading) they share one.

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "array_engine.hpp"
#include "container/chunk_index_reader.hpp"
#include "core/borrowed_comm.hpp"
#include "exec/comm_factory.hpp"

namespace tailrace {
namespace {

void fill_values(std::span<std::byte> values, const std::vector<std::byte>& element) {
  for (std::size_t at = 0; at + element.size() <= values.size(); at += element.size()) {
    std::memcpy(values.data() + at, element.data(), element.size());
  }
}

/// A part of a slab as a box within the slab's own elements.
Box box_of(const SlabPart& part) { return {part.first, part.slab.count}; }
Box box_of(const Slab& slab) { return {Shape(slab.rank(), 0), slab.count}; }

/// The elements of a request that the dataset has.
struct PartRead {
  const ReadRequest* request = nullptr;
  SlabPart part;
  std::vector<std::byte> values;
};

}  // namespace

/// Before a commit: HDF5 gives a file that a process has open already to whoever opens it again,
/// with the metadata that it has cached. So nobody may keep the file open over a commit who is to
/// read afterwards. Collective.
void NetcdfArrayFile::drop_readers() {
  local_reader_.reset();
  if (reader_ == nullptr) return;
  static_cast<void>(reader_->close());
  reader_.reset();
}

/// A reader that knows the last flush: all ranks' if there is one, else this rank's own. Not
/// collective.
Result<Reader*> NetcdfArrayFile::fresh_reader() {
  if (reader_ != nullptr) return reader_.get();
  if (local_reader_ == nullptr) {
    Result<std::unique_ptr<Reader>> reader = Reader::open(make_self_comm(), path_, options_.read);
    if (!reader.ok()) return reader.status();
    local_reader_ = std::move(*reader);
  }
  return local_reader_.get();
}

/// The reader of all ranks, which knows the last flush. Collective.
Status NetcdfArrayFile::open_shared_reader() {
  if (reader_ != nullptr) return Status();
  Result<std::unique_ptr<Reader>> reader =
      Reader::open(std::make_unique<BorrowedComm>(*comm_), path_, options_.read);
  if (!reader.ok()) return reader.status();
  reader_ = std::move(*reader);
  return Status();
}

Status NetcdfArrayFile::check_get(std::size_t v, const Slab& slab, std::uint64_t n_given) const {
  TAILRACE_TRY(check_open());
  TAILRACE_TRY(check_variable(v));
  TAILRACE_TRY(check_slab(slab, model_.shape_of(model_.variables[v])).within(quoted(v)));
  const std::uint64_t n = slab.n_elements();
  if (n_given == n) return Status();
  return Status(Code::invalid_argument, quoted(v) + ": room for " + std::to_string(n_given) +
                                            " values of a slab of " + std::to_string(n));
}

Status NetcdfArrayFile::get(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  const std::size_t element =
      v < variables_.size() ? model_type_bytes(variables_[v].type) : std::size_t{1};
  if (element == 0) return Status(Code::unsupported, quoted(v) + " holds no numbers");
  TAILRACE_TRY(check_get(v, slab, values.size() / element));
  if (slab.empty()) return Status();
  TAILRACE_TRY(read_file(v, slab, values).within(quoted(v)));
  variables_[v].log.lay_over(slab, values);
  return Status();
}

/// What the last flush holds, and fill values where that is nothing.
Status NetcdfArrayFile::read_file(std::size_t v, const Slab& slab, std::span<std::byte> values) {
  const ArrayVariable& variable = variables_[v];
  if (!variable.in_file() || (writable_ && !in_place_)) {
    fill_values(values, variable.fill);
    return Status();
  }
  const Result<Reader*> fresh = fresh_reader();
  if (!fresh.ok()) return fresh.status();
  Reader* const reader = *fresh;
  const Result<std::size_t> dataset = reader->find(file_paths_[v]);
  if (!dataset.ok()) return dataset.status();
  const StoredDataset& stored = reader->datasets()[*dataset];
  if (variable.own_codec != nullptr && stored.file.storage.kind == StoredForm::Kind::chunked) {
    return read_by_own_codec(stored, v, slab, values);
  }
  const SlabPart part = part_within(slab, whole_box(stored.shape()));
  if (part.slab == slab) return reader->read(*dataset, slab, values);
  fill_values(values, variable.fill);
  if (part.slab.empty()) return Status();
  std::vector<std::byte> there(part.slab.n_elements() * variable.log.element_bytes());
  TAILRACE_TRY(reader->read(*dataset, part.slab, there));
  copy_box(box_of(part), box_of(part), there.data(), box_of(slab), values.data(),
           variable.log.element_bytes());
  return Status();
}

Status NetcdfArrayFile::get_all(std::span<const ReadRequest> requests) {
  Status mine = check_open();
  if (mine.ok()) mine = broken_;
  for (const ReadRequest& request : requests) {
    if (mine.ok()) mine = check_get(request.dataset, request.slab, request.slab.n_elements());
    if (mine.ok() && model_type_bytes(variables_[request.dataset].type) == 0) {
      mine = Status(Code::unsupported, quoted(request.dataset) + " holds no numbers");
    }
  }
  TAILRACE_TRY(comm_->agree(mine));
  if (writable_) {
    TAILRACE_TRY(begin_collective());
    bool over_cap = false;
    const std::vector<bool> staged = agree_on_staged(over_cap);
    std::vector<std::uint64_t> wanted(staged.size(), 0);
    for (const ReadRequest& request : requests) wanted[request.dataset] = 1;
    comm_->allreduce(std::span<std::uint64_t>(wanted), Reduction::max);
    bool waits = !in_place_;
    for (std::size_t v = 0; v < staged.size(); ++v) waits = waits || (staged[v] && wanted[v] != 0);
    for (std::size_t d = 0; d < file_lengths_.size(); ++d) {
      waits = waits || model_.dimensions[d].length > file_lengths_[d];
    }
    if (waits) TAILRACE_TRY(flush_variables(staged, false, false));
  }
  TAILRACE_TRY(open_shared_reader());
  std::vector<ReadRequest> known;
  std::vector<PartRead> parts;
  for (const ReadRequest& request : requests) {
    if (request.slab.empty()) continue;
    const ArrayVariable& variable = variables_[request.dataset];
    const std::uint64_t n_bytes = request.slab.n_elements() * variable.log.element_bytes();
    const Result<std::size_t> dataset = reader_->find(file_paths_[request.dataset]);
    if (variable.own_codec != nullptr && variable.in_file()) {
      const Status read = read_file(request.dataset, request.slab, {request.values, n_bytes});
      if (mine.ok()) mine = read.within(quoted(request.dataset));
      continue;
    }
    if (!variable.in_file() || !dataset.ok()) {
      fill_values({request.values, n_bytes}, variable.fill);
      continue;
    }
    // A dataset may have fewer records than the dimension: the rest reads as fill values.
    const SlabPart part =
        part_within(request.slab, whole_box(reader_->datasets()[*dataset].shape()));
    if (part.slab == request.slab) {
      known.push_back({*dataset, request.slab, request.values});
      continue;
    }
    fill_values({request.values, n_bytes}, variable.fill);
    if (part.slab.empty()) continue;
    parts.push_back({&request, part, {}});
    parts.back().values.resize(part.slab.n_elements() * variable.log.element_bytes());
    known.push_back({*dataset, part.slab, parts.back().values.data()});
  }
  const Status read = reader_->read_all(known);
  for (const PartRead& it : parts) {
    copy_box(box_of(it.part), box_of(it.part), it.values.data(), box_of(it.request->slab),
             it.request->values, variables_[it.request->dataset].log.element_bytes());
  }
  return read.ok() ? comm_->agree(mine) : read;
}

/// Chunk by chunk, with the codec that the caller has given. Not collective.
/// Cost: the variable's chunk index, and every chunk that the slab touches.
Status NetcdfArrayFile::read_by_own_codec(const StoredDataset& dataset, std::size_t v,
                                          const Slab& slab, std::span<std::byte> values) {
  const ArrayVariable& variable = variables_[v];
  const std::size_t element = variable.log.element_bytes();
  if (variable.swapped) {
    return Status(Code::unsupported, "a codec of the caller's cannot turn the file's byte order");
  }
  fill_values(values, variable.fill);
  Result<std::vector<StoredChunk>> chunks = read_chunk_index(path_, file_paths_[v]);
  if (!chunks.ok()) return chunks.status();
  std::ifstream file(path_, std::ios::binary);
  const ChunkGrid grid{dataset.shape(), dataset.file.storage.chunk_shape};
  const std::uint64_t raw_bytes = n_elements(grid.chunk_shape) * element;
  for (const StoredChunk& chunk : *chunks) {
    const Box box = grid.full_box(chunk.chunk_index);
    const SlabPart part = part_within(slab, grid.clipped_box(chunk.chunk_index));
    if (part.slab.empty()) continue;
    EncodedBytes encoded{Buffer(chunk.extent.encoded_bytes), chunk.filter_mask};
    if (!encoded.buffer.allocated()) return Status(Code::out_of_memory, "no memory for a chunk");
    file.seekg(static_cast<std::streamoff>(chunk.extent.address));
    if (!file.read(reinterpret_cast<char*>(encoded.buffer.data()),
                   static_cast<std::streamsize>(chunk.extent.encoded_bytes))) {
      return Status(Code::io_error, "chunk " + box_text(box) + " cannot be read");
    }
    const std::uint64_t all = (std::uint64_t{1} << dataset.file.storage.filters.size()) - 1;
    Result<Buffer> decoded = (chunk.filter_mask & all) == all
                                 ? Result<Buffer>(std::move(encoded.buffer))
                                 : variable.own_codec->decode(std::move(encoded));
    if (!decoded.ok()) return decoded.status().within("chunk " + box_text(box));
    if (decoded->n_bytes() != raw_bytes) {
      return Status(Code::codec_failed, "chunk " + box_text(box) + " decodes to " +
                                            std::to_string(decoded->n_bytes()) +
                                            " bytes, must be " + std::to_string(raw_bytes));
    }
    gather_part(part, box, decoded->data(), slab, values.data(), element);
  }
  return Status();
}

Result<std::vector<std::string>> NetcdfArrayFile::get_texts(std::size_t v, const Slab& slab) {
  TAILRACE_TRY(check_get(v, slab, slab.n_elements()));
  if (variables_[v].type != ModelType::text) {
    return Status(Code::unsupported, quoted(v) + " does not hold texts");
  }
  std::vector<std::string> texts(slab.n_elements());
  if (variables_[v].in_file() && !(writable_ && !in_place_)) {
    const Result<Reader*> fresh = fresh_reader();
    if (!fresh.ok()) return fresh.status();
    Reader* const reader = *fresh;
    const Result<std::size_t> dataset = reader->find(file_paths_[v]);
    if (!dataset.ok()) return dataset.status();
    const SlabPart part = part_within(slab, whole_box(reader->datasets()[*dataset].shape()));
    if (!part.slab.empty()) {
      Result<std::vector<std::string>> there = reader->read_texts(*dataset, part.slab);
      if (!there.ok()) return there.status();
      place_texts(part.slab, *there, slab, texts);
    }
  }
  for (const StagedTexts& staged : variables_[v].texts) {
    place_texts(staged.slab, staged.texts, slab, texts);
  }
  return texts;
}

/// Put the texts of `from` that `to` wants where they belong.
void NetcdfArrayFile::place_texts(const Slab& from, const std::vector<std::string>& texts,
                                  const Slab& to, std::vector<std::string>& target) {
  std::size_t i = 0;
  for_each_position(box_of(from), [&](const Shape& at) {
    const std::string& text = texts[i++];
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const std::uint64_t position = from.start[d] + at[d] * from.stride_of(d);
      if (position < to.start[d]) return;
      const std::uint64_t steps = position - to.start[d];
      if (steps % to.stride_of(d) != 0 || steps / to.stride_of(d) >= to.count[d]) return;
      index = index * to.count[d] + steps / to.stride_of(d);
    }
    target[index] = text;
  });
}

}  // namespace tailrace
