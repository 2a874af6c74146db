package main

import (
	"fmt"
	"io"
	"time"

	"github.com/hoplag/hoplag/internal/programs"
)

// list prints the flows of a directory.
func list(dir string, top int, stdout io.Writer) error {
	flows, err := programs.ReadFlows(dir)
	if err != nil {
		return err
	}
	if top > 0 {
		flows = flows[:min(top, len(flows))]
	}
	for _, f := range flows {
		fmt.Fprintf(stdout, "%8d packets  %s to %s  %s\n", f.Packets,
			time.Unix(0, f.First).UTC().Format(time.RFC3339Nano), time.Unix(0, f.Last).UTC().Format(time.RFC3339Nano), programs.FlowName(&f.Tuple))
	}
	return nil
}
