/* process_status.h - what /proc/self/status says of this process's memory, without allocating. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_PROCESS_STATUS_H
#define PRAIRIE_TEST_PROCESS_STATUS_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* KiB that a line has: "VmSize:" of what is mapped, "VmRSS:" of what is resident. -1: there is no
 * such line. Not statm: an emulator hands through its pages, which are the machine's. */
static inline long read_status_kb(const char *field)
{
    char text[4096];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    const char *line = strstr(text, field);
    return line != NULL ? strtol(line + strlen(field), NULL, 10) : -1;
}

#endif
