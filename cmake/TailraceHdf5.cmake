# Choose the HDF5 libraries.
#
# The engine wants a serial HDF5: rank 0 alone writes metadata, and a serial library starts no MPI
# of its own. Order: HDF5_ROOT (cache or environment), pkg-config hdf5-serial (Debian), then CMake's
# own search. Debian installs serial and parallel side by side and FindHDF5 may pick either, hence
# this order. The parallel one, for tailrace-bench: TAILRACE_PARALLEL_HDF5_ROOT, then pkg-config.
#
# A prefix that holds archives alone (scripts/build-hdf5 --static) gives a private HDF5, of which the
# system has no part: that of the binary wheels.

set(TAILRACE_PARALLEL_HDF5_ROOT "" CACHE PATH "Prefix of a parallel HDF5, for tailrace-bench")

# Whether H5pubconf.h in `include_dirs` defines H5_HAVE_PARALLEL, and the version, from H5public.h.
function(tailrace_read_hdf5_headers include_dirs parallel_variable version_variable)
  set(parallel FALSE)
  set(version "")
  foreach(folder ${include_dirs})
    file(GLOB configuration_headers "${folder}/H5pubconf*.h")
    foreach(header ${configuration_headers})
      file(STRINGS "${header}" found REGEX "^#define H5_HAVE_PARALLEL 1")
      if(found)
        set(parallel TRUE)
      endif()
    endforeach()
    if(EXISTS "${folder}/H5public.h")
      foreach(part MAJOR MINOR RELEASE)
        file(STRINGS "${folder}/H5public.h" line REGEX "^#define H5_VERS_${part}[ \t]+[0-9]+")
        string(REGEX REPLACE "^#define H5_VERS_${part}[ \t]+([0-9]+).*" "\\1" ${part} "${line}")
      endforeach()
      set(version "${MAJOR}.${MINOR}.${RELEASE}")
    endif()
  endforeach()
  set(${parallel_variable} ${parallel} PARENT_SCOPE)
  set(${version_variable} "${version}" PARENT_SCOPE)
endfunction()

# Look for an HDF5 under `root` (or, if that is empty, by the pkg-config names given) and set
# PREFIX_FOUND, PREFIX_INCLUDE_DIRS and PREFIX_LIBRARIES (full paths, high-level library first).
function(tailrace_search_hdf5 prefix root)
  set(found FALSE)
  if(root)
    find_path(${prefix}_INCLUDE_DIR hdf5.h PATHS "${root}/include" NO_DEFAULT_PATH NO_CACHE)
    set(include_dirs "${${prefix}_INCLUDE_DIR}")
    set(library_dirs "${root}/lib" "${root}/lib64" "${root}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
  else()
    foreach(module ${ARGN})
      if(NOT found)
        pkg_check_modules(${prefix}_PC QUIET ${module})
        if(${prefix}_PC_FOUND)
          set(found TRUE)
          set(include_dirs ${${prefix}_PC_INCLUDE_DIRS})
          set(library_dirs ${${prefix}_PC_LIBRARY_DIRS})
        endif()
      endif()
    endforeach()
  endif()
  if(include_dirs)
    find_library(${prefix}_C NAMES hdf5 PATHS ${library_dirs} NO_DEFAULT_PATH NO_CACHE)
    find_library(${prefix}_HL NAMES hdf5_hl PATHS ${library_dirs} NO_DEFAULT_PATH NO_CACHE)
  endif()
  if(${prefix}_C AND ${prefix}_HL)
    set(${prefix}_FOUND TRUE PARENT_SCOPE)
    set(${prefix}_INCLUDE_DIRS "${include_dirs}" PARENT_SCOPE)
    set(${prefix}_LIBRARIES "${${prefix}_HL};${${prefix}_C}" PARENT_SCOPE)
  else()
    set(${prefix}_FOUND FALSE PARENT_SCOPE)
  endif()
endfunction()

set(hdf5_root "${HDF5_ROOT}")
if(NOT hdf5_root)
  set(hdf5_root "$ENV{HDF5_ROOT}")
endif()
tailrace_search_hdf5(SERIAL_HDF5 "${hdf5_root}" hdf5-serial)
if(NOT SERIAL_HDF5_FOUND AND hdf5_root)
  message(FATAL_ERROR "HDF5_ROOT is ${hdf5_root}, but hdf5.h, libhdf5 and libhdf5_hl are not there")
elseif(NOT SERIAL_HDF5_FOUND)
  find_package(HDF5 1.10.8 REQUIRED COMPONENTS C HL)
  set(SERIAL_HDF5_INCLUDE_DIRS "${HDF5_INCLUDE_DIRS}")
  set(SERIAL_HDF5_LIBRARIES "${HDF5_HL_LIBRARIES};${HDF5_LIBRARIES}")
endif()
tailrace_read_hdf5_headers("${SERIAL_HDF5_INCLUDE_DIRS}" hdf5_is_parallel TAILRACE_HDF5_VERSION)
if(TAILRACE_HDF5_VERSION VERSION_LESS 1.10.8)
  message(FATAL_ERROR "HDF5 ${TAILRACE_HDF5_VERSION} is too old; 1.10.8 or newer is needed")
endif()
if(hdf5_is_parallel AND NOT TAILRACE_MPI)
  message(FATAL_ERROR "The only HDF5 found is a parallel build, which needs TAILRACE_MPI=ON")
endif()

set(TAILRACE_HDF5_IS_STATIC OFF)
if("${SERIAL_HDF5_LIBRARIES}" MATCHES "libhdf5[^/;]*\\.a(;|$)")
  set(TAILRACE_HDF5_IS_STATIC ON)
  # An archive names no libraries that it needs itself.
  list(APPEND SERIAL_HDF5_LIBRARIES ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS} m)
