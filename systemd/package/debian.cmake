# What Debian wants of files that nobody else does: manual pages and change logs are compressed, and the same each time.
foreach(component ${CPACK_COMPONENTS_ALL})
    file(GLOB_RECURSE files ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/man/* ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/doc/*/changelog*)
    foreach(file ${files})
        execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
endforeach()
