// What TAILRACE_OPTIONS asks of the datasets that a serial program makes: another codec, a bound.
//
//   H5Fcreate, H5Fopen  the options are read; what is wrong with them fails the call
//   H5Dcreate           the codec's filters stand in the place of the program's
//   H5Dwrite            served_datasets.hpp encodes whole chunks within the bound
//   H5Fclose            attributes tell the bound; globs that match nothing are named, and what
//                       options ask that is not done
//
// Invariant 1: the filters in the header lose nothing, whatever the bound: trz's entry says
// "exact", portable's are shuffle and deflate. So what HDF5 encodes by itself, here or in any other
// program, keeps its values, and only chunks that we encode have lost digits.
// Invariant 2: a chunk of which values are kept that the file had is encoded exactly: they would
// lose digits again with every change of their neighbours.
// Invariant 3: a bound that needs the range of values (rel, psnr) is held to the range of what the
// program has written of the dataset until then, which is no larger than that of all.

#pragma once

#include <hdf5.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codec/verify.hpp"
#include "core/codec.hpp"
#include "core/encoding_notes.hpp"
#include "core/glob_options.hpp"
#include "hdf5_serial/serial_hdf5.hpp"
#include "policy/bound_width.hpp"
#include "trz/base/status.hpp"

namespace tailrace::hdf5_serial {

/// A dataset as options look at it.
struct DatasetFacts {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<bool> growing;
  Shape chunk_shape;  ///< Empty: it has no chunks.
  std::optional<double> fill_value;
};

/// A dataset of which something is asked, while its file is open.
class AskedDataset {
 public:
  /// @error invalid_argument, unsupported  the codec cannot do what is asked.
  static Result<std::shared_ptr<AskedDataset>> make(const FieldOptions& options,
                                                    const DatasetFacts& facts, bool by_name);

  const std::string& path() const { return facts_.path; }
  const Shape& chunk_shape() const { return facts_.chunk_shape; }
  const FieldOptions& options() const { return options_; }
  /// As they stand in the header.
  const std::vector<FilterSpec>& filters() const { return exact_->filters(); }
  /// Whether a dataset with these filters in its header is what was asked for.
  bool fits(const DatasetFacts& facts, const std::vector<FilterSpec>& header) const;
  /// Whether a bound is asked.
  bool loses() const { return !options_.bound.lossless(); }
  /// It is a coordinate: kept exactly, unless it is named without wildcards.
  void keep_scale() { keeps_ = keeps_ || !by_name_; }
  /// Whether it would be kept exactly if it became one.
  bool may_become_scale() const { return loses() && !by_name_ && facts_.shape.size() == 1; }
  /// Whether values have lost digits that it would keep as a scale; told once.
  bool may_be_late_scale() const { return lossy_ && !by_name_ && !late_told_; }
  void set_late_told() { late_told_ = true; }

  /// Values that the program writes, for bounds that need their range.
  void note_values(std::span<const std::byte> values);
  /// What encodes chunks now; null: the header's filters. Valid until the next call.
  const Codec* codec_now();
  /// Once: what the user should hear of the bound, after codec_now(); empty: nothing.
  std::string take_bound_remark();
  /// A chunk that it has encoded is in the file.
  void note_stored();

  bool described() const { return described_; }
  void set_described() { described_ = true; }
  /// What attributes are to say.
  std::vector<EncodingNote> notes() const;
  /// An earlier program has said so much.
  void continue_from(double absolute_bound) { largest_bound_ = absolute_bound; }

 private:
  CodecRequest request_for(double absolute_bound) const;

  FieldOptions options_;
  DatasetFacts facts_;
  bool by_name_ = false;
  bool keeps_ = false;
  std::unique_ptr<Codec> exact_;
  std::unique_ptr<Codec> codec_;  ///< Within `codec_bound_`.
  double codec_bound_ = 0;
  double largest_bound_ = 0;
  ValueFacts facts_now(double absolute_bound) const;

  ValueRange range_;
  MagnitudeSample sample_;
  BoundVerdict width_;
  bool width_told_ = false;
  bool late_told_ = false;
  bool lossy_ = false;     ///< A chunk has lost digits.
  bool described_ = true;  ///< Attributes say all there is to say.
};

/// The files that the program may make datasets in, if it has options. Not thread-safe.
class AskedFiles {
 public:
  explicit AskedFiles(const SerialHdf5& hdf5) : hdf5_(hdf5) {}

