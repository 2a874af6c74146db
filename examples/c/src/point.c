/*
 * An LDA point in C: what SPEC.md says, for those who write one in another
 * language. It reads frames of Ethernet from standard input, each as
 *
 *	time 8 bytes, length 4 bytes, big-endian; then the frame
 *
 * and writes the encoding of the aggregator to standard output. With -v it
 * tells of each packet on standard error: its identity, its cell and what the
 * cell then holds. Frames that carry no plain IP are passed over.
 *
 *	cc -O2 -o point point.c && ./point SEED [-v] < frames > synopsis
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The configuration: lda.DefaultConfig. */
static const struct { uint32_t rows; unsigned shift; } banks[] = {{2048, 0}, {1024, 4}, {1024, 8}, {1024, 12}};
enum { BANKS = 4, CELLS = 2048 + 3 * 1024, SUM_BITS = 64, DIGEST_BITS = 16 };

struct cell { uint64_t sum, tally; }; /* the tally: digest in the high half, count in the low one */
static struct cell cells[CELLS];
static uint64_t unsampled;

/* Big-endian numbers, in and out; little-endian words for the digest. */
static uint64_t be(const uint8_t *b, int n) { uint64_t v = 0; while (n--) v = v << 8 | *b++; return v; }
static uint64_t le(const uint8_t *b) { uint64_t v = 0; for (int i = 7; i >= 0; i--) v = v << 8 | b[i]; return v; }
static uint8_t *put(uint8_t *b, uint64_t v, int n) { while (n--) *b++ = (uint8_t)(v >> 8 * n); return b; }

/* The digest of a packet's 72 invariant bytes (SPEC.md, Identity). */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;
	return (uint64_t)(p >> 64) ^ (uint64_t)p;
}

static uint64_t rotate32(uint64_t x) { return x << 32 | x >> 32; }

static uint64_t digest(uint64_t seed, const uint8_t b[72])
{
	seed ^= 0x6a09e667f3bcc909;
	if ((uint32_t)((seed >> 16) + 1) <= 1)
		seed ^= 0x510e527fade682d1;
	unsigned __int128 p = (unsigned __int128)seed * (0xbb67ae8584caa73b + 2 * 72);
	uint64_t y = (uint64_t)(p >> 64), s = y ^ (uint64_t)p, x;
	x = mix(le(b) ^ s, le(b + 8) ^ y);
	y = mix(le(b + 16) ^ s, le(b + 24) ^ rotate32(y));
	for (int i = 32; i + 16 < 72; i += 16)
		x = mix(le(b + i) ^ s, le(b + i + 8) ^ x);
	return mix(mix(le(b + 56) ^ x, le(b + 64) ^ y), 0x3c6ef372fe94f82b);
}

/* The 72 bytes of a frame, or 0 if it carries no plain IP. */
static int invariant(const uint8_t *f, size_t n, uint8_t out[72])
{
	size_t at = 12;
	while (n >= at + 6 && (be(f + at, 2) == 0x8100 || be(f + at, 2) == 0x88a8))
		at += 4;
	if (n < at + 2)
		return 0;
	uint64_t type = be(f + at, 2);
	const uint8_t *ip = f + at + 2, *data;
	long left = (long)(n - at - 2), length, later = 0;
	memset(out, 0, 72);
	if (type == 0x0800 && left >= 20 && ip[0] >> 4 == 4) {
		long size = (ip[0] & 15) * 4, total = (long)be(ip + 2, 2);
		if (size < 20 || total < size || size > left)
			return 0;
		out[10] = out[11] = out[26] = out[27] = 0xff;
		memcpy(out + 12, ip + 12, 4);
		memcpy(out + 28, ip + 16, 4);
		memcpy(out + 58, ip + 4, 2);
		unsigned flags = (unsigned)be(ip + 6, 2);
		put(out + 60, (flags << 3 & 0xffff) | (flags >> 13 & 1), 2);
		put(out + 62, (uint64_t)total, 2);
		out[64] = ip[9];
		later = (flags << 3 & 0xffff) != 0;
		data = ip + size;
		left -= size;
		length = total - size;
	} else if (type == 0x86dd && left >= 40 && ip[0] >> 4 == 6) {
		length = (long)be(ip + 4, 2);
		if (length == 0)
			return 0;
		memcpy(out, ip + 8, 32);
		memcpy(out + 62, ip + 4, 2);
		out[64] = ip[6];
		if (ip[6] == 0 || ip[6] == 43 || ip[6] == 44 || ip[6] == 51 || ip[6] == 60)
			return 0; /* extension headers: see SPEC.md */
		data = ip + 40;
		left -= 40;
	} else {
		return 0;
	}
	if (left > length)
		left = length;
	long head = 24;
	if (out[64] == 6 && !later && left >= 20 && (data[12] >> 4) * 4 > 20) { /* TCP without its options */
		memcpy(out + 32, data, 20);
		long size = (data[12] >> 4) * 4 < left ? (data[12] >> 4) * 4 : left;
		head = left - size < 4 ? left - size : 4;
		memcpy(out + 52, data + size, (size_t)head);
		return 1;
	}
	memcpy(out + 32, data, (size_t)(left < head ? left : head));
	return 1;
}

