/* Reading of Avro's integers, and the bytes of a single report (docs/wire.md). Every read is bounded by an end. */
#ifndef ULDP_READING_H
#define ULDP_READING_H

#include <stdint.h>

enum { FORM = 0x02, PREFIX_BYTES = 8, ID_BYTES = 16, FIXED_BYTES = 1 + PREFIX_BYTES + ID_BYTES };

static inline uint64_t little_endian(const uint8_t *bytes, int64_t size)
{
    uint64_t value = 0;
    for (int64_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* One canonical variable-length integer; 0 if there is none before `end`. */
static inline int read_long(const uint8_t **at, const uint8_t *end, int64_t *value)
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

#endif
