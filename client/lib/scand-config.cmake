include(${CMAKE_CURRENT_LIST_DIR}/scand-targets.cmake)

# The static library beside it, where that was built: scand::static.
get_filename_component(_scand_archive "${CMAKE_CURRENT_LIST_DIR}/../../libscand.a" ABSOLUTE)
if(EXISTS "${_scand_archive}" AND NOT TARGET scand::static)
    find_package(Threads REQUIRED)
    get_target_property(_scand_includes scand::scand INTERFACE_INCLUDE_DIRECTORIES)
    add_library(scand::static STATIC IMPORTED)
    set_target_properties(scand::static PROPERTIES
        IMPORTED_LOCATION "${_scand_archive}"
        INTERFACE_INCLUDE_DIRECTORIES "${_scand_includes}"
        INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
unset(_scand_archive)

# And what a program that links it takes to compute without a daemon, where it may not find libscand-local.so: scand::local.
get_filename_component(_scand_local_archive "${CMAKE_CURRENT_LIST_DIR}/../../libscand-local.a" ABSOLUTE)
if(EXISTS "${_scand_local_archive}" AND NOT TARGET scand::local)
    find_package(Threads REQUIRED)
    add_library(scand::local STATIC IMPORTED)
    set_target_properties(scand::local PROPERTIES
        IMPORTED_LOCATION "${_scand_local_archive}"
        INTERFACE_LINK_OPTIONS "-Wl,--undefined=scand_local_library"
        INTERFACE_LINK_LIBRARIES "Threads::Threads;m")
endif()
unset(_scand_local_archive)
