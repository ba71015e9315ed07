// Stages of a read: the list of datasets (describe/stored_file); addresses of chunks (read_index);
// finding, fetching, decoding, caching and prefetching the chunks of a slab (read_chunks); and
// chunks that several ranks want (SharedRead, here).
//
// Invariant 1: a rank that fails in a collective call still takes part in all of it, and every rank
// returns the same error.
// Invariant 2: a prepared dataset lives until refresh() or the end, after all work that was begun
// ahead.

#include "read/read.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "describe/stored_file.hpp"
#include "exec/chunk_homes.hpp"
#include "hdf5/one_file.hpp"
#include "measure/machine_identity.hpp"
#include "netcdf/netcdf_model.hpp"
#include "read/read_chunks.hpp"
#include "read/read_dataset.hpp"

namespace tailrace {

namespace {

// --- SharedRead: chunks that several ranks want in one collective read, each decoded once.
//
// For each chunk that a rank wants, it sends the wanted elements' slab to the chunk's home
// (exec/chunk_homes.hpp). If several ranks want a chunk, its home makes one of them the owner: in
// turn, one of those that want most. The owner decodes the chunk and sends the other ranks their
// elements. A chunk that only one rank wants needs no further message.
//
// Cost: that of ask_homes(), with one slab for each wanted chunk; two allreduces; a sparse exchange
// per round. In a round, a rank sends and receives at most half of the memory for work each.
//
// Invariant: every rank goes through all exchanges and rounds, whatever has failed on it.

/// Chunks that this rank wants, with the indices of its requests for them.
using WantedChunks = std::unordered_map<ChunkKey, std::vector<std::uint32_t>, ChunkKeyHash>;
/// Prepared datasets by number.
using PreparedDatasets = std::map<std::size_t, ReadDataset>;

class SharedRead {
 public:
  SharedRead(Comm& comm, PreparedDatasets& datasets, std::span<const ReadRequest> requests,
             WantedChunks wanted)
      : comm_(comm), datasets_(datasets), requests_(requests), wanted_(std::move(wanted)) {}

  /// Determine which chunks are shared, and the rank that decodes each. Collective.
  /// @error internal  as for ask_homes(); on this rank only, which must still call run().
  Status settle() {
    ChunkDealing dealing(comm_.n_ranks());
    for (const auto& [number, dataset] : datasets_) {
      if (dataset.chunked()) dealing.add(number, dataset.grid, number);
    }
    ChunkMail wishes(dealing);
    for (const auto& [key, requests] : wanted_) {
      const Slab part = wanted_part(key, requests);
      wishes.add({key, nobody, {}, {{comm_.rank(), part.n_elements(), {part}}}});
    }
    std::size_t turn = 0;
    Result<std::vector<ChunkRecord>> told = ask_homes(
        comm_, std::move(wishes), [&](ChunkRecord& chunk) { return name_decoder(chunk, turn); });
    if (!told.ok()) return told.status();
    for (ChunkRecord& chunk : *told) {
      const auto meant = [](const ChunkShare& want) { return want.slabs.size() == 1; };
      if (chunk.owner == nobody || !wanted_.contains(chunk.key) ||
          !std::all_of(chunk.shares.begin(), chunk.shares.end(), meant)) {
        return Status(Code::internal, "a home tells of a chunk that this rank does not want");
      }
      shared_.insert(chunk.key);
      if (chunk.owner == comm_.rank()) {
        own_.push_back(std::move(chunk));
      } else {
        senders_.insert(chunk.owner);
      }
    }
    return Status();
  }

  /// True if this rank must not read this chunk of its requests on its own.
  bool shared(const ChunkKey& key) const { return shared_.contains(key); }

