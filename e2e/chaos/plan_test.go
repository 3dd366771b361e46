package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// kind is what is done.
type kind string

const (
	killed            kind = "SIGKILL"
	ended             kind = "SIGTERM"
	stopped           kind = "SIGSTOP"
	joined            kind = "join and leave"
	churned           kind = "joins and leaves every 5 s"
	brokerLoss        kind = "a broker killed"
	allLost           kind = "all brokers killed"
	coordinatorLost   kind = "the coordinator's broker killed"
	groupMoved        kind = "the group's coordinator moved"
	transactionsMoved kind = "the transactions' coordinators moved"
	leadersMoved      kind = "the leaders of a number moved"
	cutOff            kind = "cut off"
	slowed            kind = "latency"
	narrowed          kind = "little bandwidth"
	broken            kind = "connections reset"
)

// fault is one thing that is done, to whom, and for how long.
type fault struct {
	kind   kind
	target string        // an instance, or "brokers"
	at     time.Duration // since the begin; later when the last one of its lane has not ended
	length time.Duration // how long it is down, stopped, there, cut off, slow
	number int           // which broker, how many resets
	kill   bool          // a guest that is killed, does not leave
	sky    weather       // of a link
}

func (f fault) String() string { return fmt.Sprintf("%s of %s", f.kind, f.target) }

// lane is what one fault has to itself.
func (f fault) lane() string {
	switch f.kind {
	case cutOff, slowed, narrowed, broken:
		return "link " + f.target
	default:
		return f.target
	}
}

// Dispatchers: the residents are always to run, the guest comes and goes.
var residents = []string{"a", "b", "c"}

const guest = "d"

// numbers are the partitions of each topic.
const numbers = 12

// recovery is what brokers take to be in sync again.
const recovery = 12 * time.Second

// drawPlan draws the faults of so long a time. A longer plan begins with the faults
// of a shorter one, but for what would have taken too much of its time.
func drawPlan(seed uint64, length time.Duration) (plan []fault) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rnd.Int64N(int64(most-least)))
	}
	draws := []struct {
		weight int
		draw   func(f *fault)
	}{
		{7, func(f *fault) { f.kind = killed }}, // and started at once, as supervisors do
		{3, func(f *fault) { f.kind, f.length = killed, between(time.Second, 15*time.Second) }},
		{3, func(f *fault) { f.kind, f.length = ended, between(0, 5*time.Second) }},
		{3, func(f *fault) { f.kind, f.length = stopped, between(12*time.Second, time.Minute) }},
		{4, func(f *fault) {
			f.kind, f.target, f.length, f.kill = joined, guest, between(4*time.Second, 20*time.Second), rnd.IntN(3) == 0
		}},
		{4, func(f *fault) {
			f.kind, f.target, f.length, f.number = brokerLoss, "brokers", between(time.Second, 20*time.Second), rnd.IntN(3)
		}},
		{2, func(f *fault) {
			f.kind, f.target, f.length = coordinatorLost, "brokers", between(time.Second, 20*time.Second)
		}},
		{1, func(f *fault) { f.kind, f.target, f.length = allLost, "brokers", between(5*time.Second, 2*time.Minute) }},
		{2, func(f *fault) { f.kind, f.target = groupMoved, "brokers" }},
		{1, func(f *fault) { f.kind, f.target = transactionsMoved, "brokers" }},
		{2, func(f *fault) { f.kind, f.target, f.number = leadersMoved, "brokers", rnd.IntN(numbers) }},
		{1, func(f *fault) { f.kind, f.target, f.length = churned, guest, between(20*time.Second, time.Minute) }},
		{3, func(f *fault) { f.kind, f.length, f.sky.cut = cutOff, between(2*time.Second, 40*time.Second), true }},
		{2, func(f *fault) {
			f.kind, f.length, f.sky.latency = slowed, between(5*time.Second, 20*time.Second), between(50*time.Millisecond, 1500*time.Millisecond)
		}},
		{1, func(f *fault) {
			f.kind, f.length, f.sky.rate = narrowed, between(5*time.Second, 20*time.Second), 8<<10+rnd.IntN(56<<10)
		}},
		{2, func(f *fault) { f.kind, f.number = broken, 1+rnd.IntN(5) }},
	}
	weights := 0
	for _, d := range draws {
		weights += d.weight
	}
	once := rnd.Perm(len(draws))       // a short plan has each of them that fits
	const calm = 2 * time.Second       // at the begin
	busy := map[string]time.Duration{} // until when, by lane
	for at := calm; ; {
		at += between(time.Second, 6*time.Second)
		f := fault{at: at, target: residents[rnd.IntN(len(residents))]}
		if len(once) > 0 {
			draws[once[0]].draw(&f)
			once = once[1:]
		} else {
			n := rnd.IntN(weights)
			for _, d := range draws {
				if n -= d.weight; n < 0 {
					d.draw(&f)
					break
				}
			}
		}
		switch {
		case at > length:
			return plan
		case f.kind == allLost && f.length > length/5: // else there is little left to see
		case at+f.length <= length && at >= busy[f.lane()]:
			plan = append(plan, f)
			busy[f.lane()] = at + f.length + time.Second
			if f.target == "brokers" && f.length > 0 {
				busy[f.lane()] += recovery
			}
		}
	}
}

func TestPlanIsRepeatable(t *testing.T) {
	a, b := drawPlan(17, 30*time.Minute), drawPlan(17, 30*time.Minute)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed draws another plan")
	}
	kinds := map[kind]int{}
	for _, f := range a {
		kinds[f.kind]++
		if f.at+f.length > 30*time.Minute {
			t.Errorf("%s does not end in time", f)
		}
	}
	if len(kinds) != 15 {
		t.Errorf("half an hour has the faults %v, want all 15 kinds", kinds)
	}
	if reflect.DeepEqual(a, drawPlan(18, 30*time.Minute)) {
		t.Error("another seed draws the same plan")
	}
}
