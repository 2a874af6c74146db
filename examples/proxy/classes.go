package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hoplag/hoplag"
)

// The classes that -classes measures separately, each with its own point,
// beside the point for all.
const (
	udp = iota
	tcp
	classes
)

var classNames = [classes]string{"udp", "tcp"}

// measureClasses measures each class separately. Call it before start.
func (h *half) measureClasses(key string) error {
	for i, class := range classNames {
		// Separate keys, so that no reply can pass for that of another class.
		p, err := hoplag.NewPoint(hoplag.Config{Key: hoplag.NewKey(key + " " + class), Name: h.point.Config().Name, Class: class})
		if err != nil {
			return err
		}
		h.classes[i] = p
	}
	return nil
}

// direction returns the direction of a class's point, forth or back, or nil.
func (h *half) direction(class, way int) *hoplag.Direction {
	switch p := h.classes[class]; {
	case p == nil:
		return nil
	case way == 0:
		return p.Direction
	default:
		return p.Back
	}
}

// answer answers the other half's requests until the listener is closed: those
// for all packets at /, and those for a class at its name.
func (h *half) answer(l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("/{$}", h.point)
	for i, p := range h.classes {
		if p != nil {
			mux.Handle("/"+classNames[i], p)
		}
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if err := server.Serve(l); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// ask returns functions that ask the other half, all over one connection in
// turns.
func ask(reports string) func(path string) hoplag.Exchange {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	return func(path string) hoplag.Exchange { return hoplag.HTTP(client, "http://"+reports+"/"+path) }
}

// followClasses keeps the reports of each class for the page, until the
// context is done.
func (h *half) followClasses(ctx context.Context, ask func(path string) hoplag.Exchange, v *view) {
	var all sync.WaitGroup
	defer all.Wait()
	for i, p := range h.classes {
		if p != nil {
			all.Go(func() {
				for r := range p.FollowOver(ctx, ask(classNames[i])) {
					v.addClass(r)
				}
			})
		}
	}
}
