// Agreements, folders, lists of inputs.

#include "verbs/verb_ranks.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <unordered_map>

#include "core/byte_stream.hpp"
#include "core/options.hpp"
#include "hdf5/file_names.hpp"

namespace tailrace::verbs {
namespace {

Result<std::string> whole_text(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  if (is_directory(path)) {
    return Status(Code::invalid_argument, "the list " + path + " must be a text file, is a folder");
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) return status_from_errno(errno != 0 ? errno : EIO, "cannot read the list " + path);
  return text;
}

/// Reject files that are named more than once, each on a separate line. Paths are compared as
/// absolute paths without "." and "..": stat calls would cost rank 0 a file system request per
/// file.
Status refuse_duplicates(const std::vector<std::string>& inputs) {
  std::unordered_map<std::string, std::size_t> n_times;
  const auto key_of = [](const std::string& input) {
    std::error_code ignored;
    return std::filesystem::absolute(input, ignored).lexically_normal().string();
  };
  for (const std::string& input : inputs) ++n_times[key_of(input)];
  if (n_times.size() == inputs.size()) return Status();
  Status twice(Code::invalid_argument,
               "files are given more than once, which would duplicate their rows:");
  for (const std::string& input : inputs) {
    std::size_t& count = n_times[key_of(input)];
    if (count > 1) twice = twice.with_line(fmt::format("{} ({} times)", input, count));
    count = 0;
  }
  return twice;
}

/// Read the inputs at rank 0.
Result<std::vector<std::string>> inputs_here(const std::vector<std::string>& files,
                                             const std::string& list_path) {
  if (files.empty() == list_path.empty()) {
    return Status(
        Code::invalid_argument,
        files.empty()
            ? "no inputs; give FILES or --list"
            : "FILES and --list cannot be combined, since their order would be undefined");
  }
  std::vector<std::string> inputs = files;
  if (!list_path.empty()) {
    TAILRACE_TAKE(std::string text, whole_text(list_path));
    TAILRACE_TAKE(inputs, parse_input_list(text).within("list " + list_path));
  }
  TAILRACE_TRY(refuse_duplicates(inputs));
  return inputs;
}

}  // namespace

Status agree(Comm& comm, const Status& mine) {
  const Status agreed = comm.agree(mine);
  const std::string& message = agreed.message();
  if (agreed.ok() || !(message.starts_with("rank 0:") || message.starts_with("rank 0 on ")))
    return agreed;
  return Status::of_lines(agreed.code(), message.substr(message.find(": ") + 2));
}

bool is_directory(const std::string& path) {
  struct stat entry {};
  return ::stat(path.c_str(), &entry) == 0 && S_ISDIR(entry.st_mode);
}

std::uint64_t file_bytes_of(const std::string& path) {
  struct stat entry {};
  return ::stat(path.c_str(), &entry) == 0 ? static_cast<std::uint64_t>(entry.st_size) : 0;
}

std::string folder_of(const std::string& output) {
  const std::filesystem::path parent = std::filesystem::path(output).parent_path();
  return parent.empty() ? "." : parent.string();
}

Status check_folder_is_there(const std::string& output) {
  const std::string folder = folder_of(output);
  if (is_directory(folder)) return Status();
  TAILRACE_TRY(check_not_url(output));
  return Status(Code::not_found,
                fmt::format("cannot create {}: folder {} does not exist", output, folder));
}

Status check_folder_is_writable(const std::string& output) {
  const std::string folder = folder_of(output);
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return Status();
  return status_from_errno(errno, fmt::format("cannot create {} in folder {}", output, folder));
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size() && !text.empty();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    parts.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

Result<std::vector<std::string>> parse_input_list(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (text.find('\0') != std::string_view::npos) {
    return Status(Code::invalid_argument, "expected one path per line, found binary data");
  }
  std::vector<std::string> paths;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, newline));
    text = newline == std::string_view::npos ? std::string_view() : text.substr(newline + 1);
    if (!line.empty() && line.front() != '#') paths.emplace_back(line);
  }
  if (paths.empty()) return Status(Code::invalid_argument, "the list is empty");
  return paths;
}

Result<std::vector<std::string>> read_inputs(Comm& comm, const std::vector<std::string>& files,
                                             const std::string& list_path) {
  Status mine;
  Bytes packed;
  if (comm.is_root()) {
    const Result<std::vector<std::string>> inputs = inputs_here(files, list_path);
    mine = inputs.status();
    ByteWriter writer;
    if (inputs.ok()) {
      for (const std::string& input : *inputs) writer.add_text(input);
    }
    packed = writer.take();
  }
  TAILRACE_TRY(agree(comm, mine));
  comm.broadcast(packed, 0);
  std::vector<std::string> inputs;
  for (ByteReader reader(packed); !reader.at_end();) inputs.push_back(reader.take_text());
  return inputs;
}

}  // namespace tailrace::verbs
