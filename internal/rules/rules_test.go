// Package rules holds the tree to its rules: what may import what, how long a function may be, and how many
// lines a package may have. It is all tests.
package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain runs the tests at the module's root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	m.Run()
}

const module = "github.com/hoplag/hoplag"

// allowed lists, for every library package, which packages of ours its code may import. A package that is not
// listed is not a library package.
var allowed = map[string][]string{
	".":                {"hashing", "estimate", "estimate/areas", "estimate/clock", "lda", "lda/flows", "lda/lost", "internal/wire"},
	"hashing":          {},
	"hashing/families": {"hashing"},
	"estimate":         {},
	"estimate/areas":   {"estimate"},
	"estimate/clock":   {"estimate"},
	"estimate/joint":   {"hashing", "estimate"},
	"internal/heap":    {},
	"internal/session": {"hashing", "estimate", "internal/wire"},
	"internal/traffic": {"hashing", "estimate"},
	"internal/truth":   {},
	"internal/wire":    {"estimate"},
	"lda":              {"hashing", "estimate", "estimate/areas", "estimate/clock", "internal/wire"},
	"lda/control":      {"hashing", "estimate", "lda", "internal/session"},
	"lda/flows":        {"hashing", "estimate", "estimate/areas", "internal/wire"},
	"lda/kernel":       {"hashing", "estimate", "lda"},
	"lda/lost":         {"hashing", "estimate", "estimate/areas", "lda", "internal/wire"},
	"lda/paper":        {"estimate", "lda"},
	"lda/mplane":       {"hashing", "estimate", "estimate/clock", "lda", "internal/heap", "internal/session", "internal/wire"},
	"rli":              {"hashing", "estimate", "internal/wire", "internal/session"},
	"lds":              {"hashing", "estimate", "estimate/areas", "estimate/joint", "estimate/clock", "internal/wire"},
	"colate":           {"hashing", "estimate", "estimate/areas", "estimate/joint", "estimate/clock", "internal/wire"},
	"lds/paper":        {"hashing", "estimate"},
	"colate/paper":     {"hashing", "estimate"},
	"queue":            {"hashing", "estimate", "internal/heap"},
	"queue/trace":      {"hashing", "estimate", "queue", "internal/heap"},
}

// mayTouchFiles are the only library packages that may name files.
var mayTouchFiles = []string{"colate", "queue/trace"}

// mayUseUnsafe is the only library package that talks to the kernel.
const mayUseUnsafe = "lda/kernel"

// nested are the modules of their own, which may import what they like.
var nested = []string{"bench/peers", "examples/broker", "examples/embedded"}

// forbidden are packages that no library package imports: it does not log, talk to a network, draw from an
// unseeded generator, use package unsafe, or read files that it was not given.
var forbidden = []string{"os", "net", "log", "log/slog", "unsafe", "C", "math/rand", "hash/maphash"}

// frontDoor is the one library package that reads clocks, talks to a network and formats for logs, by these
// packages.
const frontDoor = "."

var mayFrontDoor = []string{"net", "net/http", "log/slog"}

// sources calls f for every Go file of the module that is not a test.
func sources(t *testing.T, f func(pkg, name string, file *ast.File)) {
	t.Helper()
	allSources(t, func(s *sourceFile) {
		if pkg := path.Dir(s.name); !s.isTest() && !slices.Contains(nested, pkg) {
			f(pkg, s.name, s.file)
		}
	})
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	sources(t, func(pkg, name string, file *ast.File) {
		seen[pkg] = true
		imports, library := allowed[pkg]
		for _, spec := range file.Imports {
			p := must(strconv.Unquote(spec.Path.Value))
			if problem := importProblem(pkg, p, library, imports); problem != "" {
				t.Errorf("%s imports %s: %s", name, p, problem)
			}
		}
	})
	for pkg := range seen {
		_, library := allowed[pkg]
		if program := programs.MatchString(pkg); !library && !program {
			t.Errorf("package %s is neither listed as a library package, nor a program, nor what programs share", pkg)
		}
	}
}

// programs matches the packages of programs, and of what they share.
var programs = regexp.MustCompile(`^(bench(/.*)?|examples/.*|internal/programs)$`)

