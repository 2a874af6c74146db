package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

const (
	longestLine     = 140 // characters
	longestFunction = 60  // lines, in code; tests may have tables of cases
	longestFile     = 500 // lines

	// Names that a user meets: exported by a package of the library, and the same with exported methods and
	// fields.
	mostNames, mostMembers = 25, 80

	mostCode, mostTests = 46500, 40000 // lines in the whole tree
)

// A sourceFile is a Go file, parsed, and its text.
type sourceFile struct {
	name string // with slashes
	text string
	set  *token.FileSet
	file *ast.File
}

// all are the sources: every Go file, tests and nested modules included, read once.
var all = sync.OnceValues(func() (all []*sourceFile, err error) {
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case path.Ext(name) == ".orig" || path.Ext(name) == ".rej":
			return fmt.Errorf("%s was left behind", name)
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		s := &sourceFile{name: filepath.ToSlash(name), text: string(must(os.ReadFile(name))), set: token.NewFileSet()}
		s.file, err = parser.ParseFile(s.set, name, s.text, parser.ParseComments|parser.SkipObjectResolution)
		all = append(all, s)
		return err
	})
	return all, err
})

// allSources calls f for all of them.
func allSources(t *testing.T, f func(*sourceFile)) {
	os.Chdir(".") // tells the go command, which keeps results for as long as files do not change, where they are
	files := must(all())
	for _, s := range files {
		f(s)
	}
}

func (s *sourceFile) line(p token.Pos) int { return s.set.Position(p).Line }

// textOf returns what stands there.
func (s *sourceFile) textOf(n ast.Node) string { return s.text[n.Pos()-1 : n.End()-1] }

func (s *sourceFile) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// Code comes in pieces that fit a screen, exported names are documented, and packages export few of them.
func TestShape(t *testing.T) {
	names := map[string][]string{}
	var code, tests int // files of the root: six rooms, not a tower
	allSources(t, func(s *sourceFile) {
		pkg := path.Dir(s.name)
		for _, problem := range s.problems() {
			t.Errorf("%s:%s", s.name, problem)
		}
		switch {
		case !s.isTest():
			names[pkg] = append(names[pkg], s.exported()...)
			if pkg == "." {
				code++
			}
		case pkg == ".":
			tests++
		}
	})
	if code > 12 || tests > 10 {
		t.Errorf("the root has %d files of code and %d of tests, want at most 12 and 10", code, tests)
	}
	for pkg := range allowed {
		slices.Sort(names[pkg])
		all := slices.Compact(names[pkg]) // a system's file may have what another's has
		top := 0
		for _, name := range all {
			if !strings.Contains(name, ".") {
				top++
			}
		}
		if top > mostNames || len(all) > mostMembers {
			t.Errorf("package %s exports %d names, %d with methods and fields, want at most %d and %d: %v",
				pkg, top, len(all), mostNames, mostMembers, all)
		}
	}
}

// sizes are how many lines of code, and of tests, the parts of the tree may have. A package without an entry
// counts for the part above it.
var sizes = map[string][2]int{
	".":              {3711, 3931},
	"estimate":       {875, 1163},
	"estimate/areas": {3314, 998},
	"estimate/joint": {1513, 942},
	"estimate/clock": {1112, 891},
	"lda":            {2677, 3111},
	"lda/control":    {450, 757},
	"lda/flows":      {471, 272},
	"lda/lost":       {547, 406},
	"lda/mplane":     {1607, 1201},
	"lda/kernel":     {2354, 1947},
	"lds":            {2779, 3677},
	"colate":         {4115, 3652},
	"rli":            {2887, 2817},
	"hashing":        {1556, 2268},
	"queue":          {1992, 2076},
	"internal":       {1056, 2302},
	"examples":       {5679, 4371},
	"bench":          {7683, 3207},
}

// TestSizes holds each part to its size: whoever adds takes out.
func TestSizes(t *testing.T) {
	lines := map[string]*[2]int{}
	for part := range sizes {
		lines[part] = new([2]int)
	}
	allSources(t, func(s *sourceFile) {
		part := path.Dir(s.name)
		for lines[part] == nil {
			part = path.Dir(part)
		}
		k := 0
		if s.isTest() {
			k = 1
		}
		lines[part][k] += strings.Count(s.text, "\n")
	})
	var all [2]int
	for _, part := range slices.Sorted(maps.Keys(lines)) {
		n := lines[part]
		t.Logf("%-15s %6d of code, %6d of tests", part, n[0], n[1])
		for k, what := range []string{"code", "tests"} {
			if all[k] += n[k]; n[k] > sizes[part][k] {
				t.Errorf("%s has %d lines of %s, want at most %d", part, n[k], what, sizes[part][k])
			}
		}
	}
	if t.Logf("%-15s %6d of code, %6d of tests", "all", all[0], all[1]); all[0] > mostCode || all[1] > mostTests {
		t.Errorf("the tree has %d lines of code and %d of tests, want at most %d and %d", all[0], all[1], mostCode, mostTests)
	}
}