  /// Decode the chunks that this rank owns, send and receive. Collective. Returns this rank's own
  /// Status.
  /// @param file  may be null on a rank that owns nothing, or that has failed according to `mine`.
  Status run(ChunkReader& chunks, StoredFile* file, const Status& mine) {
    Status done = mine;
    // The rank that receives from most ranks limits what each may send it at a time.
    std::uint64_t most[] = {senders_.size()};
    comm_.allreduce(most, Reduction::max);
    if (most[0] == 0) return done;
    const std::vector<Round> rounds = cut_rounds(chunks.work_bytes() / 2 / most[0]);
    std::uint64_t n_rounds[] = {rounds.size()};
    comm_.allreduce(n_rounds, Reduction::max);
    for (std::uint64_t round = 0; round < n_rounds[0]; ++round) {
      std::map<int, Bytes> outgoing;
      if (round < rounds.size() && done.ok()) {
        done = decode_round(chunks, *file, rounds[round], outgoing);
        if (!done.ok()) outgoing.clear();
      }
      std::vector<Message> messages;
      messages.reserve(outgoing.size());
      for (auto& [peer, payload] : outgoing) messages.push_back({peer, std::move(payload)});
      for (const Message& message : comm_.exchange(std::move(messages))) {
        const Status taken = take(message);
        if (done.ok()) done = taken;
      }
    }
    return done;
  }

  std::uint64_t received_bytes() const { return received_bytes_; }

 private:
  /// Chunks of one dataset that this rank decodes together, with the elements that others want.
  using Round = std::vector<ChunkRecord>;

  /// Choose the rank that decodes the chunk, as its home: one of those that want most.
  static bool name_decoder(ChunkRecord& chunk, std::size_t& turn) {
    if (chunk.shares.size() < 2) return false;
    std::uint64_t most = 0;
    for (const ChunkShare& want : chunk.shares) most = std::max(most, want.n_elements);
    std::vector<int> candidates;
    for (const ChunkShare& want : chunk.shares) {
      if (want.n_elements >= most - most / 4) candidates.push_back(want.rank);
    }
    chunk.owner = candidates[turn++ % candidates.size()];
    return true;
  }

  Slab wanted_part(const ChunkKey& key, const std::vector<std::uint32_t>& requests) const {
    const Box box = datasets_.at(key.field).grid.full_box(key.chunk_index);
    if (requests.size() == 1) return part_within(requests_[requests[0]].slab, box).slab;
    // Several requests: the bounding box of all wanted elements.
    Box all = part_within(requests_[requests[0]].slab, box).slab.bounding_box();
    for (const std::uint32_t request : requests) {
      const Box one = part_within(requests_[request].slab, box).slab.bounding_box();
      for (std::size_t d = 0; d < all.rank(); ++d) {
        const std::uint64_t end =
            std::max(all.start[d] + all.count[d], one.start[d] + one.count[d]);
        all.start[d] = std::min(all.start[d], one.start[d]);
        all.count[d] = end - all.start[d];
      }
    }
    return Slab::of(all);
  }

  std::uint64_t bytes_of(const ChunkKey& key, std::span<const ChunkShare> wants) const {
    std::uint64_t n = 0;
    for (const ChunkShare& want : wants) n += want.slabs[0].n_elements();
    return n * datasets_.at(key.field).element_bytes;
  }

  /// Cut this rank's chunks into rounds. A chunk may have more values for all its ranks than a
  /// round may have. It is then decoded once for each round's worth of ranks, so that memory does
  /// not grow with the number of ranks. Each owner begins with the ranks after its own, so that
  /// owners do not all send to one rank at a time. Parts of one chunk never share a round: together
  /// they are too large.
  std::vector<Round> cut_rounds(std::uint64_t bytes_per_round) {
    std::vector<Round> rounds;
    std::uint64_t round_bytes = 0;
    const auto add = [&](ChunkRecord part, std::uint64_t n_bytes) {
      if (rounds.empty() || rounds.back().back().key.field != part.key.field ||
          round_bytes + n_bytes > bytes_per_round) {
        rounds.emplace_back();
        round_bytes = 0;
      }
      round_bytes += n_bytes;
      rounds.back().push_back(std::move(part));
    };
    for (ChunkRecord& own : own_) {
      std::vector<ChunkShare> wants = std::exchange(own.shares, {});
      if (bytes_of(own.key, wants) > bytes_per_round) {
        const auto behind = std::ranges::find_if(
            wants, [&](const ChunkShare& want) { return want.rank > comm_.rank(); });
        std::rotate(wants.begin(), behind, wants.end());
      }
      ChunkRecord part = own;
      std::uint64_t part_bytes = 0;
      for (ChunkShare& want : wants) {
        const std::uint64_t n_bytes = bytes_of(own.key, {&want, 1});
        if (!part.shares.empty() && part_bytes + n_bytes > bytes_per_round) {
          add(std::exchange(part, own), std::exchange(part_bytes, 0));
        }
        part_bytes += n_bytes;
        part.shares.push_back(std::move(want));
      }
      add(std::move(part), part_bytes);
    }
    return rounds;
  }

