// Package ipfix exports hoplag's reports to flow collectors: IPFIX (RFC 7011) over
// UDP or TCP, with the delay metrics of RFC 9951.
//
//	conn, err := net.Dial("udp", "collector:4739")
//	exporter := ipfix.New(conn, 1, nil)
//	for r := range point.Follow(ctx, hoplag.HTTP(nil, url)) {
//		err := exporter.Export(r)
//	}
//
// A record has the names of the points, the interval, the packets received and lost, and the mean, the greatest
// (of those seen one by one) and the sum of the delays in microseconds. A flow's record has its 5-tuple as
// well, or the flow's hash where that is not known. What is not known has no element: a mean is left out if
// clocks do not agree, or beyond an hour. IPFIX has no element for the interval of a mean.
package ipfix

import (
	"encoding/binary"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/hoplag/hoplag"
	"github.com/hoplag/hoplag/estimate"
	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
)

// Numbers of information elements, from IANA's registry.
const (
	packetDeltaCount               = 2
	protocolIdentifier             = 4
	sourceTransportPort            = 7
	sourceIPv4Address              = 8
	destinationTransportPort       = 11
	destinationIPv4Address         = 12
	sourceIPv6Address              = 27
	destinationIPv6Address         = 28
	droppedPacketDeltaCount        = 133
	flowID                         = 148
	flowStartMilliseconds          = 152
	flowEndMilliseconds            = 153
	observationDomainName          = 300
	pathDelayMeanDeltaMicroseconds = 530
	pathDelayMaxDeltaMicroseconds  = 532
	pathDelaySumDeltaMicroseconds  = 533
)

const (
	templateSetID, firstTemplate = 2, 256
	variable                     = math.MaxUint16 // length of a field that says its own
	longestMessage               = 1400           // bytes, so that a datagram is not fragmented
)

// An Exporter exports reports over one connection. It is not safe for concurrent
// use. After an error over TCP, make another one.
type Exporter struct {
	conn             net.Conn
	domain, sequence uint32
	tuple            func(hashing.Flow) (hashing.Tuple, bool)
	ids              map[string]uint16 // of templates, by their fields
	told             map[uint16]bool   // templates that the collector knows

	// The message that is being written.
	templates, data []byte
	set             int    // where the last set of data begins
	setID           uint16 // and its template
	records         uint32
}

// New returns an Exporter with the number of its observation domain. tuple looks
// a flow up, as far as you know it, and may be nil.
func New(conn net.Conn, domain uint32, tuple func(hashing.Flow) (hashing.Tuple, bool)) *Exporter {
	return &Exporter{conn: conn, domain: domain, tuple: tuple, ids: map[string]uint16{}, told: map[uint16]bool{}}
}

// Export sends what a report says of packets, both ways, and of their flows. Over
// UDP, every report comes with the templates, since any of them may be lost.
func (e *Exporter) Export(r hoplag.Report) error {
	if strings.HasPrefix(e.conn.LocalAddr().Network(), "udp") {
		clear(e.told)
	}
	for i, d := range []hoplag.Traffic{r.Forth, r.Back} {
		if d.Sent+d.Received == 0 {
			continue
		}
		way := []string{r.From + " → " + r.To, r.To + " → " + r.From}[i]
		var f fields
		f.interval(way, r, d.Received, d.Lost)
		if d.Err == nil {
			f.delay(d.Mean, d.MeanInterval95, d.Received, d.Quantiles...)
		}
		if err := e.add(f); err != nil {
			return err
		}
		for _, flow := range d.Flows {
			f = fields{}
			f.interval(way, r, flow.Received, flow.Lost)
			f.delay(flow.Mean, flow.MeanInterval95, flow.Received)
			if tuple, ok := e.lookup(flow.Flow); ok {
				f.tuple(tuple)
			} else {
				f.number(flowID, 8, uint64(flow.Flow))
			}
			if err := e.add(f); err != nil {
				return err
			}
		}
	}
	return e.flush()
}

func (e *Exporter) lookup(f hashing.Flow) (hashing.Tuple, bool) {
	if e.tuple == nil {
		return hashing.Tuple{}, false
	}
	return e.tuple(f)
}

// fields are a record: its template and its values.
type fields struct{ template, values []byte }

func (f *fields) field(element, length uint16) {
	f.template = binary.BigEndian.AppendUint16(f.template, element)
	f.template = binary.BigEndian.AppendUint16(f.template, length)
}

