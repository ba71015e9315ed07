// One file for all nodes: what the ranks have opened under one name is the same file everywhere.
//
// A node on which the shared file system is not mounted has a folder of that name all the same,
// perhaps with an older copy of the file in it, and would read or write that without an error. So
// rank 0 tells what it sees, and one rank of each other node looks whether it sees the same.

#pragma once

#include <cstdint>
#include <string>

#include "core/comm.hpp"
#include "core/status.hpp"
#include "hdf5/writer_lock.hpp"

namespace tailrace {

/// Look at a file that all ranks have opened. Who writes it is known by rank 0's lock file, which
/// was made a moment ago and lies beside it; a file that is read, by its length and the bytes at
/// both ends (so that each node may have a copy of its own), unless some job writes it meanwhile.
/// A file system may show late what another node has done: a look is repeated for some seconds
/// before it is a failure. Collective. Cost: nothing on a single node; else a broadcast, an
/// agreement, and two small reads per node. @error io_error  names the rank, its host, the file.
/// @param lock  what rank 0 holds if the file is written; elsewhere it is held by nobody.
Status check_one_file(Comm& comm, const std::string& path, const WriterLock* lock = nullptr);

/// See what other nodes have written and synced, by whichever descriptors of this node: clients of
/// shared file systems keep for a while what they were told of a file (a second, as a rule), and
/// would take its last bytes for zeros. Of what this node keeps of the file `n_bytes` at both ends
/// are forgotten. Not collective; whoever cannot be told stays as he is.
void refresh_file(const std::string& path, std::uint64_t n_bytes);
/// The same on every node but a single one, for all bytes. Not collective: what reads follows an
/// agreement.
void refresh_file_on_nodes(const Comm& comm, const std::string& path);

}  // namespace tailrace
