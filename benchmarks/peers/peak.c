/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a command and adds a line `peak BYTES` to what it prints: the most memory that it had at once.
 *
 * A process inherits the peak of the one that it was forked from, so a large harness would hide what
 * small programs need. This one has a megabyte. It ends as the command does, 128 + N for signal N. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __APPLE__
#define UNIT 1L
#else
#define UNIT 1024L
#endif

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "expected a command\n");
        return 2;
    }
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    if (child == 0) {
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) < 0) {
        perror("wait4");
        return 1;
    }
    printf("peak %ld\n", usage.ru_maxrss * UNIT);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
