/* Calls compiled programs from XLA: a handler of its foreign function interface, and the programs
   by number. A program is never removed, because executables of XLA may call it at any time. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "xla/ffi/api/c_api.h"

#define ALIGNMENT 64
#define LISTS 1024

typedef int (*run_function)(const void *const *inputs, void *const *outputs, void *memory,
                            const void *const *weights);

/* `spare` is memory that no call uses: one block, or NULL. */
typedef struct Program {
    int64_t number, inputs, outputs;
    run_function run;
    const void *const *weights;
    size_t bytes;
    _Atomic(void *) spare;
    struct Program *next;
} Program;

static _Atomic(Program *) lists[LISTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Program *find(int64_t number)
{
    Program *program = atomic_load(&lists[(uint64_t)number % LISTS]);
    while (program != NULL && program->number != number)
        program = program->next;
    return program;
}

/* Add a program; returns 0 if it is known afterwards. */
int smelt_add(int64_t number, int64_t inputs, int64_t outputs, void *run, void *weights,
              size_t bytes)
{
    Program *program;
    pthread_mutex_lock(&lock);
    program = find(number);
    if (program == NULL && (program = calloc(1, sizeof *program)) != NULL) {
        _Atomic(Program *) *list = &lists[(uint64_t)number % LISTS];
        program->number = number;
        program->inputs = inputs;
        program->outputs = outputs;
        program->run = (run_function)run;
        program->weights = weights;
        program->bytes = bytes;
        program->next = atomic_load(list);
        atomic_store(list, program);
    }
    pthread_mutex_unlock(&lock);
    return program == NULL;
}

static XLA_FFI_Error *failure(const XLA_FFI_Api *api, XLA_FFI_Error_Code code, const char *message)
{
    XLA_FFI_Error_Create_Args made = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, message, code};
    return api->XLA_FFI_Error_Create(&made);
}

/* The attribute `program`, or 0 without one. */
static int64_t number_of(const XLA_FFI_Attrs *attributes)
{
    for (int64_t i = 0; i < attributes->size; ++i) {
        const XLA_FFI_ByteSpan *name = attributes->names[i];
        if (attributes->types[i] == XLA_FFI_AttrType_SCALAR && name->len == 7 &&
            memcmp(name->ptr, "program", 7) == 0)
            return *(int64_t *)((XLA_FFI_Scalar *)attributes->attrs[i])->value;
    }
    return 0;
}

static int tell_version(XLA_FFI_CallFrame *frame)
{
    XLA_FFI_Extension_Base *extension = frame->extension_start;
    XLA_FFI_Metadata *metadata;
    if (extension == NULL || extension->type != XLA_FFI_Extension_Metadata)
        return 0;
    metadata = ((XLA_FFI_Metadata_Extension *)extension)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    return 1;
}

XLA_FFI_Error *smelt_call(XLA_FFI_CallFrame *frame)
{
    const void *arrays[frame->args.size + 1];
    void *results[frame->rets.size + 1], *block;
    Program *program;
    int status;
    if (tell_version(frame))
        return NULL;
    program = find(number_of(&frame->attrs));
    if (program == NULL || program->inputs != frame->args.size ||
        program->outputs != frame->rets.size)
        return failure(frame->api, XLA_FFI_Error_Code_NOT_FOUND,
                       "smelt: this process has not compiled the program of this call");
    for (int64_t i = 0; i < frame->args.size; ++i)
        arrays[i] = ((XLA_FFI_Buffer *)frame->args.args[i])->data;
    for (int64_t i = 0; i < frame->rets.size; ++i)
        results[i] = ((XLA_FFI_Buffer *)frame->rets.rets[i])->data;
    block = atomic_exchange(&program->spare, NULL);
    if (block == NULL && posix_memalign(&block, ALIGNMENT, program->bytes + ALIGNMENT))
        return failure(frame->api, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
                       "smelt: no memory is left for intermediate results");
    status = program->run(arrays, results, block, program->weights);
    free(atomic_exchange(&program->spare, block));
    return status ? failure(frame->api, XLA_FFI_Error_Code_INTERNAL, "smelt: the program failed")
                  : NULL;
}
