package balancer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/reenvio/reenvio/dispatcher/balancer"
)

const numbers = 12

var topics = []string{"commands", "events", "retry-16s", "retry-2s", "retry-4s", "retry-8s"}

// ledger is told by the clients of one group what they were given and what they gave back.
type ledger struct {
	t       *testing.T
	mu      sync.Mutex
	holds   map[string]map[int32]int // member → number → topics held
	moved   int                      // numbers released by their holders
	changed chan struct{}            // closed, and made anew, at each change
}

func (l *ledger) change(member string, given map[string][]int32, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := map[int32]int{}
	for _, partitions := range given {
		for _, p := range partitions {
			whole[p]++
		}
	}
	for p, n := range whole {
		if n != len(topics) {
			l.t.Errorf("%s: number %d comes or goes with %d of %d topics", member, p, n, len(topics))
		}
		for other, held := range l.holds {
			if by > 0 && held[p] > 0 {
				l.t.Errorf("%s was given number %d, which %s has not released", member, p, other)
			}
		}
		if l.holds[member] == nil {
			l.holds[member] = map[int32]int{}
		}
		l.holds[member][p] += by * n
		if l.holds[member][p] == 0 {
			delete(l.holds[member], p)
			l.moved++
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until these members hold all numbers in equal shares, and returns how many numbers were released since the
// last call.
func (l *ledger) await(ctx context.Context, members []string) (moved int) {
	l.t.Helper()
	for {
		l.mu.Lock()
		total, low, high := 0, numbers, 0
		for _, m := range members {
			n := len(l.holds[m])
			total, low, high = total+n, min(low, n), max(high, n)
		}
		changed, state := l.changed, fmt.Sprint(l.holds)
		if total == numbers && high-low <= 1 {
			moved, l.moved = l.moved, 0
			l.mu.Unlock()
			return moved
		}
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			l.t.Fatalf("waiting for %v to share all numbers: %s", members, state)
		}
	}
}

func (l *ledger) numbersOf(member string) (held []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.holds[member] {
		held = append(held, p)
	}
	slices.Sort(held)
	return held
}

// forget: the process is gone without a word.
func (l *ledger) forget(member string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.holds, member)
}

func (l *ledger) join(c *kfake.Cluster, member string, opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.ConsumerGroup("dispatchers"),
		kgo.ConsumeTopics(topics...),
		kgo.Balancers(balancer.New()),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(20 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { l.change(member, given, 1) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { l.change(member, given, -1) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			l.t.Errorf("%s lost %v", member, lost)
		}),
	}, opts...)...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(cl.Close)
	return cl
}

func start(t *testing.T) (*kfake.Cluster, *ledger, context.Context) {
	c, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(numbers, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a hang ends it
	t.Cleanup(cancel)
	return c, &ledger{t: t, holds: map[string]map[int32]int{}, changed: make(chan struct{})}, ctx
}

// Members come one by one and leave one by one: always whole numbers, never one in two hands, and only what must moves.
func TestGroupOfClients(t *testing.T) {
	c, l, ctx := start(t)
	clients := map[string]*kgo.Client{}
	var members []string
	for n, must := range []int{0, 6, 4, 3, 2} { // what a new member gets, the others release
		name := fmt.Sprint("m", n+1)
		members = append(members, name)
		clients[name] = l.join(c, name)
		if moved := l.await(ctx, members); moved != must {
			t.Errorf("%d members: %d numbers moved, want %d", len(members), moved, must)
		}
	}
	for len(members) > 1 {
		gone := members[len(members)/2]
		members = slices.DeleteFunc(members, func(m string) bool { return m == gone })
		had := len(l.numbersOf(gone))
		clients[gone].Close()
		if moved := l.await(ctx, members); moved != had {
			t.Errorf("%s left with %d numbers, %d were released", gone, had, moved)
		}
	}
}

// A member with an instance id that starts again within its session has its numbers back, and nobody else notices.
func TestStaticMemberRestarts(t *testing.T) {
	c, l, ctx := start(t)
	members := []string{"a", "b", "c"}
	clients := map[string]*kgo.Client{}
	for i, name := range members {
		clients[name] = l.join(c, name, kgo.InstanceID(name))
		l.await(ctx, members[:i+1])
	}
	had := l.numbersOf("b")
	clients["b"].Close() // kgo does not leave the group for a static member
	l.forget("b")
	l.join(c, "b", kgo.InstanceID("b"))
	if moved := l.await(ctx, members); !slices.Equal(l.numbersOf("b"), had) {
		t.Errorf("b had %v and has %v; %d moved", had, l.numbersOf("b"), moved)
	}
	for _, other := range []string{"a", "c"} {
		if n := len(l.numbersOf(other)); n != numbers/3 {
			t.Errorf("%s has %d numbers", other, n)
		}
	}
}
