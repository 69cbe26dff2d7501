# SPDX-License-Identifier: MIT
# Install step: headers, one export file per component, and the package configuration.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(numfmt_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/numfmt")

foreach(component IN ITEMS numfmt LISTS NUMFMT_COMPONENTS)
    get_target_property(target numfmt::${component} ALIASED_TARGET)
    install(TARGETS ${target} EXPORT numfmt-${component}-targets FILE_SET HEADERS)
    install(EXPORT numfmt-${component}-targets NAMESPACE numfmt:: DESTINATION "${numfmt_cmake_dir}")
endforeach()

configure_package_config_file(cmake/numfmtConfig.cmake.in numfmtConfig.cmake INSTALL_DESTINATION "${numfmt_cmake_dir}")
# Without a compiled component the same files serve every architecture.
set(independent ARCH_INDEPENDENT)
if(NUMFMT_WITH_SIMD)
    set(independent "")
endif()
write_basic_package_version_file(numfmtConfigVersion.cmake COMPATIBILITY SameMinorVersion ${independent})
install(FILES
    "${CMAKE_CURRENT_BINARY_DIR}/numfmtConfig.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/numfmtConfigVersion.cmake"
    DESTINATION "${numfmt_cmake_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
