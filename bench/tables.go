package main

import "io"

func rewriteTables(readme, dir string, stdout io.Writer) error { return nil }
