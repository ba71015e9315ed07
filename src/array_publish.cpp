// Publishing a flush: from the ranks' lists of written chunks to a committed file.

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "array_engine.hpp"
#include "container/dataset_values.hpp"
#include "core/byte_stream.hpp"
#include "write_publish.hpp"

namespace tailrace {
namespace {

/// Everybody's texts at rank 0, by variable, in rank order.
Bytes pack_texts(const std::vector<ArrayVariable>& variables,
                 const std::vector<std::size_t>& flushed) {
  ByteWriter writer;
  for (const std::size_t v : flushed) {
    for (const StagedTexts& staged : variables[v].texts) {
      writer.add(static_cast<std::uint64_t>(v));
      writer.add(staged.slab.start);
      writer.add(staged.slab.count);
      writer.add(staged.slab.stride);
      for (const std::string& text : staged.texts) writer.add_text(text);
    }
  }
  return writer.take();
}

Slab take_slab(ByteReader& reader) {
  Slab slab;
  slab.start = reader.take_shape();
  slab.count = reader.take_shape();
  slab.stride = reader.take_shape();
  return slab;
}

}  // namespace

/// The largest errors that were measured, over all ranks. Collective if anything was verified.
void NetcdfArrayFile::share_errors(ArrayFlush& flush) {
  std::vector<double> errors;
  bool verified = false;
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    errors.push_back(flush.done.tallies[f].max_error);
    verified = verified || variables_[flush.chunked[f]].field.verify;
  }
  flush.larger_error.assign(flush.chunked.size(), false);
  if (!verified) return;
  comm_->allreduce(std::span<double>(errors), Reduction::max);
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    FieldState& field = variables_[flush.chunked[f]].field;
    flush.larger_error[f] = field.verify && errors[f] > field.max_error;
    field.max_error = std::max(field.max_error, errors[f]);
  }
}

/// Rank 0 brings the file's metadata up to date and commits; the others hear how it went, and which
/// chunks HDF5 has put elsewhere.
Status NetcdfArrayFile::publish(ArrayFlush& flush) {
  drop_readers();
  share_errors(flush);
  // What stays where it is stands in the index already.
  std::vector<WrittenChunk> fresh;
  for (const WrittenChunk& chunk : flush.done.written) {
    const PatchedChunks& patches = *flush.patches[static_cast<std::size_t>(chunk.field)];
    if (!patches.stays_in_place(chunk.chunk_index)) fresh.push_back(chunk);
  }
  const auto chunks = gather_written(*comm_, fresh, flush.chunked.size());
  const Bytes texts = pack_texts(variables_, flush.variables);
  const std::vector<Bytes> all_texts = comm_->gather(texts, 0);
  const std::vector<Bytes> all_values = comm_->gather(pack_values(flush), 0);
  Status mine;
  if (comm_->is_root()) {
    mine = publish_at_root(flush, chunks, all_texts, all_values);
  }
  TAILRACE_TRY(comm_->agree(mine));
  in_place_ = true;
  model_changed_ = false;
  file_paths_ = paths_;
  file_lengths_.clear();
  for (const ModelDimension& dimension : model_.dimensions) {
    file_lengths_.push_back(dimension.length);
  }
  take_moves(flush);
  return Status();
}

Status NetcdfArrayFile::publish_at_root(ArrayFlush& flush,
                                        const std::vector<std::vector<WrittenChunk>>& chunks,
                                        const std::vector<Bytes>& texts,
                                        const std::vector<Bytes>& values) {
  Hdf5File& file = *output_.file;
  TAILRACE_TRY(layout_->change(model_));
  for (const std::size_t v : flush.created) TAILRACE_TRY(create_at_root(v));
  for (std::size_t f = 0; f < flush.chunked.size(); ++f) {
    std::vector<Hdf5File::ChunkRecord> records;
    records.reserve(chunks[f].size());
    for (const WrittenChunk& chunk : chunks[f]) {
      records.push_back({chunk.chunk_index,
                         {chunk.address, chunk.encoded_bytes},
                         static_cast<std::uint32_t>(chunk.filter_mask)});
    }
    const ArrayVariable& variable = variables_[flush.chunked[f]];
    if (flush.larger_error[f] && variable.tells_max_error) {
      TAILRACE_TRY(publish_max_error(file, variable.field));
    }
    if (records.empty()) continue;
    TAILRACE_TRY(file.insert_chunks(paths_[flush.chunked[f]], records));
    for (const Hdf5File::ChunkRecord& moved : file.take_moved_chunks()) {
      flush.moved.push_back({f, moved.chunk_index, moved.extent.address, moved.extent.encoded_bytes,
                             moved.filter_mask});
    }
  }
  for (const Bytes& of_rank : texts) TAILRACE_TRY(write_texts_at_root(of_rank));
  for (const Bytes& of_rank : values) TAILRACE_TRY(write_values_at_root(of_rank));
  TAILRACE_TRY(layout_->settle());
  TAILRACE_TRY(file.commit());
  if (in_place_) return Status();
  return move_in_place(path_, options_.file.sync);
}

