# For which GPUs the kernels are compiled. SCAND_CUDA_ARCHITECTURES says so: CMake's words for CMAKE_CUDA_ARCHITECTURES, or
# "all" for packages; left empty, the GPUs of this machine, or without any one architecture and PTX. PTX is compiled for the
# GPU at hand when a daemon starts there for the first time.
set(SCAND_CUDA_LEAST 12.0) # clusters, and cudaGetDriverEntryPoint as it is called

execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_version)
string(REGEX MATCH "release ([0-9.]+)" nvcc_version "${nvcc_version}")
set(nvcc_version ${CMAKE_MATCH_1})
if(nvcc_version VERSION_LESS SCAND_CUDA_LEAST)
    message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is of CUDA ${nvcc_version}; scand needs ${SCAND_CUDA_LEAST} or later. Install a "
                        "newer toolkit, name its nvcc with -DCMAKE_CUDA_COMPILER=PATH, or build for the processor alone with "
                        "-DSCAND_CUDA=OFF")
endif()

# The GPUs of this machine; none where nvcc does not know one of them.
function(scand_own_architectures result)
    set(${result} "" PARENT_SCOPE)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
        OUTPUT_VARIABLE capabilities ERROR_QUIET RESULT_VARIABLE failed)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${capabilities}")
    if(failed OR NOT capabilities)
        return()
    endif()
    list(REMOVE_DUPLICATES capabilities)
    set(found "")
    foreach(capability ${capabilities})
        string(REPLACE "." "" capability ${capability})
        if(NOT known MATCHES "sm_${capability}\n")
            return()
        endif()
        list(APPEND found ${capability}-real)
    endforeach()
    set(${result} ${found} PARENT_SCOPE)
endfunction()

set(architectures ${SCAND_CUDA_ARCHITECTURES})
if(architectures STREQUAL "all")
    # Code of 8.0 runs on 8.6 to 8.9, of 10.0 on 10.3, of 12.0 on 12.1. PTX of 7.5 is for what has no code here, 11.0 for one.
    set(architectures 75 80-real 90-real)
    if(nvcc_version VERSION_GREATER_EQUAL 12.8)
        list(APPEND architectures 100-real 120)
    else()
        list(APPEND architectures 90-virtual)
    endif()
elseif(NOT architectures)
    scand_own_architectures(architectures)
    if(NOT architectures)
        set(architectures 80) # code and PTX of one, so that files are compiled once
        message(STATUS "No GPU here: kernels for 8.0 to 8.9, and PTX, which later ones compile when a daemon first starts there. "
                       "SCAND_CUDA_ARCHITECTURES=all or, for one, =90-real compiles them now; 7.5 needs =75")
    endif()
endif()
set(CMAKE_CUDA_ARCHITECTURES ${architectures})
# An eighth of the size, for packages; else a sixth, in a fiftieth of the time. Drivers that CUDA 13 needs anyway can read it.
if(nvcc_version VERSION_GREATER_EQUAL 13.0)
    if(SCAND_CUDA_ARCHITECTURES STREQUAL "all")
        set(SCAND_CUDA_OPTIONS --compress-mode=size)
    else()
        set(SCAND_CUDA_OPTIONS --compress-mode=balance -Xfatbin=-compress-all)
    endif()
    if(SCAND_CUDA_QUICK)
        set(SCAND_CUDA_OPTIONS --Ofast-compile=max)
    endif()
endif()
