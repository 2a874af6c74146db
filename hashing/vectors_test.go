package hashing_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// vectors reads one section of the published known answers, which do not
// ship with the project: a few of each are inline in the tests beside.
func vectors(t *testing.T, section string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dataDir, "vectors.json"))
	if err != nil {
		t.Skipf("no published vectors here: %v", err)
	}
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(data, &sections); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(sections[section], into); err != nil {
		t.Fatalf("section %s: %v", section, err)
	}
}
