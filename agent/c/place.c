/*
 * Where a thread is, for its signal handlers: see lucce.h.
 *
 * A thread's place hangs from a key of the thread library. Opening a scope, or a first number, allocates it; a
 * handler only looks: pthread_getspecific reads a word of the thread's own block, and before there is a place it
 * finds NULL there. Variables of threads (__thread) would either be allocated by their first use, which may be in
 * a handler, or lie in the block that all libraries of the process share, which is small: a library that is loaded
 * later and needs room there would not load.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../include/lucce.h"

struct place {
    /* Innermost open scope. */
    lucce_scope *volatile scope;
    volatile uint64_t recent;
};

static pthread_key_t key;
static int has_key;

__attribute__((constructor)) static void make_key(void) { has_key = pthread_key_create(&key, free) == 0; }

/* NULL: the thread has none yet. */
static struct place *known(void) { return has_key ? pthread_getspecific(key) : NULL; }

/* Not in a signal handler. NULL: there is no memory. */
static struct place *own(void) {
    struct place *place = known();
    if (place != NULL || !has_key) return place;
    place = calloc(1, sizeof *place);
    if (place != NULL && pthread_setspecific(key, place) != 0) {
        free(place);
        return NULL;
    }
    return place;
}

void lucce_place_recent(uint64_t context) {
    struct place *place = own();
    if (place != NULL) place->recent = context;
}

/* 0: there is no memory for it, and no scope. */
int32_t lucce_place_open(lucce_scope *scope, uint64_t context) {
    struct place *place = own();
    if (place == NULL) return 0;
    scope->context = context;
    scope->outer = place->scope;
    /* A handler of this thread sees the scope complete or not at all. */
    __atomic_signal_fence(__ATOMIC_RELEASE);
    place->scope = scope;
    place->recent = context;
    return 1;
}

/* 0: not the innermost one. */
int32_t lucce_place_close(lucce_scope *scope) {
    struct place *place = known();
    if (scope == NULL || place == NULL || place->scope != scope) return 0;
    place->scope = scope->outer;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    scope->outer = NULL;
    return 1;
}

int32_t lucce_place_read(uint64_t *context) {
    struct place *place = known();
    lucce_scope *scope = place != NULL ? place->scope : NULL;
    uint64_t found = scope != NULL ? scope->context : place != NULL ? place->recent : 0;
    if (context != NULL) *context = found;
    if (found == 0) return LUCCE_NOWHERE;
    return scope != NULL ? LUCCE_WITHIN : LUCCE_RECENT;
}
