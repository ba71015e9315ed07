// tailrace: the command line.

#include <fmt/format.h>

#include <array>
#include <string>

#include "build_facts.hpp"
#include "commands.hpp"
#include "core/codec_registry.hpp"
#include "describe/field_attributes.hpp"
#include "hdf5/filter_plugins.hpp"
#include "layout/layout.hpp"
#include "program.hpp"
#include "trz/kernels/isa.hpp"

namespace {

using namespace tailrace;
using namespace tailrace::cli;

constexpr const char* kMainDescription =
    R"(tailrace: parallel compressed output into one ordinary HDF5 file

Examples:
  tailrace repack snapshot.h5 -o small.h5 --codec sz3 --bound rel=1e-3
  mpiexec -n 4 tailrace repack snapshot.nc -o small.h5 --codec zfp --bound abs=0.01
  mpiexec -n 4 tailrace concat -o run.h5 -i list.txt
  tailrace verify snapshot.h5 small.h5
  tailrace info small.h5
)";

/// State of a plug-in codec: its version, or the reason why it cannot be loaded. Loads it.
std::string plugin_state(const CodecEntry& entry) {
  CodecRequest request;
  request.name = entry.name;
  request.dtype = DType::f32;
  request.chunk_shape = {16, 16, 16};
  request.absolute_bound = entry.loss == Loss::never ? 0 : 1e-3;
  Result<std::unique_ptr<Codec>> made = make_codec(request, "");
  if (made.ok()) return (*made)->version();
  return made.status().code() == Code::plugin_missing ? "plug-in not found"
                                                      : made.status().message();
}

/// The sets that the codecs' kernels were compiled for, and which of these this processor has.
std::string instruction_sets() {
  std::string compiled = trz::isa_name(trz::Isa::plain);
  std::string present = compiled;
  if (TRZ_X86 != 0) {
    for (const trz::Isa isa : {trz::Isa::avx2, trz::Isa::avx512}) {
      compiled.append(" ").append(trz::isa_name(isa));
      if (trz::isa_supported(isa)) present.append(" ").append(trz::isa_name(isa));
    }
  }
  return fmt::format("kernels  for {}; this processor has {}", compiled, present);
}

/// Text of `tailrace --version`: how the program was built, and the codecs that it can load.
std::string version_text() {
  std::string out = fmt::format("tailrace {}\n", TAILRACE_VERSION);
  constexpr std::size_t column = 9;
  const auto line = [&](std::string_view text) { out += wrapped(text, column) + "\n"; };
  line(fmt::format("commit   {}", build_commit));
  line(fmt::format("built    by {}, {}; uses {} here", build_compiler, build_type,
                   trz::isa_name(trz::best_isa())));
  line(instruction_sets());
  line(fmt::format("HDF5     {} (built against {})", hdf5_library_version(), build_hdf5));
  line(fmt::format("MPI      {}", mpi_library_version()));
  std::string codecs = "codecs   built in:";
  std::string plugins;
  for (const CodecEntry* codec : codec_registry()) {
    if (!codec->plugin) codecs += fmt::format(" {}", codec->name);
    if (!codec->plugin || codec->variants.empty()) continue;
    const std::string state = fmt::format("{}: {}", codec->name, plugin_state(*codec));
    plugins += std::string(column, ' ') + wrapped(state, column + 2, column) + "\n";
  }
  line(codecs);
  out += plugins;
  std::string layouts = "layouts ";
  for (const LayoutEntry& layout : layout_registry()) layouts += fmt::format(" {}", layout.name);
  line(layouts);
  out += "plug-in folders\n";
  for (const std::string& folder : plugin_folders("")) {
    out += fmt::format("         {}{}\n", printable(folder),
                       is_directory(folder) ? "" : "  (does not exist)");
  }
  return out;
}

constexpr std::array adders = {add_repack,  add_concat,  add_export,      add_verify,  add_info,
                               add_recover, add_options, add_filter_args, add_profile, add_doctor};

}  // namespace

int main(int argc, char** argv) {
  return run_program({"tailrace", kMainDescription, adders, version_text}, argc, argv);
}
