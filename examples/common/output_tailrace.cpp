// Outputs sync, async and in_situ: Tailrace, through its public API.
//
// The output keeps the values given to put() until the call that ends the NEXT step has returned.
// Therefore it can promise the asynchronous modes that they stay (hold=promise), and nothing is
// copied. With --options hold=copy Tailrace copies them instead.

#include <algorithm>
#include <optional>

#include <tailrace/tailrace.hpp>
#include "common/step_output.hpp"
#include "common/variant.hpp"

namespace app {
namespace {

tailrace_dtype dtype_of(ValueType type) {
  switch (type) {
    case ValueType::f32: return TAILRACE_F32;
    case ValueType::f64: return TAILRACE_F64;
    case ValueType::i32: return TAILRACE_I32;
    case ValueType::i64: return TAILRACE_I64;
  }
  return TAILRACE_F64;
}

class TailraceOutput final : public StepOutput {
 public:
  TailraceOutput(const OutputOptions& options, MPI_Comm comm) : StepOutput(options, comm) {}

  void open() override {
    file_.emplace(
        tailrace::File::create(options_.path, tailrace::mpi(comm_), file_options(options_)));
  }

  void close() override {
    if (!file_) return;
    const tailrace_step_report* report = nullptr;
    tailrace::check(tailrace_file_wait(file_->handle(), &report));
    count(report);
    file_->close();
    held_.clear();
  }

  void compute_begin() override { tailrace_file_compute_begin(file_->handle()); }
  void compute_end() override { tailrace_file_compute_end(file_->handle()); }
  void background_begin() override { tailrace_file_background_begin(file_->handle()); }
  void background_end() override { tailrace_file_background_end(file_->handle()); }
  void idle_until(const std::function<bool()>& done, const std::function<void()>& wait) override {
    file_->idle_until(done, wait);
  }

 protected:
  void write_step() override {
    for (std::size_t i = 0; i < parts_.size(); ++i) put_part(i);
    if (!options_.over_time) {
      file_->set_attribute(group_of_step(), "time", time_);
      file_->set_attribute(group_of_step(), "step", step_);
    }
    const tailrace_step_report* report = nullptr;
    tailrace::check(tailrace_file_end_step(file_->handle(), &report));
    count(report);
    if (options_.output != "sync") held_ = std::move(parts_);
  }

 private:
  static tailrace::Options file_options(const OutputOptions& options) {
    tailrace::Options text;
    text.set("replace", true).set("mode", options.output).set("fsync", options.fsync);
    text.codec(options.codec);
    if (!options.bound.empty()) text.set("bound", options.bound);
    if (options.over_time) text.set("over-time", true);
    if (options.output != "sync" && options.extra.find("hold=") == std::string::npos) {
      text.set("hold", "promise");
    }
    return options.extra.empty() ? text : tailrace::Options(text.text() + "," + options.extra);
  }

  void put_part(std::size_t index) {
    const FieldPart& part = parts_[index];
    // A field over time is defined once; in groups, each step defines its own fields.
    if (!options_.over_time || n_written_ == 0) {
      if (index == 0) fields_.clear();
      const bool own_bound = options_.bound.empty() && options_.codec != "none";
      fields_.push_back(file_->define(path_of(part.name), dtype_of(part.type), part.shape,
                                      own_bound ? part.options : std::string()));
    }
    if (part.values == nullptr) return;
    tailrace::check(tailrace_field_put(file_->handle(), fields_[index].number(), part.start.data(),
                                       part.count.data(), part.values));
  }

  void count(const tailrace_step_report* report) {
    if (report == nullptr) return;
    totals_.n_steps += 1;
    totals_.raw_bytes += report->raw_bytes;
    totals_.encoded_bytes += report->encoded_bytes;
    totals_.n_delayed_obstacles += report->n_delayed_obstacles;
    totals_.n_moved_writes += report->n_moved_writes;
    totals_.peak_memory_bytes = std::max(totals_.peak_memory_bytes, report->peak_memory_bytes);
    totals_.exposed_s += report->exposed_s;
    totals_.handover_s += report->handover_s;
    totals_.backpressure_s += report->backpressure_s;
    totals_.idle_encode_s += report->idle_encode_s;
    totals_.encode_s += report->encode_s;
    totals_.write_s += report->write_s;
    totals_.largest_delay_s = std::max(totals_.largest_delay_s, report->largest_delay_s);
  }

  std::vector<FieldPart> held_;  // Outlives the file, whose threads may still read.
  std::optional<tailrace::File> file_;
  std::vector<tailrace::Field<std::byte>> fields_;
};

}  // namespace

const char* linked_suffix() { return ""; }

std::unique_ptr<StepOutput> make_linked_output(const OutputOptions& options, MPI_Comm comm) {
  return std::make_unique<TailraceOutput>(options, comm);
}

}  // namespace app
