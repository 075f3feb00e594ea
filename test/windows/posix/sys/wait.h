/* wait.h - there are no children here: a test that forks is left out (not_here.txt). */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_WINDOWS_WAIT_H
#define PRAIRIE_TEST_WINDOWS_WAIT_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

pid_t fork(void);
pid_t waitpid(pid_t child, int *status, int options);
#define WIFEXITED(status) ((status) >= 0)
#define WEXITSTATUS(status) (status)
#define WIFSIGNALED(status) 0
#define WTERMSIG(status) 0

#ifdef __cplusplus
}
#endif

#endif
