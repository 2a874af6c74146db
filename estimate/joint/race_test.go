//go:build race

package joint

func init() { racing = true }
