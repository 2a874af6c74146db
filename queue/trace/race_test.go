//go:build race

package trace

func init() { racing = true }
