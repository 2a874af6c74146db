package hoplag

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameTests looks for every test, package and experiment that the
// documents name.
func TestDocumentsNameTests(t *testing.T) {
	tests, experiments := map[string]bool{}, map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	named := regexp.MustCompile(`Name:\s+"([a-z]+-[a-z0-9-]+)"`)
	err := filepath.WalkDir(".", func(name string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") {
			return err
		}
		text := read(t, name)
		dir := filepath.ToSlash(filepath.Dir(name))
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			tests[dir+"."+m[1]] = true
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			experiments[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range []string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "METHODS.md", "SPEC.md", "CHANGELOG.md"} {
		text := read(t, name)
		for _, m := range regexp.MustCompile("`(?:([a-z/]+)\\.)?(Test\\w+)`").FindAllStringSubmatch(text, -1) {
			dir := m[1]
			if dir == "" {
				dir = "."
			}
			found++
			if !tests[dir+"."+m[2]] {
				t.Errorf("%s names %s in %s, which is not there", name, m[2], dir)
			}
		}
		for _, m := range regexp.MustCompile("`((?:ours|real|lda|rli|lds|colate|mplane)-[a-z0-9-]+)`").FindAllStringSubmatch(text, -1) {
			found++
			if !experiments[m[1]] {
				t.Errorf("%s names the experiment %s, which is not there", name, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("the documents name %d tests and experiments: they are not found", found)
	}
}
