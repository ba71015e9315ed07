#include "array/rank_metadata.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/byte_stream.hpp"
#include "exec/comm_factory.hpp"
#include "trz/base/printable.hpp"

namespace tailrace {

void RankMetadata::preserve_at_root(FileOptions& options) {
  options.open_storage = [this, open = options.open_storage, direct_io = options.direct_io](
                             const std::string& path,
                             bool create) -> Result<std::unique_ptr<Storage>> {
    Result<std::unique_ptr<Storage>> storage =
        open ? open(path, create) : open_posix_storage(path, create, direct_io);
    if (!storage.ok()) return storage;
    auto preserving = std::make_unique<PreservingStorage>(std::move(*storage));
    preserving_ = preserving.get();
    return std::unique_ptr<Storage>(std::move(preserving));
  };
}

Status RankMetadata::start(const FileOptions& options, bool create,
                           std::vector<std::string> sharing) {
  opened_ = !create;
  sharing_ = std::move(sharing);
  if (opened_) {
    ByteWriter writer;
    for (const std::string& path : sharing_) writer.add_text(path);
    Bytes bytes = writer.take();
    comm_.broadcast(bytes, 0);
    sharing_.clear();
    for (ByteReader reader(bytes); !reader.at_end();) sharing_.push_back(reader.take_text());
  }
  if (opened_ && comm_.is_root()) {
    const Result<std::uint64_t> n_bytes = output_.storage().file_bytes();
    opened_bytes_ = n_bytes.ok() ? *n_bytes : UINT64_MAX;
  }
  return comm_.agree(comm_.is_root() ? Status()
                                     : local_part([&] { return start_private(options); }));
}

/// Create or open the file in which this rank repeats rank 0's metadata changes.
Status RankMetadata::start_private(const FileOptions& options) {
  const Hdf5File::Allocate allocate = [this](std::uint64_t n_bytes) {
    return std::exchange(private_end_, private_end_ + n_bytes);
  };
  Hdf5File::Settings settings = metadata_settings(options);
  settings.journal = false;
  if (!opened_) {
    private_storage_ = make_private_storage(output_.temporary_path());
    TAILRACE_TAKE(private_file_, Hdf5File::create(*private_storage_, allocate, settings));
    return Status();
  }
  TAILRACE_TAKE(private_storage_, open_private_storage(output_.path()));
  std::uint64_t end = 0;
  TAILRACE_TAKE(private_file_, Hdf5File::open(*private_storage_, allocate, settings, end));
  private_end_ = end;
  return Status();
}

bool RankMetadata::shares_chunks(const std::string& path) const {
  return std::ranges::find(sharing_, path) != sharing_.end();
}

Status RankMetadata::commit_at_root() {
  if (preserving_ != nullptr) preserving_->remember(opened_bytes_);
  const Status committed = output_.commit_at_root();
  if (preserving_ != nullptr) preserved_ = preserving_->take();
  return committed;
}

void RankMetadata::share_preserved() {
  if (!opened_) return;
  ByteWriter writer;
  const DirtyBytes preserved = std::exchange(preserved_, {});
  for (const auto& [address, segment] : preserved.segments()) {
    writer.add(address);
    writer.add(static_cast<std::uint64_t>(segment.bytes.size()));
    writer.add_bytes(segment.bytes);
  }
  Bytes bytes = writer.take();
  comm_.broadcast(bytes, 0);
  if (comm_.is_root()) return;
  ByteReader reader(bytes);
  while (!reader.at_end()) {
    const auto address = reader.take<std::uint64_t>();
    private_storage_->preserve(address, reader.take_bytes(reader.take<std::uint64_t>()));
  }
}

// --- AttributeNotes

void AttributeNotes::add(const std::string& object, std::string_view name) {
  constexpr std::size_t kMostNotes = 10000;
  std::string text = "attribute \"" + printable(std::string(name)) + "\" of " + printable(object);
  hash_ += std::hash<std::string>()(text) | 1;
  if (texts_.size() < kMostNotes) texts_.push_back(std::move(text));
}

void AttributeNotes::add_to(RankNumbers& along) {
  least_ = hash_;
  least_complement_ = ~hash_;
  along.add(Reduction::min, least_, least_complement_);
}

std::string AttributeNotes::compare(Comm& comm) {
  std::string text;
  const Status mine = local_part([&] {
    std::ranges::sort(texts_);
    for (const std::string& one : texts_) text += one + "\n";
    return Status();
  });
  texts_.clear();
  hash_ = 0;
  const Status alike = agree_on_text(comm, "created attributes", text, mine);
  return alike.ok() ? "" : alike.message() + "; the file has those of rank 0";
}

}  // namespace tailrace
