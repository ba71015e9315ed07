// One chunk there and back, by the thread's clock.

#include "measure/measure_codec.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>
#include <vector>

#include "exec/lane_clock.hpp"

namespace tailrace {
namespace {

double thread_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Trip {
  double encode_s = 0;
  double decode_s = 0;
  double encoded_bytes = 0;
};

Result<Trip> run_once(const Codec& codec, std::span<const std::byte> values) {
  Trip trip;
  const double start = thread_cpu_s();
  Buffer gathered = Buffer::copy_of(values);
  if (!gathered.allocated()) return Status(Code::out_of_memory, "no memory for a chunk");
  Result<EncodedBytes> encoded = codec.encode(std::move(gathered));
  const double middle = thread_cpu_s();
  if (!encoded.ok()) return encoded.status();
  trip.encoded_bytes = static_cast<double>(encoded->buffer.n_bytes());
  // Who reads gets the values in an array of their own, as HDF5 hands them over.
  std::vector<std::byte> destination(values.size());
  const double decode_start = thread_cpu_s();
  Result<Buffer> decoded = codec.decode(std::move(*encoded));
  if (!decoded.ok()) return decoded.status();
  std::copy_n(decoded->data(), std::min(decoded->n_bytes(), values.size()), destination.data());
  trip.encode_s = middle - start;
  trip.decode_s = thread_cpu_s() - decode_start;
  return trip;
}

Result<Trip> run_often(const Codec& codec, std::span<const std::byte> values,
                       std::size_t n_repeats) {
  Result<Trip> warm = run_once(codec, values);
  if (!warm.ok()) return warm.status();
  std::vector<double> encode_s;
  std::vector<double> decode_s;
  for (std::size_t i = 0; i < n_repeats; ++i) {
    Result<Trip> trip = run_once(codec, values);
    if (!trip.ok()) return trip.status();
    encode_s.push_back(trip->encode_s);
    decode_s.push_back(trip->decode_s);
  }
  return Trip{median_of(encode_s), median_of(decode_s), warm->encoded_bytes};
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Result<MeasuredTrip> measure_trip(Comm& comm, const Codec& codec, std::span<const std::byte> values,
                                  std::size_t n_repeats) {
  TAILRACE_CHECK(!values.empty() && n_repeats > 0);
  comm.barrier();  // all ranks strain the node's memory at once
  const LaneClock clock;
  Result<Trip> trip = run_often(codec, values, n_repeats);
  TAILRACE_TRY(comm.agree(trip.status()));
  // The clock's grain is 1 ns; a trip that it cannot see has taken one grain.
  std::array<double, 4> sums = {static_cast<double>(values.size()), trip->encoded_bytes,
                                std::max(trip->encode_s, 1e-9), std::max(trip->decode_s, 1e-9)};
  comm.allreduce(sums, Reduction::sum);
  double elapsed_s = clock.now_s();
  comm.allreduce(std::span<double>(&elapsed_s, 1), Reduction::max);
  const double bit_rate = 32 * sums[1] / sums[0];
  return MeasuredTrip{{bit_rate, sums[0] / sums[2]}, {bit_rate, sums[0] / sums[3]}, elapsed_s};
}

}  // namespace tailrace
