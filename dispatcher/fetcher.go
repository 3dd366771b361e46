package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetcher polls the topics of all owned numbers with one direct client, and hands
// each record to the current life of its number.
//
// Membership and fetching are two clients on purpose. A group client that fetches
// stops polling for all numbers while one is being given up (BlockRebalanceOnPoll,
// without which a poll can carry records across a rebalance): a slow endpoint's
// drain would hold everybody up. It also begins at the committed offset alone,
// where a number begins at the offset and the set of what is done beyond it.
type fetcher struct {
	d  *Dispatcher
	cl *kgo.Client

	mu      sync.Mutex
	sinks   map[int32]*number
	paused  map[int32]map[string]bool
	polls   uint64
	begun   *sync.Cond // a poll has begun
	stop    context.CancelFunc
	stopped bool
}

func newFetcher(d *Dispatcher, cl *kgo.Client) *fetcher {
	f := &fetcher{d: d, cl: cl, sinks: map[int32]*number{}, paused: map[int32]map[string]bool{}}
	f.begun = sync.NewCond(&f.mu)
	return f
}

// add begins fetching for n from the given offsets, by topic.
func (f *fetcher) add(n *number, from map[string]int64) {
	f.barrier()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	f.sinks[n.p] = n
	partitions := map[string]map[int32]kgo.Offset{}
	for topic, at := range from {
		partitions[topic] = map[int32]kgo.Offset{n.p: kgo.NewOffset().At(at)}
	}
	f.cl.AddConsumePartitions(partitions)
}

// barrier returns when a poll has begun after the call. A poll that was under way
// may hold records of an earlier life of a number; it has handed them over, to
// nobody, before a new life begins to listen.
func (f *fetcher) barrier() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		f.stop()
	}
	for polls := f.polls; f.polls == polls && !f.stopped; {
		f.begun.Wait()
	}
}

// remove stops fetching for n. Records that a poll holds are dropped.
func (f *fetcher) remove(n *number) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sinks[n.p] != n {
		return
	}
	delete(f.sinks, n.p)
	gone := map[string][]int32{f.d.topo.Endpoints(): {n.p}}
	for _, topic := range f.d.topics {
		gone[topic] = []int32{n.p}
	}
	f.cl.RemoveConsumePartitions(gone)
	for topic := range f.paused[n.p] { // kgo keeps pauses beyond a removal
		f.cl.ResumeFetchPartitions(map[string][]int32{topic: {n.p}})
	}
	delete(f.paused, n.p)
}

// hold pauses or resumes one topic of n.
func (f *fetcher) hold(n *number, topic string, hold bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sinks[n.p] != n || f.paused[n.p][topic] == hold {
		return
	}
	one := map[string][]int32{topic: {n.p}}
	if hold {
		if f.paused[n.p] == nil {
			f.paused[n.p] = map[string]bool{}
		}
		f.paused[n.p][topic] = true
		f.cl.PauseFetchPartitions(one)
		return
	}
	delete(f.paused[n.p], topic)
	f.cl.ResumeFetchPartitions(one)
}

func (f *fetcher) run(ctx context.Context) {
	defer func() {
		f.mu.Lock()
		f.stopped = true
		f.begun.Broadcast()
		f.mu.Unlock()
	}()
	for ctx.Err() == nil {
		poll, stop := context.WithCancel(ctx)
		f.mu.Lock()
		f.stop = stop
		f.polls++
		f.begun.Broadcast()
		f.mu.Unlock()
		fetches := f.cl.PollRecords(poll, 10_000)
		stop()
		f.route(fetches)
	}
}

func (f *fetcher) route(fetches kgo.Fetches) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		n := f.sinks[p.Partition]
		if p.Err != nil {
			f.complain(p.Topic, p.Partition, p.Err)
		}
		if n == nil || len(p.Records) == 0 {
			return
		}
		n.inbox.post(func() { n.fetched(p.Topic, p.Records, p.HighWatermark) })
	})
}

func (f *fetcher) complain(topic string, partition int32, err error) {
	var loss *kgo.ErrDataLoss
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
	case errors.As(err, &loss):
		f.d.log.Error("records are gone before they were read: retention has taken them, or the log was truncated",
			"topic", topic, "number", partition, "error", err)
	default:
		f.d.log.Warn("fetching failed, trying again", "partition", fmt.Sprintf("%s/%d", topic, partition), "error", err)
	}
}
