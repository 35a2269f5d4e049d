/* Calls a compiled program from Python: checks arrays, makes those of the results, lends memory. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define ALIGNMENT 64
#define KEPT 8

typedef int (*run_function)(const void *const *inputs, void *const *outputs, void *memory,
                            const void *const *weights);

typedef struct {
    PyArray_Descr *type;
    int rank;
    npy_intp *sizes;
} Port;

/* A block is the pointers to inputs and outputs, then the memory of the program. Blocks that no
   call has are kept in `free`; the lock of the interpreter guards the list. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Py_ssize_t inputs, outputs;
    Port *ports;
    run_function run;
    const void *const *weights;
    size_t head, block;
    int releases, kept;
    void *free[KEPT];
    PyObject *owner;
} Caller;

static int fits(PyObject *given, const Port *port)
{
    PyArrayObject *array = (PyArrayObject *)given;
    if (!PyArray_CheckExact(given) || !PyArray_ISCARRAY_RO(array) ||
        PyArray_NDIM(array) != port->rank)
        return 0;
    if (PyArray_DESCR(array) != port->type && !PyArray_EquivTypes(PyArray_DESCR(array), port->type))
        return 0;
    for (int d = 0; d < port->rank; ++d)
        if (PyArray_DIM(array, d) != port->sizes[d])
            return 0;
    return 1;
}

static void *borrow(Caller *self)
{
    void *block = NULL;
    if (self->kept)
        return self->free[--self->kept];
    if (posix_memalign(&block, ALIGNMENT, self->block)) {
        PyErr_NoMemory();
        return NULL;
    }
    return block;
}

static void give_back(Caller *self, void *block)
{
    if (self->kept < KEPT)
        self->free[self->kept++] = block;
    else
        free(block);
}

/* The results, or None if the arrays are not as they have to be, or the program could not end. */
static PyObject *call(PyObject *object, PyObject *const *given, size_t flags, PyObject *names)
{
    Caller *self = (Caller *)object;
    PyObject *results;
    void **pointers;
    int status;
    if (names != NULL || PyVectorcall_NARGS(flags) != self->inputs)
        Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < self->inputs; ++i)
        if (!fits(given[i], self->ports + i))
            Py_RETURN_NONE;
    results = PyTuple_New(self->outputs);
    pointers = results ? borrow(self) : NULL;
    if (pointers == NULL) {
        Py_XDECREF(results);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < self->inputs; ++i)
        pointers[i] = PyArray_DATA((PyArrayObject *)given[i]);
    for (Py_ssize_t i = 0; i < self->outputs; ++i) {
        const Port *port = self->ports + self->inputs + i;
        PyObject *made;
        Py_INCREF(port->type);
        made = PyArray_NewFromDescr(&PyArray_Type, port->type, port->rank, port->sizes, NULL, NULL,
                                    0, NULL);
        if (made == NULL) {
            Py_DECREF(results);
            give_back(self, pointers);
            return NULL;
        }
        pointers[self->inputs + i] = PyArray_DATA((PyArrayObject *)made);
        PyTuple_SET_ITEM(results, i, made);
    }
    PyThreadState *state = self->releases ? PyEval_SaveThread() : NULL;
    status = self->run((const void *const *)pointers, pointers + self->inputs,
                       (char *)pointers + self->head, self->weights);
    if (state)
        PyEval_RestoreThread(state);
    give_back(self, pointers);
    if (status) {
        Py_DECREF(results);
        Py_RETURN_NONE;
    }
    return results;
}

static void delete(PyObject *object)
{
    Caller *self = (Caller *)object;
    for (Py_ssize_t i = 0; self->ports && i < self->inputs + self->outputs; ++i) {
        Py_XDECREF(self->ports[i].type);
        free(self->ports[i].sizes);
    }
    free(self->ports);
    while (self->kept)
        free(self->free[--self->kept]);
    Py_XDECREF(self->owner);
    Py_TYPE(object)->tp_free(object);
}

static PyTypeObject caller_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "smelt_caller.Caller",
    .tp_basicsize = sizeof(Caller),
    .tp_dealloc = delete,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Caller, vectorcall),
    .tp_call = PyVectorcall_Call,
};

static int read_port(PyObject *described, Port *port)
{
    PyObject *sizes;
    if (!PyArg_ParseTuple(described, "O!O!", &PyArrayDescr_Type, &port->type, &PyTuple_Type, &sizes)) {
        port->type = NULL;
        return 0;
    }
    Py_INCREF(port->type);
    port->rank = (int)PyTuple_GET_SIZE(sizes);
    port->sizes = calloc(port->rank + 1, sizeof(npy_intp));
    if (port->sizes == NULL)
        return 0;
    for (int d = 0; d < port->rank; ++d)
        port->sizes[d] = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, d));
    return !PyErr_Occurred();
}

/* caller(run, weights, inputs, outputs, memory_bytes, releases, owner): addresses as integers, a
   port as (dtype, shape); owner is kept alive. */
static PyObject *make(PyObject *module, PyObject *arguments)
{
    unsigned long long run, weights;
    PyObject *inputs, *outputs, *owner;
    Py_ssize_t bytes;
    int releases;
    Caller *self;
    if (!PyArg_ParseTuple(arguments, "KKO!O!npO", &run, &weights, &PyTuple_Type, &inputs,
                          &PyTuple_Type, &outputs, &bytes, &releases, &owner))
        return NULL;
    self = (Caller *)caller_type.tp_alloc(&caller_type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = call;
    self->inputs = PyTuple_GET_SIZE(inputs);
    self->outputs = PyTuple_GET_SIZE(outputs);
    self->run = (run_function)(uintptr_t)run;
    self->weights = (const void *const *)(uintptr_t)weights;
    self->head = (sizeof(void *) * (self->inputs + self->outputs) + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    self->block = self->head + bytes + ALIGNMENT;
    self->releases = releases;
    self->owner = Py_NewRef(owner);
    self->ports = calloc(self->inputs + self->outputs + 1, sizeof(Port));
    for (Py_ssize_t i = 0; self->ports && i < self->inputs + self->outputs; ++i) {
        PyObject *described = i < self->inputs ? PyTuple_GET_ITEM(inputs, i)
                                               : PyTuple_GET_ITEM(outputs, i - self->inputs);
        if (!read_port(described, self->ports + i)) {
            Py_DECREF(self);
            return PyErr_Occurred() ? NULL : PyErr_NoMemory();
        }
    }
    if (self->ports == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyMethodDef methods[] = {{"caller", make, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "smelt_caller", NULL, -1, methods};

PyMODINIT_FUNC PyInit_smelt_caller(void)
{
    import_array();
    if (PyType_Ready(&caller_type) < 0)
        return NULL;
    return PyModule_Create(&definition);
}
