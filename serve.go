package hoplag

import (
	"errors"
	"io"
	"net/http"
)

const (
	contentType = "application/vnd.hoplag"

	// maxMessage bounds what is read from a peer, in bytes.
	maxMessage = 64 << 20
	maxRequest = 4 << 10
)

// ServeHTTP answers followers. The body of a POST is the request, and the body
// of the response is the reply. Only those who have the Key get one.
func (p *Point) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "This is a point of hoplag. Follow it with Point.Follow, from a point of the same Key.", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply, err := p.Answer(body)
	switch {
	case errors.Is(err, ErrForged):
		http.Error(w, err.Error(), http.StatusForbidden)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		w.Write(reply)
	}
}
