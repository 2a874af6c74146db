package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/lda"
)

// pageReport is a report of a second in which 1,000 packets took 25 ms each way.
func pageReport(number int64, class string) hoplag.Report {
	d := hoplag.Delay{
		Result:         lda.Result{Delay: estimate.Delay{Mean: 25e6, StdDev: 1e6, N: 990}, Sent: 1000, Received: 990, Lost: 10},
		MeanInterval95: estimate.Interval{Low: 24e6, High: 26e6, Confidence: 0.95},
		Quantiles:      []lda.Quantile{{P: 0.99, Delay: 31e6, Samples: 500}},
	}
	return hoplag.Report{
		Number: number, Start: time.Unix(1e9+number, 0).UTC(), Length: time.Second, From: "here", To: "there", Class: class,
		Forth: d, Back: d, Clock: hoplag.Clock{Known: true, Offset: 3e6},
	}
}

// A browser shows what the reports say: numbers, curves, classes, and no error.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := newView()
	defer v.serve(l).Close()
	for i := range int64(60) {
		v.add(pageReport(i, ""))
	}
	for _, class := range classNames {
		v.addClass(pageReport(60, class))
	}
	var page string
	for range 3 { // a slow machine may not have drawn everything at first
		if page, err = draw(t, browser, "http://"+l.Addr().String()+"/"); err != nil {
			t.Skipf("the browser does not run here: %v", err)
		}
		if strings.Contains(page, "<td>udp forth</td>") {
			break
		}
	}
	for _, want := range []string{
		"here → there</h1>", `<b class="forth">25 ms</b>`, "1.00 %", "24 ms – 26 ms", "31 ms", "<td>udp forth</td>", "<td>tcp back</td>",
		`class="line forth"`, `class="band back"`, "clock offset",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	shown, _, _ := strings.Cut(page, "<script>")
	for _, bad := range []string{"NaN", "undefined", "cannot be reached"} {
		if strings.Contains(shown, bad) {
			t.Errorf("%q on the page", bad)
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