/* One packet at one time; returns its cell, or -1 if no bank samples it. */
static int update(uint64_t p, uint64_t t)
{
	unsigned zeros = p ? (unsigned)__builtin_clzll(p | 1) : 63;
	int base = 0, at = -1;
	for (int j = 0; j < BANKS; base += (int)banks[j++].rows)
		if (zeros >= banks[j].shift)
			at = base + (int)(p & (banks[j].rows - 1));
	if (at < 0) {
		unsampled++;
		return -1;
	}
	cells[at].sum += t;
	cells[at].tally += (p >> 32 << 32) | 1;
	return at;
}

static uint32_t crc32c(const uint8_t *b, size_t n)
{
	uint32_t crc = ~0u;
	while (n--) {
		crc ^= *b++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (0x82f63b78 & -(crc & 1));
	}
	return ~crc;
}

/* The encoding of the aggregator (SPEC.md, LDA). */
static size_t encode(uint8_t *out, uint64_t identity)
{
	uint8_t *b = out;
	memcpy(b, "HLDA\x02", 5);
	b = put(b + 5, identity, 8);
	*b++ = SUM_BITS;
	*b++ = DIGEST_BITS;
	*b++ = BANKS;
	for (int j = 0; j < BANKS; j++) {
		*b++ = (uint8_t)__builtin_ctz(banks[j].rows);
		*b++ = (uint8_t)banks[j].shift;
	}
	b = put(b, unsampled, 8);
	for (int i = 0; i < CELLS; i++) {
		b = put(b, cells[i].tally, 4);
		b = put(b, cells[i].tally >> 32, DIGEST_BITS / 8);
		b = put(b, cells[i].sum, SUM_BITS / 8);
	}
	return (size_t)(put(b, crc32c(out, (size_t)(b - out)), 4) - out);
}

int main(int argc, char **argv)
{
	static uint8_t frame[1 << 18], out[1 << 18];
	uint8_t head[12], bytes[72];
	char *end = "no number";
	uint64_t seed = argc < 2 ? 0 : strtoull(argv[1], &end, 0);
	if (argc < 2 || end == argv[1] || *end) {
		fprintf(stderr, "usage: point SEED [-v] < frames > synopsis\n");
		return 2;
	}
	int damaged = 0;
	while (fread(head, 12, 1, stdin) == 1) {
		uint64_t t = be(head, 8), n = be(head + 8, 4);
		if (n > sizeof frame || fread(frame, 1, n, stdin) != n) {
			fprintf(stderr, "point: a frame of %llu bytes is cut off, or longer than %zu\n", (unsigned long long)n, sizeof frame);
			damaged = 1; /* what came before it counts */
			break;
		}
		if (!invariant(frame, n, bytes))
			continue;
		uint64_t p = digest(seed, bytes);
		int at = update(p, t);
		if (argc > 2)
			fprintf(stderr, "%016llx %d %016llx %016llx\n", (unsigned long long)p, at,
				at < 0 ? 0ull : (unsigned long long)cells[at].sum, at < 0 ? 0ull : (unsigned long long)cells[at].tally);
	}
	/* The identity is a fingerprint of the seed, by SHA-256: it comes from outside here. */
	const char *identity = getenv("IDENTITY");
	size_t size = encode(out, identity ? strtoull(identity, NULL, 0) : 0);
	return fwrite(out, 1, size, stdout) != size || fflush(stdout) || damaged;
}
