package main

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/hoplag/hoplag"
)

// push pushes the records of a point to a URL until the context is done. It resends
// what was not accepted; in the meantime the point keeps up to Config.History.
func push(ctx context.Context, p *hoplag.Point, url string) {
	for record := range p.Records(ctx) {
		for ctx.Err() == nil {
			if r, err := http.Post(url, "application/octet-stream", bytes.NewReader(record)); err == nil {
				if r.Body.Close(); r.StatusCode == http.StatusOK {
					break
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}
