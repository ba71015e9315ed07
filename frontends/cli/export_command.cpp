// tailrace export: datasets without compression.
//
// As HDF5 it is a repack with codec none, which carries over everything else of the file; a part
// of it (export_part) is a netCDF-4 file of its own. As .npy
// and raw values every rank reads its rows, in pieces of whole rows of chunks that its memory
// holds, and writes them at their place: files of plain values need no coordination but their
// creation, by rank 0 under another name, and their renaming when all is written.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "commands.hpp"
#include "core/options.hpp"
#include "export_part.hpp"
#include "export_slab.hpp"
#include "read/read.hpp"

namespace tailrace::cli {
namespace {

enum class Format : std::uint8_t { hdf5, npy, raw };

Result<Format> parse_format(const ExportArguments& arguments) {
  const std::string extension = std::filesystem::path(arguments.output).extension().string();
  std::string name = arguments.format;
  if (name.empty()) {
    name = extension == ".npy"                          ? "npy"
           : extension == ".bin" || extension == ".raw" ? "raw"
                                                        : "hdf5";
  }
  if (name == "hdf5") return Format::hdf5;
  if (name == "npy") return Format::npy;
  if (name == "raw") return Format::raw;
  return Status(Code::invalid_argument,
                fmt::format("--format {}: expected hdf5, npy or raw", name));
}

/// The head of a .npy file, version 1: magic, length, literal, padded to 64 bytes.
std::string npy_head(DType dtype, const Shape& shape) {
  const char order = dtype_bytes(dtype) == 1                      ? '|'
                     : std::endian::native == std::endian::little ? '<'
                                                                  : '>';
  const char kind = dtype_name(dtype)[0];
  std::string extents;
  for (const std::uint64_t extent : shape) extents += fmt::format("{},", extent);
  std::string literal =
      fmt::format("{{'descr': '{}{}{}', 'fortran_order': False, 'shape': ({}), }}", order, kind,
                  dtype_bytes(dtype), extents);
  constexpr std::size_t fixed_bytes = 10;
  while ((fixed_bytes + literal.size() + 1) % 64 != 0) literal += ' ';
  literal += '\n';
  std::string head = "\x93NUMPY";
  head += '\x01';
  head += '\0';
  head += static_cast<char>(literal.size() & 0xff);
  head += static_cast<char>(literal.size() >> 8);
  return head + literal;
}

/// An output file that this rank writes parts of.
class PlainOutput {
 public:
  PlainOutput() = default;
  PlainOutput(const PlainOutput&) = delete;
  PlainOutput& operator=(const PlainOutput&) = delete;
  ~PlainOutput() {
    if (fd_ >= 0) ::close(fd_);
  }
  Status open(const std::string& path, bool create) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | (create ? O_CREAT | O_TRUNC : 0), 0666);
    return fd_ < 0 ? status_from_errno(errno, "cannot create " + path) : Status();
  }
  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(address));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return status_from_errno(errno, "writing");
      address += static_cast<std::uint64_t>(n);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return Status();
  }
  Status set_bytes(std::uint64_t n_bytes) const {
    if (::ftruncate(fd_, static_cast<off_t>(n_bytes)) == 0) return Status();
    return status_from_errno(errno, "extending");
  }

 private:
  int fd_ = -1;
};

/// Exports the datasets of one reader. All members are collective.
class PlainExport {
 public:
  PlainExport(Session& session, Reader& reader, const ExportArguments& arguments, Format format,
              std::uint64_t memory_bytes)
      : session_(session),
        reader_(reader),
        arguments_(arguments),
        format_(format),
        piece_bytes_(std::max<std::uint64_t>(memory_bytes / 4, 1)) {}

  Status run() {
    Result<std::vector<std::size_t>> chosen = choose();
    TAILRACE_TRY(session_.settle(chosen.status()));
    const bool into_folder = chosen->size() != 1 || is_directory(arguments_.output);
    Status made;
    if (into_folder && session_.speaks()) made = make_folder(arguments_.output);
    TAILRACE_TRY(session_.settle(made));
    for (const std::size_t number : *chosen) {
      const std::string path = into_folder ? path_in_folder(number) : arguments_.output;
      TAILRACE_TRY(write(number, path).within(reader_.datasets()[number].path));
    }
    return Status();
  }

