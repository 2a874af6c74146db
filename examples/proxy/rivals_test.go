package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hoplag/hoplag/examples/internal/relay"
)

// The programs run as children of this one.
func TestMain(m *testing.M) {
	if os.Getenv("PROXY_CHILD") != "" {
		main()
		return
	}
	if to := os.Getenv("PROXY_BARE"); to != "" {
		bare(to)
		return
	}
	os.Exit(m.Run())
}

// bare is a relay of connections as they are usually written.
func bare(to string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	for {
		from, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer from.Close()
			to, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer to.Close()
			go io.Copy(from, to)
			io.Copy(to, from)
		}()
	}
}

// A chain is two relays in a row, each a process.
type chain struct {
	address string
	pids    []int
}

// child starts a program that ends with the benchmark.
func (c *chain) child(b testing.TB, command *exec.Cmd) io.Reader {
	b.Helper()
	out := relay.Must(command.StdoutPipe())(b)
	command.Stderr = os.Stderr
	relay.Check(b, command.Start())
	c.pids = append(c.pids, command.Process.Pid)
	b.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	return out
}

func self(variable string, args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), variable)
	return c
}

func bareChain(b testing.TB, to string) *chain {
	c := &chain{address: to}
	for range 2 {
		line := relay.Must(bufio.NewReader(c.child(b, self("PROXY_BARE="+c.address))).ReadString('\n'))(b)
		c.address = strings.TrimSpace(line)
	}
	return c
}

func proxyChain(b testing.TB, to string) *chain {
	b.Helper()
	c, out, reports := &chain{address: free(b)}, free(b), free(b)
	for _, args := range [][]string{
		{"-role", "egress", "-listen", out, "-to", to, "-reports", reports},
		{"-role", "ingress", "-listen", c.address, "-to", out, "-reports", reports},
	} {
		go io.Copy(io.Discard, c.child(b, self("PROXY_CHILD=1", append(args, "-key", testKey)...)))
	}
	return c
}

// nginxChain is two servers of nginx's stream module.
func nginxChain(b testing.TB, to string) *chain {
	nginx, err := exec.LookPath("nginx")
	module := "/usr/lib/nginx/modules/ngx_stream_module.so"
	if _, other := os.Stat(module); err != nil || other != nil {
		b.Skip("needs nginx and its stream module")
	}
	c := &chain{address: to}
	for range 2 {
		listen, dir := free(b), b.TempDir()
		config := fmt.Sprintf("load_module %s;\ndaemon off;\nmaster_process off;\npid %s/pid;\nerror_log /dev/null;\n"+
			"worker_rlimit_nofile 40000;\nevents { worker_connections 30000; }\n"+
			"stream { server { listen %s backlog=4096; proxy_pass %s; } }\n", module, dir, listen, c.address)
		relay.Check(b, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o644))
		c.child(b, exec.Command(nginx, "-c", filepath.Join(dir, "nginx.conf"), "-p", dir))
		c.address = listen
	}
	return c
}

// dial connects once the chain runs.
func (c *chain) dial(b testing.TB, tries int) net.Conn {
	b.Helper()
	for range tries {
		if conn, err := net.Dial("tcp", c.address); err == nil {
			conn.SetDeadline(time.Now().Add(time.Minute))
			conn.Write([]byte{1})
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				return conn
			}
			conn.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatal("nobody is at " + c.address)
	return nil
}

// proc reads a number from a file of /proc.
func proc(b testing.TB, file, pattern string) float64 {
	text, err := os.ReadFile(file)
	if err != nil {
		b.Skip(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	v, _ := strconv.ParseFloat(string(m[1]), 64)
	return v
}

// cpu returns how many seconds of a processor the chain took.
func (c *chain) cpu(b testing.TB) (seconds float64) {
	for _, pid := range c.pids {
		stat := fmt.Sprintf("/proc/%d/stat", pid)
		const fields = `(?:\S+ ){11}`
		seconds += (proc(b, stat, `\) `+fields+`(\d+)`) + proc(b, stat, `\) `+fields+`\d+ (\d+)`)) / 100
	}
	return seconds
}

// BenchmarkRivals moves bytes, makes round trips and holds connections through both halves, and through two relays as Go
// programs have them, and two of nginx's.
func BenchmarkRivals(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("needs /proc")
	}
	for name, start := range map[string]func(testing.TB, string) *chain{"proxy": proxyChain, "bare": bareChain, "nginx": nginxChain} {
		b.Run(name+"/bytes", func(b *testing.B) { benchmarkEcho(b, start(b, echo(b)), 1<<20, "cpu-ms/GB", 1e3*1024/2) })
		b.Run(name+"/trips", func(b *testing.B) { benchmarkEcho(b, start(b, echo(b)), 100, "cpu-µs/trip", 1e6) })
		b.Run(name+"/idle", func(b *testing.B) { benchmarkIdle(b, start, 3000) }) // relays with splice take six files each
	}
	b.Run("proxy/idle10k", func(b *testing.B) { benchmarkIdle(b, proxyChain, 9948) }) // two files each, of 20,000
}

// benchmarkEcho sends messages there and back, one after another, and reports how much CPU a unit of them
// takes.
func benchmarkEcho(b *testing.B, c *chain, size int, unit string, perTrip float64) {
	conn, message := c.dial(b, 500), make([]byte, size)
	before := c.cpu(b)
	b.SetBytes(int64(2 * size)) // there and back
	for b.Loop() {
		go conn.Write(message)
		if _, err := io.ReadFull(conn, message); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((c.cpu(b)-before)/float64(b.N)*perTrip, unit)
}

// hold opens connections that are each used once, and returns the resident memory of the larger relay, in MB.
func (c *chain) hold(b testing.TB, many int) (most float64) {
	var opening sync.WaitGroup
	for range 4 {
		opening.Go(func() {
			for range many / 4 {
				conn := c.dial(b, 100).(*net.TCPConn)
				b.Cleanup(func() { reset(conn) }) // and leave no port in TIME_WAIT
			}
		})
	}
	opening.Wait()
	for _, pid := range c.pids {
		most = max(most, proc(b, fmt.Sprintf("/proc/%d/status", pid), `VmRSS:\s+(\d+)`)/1024)
	}
	return most
}

// once answers one byte on each connection, which takes one file.
func once(b testing.TB) string {
	return serverOf(b, "127.0.0.1:0", func(c *net.TCPConn) {
		defer c.Close()
		for one := make([]byte, 1); ; c.Write(one) {
			if _, err := c.Read(one); err != nil {
				return
			}
		}
	})
}

func benchmarkIdle(b *testing.B, start func(testing.TB, string) *chain, many int) {
	most := start(b, once(b)).hold(b, many)
	for b.Loop() {
	}
	b.ReportMetric(most, "MB-resident")
	b.ReportMetric(float64(many), "connections")
}
