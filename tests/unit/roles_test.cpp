// Roles: fields that a bound for all fields leaves exact, with short descriptions of communities'
// files.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "policy/roles.hpp"

namespace tailrace::test {
namespace {

/// "units=degrees_north" is a text, "minimum:=0.5" a number; '|' separates several elements.
StatedAttribute described_attribute(const std::string& text) {
  StatedAttribute made;
  const std::size_t equals = text.find('=');
  const bool number = equals > 0 && text[equals - 1] == ':';
  made.name = text.substr(0, number ? equals - 1 : equals);
  std::string rest = text.substr(equals + 1) + "|";
  for (std::size_t end = rest.find('|'); end != std::string::npos; end = rest.find('|')) {
    if (number) made.numbers.push_back(std::stod(rest.substr(0, end)));
    if (!number) made.texts.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  return made;
}

struct DescribedDataset {
  std::string path;
  Role role;
  std::size_t rank = 1;
  std::vector<std::string> attributes = {};
};

struct DescribedFile {
  std::string name;
  std::map<std::string, std::vector<std::string>> groups;  ///< Groups with their attributes.
  std::vector<DescribedDataset> datasets;
  std::vector<std::string> others = {};
};

RoleFacts role_facts_of(const DescribedFile& layout) {
  RoleFacts facts;
  facts.others = layout.others;
  const auto object = [](const std::string& path, const std::vector<std::string>& attributes) {
    StatedObject made;
    made.path = path;
    for (const std::string& each : attributes) made.attributes.push_back(described_attribute(each));
    return made;
  };
  std::map<std::string, std::vector<std::string>> groups = layout.groups;
  groups.try_emplace("/");
  for (const DescribedDataset& dataset : layout.datasets) {
    for (std::size_t slash = dataset.path.rfind('/'); slash > 0 && slash != std::string::npos;
         slash = dataset.path.rfind('/', slash - 1)) {
      groups.try_emplace(dataset.path.substr(0, slash));
    }
  }
  for (const auto& [path, attributes] : groups) facts.groups.push_back(object(path, attributes));
  for (const DescribedDataset& dataset : layout.datasets) {
    StatedObject made = object(dataset.path, dataset.attributes);
    made.shape = Shape(dataset.rank, 100);
    made.floating = true;
    facts.datasets.push_back(std::move(made));
  }
  return facts;
}

const std::vector<DescribedFile> described_files = {
    {"CF",
     {},
     {{"/lat", Role::coordinate, 2},
      {"/rows", Role::coordinate, 2, {"units=degrees_north"}},
      {"/columns", Role::coordinate, 2, {"units=degreeE"}},
      {"/when", Role::time, 2, {"units=days since 1970-01-01"}},
      {"/lev",
       Role::coordinate,
       1,
       {"formula_terms=a: hyam b: hybm p0: P0 ps: PS", "positive=down"}},
      {"/hyam", Role::coordinate},
      {"/hybm", Role::coordinate},
      {"/PS", Role::value, 3},
      {"/sst",
       Role::value,
       3,
       {"cell_measures=area: acella volume: acellv", "coordinates=rows cols"}},
      {"/cols", Role::coordinate, 2},
      {"/acella", Role::weight, 2},
      {"/acellv", Role::weight, 3},
      {"/e", Role::coordinate, 1, {"axis=X"}},
      {"/heights", Role::coordinate, 1, {"climatology=hb"}},
      {"/hb", Role::coordinate, 2},
      {"/lsm", Role::mask, 2},
      {"/quality", Role::mask, 3, {"flag_values:=0|1|2"}},
      {"/rotated", Role::coordinate, 1, {"standard_name=grid_longitude", "units=degrees"}},
      {"/direction", Role::value, 3, {"standard_name=wind_from_direction", "units=degrees"}},
      // ERA5: temperature, geopotential, relative humidity.
      {"/t", Role::value, 4, {"units=K"}},
      {"/z", Role::value, 4, {"units=m**2 s**-2"}},
      {"/position_of_front", Role::value, 3, {"standard_name=some_quantity"}}}},
    {"xarray's coordinates of no variable",
     {{"/g", {"coordinates=w v"}}},
     {{"/g/w", Role::coordinate, 2}, {"/g/v", Role::coordinate, 3}, {"/g/u", Role::value, 3}}},
    {"UGRID",
     {},
     {{"/mesh",
       Role::id,
       0,
       {"cf_role=mesh_topology", "node_coordinates=nx ny", "face_node_connectivity=quads"}},
      {"/nx", Role::geometry},
      {"/ny", Role::geometry},
      {"/quads", Role::connectivity, 2},
      {"/depth_of_water", Role::value}}},
    {"VTKHDF",
     {{"/VTKHDF", {"Version:=2|0", "Type=UnstructuredGrid"}}},
     {{"/VTKHDF/Points", Role::geometry, 2},
      {"/VTKHDF/Connectivity", Role::connectivity},
      {"/VTKHDF/Offsets", Role::connectivity},
      {"/VTKHDF/NumberOfPoints", Role::count},
      {"/VTKHDF/Steps/Values", Role::time},
      {"/VTKHDF/Steps/PointDataOffsets/u", Role::index},
      {"/VTKHDF/PointData/u", Role::value},
      {"/VTKHDF/PointData/time", Role::value},
      {"/VTKHDF/CellData/Points", Role::value},
      {"/VTKHDF/Block0/Points", Role::geometry, 2}}},
    {"CGNS",
     {{"/Base", {"label=CGNSBase_t"}},
      {"/Base/Zone", {"label=Zone_t"}},
      {"/Base/Zone/GridCoordinates", {"label=GridCoordinates_t"}},
      {"/Base/Zone/GridCoordinates/CoordinateX", {"label=DataArray_t"}},
      {"/Base/Zone/Solution", {"label=FlowSolution_t"}},
      {"/Base/Zone/Solution/Density", {"label=DataArray_t"}},
      {"/Base/Zone/Solution/position", {"label=DataArray_t"}},
      {"/Base/Iter", {"label=BaseIterativeData_t"}},
      {"/Base/Iter/TimeValues", {"label=DataArray_t"}},
      {"/Base/Zone/Elem", {"label=Elements_t"}},
      {"/Base/Zone/Elem/ElementConnectivity", {"label=DataArray_t"}}},
     {{"/Base/Zone/ data", Role::count, 2},
      {"/Base/Zone/GridCoordinates/CoordinateX/ data", Role::geometry, 3},
      {"/Base/Zone/Solution/Density/ data", Role::value, 3},
      {"/Base/Zone/Solution/position/ data", Role::value, 3},
      {"/Base/Iter/TimeValues/ data", Role::time},
      {"/Base/Zone/Elem/ElementConnectivity/ data", Role::connectivity}}},
    {"Athena++",
     {{"/", {"RootGridX1:=0|1|1"}}},
     {{"/x1f", Role::geometry, 2},
      {"/x3v", Role::geometry, 2},
      {"/LogicalLocations", Role::index, 2},
      {"/Levels", Role::index},
      {"/prim", Role::value, 5},
      {"/B", Role::value, 5}}},
    {"Parthenon",
     {},
     {{"/Locations/x", Role::geometry, 2},
      {"/VolumeLocations/z", Role::geometry, 2},
      {"/Levels", Role::index},
      {"/Blocks/xmin", Role::geometry, 2},
      {"/dust/SwarmVars/swarm.x", Role::geometry, 2},
      {"/dust/SwarmVars/mass", Role::value, 2},
      {"/advected_0", Role::value, 4}}},
    {"FLASH",
     {},
     {{"/bounding box", Role::geometry, 3},
      {"/block size", Role::geometry, 2},
      {"/coordinates", Role::geometry, 2},
      {"/tracer particles", Role::geometry, 2},
      {"/refine level", Role::index},
      {"/dens", Role::value, 4, {"minimum:=1", "maximum:=2"}}},
     {"/unknown names"}},
    {"Enzo",
     {},
     {{"/Grid00000001/particle_position_x", Role::geometry},
      {"/Grid00000001/particle_index", Role::id},
      {"/Grid00000001/creation_time", Role::time},
      {"/Grid00000001/particle_velocity_x", Role::value},
      {"/Grid00000001/x-velocity", Role::value, 3},
      {"/Grid00000001/Density", Role::value, 3}}},
    {"GADGET",
     {},
     {{"/PartType0/Coordinates", Role::geometry, 2},
      {"/PartType0/Density", Role::value},
      {"/PartType1/Velocities", Role::value, 2},
      {"/PartType4/GFM_StellarFormationTime", Role::time},
      {"/PartType4/BirthDensities", Role::value},
      {"/PartType0/ParticleIDs", Role::id},
      {"/Cells/Centres", Role::geometry, 2},
      {"/Subhalo/SubhaloPos", Role::geometry, 2},
      {"/Group/Group_M_Crit200", Role::value}}},
    {"H5MD",
     {{"/h5md", {"version:=1|1"}}},
     {{"/particles/all/position/value", Role::geometry, 3},
      {"/particles/all/position/time", Role::time},
      {"/particles/all/position/step", Role::index},
      {"/particles/all/velocity/value", Role::value, 3},
      {"/particles/all/box/edges/value", Role::geometry, 2},
      {"/particles/all/id/value", Role::id, 2},
      {"/observables/energy/value", Role::value}}},
    {"openPMD",
     {{"/", {"openPMD=1.1.0"}}},
     {{"/data/1/fields/E/x", Role::value, 3},
      {"/data/1/fields/rho", Role::value, 3},
      {"/data/1/particles/e/position/x", Role::geometry},
      {"/data/1/particles/e/positionOffset/x", Role::geometry},
      {"/data/1/particles/e/momentum/x", Role::value},
      {"/data/1/particles/e/weighting", Role::weight},
      {"/data/1/particles/e/id", Role::id}}},
    {"NWB",
     {{"/", {"nwb_version=2.6.0"}}},
     {{"/units/spike_times", Role::time},
      {"/units/spike_times_index", Role::index},
      {"/units/waveform_mean", Role::value, 3},
      {"/units/id", Role::id},
      {"/acquisition/lfp/data", Role::value, 2},
      {"/acquisition/lfp/timestamps", Role::time},
      {"/general/extracellular_ephys/electrodes/x", Role::geometry},
      {"/units/rows", Role::index, 1, {"neurodata_type=VectorIndex"}},
      {"/processing/rois/image_mask", Role::mask, 3}}},
    {"NeXus",
     {{"/entry/data", {"NX_class=NXdata", "signal=counts", "axes=.|two_theta", "frame_indices:=0"}},
      {"/entry/old", {"NX_class=NXdata"}},
      {"/entry/events", {"NX_class=NXevent_data"}},
      {"/entry/t", {"NX_class=NXlog"}},
      {"/entry/stage", {"NX_class=NXtransformations"}},
      {"/entry/bank", {"NX_class=NXdetector"}}},
     {{"/entry/data/counts", Role::value, 1},
      {"/entry/data/two_theta", Role::coordinate},
      {"/entry/data/frame", Role::coordinate, 2},
      {"/entry/data/errors", Role::value, 2},
      {"/entry/old/position", Role::value, 2, {"signal:=1", "axes=[qy,qx]"}},
      {"/entry/old/qx", Role::coordinate},
      {"/entry/old/qy", Role::coordinate, 1, {"axis:=1"}},
      {"/entry/events/event_time_offset", Role::time},
      {"/entry/events/event_id", Role::id},
      {"/entry/t/value", Role::value},
      {"/entry/t/time", Role::time},
      {"/entry/stage/tilt", Role::geometry},
      {"/entry/bank/x_pixel_offset", Role::geometry, 2},
      {"/entry/bank/data", Role::value, 3}}},
    {"AnnData",
     {{"/", {"encoding-type=anndata"}},
      {"/X", {"encoding-type=csr_matrix"}},
      {"/obs", {"_index=cell", "encoding-type=dataframe"}}},
     {{"/X/data", Role::value},
      {"/X/indices", Role::index},
      {"/X/indptr", Role::index},
      {"/obs/cell", Role::id},
      {"/obs/n_counts", Role::value},
      {"/obsm/X_pca", Role::value, 2},
      {"/obsm/spatial", Role::geometry, 2}}},
    {"PyTables and pandas",
     {{"/", {"PYTABLES_FORMAT_VERSION=2.1"}}},
     {{"/_i_idx/x/sorted", Role::index, 2},
      {"/g/_i_t/x/ranges", Role::index, 2},
      {"/fixed/axis1", Role::index},
      {"/fixed/block0_values", Role::value, 2},
      {"/fixed/block0_items", Role::index},
      {"/ser/index", Role::index},
      {"/ser/values", Role::value},
      {"/ea", Role::value, 2}}},
    {"HDF-EOS5",
     {},
     {{"/HDFEOS/SWATHS/O3/Geolocation Fields/Pressure", Role::coordinate},
      {"/HDFEOS/SWATHS/O3/Geolocation Fields/Time", Role::coordinate},
      {"/HDFEOS/SWATHS/O3/Data Fields/O3", Role::value, 2}}},
    {"ICESat-2",
     {},
     {{"/gt1l/heights/lat_ph", Role::coordinate},
      {"/gt1l/heights/lon_ph", Role::coordinate},
      {"/gt1l/heights/h_ph", Role::value},
      {"/gt1l/heights/dist_ph_along", Role::geometry},
      {"/gt1l/heights/delta_time", Role::time},
      {"/gt1l/geolocation/segment_dist_x", Role::geometry},
      {"/gt1l/land_ice_segments/h_li", Role::value},
      {"/ancillary_data/atlas_sdp_gps_epoch", Role::value}}},
    {"AMReX",
     {},
     {{"/level_0/data:datatype=0", Role::value}, {"/level_0/data:offsets=0", Role::index}}},
    {"WRF",
     {{"/", {"MMINLU=USGS"}}},
     {{"/XLAT", Role::coordinate, 3},
      {"/XLONG_U", Role::coordinate, 3},
      {"/XTIME", Role::time},
      {"/ZNU", Role::coordinate, 2},
      {"/MAPFAC_M", Role::geometry, 3},
      {"/F", Role::geometry, 3},
      {"/LU_INDEX", Role::index, 3},
      {"/T", Role::value, 4},
      {"/U10", Role::value, 3}}},
    {"ROMS",
     {},
     {{"/s_rho", Role::coordinate},
      {"/Cs_r", Role::coordinate},
      {"/lon_rho", Role::coordinate, 2},
      {"/lat_rho", Role::coordinate, 2},
      {"/x_rho", Role::coordinate, 2},
      {"/y_rho", Role::coordinate, 2},
      {"/mask_rho", Role::mask, 2},
      {"/h", Role::geometry, 2},
      {"/ocean_time", Role::time},
      {"/zeta", Role::value, 3},
      {"/u", Role::value, 4}}},
    {"MOM",
     {},
     {{"/geolon", Role::coordinate, 2},
      {"/geolat_c", Role::coordinate, 2},
      {"/areacello", Role::weight, 2},
      {"/wet_u", Role::mask, 2},
      {"/thetao", Role::value, 4}}},
    {"names of nobody's layout: particles",
     {},
     {{"/x", Role::geometry, 2},
      {"/y", Role::geometry, 2},
      {"/z", Role::geometry, 2},
      {"/vx", Role::value, 2},
      {"/weights", Role::weight},
      {"/particle_id", Role::id},
      {"/t", Role::time}}},
    {"names of nobody's layout: fields",
     {},
     {{"/density", Role::value, 3},
      {"/x", Role::value, 3},
      {"/velocity/x", Role::value, 3},
      {"/velocity/y", Role::value, 3},
      {"/E/z", Role::value, 3},
      {"/x_velocity", Role::value, 3},
      {"/y_velocity", Role::value, 3},
      {"/leaf_area_index", Role::value, 3},
      {"/number_density", Role::value, 3},
      {"/time_mean_flow", Role::value, 3},
      {"/position_error", Role::value, 3},
      {"/counts", Role::value, 2},
      {"/lat_heat_flux", Role::value, 3},
      {"/edges_of_clouds", Role::value, 2},
      {"/native_fields/temperature", Role::value, 3},
      {"/probe/sourcePos3D", Role::geometry, 2},
      {"/mesh/geometry", Role::geometry, 2},
      {"/mesh/topology", Role::connectivity, 2},
      {"/cells/cell_centers", Role::geometry, 2},
      {"/bin_edges", Role::coordinate},
      {"/atoms/positions/data", Role::geometry, 3}}},
};

TEST(Roles, OfCommunitiesFiles) {
  std::set<Role> met;
  for (const DescribedFile& layout : described_files) {
    const std::vector<RoleVerdict> verdicts = decide_roles(role_facts_of(layout));
    ASSERT_EQ(verdicts.size(), layout.datasets.size());
    for (std::size_t d = 0; d < verdicts.size(); ++d) {
      EXPECT_EQ(role_name(verdicts[d].role), role_name(layout.datasets[d].role))
          << layout.name << ": " << layout.datasets[d].path << ", by " << verdicts[d].because;
      EXPECT_TRUE(verdicts[d].role == Role::value || !verdicts[d].because.empty());
      met.insert(verdicts[d].role);
    }
  }
  EXPECT_EQ(met.size(), 10U);
}

TEST(Roles, EveryAttributeThatDecidesIsAskedFor) {
  for (const DescribedFile& layout : described_files) {
    RoleFacts facts = role_facts_of(layout);
    for (std::vector<StatedObject>* objects : {&facts.groups, &facts.datasets}) {
      for (StatedObject& object : *objects) {
        std::erase_if(object.attributes,
                      [](const StatedAttribute& each) { return !states_role(each.name); });
      }
    }
    const std::vector<RoleVerdict> verdicts = decide_roles(facts);
    for (std::size_t d = 0; d < verdicts.size(); ++d) {
      EXPECT_EQ(verdicts[d].role, layout.datasets[d].role)
          << layout.name << ": " << layout.datasets[d].path;
    }
  }
}

TEST(Roles, ADatasetThatIsACoordinateAlreadyStaysOne) {
  RoleFacts facts = role_facts_of({"", {}, {{"/velocity/x", Role::value, 3}}});
  facts.datasets[0].coordinate = true;
  EXPECT_EQ(decide_roles(facts)[0].role, Role::coordinate);
}

TEST(Roles, LimitsAreThoseOfValuesAlone) {
  const auto of = [](const DescribedDataset& dataset) {
    return decide_roles(role_facts_of({"", {}, {dataset}}))[0];
  };
  using Limits = std::vector<double>;
  EXPECT_EQ(of({"/u", Role::value, 3, {"valid_range:=-5|40"}}).limits, (Limits{-5, 40}));
  EXPECT_EQ(of({"/u", Role::value, 3, {"valid_max:=9", "valid_min:=1"}}).limits, (Limits{1, 9}));
  EXPECT_EQ(of({"/u", Role::value, 3, {"valid_min:=nan"}}).limits, Limits());
  EXPECT_EQ(of({"/u", Role::value, 3, {"valid_min:=nan"}}).limits_because, "");
  EXPECT_EQ(of({"/lat", Role::value, 2, {"valid_range:=-90|90"}}).limits, Limits());
  EXPECT_EQ(of({"/a", Role::value, 2, {"standard_name=sea_ice_area_fraction", "units=%"}}).limits,
            (Limits{0, 100}));
  EXPECT_EQ(of({"/a", Role::value, 2, {"standard_name=mass_fraction_of_water"}}).limits,
            (Limits{0, 1}));
  EXPECT_EQ(of({"/PartType0/Density", Role::value}).limits, Limits{0});
  EXPECT_EQ(of({"/Grid00000001/Density", Role::value, 3}).limits, Limits{0});
  EXPECT_EQ(of({"/PartType0/Velocities", Role::value}).limits, Limits());
  EXPECT_EQ(of({"/dens", Role::value, 4, {"minimum:=1", "maximum:=2"}}).extremes_stated,
            "minimum, maximum");
  EXPECT_EQ(of({"/dens", Role::value, 4, {"minimum=low"}}).extremes_stated, "");
}

TEST(Roles, HostileNamesAndAttributesDecideSomething) {
  RoleFacts facts;
  for (const char* path : {"/", "//", "/ ", "/\xff\xfe", "/a/./..", "/____", "/0", "/x/", ""}) {
    StatedObject object;
    object.path = path;
    object.floating = true;
    for (const char* name : {"axes", "coordinates", "formula_terms", "NX_class", "_index", "signal",
                             "_indices", "bounds", "label", "valid_range", "units"}) {
      object.attributes.push_back({name, {}, {}});
      object.attributes.push_back({name, {"", "/", " ", "::", "[,]"}, {}});
      object.attributes.push_back({name, {std::string("\0:", 2)}, {}});
      object.attributes.push_back({name, {}, {1, 2, 3}});
    }
    facts.groups.push_back(object);
    facts.datasets.push_back(object);
  }
  facts.groups.front().attributes.push_back({"NX_class", {"NXdata"}, {}});
  EXPECT_EQ(decide_roles(facts).size(), facts.datasets.size());
}

}  // namespace
}  // namespace tailrace::test
