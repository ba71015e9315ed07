# Installation: library, headers, programs, the CMake package and tailrace.pc. Components: "dev" is
# what compiling against it needs, "plugins" the filters, and all else has none (TailraceDeb.cmake).
#
# A project that uses Tailrace needs neither HDF5's nor MPI's headers; a static library passes its
# link dependencies on, which the package file then looks for.

install(TARGETS tailrace EXPORT tailraceTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(DIRECTORY include/tailrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES LICENSE README.md CHANGELOG.md SECURITY.md CITATION.cff
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md"
        PATTERN "*.png")
install(FILES trz/docs/trz-format.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/trz/docs)
foreach(program tailrace_cli tailrace_lab tailrace_bench)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
if(TARGET tailrace_lab)
  # The exact schedulers of `tailrace-lab schedule`, which finds them from its own place.
  install(PROGRAMS lab/commands/exact_schedule.py DESTINATION share/tailrace)
endif()

# Manual pages and completions, made by the programs from their own options.
if(TARGET tailrace_cli AND NOT CMAKE_CROSSCOMPILING)
  set(pages "${PROJECT_BINARY_DIR}/pages")
  add_custom_command(OUTPUT "${pages}/tailrace.fish" "${pages}/tailrace-lab.fish"
                     COMMAND ${CMAKE_COMMAND} -E rm -rf "${pages}"  # Of commands that are gone.
                     COMMAND tailrace_cli --write-pages "${pages}"
                     COMMAND tailrace_lab --write-pages "${pages}"
                     DEPENDS tailrace_cli tailrace_lab VERBATIM)
  add_custom_target(tailrace_pages ALL DEPENDS "${pages}/tailrace.fish")
  install(DIRECTORY "${pages}/man1" DESTINATION ${CMAKE_INSTALL_MANDIR})
  foreach(program tailrace tailrace-lab)
    install(FILES "${pages}/${program}.bash" RENAME ${program}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES "${pages}/_${program}" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES "${pages}/${program}.fish"
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endforeach()
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tailrace)
install(EXPORT tailraceTargets NAMESPACE tailrace:: DESTINATION ${package_folder}
        COMPONENT dev)
configure_package_config_file(cmake/tailraceConfig.cmake.in
                              "${PROJECT_BINARY_DIR}/tailraceConfig.cmake"
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tailraceConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tailraceConfig.cmake"
              "${PROJECT_BINARY_DIR}/tailraceConfigVersion.cmake"
        DESTINATION ${package_folder} COMPONENT dev)

# pkg-config knows no targets, so the private libraries of a static build are spelt out.
set(TAILRACE_PC_PRIVATE_LIBS "${TAILRACE_DEFLATE_LDFLAGS};${TAILRACE_ZSTD_LDFLAGS};${SERIAL_HDF5_LIBRARIES}")
if(TAILRACE_MPI)
  list(APPEND TAILRACE_PC_PRIVATE_LIBS ${MPI_C_LIBRARIES})
endif()
list(APPEND TAILRACE_PC_PRIVATE_LIBS -lz -lfmt -lstdc++ -lm -lpthread -ldl)
list(JOIN TAILRACE_PC_PRIVATE_LIBS " " TAILRACE_PC_PRIVATE_LIBS)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(TAILRACE_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
else()
  set(TAILRACE_PC_LIBDIR "\${exec_prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(BUILD_SHARED_LIBS)
  set(TAILRACE_PC_LIBS "-L\${libdir} -ltailrace")
else()
  set(TAILRACE_PC_LIBS "-L\${libdir} -ltailrace ${TAILRACE_PC_PRIVATE_LIBS}")
  set(TAILRACE_PC_PRIVATE_LIBS "")
endif()
# A program must find the library at run time, too. System folders need no rpath.
set(TAILRACE_PC_RPATH "")
if(BUILD_SHARED_LIBS AND NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(TAILRACE_PC_RPATH "-Wl,-rpath,\${libdir} ")
endif()
# The prefix is found from the file's own place, so that an installed tree can be moved.
file(RELATIVE_PATH TAILRACE_PC_PREFIX "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
     "${CMAKE_INSTALL_PREFIX}")
configure_file(cmake/tailrace.pc.in "${PROJECT_BINARY_DIR}/tailrace.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tailrace.pc"
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
if(TARGET tailrace_filters)  # Not under a sanitizer.
  install(TARGETS tailrace_filters EXPORT tailraceTargets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT plugins NAMELINK_COMPONENT dev)
  configure_file(cmake/tailrace-filters.pc.in "${PROJECT_BINARY_DIR}/tailrace-filters.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/tailrace-filters.pc"
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endif()
if(TAILRACE_FORTRAN_FOUND)
  configure_file(cmake/tailrace-fortran.pc.in "${PROJECT_BINARY_DIR}/tailrace-fortran.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/tailrace-fortran.pc"
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endif()

include(TailraceSbom)
if(PROJECT_IS_TOP_LEVEL)
  include(TailraceDeb)
endif()
