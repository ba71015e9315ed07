# The codec trz and its HDF5 filter plug-in.
#
#   TAILRACE_TRZ_OBJECTS  the codec's objects, part of every library and program of ours
#   tailrace_trz_filter   the HDF5 filter class, for programs that read trz without the plug-in
#   h5trz                 the plug-in libh5trz.so, which stands alone: no HDF5, no MPI, and zstd and
#                         libdeflate inside it where static libraries of them are installed
#
# Files named *_kernels.cpp are compiled once for each instruction set (codec/trz/isa.hpp), which is
# chosen when the program runs; nothing else is compiled for more than the plain machine.

include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)

file(GLOB trz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/codec/trz/*.cpp")
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

# The sanitizers' presets and Debug keep their own level.
set(trz_optimisation "")
if(NOT TAILRACE_SANITIZE)
  set(trz_optimisation "$<$<NOT:$<CONFIG:Debug>>:-O3>")
endif()

tailrace_object_library(tailrace_trz ${trz_sources})
target_compile_options(tailrace_trz PRIVATE ${trz_optimisation})
set(TAILRACE_TRZ_OBJECTS $<TARGET_OBJECTS:tailrace_trz>)
foreach(isa ${trz_isa_names})
  tailrace_object_library(tailrace_trz_${isa} ${trz_kernels})
  target_compile_definitions(tailrace_trz_${isa} PRIVATE TRZ_ISA=${isa})
  # GCC 12 takes the undefined vectors of its own intrinsics for a mistake of ours (bug 105593).
  target_compile_options(tailrace_trz_${isa} PRIVATE ${trz_optimisation} ${trz_isa_flags_${isa}}
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         -Wno-uninitialized)
  list(APPEND TAILRACE_TRZ_OBJECTS $<TARGET_OBJECTS:tailrace_trz_${isa}>)
endforeach()

# --- the HDF5 filter ------------------------------------------------------------------------------

set(filter_folder "${PROJECT_SOURCE_DIR}/frontends/hdf5_filter")
tailrace_object_library(tailrace_trz_filter
                        ${filter_folder}/hdf5_calls.cpp ${filter_folder}/trz_filter.cpp)

# Under a sanitizer only instrumented programs could load it.
if(TAILRACE_SANITIZE)
  return()
endif()

# The linker leaves out what the codec does not use of src/core.
file(GLOB h5trz_core CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/core/*.cpp")
add_library(h5trz MODULE
            ${filter_folder}/h5trz_plugin.cpp ${filter_folder}/trz_c.cpp ${h5trz_core}
            ${TAILRACE_TRZ_OBJECTS} $<TARGET_OBJECTS:tailrace_trz_filter>)
set_target_properties(h5trz PROPERTIES
                      LINKER_LANGUAGE CXX
                      INSTALL_RPATH ""
                      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/hdf5/plugin")

find_library(TAILRACE_STATIC_ZSTD libzstd.a)
find_library(TAILRACE_STATIC_DEFLATE libdeflate.a)
mark_as_advanced(TAILRACE_STATIC_ZSTD TAILRACE_STATIC_DEFLATE)
if(TAILRACE_STATIC_ZSTD AND TAILRACE_STATIC_DEFLATE)
  set(h5trz_libraries "${TAILRACE_STATIC_ZSTD}" "${TAILRACE_STATIC_DEFLATE}")
else()
  set(h5trz_libraries ${TAILRACE_ZSTD_LINK_LIBRARIES} ${TAILRACE_DEFLATE_LINK_LIBRARIES})
endif()
target_link_libraries(h5trz PRIVATE tailrace_flags ${h5trz_libraries} Threads::Threads
                      ${CMAKE_DL_LIBS})

# Nothing inside may clash with the host's own zstd or C++ library, nor be replaced by them.
set(h5trz_script "-Wl,--version-script=${filter_folder}/h5trz.map")
check_linker_flag(CXX "${h5trz_script}" TAILRACE_VERSION_SCRIPT)
if(TAILRACE_VERSION_SCRIPT)
  target_link_options(h5trz PRIVATE "${h5trz_script}" -Wl,--gc-sections -Wl,-z,defs)
  set_target_properties(h5trz PROPERTIES LINK_DEPENDS "${filter_folder}/h5trz.map")
endif()
check_linker_flag(CXX -static-libstdc++ TAILRACE_STATIC_LIBSTDCXX)
if(TAILRACE_STATIC_LIBSTDCXX)
  target_link_options(h5trz PRIVATE -static-libstdc++ -static-libgcc)
endif()

if(TAILRACE_FILTER_ONLY)
  install(TARGETS h5trz LIBRARY DESTINATION plugins)
else()
  install(TARGETS h5trz LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hdf5/plugin)
endif()
