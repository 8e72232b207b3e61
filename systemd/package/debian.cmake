# What Debian wants of files that nobody else does: manual pages and change logs are compressed, and the same each time; completions
# of zsh have a folder of their own.
foreach(component ${CPACK_COMPONENTS_ALL})
    set(zsh ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/zsh)
    if(EXISTS ${zsh}/site-functions) # where Debian's zsh does not look
        file(RENAME ${zsh}/site-functions ${zsh}/vendor-completions)
    endif()
    file(GLOB_RECURSE files ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/man/* ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/doc/*/changelog*)
    foreach(file ${files})
        execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
endforeach()
