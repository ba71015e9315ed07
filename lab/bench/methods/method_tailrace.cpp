// Tailrace's rows: exactly the calls of a simulation.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "deferred_storage.hpp"
#include "layout/layout.hpp"
#include "method.hpp"
#include "output/output.hpp"
#include "write/write.hpp"

namespace tailrace::bench {
namespace {

/// "trz,preset=fast x 4, none x 2": the chosen codecs with their settings, the most frequent first.
std::string chosen_text(const StepReport& report) {
  std::vector<std::pair<std::string, int>> counts;
  for (const FieldReport& field : report.fields) {
    const std::string codec =
        field.candidates.empty() ? field.codec : field.candidates[field.chosen_candidate].codec;
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& count) { return count.first == codec; });
    if (known == counts.end()) {
      counts.emplace_back(codec, 1);
    } else {
      ++known->second;
    }
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [codec, count] : counts) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", codec, count);
  }
  return text;
}

class TailraceMethod final : public Method {
 public:
  TailraceMethod(const BenchContext& context, std::string name, TailraceSpec spec)
      : Method(std::move(name)), context_(context), spec_(std::move(spec)) {
    options_.n_threads = context.options.n_threads;
    options_.memory_bytes = context.options.memory_bytes;
    options_.sync = context.options.fsync;
    options_.plugin_path = context.options.plugin_path;
    options_.profile_path = context.setting.profile_path;
    options_.order = spec_.order;
    if (spec_.serial) {
      options_.open_storage = [this](const std::string& path, bool create) {
        return open_deferred_storage(path, create, flush_s_);
      };
    }
    FieldOptions& defaults = options_.field_defaults;
    defaults.codec = spec_.codec;
    defaults.codec_given = true;
    defaults.codec_settings = spec_.settings;
    defaults.layout = spec_.layout;
    defaults.space.ratio = spec_.space_ratio;
    defaults.expected_ratio = context.options.expected_ratio;
    defaults.expected_error = context.options.expected_error;
    // HDF5's own filters check nothing either: equal work, unless the row measures checking.
    defaults.verify = spec_.verified ? Verify::on : Verify::off;
  }

  bool has_lanes() const override { return true; }
  bool has_places() const override { return true; }
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

  /// Combine the flush times of a serial row. The Writer's report covers all ranks, but not these
  /// writes.
  void combine_details(Comm& comm, RunDetails& details) const override {
    if (!spec_.serial) return;
    double flush_s = flush_s_;
    comm.allreduce(std::span<double>(&flush_s, 1), Reduction::max);
    details.write_s = flush_s;
    details.makespan_s += flush_s;
    details.longer_lane_s = std::max(details.encode_s, flush_s);
    details.sync_s = std::max(0.0, details.sync_s - flush_s);
    details.hidden_share = 0;
  }

  Result<ReadBack> read_back(const std::string& path) override {
    return read_back_with_hdf5(context_, path, spec_.codec == "none");
  }

  Status remove(const std::string& path) override {
    // A failed run may leave the file under its temporary name.
    ::unlink((path + kPartialSuffix).c_str());
    return Method::remove(path);
  }

 private:
  FieldDefinition definition_of(const BenchField& field) const {
    FieldDefinition definition{field.path, field.dtype, field.shape, options_.field_defaults,
                               false};
    definition.options.chunk_shape = field.chunk_shape;
    definition.options.fill_value = field.fill_value;
    if (spec_.codec != "none" && field.absolute_bound > 0) {
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
    details.wait_s = report.wait_s;
    for (const FieldReport& field : report.fields) details.n_chunks += field.n_chunks;
    details.n_overflow_chunks = report.n_overflow_chunks;
    details.reserved_bytes = report.reserved_bytes;
    details.slack_bytes = report.slack_bytes;
    details.buffer_bytes = report.peak_memory_bytes;
    details.choose_s = report.choose_s;
    if (spec_.codec == "auto") details.chosen = chosen_text(report);
    if (spec_.codec != "none") codec_version_ = report.fields.front().codec_version;
  }

  BenchContext context_;
  TailraceSpec spec_;
  double flush_s_ = 0;
  FileOptions options_;
  std::string codec_version_;
};

}  // namespace

Result<std::unique_ptr<Method>> make_tailrace_method(const BenchContext& context, std::string name,
                                                     const TailraceSpec& spec) {
  FieldOptions layout_options;
  layout_options.space.ratio = spec.space_ratio;
  layout_options.expected_ratio = context.options.expected_ratio;
  layout_options.expected_error = context.options.expected_error;
  Result<std::unique_ptr<Layout>> known = make_layout(spec.layout, layout_options);
  if (!known.ok()) return known.status();
  if (spec.serial && !context.options.fsync) {
    return Status(Code::invalid_argument,
                  "-serial needs --fsync on, since it writes during the sync");
  }
  for (const BenchField& field : context.work.fields) {
    if (spec.codec == "auto") break;
    Result<std::unique_ptr<Codec>> codec =
        make_bench_codec(context.options, spec.codec, spec.settings, field);
    if (!codec.ok()) return codec.status().within("field \"" + field.path + "\"");
  }
  return std::unique_ptr<Method>(std::make_unique<TailraceMethod>(context, std::move(name), spec));
}

}  // namespace tailrace::bench
