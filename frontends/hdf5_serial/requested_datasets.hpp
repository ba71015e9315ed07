// Requests in TAILRACE_OPTIONS for the datasets that a serial program creates: another codec, a
// bound.
//
//  H5Fcreate, H5Fopen  the options are read; an error in them fails the call.
//  H5Dcreate           the codec's filters replace the program's
//  H5Dwrite            intercepted_datasets.hpp encodes complete chunks within the bound; the first
//                      decides whether a bound for all datasets applies
//  H5Fclose            attributes record the bound; remarks list idle globs, and requests not met
//
// Invariant 1: the header's filters are lossless, whatever the bound: trz's entry specifies
// "exact", portable's are shuffle and deflate. So chunks that HDF5 encodes, here or in any other
// program, keep their values. Only chunks that Tailrace encodes have lost digits.
// Invariant 2: a chunk that retains values of the file's chunk is encoded exactly. Otherwise these
// values would lose digits again with every change of their neighbours.
// Invariant 3: a bound that needs the range of values (rel, psnr) uses the range of the values
// written to the dataset so far. This range is not larger than the final one.

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
#include "hdf5_serial/known_objects.hpp"
#include "hdf5_serial/serial_hdf5.hpp"
#include "policy/bound_width.hpp"
#include "trz/base/status.hpp"

namespace tailrace::hdf5_serial {

/// Properties of a dataset that options depend on.
struct DatasetFacts {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<bool> growing;
  Shape chunk_shape;  ///< Empty if it is not chunked.
  std::optional<double> fill_value;
};

/// Dataset for which options request something, while its file is open.
class RequestedDataset {
 public:
  /// @error invalid_argument, unsupported  the codec cannot do what the options request
  static Result<std::shared_ptr<RequestedDataset>> make(const FieldOptions& options,
                                                        const DatasetFacts& facts, bool by_name);

  const std::string& path() const { return facts_.path; }
  const Shape& chunk_shape() const { return facts_.chunk_shape; }
  const FieldOptions& options() const { return options_; }
  /// Filters in the header.
  const std::vector<FilterSpec>& filters() const { return exact_->filters(); }
  /// True if a dataset with these filters in its header matches the request.
  bool fits(const DatasetFacts& facts, const std::vector<FilterSpec>& header) const;
  /// True if the options request a bound.
  bool loses() const { return !options_.bound.lossless(); }
  /// Store a dataset with another role than values exactly, unless it is named without wildcards.
  void keep_exact() { keeps_ = keeps_ || !by_name_; }
  /// True if a bound for all datasets applies, provided that the dataset has values; false after
  /// set_role_known().
  bool role_open() const { return loses() && !by_name_ && options_.by_role && !role_known_; }
  void set_role_known() { role_known_ = true; }
  /// True if an option names the dataset, whose role is not known; false after set_role_known().
  bool role_untold() const { return loses() && by_name_ && options_.by_role && !role_known_; }
  /// True if the dataset would be stored exactly if it became a scale.
  bool may_become_scale() const { return loses() && !by_name_ && facts_.shape.size() == 1; }
  /// True if values have lost digits that a scale would keep; false after set_late_reported().
  bool may_be_late_scale() const { return lossy_ && !by_name_ && !late_reported_; }
  void set_late_reported() { late_reported_ = true; }

  /// Note values that the program writes, for bounds that need their range.
  void note_values(std::span<const std::byte> values);
  /// Codec for the next chunks; null: the header's filters. Valid until the next call.
  const Codec* codec_now();
  /// Return the remark on the bound for the user, once, after codec_now(); empty if none.
  std::string take_bound_remark();
  /// Note that a chunk encoded by codec_now() is in the file.
  void note_stored();

  bool described() const { return described_; }
  void set_described() { described_ = true; }
  /// Attributes that describe the encoding.
  std::vector<EncodingNote> notes() const;
  /// Continue from the bound that an earlier program recorded.
  void continue_from(double absolute_bound) { largest_bound_ = absolute_bound; }

 private:
  CodecRequest request_for(double absolute_bound) const;

  FieldOptions options_;
  DatasetFacts facts_;
  bool by_name_ = false;
  bool keeps_ = false;
  bool role_known_ = false;
  std::unique_ptr<Codec> exact_;
  std::unique_ptr<Codec> codec_;  ///< Codec with bound `codec_bound_`.
  double codec_bound_ = 0;
  double largest_bound_ = 0;
  ValueFacts facts_now(double absolute_bound) const;

