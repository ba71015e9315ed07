// Every option of `tailrace filter-args`; examples first.

#include "command_line.hpp"
#include "option_group.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* filter_args_description =
    R"help(Say a codec as other programs want it: h5repack, h5py, anything that writes through HDF5

Examples:
  h5repack -f "$(tailrace filter-args --codec trz --bound abs=1e-3)" in.h5 out.h5
      HDF5 encodes, by the plug-in libh5trz.so in a folder of HDF5_PLUGIN_PATH
  tailrace filter-args --codec trz,preset=ratio --bound pw_rel=1e-4 --format h5py
      compression=481, compression_opts=(513, 2, ...), for h5py's create_dataset
  tailrace filter-args --codec sz3 --bound rel=1e-3 --range -1.5:20
      any plug-in that Tailrace knows; a filter sees one chunk, so the range must be said
)help";

}  // namespace

void add_filter_args(CLI::App& app, FilterArgsArguments& filter_args) {
  CLI::App* sub = app.add_subcommand("filter-args", filter_args_description);
  const Group what(sub, "What to say");
  what("-c,--codec", filter_args.codec, "CODEC",
       "Codec and its settings, NAME[,key=value...], as for repack.")
      ->required();
  what("-b,--bound", filter_args.bound, "MODE=VALUE",
       "abs= or pw_rel=; rel= and psnr= need --range. Default: none, lossless.");
  what("--range", filter_args.range, "LEAST:GREATEST",
       "The range of the field's values, of which rel= and psnr= take their share.");
  filter_args.chunk = "f32:64x64x64";
  what("--for", filter_args.chunk, "TYPE:SHAPE",
       "Type and chunk shape that a plug-in is asked about. Default f32:64x64x64.");
  filter_args.format = "h5repack";
  what("--format", filter_args.format, "FORMAT",
       "h5repack: the value of its -f, a line for each filter; h5py: keyword arguments of "
       "create_dataset; json: both, and the bare words. Default h5repack.")
      ->check(CLI::IsMember({"h5repack", "h5py", "json"}));
  Group(sub, "Input")("--plugin-path", filter_args.plugin_path, "FOLDERS",
                      "Folders of HDF5 filter plug-ins, searched before HDF5_PLUGIN_PATH.");
  sub->set_help_flag("-h,--help", "Print this and exit.")->group("Reports");
}

}  // namespace tailrace::cli