Status NetcdfArrayFile::create_at_root(std::size_t v) {
  const ArrayVariable& variable = variables_[v];
  ModelStorage storage;
  if (variable.storage == ArrayStorage::chunked) {
    storage.chunk_shape = variable.field.chunk_shape;
    storage.filters = variable.field.codec->filters();
  } else if (variable.storage == ArrayStorage::contiguous) {
    storage.contiguous_address = variable.address;
  } else {
    storage.chunk_shape = text_chunk_shape(v);
  }
  TAILRACE_TRY(layout_->create_variable(v, storage));
  if (variable.storage != ArrayStorage::chunked) return Status();
  return publish_provenance(*output_.file, variable.field);
}

/// Texts that grow are chunked as HDF5 likes them: some 64 KiB of pointers.
Shape NetcdfArrayFile::text_chunk_shape(std::size_t v) const {
  constexpr std::uint64_t kMostTexts = 4096;
  const ArrayVariable& variable = variables_[v];
  const bool grows =
      std::find(variable.growing.begin(), variable.growing.end(), true) != variable.growing.end();
  if (!grows) return {};
  Shape chunk = model_.shape_of(model_.variables[v]);
  std::uint64_t n = 1;
  for (std::size_t d = chunk.size(); d-- > 0;) {
    chunk[d] = variable.growing[d] ? 1 : std::clamp<std::uint64_t>(chunk[d], 1, kMostTexts / n);
    n = std::min(n * chunk[d], kMostTexts);
  }
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (!variable.growing[d]) continue;
    chunk[d] = std::max<std::uint64_t>(kMostTexts / n / 16, 1);
    break;
  }
  return chunk;
}

/// The homes must know where chunks really are.
void NetcdfArrayFile::take_moves(ArrayFlush& flush) {
  std::uint64_t n_moved = flush.moved.size();
  comm_->allreduce(std::span<std::uint64_t>(&n_moved, 1), Reduction::max);
  if (n_moved == 0) return;
  ByteWriter writer;
  for (const WrittenChunk& moved : flush.moved) writer.add(moved);
  Bytes bytes = writer.take();
  comm_->broadcast(bytes, 0);
  std::map<ChunkKey, std::uint64_t> addresses;
  ByteReader reader(bytes);
  while (!reader.at_end()) {
    const auto moved = reader.take<WrittenChunk>();
    addresses[{static_cast<std::size_t>(moved.field), moved.chunk_index}] = moved.address;
  }
  for (WrittenChunk& chunk : flush.done.written) {
    const auto found = addresses.find({static_cast<std::size_t>(chunk.field), chunk.chunk_index});
    if (found != addresses.end()) chunk.address = found->second;
  }
}

// --- what only HDF5 can write

Status NetcdfArrayFile::write_texts_at_root(const Bytes& of_rank) {
  ByteReader reader(of_rank);
  while (!reader.at_end()) {
    const auto v = static_cast<std::size_t>(reader.take<std::uint64_t>());
    const Slab slab = take_slab(reader);
    std::vector<std::string> texts(slab.n_elements());
    for (std::string& text : texts) text = reader.take_text();
    TAILRACE_TRY(write_dataset_texts(output_.file->hdf5_id(), paths_[v], slab, texts));
  }
  return Status();
}

/// This rank's staged values of variables that rank 0 writes.
Bytes NetcdfArrayFile::pack_values(const ArrayFlush& flush) const {
  ByteWriter writer;
  for (const std::size_t v : flush.variables) {
    const ArrayVariable& variable = variables_[v];
    if (variable.storage != ArrayStorage::by_hdf5) continue;
    for (std::size_t e = 0; e < variable.log.n_entries(); ++e) {
      const Slab slab = variable.log.slab(e);
      const std::size_t n_bytes = slab.n_elements() * variable.log.element_bytes();
      writer.add(static_cast<std::uint64_t>(v));
      writer.add(slab.start);
      writer.add(slab.count);
      writer.add(slab.stride);
      std::memcpy(writer.extend(n_bytes), variable.log.values(e), n_bytes);
    }
  }
  return writer.take();
}

Status NetcdfArrayFile::write_values_at_root(const Bytes& of_rank) {
  ByteReader reader(of_rank);
  while (!reader.at_end()) {
    const auto v = static_cast<std::size_t>(reader.take<std::uint64_t>());
    const Slab slab = take_slab(reader);
    const ArrayVariable& variable = variables_[v];
    const auto values = reader.take_bytes(slab.n_elements() * variable.log.element_bytes());
    TAILRACE_TRY(write_dataset_values(output_.file->hdf5_id(), paths_[v], slab,
                                      *array_dtype(variable.type),
                                      variable.type == ModelType::text_char, values));
  }
  return Status();
}

}  // namespace tailrace
