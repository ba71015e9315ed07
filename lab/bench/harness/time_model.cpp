// Conversion of a row to the model's arguments.

#include "time_model.hpp"

#include "model/dump_time.hpp"

namespace tailrace::bench {

double model_step_s(const BenchContext& context, const MachineProfile& profile, double bytes_per_s,
                    const Row& row) {
  if (!row.has_places || bytes_per_s <= 0) return 0;
  const Result<TailraceSpec> spec = parse_tailrace_name(context.options, row.method);
  if (!spec.ok() || spec->verified) return 0;
  const auto encoded_bytes = static_cast<double>(row.checked.encoded_bytes);
  double encode_s = 0;
  if (spec->codec != "none") {
    std::string text = spec->codec;
    for (const auto& [key, value] : spec->settings) text += "," + key + "=" + value;
    const CodecProfile* curves = profile.find(text);
    if (curves == nullptr) return 0;
    encode_s = curves->encode.seconds(static_cast<double>(context.work.raw_bytes), encoded_bytes);
  }
  DumpSetting setting;
  setting.n_ranks = static_cast<std::uint64_t>(context.comm.n_ranks());
  setting.n_threads = context.options.n_threads;
  setting.write = BandwidthModel::constant(bytes_per_s);
  if (spec->serial) return serial_dump_s(encoded_bytes, encode_s, setting);
  return overlapped_dump_s(encoded_bytes, encode_s,
                           static_cast<double>(context.work.chunks_per_rank), setting);
}

}  // namespace tailrace::bench
