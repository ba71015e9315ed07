# The codecs trz and xor and their HDF5 filter plug-ins.
#
#   TAILRACE_TRZ_OBJECTS, TAILRACE_XOR_OBJECTS
#                            the codecs' objects, part of every library and program of ours
#   TAILRACE_FILTER_OBJECTS  the HDF5 filter classes, for programs that read without the plug-ins
#   tailrace_filters         libtailrace_filters.so: both filters, for programs that call it
#   h5trz, h5xor             the plug-ins libh5trz.so and libh5xor.so, which stand alone: no HDF5, no
#                            MPI, and zstd and libdeflate inside where static libraries of them are
#                            installed
#
# Files named *_kernels.cpp are compiled once for each instruction set (codec/trz/kernels/isa.hpp), which is
# chosen when the program runs; nothing else is compiled for more than the plain machine.

include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)

file(GLOB_RECURSE trz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/codec/trz/*.cpp")
set(trz_kernels ${trz_sources})
list(FILTER trz_kernels INCLUDE REGEX "_kernels\\.cpp$")
list(FILTER trz_sources EXCLUDE REGEX "_kernels\\.cpp$")

check_cxx_source_compiles("
#if !defined(__x86_64__)
#error other machines have the plain kernels only
#endif
int main() { return 0; }" TAILRACE_X86_64)

set(trz_isa_names plain)
set(trz_isa_flags_plain "")
if(TAILRACE_X86_64)
  list(APPEND trz_isa_names avx2 avx512)
  set(trz_isa_flags_avx2 -mavx2 -mbmi -mbmi2 -mpopcnt -mlzcnt -mfma)
  set(trz_isa_flags_avx512 ${trz_isa_flags_avx2}
      -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi -mavx512vbmi2 -mavx512bitalg
      -mavx512vpopcntdq -mavx512cd -mgfni -mprefer-vector-width=512)
endif()

# Debug keeps its own level, and the sanitizers' presets, whose tests take longer with less than -O1.
# The preset `ci` (-Og) takes -O1 for all but the kernels, which compiles faster than -O3.
if(TAILRACE_SANITIZE)
  set(trz_optimisation -O1)
  set(trz_kernel_optimisation -O1)
elseif("${${tailrace_level_flags}}" MATCHES "-Og")
  set(trz_optimisation -O1)
  set(trz_kernel_optimisation -O2)
else()
  set(trz_optimisation "$<$<NOT:$<CONFIG:Debug>>:-O3>")
  set(trz_kernel_optimisation "${trz_optimisation}")
endif()

# A call for each comparison of a loop takes longer than the loop; it helps to find constants, and
# the seeds of the codecs have theirs.
if(TAILRACE_FUZZ)
  list(APPEND trz_optimisation -fno-sanitize-coverage=trace-cmp)
  list(APPEND trz_kernel_optimisation -fno-sanitize-coverage=trace-cmp)
endif()

# What the engine, the plug-ins and Python's module _mpi have in common.
file(GLOB core_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/core/*.cpp")
tailrace_codec_library(tailrace_core ${core_sources})

tailrace_codec_library(tailrace_trz ${trz_sources})
target_compile_options(tailrace_trz PRIVATE ${trz_optimisation})
set(TAILRACE_TRZ_OBJECTS $<TARGET_OBJECTS:tailrace_trz>)
foreach(isa ${trz_isa_names})
  tailrace_codec_library(tailrace_trz_${isa} ${trz_kernels})
  target_compile_definitions(tailrace_trz_${isa} PRIVATE TRZ_ISA=${isa})
  # GCC 12 takes the undefined vectors of its own intrinsics for a mistake of ours (bug 105593).
  target_compile_options(tailrace_trz_${isa} PRIVATE ${trz_kernel_optimisation} ${trz_isa_flags_${isa}}
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         -Wno-uninitialized)
  list(APPEND TAILRACE_TRZ_OBJECTS $<TARGET_OBJECTS:tailrace_trz_${isa}>)
endforeach()

# --- the codec xor: plain and AVX2 alone ----------------------------------------------------------

file(GLOB xor_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/codec/xor/*.cpp")
set(xor_kernels ${xor_sources})
list(FILTER xor_kernels INCLUDE REGEX "_kernels\\.cpp$")
list(FILTER xor_sources EXCLUDE REGEX "_kernels\\.cpp$")
tailrace_codec_library(tailrace_xor ${xor_sources})
target_compile_options(tailrace_xor PRIVATE ${trz_optimisation})
set(TAILRACE_XOR_OBJECTS $<TARGET_OBJECTS:tailrace_xor>)
foreach(isa ${trz_isa_names})
  if(NOT isa STREQUAL avx512)
    tailrace_codec_library(tailrace_xor_${isa} ${xor_kernels})
    target_compile_definitions(tailrace_xor_${isa} PRIVATE XOR_BUILD=${isa})
    target_compile_options(tailrace_xor_${isa} PRIVATE ${trz_kernel_optimisation} ${trz_isa_flags_${isa}}
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                           -Wno-uninitialized)
    list(APPEND TAILRACE_XOR_OBJECTS $<TARGET_OBJECTS:tailrace_xor_${isa}>)
  endif()
endforeach()

# --- the HDF5 filters -----------------------------------------------------------------------------

set(filter_folder "${PROJECT_SOURCE_DIR}/frontends/hdf5_filter")
tailrace_codec_library(tailrace_filter_calls ${filter_folder}/hdf5_calls.cpp)
tailrace_codec_library(tailrace_trz_filter ${filter_folder}/trz_filter.cpp)
tailrace_codec_library(tailrace_xor_filter ${filter_folder}/xor_filter.cpp)
# What programs of ours link to read both filters without a plug-in.
set(TAILRACE_FILTER_OBJECTS $<TARGET_OBJECTS:tailrace_filter_calls>
    $<TARGET_OBJECTS:tailrace_trz_filter> $<TARGET_OBJECTS:tailrace_xor_filter>)

# Under a sanitizer only instrumented programs could load them.
if(TAILRACE_SANITIZE)
  return()
endif()

find_library(TAILRACE_STATIC_ZSTD libzstd.a)
find_library(TAILRACE_STATIC_DEFLATE libdeflate.a)
mark_as_advanced(TAILRACE_STATIC_ZSTD TAILRACE_STATIC_DEFLATE)
if(TAILRACE_STATIC_ZSTD AND TAILRACE_STATIC_DEFLATE)
  set(filter_zstd "${TAILRACE_STATIC_ZSTD}")
  set(filter_deflate "${TAILRACE_STATIC_DEFLATE}")
else()
  set(filter_zstd ${TAILRACE_ZSTD_LINK_LIBRARIES})
  set(filter_deflate ${TAILRACE_DEFLATE_LINK_LIBRARIES})
endif()
check_linker_flag(CXX "-Wl,--version-script=${filter_folder}/h5trz.map" TAILRACE_VERSION_SCRIPT)
check_linker_flag(CXX -static-libstdc++ TAILRACE_STATIC_LIBSTDCXX)

# A library from sources, objects and libraries. The linker leaves out what it does not use of
# src/core; nothing inside may clash with the host's own zstd or C++ library, nor be replaced by
# them.
function(tailrace_filter_library name kind)
  cmake_parse_arguments(PARSE_ARGV 2 plugin "" "" "SOURCES;LIBRARIES")
  add_library(${name} ${kind} ${plugin_SOURCES} $<TARGET_OBJECTS:tailrace_core>
              $<TARGET_OBJECTS:tailrace_filter_calls>)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX INSTALL_RPATH "")
  target_link_libraries(${name} PRIVATE tailrace_flags ${plugin_LIBRARIES} Threads::Threads
                        ${CMAKE_DL_LIBS})
  if(TAILRACE_VERSION_SCRIPT)
    target_link_options(${name} PRIVATE "-Wl,--version-script=${filter_folder}/${name}.map"
                        -Wl,--gc-sections -Wl,-z,defs)
    set_target_properties(${name} PROPERTIES LINK_DEPENDS "${filter_folder}/${name}.map")
  endif()
  if(TAILRACE_STATIC_LIBSTDCXX)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

function(tailrace_filter_plugin name)
  tailrace_filter_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES
                        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/hdf5/plugin")
  if(TAILRACE_FILTER_ONLY OR TAILRACE_WHEEL)
    install(TARGETS ${name} LIBRARY DESTINATION plugins)
  else()
    install(TARGETS ${name}
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hdf5/plugin COMPONENT plugins)
  endif()
endfunction()

tailrace_filter_plugin(h5trz
                       SOURCES ${filter_folder}/h5trz_plugin.cpp ${filter_folder}/trz_c.cpp
                               ${TAILRACE_TRZ_OBJECTS} $<TARGET_OBJECTS:tailrace_trz_filter>
                       LIBRARIES ${filter_zstd} ${filter_deflate})
tailrace_filter_plugin(h5xor
                       SOURCES ${filter_folder}/h5xor_plugin.cpp ${filter_folder}/xor_c.cpp
                               ${TAILRACE_XOR_OBJECTS} $<TARGET_OBJECTS:tailrace_xor_filter>
                       LIBRARIES ${filter_deflate})

# Both filters in a library that programs are linked to (tailrace_filters.h), installed with the rest.
if(NOT TAILRACE_FILTER_ONLY AND NOT TAILRACE_WHEEL)
  tailrace_filter_library(tailrace_filters SHARED
                          SOURCES ${filter_folder}/register_filters.cpp
                                  ${TAILRACE_TRZ_OBJECTS} $<TARGET_OBJECTS:tailrace_trz_filter>
                                  ${TAILRACE_XOR_OBJECTS} $<TARGET_OBJECTS:tailrace_xor_filter>
                          LIBRARIES ${filter_zstd} ${filter_deflate})
  set_target_properties(tailrace_filters PROPERTIES
                        VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(tailrace_filters
                             INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                       $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_library(tailrace::tailrace_filters ALIAS tailrace_filters)
endif()

# python/filters: its one module beside the plug-ins is the package's.
if(TAILRACE_FILTER_MODULE)
  install(FILES "${PROJECT_SOURCE_DIR}/python/tailrace/_plugins.py" DESTINATION .)
endif()
