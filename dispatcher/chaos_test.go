package dispatcher

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/reenvio/reenvio/internal/kafkatest"
	"github.com/reenvio/reenvio/internal/record"
)

// All faults together, at random moments, while webhooks are paused and resumed,
// held and released, one by one, by tenant and all:
// each event ends once, no chain is doubled, and first attempts keep their order.
func TestChaos(t *testing.T) {
	kafkatest.Seeds(t, 3, func(t *testing.T, seed uint64) {
		inWorld(t, 3, kafkatest.After(20*time.Millisecond, kafkatest.FailSome(0.3, 2)), func(t *testing.T, w *world) {
			c := &chaos{w: w, rnd: rand.New(rand.NewPCG(seed, 1)), running: map[string]*process{}, wires: map[string]*wire{}}
			c.run()
			c.check()
		})
	})
}

// chaosOrders are the orderings of the webhooks, in turn.
var chaosOrders = []record.Ordering{
	record.OrderFirstAttempt, record.OrderStrict, record.OrderFirstAttempt, record.OrderKey, record.OrderStrictKey, record.OrderNone, record.OrderStrict,
}

type chaos struct {
	w        *world
	rnd      *rand.Rand
	webhooks []string
	sent     int // events of each webhook
	running  map[string]*process
	wires    map[string]*wire
	commands int
}

