/* The compiled part of uldp_transforms: splits messages of single reports into columns.
 *
 * It only accepts. A message that is not exactly a canonical single report of a known collection, with a cohort and a
 * time in range, is left to the decoder in Python, which alone gives reasons. docs/wire.md defines the bytes;
 * uldp_transforms/messages/compiled.py calls this function and documents its arguments.
 *
 * Messages come from anybody. Every read is bounded by the length of its message; nothing is written but the columns,
 * whose sizes are counted before they are filled; the limited interface of Python 3.10 serves all later versions.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(size_t) == 8, "sizes of columns need 64 bits; elsewhere the decoder in Python does everything");

enum { INTERFACE = 1, FORM = 0x02, MARKER = 0xC3, HEADER_BYTES = 10, PREFIX_BYTES = 8, ID_BYTES = 16 };
enum { FIXED_BYTES = 1 + PREFIX_BYTES + ID_BYTES, MOST_COHORTS = 1 << 16 };

/* The collections of a job. Collection `numbers[i]` has the prefix `prefixes[i]`, in increasing order; the prefixes
 * that begin with the bits b are at bounds[b] <= i < bounds[b + 1]. */
typedef struct {
    const uint64_t *prefixes;
    const int64_t *numbers, *bounds, *payload_sizes, *strata;
    Py_ssize_t size;
    int shift;
} Catalog;

typedef struct {
    const uint8_t *header;
    int64_t most_bytes, first_time, end_of_times;
} Limits;

typedef struct {
    const uint8_t *id, *payload;
    int64_t time, message, number;
    uint16_t cohort;
} Report;

static uint64_t little_endian(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < PREFIX_BYTES; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* One canonical variable-length integer; 0 if there is none before `end`. */
static int read_long(const uint8_t **at, const uint8_t *end, int64_t *value)
{
    uint64_t raw = 0;
    const uint8_t *next = *at;
    for (int place = 0; place < 10 && next < end; place++) {
        uint8_t byte = *next++;
        if (place == 9 && byte > 1)
            return 0;
        raw |= (uint64_t)(byte & 0x7F) << (7 * place);
        if (byte < 0x80) {
            *at = next;
            *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            return place == 0 || byte != 0;
        }
    }
    return 0;
}

static int64_t number_of(const Catalog *catalog, uint64_t prefix)
{
    uint64_t bits = prefix >> catalog->shift;
    for (int64_t i = catalog->bounds[bits]; i < catalog->bounds[bits + 1]; i++)
        if (catalog->prefixes[i] == prefix)
            return catalog->numbers[i];
    return -1;
}

/* Whether a message is a report that the columns can hold. */
static int split(const Catalog *catalog, const Limits *limits, const uint8_t *at, Py_ssize_t length, Report *report)
{
    const uint8_t *end = at + length;
    int64_t cohort, size;
    if (length > limits->most_bytes)
        return 0;
    if (length > HEADER_BYTES && at[0] == MARKER && memcmp(at, limits->header, HEADER_BYTES) == 0)
        at += HEADER_BYTES;
    if (end - at <= FIXED_BYTES || at[0] != FORM)
        return 0;
    report->number = number_of(catalog, little_endian(at + 1));
    if (report->number < 0)
        return 0;
    report->id = at + 1 + PREFIX_BYTES;
    at += FIXED_BYTES;
    if (!read_long(&at, end, &report->time) || !read_long(&at, end, &cohort) || !read_long(&at, end, &size))
        return 0;
    if (size != end - at || size != catalog->payload_sizes[report->number])
        return 0;
    if (cohort < 0 || cohort >= catalog->strata[report->number] || cohort >= MOST_COHORTS)
        return 0;
    if (report->time < limits->first_time || report->time >= limits->end_of_times)
        return 0;
    report->cohort = (uint16_t)cohort;
    report->payload = at;
    return 1;
}

/* Writable columns of `rows` items each, as bytearrays. */
static uint8_t *column(PyObject **owner, int64_t rows, int64_t item)
{
    *owner = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(rows * item));
    return *owner == NULL ? NULL : (uint8_t *)PyByteArray_AsString(*owner);
}

