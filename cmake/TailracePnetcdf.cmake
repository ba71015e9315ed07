# libtailrace_pnetcdf.so: the PnetCDF C API, served by Tailrace (docs/pnetcdf.md).
#
# It needs PnetCDF's header alone; the library itself is looked for when the program runs, and only
# for classic files. The engine is inside, hidden like in libtailrace. The folder pnetcdf/ beside it
# holds it under the names that programs ask the loader for.

find_path(TAILRACE_PNETCDF_INCLUDE_DIR pnetcdf.h)
find_library(TAILRACE_PNETCDF_LIBRARY NAMES pnetcdf)
mark_as_advanced(TAILRACE_PNETCDF_INCLUDE_DIR TAILRACE_PNETCDF_LIBRARY)
set(TAILRACE_PNETCDF OFF)
if(NOT TAILRACE_MPI OR NOT BUILD_SHARED_LIBS)
  message(STATUS "No libtailrace_pnetcdf: it needs MPI and shared libraries")
  return()
elseif(NOT TAILRACE_PNETCDF_INCLUDE_DIR)
  message(STATUS "No libtailrace_pnetcdf: there is no pnetcdf.h (libpnetcdf-dev)")
  return()
endif()
set(TAILRACE_PNETCDF ON)

file(GLOB pnetcdf_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/frontends/pnetcdf/*.cpp")
tailrace_object_library(tailrace_pnetcdf_objects ${pnetcdf_sources})
target_link_libraries(tailrace_pnetcdf_objects PUBLIC tailrace_mpi)
target_include_directories(tailrace_pnetcdf_objects SYSTEM PUBLIC
                           "${TAILRACE_PNETCDF_INCLUDE_DIR}")
# PnetCDF's own declarations say nothing of visibility; the version script leaves out the rest.
set_target_properties(tailrace_pnetcdf_objects PROPERTIES CXX_VISIBILITY_PRESET default)
tailrace_join_sources(tailrace_pnetcdf_objects "/[a-c][^/]*$")
if(TAILRACE_PNETCDF_LIBRARY)
  file(REAL_PATH "${TAILRACE_PNETCDF_LIBRARY}" pnetcdf_library)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/frontends/pnetcdf/real_library.cpp"
    PROPERTIES COMPILE_DEFINITIONS "TAILRACE_REAL_PNETCDF=\"${pnetcdf_library}\"")
endif()

add_library(tailrace_pnetcdf SHARED
            $<TARGET_OBJECTS:tailrace_pnetcdf_objects> ${TAILRACE_ENGINE_OBJECTS}
            ${tailrace_container_OBJECTS} ${TAILRACE_VERBS_OBJECTS}
            ${TAILRACE_TRZ_OBJECTS} ${TAILRACE_XOR_OBJECTS} ${TAILRACE_FILTER_OBJECTS})
target_link_libraries(tailrace_pnetcdf PRIVATE ${TAILRACE_LINK_LIBRARIES})
set(pnetcdf_script "${PROJECT_SOURCE_DIR}/frontends/pnetcdf/pnetcdf.map")
set_target_properties(tailrace_pnetcdf PROPERTIES
                      LINKER_LANGUAGE CXX
                      LINK_DEPENDS "${pnetcdf_script}")
target_link_options(tailrace_pnetcdf PRIVATE "-Wl,--version-script=${pnetcdf_script}")
target_include_directories(tailrace_pnetcdf SYSTEM INTERFACE "${TAILRACE_PNETCDF_INCLUDE_DIR}")

# The real library's names: Debian's, and those of its releases.
set(names libpnetcdf.so libpnetcdf.so.0d libpnetcdf.so.3 libpnetcdf.so.4 libpnetcdf.so.5
    libpnetcdf.so.6)
set(folder "${PROJECT_BINARY_DIR}/lib/pnetcdf")
file(MAKE_DIRECTORY "${folder}")
foreach(name ${names})
  file(CREATE_LINK ../libtailrace_pnetcdf.so "${folder}/${name}" SYMBOLIC)
endforeach()

install(TARGETS tailrace_pnetcdf LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES frontends/pnetcdf/tailrace_pnetcdf.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tailrace COMPONENT dev)
# The links point to the folder above here and there, so they are installed as they are.
install(DIRECTORY "${folder}" DESTINATION ${CMAKE_INSTALL_LIBDIR})
include(TailracePnetcdfLink)
