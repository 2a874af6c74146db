package plot

// SVG draws a figure.
func SVG(f *Figure, id string) ([]byte, error) {
	return nil, nil
}
