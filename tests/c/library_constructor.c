/*
 * A library that allocates while the linker loads it, by a function of tests/c/native_memory.c.
 */
#include <stdlib.h>

__attribute__((constructor)) static void allocate_now(void) {
    const char *address = getenv("LUCCE_TEST_ALLOCATE");
    if (address != NULL) {
        void (*allocate)(int, int) = (void (*)(int, int)) strtoull(address, NULL, 16);
        allocate(500, 40);
    }
}
