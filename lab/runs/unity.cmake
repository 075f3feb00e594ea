# unity.cmake - variants of src/prairie.c: the library with another page heap.
# SPDX-License-Identifier: MIT

set(RUNS_ROOT ${CMAKE_CURRENT_LIST_DIR}/../..)

# runs_unity(<out> <name> <pattern> <replacement>): a copy of the unity file in the build folder, in
# which lines that match are replaced. That the pattern matches no longer is an error.
function(runs_unity out name pattern replacement)
    set(unity ${RUNS_ROOT}/src/prairie.c)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${unity})
    file(READ ${unity} text)
    string(REGEX REPLACE "${pattern}" "${replacement}" changed "${text}")
    if(changed STREQUAL text)
        message(FATAL_ERROR "src/prairie.c has no lines that match: ${pattern}")
    endif()
    # Called prairie.c, so that unit tests of src/page_heap can be compiled with it.
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${name}/prairie.c)
    file(CONFIGURE OUTPUT ${file} CONTENT "${changed}" @ONLY)
    set(${out} ${file} PARENT_SCOPE)
endfunction()

# Three trees instead of the linear map.
macro(runs_tree_unity out)
    runs_unity(${out} tree "#include \"page_heap/run_find\\.c\"\n.*#include \"page_heap/run_walk\\.c\""
               "#include \"runs/run_tree.c\"\n#include \"runs/run_tree_check.c\"")
endmacro()

# The recorder between the heap and all that use it.
macro(runs_recording_unity out)
    runs_unity(${out} recording "#include \"slabs/size_class\\.c\""
               "#include \"runs/record_runs.h\"\n#include \"slabs/size_class.c\"")
endmacro()
