/* Splits messages of single reports into columns.
 *
 * Messages come from anybody. Every read is bounded by the end of its message; nothing is written but the columns,
 * whose sizes are counted before they are filled.
 */
#include "functions.h"
#include "reading.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(size_t) == 8, "sizes of columns need 64 bits; elsewhere the decoder in Python does everything");

enum { MARKER = 0xC3, HEADER_BYTES = 10, MOST_COHORTS = 1 << 16, MOST_TAIL = 7, COLUMNS = 8, AHEAD = 12 };

static const char CATALOG[] = "uldp_transforms_native.catalog";

#if defined(__GNUC__)
#define PREFETCH(place) __builtin_prefetch(place)
#else
#define PREFETCH(place) ((void)(place))
#endif

/* What a report of a collection must fit: a cohort below `strata`; a payload of `payload_size` bytes, of which the last
 * `tail` bytes are an integer below `limit` (with a tail of 0 bytes, the decoder in Python checks payloads). */
typedef struct {
    int64_t payload_size, strata, tail, limit;
} Collection;

typedef struct {
    uint64_t prefix;
    int64_t number;
} Entry;

/* The collections of a job. Entries are in the order of their prefixes; those that begin with the bits b are at
 * bounds[b] <= i < bounds[b + 1]. */
typedef struct {
    Collection *collections;
    Entry *entries;
    int64_t *bounds;
    int64_t size, most_bytes, first_time, end_of_times;
    int shift;
    uint8_t header[HEADER_BYTES];
} Catalog;

typedef struct {
    const uint8_t *id, *payload;
    int64_t time, message, number;
    uint16_t cohort;
} Report;

/* What was found in n messages: reports, and the positions of the other messages; numbers of reports by collection. */
typedef struct {
    Report *reports;
    int64_t *rest, *places;
    int64_t accepted, num_rest, lowest, highest;
} Found;

/* ---------------------------------------------------------------- the tables of a job */

static void free_catalog(Catalog *catalog)
{
    if (catalog != NULL) {
        free(catalog->collections);
        free(catalog->entries);
        free(catalog->bounds);
        free(catalog);
    }
}

static void forget(PyObject *capsule) { free_catalog(PyCapsule_GetPointer(capsule, CATALOG)); }

static int64_t integer_at(const char *table, int64_t place)
{
    int64_t value;
    memcpy(&value, table + 8 * place, 8);
    return value;
}

/* Whether the tables fit together: then no message can lead outside of them. */
static int is_whole(const Catalog *catalog, int64_t num_bounds)
{
    for (int64_t i = 0; i < num_bounds; i++)
        if (catalog->bounds[i] < 0 || catalog->bounds[i] > catalog->size)
            return 0;
    for (int64_t i = 0; i < catalog->size; i++) {
        const Collection *one = &catalog->collections[i];
        if (catalog->entries[i].number < 0 || catalog->entries[i].number >= catalog->size || one->payload_size < 0)
            return 0;
        if (one->tail < 0 || one->tail > MOST_TAIL || one->tail > one->payload_size)
            return 0;
    }
    return 1;
}

/* Tables of int64 (prefixes in order and their numbers; payload sizes, strata, tails and limits by number; bounds),
 * the number of bits of a prefix after its first ones, the header, and the limits -> a capsule. */
