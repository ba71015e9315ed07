// File layouts of communities, as rules over paths: the role of a dataset by its path.
//
// Each table names its source. To add a community, add a table and a line in `communities`;
// docs/repack.md lists the communities for users.

#pragma once

#include <span>
#include <string_view>

#include "policy/roles.hpp"

namespace tailrace {

struct PathRule {
  Role role;
  std::string_view globs;  ///< Globs over paths, separated by commas; '*' crosses groups.
};

/// Rules of a community: the first that matches a dataset's path decides.
struct Community {
  std::string_view name;
  /// Object that identifies a file of the community: "@name" is an attribute of the root group,
  /// "/path" a group or dataset; "": the globs suffice.
  std::string_view marker;
  std::span<const PathRule> rules;
};

// VTKHDF file format, https://docs.vtk.org/en/latest/vtk_file_formats/vtkhdf_file_format/
inline constexpr PathRule kVtkhdfRules[] = {
    {Role::value, "/VTKHDF/*PointData/*,/VTKHDF/*CellData/*"},
    {Role::time, "/VTKHDF/*Steps/Values"},
    {Role::index, "/VTKHDF/*Steps/*"},
    {Role::count, "/VTKHDF/*NumberOf*"},
    {Role::connectivity, "/VTKHDF/*Connectivity,/VTKHDF/*Offsets,/VTKHDF/*Types"},
    {Role::geometry, "/VTKHDF/*Points,/VTKHDF/*Coordinates,/VTKHDF/*AMRBox"},
    {Role::mask, "/VTKHDF/*Mask"},
};

// Athena++ HDF5 output, https://github.com/PrincetonUniversity/athena/wiki/Outputs
inline constexpr PathRule kAthenaRules[] = {
    {Role::geometry, "/x?f,/x?v"},
    {Role::index, "/LogicalLocations,/Levels"},
    {Role::value, "/*"},
};

// Parthenon output, https://parthenon-hpc-lab.github.io/parthenon/develop/src/outputs.html
inline constexpr PathRule kParthenonRules[] = {
    {Role::geometry, "/Locations/*,/VolumeLocations/*"},
    {Role::index, "/LogicalLocations,/Levels"},
    {Role::geometry, "/Blocks/xmin"},
    {Role::index, "/Blocks/*"},
    {Role::geometry, "/*/SwarmVars/swarm.?"},
};

// FLASH User's Guide, "Output file formats", table of datasets. The table of particles has their
// positions and tags among its columns.
inline constexpr PathRule kFlashRules[] = {
    {Role::geometry, "/bounding box,/block size,/coordinates,/tracer particles"},
    {Role::index, "/gid,/gsurr_blks,/node type,/refine level,/which child,/processor number"},
    {Role::mask, "/bflags"},
    {Role::count, "/localnp"},
    {Role::value, "/*"},
};

// Enzo, https://enzo.readthedocs.io: datasets of a grid's particles.
inline constexpr PathRule kEnzoRules[] = {
    {Role::geometry, "*/Grid0*/*particle_position_*"},
    {Role::id, "*/Grid0*/*particle_index,*/Grid0*/*particle_type"},
    {Role::time, "*/Grid0*/*creation_time"},
};

// GADGET-2 and 4, Arepo (IllustrisTNG data release) and SWIFT snapshots: their user guides. Some
// codes mark wind particles by the sign of the formation time.
inline constexpr PathRule kGadgetRules[] = {
    {Role::geometry,
     "*/PartType?/*Coordinates,*/PartType?/*Position*,"
     "*/PartType?/CenterOfMass,*/PartType?/*BirthPos"},
    {Role::id, "*/PartType?/*IDs"},
    {Role::time,
     "*/PartType?/*FormationTime*,*/PartType?/BirthScaleFactors,"
     "*/PartType?/BirthTimes"},
    {Role::value, "*/PartType?/*"},
    {Role::geometry, "*/Cells/Centres,*/Cells/*Positions/*"},
    {Role::index, "*/Cells/*Offsets*"},
    {Role::count, "*/Cells/*Counts*"},
};

// H5MD 1.1, https://www.nongnu.org/h5md/h5md.html
inline constexpr PathRule kH5mdRules[] = {
    {Role::index, "*/step"},
    {Role::time, "*/time"},
    {Role::geometry, "/particles/*/box/*,/particles/*/position,/particles/*/position/*"},
    {Role::index, "/particles/*/image*"},
    {Role::id, "/particles/*/id*,/particles/*/species*"},
    {Role::connectivity, "/connectivity/*"},
    {Role::value, "/particles/*,/observables/*"},
};

// openPMD 1.1.0 and 2.0.0, https://github.com/openPMD/openPMD-standard: particle records. All
// others, of particles and meshes, are values, whatever the names of their components.
inline constexpr PathRule kOpenpmdRules[] = {
    {Role::index, "*/particlePatches/*"},
    {Role::geometry, "*/position,*/position/*,*/positionOffset,*/positionOffset/*"},
    {Role::weight, "*/weighting"},
    {Role::id, "*/id"},
    {Role::value, "*"},
};

// NWB 2, https://nwb-schema.readthedocs.io
inline constexpr PathRule kNwbRules[] = {
    {Role::time,
     "*/timestamps,*/starting_time,*/spike_times,*/start_time,*/stop_time,"
     "*/obs_intervals,*/*_times"},
    {Role::index, "*/*_index"},
    {Role::id, "*/id"},
    {Role::index, "*/electrodes"},
    {Role::geometry, "*/electrodes/x,*/electrodes/y,*/electrodes/z,*/electrodes/rel_?"},
    {Role::mask, "*/image_mask,*/pixel_mask,*/voxel_mask,*/control"},
    {Role::value, "*/data,*/waveform_*"},
};

// AnnData, https://anndata.readthedocs.io/en/latest/fileformat-prose.html
inline constexpr PathRule kAnndataRules[] = {
    {Role::geometry, "/obsm/*spatial*"},
    {Role::value, "/X,/layers/*,/obsm/*,/varm/*"},
};

// PyTables reserves these prefixes (NaturalNameWarning in its reference); _i_ is the prefix of
// indexes of tables: sorted values, bounds and ranges. pandas HDFStore, format "fixed"
// (pandas/io/pytables.py).
inline constexpr PathRule kPytablesRules[] = {
    {Role::index, "*/_i_*,*/_v_*,*/_p_*,*/axis?,*/axis?_l*,*/block?_items*"},
    {Role::value, "*/block?_values"},
    {Role::index, "*/index,*/index_l*"},
};

// HDF-EOS5, and other missions that use the same group names (VIIRS, TROPOMI).
inline constexpr PathRule kHdfeosRules[] = {
    {Role::coordinate,
     "*/Geolocation Fields/*,*/GeolocationFields/*,*/geolocation_data/*,"
     "*/GEOLOCATIONS/*,/HDFEOS/*/XDim,/HDFEOS/*/YDim"},
};

// ICESat-2 data dictionaries (ATL03, ATL06, ATL08): beams gt1l to gt3r; nsidc.org/data/atl03
inline constexpr PathRule kIcesatRules[] = {
    {Role::time, "/gt*/*delta_time*"},
    {Role::geometry, "/gt*/*dist_ph_a*,/gt*/*segment_dist_x,/gt*/*segment_length,/gt*/*_atc"},
    {Role::id, "/gt*/*segment_id*"},
    {Role::index, "/gt*/*index_beg"},
    {Role::count, "/gt*/*_cnt"},
};

// AMReX and Chombo plotfiles in HDF5 (describe/plotfile.hpp)
inline constexpr PathRule kPlotfileRules[] = {
    {Role::index, "/level_*/*offsets*"},
    {Role::value, "/level_*/*datatype=*"},
};

// WRF User's Guide, "List of fields". Map and Coriolis factors, terrain; vertical coefficients;
// categories that are stored as floats.
inline constexpr PathRule kWrfRules[] = {
    {Role::coordinate,
     "/ZNU,/ZNW,/ZS,/DZS,/DN,/DNW,/RDN,/RDNW,/FNM,/FNP,/RDX,/RDY,/C?H,/C?F,"
     "/CF?,/CFN*"},
    {Role::geometry, "/MAPFAC_*,/F,/E,/SINALPHA,/COSALPHA,/HGT*"},
    {Role::coordinate, "/CLAT,/CLONG"},
    {Role::time, "/XTIME"},
    {Role::mask, "/LANDMASK,/LAKEMASK,/XLAND"},
    {Role::index, "/LU_INDEX"},
};

// ROMS, https://www.myroms.org/wiki/Grid_NetCDF_File
inline constexpr PathRule kRomsRules[] = {
    {Role::coordinate, "/Cs_?,/s_*"},
    {Role::geometry, "/h,/f,/angle"},
    {Role::weight, "/pm,/pn"},
};

// NEMO: mesh_mask.nc, in its reference manual, chapter DOM
inline constexpr PathRule kNemoRules[] = {
    {Role::coordinate, "/glam?,/gphi?,/gdep*"},
    {Role::weight, "/e1?,/e2?,/e3?_0,/e3?_1d"},
    {Role::mask, "/?mask*"},
    {Role::geometry, "/ff*"},
};

// MOM 6 and other GFDL models: ocean static files
inline constexpr PathRule kMomRules[] = {
    {Role::mask, "/wet*"},
    {Role::weight, "/area*,/dx*,/dy*"},
    {Role::geometry, "/deptho,/Coriolis,/sin_rot,/cos_rot"},
};

// MPAS mesh specification, https://mpas-dev.github.io
inline constexpr PathRule kMpasRules[] = {
    {Role::weight, "/weightsOn*,/kiteAreasOn*,/area*,/dvEdge,/dcEdge"},
    {Role::geometry, "/angleEdge,/zgrid"},
    {Role::weight, "/meshDensity"},
    {Role::connectivity, "/cellsOn*,/edgesOn*,/verticesOn*,/nEdgesOn*"},
};

// MED (Salome), mesh nodes; Exodus II, Sandia report SAND92-2137
inline constexpr PathRule kMeshRules[] = {
    {Role::geometry, "/ENS_MAA/*/COO"},
    {Role::connectivity, "/ENS_MAA/*/NOD"},
    {Role::value, "/CHA/*"},
};
inline constexpr PathRule kExodusRules[] = {
    {Role::geometry, "/coord?,/coord"}, {Role::time, "/time_whole"},
    {Role::connectivity, "/connect*"},  {Role::id, "/*_map"},
    {Role::weight, "/dist_fact_*"},     {Role::value, "/vals_*"},
};

inline constexpr Community kCommunities[] = {
    {"VTKHDF", "/VTKHDF", kVtkhdfRules},
    {"Athena++", "@RootGridX1", kAthenaRules},
    {"Parthenon", "/Locations", kParthenonRules},
    {"FLASH", "/bounding box", kFlashRules},
    {"Enzo", "", kEnzoRules},
    {"GADGET", "", kGadgetRules},
    {"H5MD", "/h5md", kH5mdRules},
    {"openPMD", "@openPMD", kOpenpmdRules},
    {"NWB", "@nwb_version", kNwbRules},
    {"AnnData", "@encoding-type", kAnndataRules},
    {"PyTables", "@PYTABLES_FORMAT_VERSION", kPytablesRules},
    {"HDF-EOS", "", kHdfeosRules},
    {"ICESat-2", "/ancillary_data", kIcesatRules},
    {"plotfile", "", kPlotfileRules},
    {"WRF", "@MMINLU", kWrfRules},
    {"ROMS", "/s_rho", kRomsRules},
    {"NEMO", "/nav_lat", kNemoRules},
    {"MOM", "/geolon", kMomRules},
    {"MPAS", "/latCell", kMpasRules},
    {"MED", "/ENS_MAA", kMeshRules},
    {"Exodus", "@floating_point_word_size", kExodusRules},
};

// --- Quantities that a community's codes and readers assume positive, so that 0 is a limit.

// GADGET, Arepo and SWIFT: readers take logarithms and roots of these.
inline constexpr PathRule kGadgetPositive[] = {
    {Role::value,
     "*/PartType?/Densit*,*/PartType?/Mass*,*/PartType?/InternalEnerg*,*/PartType?/Temperature*,"
     "*/PartType?/Pressure*,*/PartType?/SmoothingLength*,*/PartType?/Volume*,"
     "*/PartType?/*Metallicity,*/PartType?/*Abundance"},
};
// FLASH: a restart takes logarithms of density, pressure, temperature and energies.
inline constexpr PathRule kFlashPositive[] = {
    {Role::value, "/dens,/pres,/temp,/ener,/eint,/gamc,/game"},
};
inline constexpr PathRule kEnzoPositive[] = {
    {Role::value, "*/Grid0*/*Density,*/Grid0*/Temperature,*/Grid0*/*particle_mass"},
};

inline constexpr Community kPositiveQuantities[] = {
    {"GADGET", "", kGadgetPositive},
    {"FLASH", "/bounding box", kFlashPositive},
    {"Enzo", "", kEnzoPositive},
};

}  // namespace tailrace
