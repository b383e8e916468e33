# cmake --install: the program, the libraries, the public headers, and a package for find_package(candor). The headers of
# src/ are not installed: include/candor is all of the interface.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(modules GLOBAL PROPERTY CANDOR_MODULES)

# candor::candor is what other projects link: every module, without having to know their names.
add_library(candor_all INTERFACE)
add_library(candor::candor ALIAS candor_all)
set_target_properties(candor_all PROPERTIES EXPORT_NAME candor)
target_link_libraries(candor_all INTERFACE ${modules})
target_compile_features(candor_all INTERFACE cxx_std_20)

install(TARGETS candor_all ${modules} EXPORT candor ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/candor)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/candor DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET candor)
  # ./run starts it from there.
  set_target_properties(candor PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS candor RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/candor)
install(EXPORT candor FILE candorTargets.cmake NAMESPACE candor:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/candorConfig.cmake.in ${PROJECT_BINARY_DIR}/candorConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Until 1.0 every minor version may break the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/candorConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/candorConfig.cmake ${PROJECT_BINARY_DIR}/candorConfigVersion.cmake
        DESTINATION ${package_dir})
