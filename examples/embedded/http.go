package embedded

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/hoplag/hoplag"
)

// A Transport measures requests on their way to a [Handler], and responses back: give it to
// httputil.ReverseProxy or http.Client. The id is the trace context that requests carry already (W3C), as it is
// on this hop. Requests without one are not measured.
type Transport struct {
	http.RoundTripper
	Point *hoplag.Point
}

// RoundTrip reports the request when it leaves and the response when it comes back.
func (t Transport) RoundTrip(q *http.Request) (*http.Response, error) {
	id := q.Header.Get("Traceparent")
	if id != "" {
		t.Point.Passed([]byte(id))
	}
	a, err := t.RoundTripper.RoundTrip(q)
	if err == nil && id != "" && a.Header.Get("Traceresponse") == id {
		t.Point.Back.Passed([]byte(id))
	}
	return a, err
}

// Handler measures at the other end. Its responses say in their header Traceresponse that they were counted;
// those of a limiter or a cache in front of it were not. A response leaves when it is first written to.
func Handler(point *hoplag.Point, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if id := q.Header.Get("Traceparent"); id != "" {
			point.Passed([]byte(id))
			w.Header().Set("Traceresponse", id)
			r := response{w, sync.OnceFunc(func() { point.Back.Passed([]byte(id)) })}
			defer r.leaves()
			w = r
		}
		next.ServeHTTP(w, q)
	})
}

type response struct {
	http.ResponseWriter
	leaves func()
}

// Unwrap returns what the response is written to.
func (r response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Write reports that the response leaves, and writes to it.
func (r response) Write(b []byte) (int, error) {
	r.leaves()
	return r.ResponseWriter.Write(b)
}

// Log returns a function that logs every report, in full if the handler writes JSON.
func Log(l *slog.Logger) func(hoplag.Report) {
	return func(r hoplag.Report) { l.Info("hop", "report", r) }
}

// go test -run TestHTTP -v prints, beside the exact delays:
//
//	first → second  21.00 ms (18.54 ms to 23.47 ms), sent 59, lost 6 (10.17 %); back 10.86 ms (9.929 ms to 11.79
//	    ms), sent 54, lost 0 (0.00 %); round trip 31.86 ms (28.46 ms to 35.26 ms)
//	…
//	forth exactly:  20.95 ms, sent 400, lost 40
//	forth measured: 20.98 ms, sent 400, lost 40
//	back  exactly:  11.05 ms, sent 360, lost 0
//	back  measured: 10.98 ms, sent 360, lost 0
