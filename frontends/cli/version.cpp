// tailrace --version: what this program is made of, and which codecs it can reach.

#include <fmt/format.h>

#include <thread>

#include "codec/registry.hpp"
#include "commands.hpp"
#include "describe/field_attributes.hpp"
#include "hdf5/filter_plugins.hpp"
#include "layout/layout.hpp"

#ifdef TAILRACE_WITH_MPI
#include <mpi.h>
#endif

namespace tailrace::cli {
namespace {

std::string mpi_version() {
#ifdef TAILRACE_WITH_MPI
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  // Open MPI adds its packager and date behind a comma, MPICH a page of build options.
  return all.substr(0, all.find_first_of(",\n"));
#else
  return "none (built without MPI)";
#endif
}

/// Whether a plug-in codec can be loaded, by making one.
std::string plugin_state(const std::string& name) {
  CodecRequest request;
  request.name = name;
  request.dtype = DType::f32;
  request.chunk_shape = {16, 16, 16};
  request.absolute_bound = name == "zstd" ? 0 : 1e-3;
  Result<std::unique_ptr<Codec>> made = make_plugin_codec(request, "");
  if (made.ok()) return (*made)->version();
  return made.status().code() == Code::plugin_missing ? "plug-in not found"
                                                      : made.status().message();
}

}  // namespace

std::string version_text() {
  std::string out = fmt::format("tailrace {}\n", TAILRACE_VERSION);
  out += fmt::format("HDF5     {}\n", hdf5_library_version());
  out += fmt::format("MPI      {}\n", mpi_version());
  out += "codecs   built in:";
  for (const CodecEntry& codec : codec_registry()) out += fmt::format(" {}", codec.name);
  out += '\n';
  for (const char* name : {"sz3", "zfp", "zstd"}) {
    out += fmt::format("         {}: {}\n", name, plugin_state(name));
  }
  out += "layouts ";
  for (const LayoutEntry& layout : layout_registry()) out += fmt::format(" {}", layout.name);
  out += "\nplug-in folders\n";
  for (const std::string& folder : plugin_folders("")) {
    out += fmt::format("         {}{}\n", folder, is_directory(folder) ? "" : "  (not there)");
  }
  return out;
}

}  // namespace tailrace::cli
