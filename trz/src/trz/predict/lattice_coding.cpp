// Lattice coding: parameters, prediction and code sections.

#include "trz/predict/lattice_coding.hpp"

#include <cmath>
#include <limits>
#include <string>

namespace tailrace::trz {
namespace {

// The first byte of the parameters: the predictor and two flags.
constexpr std::uint8_t kInterpolation = 8;  ///< 0..4: Lorenzo of that order (0: none).
constexpr std::uint8_t kPredictorMask = 0x0F;
constexpr std::uint8_t kPackedFlag = 0x40;
constexpr std::uint8_t kBookFlag = 0x80;

constexpr std::uint8_t kStepDivisorMin = 16;
constexpr std::uint8_t kAxisWeightMax = 15;

/// Parameters before the code sections.
template <class T>
struct Parameters {
  bool interpolated = false;
  int order = 0;
  InterpolationPlan plan;
  CodeForm form = CodeForm::grouped;
  Lattice<T> lattice;
  bool has_book = false;
  std::uint32_t book_id = 0;
};

template <class T>
Parameters<T> read_parameters(ChunkReader& in) {
  Parameters<T> p;
  const auto first = in.number<std::uint8_t>();
  const std::uint8_t predictor = first & kPredictorMask;
  p.interpolated = predictor == kInterpolation;
  p.order = predictor;
  if ((predictor > 4 && !p.interpolated) || (first & 0x30) != 0) in.fail();
  p.form = (first & kPackedFlag) != 0 ? CodeForm::packed : CodeForm::grouped;
  p.has_book = (first & kBookFlag) != 0;
  if (p.interpolated) {
    const auto axes = in.number<std::uint8_t>();
    p.plan.last_axis = axes & 3;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const unsigned spline = (axes >> (2 + 2 * axis)) & 3U;
      if (spline > 2) in.fail();
      p.plan.spline[axis] = static_cast<RowSpline>(spline);
    }
    if (p.plan.last_axis == kJoint) {
      for (std::uint8_t& weight : p.plan.axis_weight) {
        weight = in.number<std::uint8_t>();
        if (weight > kAxisWeightMax) in.fail();
      }
    }
    p.plan.alpha_16 = in.number<std::uint8_t>();
    p.plan.beta_16 = in.number<std::uint8_t>();
    if (p.plan.alpha_16 < kStepDivisorMin || p.plan.beta_16 < kStepDivisorMin) {
      in.fail();
    }
  }
  p.lattice.step = in.number<T>();
  p.lattice.offset = in.number<T>();
  if (p.has_book) p.book_id = in.number<std::uint32_t>();
  return p;
}

}  // namespace

template <class T>
std::optional<Lattice<T>> make_lattice(double bound, double offset) {
  if (!(bound > 0)) return std::nullopt;
  Lattice<T> lattice;
  const auto greatest = static_cast<double>(std::numeric_limits<T>::max());
  lattice.bound = static_cast<T>(std::min(bound, greatest));
  if (static_cast<double>(lattice.bound) > bound)
    lattice.bound = std::nextafter(lattice.bound, T(0));
  lattice.step = T(2) * lattice.bound * static_cast<T>(1 - 0x1p-10);
  lattice.inverse_step = T(1) / lattice.step;
  lattice.offset = static_cast<T>(offset);
  // Leave room for sixteen halvings, for the steps of coarse levels.
  const T least = std::numeric_limits<T>::min() * T(65536);
  if (!(lattice.step > least) || !std::isfinite(lattice.step) ||
      !std::isnormal(lattice.inverse_step)) {
    return std::nullopt;
  }
  return lattice;
}

Extents folded_to_three(const Extents& extents) {
  return {1, extents[0] * extents[1], extents[2], extents[3]};
}

