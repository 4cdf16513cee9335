/* Splits a block of an Avro container file into single reports: one after the other, each canonical, up to the last
 * byte. Other blocks are left to uldp_transforms/messages/containers.py, which alone says what is wrong with them.
 */
#include "functions.h"
#include "reading.h"

#include <string.h>

/* The position after the report at `at`; NULL if there is none before `end`. */
static const uint8_t *end_of_report(const uint8_t *at, const uint8_t *end)
{
    int64_t time, cohort, size;
    if (end - at <= FIXED_BYTES || at[0] != FORM)
        return NULL;
    at += FIXED_BYTES;
    if (!read_long(&at, end, &time) || !read_long(&at, end, &cohort) || !read_long(&at, end, &size))
        return NULL;
    return size < 0 || size > end - at ? NULL : at + size;
}

/* Bytes of a block and its number of reports -> the end of each as int64, or None. */
PyObject *report_ends(PyObject *module, PyObject *arguments)
{
    const char *block;
    Py_ssize_t length, number;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y#n", &block, &length, &number))
        return NULL;
    if (number < 1 || number > length / FIXED_BYTES)
        Py_RETURN_NONE;
    PyObject *found = PyBytes_FromStringAndSize(NULL, number * 8);
    if (found == NULL)
        return NULL;
    char *ends = PyBytes_AsString(found);
    const uint8_t *begin = (const uint8_t *)block, *end = begin + length, *at = begin;
    for (Py_ssize_t i = 0; i < number; i++) {
        at = end_of_report(at, end);
        if (at == NULL)
            break;
        int64_t place = at - begin;
        memcpy(ends + 8 * i, &place, 8);
    }
    if (at == end)
        return found;
    Py_DECREF(found);
    Py_RETURN_NONE;
}
