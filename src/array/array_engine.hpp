// NetcdfArrayFile: the one implementation of ArrayFile. array_file.cpp holds its calls, opening and
// reading; array_flush.cpp the story of a flush.
//
// Invariant 4: HDF5 metadata is touched by rank 0 only. What it does between two commits is not
// visible; if it fails, the file stays at its last flush and refuses all further work.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array/array_file.hpp"
#include "array/array_patches.hpp"
#include "array/array_staging.hpp"
#include "array/array_variable.hpp"
#include "exec/executor.hpp"
#include "model/machine_profile.hpp"
#include "output/output.hpp"

namespace tailrace {

/// All that belongs to one flush.
struct ArrayFlush {
  std::vector<std::size_t> variables;  ///< With staged values on some rank; the same everywhere.
  std::vector<std::size_t> created;    ///< Of these, and at the end of all: without a dataset.
  bool hold_back = false;
  // Parallel to each other: the variables that are stored in chunks.
  std::vector<std::size_t> chunked;
  std::vector<PatchedField> fields;
  std::vector<std::unique_ptr<PatchedChunks>> patches;
  std::vector<FieldPlan> plans;
  std::vector<StagingLog> rest;  ///< What is held back; empty: nothing.
  PatchOwnership settled;
  ExecutorReport done;
  std::vector<bool> larger_error;   ///< Than any flush of the variable has had before.
  std::vector<WrittenChunk> moved;  ///< Chunks that HDF5 put elsewhere; the same everywhere.
  bool closing = false;
};

class NetcdfArrayFile final : public ArrayFile {
 public:
  NetcdfArrayFile(std::unique_ptr<Comm> comm, std::string path, const ArrayFileOptions& options);
  ~NetcdfArrayFile() override;
  Status start_create();
  Status start_open(Access access);

  const NetcdfModel& model() const override { return model_; }
  std::string remark() const override { return output_.remark(); }
  Status change_model(const NetcdfModel& next) override;
  Status set_variable_options(std::size_t variable, const std::string& options) override;
  Status set_codec(std::size_t variable, std::shared_ptr<const Codec> codec) override;
  Status put(std::size_t variable, const Slab& slab, std::span<const std::byte> values) override;
  Status get(std::size_t variable, const Slab& slab, std::span<std::byte> values) override;
  Status get_all(std::span<const ReadRequest> requests) override;
  Result<std::vector<std::string>> get_texts(std::size_t variable, const Slab& slab) override;
  Status put_texts(std::size_t variable, const Slab& slab,
                   std::span<const std::string> texts) override;
  Status settle() override;
  Status flush() override;
  Status close() override;
  Status abort() override;
  const ArrayFileReport& report() const override { return report_; }
  Comm& comm() override { return *comm_; }
  bool writable() const override { return writable_; }
  const std::string& path() const override { return path_; }

 private:
  // array_file.cpp
  Status agree_on_options();
  Status check_variable(std::size_t variable) const;
  Status check_writable() const;
  Status check_open() const;
  Status note(const Status& failure);
  Status check_put(std::size_t variable, const Slab& slab, std::uint64_t n_elements) const;
  void grow(std::size_t variable, const Slab& slab);
  Status begin_collective();
  std::vector<bool> agree_on_staged(bool& over_cap);
  Status take_model(const NetcdfModel& next);
  void share_paths();
  std::string quoted(std::size_t variable) const;
  double now_s() const;
  Status finish(bool commit);
  Status adopt(std::size_t variable);
  Status load_places(const ArrayFlush& flush);
  Status make_existing_codec(std::size_t variable);
  bool continue_lossy(std::size_t variable);
  Status read_file(std::size_t variable, const Slab& slab, std::span<std::byte> values);
  Status check_get(std::size_t variable, const Slab& slab, std::uint64_t n_given) const;
  Result<Reader*> fresh_reader();
  Status read_by_own_codec(const StoredDataset& dataset, std::size_t variable, const Slab& slab,
                           std::span<std::byte> values);
  void drop_readers();
  Status open_shared_reader();
  static void place_texts(const Slab& from, const std::vector<std::string>& texts, const Slab& to,
                          std::vector<std::string>& target);

  // array_flush.cpp
  Status flush_variables(const std::vector<bool>& staged, bool hold_back, bool closing);
  Status write_variables(ArrayFlush& flush);
  Status settle_chunks(ArrayFlush& flush);
  Status settle_owners(ArrayFlush& flush, bool hold_back);
  Status encode_chunks(ArrayFlush& flush);
  FieldPlan plan_of(std::size_t variable, PatchedChunks& patches) const;
  std::vector<JobForecast> forecasts_of(const ArrayFlush& flush) const;
  void forget_staged(ArrayFlush& flush);
  Status stage_rest(ArrayFlush& flush);
  void add_up(const ArrayFlush& flush, std::uint64_t lost_bytes, double seconds);
  std::uint64_t n_threads() const;
  Status prepare_new(ArrayFlush& flush);
  FieldDefinition define(std::size_t variable, const Shape& shape) const;
  Result<FieldDefinition> define_new(std::size_t variable) const;
  Status choose_shapes(const std::vector<std::size_t>& variables, std::vector<FieldState>& fields);
  Status choose_codecs(std::vector<FieldState>& fields);
  Status write_plain(ArrayFlush& flush);
  Status write_contiguous(std::size_t variable, std::uint32_t epoch);
  std::uint64_t next_epoch(const ArrayFlush& flush, std::uint64_t least);
  Status publish(ArrayFlush& flush);
  void share_errors(ArrayFlush& flush);
  Status publish_at_root(ArrayFlush& flush, const std::vector<std::vector<WrittenChunk>>& chunks,
                         const std::vector<Bytes>& texts, const std::vector<Bytes>& values);
  Shape text_chunk_shape(std::size_t variable) const;
  void take_moves(ArrayFlush& flush);
  Status write_texts_at_root(const Bytes& of_rank);
  Status write_values_at_root(const Bytes& of_rank);
  Bytes pack_values(const ArrayFlush& flush) const;
  Status create_at_root(std::size_t variable);

  std::unique_ptr<Comm> comm_;
  std::string path_;
  ArrayFileOptions options_;
  std::chrono::steady_clock::time_point born_ = std::chrono::steady_clock::now();
  Output output_;
  std::unique_ptr<NetcdfLayout> layout_;  ///< Rank 0 only.
  NetcdfModel model_;
  Shape file_lengths_;          ///< Of all dimensions, at the last flush.
  bool model_changed_ = false;  ///< Since the last flush; the same on every rank.
  StagingMemory memory_;
  std::vector<ArrayVariable> variables_;
  std::vector<std::string> paths_;       ///< Of their datasets.
  std::vector<std::string> file_paths_;  ///< As of the last flush: they may have been renamed.
  ChunkPlaces places_;
  std::optional<MachineProfile> profile_;
  ArrayFileReport report_;
  std::uint64_t put_bytes_ = 0;  ///< By this rank since the last flush.
  std::uint32_t epoch_ = 0;      ///< Collective calls so far: says which puts are later.
  Status put_status_;  ///< The first failed put of this rank since the last collective call.
  bool writable_ = false;
  bool closed_ = false;
  // Both know the last flush; each is made when it is first asked.
  std::unique_ptr<Reader> reader_;        ///< Of all ranks.
  std::unique_ptr<Reader> local_reader_;  ///< Of this rank alone, where it reads by itself.
};

}  // namespace tailrace
