/* imports.h - makes every module of the process call prairie.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_WINDOWS_IMPORTS_H
#define PRAIRIE_WINDOWS_IMPORTS_H

/* All modules that are loaded, and from now on each that comes, before its first instruction runs.
 * Once, under the loader's lock or before there are threads. */
void imports_take_over(void);

#endif
