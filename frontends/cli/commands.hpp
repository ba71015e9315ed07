// The commands of `tailrace`: what the command line says, as structs, and the functions that do it.
//
// main.cpp fills the structs; each command lives in a file of its own. All functions are collective
// over the session's ranks and return the exit code, the same on every rank.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli_common.hpp"
#include "core/options.hpp"
#include "netcdf_options.hpp"
#include "repack_plan.hpp"

namespace tailrace::cli {

struct RepackArguments {
  std::vector<std::string> inputs;
  std::string output;  ///< A file, or an existing folder.
  FieldRequests fields;
  NetcdfArguments netcdf;
  std::vector<KeyValue> file_options;  ///< threads, memory, chunk, layout, ...: see core/options.
  std::string why;                     ///< "predicted", "measured"; empty: not asked.
  std::string raw_format;              ///< "f32:512x512x512"; empty: the inputs say what they are.
  std::string trace_path;
  std::string json_path;
  bool quiet = false;
};
int run_repack(Session& session, const RepackArguments& arguments);

struct ConcatArguments {
  std::vector<std::string> files;
  std::string list_path;  ///< Empty: the files are named one by one. "-": standard input.
  std::string output;
  bool append = false;
  bool resume = false;
  std::string sort_paths;         ///< Separated by commas, or "default"; empty: as given.
  std::string on_error = "stop";  ///< Or "skip".
  std::string key_names;          ///< Separated by commas; empty: none.
  std::string chunk;              ///< "1MiB", "128x"; empty: as the engine chooses.
  std::string codec = "keep";     ///< With its settings.
  std::optional<std::uint32_t> level;
  std::string plain_below;  ///< A size; empty: 0.
  bool contiguous = false;
  bool dedup = false;
  double commit_every_s = 30;
  std::vector<KeyValue> file_options;  ///< threads, memory, layout, ...: see core/options.
  std::string json_path;
  bool quiet = false;
};
int run_concat(Session& session, const ConcatArguments& arguments);

struct VerifyArguments {
  std::string original;
  std::string compressed;
  std::string bound;                   ///< For all fields, over what the file says; empty: none.
  std::vector<std::string> per_field;  ///< "GLOB:bound=...,fill=..."
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  std::string raw_format;
  std::string concat_output;            ///< A concatenation to check; empty: two files to compare.
  std::vector<std::string> more_files;  ///< Its inputs, after original and compressed.
  std::string list_path;                ///< Or a list of them.
  std::string key_names;                ///< As for concat.
  std::string memory;
  std::string plugin_path;
  std::string json_path;
  bool quiet = false;
};
int run_verify(Session& session, const VerifyArguments& arguments);

struct InfoArguments {
  std::string file;
  std::string chunks_of;  ///< List this field's chunks; empty: none.
  std::string raw_format;
  std::string json_path;
};
int run_info(Session& session, const InfoArguments& arguments);

struct RecoverArguments {
  std::string file;
  bool apply = false;
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
  std::string input;
  std::string output;
  std::string format;  ///< "hdf5", "npy", "raw"; empty: by the output's name.
  bool force = false;
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  std::string slab;  ///< "0:10,5:20:2"; empty: all.
  std::string read_options;
  std::string plugin_path;
  bool quiet = false;
};
int run_export(Session& session, const ExportArguments& arguments);

/// What `tailrace --version` prints: versions of Tailrace, HDF5 and MPI, codecs, plug-in folders.
std::string version_text();

/// Let HDF5 look for filter plug-ins in these folders first, also when it reads. Must come before
/// the first HDF5 call, which is when HDF5 looks at its environment.
void search_plugins_in(const std::string& folders);

/// Parse "f32:512x512x512". @error invalid_argument  begins with the option's name.
Result<RawFormat> parse_raw_format(const std::string& text, const char* option = "--raw");

/// Open an input; an empty `raw_format` means that the file says what it is. Chunks encoded by trz
/// are read without its plug-in.
Result<std::unique_ptr<InputFile>> open_input(const std::string& path,
                                              const std::string& raw_format);

}  // namespace tailrace::cli
