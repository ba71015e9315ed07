# What was chosen, in one glance at the end of the configuration.

if(TARGET tailrace_hdf5_parallel)
  set(bench_hdf5 "parallel ${TAILRACE_PARALLEL_HDF5_VERSION}")
else()
  set(bench_hdf5 "serial ${TAILRACE_HDF5_VERSION} (no parallel HDF5 found)")
endif()
message(STATUS "Tailrace ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, MPI ${TAILRACE_MPI}, "
               "HDF5 ${TAILRACE_HDF5_VERSION} (${SERIAL_HDF5_LIBRARIES}), "
               "tailrace-bench: HDF5 ${bench_hdf5}, sanitizers: ${TAILRACE_SANITIZE}")