std::size_t values_in(const Extents& extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

namespace {

/// Number of values that are not every second one along each axis.
std::size_t new_values_in(const Extents& extents) {
  const Extents e = folded_to_three(extents);
  return values_in(e) - LevelExtents{e[1], e[2], e[3]}.coarser().count();
}

}  // namespace

template <class T>
std::size_t codes_of(const LatticeJob<T>& job) {
  return job.coarse == nullptr ? values_in(job.extents) : new_values_in(job.extents);
}

template <class T>
bool predict_all(const LatticeJob<T>& job, OutgoingCodes& codes, PatchMap& patches,
                 Workspace& workspace) {
  if (job.coarse != nullptr) {
    return refinement_encode(job.values, folded_to_three(job.extents), job.prediction.plan,
                             job.lattice, job.fill, job.coarse, codes.writer(), patches, workspace);
  }
  if (job.prediction.interpolated) {
    return interpolation_encode(job.values, folded_to_three(job.extents), job.prediction.plan,
                                job.lattice, job.fill, codes.writer(), patches, workspace);
  }
  return lorenzo_encode(job.values, job.extents, job.prediction.order, job.lattice, job.fill,
                        codes.writer(), patches, workspace);
}

template <class T>
bool write_lattice(const LatticeJob<T>& job, OutgoingCodes& codes, ChunkWriter& out,
                   Workspace& workspace) {
  const Prediction& prediction = job.prediction;
  const bool use_book = job.sections.book != nullptr && job.form == CodeForm::grouped;
  auto first =
      static_cast<std::uint8_t>(prediction.interpolated ? kInterpolation : prediction.order);
  if (job.form == CodeForm::packed) first |= kPackedFlag;
  if (use_book) first |= kBookFlag;
  out.number(first);
  if (prediction.interpolated) {
    unsigned axes = static_cast<unsigned>(prediction.plan.last_axis);
    for (unsigned axis = 0; axis < 3; ++axis) {
      axes |= static_cast<unsigned>(prediction.plan.spline[axis]) << (2 + 2 * axis);
    }
    out.number(static_cast<std::uint8_t>(axes));
    if (prediction.plan.last_axis == kJoint) {
      for (const std::uint8_t weight : prediction.plan.axis_weight) out.number(weight);
    }
    out.number(prediction.plan.alpha_16);
    out.number(prediction.plan.beta_16);
  }
  out.number(job.lattice.step);
  out.number(job.lattice.offset);
  if (use_book) out.number(job.sections.book->id());
  return codes.write(job.sections, out, workspace);
}

template <class T>
DecodeFailure read_lattice(ChunkReader& in, const Extents& extents, const Book* book, T* values,
                           Workspace& workspace, const T* coarse) {
  const Parameters<T> p = read_parameters<T>(in);
  if (in.failed() || (coarse != nullptr && !p.interpolated)) return DecodeFailure::corrupt;
  if (p.has_book && (book == nullptr || book->id() != p.book_id)) {
    return DecodeFailure::book_missing;
  }
  const std::size_t n_codes = coarse == nullptr ? values_in(extents) : new_values_in(extents);
  IncomingCodes codes;
  if (!codes.read(n_codes, p.form, p.has_book ? book : nullptr, in, workspace)) {
    return codes.memory_out() ? DecodeFailure::memory_out : DecodeFailure::corrupt;
  }
  const auto decode = [&] {
    const Extents three = folded_to_three(extents);
    CodeReader& reader = codes.reader();
    if (coarse != nullptr) {
      return refinement_decode(reader, three, p.plan, p.lattice, coarse, values, workspace);
    }
    if (p.interpolated) {
      return interpolation_decode(reader, three, p.plan, p.lattice, values, workspace);
    }
    return lorenzo_decode(reader, extents, p.order, p.lattice, values, workspace);
  };
  if (decode()) return codes.used_up() ? DecodeFailure::none : DecodeFailure::corrupt;
  return codes.reader().failed() ? DecodeFailure::corrupt : DecodeFailure::memory_out;
}

template <class T>
std::string lattice_text(ChunkReader& in) {
  const Parameters<T> p = read_parameters<T>(in);
  if (in.failed()) return "unreadable parameters";
  std::string text;
  if (p.interpolated) {
    static constexpr const char* names[3] = {"linear", "cubic", "natural"};
    text = "interpolation";
    for (int axis = 2; axis >= 0; --axis) {
      text += std::string(axis == 2 ? " " : "/") +
              names[static_cast<std::size_t>(p.plan.spline[static_cast<std::size_t>(axis)])];
    }
    text += p.plan.last_axis == kJoint ? std::string(", joint")
                                       : ", last axis " + std::to_string(p.plan.last_axis);
    if (p.plan.alpha_16 > kStepDivisorMin) text += ", finer coarse levels";
  } else {
    text = p.order == 0 ? "no prediction" : "Lorenzo of order " + std::to_string(p.order);
  }
  text += p.form == CodeForm::packed ? ", packed" : ", Huffman";
  if (p.has_book) text += " with a shared book";
  return text;
}

template std::optional<Lattice<float>> make_lattice(double, double);
template std::optional<Lattice<double>> make_lattice(double, double);
template bool predict_all(const LatticeJob<float>&, OutgoingCodes&, PatchMap&, Workspace&);
template bool predict_all(const LatticeJob<double>&, OutgoingCodes&, PatchMap&, Workspace&);
template bool write_lattice(const LatticeJob<float>&, OutgoingCodes&, ChunkWriter&, Workspace&);
template bool write_lattice(const LatticeJob<double>&, OutgoingCodes&, ChunkWriter&, Workspace&);
template std::size_t codes_of(const LatticeJob<float>&);
template std::size_t codes_of(const LatticeJob<double>&);
template DecodeFailure read_lattice(ChunkReader&, const Extents&, const Book*, float*, Workspace&,
                                    const float*);
template DecodeFailure read_lattice(ChunkReader&, const Extents&, const Book*, double*, Workspace&,
                                    const double*);
template std::string lattice_text<float>(ChunkReader&);
template std::string lattice_text<double>(ChunkReader&);

}  // namespace tailrace::trz
