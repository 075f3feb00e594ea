/* conf.h - the texts that options came from, for those who ask.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CONTROL_CONF_H
#define PRAIRIE_CONTROL_CONF_H

#include "../base/attrs.h"

enum conf_source {
    CONF_GLOBAL,       /* the program's malloc_conf */
    CONF_SYMLINK,      /* the target of /etc/malloc.conf */
    CONF_MALLOC_CONF,  /* the environment's MALLOC_CONF */
    CONF_PRAIRIE_CONF, /* and PRAIRIE_CONF */
    CONF_GLOBAL_2,     /* the program's malloc_conf_2_conf_harder */
    CONF_SOURCE_COUNT
};

/* NULL: there is none. Constant once main runs. */
const char *conf_text(enum conf_source source);
/* Reads all of them, the last one counts most, and does what they ask for. Before main. */
void conf_read(void);

#endif
