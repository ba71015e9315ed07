# libtailrace_hdf5.so: parallel HDF5's calls, served by Tailrace (docs/hdf5.md); and the engine's
# HDF5 rooms for that HDF5, for it and for tailrace-bench.
#
# A process of such a program holds one HDF5, which is its own, the parallel one: so the engine's
# objects that know no HDF5 are those of the library, and the container is compiled again for each
# HDF5: not for the system's parallel one if it is the library's release, which gives
# libtailrace_hdf5.so, and for each of TAILRACE_HDF5_PROGRAMS_ROOT, which gives
# libtailrace_hdf5-MAJOR.MINOR.so. Calls are
# exported as that HDF5 has them: by its version nodes (Debian's), or without any (self-built).

set(TAILRACE_HDF5_PROGRAMS_ROOT "" CACHE STRING
    "Prefixes of further parallel HDF5s whose programs are to be served; a list")

# For the tests: targets of what serves, and beside each the HDF5 that its programs have and the end
# of its names.
set(TAILRACE_HDF5_PROGRAMS "")

if(TARGET tailrace_hdf5_parallel)
  if(TAILRACE_PARALLEL_HDF5_VERSION STREQUAL TAILRACE_HDF5_VERSION)
    # One release has one public interface, and MPI only adds to it. src/ asks for nothing that is
    # added (tests/arrows_test.py), so its objects fit both libraries.
    set(parallel_container tailrace_container)
  else()
    set(parallel_container tailrace_container_parallel)
    tailrace_add_container(tailrace_container_parallel tailrace_hdf5_parallel)
    set_target_properties(tailrace_container_parallel tailrace_container_parallel_describe
                          PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endif()

file(GLOB hdf5_program_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/frontends/hdf5/*.cpp")
set(hdf5_calls_source "${PROJECT_SOURCE_DIR}/frontends/hdf5/program_calls.cpp")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${hdf5_calls_source}")
file(READ "${hdf5_calls_source}" hdf5_calls_text)
string(REGEX MATCHALL "TAILRACE_CALL [a-z_]+ tailrace_H5[A-Za-z0-9_]+\\(" hdf5_calls
       "${hdf5_calls_text}")
list(TRANSFORM hdf5_calls REPLACE ".*tailrace_(H5[A-Za-z0-9_]+)\\(" "\\1")

# Why programs on the HDF5 of `library` cannot be served, or nothing: it has to be a shared parallel
# library that has all that is always served, over the MPI that we are built with.
function(tailrace_refuse_hdf5 library why_variable)
  set(${why_variable} "" PARENT_SCOPE)
  if(NOT library MATCHES "\\.so$")
    set(${why_variable} "${library} is no shared library" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND "${CMAKE_OBJDUMP}" -T "${library}" OUTPUT_VARIABLE symbols ERROR_QUIET)
  # Parallel; of 1.10.5 or newer; with deprecated symbols, which old programs call.
  foreach(name H5Pset_fapl_mpio H5Dget_chunk_info_by_coord H5Dcreate1)
    if(NOT symbols MATCHES "[ \t]${name}\n")
      set(${why_variable} "${library} has no ${name}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  execute_process(COMMAND "${CMAKE_OBJDUMP}" -p "${library}" OUTPUT_VARIABLE needed ERROR_QUIET)
  string(REGEX MATCHALL "NEEDED +libmpi[^ \n]*" needed "${needed}")
  list(TRANSFORM needed REPLACE "NEEDED +" "")
  set(ours "")
  foreach(mpi ${MPI_C_LIBRARIES})
    execute_process(COMMAND "${CMAKE_OBJDUMP}" -p "${mpi}" OUTPUT_VARIABLE name ERROR_QUIET)
    if(name MATCHES "SONAME +(libmpi[^ \n]*)")
      list(APPEND ours ${CMAKE_MATCH_1})
    endif()
  endforeach()
  foreach(mpi ${needed})
    if(ours AND NOT mpi IN_LIST ours)
      set(${why_variable} "${library} needs the MPI ${mpi}, but Tailrace is built with ${ours}"
          PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Write `folder`/hdf5_served_calls.inc, which names the calls that `library` has (real_hdf5.hpp), and
# `folder`/hdf5_calls.map, which exports them.
function(tailrace_write_hdf5_calls library folder)
  execute_process(COMMAND "${CMAKE_OBJDUMP}" -T "${library}" OUTPUT_VARIABLE symbols ERROR_QUIET)
  set(calls "")
  set(nodes "")
  foreach(name ${hdf5_calls})
    if(symbols MATCHES " \\(?(HDF5[A-Za-z0-9_.]+)\\)? +${name}\n")
      # Hidden, so that no call without a version is bound to it.
      set(version "@${CMAKE_MATCH_1}")
      list(APPEND nodes ${CMAKE_MATCH_1})
    elseif(symbols MATCHES "[ \t]${name}\n")
      set(version "@@TAILRACE_HDF5")
      string(APPEND of_first_node " ${name};")
    else()
      continue()
    endif()
    string(APPEND calls "  CALL(${name}, \"${version}\") \\\n")
    string(APPEND there "#define TAILRACE_WITH_${name}\n")
    # As many parameters as the definition has; their types are HDF5's.
    string(REGEX MATCH "tailrace_${name}\\(([^{]*)\\) {" definition "${hdf5_calls_text}")
    string(REPLACE "TAILRACE_CALLER" "caller,caller,caller" parameters "${CMAKE_MATCH_1}")
    string(COMPARE EQUAL "${parameters}" "void" without_parameters)
    string(REGEX REPLACE "[^,]*," "n;" parameters "${parameters}")
    list(LENGTH parameters n_parameters)
    set(types "")
    set(values "")
    if(NOT without_parameters)
      math(EXPR last "${n_parameters} - 1")
      foreach(i RANGE ${last})
        list(APPEND types "TAILRACE_PARAMETER(${name}, ${i})")
        list(APPEND values "given_${i}")
      endforeach()
    endif()
    list(JOIN types ", " types)
    list(JOIN values ", " values)
    string(APPEND there "#define TAILRACE_PARAMETERS_${name} ${types}\n"
                        "#define TAILRACE_VALUES_${name} ${values}\n")
  endforeach()
  list(REMOVE_DUPLICATES nodes)
  list(SORT nodes COMPARE NATURAL)
  # The first node must not be HDF5's: a call without any version is given to the first node of the
  # first library that has the name. Where HDF5 has no versions these are the calls that are meant;
  # else they are for an HDF5 of the program's own (docs/adr/0020-one-hdf5-preloaded.md).
  set(script "TAILRACE_HDF5 { global: tailrace_hdf5_loaded;${of_first_node} local: *; };\n")
  foreach(node ${nodes})
    string(APPEND script "${node} { };\n")
  endforeach()
  if(nodes)
    string(APPEND there "#define TAILRACE_HDF5_HAS_VERSIONS\n")
  endif()
  file(CONFIGURE OUTPUT "${folder}/hdf5_calls.map" CONTENT "${script}" @ONLY)
  file(CONFIGURE OUTPUT "${folder}/hdf5_served_calls.inc" @ONLY CONTENT
       "// The calls of ${library}.\n${there}#define TAILRACE_HDF5_CALLS(CALL) \\\n${calls}\n")
endfunction()

# The VOL connector of an HDF5 that has such an interface (1.14), in a folder of its own: HDF5 asks
# every connector in its plug-in folders about a file that it cannot open by itself.
function(tailrace_add_hdf5_connector target hdf5 calls_folder suffix)
  get_target_property(folders ${hdf5} INTERFACE_INCLUDE_DIRECTORIES)
  find_file(${target}_passthru H5VLconnector_passthru.h PATHS ${folders} NO_DEFAULT_PATH NO_CACHE)
  if(NOT ${target}_passthru)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/frontends/hdf5/vol/*.cpp")
  add_library(${target}_vol MODULE
              ${sources} "${PROJECT_SOURCE_DIR}/frontends/hdf5/preload/unserved.cpp")
  target_include_directories(${target}_vol PRIVATE
                             "${PROJECT_SOURCE_DIR}/frontends" "${PROJECT_SOURCE_DIR}/src"
                             "${calls_folder}")
  target_link_libraries(${target}_vol PRIVATE
                        tailrace_requirements tailrace_flags ${hdf5} ${target}_serving)
  set(place "hdf5/vol${suffix}")
  set_target_properties(${target}_vol PROPERTIES
                        OUTPUT_NAME tailrace_vol${suffix}
                        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${place}"
                        CXX_VISIBILITY_PRESET hidden
                        BUILD_RPATH_USE_ORIGIN ON
                        INSTALL_RPATH "$ORIGIN/../..")
  if(NOT TAILRACE_SANITIZE)
    target_link_options(${target}_vol PRIVATE "-Wl,-z,defs")
  endif()
  install(TARGETS ${target}_vol LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/${place}")
endfunction()

# The library `target` for programs on the HDF5 of `hdf5`, which is preloaded, and the one that it
# loads, with `container` compiled against that HDF5. Their files, and the folder of their test
# programs, end in `suffix`.
function(tailrace_add_hdf5_front target hdf5 container library suffix)
  set(folder "${PROJECT_BINARY_DIR}/hdf5_calls${suffix}")
  tailrace_write_hdf5_calls("${library}" "${folder}")
  tailrace_object_library(${target}_objects ${hdf5_program_sources})
  target_include_directories(${target}_objects PRIVATE "${folder}")
  target_link_libraries(${target}_objects PUBLIC ${hdf5})
  tailrace_join_sources(${target}_objects)
  set(serving_script "${PROJECT_BINARY_DIR}/hdf5_serving.map")
  file(CONFIGURE OUTPUT "${serving_script}" @ONLY
       CONTENT "{ global: tailrace_hdf5_serving; local: *; };\n")
  add_library(${target}_serving SHARED
              $<TARGET_OBJECTS:${target}_objects> ${TAILRACE_ENGINE_OBJECTS}
              ${${container}_OBJECTS} ${TAILRACE_TRZ_OBJECTS}
              ${TAILRACE_XOR_OBJECTS} ${TAILRACE_FILTER_OBJECTS})
  target_link_libraries(${target}_serving PRIVATE tailrace_requirements ${hdf5})
  set_target_properties(${target}_serving PROPERTIES
                        OUTPUT_NAME tailrace_hdf5_serving${suffix}
                        LINKER_LANGUAGE CXX
                        LINK_DEPENDS "${serving_script}")
  target_link_options(${target}_serving PRIVATE "-Wl,--version-script=${serving_script}")

  # HDF5's headers alone: it must not bring an HDF5 along.
  add_library(${target} SHARED
              "${PROJECT_SOURCE_DIR}/frontends/hdf5/preload/preloaded_calls.cpp"
              "${PROJECT_SOURCE_DIR}/frontends/hdf5/preload/unserved.cpp")
  add_dependencies(${target} ${target}_serving)
  target_include_directories(${target} PRIVATE "${folder}")
  target_include_directories(${target} SYSTEM PRIVATE
                             $<TARGET_PROPERTY:${hdf5},INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(
    ${target} PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1
    TAILRACE_SERVING_LIBRARY="$<TARGET_FILE_NAME:${target}_serving>")
  target_link_libraries(${target} PRIVATE tailrace_flags MPI::MPI_C ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES
                        OUTPUT_NAME tailrace_hdf5${suffix}
                        LINK_DEPENDS "${folder}/hdf5_calls.map")
  target_link_options(${target} PRIVATE "-Wl,--version-script=${folder}/hdf5_calls.map")
  if(NOT TAILRACE_SANITIZE)
    # What they lack they would lack in the program, and they are not linked into one.
    target_link_options(${target} PRIVATE "-Wl,-z,defs")
    target_link_options(${target}_serving PRIVATE "-Wl,-z,defs")
  endif()
  install(TARGETS ${target} ${target}_serving LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  tailrace_add_hdf5_connector(${target} ${hdf5} "${folder}" "${suffix}")
  set(TAILRACE_HDF5_PROGRAMS ${TAILRACE_HDF5_PROGRAMS} "${hdf5}|${suffix}" PARENT_SCOPE)
endfunction()

if(NOT BUILD_SHARED_LIBS OR NOT TAILRACE_MPI)
  return()
endif()
if(TARGET tailrace_hdf5_parallel)
  list(GET PARALLEL_HDF5_LIBRARIES -1 parallel_hdf5_library)
  tailrace_refuse_hdf5("${parallel_hdf5_library}" why)
else()
  set(why "there is no parallel HDF5 (libhdf5-openmpi-dev)")
endif()
if(NOT why)
  tailrace_add_hdf5_front(tailrace_hdf5_programs tailrace_hdf5_parallel ${parallel_container}
                          "${parallel_hdf5_library}" "")
else()
  message(STATUS "No libtailrace_hdf5 for the system's HDF5: ${why}")
endif()
foreach(root ${TAILRACE_HDF5_PROGRAMS_ROOT})
  string(MAKE_C_IDENTIFIER "${root}" found)
  tailrace_search_hdf5(${found} "${root}")
  if(NOT ${found}_FOUND)
    message(FATAL_ERROR "TAILRACE_HDF5_PROGRAMS_ROOT has ${root}, but hdf5.h, libhdf5 and "
                        "libhdf5_hl are not there")
  endif()
  tailrace_read_hdf5_headers("${${found}_INCLUDE_DIRS}" is_parallel version)
  list(GET ${found}_LIBRARIES -1 library)
  tailrace_refuse_hdf5("${library}" why)
  if(NOT why AND (NOT is_parallel OR version VERSION_LESS 1.10.8))
    set(why "its headers are those of HDF5 ${version}, not of a parallel one of 1.10.8 or newer")
  endif()
  if(why)
    message(FATAL_ERROR "TAILRACE_HDF5_PROGRAMS_ROOT has ${root}, but ${why}")
  endif()
  string(REGEX REPLACE "^([0-9]+\\.[0-9]+).*" "\\1" minor "${version}")
  set(hdf5 tailrace_hdf5_parallel_${minor})
  if(TARGET ${hdf5})
    message(FATAL_ERROR "TAILRACE_HDF5_PROGRAMS_ROOT has ${root}, but HDF5 ${minor} is there already: "
                        "one library serves all releases of a minor version")
  endif()
  add_library(${hdf5} INTERFACE)
  target_include_directories(${hdf5} SYSTEM INTERFACE ${${found}_INCLUDE_DIRS})
  target_link_libraries(${hdf5} INTERFACE ${${found}_LIBRARIES} tailrace_mpi)
  tailrace_add_container(tailrace_container_${minor} ${hdf5})
  tailrace_add_hdf5_front(tailrace_hdf5_programs-${minor} ${hdf5} tailrace_container_${minor}
                          "${library}" "-${minor}")
endforeach()
