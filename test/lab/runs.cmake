# test/lab/runs.cmake - the keepers of trees: the model test that src/pages has to pass, and damage.
# SPDX-License-Identifier: MIT
include(${PROJECT_SOURCE_DIR}/lab/runs/unity.cmake)
runs_tree_unity(runs_tree)
get_filename_component(runs_tree_folder ${runs_tree} DIRECTORY)

foreach(tree bsd treap_random)
    foreach(flavour check check-tiny asan)
        prairie_containing_test(${flavour} lab NAME runs-model-${tree}
            SOURCES ${PROJECT_SOURCE_DIR}/test/unit/run_model_test.c
                    ${PROJECT_SOURCE_DIR}/test/unit/unit.c
            DEFINITIONS PRAIRIE_OS_FAKE KEEPER_TREE=${tree}
            INCLUDES ${runs_tree_folder} ${PROJECT_SOURCE_DIR}/lab ${PROJECT_SOURCE_DIR}/src)
        target_compile_options(lab.runs-model-${tree}-${flavour} PRIVATE
            "SHELL:-include ${CMAKE_CURRENT_SOURCE_DIR}/every_length.h")
    endforeach()
    prairie_containing_test(check lab NAME runs-damage-${tree}
        SOURCES runs_test.c ${PROJECT_SOURCE_DIR}/test/unit/unit.c
        DEFINITIONS PRAIRIE_OS_FAKE KEEPER_TREE=${tree}
        INCLUDES ${runs_tree_folder} ${PROJECT_SOURCE_DIR}/lab ${PROJECT_SOURCE_DIR}/src
                 ${PROJECT_SOURCE_DIR}/test/unit)
endforeach()
