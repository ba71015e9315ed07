# Compiling several sources of a target as one (CMake's UNITY_BUILD): most of a file's time goes to
# headers that they share, and about half of a build from nothing is saved. For builds that are made
# once, the wheel and those under sanitizers; where one file is changed at a time it costs more, and
# ccache knows the objects of another build folder only without it.
#
# Sources with a name in their anonymous namespaces that another one of the target has, too, stand
# alone: TAILRACE_SOURCES_ALONE. tests/python/test_python_wheel.py finds new ones.

option(TAILRACE_JOIN_SOURCES "Compile several sources of the engine as one" "${TAILRACE_WHEEL}")
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
endif()

set(TAILRACE_SOURCES_ALONE
    "/src/(concat_(pieces|write)|read_dataset|read_shared|stored_codec)\\.cpp$"
    "/src/write_(book|candidates|choose|fields|target)\\.cpp$"
    "/codec/verify\\.cpp$"
    "/model/(machine_profile_text|roofline)\\.cpp$"
    "/schedule/(flow_shop|flow_shop_pack|flow_shop_walk|lane_rule|order)\\.cpp$"
    "/container/(concat_check|dataset_list|hdf5_file|recover)\\.cpp$"
    "/container/(hdf5_catalog|hdf5_copy|hdf5_properties|netcdf_attributes|netcdf_layout)\\.cpp$"
    "/container/(netcdf_model_check|netcdf_model_read|noting_driver|posix_storage)\\.cpp$")
list(JOIN TAILRACE_SOURCES_ALONE "|" TAILRACE_SOURCES_ALONE)

function(tailrace_join_sources target)
  if(NOT TAILRACE_JOIN_SOURCES)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "${TAILRACE_SOURCES_ALONE}")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
endfunction()