  Status decode_round(ChunkReader& chunks, StoredFile& file, const Round& round,
                      std::map<int, Bytes>& outgoing) {
    ReadDataset& dataset = datasets_.at(round.front().key.field);
    std::vector<std::uint64_t> indexes;
    indexes.reserve(round.size());
    for (const ChunkRecord& own : round) indexes.push_back(own.key.chunk_index);
    std::vector<StoredChunk> stored;
    TAILRACE_TRY(dataset.index.find(file, *dataset.listed, dataset.n_chunks, indexes, stored));
    // Lay out the messages first, so that threads can fill in their parts.
    std::map<int, ByteWriter> writers;
    std::vector<std::vector<std::size_t>> places(round.size());
    for (std::size_t i = 0; i < round.size(); ++i) {
      for (const ChunkShare& want : round[i].shares) {
        ByteWriter& writer = writers[want.rank];
        writer.add(round[i].key);
        writer.add(want.slabs[0]);
        places[i].push_back(writer.bytes().size());
        writer.extend(bytes_of(round[i].key, {&want, 1}));
      }
    }
    for (auto& [peer, writer] : writers) outgoing[peer] = writer.take();
    return chunks.visit(
        file, dataset, stored, [&](std::size_t i, std::span<const std::byte> values) {
          const Box box = dataset.grid.full_box(stored[i].chunk_index);
          for (std::size_t k = 0; k < round[i].shares.size(); ++k) {
            const ChunkShare& want = round[i].shares[k];
            gather_part({want.slabs[0], Shape(box.rank(), 0)}, box, values.data(), want.slabs[0],
                        outgoing.at(want.rank).data() + places[i][k], dataset.element_bytes);
          }
          for (const std::uint32_t request : wanted_.at(round[i].key)) {
            const ReadRequest& own = requests_[request];
            gather_part(part_within(own.slab, box), box, values.data(), own.slab, own.values,
                        dataset.element_bytes);
          }
        });
  }

  Status take(const Message& message) {
    received_bytes_ += message.payload.size();
    ByteReader reader(message.payload, ByteReader::Trust::wary);
    while (!reader.at_end()) {
      const auto key = reader.take<ChunkKey>();
      const Slab part = reader.take_slab();
      const auto wanted = wanted_.find(key);
      if (wanted == wanted_.end() || part != wanted_part(key, wanted->second)) {
        reader.refuse();
        break;
      }
      const std::uint64_t element_bytes = datasets_.at(key.field).element_bytes;
      const auto values = reader.take_bytes(part.n_elements() * element_bytes);
      if (reader.good()) place(key, part, wanted->second, values.data());
    }
    if (reader.good()) return Status();
    return damaged_message("values", message);
  }

  void place(const ChunkKey& key, const Slab& part, const std::vector<std::uint32_t>& requests,
             const std::byte* values) {
    const ReadDataset& dataset = datasets_.at(key.field);
    const Box box = dataset.grid.full_box(key.chunk_index);
    for (const std::uint32_t number : requests) {
      const ReadRequest& request = requests_[number];
      const SlabPart own = part_within(request.slab, box);
      if (requests.size() == 1) {
        // Exactly these elements, dense.
        const Box piece{own.first, own.slab.count};
        copy_box(piece, piece, values, whole_box(request.slab.count), request.values,
                 dataset.element_bytes);
      } else {
        gather_part(own, {part.start, part.count}, values, request.slab, request.values,
                    dataset.element_bytes);
      }
    }
  }

