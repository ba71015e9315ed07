# libtailrace_idle.so: marks a program's waits in MPI as idle time (docs/in-situ.md).
#
# It knows calls by name only, so it is built without MPI's headers and serves any MPI.

if(NOT BUILD_SHARED_LIBS OR NOT TAILRACE_MPI OR TAILRACE_SANITIZE)
  return()
endif()
add_library(tailrace_idle SHARED frontends/idle/idle_calls.cpp)
target_include_directories(tailrace_idle PRIVATE src)
target_link_libraries(tailrace_idle PRIVATE tailrace_flags ${CMAKE_DL_LIBS})
set_target_properties(tailrace_idle PROPERTIES CXX_VISIBILITY_PRESET hidden)
target_link_options(tailrace_idle PRIVATE "-Wl,-z,defs")
install(TARGETS tailrace_idle LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
