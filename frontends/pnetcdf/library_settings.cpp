// See library_settings.hpp.

#include "pnetcdf/library_settings.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace tailrace::pnetcdf {
namespace {

struct SettingsText {
  Status status;
  std::string text;
};

SettingsText text_of_environment() {
  const char* variable = std::getenv("TAILRACE_OPTIONS");
  if (variable == nullptr) return {};
  std::string text = variable;
  const bool named = text.starts_with('@');
  if (named) text.erase(0, 1);
  // A path has no '=' as a rule, options have one always.
  if (!named && (text.empty() || text.find('=') != std::string::npos)) return {{}, text};
  std::ifstream file(text);
  if (!file) {
    return {Status(Code::invalid_argument, "TAILRACE_OPTIONS: neither options nor a file: " + text),
            {}};
  }
  std::ostringstream content;
  content << file.rdbuf();
  return {{}, content.str()};
}

}  // namespace

Status read_settings(MPI_Comm comm, ArrayFileOptions& options) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  SettingsText settings;
  if (rank == 0) settings = text_of_environment();
  int header[2] = {settings.status.ok() ? 0 : static_cast<int>(settings.status.code()), 0};
  std::string& text =
      settings.status.ok() ? settings.text : (settings.text = settings.status.message());
  header[1] = static_cast<int>(text.size());
  MPI_Bcast(header, 2, MPI_INT, 0, comm);
  text.resize(static_cast<std::size_t>(header[1]));
  MPI_Bcast(text.data(), header[1], MPI_CHAR, 0, comm);
  if (header[0] != 0) return Status(static_cast<Code>(header[0]), text);

  TAILRACE_TRY(apply_array_file_options(text, options).within("TAILRACE_OPTIONS"));
  // Unless somebody has a better idea: what every netCDF-4 reads, at the level that costs least. On
  // the fields of docs/codecs.md level 1 is a third faster than level 4, at the same ratio.
  FieldOptions& defaults = options.file.field_defaults;
  if (!defaults.codec_given && !defaults.bound_given && defaults.codec_settings.empty()) {
    defaults.codec_settings = {{"level", "1"}};
  }
  return Status();
}

}  // namespace tailrace::pnetcdf