  Comm& comm_;
  PreparedDatasets& datasets_;
  std::span<const ReadRequest> requests_;
  WantedChunks wanted_;
  std::unordered_set<ChunkKey, ChunkKeyHash> shared_;
  std::vector<ChunkRecord> own_;
  std::set<int> senders_;
  std::uint64_t received_bytes_ = 0;
};

// --- FileReader: the only implementation of Reader.

class FileReader final : public Reader {
 public:
  FileReader(std::unique_ptr<Comm> comm, std::string path, const ReadOptions& options)
      : comm_(std::move(comm)), path_(std::move(path)), options_(options) {
    const std::uint64_t n_cores = n_cores_of_node();
    const auto n_ranks = static_cast<std::uint64_t>(comm_->n_ranks_on_node());
    // Two even if ranks fill the cores: one waits for the storage while the other decodes.
    const std::uint64_t share = std::max<std::uint64_t>(2, n_cores / n_ranks);
    chunks_ = std::make_unique<ChunkReader>(options_,
                                            options_.n_threads > 0 ? options_.n_threads : share);
  }
  ~FileReader() override {
    // This rank may be the only one here: objects that only all ranks can free stay.
    if (!closed_) chunks_->abandon();
    chunks_.reset();
    if (!closed_) comm_->abandon();
  }

  Status open_everywhere() {
    TAILRACE_TRY(list());
    // A file that this job writes was checked when it was opened for that.
    return options_.own_output ? Status() : check_one_file(*comm_, path_);
  }

  /// List the file at rank 0 and broadcast the list.
  Status list() {
    Status listed;
    Bytes packed;
    model_ = NetcdfModel();
    model_status_ = Status();
    if (comm_->is_root()) {
      listed = open_file();
      if (listed.ok()) {
        const Result<DatasetList> list = file_->list(Asked::storage);
        listed = list.status();
        if (listed.ok()) packed = pack_dataset_list(*list);
        // Datasets can be read without a model; callers that need it check its status.
        Result<NetcdfModel> model = read_netcdf_model(file_->hdf5_id());
        model_status_ = model.status();
        if (model.ok()) model_ = std::move(*model);
      }
    }
    TAILRACE_TRY(as_rank_0_says(*comm_, listed));
    comm_->broadcast(packed, 0);
    TAILRACE_TAKE(DatasetList list, comm_->agree(unpack_dataset_list(packed)));
    Bytes model;
    if (comm_->is_root()) model = pack_model(model_);
    comm_->broadcast(model, 0);
    model_ = unpack_model(model);
    model_status_ = as_rank_0_says(*comm_, model_status_);
    list_ = std::move(list);
    by_path_.clear();
    for (std::size_t i = 0; i < list_.datasets.size(); ++i) {
      by_path_.emplace(list_.datasets[i].path, i);
    }
    return Status();
  }

  const std::vector<StoredDataset>& datasets() const override { return list_.datasets; }

  Result<std::size_t> find(const std::string& path) const override {
    const auto found = by_path_.find(path);
    if (found != by_path_.end()) return found->second;
    const std::optional<std::size_t> alias = list_.find(path);
    if (alias) return *alias;
    return Status(Code::not_found, "file \"" + path_ + "\": there is no dataset \"" + path + "\"");
  }

  const NetcdfModel& model() const override { return model_; }
  const Status& model_status() const override { return model_status_; }

  Status open_index(std::span<const std::size_t> datasets) override {
    Status mine;
    for (const std::size_t number : datasets) {
      if (mine.ok()) mine = check_number(number);
    }
    TAILRACE_TRY(comm_->agree(mine));
    for (const std::size_t number : datasets) {
      if (!by_chunks(number)) continue;
      ReadDataset* dataset = nullptr;
      TAILRACE_TRY(
          chunks_->prepare(number, list_.datasets[number], dataset));  // Same on all ranks.
      TAILRACE_TRY(open_index_of(*dataset));
    }
    return Status();
  }

