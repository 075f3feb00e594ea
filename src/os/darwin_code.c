/* darwin_code.c - the images that the loader of macOS has mapped.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"
#include "unix.h"

#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#include <string.h>

/* Of the segment with the code, and the image's identity. */
static void read_image(const struct mach_header_64 *header, intptr_t slide, struct os_code *code)
{
    const char *at = (const char *)(header + 1);

    for (uint32_t i = 0; i < header->ncmds; i++) {
        const struct load_command *command = (const struct load_command *)at;

        if (command->cmd == LC_SEGMENT_64) {
            const struct segment_command_64 *segment = (const struct segment_command_64 *)at;
            if (strcmp(segment->segname, SEG_TEXT) == 0) {
                code->start = (uintptr_t)((intptr_t)segment->vmaddr + slide);
                code->limit = code->start + segment->vmsize;
                code->offset = segment->fileoff;
            }
        } else if (command->cmd == LC_UUID) {
            memcpy(code->build_id, ((const struct uuid_command *)at)->uuid, 16);
            code->build_id_bytes = 16;
        }
        at += command->cmdsize;
    }
}

size_t os_code_read(struct os_code *code, size_t most, char *paths, size_t paths_bytes)
{
    uint32_t images = _dyld_image_count();
    size_t count = 0;

    for (uint32_t i = 0; i < images && count < most; i++) {
        const struct mach_header *header = _dyld_get_image_header(i);
        const char *path = _dyld_get_image_name(i);
        size_t length = path != NULL ? strlen(path) + 1 : 0;

        if (header == NULL || header->magic != MH_MAGIC_64) continue;
        code[count] = (struct os_code){ .path = "" };
        if (length != 0 && length <= paths_bytes) {
            code[count].path = memcpy(paths, path, length);
            paths += length;
            paths_bytes -= length;
        }
        read_image((const struct mach_header_64 *)header, _dyld_get_image_vmaddr_slide(i),
                   &code[count]);
        unix_sort_last_in(code, count++);
    }
    return count;
}
