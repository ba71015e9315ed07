# What was chosen, in one glance at the end of the configuration.

if(TARGET tailrace_hdf5_parallel)
  set(bench_hdf5 "parallel ${TAILRACE_PARALLEL_HDF5_VERSION}")
else()
  set(bench_hdf5 "serial ${TAILRACE_HDF5_VERSION} (no parallel HDF5 found)")
endif()
if(TAILRACE_CAIRO)
  set(charts "cairo ${TAILRACE_CAIRO_PC_cairo_VERSION}")
else()
  set(charts "none (no cairo)")
endif()
if(NOT TAILRACE_BUILD_EXAMPLES OR NOT TAILRACE_MPI)
  set(applications "none")
elseif(TAILRACE_FFTW_FOUND)
  set(applications "${TAILRACE_APPLICATIONS}")
else()
  set(applications "${TAILRACE_APPLICATIONS} (no FFTW: without cosmo)")
endif()
string(STRIP "${applications}" applications)
message(STATUS "Tailrace ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, MPI ${TAILRACE_MPI}, "
               "HDF5 ${TAILRACE_HDF5_VERSION} (${SERIAL_HDF5_LIBRARIES}), "
               "tailrace-bench: HDF5 ${bench_hdf5}, charts: ${charts}, "
               "applications: ${applications}, Fortran: ${TAILRACE_FORTRAN_SUMMARY}, "
               "sanitizers: ${TAILRACE_SANITIZE}")
