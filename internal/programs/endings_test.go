package programs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// top is the module's directory, from which the programs find the captures that ship.
var top = filepath.Join("..", "..")

// TestEndings builds the programs of the examples once: every one of them ends as a user expects.
func TestEndings(t *testing.T) {
	if testing.Short() {
		t.Skip("builds all programs")
	}
	dir, names := build(t)
	t.Run("codes", func(t *testing.T) { testCodes(t, dir, names) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, dir) })
}

// build builds them, and returns where they are.
func build(t *testing.T) (dir string, names []string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("no go command to build them with: %v", err)
	}
	dir = t.TempDir()
	builds := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "../../examples/...")
	if out, err := builds.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(top, "examples", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), "go.mod")); err != nil { // broker is a module of its own
			names = append(names, name)
		}
	}
	if len(names) < 7 {
		t.Fatalf("only %q were found", names)
	}
	return dir, names
}

// testCodes: a mistake in the command line is exit code 2, a line that names it, and nothing on standard
// output; -h explains, without a mistake; where standard output takes nothing more, the code is 1, and a line
// says why.
func testCodes(t *testing.T, dir string, names []string) {
	quick := map[string]string{ // those that need neither root nor a network
		"twopoint": "", "colate": "", "mplane": "-json", "rli": "-seconds 1",
	}
	mistakes := map[string][]string{"proxy": {"-role middle"}, "wiretap": {"-from lo -cut 1ms"}}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(dir, name)
			if runtime.GOOS == "windows" {
				program += ".exe"
			}
			for _, args := range append(mistakes[name], "-no-such-flag", "no-such-argument") {
				var stdout, stderr bytes.Buffer
				cmd := exec.CommandContext(t.Context(), program, strings.Fields(args)...)
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				wrong := strings.TrimPrefix(args[strings.LastIndexByte(args, ' ')+1:], "-")
				if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), wrong) {
					t.Errorf("%s: %v; standard output %q, error %q", args, err, &stdout, &stderr)
				}
			}
			if out, err := exec.CommandContext(t.Context(), program, "-h").CombinedOutput(); err != nil || len(out) < 100 {
				t.Errorf("-h: %v, %s", err, out)
			}
			args, ok := quick[name]
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil || !ok {
				return
			}
			defer full.Close()
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), program, strings.Fields(args)...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = top, full, &stderr
			if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "no space left") {
				t.Errorf("standard output is full: %v, %q", err, &stderr)
			}
		})
	}
}

// testInterrupted: what long-running programs printed before Ctrl-C is whole, line by line, and includes what
// was measured until then.
func testInterrupted(t *testing.T, dir string) {
	if runtime.GOOS == "windows" {
		t.Skip("no interrupts there")
	}
	const onLo = "wiretap -json -duration 30s -from lo:out -to lo:in"
	for args, last := range map[string]string{
		"rli -json -seconds 80000": `"MedianError":`, onLo: `"Total":{`, onLo + " -kernel": `"Total":{`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			fields := strings.Fields(args)
			if fields[0] == "wiretap" && (runtime.GOOS != "linux" || os.Geteuid() != 0) {
				t.Skip("needs root, and Linux")
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, fields[0]), fields[1:]...)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
			defer timer.Stop()
			lines := bufio.NewScanner(stdout)
			lines.Buffer(nil, 1<<20)
			n, latest := 0, ""
			for ; lines.Scan(); n++ {
				if latest = lines.Text(); !json.Valid(lines.Bytes()) {
					t.Errorf("line %d: %q", n+1, latest)
				}
				if n == 1 {
					cmd.Process.Signal(map[bool]os.Signal{true: syscall.SIGTERM, false: os.Interrupt}[fields[0] == "rli"])
				}
			}
			if err = cmd.Wait(); err != nil || n < 3 || !strings.Contains(latest, last) {
				t.Errorf("%d lines, %v, the last one %.300s", n, err, latest)
			}
		})
	}
}