// importProblem says what is wrong with an import, or nothing.
func importProblem(pkg, imported string, library bool, allowed []string) string {
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	if imported == module {
		ours, isOurs = frontDoor, true
	}
	switch {
	case !isOurs && strings.Contains(strings.SplitN(imported, "/", 2)[0], "."):
		return "not the standard library"
	case !library:
		return ""
	case isOurs && !slices.Contains(allowed, ours):
		return "of ours it may import only " + strings.Join(allowed, ", ")
	case imported == "os" && slices.Contains(mayTouchFiles, pkg), pkg == frontDoor && slices.Contains(mayFrontDoor, imported),
		imported == "unsafe" && pkg == mayUseUnsafe:
		return ""
	case slices.Contains(forbidden, imported), strings.HasPrefix(imported, "net/") && imported != "net/netip":
		return "no library package may"
	}
	return ""
}

// The rules reject what they should.
func TestImportRulesBite(t *testing.T) {
	for _, c := range []struct{ pkg, imported string }{
		{"hashing", module + "/estimate"},
		{"lds", "os"},
		{"lda", "net/http"},
		{".", "os"},
		{"lda", module},
		{".", "net/rpc"},
		{"colate", "unsafe"},
		{"estimate", "gonum.org/v1/gonum/stat"},
	} {
		if importProblem(c.pkg, c.imported, true, allowed[c.pkg]) == "" {
			t.Errorf("%s may import %s", c.pkg, c.imported)
		}
	}
}

// TestNoClockNoPrinting looks for calls that no library package may make: those that read a clock, print, or
// use the global random generator.
func TestNoClockNoPrinting(t *testing.T) {
	sources(t, func(pkg, name string, file *ast.File) {
		if _, library := allowed[pkg]; library {
			for _, call := range forbiddenCalls(file) {
				if pkg == frontDoor && (strings.HasPrefix(call, "time.") || call == "rand.Read") {
					continue // crypto/rand, for nonces
				}
				if pkg == "rli" && call == "rand.Read" {
					continue // crypto/rand, for the secret of a table, which changes no result
				}
				t.Errorf("%s: %s in a library package", name, call)
			}
		}
	})
}

// forbiddenCalls returns the uses of functions that no library package may call.
func forbiddenCalls(file *ast.File) (calls []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				calls = append(calls, id.Name)
			}
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := n.Sel.Name
			switch {
			case id.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker"}, name),
				id.Name == "fmt" && strings.HasPrefix(name, "Print"),
				// What package rand exports beside functions on its own generator are types and their
				// constructors.
				id.Name == "rand" && !strings.HasPrefix(name, "New") && !slices.Contains([]string{"Rand", "PCG", "ChaCha8", "Zipf", "Source"}, name):
				calls = append(calls, id.Name+"."+name)
			}
		}
		return true
	})
	return calls
}

func TestForbiddenCallsBite(t *testing.T) {
	file := must(parser.ParseFile(token.NewFileSet(), "bad.go", `package bad

func bad(r *rand.Rand, d time.Duration) {
	time.Now()
	fmt.Println(r.IntN(6))
	rand.IntN(6)
	println(rand.New(rand.NewPCG(1, 2)), fmt.Sprint(d))
}`, parser.SkipObjectResolution))
	if diff := cmp.Diff([]string{"time.Now", "fmt.Println", "rand.IntN", "println"}, forbiddenCalls(file)); diff != "" {
		t.Errorf("forbidden calls (-want +got):\n%s", diff)
	}
}

func TestNoAssembly(t *testing.T) {
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if twin := filepath.Join("examples", "c", "src"); name == twin {
			return filepath.SkipDir // a program of its own, which no Go code links
		}
		if err == nil && (path.Ext(name) == ".s" || path.Ext(name) == ".c") {
			t.Errorf("%s: no assembly, no C", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDependencies holds go.mod to one dependency, for tests.
func TestDependencies(t *testing.T) {
	var required []string
	for _, m := range regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+) v`).FindAllStringSubmatch(read(t, "go.mod"), -1) {
		required = append(required, m[1])
	}
	if diff := cmp.Diff([]string{"github.com/google/go-cmp"}, required); diff != "" {
		t.Errorf("go.mod requires other than go-cmp (-want +got):\n%s", diff)
	}
}
