//go:build race

package colate

func init() { race = true }
