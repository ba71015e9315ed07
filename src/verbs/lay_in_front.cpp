#include "verbs/lay_in_front.hpp"

#include "hdf5/file_names.hpp"
#include "verbs/repack.hpp"

namespace tailrace::verbs {

Status lay_in_front(const VerbRanks& ranks, const std::string& path, const FileOptions& like) {
  // Replace the target of a link, not the link.
  TAILRACE_TAKE(const std::string file, ranks.agree(resolve_links(path)));
  RepackRequest request;
  request.input = file;
  request.output = companion_path(file, ".front");
  request.publish = Publish::as_stored;
  request.whole_times = true;
  FileOptions& options = request.options;
  options.field_defaults.layout = kFrontLayout;
  options.n_threads = like.n_threads;
  options.memory_bytes = like.memory_bytes;
  options.write_buffer_bytes = like.write_buffer_bytes;
  options.alignment_bytes = like.alignment_bytes;
  options.plugin_path = like.plugin_path;
  options.sync = like.sync;
  // options.replace is false: an existing file of the new name is not ours.
  const std::string what =
      "\"" + path + "\" is complete, but its metadata cannot be moved to the front";
  TAILRACE_TRY(repack(ranks, request).status().within(what));
  Status named;
  if (ranks.is_root()) named = give_name(request.output, file, AtName::replaced, like.sync);
  return ranks.agree(named).within(what);
}

}  // namespace tailrace::verbs
