# What the Python wheel compiles, and how: half of `pip install .` is spent on what is left out here.
#
#   TAILRACE_WHEEL_OMITS     sources that nothing in the wheel calls: the C API, concatenation, the
#                            simulator, recovery and measuring of machines. The modules fail to load
#                            if one of them is needed after all.
#   tailrace_join_sources    compiles several sources of a target as one (CMake's UNITY_BUILD): most
#                            of a file's time goes to headers that they share. Off with
#                            CMAKE_UNITY_BUILD=OFF, under which ccache knows the objects of another
#                            build folder. Sources with a name in their anonymous namespaces that
#                            another one of the folder has, too, stand alone:
#                            TAILRACE_WHEEL_ALONE; tests/python/test_python_wheel.py finds new ones.
#
# Optimised as the programs are, -O2 (trz and xor have -O3), without debug information.

if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
endif()
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(TAILRACE_JOIN_SOURCES ON)
else()
  set(TAILRACE_JOIN_SOURCES ${CMAKE_UNITY_BUILD})
endif()
set(CMAKE_UNITY_BUILD OFF)

set(TAILRACE_WHEEL_OMITS
    "/frontends/c/[^/]*$"
    "/src/concat(_[a-z]+)?\\.cpp$"
    "/exec/mpi_[^/]*$"  # of the module _mpi, which names them itself
    "/exec/(measure_codec|measure_storage|simulate_clock|simulate_node|simulate_run)\\.cpp$"
    "/container/(check_(keys|objects|rows|values)|concat_(check|input|output))\\.cpp$"
    "/container/(netcdf_dimension_names|netcdf_texts|recover)\\.cpp$")
set(TAILRACE_WHEEL_ALONE
    "/src/(read_dataset|read_shared|stored_codec)\\.cpp$"
    "/src/write_(candidates|choose|fields|target)\\.cpp$"
    "/codec/verify\\.cpp$"
    "/model/(machine_profile_text|roofline)\\.cpp$"
    "/schedule/(flow_shop_pack|flow_shop_walk|order)\\.cpp$"
    "/container/(hdf5_catalog|hdf5_copy|hdf5_properties|netcdf_attributes|netcdf_layout)\\.cpp$"
    "/container/(netcdf_model_check|netcdf_model_read|noting_driver|posix_storage)\\.cpp$")
list(JOIN TAILRACE_WHEEL_OMITS "|" TAILRACE_WHEEL_OMITS)
list(JOIN TAILRACE_WHEEL_ALONE "|" TAILRACE_WHEEL_ALONE)

if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endif()

function(tailrace_join_sources target)
  if(NOT TAILRACE_JOIN_SOURCES)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "${TAILRACE_WHEEL_ALONE}")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
endfunction()
