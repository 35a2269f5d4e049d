/* Threads that compute parts of a step together with the thread that calls: one step at a time.

   While another thread has the pool, who calls computes its parts alone, so calls never wait for
   each other. Workers sleep between steps, after a look for more work that takes microseconds. A
   child that was forked has no workers; it starts its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#define MOST_WORKERS 63
#define LOOKS 2000

typedef void (*body_function)(void *given, int part);

static struct {
    pthread_mutex_t taken, lock;
    pthread_cond_t begun, ended;
    int workers;
    /* The step: who may join counts down `open`; `step` changes when one begins or ends. */
    atomic_uint step;
    atomic_int next, done;
    int open, joined, count;
    body_function body;
    void *given;
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

static void compute(body_function body, void *given, int count)
{
    for (int part = atomic_fetch_add(&pool.next, 1); part < count;
         part = atomic_fetch_add(&pool.next, 1)) {
        body(given, part);
        atomic_fetch_add(&pool.done, 1);
    }
}

static void *work(void *unused)
{
    unsigned seen = 0;
    (void)unused;
    for (;;) {
        for (int look = 0; look < LOOKS && atomic_load(&pool.step) == seen; ++look)
            breathe();
        pthread_mutex_lock(&pool.lock);
        while (pool.open == 0 || atomic_load(&pool.step) == seen)
            pthread_cond_wait(&pool.begun, &pool.lock);
        seen = atomic_load(&pool.step);
        --pool.open;
        ++pool.joined;
        const body_function body = pool.body;
        void *const given = pool.given;
        const int count = pool.count;
        pthread_mutex_unlock(&pool.lock);
        compute(body, given, count);
        pthread_mutex_lock(&pool.lock);
        if (--pool.joined == 0)
            pthread_cond_signal(&pool.ended);
        pthread_mutex_unlock(&pool.lock);
    }
    return NULL;
}

static void forget(void)
{
    pthread_mutex_init(&pool.taken, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.begun, NULL);
    pthread_cond_init(&pool.ended, NULL);
    pool.workers = pool.open = pool.joined = 0;
    atomic_store(&pool.step, 0);
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
    pthread_mutex_lock(&pool.lock);
    pool.body = body;
    pool.given = given;
    pool.count = count;
    pool.open = count - 1;
    atomic_store(&pool.next, 0);
    atomic_store(&pool.done, 0);
    atomic_fetch_add(&pool.step, 1);
    pthread_cond_broadcast(&pool.begun);
    pthread_mutex_unlock(&pool.lock);
    compute(body, given, count);
    for (int look = 0; look < LOOKS && atomic_load(&pool.done) < count; ++look)
        breathe();
    pthread_mutex_lock(&pool.lock);
    pool.open = 0;
    while (pool.joined > 0)
        pthread_cond_wait(&pool.ended, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&pool.taken);
}
