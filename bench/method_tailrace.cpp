// The rows of ours: exactly what a simulation would call.

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "layout/layout.hpp"
#include "method.hpp"
#include "write.hpp"

namespace tailrace::bench {
namespace {

class TailraceMethod final : public Method {
 public:
  TailraceMethod(const BenchContext& context, std::string name, const std::string& layout,
                 const std::string& codec_name, bool verified)
      : Method(std::move(name)), context_(context), codec_name_(codec_name) {
    options_.n_threads = context.options.n_threads;
    options_.memory_bytes = context.options.memory_bytes;
    options_.sync = context.options.fsync;
    options_.plugin_path = context.options.plugin_path;
    FieldOptions& defaults = options_.field_defaults;
    defaults.codec = codec_name;
    defaults.codec_given = true;
    defaults.layout = layout;
    if (codec_name == context.options.codec) {
      defaults.codec_settings = context.options.codec_settings;
    }
    // HDF5's own filters check nothing either: equal work, unless the row is about checking.
    defaults.verify = verified ? Verify::on : Verify::off;
  }

  bool has_lanes() const override { return true; }
  std::string codec_version() const override { return codec_version_; }

  Status write(const std::string& path, RunDetails& details) override {
    Result<std::unique_ptr<Writer>> created = Writer::create(context_.mpi.world(), path, options_);
    if (!created.ok()) return created.status();
    Writer& writer = **created;
    for (const BenchField& field : context_.work.fields) {
      Result<std::size_t> index = writer.define_field(definition_of(field));
      if (!index.ok()) return index.status();
      TAILRACE_TRY(writer.put(*index, field.box, field.values.data()));
    }
    Result<StepReport> report = writer.end_step();
    if (!report.ok()) return report.status();
    keep(*report, details);
    return writer.close();
  }

  /// The Writer's report speaks for all ranks already.
  void combine_details(Comm&, RunDetails&) const override {}

  Result<ReadBack> read_back(const std::string& path) override {
    return read_back_with_hdf5(context_, path, codec_name_ == "none");
  }

  Status remove(const std::string& path) override {
    // After a failed run the file may still have its temporary name.
    ::unlink((path + partial_suffix).c_str());
    return Method::remove(path);
  }

 private:
  FieldDefinition definition_of(const BenchField& field) const {
    FieldDefinition definition{field.path, field.dtype, field.shape, options_.field_defaults,
                               false};
    definition.options.chunk_shape = field.chunk_shape;
    if (codec_name_ != "none" && field.absolute_bound > 0) {
      definition.options.bound = {BoundMode::abs, field.absolute_bound};
    }
    return definition;
  }

  void keep(const StepReport& report, RunDetails& details) {
    details.encode_s = report.encode_s;
    details.write_s = report.write_s;
    details.makespan_s = report.makespan_s;
    details.longer_lane_s = std::max(report.encode_s, report.write_s);
    details.hidden_share = report.hidden_share;
    details.index_s = report.index_s;
    details.sync_s = report.sync_s;
    details.commit_s = report.commit_s;
    details.n_writes = report.n_writes;
    details.buffer_bytes = report.peak_memory_bytes;
    if (codec_name_ != "none") codec_version_ = report.fields.front().codec_version;
  }

  BenchContext context_;
  std::string codec_name_;
  FileOptions options_;
  std::string codec_version_;
};

}  // namespace

Result<std::unique_ptr<Method>> make_tailrace_method(const BenchContext& context, std::string name,
                                                     const std::string& layout,
                                                     const std::string& codec_name, bool verified) {
  Result<std::unique_ptr<Layout>> known = make_layout(layout);
  if (!known.ok()) return known.status();
  for (const BenchField& field : context.work.fields) {
    Result<std::unique_ptr<Codec>> codec = make_bench_codec(context.options, codec_name, field);
    if (!codec.ok()) return codec.status().within("field \"" + field.path + "\"");
  }
  return std::unique_ptr<Method>(
      std::make_unique<TailraceMethod>(context, std::move(name), layout, codec_name, verified));
}

}  // namespace tailrace::bench
