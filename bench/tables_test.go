package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
)

const spoken = `goos: linux
goarch: amd64
pkg: github.com/hoplag/hoplag/bench
cpu: Some CPU: fast
BenchmarkFloor/1024cells-2         	1000	         0.500 ns/op	       0 B/op	       0 allocs/op
BenchmarkLDA/two|banks-2           	1000	         1.00 ns/op	      1000 Mpkt/s	         2.00 x-floor	       0 B/op	       0 allocs/op
BenchmarkLDA/two|banks-2           	1000	         9.00 ns/op	       111 Mpkt/s	         9.00 x-floor	       0 B/op	       0 allocs/op
BenchmarkLDA/two|banks-2           	1000	         1.20 ns/op	       833 Mpkt/s	         2.20 x-floor	       0 B/op	       0 allocs/op
PASS
ok  	github.com/hoplag/hoplag/bench	1.0s
`

func TestRewriteTables(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := commanded(coins(), "-out", dir, "coin-1"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "speed.txt"), []byte(spoken), 0o644); err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(dir, "README.md")
	old := "# Title\n\n<!-- bench:coin-1 -->\nold\n\nold\n<!-- /bench -->\nbetween\n" +
		"<!-- bench:coin-1/t -->\n<!-- /bench -->\n<!-- bench:headlines coin -->\n<!-- /bench -->\n<!-- bench:speed LDA -->\n<!-- /bench -->\n" +
		"```\n<!-- bench:an-example -->\n```\nthe end, no newline"
	if err := os.WriteFile(readme, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		stdout, _, err := commanded(coins(), "-out", dir, "-readme", readme)
		if err != nil {
			t.Fatal(err)
		}
		if stdout != "coin-1\ncoin-1/t\nheadlines coin\nspeed LDA\n" {
			t.Errorf("it prints %q", stdout)
		}
		got, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		source := "\n<details><summary><sub><code>go run ./bench -seed 1 coin-1</code>: seed 1, " +
			"configuration</sub></summary>\n\n```json\n{\"n\":100}\n```\n\n</details>\n<!-- /bench -->\n"
		want := "# Title\n\n<!-- bench:coin-1 -->\n" +
			"| what | paper | measured | verdict |\n| --- | --- | --- | --- |\n| heads | 0.5 | Y1 | as good |\n" + source +
			"between\n<!-- bench:coin-1/t -->\n| x | y |\n| --- | ---: |\n| first | Y0 |\n" + source +
			"<!-- bench:headlines coin -->\n| experiment | what | paper | measured | verdict |\n| --- | --- | --- | --- | --- |\n" +
			"| `coin-1` | heads | 0.5 | Y1 | as good |\n" +
			"\n<sub>`go run ./bench -seed 1 -all`: seed 1; each configuration is in `out/EXPERIMENT.json`</sub>\n<!-- /bench -->\n" +
			"<!-- bench:speed LDA -->\n| benchmark | ns/op | Mpkt/s | x-floor | allocs/op |\n| --- | ---: | ---: | ---: | ---: |\n" +
			"| LDA/two\\|banks | 1.2 | 833 | 2.2 | 0 |\n" +
			"\n<sub>`go test -run '^$' -bench . -benchtime 0.5s ./bench | tee out/speed.txt`, on Some CPU: fast, " +
			"linux/amd64</sub>\n<!-- /bench -->\n" +
			"```\n<!-- bench:an-example -->\n```\nthe end, no newline"
		want = strings.NewReplacer("Y0", plotted(t, dir, 0), "Y1", plotted(t, dir, 1)).Replace(want)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// What a quick run finds has no verdicts, nor a column for them.
func TestQuickTables(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := commanded(coins(), "-out", dir, "-quick", "coin-1"); err != nil {
		t.Fatal(err)
	}
	text, _, err := replaceTables(coins(), "<!-- bench:coin-1 -->\n<!-- /bench -->\n<!-- bench:headlines coin -->\n<!-- /bench -->\n", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| what | paper | measured |\n", "| experiment | what | paper | measured |\n", "-quick -all"} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	for name, data := range contents(t, dir) {
		if strings.Contains(data+text, "as good</td>") || strings.Contains(data+text, "as good |") || strings.Contains(data, `"Verdict"`) {
			t.Errorf("%s has a verdict of a quick run", name)
		}
	}
}

// plotted is the y of a row of coin-1's CSV, to three digits, as in the table.
func plotted(t *testing.T, dir string, row int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "coin-1.csv"))
	if err != nil {
		t.Fatal(err)
	}
	const comments, header = 4, 1
	y := strings.Split(strings.Split(string(data), "\n")[comments+header+row], ",")[3]
	v, err := strconv.ParseFloat(y, 64)
	if err != nil {
		t.Fatal(err)
	}
	return experiment.Number(v)
}

// TestPictures has a figure copied to where the text shows it.
func TestPictures(t *testing.T) {
	dir := t.TempDir()
	named := coins()[:1]
	toss := named[0].Measure
	named[0].Measure = func(run *experiment.Run) {
		toss(run)
		run.Figure(plot.Figure{Name: "heads", Title: "Heads", Caption: "Fair."})
	}
	if _, _, err := commanded(named, "-out", dir, "coin-1"); err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(readme, []byte("<!-- bench:coin-1/heads -->\n<!-- /bench -->\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := commanded(named, "-out", dir, "-readme", readme); err != nil {
		t.Fatal(err)
	}
	text := read(t, readme)
	if want := "![Heads](bench/pictures/coin-1-heads.svg)\n\nFair.\n"; !strings.Contains(text, want) {
		t.Errorf("the text is %q, want %q in it", text, want)
	}
	if got, want := read(t, filepath.Join(filepath.Dir(readme), "bench/pictures/coin-1-heads.svg")),
		read(t, filepath.Join(dir, "coin-1-heads.svg")); got != want {
		t.Error("the picture is not the figure")
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRewriteTablesRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := commanded(coins(), "-out", dir, "coin-1"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "peers.txt"), []byte("BenchmarkX-2 1 fast ns/op\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"no marker\n":                                              "has no marker",
		"<!-- bench:coin-1 -->\n":                                  "has no <!-- /bench -->",
		"<!-- bench:coin-1 -->\n<!-- bench:die -->\n":              "begins before",
		"<!-- bench:coin-1/no -->\n<!-- /bench -->\n":              `has no table or figure "no"`,
		"<!-- bench:die -->\n<!-- /bench -->\n":                    "no result of die",
		"<!-- bench:Die -->\n<!-- /bench -->\n":                    "want <!-- bench:NAME -->",
		"<!-- bench:coin-1 LDA -->\n<!-- /bench -->\n":             "only headlines, speed and peers",
		"<!-- bench:speed -->\n<!-- /bench -->\n":                  "go test -run",
		"<!-- bench:speed/t -->\n<!-- /bench -->\n":                "no tables by name",
		"<!-- bench:peers [ -->\n<!-- /bench -->\n":                "missing closing",
		"<!-- bench:peers X -->\n<!-- /bench -->\n":                "invalid syntax",
		"<!-- bench:coin-1 -->\n<!-- /bench -->\n<!-- bench:x -->": "no result of x",
	} {
		readme := filepath.Join(dir, "README.md")
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := commanded(coins(), "-out", dir, "-readme", readme); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
		if after, err := os.ReadFile(readme); err != nil || string(after) != text {
			t.Errorf("%q became %q (%v)", text, after, err)
		}
	}
}
