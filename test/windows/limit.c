/* limit.c - memory is refused: NULL, and never a crash. */
/* SPDX-License-Identifier: MIT */
/* usage: limit job      under a limit of a job object; skipped where that is not enforced
 *        limit refuse   the n-th commit and all after it are refused, for many n */
#include "windows_test.h"

#include <errno.h>

enum { BLOCKS = 100000 };

static void *block[BLOCKS];

/* Takes blocks of all sizes until none is left, uses every byte, and gives them back. Returns how
 * many it got. */
static int fill_up(size_t bytes_max)
{
    uint64_t seed = 1234567;
    int count = 0, refused = 0;

    while (count < BLOCKS && refused < 100) {
        size_t bytes = (size_t)(random_word(&seed) % bytes_max) + 1;

        block[count] = malloc(bytes);
        if (block[count] == NULL) {
            must(errno == ENOMEM);
            refused++;
        } else {
            memset(block[count++], 1, bytes);
        }
    }
    for (int i = 0; i < count; i++) {
        if (i % 10 == 0) {
            void *moved = realloc(block[i], 3000);
            if (moved != NULL) block[i] = moved;
        }
        free(block[i]);
    }
    return count;
}

static int under_a_job(void)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = { 0 };
    HANDLE job = CreateJobObjectW(NULL, NULL);
    void *probe;

    must(job != NULL);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY;
    limits.ProcessMemoryLimit = (size_t)192 << 20;
    must(SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits));
    must(AssignProcessToJobObject(job, GetCurrentProcess()));
    probe = VirtualAlloc(NULL, (size_t)512 << 20, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (probe != NULL) {
        printf("this system does not enforce limits of job objects\n");
        return SKIPPED;
    }
    for (int round = 0; round < 3; round++) {
        must(fill_up(200000) > 500);
        must(fill_up(2000) > 50000);
    }
    return 0;
}

/* ---- every refusal ---- */

static LONG commits, refuse_from = LONG_MAX;
static LPVOID(WINAPI *commit)(LPVOID at, SIZE_T bytes, DWORD type, DWORD protection);

static LPVOID WINAPI count_commit(LPVOID at, SIZE_T bytes, DWORD type, DWORD protection)
{
    if ((type & MEM_COMMIT) != 0 && InterlockedIncrement(&commits) >= refuse_from) {
        SetLastError(ERROR_COMMITMENT_LIMIT);
        return NULL;
    }
    return commit(at, bytes, type, protection);
}

/* In the import table of prairie.dll, as prairie does it with those of others. */
static void count_commits_of_prairie(void)
{
    char *module = (char *)GetModuleHandleW(L"prairie.dll");
    IMAGE_NT_HEADERS *head = (IMAGE_NT_HEADERS *)(module + ((IMAGE_DOS_HEADER *)module)->e_lfanew);
    IMAGE_IMPORT_DESCRIPTOR *import =
        (IMAGE_IMPORT_DESCRIPTOR *)(module + head->OptionalHeader.DataDirectory[1].VirtualAddress);
    int found = 0;

    commit = (void *)GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "VirtualAlloc");
    for (; import->Name != 0; import++)
        for (void **entry = (void **)(module + import->FirstThunk); *entry != NULL; entry++)
            if (*entry == (void *)commit) {
                DWORD before;

                must(VirtualProtect(entry, sizeof *entry, PAGE_READWRITE, &before));
                *entry = (void *)count_commit;
                found++;
            }
    must(found == 1);
}

static int refused_commits(void)
{
    size_t (*purge)(void) = (void *)prairie_function("prairie_purge");

    count_commits_of_prairie();
    for (int n = 1; n < 60; n++) {
        int got;

        purge(); /* or else what is committed already would do */
        commits = 0;
        refuse_from = n;
        got = fill_up(n % 2 == 0 ? 3000 : 300000);
        must(commits >= n && got < BLOCKS);
        refuse_from = LONG_MAX;
    }
    must(fill_up(1000) == BLOCKS);
    return 0;
}

int main(int argc, char **argv)
{
    must(is_served() && argc == 2);
    if (strcmp(argv[1], "job") == 0) return under_a_job();
    return refused_commits();
}
