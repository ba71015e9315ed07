// Every option of `tailrace export`; examples first.

#include "export_options.hpp"

#include <CLI/CLI.hpp>

namespace tailrace::cli {
namespace {

constexpr const char* description =
    R"help(Write datasets without compression: as HDF5, as .npy, or as raw values

Examples:
  tailrace export small.h5 -o plain.h5
      all of it, with groups, attributes and links, no filters
  mpiexec -n 4 tailrace export small.h5 -o density.npy --only /fields/density
      one dataset as a NumPy file
  tailrace export small.h5 -o folder --format npy
      each dataset as a .npy file in a folder, named by its path
  tailrace export small.h5 -o u.bin --format raw --only /u --slab 0:100,0:64:2
      a part of one dataset: start:end or start:end:step per dimension
  tailrace export small.nc -o part.nc --slab 0:1,100:200,100:200
      a part of all datasets of three dimensions, with their coordinates
)help";

constexpr const char* footer =
    R"help(Numbers are written in this machine's byte order. Files of .npy and of raw values are
written by all ranks at once, each its own rows. docs/read.md tells more.

Exit codes: 0 done, 2 usage or bad input, 3 storage or memory gave out.)help";

}  // namespace

void add_export(CLI::App& app, ExportArguments& arguments) {
  CLI::App* sub = app.add_subcommand("export", description);
  sub->footer(footer);
  sub->add_option("INPUT", arguments.input, "An HDF5 or netCDF-4 file.")->required();
  const auto text = [&](const char* name, std::string& target, const char* unit, const char* group,
                        const char* help) {
    return sub->add_option(name, target, help)->type_name(unit)->group(group)->take_last();
  };
  const auto list = [&](const char* name, std::vector<std::string>& target, const char* help) {
    sub->add_option(name, target, help)->type_name("GLOB")->group("Input")->expected(1)->take_all();
  };
  text("-o,--output", arguments.output, "OUT", "Output",
       "The file to create, or a folder for several .npy or raw files.")
      ->required();
  text("--format", arguments.format, "hdf5|npy|raw", "Output",
       "Default: by the name of OUT (.npy, .bin, .raw), else hdf5.");
  sub->add_flag("--force", arguments.force, "Replace existing files.")->group("Output");
  list("--only", arguments.only, "Export only datasets whose path matches. Repeatable.");
  list("--exclude", arguments.exclude, "Leave out datasets whose path matches. Repeatable.");
  text("--slab", arguments.slab, "START:END[:STEP],...", "Input",
       "A part of each dataset, one range per dimension; an empty START or END is the first or "
       "last. As HDF5, what is cut along each dimension is a netCDF-4 file with coordinates.");
  text("--read-options", arguments.read_options, "KEY=VALUE,...", "Resources",
       "threads=N, memory=SIZE, read=SIZE, gap=SIZE, prefetch=on|off.");
  text("--plugin-path", arguments.plugin_path, "FOLDERS", "Resources",
       "Folders of HDF5 filter plug-ins, separated by colons, searched before HDF5_PLUGIN_PATH.");
  sub->add_flag("-q,--quiet", arguments.quiet, "Print nothing but errors.")->group("Reports");
}

}  // namespace tailrace::cli