  using Reader::read;
  Status read(std::size_t number, const Slab& slab, std::span<std::byte> values,
              double abs_bound) override {
    if (!(abs_bound >= 0)) {
      return Status(Code::invalid_argument, "the bound is negative or NaN, must be >= 0");
    }
    std::uint64_t n_bytes = 0;
    TAILRACE_TRY(check_slab_of(number, slab, n_bytes));
    if (n_bytes != values.size()) {
      return Status(Code::invalid_argument, dataset_text(number) + ": slab " + slab_text(slab) +
                                                " has " + std::to_string(n_bytes) +
                                                " bytes, the buffer has " +
                                                std::to_string(values.size()));
    }
    ++report_.n_slabs;
    if (slab.empty()) return Status();
    report_.value_bytes += n_bytes;
    TAILRACE_TRY(open_file());
    return chunks_->read(*file_, number, list_.datasets[number], slab, values, abs_bound);
  }

  Result<std::vector<std::string>> read_texts(std::size_t number, const Slab& slab) override {
    TAILRACE_TRY(check_number(number));
    const Status fits = check_slab(slab, list_.datasets[number].shape);
    if (!fits.ok()) return fits.within(dataset_text(number));
    TAILRACE_TRY(open_file());
    return file_->read_texts(list_.datasets[number], slab);
  }

  Status read_all(std::span<const ReadRequest> requests) override {
    Status mine;
    for (const ReadRequest& request : requests) {
      if (mine.ok()) mine = check_request(request);
    }
    if (mine.ok() && !requests.empty()) mine = open_file();
    // A rank that fails here requests nothing, but takes part.
    if (!mine.ok()) requests = {};
    TAILRACE_TRY(open_wanted_indexes(requests));
    Result<WantedChunks> wanted = wanted_chunks(requests);
    if (mine.ok()) mine = wanted.status();
    SharedRead together(*comm_, chunks_->all_prepared(), requests,
                        wanted.ok() ? std::move(*wanted) : WantedChunks());
    const Status settled = comm_->n_ranks() > 1 ? together.settle() : Status();
    if (mine.ok()) mine = settled;
    for (const ReadRequest& request : requests) {
      if (mine.ok()) mine = read_unshared(request, together);
    }
    if (comm_->n_ranks() > 1) mine = together.run(*chunks_, file_.get(), mine);
    report_.received_bytes += together.received_bytes();
    return comm_->agree(mine);
  }

  Status refresh() override {
    chunks_->forget_all();
    file_.reset();
    return list();
  }

  const ReadReport& report() const override {
    const ReadCounts& counts = chunks_->counts();
    report_.n_chunks = counts.n_chunks;
    report_.n_chunk_hits = counts.n_chunk_hits;
    report_.decoded_bytes = counts.decoded_bytes;
    report_.fetched_bytes = counts.fetched_bytes;
    report_.n_reads = counts.n_reads;
    report_.fetch_s = double(counts.fetch_ns) * 1e-9;
    report_.decode_s = double(counts.decode_ns) * 1e-9;
    return report_;
  }
  Comm& comm() override { return *comm_; }

  Status close() override {
    chunks_->forget_all();
    file_.reset();
    closed_ = true;
    return Status();
  }

 private:
  std::string dataset_text(std::size_t number) const {
    return "dataset \"" + list_.datasets[number].path + "\"";
  }

  Status check_number(std::size_t number) const {
    if (closed_) return Status(Code::invalid_argument, "file \"" + path_ + "\" is closed");
    if (number < list_.datasets.size()) return Status();
    return Status(Code::invalid_argument, "there is no dataset " + std::to_string(number) + " of " +
                                              std::to_string(list_.datasets.size()) + " in \"" +
                                              path_ + "\"");
  }

  Status check_slab_of(std::size_t number, const Slab& slab, std::uint64_t& n_bytes) const {
    TAILRACE_TRY(check_number(number));
    const Status fits = check_slab(slab, list_.datasets[number].shape);
    if (!fits.ok()) return fits.within(dataset_text(number));
    const std::uint64_t n = slab.n_elements();
    if (n == UINT64_MAX || !multiply_checked(n, list_.datasets[number].value_bytes(), n_bytes)) {
      return Status(Code::invalid_argument, dataset_text(number) + ": slab " + slab_text(slab) +
                                                " has more bytes than 64 bits count");
    }
    return Status();
  }

