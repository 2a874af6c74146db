package hoplag_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"

	"github.com/hoplag/hoplag"
)

// Two halves of a TCP proxy measure the network between them, both ways: each
// says which pieces of the streams passed it. Since bytes go both ways, the
// halves' clocks need not agree.
func Example_tcpProxy() {
	server := listen(func(client net.Conn) { io.Copy(client, client) }) // an echo service
	in, _ := hoplag.NewPoint(fast)
	out, _ := hoplag.NewPoint(fast)
	defer in.Close()
	defer out.Close()

	egress := listen(func(conn net.Conn) {
		name := conn.RemoteAddr().String() + "→" + conn.LocalAddr().String()
		forward(conn, dial(server), out.Stream(name, 1024), out.Back.Stream(name, 1024))
	})
	ingress := listen(func(client net.Conn) {
		conn := dial(egress)
		name := conn.LocalAddr().String() + "→" + conn.RemoteAddr().String()
		forward(client, conn, in.Stream(name, 1024), in.Back.Stream(name, 1024))
	})

	go io.Copy(io.Discard, talk(ingress))
	page := httptest.NewServer(in)
	defer page.Close()
	for r := range out.Follow(context.Background(), page.URL) {
		if r.Clock.Known && r.Forth.Err == nil && r.Back.Err == nil {
			fmt.Println("measured both ways, and clocks compared")
			break
		}
	}
	// Output: measured both ways, and clocks compared
}

// forward copies both ways between two connections and tells what passes.
func forward(a, b net.Conn, forth, back io.Writer) {
	go func() {
		io.Copy(a, io.TeeReader(b, back))
		a.Close()
	}()
	io.Copy(b, io.TeeReader(a, forth))
	b.Close()
}

// What follows is not about measuring.

func listen(handle func(net.Conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go handle(conn)
		}
	}()
	return l.Addr().String()
}

func dial(address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	return conn
}
