// Package families has the hash that network adapters compute, for points that take it from them. Use those of
// package hashing unless an adapter already computes this one.
//
// Pass a hash of fewer than 64 bits, such as this one or a CRC of package hash/crc32, through [hashing.Word]
// before you derive a row, a bank or a sampling decision from it.
//
// The hashes are the same on every machine and in every release. They are read-only after construction; any
// number of goroutines may share one. Only the constructor allocates.
//
// It does not resist packets crafted by someone who sees its effects. It is linear, as all CRCs are: a few
// hashes, or which packets share a cell, give the key away.
package families