/* Columns of the reports, sorted by the numbers of their collections; places[number] is that of its first report. */
static PyObject *columns_of(const Catalog *catalog, const Report *reports, int64_t accepted, const int64_t *rest,
                            int64_t num_rest, int64_t *places)
{
    PyObject *made[8] = {NULL}, *found = NULL;
    int64_t rows = 0, bytes = 0, present = 0;
    int64_t *offsets = malloc((size_t)(catalog->size + 1) * sizeof *offsets);
    if (offsets == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < catalog->size; i++) {
        int64_t own = places[i];
        places[i] = rows;
        offsets[i] = bytes;
        rows += own;
        bytes += own * catalog->payload_sizes[i];
        present += own > 0;
    }
    places[catalog->size] = rows;
    uint8_t *owners = column(&made[0], present, 8), *sizes = column(&made[1], present, 8);
    uint8_t *cohorts = column(&made[2], accepted, 2), *times = column(&made[3], accepted, 8);
    uint8_t *ids = column(&made[4], accepted, ID_BYTES), *payloads = column(&made[5], bytes, 1);
    uint8_t *messages = column(&made[6], accepted, 8), *left = column(&made[7], num_rest, 8);
    if (owners && sizes && cohorts && times && ids && payloads && messages && left) {
        for (int64_t i = 0; i < catalog->size; i++) {
            int64_t own = places[i + 1] - places[i];
            if (own > 0) {
                memcpy(owners, &i, 8);
                memcpy(sizes, &own, 8);
                owners += 8;
                sizes += 8;
            }
        }
        for (int64_t i = 0; i < accepted; i++) {
            const Report *report = &reports[i];
            int64_t row = places[report->number]++, size = catalog->payload_sizes[report->number];
            memcpy(cohorts + 2 * row, &report->cohort, 2);
            memcpy(times + 8 * row, &report->time, 8);
            memcpy(ids + ID_BYTES * row, report->id, ID_BYTES);
            memcpy(messages + 8 * row, &report->message, 8);
            if (size == 1)
                payloads[offsets[report->number]] = report->payload[0];
            else
                memcpy(payloads + offsets[report->number], report->payload, (size_t)size);
            offsets[report->number] += size;
        }
        if (num_rest > 0)
            memcpy(left, rest, (size_t)num_rest * 8);
        found = PyTuple_Pack(8, made[0], made[1], made[2], made[3], made[4], made[5], made[6], made[7]);
    }
    free(offsets);
    for (int i = 0; i < 8; i++)
        Py_XDECREF(made[i]);
    return found;
}

/* What Python passed as tables must fit together: then no message can lead outside of them. */
static int is_whole(Catalog *catalog, const Py_ssize_t *bytes, Py_ssize_t header_bytes)
{
    Py_ssize_t n = catalog->size = bytes[0] / 8;
    if (n < 1 || header_bytes != HEADER_BYTES || catalog->shift < 32 || catalog->shift > 63)
        return 0;
    int64_t num_bounds = ((int64_t)1 << (64 - catalog->shift)) + 1;
    if (bytes[0] != 8 * n || bytes[1] != 8 * n || bytes[2] != 8 * num_bounds || bytes[3] != 8 * n || bytes[4] != 8 * n)
        return 0;
    for (int64_t i = 0; i < num_bounds; i++)
        if (catalog->bounds[i] < 0 || catalog->bounds[i] > n)
            return 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (catalog->numbers[i] < 0 || catalog->numbers[i] >= n || catalog->payload_sizes[i] < 0)
            return 0;
    return 1;
}

static PyObject *split_reports(PyObject *module, PyObject *arguments)
{
    PyObject *messages;
    Catalog catalog;
    Limits limits;
    const char *table[5], *header;
    Py_ssize_t bytes[5], header_bytes;
    long long most_bytes, first_time, end_of_times;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!y#y#y#y#y#iy#LLL", &PyList_Type, &messages, &table[0], &bytes[0], &table[1],
                          &bytes[1], &table[2], &bytes[2], &table[3], &bytes[3], &table[4], &bytes[4], &catalog.shift,
                          &header, &header_bytes, &most_bytes, &first_time, &end_of_times))
        return NULL;
    catalog.prefixes = (const uint64_t *)table[0];
    catalog.numbers = (const int64_t *)table[1];
    catalog.bounds = (const int64_t *)table[2];
    catalog.payload_sizes = (const int64_t *)table[3];
    catalog.strata = (const int64_t *)table[4];
    catalog.size = bytes[0] / 8;
    limits = (Limits){(const uint8_t *)header, most_bytes, first_time, end_of_times};
    if (!is_whole(&catalog, bytes, header_bytes)) {
        PyErr_SetString(PyExc_ValueError, "tables of split_reports must fit together, got others");
        return NULL;
    }
    Py_ssize_t length, n = PyList_Size(messages);
    char *content;
    Report *reports = malloc((size_t)(n + 1) * sizeof *reports);
    int64_t *rest = malloc((size_t)(n + 1) * sizeof *rest);
    int64_t *places = calloc((size_t)catalog.size + 1, sizeof *places);
    int64_t accepted = 0, num_rest = 0;
    PyObject *found = NULL;
    if (reports == NULL || rest == NULL || places == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *message = PyList_GetItem(messages, i); /* borrowed; nothing below runs other Python code */
        if (message == NULL || PyBytes_AsStringAndSize(message, &content, &length) < 0)
            goto done;
        if (split(&catalog, &limits, (const uint8_t *)content, length, &reports[accepted])) {
            places[reports[accepted].number]++;
            reports[accepted++].message = i;
        } else {
            rest[num_rest++] = i;
        }
    }
    found = columns_of(&catalog, reports, accepted, rest, num_rest, places);
done:
    free(reports);
    free(rest);
    free(places);
    return found;
}

static PyMethodDef methods[] = {
    {"split_reports", split_reports, METH_VARARGS, "Split messages of single reports into columns."},
    {NULL, NULL, 0, NULL},
};

static int add_interface(PyObject *module) { return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)add_interface}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "uldp_transforms_native", "Compiled part of uldp_transforms.", 0, methods, slots, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit_uldp_transforms_native(void) { return PyModuleDef_Init(&definition); }
