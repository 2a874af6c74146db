package rules

import (
	"go/ast"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// written is a word that only programs have, such as mostNames or NewLink; link is a reference in a doc
// comment, such as [Link.Send] or [hashing.Frame].
var (
	written = regexp.MustCompile(`\b(?:[a-z]+|[A-Z][a-z]+)[A-Z][A-Za-z0-9]*\b`)
	link    = regexp.MustCompile(`\[\*?([A-Za-z][\w.]*)\](?:[^(\[]|$)`)
)

// foreign are such words that no code here has: protocols, products and interfaces of others, symbols of
// papers, and variables of examples in comments.
var foreign = []string{"eBPF", "gRPC", "EtherType", "EtherTypes", "OpenBSD", "QoS", "SplitMix64", "ToN", "WireGuard",
	"ListenAndServe", "ReverseProxy", "StreamClientInterceptor", "StreamInterceptor", "StreamServerInterceptor", "UnaryInterceptor",
	"WithStreamInterceptor", "WithUnaryInterceptor", "nD", "nP", "zRk",
	"farSent", "nearReceived", "lossAxis"}

// known returns the identifiers of all code, and such words in its strings.
func known(t *testing.T) map[string]bool {
	all := map[string]bool{}
	for _, word := range foreign {
		all[word] = true
	}
	allSources(t, func(s *sourceFile) {
		all[s.file.Name.Name] = true
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CommentGroup:
				return false
			case *ast.Ident:
				all[n.Name] = true
			case *ast.BasicLit:
				for _, word := range written.FindAllString(n.Value, -1) {
					all[word] = true
				}
			case *ast.ImportSpec:
				all[path.Base(strings.Trim(n.Path.Value, `"`))] = true
			}
			return true
		})
	})
	return all
}

// dead returns the names in a text that do not exist, including those in links if the text is a comment.
func dead(known map[string]bool, text string, comment bool) (names []string) {
	for _, word := range written.FindAllString(text, -1) {
		if !known[word] && !known[strings.TrimSuffix(word, "s")] && !known["Test"+word] {
			names = append(names, word)
		}
	}
	if comment {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			for _, part := range strings.Split(m[1], ".") {
				if !known[part] {
					names = append(names, m[1])
				}
			}
		}
	}
	return names
}

// Comments and documents name only what exists. CHANGELOG.md also names what is gone.
func TestNamesExist(t *testing.T) {
	names := known(t)
	allSources(t, func(s *sourceFile) {
		for _, group := range s.file.Comments {
			for _, name := range dead(names, group.Text(), true) {
				t.Errorf("%s:%d: a comment names %s, which is not there", s.name, s.line(group.Pos()), name)
			}
		}
	})
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "bench/*.md", "examples/*/*.md"} {
		documents = append(documents, must(filepath.Glob(pattern))...)
	}
	for _, name := range documents {
		for _, word := range dead(names, read(t, name), false) {
			if name != "CHANGELOG.md" {
				t.Errorf("%s names %s, which is not there", name, word)
			}
		}
	}
	text := "Use cellTable, NewLink, [queue.Link] and [Link.Sends]."
	few := map[string]bool{"NewLink": true, "queue": true, "Link": true}
	if got := dead(few, text, true); !slices.Equal(got, []string{"cellTable", "Link.Sends"}) {
		t.Errorf("of %q these are said to be dead: %q", text, got)
	}
}
