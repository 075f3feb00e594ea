/* port.c - takes in the files that speak to the kernel that prairie is compiled for. The only place
 * that chooses, but for the header of the thread's word (thread_slot.h).
 * SPDX-License-Identifier: MIT
 */
#include "step.c"

#if defined(__linux__)
#include "linux.c"
#include "linux_files.c"
#include "linux_text.c"
#include "elf_slot.c"
#include "linux_message.c"
#include "linux_rights.c"
#include "linux_thread.c"
#include "linux_code.c"
#include "linux_fault.c"
#include "linux_guard.c"
#include "linux_group.c"
#if OS_TELLS_NAPS && !defined(__SANITIZE_THREAD__)
#include "linux_nap.c"
#else
#include "no_nap.c"
#endif
#include "no_owner.c"
#elif defined(__APPLE__)
#include "darwin.c"
#include "darwin_code.c"
#include "darwin_owner.c"
#include "darwin_pages.c"
#include "darwin_slot.c"
#include "darwin_thread.c"
#include "no_nap.c"
#include "not_linux.c"
#include "unix.c"
#elif defined(__FreeBSD__)
#include "bsd.c"
#include "elf_slot.c"
#include "freebsd.c"
#include "no_owner.c"
#include "no_nap.c"
#include "not_linux.c"
#include "unix.c"
#elif defined(__NetBSD__)
#include "bsd.c"
#include "elf_slot.c"
#include "netbsd.c"
#include "no_owner.c"
#include "no_nap.c"
#include "not_linux.c"
#include "unix.c"
#elif defined(_WIN32)
#include "no_nap.c"
#include "not_linux.c"
#include "windows.c"
#include "windows_code.c"
#include "windows_map.c"
#include "windows_owner.c"
#include "windows_thread.c"
#else
#error "prairie has no port to this system: see docs/floors/os.md, How to change it"
#endif