  Status check_request(const ReadRequest& request) const {
    std::uint64_t n_bytes = 0;
    TAILRACE_TRY(check_slab_of(request.dataset, request.slab, n_bytes));
    if (n_bytes == 0 || request.values != nullptr) return Status();
    return Status(Code::invalid_argument, dataset_text(request.dataset) + ": slab " +
                                              slab_text(request.slab) + " has no buffer");
  }

  bool by_chunks(std::size_t number) const {
    const StoredDataset& listed = list_.datasets[number];
    return !listed.by_hdf5() && listed.chunked() && n_elements(listed.shape) > 0;
  }

  /// Open the indexes of all chunked datasets that any rank wants. Collective.
  Status open_wanted_indexes(std::span<const ReadRequest> requests) {
    std::vector<std::uint64_t> bits(list_.datasets.size() / 64 + 1, 0);
    for (const ReadRequest& request : requests) {
      if (request.slab.empty() || !by_chunks(request.dataset)) continue;
      bits[request.dataset / 64] |= std::uint64_t{1} << request.dataset % 64;
    }
    // A single rank reads a complete index only once look-ups have cost as much.
    if (comm_->n_ranks() > 1) comm_->allreduce(std::span(bits), Reduction::bit_or);
    for (std::size_t number = 0; number < list_.datasets.size(); ++number) {
      if ((bits[number / 64] >> number % 64 & 1) == 0) continue;
      ReadDataset* dataset = nullptr;
      // Same on all ranks: it only depends on the list.
      TAILRACE_TRY(chunks_->prepare(number, list_.datasets[number], dataset));
      if (comm_->n_ranks() == 1) continue;
      TAILRACE_TRY(open_index_of(*dataset));
    }
    return Status();
  }

  Status open_index_of(ReadDataset& dataset) {
    const auto start = std::chrono::steady_clock::now();
    const Status opened =
        dataset.index.open(*comm_, file_.get(), *dataset.listed, dataset.n_chunks);
    report_.index_s +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return opened;
  }

  /// Return the stored chunks that these requests touch; none with a single rank, which shares
  /// nothing.
  Result<WantedChunks> wanted_chunks(std::span<const ReadRequest> requests) {
    WantedChunks wanted;
    if (comm_->n_ranks() == 1) return wanted;
    std::vector<std::uint64_t> batch;
    std::vector<StoredChunk> stored;
    for (std::uint32_t i = 0; i < requests.size(); ++i) {
      const ReadRequest& request = requests[i];
      if (request.slab.empty() || !by_chunks(request.dataset)) continue;
      ReadDataset& dataset = chunks_->prepared(request.dataset);
      if (chunks_->reads_parts(dataset, request.slab)) continue;
      TouchedChunks touched(dataset.grid, request.slab);
      while (true) {
        touched.next(65536, batch);
        if (batch.empty()) break;
        TAILRACE_TRY(dataset.index.find(*file_, *dataset.listed, dataset.n_chunks, batch, stored));
        for (const StoredChunk& chunk : stored) {
          if (chunk.extent.encoded_bytes == 0) continue;
          wanted[{request.dataset, chunk.chunk_index}].push_back(i);
        }
      }
    }
    return wanted;
  }

  Status read_unshared(const ReadRequest& request, const SharedRead& together) {
    const std::uint64_t n_bytes =
        request.slab.n_elements() * list_.datasets[request.dataset].value_bytes();
    if (comm_->n_ranks() == 1 || n_bytes == 0 || !by_chunks(request.dataset)) {
      return read(request.dataset, request.slab, {request.values, n_bytes});
    }
    ++report_.n_slabs;
    report_.value_bytes += n_bytes;
    ReadDataset& dataset = chunks_->prepared(request.dataset);
    // Its chunks were not announced, but other ranks may share them.
    if (chunks_->reads_parts(dataset, request.slab)) {
      return chunks_->read(*file_, dataset, request.slab, request.values);
    }
    return chunks_->read(*file_, dataset, request.slab, request.values,
                         [&](std::uint64_t chunk_index) {
                           return together.shared({request.dataset, chunk_index});
                         });
  }

  /// Open the file, when this rank first needs it.
  Status open_file() {
    if (file_ != nullptr) return Status();
    TAILRACE_TAKE(file_, StoredFile::open(path_, other_files_of(options_), options_.own_output));
    return Status();
  }

