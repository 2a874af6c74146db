// Package control carries LDA's intervals from one point to another. A [Sender] marks where each interval
// begins and ends in the stream of packets, and sends what it saw; a [Receiver] takes the markers, compares,
// and reports on every interval once. Both make and take bytes, for any transport.
//
//	config := lda.DefaultConfig   // the same at both points
//	sender, err := control.NewSender(config, uint64(time.Now().UnixNano()), 1500)
//	receiver, err := control.NewReceiver(config)
//
//	start, err := sender.Start(nil)                 // send it, then packets
//	sender.Update(packet, now)
//	end, err := sender.End(nil)                     // send it
//	for part := range sender.Parts() { … }          // send them
//
//	reports, err = receiver.Receive(data, reports)  // at the other point
//	receiver.Update(packet, now)
//
// To measure several classes of packets, give each a Sender and a Receiver, with an Identity of their own.
// Where markers cannot travel among the packets, let clocks cut the intervals, and use an [lda.Accumulator].
//
// A control packet lost, late, damaged or, without a key, forged costs its interval; its [Report] says why.
package control
