# libtailrace_hdf5.so: parallel HDF5's calls, served by Tailrace (docs/hdf5.md); and the engine's
# HDF5 rooms compiled against that HDF5, for it and for tailrace-bench.
#
# A process of such a program holds one HDF5, which is its own, the parallel one: so the engine's
# objects that know no HDF5 are those of the library, and the container is compiled again. Calls are
# bound by the version nodes of Debian's library; another HDF5 has none, and is not served yet.

set(TAILRACE_HDF5_PROGRAMS OFF)
if(NOT TARGET tailrace_hdf5_parallel)
  message(STATUS "No libtailrace_hdf5: there is no parallel HDF5 (libhdf5-openmpi-dev)")
  return()
endif()

tailrace_object_library(tailrace_container_parallel ${container_sources})
target_link_libraries(tailrace_container_parallel PUBLIC tailrace_hdf5_parallel)
tailrace_join_sources(tailrace_container_parallel "/hdf5/[a-i][^/]*$")
set_target_properties(tailrace_container_parallel PROPERTIES EXCLUDE_FROM_ALL ON)

if(NOT BUILD_SHARED_LIBS)
  return()
endif()
list(GET PARALLEL_HDF5_LIBRARIES -1 parallel_hdf5_library)
execute_process(COMMAND "${CMAKE_OBJDUMP}" -T "${parallel_hdf5_library}"
                OUTPUT_VARIABLE parallel_hdf5_symbols ERROR_QUIET)
if(NOT parallel_hdf5_symbols MATCHES "HDF5_MPI_1\\.10\\.5 +H5Dget_chunk_info")
  message(STATUS "No libtailrace_hdf5: the parallel HDF5 has no symbol versions of 1.10")
  return()
endif()
set(TAILRACE_HDF5_PROGRAMS ON)

file(GLOB hdf5_program_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/frontends/hdf5/*.cpp")
tailrace_object_library(tailrace_hdf5_objects ${hdf5_program_sources})
target_link_libraries(tailrace_hdf5_objects PUBLIC tailrace_hdf5_parallel)
tailrace_join_sources(tailrace_hdf5_objects)

add_library(tailrace_hdf5_programs SHARED
            $<TARGET_OBJECTS:tailrace_hdf5_objects> ${TAILRACE_ENGINE_OBJECTS}
            $<TARGET_OBJECTS:tailrace_container_parallel> ${TAILRACE_TRZ_OBJECTS}
            ${TAILRACE_XOR_OBJECTS} ${TAILRACE_FILTER_OBJECTS})
target_link_libraries(tailrace_hdf5_programs PRIVATE tailrace_requirements tailrace_hdf5_parallel)
set(hdf5_calls_script "${PROJECT_SOURCE_DIR}/frontends/hdf5/hdf5_calls.map")
set_target_properties(tailrace_hdf5_programs PROPERTIES
                      OUTPUT_NAME tailrace_hdf5
                      LINKER_LANGUAGE CXX
                      LINK_DEPENDS "${hdf5_calls_script}")
target_link_options(tailrace_hdf5_programs PRIVATE "-Wl,--version-script=${hdf5_calls_script}")
if(NOT TAILRACE_SANITIZE)
  # What it lacks it would lack in the program, and it is not linked into one.
  target_link_options(tailrace_hdf5_programs PRIVATE "-Wl,-z,defs")
endif()

install(TARGETS tailrace_hdf5_programs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
