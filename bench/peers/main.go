// Peers compares hoplag with what people use today to measure the delay of
// packets within a process: match every packet that leaves with its arrival,
// then record the delay. It is a separate module, so that the library does not
// depend on any of these.
//
//	go test -run '^$' -bench . -benchtime 0.5s . | tee ../../out/peers.txt
//	go run . ../../out/peers.txt    # rewrite the tables in README.md from that
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peers FILE, the saved output of go test -bench .")
		os.Exit(2)
	}
	if err := rewrite("README.md", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// rewrite replaces the tables of readme with those of the benchmarks in
// output.
func rewrite(readme, output string) error {
	saved, err := os.ReadFile(output)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	run, err := parse(string(saved))
	if err != nil {
		return fmt.Errorf("%s: %w", output, err)
	}
	replaced, err := fill(string(text), run, runtime.Version())
	if err != nil {
		return fmt.Errorf("%s: %w", readme, err)
	}
	return os.WriteFile(readme, []byte(replaced), 0o644)
}
