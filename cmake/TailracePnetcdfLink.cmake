# The folder lib/tailrace/pnetcdf: what a build links that asks for -lpnetcdf (docs/pnetcdf.md).
#
#   libpnetcdf.so        a linker script: libtailrace_pnetcdf.so, and the wrappers
#   libpnetcdf.a         a linker script: the calls as an archive, what they need, and the wrappers
#   libtailrace_pnetcdf_static.a    the engine as one object, of which only ncmpi_* can be seen, so
#                                   that it meets no name of a program's
#   libtailrace_pnetcdf_wrappers.a  Fortran 77, Fortran 90 and C++: the members of the installed
#                                   libpnetcdf.a that hold nothing else. They call ncmpi_*, and so us.
#                                   Those of C++ are one member, which holds MPI's inline classes once
#
# Scripts, since who links statically says -lpnetcdf and nothing of what that needs, as of libm.a.
# They name their neighbours, so that the folder can be moved.

execute_process(COMMAND "${CMAKE_LINKER}" --help OUTPUT_VARIABLE linker_help ERROR_QUIET)
if(TAILRACE_SANITIZE OR NOT linker_help MATCHES "force-group-allocation")
  message(STATUS "No libpnetcdf to link: it needs GNU ld, and no sanitizer")
  return()
endif()
set(link_folder "${PROJECT_BINARY_DIR}/lib/tailrace/pnetcdf")
file(MAKE_DIRECTORY "${link_folder}")

# --- the calls

set(merge_sections "${PROJECT_SOURCE_DIR}/cmake/merge_sections.ld")
set(pnetcdf_objects
    $<TARGET_OBJECTS:tailrace_pnetcdf_objects> ${TAILRACE_ENGINE_OBJECTS}
    ${tailrace_container_OBJECTS} ${TAILRACE_VERBS_OBJECTS}
    ${TAILRACE_TRZ_OBJECTS} ${TAILRACE_XOR_OBJECTS} ${TAILRACE_FILTER_OBJECTS})
set(whole "${PROJECT_BINARY_DIR}/pnetcdf_static/tailrace_pnetcdf.o")
set(hide_symbols "${PROJECT_SOURCE_DIR}/cmake/TailraceHideSymbols.cmake")
set(static_calls "${link_folder}/libtailrace_pnetcdf_static.a")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/pnetcdf_static")
# Sections that no ncmpi_* function needs are left out, if the compiler makes one per function.
set(leave_out "")
if(TAILRACE_OWN_SECTIONS AND linker_help MATCHES "gc-keep-exported")
  set(leave_out --gc-sections --gc-keep-exported --undefined=ncmpi_create)
endif()
# Section groups have to go before their symbols become local: a program's own group of such a name
# would take the place of ours.
add_custom_command(
  OUTPUT "${static_calls}"
  COMMAND "${CMAKE_LINKER}" -r --force-group-allocation ${leave_out} -T "${merge_sections}"
          -o "${whole}" ${pnetcdf_objects}
  COMMAND "${CMAKE_COMMAND}" "-DNM=${CMAKE_NM}" "-DOBJCOPY=${CMAKE_OBJCOPY}" "-DOBJECT=${whole}"
          "-DKEEP=ncmpi_*,tailrace_pnetcdf_*" -P "${hide_symbols}"
  COMMAND "${CMAKE_COMMAND}" -E rm -f "${static_calls}"
  COMMAND "${CMAKE_AR}" qcs "${static_calls}" "${whole}"
  DEPENDS ${pnetcdf_objects} "${hide_symbols}" "${merge_sections}"
  COMMAND_EXPAND_LISTS VERBATIM)
set(link_files "${static_calls}")

# --- the wrappers

set(wrappers "")
get_filename_component(pnetcdf_folder "${TAILRACE_PNETCDF_LIBRARY}" DIRECTORY)
find_file(TAILRACE_PNETCDF_ARCHIVE libpnetcdf.a PATHS "${pnetcdf_folder}" NO_DEFAULT_PATH)
mark_as_advanced(TAILRACE_PNETCDF_ARCHIVE)
# The wrappers are PnetCDF's own, and its licence goes with them: without one there are
# none.
find_file(TAILRACE_PNETCDF_LICENSE NAMES COPYRIGHT copyright
          PATHS "${TAILRACE_PNETCDF_INCLUDE_DIR}/.." /usr
          PATH_SUFFIXES share/doc/libpnetcdf-dev share/doc/pnetcdf NO_DEFAULT_PATH)
