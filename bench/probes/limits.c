/* What a machine's cores can do alone and together, for bench/weak-scaling.py. For each number of threads: the bandwidth
 * of a triad (a = b + s * c) over arrays that no cache holds, counted as STREAM counts it, and the rate of multiply-adds on
 * registers, which only clocks and shared cores can slow down. Prints one JSON object. Arguments: seconds for each
 * figure, then numbers of threads. Threads are not pinned: the workers that are explained by this are not either. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kElements = 4 << 20, kMaxThreads = 1024, kChains = 12, kLanes = 16, kRounds = 20000 };

typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

typedef struct {
  pthread_t thread;
  double seconds, work; /* work: bytes of the triad, or operations */
} Worker;

static pthread_barrier_t start;
static double limit;
static volatile float sink;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void* triad(void* argument) {
  Worker* worker = argument;
  double* memory = aligned_alloc(64, 3 * sizeof(double) * kElements);
  if (!memory) exit(1);
  for (long i = 0; i < 3L * kElements; ++i) memory[i] = 1.0;
  double *a = memory, *b = a + kElements, *c = b + kElements;
  pthread_barrier_wait(&start);
  const double begin = now();
  double passed = 0;
  for (long pass = 1; passed < limit; ++pass) {
    const double scale = 1e-3 * (double)pass;
    for (long i = 0; i < kElements; ++i) a[i] = b[i] + scale * c[i];
    __asm__ volatile("" ::"r"(a) : "memory");
    worker->work += 3.0 * sizeof(double) * kElements;
    passed = now() - begin;
  }
  worker->seconds = passed;
  free(memory);
  return NULL;
}

static void* multiply_add(void* argument) {
  Worker* worker = argument;
  Lanes chain[kChains], factor, term;
  for (int lane = 0; lane < kLanes; ++lane) {
    factor[lane] = 0.999F;
    term[lane] = 1e-3F;
    for (int i = 0; i < kChains; ++i) chain[i][lane] = (float)i;
  }
  pthread_barrier_wait(&start);
  const double begin = now();
  double passed = 0;
  while (passed < limit) {
    for (int round = 0; round < kRounds; ++round)
      for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + term;
    worker->work += 2.0 * kLanes * kChains * kRounds;
    passed = now() - begin;
  }
  worker->seconds = passed;
  for (int i = 0; i < kChains; ++i) sink = chain[i][0];
  return NULL;
}

/* Work per second of all threads together, in units of 1e9. */
static double rate(void* (*body)(void*), int threads) {
  static Worker workers[kMaxThreads];
  pthread_barrier_init(&start, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    workers[i].work = 0;
    if (pthread_create(&workers[i].thread, NULL, body, &workers[i]) != 0) exit(1);
  }
  double sum = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(workers[i].thread, NULL);
    sum += workers[i].work / workers[i].seconds;
  }
  pthread_barrier_destroy(&start);
  return sum / 1e9;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  limit = atof(argv[1]);
  printf("{\"limits\": [");
  for (int i = 2; i < argc; ++i) {
    const int threads = atoi(argv[i]);
    if (threads < 1 || threads > kMaxThreads) return 2;
    printf("%s{\"threads\": %d, \"triad_gb_s\": %g", i > 2 ? ", " : "", threads, rate(triad, threads));
    printf(", \"fma_gflop_s\": %g}", rate(multiply_add, threads));
  }
  printf("]}\n");
  return 0;
}