func (c *chaos) run() {
	w := c.w
	for i := range 9 {
		id := fmt.Sprintf("w%d", i)
		c.webhooks = append(c.webhooks, id)
		of := tenant(fmt.Sprint("t", i%3))
		order := inOrder(chaosOrders[i%len(chaosOrders)])
		if i%2 == 0 {
			w.webhook(id, of, order, neverPauses)
		} else {
			w.webhook(id, of, order)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		c.start(name)
	}
	for range 40 {
		for _, id := range c.webhooks {
			w.send(id, c.sent, 2)
		}
		c.sent += 2
		time.Sleep(time.Duration(c.rnd.IntN(1500)) * time.Millisecond)
		c.fault()
	}
	for name, p := range c.running {
		p.host.Heal()
		c.wires[name].heal()
	}
	time.Sleep(2 * time.Minute)
	w.release(record.HoldAll, "")
	for i := range 3 {
		w.release(record.HoldTenant, fmt.Sprint("t", i))
	}
	for _, id := range c.webhooks {
		w.release(record.HoldWebhook, id)
		for range 20 {
			w.do(id, record.ActionResume)
			if s := w.state(id); s.Healthy() {
				break
			}
			time.Sleep(30 * time.Second)
		}
	}
	time.Sleep(2 * time.Minute)
}

func (c *chaos) start(name string) {
	line := &wire{}
	c.wires[name] = line
	c.running[name] = c.w.start(name, wired(line), remembers, func(o *Options) { o.Config.DrainTimeout = 5 * time.Second })
	// A network takes time. Without, a client that two brokers send to each other for a partition's leader would ask for ever, and no
	// time would pass.
	c.running[name].host.Delay(100*time.Microsecond, c.w.cluster.Brokers...)
}

// fault is one thing that goes wrong, or is asked for.
func (c *chaos) fault() {
	name := []string{"a", "b", "c"}[c.rnd.IntN(3)]
	p, line := c.running[name], c.wires[name]
	once := func(key kmsg.Key, topLevel bool, err *kerr.Error, when func(kmsg.Request) bool) {
		c.w.cluster.Fake.Fault(kfake.Fault{Keys: []kmsg.Key{key}, TopLevel: topLevel, Err: err, Count: 1 + c.rnd.IntN(3), When: when})
	}
	switch c.rnd.IntN(21) {
	case 0:
		once(kmsg.EndTxn, false, kerr.UnknownServerError, nil)
	case 1:
		line.loseAnswers(kmsg.EndTxn, 1)
	case 2:
		line.loseRequests(kmsg.EndTxn, 1)
	case 3:
		line.loseAnswers(kmsg.TxnOffsetCommit, 1)
	case 4:
		once(kmsg.TxnOffsetCommit, false, kerr.UnknownServerError, nil)
	case 5:
		once(kmsg.Produce, false, kerr.TopicAuthorizationFailed, func(r kmsg.Request) bool { return r.(*kmsg.ProduceRequest).TransactionID != nil })
	case 6:
		once(kmsg.Heartbeat, true, kerr.UnknownMemberID, nil)
	case 7:
		once(kmsg.JoinGroup, true, kerr.UnknownMemberID, joinsAs(name))
		if p.d.joined.Load() {
			p.d.group.ForceRebalance()
		}
	case 8:
		c.w.steal(p)
	case 9:
		p.host.Cut(c.w.cluster.Brokers...)
		time.AfterFunc(time.Duration(c.rnd.IntN(25_000))*time.Millisecond, func() { p.host.Heal(c.w.cluster.Brokers...) })
	case 10:
		p.host.Heal()
		p.stop()
		<-p.ended
		time.Sleep(time.Duration(c.rnd.IntN(12_000)) * time.Millisecond)
		c.start(name)
	case 11:
		broker := c.rnd.IntN(3)
		c.w.cluster.KillBroker(c.w.t, broker)
		time.Sleep(time.Duration(c.rnd.IntN(12_000)) * time.Millisecond)
		c.w.cluster.StartBroker(c.w.t, broker)
	case 12, 13, 14:
		webhook := c.webhooks[c.rnd.IntN(len(c.webhooks))]
		c.command(webhook, c.w.topo.PartitionFor(webhook), record.Command{Webhook: webhook, Action: c.either(record.ActionPause, record.ActionResume)})
	case 15, 16:
		webhook := c.webhooks[c.rnd.IntN(len(c.webhooks))]
		c.command(webhook, c.w.topo.PartitionFor(webhook), record.Command{
			Webhook: webhook, Action: c.either(record.ActionHold, record.ActionRelease), Scope: record.HoldWebhook, Value: webhook,
		})
	case 17, 18:
		c.commandAll(record.Command{Action: c.either(record.ActionHold, record.ActionRelease), Scope: record.HoldTenant, Value: fmt.Sprint("t", c.rnd.IntN(3))})
	case 19:
		p.expires(time.Duration(c.rnd.IntN(20)) * time.Second)
	default:
		c.commandAll(record.Command{Action: c.either(record.ActionHold, record.ActionRelease), Scope: record.HoldAll})
	}
}

func (c *chaos) either(a, b record.Action) record.Action {
	if c.rnd.IntN(2) == 0 {
		return b
	}
	return a
}

// command writes one and does not wait for it.
func (c *chaos) command(key string, number int32, command record.Command) {
	c.commands++
	command.ID = fmt.Sprint(c.commands)
	c.w.produce(&kgo.Record{Topic: c.w.topo.Commands(), Partition: number, Key: []byte(key), Value: command.Marshal()})
}

func (c *chaos) commandAll(command record.Command) {
	for number := range c.w.topo.Partitions() {
		c.command(record.NumberKey, number, command)
	}
}

func (c *chaos) check() {
	w := c.w
	dead := map[string]int{}
	unsent := map[string]bool{} // it has died of age before its first attempt
	for _, d := range w.dead() {
		dead[d.ID]++
		unsent[d.ID] = d.Reason == record.ParkedExpired && d.Attempts == 0
	}
	results := map[string]int{}
	for _, r := range w.committed(w.topo.Commands()) {
		if result, err := record.ParseResult(r.Value); err == nil {
			results[result.ID]++
		}
	}
	for i := 1; i <= c.commands; i++ {
		if results[fmt.Sprint(i)] != 1 {
			w.t.Errorf("command %d has %d results", i, results[fmt.Sprint(i)])
		}
	}
	for i, id := range c.webhooks {
		w.oneChain(id)
		ends := dead
		for _, event := range w.delivered(id) {
			ends[event]++
		}
		for _, event := range eventIDs(id, 0, c.sent) {
			if ends[event] != 1 {
				w.t.Errorf("%s has ended %d times", event, ends[event])
			}
		}
		var first []string
		for _, r := range w.receiver.Of(id) {
			if r.Nth == 1 {
				first = append(first, r.EventID)
			}
		}
		if order := chaosOrders[i%len(chaosOrders)]; order == record.OrderFirstAttempt || order == record.OrderStrict {
			sent := slices.DeleteFunc(eventIDs(id, 0, c.sent), func(event string) bool { return unsent[event] && !slices.Contains(first, event) })
			mustEqual(w.t, "first attempts of "+id, first, sent)
		}
		if s := w.state(id); !s.Healthy() {
			w.t.Errorf("%s: state %s", id, s.Marshal())
		}
	}
	for name, p := range c.running {
		for at := range w.topo.Partitions() {
			if !p.has(at) {
				continue
			}
			p.look(at, func(n *number) {
				if n.flow.lanes != (amount{}) || n.flow.retries != (amount{}) || n.flow.returned != (amount{}) || n.paused != 0 || len(n.webhooks) != 0 || len(n.commands) != 0 || len(n.flying) != 0 {
					w.t.Errorf("%s, number %d: still held are %+v %+v %+v, %d webhooks", name, n.p, n.flow.lanes, n.flow.retries, n.flow.returned, len(n.webhooks))
				}
			})
		}
		if p.d.slots.left() != p.d.cfg.MaxInFlight {
			w.t.Errorf("%s: %d slots are free, want all", name, p.d.slots.left())
		}
	}
}
