/* Reads all blocks of a file in a mixed order and prints one JSON object: MB/s and processor seconds for a GB.
 *
 *   reads FILE BLOCK cold|warm pread THREADS AHEAD    blocking reads; AHEAD blocks are asked for with posix_fadvise first
 *   reads FILE BLOCK cold|warm uring DEPTH THREADS    io_uring, DEPTH reads of every thread under way
 *
 * For bench/reads.py, which asks whether the input pipeline should read with io_uring. "cold": the file is put out of the
 * system's cache first. io_uring is spoken to with plain system calls, so that nothing has to be installed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kMostThreads = 256, kMostDepth = 256 };

static int file;
static long block_bytes, blocks;
static long* order;
static atomic_long next_block;
static long ahead, depth;

static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double processor_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void* read_blocking(void* unused) {
  char* buffer = aligned_alloc(4096, (size_t)block_bytes);
  if (!buffer) fail("memory");
  for (long i; (i = atomic_fetch_add(&next_block, 1)) < blocks;) {
    if (ahead > 0 && i + ahead < blocks)
      posix_fadvise(file, order[i + ahead] * block_bytes, block_bytes, POSIX_FADV_WILLNEED);
    if (pread(file, buffer, (size_t)block_bytes, order[i] * block_bytes) != block_bytes) fail("pread");
  }
  free(buffer);
  return unused;
}

/* A ring of its own for every thread. */
typedef struct {
  int fd;
  struct io_uring_params params;
  char *sq, *cq;
  struct io_uring_sqe* entries;
} Ring;

static void open_ring(Ring* ring) {
  memset(ring, 0, sizeof *ring);
  ring->fd = (int)syscall(SYS_io_uring_setup, kMostDepth, &ring->params);
  if (ring->fd < 0) fail("io_uring_setup");
  const struct io_uring_params* p = &ring->params;
  const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
  ring->sq = mmap(0, p->sq_off.array + p->sq_entries * sizeof(unsigned), prot, flags, ring->fd, IORING_OFF_SQ_RING);
  ring->cq = mmap(0, p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe), prot, flags, ring->fd,
                  IORING_OFF_CQ_RING);
  ring->entries = mmap(0, p->sq_entries * sizeof *ring->entries, prot, flags, ring->fd, IORING_OFF_SQES);
  if (ring->sq == MAP_FAILED || ring->cq == MAP_FAILED || ring->entries == MAP_FAILED) fail("mmap of the ring");
}

static _Atomic unsigned* at(char* ring, unsigned offset) { return (_Atomic unsigned*)(ring + offset); }

static void push_read(Ring* ring, long block, char* into, long slot) {
  const unsigned tail = atomic_load(at(ring->sq, ring->params.sq_off.tail));
  const unsigned place = tail & *at(ring->sq, ring->params.sq_off.ring_mask);
  struct io_uring_sqe* entry = &ring->entries[place];
  memset(entry, 0, sizeof *entry);
  entry->opcode = IORING_OP_READ;
  entry->fd = file;
  entry->addr = (unsigned long)into;
  entry->len = (unsigned)block_bytes;
  entry->off = (unsigned long)(block * block_bytes);
  entry->user_data = (unsigned long)slot;
  ((unsigned*)(ring->sq + ring->params.sq_off.array))[place] = place;
  atomic_store(at(ring->sq, ring->params.sq_off.tail), tail + 1);
}

static void* read_ring(void* unused) {
  Ring ring;
  open_ring(&ring);
  char* buffers = aligned_alloc(4096, (size_t)(block_bytes * depth));
  if (!buffers) fail("memory");
  long slots[kMostDepth], idle = 0, under_way = 0;
  for (long slot = 0; slot < depth; ++slot) slots[idle++] = slot;
  for (int more = 1; more || under_way > 0;) {
    unsigned pushed = 0;
    while (more && idle > 0) {
      const long i = atomic_fetch_add(&next_block, 1);
      if (i >= blocks) {
        more = 0;
        break;
      }
      const long slot = slots[--idle];
      push_read(&ring, order[i], buffers + slot * block_bytes, slot);
      ++pushed, ++under_way;
    }
    if (under_way == 0) break;
    if (syscall(SYS_io_uring_enter, ring.fd, pushed, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0 && errno != EINTR)
      fail("io_uring_enter");
    unsigned head = atomic_load(at(ring.cq, ring.params.cq_off.head));
    for (; head != atomic_load(at(ring.cq, ring.params.cq_off.tail)); ++head) {
      const struct io_uring_cqe* done = (const struct io_uring_cqe*)(ring.cq + ring.params.cq_off.cqes) +
                                        (head & *at(ring.cq, ring.params.cq_off.ring_mask));
      if (done->res != block_bytes) {
        fprintf(stderr, "io_uring: a read gave %d\n", done->res);
        exit(1);
      }
      slots[idle++] = (long)done->user_data;
      --under_way;
    }
    atomic_store(at(ring.cq, ring.params.cq_off.head), head);
  }
  free(buffers);
  close(ring.fd);
  return unused;
}

int main(int count, char** words) {
  if (count != 7) return 2;
  const int cold = !strcmp(words[3], "cold"), ring = !strcmp(words[4], "uring");
  const long first = atol(words[5]), second = atol(words[6]);
  const long threads = ring ? second : first;
  ahead = ring ? 0 : second;
  depth = ring ? first : 0;
  block_bytes = atol(words[2]);
  if (threads < 1 || threads > kMostThreads || depth > kMostDepth || block_bytes < 4096) return 2;
  file = open(words[1], O_RDONLY);
  struct stat found;
  if (file < 0 || fstat(file, &found)) fail(words[1]);
  blocks = found.st_size / block_bytes;
  order = malloc((size_t)blocks * sizeof *order);
  if (!order) fail("memory");
  for (long i = 0; i < blocks; ++i) order[i] = i;
  srandom(7);
  for (long i = blocks - 1; i > 0; --i) {
    const long other = random() % (i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  /* Neighbours of a block are not wanted next: reading on into them would only cost. */
  posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
  if (cold) {
    if (fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) fail("emptying the cache");
  } else {
    next_block = 0;
    read_blocking(0);
    next_block = 0;
  }
  const double begin = now(), processor = processor_seconds();
  for (long i = 0; ahead > 0 && i < ahead && i < blocks; ++i)
    posix_fadvise(file, order[i] * block_bytes, block_bytes, POSIX_FADV_WILLNEED);
  pthread_t running[kMostThreads];
  for (long t = 0; t < threads; ++t)
    if (pthread_create(&running[t], 0, ring ? read_ring : read_blocking, 0)) fail("pthread_create");
  for (long t = 0; t < threads; ++t) pthread_join(running[t], 0);
  const double seconds = now() - begin, bytes = (double)blocks * (double)block_bytes;
  printf("{\"mb_s\": %.1f, \"cpu_s_gb\": %.4f}\n", bytes / seconds / 1e6, (processor_seconds() - processor) * 1e9 / bytes);
  return 0;
}
