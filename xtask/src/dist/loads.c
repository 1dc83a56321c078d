/* Loads the agent that is named, and calls what it says without a JVM. */
#include <dlfcn.h>
#include <stdio.h>

#include "lucce.h"

int main(int count, char **arguments)
{
    static const char *const entries[] = {"Agent_OnLoad", "Agent_OnAttach"};
    void *agent = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (agent == NULL) {
        fprintf(stderr, "%s\n", count == 2 ? dlerror() : "name the agent");
        return 1;
    }
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (dlsym(agent, entries[i]) == NULL) {
            fprintf(stderr, "no %s\n", entries[i]);
            return 1;
        }
    }
    lucce_version_fn *version = (lucce_version_fn *)dlsym(agent, "lucce_version");
    lucce_decode_fn *decode = (lucce_decode_fn *)dlsym(agent, "lucce_decode");
    if (version == NULL || decode == NULL) {
        fprintf(stderr, "no lucce_version or lucce_decode\n");
        return 1;
    }
    printf("lucce %s, not running: %d\n", version(), (int)decode(1, NULL, 0, NULL, NULL));
    return 0;
}