endif()

add_library(tailrace_hdf5 INTERFACE)
target_include_directories(tailrace_hdf5 SYSTEM INTERFACE ${SERIAL_HDF5_INCLUDE_DIRS})
target_link_libraries(tailrace_hdf5 INTERFACE ${SERIAL_HDF5_LIBRARIES})
if(hdf5_is_parallel)
  # Its headers include mpi.h; Python's engine has them, too, and links no MPI.
  foreach(property INTERFACE_INCLUDE_DIRECTORIES INTERFACE_COMPILE_DEFINITIONS)
    set_property(TARGET tailrace_hdf5 APPEND PROPERTY ${property}
                 $<TARGET_PROPERTY:MPI::MPI_C,${property}>)
  endforeach()
  target_compile_definitions(tailrace_hdf5 INTERFACE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
endif()
list(APPEND TAILRACE_LINK_LIBRARIES ${SERIAL_HDF5_LIBRARIES})

set(TAILRACE_PARALLEL_HDF5_VERSION "")
if(TAILRACE_MPI)
  execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE mpiexec_version
                  ERROR_QUIET)
  if(mpiexec_version MATCHES "Open MPI|OpenRTE|PRTE")
    set(parallel_modules hdf5-openmpi)
  else()
    set(parallel_modules hdf5-mpich)
  endif()
  tailrace_search_hdf5(PARALLEL_HDF5 "${TAILRACE_PARALLEL_HDF5_ROOT}" ${parallel_modules})
  if(PARALLEL_HDF5_FOUND)
    tailrace_read_hdf5_headers("${PARALLEL_HDF5_INCLUDE_DIRS}" is_parallel
                               TAILRACE_PARALLEL_HDF5_VERSION)
    add_library(tailrace_hdf5_parallel INTERFACE)
    target_include_directories(tailrace_hdf5_parallel SYSTEM INTERFACE
                               ${PARALLEL_HDF5_INCLUDE_DIRS})
    target_link_libraries(tailrace_hdf5_parallel INTERFACE ${PARALLEL_HDF5_LIBRARIES} tailrace_mpi)
  endif()
endif()
