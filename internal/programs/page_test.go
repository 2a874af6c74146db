package programs

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/estimate/clock"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/flows"
)

// pageReport is a report of a second in which 1,000 packets took 25 ms each way.
func pageReport(number int64) hoplag.Report {
	mean, offset := estimate.Interval{Low: 24e6, High: 26e6, Confidence: 0.95}, estimate.Interval{Low: 2e6, High: 5e6, Confidence: 0.95}
	d := hoplag.Traffic{
		Mean: 25e6, Sent: 1000, Received: 990, Lost: 10, MeanInterval95: mean,
		StdDev: 1e6, Quantiles: []lda.Quantile{{P: 0.99, Delay: 31e6}},
		Flows: []flows.Delay{{Flow: 7, Mean: 28e6}},
	}
	return hoplag.Report{
		Number: number, Start: time.Unix(1e9+number, 0).UTC(), Length: time.Second, From: "here", To: "there",
		Forth: d, Back: d,
		Clock: clock.Reading{Offset: 3e6, Certain: offset, Likely: offset},
	}
}

// idleReport is a report of a second in which nothing passed.
func idleReport(number int64) hoplag.Report {
	r := pageReport(number)
	r.Forth, r.Clock, r.ClockErr = hoplag.Traffic{Err: hoplag.ErrIdle}, clock.Reading{}, hoplag.ErrSilent
	r.Back = r.Forth
	return r
}

func serve(t *testing.T, v *View) string {
	t.Helper()
	var said string
	stop, err := v.Serve("127.0.0.1:0", func(format string, args ...any) { said = fmt.Sprintf(format, args...) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return regexp.MustCompile(`http://[^/]+/`).FindString(said)
}

// A browser shows what the reports say: numbers, curves, and no error. One wild interval does not flatten the
// curves, values at the axes are round, text is legible on a phone too, and idle seconds do not hide what is
// known.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium")
	}
	v := &View{Drops: func() map[string]uint64 { return map[string]uint64{"clients": 12345} }}
	url := serve(t, v)
	for i := range int64(60) {
		r := pageReport(i)
		if i == 30 {
			r.Forth.MeanInterval95.High = 1e9
			r.Back.MeanInterval95.High = math.Inf(1)
		}
		v.Add(r)
	}
	v.Add(idleReport(60))
	last := idleReport(61)
	last.Forth.Flows = pageReport(61).Forth.Flows
	v.Add(last, "tcp 10.0.0.1:80 10.0.0.2:1234")
	var page string
	for range 3 { // a slow machine may not have drawn everything at first
		if page, err = draw(t, browser, url); err != nil {
			t.Skipf("the browser does not run here: %v", err)
		}
		if strings.Contains(page, "mean delay forth, 2 s ago") {
			break
		}
	}
	for _, want := range []string{
		"here → there</h1>", `<b class="forth">25 ms</b>`, "mean delay forth, 2 s ago", "1.00 %",
		`class="line forth"`, `class="band back"`, "clock offset, 2 ms – 5 ms", "12,345", "dropped here: clients", "tcp 10.0.0.1:80",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	shown, _, _ := strings.Cut(page, "<script>")
	for _, bad := range []string{"NaN", "undefined", "cannot be reached", ">–<", "unknown", "500 ms", "1 s<"} {
		if strings.Contains(shown, bad) {
			t.Errorf("%q on the page", bad)
		}
	}
	chart, _, _ := strings.Cut(shown[strings.Index(shown, `id="delay"`):], `id="loss"`)
	for _, want := range []string{">0 ns<", ">10 ms<", ">20 ms<", ">30 ms<"} {
		if !strings.Contains(chart, want) {
			t.Errorf("no %q at the axis of delays", want)
		}
	}
	// Text in a picture that is scaled down shrinks with it.
	for _, svg := range regexp.MustCompile(`<svg[^>]*>`).FindAllString(shown, -1) {
		width := regexp.MustCompile(`width="(\d+)"`).FindStringSubmatch(svg)
		if width == nil || strings.Contains(svg, "viewBox") {
			t.Errorf("%s is scaled", svg)
		} else if w, _ := strconv.Atoi(width[1]); w > 500 { // headless windows have 500 pixels at least
			t.Errorf("%s is wider than the screen", svg)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// draw returns what a browser makes of a page, as HTML.
func draw(t *testing.T, browser, url string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=390,800",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=4000", "--dump-dom", url)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	return string(out), err
}

// get returns what is at a URL.
func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, response.StatusCode, err)
	}
	return string(body)
}

// The page needs nothing from outside, asks only for what is new, and stays small after an hour; the metrics
// say how old they are and what was dropped here.
func TestView(t *testing.T) {
	v := &View{Drops: func() map[string]uint64 { return map[string]uint64{"clients": 3} }}
	url := serve(t, v)
	for i := range int64(kept + 5) {
		v.Add(pageReport(i))
	}
	for path, want := range map[string]string{
		"": "prefers-color-scheme:dark", "reports": `"From":"here"`, "reports?after=3603": `"From":"here"`,
	} {
		if body := get(t, url+path); !strings.Contains(body, want) {
			t.Errorf("%s: %.300s; want %s", path, body, want)
		}
	}
	for _, outside := range []string{"http://", "https://", "src="} {
		if strings.Contains(strings.ReplaceAll(get(t, url), "http://www.w3.org/2000/svg", ""), outside) {
			t.Errorf("the page has something from outside: %s", outside)
		}
	}
	if all, new := get(t, url+"reports"), get(t, url+"reports?after=3603"); strings.Count(all, `"From"`) != kept ||
		strings.Count(new, `"From"`) != 1 || strings.Count(all, `"Flow":`) != 2 {
		t.Errorf("%d reports, %d of them new", strings.Count(all, `"From"`), strings.Count(new, `"From"`))
	}
	time.Sleep(20 * time.Millisecond)
	metrics := get(t, url+"metrics")
	for _, want := range []string{
		`hoplag_reports_total{from="here",to="there"} 3605`,
		`hoplag_own_drops_total{at="clients"} 3`, `hoplag_clock_offset_low_seconds{from="here",to="there"} 0.002`,
		`hoplag_clock_offset_high_seconds{from="here",to="there"} 0.005`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	age := regexp.MustCompile(`hoplag_report_age_seconds\{from="here",to="there"\} (\S+)`).FindStringSubmatch(metrics)
	if age == nil {
		t.Fatal("no age of the report")
	}
	if seconds, err := strconv.ParseFloat(age[1], 64); err != nil || seconds < 0.02 || seconds > 600 {
		t.Errorf("20 ms after it came, the latest report is %s s old", age[1])
	}
}
