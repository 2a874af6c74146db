//go:build race

package estimate

func init() { racing = true }
