//go:build race

package hoplag

func init() { raceEnabled = true }
