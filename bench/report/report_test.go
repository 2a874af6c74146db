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

// written is the page of three experiments, of which one has a result.
func written(t *testing.T) string {
	t.Helper()
	all := []experiment.Experiment{
		{Name: "coin-1", Group: "Coins & co", Title: "Heads <1>", Claim: "Half of \"all\" tosses."},
		{Name: "coin-2", Group: "Coins & co", Title: "Two", Claim: "A quarter."},
		{Name: "ours-1", Group: "Ours: coins", Title: "Edges", Claim: "Which?"},
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
		"go run ./bench -seed 3 coin-1", "go run ./bench coin-2",
		`<td class="number"><span class="verdict does-not-hold">2</span></td>`,
		`href="#coin-1"`, `id="coin-1"`, "prefers-color-scheme",
		`<p class="big">0.501</p>` + "\n<p>the paper: 0.5</p>", `<a href="#coin-1" aria-label="Heads &lt;1&gt;"><svg`,
		`id="first-coin-1-a-title"`,
		`● 1 as good`, "what 1 of its experiments", "<b>The paper:</b> A quarter.", "<b>Asked:</b> Which?",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<script", "ZgotmplZ", "@import", "<link"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page has %q: something was not escaped, or is loaded", bad)
		}
	}
	for _, m := range regexp.MustCompile(`(?:href|src|url)\s*[=(]\s*["']?([^"')>]*)`).FindAllStringSubmatch(html, -1) {
		if !strings.HasPrefix(m[1], "#") {
			t.Errorf("the page refers to %q: it should be one file", m[1])
		}
	}
}

// Tags nest, and no two elements share an id.
func TestWellFormed(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(written(t)))
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
			if a.Name.Local == "id" && ids[a.Value] {
				t.Errorf("id %q is there twice", a.Value)
			}
			ids[a.Value] = ids[a.Value] || a.Name.Local == "id"
		}
	}
}

// Without a picture, or with a broken record, there is an error and no page.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	all := []experiment.Experiment{{Name: "coin-1"}}
	for record, want := range map[string]string{
		"{": "coin-1.json",
		`{"Name":"coin-1","Figures":[{"Name":"a","File":"coin-1-a.svg"}]}`: "coin-1-a.svg",
	} {
		if err := os.WriteFile(filepath.Join(dir, "coin-1.json"), []byte(record), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Write(file, dir, all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v of the record %s, want one that names %s", err, record, want)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a page was written all the same")
	}
}
