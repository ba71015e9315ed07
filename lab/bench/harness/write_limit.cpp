// The bucket in a mapped file, which all ranks of a node share.

#include "write_limit.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "write_hooks.hpp"

namespace tailrace::bench {
namespace {

class SharedWriteLimit final : public WriteLimit {
 public:
  SharedWriteLimit(Comm& comm, TransferBucket* bucket, const std::string& folder) : comm_(comm) {
    limit_.bucket = bucket;
    limit_.folder = folder + "/";
    set_active_limit(Direction::write, &limit_);
  }
  ~SharedWriteLimit() override {
    set_active_limit(Direction::write, nullptr);
    ::munmap(limit_.bucket, sizeof(TransferBucket));
  }
  void set_bytes_per_s(double bytes_per_s) override {
    comm_.barrier();
    limit_.bytes_per_s = bytes_per_s;
    comm_.barrier();
  }
  std::uint64_t n_bytes() const override { return limit_.bucket->n_bytes; }

 private:
  Comm& comm_;
  ActiveLimit limit_;
};

/// Map the bucket's file; new file bytes are zero, which is a bucket's initial state.
Result<TransferBucket*> map_bucket(const std::string& path, bool create) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
  if (descriptor < 0) return status_from_errno(errno, "opening \"" + path + "\"");
  Status status;
  if (create && ::ftruncate(descriptor, sizeof(TransferBucket)) != 0) {
    status = status_from_errno(errno, "extending \"" + path + "\"");
  }
  void* mapped = MAP_FAILED;
  if (status.ok()) {
    mapped =
        ::mmap(nullptr, sizeof(TransferBucket), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) status = status_from_errno(errno, "mapping \"" + path + "\"");
  }
  ::close(descriptor);
  if (!status.ok()) return status;
  return static_cast<TransferBucket*>(mapped);
}

}  // namespace

Result<std::unique_ptr<WriteLimit>> WriteLimit::start(Comm& comm, const std::string& folder) {
  if (comm.n_ranks_on_node() != comm.n_ranks()) {
    return Status(
        Code::unsupported,
        "--bandwidth supports the ranks of one node only; these ranks span several nodes");
  }
  const std::string path = folder + "/bucket";
  Result<TransferBucket*> bucket = Status(Code::internal, "not mapped");
  if (comm.is_root()) bucket = map_bucket(path, true);
  TAILRACE_TRY(comm.agree(comm.is_root() ? bucket.status() : Status()));
  if (!comm.is_root()) bucket = map_bucket(path, false);
  TAILRACE_TRY(comm.agree(bucket.status()));
  if (comm.is_root()) ::unlink(path.c_str());
  return std::unique_ptr<WriteLimit>(std::make_unique<SharedWriteLimit>(comm, *bucket, folder));
}

}  // namespace tailrace::bench
