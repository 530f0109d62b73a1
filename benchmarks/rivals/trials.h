/* Repeats a trial for the references of the gauge, and drops trials by the gauge's own rules: those
 * whose threads did not get 98.5 % of their CPUs, and those below 93 % of the best. Prints the median
 * of the others. */
#ifndef QUARRIER_TRIALS_H
#define QUARRIER_TRIALS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define TRIAL_SECONDS 0.06
#define TRIALS_MIN 5
#define TRIALS_MAX 25
#define PATIENCE_SECONDS 1.5
#define CPU_SHARE_MIN 0.985
#define BEST_SHARE_MIN 0.93

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Memory on pages of one kind, aligned to 2 MiB. */
static void *pages(size_t bytes, int huge) {
    size_t large = (size_t)2 << 20;
    char *memory = mmap(NULL, bytes + large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    madvise(memory, bytes + large, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return memory + (large - (size_t)memory % large) % large;
}

/* Repeats trials of about TRIAL_SECONDS, each of several calls of `once(state)`, which returns the units
 * that it did. Prints a line of JSON with the median rate, or the median time of a unit. */
static void trials(double (*once)(void *), void *state, int threads, int of_seconds) {
    double rates[TRIALS_MAX], begin, start = now(CLOCK_MONOTONIC);
    int had_cpu = 0, made = 0, kept = 0, starved = 0, times = 0;
    once(state);
    begin = now(CLOCK_MONOTONIC);
    do {
        once(state);
        times++;
    } while (now(CLOCK_MONOTONIC) - begin < TRIAL_SECONDS);
    while (had_cpu < TRIALS_MAX) {
        double cpu = now(CLOCK_PROCESS_CPUTIME_ID), units = 0, seconds;
        begin = now(CLOCK_MONOTONIC);
        for (int i = 0; i < times; i++) units += once(state);
        seconds = now(CLOCK_MONOTONIC) - begin;
        cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        made++;
        if (cpu / threads / seconds >= CPU_SHARE_MIN || starved) {
            rates[had_cpu++] = units / seconds;
            qsort(rates, (size_t)had_cpu, sizeof *rates, ascending);
        }
        for (kept = 0; kept < had_cpu && rates[had_cpu - 1 - kept] >= BEST_SHARE_MIN * rates[had_cpu - 1]; ) kept++;
        double since = now(CLOCK_MONOTONIC) - start;
        if (kept >= TRIALS_MIN && since > PATIENCE_SECONDS) break;
        if (since > 3 * PATIENCE_SECONDS && had_cpu >= TRIALS_MIN) break;
        if (since > 3 * PATIENCE_SECONDS) starved = 1;
    }
    /* The kept ones are the last; if there are too few, the best of the others count, too. */
    int used = kept < TRIALS_MIN ? TRIALS_MIN : kept, dropped = made - kept;
    double median = rates[had_cpu - 1 - used / 2], best = rates[had_cpu - 1];
    printf("{\"value\": %.6e, \"best\": %.6e, \"runs\": %d, \"dropped\": %d, \"disturbed\": %s}\n",
           of_seconds ? 1 / median : median, of_seconds ? 1 / best : best, used, dropped,
           starved || kept < TRIALS_MIN || dropped > kept ? "true" : "false");
}

#endif
