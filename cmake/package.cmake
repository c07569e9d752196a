# cpack: one Debian package with the program, the library, the man page and the completions. Debian's own tool finds the
# shared libraries that it depends on; what a C++ program that links the library needs is recommended.
install(FILES LICENSE README.md CHANGELOG.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME esscher)
set(CPACK_PACKAGE_CONTACT "The Esscher developers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL Unspecified)  # the Python package is a component of its own: it comes as a wheel
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libeigen3-dev, libhwy-dev, libtbb-dev, zlib1g-dev")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libsundials-dev, libsqlite3-dev, libtomlplusplus-dev, libfmt-dev, nlohmann-json3-dev")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "${PROJECT_DESCRIPTION}
 What a layer of softmax attention does to an infinite prompt, how far a finite one is from it, what training does at
 either, and which heads of a model are linear in disguise: a program and a C++ library.")
include(CPack)