mark_as_advanced(TAILRACE_PNETCDF_LICENSE)
# Those of another MPI have other handles: Open MPI's are addresses that every object names.
set(same_mpi OFF)
if(TAILRACE_PNETCDF_ARCHIVE AND MPI_C_LIBRARIES)
  list(GET MPI_C_LIBRARIES 0 mpi_library)
  execute_process(COMMAND "${CMAKE_NM}" -D "${mpi_library}" OUTPUT_VARIABLE symbols_of_mpi
                  ERROR_QUIET)
  execute_process(COMMAND "${CMAKE_NM}" -u "${TAILRACE_PNETCDF_ARCHIVE}"
                  OUTPUT_VARIABLE needed_by_pnetcdf ERROR_QUIET)
  string(FIND "${symbols_of_mpi}" " ompi_mpi_comm_world\n" ours)
  string(FIND "${needed_by_pnetcdf}" " ompi_mpi_comm_world\n" theirs)
  if((ours EQUAL -1 AND theirs EQUAL -1) OR (ours GREATER -1 AND theirs GREATER -1))
    set(same_mpi ON)
  endif()
endif()
set(lacks "")
if(NOT TAILRACE_PNETCDF_ARCHIVE)
  set(lacks "there is no libpnetcdf.a beside ${TAILRACE_PNETCDF_LIBRARY}")
elseif(NOT TAILRACE_PNETCDF_LICENSE)
  set(lacks "PnetCDF's licence is not found (TAILRACE_PNETCDF_LICENSE)")
elseif(NOT MPI_C_LIBRARIES)
  set(lacks "which MPI it is cannot be told where the compiler is MPI's wrapper itself")
elseif(NOT same_mpi)
  set(lacks "${TAILRACE_PNETCDF_ARCHIVE} is of another MPI")