 private:
  bool matches(const std::string& path, const std::vector<std::string>& globs) const {
    return std::any_of(globs.begin(), globs.end(),
                       [&](const std::string& glob) { return glob_matches(glob, path); });
  }

  /// Whether the dataset only stands for a netCDF dimension that has no variable.
  bool is_bare_dimension(const std::string& path) const {
    const NetcdfModel& model = reader_.model();
    const auto is_its_path = [&](const ModelDimension& dimension) {
      const std::string& group = model.groups[dimension.group].path;
      return !dimension.anonymous && (group == "/" ? "" : group) + "/" + dimension.name == path;
    };
    return std::any_of(model.dimensions.begin(), model.dimensions.end(), is_its_path) &&
           std::none_of(
               model.variables.begin(), model.variables.end(),
               [&](const ModelVariable& variable) { return variable.dataset_path == path; });
  }

  Result<std::vector<std::size_t>> choose() const {
    std::vector<std::size_t> chosen;
    const std::vector<StoredDataset>& all = reader_.datasets();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool wanted = arguments_.only.empty() || matches(all[i].path, arguments_.only);
      if (!wanted || matches(all[i].path, arguments_.exclude)) continue;
      if (arguments_.only.empty() && is_bare_dimension(all[i].path)) continue;
      if (!all[i].dtype) {
        if (!arguments_.only.empty() || format_ == Format::raw) {
          return Status(
              Code::unsupported,
              fmt::format("dataset \"{}\" is {}: only numbers can be exported as {}", all[i].path,
                          all[i].file.type_text, format_ == Format::npy ? "npy" : "raw"));
        }
        if (!arguments_.quiet) {
          session_.remark(fmt::format("dataset \"{}\" is {}, not numbers: left out", all[i].path,
                                      all[i].file.type_text));
        }
        continue;
      }
      chosen.push_back(i);
    }
    if (chosen.empty()) {
      return Status(Code::not_found, fmt::format("{}: no dataset is chosen", arguments_.input));
    }
    return chosen;
  }

  static Status make_folder(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (!error) return Status();
    return Status(Code::io_error,
                  fmt::format("cannot create folder {}: {}", path, error.message()));
  }

  /// "/g/name" as "g.name.npy".
  std::string path_in_folder(std::size_t number) const {
    std::string name = reader_.datasets()[number].path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    return (std::filesystem::path(arguments_.output) /
            (name + (format_ == Format::npy ? ".npy" : ".bin")))
        .string();
  }

  Status create(const StoredDataset& dataset, const Slab& slab, const std::string& path,
                const std::string& partial, const std::string& head) const {
    if (!arguments_.force && ::access(path.c_str(), F_OK) == 0) {
      return Status(Code::already_exists,
                    fmt::format("{} exists already; --force replaces it", path));
    }
    PlainOutput output;
    TAILRACE_TRY(output.open(partial, true));
    TAILRACE_TRY(output.write_at(0, std::as_bytes(std::span(head))));
    return output.set_bytes(head.size() + slab.n_elements() * dataset.element_bytes());
  }

  Status write(std::size_t number, const std::string& path) {
    const StoredDataset& dataset = reader_.datasets()[number];
    const Result<Slab> slab = slab_of(dataset, arguments_.slab);
    TAILRACE_TRY(session_.settle(slab.status()));
    const std::string head =
        format_ == Format::npy ? npy_head(*dataset.dtype, slab->count) : std::string();
    const std::string partial = path + ".partial";
    const Status created =
        session_.speaks() ? create(dataset, *slab, path, partial, head) : Status();
    TAILRACE_TRY(session_.settle(created));
    Status done = write_rows(number, *slab, partial, head.size());
    if (done.ok() && session_.speaks() && std::rename(partial.c_str(), path.c_str()) != 0) {
      done = status_from_errno(errno, "cannot rename " + partial);
    }
    if (!done.ok() && session_.speaks()) std::remove(partial.c_str());
    TAILRACE_TRY(session_.settle(done));
    if (session_.speaks() && !arguments_.quiet) {
      fmt::print("{}  {}  {}  {}\n", path, dtype_name(*dataset.dtype), shape_text(slab->count),
                 size_text(slab->n_elements() * dataset.element_bytes()));
    }
    return Status();
  }

  /// Every rank its share of the rows, in pieces; the same number of rounds on every rank.
  Status write_rows(std::size_t number, const Slab& slab, const std::string& path,
                    std::uint64_t head_bytes) {
    const StoredDataset& dataset = reader_.datasets()[number];
    const auto n_ranks = static_cast<std::uint64_t>(session_.comm.n_ranks());
    const auto rank = static_cast<std::uint64_t>(session_.comm.rank());
    const std::uint64_t n_rows = slab.rank() == 0 ? 1 : slab.count[0];
    const std::uint64_t row_bytes =
        n_rows == 0 ? 1 : slab.n_elements() / n_rows * dataset.element_bytes();
    // Whole rows of chunks, where they fit, so that no chunk is decoded twice.
    const Shape& chunk_shape = dataset.file.storage.chunk_shape;
    const std::uint64_t unit =
        chunk_shape.empty() ? 1 : std::max<std::uint64_t>(1, chunk_shape[0] / slab.stride_of(0));
    const std::uint64_t n_fit =
        std::max<std::uint64_t>(1, piece_bytes_ / std::max<std::uint64_t>(row_bytes, 1));
    const std::uint64_t share = (n_rows + n_ranks - 1) / n_ranks;
    std::uint64_t rows = std::min(n_fit, std::max<std::uint64_t>(share, 1));
    if (rows > unit) rows -= rows % unit;
    const std::uint64_t n_pieces = (n_rows + rows - 1) / rows;
    PlainOutput output;
    Status mine = output.open(path, false);
    std::vector<std::byte> values;
    for (std::uint64_t first = 0; first < n_pieces; first += n_ranks) {
      const std::uint64_t piece = first + rank;
      std::vector<ReadRequest> requests;
      const std::uint64_t begin = piece * rows;
      if (piece < n_pieces && mine.ok()) {
        Slab part = slab;
        const std::uint64_t n = std::min(rows, n_rows - begin);
        if (slab.rank() > 0) {
          part.start[0] += begin * slab.stride_of(0);
          part.count[0] = n;
        }
        values.resize(n * row_bytes);
        requests.push_back({number, part, values.data()});
      }
      TAILRACE_TRY(reader_.read_all(requests));
      if (!requests.empty() && mine.ok()) {
        mine = output.write_at(head_bytes + begin * row_bytes, values).within(path);
      }
    }
    return session_.comm.agree(mine);
  }

  Session& session_;
  Reader& reader_;
  const ExportArguments& arguments_;
  Format format_;
  std::uint64_t piece_bytes_;
};

