// Every option of `tailrace export`; examples first.

#include "command_line.hpp"
#include "option_group.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* export_description =
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

constexpr const char* export_footer =
    R"help(Numbers are written in this machine's byte order. Files of .npy and of raw values are
written by all ranks at once, each its own rows. docs/read.md tells more.

Exit codes: 0 done, 2 usage or bad input, 3 storage or memory gave out.)help";

}  // namespace

void add_export(CLI::App& app, ExportArguments& arguments) {
  CLI::App* sub = app.add_subcommand("export", export_description);
  sub->footer(export_footer);
  sub->add_option("INPUT", arguments.request.input, "An HDF5 or netCDF-4 file.")->required();
  const Group output(sub, "Output");
  const Group input(sub, "Input");
  const Group resources(sub, "Resources");
  output("-o,--output", arguments.request.output, "OUT",
         "The file to create, or a folder for several .npy or raw files.")
      ->required();
  output("--format", arguments.request.format, "hdf5|npy|raw",
         "Default: by the name of OUT (.npy, .bin, .raw), else hdf5.");
  output.flag("--force", arguments.request.replace, "Replace existing files.");
  input.list("--only", arguments.request.selection.only, "GLOB",
             "Export only datasets whose path matches. Repeatable.");
  input.list("--exclude", arguments.request.selection.exclude, "GLOB",
             "Leave out datasets whose path matches. Repeatable.");
  input("--slab", arguments.request.slab, "START:END[:STEP],...",
        "A part of each dataset, one range per dimension; an empty START or END is the first or "
        "last. As HDF5, what is cut along each dimension is a netCDF-4 file with coordinates.");
  resources("--read-options", arguments.request.read_options, "KEY=VALUE,...",
            "threads=N, memory=SIZE, read=SIZE, gap=SIZE, prefetch=on|off.");
  resources(
      "--plugin-path", arguments.request.plugin_path, "FOLDERS",
      "Folders of HDF5 filter plug-ins, separated by colons, searched before HDF5_PLUGIN_PATH.");
  Group(sub, "Reports").flag("-q,--quiet", arguments.quiet, "Print nothing but errors.");
}

}  // namespace tailrace::cli
