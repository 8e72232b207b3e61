include(${CMAKE_CURRENT_LIST_DIR}/scand-targets.cmake)
