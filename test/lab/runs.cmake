# test/lab/runs.cmake - page heaps of trees: the model test that src/page_heap has to pass, and damage; the recorder.
# SPDX-License-Identifier: MIT
include(${PROJECT_SOURCE_DIR}/lab/runs/unity.cmake)
runs_tree_unity(runs_tree)
get_filename_component(runs_tree_folder ${runs_tree} DIRECTORY)

set_source_files_properties(${PROJECT_SOURCE_DIR}/test/unit/run_model_test.c PROPERTIES
    COMPILE_OPTIONS "-include;${CMAKE_CURRENT_SOURCE_DIR}/every_length.h")
foreach(tree bsd treap_random)
    prairie_containing_test(asan lab NAME runs-model-${tree}
        SOURCES ${PROJECT_SOURCE_DIR}/test/unit/run_model_test.c
                ${PROJECT_SOURCE_DIR}/test/unit/unit.c ${PRAIRIE_FAKE_KERNEL} ${runs_tree}
        DEFINITIONS PRAIRIE_OS_ELSEWHERE RUN_TREE=${tree}
        INCLUDES ${runs_tree_folder} ${PROJECT_SOURCE_DIR}/lab ${PROJECT_SOURCE_DIR}/src
                 ${PROJECT_SOURCE_DIR}/test/unit ${PROJECT_SOURCE_DIR}/test)
    prairie_containing_test(check lab NAME runs-damage-${tree}
        SOURCES runs_test.c ${PROJECT_SOURCE_DIR}/test/unit/unit.c ${PRAIRIE_FAKE_KERNEL}
        DEFINITIONS PRAIRIE_OS_ELSEWHERE RUN_TREE=${tree}
        INCLUDES ${runs_tree_folder} ${PROJECT_SOURCE_DIR}/lab ${PROJECT_SOURCE_DIR}/src
                 ${PROJECT_SOURCE_DIR}/test/unit ${PROJECT_SOURCE_DIR}/test)
endforeach()

# And the recorder between them and the heap.
runs_recording_unity(runs_recording)
get_filename_component(runs_recording_folder ${runs_recording} DIRECTORY)
prairie_containing_test(asan lab NAME record-runs
    SOURCES record_runs_test.c ${PROJECT_SOURCE_DIR}/test/unit/unit.c ${PRAIRIE_FAKE_KERNEL}
    DEFINITIONS PRAIRIE_OS_ELSEWHERE
    INCLUDES ${runs_recording_folder} ${PROJECT_SOURCE_DIR}/lab ${PROJECT_SOURCE_DIR}/src
             ${PROJECT_SOURCE_DIR}/test/unit ${PROJECT_SOURCE_DIR}/test)
