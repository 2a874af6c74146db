package embedded

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/hoplag/hoplag/examples/internal/relay"
	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// A hookTruth is the truth after a Hook.
type hookTruth struct {
	mqtt.HookBase
	*truth
}

func (*hookTruth) Provides(event byte) bool { return event == mqtt.OnPacketEncode }

func (h *hookTruth) OnPacketEncode(c *mqtt.Client, p packets.Packet) packets.Packet {
	if p.FixedHeader.Type == packets.Publish {
		h.left(c.ID + string(p.Payload))
	}
	return p
}

// TestMQTT runs a broker with three subscribers, one of which is far away and loses its connection and what is
// on its way.
func TestMQTT(t *testing.T) {
	t.Parallel()
	config := testConfig
	config.Flows = 10
	m, exact := newBench(t, config, config), newTruth()
	m.begins(t)
	server, address := broker(t, &Hook{Point: m.first}, &hookTruth{truth: exact})
	far := relay.NewWire(t, address, 25*time.Millisecond, 25*time.Millisecond)
	var again atomic.Int64
	for client, at := range map[string]string{"near 1": address, "near 2": address, "far": far.Addr().String()} {
		handle := Subscriber(m.second, client, func(paho.Client, paho.Message) {})
		subscribe(t, client, at, &again, func(c paho.Client, message paho.Message) {
			exact.arrived(client + string(message.Payload()))
			handle(c, message)
		})
	}
	for i := range 400 {
		if i == 200 {
			far.Set(false)
		}
		relay.Check(t, server.Publish("sensors/1", fmt.Appendf(nil, "message %d", i), false, 0))
		time.Sleep(3 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	m.agrees(t, "all", &m.forth, exact)
	if again.Load() < 4 || exact.came == len(exact.sent) {
		t.Errorf("%d connections, and %d of %d came: nothing was lost", again.Load(), exact.came, len(exact.sent))
	}
	slow := m.second.Flow([]byte("far"))
	if f := m.flows; len(f) != 3 || f[0].Flow != slow || f[0].MeanInterval95.High < 22e6 || f[1].MeanInterval95.Low > 20e6 {
		t.Errorf("the slowest of three subscribers is not the far one: %+v", f)
	}
}

func broker(t *testing.T, hooks ...mqtt.Hook) (*mqtt.Server, string) {
	t.Helper()
	l := relay.Listen(t)
	server := mqtt.New(&mqtt.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)})
	for _, h := range append([]mqtt.Hook{new(auth.AllowHook)}, hooks...) {
		relay.Check(t, server.AddHook(h, nil))
	}
	relay.Check(t, server.AddListener(listeners.NewNet("t", l)))
	relay.Check(t, server.Serve())
	t.Cleanup(func() { server.Close() })
	return server, l.Addr().String()
}

// subscribe connects a client, and reconnects it when its connection is lost.
func subscribe(t *testing.T, client, address string, connected *atomic.Int64, handle paho.MessageHandler) {
	t.Helper()
	ready := make(chan error, 1)
	options := paho.NewClientOptions().AddBroker("tcp://" + address).SetClientID(client).SetMaxReconnectInterval(100 * time.Millisecond)
	options.SetOnConnectHandler(func(c paho.Client) {
		token := c.Subscribe("sensors/#", 0, handle)
		connected.Add(1)
		go func() {
			token.Wait()
			select {
			case ready <- token.Error():
			default:
			}
		}()
	})
	c := paho.NewClient(options)
	c.Connect()
	t.Cleanup(func() { c.Disconnect(0) })
	relay.Check(t, <-ready)
}
