//go:build race

package hashing_test

func init() { racing = true }
