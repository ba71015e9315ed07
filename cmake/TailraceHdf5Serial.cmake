# libtailrace_hdf5_serial.so: serial programs' chunks by all threads (docs/hdf5.md).
#
# It is preloaded, holds codecs and a team of threads, and brings neither MPI nor an HDF5: calls are
# exported under the version nodes of the HDF5 that it is compiled for, Debian's, and reach the one
# that the program has. An HDF5 without such nodes is not served, as its calls could not be told
# from those of other HDF5s in the process.

if(NOT BUILD_SHARED_LIBS OR TAILRACE_SANITIZE)
  return()
endif()
list(GET SERIAL_HDF5_LIBRARIES -1 serial_hdf5)
if(hdf5_is_parallel OR NOT serial_hdf5 MATCHES "\\.so$"
   OR NOT TAILRACE_HDF5_VERSION MATCHES "^1\\.10\\.")
  message(STATUS "No libtailrace_hdf5_serial: ${serial_hdf5} is no shared, serial HDF5 1.10")
  return()
endif()

set(serial_folder "${PROJECT_SOURCE_DIR}/frontends/hdf5_serial")
file(READ "${serial_folder}/serial_calls.cpp" serial_calls_text)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${serial_folder}/serial_calls.cpp")
string(REGEX MATCHALL "TAILRACE_SERIAL_[A-Z]+\\([a-z_]+, H5[A-Za-z0-9_]+," serial_calls
       "${serial_calls_text}")
list(TRANSFORM serial_calls REPLACE ".*, (H5[A-Za-z0-9_]+),$" "\\1")
execute_process(COMMAND "${CMAKE_OBJDUMP}" -T "${serial_hdf5}" OUTPUT_VARIABLE symbols ERROR_QUIET)
execute_process(COMMAND "${CMAKE_OBJDUMP}" -p "${serial_hdf5}" OUTPUT_VARIABLE headers ERROR_QUIET)
set(nodes "")
set(defined "")
set(lacking "")
foreach(name ${serial_calls})
  if(symbols MATCHES " \\(?(HDF5[A-Za-z0-9_.]+)\\)? +${name}\n")
    list(APPEND nodes ${CMAKE_MATCH_1})
    # Hidden, so that no call without a version is bound to it.
    string(APPEND defined "#define TAILRACE_NODE_${name} \"@${CMAKE_MATCH_1}\"\n")
  else()
    list(APPEND lacking ${name})
  endif()
endforeach()
# Variables are where the program has them, if it is linked to them (copy relocations): to be asked
# for by their versions, too.
set(variables "")
file(READ "${serial_folder}/serial_hdf5.hpp" serial_variables_text)
string(REGEX MATCHALL "VARIABLE\\(H5[A-Za-z0-9_]+\\)" serial_variables "${serial_variables_text}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${serial_folder}/serial_hdf5.hpp")
list(TRANSFORM serial_variables REPLACE "VARIABLE\\((H5[A-Za-z0-9_]+)\\)" "\\1")
foreach(name ${serial_variables})
  if(symbols MATCHES " \\(?(HDF5[A-Za-z0-9_.]+)\\)? +${name}\n")
    string(APPEND defined "#define TAILRACE_NODE_${name} \"${CMAKE_MATCH_1}\"\n")
  else()
    list(APPEND lacking ${name})
  endif()
endforeach()
if(lacking OR NOT headers MATCHES "SONAME +([^ \n]+)")
  message(STATUS "No libtailrace_hdf5_serial: ${serial_hdf5} has no symbol versions for ${lacking}")
  return()
endif()
set(serial_soname "${CMAKE_MATCH_1}")
list(REMOVE_DUPLICATES nodes)
list(SORT nodes COMPARE NATURAL)
# The first node is not HDF5's: calls without a version would be bound to that.
set(script "TAILRACE_HDF5_SERIAL { global: tailrace_hdf5_serial_loaded; local: *; };\n")
foreach(node ${nodes})
  string(APPEND script "${node} { };\n")
endforeach()
set(generated "${PROJECT_BINARY_DIR}/serial_calls")
file(CONFIGURE OUTPUT "${generated}/serial_calls.map" CONTENT "${script}" @ONLY)
file(CONFIGURE OUTPUT "${generated}/serial_call_nodes.inc" @ONLY CONTENT
     "// The version nodes of the calls of ${serial_hdf5}.\n${defined}")

file(GLOB serial_sources CONFIGURE_DEPENDS "${serial_folder}/*.cpp"
     "${PROJECT_SOURCE_DIR}/src/policy/*.cpp")
tailrace_codec_library(tailrace_hdf5_serial_objects
                       ${serial_sources}
                       "${PROJECT_SOURCE_DIR}/src/chunk/chunk_cache.cpp"
                       "${PROJECT_SOURCE_DIR}/src/exec/thread_team.cpp")
target_include_directories(tailrace_hdf5_serial_objects PRIVATE
                           "${PROJECT_SOURCE_DIR}/frontends" "${generated}")
target_include_directories(tailrace_hdf5_serial_objects SYSTEM PRIVATE
                           $<TARGET_PROPERTY:tailrace_hdf5,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(tailrace_hdf5_serial_objects PRIVATE
                           TAILRACE_SERIAL_HDF5="${serial_soname}")
tailrace_join_sources(tailrace_hdf5_serial_objects)
add_library(tailrace_hdf5_serial SHARED
            $<TARGET_OBJECTS:tailrace_hdf5_serial_objects> ${TAILRACE_CORE_OBJECTS}
            $<TARGET_OBJECTS:tailrace_codecs>
            ${TAILRACE_TRZ_OBJECTS} ${TAILRACE_XOR_OBJECTS} ${TAILRACE_FILTER_OBJECTS})
target_link_libraries(tailrace_hdf5_serial PRIVATE trz_plugin_zstd trz_plugin_deflate ZLIB::ZLIB Threads::Threads
                      ${CMAKE_DL_LIBS})
set_target_properties(tailrace_hdf5_serial PROPERTIES
                      LINKER_LANGUAGE CXX
                      LINK_DEPENDS "${generated}/serial_calls.map")
target_link_options(tailrace_hdf5_serial PRIVATE
                    "-Wl,--version-script=${generated}/serial_calls.map" "-Wl,-z,defs")
install(TARGETS tailrace_hdf5_serial LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
