/* names.h - the start of prairie in a process of Windows.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_WINDOWS_NAMES_H
#define PRAIRIE_WINDOWS_NAMES_H

#include "../base/attrs.h"

/* Reads the options and takes the process over. */
void windows_start(void);

#endif