PyObject *new_catalog(PyObject *module, PyObject *arguments)
{
    const char *table[7], *header;
    Py_ssize_t bytes[7], header_bytes;
    int shift;
    long long most_bytes, first_time, end_of_times;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y#y#y#y#y#y#y#iy#LLL", &table[0], &bytes[0], &table[1], &bytes[1], &table[2],
                          &bytes[2], &table[3], &bytes[3], &table[4], &bytes[4], &table[5], &bytes[5], &table[6],
                          &bytes[6], &shift, &header, &header_bytes, &most_bytes, &first_time, &end_of_times))
        return NULL;
    int64_t size = bytes[0] / 8, num_bounds = 0;
    int fits = size > 0 && header_bytes == HEADER_BYTES && shift >= 32 && shift <= 63;
    for (int i = 0; fits && i < 6; i++)
        fits = bytes[i] == 8 * size;
    if (fits) {
        num_bounds = ((int64_t)1 << (64 - shift)) + 1;
        fits = bytes[6] == 8 * num_bounds;
    }
    Catalog *catalog = fits ? calloc(1, sizeof *catalog) : NULL;
    if (catalog != NULL) {
        *catalog = (Catalog){NULL, NULL, NULL, size, most_bytes, first_time, end_of_times, shift, {0}};
        memcpy(catalog->header, header, HEADER_BYTES);
        catalog->collections = malloc((size_t)size * sizeof *catalog->collections);
        catalog->entries = malloc((size_t)size * sizeof *catalog->entries);
        catalog->bounds = malloc((size_t)num_bounds * sizeof *catalog->bounds);
    }
    if (fits && (catalog == NULL || !catalog->collections || !catalog->entries || !catalog->bounds)) {
        free_catalog(catalog);
        return PyErr_NoMemory();
    }
    if (fits) {
        for (int64_t i = 0; i < size; i++) {
            catalog->entries[i] = (Entry){(uint64_t)integer_at(table[0], i), integer_at(table[1], i)};
            catalog->collections[i] = (Collection){integer_at(table[2], i), integer_at(table[3], i),
                                                   integer_at(table[4], i), integer_at(table[5], i)};
        }
        memcpy(catalog->bounds, table[6], (size_t)num_bounds * 8);
        fits = is_whole(catalog, num_bounds);
    }
    if (!fits) {
        free_catalog(catalog);
        PyErr_SetString(PyExc_ValueError, "tables of new_catalog must fit together, got others");
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(catalog, CATALOG, forget);
    if (capsule == NULL)
        free_catalog(catalog);
    return capsule;
}

/* ---------------------------------------------------------------- one message */

static int64_t number_of(const Catalog *catalog, uint64_t prefix)
{
    uint64_t bits = prefix >> catalog->shift;
    for (int64_t i = catalog->bounds[bits]; i < catalog->bounds[bits + 1]; i++)
        if (catalog->entries[i].prefix == prefix)
            return catalog->entries[i].number;
    return -1;
}

/* Whether a message is a report that the columns can hold. */
static int split(const Catalog *catalog, const uint8_t *at, int64_t length, Report *report)
{
    const uint8_t *end = at + length;
    int64_t cohort, size;
    if (length > catalog->most_bytes)
        return 0;
    if (length > HEADER_BYTES && at[0] == MARKER && memcmp(at, catalog->header, HEADER_BYTES) == 0)
        at += HEADER_BYTES;
    if (end - at <= FIXED_BYTES || at[0] != FORM)
        return 0;
    report->number = number_of(catalog, little_endian(at + 1, PREFIX_BYTES));
    if (report->number < 0)
        return 0;
    const Collection *of = &catalog->collections[report->number];
    report->id = at + 1 + PREFIX_BYTES;
    at += FIXED_BYTES;
    if (!read_long(&at, end, &report->time) || !read_long(&at, end, &cohort) || !read_long(&at, end, &size))
        return 0;
    if (size != end - at || size != of->payload_size)
        return 0;
    if (cohort < 0 || cohort >= of->strata || cohort >= MOST_COHORTS)
        return 0;
    if (report->time < catalog->first_time || report->time >= catalog->end_of_times)
        return 0;
    if (of->tail > 0 && (int64_t)little_endian(end - of->tail, of->tail) >= of->limit)
        return 0;
    report->cohort = (uint16_t)cohort;
    report->payload = at;
    return 1;
}

static void judge(const Catalog *catalog, Found *found, const char *content, int64_t length, int64_t message)
{
    Report *report = &found->reports[found->accepted];
    if (!split(catalog, (const uint8_t *)content, length, report)) {
        found->rest[found->num_rest++] = message;
        return;
    }
    report->message = message;
    found->places[report->number]++;
    found->accepted++;
    if (report->time < found->lowest)
        found->lowest = report->time;
    if (report->time > found->highest)
        found->highest = report->time;
}

/* ---------------------------------------------------------------- columns */

/* Writable columns of `rows` items each, as bytearrays. */
static uint8_t *column(PyObject **owner, int64_t rows, int64_t item)
{
    *owner = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(rows * item));
    return *owner == NULL ? NULL : (uint8_t *)PyByteArray_AsString(*owner);
}