  ValueRange range_;
  MagnitudeSample sample_;
  BoundVerdict width_;
  bool width_reported_ = false;
  bool late_reported_ = false;
  bool lossy_ = false;     ///< Some chunk has lost digits.
  bool described_ = true;  ///< The attributes are up to date.
};

/// The files in which the program may create datasets, if it has options. Not thread-safe.
class RequestedFiles {
 public:
  explicit RequestedFiles(const SerialHdf5& hdf5) : hdf5_(hdf5) {}

  /// Read the options again. @error invalid_argument  names the wrong option
  static Result<GlobOptions> read_options(bool& given);
  struct File {
    std::string name;
    GlobOptions options;
    bool made_here = false;
    std::vector<std::string> paths;  ///< Paths of created datasets.
    std::map<haddr_t, std::shared_ptr<RequestedDataset>> datasets = {};
    bool requested = false;  ///< Options request something for a created dataset.
    /// Requests that are not met, and their datasets; reported when the file is closed.
    std::map<std::string, std::set<std::string>> left_out = {};
    /// Datasets that a bound for all leaves exact, by reason; for TAILRACE_REPORT.
    std::map<std::string, std::set<std::string>> exact = {};
    /// Remarks on datasets that become lossy by name although they have no values.
    std::set<std::string> lossy_roles = {};
    KnownObjects known = {};
    bool listed = false;  ///< `known` has the datasets of an earlier program.
  };
  /// Register an opened file. @param given  options exist, and the file was opened for writing.
  void enter(hid_t id, File&& file, bool given);

  struct Creation {
    hid_t location;
    const char* name;
    hid_t type;
    hid_t space;
    hid_t list;
  };
  /// Find the request for a dataset that is about to be created; null if none.
  Result<std::shared_ptr<RequestedDataset>> plan(const Creation& creation);
  /// Copy the program's creation list and apply the request. @error unsupported  HDF5 refuses it
  Result<hid_t> creation_list(const Creation& creation, const RequestedDataset& requested) const;
  /// Delay closing a list until the next one is created. Closing it now would clear HDF5's error
  /// stack, which reports a failure to the program. @returns the list
  hid_t close_later(hid_t list);
  /// Register a created dataset. @param asked  null: created as the program specified.
  void add(hid_t dataset, const std::shared_ptr<RequestedDataset>& requested);
  /// Register an anonymous dataset. Options cannot apply to it, even if they apply to all datasets.
  void add_anonymous(hid_t dataset);
  /// Register an object copied by H5Ocopy, and everything below it. Copies of datasets with
  /// replaced filters have replaced filters, too.
  void add_copy(hid_t from, const char* from_name, hid_t to, const char* to_name);

  /// True if this process created a dataset with other filters than the program specified, even if
  /// its file was closed in between.
  bool has_replaced_filters(hid_t dataset) const;
  /// Find the request for an open dataset. It was created here, or by an earlier program with the
  /// same request, as its attributes show. Null if none.
  std::shared_ptr<RequestedDataset> find(hid_t dataset, const H5O_info_t& info, hid_t creation_list,
                                         const std::vector<FilterSpec>& filters);

  /// Decide whether a bound for all datasets applies to this one: only if it has values, not to
  /// coordinates, masks and other roles. If an option names it, note only a remark on its role.
  /// Called before the first chunk is encoded.
  void decide_role(hid_t dataset, RequestedDataset& requested);

  /// Record in a dataset's attributes what it has lost, if they are not up to date. @returns false
  /// if HDF5 refused one
  bool describe(hid_t dataset, RequestedDataset& requested);
  /// True if the dataset is a dimension scale, like netCDF's coordinates.
  bool is_scale(hid_t dataset) const;
  /// Handle the end of a file id, or of all ids (H5I_INVALID_HID). With the last id of a file,
  /// reports globs that match no dataset.
  void leave(hid_t file);

 private:
  /// Identity of a file, however often it is opened: its device and inode.
  using Identity = std::pair<dev_t, ino_t>;

  File* file_of(hid_t object);
  std::string path_of(hid_t object) const;
  Result<std::shared_ptr<RequestedDataset>> ask(File& file, DatasetFacts facts, bool created) const;
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
  void report_idle(const File& file);

  const SerialHdf5& hdf5_;
  std::map<unsigned long, File> files_;  ///< Keyed by HDF5's file number.
  /// Keyed like files_; includes files that were closed.
  std::map<unsigned long, Identity> identities_;
  std::map<Identity, std::set<haddr_t>> replaced_;  ///< Datasets with replaced filters.
  std::vector<hid_t> lists_;                        ///< Lists to be closed later.
  std::set<std::string> reported_;                  ///< Remarks that were reported already.
};

}  // namespace tailrace::hdf5_serial
