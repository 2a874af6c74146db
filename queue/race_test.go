//go:build race

package queue

func init() { racing = true }
