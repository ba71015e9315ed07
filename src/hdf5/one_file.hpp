// One file for all nodes: what the ranks have opened under one name is the same file everywhere.
//
// A node on which the shared file system is not mounted has a folder of that name all the same,
// perhaps with an older copy of the file in it, and would read or write that without an error. And
// clients of shared file systems remember for a while which file a name led to: the name under
// which each job begins leads to the file of the job before. So rank 0 tells what it sees, and the
// others look whether they see the same.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/comm.hpp"
#include "core/storage.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Look at a file that all ranks read: its length and the bytes at both ends (so that each node may
/// have a copy of its own), unless some job writes it meanwhile. What a node has opened before may
/// be another file: open it after this.
/// A file system may show late what another node has done: a look is repeated for some seconds
/// before it is a failure. Collective. Cost: nothing on a single node; else a broadcast, an
/// agreement, and two small reads per node. @error io_error  names the rank, its host, the file.
Status check_one_file(Comm& comm, const std::string& path);

/// Look at a file that all ranks have opened for writing: rank 0 writes some bytes behind its end,
/// which every other rank must find through what it has opened, and cuts them off again before any
/// rank returns. Where they are not found `open_again` is called between looks, which gives
/// `storage` the file that its name leads to by then. Collective; rank 0 has read the file's
/// metadata, which end at `end` at the latest. Cost: nothing on a single node; else two broadcasts,
/// an agreement, a synced write and a small read per rank.
/// @error no_space; io_error  names the rank, its host, the file.
Status check_one_output(Comm& comm, const std::string& path,
                        const std::unique_ptr<Storage>& storage, std::uint64_t end,
                        const std::function<Status()>& open_again);

/// See what other nodes have written and synced, by whichever descriptors of this node: clients of
/// shared file systems keep for a while what they were told of a file (a second, as a rule), and
/// would take its last bytes for zeros. Of what this node keeps of the file `n_bytes` at both ends
/// are forgotten. Not collective; whoever cannot be told stays as he is.
void refresh_file(const std::string& path, std::uint64_t n_bytes);
/// The same on every node but a single one, for all bytes. Not collective: what reads follows an
/// agreement.
void refresh_file_on_nodes(const Comm& comm, const std::string& path);
/// Who opens the file's name to read, alone, sees what was committed last, of which this node's
/// client need not know yet. Not collective; costs nothing on a single node, else a question to the
/// server.
void hear_of_last_commit(const Comm& comm, const std::string& path);

}  // namespace tailrace
