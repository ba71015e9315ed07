// The commands of `tailrace`: what the command line says, as structs, and the functions that do it.
//
// main.cpp fills the structs; each command lives in a file of its own, and what repack, concat,
// export, verify, info and recover do is in src/verbs. All functions are collective over the
// session's ranks and return the exit code, the same on every rank.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli_common.hpp"
#include "core/options.hpp"
#include "verbs/concat_request.hpp"
#include "verbs/export_files.hpp"
#include "verbs/file_info.hpp"
#include "verbs/recover_file.hpp"
#include "verbs/repack.hpp"
#include "verbs/verify_concat.hpp"
#include "verbs/verify_files.hpp"

namespace tailrace::cli {

struct RepackArguments {
  std::vector<std::string> inputs;
  std::string output;                  ///< A file, or an existing folder.
  verbs::RepackRequest request;        ///< Of each input; options are file_options.
  std::vector<KeyValue> file_options;  ///< threads, memory, chunk, layout, ...: see core/options.
  std::string why;                     ///< "predicted", "measured"; empty: not asked.
  std::string trace_path;
  std::string json_path;
  bool quiet = false;
};
int run_repack(Session& session, const RepackArguments& arguments);

struct ConcatArguments {
  verbs::ConcatWords words;
  std::string json_path;
  bool quiet = false;
};
int run_concat(Session& session, const ConcatArguments& arguments);

struct VerifyArguments {
  verbs::VerifyRequest files;
  verbs::VerifyConcatRequest concat;    ///< Without an output: two files to compare.
  std::vector<std::string> more_files;  ///< Its inputs, after original and compressed.
  std::string plugin_path;
  std::string json_path;
  bool quiet = false;
};
int run_verify(Session& session, const VerifyArguments& arguments);

struct InfoArguments {
  verbs::InfoRequest request;
  std::string json_path;
};
int run_info(Session& session, const InfoArguments& arguments);

struct RecoverArguments {
  verbs::RecoverRequest request;
  std::string json_path;
};
int run_recover(Session& session, const RecoverArguments& arguments);

struct FilterArgsArguments {
  std::string codec;  ///< "trz,preset=fast"
  std::string bound;  ///< "abs=1e-3"; empty: none.
  std::string range;  ///< "LEAST:GREATEST", for relative bounds.
  std::string chunk;  ///< "f32:64x64x64": what plug-ins are tried on.
  std::string plugin_path;
  std::string format;  ///< "h5repack", "h5py", "json".
};
int run_filter_args(Session& session, const FilterArgsArguments& arguments);

struct TrainBookArguments {
  std::string input;
  std::string output;
  std::string codec = "trz";      ///< With its settings.
  std::string bound;              ///< abs=, rel= or psnr=.
  std::vector<std::string> only;  ///< Globs of the fields to count; empty: all.
  std::string chunk;              ///< SIZE or SHAPE; empty: as repack chooses.
  std::string raw_format;
  bool force = false;
};
int run_train_book(Session& session, const TrainBookArguments& arguments);

struct ProfileArguments {
  std::string output = "tailrace_profile.json";
  bool force = false;
  std::string show;          ///< Print this profile instead of measuring; empty: measure.
  std::string folder = ".";  ///< Where storage is measured.
  double time_s = 60;
  std::string largest = "512MiB";  ///< Bytes of a rank in one file.
  std::string stripe;
  std::string input;  ///< Fields to measure codecs on; empty: generated ones.
  std::string raw_format;
  /// What codec=auto considers.
  std::string codecs =
      "none,trz,trz,lossless=off,trz,preset=fast,trz,preset=ratio,"
      "trz,predictor=lorenzo,dimension=1,trz,predictor=lorenzo,dimension=2,"
      "trz,predictor=lorenzo,dimension=3,portable,deflate,zstd,sz3,zfp";
  std::string plugin_path;
  std::string plot_path;
  std::string json_path;
  bool quiet = false;
};
int run_profile(Session& session, const ProfileArguments& arguments);

struct ScheduleArguments {
  std::string input;               ///< An instance, JSON; empty: drawn.
  std::string random;              ///< "n=50,seed=7"; empty: read.
  std::string save_path;           ///< Where to write the instance; empty: nowhere.
  std::string schedulers = "all";  ///< Names, "all" or "none".
  std::string exact;               ///< "ilp", "cp-sat" or both; empty: no solver.
  double time_limit_s = 60;        ///< Of each solver.
  std::size_t n_workers = 0;       ///< Threads of a solver; 0: as it likes.
  std::string plot_path;
  std::string json_path;
  bool quiet = false;
};
int run_schedule(Session& session, const ScheduleArguments& arguments);

struct ExportArguments {
  verbs::ExportRequest request;
  bool quiet = false;
};
int run_export(Session& session, const ExportArguments& arguments);

/// What `tailrace --version` prints: versions of Tailrace, HDF5 and MPI, codecs, plug-in folders.
std::string version_text();

}  // namespace tailrace::cli
