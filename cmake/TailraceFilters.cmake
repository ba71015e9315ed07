# The project trz (trz/CMakeLists.txt) as a part of this one, and what programs of ours link of it.
#
#   TAILRACE_TRZ_OBJECTS, TAILRACE_XOR_OBJECTS
#                            the codecs' objects, part of every library and program of ours
#   TAILRACE_FILTER_OBJECTS  the HDF5 filter classes, for programs that read without the plug-ins
#   h5trz, h5xor             the plug-ins
#   tailrace_filters         libtailrace_filters.so: both filters, for programs that call it

# Debug keeps its own level, and the sanitizers' presets, whose tests take longer with less than -O1.
# The preset `ci` (-Og) takes -O1 for all but the kernels, which compiles faster than -O3.
if(TAILRACE_SANITIZE)
  set(TRZ_OPTIMISATION -O1)
  set(TRZ_KERNEL_OPTIMISATION -O1)
elseif("${${tailrace_level_flags}}" MATCHES "-Og")
  set(TRZ_OPTIMISATION -O1)
  set(TRZ_KERNEL_OPTIMISATION -O2)
else()
  set(TRZ_OPTIMISATION "$<$<NOT:$<CONFIG:Debug>>:-O3>")
  set(TRZ_KERNEL_OPTIMISATION "${TRZ_OPTIMISATION}")
endif()

# A call for each comparison of a loop takes longer than the loop; it helps to find constants, and
# the seeds of the codecs have theirs.
if(TAILRACE_FUZZ)
  list(APPEND TRZ_OPTIMISATION -fno-sanitize-coverage=trace-cmp)
  list(APPEND TRZ_KERNEL_OPTIMISATION -fno-sanitize-coverage=trace-cmp)
endif()

# Under a sanitizer only instrumented programs could load the plug-ins.
if(TAILRACE_SANITIZE)
  set(TRZ_PLUGINS OFF)
else()
  set(TRZ_PLUGINS ON)
endif()
set(TRZ_PLUGIN_FOLDER "${PROJECT_BINARY_DIR}/lib/hdf5/plugin")
set(TRZ_JOIN_SOURCES ${TAILRACE_JOIN_SOURCES})
set(TRZ_WERROR ${TAILRACE_WERROR})
set(TRZ_BUILD_TESTS OFF)
add_subdirectory(trz)
set(TAILRACE_TRZ_OBJECTS ${TRZ_CODEC_OBJECTS})
set(TAILRACE_XOR_OBJECTS ${TRZ_XOR_OBJECTS})
set(TAILRACE_FILTER_OBJECTS ${TRZ_FILTER_OBJECTS})

if(TAILRACE_SANITIZE)
  return()
endif()
set(TAILRACE_VERSION_SCRIPT ${TRZ_VERSION_SCRIPT})

if(TAILRACE_FILTER_ONLY OR TAILRACE_WHEEL)
  install(TARGETS h5trz h5xor LIBRARY DESTINATION plugins)
  return()
endif()
install(TARGETS h5trz h5xor
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hdf5/plugin COMPONENT plugins)

# Both filters in a library that programs are linked to (tailrace_filters.h), installed with the rest.
set(filters_folder "${PROJECT_SOURCE_DIR}/frontends/filters")
trz_filter_library(tailrace_filters SHARED ${filters_folder}/tailrace_filters.map
                   SOURCES ${filters_folder}/register_filters.cpp
                           ${TAILRACE_TRZ_OBJECTS} ${TAILRACE_XOR_OBJECTS} ${TAILRACE_FILTER_OBJECTS}
                   LIBRARIES tailrace_flags trz_plugin_zstd trz_plugin_deflate)
set_target_properties(tailrace_filters PROPERTIES
                      VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(tailrace_filters
                           INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(tailrace::tailrace_filters ALIAS tailrace_filters)
