# Packages of what is installed: `cpack -G DEB` makes scand, libscand0.1, libscand-local0.1, libscand-dev and python3-scand. In a static build `cpack -G TGZ`
# makes one archive that runs where it is unpacked, and `cpack -G RPM` a package of the same for any distribution that has RPM. `./dev package` does all.
get_target_property(soversion libscand SOVERSION)
set(runtime libscand${soversion})
set(local libscand-local${soversion})
set(folder ${CMAKE_CURRENT_LIST_DIR})

set(CPACK_PACKAGE_NAME scand)
set(CPACK_PACKAGE_VENDOR "The scand authors")
set(CPACK_PACKAGE_CONTACT "The scand authors <scand@localhost>") # until there is an address; see lintian-overrides
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_VERBATIM_VARIABLES ON)

if(SCAND_STATIC)
    string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" system)
    set(CPACK_PACKAGE_FILE_NAME scand-${PROJECT_VERSION}-${system})
    set(CPACK_PACKAGING_INSTALL_PREFIX "")
    set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};scand;daemon;/") # programs and what describes them
    set(CPACK_PROJECT_CONFIG_FILE ${folder}/generator.cmake)
    set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
    set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
    set(CPACK_RPM_PACKAGE_LICENSE MIT)
    set(CPACK_RPM_PACKAGE_SUMMARY "Batched prefix sums of many programs on one GPU")
    set(CPACK_RPM_PACKAGE_DESCRIPTION "scand keeps a CUDA context and its buffers alive, takes scans and what goes before and after
them from many programs over a Unix socket, and runs them so that transfers overlap with
computation. Without a GPU it uses the processor.")
    set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${folder}/rpm/post)
    set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE ${folder}/rpm/preun)
    set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${folder}/rpm/postun)
    # Folders that are other packages'.
    foreach(shared lib/systemd lib/systemd/system lib/systemd/user lib/sysusers.d lib/tmpfiles.d share/man share/man/man1 share/man/man8 share/bash-completion
            share/bash-completion/completions share/zsh share/zsh/site-functions share/zsh/vendor-completions share/fish share/fish/vendor_completions.d)
        list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${shared})
    endforeach()
    include(CPack)
    return()
endif()

set(CPACK_COMPONENTS_ALL daemon runtime local development)
if(TARGET scand_python)
    list(APPEND CPACK_COMPONENTS_ALL debian-python)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/client/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY >=)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${folder}/debian.cmake)

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME scand)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DAEMON_DESCRIPTION "batched prefix sums of many programs on one GPU
scand keeps a CUDA context and its buffers alive, takes scans and what goes
before and after them from many programs over a Unix socket, and runs them so
that transfers overlap with computation. Without a GPU it uses the processor.")
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "${runtime} (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS "systemd")
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA ${folder}/daemon/postinst ${folder}/daemon/prerm ${folder}/daemon/postrm)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${folder}/runtime/triggers)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "${local} (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "batched prefix sums of many programs on one GPU, library
libscand is how a program reaches the daemon scand. It needs neither CUDA nor
a GPU.")

set(CPACK_DEBIAN_LOCAL_PACKAGE_NAME ${local})
set(CPACK_DEBIAN_LOCAL_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LOCAL_PACKAGE_DEPENDS "${runtime} (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_LOCAL_PACKAGE_CONTROL_EXTRA ${folder}/runtime/triggers)
set(CPACK_DEBIAN_LOCAL_DESCRIPTION "batched prefix sums in a program's own process
libscand-local is what libscand opens where no daemon answers and the program,
or SCAND_FALLBACK=cpu, wants its results all the same: they are computed on the
processor, with the same bits. So are small jobs beside a daemon, where the
program, or SCAND_SMALL_JOBS=here, says so.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libscand-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${runtime} (= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "batched prefix sums of many programs on one GPU, for developers
Headers of libscand, the libraries to link statically, the Fortran module's
source, examples and manual pages.")

set(CPACK_DEBIAN_DEBIAN-PYTHON_PACKAGE_NAME python3-scand)
set(CPACK_DEBIAN_DEBIAN-PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_DEBIAN-PYTHON_PACKAGE_DEPENDS "python3 (>= 3.10), python3-cffi, python3-numpy")
set(CPACK_DEBIAN_DEBIAN-PYTHON_PACKAGE_SUGGESTS scand)
set(CPACK_DEBIAN_DEBIAN-PYTHON_PACKAGE_CONTROL_EXTRA ${folder}/python/postinst ${folder}/python/prerm)
set(CPACK_DEBIAN_DEBIAN-PYTHON_DESCRIPTION "batched prefix sums of many programs on one GPU, for Python
Scans, reductions and chains of them on NumPy arrays by the daemon scand, with
the names that NumPy and SciPy use.")

configure_file(${folder}/changelog.Debian.in changelog.Debian @ONLY)
foreach(component daemon runtime local development debian-python)
    string(TOUPPER ${component} upper)
    set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/${name} RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL)
    install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/${name} RENAME changelog COMPONENT ${component} EXCLUDE_FROM_ALL)
    install(FILES ${PROJECT_BINARY_DIR}/changelog.Debian DESTINATION share/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
    set(lines "")
    if(component MATCHES "^(runtime|local)$") # CPack calls ldconfig besides the trigger
        set(lines "${name}: maintscript-calls-ldconfig [postinst]\n${name}: maintscript-calls-ldconfig [postrm]")
    endif()
    configure_file(${folder}/lintian-overrides.in ${name}.lintian-overrides @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.lintian-overrides DESTINATION share/lintian/overrides RENAME ${name} COMPONENT ${component}
            EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
