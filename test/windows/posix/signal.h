/* signal.h - a signal to another thread: that one stands still while the handler runs. */
/* SPDX-License-Identifier: MIT */
/*
 * The handler runs on a thread of its own. So it may stop another thread wherever that is, but sees
 * nothing of it. There is one handler, and one signal.
 */
#ifndef PRAIRIE_TEST_WINDOWS_SIGNAL_H
#define PRAIRIE_TEST_WINDOWS_SIGNAL_H

#include_next <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIGUSR1 10
#define SA_RESTART 0

struct sigaction {
    void (*sa_handler)(int signal);
    int sa_flags;
};

int sigaction(int signal, const struct sigaction *action, struct sigaction *before);
/* Ours; pthread.h, which includes this file, declares it. */
#define pthread_kill posix_pthread_kill

#ifdef __cplusplus
}
#endif

#endif
