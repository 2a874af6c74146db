package main

import (
	"testing"
)

const output = `goos: linux
goarch: amd64
pkg: github.com/hoplag/hoplag/bench/peers
cpu: Some Processor
BenchmarkCoin/heads/1K-8   	 100	  2.500 ns/op	  400.0 Mpkt/s	  3.25 x-floor	  0 B/op	  0 allocs/op
BenchmarkCoin/heads/1M-8   	 100	  250.0 ns/op	  4.000 Mpkt/s	  1234.5 x-floor
BenchmarkCoin/tails-and-edge/1K-8 	 100	  1.000 ns/op	  0.0123 x-floor
BenchmarkMemory/coin-8 	 1	 16.00 MB-kept
PASS
ok  	github.com/hoplag/hoplag/bench/peers	18.815s
`

func TestTables(t *testing.T) {
	const text = "before\n<!-- system -->\nold\n<!-- end -->\n" +
		"<!-- table Coin x-floor -->\n<!-- end -->\nbetween\n<!-- table Memory MB-kept ns/op -->\n| old |\n\n<!-- end -->\nafter\n"
	want := `before
<!-- system -->

Measured on linux, amd64, Some Processor, go1.99.

<!-- end -->
<!-- table Coin x-floor -->

|  | 1K x-floor | 1M x-floor |
| --- | ---: | ---: |
| ` + "`heads`" + ` | 3.25 | 1234 |
| ` + "`tails-and-edge`" + ` | 0.0123 | – |

<!-- end -->
between
<!-- table Memory MB-kept ns/op -->

|  | MB-kept | ns/op |
| --- | ---: | ---: |
| ` + "`coin`" + ` | 16.0 | – |

<!-- end -->
after
`
	got := fill(text, output, "go1.99")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := fill(got, output, "go1.99"); again != got {
		t.Errorf("filled again:\n%s", again)
	}
}
