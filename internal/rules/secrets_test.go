package rules

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"go/ast"
	logger "log"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/hoplag/hoplag"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
	"github.com/hoplag/hoplag/lda/mplane"
	"github.com/hoplag/hoplag/rli"
)

// A secret key, unlike anything that is not made of it.
var secretKey = [16]byte([]byte("\xc9\x1e\x7b\x53\xa4\x08\xd6\x2f\x91\x3a\xee\x65\x0b\xf7\x48\xdc"))

var smallConfig = lda.Config{Banks: [4]lda.Bank{{Rows: 16}}, SumBits: 40, DigestBits: 8}

// keyed returns a value that was given the key, for each exported type that takes one.
func keyed() map[string]any {
	injector := must(rli.NewInjector(rli.InjectorConfig{Every: 10}))
	receiver := must(rli.NewReceiver(rli.Config{ReferenceBytes: 64, Buffer: 8, Flows: 8}))
	sender, far := must(control.NewSender(smallConfig, 1, 1400)), must(control.NewReceiver(smallConfig))
	injector.SetKey(secretKey)
	receiver.SetKey(secretKey)
	far.SetKey(secretKey)
	if sender.SetKey(secretKey) != nil {
		panic("no room for a tag")
	}
	config := hoplag.Config{Key: hoplag.NewKey(string(secretKey[:])), SipHash: true}
	point, pair := must(hoplag.NewPoint(config)), must(hoplag.NewPair(config, "a", "b"))
	point.Close()
	network := new(mplane.Network)
	if network.AddLink("a", "b", 1) != nil {
		panic("no link")
	}
	plan := must(network.Plan([]mplane.Router{0, 1}, nil))
	station := mplane.StationConfig{Plan: plan, Key: mplane.NewKey(string(secretKey[:])), Length: 1e9}
	return map[string]any{
		"hoplag.Key": config.Key, "hoplag.Config": config, "hoplag.Point": point, "hoplag.Direction": point.Back, "hoplag.Pair": pair,
		"hashing.SipHash": hashing.SipHashFromKey(secretKey),
		"rli.Injector":    injector, "rli.Receiver": receiver,
		"control.Sender": sender, "control.Receiver": far,
		"mplane.Key": station.Key, "mplane.StationConfig": station, "mplane.Station": must(mplane.NewStation(station)),
	}
}

// printed is a value as every printer shows it, by itself and within others.
func printed(x any) map[string]string {
	type exported struct{ X any }
	type hidden struct{ x any }
	texts := map[string]string{}
	for name, v := range map[string]any{"itself": x, "exported field": exported{x}, "hidden field": &hidden{x}, "slice": []any{x}} {
		for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %o %b %e %t %p") {
			texts[name+" "+verb] = fmt.Sprintf(verb, v)
		}
		var text, lines, javascript bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("x", "x", v)
		slog.New(slog.NewJSONHandler(&javascript, nil)).Info("x", "x", v)
		logger.New(&lines, "", 0).Print(v)
		plain, _ := json.Marshal(v)
		markup, _ := xml.Marshal(v)
		var gobs bytes.Buffer
		_ = gob.NewEncoder(&gobs).Encode(v)
		for printer, b := range map[string][]byte{
			"slog": text.Bytes(), "slog JSON": javascript.Bytes(), "log": lines.Bytes(), "JSON": plain, "XML": markup, "gob": gobs.Bytes(),
		} {
			texts[name+" "+printer] = string(b)
		}
	}
	return texts
}

// shows reports whether a text has a quarter of the key in it, as a number, as bytes or as text.
func shows(text string) bool {
	plain := strings.ToLower(text)
	for _, b := range [][]byte{secretKey[:8], secretKey[8:]} {
		reversed := slices.Clone(b)
		slices.Reverse(reversed)
		all := []string{string(b), string(reversed), base64.StdEncoding.EncodeToString(b[:6])}
		for _, list := range [][2]string{{"%d", " "}, {"%d", ","}, {"0x%x", ", "}, {"%02x", ""}, {"%x", " "}, {"%o", " "}} {
			format := strings.TrimSuffix(strings.Repeat(list[0]+list[1], 4), list[1])
			all = append(all, fmt.Sprintf(format, b[0], b[1], b[2], b[3]))
		}
		for _, n := range []uint64{binary.LittleEndian.Uint64(b), binary.BigEndian.Uint64(b)} {
			all = append(all, fmt.Sprint(n), fmt.Sprintf("%x", n), fmt.Sprintf("%o", n), fmt.Sprintf("%b", n))
		}
		for _, s := range all {
			if strings.Contains(text, s) || strings.Contains(plain, strings.ToLower(s)) {
				return true
			}
		}
	}
	return false
}

// No printer shows the key of any value that was given it.
func TestNoPrinterShowsTheKey(t *testing.T) {
	all := keyed()
	for name, x := range all {
		for printer, text := range printed(x) {
			if shows(text) {
				t.Errorf("%s, %s: %s", name, printer, text)
			}
		}
	}
	// Each type with a method SetKey is among them.
	sources(t, func(pkg, name string, file *ast.File) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "SetKey" || strings.Contains(name, "internal/") {
				continue
			}
			of := path.Base(pkg) + "." + f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
			if all[of] == nil {
				t.Errorf("%s: nothing prints %s with a key", name, of)
			}
		}
	})
	// Negative control: keys that do not hide.
	type words struct{ low, high uint64 }
	for _, x := range []any{
		secretKey, string(secretKey[:]), secretKey[:],
		words{binary.LittleEndian.Uint64(secretKey[:]), binary.LittleEndian.Uint64(secretKey[8:])},
	} {
		for _, printer := range []string{"itself %v", "itself %x", "hidden field %+v"} {
			if text := printed(x)[printer]; !shows(text) {
				t.Errorf("%s of %T goes unnoticed: %s", printer, x, text)
			}
		}
	}
}

// must returns a value whose making cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