// problems returns what is too long in a file, and what lacks a doc comment.
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
	s.declared(func(name *ast.Ident, _ string, documented bool) {
		if !documented {
			report(s.line(name.Pos()), "%s is exported and has no document", name)
		}
	})
	return all
}

// exported returns the names that a file's package gets from it, with the methods and fields of its types as
// T.M. What an embedded type has counts where that type is declared.
func (s *sourceFile) exported() (names []string) {
	s.declared(func(name *ast.Ident, of string, _ bool) {
		switch {
		case of == "":
			names = append(names, name.Name)
		case ast.IsExported(of):
			names = append(names, of+"."+name.Name)
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		t, ok := n.(*ast.TypeSpec)
		if !ok || !t.Name.IsExported() {
			return true
		}
		for _, name := range s.members(t.Type) {
			if ast.IsExported(name) {
				names = append(names, t.Name.Name+"."+name)
			}
		}
		return false
	})
	return names
}

// members returns the fields or methods that a struct or an interface declares.
func (s *sourceFile) members(t ast.Expr) (names []string) {
	var list []*ast.Field
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields.List
	case *ast.InterfaceType:
		list = t.Methods.List
	}
	for _, f := range list {
		for _, name := range f.Names {
			names = append(names, name.Name)
		}
		if text := s.textOf(f.Type); len(f.Names) == 0 {
			names = append(names, text[strings.LastIndexAny(text, "*.")+1:])
		}
	}
	return names
}

// receiver returns the name of a method's type, or nothing for a function.
func (s *sourceFile) receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(s.textOf(f.Recv.List[0].Type), "*"), "[")
	return name
}

// standard are methods of the standard library's interfaces, whose document is there where the type is not
// exported.
var standard = []string{"Error", "Unwrap", "String", "Write"}

// declared calls f for every exported name of a file: functions, types, constants, variables, and methods of a
// type.
func (s *sourceFile) declared(f func(name *ast.Ident, of string, documented bool)) {
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := s.receiver(d)
			said := of != "" && slices.Contains(standard, d.Name.Name) && !ast.IsExported(of)
			if d.Name.IsExported() && !said {
				f(d.Name, of, d.Doc != nil)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch x := spec.(type) {
				case *ast.TypeSpec:
					if x.Name.IsExported() {
						f(x.Name, "", d.Doc != nil || x.Doc != nil)
					}
				case *ast.ValueSpec:
					for _, name := range x.Names {
						if name.IsExported() {
							f(name, "", d.Doc != nil || x.Doc != nil || x.Comment != nil)
						}
					}
				}
			}
		}
	}
}

// The rules of shape reject what they should.
func TestShapeRulesBite(t *testing.T) {
	long := strings.Repeat("\tprintln()\n", longestFunction-1)
	text := "package bad\n\n// F.\nfunc F() {\n" + long + "}\n\nfunc G() {\n" + long[1:] + "}\n\nconst A = 1 // a\n\n" +
		"type (\n\tT[X any] struct {\n\t\tN, n int\n\t\t*p.E\n\t}\n\tu int\n)\n\n" +
		"func (t *T[X]) M() {}\n\nfunc (u u) M() {}\n// " + strings.Repeat("x", longestLine)
	s := &sourceFile{name: "bad.go", text: text, set: token.NewFileSet()}
	s.file = must(parser.ParseFile(s.set, s.name, text, parser.ParseComments))
	if got, want := s.exported(), []string{"F", "G", "A", "T", "T.M", "T.N", "T.E"}; !slices.Equal(got, want) {
		t.Errorf("exports %v, want %v", got, want)
	}
	var got []string
	for _, problem := range s.problems() {
		got = append(got, strings.SplitN(problem, ": ", 2)[1])
	}
	want := []string{"143 characters, want at most 140", "F takes 61 lines, want at most 60", "G takes 61 lines, want at most 60",
		"G is exported and has no document", "T is exported and has no document", "M is exported and has no document",
		"M is exported and has no document"}
	if !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}
