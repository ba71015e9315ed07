# The libraries that Tailrace stands on, gathered in interface targets:
#
#   tailrace_codec_requirements  what the codecs need: deflate, zstd
#   tailrace_requirements   what the engine needs: threads, deflate, zlib, zstd, fmt, nlohmann_json
#                           (headers only), and MPI to link, but not to compile
#   tailrace_mpi            MPI's headers and flags, for the few sources that include mpi.h; absent
#                           without MPI. All other objects are the same with MPI and without, so
#                           ccache compiles them once for both.
#   tailrace_hdf5           the one HDF5 of the library and the command line (serial if possible)
#   tailrace_hdf5_parallel  the parallel HDF5 of tailrace-bench; absent if there is none
#   tailrace_tools          what only programs need: CLI11
#   tailrace_cairo          what draws their charts; absent if there is none (TAILRACE_CAIRO)
#
# TAILRACE_LINK_LIBRARIES lists the engine's libraries by full path, for the exported target. With
# TAILRACE_FILTER_ONLY the codec trz and its plug-in are all there is; they need the first few.

find_package(PkgConfig)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "There is no pkg-config (Debian: pkg-config)")
endif()
find_package(Threads REQUIRED)
pkg_check_modules(TAILRACE_DEFLATE QUIET libdeflate)
pkg_check_modules(TAILRACE_ZSTD QUIET libzstd)
# Everything that is missing in one line, by the names of Debian's packages.
set(missing_packages "")
macro(tailrace_needs found package)
  if(NOT ${found})
    list(APPEND missing_packages ${package})
  endif()
endmacro()
macro(tailrace_stop_if_missing)
  if(missing_packages)
    list(JOIN missing_packages " " missing_packages)
    message(FATAL_ERROR "Tailrace needs what is not found here; Debian's packages of it: "
                        "${missing_packages}")
  endif()
endmacro()
tailrace_needs(TAILRACE_DEFLATE_FOUND libdeflate-dev)
tailrace_needs(TAILRACE_ZSTD_FOUND libzstd-dev)
if(TAILRACE_FILTER_ONLY)
  tailrace_stop_if_missing()
endif()

add_library(tailrace_codec_requirements INTERFACE)
target_include_directories(tailrace_codec_requirements SYSTEM INTERFACE
                           ${TAILRACE_DEFLATE_INCLUDE_DIRS} ${TAILRACE_ZSTD_INCLUDE_DIRS})
add_library(tailrace_requirements INTERFACE)
target_link_libraries(tailrace_requirements INTERFACE tailrace_codec_requirements)
if(TAILRACE_FILTER_ONLY)
  return()
endif()

find_package(ZLIB QUIET)
find_package(fmt QUIET)
find_package(nlohmann_json QUIET)
tailrace_needs(ZLIB_FOUND zlib1g-dev)
tailrace_needs(fmt_FOUND libfmt-dev)
tailrace_needs(nlohmann_json_FOUND nlohmann-json3-dev)
if(TAILRACE_BUILD_CLI OR TAILRACE_BUILD_BENCH)
  find_package(CLI11 QUIET)
  tailrace_needs(CLI11_FOUND libcli11-dev)
endif()
tailrace_stop_if_missing()

find_package(MPI COMPONENTS C QUIET)
option(TAILRACE_MPI "Build with MPI" ${MPI_C_FOUND})
if(TAILRACE_MPI AND NOT MPI_C_FOUND)
  message(FATAL_ERROR "TAILRACE_MPI is on, but no MPI was found (libopenmpi-dev or libmpich-dev)")
endif()

set(TAILRACE_LINK_LIBRARIES ${TAILRACE_DEFLATE_LINK_LIBRARIES} ${TAILRACE_ZSTD_LINK_LIBRARIES}
    ZLIB::ZLIB fmt::fmt Threads::Threads ${CMAKE_DL_LIBS})
if(TAILRACE_MPI)
  list(APPEND TAILRACE_LINK_LIBRARIES MPI::MPI_C)
endif()

# The Python engine's: the same without MPI, and with the HDF5 that is chosen below.
add_library(tailrace_python_requirements INTERFACE)
target_include_directories(tailrace_python_requirements SYSTEM INTERFACE
                           ${TAILRACE_DEFLATE_INCLUDE_DIRS} ${TAILRACE_ZSTD_INCLUDE_DIRS})
set(libraries_without_mpi ${TAILRACE_LINK_LIBRARIES})
list(REMOVE_ITEM libraries_without_mpi MPI::MPI_C)
target_link_libraries(tailrace_python_requirements INTERFACE ${libraries_without_mpi} tailrace_hdf5
                      nlohmann_json::nlohmann_json)

target_link_libraries(tailrace_requirements INTERFACE ${libraries_without_mpi}
                      nlohmann_json::nlohmann_json)
if(TAILRACE_MPI)
  target_link_libraries(tailrace_requirements INTERFACE $<LINK_ONLY:MPI::MPI_C>)
  add_library(tailrace_mpi INTERFACE)
  target_link_libraries(tailrace_mpi INTERFACE MPI::MPI_C)
  # Only the C interface of MPI is used; the old C++ one would drag in another library.
  target_compile_definitions(tailrace_mpi INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
endif()

if(TAILRACE_BUILD_CLI OR TAILRACE_BUILD_BENCH)
  add_library(tailrace_tools INTERFACE)
  target_link_libraries(tailrace_tools INTERFACE CLI11::CLI11)
endif()

# Charts: docs/adr/0008-cairo-for-charts.md.
pkg_check_modules(TAILRACE_CAIRO_PC QUIET IMPORTED_TARGET cairo>=1.14 cairo-svg cairo-png)
option(TAILRACE_CAIRO "Draw charts with cairo" ${TAILRACE_CAIRO_PC_FOUND})
if(TAILRACE_CAIRO AND NOT TAILRACE_CAIRO_PC_FOUND)
  message(FATAL_ERROR "TAILRACE_CAIRO is on, but no cairo was found (libcairo2-dev)")
elseif(TAILRACE_CAIRO)
  add_library(tailrace_cairo INTERFACE)
  target_link_libraries(tailrace_cairo INTERFACE PkgConfig::TAILRACE_CAIRO_PC)
endif()

include(TailraceHdf5)
