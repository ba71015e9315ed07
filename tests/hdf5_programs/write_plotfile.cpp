// Writes a plotfile with the HDF5 calls of AMReX codes. Rank 0 creates the file alone, without MPI.
// All ranks open it again through MPI-IO, once for each level, with collective metadata and an
// alignment. Each level has a group with attributes, and its boxes as compounds that only rank 0
// writes. One dataset of doubles per level, allocated early, has the cells of each box: those of
// the first component, then of the second, and so on. Each rank writes its boxes as one hyperslab:
// levels in turn collectively and independently.
//
//   write_plotfile FILE [KIND]
//
// KIND:
//   equal      boxes are cubes of n_cells (default)
//   small      boxes are cubes of 8 cells
//
//   mixed      boxes have different sizes, with a common blocking factor
//   turned     boxes have different shapes, with equal numbers of cells
//
//   odd        boxes have no factor in common
//   separate   each component has a dataset of its own
//
//   unsaid     the dataset of offsets is missing
//   points     each rank selects its cells by a list, every second one first
//
//   nested, nested_odd   boxes lie over some of the next coarser level, which are equal or odd;
//                        all levels are written before the file is closed

#include <hdf5.h>
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr int n_levels = 3;
constexpr int kNComponents = 4;
constexpr int n_boxes = 7;   // Per level; ranks have different numbers of them, perhaps none.
constexpr int n_cells = 16;  // Per side of a box, for kinds of equal boxes.

std::string_view kind = "equal";
int rank = 0;
int n_ranks = 1;

