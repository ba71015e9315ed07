// The ideal: every rank encodes and writes independently and concurrently, to a separate file.
//
// It has encode threads and one write thread per rank, like Tailrace, with the same codec and the
// same chunks in the same order. But it has no container, no shared file and no agreement. Its
// output is useless; it measures how fast this codec and this storage can be with perfect overlap.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

#include "core/storage.hpp"
#include "exec/lane_clock.hpp"
#include "method.hpp"

namespace tailrace::bench {
namespace {

struct IdealChunk {
  std::size_t field = 0;
  Box box;
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint32_t filter_mask = 0;
};

/// Run of one rank: its threads and their shared state.
class IdealRun {
 public:
  IdealRun(const BenchContext& context, const std::vector<std::unique_ptr<Codec>>& codecs,
           std::vector<IdealChunk>& chunks, Storage& storage)
      : context_(context), codecs_(codecs), chunks_(chunks), storage_(storage) {}

  /// Encode and write all chunks, and set the extents in `chunks`.
  Status run(RunDetails& details) {
    const double start_s = clock_.now_s();
    std::vector<std::thread> encoders;
    for (std::uint64_t i = 0; i < context_.options.n_threads; ++i) {
      encoders.emplace_back([this] { encode_chunks(); });
    }
    std::thread writer([this] { write_chunks(); });
    for (std::thread& encoder : encoders) encoder.join();
    {
      const std::scoped_lock lock(mutex_);
      all_encoded_ = true;
    }
    wake_.notify_one();
    writer.join();
    details.makespan_s = clock_.now_s() - start_s;
    const auto encode = encoding_.merged();
    const auto write = writing_.merged();
    details.encode_s = total_s(encode);
    details.write_s = total_s(write);
    details.longer_lane_s = std::max(details.encode_s, details.write_s);
    const double shorter_s = std::min(details.encode_s, details.write_s);
    details.hidden_share = shorter_s > 0 ? overlap_s(encode, write) / shorter_s : 1;
    details.n_writes = chunks_.size();
    return status_;
  }

 private:
  struct Encoded {
    std::size_t chunk = 0;
    Buffer bytes;
  };

  void encode_chunks() {
    while (true) {
      std::size_t next = 0;
      {
        const std::scoped_lock lock(mutex_);
        if (next_ == chunks_.size() || !status_.ok()) return;
        next = next_++;
      }
      const double start_s = clock_.now_s();
      IdealChunk& chunk = chunks_[next];
      const BenchField& field = context_.work.fields[chunk.field];
      Buffer values(field.chunk_bytes());
      Result<EncodedBytes> encoded = Status(Code::out_of_memory, "not enough memory for a chunk");
      if (values.allocated()) {
        copy_box(chunk.box, field.box, field.values.data(), chunk.box, values.data(),
                 dtype_bytes(field.dtype));
        encoded = codecs_[chunk.field]->encode(std::move(values));
      }
      encoding_.add(start_s, clock_.now_s());
      const std::scoped_lock lock(mutex_);
      if (!encoded.ok()) {
        status_ = encoded.status();
        return;
      }
      chunk.encoded_bytes = encoded->buffer.n_bytes();
      chunk.filter_mask = encoded->filter_mask;
      waiting_.push_back({next, std::move(encoded->buffer)});
      wake_.notify_one();
    }
  }

  void write_chunks() {
    std::uint64_t address = 0;
    while (true) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !waiting_.empty() || all_encoded_; });
      if (waiting_.empty()) return;
      const Encoded next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      const double start_s = clock_.now_s();
      const Status written = storage_.write_at(address, next.bytes.bytes());
      writing_.add(start_s, clock_.now_s());
      chunks_[next.chunk].address = address;
      address += next.bytes.n_bytes();
      if (!written.ok()) {
        lock.lock();
        status_ = written;
        return;
      }
    }
  }

  const BenchContext& context_;
  const std::vector<std::unique_ptr<Codec>>& codecs_;
  std::vector<IdealChunk>& chunks_;
  Storage& storage_;
  LaneClock clock_;
  BusyIntervals encoding_;
  BusyIntervals writing_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t next_ = 0;
  std::deque<Encoded> waiting_;
  bool all_encoded_ = false;
  Status status_;
};

