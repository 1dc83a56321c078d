/*
 * Where a thread is, for its signal handlers: see lucce.h. In C because only C can ask for memory of a
 * thread that is there before its first use (TLS model "initial-exec"): otherwise the first use would
 * allocate, which a handler must not.
 */
#include <stddef.h>
#include <stdint.h>

#include "../include/lucce.h"

static __thread struct {
    /* Innermost open scope. */
    lucce_scope *volatile scope;
    volatile uint64_t recent;
} place __attribute__((tls_model("initial-exec")));

void lucce_place_recent(uint64_t context) { place.recent = context; }

void lucce_place_open(lucce_scope *scope, uint64_t context) {
    scope->context = context;
    scope->outer = place.scope;
    /* A handler of this thread sees the scope complete or not at all. */
    __atomic_signal_fence(__ATOMIC_RELEASE);
    place.scope = scope;
    place.recent = context;
}

/* 0: not the innermost one. */
int32_t lucce_place_close(lucce_scope *scope) {
    if (scope == NULL || place.scope != scope) return 0;
    place.scope = scope->outer;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    scope->outer = NULL;
    return 1;
}

int32_t lucce_place_read(uint64_t *context) {
    lucce_scope *scope = place.scope;
    uint64_t found = scope != NULL ? scope->context : place.recent;
    if (context != NULL) *context = found;
    if (found == 0) return LUCCE_NOWHERE;
    return scope != NULL ? LUCCE_WITHIN : LUCCE_RECENT;
}