  std::unique_ptr<Comm> comm_;
  std::string path_;
  ReadOptions options_;
  DatasetList list_;
  std::unordered_map<std::string, std::size_t> by_path_;
  NetcdfModel model_;
  Status model_status_;
  std::unique_ptr<StoredFile> file_;
  std::unique_ptr<ChunkReader> chunks_;
  mutable ReadReport report_;
  bool closed_ = false;
};

}  // namespace

Result<std::unique_ptr<Reader>> Reader::open(std::unique_ptr<Comm> comm, const std::string& path,
                                             const ReadOptions& options) {
  auto reader = std::make_unique<FileReader>(std::move(comm), path, options);
  const Status listed = reader->open_everywhere();
  if (listed.ok()) return std::unique_ptr<Reader>(std::move(reader));
  static_cast<void>(reader->close());  // close() is possible, since all ranks have failed.
  return listed;
}

// --- Option text of a reader.

namespace {

constexpr std::uint64_t memory_bytes_min = 1U << 20;
constexpr std::uint64_t read_bytes_min = 4096;
constexpr std::uint64_t n_threads_max = 1024;

Status assign_bytes(const KeyValue& entry, std::uint64_t least, std::uint64_t& target) {
  TAILRACE_TAKE(const auto parsed, parse_bytes(entry.second).within("option " + entry.first));
  if (parsed < least) {
    return Status(Code::invalid_argument, "option " + entry.first + "=" + entry.second +
                                              ": expected at least " + std::to_string(least) +
                                              " bytes");
  }
  target = parsed;
  return Status();
}

Status assign_threads(const KeyValue& entry, std::uint64_t& target) {
  std::uint64_t n = 0;
  bool fits = !entry.second.empty() && entry.second.size() <= 4;
  for (const char digit : entry.second) {
    fits = fits && digit >= '0' && digit <= '9';
    if (fits) n = n * 10 + std::uint64_t(digit - '0');
  }
  if (!fits || n > n_threads_max) {
    return Status(Code::invalid_argument, "option threads=" + entry.second +
                                              ": expected a number from 0 (one per core) to " +
                                              std::to_string(n_threads_max));
  }
  target = n;
  return Status();
}

Status assign(const KeyValue& entry, ReadOptions& options) {
  const std::string& key = entry.first;
  if (key == "threads") return assign_threads(entry, options.n_threads);
  if (key == "memory") return assign_bytes(entry, memory_bytes_min, options.memory_bytes);
  if (key == "read") return assign_bytes(entry, read_bytes_min, options.read_bytes);
  if (key == "gap") return assign_bytes(entry, 0, options.gap_bytes);
  if (key == "abs") {
    std::string_view rest;
    const std::optional<double> bound = leading_number(entry.second, rest);
    if (!bound || !rest.empty() || !(*bound >= 0) || !std::isfinite(*bound)) {
      return bad_option_value(key, entry.second, "a finite number >= 0");
    }
    options.abs_bound = *bound;
    return Status();
  }
  if (key == "prefetch" || key == "follow-external") {
    TAILRACE_TAKE(const bool parsed, parse_switch(key, entry.second));
    (key == "prefetch" ? options.prefetch : options.follow_external) = parsed;
    return Status();
  }
  if (key == "plugin-path") {
    options.plugin_path = entry.second;
    return Status();
  }
  return Status(Code::invalid_argument,
                "option " + key +
                    ": unknown to a reader; it knows threads, memory, read, gap, abs, prefetch, "
                    "follow-external and plugin-path");
}

}  // namespace

OtherFiles other_files_of(const ReadOptions& options) {
  return options.follow_external ? OtherFiles::read : OtherFiles::leave_out;
}

Status apply_read_options(std::string_view text, ReadOptions& options) {
  TAILRACE_TAKE(const std::vector<KeyValue> entries, split_key_values(text));
  ReadOptions changed = options;
  for (const KeyValue& entry : entries) TAILRACE_TRY(assign(entry, changed));
  options = std::move(changed);
  return Status();
}

}  // namespace tailrace
