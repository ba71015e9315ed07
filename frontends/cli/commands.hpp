// The commands of `tailrace`: what the command line says, as structs, and the functions that do it.
//
// main.cpp fills the structs; each command lives in a file of its own. All functions are collective
// over the session's ranks and return the exit code, the same on every rank.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli_common.hpp"
#include "core/options.hpp"
#include "repack_plan.hpp"

namespace tailrace::cli {

struct RepackArguments {
  std::vector<std::string> inputs;
  std::string output;  ///< A file, or an existing folder.
  FieldRequests fields;
  std::vector<KeyValue> file_options;  ///< threads, memory, chunk, layout, ...: see core/options.
  std::string raw_format;              ///< "f32:512x512x512"; empty: the inputs say what they are.
  std::string trace_path;
  std::string json_path;
  bool quiet = false;
};
int run_repack(Session& session, const RepackArguments& arguments);

struct VerifyArguments {
  std::string original;
  std::string compressed;
  std::string bound;                   ///< For all fields, over what the file says; empty: none.
  std::vector<std::string> per_field;  ///< "GLOB:bound=...,fill=..."
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  std::string raw_format;
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
