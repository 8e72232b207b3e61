# Writes commit.h, which says what was built, where that has changed: with each build, since commits come without configuring again.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --exclude=* --abbrev=10
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
set(text "#define SCAND_COMMIT \"${commit}\"\n")
if(NOT code EQUAL 0 OR NOT EXISTS ${SOURCE}/.git) # sources without their history, or inside another project's
    set(text "#define SCAND_COMMIT \"unknown\"\n")
endif()
if(EXISTS ${OUTPUT})
    file(READ ${OUTPUT} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
    file(WRITE ${OUTPUT} "${text}")
endif()
