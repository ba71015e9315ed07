// NetcdfArrayFile: implementation of ArrayFile by netCDF's data model; it writes all metadata
// itself. array_file.cpp implements its calls, opening and reading; array_prepare.cpp the decisions
// at a variable's first flush; array_flush.cpp its part of a flush.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/array_engine.hpp"
#include "model/machine_profile.hpp"
#include "netcdf/netcdf_model.hpp"
#include "output/publish_fields.hpp"
#include "read/read.hpp"

namespace tailrace {

class NetcdfArrayFile final : public ArrayFile, private ArrayEngine {
 public:
  NetcdfArrayFile(std::unique_ptr<Comm> comm, std::string path, const ArrayFileOptions& options)
      : ArrayEngine(std::move(comm), std::move(path), options) {}
  ~NetcdfArrayFile() override;
  Status start_create();
  Status start_open(Access access);

  const NetcdfModel& model() const override { return model_; }
  std::string remark() const override { return output_.remark(); }
  std::string closing_remark() const override { return closing_remark_; }
  std::vector<std::string> take_remarks() override { return std::exchange(remarks_, {}); }
  Status change_model(const NetcdfModel& next) override;
  Status set_variable_options(std::size_t variable, const std::string& options) override;
  Result<bool> try_variable(const NetcdfModel& next, const std::string& options) override;
  Result<bool> may_lose(std::size_t variable) const override;
  Status set_codec(std::size_t variable, std::shared_ptr<const Codec> codec) override;
  Status put(std::size_t variable, const Slab& slab, std::span<const std::byte> values) override;
  Status put_runs(std::size_t variable, const ElementRuns& runs,
                  std::span<const std::byte> values) override;
  Status get(std::size_t variable, const Slab& slab, std::span<std::byte> values) override;
  Status get_all(std::span<const ReadRequest> requests) override;
  Result<std::vector<std::string>> get_texts(std::size_t variable, const Slab& slab) override;
  Status put_texts(std::size_t variable, const Slab& slab,
                   std::span<const std::string> texts) override;
  Status settle() override;
  Status flush() override;
  Status sync_to_read() override;
  Status close() override;
  Status abort() override;
  const ArrayFileReport& report() const override { return report_; }
  Comm& comm() override { return *comm_; }
  bool writable() const override { return writable_; }
  bool in_place() const override { return !writable_ || output_.in_place(); }
  const std::string& path() const override { return path_; }

 private:
  // array_file.cpp
  Status check_mode() const;
  Status check_variable(std::size_t variable) const;
  Status check_put(std::size_t variable, const Slab& slab, std::uint64_t n_elements) const;
  Result<Slab> check_runs(std::size_t variable, const ElementRuns& runs,
                          std::uint64_t n_given) const;
  void grow(std::size_t variable, const Slab& slab);
  /// Variable that stages the values of a dataset with several names: the first of these.
  std::size_t first_name(std::size_t variable) const {
    return variable < first_names_.size() ? first_names_[variable] : variable;
  }
  void add_to_meeting(RankNumbers& along) override;
  std::size_t first_unlimited() const;  ///< Its number; the number of dimensions if none is.
  /// Reduce over all ranks: the lengths of unlimited dimensions, whether a rank has staged more
  /// than its cap, and `more` (by maximum). Collective: one allreduce.
  void agree_on_lengths(std::span<std::uint64_t> more);
  /// Agree on the variables that have staged values on any rank; includes agree_on_lengths().
  /// Collective: one allreduce.
  std::vector<bool> agree_on_staged();
  Status take_model(const NetcdfModel& next);
  void share_paths();
  std::string quoted(std::size_t variable) const override;
  Status finish(bool commit);
  Status adopt(std::size_t variable);
  void note_first_names();
  Status load_places(const ArrayFlush& flush) override;
  Result<std::vector<StoredChunk>> stored_chunks(std::size_t variable, const ChunkGrid& grid);
  Status make_existing_codec(std::size_t variable);
  Status continue_own(std::size_t variable);
  bool continue_lossy(std::size_t variable);
  Status read_file(std::size_t variable, const Slab& slab, std::span<std::byte> values);
  Status check_get(std::size_t variable, const Slab& slab, std::uint64_t n_given) const;
  Result<Reader*> fresh_reader();
  Status read_by_own_codec(const StoredDataset& dataset, std::size_t variable, const Slab& slab,
                           std::span<std::byte> values);
  void prepare_publish() override;
  Status open_shared_reader();
  static void place_texts(const Slab& from, const std::vector<std::string>& texts, const Slab& to,
                          std::vector<std::string>& target);

  // array_prepare.cpp
  Status prepare_new(ArrayFlush& flush) override;
  FieldDefinition define(std::size_t variable, const Shape& shape) const;
  /// @param own_options  options of the variable itself.
  Result<FieldDefinition> define_new(std::size_t variable, const CoordinateNames& listed,
                                     const std::vector<std::string>& own_options) const;
  Status choose_shape(std::size_t variable, const DecompositionFacts& facts,
                      FieldState& field) const;
  Status check_memory(const FieldPlan& plan) const;
  Status try_options(std::size_t variable, const std::vector<std::string>& own_options) const;
  Status leave_out_refused(ArrayFlush& flush, const std::vector<Status>& mine,
                           std::vector<std::size_t>& variables, std::vector<FieldState>& fields);
  Status choose_codecs(std::vector<FieldState>& fields, std::vector<Status>& prepared);

  // array_flush.cpp
  Shape shape_of(std::size_t variable) const override {
    return model_.shape_of(model_.variables[variable]);
  }
  Shape committed_shape_of(std::size_t variable) const override;
  Status publish_at_root(ArrayFlush& flush, const std::vector<std::vector<WrittenChunk>>& chunks,
                         const std::vector<Bytes>& plain) override;
  std::vector<bool> definable() const override;
  void published(const ArrayFlush& flush) override;
  Shape text_chunk_shape(std::size_t variable) const;
  Status write_plain_at_root(const std::vector<Bytes>& plain);
  Bytes pack_plain(const ArrayFlush& flush) const override;
  Status create_at_root(std::size_t variable);

  std::unique_ptr<NetcdfLayout> layout_;  ///< Rank 0 only.
  NetcdfModel model_;
  /// Numbers of this rank; after a meeting, the maximum over all ranks.
  struct Meeting {
    std::uint64_t short_of_memory = 0;
    std::uint64_t length = 0;  ///< Length of the first unlimited dimension.
  } meeting_;
  std::vector<std::size_t> first_names_;  ///< Indexed by variable of the opened file.
  bool has_further_names_ = false;        ///< A dataset has several names.
  Shape file_lengths_;                    ///< Lengths of all dimensions, at the last flush.
  NotesOfFile notes_of_file_;             ///< Rank 0 only.
  std::vector<std::string> paths_;        ///< Paths of the variables' datasets.
  std::vector<std::string> file_paths_;   ///< Paths at the last flush, before later renames.
  std::optional<MachineProfile> profile_;
  // Readers that see the last flush, opened on first use.
  std::unique_ptr<Reader> reader_;        ///< Shared by all ranks.
  std::unique_ptr<Reader> local_reader_;  ///< Used for independent reads of this rank.
};

}  // namespace tailrace
