/* The functions of the module; uldp_transforms/messages/compiled.py calls them and documents their arguments. */
#ifndef ULDP_FUNCTIONS_H
#define ULDP_FUNCTIONS_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

PyObject *new_catalog(PyObject *module, PyObject *arguments);
PyObject *split_reports(PyObject *module, PyObject *arguments);
PyObject *split_joined(PyObject *module, PyObject *arguments);
PyObject *report_ends(PyObject *module, PyObject *arguments);

#endif
