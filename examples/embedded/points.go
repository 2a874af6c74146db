// Package embedded shows hoplag in other people's programs: WireGuard's tunnel, an MQTT broker, gRPC, a reverse
// proxy, RTP. Each file is one complete embedding. With [Points] it has at most 30 lines at both ends together,
// which TestLines counts. Copy what you need.
package embedded

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/hoplag/hoplag"
)

// Points makes the points of two ends. The first answers at the listener; the second follows it and reports
// every interval. In real use, each end is a process of its own with its half of this.
func Points(ctx context.Context, l net.Listener, a, b hoplag.Config, tell func(hoplag.Report)) (first, second *hoplag.Point, err error) {
	first, err = hoplag.NewPoint(a)
	second, err2 := hoplag.NewPoint(b)
	if err = errors.Join(err, err2); err != nil {
		return nil, nil, err
	}
	go http.Serve(l, first)
	go func() {
		for r := range second.Follow(ctx, hoplag.HTTP(nil, "http://"+l.Addr().String())) {
			tell(r)
		}
	}()
	return first, second, nil
}