/// Return the result of a call; abort the job, with the call's name, if it failed.
hid_t checked(hid_t result, const char* what) {
  if (result < 0) {
    std::fprintf(stderr, "rank %d: %s failed\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return result;
}
#define CHECKED(call) checked(call, #call)

struct Box {
  int low[3];
  int high[3];
};

hid_t box_type() {
  static const char* const names[6] = {"lo_i", "lo_j", "lo_k", "hi_i", "hi_j", "hi_k"};
  const hid_t type = CHECKED(H5Tcreate(H5T_COMPOUND, sizeof(Box)));
  for (int i = 0; i < 6; ++i) {
    CHECKED(H5Tinsert(type, names[i], static_cast<size_t>(i) * sizeof(int), H5T_NATIVE_INT));
  }
  return type;
}

bool is_nested() { return kind.starts_with("nested"); }

/// Box that lies over one of the next coarser level. One such box covers all of the coarser one,
/// and another is shifted by half a cell.
Box nested_box(int level, int index) {
  int extents[3] = {n_cells, n_cells, n_cells};
  int low[3] = {24 * index, 0, 0};
  if (level == 0 && kind == "nested_odd") extents[0] = 11 + index;
  if (level == 1 && index == 1) {
    low[0] = 48;
    extents[0] = extents[1] = extents[2] = 2 * n_cells;
  } else if (level == 1) {
    low[0] = 48 * index + 8;
    low[1] = 8 * (index % 2);
    low[2] = index == 3 ? 7 : 6;
  } else if (level == 2) {
    low[0] = 96 * index + 20;
    low[1] = 16 * (index % 2) + 4;
    low[2] = 16;
  }
  Box box{};
  for (int d = 0; d < 3; ++d) {
    box.low[d] = low[d];
    box.high[d] = low[d] + extents[d] - 1;
  }
  return box;
}

Box box_of(int level, int index) {
  if (is_nested()) return nested_box(level, index);
  int extents[3] = {n_cells, n_cells, n_cells};
  if (kind == "small") extents[0] = extents[1] = extents[2] = 8;
  if (kind == "mixed") extents[2] = 8 * (1 + index % 3);
  if (kind == "turned" && index % 2 == 1) extents[0] /= 2;
  if (kind == "turned" && index % 2 == 1) extents[1] *= 2;
  if (kind == "odd") extents[0] = 11 + index;
  Box box{};
  for (int d = 0; d < 3; ++d) {
    box.low[d] = n_cells * (d == 0 ? index : level);
    box.high[d] = box.low[d] + extents[d] - 1;
  }
  return box;
}

int extent_of(const Box& box, int d) { return box.high[d] - box.low[d] + 1; }

/// Number of cells of a box, for one component.
int n_cells_of(const Box& box) { return extent_of(box, 0) * extent_of(box, 1) * extent_of(box, 2); }

void write_attribute(hid_t object, const std::string& name, hid_t type, const void* value) {
  const hid_t space = CHECKED(H5Screate(H5S_SCALAR));
  const hid_t attribute =
      CHECKED(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  CHECKED(H5Awrite(attribute, type, value));
  CHECKED(H5Aclose(attribute));
  CHECKED(H5Sclose(space));
}

void write_text(hid_t object, const std::string& name, const std::string& text) {
  const hid_t type = CHECKED(H5Tcopy(H5T_C_S1));
  CHECKED(H5Tset_size(type, text.size() + 1));
  write_attribute(object, name, type, text.c_str());
  CHECKED(H5Tclose(type));
}

/// Value of a cell. Components differ by orders of magnitude, like densities and energies.
double value_at(int level, int box, int component, int cell) {
  const Box cells = box_of(level, box);
  const int x = cell % extent_of(cells, 0) + n_cells * box;
  const int y = cell / extent_of(cells, 0) % extent_of(cells, 1);
  const int z = cell / extent_of(cells, 0) / extent_of(cells, 1);
  const double wave = std::sin(0.07 * x) * std::cos(0.11 * y + level) + 0.01 * z;
  return std::pow(1e3, component) * (1.5 + wave);
}

/// Write the header, on rank 0 only.
void create_serially(const char* path) {
  const hid_t file = CHECKED(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  write_text(file, "version_name", "HyperCLaw-V1.1");
  write_text(file, "plotfile_type", "VanillaHDF5");
  write_attribute(file, "num_components", H5T_NATIVE_INT, &kNComponents);
  write_attribute(file, "num_levels", H5T_NATIVE_INT, &n_levels);
  for (int i = 0; i < kNComponents; ++i) {
    write_text(file, "component_" + std::to_string(i), "variable " + std::to_string(i));
  }
  const int dimensions = 3;
  const hid_t global =
      CHECKED(H5Gcreate2(file, "Chombo_global", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  write_attribute(global, "SpaceDim", H5T_NATIVE_INT, &dimensions);
  CHECKED(H5Gclose(global));
  CHECKED(H5Fclose(file));
}

/// Create a dataset whose values only rank 0 writes.
void write_by_root(hid_t group, const char* name, hid_t type, hsize_t n, const void* values) {
  const hid_t space = CHECKED(H5Screate_simple(1, &n, nullptr));
  const hid_t dataset =
      CHECKED(H5Dcreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  if (rank == 0) {
    CHECKED(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  }
  CHECKED(H5Dclose(dataset));
  CHECKED(H5Sclose(space));
}

/// Number of cells of the boxes before this one, for one component.
hsize_t cells_before(int level, int box) {
  hsize_t n = 0;
  for (int b = 0; b < box; ++b) n += static_cast<hsize_t>(n_cells_of(box_of(level, b)));
  return n;
}

/// Write a dataset of some components.
void write_values(hid_t group, int level, int first_component, int n_of_them) {
  const int first = n_boxes * rank / n_ranks;
  const int end = n_boxes * (rank + 1) / n_ranks;
  std::vector<double> values;
  for (int box = first; box < end; ++box) {
    for (int component = first_component; component < first_component + n_of_them; ++component) {
      for (int cell = 0; cell < n_cells_of(box_of(level, box)); ++cell) {
        values.push_back(value_at(level, box, component, cell));
      }
    }
  }
  const auto n_each = static_cast<hsize_t>(n_of_them);
  const hsize_t n_all = n_each * cells_before(level, n_boxes);
  const hid_t space = CHECKED(H5Screate_simple(1, &n_all, nullptr));
  const hid_t creation = CHECKED(H5Pcreate(H5P_DATASET_CREATE));
  CHECKED(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY));
  CHECKED(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
  const std::string name = "data:datatype=" + std::to_string(n_of_them == 1 ? first_component : 0);
  const hid_t dataset = CHECKED(H5Dcreate2(group, name.c_str(), H5T_NATIVE_DOUBLE, space,
                                           H5P_DEFAULT, creation, H5P_DEFAULT));
  const hsize_t start = n_each * cells_before(level, first);
  const hsize_t count = values.size();
  const hid_t memory = CHECKED(H5Screate_simple(1, count > 0 ? &count : &n_all, nullptr));
  if (count > 0 && kind == "points") {
    std::vector<hsize_t> points;
    std::vector<double> in_order;
    for (const hsize_t odd : {0, 1}) {
      for (hsize_t at = odd; at < count; at += 2) {
        points.push_back(start + at);
        in_order.push_back(values[at]);
      }
    }
    values = std::move(in_order);
    CHECKED(H5Sselect_elements(space, H5S_SELECT_SET, points.size(), points.data()));
  } else if (count > 0) {
    CHECKED(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &count, nullptr));
  } else {
    CHECKED(H5Sselect_none(space));
    CHECKED(H5Sselect_none(memory));
  }
  const hid_t transfer = CHECKED(H5Pcreate(H5P_DATASET_XFER));
  CHECKED(
      H5Pset_dxpl_mpio(transfer, level % 2 == 0 ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
  CHECKED(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, transfer, values.data()));
  CHECKED(H5Pclose(transfer));
  CHECKED(H5Sclose(memory));
  CHECKED(H5Dclose(dataset));
  CHECKED(H5Pclose(creation));
  CHECKED(H5Sclose(space));
}

void write_level(hid_t file, int level) {
  const hid_t group = CHECKED(H5Gcreate2(file, ("level_" + std::to_string(level)).c_str(),
                                         H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const double cell_size = 1.0 / n_cells / (1 << level);
  const int ratio = 2;
  write_attribute(group, "dx", H5T_NATIVE_DOUBLE, &cell_size);
  write_attribute(group, "ref_ratio", H5T_NATIVE_INT, &ratio);
  const hid_t type = box_type();
  const Box domain = box_of(level, n_boxes);
  write_attribute(group, "prob_domain", type, &domain);
  std::vector<Box> boxes;
  std::vector<long long> offsets;
  const int n_of_them = kind == "separate" ? 1 : kNComponents;
  for (int box = 0; box < n_boxes; ++box) boxes.push_back(box_of(level, box));
  for (int box = 0; box <= n_boxes; ++box) {
    offsets.push_back(n_of_them * static_cast<long long>(cells_before(level, box)));
  }
  write_by_root(group, "boxes", type, boxes.size(), boxes.data());
  if (kind != "unsaid") {
    write_by_root(group, "data:offsets=0", H5T_NATIVE_LLONG, offsets.size(), offsets.data());
  }
  CHECKED(H5Tclose(type));
  for (int component = 0; component < kNComponents; component += n_of_them) {
    write_values(group, level, component, n_of_them);
  }
  CHECKED(H5Gclose(group));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "write_plotfile FILE [KIND]\n");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  if (argc == 3) kind = argv[2];
  if (rank == 0) create_serially(argv[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  const int n_opened = is_nested() ? 1 : n_levels;
  for (int opened = 0; opened < n_opened; ++opened) {
    const hid_t access = CHECKED(H5Pcreate(H5P_FILE_ACCESS));
    CHECKED(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
    CHECKED(H5Pset_all_coll_metadata_ops(access, true));
    CHECKED(H5Pset_coll_metadata_write(access, true));
    CHECKED(H5Pset_alignment(access, 65536, 65536));
    const hid_t file = CHECKED(H5Fopen(argv[1], H5F_ACC_RDWR, access));
    for (int level = opened; level < (is_nested() ? n_levels : opened + 1); ++level) {
      write_level(file, level);
    }
    CHECKED(H5Fclose(file));
    CHECKED(H5Pclose(access));
  }
  MPI_Finalize();
  return 0;
}
