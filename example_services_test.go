package hoplag_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/hoplag/hoplag"
)

// Two HTTP services that pass trace ids on: how long a request is on its way
// from one to the other, and the response back, however the clocks are set.
func Example_httpServices() {
	caller, _ := hoplag.NewPoint(fast)
	callee, _ := hoplag.NewPoint(fast)
	defer caller.Close()
	defer callee.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("/work", func(w http.ResponseWriter, r *http.Request) {
		id := []byte(r.Header.Get("Traceparent"))
		callee.Passed(id)
		defer callee.Back.Passed(id)
	})
	service := httptest.NewServer(mux)
	defer service.Close()
	reports := httptest.NewServer(caller)
	defer reports.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			request, _ := http.NewRequest("GET", service.URL+"/work", nil)
			id := []byte("00-" + strconv.Itoa(i) + "-01")
			request.Header.Set("Traceparent", string(id))
			caller.Passed(id)
			if response, err := http.DefaultClient.Do(request); err == nil {
				caller.Back.Passed(id)
				response.Body.Close()
			}
		}
	}()
	for r := range callee.Follow(ctx, reports.URL) {
		if r.Clock.Known {
			fmt.Println("requests and responses:", r.Forth.Err == nil, r.Back.Err == nil)
			break
		}
	}
	// Output: requests and responses: true true
}
