package hoplag

import (
	"fmt"
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
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/hoplag/hoplag"

// allowed lists, for every library package, which packages of ours its code
// may import. A package that is not listed is not a library package.
var allowed = map[string][]string{
	".":                 {"hashing", "estimate", "estimate/clock", "lda", "lds", "colate", "internal/wire", "internal/session"},
	"hashing":           {},
	"hashing/families":  {"hashing"},
	"estimate":          {},
	"estimate/clock":    {"estimate", "internal/wire"},
	"estimate/joint":    {"hashing", "estimate"},
	"internal/compiler": {},
	"internal/heap":     {},
	"internal/session":  {"hashing", "estimate", "internal/wire"},
	"internal/traffic":  {"hashing", "estimate"},
	"internal/wire":     {"estimate"},
	"lda":               {"hashing", "estimate", "estimate/clock", "internal/wire"},
	"lda/control":       {"hashing", "lda", "internal/session"},
	"lda/kernel":        {"hashing", "estimate", "lda", "lds"},
	"lda/mplane":        {"hashing", "estimate", "estimate/clock", "lda", "internal/heap", "internal/wire"},
	"rli":               {"hashing", "estimate", "internal/wire", "internal/session"},
	"lds":               {"hashing", "estimate", "estimate/joint", "estimate/clock", "internal/wire", "internal/session"},
	"lds/paper":         {"hashing", "estimate"},
	"colate":            {"hashing", "estimate", "estimate/joint", "estimate/clock", "internal/wire", "internal/session"},
	"colate/paper":      {"hashing", "estimate"},
	"queue":             {"hashing", "estimate", "internal/heap"},
	"queue/trace":       {"hashing", "estimate", "queue", "internal/heap"},
}

// mayTouchFiles are the only library packages that may name files.
var mayTouchFiles = []string{"colate", "queue/trace"}

// mayUseUnsafe is the only library package that talks to the kernel.
const mayUseUnsafe = "lda/kernel"

// forbidden are packages that no library package imports: it does not read
// files but through what it is given, log, talk to a network, draw from an
// unseeded generator, or go behind the language's back.
var forbidden = []string{"os", "net", "log", "log/slog", "unsafe", "C", "math/rand", "hash/maphash"}

// frontDoor is the one library package that reads clocks, talks to a network
// and formats for logs, by these packages.
const frontDoor = "."

var mayFrontDoor = []string{"net", "net/http", "log/slog", "expvar"}

// sources calls f for every Go file of the module that is not a test.
func sources(t *testing.T, f func(pkg, name string, file *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if name != "." && (nested == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(filepath.Dir(name)), name, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	sources(t, func(pkg, name string, file *ast.File) {
		seen[pkg] = true
		imports, library := allowed[pkg]
		for _, spec := range file.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
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

// The rules reject what they are there to reject.
func TestImportRulesBite(t *testing.T) {
	for _, c := range []struct{ pkg, imported string }{
		{"hashing", module + "/estimate"},
		{"lda", module + "/rli"},
		{"queue", module + "/lda"},
		{"lds", "os"},
		{"hashing", "net"},
		{"estimate", "math/rand"},
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

// TestNoClockNoPrinting looks for calls that no library package makes: those
// that read a clock, print, or draw from the generator that is everybody's.
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

// forbiddenCalls returns the uses of functions that no library package makes.
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
				// What package rand exports beside functions on its own
				// generator are types and their constructors.
				id.Name == "rand" && !strings.HasPrefix(name, "New") && !slices.Contains([]string{"Rand", "PCG", "ChaCha8", "Zipf", "Source"}, name):
				calls = append(calls, id.Name+"."+name)
			}
		}
		return true
	})
	return calls
}

func TestForbiddenCallsBite(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "bad.go", `package bad

func bad(r *rand.Rand, d time.Duration) {
	time.Now()
	fmt.Println(r.IntN(6))
	rand.IntN(6)
	println(rand.New(rand.NewPCG(1, 2)), fmt.Sprint(d))
}`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
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
	data, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var required []string
	for _, line := range strings.Split(string(data), "\n") {
		fields := strings.Fields(strings.TrimPrefix(line, "require"))
		if len(fields) >= 2 && strings.Contains(fields[0], ".") {
			required = append(required, fields[0])
		}
	}
	if diff := cmp.Diff([]string{"github.com/google/go-cmp"}, required); diff != "" {
		t.Errorf("go.mod requires other than go-cmp (-want +got):\n%s", diff)
	}
}

const (
	longestLine     = 140 // characters
	longestFunction = 60  // lines, in code; tests may have tables of cases
	longestFile     = 500 // lines
	mostNames       = 40  // exported by a package of the library
)

// mayExportMore are the packages that are no synopses: kinds of links by their
// numbers in captures, hops and sources.
var mayExportMore = map[string]int{"hashing": 70, "queue": 50, "queue/trace": 50}

// A sourceFile is a Go file, parsed, and its text.
type sourceFile struct {
	name string // with slashes
	text string
	set  *token.FileSet
	file *ast.File
}

// allSources calls f for every Go file, tests and nested modules included.
func allSources(t *testing.T, f func(*sourceFile)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s := &sourceFile{name: filepath.ToSlash(name), text: string(text), set: token.NewFileSet()}
		if s.file, err = parser.ParseFile(s.set, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		f(s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *sourceFile) line(p token.Pos) int { return s.set.Position(p).Line }

func (s *sourceFile) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// Code is read in pieces that fit a screen, and what is exported says what it is.
func TestShape(t *testing.T) {
	names := map[string][]string{}
	allSources(t, func(s *sourceFile) {
		pkg := path.Dir(s.name)
		for _, problem := range s.problems() {
			t.Errorf("%s:%s", s.name, problem)
		}
		if !s.isTest() {
			names[pkg] = append(names[pkg], s.exported()...)
		}
	})
	if code, tests := rootFiles(t); code > 12 || tests > 10 {
		t.Errorf("the root has %d files of code and %d of tests, want at most 12 and 10", code, tests)
	}
	for pkg := range allowed {
		if n, most := len(names[pkg]), max(mostNames, mayExportMore[pkg]); n > most {
			slices.Sort(names[pkg])
			t.Errorf("package %s exports %d names, want at most %d: %v", pkg, n, most, names[pkg])
		}
	}
}

// rootFiles counts the files of the front door: six rooms, not a tower.
func rootFiles(t *testing.T) (code, tests int) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			tests++
		} else {
			code++
		}
	}
	return code, tests
}

// problems says what is too long in a file, and what lacks a document.
func (s *sourceFile) problems() (all []string) {
	report := func(line int, format string, args ...any) {
		all = append(all, fmt.Sprintf("%d: %s", line, fmt.Sprintf(format, args...)))
	}
	lines := strings.Split(s.text, "\n")
	if n := len(lines) - 1; n > longestFile {
		report(n, "%d lines, want at most %d", n, longestFile)
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > longestLine && !ast.IsGenerated(s.file) {
			report(i+1, "%d characters, want at most %d", n, longestLine)
		}
	}
	if s.isTest() {
		return all
	}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > longestFunction {
				report(s.line(f.Pos()), "%s takes %d lines, want at most %d", f.Name, n, longestFunction)
			}
		}
	}
	for _, name := range undocumented(s.file) {
		report(s.line(name.Pos()), "%s is exported and has no document", name)
	}
	return all
}

