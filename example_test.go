package hoplag_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/hoplag/hoplag"
)

// fast makes examples end soon; a Config of no more than a Key is for use.
var fast = hoplag.Config{Key: "a secret of both points", Cut: 10 * time.Millisecond, Report: 100 * time.Millisecond}

// Two points measure the messages that pass them. Here they are in one
// process, and messages take five milliseconds.
func Example() {
	a, _ := hoplag.NewPoint(fast)
	b, _ := hoplag.NewPoint(fast)
	defer a.Close()
	defer b.Close()
	server := httptest.NewServer(a) // http.Handle("/hoplag", a), otherwise
	defer server.Close()

	go func() {
		for i := range 1000 {
			id := []byte("message " + strconv.Itoa(i))
			a.Passed(id)
			time.AfterFunc(5*time.Millisecond, func() { b.Passed(id) })
			time.Sleep(time.Millisecond)
		}
	}()
	for r := range b.Follow(context.Background(), server.URL) {
		if r.Forth.Err != nil {
			continue // nothing has passed yet
		}
		fmt.Println("as long as that:", r.Forth.MeanDuration() >= 5*time.Millisecond)
		fmt.Println("clocks are known:", r.Clock.Known)
		break
	}
	// Output:
	// as long as that: true
	// clocks are known: false
}
