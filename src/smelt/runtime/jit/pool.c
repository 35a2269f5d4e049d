/* Threads that compute parts of a step together with the thread that calls: one step at a time.

   While another thread has the pool, who calls computes its parts alone, so calls never wait for
   each other. Workers sleep between steps, after a look for more work that takes microseconds; no
   lock is taken while all are awake, for who finds one taken sleeps, and to wake up takes longer
   than many a step. A child that was forked has no workers; it starts its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_WORKERS 63
#define LOOKS 2000
#define LINE _Alignas(64) /* what one thread waits for shares no cache line with what others write */

typedef void (*body_function)(void *given, int part);

/* `left` is the number of the step above the parts that nobody has taken yet. Who takes one reads
   the step first and counts down then, which fails if meanwhile the step is another. */
static struct {
    LINE _Atomic uint64_t left;
    atomic_int count;
    _Atomic body_function body;
    void *_Atomic given;
    LINE atomic_int done;
    LINE atomic_int sleepers, is_awaited;
    pthread_mutex_t taken, lock;
    pthread_cond_t begun, ended;
    int workers;
} pool = {.taken = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER,
          .begun = PTHREAD_COND_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static inline void breathe(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline int has_parts(void)
{
    return (uint32_t)atomic_load(&pool.left) != 0;
}

/* Take parts as long as there are some. */
static void compute(void)
{
    uint64_t left = atomic_load(&pool.left);
    while ((uint32_t)left != 0) {
        const body_function body = atomic_load(&pool.body);
        void *const given = atomic_load(&pool.given);
        const int count = atomic_load(&pool.count);
        if (!atomic_compare_exchange_weak(&pool.left, &left, left - 1))
            continue;
        body(given, count - (int)(uint32_t)left);
        if (atomic_fetch_add(&pool.done, 1) + 1 == count && atomic_load(&pool.is_awaited)) {
            pthread_mutex_lock(&pool.lock);
            pthread_cond_signal(&pool.ended);
            pthread_mutex_unlock(&pool.lock);
        }
        left = atomic_load(&pool.left);
    }
}

static void *work(void *unused)
{
    (void)unused;
    for (;;) {
        for (int look = 0; look < LOOKS && !has_parts(); ++look)
            breathe();
        if (!has_parts()) {
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.sleepers, 1);
            while (!has_parts())
                pthread_cond_wait(&pool.begun, &pool.lock);
            atomic_fetch_sub(&pool.sleepers, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        compute();
    }
    return NULL;
}

static void forget(void)
{
    pthread_mutex_init(&pool.taken, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.begun, NULL);
    pthread_cond_init(&pool.ended, NULL);
    pool.workers = 0;
    atomic_store(&pool.left, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.is_awaited, 0);
}

/* Have as many workers as `wanted`; fewer, if no more can be started. */
static void start(int wanted)
{
    static int watched;
    pthread_attr_t detached;
    sigset_t every, before;
    if (!watched) {
        pthread_atfork(NULL, NULL, forget);
        watched = 1;
    }
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&every); /* signals are for the threads of whoever calls */
    pthread_sigmask(SIG_SETMASK, &every, &before);
    while (pool.workers < wanted && pool.workers < MOST_WORKERS) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, work, NULL))
            break;
        ++pool.workers;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
}

static void begin(int count, body_function body, void *given)
{
    const uint64_t step = (atomic_load(&pool.left) >> 32) + 1;
    atomic_store(&pool.body, body);
    atomic_store(&pool.given, given);
    atomic_store(&pool.count, count);
    atomic_store(&pool.done, 0);
    atomic_store(&pool.left, step << 32 | (uint32_t)count);
    if (atomic_load(&pool.sleepers) > 0) {
        pthread_mutex_lock(&pool.lock);
        for (int other = 1; other < count; ++other)
            pthread_cond_signal(&pool.begun);
        pthread_mutex_unlock(&pool.lock);
    }
}

static void wait_for(int count)
{
    for (int look = 0; look < LOOKS && atomic_load(&pool.done) < count; ++look)
        breathe();
    if (atomic_load(&pool.done) == count)
        return;
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.is_awaited, 1);
    while (atomic_load(&pool.done) < count)
        pthread_cond_wait(&pool.ended, &pool.lock);
    atomic_store(&pool.is_awaited, 0);
    pthread_mutex_unlock(&pool.lock);
}

/* body(given, 0) to body(given, count - 1), each once; returns when all have returned. */
void smelt_parallel_for(void *context, int count, body_function body, void *given)
{
    (void)context;
    if (count < 2 || pthread_mutex_trylock(&pool.taken)) {
        for (int part = 0; part < count; ++part)
            body(given, part);
        return;
    }
    if (pool.workers < count - 1)
        start(count - 1);
    begin(count, body, given);
    compute();
    wait_for(count);
    pthread_mutex_unlock(&pool.taken);
}
