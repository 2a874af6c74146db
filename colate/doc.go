// Package colate is COLATE. A point records the times of all packets that pass
// it in a few shared counters, and keeps them for months. Ask for the delays
// of any flow between two such points later, when you know which flow
// mattered.
//
//	store, err := colate.OpenStore(colate.Dir("kept/ingress"), colate.StoreOptions{})
//	rotation, err := colate.NewRotation(config)
//	for {                                       // at each of the two points
//		if rotation.Active().Due(now) {         // every minute
//			done, err := rotation.Rotate()
//			go keep(store, rotation, done)      // Append, then Release
//		}
//		rotation.Active().Update(flow, packet, now)
//	}
//
//	path := colate.Path{Up: ingress, Down: egress} // months later
//	r, coverage, err := path.Estimate(ctx, joint.FlowRecord{Flow: flow, Packets: 5000}, from, to)
//	fmt.Println(r.Mean, r.MeanInterval(0.95))
//
// # The machine
//
// A point has n counters. A flow owns m of them, chosen by its hash, and
// shares each with all other flows that hash there. A packet chooses one of
// its flow's m counters by its own digest, so every point chooses alike. The
// point adds the packet's time, its digest and 1 to that counter. That is all:
// one hash, one memory update, no time stamp in the packet and no state per
// flow. At each multiple of a period of the clock the counters go to a
// [Store], and empty ones take over. A few of a flow's counters are thin: they
// take one packet in a hundred or in thousands.
//
// A query compares the two points' counters epoch by epoch. Take a counter's
// count and digests at one point less the other, since any cut of the clock: if
// they are the same at two cuts, whatever was sent between has come, and
// nothing was lost. The difference of the sums of times, with what is on its
// way at each cut, is then the time that the packets spent on their way: the
// flow's, and those of others as noise (see cellTable). It is exact whatever
// the delays, and however many packets cross the cuts. If a packet was lost,
// the query leaves the counter out for a while, and the flow's other counters
// stand for it. The query adds up these areas over an hour or a year. Given the
// flow's number of packets, as flow records have it, the mean and the deviation
// follow. A record that the counters contradict is refused.
//
// An elephant may lose packets in each of its counters in every epoch. Its
// thin counters, which lose none, then stand for it. If none of a flow's
// counters says anything about an epoch in which all flows lost much, those of
// all flows say how long packets took then, and the interval allows for a flow
// that took longer, or less long. If others lost little in it, there is no
// answer, and the error names the epochs.
//
// The size of a store depends on packets: a packet takes 6 to 12 bits from 100
// packets a second on, 6.1 at the 70,000 that [DefaultConfig] is for, which is
// 4.6 GB a day at each point (go test ./colate -run TestSizes -v prints the
// bits). Where fewer than five packets a counter pass in ten epochs, the store
// adds up counters side by side, until there are more. [Plan] computes the size for a rate and a
// number of bytes, and [StoreOptions] limit what is kept.
//
// With Config.OneIn, one packet in so many is kept by itself as well, chosen by
// a hash of it, so that both points keep the same ones, at some 72 bits each.
// For as many bytes such a sample says more about a flow than its counters do,
// and needs no records of any flow; the counters win where the records of all
// flows explain them ([Path.Decode]). A query combines both.
//
// # What it assumes
//
//   - An offset between the points' clocks is added to every mean. If package
//     estimate/clock measured it and [Store.AppendClock] kept it, queries
//     remove it. A drift of 50 millionths adds to deviations as to means: where
//     all delays grow steadily, they are only known up to that.
//   - Both points compute the same digests (see package hashing) with the same
//     Config.
//   - The number of a flow's packets that passed both points is known, or its
//     uncertainty is ([joint.FlowRecord]'s Doubt). A flow large enough for its
//     counters to show needs no record.
//   - There is a recorder at each end of each link. Packets that only one of
//     two points sees spoil their counter for an epoch, as losses do.
//   - The time that a counter's packets spend on their way in one epoch is
//     less than half of what the sum can hold: see Config.Bits.
//
// # What it cannot measure
//
// COLATE cannot tell the distribution of delays beyond mean and deviation, the
// order of packets, or loss, which other packages count.
//
// It cannot tell the mean of a small flow among big ones from its counters
// alone: they hold mostly the delays of others, and [Result.MeanInterval] is
// wide. [Path.Decode] explains these delays by the records of the other flows.
//
// It cannot tell how long a flow waited that lost more than all others, on a
// path of its own, in epochs on which its own counters are silent: such a flow
// has no answer.
//
// Copies of one packet have one digest. If a copy is lost while another is on
// its way when the clock cuts, one is taken for the other.
//
// # The format
//
// A store is a directory of segments, 0000000000000000.colate and so on, and a
// file LOCK. A segment is a sequence of frames. A complete segment also has an
// index and a trailer. All numbers are big-endian.
//
//	frame     magic "HCLG" · payload length 4 · length of its head 4 · start 8 · end 8 · CRC-32C of all these 4
//	          payload: an epoch, or, where its head has no length, the encoding of a clock.History
//	index     magic "HCLI" · version 2
//	          frames 4 · for each: offset of the payload 8 · its length 4 · length of its head 4 · start 8 · end 8
//	          damages 4 · for each: offset 8 · bytes 8
//	          CRC-32C of the index 4
//	trailer   offset of the index 8 · magic "HCLX"
//
//	epoch     head: magic "HCLT" · version 5
//	          Identity 8 · Counters 4 · PerFlow 2 · Thin 1 · Bits 1 · CountBits 1 · DigestBits 1 · Shift 1
//	          Period 8 · OneIn 4 · Samples 4 · fold 1: 2^fold counters side by side are added up
//	          start 8 · packets 8 · limit of tags 4 · samples 4
//	          for each block: its length 4
//	          CRC-32C of the head 4
//	          blocks of up to 256 counters each, all of one size but the last
//	          blocks of samples, one for each 256 of them or part of that
//	block     parameter k of counts 1 · base width of sums 1
//	          bits, most significant first, for each counter:
//	            count: 0 for a counter that is 0, and then no more; else the count, or 2^CountBits if
//	            that is 0. All but its low k bits as so many ones and a zero, then the low k; from 24 ones
//	            on as 24 ones and CountBits+1 bits
//	            digest: DigestBits
//	            sum: less count × (start + Period/2) in units, less half the count, modulo its width,
//	            signed, x as 2x or -2x-1: base width and half the length of the count, rounded up, but at
//	            most the sum's width
//	          zeros to the next byte
//	          CRC-32C of the block 4
//	samples   of block i of n: those whose flow's high 32 bits, times n, have i above the lowest 32
//	          samples 4 · base width of times 1
//	          bits, for each sample, in the order of flow, time and tag:
//	            flow: its high 32 bits less those of the one before, as a count, with k such that 2^(32-k)
//	            is the number of samples in the epoch or less than twice as many, and 33 bits at most
//	            tag: the high 32 bits of the low 64 of packet × 9e3779b97f4a7c15, in as many bits as the limit less 1
//	            time: less start, in units, signed as sums are: base width
//	          zeros to the next byte
//	          CRC-32C of the block 4
//
// # Source
//
// M. Shahzad, A. X. Liu, Noise Can Help: Accurate and Efficient Per-flow
// Latency Measurement without Packet Probing and Time Stamping, SIGMETRICS
// 2014. Package colate/paper has its machine and estimators as they are in the
// paper.
//
//	paper        here                                      where
//	n            Config.Counters                           §3.1
//	m            Config.PerFlow, of which Config.Thin are ours §3.1
//	b            Config.Bits                               §3.1
//	C_X          the counters of a [Recorder]              §3.1
//	H(f, j)      position                                  §3.1
//	j            choice, from the packet's digest          §3.1
//	p_f          FlowRecord.Packets                        §4.1
package colate
