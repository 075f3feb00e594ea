/* conf.c - where options come from, in which order, and what is done about them at once.
 *
 * Programs for jemalloc define malloc_conf, so both symbols are weak and found through the dynamic
 * linker. A program that runs with more rights than its user hears neither environment variable;
 * the link in /etc is its administrator's.
 * SPDX-License-Identifier: MIT
 */
#include "conf.h"

#include "../base/options.h"
#include "../heap/hardened.h"
#include "../heap/heap.h"
#include "../heap/shortage.h"
#include "../profile/profile.h"
#include "../space/sealed.h"
#include "../view/snapshot.h"
#include "stats_print.h"

PUBLIC const char *malloc_conf __attribute__((weak));
PUBLIC const char *malloc_conf_2_conf_harder __attribute__((weak));

static const char *conf_texts[CONF_SOURCE_COUNT];
static char symlink_text[4096] SPARSE; /* no link has more */

const char *conf_text(enum conf_source source) { return conf_texts[source]; }

static const char *conf_name(enum conf_source source)
{
#define NAME(id, leaf, name, title) name,
    static const char names[CONF_SOURCE_COUNT][40] = { CONF_SOURCES(NAME) };
#undef NAME

    return names[source];
}

static void confirm_source(enum conf_source source)
{
    struct report line = { .write = report_to_error };

    report_print(&line, "prairie: malloc_conf %s: \"%s\"\n", conf_name(source),
                 conf_texts[source] != NULL ? conf_texts[source] : "");
    report_flush(&line);
}

static void parse_all(void)
{
    for (unsigned i = 0; i < CONF_SOURCE_COUNT; i++) options_parse_first(conf_texts[i]);
    for (unsigned i = 0; i < CONF_SOURCE_COUNT; i++) {
        if (option_is_set(OPTION_CONFIRM_CONF)) confirm_source((enum conf_source)i);
        options_parse(conf_texts[i], conf_name((enum conf_source)i));
    }
    options_finish();
}

static void print_at_exit(void)
{
    if (option_value(OPTION_STATS_PRINT) == STATS_PRINTED_SHORT
        && option_text(OPTION_STATS_PRINT_OPTS)[0] == '\0')
        prairie_stats_print();
    else malloc_stats_print(NULL, NULL, option_text(OPTION_STATS_PRINT_OPTS));
}

/* Who asks for an error asks for leaks, and who asks for leaks need not ask for the profile, which
 * writes no dumps on the way then; as with jemalloc. */
static void profile_for_leaks(void)
{
    if (option_is_set(OPTION_PROF_LEAK_ERROR)) option_values[OPTION_PROF_LEAK] = true;
    if (!option_is_set(OPTION_PROF_LEAK) || option_is_set(OPTION_PROF)) return;
    option_values[OPTION_PROF] = true;
    option_values[OPTION_PROF_GDUMP] = false;
    option_values[OPTION_LG_PROF_INTERVAL] = (uint64_t)-1;
}

static void start_profile(void)
{
    if (heap_attach() == NULL || !profile_start())
        report_to_error(NULL, "prairie: prof:true, but nothing can be sampled: another thread came "
                              "first, or there is no memory\n");
}

static void start_hardened(void)
{
    if (hardened_start()) return;
    option_values[OPTION_HARDENED] = false;
    report_to_error(NULL, "prairie: hardened:true, but nothing is: another thread came first, or "
                          "there is no memory\n");
}

static void read_sources(void)
{
    bool any = false;

    snapshot_begin();
    conf_texts[CONF_GLOBAL] = malloc_conf;
    conf_texts[CONF_SYMLINK] =
        os_link_text(PRAIRIE_MALLOC_CONF_FILE, symlink_text, sizeof symlink_text) ? symlink_text
                                                                                  : NULL;
    conf_texts[CONF_MALLOC_CONF] = os_setting(PRAIRIE_MALLOC_CONF_NAME);
    conf_texts[CONF_PRAIRIE_CONF] = os_setting("PRAIRIE_CONF");
    conf_texts[CONF_GLOBAL_2] = malloc_conf_2_conf_harder;
    for (unsigned i = 0; i < CONF_SOURCE_COUNT; i++) any |= conf_texts[i] != NULL;
    if (!any && !option_is_set(OPTION_HARDENED)) return;
    parse_all();
    heap_obey_options();
    profile_for_leaks();
    if (option_is_set(OPTION_PROF)) start_profile();
    if (option_is_set(OPTION_HARDENED)) start_hardened();
    if (option_is_set(OPTION_STATS_PRINT)) {
        os_keep_error_output();
        os_at_exit(print_at_exit);
    }
}

void conf_start(void)
{
    bool started;

    read_sources();
    started = heap_attach() != NULL; /* registers for fork before main does */
    shortage_obey_options();
    if (hardening.is_on && started) sealed_begin();
}
