/* conf.h - the texts that options came from, for those who ask.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CONTROL_CONF_H
#define PRAIRIE_CONTROL_CONF_H

#include "../base/attrs.h"

/* A library whose names have a prefix reads its own (cmake/prefix.cmake). */
#ifndef PRAIRIE_MALLOC_CONF_NAME
#define PRAIRIE_MALLOC_CONF_NAME "MALLOC_CONF"
#define PRAIRIE_MALLOC_CONF_FILE "/etc/malloc.conf"
#endif

/* The sources in their order: opt.malloc_conf's leaf, the name in messages, that in statistics. */
#define CONF_SOURCES(SOURCE)                                                                     \
    SOURCE(GLOBAL, "global_var", "malloc_conf", "Global variable malloc_conf")                   \
    SOURCE(SYMLINK, "symlink", PRAIRIE_MALLOC_CONF_FILE, "Symbolic link malloc.conf")            \
    SOURCE(MALLOC_CONF, "env_var", PRAIRIE_MALLOC_CONF_NAME, "Environment variable MALLOC_CONF") \
    SOURCE(PRAIRIE_CONF, "prairie_conf", "PRAIRIE_CONF", "Environment variable PRAIRIE_CONF")    \
    SOURCE(GLOBAL_2, "global_var_2_conf_harder", "malloc_conf_2_conf_harder",                    \
           "Global variable malloc_conf_2_conf_harder")

#define CONF_ENUMERATOR(id, leaf, name, title) CONF_##id,
enum conf_source { CONF_SOURCES(CONF_ENUMERATOR) CONF_SOURCE_COUNT };

/* NULL: there is none. Constant once main runs. */
const char *conf_text(enum conf_source source);
/* Before main: reads all of them, the last one counts most, does what they ask for, and takes our
 * place among the program's fork handlers. */
void conf_start(void);

#endif
