# test/lab/trees.cmake - the five trees of lab/trees against a model, under the sanitizers.
# SPDX-License-Identifier: MIT
set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
prairie_test_program(NAME lab_trees SOURCES trees_test.c CMOCKA OPTIONS ${sanitizers})
target_include_directories(lab_trees PRIVATE ${PROJECT_SOURCE_DIR}/lab/trees)
target_link_options(lab_trees PRIVATE ${sanitizers})
prairie_register(trees-model lab plain COMMAND lab_trees)