// exported returns the names that a file's package gets from it, methods and
// fields aside.
func (s *sourceFile) exported() (names []string) {
	declared(s.file, func(name *ast.Ident, method, _ bool) {
		if !method {
			names = append(names, name.Name)
		}
	})
	return names
}

// undocumented returns the exported names that no comment is about.
func undocumented(file *ast.File) (names []*ast.Ident) {
	declared(file, func(name *ast.Ident, _, documented bool) {
		if !documented {
			names = append(names, name)
		}
	})
	return names
}

// declared calls f for every exported name of a file: functions, types,
// constants, variables, and the methods of exported types.
func declared(file *ast.File, f func(name *ast.Ident, method, documented bool)) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				f(d.Name, d.Recv != nil, d.Doc != nil)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						f(s.Name, false, d.Doc != nil || s.Doc != nil)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							f(name, false, d.Doc != nil || s.Doc != nil || s.Comment != nil)
						}
					}
				}
			}
		}
	}
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// The rules of shape reject what they are there to reject.
func TestShapeRulesBite(t *testing.T) {
	long := strings.Repeat("\tprintln()\n", longestFunction-1)
	text := "package bad\n\n// F.\nfunc F() {\n" + long + "}\n\nfunc G() {\n" + long[1:] + "}\n\nconst A = 1 // a\n\n" +
		"type (\n\tT[X any] int\n\tu int\n)\n\nfunc (t *T[X]) M() {}\n\nfunc (u u) M() {}\n// " + strings.Repeat("x", longestLine)
	s := &sourceFile{name: "bad.go", text: text, set: token.NewFileSet()}
	var err error
	if s.file, err = parser.ParseFile(s.set, s.name, text, parser.ParseComments); err != nil {
		t.Fatal(err)
	}
	if got, want := s.exported(), []string{"F", "G", "A", "T"}; !slices.Equal(got, want) {
		t.Errorf("exports %v, want %v", got, want)
	}
	var got []string
	for _, problem := range s.problems() {
		got = append(got, strings.SplitN(problem, ": ", 2)[1])
	}
	want := []string{"143 characters, want at most 140", "F takes 61 lines, want at most 60", "G takes 61 lines, want at most 60",
		"G is exported and has no document", "T is exported and has no document", "M is exported and has no document"}
	if !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}
