package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hoplag/hoplag/bench/experiment"
	"github.com/hoplag/hoplag/bench/plot"
)

// written is the page of three experiments: one with a result, one without,
// and one that cannot be run.
func written(t *testing.T) string {
	t.Helper()
	run := func(run *experiment.Run) { run.Try(errors.New("not called")) }
	all := []experiment.Experiment{
		{Name: "coin-1", Group: "Coins & co", Title: "Heads <1>", Claim: "Half of \"all\" tosses.", Measure: run},
		{Name: "coin-2", Group: "Coins & co", Title: "Two", Claim: "A quarter.", Measure: run},
		{Name: "ours-1", Group: "Ours: coins", Title: "Edges", Claim: "Which?", Measure: run},
		{Name: "card", Group: "Cards", Title: "Aces", Claim: "One in 13."},
	}
	dir := t.TempDir()
	err := experiment.Save(dir, &all[0], &experiment.Run{Seed: 3}, &experiment.Result{
		Claims: []experiment.Claim{
			{What: "share <x>", Paper: "0.5", Ours: "0.501", Verdict: experiment.AsGood, Headline: true},
			{What: "edge", Paper: "never", Ours: "once", Verdict: experiment.DoesNotHold},
			{What: "edge again", Paper: "never", Ours: "twice", Verdict: experiment.DoesNotHold},
		},
		Figures: []plot.Figure{{Name: "a", Title: "F & G", Caption: "A <caption>.",
			Series: []plot.Series{{Name: "s", X: []float64{1}, Y: []float64{2}}}}},
		Tables: []experiment.Table{{Title: "Table", Columns: []string{"a", "b"}, Rows: [][]string{{"left", "right"}}}},
		Notes:  []string{"A note & more."},
		Config: map[string]string{"law": "</pre><script>"},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "report.html")
	if err := Write(file, dir, all); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPage(t *testing.T) {
	html := written(t)
	for _, want := range []string{
		"<h2>Coins &amp; co</h2>", "Heads &lt;1&gt;", "Half of &#34;all&#34; tosses.",
		"share &lt;x&gt;", "0.501", "● as good", "✕ does not hold",
		`<figcaption>A &lt;caption&gt;.</figcaption>`, "<svg xmlns", "F &amp; G",
		`<td class="number">right</td>`, "A note &amp; more.",
		"go run ./bench -seed 3 coin-1", "go run ./bench coin-2", "Not yet measured.",
		`<td class="number"><span class="verdict does-not-hold">2</span></td>`,
		`href="#coin-1"`, `id="coin-1"`, `href="#card"`, `id="card"`,
		"prefers-color-scheme", "@media print",
		`<p class="big">0.501</p>` + "\n<p>the paper: 0.5</p>", `<a href="#coin-1" aria-label="Heads &lt;1&gt;"><svg`,
		`id="first-coin-1-a-title"`,
		`● 1 as good`, "what 1 of its experiments", "<b>The paper:</b> A quarter.", "<b>Asked:</b> Which?",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(html, "<script") || strings.Contains(html, "ZgotmplZ") {
		t.Error("the page has something that was not escaped, or that the template refused")
	}
}

// The page loads nothing: every reference is to itself.
func TestSelfContained(t *testing.T) {
	html := written(t)
	for _, m := range regexp.MustCompile(`(?:href|src|url)\s*[=(]\s*["']?([^"')>]*)`).FindAllStringSubmatch(html, -1) {
		if !strings.HasPrefix(m[1], "#") {
			t.Errorf("the page refers to %q", m[1])
		}
	}
	if strings.Contains(html, "@import") || strings.Contains(html, "<link") {
		t.Error("the page loads a style sheet")
	}
}

// Tags nest, and no two elements share an id.
func TestWellFormed(t *testing.T) {
	html := written(t)
	d := xml.NewDecoder(strings.NewReader(html))
	d.Entity = xml.HTMLEntity
	ids := map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range element.Attr {
			if a.Name.Local != "id" {
				continue
			}
			if ids[a.Value] {
				t.Errorf("id %q is there twice", a.Value)
			}
			ids[a.Value] = true
		}
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	all := []experiment.Experiment{{Name: "coin-1"}}
	result := &experiment.Result{Figures: []plot.Figure{{Name: "a"}}}
	if err := experiment.Save(dir, &all[0], &experiment.Run{}, result); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "coin-1-a.svg")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "report.html")
	if err := Write(file, dir, all); err == nil || !strings.Contains(err.Error(), "coin-1-a.svg") {
		t.Errorf("error %v without the picture", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "coin-1.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, dir, all); err == nil || !strings.Contains(err.Error(), "coin-1.json") {
		t.Errorf("error %v of a broken record", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a page was written all the same")
	}
}
