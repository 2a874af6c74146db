package control_test

import (
	"fmt"

	"github.com/hoplag/hoplag/hashing"
	"github.com/hoplag/hoplag/lda"
	"github.com/hoplag/hoplag/lda/control"
)

// An interval from Start to End, with control packets that are bytes for any transport.
func ExampleSender() {
	config := lda.DefaultConfig
	sender, _ := control.NewSender(config, 1, 1500)
	receiver, _ := control.NewReceiver(config)
	var reports []control.Report

	start, _ := sender.Start(nil)
	reports, _ = receiver.Receive(start, reports)
	for i := range uint64(1000) {
		p, now := hashing.Word(7, i), int64(i)*1000
		sender.Update(p, now)
		receiver.Update(p, now+300)
	}
	end, _ := sender.End(nil)
	reports, _ = receiver.Receive(end, reports)
	for part := range sender.Parts() {
		reports, _ = receiver.Receive(part, reports)
	}
	for _, r := range reports {
		fmt.Println("interval", r.Interval, "error", r.Err, "mean", r.Result.Mean)
	}
	// Output:
	// interval 0 error <nil> mean 300
}