int export_plain(Session& session, const ExportArguments& arguments, Format format) {
  ReadOptions options;
  options.plugin_path = arguments.plugin_path;
  Status status = apply_read_options(arguments.read_options, options).within("--read-options");
  if (!status.ok()) return session.fail(status);
  Result<std::unique_ptr<Reader>> reader =
      Reader::open(session.mpi.world(), arguments.input, options);
  if (!reader.ok()) return session.fail(reader.status());
  status = PlainExport(session, **reader, arguments, format, options.memory_bytes).run();
  const Status closed = (*reader)->close();
  if (status.ok()) status = closed;
  // What does not decode is the input's fault here, not a codec's.
  if (status.code() == Code::codec_failed) status = Status(Code::corrupt, status.message());
  return status.ok() ? exit_done : session.fail(status);
}

int export_hdf5(Session& session, const ExportArguments& arguments) {
  if (!arguments.slab.empty()) return export_part(session, arguments);
  RepackArguments repack;
  repack.inputs = {arguments.input};
  repack.output = arguments.output;
  repack.fields.codec = "none";
  repack.fields.lossless_codec = "none";
  repack.fields.only = arguments.only;
  repack.fields.exclude = arguments.exclude;
  repack.quiet = arguments.quiet;
  if (arguments.force) repack.file_options.emplace_back("replace", "on");
  if (!arguments.plugin_path.empty()) {
    repack.file_options.emplace_back("plugin-path", arguments.plugin_path);
  }
  return run_repack(session, repack);
}

}  // namespace

int run_export(Session& session, const ExportArguments& arguments) {
  const Result<Format> format = parse_format(arguments);
  if (!format.ok()) return session.fail(format.status());
  search_plugins_in(arguments.plugin_path);
  if (*format == Format::hdf5) return export_hdf5(session, arguments);
  return export_plain(session, arguments, *format);
}

}  // namespace tailrace::cli
