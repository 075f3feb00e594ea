# test/lab/arenas.cmake - each rule of lab/arenas chooses what it says, on a kernel whose cores a
# test names.
# SPDX-License-Identifier: MIT
foreach(flavour check tsan)
    prairie_containing_test(${flavour} lab NAME arena-rules
        SOURCES arena_rules_test.c ${PROJECT_SOURCE_DIR}/test/unit/unit.c ${PRAIRIE_FAKE_KERNEL}
        DEFINITIONS PRAIRIE_OS_ELSEWHERE PRAIRIE_RULE_ELSEWHERE
        INCLUDES ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/test/unit
                 ${PROJECT_SOURCE_DIR}/test ${PROJECT_SOURCE_DIR}/lab/arenas)
endforeach()
