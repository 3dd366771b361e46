package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	polls   uint64
	begun   *sync.Cond // a poll has begun
	stop    context.CancelFunc
	stopped bool
}

func newFetcher(d *Dispatcher, cl *kgo.Client) *fetcher {
	f := &fetcher{d: d, cl: cl, sinks: map[int32]*number{}}
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
	f.cl.ResumeFetchPartitions(gone) // kgo keeps pauses beyond a removal
}

// pauseLocked stops fetching one topic of n, release goes on with it.
func (f *fetcher) pauseLocked(n *number, s *stream) {
	s.paused.Store(true)
	f.cl.PauseFetchPartitions(map[string][]int32{s.topic: {n.p}})
}

func (f *fetcher) release(n *number, s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sinks[n.p] == n && s.paused.CompareAndSwap(true, false) {
		f.cl.ResumeFetchPartitions(map[string][]int32{s.topic: {n.p}})
	}
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
		stream := n.streams[p.Topic]
		if stream == nil {
			n.inbox.post(func() { n.endpointRecords(time.Now(), p.Records) })
			return
		}
		// Paused first: the number, which may take all of it in at once, is who releases.
		if stream.arrives(p.Records) && !stream.paused.Load() {
			f.pauseLocked(n, stream)
		}
		n.inbox.post(func() { stream.fetched(p.Records) })
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
