# What differs from one kind of package to the next: CPack reads this for each. An archive is unpacked anywhere.
if(CPACK_GENERATOR STREQUAL RPM)
    set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
endif()