// number adds a number of some bytes.
func (f *fields) number(element, length uint16, value uint64) {
	f.field(element, length)
	b := binary.BigEndian.AppendUint64(nil, value)
	f.values = append(f.values, b[8-length:]...)
}

func (f *fields) interval(way string, r hoplag.Report, received, lost uint64) {
	way = way[:min(len(way), 254)]
	f.field(observationDomainName, variable)
	f.values = append(append(f.values, byte(len(way))), way...)
	f.number(flowStartMilliseconds, 8, uint64(r.Start.UnixMilli()))
	f.number(flowEndMilliseconds, 8, uint64(r.Start.Add(r.Length).UnixMilli()))
	f.number(packetDeltaCount, 8, received)
	f.number(droppedPacketDeltaCount, 8, lost)
}

// delay adds a mean, if it is known, with its interval, number of packets and quantiles.
func (f *fields) delay(mean float64, interval estimate.Interval, received uint64, quantiles ...lda.Quantile) {
	if !(mean >= 0 && mean/1e3 < math.MaxUint32) || math.IsInf(interval.High, 0) {
		return
	}
	f.number(pathDelayMeanDeltaMicroseconds, 4, uint64(math.Round(mean/1e3)))
	f.number(pathDelaySumDeltaMicroseconds, 8, uint64(math.Round(mean/1e3*float64(received))))
	for _, q := range quantiles {
		if q.P == 1 && q.Delay/1e3 < math.MaxUint32 {
			f.number(pathDelayMaxDeltaMicroseconds, 4, uint64(math.Round(q.Delay/1e3)))
		}
	}
}

func (f *fields) tuple(t hashing.Tuple) {
	for i, a := range []netip.Addr{netip.AddrFrom16(t.Src).Unmap(), netip.AddrFrom16(t.Dst).Unmap()} {
		element := [2]uint16{sourceIPv6Address, destinationIPv6Address}[i]
		if a.Is4() {
			element = [2]uint16{sourceIPv4Address, destinationIPv4Address}[i]
		}
		f.field(element, uint16(a.BitLen()/8))
		f.values = append(f.values, a.AsSlice()...)
	}
	f.number(sourceTransportPort, 2, uint64(t.SrcPort))
	f.number(destinationTransportPort, 2, uint64(t.DstPort))
	f.number(protocolIdentifier, 1, uint64(t.Proto))
}

// add adds a record to the message, which begins with the templates that the
// collector does not know. A full message is sent.
func (e *Exporter) add(f fields) error {
	if 16+4+len(e.templates)+4+len(f.template)+len(e.data)+4+len(f.values) > longestMessage {
		if err := e.flush(); err != nil {
			return err
		}
	}
	id, ok := e.ids[string(f.template)]
	if !ok {
		id = firstTemplate + uint16(len(e.ids))
		e.ids[string(f.template)] = id
	}
	if !e.told[id] {
		e.told[id] = true
		e.templates = binary.BigEndian.AppendUint16(e.templates, id)
		e.templates = binary.BigEndian.AppendUint16(e.templates, uint16(len(f.template)/4))
		e.templates = append(e.templates, f.template...)
	}
	if e.setID != id {
		e.set, e.setID = len(e.data), id
		e.data = append(binary.BigEndian.AppendUint16(e.data, id), 0, 0)
	}
	e.data = append(e.data, f.values...)
	binary.BigEndian.PutUint16(e.data[e.set+2:], uint16(len(e.data)-e.set))
	e.records++
	return nil
}

// flush sends the message, if it has records.
func (e *Exporter) flush() error {
	if e.records == 0 {
		return nil
	}
	m := append([]byte{0, 10, 0, 0}, make([]byte, 12)...) // version 10
	if len(e.templates) > 0 {
		m = binary.BigEndian.AppendUint16(m, templateSetID)
		m = binary.BigEndian.AppendUint16(m, uint16(4+len(e.templates)))
		m = append(m, e.templates...)
	}
	m = append(m, e.data...)
	binary.BigEndian.PutUint16(m[2:], uint16(len(m)))
	binary.BigEndian.PutUint32(m[4:], uint32(time.Now().Unix()))
	binary.BigEndian.PutUint32(m[8:], e.sequence)
	binary.BigEndian.PutUint32(m[12:], e.domain)
	e.sequence += e.records
	e.templates, e.data, e.setID, e.records = e.templates[:0], e.data[:0], 0, 0
	_, err := e.conn.Write(m)
	return err
}