/* Columns of the reports, sorted by the numbers of their collections; places[number] is that of its first report. */
static PyObject *columns_of(const Catalog *catalog, const Found *found)
{
    PyObject *made[COLUMNS] = {NULL}, *columns = NULL;
    int64_t rows = 0, bytes = 0, present = 0, *places = found->places;
    int64_t *offsets = malloc((size_t)(catalog->size + 1) * sizeof *offsets);
    if (offsets == NULL)
        return PyErr_NoMemory();
    for (int64_t i = 0; i < catalog->size; i++) {
        int64_t own = places[i];
        places[i] = rows;
        offsets[i] = bytes;
        rows += own;
        bytes += own * catalog->collections[i].payload_size;
        present += own > 0;
    }
    places[catalog->size] = rows;
    uint8_t *owners = column(&made[0], present, 8), *sizes = column(&made[1], present, 8);
    uint8_t *cohorts = column(&made[2], found->accepted, 2), *times = column(&made[3], found->accepted, 8);
    uint8_t *ids = column(&made[4], found->accepted, ID_BYTES), *payloads = column(&made[5], bytes, 1);
    uint8_t *messages = column(&made[6], found->accepted, 8), *left = column(&made[7], found->num_rest, 8);
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
        for (int64_t i = 0; i < found->accepted; i++) {
            const Report *report = &found->reports[i];
            int64_t row = places[report->number]++, size = catalog->collections[report->number].payload_size;
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
        memcpy(left, found->rest, (size_t)found->num_rest * 8);
        columns = Py_BuildValue("(NNNNNNNNLL)", made[0], made[1], made[2], made[3], made[4], made[5], made[6], made[7],
                                (long long)found->lowest, (long long)found->highest);
        memset(made, 0, sizeof made); /* the tuple has them now */
    }
    free(offsets);
    for (int i = 0; i < COLUMNS; i++)
        Py_XDECREF(made[i]);
    return columns;
}

/* Memory for what is found in n messages; 0 if there is none. */
static int prepare(const Catalog *catalog, Found *found, int64_t n)
{
    found->reports = malloc((size_t)(n + 1) * sizeof *found->reports);
    found->rest = malloc((size_t)(n + 1) * sizeof *found->rest);
    found->places = calloc((size_t)catalog->size + 1, sizeof *found->places);
    found->accepted = found->num_rest = 0;
    found->lowest = INT64_MAX;
    found->highest = INT64_MIN;
    return found->reports && found->rest && found->places;
}

static void release(Found *found)
{
    free(found->reports);
    free(found->rest);
    free(found->places);
}

/* ---------------------------------------------------------------- many messages */

/* Messages lie scattered in memory: ask for one before it is read. */
static void fetch(const void *message)
{
    PREFETCH(message);
    PREFETCH((const char *)message + 64);
}

static int judge_list(const Catalog *catalog, Found *found, PyObject *messages, Py_ssize_t n)
{
    char *content;
    Py_ssize_t length;
    for (Py_ssize_t i = 0; i < n && i < AHEAD; i++)
        fetch(PyList_GetItem(messages, i));
    for (Py_ssize_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            fetch(PyList_GetItem(messages, i + AHEAD));
        PyObject *message = PyList_GetItem(messages, i); /* borrowed; nothing here runs other Python code */
        if (message == NULL || PyBytes_AsStringAndSize(message, &content, &length) < 0)
            return 0;
        judge(catalog, found, content, length, i);
    }
    return 1;
}

/* A catalog and a list of messages -> columns. */
PyObject *split_reports(PyObject *module, PyObject *arguments)
{
    PyObject *capsule, *messages, *columns = NULL;
    Found found;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO!", &capsule, &PyList_Type, &messages))
        return NULL;
    const Catalog *catalog = PyCapsule_GetPointer(capsule, CATALOG);
    if (catalog == NULL)
        return NULL;
    Py_ssize_t n = PyList_Size(messages);
    if (!prepare(catalog, &found, n))
        PyErr_NoMemory();
    else if (judge_list(catalog, &found, messages, n))
        columns = columns_of(catalog, &found);
    release(&found);
    return columns;
}

/* A catalog, the bytes of messages, and the end of each as int64 -> columns. */
PyObject *split_joined(PyObject *module, PyObject *arguments)
{
    PyObject *capsule, *columns = NULL;
    const char *data, *ends;
    Py_ssize_t data_bytes, ends_bytes;
    Found found;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Oy#y#", &capsule, &data, &data_bytes, &ends, &ends_bytes))
        return NULL;
    const Catalog *catalog = PyCapsule_GetPointer(capsule, CATALOG);
    if (catalog == NULL)
        return NULL;
    int64_t n = ends_bytes / 8, start = 0;
    if (!prepare(catalog, &found, n)) {
        PyErr_NoMemory();
        goto done;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t end = integer_at(ends, i);
        if (end < start || end > data_bytes) {
            PyErr_SetString(PyExc_ValueError, "ends of split_joined must increase up to the end of the data, got others");
            goto done;
        }
        judge(catalog, &found, data + start, end - start, i);
        start = end;
    }
    columns = columns_of(catalog, &found);
done:
    release(&found);
    return columns;
}