else()
  execute_process(COMMAND "${CMAKE_NM}" -A --defined-only "${TAILRACE_PNETCDF_ARCHIVE}"
                  OUTPUT_VARIABLE symbols ERROR_QUIET)
  # "libpnetcdf.a:allf.o:0000000000000000 T nfmpi_create_"
  set(wrapping_in_cpp "^(_ZNK?7PnetCDF|_Z[0-9]+ncmpi_)")
  set(wrapping "^(nfmpi_|__pnetcdf_MOD_)")
  set(members "")
  set(cpp_members "")
  set(others "")
  string(REGEX MATCHALL "[^:\n]+\\.o:[0-9a-f]+ [A-Za-z] [^\n]+" symbols "${symbols}")
  foreach(symbol IN LISTS symbols)
    string(REGEX MATCH "^([^:]+):[0-9a-f]+ [A-Za-z] (.*)$" symbol "${symbol}")
    set(member "${CMAKE_MATCH_1}")
    set(name "${CMAKE_MATCH_2}")
    if(name MATCHES "${wrapping}")
      list(APPEND members "${member}")
    elseif(name MATCHES "${wrapping_in_cpp}")
      list(APPEND cpp_members "${member}")
    elseif(name MATCHES "^(ncmpi|NCI|PNC|hash)")
      list(APPEND others "${member}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES members)
  list(REMOVE_ITEM members ${others})
  list(REMOVE_DUPLICATES cpp_members)
  list(REMOVE_ITEM cpp_members ${others} ${members})
  set(join_cpp "")
  set(cpp_member "")
  if(cpp_members)
    set(cpp_member pnetcdf_cpp.o)
    set(join_cpp COMMAND "${CMAKE_LINKER}" -r --force-group-allocation -T "${merge_sections}"
                         -o ${cpp_member} ${cpp_members}
                 COMMAND "${CMAKE_OBJCOPY}" --strip-unneeded ${cpp_member})
  endif()
  if(members OR cpp_members)
    set(wrappers "${link_folder}/libtailrace_pnetcdf_wrappers.a")
    add_custom_command(
      OUTPUT "${wrappers}"
      COMMAND "${CMAKE_AR}" x "${TAILRACE_PNETCDF_ARCHIVE}" ${members} ${cpp_members}
      ${join_cpp}
      COMMAND "${CMAKE_COMMAND}" -E rm -f "${wrappers}"
      COMMAND "${CMAKE_AR}" qcs "${wrappers}" ${members} ${cpp_member}
      DEPENDS "${TAILRACE_PNETCDF_ARCHIVE}" "${merge_sections}"
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/pnetcdf_static"
      VERBATIM)
    list(APPEND link_files "${wrappers}")
  endif()
endif()
if(NOT wrappers)
  if(NOT lacks)
    set(lacks "${TAILRACE_PNETCDF_ARCHIVE} has no such members")
  endif()
  message(STATUS "No Fortran and C++ in libpnetcdf to link: ${lacks}")
endif()
add_custom_target(tailrace_pnetcdf_links ALL DEPENDS ${link_files})

# --- the scripts, and pkg-config's files

# What the archive calls; MPI comes with the compiler's wrapper.
set(needs ${TAILRACE_DEFLATE_LINK_LIBRARIES} ${TAILRACE_ZSTD_LINK_LIBRARIES}
    ${SERIAL_HDF5_LIBRARIES})
list(FILTER needs EXCLUDE REGEX "::|^dl$|^m$")
list(APPEND needs -lz -lfmt -lstdc++ -lm -lpthread -ldl)
set(wrappers_name "")
if(wrappers)
  set(wrappers_name libtailrace_pnetcdf_wrappers.a)
endif()
list(JOIN needs " " needs)
file(CONFIGURE OUTPUT "${link_folder}/libpnetcdf.so" @ONLY CONTENT
     "/* GNU ld script: Tailrace in the place of PnetCDF. */
GROUP ( @wrappers_name@ ../../libtailrace_pnetcdf.so )
")
file(CONFIGURE OUTPUT "${link_folder}/libpnetcdf.a" @ONLY CONTENT
     "/* GNU ld script: Tailrace in the place of PnetCDF. */
GROUP ( @wrappers_name@ libtailrace_pnetcdf_static.a )
INPUT ( @needs@ )
")

file(STRINGS "${TAILRACE_PNETCDF_INCLUDE_DIR}/pnetcdf.h" version_lines
     REGEX "#define PNETCDF_VERSION +\"")
string(REGEX REPLACE ".*\"([^\"]*)\".*" "\\1" TAILRACE_PNETCDF_VERSION "${version_lines}")
find_path(TAILRACE_PNETCDF_FORTRAN_INCLUDE_DIR pnetcdf.inc
          HINTS "${TAILRACE_PNETCDF_INCLUDE_DIR}" "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}")
file(GLOB module_folders "${pnetcdf_folder}/fortran/*mod*")
find_path(TAILRACE_PNETCDF_MODULE_DIR pnetcdf.mod
          HINTS "${TAILRACE_PNETCDF_INCLUDE_DIR}" ${module_folders})
mark_as_advanced(TAILRACE_PNETCDF_FORTRAN_INCLUDE_DIR TAILRACE_PNETCDF_MODULE_DIR)
set(TAILRACE_PNETCDF_CFLAGS "")
foreach(folder TAILRACE_PNETCDF_INCLUDE_DIR TAILRACE_PNETCDF_FORTRAN_INCLUDE_DIR
        TAILRACE_PNETCDF_MODULE_DIR)
  if(${folder})
    list(APPEND TAILRACE_PNETCDF_CFLAGS "-I${${folder}}")
  endif()
endforeach()
list(REMOVE_DUPLICATES TAILRACE_PNETCDF_CFLAGS)
list(JOIN TAILRACE_PNETCDF_CFLAGS " " TAILRACE_PNETCDF_CFLAGS)
set(TAILRACE_PNETCDF_NEEDS "${needs}")
set(folder_installed "${CMAKE_INSTALL_LIBDIR}/tailrace/pnetcdf")
configure_file(cmake/tailrace-pnetcdf.pc.in "${link_folder}/pkgconfig/pnetcdf.pc" @ONLY)

install(FILES ${link_files} "${link_folder}/libpnetcdf.so" "${link_folder}/libpnetcdf.a"
        DESTINATION "${folder_installed}" COMPONENT dev)
if(wrappers)
  install(FILES "${TAILRACE_PNETCDF_LICENSE}" DESTINATION "${folder_installed}"
          RENAME COPYRIGHT.pnetcdf COMPONENT dev)
endif()
# Its own name stays in the folder, which who wants it has to name.
install(FILES "${link_folder}/pkgconfig/pnetcdf.pc" DESTINATION "${folder_installed}/pkgconfig"
        COMPONENT dev)
