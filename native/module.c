/* The compiled part of uldp_transforms: splits messages of single reports into columns.
 *
 * It only accepts. Whatever is not exactly canonical is left to the code in Python, which alone gives reasons. The
 * limited interface of Python 3.10 serves all later versions.
 */
#include "functions.h"

enum { INTERFACE = 2 };

static PyMethodDef methods[] = {
    {"new_catalog", new_catalog, METH_VARARGS, "Check and copy the tables of the collections of a job."},
    {"split_reports", split_reports, METH_VARARGS, "Split messages of single reports into columns."},
    {"split_joined", split_joined, METH_VARARGS, "Split messages in one buffer into columns."},
    {"report_ends", report_ends, METH_VARARGS, "Find the ends of the single reports of a block."},
    {NULL, NULL, 0, NULL},
};

static int add_interface(PyObject *module) { return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)add_interface}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "uldp_transforms_native", "Compiled part of uldp_transforms.", 0, methods, slots, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit_uldp_transforms_native(void) { return PyModuleDef_Init(&definition); }