class IdealMethod final : public Method {
 public:
  IdealMethod(const BenchContext& context, std::string name, std::string codec_name)
      : Method(std::move(name)), context_(context), codec_name_(std::move(codec_name)) {
    for (std::size_t f = 0; f < context.work.fields.size(); ++f) {
      const BenchField& field = context.work.fields[f];
      for_each_position(field.grid().touched(field.box), [&](const Shape& at) {
        IdealChunk chunk;
        chunk.field = f;
        chunk.box = field.grid().full_box(field.grid().index_of(at));
        chunks_.push_back(chunk);
      });
    }
  }

  bool has_lanes() const override { return true; }
  std::string codec_version() const override {
    return codec_name_ == "none" || codecs_.empty() ? "" : codecs_.front()->version();
  }

  /// Make new codecs for each file, as Tailrace and HDF5 do.
  Status write(const std::string& path, RunDetails& details) override {
    TAILRACE_TRY(make_codecs());
    std::remove(rank_path(path).c_str());
    Result<std::unique_ptr<Storage>> storage = open_posix_storage(rank_path(path), true, false);
    if (!storage.ok()) return storage.status();
    IdealRun run(context_, codecs_, chunks_, **storage);
    TAILRACE_TRY(run.run(details));
    if (!context_.options.fsync) return Status();
    const LaneClock clock;
    const Status synced = (*storage)->sync();
    details.sync_s = clock.now_s();
    return synced;
  }

  Status make_codecs() {
    codecs_.clear();
    for (const BenchField& field : context_.work.fields) {
      Result<std::unique_ptr<Codec>> codec = make_bench_codec(
          context_.options, codec_name_, codec_settings_of(context_.options, codec_name_), field);
      if (!codec.ok()) return codec.status().within("field \"" + field.path + "\"");
      codecs_.push_back(std::move(*codec));
    }
    return Status();
  }

  Result<ReadBack> read_back(const std::string& path) override {
    Result<std::unique_ptr<Storage>> storage = open_posix_storage(rank_path(path), false, false);
    if (!storage.ok()) return storage.status();
    ReadBack found;
    for (const IdealChunk& chunk : chunks_) {
      const BenchField& field = context_.work.fields[chunk.field];
      EncodedBytes encoded{Buffer(chunk.encoded_bytes), chunk.filter_mask};
      Buffer original(field.chunk_bytes());
      if (!encoded.buffer.allocated() || !original.allocated()) {
        return Status(Code::out_of_memory, "not enough memory to read a chunk");
      }
      TAILRACE_TRY((*storage)->read_at(chunk.address, encoded.buffer.bytes()));
      Result<Buffer> decoded = codecs_[chunk.field]->decode(std::move(encoded));
      if (!decoded.ok()) return decoded.status();
      copy_box(chunk.box, field.box, field.values.data(), chunk.box, original.data(),
               dtype_bytes(field.dtype));
      compare_block(field, codec_name_ == "none", original.bytes(), decoded->bytes(), found);
      found.encoded_bytes += chunk.encoded_bytes;
    }
    Result<std::uint64_t> file_bytes = (*storage)->file_bytes();
    if (!file_bytes.ok()) return file_bytes.status();
    found.file_bytes = *file_bytes;
    return found;
  }

  Status remove(const std::string& path) override { return Method::remove(rank_path(path)); }

 private:
  std::string rank_path(const std::string& path) const {
    return fmt::format("{}.{}", path, context_.comm.rank());
  }

  BenchContext context_;
  std::string codec_name_;
  std::vector<std::unique_ptr<Codec>> codecs_;
  std::vector<IdealChunk> chunks_;
};

}  // namespace

Result<std::unique_ptr<Method>> make_ideal_method(const BenchContext& context, std::string name,
                                                  const std::string& codec_name) {
  auto method = std::make_unique<IdealMethod>(context, std::move(name), codec_name);
  TAILRACE_TRY(method->make_codecs());
  return std::unique_ptr<Method>(std::move(method));
}

}  // namespace tailrace::bench
