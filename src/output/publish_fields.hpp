// Publishing a step, on rank 0: from the ranks' lists of written chunks to a committed file.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "exec/field_plan.hpp"
#include "field/field_state.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace {

/// Attribute that the application set and that is not in the file yet.
struct PendingAttribute {
  std::string object_path;
  std::string name;
  AttributeValue value;
};

/// Text that is equal on two ranks exactly if they set the same attribute.
std::string attribute_text(const PendingAttribute& attribute);

/// Gather all ranks' written chunks on rank 0, per plan, sorted by chunk index; empty elsewhere.
/// Collective. Cost: O(chunks of the step) time and memory at rank 0, O(own chunks) elsewhere.
std::vector<std::vector<WrittenChunk>> gather_written(Comm& comm,
                                                      const std::vector<WrittenChunk>& mine,
                                                      std::size_t n_plans);

/// Written chunks of all ranks, in order of arrival. Sorting is left to an idle thread, since all
/// ranks wait for rank 0's answer.
class GatheredChunks {
 public:
  explicit GatheredChunks(std::size_t n_plans) : n_plans_(n_plans) {}
  /// Add a rank's message, which contains its chunks from `first_byte` on.
  void add(Bytes message, std::size_t first_byte);
  /// Sort by plan and chunk index. Call once. Cost: O(chunks log chunks). Any thread.
  std::vector<std::vector<WrittenChunk>> take_sorted();

 private:
  struct Part {
    Bytes message;
    std::size_t first_byte;
  };
  std::size_t n_plans_;
  std::vector<Part> parts_;
};

/// Input of all ranks to the end of a step, and its result.
struct StepEnd {
  Status own;            ///< The failure of this rank's part, or ok.
  RankNumbers& numbers;  ///< This rank's numbers; reduced over all ranks afterwards, if none
                         ///< failed.
  RankNumbers& numbers_of_root;           ///< Rank 0's numbers, after publishing.
  std::span<const WrittenChunk> written;  ///< Chunks of `n_plans` fields that this rank wrote.
  std::size_t n_plans = 0;
  bool published = false;  ///< True if rank 0 has tried: no rank had failed before.
};

/// Publish a step: gather every rank's failure, numbers and chunks on rank 0. If no rank has
/// failed, rank 0 reduces the numbers and calls `publish` with all chunks. The outcome and the
/// numbers are broadcast. Collective; the same Status on every rank: that of the lowest rank that
/// failed. Cost: a gather of 40 bytes a chunk and 8 a number, and a broadcast.
Status publish_together(Comm& comm, StepEnd& end,
                        const std::function<Status(GatheredChunks&& chunks)>& publish);

/// Index records of the chunks for a dataset whose earlier entries have `n_before` chunks.
std::vector<Hdf5File::ChunkRecord> chunk_records(std::span<const WrittenChunk> chunks,
                                                 std::uint64_t n_before = 0);

/// Attributes that record a dataset's encoding (docs/format.md), as far as `notes` asks for. Under
/// `one` an exact dataset has none, and a lossy one omits those that the file's attribute states.
std::vector<NamedAttribute> provenance(const FieldDefinition& definition,
                                       const ResolvedField& resolved, double max_error,
                                       Notes notes);

/// Choice of the attributes of new datasets, from the option attributes= (`requested`). Under `one`
/// a new file with lossy datasets gets one attribute that describes all others. A file that was
/// opened without this attribute may have datasets that it would misdescribe: it never gets it, and
/// its new lossy datasets get `all`. Rank 0 only.
class NotesOfFile {
 public:
  /// Choose for lossy datasets, before the first ones of `file` are made, and again for later ones.
  /// Other datasets get what is requested.
  /// @param opened  the file existed before.
  Notes choose(Hdf5File& file, Notes requested, bool opened);
  /// Set the attribute of the file, unless it has one. For files with lossy datasets.
  /// @error internal
  Status write_file_note(Hdf5File& file, Notes chosen) const;

 private:
  bool of_others_ = false;
};

/// Attribute of the largest error.
NamedAttribute max_error_attribute(double max_error);

/// Changes of one field's dataset in a step, without its chunks: created or grown, tailrace_*
/// attributes.
Hdf5File::DatasetUpdate update_of(const FieldState& field, Notes notes);
/// Add the chunks to the update, sorted by chunk index, for a dataset whose earlier entries have
/// `n_before` chunks.
/// @param begun  chunks of the entry that the file already has, sorted; empty: the entry is new.
void list_chunks(Hdf5File::DatasetUpdate& update, std::span<const WrittenChunk> chunks,
                 std::uint64_t n_before, std::span<const StoredChunk> begun);

/// Make the groups of new datasets, if these are many. Rank 0 only.
Status publish_groups(Hdf5File& file, std::span<const Hdf5File::DatasetUpdate> updates);

/// Set the application's attributes; groups that do not exist are created. Rank 0 only.
Status publish_attributes(Hdf5File& file, const std::vector<PendingAttribute>& attributes);

}  // namespace tailrace