  /// Read the options anew. @error invalid_argument  with what is wrong.
  static Result<GlobOptions> read_options(bool& given);
  struct File {
    std::string name;
    GlobOptions options;
    bool made_here = false;
    std::vector<std::string> paths;  ///< Of datasets that were created.
    std::map<haddr_t, std::shared_ptr<AskedDataset>> datasets = {};
    bool asked = false;  ///< Something is, of a dataset that was created.
    /// What is not done as asked, and of which datasets; told when the file is closed.
    std::map<std::string, std::set<std::string>> left_out = {};
  };
  /// It was opened. @param given  there are options, and it was opened for writing.
  void enter(hid_t id, File&& file, bool given);

  struct Creation {
    hid_t location;
    const char* name;
    hid_t type;
    hid_t space;
    hid_t list;
  };
  /// What is asked of a dataset that is about to be created; null: nothing.
  Result<std::shared_ptr<AskedDataset>> plan(const Creation& creation);
  /// The program's list, changed so. @error unsupported  HDF5 refuses it.
  Result<hid_t> creation_list(const Creation& creation, const AskedDataset& asked) const;
  /// The list ends before the next is made: closing it would empty HDF5's error stack, which tells
  /// the program of a failure. @returns it
  hid_t close_later(hid_t list);
  /// A dataset has been created. @param asked  null: as the program wants it.
  void add(hid_t dataset, const std::shared_ptr<AskedDataset>& asked);
  /// One that has no name, of which nothing can be asked, though options ask it of all.
  void add_anonymous(hid_t dataset);
  /// H5Ocopy has made an object, with all below it. Copies of datasets whose filters were replaced
  /// have such filters, too.
  void add_copy(hid_t from, const char* from_name, hid_t to, const char* to_name);

  /// Whether the filters of a dataset are not those with which this process has created it, whether
  /// or not its file was closed in between.
  bool has_replaced_filters(hid_t dataset) const;
  /// What is asked of a dataset that is open: one that was made here, or by an earlier program that
  /// was asked the same, as its attributes say. Null: nothing.
  std::shared_ptr<AskedDataset> find(hid_t dataset, const H5O_info_t& info, hid_t creation_list,
                                     const std::vector<FilterSpec>& filters);

  /// Say in its attributes what a dataset has lost, if they do not yet. @returns false  HDF5 has
  /// refused one.
  bool describe(hid_t dataset, AskedDataset& asked);
  /// Whether it is a dimension's scale, as netCDF's coordinates are.
  bool is_scale(hid_t dataset) const;
  /// This id of a file ends, or all do (H5I_INVALID_HID): name globs without a dataset, with the
  /// file's last.
  void leave(hid_t file);

 private:
  /// One file, however often it is opened: its device and inode.
  using Identity = std::pair<dev_t, ino_t>;

  File* file_of(hid_t object);
  std::string path_of(hid_t object) const;
  Result<std::shared_ptr<AskedDataset>> ask(File& file, DatasetFacts facts, bool created) const;
  const char* read_facts(hid_t type, hid_t space, hid_t list, DatasetFacts& facts) const;
  bool has_numbers(hid_t object) const;
  struct Copy;
  void add_copied(const Copy& copy, const char* name, const H5O_info_t& info);
  static herr_t visit_copied(hid_t object, const char* name, const H5O_info_t* info, void* copy);
  std::optional<DType> number_of(hid_t type) const;
  std::string text_attribute(hid_t dataset, const char* name) const;
  std::optional<double> number_attribute(hid_t dataset, const char* name) const;
  bool is_late_scale(hid_t dataset) const;
  bool write_note(hid_t dataset, const EncodingNote& note) const;
  void tell_idle(const File& file);

  const SerialHdf5& hdf5_;
  std::map<unsigned long, File> files_;             ///< By HDF5's number of the file.
  std::map<unsigned long, Identity> identities_;    ///< As files_; of those that were closed, too.
  std::map<Identity, std::set<haddr_t>> replaced_;  ///< Datasets with other filters.
  std::vector<hid_t> lists_;                        ///< To be closed.
  std::set<std::string> told_;                      ///< Each is told once.
};

}  // namespace tailrace::hdf5_serial
