// Publishing a step: from the ranks' lists of written chunks to a committed file. Rank 0's work.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "exec/field_plan.hpp"
#include "field/field_state.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace {

/// An attribute that the application set and that is not in the file yet.
struct PendingAttribute {
  std::string object_path;
  std::string name;
  AttributeValue value;
};

/// A text that is equal on two ranks exactly if they set the same attribute.
std::string attribute_text(const PendingAttribute& attribute);

/// Bring all ranks' written chunks to rank 0, per plan, sorted by chunk index; empty elsewhere.
/// Collective. Cost: O(chunks of the step) time and memory at rank 0, O(own chunks) elsewhere.
std::vector<std::vector<WrittenChunk>> gather_written(Comm& comm,
                                                      const std::vector<WrittenChunk>& mine,
                                                      std::size_t n_plans);

/// All ranks' written chunks as they have come in: to be put in order by who has the time for it,
/// since all ranks wait for rank 0's answer.
class GatheredChunks {
 public:
  explicit GatheredChunks(std::size_t n_plans) : n_plans_(n_plans) {}
  /// A rank's message, with its chunks from `first_byte` on.
  void add(Bytes message, std::size_t first_byte);
  /// Per plan, sorted by chunk index. Once. Cost: O(chunks log chunks). Any thread.
  std::vector<std::vector<WrittenChunk>> take_sorted();

 private:
  struct Part {
    Bytes message;
    std::size_t first_byte;
  };
  std::size_t n_plans_;
  std::vector<Part> parts_;
};

/// What all ranks bring to the end of a step, and what comes of it.
struct StepEnd {
  Status own;                             ///< What kept this rank from doing its part.
  RankNumbers& numbers;                   ///< This rank's; all ranks' afterwards, if none failed.
  RankNumbers& numbers_of_root;           ///< Rank 0's, as publishing has left them.
  std::span<const WrittenChunk> written;  ///< By this rank, of `n_plans` fields.
  std::size_t n_plans = 0;
  bool published = false;  ///< Rank 0 has tried: nobody had failed before.
};

/// Publish a step: every rank's failure, numbers and chunks go to rank 0; if none has failed, it
/// calls `publish` with all chunks, the numbers being all ranks'; what came of it, and the numbers,
/// go to all. Collective; the same Status on every rank: of the
/// lowest rank that failed. Cost: a gather of 40 bytes a chunk and 8 a number, and a broadcast.
Status publish_together(Comm& comm, StepEnd& end,
                        const std::function<Status(GatheredChunks&& chunks)>& publish);

/// Chunks as the index of a dataset takes them whose entries before have `n_before` chunks.
std::vector<Hdf5File::ChunkRecord> chunk_records(std::span<const WrittenChunk> chunks,
                                                 std::uint64_t n_before = 0);

/// The attributes by which a dataset says how it was encoded (docs/format.md), as `notes` has them:
/// under `one` an exact dataset has none, and no dataset what the file's own attribute says.
std::vector<NamedAttribute> provenance(const FieldDefinition& definition,
                                       const ResolvedField& resolved, double max_error,
                                       Notes notes);

/// What new datasets of a file say: as attributes=`asked` has it. Under `one` a new file gets the
/// attribute that tells of all others; in a file of others, which had it not when it was opened,
/// that would speak for theirs: there new datasets say `all`. Rank 0 only.
class NotesOfFile {
 public:
  /// Before the first datasets are made in `file`, and later. @param opened  it was there before.
  Notes settle(Hdf5File& file, Notes asked, bool opened);
  /// Let the file tell of its datasets, unless it does so already. @error internal
  Status tell(Hdf5File& file, Notes settled) const;

 private:
  bool of_others_ = false;
};

/// That of the largest error.
NamedAttribute max_error_attribute(double max_error);

/// What a step brings of one field's dataset, but for its chunks: created or grown, tailrace_*
/// attributes.
Hdf5File::DatasetUpdate update_of(const FieldState& field, Notes notes);
/// The chunks of it, sorted by chunk index, in a dataset whose entries before have `n_before`.
/// @param begun  the entry's chunks that are there already, sorted; empty: it is new.
void list_chunks(Hdf5File::DatasetUpdate& update, std::span<const WrittenChunk> chunks,
                 std::uint64_t n_before, std::span<const StoredChunk> begun);

/// Make the groups of new datasets, where these are many. Rank 0 only.
Status publish_groups(Hdf5File& file, std::span<const Hdf5File::DatasetUpdate> updates);

/// Set the application's attributes; groups that do not exist are created. Rank 0 only.
Status publish_attributes(Hdf5File& file, const std::vector<PendingAttribute>& attributes);

}  // namespace tailrace
