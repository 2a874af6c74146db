// Peers compares hoplag with what people use today to measure the delay of packets within a process: match
// every packet that leaves with its arrival, then record the delay. It is a module of its own.
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
	text := fill(string(must(os.ReadFile("README.md"))), string(must(os.ReadFile(os.Args[1]))), runtime.Version())
	if err := os.WriteFile("README.md", []byte(text), 0o644); err != nil {
		panic(err)
	}
}
