// Checks that a file name leads to the same file on all nodes.
//
// A node that has not mounted the shared file system may still have a folder with that name,
// perhaps with an older copy. It would read or write that copy without an error. Also, clients of
// shared file systems cache the file that a name leads to: the name under which each job begins may
// still lead to the previous job's file. So rank 0 broadcasts what it sees, and the other ranks
// check that they see the same.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "core/storage.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Check a file that all ranks read: its length and the bytes at both ends, unless a job is writing
/// it. Each node may have its own copy. A file that a node opened earlier may differ: open it after
/// this call. File systems may show another node's changes late, so the check is repeated for some
/// seconds before it fails. Collective. Cost: nothing on a single node; else a broadcast, an
/// agreement, and two small reads per node. @error io_error  names the rank, its host, the file
Status check_one_file(Comm& comm, const std::string& path);

/// Check a file that all ranks have opened for writing. Rank 0 writes a mark after the file's end,
/// and every other rank must find it through its open file. Rank 0 removes the mark before any rank
/// returns. A rank that does not find it calls `open_again` between attempts, which reopens
/// `storage` by name. Collective. Rank 0 has read the file's metadata, which end at `end` at the
/// latest. Cost: nothing on a single node; else two broadcasts, an agreement, a synced write and a
/// small read per rank.
/// @error no_space; io_error  names the rank, its host, the file
Status check_one_output(Comm& comm, const std::string& path,
                        const std::unique_ptr<Storage>& storage, std::uint64_t end,
                        const std::function<Status()>& open_again);

/// Make bytes that other nodes have written and synced visible to all descriptors of this node.
/// Clients of shared file systems cache file attributes for a while (a second, as a rule), and
/// would read the file's last bytes as zeros. Drops `n_bytes` at both ends of the file from this
/// node's page cache. Not collective. Failures are ignored.
void refresh_file(const std::string& path, std::uint64_t n_bytes);
/// Call refresh_file() for all bytes, once per node; does nothing on a single node. Not collective:
/// an agreement must precede the next read.
void refresh_file_on_nodes(const Comm& comm, const std::string& path);
/// Make the last commit visible to a reader that opens the file by name outside a collective call;
/// this node's client may not know that commit yet. Not collective. Cost: nothing on a single node,
/// else a request to the server.
void see_last_commit(const Comm& comm, const std::string& path);

}  // namespace tailrace
